//! A storage node: replicas of partitions, fed by the log, that answer reads.
//!
//! Roles: [`StorageNode`] starts and stops all threads; `reconciler.rs` holds the replicas that the map assigns;
//! `heartbeat.rs` reports the state of the node to the map; `bring_up.rs` brings a replica from a checkpoint to
//! the version of the others; `feed.rs` reads a shard of the log for all of its replicas; `checkpoints.rs`
//! writes checkpoints; `copies.rs` keeps copies of them on the local disk; `service.rs` answers other processes; `pins.rs` keeps versions readable for them;
//! `supervision.rs` ends the node if one of its threads panics.
//!
//! Flow of a start: the node registers, and no reads are routed to it any more → it restores the
//! replicas that the map assigns to it, as many at once as the configuration allows → each replica
//! catches up with the log → the node marks it as serving in the map → workers send reads.
//!
//! What must never happen: a replica serves while it lacks a record (FLT-1); two processes act as one node.

mod bring_up;
mod checkpoints;
mod copies;
mod feed;
mod heartbeat;
mod pins;
mod reconciler;
mod replica;
mod retries;
mod service;
mod supervision;

use crate::Error;
use arc_swap::ArcSwap;
use copies::CopyKeeper;
use feed::Feed;
use parking_lot::Mutex;
use pins::Pins;
use reconciler::ReplicaReconciler;
use replica::Replica;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
pub use service::NodeService;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_cluster::{
    Change, Graph, Lineage, MapStore, MapWatch, NodeId, NodeRelease, NodeState, Registration, Release,
    ReplicaState, WatchConfig, check_join, is_applied_elsewhere,
};
use tidegraph_log::{Body, LogBackend, Record};
use tidegraph_platform::{Clock, Disk, Objects, Random};
use tidegraph_storage::MemoryBudget;
use tidegraph_storage::checkpoint::{LocalCopies, RestoreReads};
use tidegraph_types::{PartitionId, Sharding, Str, Token, Version};

/// Settings of a storage node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// How long older versions stay readable.
    pub window: Duration,
    /// How long a version stays readable for a worker after each of its requests to keep it.
    pub pin_lease: Duration,
    /// Memory limit of all replicas together, in bytes; `None`: no limit.
    pub memory_budget_bytes: Option<u64>,
    /// Local directory for property pages that exceed the memory limit.
    pub spill_dir: Option<PathBuf>,
    /// Minimum of free bytes on the disk of `spill_dir`; with fewer, the node leaves the map.
    pub least_free_bytes: u64,
    /// Number of replicas that are brought up at the same time.
    pub restores_at_once: usize,
    /// Number of new versions after which a replica's next checkpoint is due.
    pub checkpoint_versions: u64,
    /// Time after which it is due if there is any new version.
    pub checkpoint_after: Duration,
    /// Number of checkpoints that are kept for each partition.
    pub checkpoints_kept: usize,
    /// Time between two heartbeats.
    pub beat: Duration,
    /// How often the map is reloaded.
    pub watch: WatchConfig,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(60),
            pin_lease: Duration::from_secs(30),
            memory_budget_bytes: None,
            spill_dir: None,
            least_free_bytes: 1 << 30,
            restores_at_once: 2,
            checkpoint_versions: 500_000,
            checkpoint_after: Duration::from_secs(300),
            checkpoints_kept: 2,
            beat: Duration::from_secs(1),
            watch: WatchConfig { refresh_every: Duration::from_secs(1) },
        }
    }
}

/// The services and settings that a node depends on.
pub struct NodeParts {
    /// The graph's name.
    pub graph: String,
    /// The node's id, endpoint, zone and capacity.
    pub registration: Registration,
    /// The partition map.
    pub map_store: Arc<dyn MapStore>,
    /// The log.
    pub log: Arc<dyn LogBackend>,
    /// Object store with checkpoints and segments.
    pub objects: Arc<Objects>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Random numbers, for the jitter of map reloads and the ids of stores.
    pub random: Arc<dyn Random>,
    /// The local disk.
    pub disk: Arc<dyn Disk>,
    /// What the restores of all graphs of the process read at the same time.
    pub reads: Arc<RestoreReads>,
    /// Copies of checkpoints on the local disk, of this graph only; `None`: none are kept.
    pub copies: Option<Arc<LocalCopies>>,
}

