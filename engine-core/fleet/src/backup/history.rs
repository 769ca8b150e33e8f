//! A backup and the archives behind it: one range of versions, without gaps. Restores and checks read nothing else.

use super::archives::Series;
use super::catalog::{Point, Verified, time};
use super::copier::{Sum, sum_of};
use super::{Archive, Backup, Backups, CopiedObject, Error, Listed, Mark};
use std::collections::BTreeMap;
use tidegraph_log::archive::{ArchiveReader, Entry};
use tidegraph_types::Version;

/// Most milliseconds by which the clock of the machine that makes backups and those of brokers differ.
const CLOCKS_DIFFER_MS: i64 = 60_000;

/// A backup and the archives behind it.
#[derive(Debug)]
pub struct History {
    /// The backup.
    pub backup: Backup,
    /// Archives, in order. Each has records above the version of the backup.
    pub archives: Vec<Archive>,
    /// Why the next archive is not among them, if there is one.
    broken: Option<Broken>,
}

/// A history in a listing.
#[derive(Debug)]
pub struct ListedHistory {
    /// Name of the backup.
    pub name: String,
    /// The history, or why the manifest of the backup cannot be read.
    pub history: Result<History, Error>,
}

/// An archive that is missing or cannot be read.
#[derive(Clone, Debug)]
struct Broken {
    object: String,
    last: u64,
    reason: String,
}

impl From<Broken> for Error {
    fn from(Broken { object, last, reason }: Broken) -> Self {
        Self::BrokenArchive { object, last: Version(last), reason }
    }
}

impl History {
    /// Returns a backup without archives.
    #[must_use]
    pub fn alone(backup: Backup) -> Self {
        Self { backup, archives: Vec::new(), broken: None }
    }

    /// Returns the newest version that can be restored.
    #[must_use]
    pub fn version(&self) -> Version {
        Version(self.archives.last().map_or(self.backup.version, |archive| archive.end.version))
    }

    /// Returns the newest time that can be restored, in milliseconds since 1970.
    #[must_use]
    pub fn cut_ms(&self) -> i64 {
        self.archives.iter().map(|archive| archive.cut_ms).fold(self.backup.cut_ms, i64::max)
    }

    /// Returns the highest epoch of a checkpoint or a record.
    pub(super) fn epoch(&self) -> u64 {
        self.archives.iter().map(|archive| archive.end.epoch).fold(self.backup.epoch, u64::max)
    }

    /// Whether the graph can be restored to a point.
    #[must_use]
    pub fn has(&self, point: Point) -> bool {
        match point {
            Point::Newest => self.broken.is_none(),
            Point::Version(version) => (self.backup.earliest..=self.version().0).contains(&version.0),
            Point::Time(ms) => {
                self.backup.earliest_ms.is_some_and(|earliest| (earliest..=self.cut_ms()).contains(&ms))
            }
        }
    }

    /// Returns why the archives do not go on, if there are more than the history has.
    #[must_use]
    pub fn broken(&self) -> Option<Error> {
        self.broken.clone().map(Error::from)
    }

    /// Says what the history has, in the unit of a point.
    pub(super) fn range(&self, point: Point) -> String {
        let name = &self.backup.name;
        let what = if self.archives.is_empty() { name.clone() } else { format!("{name} with its archives") };
        match (point, self.backup.earliest_ms) {
            (Point::Time(_), Some(earliest)) => {
                format!("{what} has {} to {}", time(earliest), time(self.cut_ms()))
            }
            (Point::Time(_), None) => format!("{name} has no times"),
            _ => format!("{what} has versions {} to {}", self.backup.earliest, self.version()),
        }
    }

    /// Forgets archives that a point does not need.
    #[must_use]
    pub fn up_to(mut self, point: Point) -> Self {
        let needed = match point {
            Point::Newest => return self,
            Point::Version(version) => {
                self.archives.partition_point(|archive| archive.after.version < version.0)
            }
            Point::Time(ms) if ms <= self.backup.cut_ms => 0,
            Point::Time(ms) => {
                let has = self.archives.iter().position(|archive| archive.cut_ms >= ms);
                has.map_or(self.archives.len(), |at| at + 1)
            }
        };
        self.archives.truncate(needed);
        self
    }

    /// Returns what is stored of the backup, and of its archives.
    fn stored(&self, place: &Backups) -> Vec<(String, Vec<CopiedObject>)> {
        let mut all = vec![(place.folder(&self.backup.name), self.backup.stored().collect())];
        if let Some(archive) = self.archives.first() {
            let stored = self.archives.iter().flat_map(Archive::stored).collect();
            all.push((place.series_folder(&archive.series), stored));
        }
        all
    }

