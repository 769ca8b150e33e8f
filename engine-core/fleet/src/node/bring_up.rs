//! From a checkpoint and the log to a replica that is fed like the others.

use super::feed::Joined;
use super::replica::Replica;
use super::{Shared, prefix_of};
use crate::Error;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::ReplicaState;
use tidegraph_engine::StoreApplier;
use tidegraph_log::{Follower, Position};
use tidegraph_platform::metric;
use tidegraph_storage::{Scope, Store, StoreConfig, checkpoint};
use tidegraph_types::{GuiHasher, PartitionId};

/// How long one look at the log waits.
const LOOK: Duration = Duration::from_millis(20);

/// A replica on its way up.
pub(super) struct Rising {
    pub partition: PartitionId,
    began: Duration,
    stage: Stage,
}

enum Stage {
    /// To be restored.
    New,
    /// Restored; reads the log by itself.
    CatchingUp { replica: Arc<Replica>, log: Option<Box<dyn Follower>> },
    /// Is fed; becomes ready when the end of the log is near.
    Fed { replica: Arc<Replica> },
}

impl Rising {
    pub fn new(partition: PartitionId, now: Duration) -> Self {
        Self { partition, began: now, stage: Stage::New }
    }
}

/// How far a replica came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// To be looked at again in a moment.
    Waits,
    /// It serves, or is not wanted any more.
    Over,
}

impl Shared {
    /// Brings a replica up; answers when it is fed, ready, and said so in the map.
    pub(super) fn bring_up(&self, partition: PartitionId) -> Result<(), Error> {
        let mut rising = Rising::new(partition, self.clock.now());
        while self.raise(&mut rising)? == Progress::Waits {
            self.clock.sleep(LOOK);
        }
        Ok(())
    }

    /// Brings a replica on its way up as far as it comes now.
    pub(super) fn raise(&self, rising: &mut Rising) -> Result<Progress, Error> {
        let partition = rising.partition;
        loop {
            match &mut rising.stage {
                Stage::New => {
                    // One that was given up may still stand in the map as serving: it could not be told, or its answer
                    // was lost.
                    let map = self.watch.map();
                    let held = map.replicas(partition).iter().find(|replica| replica.node == self.id);
                    if held.is_some_and(|replica| replica.state != ReplicaState::Restoring) {
                        self.set_state(partition, ReplicaState::Restoring)?;
                    }
                    let replica = Arc::new(self.restored(partition)?);
                    self.set_state(partition, ReplicaState::CatchingUp)?;
                    rising.stage = Stage::CatchingUp { replica, log: None };
                }
                Stage::CatchingUp { .. } | Stage::Fed { .. }
                    if self.is_stopping() || !self.is_wanted(partition) =>
                {
                    return Ok(Progress::Over);
                }
                Stage::CatchingUp { replica, log } => {
                    if !self.catch_up(replica, log)? {
                        return Ok(Progress::Waits);
                    }
                    let replica = replica.clone();
                    self.insert(replica.clone());
                    // What was restored has its indexes defined, and empty.
                    replica.store.fill_indexes(&|| self.is_stopping())?;
                    rising.stage = Stage::Fed { replica };
                }
                // It was given up since, because the log has gone on without it, say.
                Stage::Fed { replica } if replica.is_dropped() => return Ok(Progress::Over),
                Stage::Fed { .. } if !self.feed_of(partition).standing().near_end => {
                    return Ok(Progress::Waits);
                }
                Stage::Fed { replica } => {
                    replica.set_ready();
                    self.set_state(partition, ReplicaState::Serving)?;
                    let took_ms = (self.clock.now() - rising.began).as_millis() as u64;
                    tracing::info!(%partition, version = %replica.applied(), took_ms, "serves");
                    return Ok(Progress::Over);
                }
            }
        }
    }

    /// The newest checkpoint that is whole, or nothing where there is none.
    fn restored(&self, partition: PartitionId) -> Result<Replica, Error> {
        let scope = Scope { partitions: self.graph.partitions, partition };
        let config = StoreConfig {
            hasher: GuiHasher::with_bits(self.graph.hash_bits),
            window: self.config.window,
            memory: self.memory(),
            ..StoreConfig::new(self.clock.clone())
        };
        let config = config.of_partition(scope);
        let noted = self.map_store.checkpoints(&self.graph.name)?;
        let mut prefixes: Vec<String> = noted
            .into_iter()
            .filter(|noted| noted.partition == partition)
            .map(|noted| noted.prefix)
            .collect();
        // The note may have been lost; the objects say it as well, and what other nodes wrote may be whole where this is not.
        prefixes.extend(self.prefixes(partition)?);
        let mut failed = None;
        for prefix in prefixes {
            match checkpoint::restore_newest(&config, &self.objects, &prefix) {
                Ok(Some(restored)) if restored.manifest.graph != self.graph.name => {
                    metric::refused(metric::Refused::Checkpoint);
                    let reason = format!("it is of graph {:?}", restored.manifest.graph);
                    let object = restored.manifest.object;
                    tracing::error!(%partition, object, reason, "a checkpoint cannot be restored");
                    let reason = reason.into();
                    failed = Some(tidegraph_storage::Error::Damaged { object, offset: 0, reason });
                }
                Ok(Some(restored)) => {
                    let manifest = &restored.manifest;
                    self.note_meta(&manifest.tokens, manifest.next_sid);
                    let at = Position { version: manifest.version, epoch: manifest.epoch };
                    return Ok(self.replica(partition, restored.store, at));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%partition, prefix, %error, "a checkpoint cannot be restored");
                    failed = Some(error);
                }
            }
        }
        match failed {
            // The log may no longer have what the checkpoint had.
            Some(error) => Err(error.into()),
            None => Ok(self.replica(partition, Store::new(config), Position::default())),
        }
    }

    fn replica(&self, partition: PartitionId, store: Store, at: Position) -> Replica {
        let applier = StoreApplier { store: Arc::new(store), objects: self.objects.clone() };
        Replica::new(partition, applier, at, self.clock.now())
    }

    /// Prefixes under which there are checkpoints of a partition, the newest manifest first.
    fn prefixes(&self, partition: PartitionId) -> Result<Vec<String>, Error> {
        let all = prefix_of(partition);
        let mut found: Vec<(String, String)> = Vec::new();
        for object in self.objects.list(&format!("{all}/"))? {
            let Some((prefix, name)) = object.path.rsplit_once('/') else { continue };
            if name.starts_with("manifest-") {
                found.push((name.to_owned(), prefix.to_owned()));
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        let mut prefixes: Vec<String> = Vec::new();
        for (_, prefix) in found {
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        Ok(prefixes)
    }

    /// Replays the log up to where the others stand and lets the replica join them; false if it has to wait for more.
    fn catch_up(&self, replica: &Arc<Replica>, log: &mut Option<Box<dyn Follower>>) -> Result<bool, Error> {
        loop {
            let end = match self.feed_of(replica.partition).join(replica) {
                Joined::Yes => return Ok(true),
                Joined::Ahead => return Ok(false),
                Joined::Behind(end) => end,
            };
            let shard = self.sharding.of(replica.partition);
            let log = log.get_or_insert_with(|| self.log.follow(shard, replica.position()));
            while replica.applied() < end {
                let record = match log.next(LOOK)? {
                    Some(record) if !self.is_stopping() => record,
                    _ => return Ok(false),
                };
                self.note(&record);
                replica.apply(&record)?;
            }
        }
    }
}