impl std::fmt::Debug for NodeParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeParts").field("registration", &self.registration).finish_non_exhaustive()
    }
}

/// The state that all threads of a node share.
pub(crate) struct Shared {
    pub config: NodeConfig,
    /// The graph as it was when the node started. A split changes the number of partitions.
    pub graph: Graph,
    pub id: NodeId,
    registration: Registration,
    /// Number of registrations of the node's id so far: identifies this process among those that used the id.
    generation: AtomicU64,
    pub map_store: Arc<dyn MapStore>,
    pub watch: MapWatch,
    pub log: Arc<dyn LogBackend>,
    pub objects: Arc<Objects>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    disk: Arc<dyn Disk>,
    reads: Arc<RestoreReads>,
    copies: Option<Arc<CopyKeeper>>,
    sharding: Sharding,
    /// One feed for each shard of the log.
    feeds: Vec<Feed>,
    pins: Pins,
    /// Replicas that a feed applies records to.
    replicas: ArcSwap<FxHashMap<PartitionId, Arc<Replica>>>,
    /// Partitions that are being brought up.
    bringing_up: Mutex<FxHashSet<PartitionId>>,
    /// What a checkpoint contains besides data: the dictionary, and the lowest SID that was never handed out (IDS-1).
    /// Both may be ahead of a replica.
    meta: Mutex<Meta>,
    disk_full: AtomicBool,
    /// Whether the node is joining again after it was marked as lost. It may have joined without knowing.
    rejoining: AtomicBool,
    draining: AtomicBool,
    stopping: AtomicBool,
    /// Why the node ended by itself.
    failure: Mutex<Option<String>>,
    beats: AtomicU64,
}

#[derive(Default)]
struct Meta {
    tokens: BTreeMap<Token, Str>,
    next_sid: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Prefix of a partition's checkpoints in the object store.
pub(crate) fn prefix_of(partition: PartitionId) -> String {
    format!("checkpoints/p{:05}", partition.0)
}

impl Shared {
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The feed of a partition's replicas.
    fn feed_of(&self, partition: PartitionId) -> &Feed {
        &self.feeds[usize::from(self.sharding.of(partition).0)]
    }

    /// Returns the replica of a partition, if it is fed.
    pub fn get(&self, partition: PartitionId) -> Option<Arc<Replica>> {
        self.replicas.load().get(&partition).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Replica>> {
        let mut all: Vec<_> = self.replicas.load().values().cloned().collect();
        all.sort_by_key(|replica| replica.partition);
        all
    }

    /// Adds a replica. It replaces a stuck one.
    fn insert(&self, replica: Arc<Replica>) {
        let old = self.replicas.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            new.insert(replica.partition, replica.clone());
            new
        });
        if let Some(old) = old.get(&replica.partition).filter(|old| old.store_id != replica.store_id) {
            old.mark_dropped();
        }
    }