    /// Returns the objects of the graph, each once, with the folders of their copies.
    pub(super) fn objects(&self, place: &Backups) -> Vec<(String, Vec<CopiedObject>)> {
        let of_archives: BTreeMap<&str, &CopiedObject> = self
            .archives
            .iter()
            .flat_map(|archive| &archive.objects)
            .map(|object| (object.path.as_str(), object))
            .collect();
        let is_own = |object: &&CopiedObject| !of_archives.contains_key(object.path.as_str());
        let own = self.backup.objects.iter().filter(is_own).cloned().collect();
        let mut all = vec![(format!("{}objects/", place.folder(&self.backup.name)), own)];
        if let Some(archive) = self.archives.first() {
            let others = of_archives.values().map(|object| (*object).clone()).collect();
            all.push((format!("{}objects/", place.series_folder(&archive.series)), others));
        }
        all
    }
}

impl Backups {
    /// Returns the history of a backup: with all archives behind it.
    ///
    /// # Errors
    /// Those of [`Backups::read`].
    pub fn history(&self, name: &str) -> Result<History, crate::Error> {
        self.behind(self.read(name)?, &mut self.series()?)
    }

    /// Returns the histories of all backups of the graph, the oldest first.
    ///
    /// # Errors
    /// The failure of the object store.
    pub fn histories(&self) -> Result<Vec<ListedHistory>, crate::Error> {
        let (listed, mut series) = (self.list()?, self.series()?);
        let history = |Listed { name, backup }| {
            let history = match backup {
                Ok(backup) => Ok(self.behind(backup, &mut series)?),
                Err(error) => Err(error),
            };
            Ok(ListedHistory { name, history })
        };
        listed.into_iter().map(history).collect()
    }

    /// Returns a backup with the archives behind it, up to the first that is missing or cannot be read. The newest series
    /// may be that of a former log, until an archiver has begun one behind the backup: then there are none.
    pub(super) fn behind(&self, backup: Backup, series: &mut Series) -> Result<History, crate::Error> {
        let name = series.of(&backup.name).unwrap_or_default().to_owned();
        let mut history = History::alone(backup);
        let mut end: Option<Mark> = None;
        for read in self.archives_behind(&history.backup, series)? {
            let first = read.first;
            let last = end.map_or(history.backup.version, |end| end.version.max(history.backup.version));
            let broken = |first, reason| Broken { object: self.archive_path(&name, first), last, reason };
            let archive = match &read.archive {
                Ok(archive) => archive,
                Err(error) => {
                    history.broken = Some(broken(first, format!("cannot be read: {error}")));
                    break;
                }
            };
            if archive.end.version <= history.backup.version {
                end = Some(archive.end);
                continue;
            }
            if history.archives.is_empty() && is_of_former_log(archive, &history.backup) {
                break;
            }
            let is_next = match end {
                Some(end) => archive.after == end,
                None => archive.after.version <= history.backup.version,
            };
            if !is_next {
                let missing = end.map_or(history.backup.version, |end| end.version) + 1;
                let reason = match end {
                    Some(end) if missing == first => {
                        format!("is of another log: it follows {}, and there is {end}", archive.after)
                    }
                    _ => format!("is missing: the next archive begins with version {first}"),
                };
                history.broken = Some(broken(missing, reason));
                break;
            }
            end = Some(archive.end);
            history.archives.push(archive.clone());
        }
        Ok(history)
    }

    /// Checks that all objects of a history are there, with their sizes. Reads none of them.
    ///
    /// # Errors
    /// [`Error::Incomplete`] with the objects; otherwise the failure of the object store.
    pub fn check_complete(&self, history: &History) -> Result<(), crate::Error> {
        let mut objects = Vec::new();
        for (folder, stored) in history.stored(self) {
            let there: BTreeMap<String, u64> =
                self.objects().list(&folder)?.into_iter().map(|object| (object.path, object.bytes)).collect();
            for object in stored {
                match there.get(&format!("{folder}{}", object.path)) {
                    None => objects.push(format!("{} is missing", object.path)),
                    Some(&bytes) if bytes != object.bytes => objects
                        .push(format!("{} has {bytes} bytes, and should have {}", object.path, object.bytes)),
                    Some(_) => {}
                }
            }
        }
        if objects.is_empty() {
            return Ok(());
        }
        Err(Error::Incomplete { name: history.backup.name.clone(), objects }.into())
    }

