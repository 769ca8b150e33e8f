//! Makes a backup of a graph that is in use.

use super::copier::{Closing, Copier};
use super::log::{Archived, Progress, archive};
use super::{Backup, BackupCheckpoint, Backups, CopiedObject, Error};
use crate::restart::{CHECKPOINTS, partition_of};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegraph_cluster::Graph;
use tidegraph_log::{LogBackend, Position, WholeFollower};
use tidegraph_platform::{Clock, ObjectError, Objects, Random};
use tidegraph_storage::checkpoint::{Manifest, ManifestObject};
use tidegraph_types::{Epoch, PartitionId, Version};

/// Number of times that newer checkpoints take the place of those that were removed before they were copied.
const ROUNDS: usize = 20;

/// Number of times that a backup is begun because the log was trimmed, or segments were removed, before they were read.
const STARTS: usize = 5;

/// Settings of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupConfig {
    /// Number of objects that are copied at once.
    pub parallel: usize,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self { parallel: 8 }
    }
}

/// A graph to back up.
pub struct Source {
    /// The graph, as its map has it.
    pub graph: Graph,
    /// Its checkpoints and segments.
    pub objects: Arc<Objects>,
    /// Its log.
    pub log: Arc<dyn LogBackend>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Chooses names.
    pub random: Arc<dyn Random>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// A checkpoint that is copied.
struct Chosen {
    manifest: String,
    version: Version,
    epoch: Epoch,
    objects: Vec<ManifestObject>,
}

impl Chosen {
    fn paths(&self) -> impl Iterator<Item = &String> {
        self.objects.iter().map(|object| &object.path).chain([&self.manifest])
    }
}

type Checkpoints = BTreeMap<PartitionId, Chosen>;

impl Source {
    /// Copies the graph to a place of backups. The graph may be used meanwhile; what was acknowledged before the call is
    /// in the backup.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::SourceLacks`], [`Error::TooSlow`] and [`Error::LogEnds`] as they say; otherwise the
    /// failure of an object store or of the log. There is no new backup then.
    pub fn back_up(&self, to: &Backups, config: BackupConfig) -> Result<Backup, crate::Error> {
        let mut starts = 1;
        loop {
            let begun = self.clock.wall();
            let name = format!(
                "{}-{:08x}",
                begun.strftime("%Y%m%dT%H%M%SZ"),
                self.random.next_u64() & u64::from(u32::MAX)
            );
            match self.attempt(to, config, &name, begun.as_millisecond()) {
                Err(
                    error @ (crate::Error::Log(tidegraph_log::Error::Trimmed { .. })
                    | crate::Error::Backup(Error::Removed { .. })),
                ) if starts < STARTS => {
                    tracing::info!(%error, "the graph was faster than its backup, which begins again");
                    to.remove_data(&name)?;
                    starts += 1;
                }
                Ok(backup) => return Ok(backup),
                Err(error) => {
                    if let Err(left) = to.remove_data(&name) {
                        tracing::warn!(%left, name, "objects of the failed backup could not be removed");
                    }
                    return Err(error);
                }
            }
        }
    }

    fn attempt(
        &self,
        to: &Backups,
        config: BackupConfig,
        name: &str,
        begun_ms: i64,
    ) -> Result<Backup, crate::Error> {
        let folder = to.folder(name);
        let copies = format!("{folder}objects/");
        let copier = Copier::new((&*self.objects, ""), (to.objects(), copies.as_str()));
        let progress = Mutex::new(Progress::default());
        let mut chosen = self.newest()?;
        let begin = self.lowest(&chosen);
        let follower = WholeFollower::new(&*self.log, self.graph.sharding()?, begin);
        let (archived, asked_ms) = std::thread::scope(|scope| {
            let _closing = Closing(&copier);
            for _ in 0..config.parallel.max(1) {
                scope.spawn(|| copier.work());
            }
            let reading = scope.spawn(|| {
                let (place, shared) = ((to.objects(), folder.as_str()), (&progress, &copier));
                let archived = archive(follower, begin, place, shared, &*self.clock);
                archived.inspect_err(|_| copier.close())
            });
            let copied = self.copy(&mut chosen, &copier, &progress);
            if copied.is_err() {
                copier.close();
            }
            let archived = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Without the log there is no backup, whatever became of the checkpoints.
            let archived = archived?;
            let asked_ms = copied?;
            // Late, so that they say how their loads ended.
            copier.add(progress.lock().loads.values().map(|load| load.job.clone()));
            copier.wait()?;
            Ok::<_, crate::Error>((archived, asked_ms))
        })?;
        if chosen.is_empty() && archived.end.version == Version(0) {
            return Err(Error::Empty { graph: self.graph.name.clone() }.into());
        }
        let objects = self.kept(&chosen, &copier, &progress.into_inner())?;
        self.remove_others(to, &copies, &copier, &objects)?;
        let backup = self.manifest(name, (begun_ms, asked_ms), &chosen, archived, objects);
        to.write(&backup)?;
        Ok(backup)
    }

