//! A storage node: replicas of partitions, fed by the log, answering reads.
//!
//! Roles: [`StorageNode`] starts and ends all threads; `steward.rs` makes the node hold what the map says, and tells the map
//! how it is; `bring_up.rs` takes a replica from a checkpoint to where the others are; `feed.rs` reads a shard of the log for all
//! of its replicas; `checkpoints.rs` writes images; `serve.rs` answers others; `pins.rs` keeps versions readable for them.
//!
//! Flow of a start: register (nothing is read here from then on) → the replicas that the map gives us are restored, as many
//! at once as the configuration allows → caught up → serving, as the map then says → workers come.
//!
//! What must never happen: a replica that says it serves and misses a version; two processes that speak for one node.

mod bring_up;
mod checkpoints;
mod feed;
mod pins;
mod replica;
mod serve;
mod steward;

use crate::Error;
use arc_swap::ArcSwap;
use feed::Feed;
use parking_lot::Mutex;
use pins::Pins;
use replica::Replica;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
pub use serve::Door;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_cluster::{
    Change, Graph, MapStore, MapWatch, NodeId, NodeState, Registration, ReplicaState, WatchConfig,
};
use tidegraph_log::{Body, Follower, LogStore, Position, Record};
use tidegraph_platform::{Clock, Disk, Objects, Random};
use tidegraph_storage::MemoryBudget;
use tidegraph_types::{Epoch, PartitionId, ShardId, Sharding, Str, Token, Version};

/// How a process of a fleet reaches the graph's log.
pub trait LogAccess: Send + Sync {
    /// Follows one of its shards from behind a position on.
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower>;

    /// Opens all of it to write, under an epoch that nobody else has.
    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error>;
}

/// Settings of a storage node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// How long older versions stay readable.
    pub window: Duration,
    /// How long a version is kept for a worker that asks for it, until it asks again.
    pub pin_lease: Duration,
    /// Most memory for all replicas together; `None`: whatever they need.
    pub memory_budget_bytes: Option<u64>,
    /// Local directory for properties that do not fit.
    pub spill_dir: Option<PathBuf>,
    /// Bytes that must stay free where `spill_dir` is: with less, the node leaves the map.
    pub least_free_bytes: u64,
    /// Replicas that are brought up at the same time.
    pub restores_at_once: usize,
    /// Versions after which a replica's next checkpoint is written.
    pub checkpoint_versions: u64,
    /// Time after which it is written if there is any new version.
    pub checkpoint_after: Duration,
    /// Checkpoints of a partition that are kept.
    pub checkpoints_kept: usize,
    /// Time between two signs of life.
    pub beat: Duration,
    /// How often the map is looked at.
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
            watch: WatchConfig { poll_ms: 1_000 },
        }
    }
}

/// What a node is given.
pub struct NodeParts {
    /// The graph's name.
    pub graph: String,
    /// What the node says of itself.
    pub registration: Registration,
    /// The partition map.
    pub map_store: Arc<dyn MapStore>,
    /// The log.
    pub log: Arc<dyn LogAccess>,
    /// Checkpoints and segments.
    pub objects: Arc<Objects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// The local disk.
    pub disk: Arc<dyn Disk>,
}

impl std::fmt::Debug for NodeParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeParts").field("registration", &self.registration).finish_non_exhaustive()
    }
}

/// What all threads of a node share.
pub(crate) struct Shared {
    pub config: NodeConfig,
    pub graph: Graph,
    pub id: NodeId,
    registration: Registration,
    /// How often the node has registered: says that it is this process which speaks.
    generation: AtomicU64,
    pub map_store: Arc<dyn MapStore>,
    pub watch: MapWatch,
    pub log: Arc<dyn LogAccess>,
    pub objects: Arc<Objects>,
    pub clock: Arc<dyn Clock>,
    disk: Arc<dyn Disk>,
    sharding: Sharding,
    /// One for each shard of the log.
    feeds: Vec<Feed>,
    pins: Pins,
    /// Replicas that are fed.
    replicas: ArcSwap<FxHashMap<PartitionId, Arc<Replica>>>,
    /// Partitions that are being brought up.
    coming: Mutex<FxHashSet<PartitionId>>,
    /// What checkpoints have to say besides data: the dictionary, and the lowest SID that was never handed out. Both may
    /// be ahead of a replica.
    meta: Mutex<Meta>,
    disk_full: AtomicBool,
    /// It was taken for lost, and is about to join again: perhaps it has, and does not know.
    rejoining: AtomicBool,
    draining: AtomicBool,
    stopping: AtomicBool,
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

/// Where the checkpoints of a partition are.
pub(crate) fn prefix_of(partition: PartitionId) -> String {
    format!("checkpoints/p{:05}", partition.0)
}

impl Shared {
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// What feeds the replicas of a partition.
    fn feed_of(&self, partition: PartitionId) -> &Feed {
        &self.feeds[usize::from(self.sharding.of(partition).0)]
    }

    /// A replica that is fed.
    pub fn get(&self, partition: PartitionId) -> Option<Arc<Replica>> {
        self.replicas.load().get(&partition).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Replica>> {
        let mut all: Vec<_> = self.replicas.load().values().cloned().collect();
        all.sort_by_key(|replica| replica.partition);
        all
    }

    fn insert(&self, replica: Arc<Replica>) {
        self.replicas.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            new.insert(replica.partition, replica.clone());
            new
        });
    }

