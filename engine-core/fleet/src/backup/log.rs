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
pub(super) const POLL: Duration = Duration::from_millis(250);

/// Time after which the log is cut near its end, if writers are always ahead of the reader.
pub(super) const CUT_NEAR_END_AFTER: Duration = Duration::from_secs(10);

/// Number of messages that count as near the end.
pub(super) const NEAR: u64 = 1_000;

/// Time without a record after which the log is taken for too short, or for out of reach.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

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

    /// Returns the time at which the log took the last record.
    pub fn newest_ms(&self) -> Option<i64> {
        self.times.last().map(|(_, ms)| *ms)
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
    let mut wait = POLL;
    while !copier.is_closed() {
        let next = follower.next(wait);
        let now = clock.now();
        if next.is_ok() {
            last_answer = now;
        }
        wait = POLL;
        let wanted = progress.lock().wanted;
        if let Ok(Some(entry)) = &next {
            last_record = now;
            note_load(entry, progress, copier);
            writer.append(entry)?;
        }
        let is_late = wanted.is_some_and(|(_, since)| now.saturating_sub(since) >= POLL);
        let is_reached = wanted.is_some_and(|(version, _)| writer.done.end.version >= version);
        match next {
            // Everything that was acknowledged before the version was asked for is read: readers learn within this time
            // that a record is in all shards.
            Ok(None) if is_reached && is_late && follower.is_near_end(0)? => return writer.finish(),
            Ok(Some(_)) => {
                // Beside writers that never pause, the end is where no record is left at the moment.
                wait = if is_reached && is_late { Duration::ZERO } else { POLL };
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
        let ms = times.last().map_or(ms, |(_, last)| ms.max(*last));
        if let [.., before, last] = times.as_slice()
            && last.1 / 1_000 == before.1 / 1_000
        {
            times.pop();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::{Backup, Backups, History, Point};
    use std::sync::Arc;
    use tidegraph_cluster::Graph;
    use tidegraph_log::Record;
    use tidegraph_types::{Epoch, PartitionCount, ShardId};

    /// Versions from 1 on with the times of their records.
    const TIMES: [i64; 7] = [10_000, 10_200, 10_900, 11_000, 10_950, 14_000, 14_001];

    fn backup() -> (Backups, History) {
        let objects = Arc::new(Objects::memory().unwrap());
        let backups = Backups::new(objects.clone(), "", "g").unwrap();
        let folder = backups.folder("b");
        let done = Archived { objects: Vec::new(), end: Position::default(), times: Vec::new() };
        let mut writer = LogWriter { to: &objects, folder: &folder, open: None, done };
        for (version, ms) in (1..).zip(TIMES) {
            let (shard, epoch, body) = (ShardId(0), Epoch(1), Body::EpochStart);
            let record = Record { shard, epoch, version: Version(version), body };
            writer.append(&Entry { record, written_ms: Some(ms) }).unwrap();
        }
        let archived = writer.finish().unwrap();
        assert_eq!(archived.end, Position { version: Version(7), epoch: Epoch(1) });
        // A version has its time, or that of a later version.
        let times: Vec<_> = (0..=8).map(|version| archived.time_of(version)).collect();
        assert_eq!(times[..3], [Some(10_000), Some(10_000), Some(11_000)]);
        assert_eq!(times[6..], [Some(14_000), Some(14_001), None]);
        let backup = Backup {
            name: "b".into(),
            graph: Graph {
                name: "g".into(),
                partitions: PartitionCount::new(1).unwrap(),
                shards: 1,
                hash_bits: 64,
                replication_factor: 1,
                gremlin: Default::default(),
                splits: Default::default(),
                shares_objects: false,
            },
            release: String::new(),
            begun_ms: 9_000,
            cut_ms: 15_000,
            earliest: 0,
            earliest_ms: Some(10_000),
            version: 7,
            epoch: 1,
            checkpoints: vec![],
            log: archived.objects,
            objects: vec![],
        };
        (backups, History::alone(backup))
    }

    #[test]
    fn a_time_is_the_last_version_that_the_log_had_taken() {
        let (backups, backup) = backup();
        for (ms, version) in [(10_000, 1), (10_899, 2), (10_999, 3), (11_000, 5), (13_999, 5), (15_000, 7)] {
            assert_eq!(backups.version_at(&backup, Point::Time(ms)).unwrap(), Version(version), "{ms}");
        }
        for ms in [9_999, 15_001] {
            let error = backups.version_at(&backup, Point::Time(ms)).unwrap_err().to_string();
            assert!(error.contains("b has 1970-01-01T00:00:10Z to 1970-01-01T00:00:15Z"), "{error}");
        }
        let short = Backup { version: 8, ..backup.backup };
        assert!(
            backups.verify(&History::alone(short)).unwrap_err().to_string().contains("ends at version 7")
        );
    }
}
