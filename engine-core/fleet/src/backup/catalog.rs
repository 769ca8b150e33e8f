//! The place of a graph's backups.
//!
//! `PREFIX/GRAPH/manifests/NAME.json` is the manifest of a backup, and `PREFIX/GRAPH/data/NAME/` the folder of its objects.
//! Manifests have a folder of their own, so that a listing of backups does not go through all objects.

use super::copier::{Sum, sum_of};
use super::{Backup, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_log::archive::ArchiveReader;
use tidegraph_platform::{ObjectError, Objects};
use tidegraph_types::Version;

/// Objects without a manifest that are older than this are left over from a backup that died. A backup that runs writes
/// objects all the time.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The place of a graph's backups.
#[derive(Clone, Debug)]
pub struct Backups {
    objects: Arc<Objects>,
    /// Folder of the graph, ending with `/`.
    root: String,
}

/// A manifest in a listing.
#[derive(Debug)]
pub struct Listed {
    /// Name of the backup.
    pub name: String,
    /// The backup, or why its manifest cannot be read.
    pub backup: Result<Backup, Error>,
}

/// What to restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The newest version of a backup.
    Newest,
    /// A version.
    Version(Version),
    /// The graph as it was at a time, in milliseconds since 1970.
    Time(i64),
}

/// Which backups are kept. One that any of the rules keeps is kept, and so is the newest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// Number of backups.
    pub keep: Option<usize>,
    /// Backups that were begun within this number of days.
    pub keep_days: Option<u32>,
}

/// What was read of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verified {
    /// Number of objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Number of records.
    pub records: u64,
}

