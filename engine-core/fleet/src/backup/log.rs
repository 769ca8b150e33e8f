//! Writes the log of a backup while the checkpoints are copied.

use super::copier::{Copier, Summing};
use super::{Error, LogObject};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegraph_log::archive::{ArchiveWriter, Entry};
use tidegraph_log::{Body, Position, WholeFollower};
use tidegraph_platform::{Clock, ObjectWriter, Objects};
use tidegraph_types::Version;

/// Bytes after which the next object begins.
const OBJECT_BYTES: u64 = 64 << 20;

/// Longest wait for the next record.
const POLL: Duration = Duration::from_millis(250);

/// Time after which the log is cut near its end, if writers are always ahead of the reader.
const CUT_NEAR_END_AFTER: Duration = Duration::from_secs(10);

/// Number of messages that count as near the end.
const NEAR: u64 = 1_000;

/// Time without a record after which the log is taken for too short, or for out of reach.
const PATIENCE: Duration = Duration::from_secs(60);

/// Objects of a load.
#[derive(Clone, Debug)]
pub(super) struct LoadFiles {
    pub segments: Vec<String>,
    /// What the service says of the load. It may be missing.
    pub job: String,
}

/// What the reader of the log and the copier of checkpoints tell each other.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The loads that were read, by their version.
    pub loads: BTreeMap<Version, LoadFiles>,
    /// The version that the log has to reach, and when this was asked for. `None` as long as the log goes on.
    pub wanted: Option<(Version, Duration)>,
}

/// The log of a backup.
#[derive(Debug)]
pub(super) struct Archived {
    pub objects: Vec<LogObject>,
    /// The last record, or where the log began.
    pub end: Position,
    /// Versions that began a second, with the time of their records in milliseconds since 1970. The last one has the time
    /// of the last record.
    times: Vec<(u64, i64)>,
}

impl Archived {
    /// Returns the time at which the log took a version, or a later time.
    pub fn time_of(&self, version: u64) -> Option<i64> {
        let after = self.times.partition_point(|(known, _)| *known < version);
        self.times.get(after).map(|(_, ms)| *ms)
    }
}

/// Writes records to objects of a bounded size.
struct LogWriter<'a> {
    to: &'a Objects,
    folder: &'a str,
    open: Option<(LogObject, ArchiveWriter<Summing<ObjectWriter>>)>,
    done: Archived,
}

/// Reads the log from behind a position up to the wanted version and its end, and writes it to a folder.
pub(super) fn archive(
    follower: WholeFollower,
    begin: Position,
    to: (&Objects, &str),
    shared: (&Mutex<Progress>, &Copier<'_>),
    clock: &dyn Clock,
) -> Result<Archived, crate::Error> {
    let mut follower = follower;
    let (progress, copier) = shared;
    let done = Archived { objects: Vec::new(), end: begin, times: Vec::new() };
    let mut writer = LogWriter { to: to.0, folder: to.1, open: None, done };
    let (mut last_record, mut last_answer) = (clock.now(), clock.now());
    while !copier.is_closed() {
        let next = follower.next(POLL);
        let now = clock.now();
        if next.is_ok() {
            last_answer = now;
        }
        let wanted = progress.lock().wanted;
        if let Ok(Some(entry)) = &next {
            last_record = now;
            note_load(entry, progress, copier);
            writer.append(entry)?;
        }
        let is_reached = wanted.is_some_and(|(version, _)| writer.done.end.version >= version);
        match next {
            // Everything that was acknowledged before the version was asked for is read.
            Ok(_) if is_reached && follower.is_near_end(0)? => return writer.finish(),
            Ok(Some(_)) => {
                let is_long = wanted.is_some_and(|(_, since)| now.saturating_sub(since) > CUT_NEAR_END_AFTER);
                if is_reached && is_long && follower.is_near_end(NEAR)? {
                    return writer.finish();
                }
            }
            Ok(None) => {
                // The wait begins when the version is asked for: before, a log may rest for hours.
                let since = wanted.map_or(now, |(_, since)| since.max(last_record));
                if let Some((wanted, _)) = wanted
                    && now.saturating_sub(since) > PATIENCE
                {
                    return Err(Error::LogEnds { reached: writer.done.end.version, wanted }.into());
                }
            }
            Err(error @ tidegraph_log::Error::Broker { .. })
                if now.saturating_sub(last_answer) < PATIENCE =>
            {
                tracing::warn!(%error, "the log does not answer; it is asked again");
                clock.sleep(POLL);
            }
            Err(error) => return Err(error.into()),
        }
    }
    writer.finish()
}

/// Has the segments of a load copied soon, before they are removed.
fn note_load(entry: &Entry, progress: &Mutex<Progress>, copier: &Copier<'_>) {
    let Body::Load { load_id, segments, .. } = &entry.record.body else { return };
    copier.add(segments.iter().cloned());
    let files = LoadFiles { segments: segments.clone(), job: format!("jobs/{load_id}.json") };
    progress.lock().loads.insert(entry.record.version, files);
}

impl LogWriter<'_> {
    fn append(&mut self, entry: &Entry) -> Result<(), crate::Error> {
        let version = entry.record.version;
        if let Some((object, writer)) = &mut self.open {
            writer.append(entry)?;
            object.last = version.0;
        } else {
            let path = format!("log/{:020}", version.0);
            let out = Summing::new(self.to.writer(&format!("{}{path}", self.folder))?);
            let mut writer = ArchiveWriter::new(out);
            writer.append(entry)?;
            let (first, first_ms) = (version.0, entry.written_ms);
            let object = LogObject { path, first, last: first, first_ms, bytes: 0, crc32c: 0 };
            self.open = Some((object, writer));
        }
        let epoch = entry.record.epoch.max(self.done.end.epoch);
        self.done.end = Position { version, epoch };
        self.note_time(version, entry.written_ms);
        if self.open.as_ref().is_some_and(|(_, writer)| writer.bytes() >= OBJECT_BYTES) {
            self.end_object()?;
        }
        Ok(())
    }

    /// Keeps one version for each second, and the last one.
    fn note_time(&mut self, version: Version, written_ms: Option<i64>) {
        let Some(ms) = written_ms else { return };
        let times = &mut self.done.times;
        if let [.., before, last] = times.as_slice()
            && last.1 / 1_000 == before.1 / 1_000
        {
            times.pop();
        }
        let ms = times.last().map_or(ms, |(_, last)| ms.max(*last));
        times.push((version.0, ms));
    }

    fn end_object(&mut self) -> Result<(), crate::Error> {
        let Some((mut object, writer)) = self.open.take() else { return Ok(()) };
        let out = writer.finish()?;
        (object.bytes, object.crc32c) = (out.sum.bytes, out.sum.crc32c);
        out.inner.finish()?;
        self.done.objects.push(object);
        Ok(())
    }

    fn finish(mut self) -> Result<Archived, crate::Error> {
        self.end_object()?;
        Ok(self.done)
    }
}
