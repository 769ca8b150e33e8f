//! Makes a graph of a backup and the archives behind it.
//!
//! Flow: check the history and the target → note in the target which backup is restored → copy objects, the manifests of
//! checkpoints last → create the log and write the records up to the version, under a new epoch → create the map and note
//! the checkpoints in it → remove the note. A restore that died is repeated: as long as the note is there, objects of
//! checkpoints in the target are its own.

use super::copier::{Closing, Copier, Sum, sum_of};
use super::manifest::FOLDERS;
use super::{Backup, Backups, CopiedObject, Error, History};
use crate::restart::partition_of;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidegraph_cluster::{Checkpoint, Graph, MapStore};
use tidegraph_log::{Body, LogBackend, LogCopies, LogStore, Record};
use tidegraph_platform::{ObjectError, Objects};
use tidegraph_storage::checkpoint::Manifest;
use tidegraph_types::{Epoch, PartitionId, ShardId, Version};

/// The note of a restore that has not ended.
const NOTE: &str = "restore.json";

/// Most records of one append, and about the most bytes.
const BATCH: usize = 1_000;
const BATCH_BYTES: u64 = 16 << 20;

/// Where a graph is restored to.
pub struct Target {
    /// The graph. It may have another name than the one that was backed up, other shards and another number of replicas;
    /// partitions and hash bits have to be the same.
    pub graph: Graph,
    /// Its map. There is no graph of the name.
    pub map: Arc<dyn MapStore>,
    /// Its objects. There are none of a graph.
    pub objects: Arc<Objects>,
    /// Its log.
    pub log: Arc<dyn LogBackend>,
    /// Whether nothing was ever written to the log.
    pub log_is_new: bool,
    /// Copies that a new log has.
    pub copies: LogCopies,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// What was restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The version. The first version that is written after it is above.
    pub version: Version,
    /// Number of objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Number of records behind the checkpoints.
    pub records: u64,
}

/// The object [`NOTE`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Note {
    graph: String,
    backup: String,
    version: u64,
}

impl Target {
    /// Restores a version of a history.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if the backup or an archive is not whole, [`Error::Taken`] if there is a graph, [`Error::Gap`],
    /// [`Error::TooShort`] or [`Error::OtherLog`] if the records are not whole or do not fit: nothing was changed by then.
    /// Otherwise the failure of an object store, the log or the map; repeating the call continues.
    pub fn restore(
        &self,
        from: &Backups,
        history: &History,
        version: Version,
        parallel: usize,
    ) -> Result<Restored, crate::Error> {
        let backup = &history.backup;
        self.check_shape(backup)?;
        let version = from.version_at(history, super::Point::Version(version))?;
        from.check_complete(history)?;
        // Damaged records are found before anything is written.
        from.each_record(history, version, |_, _| Ok(()))?;
        let note = Note { graph: self.graph.name.clone(), backup: backup.name.clone(), version: version.0 };
        self.check_empty(&note)?;
        let (mut objects, mut bytes) = (0, 0);
        for (folder, copies) in history.objects(from) {
            self.copy_objects(from, &folder, &copies, parallel)?;
            objects += copies.len();
            bytes += copies.iter().map(|object| object.bytes).sum::<u64>();
        }
        let records = self.write_log(from, history, version)?;
        self.map.create_graph(&self.graph)?;
        for checkpoint in &backup.checkpoints {
            let prefix = checkpoint.manifest.rsplit_once('/').map_or("", |(prefix, _)| prefix).to_owned();
            let (partition, version) = (PartitionId(checkpoint.partition), Version(checkpoint.version));
            self.map.note_checkpoint(&self.graph.name, &Checkpoint { partition, version, prefix })?;
        }
        self.objects.delete(NOTE)?;
        Ok(Restored { version, objects, bytes, records })
    }

    fn check_shape(&self, backup: &Backup) -> Result<(), crate::Error> {
        self.graph.check()?;
        let (here, there) = (&self.graph, &backup.graph);
        for (what, expected, found) in [
            ("partitions", u64::from(there.partitions.get()), u64::from(here.partitions.get())),
            ("hash bits", u64::from(there.hash_bits), u64::from(here.hash_bits)),
        ] {
            if expected != found {
                let object = backup.name.clone();
                let (found, expected) = (format!("{found} {what}"), format!("{expected} {what}"));
                return Err(Error::Differs { object, found, expected }.into());
            }
        }
        for (what, expected, found) in [
            ("ids", there.gremlin.ids.to_string(), here.gremlin.ids.to_string()),
            (
                "default cardinality",
                there.gremlin.default_cardinality.to_string(),
                here.gremlin.default_cardinality.to_string(),
            ),
        ] {
            if expected != found {
                let object = backup.name.clone();
                let (found, expected) = (format!("{what} {found}"), format!("{what} {expected}"));
                return Err(Error::Differs { object, found, expected }.into());
            }
        }
        Ok(())
    }

