//! Brings a replica up: restores a checkpoint, catches up with the log, and joins the feed of its shard.

use super::feed::JoinResult;
use super::replica::{Broken, Replica};
use super::{Shared, prefix_of};
use crate::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_cluster::{Checkpoint, ReplicaState};
use tidegraph_engine::StoreApplier;
use tidegraph_log::{Follower, Position};
use tidegraph_platform::metric;
use tidegraph_storage::{Scope, Store, StoreConfig, checkpoint};
use tidegraph_types::{GuiHasher, Layout, PartitionId, Version};

/// Longest wait for the next record.
const POLL: Duration = Duration::from_millis(20);

/// A replica that is being brought up.
pub(super) struct BringUp {
    pub partition: PartitionId,
    began: Duration,
    stage: Stage,
    /// The record at which the replica here is stuck. It answers reads until the new one has applied the record.
    stuck_at: Option<Version>,
}

enum Stage {
    /// Nothing is restored yet.
    New,
    /// The checkpoint is restored; the replica reads the log by itself.
    CatchingUp { replica: Arc<Replica>, log: Option<Box<dyn Follower>> },
    /// The feed applies records to it; it becomes ready near the end of the log.
    Fed { replica: Arc<Replica> },
}

impl BringUp {
    pub fn new(partition: PartitionId, now: Duration) -> Self {
        Self { partition, began: now, stage: Stage::New, stuck_at: None }
    }
}

/// Result of one step of bringing a replica up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The replica needs more steps.
    Pending,
    /// The replica serves, or the map no longer assigns it to this node.
    Finished,
    /// The feed gave the replica up before it served, for example because the log was trimmed above its version.
    GivenUp,
}

impl Shared {
    /// Brings a replica up. Returns when it serves and the map says so, or was given up.
    pub(super) fn bring_up(&self, partition: PartitionId) -> Result<Progress, Error> {
        let mut bring_up = BringUp::new(partition, self.clock.now());
        loop {
            match self.advance(&mut bring_up)? {
                Progress::Pending => self.clock.sleep(POLL),
                ended => return Ok(ended),
            }
        }
    }

    /// Takes a replica as far as possible without waiting for the log. After an error the replica is given up.
    pub(super) fn advance(&self, bring_up: &mut BringUp) -> Result<Progress, Error> {
        self.advance_stages(bring_up).inspect_err(|_| self.abandon(bring_up))
    }

    fn abandon(&self, bring_up: &BringUp) {
        if let Stage::CatchingUp { replica, .. } | Stage::Fed { replica } = &bring_up.stage {
            self.give_up(replica);
        }
    }

    fn advance_stages(&self, bring_up: &mut BringUp) -> Result<Progress, Error> {
        let partition = bring_up.partition;
        loop {
            match &mut bring_up.stage {
                Stage::New => {
                    bring_up.stuck_at = self.get(partition).and_then(|replica| replica.stuck_at());
                    if bring_up.stuck_at.is_some() {
                        let replica = Arc::new(self.restored(partition)?);
                        bring_up.stage = Stage::CatchingUp { replica, log: None };
                        continue;
                    }
                    // The map may still say that a replica serves which was given up: the change failed, or its answer
                    // was lost.
                    let map = self.watch.map();
                    let held = map.replicas(partition).iter().find(|replica| replica.node == self.id);
                    if held.is_some_and(|replica| replica.state != ReplicaState::Restoring) {
                        self.set_state(partition, ReplicaState::Restoring)?;
                    }
                    let replica = Arc::new(self.restored(partition)?);
                    self.set_state(partition, ReplicaState::CatchingUp)?;
                    bring_up.stage = Stage::CatchingUp { replica, log: None };
                }
                Stage::CatchingUp { .. } | Stage::Fed { .. }
                    if self.is_stopping() || !self.is_wanted(partition) =>
                {
                    if bring_up.stuck_at.is_some() {
                        self.abandon(bring_up);
                    }
                    return Ok(Progress::Finished);
                }
                Stage::CatchingUp { replica, log } => {
                    match self.catch_up(replica, log) {
                        // The next stage handles a record that cannot be applied.
                        Err(Error::Apply { .. }) | Ok(true) => {}
                        Ok(false) => return Ok(Progress::Pending),
                        Err(error) => return Err(error),
                    }
                    let replica = replica.clone();
                    if bring_up.stuck_at.is_none() {
                        self.insert(replica.clone());
                    }
                    // A restored store has its indexes defined, but empty.
                    replica.store.fill_indexes(&|| self.is_stopping())?;
                    bring_up.stage = Stage::Fed { replica };
                }
                Stage::Fed { replica } if replica.is_dropped() => return Ok(Progress::GivenUp),
                Stage::Fed { replica } => {
                    match replica.broken() {
                        Some(broken) => self.check_is_last(partition, bring_up.stuck_at, broken)?,
                        None if !self.feed_of(partition).status().near_end => return Ok(Progress::Pending),
                        None if bring_up.stuck_at.is_some_and(|record| replica.applied() < record) => {
                            return Ok(Progress::Pending);
                        }
                        None => {}
                    }
                    // FLT-1: from here on the replica answers reads. It is fed, so it lacks no record; or it is stuck,
                    // and answers for the versions before its next record.
                    replica.set_ready();
                    if bring_up.stuck_at.is_some() {
                        self.insert(replica.clone());
                    }
                    self.mark_serving(partition)?;
                    let took_ms = (self.clock.now() - bring_up.began).as_millis() as u64;
                    tracing::info!(%partition, version = %replica.applied(), took_ms, "a replica serves");
                    return Ok(Progress::Finished);
                }
            }
        }
    }

