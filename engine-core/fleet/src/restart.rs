//! A new log for a graph whose brokers lost the old one, begun from checkpoints.
//!
//! The newest checkpoints of the partitions have different versions, and a replica goes on with the record after its own.
//! So the new log begins behind the oldest checkpoint that a replica may restore, and has a record without changes for
//! each version up to behind the newest one. One of them has the whole dictionary, because the sequencer takes it from
//! the oldest checkpoint and the log. What was committed after a partition's checkpoint is lost in this partition:
//! [`LostLog::complete`] is the version up to which all partitions have everything.

use crate::Error;
use std::collections::BTreeMap;
use tidegraph_cluster::{Checkpoint, Graph, MapStore, SEQUENCER};
use tidegraph_log::{Body, LogBackend, LogCopies, LogStore, Record};
use tidegraph_platform::Objects;
use tidegraph_storage::checkpoint::Manifest;
use tidegraph_types::{Epoch, PartitionId, ShardId, Sid, Str, Token, Version};

/// Where nodes write checkpoints.
pub(crate) const CHECKPOINTS: &str = "checkpoints/";

/// Number of records in one append.
const BATCH: u64 = 1_000;

/// The checkpoints of a graph whose log is lost.
#[derive(Debug)]
pub struct LostLog {
    /// The newest checkpoint of each partition that has one, also of those from which others came in a split.
    newest: BTreeMap<PartitionId, Checkpoint>,
    /// The lowest version of any checkpoint of each partition.
    oldest: BTreeMap<PartitionId, Version>,
    /// The lowest of these versions.
    lowest: Version,
    epoch: Epoch,
    next_sid: Sid,
    tokens: BTreeMap<Token, Str>,
    /// Number of manifests that cannot be read.
    pub damaged: usize,
}

