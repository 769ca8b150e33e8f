//! The place of a graph's backups.
//!
//! `PREFIX/GRAPH/manifests/NAME.json` is the manifest of a backup, and `PREFIX/GRAPH/data/NAME/` the folder of its objects.
//! Manifests have a folder of their own, so that a listing of backups does not go through all objects. Archives are below
//! `PREFIX/GRAPH/archives/`.

use super::{Backup, Error, History};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{ObjectError, Objects};
use tidegraph_types::Version;

/// Objects without a manifest that are older than this are left over from a backup that died. A backup that runs writes
/// objects all the time.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The place of a graph's backups and archives.
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
    /// The newest version of a backup and its archives.
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

/// What was removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Names of backups.
    pub backups: Vec<String>,
    /// Number of archives.
    pub archives: usize,
}

/// What was read of a backup and its archives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// Number of objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Number of records.
    pub records: u64,
    /// Number of archives.
    pub archives: usize,
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

    /// Returns the folder of the graph, which ends with `/`.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    pub(super) fn place(&self) -> String {
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
        for name in self.names()? {
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

    /// Lists the names of all backups of the graph, the oldest first.
    pub(super) fn names(&self) -> Result<Vec<String>, crate::Error> {
        let folder = format!("{}manifests/", self.root);
        let name = |path: &str| Some(path.strip_prefix(&folder)?.strip_suffix(".json")?.to_owned());
        Ok(self.objects.list(&folder)?.iter().filter_map(|object| name(&object.path)).collect())
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

    /// Returns the newest backup that has a point, alone or with the archives behind it.
    ///
    /// # Errors
    /// [`Error::NoneHas`] with what the backups have; [`Error::BrokenArchive`] if an archive is missing or cannot be read
    /// that the newest backup before the point needs; if the newest backup cannot be read and no other one has the point,
    /// why it cannot.
    pub fn find(&self, point: Point) -> Result<History, crate::Error> {
        let (mut ranges, mut unreadable) = (Vec::new(), None);
        let mut series = self.series()?;
        for listed in self.list()?.into_iter().rev() {
            let backup = match listed.backup {
                Ok(backup) => backup,
                Err(error) => {
                    unreadable.get_or_insert(error);
                    continue;
                }
            };
            if point != Point::Newest && backup.has(point) {
                return Ok(History::alone(backup));
            }
            let is_before = backup.is_before(point);
            let history = if is_before { self.behind(backup, &mut series)? } else { History::alone(backup) };
            if history.has(point) {
                return Ok(history.up_to(point));
            }
            if let Some(broken) = history.broken() {
                return Err(broken.into());
            }
            ranges.push(history.range(point));
        }
        match unreadable {
            Some(error) if ranges.is_empty() => Err(error.into()),
            _ => Err(Error::NoneHas { wanted: point.to_string(), place: self.place(), ranges }.into()),
        }
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

    /// Removes the backups that no rule keeps, archives that no backup needs any more, and objects that a backup or an
    /// archiver left behind that died a day ago or earlier. Without a rule it removes nothing. A backup whose manifest this
    /// release cannot read stays.
    ///
    /// # Errors
    /// The failure of the object store.
    pub fn retain(&self, rules: Retention, now_ms: i64) -> Result<Removed, crate::Error> {
        let mut removed = Removed::default();
        if rules == Retention::default() {
            return Ok(removed);
        }
        let listed = self.list()?;
        let mut kept: BTreeMap<String, Option<u64>> = listed
            .iter()
            .map(|listed| (listed.name.clone(), listed.backup.as_ref().ok().map(|backup| backup.version)))
            .collect();
        let readable: Vec<_> = listed.into_iter().filter_map(|listed| listed.backup.ok()).collect();
        for (newer, backup) in readable.iter().rev().enumerate() {
            let is_recent = rules.keep_days.is_some_and(|days| {
                let days = (DAY * days).as_millis() as i64;
                backup.begun_ms > now_ms.saturating_sub(days)
            });
            if newer == 0 || is_recent || rules.keep.is_some_and(|keep| newer < keep) {
                continue;
            }
            self.remove(&backup.name)?;
            kept.remove(&backup.name);
            removed.backups.push(backup.name.clone());
        }
        let long_ago_ms = now_ms.saturating_sub(ABANDONED_AFTER.as_millis() as i64);
        removed.archives = self.remove_archives(&kept, long_ago_ms)?;
        self.remove_abandoned(&kept.into_keys().collect(), long_ago_ms)?;
        Ok(removed)
    }

    fn remove_abandoned(&self, known: &BTreeSet<String>, long_ago_ms: i64) -> Result<(), crate::Error> {
        let folder = format!("{}data/", self.root);
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        for object in self.objects.list(&folder)? {
            let name = object.path.strip_prefix(&folder).and_then(|rest| rest.split_once('/'));
            let Some((name, _)) = name.filter(|(name, _)| !known.contains(*name)) else { continue };
            let written = newest.entry(name.to_owned()).or_insert(object.modified_ms);
            *written = object.modified_ms.max(*written);
        }
        for (name, _) in newest.iter().filter(|(_, written)| **written < long_ago_ms) {
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

    /// Whether archives behind the backup may have a point that the backup has not.
    fn is_before(&self, point: Point) -> bool {
        match point {
            Point::Newest => true,
            Point::Version(version) => self.version < version.0,
            Point::Time(ms) => self.earliest_ms.is_some() && self.cut_ms < ms,
        }
    }
}

/// Writes a time in milliseconds since 1970 as text.
pub(super) fn time(ms: i64) -> String {
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
