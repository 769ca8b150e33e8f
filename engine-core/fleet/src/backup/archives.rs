//! The place of a graph's archives, beside its backups.
//!
//! `PREFIX/GRAPH/archives/manifests/SERIES/FIRST.json` is the manifest of an archive, and `…/archives/data/SERIES/` has the
//! objects of a series. A series has the name of the backup that it follows; FIRST is the version of the first record. So a
//! listing of manifests says which archives there are, and the newest one is the last.

use super::{Archive, Backup, Backups, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tidegraph_platform::{ObjectError, ObjectInfo};

/// Number of manifests that are read at once.
const READ_AT_ONCE: usize = 16;

/// The archives of a graph, by the names of their manifests. Manifests are read once.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Versions of the first records, in order, by series.
    firsts: BTreeMap<String, Vec<u64>>,
    read: BTreeMap<(String, u64), Arc<ReadArchive>>,
}

/// What was read of the manifest of an archive.
#[derive(Debug)]
pub(super) struct ReadArchive {
    /// Version of the first record, by the name of the manifest.
    pub first: u64,
    /// The archive, or why its manifest cannot be read.
    pub archive: Result<Archive, Error>,
}

impl Series {
    /// Returns the series that a backup belongs to: the newest one that is not newer than the backup.
    pub fn of(&self, backup: &str) -> Option<&str> {
        self.firsts
            .range::<str, _>((Bound::Unbounded, Bound::Included(backup)))
            .next_back()
            .map(|(series, _)| series.as_str())
    }

    /// Returns the newest archive: its series, and the version of its first record.
    pub fn newest(&self) -> Option<(&str, u64)> {
        let (series, firsts) = self.firsts.iter().next_back()?;
        Some((series, *firsts.last()?))
    }

    /// Returns the first versions of the archives of a series that may have records above a version.
    fn above(&self, series: &str, version: u64) -> &[u64] {
        let firsts = self.firsts.get(series).map_or(&[][..], Vec::as_slice);
        // The archive before the first one that begins higher may reach above the version too.
        let higher = firsts.partition_point(|first| *first <= version.saturating_add(1));
        &firsts[higher.saturating_sub(1)..]
    }
}

impl Backups {
    /// Returns the folder of a series' objects, which ends with `/`.
    pub(super) fn series_folder(&self, series: &str) -> String {
        format!("{}archives/data/{series}/", self.root())
    }

    pub(super) fn archive_path(&self, series: &str, first: u64) -> String {
        format!("{}archives/manifests/{series}/{first:020}.json", self.root())
    }

    /// Writes a manifest, unless another archiver has written one of the same first version. Returns whether it did.
    pub(super) fn write_archive(&self, archive: &Archive) -> Result<bool, crate::Error> {
        let object = self.archive_path(&archive.series, archive.log.first);
        let unreadable = |error: serde_json::Error| Error::Unreadable {
            object: object.clone(),
            reason: error.to_string(),
        };
        let bytes = archive.encode().map_err(unreadable)?;
        Ok(self.objects().put_new(&object, bytes)?)
    }

    /// Reads the manifest of an archive.
    pub(super) fn read_archive(&self, series: &str, first: u64) -> Result<Archive, crate::Error> {
        let object = self.archive_path(series, first);
        let unreadable = |reason: String| Error::Unreadable { object: object.clone(), reason };
        let bytes = match self.objects().get(&object) {
            Ok(bytes) => bytes,
            Err(ObjectError::NotFound { .. }) => return Err(unreadable("it is gone".into()).into()),
            Err(error) => return Err(error.into()),
        };
        let archive = Archive::decode(&object, &bytes)?;
        if (archive.series.as_str(), archive.log.first) == (series, first) {
            return Ok(archive);
        }
        let (series, first) = (&archive.series, archive.log.first);
        Err(unreadable(format!("it is that of version {first} in series {series}")).into())
    }

    /// Lists the manifests of all archives.
    pub(super) fn series(&self) -> Result<Series, crate::Error> {
        let mut series = Series::default();
        let folder = format!("{}archives/manifests/", self.root());
        for object in self.objects().list(&folder)? {
            let name = object.path.strip_prefix(&folder).and_then(|name| name.strip_suffix(".json"));
            let parts = name.and_then(|name| name.split_once('/'));
            if let Some((name, first)) = parts
                && let Ok(first) = first.parse()
            {
                series.firsts.entry(name.to_owned()).or_default().push(first);
            }
        }
        Ok(series)
    }

