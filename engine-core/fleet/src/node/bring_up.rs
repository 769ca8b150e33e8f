//! From a checkpoint and the log to a replica that is fed like the others.

use super::feed::Joined;
use super::replica::Replica;
use super::{Shared, prefix_of};
use crate::Error;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::ReplicaState;
use tidegraph_engine::StoreApplier;
use tidegraph_log::Position;
use tidegraph_storage::{Scope, Store, StoreConfig, checkpoint};
use tidegraph_types::{GuiHasher, PartitionId};

/// How long one look at the log waits.
const LOOK: Duration = Duration::from_millis(20);

impl Shared {
    /// Brings a replica up; answers when it is fed, ready, and said so in the map.
    pub(super) fn bring_up(&self, partition: PartitionId) -> Result<(), Error> {
        let began = self.clock.now();
        let replica = Arc::new(self.restored(partition)?);
        let from = replica.applied();
        self.set_state(partition, ReplicaState::CatchingUp)?;
        if !self.catch_up(&replica)? {
            return Ok(());
        }
        self.insert(replica.clone());
        // What was restored has its indexes defined, and empty.
        replica.store.fill_indexes(&|| self.is_stopping())?;
        while !self.feed.standing().1 {
            if self.is_stopping() || !self.is_wanted(partition) {
                return Ok(());
            }
            self.clock.sleep(LOOK);
        }
        replica.set_ready();
        self.set_state(partition, ReplicaState::Serving)?;
        let took_ms = (self.clock.now() - began).as_millis() as u64;
        tracing::info!(%partition, %from, version = %replica.applied(), took_ms, "serves");
        Ok(())
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

    /// Replays the log until the replica stands where the others stand, and lets it join them; false if it is not wanted
    /// any more.
    fn catch_up(&self, replica: &Arc<Replica>) -> Result<bool, Error> {
        let mut log = None;
        loop {
            if self.is_stopping() || !self.is_wanted(replica.partition) {
                return Ok(false);
            }
            match self.feed.join(replica) {
                Joined::Yes => return Ok(true),
                Joined::Ahead => self.clock.sleep(LOOK),
                Joined::Behind(end) => {
                    let log = log.get_or_insert_with(|| self.log.follow(replica.position()));
                    while replica.applied() < end && !self.is_stopping() {
                        match log.next(LOOK)? {
                            Some(record) => {
                                self.note(&record);
                                replica.apply(&record)?;
                            }
                            None => break,
                        }
                    }
                }
            }
        }
    }
}
