//! Archives the log behind the newest backup.
//!
//! Flow of a turn:
//! 1. Without a follower, find where the archive stands, from the place of backups alone: behind the newest archive, if the
//!    log still has the record that it ends with; otherwise behind a newer backup of this log, with a new series.
//! 2. Read what the log has now into memory. Copy the segments of loads as they are met, before they are removed.
//! 3. Write an archive when enough bytes are read, or when the first record that is in no archive has waited long enough:
//!    the records, then the states of loads, then the manifest.
//!
//! Two archivers of a graph write manifests of the same names. The second one finds the manifest of the first one, and begins
//! again behind it.
//!
//! What must never happen: an archive that continues another log than the archive before it; a manifest that names an object
//! that is not there, or that another archiver overwrites.

use super::copier::{Closing, Copier, Sum, sum_of};
use super::log::{CUT_NEAR_END_AFTER, NEAR, PATIENCE, POLL};
use super::{Archive, Backup, Backups, CopiedObject, Error, LogObject, Mark, Source};
use crate::role::ArchivePosition;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_log::archive::{ArchiveWriter, Entry};
use tidegraph_log::{Body, Position, WholeFollower};
use tidegraph_platform::ObjectError;
use tidegraph_types::{Epoch, Version};

/// Time without a record after which a log ends before the record that is looked for.
const SHORT_AFTER: Duration = Duration::from_secs(2);

/// How often a copy of segments looks whether the archiver is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Settings of an archiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArchiveConfig {
    /// Time from the first record that is in no archive until an archive of it is written.
    pub every: Duration,
    /// Bytes of records after which an archive is written before. They are held in memory, twice while they grow.
    pub object_bytes: u64,
    /// Number of segments that are copied at once.
    pub parallel: usize,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        Self { every: Duration::from_secs(300), object_bytes: 32 << 20, parallel: 4 }
    }
}

/// What an archiver did in a turn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Turn {
    /// The archives that it wrote, in order.
    pub written: Vec<Archive>,
    /// Whether it read what the log had.
    pub is_at_end: bool,
    /// The records that are in no archive and no backup, between the two versions, if a new series began behind a gap.
    pub gap: Option<(Version, Version)>,
}

/// Archives the log of a graph.
pub struct Archiver {
    source: Source,
    to: Backups,
    config: ArchiveConfig,
    open: Option<Open>,
    /// Knows since when the oldest record has waited that is in no archive, also while this archiver works.
    position: Arc<ArchivePosition>,
    /// Version of a load whose segments were removed before they were copied.
    lost: Option<Version>,
    stop: Arc<AtomicBool>,
}

/// A series that is continued.
struct Open {
    series: String,
    follower: WholeFollower,
    /// The last record that is archived.
    after: Mark,
    /// The last record that was read.
    end: Mark,
    first_ms: Option<i64>,
    records: ArchiveWriter<Vec<u8>>,
    segments: Vec<CopiedObject>,
    /// Paths of the states of loads.
    jobs: Vec<String>,
    /// Everything that was acknowledged before this time is read.
    seen_ms: Option<i64>,
}

impl std::fmt::Debug for Archiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archiver").field("source", &self.source).field("to", &self.to).finish_non_exhaustive()
    }
}

impl Open {
    fn new(series: &str, after: Mark, follower: WholeFollower) -> Self {
        Self {
            series: series.to_owned(),
            follower,
            after,
            end: after,
            first_ms: None,
            records: ArchiveWriter::new(Vec::new()),
            segments: Vec::new(),
            jobs: Vec::new(),
            seen_ms: None,
        }
    }
}

impl Archiver {
    /// Makes an archiver of a graph. Nothing is read yet. Once `stop` is true, it begins nothing that takes long.
    #[must_use]
    pub fn new(source: Source, to: Backups, config: ArchiveConfig, stop: Arc<AtomicBool>) -> Self {
        Self { source, to, config, open: None, position: Arc::default(), lost: None, stop }
    }