    /// Lets a replica go. Readers that have it read on.
    pub fn give_up(&self, replica: &Replica) {
        replica.drop_it();
        self.feed_of(replica.partition).leave(replica);
        self.replicas.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            new.remove(&replica.partition);
            new
        });
    }

    /// Whether the map gives us a partition.
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

    /// The part of the memory budget that one replica has.
    pub fn memory(&self) -> Option<MemoryBudget> {
        let all = self.config.memory_budget_bytes?;
        let count = self.watch.map().held_by(&self.id).count().max(1) as u64;
        let dir = self.config.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
        Some(MemoryBudget { bytes: all / count, disk: self.disk.clone(), dir, process_bytes: None })
    }

    /// Takes from a record what checkpoints have to say besides data.
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

/// A storage node that runs.
pub struct StorageNode {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// What is under way on a node without threads.
    crew: Mutex<steward::Crew>,
}

impl std::fmt::Debug for StorageNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageNode").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl StorageNode {
    /// Registers the node and begins to bring up what the map gives it.
    ///
    /// `door` is what its server, which listens already, answers from.
    pub fn start(config: NodeConfig, parts: NodeParts, door: &Door) -> Result<Self, Error> {
        let (random, watched) = (parts.random.clone(), config.watch.clone());
        let this =
            Self::made(config, parts, door, |store, graph| MapWatch::start(store, graph, random, watched))?;
        for number in 0..this.shared.feeds.len() {
            let feeding = this.shared.clone();
            this.spawn(&format!("feed {number}"), move || feeding.feeds[number].run(&feeding))?;
        }
        let steward = this.shared.clone();
        this.spawn("steward", move || steward::run(&steward))?;
        let beating = this.shared.clone();
        this.spawn("beat", move || steward::beat(&beating))?;
        Ok(this)
    }

    /// Registers the node, which does something only when it is told to, on the caller's thread: for simulations.
    pub fn without_threads(config: NodeConfig, parts: NodeParts, door: &Door) -> Result<Self, Error> {
        Self::made(config, parts, door, MapWatch::without_thread)
    }

    fn made(
        config: NodeConfig,
        parts: NodeParts,
        door: &Door,
        watch: impl FnOnce(Arc<dyn MapStore>, &str) -> Result<MapWatch, tidegraph_cluster::Error>,
    ) -> Result<Self, Error> {
        let NodeParts { graph, registration, map_store, log, objects, clock, random: _, disk } = parts;
        if let Some(dir) = &config.spill_dir {
            disk.create_dir_all(dir)?;
        }
        map_store.change(&graph, None, &[Change::Register(registration.clone())])?;
        let watch = watch(map_store.clone(), &graph)?;
        let map = watch.map();
        let id = registration.id.clone();
        let generation = map.node(&id).map_or(0, |node| node.generation);
        let sharding = map.graph().sharding()?;
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
            disk,
            sharding,
            feeds: sharding.all().map(Feed::new).collect(),
            pins: Pins::default(),
            replicas: ArcSwap::default(),
            coming: Mutex::default(),
            meta: Mutex::default(),
            disk_full: AtomicBool::new(false),
            rejoining: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            beats: AtomicU64::new(0),
        });
        door.open(&shared);
        // What a process before this one had in memory is gone.
        for (partition, replica) in map.held_by(&shared.id) {
            if replica.state != ReplicaState::Restoring {
                shared.set_state(partition, ReplicaState::Restoring)?;
            }
        }
        shared.set_node(NodeState::Up)?;
        Ok(Self { shared, threads: Mutex::default(), crew: Mutex::new(steward::Crew::Caller(Vec::new())) })
    }

    /// Looks at each shard of the log, as the feeds' threads do; whether a record came.
    pub fn step_feed(&self) -> bool {
        let feeds = self.shared.feeds.iter();
        feeds.filter(|feed| matches!(feed.look(&self.shared), feed::Looked::Fed)).count() > 0
    }

    /// Looks at the map and does what it says, and writes the checkpoints that are due, as the steward's thread does.
    pub fn step(&self) {
        self.shared.watch.look();
        steward::step(&self.shared, &mut self.crew.lock());
    }

    /// Gives a sign of life.
    pub fn beat(&self) {
        steward::beat_once(&self.shared);
    }

    /// The replicas that are fed: partition, how far, and whether reads are answered.
    #[must_use]
    pub fn replicas(&self) -> Vec<(PartitionId, Version, bool)> {
        let all = self.shared.all();
        all.iter().map(|replica| (replica.partition, replica.applied(), replica.is_ready())).collect()
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        let thread = thread.map_err(|e| Error::Thread { name: name.to_owned(), reason: e.to_string() })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// How the node is, as JSON.
    #[must_use]
    pub fn status(&self) -> serde_json::Value {
        serve::status(&self.shared)
    }

    /// The lowest version that every replica here has applied.
    #[must_use]
    pub fn applied(&self) -> Version {
        self.shared.all().iter().map(|replica| replica.applied()).min().unwrap_or_default()
    }

    /// Asks for no new replicas; those that are here answer until they are dropped.
    pub fn drain(&self) -> Result<(), Error> {
        self.shared.draining.store(true, Ordering::Release);
        self.shared.set_node(NodeState::Draining)
    }

    /// Ends the node as its process's end would, but leaves the map first, so that nobody has to find out.
    pub fn stop(&self) {
        if self.shared.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.shared.set_node(NodeState::Gone) {
            tracing::warn!(%error, "the map was not told that the node goes");
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the node ended by a defect");
            }
        }
    }
}

impl Drop for StorageNode {
    fn drop(&mut self) {
        self.stop();
    }
}