    /// Gives a replica up. Readers that hold it can continue to read.
    pub fn give_up(&self, replica: &Replica) {
        replica.mark_dropped();
        self.feed_of(replica.partition).leave(replica);
        self.replicas.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            // Another replica may have replaced it.
            if new.get(&replica.partition).is_some_and(|held| held.store_id == replica.store_id) {
                new.remove(&replica.partition);
            }
            new
        });
    }

    /// Whether another node answers reads of a partition and has applied a version.
    pub fn is_applied_elsewhere(&self, partition: PartitionId, version: Version) -> Result<bool, Error> {
        let beats = self.map_store.heartbeats(&self.graph.name)?;
        Ok(is_applied_elsewhere(&self.watch.map(), &beats, partition, version, Some(&self.id)))
    }

    /// Whether the map assigns a partition to this node.
    pub fn is_wanted(&self, partition: PartitionId) -> bool {
        self.watch.map().replicas(partition).iter().any(|replica| replica.node == self.id)
    }

    pub fn set_state(&self, partition: PartitionId, state: ReplicaState) -> Result<(), Error> {
        let change = Change::SetReplica { partition, node: self.id.clone(), state };
        self.map_store.change(&self.graph.name, None, &[change])?;
        self.watch.look();
        Ok(())
    }

    pub fn set_node(&self, state: NodeState) -> Result<(), Error> {
        let change = Change::SetNode { node: self.id.clone(), state };
        self.map_store.change(&self.graph.name, None, &[change])?;
        self.watch.look();
        Ok(())
    }

    /// The share of the memory budget for one replica.
    pub fn memory(&self) -> Option<MemoryBudget> {
        let all = self.config.memory_budget_bytes?;
        let count = self.watch.map().held_by(&self.id).count().max(1) as u64;
        let dir = self.config.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
        Some(MemoryBudget { bytes: all / count, disk: self.disk.clone(), dir, process_bytes: None })
    }

    /// Takes tokens and reserved SIDs from a record, for the next checkpoint.
    pub fn note(&self, record: &Record) {
        let assigned = if let Body::Tokens { assigned } = &record.body { assigned.as_slice() } else { &[] };
        let next_sid = record.body.next_sid().map_or(0, |sid| sid.0);
        if next_sid > 0 || !assigned.is_empty() {
            self.note_meta(assigned, next_sid);
        }
    }

    pub fn note_meta(&self, tokens: &[(Token, Str)], next_sid: u64) {
        let mut meta = self.meta.lock();
        meta.tokens.extend(tokens.iter().cloned());
        meta.next_sid = meta.next_sid.max(next_sid);
    }
}

/// A running storage node.
pub struct StorageNode {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The reconciler of a node without threads.
    reconciler: Mutex<ReplicaReconciler>,
}