    /// Tells `position` for how long records have waited, from now on.
    pub(super) fn tell(&mut self, position: Arc<ArchivePosition>) {
        self.position = position;
    }

    /// Returns the last version that is archived; `None` if this is not known.
    #[must_use]
    pub fn archived(&self) -> Option<Version> {
        self.open.as_ref().map(|open| Version(open.after.version))
    }

    /// Returns for how long the oldest record has waited that is in no archive, or for how long the log could not be
    /// archived.
    #[must_use]
    pub fn lag(&self) -> Duration {
        self.position.lag(self.source.clock.now())
    }

    /// Forgets what was read and not archived, and where the archive stands.
    pub fn reset(&mut self) {
        (self.open, self.lost) = (None, None);
        self.position.catch_up();
    }

    /// Archives what the log has now. Returns what was written.
    ///
    /// # Errors
    /// Those of [`Archiver::turn`]; [`Error::LogSilent`] if the log has records and does not hand them out.
    pub fn archive_all(&mut self) -> Result<Turn, crate::Error> {
        let mut all = Turn::default();
        let mut since = self.source.clock.now();
        loop {
            let read = self.end().map(|end| end.version);
            all.is_at_end = self.attempt(Duration::MAX, &mut all)?;
            if all.is_at_end || self.is_stopped() {
                let series = self.open.is_some();
                all.written.append(&mut self.cut()?);
                // Otherwise another archiver was faster, and there may be more behind what it wrote.
                if self.open.is_some() || !series {
                    return Ok(all);
                }
            }
            let now = self.source.clock.now();
            if self.end().map(|end| end.version) != read {
                since = now;
            } else if now.saturating_sub(since) > PATIENCE {
                return Err(Error::LogSilent(PATIENCE).into());
            }
        }
    }

    /// Reads what the log has now, for about ten seconds at most, and writes the archives that are due.
    ///
    /// # Errors
    /// [`Error::NothingToFollow`] and [`Error::NotArchived`] until there is a backup to follow; otherwise the failure of the
    /// log or an object store. The next turn begins with what is in the place of backups.
    pub fn turn(&mut self) -> Result<Turn, crate::Error> {
        let mut turn = Turn::default();
        let is_at_end = self.attempt(self.config.every, &mut turn)?;
        Ok(Turn { is_at_end, ..turn })
    }