    /// Refuses a target with a graph, unless an earlier attempt of this restore left it. Writes the note.
    fn check_empty(&self, note: &Note) -> Result<(), crate::Error> {
        let name = &self.graph.name;
        match self.map.load(name, None) {
            Err(tidegraph_cluster::Error::NotFound { .. }) => {}
            Ok(_) => {
                let what = format!("there is a graph {name:?} in the map");
                let remedy = "give another --graph or --table-prefix";
                return Err(Error::Taken { what, remedy }.into());
            }
            Err(error) => return Err(error.into()),
        }
        if !self.log_is_new {
            let what = format!("the topic of the log of graph {name:?} has messages");
            let remedy =
                "give another --kafka-topic, or delete the topic if an earlier attempt to restore left it";
            return Err(Error::Taken { what, remedy }.into());
        }
        let place = self.objects.name();
        match self.objects.get(NOTE) {
            Ok(bytes) => {
                let found: Option<Note> = serde_json::from_slice(&bytes).ok();
                if found.as_ref() == Some(note) {
                    return Ok(());
                }
                let found = found.map_or_else(String::new, |found| {
                    format!(
                        " of backup {} at version {} into graph {:?}",
                        found.backup, found.version, found.graph
                    )
                });
                let what =
                    format!("{place}/{NOTE} says that another restore{found} was begun and has not ended");
                let remedy = "repeat that one, or empty the bucket";
                return Err(Error::Taken { what, remedy }.into());
            }
            Err(ObjectError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        for folder in FOLDERS {
            if let Some(object) = self.objects.list(folder)?.first() {
                let what = format!("{place} has objects of a graph, such as {}", object.path);
                return Err(Error::Taken { what, remedy: "give an empty bucket" }.into());
            }
        }
        let bytes = serde_json::to_vec_pretty(note)
            .map_err(|error| Error::Unreadable { object: NOTE.to_owned(), reason: error.to_string() })?;
        self.objects.put(NOTE, bytes)?;
        Ok(())
    }

    /// Copies objects of a folder, and compares them with what is known of them.
    fn copy_objects(
        &self,
        from: &Backups,
        folder: &str,
        objects: &[CopiedObject],
        parallel: usize,
    ) -> Result<(), crate::Error> {
        let copier = Copier::new((from.objects(), folder), (&*self.objects, ""));
        let is_manifest = |object: &&CopiedObject| partition_of(&object.path).is_some();
        let (manifests, others): (Vec<_>, Vec<_>) = objects.iter().partition(is_manifest);
        std::thread::scope(|scope| {
            let _closing = Closing(&copier);
            for _ in 0..parallel.max(1) {
                scope.spawn(|| copier.work());
            }
            for object in &others {
                if !self.is_there(object)? {
                    copier.add([object.path.clone()]);
                }
            }
            copier.wait()?;
            for object in others {
                check_sum(&copier, object)?;
            }
            for object in manifests {
                self.copy_manifest(from, folder, object)?;
            }
            Ok(())
        })
    }

    /// Whether an earlier attempt copied an object.
    fn is_there(&self, object: &CopiedObject) -> Result<bool, crate::Error> {
        match self.objects.head(&object.path) {
            Ok(found) if found.bytes == object.bytes => {
                let expected = Sum { bytes: object.bytes, crc32c: object.crc32c };
                Ok(sum_of(&self.objects, &object.path)? == Some(expected))
            }
            Ok(_) | Err(ObjectError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the manifest of a checkpoint, with the name of the new graph.
    fn copy_manifest(&self, from: &Backups, folder: &str, object: &CopiedObject) -> Result<(), crate::Error> {
        let path = format!("{folder}{}", object.path);
        let bytes = from.objects().get(&path)?;
        if (bytes.len() as u64, crc32c::crc32c(&bytes)) != (object.bytes, object.crc32c) {
            return Err(differs(&path, object));
        }
        let mut manifest = Manifest::read(from.objects(), &path)?;
        let bytes = if manifest.graph == self.graph.name {
            bytes
        } else {
            manifest.graph.clone_from(&self.graph.name);
            manifest.encode()?.into()
        };
        self.objects.put(&object.path, bytes)?;
        Ok(())
    }

    /// Creates the log, and writes the records behind the oldest checkpoint up to a version. One more record follows: it
    /// begins the epoch, and shows where the log ends if there is no other. Returns the number of restored records.
    fn write_log(&self, from: &Backups, history: &History, version: Version) -> Result<u64, crate::Error> {
        self.log.create(self.copies)?;
        // Above every sequencer's before: all records of the new log have one epoch.
        let epoch = Epoch(history.epoch() + 1);
        let mut store = self.log.open(epoch)?;
        let lowest = history.backup.lowest();
        let (mut batch, mut bytes, mut written) = (Vec::new(), 0, 0);
        from.each_record(history, version, |entry, size| {
            if entry.record.version.0 <= lowest {
                return Ok(());
            }
            batch.push(Record { shard: ShardId(0), epoch, ..entry.record });
            (bytes, written) = (bytes + size, written + 1);
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                append(&mut *store, &mut batch)?;
                bytes = 0;
            }
            Ok(())
        })?;
        let last = Record { shard: ShardId(0), epoch, version: version.next(), body: Body::EpochStart };
        batch.push(last);
        append(&mut *store, &mut batch)?;
        store.on_idle();
        Ok(written)
    }
}

fn append(store: &mut dyn LogStore, batch: &mut Vec<Record>) -> Result<(), crate::Error> {
    store.append(batch)?;
    batch.clear();
    Ok(())
}

/// Compares what was copied with the manifest of the backup.
fn check_sum(copier: &Copier<'_>, object: &CopiedObject) -> Result<(), crate::Error> {
    match copier.sum(&object.path) {
        Some(sum) if sum == (Sum { bytes: object.bytes, crc32c: object.crc32c }) => Ok(()),
        Some(_) => Err(differs(&object.path, object)),
        None if copier.missing([&object.path]).is_empty() => Ok(()),
        None => Err(Error::Incomplete {
            name: object.path.clone(),
            objects: vec!["it was removed while it was restored".into()],
        }
        .into()),
    }
}

fn differs(path: &str, object: &CopiedObject) -> crate::Error {
    let found = "another checksum".to_owned();
    let expected = format!("{} bytes with the CRC-32C {:08x}", object.bytes, object.crc32c);
    Error::Differs { object: path.to_owned(), found, expected }.into()
}