impl std::fmt::Debug for StorageNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageNode").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl StorageNode {
    /// Registers the node and starts to bring up the replicas that the map assigns to it. The server of `service` must
    /// be listening already.
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be read or changed, [`Error::Disk`] if the spill directory cannot be created,
    /// [`Error::Log`] if the graph's number of shards is invalid, [`Error::Thread`] if the system gives no thread.
    pub fn start(config: NodeConfig, parts: NodeParts, service: &NodeService) -> Result<Self, Error> {
        let (random, watched) = (parts.random.clone(), config.watch.clone());
        let this = Self::build(config, parts, service, |store, graph| {
            MapWatch::start(store, graph, random, watched)
        })?;
        for number in 0..this.shared.feeds.len() {
            let feeding = this.shared.clone();
            this.spawn(&format!("feed {number}"), move || feeding.feeds[number].run(&feeding))?;
        }
        let reconciled = this.shared.clone();
        this.spawn("reconciler", move || ReplicaReconciler::with_threads().run(&reconciled))?;
        let beating = this.shared.clone();
        this.spawn("heartbeat", move || heartbeat::run(&beating))?;
        Ok(this)
    }

    /// Registers a node that has no threads: it works only inside of calls, on the caller's thread. For simulations.
    ///
    /// # Errors
    /// The same as [`StorageNode::start`], except for threads.
    pub fn without_threads(
        config: NodeConfig,
        parts: NodeParts,
        service: &NodeService,
    ) -> Result<Self, Error> {
        Self::build(config, parts, service, MapWatch::without_thread)
    }

    fn build(
        config: NodeConfig,
        parts: NodeParts,
        service: &NodeService,
        watch: impl FnOnce(Arc<dyn MapStore>, &str) -> Result<MapWatch, tidegraph_cluster::Error>,
    ) -> Result<Self, Error> {
        let NodeParts { graph, registration, map_store, log, objects, clock, random, disk, reads, copies } =
            parts;
        if let Some(dir) = &config.spill_dir {
            disk.create_dir_all(dir)?;
        }
        let id = registration.id.clone();
        check_join(&*map_store, &graph, &id, Lineage::THIS)?;
        map_store.change(&graph, None, &[Change::Register(registration.clone())])?;
        let watch = watch(map_store.clone(), &graph)?;
        let map = watch.map();
        let generation = map.node(&id).map_or(0, |node| node.generation);
        map_store.note_release(&graph, &id, &NodeRelease { generation, release: Release::THIS })?;
        let sharding = map.graph().sharding()?;
        let copies = copies.map(|copies| Arc::new(CopyKeeper::new(copies, config.checkpoint_after)));
        let shared = Arc::new(Shared {
            graph: map.graph().clone(),
            config,
            id,
            registration,
            generation: AtomicU64::new(generation),
            map_store,
            watch,
            log,
            objects,
            clock,
            random,
            disk,
            reads,
            copies,
            sharding,
            feeds: sharding.all().map(Feed::new).collect(),
            pins: Pins::default(),
            replicas: ArcSwap::default(),
            bringing_up: Mutex::default(),
            meta: Mutex::default(),
            disk_full: AtomicBool::new(false),
            rejoining: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            failure: Mutex::default(),
            beats: AtomicU64::new(0),
        });
        service.attach(&shared);
        // The replicas of an earlier process with this id were in memory, so they are gone.
        for (partition, replica) in map.held_by(&shared.id) {
            if replica.state != ReplicaState::Restoring {
                shared.set_state(partition, ReplicaState::Restoring)?;
            }
        }
        shared.set_node(NodeState::Up)?;
        Ok(Self {
            shared,
            threads: Mutex::default(),
            reconciler: Mutex::new(ReplicaReconciler::without_threads()),
        })
    }

    /// Runs a step of a node without threads, supervised as a thread is. A node that has ended does nothing.
    fn step(&self, name: &str, work: impl FnOnce()) {
        if !self.shared.is_stopping() {
            self.shared.supervise(name, work);
        }
    }

    /// Reads one record of each shard of the log, as the feeds' threads do. Returns whether any record came.
    pub fn poll_log(&self) -> bool {
        let mut applied = false;
        self.step("feed", || {
            for feed in &self.shared.feeds {
                applied |= matches!(feed.poll(&self.shared), feed::PollResult::Applied);
            }
        });
        applied
    }

    /// Reloads the map, brings replicas in line with it and writes due checkpoints, as the reconciler's thread does.
    pub fn reconcile(&self) {
        self.step("reconciler", || {
            self.shared.watch.look();
            self.reconciler.lock().step(&self.shared);
        });
    }

    /// Sends a heartbeat.
    pub fn send_heartbeat(&self) {
        self.step("heartbeat", || heartbeat::send(&self.shared));
    }

    /// Returns the fed replicas: the partition, the last applied version, and whether the replica answers reads.
    #[must_use]
    pub fn replicas(&self) -> Vec<(PartitionId, Version, bool)> {
        let all = self.shared.all();
        all.iter().map(|replica| (replica.partition, replica.applied(), replica.is_ready())).collect()
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let (shared, of) = (self.shared.clone(), name.to_owned());
        let thread = tidegraph_platform::spawn(name, move || shared.supervise(&of, work));
        let thread = thread.map_err(|source| Error::Thread { name: name.to_owned(), source })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Returns the status of the node and of its replicas, as JSON.
    #[must_use]
    pub fn status(&self) -> serde_json::Value {
        service::status(&self.shared)
    }

    /// Returns why the node ended by itself, if it did: one of its threads panicked. The process should end too.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().clone()
    }

    /// Whether the graph is in the map no more.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        matches!(self.shared.watch.error(), Some(tidegraph_cluster::Error::NotFound { .. }))
    }

    /// Returns the lowest version that every replica here has applied.
    #[must_use]
    pub fn applied(&self) -> Version {
        self.shared.all().iter().map(|replica| replica.applied()).min().unwrap_or_default()
    }

    /// Asks the map to assign no new replicas. Replicas answer reads until the map removes them.
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be changed.
    pub fn drain(&self) -> Result<(), Error> {
        self.shared.draining.store(true, Ordering::Release);
        self.shared.set_node(NodeState::Draining)
    }

    /// Leaves the map and stops all threads.
    pub fn stop(&self) {
        // A node that failed has left the map already.
        let was_running = !self.shared.stopping.swap(true, Ordering::AcqRel);
        if was_running
            && !self.is_dropped()
            && let Err(error) = self.shared.set_node(NodeState::Gone)
        {
            tracing::warn!(%error, "cannot tell the map that the node leaves");
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the node panicked");
            }
        }
    }
}

impl Drop for StorageNode {
    fn drop(&mut self) {
        self.stop();
    }
}
