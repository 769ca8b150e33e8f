//! A worker: runs queries over a fleet and holds no data.
//!
//! Roles: [`Worker`] is the engine's backend; `routes.rs` makes routes of the partition map; `sequencer.rs` finds the
//! sequencer; `catalog.rs` keeps the dictionary; `indexes.rs` puts together what nodes say of indexes; `loads.rs` commits bulk loads;
//! `pins.rs` has nodes keep what long queries read.
//!
//! The read version is the newest one that this process knows: of its own commits at once, of others' by asking the
//! sequencer every few milliseconds. When there is no sequencer, reads go on at the last version that was known. While replicas
//! apply a bulk load, they go on at the version before it, unless somebody asks for a later one or this process made one.
//!
//! What must never happen: a commit carried out twice, or answered and lost; a read at a version above what is committed.

mod catalog;
mod indexes;
mod loads;
mod pins;
mod routes;
mod sequencer;

use crate::Error;
use catalog::RemoteCatalog;
use loads::{FleetLoad, Gate};
use parking_lot::Mutex;
use pins::Readers;
use routes::MapRoutes;
use sequencer::RemoteSequencer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_apl::{Apl, At, Catalog, ScanCursor, Statistics, VertexScan};
use tidegraph_cluster::{Graph, MapStore, MapWatch, SEQUENCER, WatchConfig};
use tidegraph_engine::{Asking, Backend, LoadHold, LoadOutcome, Reader, Snapshot, Standing};
use tidegraph_platform::{Clock, Random};
use tidegraph_remote::{Commits, Fleet, FleetConfig, Network, Outcome, RequestId, Security};
use tidegraph_storage::{Duplicate, IndexState};
use tidegraph_types::{CommitRequest, Epoch, ErrorCode, GuiHasher, PartitionCount, Version};

/// Settings of a worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Availability zone: replicas there are asked first.
    pub zone: String,
    /// How often the newest version is asked for. 0: only by [`Worker::look`], for a process that is stopped between
    /// requests.
    pub version_ms: u64,
    /// Longest time for one answer of the sequencer.
    pub answer_ms: u64,
    /// Longest time that a write waits for a sequencer.
    pub patience_ms: u64,
    /// A version that a query reads for longer than this is kept by the nodes.
    pub pin_after_ms: u64,
    /// How often they are asked to.
    pub pin_every_ms: u64,
    /// How often the map is looked at.
    pub watch: WatchConfig,
    /// Access to nodes.
    pub fleet: FleetConfig,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            zone: String::new(),
            version_ms: 10,
            answer_ms: 5_000,
            patience_ms: 10_000,
            pin_after_ms: 15_000,
            pin_every_ms: 5_000,
            watch: WatchConfig { poll_ms: 1_000 },
            fleet: FleetConfig::default(),
        }
    }
}

/// What a worker is given.
pub struct WorkerParts {
    /// The graph's name.
    pub graph: String,
    /// The partition map.
    pub map_store: Arc<dyn MapStore>,
    /// How nodes know the worker.
    pub security: Security,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
}

impl std::fmt::Debug for WorkerParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerParts").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// What queries of a process run on when the graph is in a fleet.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A sequencer is elected within seconds; who waits longer is better told.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether a first version was heard of.
const FIRST_LOOKS: Duration = Duration::from_millis(50);

/// A transaction reads at most so many versions in the past.
const MOST_BEHIND: u64 = 1_000;