    /// Fails unless a broken replica is to serve at its last version: it replaces no other one, and no other replica
    /// that answers reads has applied the record.
    fn check_is_last(
        &self,
        partition: PartitionId,
        stuck_at: Option<Version>,
        broken: Broken,
    ) -> Result<(), Error> {
        let Broken { record, reason } = broken;
        // Readers do not ask the partitions into which the graph is being split, and must not turn to one that is stuck:
        // those before the split have applied the record.
        let is_asked = self.watch.map().graph().layout().number(partition).is_some();
        let is_last = match record {
            Some(record) if stuck_at.is_none() && is_asked => {
                !self.is_applied_elsewhere(partition, record)?
            }
            _ => false,
        };
        if !is_last {
            return Err(Error::Broken { partition, reason });
        }
        tracing::error!(%partition, reason, "a replica serves at the version before a record that it cannot apply");
        Ok(())
    }

    /// Tells the map that a replica serves, unless the map says that it answers reads.
    fn mark_serving(&self, partition: PartitionId) -> Result<(), Error> {
        let map = self.watch.map();
        let held = map.replicas(partition).iter().find(|replica| replica.node == self.id);
        match held.map(|replica| replica.state) {
            Some(state) if state.answers() => return Ok(()),
            Some(ReplicaState::Restoring) => self.set_state(partition, ReplicaState::CatchingUp)?,
            _ => {}
        }
        self.set_state(partition, ReplicaState::Serving)
    }

    /// Restores the newest complete checkpoint of a partition, or its part of one of the partition from which it came if
    /// the map notes a newer one of that, because the graph was split a short time ago or is being split. If that one is
    /// damaged, an older one of the others is restored: the log may still have the records behind it, and says so if it
    /// was trimmed. Restores an empty store if none has any.
    fn restored(&self, partition: PartitionId) -> Result<Replica, Error> {
        let unknown = || tidegraph_cluster::Error::NotFound { what: format!("partition {partition}") };
        let layout = Layout::of_partition(self.graph.created_with(), partition).ok_or_else(unknown)?;
        let number = PartitionId(layout.number(partition).ok_or_else(unknown)?);
        let scope = Scope { partitions: layout.count(), partition: number };
        let config = StoreConfig {
            hasher: GuiHasher::with_bits(self.graph.hash_bits),
            window: self.config.window,
            memory: self.memory(),
            reads: self.reads.clone(),
            copies: self.copies.as_ref().map(|keeper| keeper.copies()),
            ..StoreConfig::new(self.clock.clone())
        };
        let config = config.of_partition(scope);
        let noted = self.map_store.checkpoints(&self.graph.name)?;
        let mut sources: Vec<PartitionId> =
            std::iter::once(partition).chain(layout.ancestors(partition)).collect();
        // The log is trimmed by the notes. Checkpoints of a split that was taken back may be older than its records.
        let newest = |of| noted.iter().find(|noted| noted.partition == of).map(|noted| noted.version);
        sources.sort_by_key(|of| std::cmp::Reverse(newest(*of)));
        let mut damaged = None;
        for of in sources {
            let restored = match self.restored_from(&config, of, &noted) {
                Err(Error::Storage(error)) if checkpoint::is_unusable(&error) => {
                    damaged.get_or_insert(error);
                    None
                }
                restored => restored?,
            };
            if let Some((store, at)) = restored {
                let replica = self.replica(partition, store, at);
                if of != partition {
                    // Its first checkpoint is due although nothing has changed since.
                    replica.checkpointed.store(0, Ordering::Relaxed);
                }
                return Ok(replica);
            }
        }
        // An empty store would be wrong: the log may be trimmed up to the checkpoint.
        match damaged {
            Some(error) => Err(error.into()),
            None => Ok(self.replica(partition, Store::new(config), Position::default())),
        }
    }