/// Returns the path of a manifest of the graph's checkpoints, if there is any: then there was a graph.
///
/// # Errors
/// [`Error::Objects`] or [`Error::Storage`] if the object store fails.
pub fn any_checkpoint(objects: &Objects, graph: &str) -> Result<Option<String>, Error> {
    for (_, path) in manifests(objects)? {
        match Manifest::read(objects, &path) {
            Ok(manifest) if manifest.graph == graph => return Ok(Some(path)),
            Err(error) if !error.is_damage() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(None)
}

/// Lists the manifests of all checkpoints, with their partitions.
fn manifests(objects: &Objects) -> Result<Vec<(PartitionId, String)>, Error> {
    let listed = objects.list(CHECKPOINTS)?;
    Ok(listed.into_iter().filter_map(|object| Some((partition_of(&object.path)?, object.path))).collect())
}

/// Returns the partition of a manifest; `None` for another object.
pub(crate) fn partition_of(path: &str) -> Option<PartitionId> {
    let mut parts = path.strip_prefix(CHECKPOINTS)?.split('/');
    let partition = parts.next()?.strip_prefix('p')?.parse().ok()?;
    let (_node, name) = (parts.next()?, parts.next()?);
    (name.starts_with("manifest-") && parts.next().is_none()).then_some(PartitionId(partition))
}

impl LostLog {
    /// Reads the manifests of a graph's checkpoints; `None` if there are none.
    ///
    /// # Errors
    /// [`Error::Objects`] or [`Error::Storage`] if the object store fails, [`Error::Foreign`] if a checkpoint belongs to
    /// another graph, or to a graph with more partitions.
    pub fn find(objects: &Objects, graph: &Graph) -> Result<Option<Self>, Error> {
        let mut found = Self {
            newest: BTreeMap::new(),
            oldest: BTreeMap::new(),
            lowest: Version(0),
            epoch: Epoch(0),
            next_sid: Sid(1),
            tokens: BTreeMap::new(),
            damaged: 0,
        };
        for (partition, path) in manifests(objects)? {
            match Manifest::read(objects, &path) {
                Ok(manifest) => found.add(graph, partition, path, manifest)?,
                Err(error) if error.is_damage() => {
                    tracing::warn!(%error, "a checkpoint cannot be read; another one is used");
                    found.damaged += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // After a split, partitions that are gone have checkpoints too.
        let (from, _) = graph.restored_from(|of| found.newest.get(&of).map(|one| one.version));
        found.newest.retain(|partition, _| from.contains(partition));
        found.oldest.retain(|partition, _| from.contains(partition));
        found.lowest = found.oldest.values().copied().min().unwrap_or_default();
        if !found.without(graph).is_empty() {
            // Their replicas begin with the first record.
            found.lowest = Version(0);
        }
        Ok((!found.newest.is_empty()).then_some(found))
    }

    fn add(
        &mut self,
        graph: &Graph,
        partition: PartitionId,
        object: String,
        manifest: Manifest,
    ) -> Result<(), Error> {
        if manifest.graph != graph.name {
            let reason = format!("it belongs to graph {:?}, not to {:?}", manifest.graph, graph.name);
            return Err(Error::Foreign { object, reason });
        }
        if !graph.may_have(partition) {
            let reason = format!("the graph has {} partitions", graph.partitions.get());
            return Err(Error::Foreign { object, reason });
        }
        let oldest = self.oldest.entry(partition).or_insert(manifest.version);
        *oldest = manifest.version.min(*oldest);
        self.epoch = self.epoch.max(manifest.epoch);
        self.next_sid = self.next_sid.max(Sid(manifest.next_sid));
        self.tokens.extend(manifest.tokens);
        let prefix = object.rsplit_once('/').map_or("", |(prefix, _)| prefix).to_owned();
        let found = Checkpoint { partition, version: manifest.version, prefix };
        match self.newest.get(&partition) {
            Some(newest) if newest.version >= found.version => {}
            _ => drop(self.newest.insert(partition, found)),
        }
        Ok(())
    }

    /// Returns the partitions that have no checkpoint, and will be empty.
    #[must_use]
    pub fn without(&self, graph: &Graph) -> Vec<PartitionId> {
        graph.restored_from(|of| self.newest.get(&of).map(|found| found.version)).1
    }

    /// Returns the version up to which all partitions have everything.
    #[must_use]
    pub fn complete(&self, graph: &Graph) -> Version {
        match self.newest.values().map(|found| found.version).min() {
            Some(oldest) if self.without(graph).is_empty() => oldest,
            _ => Version(0),
        }
    }

    /// Returns the newest version of a checkpoint.
    #[must_use]
    pub fn end(&self) -> Version {
        self.newest.values().map(|found| found.version).max().unwrap_or_default()
    }

    /// Creates the graph's log and its map, unless they exist, notes the checkpoints in the map, and writes the first
    /// records. Returns their first and last version.
    ///
    /// # Errors
    /// [`Error::Map`] if the map fails or has a different graph of this name; [`Error::Log`] if the log fails. If it
    /// failed after its first record, the topic must be deleted before the next attempt.
    pub fn restart(
        &self,
        graph: &Graph,
        map: &dyn MapStore,
        log: &dyn LogBackend,
        copies: LogCopies,
    ) -> Result<(Version, Version), Error> {
        map.create_graph(graph)?;
        for checkpoint in self.newest.values() {
            map.note_checkpoint(&graph.name, checkpoint)?;
        }
        let lease = map.lease(&graph.name, SEQUENCER)?.map_or(Epoch(0), |lease| lease.epoch);
        log.create(copies)?;
        // Above every sequencer's, so that one that still runs cannot write.
        let epoch = Epoch(self.epoch.max(lease).0 + 1);
        self.fill(&mut *log.open(epoch)?, epoch)
    }

    fn fill(&self, store: &mut dyn LogStore, epoch: Epoch) -> Result<(Version, Version), Error> {
        let first = self.lowest.next();
        // Three records at least: the epoch, the dictionary, and the ids that are taken.
        let last = Version(self.end().0.max(first.0 + 1) + 1);
        let assigned: Vec<_> = self.tokens.iter().map(|(token, name)| (*token, name.clone())).collect();
        let mut next = first.0;
        while next <= last.0 {
            let to = last.0.min(next + BATCH - 1);
            let record = |version: u64| {
                let body = match version - first.0 {
                    0 => Body::EpochStart,
                    1 => Body::Tokens { assigned: assigned.clone() },
                    _ => Body::Reserve { next_sid: self.next_sid },
                };
                Record { shard: ShardId(0), epoch, version: Version(version), body }
            };
            store.append(&(next..=to).map(record).collect::<Vec<_>>())?;
            next = to + 1;
        }
        Ok((first, last))
    }
}