struct Shared {
    graph: Graph,
    watch: Arc<MapWatch>,
    fleet: Fleet,
    sequencer: Arc<RemoteSequencer>,
    catalog: RemoteCatalog,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Names this run for nodes that keep versions.
    holder: RequestId,
    readers: Readers,
    pin_after: Duration,
    pin_every: Duration,
    newest: AtomicU64,
    /// The newest version that a caller here was told of as his own.
    own: AtomicU64,
    gate: Gate,
    /// Whether a thread looks for the end of what the gate waits for.
    gated: bool,
    /// Whether a version was ever heard of. A worker that knows of none must not answer as if the graph were empty.
    known: AtomicBool,
    epoch: AtomicU64,
    writable: AtomicBool,
    stopping: AtomicBool,
    /// How long a query waits for the first version that is heard of.
    first_patience: Duration,
    pause: Duration,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("graph", &self.graph)
            .field("newest", &self.newest)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// Loads the map and looks for the sequencer; a graph without one can be read once a version is known.
    pub fn start(config: WorkerConfig, parts: WorkerParts) -> Result<Self, Error> {
        let WorkerParts { graph, map_store, random, .. } = &parts;
        // Two requests to the map's store that need nothing of each other: a process that starts waits once for both.
        let (watch, lease) = std::thread::scope(|scope| {
            let lease = std::thread::Builder::new()
                .name("lease".into())
                .spawn_scoped(scope, || map_store.lease(graph, SEQUENCER));
            let watch = MapWatch::start(map_store.clone(), graph, random.clone(), config.watch.clone());
            (watch, lease.map(std::thread::ScopedJoinHandle::join))
        });
        // Whatever else came of it: the lease is looked at again when the sequencer is needed.
        let lease = lease.ok().and_then(Result::ok).and_then(Result::ok).flatten();
        let version_ms = config.version_ms;
        let shared = Shared::new(config, parts, watch?, None);
        if let Some(lease) = &lease {
            shared.sequencer.meet(lease);
        }
        shared.look();
        let this = Self { shared: shared.clone(), threads: Mutex::default() };
        if version_ms == 0 {
            return Ok(this);
        }
        let of = shared.clone();
        this.spawn("versions", move || {
            while !of.stopping.load(Ordering::Acquire) {
                of.clock.sleep(of.pause);
                of.look();
                loads::look_through_gate(&of);
            }
        })?;
        this.spawn("pins", move || pins::run(&shared))?;
        Ok(this)
    }

    /// A worker without threads of its own, over what stands for the network: for simulations. Its map is looked at when it proves stale,
    /// and it hears of versions by [`Worker::look`].
    pub fn without_threads(
        config: WorkerConfig,
        parts: WorkerParts,
        network: Arc<dyn Network>,
    ) -> Result<Self, Error> {
        let watch = MapWatch::without_thread(parts.map_store.clone(), &parts.graph)?;
        let config = WorkerConfig { version_ms: 0, ..config };
        let shared = Shared::new(config, parts, watch, Some(network));
        shared.look();
        Ok(Self { shared, threads: Mutex::default() })
    }