    /// Returns the archives that may have records above the version of a backup, in order. One whose manifest cannot be
    /// read is the reason why not.
    pub(super) fn archives_behind(
        &self,
        backup: &Backup,
        series: &mut Series,
    ) -> Result<Vec<Arc<ReadArchive>>, crate::Error> {
        let Some(name) = series.of(&backup.name).map(str::to_owned) else { return Ok(Vec::new()) };
        let wanted = series.above(&name, backup.version).to_vec();
        let is_new = |first: &u64| !series.read.contains_key(&(name.clone(), *first));
        let new: Vec<u64> = wanted.iter().copied().filter(is_new).collect();
        for read in self.read_all(&name, &new)? {
            series.read.insert((name.clone(), read.first), Arc::new(read));
        }
        let known = |first| series.read.get(&(name.clone(), first)).cloned();
        Ok(wanted.into_iter().filter_map(known).collect())
    }

    /// Reads manifests, several at once.
    fn read_all(&self, series: &str, firsts: &[u64]) -> Result<Vec<ReadArchive>, crate::Error> {
        let read = |first: &u64| {
            let archive = match self.read_archive(series, *first) {
                Ok(archive) => Ok(archive),
                Err(crate::Error::Backup(error)) => Err(error),
                Err(error) => return Err(error),
            };
            Ok(ReadArchive { first: *first, archive })
        };
        let share = firsts.len().div_ceil(READ_AT_ONCE).max(1);
        std::thread::scope(|scope| {
            let reading: Vec<_> = firsts
                .chunks(share)
                .map(|chunk| scope.spawn(move || chunk.iter().map(read).collect::<Result<Vec<_>, _>>()))
                .collect();
            let mut all = Vec::new();
            for chunk in reading {
                all.append(&mut chunk.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(all)
        })
    }

    /// Removes the archives that none of the kept backups needs: those that have no record above the oldest backup of
    /// their series. `kept` has the names of the backups with their versions; `None` if a version is not known. Objects that
    /// an archiver left behind which died before `long_ago_ms` are removed too. Returns the number of removed archives.
    pub(super) fn remove_archives(
        &self,
        kept: &BTreeMap<String, Option<u64>>,
        long_ago_ms: i64,
    ) -> Result<usize, crate::Error> {
        let series = self.series()?;
        let mut removed = 0;
        for (name, firsts) in &series.firsts {
            let followed = kept.iter().filter(|(backup, _)| series.of(backup) == Some(name.as_str()));
            let needed_above = followed.map(|(_, version)| version.unwrap_or_default()).min();
            let (gone, stay) = match needed_above {
                None => (firsts.as_slice(), &[][..]),
                Some(version) => firsts.split_at(firsts.len() - series.above(name, version).len()),
            };
            for first in gone {
                self.remove_archive(name, *first, stay.is_empty())?;
                removed += 1;
            }
            self.remove_rest(name, stay, long_ago_ms)?;
        }
        Ok(removed)
    }

    /// Removes an archive: its manifest first. One whose manifest cannot be read keeps its objects until the series goes.
    fn remove_archive(&self, series: &str, first: u64, with_series: bool) -> Result<(), crate::Error> {
        let archive = match self.read_archive(series, first) {
            Ok(archive) => Some(archive),
            Err(crate::Error::Backup(Error::UnknownFormat { .. })) if !with_series => return Ok(()),
            Err(crate::Error::Backup(error)) => {
                tracing::warn!(%error, "an archive that is removed cannot be read");
                None
            }
            Err(error) => return Err(error),
        };
        self.objects().delete(&self.archive_path(series, first))?;
        for object in archive.iter().flat_map(Archive::stored) {
            self.objects().delete(&format!("{}{}", self.series_folder(series), object.path))?;
        }
        Ok(())
    }

    /// Removes records that no manifest of a series has, if they are old; without a manifest, all of the series.
    fn remove_rest(&self, series: &str, firsts: &[u64], long_ago_ms: i64) -> Result<(), crate::Error> {
        let folder = self.series_folder(series);
        if firsts.is_empty() {
            for object in self.objects().list(&folder)? {
                self.objects().delete(&object.path)?;
            }
            return Ok(());
        }
        let first_of = |object: &ObjectInfo| {
            let name = object.path.strip_prefix(&folder)?.strip_prefix("log/")?;
            name.split('-').next()?.parse::<u64>().ok()
        };
        let mut by_first: BTreeMap<u64, Vec<ObjectInfo>> = BTreeMap::new();
        for object in self.objects().list(&format!("{folder}log/"))? {
            if let Some(first) = first_of(&object) {
                by_first.entry(first).or_default().push(object);
            }
        }
        let known: BTreeSet<u64> = firsts.iter().copied().collect();
        for (first, objects) in by_first {
            let named = match (known.contains(&first), objects.len()) {
                // The archive that is being written may begin here.
                (false, _) => None,
                (true, 1) => continue,
                (true, _) => match self.read_archive(series, first) {
                    Ok(archive) => Some(format!("{folder}{}", archive.log.path)),
                    Err(crate::Error::Backup(_)) => continue,
                    Err(error) => return Err(error),
                },
            };
            for object in objects {
                if named.as_ref() != Some(&object.path) && object.modified_ms < long_ago_ms {
                    self.objects().delete(&object.path)?;
                }
            }
        }
        Ok(())
    }
}