    /// Reads a history and compares it with its manifests.
    ///
    /// # Errors
    /// [`Error::BrokenArchive`] if an archive is missing or its manifest cannot be read, [`Error::Incomplete`] with all
    /// objects that are missing or differ, [`Error::Gap`] or [`Error::OtherLog`] if records are missing or do not fit;
    /// otherwise the failure of the object store.
    pub fn verify(&self, history: &History) -> Result<Verified, crate::Error> {
        self.check_complete(history)?;
        let (mut wrong, mut verified) = (Vec::new(), Verified::default());
        for (folder, stored) in history.stored(self) {
            for object in stored {
                let expected = Sum { bytes: object.bytes, crc32c: object.crc32c };
                match sum_of(self.objects(), &format!("{folder}{}", object.path))? {
                    Some(found) if found == expected => {
                        verified.objects += 1;
                        verified.bytes += found.bytes;
                    }
                    Some(_) => wrong.push(format!("{} has another checksum", object.path)),
                    None => wrong.push(format!("{} is missing", object.path)),
                }
            }
        }
        if !wrong.is_empty() {
            return Err(Error::Incomplete { name: history.backup.name.clone(), objects: wrong }.into());
        }
        self.each_record(history, history.version(), |_, _| {
            verified.records += 1;
            Ok(())
        })?;
        verified.archives = history.archives.len();
        history.broken().map_or(Ok(verified), |broken| Err(broken.into()))
    }

    /// Gives the records of a history to `each` in order, with the bytes that each took, up to a version.
    pub(super) fn each_record(
        &self,
        history: &History,
        last: Version,
        mut each: impl FnMut(Entry, u64) -> Result<(), crate::Error>,
    ) -> Result<(), crate::Error> {
        let end = self.each_of_backup(&history.backup, last, &mut each)?;
        if last.0 <= history.backup.version {
            return Ok(());
        }
        let mut records = Records { end, last, each: &mut each };
        for archive in history.archives.iter().take_while(|archive| archive.after.version < last.0) {
            let path = format!("{}{}", self.series_folder(&archive.series), archive.log.path);
            records.read(archive, &path, ArchiveReader::new(self.objects().reader(&path)?, &path)?)?;
        }
        let (found, name) = (Version(records.end.version), history.backup.name.clone());
        if found < last {
            return Err(Error::TooShort { name, found, wanted: last }.into());
        }
        Ok(())
    }

    /// Gives the records of a backup to `each`. Returns the mark of its last record.
    fn each_of_backup(
        &self,
        backup: &Backup,
        last: Version,
        each: &mut dyn FnMut(Entry, u64) -> Result<(), crate::Error>,
    ) -> Result<Mark, crate::Error> {
        let mut end = Mark { version: backup.version, epoch: backup.epoch, written_ms: None };
        let mut after = backup.log.first().map_or(backup.lowest(), |object| object.first.saturating_sub(1));
        if after > backup.lowest() {
            let object = backup.log.first().map(|object| object.path.clone()).unwrap_or_default();
            let (after, found) = (Version(backup.lowest()), Version(after + 1));
            return Err(Error::Gap { object, after, found }.into());
        }
        for object in &backup.log {
            if object.first > last.0 {
                break;
            }
            let path = format!("{}{}", self.folder(&backup.name), object.path);
            let mut reader = ArchiveReader::new(self.objects().reader(&path)?, &path)?;
            let mut offset = reader.offset();
            while let Some(entry) = reader.next_entry()? {
                let version = entry.record.version;
                if version.0 != after + 1 {
                    return Err(Error::Gap { object: path, after: Version(after), found: version }.into());
                }
                if version > last {
                    return Ok(end);
                }
                after = version.0;
                end = Mark::of(&entry);
                each(entry, reader.offset() - offset)?;
                offset = reader.offset();
            }
        }
        let wanted = Version(last.0.min(backup.version));
        if after < wanted.0 {
            return Err(Error::TooShort { name: backup.name.clone(), found: Version(after), wanted }.into());
        }
        Ok(end)
    }

    /// Returns the mark of the last record of a backup. The time is not known if the backup has no record.
    pub(super) fn end_of(&self, backup: &Backup) -> Result<Mark, crate::Error> {
        let mut end = Mark { version: backup.version, epoch: backup.epoch, written_ms: None };
        let Some(object) = backup.log.last() else { return Ok(end) };
        let path = format!("{}{}", self.folder(&backup.name), object.path);
        let mut reader = ArchiveReader::new(self.objects().reader(&path)?, &path)?;
        while let Some(entry) = reader.next_entry()? {
            end = Mark::of(&entry);
        }
        if end.version == backup.version {
            return Ok(end);
        }
        let (found, wanted) = (Version(end.version), Version(backup.version));
        Err(Error::TooShort { name: backup.name.clone(), found, wanted }.into())
    }