    /// Asks for the newest version now; answers whether there is a sequencer that says it. For a process that was stopped
    /// for a while: the first attempt may find only that its connection is gone.
    pub fn look(&self) -> bool {
        let shared = &self.shared;
        shared.look();
        if !shared.writable.load(Ordering::Acquire) {
            shared.look();
        }
        shared.writable.load(Ordering::Acquire)
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        let thread = thread.map_err(|e| Error::Thread { name: name.to_owned(), reason: e.to_string() })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Ends its threads.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the worker ended by a defect");
            }
        }
    }

    /// What nodes say of themselves, in order of their names; those that do not answer say why.
    #[must_use]
    pub fn fleet_status(&self) -> serde_json::Value {
        self.shared.fleet_status()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn new(
        config: WorkerConfig,
        parts: WorkerParts,
        watch: MapWatch,
        network: Option<Arc<dyn Network>>,
    ) -> Arc<Self> {
        let WorkerParts { graph, map_store, security, clock, random } = parts;
        let watch = Arc::new(watch);
        let made = watch.map().graph().clone();
        let turn = random.next_u64() as usize % 1024;
        let holder = random_id(&*random);
        let routes = Arc::new(MapRoutes::new(watch.clone(), config.zone.clone(), turn));
        let hasher = GuiHasher::with_bits(made.hash_bits);
        let mut access = config.fleet.clone();
        access.client.graph.clone_from(&graph);
        let fleet = Fleet::over(network, access, security, routes, hasher, clock.clone(), random.clone());
        let (answer, patience) =
            (Duration::from_millis(config.answer_ms), Duration::from_millis(config.patience_ms));
        let sequencer =
            RemoteSequencer::new(map_store, graph, fleet.clone(), clock.clone(), answer, patience);
        let sequencer = Arc::new(sequencer);
        Arc::new(Self {
            graph: made,
            watch,
            fleet,
            catalog: RemoteCatalog::new(sequencer.clone()),
            sequencer,
            clock,
            random,
            holder,
            readers: Readers::default(),
            pin_after: Duration::from_millis(config.pin_after_ms),
            pin_every: Duration::from_millis(config.pin_every_ms.max(1)),
            newest: AtomicU64::new(0),
            own: AtomicU64::new(0),
            gate: Gate::default(),
            gated: config.version_ms > 0,
            known: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            writable: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            first_patience: patience.min(FIRST_PATIENCE),
            pause: Duration::from_millis(config.version_ms.max(1)),
        })
    }

    /// A version is known, and that there was no change of indexes and constraints between `schema` and it.
    fn at_least(&self, version: Version, schema: Version) {
        // Before the version can be read at.
        self.fleet.schema_known(schema, version);
        self.newest.fetch_max(version.0, Ordering::AcqRel);
        self.known.store(true, Ordering::Release);
    }

    /// Asks for the newest version.
    fn look(&self) {
        match self.sequencer.ask_once(|sequencer| sequencer.newest()) {
            Ok(newest) => {
                if !self.gated || !self.known.load(Ordering::Acquire) || newest.load <= self.newest_version()
                {
                    // Somebody may have read at its version: nobody goes back behind it.
                    self.gate.pass(newest.load);
                }
                // Before its version can be read.
                self.gate.hear(newest.load);
                self.at_least(newest.version, newest.schema);
                self.epoch.fetch_max(newest.epoch.0, Ordering::AcqRel);
                self.writable.store(true, Ordering::Release);
            }
            Err(error) => {
                if self.writable.swap(false, Ordering::AcqRel) {
                    tracing::warn!(%error, "the sequencer does not answer; reads go on at the last version");
                }
            }
        }
    }

    /// Whether a version is known. In the first moments of a fleet nobody may have the lease yet: that is waited for, a little.
    fn hears_of_a_version(&self) -> bool {
        if self.known.load(Ordering::Acquire) {
            return true;
        }
        let end = self.clock.now() + self.first_patience;
        loop {
            // Where a thread looks, it alone does: callers may be many.
            if !self.gated {
                self.look();
            }
            if self.known.load(Ordering::Acquire) {
                return true;
            }
            if self.clock.now() >= end || self.stopping.load(Ordering::Acquire) {
                return false;
            }
            self.clock.sleep(FIRST_LOOKS);
        }
    }

    fn newest_version(&self) -> Version {
        Version(self.newest.load(Ordering::Acquire))
    }

    /// A caller here is told of a version that he made.
    fn made_here(&self, version: Version, schema: Version) {
        self.at_least(version, schema);
        self.own.fetch_max(version.0, Ordering::AcqRel);
    }

    /// Where to read: not before what callers here have made.
    fn now_at(&self) -> At {
        let newest = self.newest_version();
        let before = self.gate.before(newest);
        let own = self.own.load(Ordering::Acquire);
        let version = if before.0 < own { newest } else { before };
        At { version, epoch: Epoch::default() }
    }
}

fn random_id(random: &dyn Random) -> RequestId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random.next_u64().to_le_bytes());
    id[8..].copy_from_slice(&random.next_u64().to_le_bytes());
    RequestId(id)
}

/// What a client is told of an error between processes.
fn told(error: tidegraph_remote::Error) -> tidegraph_engine::Error {
    use tidegraph_remote::Error as Remote;
    let code = match &error {
        // What a load read before is to be read anew.
        Remote::Conflict { .. } | Remote::LoadUnknown(_) => ErrorCode::ConcurrentModification,
        Remote::Limit(_) | Remote::TooLarge { .. } => ErrorCode::QueryLimitExceeded,
        Remote::NotAllowed(_) => ErrorCode::InvalidArgument,
        Remote::Cancelled => ErrorCode::Cancelled,
        Remote::Overdue => ErrorCode::TimeLimitExceeded,
        _ => ErrorCode::Unavailable,
    };
    tidegraph_engine::Error::new(code, error.to_string())
}

impl Backend for Worker {
    fn partitions(&self) -> PartitionCount {
        self.shared.graph.partitions
    }

    fn hasher(&self) -> GuiHasher {
        GuiHasher::with_bits(self.shared.graph.hash_bits)
    }