    /// Restores the newest complete checkpoint of a partition into a store; `None` if there is no checkpoint. If all fail,
    /// the error is that of one that may be restored later, if there is such a one.
    fn restored_from(
        &self,
        config: &StoreConfig,
        partition: PartitionId,
        noted: &[Checkpoint],
    ) -> Result<Option<(Store, Position)>, Error> {
        let mut prefixes: Vec<String> = noted
            .iter()
            .filter(|noted| noted.partition == partition)
            .map(|noted| noted.prefix.clone())
            .collect();
        // The note in the map may have been lost, and another node's checkpoint may be complete where this one is not:
        // the prefixes in the object store are tried too.
        prefixes.extend(self.prefixes(partition)?);
        let mut failed: Option<tidegraph_storage::Error> = None;
        for prefix in prefixes {
            match checkpoint::restore_newest(config, &self.objects, &prefix) {
                Ok(Some(restored)) if restored.manifest.graph != self.graph.name => {
                    metric::refused(metric::Refused::Checkpoint);
                    let reason = format!("it belongs to graph {:?}", restored.manifest.graph);
                    let object = restored.manifest.object;
                    tracing::error!(%partition, object, reason, "cannot restore a checkpoint");
                    let reason = reason.into();
                    let error = tidegraph_storage::Error::Damaged { object, offset: 0, reason };
                    failed.get_or_insert(error);
                }
                Ok(Some(restored)) => {
                    let manifest = &restored.manifest;
                    self.note_meta(&manifest.tokens, manifest.next_sid);
                    let at = Position { version: manifest.version, epoch: manifest.epoch };
                    return Ok(Some((restored.store, at)));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%partition, prefix, %error, "cannot restore a checkpoint");
                    if failed.as_ref().is_none_or(checkpoint::is_unusable) {
                        failed = Some(error);
                    }
                }
            }
        }
        failed.map_or(Ok(None), |error| Err(error.into()))
    }

    fn replica(&self, partition: PartitionId, store: Store, at: Position) -> Replica {
        let applier = StoreApplier { store: Arc::new(store), objects: self.objects.clone() };
        // 0 means "no store".
        let store_id = self.random.next_u64().max(1);
        Replica::new(partition, applier, store_id, at, self.clock.now())
    }

    /// Lists the prefixes of a partition's checkpoints, the one with the newest manifest first.
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

    /// Replays the log up to the version of the feed and joins it. Returns false if
    /// the replica has to wait for records.
    fn catch_up(&self, replica: &Arc<Replica>, log: &mut Option<Box<dyn Follower>>) -> Result<bool, Error> {
        loop {
            let end = match self.feed_of(replica.partition).join(replica) {
                JoinResult::Joined => return Ok(true),
                JoinResult::Ahead => return Ok(false),
                JoinResult::Behind(end) => end,
            };
            let shard = self.sharding.of(replica.partition);
            let log = log.get_or_insert_with(|| self.log.follow(shard, replica.position()));
            while replica.applied() < end {
                let record = match log.next(POLL)? {
                    Some(record) if !self.is_stopping() => record,
                    _ => return Ok(false),
                };
                self.note(&record);
                replica.apply(&record)?;
            }
        }
    }
}