    /// Returns the last version that a history has of a point.
    ///
    /// # Errors
    /// Those of [`Backups::verify`], for the log; [`Error::NoneHas`] if the history does not have the point.
    pub fn version_at(&self, history: &History, point: Point) -> Result<Version, crate::Error> {
        if !history.has(point) {
            if let Some(broken) = history.broken() {
                return Err(broken.into());
            }
            let (wanted, ranges) = (point.to_string(), vec![history.range(point)]);
            return Err(Error::NoneHas { wanted, place: self.place(), ranges }.into());
        }
        let time = match point {
            Point::Newest => return Ok(history.version()),
            Point::Version(version) => return Ok(version),
            Point::Time(ms) => ms,
        };
        // Brokers may differ about the time: a version has the latest time of those before it.
        let (mut found, mut latest) = (Version(history.backup.earliest), i64::MIN);
        self.each_record(history, history.version(), |entry, _| {
            latest = latest.max(entry.written_ms.unwrap_or(i64::MIN));
            if latest <= time {
                found = found.max(entry.record.version);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Whether an archive with records above a backup was written of another log before it: the graph was restored, or made
/// again. A backup has all that was acknowledged before it began, and epochs of a log only rise.
fn is_of_former_log(archive: &Archive, backup: &Backup) -> bool {
    archive.end.epoch < backup.epoch || archive.cut_ms < backup.begun_ms.saturating_sub(CLOCKS_DIFFER_MS)
}

/// Reads the records of archives, one archive after the other.
struct Records<'a> {
    /// The record before the next one.
    end: Mark,
    last: Version,
    each: &'a mut dyn FnMut(Entry, u64) -> Result<(), crate::Error>,
}

impl Records<'_> {
    fn read<R: std::io::Read>(
        &mut self,
        archive: &Archive,
        path: &str,
        mut reader: ArchiveReader<R>,
    ) -> Result<(), crate::Error> {
        if archive.after.version == self.end.version {
            self.check(path, archive.after)?;
        }
        let mut expected = archive.log.first;
        let mut offset = reader.offset();
        while let Some(entry) = reader.next_entry()? {
            let version = entry.record.version;
            if version.0 != expected {
                let (object, after) = (path.to_owned(), Version(expected.saturating_sub(1)));
                return Err(Error::Gap { object, after, found: version }.into());
            }
            if version > self.last {
                return Ok(());
            }
            expected += 1;
            let mark = Mark::of(&entry);
            if version.0 == self.end.version {
                self.check(path, mark)?;
            } else if version.0 > self.end.version {
                self.end = mark;
                (self.each)(entry, reader.offset() - offset)?;
            }
            offset = reader.offset();
        }
        if expected <= archive.log.last {
            let (found, wanted) = (Version(expected.saturating_sub(1)), Version(archive.log.last));
            return Err(Error::TooShort { name: path.to_owned(), found, wanted }.into());
        }
        Ok(())
    }

    /// Refuses an archive that has another record of a version than what it follows.
    fn check(&self, object: &str, found: Mark) -> Result<(), crate::Error> {
        if found.is(&self.end) {
            return Ok(());
        }
        let (object, found, expected) = (object.to_owned(), found.to_string(), self.end.to_string());
        Err(Error::OtherLog { object, found, expected }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::LogObject;
    use std::sync::Arc;
    use tidegraph_cluster::Graph;
    use tidegraph_log::archive::ArchiveWriter;
    use tidegraph_log::{Body, Record};
    use tidegraph_platform::Objects;
    use tidegraph_types::{Epoch, PartitionCount, ShardId};

    fn mark(version: u64, written_ms: Option<i64>) -> Mark {
        Mark { version, epoch: 1, written_ms }
    }

    /// Writes an archive of records with these times, behind a mark.
    fn write(place: &Backups, after: Mark, times: &[i64], cut_ms: i64) -> Mark {
        let mut writer = ArchiveWriter::new(Vec::new());
        let mut end = after;
        for ms in times {
            end = mark(end.version + 1, Some(*ms));
            let (shard, version) = (ShardId(0), Version(end.version));
            let record = Record { shard, epoch: Epoch(1), version, body: Body::EpochStart };
            writer.append(&Entry { record, written_ms: Some(*ms) }).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let (first, last) = (after.version + 1, end.version);
        let log = LogObject {
            path: format!("log/{first}"),
            first,
            last,
            first_ms: times.first().copied(),
            bytes: bytes.len() as u64,
            crc32c: crc32c::crc32c(&bytes),
        };
        place.objects().put(&format!("{}{}", place.series_folder("b"), log.path), bytes).unwrap();
        let (series, release) = ("b".into(), String::new());
        let archive = Archive { series, release, after, end, cut_ms, log, objects: vec![] };
        assert!(place.write_archive(&archive).unwrap());
        end
    }

    /// A backup of nothing, and two archives: versions 1 to 3 and 4 to 5.
    fn place() -> Backups {
        let place = Backups::new(Arc::new(Objects::memory().unwrap()), "", "g").unwrap();
        place.write(&backup("b", 0, 10_000)).unwrap();
        let end = write(&place, mark(0, None), &[10_200, 10_900, 11_000], 11_500);
        write(&place, end, &[10_950, 14_000], 15_000);
        place
    }

    /// A backup without objects that was cut at a time.
    fn backup(name: &str, version: u64, cut_ms: i64) -> Backup {
        let graph = Graph {
            name: "g".into(),
            partitions: PartitionCount::new(1).unwrap(),
            shards: 1,
            hash_bits: 64,
            replication_factor: 1,
            gremlin: Default::default(),
            splits: Default::default(),
            shares_objects: false,
        };
        Backup {
            name: name.into(),
            graph,
            release: String::new(),
            begun_ms: cut_ms - 1_000,
            cut_ms,
            earliest: version,
            earliest_ms: Some(cut_ms),
            version,
            epoch: 1,
            checkpoints: vec![],
            log: vec![],
            objects: vec![],
        }
    }

    #[test]
    fn a_time_between_two_backups_is_the_last_version_that_the_log_had_taken() {
        let place = place();
        for (ms, version, archives) in [
            (10_000, 0, 0),
            (10_199, 0, 1),
            (10_899, 1, 1),
            (10_999, 2, 1),
            (11_000, 3, 1),
            (11_501, 4, 2),
            (13_999, 4, 2),
            (15_000, 5, 2),
        ] {
            let history = place.find(Point::Time(ms)).unwrap();
            assert_eq!(history.archives.len(), archives, "{ms}");
            assert_eq!(place.version_at(&history, Point::Time(ms)).unwrap(), Version(version), "{ms}");
        }
        let error = place.find(Point::Time(15_001)).unwrap_err().to_string();
        let range = "b with its archives has 1970-01-01T00:00:10Z to 1970-01-01T00:00:15Z";
        assert!(error.contains(range), "{error}");
        let all = place.find(Point::Newest).unwrap();
        assert_eq!((all.version(), all.cut_ms()), (Version(5), 15_000));
        assert_eq!(place.verify(&all).unwrap().records, 5);
    }

    #[test]
    fn archives_of_a_former_log_are_not_those_of_a_later_backup() {
        let (minute_later, moment_later) = (15_000 + CLOCKS_DIFFER_MS + 1_000, 15_500);
        for (backup, archives) in [
            // The graph was made again. Up to a minute later it may be the same log.
            (backup("c", 4, minute_later + 1), 0),
            (backup("c", 4, minute_later), 1),
            // It was restored.
            (Backup { epoch: 2, ..backup("c", 4, moment_later) }, 0),
            (backup("c", 4, moment_later), 1),
        ] {
            let place = place();
            place.write(&backup).unwrap();
            let history = place.find(Point::Newest).unwrap();
            assert!(history.broken().is_none());
            assert_eq!((&history.backup, history.archives.len()), (&backup, archives));
            let of_former_log = place.find(Point::Version(Version(5))).unwrap();
            assert_eq!(of_former_log.backup.name, if archives == 0 { "b" } else { "c" });
        }
    }

    #[test]
    fn archives_that_do_not_follow_each_other_are_none() {
        let place = place();
        // The second one is of a log in which version 3 was written at another time.
        place.objects().delete(&place.archive_path("b", 4)).unwrap();
        write(&place, mark(3, Some(11_001)), &[12_000], 15_000);
        let error = place.find(Point::Newest).unwrap_err().to_string();
        assert!(error.contains("00000000000000000004.json is of another log"), "{error}");
        assert_eq!(place.find(Point::Version(Version(3))).unwrap().version(), Version(3));
    }
}