    fn snapshot(&self, at_least: Option<Version>) -> Result<Snapshot, tidegraph_engine::Error> {
        if !self.shared.hears_of_a_version() {
            let message = "the graph's newest version is not known yet: its sequencer does not answer";
            return Err(tidegraph_engine::Error::new(ErrorCode::Unavailable, message));
        }
        let mut at = self.shared.now_at();
        if let Some(asked) = at_least.filter(|asked| *asked > at.version) {
            at.version = self.shared.newest_version();
            if asked > at.version {
                // Somebody says that it is committed. It is looked up: nodes are not asked for a version that is not there.
                self.shared.look();
                at.version = self.shared.newest_version();
            }
            if asked > at.version {
                return Err(tidegraph_apl::Error::Behind { applied: at.version, asked }.into());
            }
        }
        let held = self.shared.readers.begin(at.version, self.shared.clock.now());
        Ok(Snapshot { at, pin: None, held: Some(held) })
    }

    fn snapshot_at_hand(&self) -> Option<Snapshot> {
        let reached = self.shared.fleet.reached()?;
        let at = self.shared.now_at();
        // Too far behind it would meet conflicts, and nodes need not keep it.
        if reached >= at.version || at.version.0 - reached.0 > MOST_BEHIND {
            return None;
        }
        let held = self.shared.readers.begin(reached, self.shared.clock.now());
        Some(Snapshot { at: At { version: reached, ..at }, pin: None, held: Some(held) })
    }

    fn reader<'b>(&'b self, asking: Asking<'b>) -> Reader<'b> {
        let within = asking.deadline.map(|deadline| deadline.saturating_sub(self.shared.clock.now()));
        Reader::Made(Box::new(self.shared.fleet.query(within, asking.cancel.cloned())))
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn catalog(&self) -> &dyn Catalog {
        &self.shared.catalog
    }

    fn commit(&self, request: CommitRequest) -> Result<Version, tidegraph_engine::Error> {
        if request.mutations.is_empty() {
            return Ok(request.read_version);
        }
        let id = random_id(&*self.shared.random);
        let committed = self.shared.sequencer.commit(id, &request).map_err(told)?;
        self.shared.made_here(committed.version, committed.schema);
        Ok(committed.version)
    }

    fn totals(&self) -> (u64, u64) {
        let statistics = self.shared.fleet.query(None, None).counts();
        (statistics.vertices, statistics.edges)
    }

    fn statistics(&self) -> Arc<Statistics> {
        self.shared.fleet.query(None, None).counts()
    }

    fn is_empty(&self, at: Version) -> Result<bool, tidegraph_engine::Error> {
        let apl = self.shared.fleet.query(None, None);
        let scan = VertexScan { max_rows: 1, ..VertexScan::default() };
        let (mut found, mut cursor) = (Vec::new(), Some(ScanCursor::default()));
        while let Some(from) = cursor {
            cursor =
                apl.scan_vertices(At { version: at, epoch: Epoch::default() }, &scan, from, &mut found)?;
            if !found.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn check_room(&self) -> Result<(), tidegraph_engine::Error> {
        // Nodes keep to their budgets by themselves, and leave the map where they cannot.
        Ok(())
    }

    fn indexes(&self) -> Result<Vec<IndexState>, tidegraph_engine::Error> {
        self.shared.indexes()
    }

    fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), tidegraph_engine::Error> {
        self.shared.wait_for_indexes(stop)
    }

    fn duplicate(&self, index: &str) -> Result<Option<Duplicate>, tidegraph_engine::Error> {
        self.shared.duplicate(index)
    }

    fn begin_load(&self, load_id: &str) -> Result<Box<dyn LoadHold + '_>, tidegraph_engine::Error> {
        Ok(Box::new(FleetLoad::begin(&self.shared, load_id)?))
    }

    fn load_outcome(&self, load_id: &str, since: Version) -> Result<LoadOutcome, tidegraph_engine::Error> {
        let id = loads::id_of(load_id);
        let outcome = self.shared.sequencer.ask_once(|sequencer| sequencer.outcome(id, since));
        Ok(match outcome.map_err(told)? {
            Outcome::Committed(version) => LoadOutcome::Visible(version),
            Outcome::Refused => LoadOutcome::NotVisible,
            Outcome::Unknown => LoadOutcome::Unknown,
        })
    }

    fn has_replicas(&self) -> bool {
        true
    }

    fn standing(&self) -> Standing {
        Standing {
            version: Version(self.shared.newest.load(Ordering::Acquire)),
            epoch: Epoch(self.shared.epoch.load(Ordering::Acquire)),
            writable: self.shared.writable.load(Ordering::Acquire),
            ..Standing::default()
        }
    }

    fn fleet_report(&self) -> Option<String> {
        Some(self.fleet_status().to_string())
    }
}