    /// Copies checkpoints, and the segments of loads that are not in all of them; replaces those checkpoints that are
    /// removed meanwhile. Then tells the reader of the log which version it has to reach, and returns when it told so: in
    /// milliseconds since 1970. The log of the backup has all that was acknowledged before.
    fn copy(
        &self,
        chosen: &mut Checkpoints,
        copier: &Copier<'_>,
        progress: &Mutex<Progress>,
    ) -> Result<i64, crate::Error> {
        let mut removed = None;
        for _ in 0..ROUNDS {
            copier.add(chosen.values().flat_map(Chosen::paths).cloned());
            copier.wait()?;
            let mut stale: BTreeSet<PartitionId> = chosen
                .iter()
                .filter(|(_, checkpoint)| !copier.missing(checkpoint.paths()).is_empty())
                .map(|(partition, _)| *partition)
                .collect();
            let loads = progress.lock().loads.clone();
            let lost = loads.iter().rev().find(|(_, load)| !copier.missing(&load.segments).is_empty());
            if let Some((version, _)) = lost {
                // Segments are removed once every partition has the load in a checkpoint.
                stale.extend(
                    chosen.iter().filter(|(_, at)| at.version < *version).map(|(partition, _)| *partition),
                );
            }
            let Some(first) = stale.first().copied() else {
                let highest = chosen.values().map(|checkpoint| checkpoint.version).max();
                let asked_ms = self.clock.wall().as_millisecond();
                progress.lock().wanted = Some((highest.unwrap_or_default(), self.clock.now()));
                return Ok(asked_ms);
            };
            removed = Some(first);
            let mut newest = self.newest()?;
            let mut is_newer = false;
            for partition in &stale {
                if let Some(newer) = newest.remove(partition) {
                    is_newer |= chosen.get(partition).is_none_or(|old| old.version < newer.version);
                    chosen.insert(*partition, newer);
                }
            }
            if !is_newer {
                let paths = chosen.values().flat_map(Chosen::paths);
                let segments = loads.values().flat_map(|load| &load.segments);
                return Err(Error::SourceLacks { objects: copier.missing(paths.chain(segments)) }.into());
            }
            tracing::info!(partitions = stale.len(), "checkpoints were removed while they were copied");
        }
        let partition = removed.unwrap_or(PartitionId(0));
        Err(Error::TooSlow { partition, rounds: ROUNDS }.into())
    }