    /// Writes an archive of what was read, whether it is due or not.
    ///
    /// # Errors
    /// The failure of an object store.
    pub fn cut(&mut self) -> Result<Vec<Archive>, crate::Error> {
        let mut written = Vec::new();
        if let Err(error) = self.write(&mut written) {
            self.open = None;
            return Err(error);
        }
        Ok(written)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn end(&self) -> Option<Mark> {
        self.open.as_ref().map(|open| open.end)
    }

    /// Whether an archive is due: records have waited for `every`.
    fn is_due(&self, every: Duration) -> bool {
        self.open.as_ref().is_some_and(|open| open.end != open.after) && self.lag() >= every
    }

    /// Reads up to the end of the log, and writes what is due. Returns whether the end was reached. After a failure the next
    /// attempt begins with what is in the place of backups.
    fn attempt(&mut self, every: Duration, turn: &mut Turn) -> Result<bool, crate::Error> {
        self.read(every, turn).inspect_err(|_| {
            self.open = None;
            self.position.fall_behind(self.source.clock.now());
        })
    }

    fn read(&mut self, every: Duration, turn: &mut Turn) -> Result<bool, crate::Error> {
        if self.open.is_none() {
            let (open, gap) = self.begin()?;
            turn.gap = turn.gap.or(gap);
            self.open = Some(open);
        }
        let clock = self.source.clock.clone();
        let begun = clock.now();
        let mut is_at_end = false;
        while !self.is_stopped() {
            let asked_ms = clock.wall().as_millisecond();
            let Some(open) = &mut self.open else { return Ok(false) };
            match open.follower.next(POLL) {
                Ok(Some(entry)) => {
                    // The segments of a load may take long.
                    self.position.fall_behind(clock.now());
                    if let Err(error) = self.append(&entry) {
                        // What comes before a load without segments is whole.
                        self.write(&mut turn.written)?;
                        return Err(error);
                    }
                    let Some(open) = &mut self.open else { return Ok(false) };
                    if open.records.bytes() >= self.config.object_bytes && !self.write(&mut turn.written)? {
                        return Ok(false);
                    }
                }
                Ok(None) => {
                    is_at_end = open.follower.is_near_end(0)?;
                    open.seen_ms = is_at_end.then_some(asked_ms);
                    break;
                }
                Err(error) => {
                    // What was read is whole, whatever became of the log.
                    self.write(&mut turn.written)?;
                    return Err(error.into());
                }
            }
            // Beside writers that never pause, the end is where few records are left.
            if clock.now().saturating_sub(begun) > CUT_NEAR_END_AFTER {
                is_at_end = self.open.as_mut().map_or(Ok(false), |open| open.follower.is_near_end(NEAR))?;
                break;
            }
        }
        let is_all_archived = self.open.as_ref().is_some_and(|open| open.end == open.after);
        if is_at_end && is_all_archived {
            self.position.catch_up();
        }
        if self.is_due(every) {
            self.write(&mut turn.written)?;
        }
        Ok(is_at_end)
    }

    /// Finds where the archive stands. Also returns the gap before it, if there is one.
    fn begin(&self) -> Result<(Open, Option<(Version, Version)>), crate::Error> {
        let series = self.to.series()?;
        let Some((name, first)) = series.newest() else {
            let (backup, open) = self.begin_series("", None)?;
            tracing::info!(backup = backup.name, "the archive begins behind a backup");
            return Ok((open, None));
        };
        let (end, reason) = match self.to.read_archive(name, first) {
            Ok(newest) => match self.follow(newest.end)? {
                Ok(follower) => return Ok((Open::new(name, newest.end, follower), None)),
                Err(reason) => (newest.end, reason),
            },
            Err(crate::Error::Backup(error @ Error::Unreadable { .. })) => {
                let end = Mark { version: first.saturating_sub(1), epoch: 0, written_ms: None };
                (end, error.to_string())
            }
            Err(error) => return Err(error),
        };
        let (backup, open) = self.begin_series(name, Some((end, reason)))?;
        // Records that the backup has are in no gap.
        let gap = (Version(end.version), Version(backup.earliest));
        let (end, from) = gap;
        tracing::warn!(%end, %from, backup = backup.name, "the archive begins again behind a backup");
        Ok((open, (from > end).then_some(gap)))
    }

    /// Begins a series behind the oldest backup that the log continues, of those with names above another one's.
    fn begin_series(
        &self,
        above: &str,
        refused: Option<(Mark, String)>,
    ) -> Result<(Backup, Open), crate::Error> {
        let mut names = self.to.names()?;
        names.retain(|name| name.as_str() > above);
        let (mut chosen, mut refused) = (None, refused);
        // Older backups are further behind in the log.
        for name in names.iter().rev() {
            let backup = match self.to.read(name) {
                Ok(backup) => backup,
                Err(crate::Error::Backup(error)) => {
                    tracing::warn!(%error, "no archive can follow a backup");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let end = match self.to.end_of(&backup) {
                Err(error) if is_of_backup(&error) => {
                    tracing::warn!(%error, backup = name, "no archive can follow a backup that is not whole");
                    continue;
                }
                end => end?,
            };
            match self.follow(end)? {
                Ok(follower) => chosen = Some((Open::new(name, end, follower), backup)),
                Err(reason) => {
                    refused = Some((end, reason));
                    break;
                }
            }
        }
        match (chosen, refused) {
            (Some((open, backup)), _) => Ok((backup, open)),
            (None, Some((end, reason))) => Err(Error::NotArchived { end: end.to_string(), reason }.into()),
            (None, None) => {
                let (graph, place) = (self.source.graph.name.clone(), self.to.place());
                Err(Error::NothingToFollow { graph, place }.into())
            }
        }
    }

    /// Follows the log behind a record, or says why it does not continue there.
    fn follow(&self, after: Mark) -> Result<Result<WholeFollower, String>, crate::Error> {
        let Source { log, graph, clock, .. } = &self.source;
        if let Some(load) = self.lost.filter(|lost| lost.0 > after.version) {
            return Ok(Err(format!("segments of the load of version {load} were removed")));
        }
        // The record itself is read again, to compare it. The one before it may have a lower epoch, and what a deposed
        // sequencer wrote with that of the record's version does not count.
        let before =
            Position { version: Version(after.version.saturating_sub(1)), epoch: Epoch(after.epoch) };
        let mut follower = WholeFollower::new(&**log, graph.sharding()?, before);
        if after.version == 0 {
            return Ok(Ok(follower));
        }
        let begun = clock.now();
        loop {
            let waited = clock.now().saturating_sub(begun);
            match follower.next(POLL) {
                Ok(Some(entry)) => {
                    let found = Mark::of(&entry);
                    let differs = || format!("it is another log, in which there is {found}");
                    return Ok(if found.is(&after) { Ok(follower) } else { Err(differs()) });
                }
                Ok(None) if waited > SHORT_AFTER && follower.is_near_end(0)? => {
                    return Ok(Err("it is another log, which ends before".to_owned()));
                }
                Ok(None) if waited > PATIENCE => return Err(Error::LogSilent(PATIENCE).into()),
                Ok(None) => clock.sleep(POLL.min(SHORT_AFTER / 20)),
                Err(tidegraph_log::Error::Trimmed { first, .. }) => {
                    return Ok(Err(format!("it was trimmed, and begins with version {first}")));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes a record. Copies the segments of a load.
    fn append(&mut self, entry: &Entry) -> Result<(), crate::Error> {
        let Some(open) = &self.open else { return Ok(()) };
        let mut copied = Vec::new();
        if let Body::Load { segments, .. } = &entry.record.body {
            copied = self.copy(&open.series, segments)?;
            let lacking: Vec<String> = segments
                .iter()
                .filter(|path| copied.iter().all(|copy| copy.path != **path))
                .cloned()
                .collect();
            if !lacking.is_empty() {
                self.lost = Some(entry.record.version);
                return Err(Error::Removed { objects: lacking }.into());
            }
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        open.records.append(entry)?;
        open.segments.append(&mut copied);
        if let Body::Load { load_id, .. } = &entry.record.body {
            open.jobs.push(format!("jobs/{load_id}.json"));
        }
        if open.end == open.after {
            open.first_ms = entry.written_ms;
        }
        open.end = Mark::of(entry);
        Ok(())
    }

    /// Copies objects of loads to a series; those that are gone are not in the answer.
    fn copy(&self, series: &str, paths: &[String]) -> Result<Vec<CopiedObject>, crate::Error> {
        let to = format!("{}objects/", self.to.series_folder(series));
        let copier = Copier::new((&*self.source.objects, ""), (self.to.objects(), to.as_str()));
        let (stop, clock) = (&self.stop, &self.source.clock);
        std::thread::scope(|scope| {
            let _closing = Closing(&copier);
            for _ in 0..self.config.parallel.clamp(1, paths.len().max(1)) {
                scope.spawn(|| copier.work());
            }
            scope.spawn(|| {
                while !copier.is_closed() {
                    if stop.load(Ordering::Acquire) {
                        copier.close();
                    }
                    clock.sleep(LOOK_EVERY);
                }
            });
            copier.add(paths.iter().cloned());
            copier.wait()?;
            Ok(copier.copied())
        })
    }

    /// Copies states of loads to a series; those that are gone are not in the answer. A state changes, and another archiver
    /// may have named its copy in a manifest: a copy that is there stays.
    fn copy_states(&self, series: &str, paths: &[String]) -> Result<Vec<CopiedObject>, crate::Error> {
        let mut copied = Vec::new();
        for path in paths {
            let state = match self.source.objects.get(path) {
                Ok(state) => state,
                Err(ObjectError::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let (bytes, crc32c) = (state.len() as u64, crc32c::crc32c(&state));
            let copy = format!("{}objects/{path}", self.to.series_folder(series));
            let sum = match self.to.objects().put_new(&copy, state)? {
                true => Some(Sum { bytes, crc32c }),
                false => sum_of(self.to.objects(), &copy)?,
            };
            copied.extend(sum.map(|Sum { bytes, crc32c }| CopiedObject {
                path: path.clone(),
                bytes,
                crc32c,
            }));
        }
        Ok(copied)
    }

    /// Writes an archive of what was read, if there is anything. Returns false if another archiver was faster: then the
    /// archiver begins again behind what that one wrote.
    fn write(&mut self, written: &mut Vec<Archive>) -> Result<bool, crate::Error> {
        let Some(open) = self.open.as_mut().filter(|open| open.end != open.after) else { return Ok(true) };
        let records = std::mem::replace(&mut open.records, ArchiveWriter::new(Vec::new())).finish()?;
        let (series, jobs) = (open.series.clone(), std::mem::take(&mut open.jobs));
        let (first, last, crc32c) = (open.after.version + 1, open.end.version, crc32c::crc32c(&records));
        let path = format!("log/{first:020}-{last:020}-{crc32c:08x}");
        let bytes = records.len() as u64;
        // Another archiver may have written the same bytes.
        self.to.objects().put_new(&format!("{}{path}", self.to.series_folder(&series)), records)?;
        // Late, so that they say how their loads ended.
        let states = self.copy_states(&series, &jobs)?;
        let Some(open) = &mut self.open else { return Ok(true) };
        let mut objects = std::mem::take(&mut open.segments);
        objects.extend(states);
        objects.sort_by(|a, b| a.path.cmp(&b.path));
        let archive = Archive {
            series,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            after: open.after,
            end: open.end,
            cut_ms: cut_ms(open, self.source.clock.wall().as_millisecond()),
            log: LogObject { path, first, last, first_ms: open.first_ms, bytes, crc32c },
            objects,
        };
        if self.to.write_archive(&archive)? {
            tracing::debug!(first, last, "archived");
            open.after = open.end;
            self.position.catch_up();
            written.push(archive);
            return Ok(true);
        }
        tracing::info!(first, "another archiver has archived the version; this one goes on behind it");
        self.open = None;
        Ok(false)
    }
}

/// Whether a backup cannot be read because objects of it are missing, cut, damaged or of a later release. Otherwise the
/// object store may recover soon.
fn is_of_backup(error: &crate::Error) -> bool {
    use std::io::ErrorKind;
    use tidegraph_log::Error as LogError;
    match error {
        crate::Error::Backup(_) | crate::Error::Objects(ObjectError::NotFound { .. }) => true,
        crate::Error::Log(LogError::Corrupt { .. } | LogError::Newer { .. }) => true,
        crate::Error::Log(LogError::Archive { source }) => {
            matches!(source.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
        }
        _ => false,
    }
}

/// Returns a time before which everything acknowledged is in an archive: when the end of the log was last seen, or that of
/// the last record. A log without times gives the time of now.
fn cut_ms(open: &Open, now_ms: i64) -> i64 {
    let known = open.end.written_ms.into_iter().chain(open.seen_ms);
    known.max().unwrap_or(now_ms)
}