impl Backups {
    /// Names the place of a graph's backups: a folder of an object store. An empty prefix is the store itself.
    ///
    /// # Errors
    /// [`Error::InvalidPrefix`] if the prefix cannot be part of the path of an object.
    pub fn new(objects: Arc<Objects>, prefix: &str, graph: &str) -> Result<Self, Error> {
        let trimmed = prefix.trim_matches('/');
        let invalid = |reason| Error::InvalidPrefix { prefix: prefix.to_owned(), reason };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-=".contains(&byte);
        for part in trimmed.split('/').filter(|_| !trimmed.is_empty()) {
            if part.is_empty() || part == "." || part == ".." || !part.bytes().all(is_plain) {
                return Err(invalid(
                    "its parts may have letters, digits and `._-=`, and may not be `.` or `..`",
                ));
            }
        }
        let root = if trimmed.is_empty() { format!("{graph}/") } else { format!("{trimmed}/{graph}/") };
        Ok(Self { objects, root })
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns the folder of a backup's objects, which ends with `/`.
    pub(super) fn folder(&self, name: &str) -> String {
        format!("{}data/{name}/", self.root)
    }

    fn manifest_path(&self, name: &str) -> String {
        format!("{}manifests/{name}.json", self.root)
    }

    fn place(&self) -> String {
        format!("{}/{}", self.objects.name(), self.root.trim_end_matches('/'))
    }

    /// Writes a manifest: from here on the backup exists.
    pub(super) fn write(&self, backup: &Backup) -> Result<(), crate::Error> {
        let object = self.manifest_path(&backup.name);
        let unreadable = |reason| Error::Unreadable { object: object.clone(), reason };
        let bytes = backup.encode().map_err(|error| unreadable(error.to_string()))?;
        if self.objects.put_new(&object, bytes)? {
            return Ok(());
        }
        Err(unreadable("another backup has its name".to_owned()).into())
    }

    /// Lists all backups of the graph, the oldest first.
    ///
    /// # Errors
    /// The failure of the object store.
    pub fn list(&self) -> Result<Vec<Listed>, crate::Error> {
        let mut found = Vec::new();
        let folder = format!("{}manifests/", self.root);
        for object in self.objects.list(&folder)? {
            let name = object.path.strip_prefix(&folder).and_then(|name| name.strip_suffix(".json"));
            let Some(name) = name.map(str::to_owned) else { continue };
            match self.read(&name) {
                Ok(backup) => found.push(Listed { name, backup: Ok(backup) }),
                // Removed since it was listed.
                Err(crate::Error::Backup(Error::NoBackup { .. })) => {}
                Err(crate::Error::Backup(error)) => found.push(Listed { name, backup: Err(error) }),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// [`Error::NoBackup`], [`Error::Unreadable`] and [`Error::UnknownFormat`] as they say; otherwise the failure of the
    /// object store.
    pub fn read(&self, name: &str) -> Result<Backup, crate::Error> {
        let object = self.manifest_path(name);
        let bytes = match self.objects.get(&object) {
            Ok(bytes) => bytes,
            Err(ObjectError::NotFound { .. } | ObjectError::InvalidPath { .. }) => {
                return Err(Error::NoBackup { name: name.to_owned(), place: self.place() }.into());
            }
            Err(error) => return Err(error.into()),
        };
        let backup = Backup::decode(&object, &bytes)?;
        if backup.name != name {
            let reason = format!("it is the manifest of backup {:?}", backup.name);
            return Err(Error::Unreadable { object, reason }.into());
        }
        Ok(backup)
    }

    /// Returns the newest backup that has a point.
    ///
    /// # Errors
    /// [`Error::NoneHas`] with what the backups have; if the newest backup cannot be read and no other one has the point,
    /// why it cannot.
    pub fn find(&self, point: Point) -> Result<Backup, crate::Error> {
        let (mut ranges, mut unreadable) = (Vec::new(), None);
        for listed in self.list()?.into_iter().rev() {
            match listed.backup {
                Ok(backup) if backup.has(point) => return Ok(backup),
                Ok(backup) => ranges.push(backup.range(point)),
                Err(error) => {
                    unreadable.get_or_insert(error);
                }
            }
        }
        match unreadable {
            Some(error) if ranges.is_empty() => Err(error.into()),
            _ => Err(Error::NoneHas { wanted: point.to_string(), place: self.place(), ranges }.into()),
        }
    }

    /// Checks that all objects of a backup are there, with their sizes. Reads none of them.
    ///
    /// # Errors
    /// [`Error::Incomplete`] with the objects; otherwise the failure of the object store.
    pub fn check_complete(&self, backup: &Backup) -> Result<(), crate::Error> {
        let folder = self.folder(&backup.name);
        let there: BTreeMap<String, u64> =
            self.objects.list(&folder)?.into_iter().map(|object| (object.path, object.bytes)).collect();
        let wrong =
            backup.stored().filter_map(|object| match there.get(&format!("{folder}{}", object.path)) {
                None => Some(format!("{} is missing", object.path)),
                Some(&bytes) if bytes != object.bytes => {
                    Some(format!("{} has {bytes} bytes, and should have {}", object.path, object.bytes))
                }
                Some(_) => None,
            });
        let objects: Vec<_> = wrong.collect();
        if objects.is_empty() {
            return Ok(());
        }
        Err(Error::Incomplete { name: backup.name.clone(), objects }.into())
    }

    /// Reads a backup and compares it with its manifest.
    ///
    /// # Errors
    /// [`Error::Incomplete`] with all objects that are missing or differ, [`Error::Gap`] if records are missing; otherwise
    /// the failure of the object store.
    pub fn verify(&self, backup: &Backup) -> Result<Verified, crate::Error> {
        self.check_complete(backup)?;
        let folder = self.folder(&backup.name);
        let (mut wrong, mut verified) = (Vec::new(), Verified { objects: 0, bytes: 0, records: 0 });
        for object in backup.stored() {
            let expected = Sum { bytes: object.bytes, crc32c: object.crc32c };
            match sum_of(&self.objects, &format!("{folder}{}", object.path))? {
                Some(found) if found == expected => {
                    verified.objects += 1;
                    verified.bytes += found.bytes;
                }
                Some(_) => wrong.push(format!("{} has another checksum", object.path)),
                None => wrong.push(format!("{} is missing", object.path)),
            }
        }
        if !wrong.is_empty() {
            return Err(Error::Incomplete { name: backup.name.clone(), objects: wrong }.into());
        }
        self.each_record(backup, Version(backup.version), |_, _| {
            verified.records += 1;
            Ok(())
        })?;
        Ok(verified)
    }

    /// Gives the records of a backup to `each` in order, with the bytes that each took, up to a version.
    pub(super) fn each_record(
        &self,
        backup: &Backup,
        last: Version,
        mut each: impl FnMut(tidegraph_log::archive::Entry, u64) -> Result<(), crate::Error>,
    ) -> Result<(), crate::Error> {
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
            let mut reader = ArchiveReader::new(self.objects.reader(&path)?, &path)?;
            let mut offset = reader.offset();
            while let Some(entry) = reader.next_entry()? {
                let version = entry.record.version;
                if version.0 != after + 1 {
                    return Err(Error::Gap { object: path, after: Version(after), found: version }.into());
                }
                if version > last {
                    return Ok(());
                }
                after = version.0;
                each(entry, reader.offset() - offset)?;
                offset = reader.offset();
            }
        }
        let wanted = Version(last.0.min(backup.version));
        if after < wanted.0 {
            return Err(Error::TooShort { name: backup.name.clone(), found: Version(after), wanted }.into());
        }
        Ok(())
    }

    /// Returns the last version that a backup has of a time. [`Point`]s are in the range of the backup.
    ///
    /// # Errors
    /// Those of [`Backups::verify`], for the log; [`Error::NoneHas`] if the backup does not have the point.
    pub fn version_at(&self, backup: &Backup, point: Point) -> Result<Version, crate::Error> {
        if !backup.has(point) {
            let (wanted, ranges) = (point.to_string(), vec![backup.range(point)]);
            return Err(Error::NoneHas { wanted, place: self.place(), ranges }.into());
        }
        let time = match point {
            Point::Newest => return Ok(Version(backup.version)),
            Point::Version(version) => return Ok(version),
            Point::Time(ms) => ms,
        };
        // Brokers may differ about the time: a version has the latest time of those before it.
        let (mut found, mut latest) = (Version(backup.earliest), i64::MIN);
        self.each_record(backup, Version(backup.version), |entry, _| {
            latest = latest.max(entry.written_ms.unwrap_or(i64::MIN));
            if latest <= time {
                found = found.max(entry.record.version);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Removes a backup: its manifest first, so that no manifest names objects that are gone.
    ///
    /// # Errors
    /// The failure of the object store. The backup is gone if its manifest is; [`Backups::retain`] removes the rest later.
    pub fn remove(&self, name: &str) -> Result<(), crate::Error> {
        self.objects.delete(&self.manifest_path(name))?;
        self.remove_data(name)
    }

    pub(super) fn remove_data(&self, name: &str) -> Result<(), crate::Error> {
        for object in self.objects.list(&self.folder(name))? {
            self.objects.delete(&object.path)?;
        }
        Ok(())
    }

    /// Removes the backups that no rule keeps, and objects that a backup left behind that died a day ago or earlier.
    /// Without a rule it removes nothing. A backup whose manifest this release cannot read stays. Returns the names of the
    /// removed backups.
    ///
    /// # Errors
    /// The failure of the object store.
    pub fn retain(&self, rules: Retention, now_ms: i64) -> Result<Vec<String>, crate::Error> {
        if rules == Retention::default() {
            return Ok(Vec::new());
        }
        let listed = self.list()?;
        let mut known: BTreeSet<String> = listed.iter().map(|listed| listed.name.clone()).collect();
        let readable: Vec<_> = listed.into_iter().filter_map(|listed| listed.backup.ok()).collect();
        let mut removed = Vec::new();
        for (newer, backup) in readable.iter().rev().enumerate() {
            let is_recent = rules.keep_days.is_some_and(|days| {
                let days = (DAY * days).as_millis() as i64;
                backup.begun_ms > now_ms.saturating_sub(days)
            });
            if newer == 0 || is_recent || rules.keep.is_some_and(|keep| newer < keep) {
                continue;
            }
            self.remove(&backup.name)?;
            known.remove(&backup.name);
            removed.push(backup.name.clone());
        }
        self.remove_abandoned(&known, now_ms)?;
        Ok(removed)
    }

    fn remove_abandoned(&self, known: &BTreeSet<String>, now_ms: i64) -> Result<(), crate::Error> {
        let folder = format!("{}data/", self.root);
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        for object in self.objects.list(&folder)? {
            let name = object.path.strip_prefix(&folder).and_then(|rest| rest.split_once('/'));
            let Some((name, _)) = name.filter(|(name, _)| !known.contains(*name)) else { continue };
            let written = newest.entry(name.to_owned()).or_insert(object.modified_ms);
            *written = object.modified_ms.max(*written);
        }
        let long_ago = now_ms.saturating_sub(ABANDONED_AFTER.as_millis() as i64);
        for (name, _) in newest.iter().filter(|(_, written)| **written < long_ago) {
            tracing::info!(name, "objects of a backup that has no manifest are removed");
            self.remove_data(name)?;
        }
        Ok(())
    }
}

impl Backup {
    /// Whether the graph can be restored to a point.
    #[must_use]
    pub fn has(&self, point: Point) -> bool {
        match point {
            Point::Newest => true,
            Point::Version(version) => (self.earliest..=self.version).contains(&version.0),
            Point::Time(ms) => {
                self.earliest_ms.is_some_and(|earliest| (earliest..=self.cut_ms).contains(&ms))
            }
        }
    }

    /// Says what the backup has, in the unit of a point.
    fn range(&self, point: Point) -> String {
        let name = &self.name;
        match (point, self.earliest_ms) {
            (Point::Time(_), Some(earliest)) => {
                format!("{name} has {} to {}", time(earliest), time(self.cut_ms))
            }
            (Point::Time(_), None) => format!("{name} has no times"),
            _ => format!("{name} has versions {} to {}", self.earliest, self.version),
        }
    }
}

/// Writes a time in milliseconds since 1970 as text.
fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newest => f.write_str("a version"),
            Self::Version(version) => write!(f, "version {version}"),
            Self::Time(ms) => write!(f, "the time {}", time(*ms)),
        }
    }
}