    /// Returns the newest checkpoint of each partition that can be read.
    fn newest(&self) -> Result<Checkpoints, crate::Error> {
        let mut paths: Vec<(PartitionId, String)> = Vec::new();
        for object in self.objects.list(CHECKPOINTS)? {
            paths.extend(partition_of(&object.path).map(|partition| (partition, object.path)));
        }
        // Names of manifests sort as versions do.
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        paths.sort_by_cached_key(|(_, path)| std::cmp::Reverse(name(path)));
        let mut newest = Checkpoints::new();
        for (partition, path) in paths {
            if newest.contains_key(&partition) {
                continue;
            }
            let manifest = match Manifest::read(&self.objects, &path) {
                Ok(manifest) => manifest,
                Err(error) if error.is_damage() || is_gone(&error) => {
                    tracing::warn!(%error, "a checkpoint cannot be read; an older one is copied");
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.check(partition, &manifest)?;
            let objects = manifest.partitions.into_iter().flat_map(|partition| partition.objects).collect();
            let (version, epoch) = (manifest.version, manifest.epoch);
            newest.insert(partition, Chosen { manifest: path, version, epoch, objects });
        }
        // After a split, partitions that are gone have checkpoints too.
        let (from, _) = self.graph.restored_from(|of| newest.get(&of).map(|found| found.version));
        newest.retain(|partition, _| from.contains(partition));
        Ok(newest)
    }

    /// Refuses a checkpoint of another graph.
    fn check(&self, partition: PartitionId, manifest: &Manifest) -> Result<(), crate::Error> {
        let object = manifest.object.clone();
        if manifest.graph != self.graph.name {
            let reason = format!("it belongs to graph {:?}, not to {:?}", manifest.graph, self.graph.name);
            return Err(crate::Error::Foreign { object, reason });
        }
        if !self.graph.may_have(partition) {
            let reason = format!("the graph has {} partitions", self.graph.partitions.get());
            return Err(crate::Error::Foreign { object, reason });
        }
        Ok(())
    }

    /// Returns the position of the oldest checkpoint; the beginning of the log if a partition has none.
    fn lowest(&self, chosen: &Checkpoints) -> Position {
        let (_, without) = self.graph.restored_from(|of| chosen.get(&of).map(|found| found.version));
        if !without.is_empty() {
            return Position::default();
        }
        let lowest = chosen.values().min_by_key(|checkpoint| checkpoint.version);
        lowest.map_or_else(Position::default, |found| Position { version: found.version, epoch: found.epoch })
    }

    /// Returns the objects that belong to the backup, and checks them.
    fn kept(
        &self,
        chosen: &Checkpoints,
        copier: &Copier<'_>,
        progress: &Progress,
    ) -> Result<Vec<CopiedObject>, crate::Error> {
        let lowest = self.lowest(chosen).version;
        let loads = || progress.loads.range(lowest.next()..).map(|(_, load)| load);
        let segments = loads().flat_map(|load| &load.segments);
        let mut paths: BTreeSet<&String> = chosen.values().flat_map(Chosen::paths).chain(segments).collect();
        let lacking = copier.missing(paths.iter().copied());
        if !lacking.is_empty() {
            return Err(Error::Removed { objects: lacking }.into());
        }
        for object in chosen.values().flat_map(|checkpoint| &checkpoint.objects) {
            let found = copier.sum(&object.path).map_or(0, |sum| sum.bytes);
            if found != object.bytes {
                let (found, expected) = (format!("{found} bytes"), format!("{} bytes", object.bytes));
                return Err(Error::Differs { object: object.path.clone(), found, expected }.into());
            }
        }
        paths.extend(loads().map(|load| &load.job));
        let mut kept = copier.copied();
        kept.retain(|object| paths.contains(&object.path));
        Ok(kept)
    }

    /// Removes what was copied of checkpoints that others replaced.
    fn remove_others(
        &self,
        to: &Backups,
        folder: &str,
        copier: &Copier<'_>,
        kept: &[CopiedObject],
    ) -> Result<(), crate::Error> {
        let kept: BTreeSet<&String> = kept.iter().map(|object| &object.path).collect();
        for object in copier.copied().iter().filter(|object| !kept.contains(&object.path)) {
            to.objects().delete(&format!("{folder}{}", object.path))?;
        }
        Ok(())
    }

    fn manifest(
        &self,
        name: &str,
        (begun_ms, asked_ms): (i64, i64),
        chosen: &Checkpoints,
        archived: Archived,
        objects: Vec<CopiedObject>,
    ) -> Backup {
        let earliest = chosen.values().map(|checkpoint| checkpoint.version.0).max().unwrap_or_default();
        let epoch = chosen.values().map(|checkpoint| checkpoint.epoch).max().unwrap_or_default();
        // Not the time of now: what others wrote since the cut is missing.
        let cut_ms = archived.newest_ms().map_or(asked_ms, |newest| newest.max(asked_ms));
        let keeps_times = archived.objects.iter().all(|object| object.first_ms.is_some());
        Backup {
            name: name.to_owned(),
            graph: self.graph.clone(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            begun_ms,
            cut_ms,
            earliest,
            // Nothing was written after the newest checkpoint, so its version is that of the cut.
            earliest_ms: archived.time_of(earliest).or(keeps_times.then_some(cut_ms)),
            version: archived.end.version.0.max(earliest),
            epoch: archived.end.epoch.max(epoch).0,
            checkpoints: chosen
                .iter()
                .map(|(partition, checkpoint)| BackupCheckpoint {
                    partition: partition.0,
                    version: checkpoint.version.0,
                    manifest: checkpoint.manifest.clone(),
                })
                .collect(),
            log: archived.objects,
            objects,
        }
    }
}

/// Whether an object was removed since it was listed.
fn is_gone(error: &tidegraph_storage::Error) -> bool {
    matches!(error, tidegraph_storage::Error::Object { source, .. } if matches!(**source, ObjectError::NotFound { .. }))
}
