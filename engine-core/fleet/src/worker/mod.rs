//! A worker: runs queries over a fleet and holds no data.
//!
//! Roles: [`Worker`] is the engine's backend; `routes.rs` derives routes from the partition map; `sequencer.rs` finds
//! the sequencer; `catalog.rs` caches the dictionary; `indexes.rs` combines what nodes report about indexes; `loads.rs`
//! commits bulk loads; `pins.rs` has nodes keep the versions that long queries read.
//!
//! The read version is the newest one that this process knows: it learns of its own commits at once, and of others by
//! asking the sequencer every few milliseconds. A version counts as known only once this process has all names that the
//! graph uses at it. Without a sequencer, reads continue at the last known version. While replicas apply a bulk load,
//! reads continue at the version before it, unless the caller asks for a later one or this process committed one.
//!
//! A graph may be dropped and made again under its name, also while this process is stopped. Nodes refuse connections for
//! another incarnation of the graph than their own, so what is known here is never used with the next graph.
//!
//! What must never happen: a commit that is carried out twice (TXN-4), or acknowledged and lost; a read above the
//! newest committed version, or at one whose names are not all known.

mod catalog;
mod indexes;
mod loads;
mod pins;
mod routes;
mod sequencer;

use crate::Error;
use catalog::RemoteCatalog;
use loads::{FleetLoad, LoadGate};
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
use tidegraph_engine::{
    Backend, BackendStatus, Earlier, FeedError, KeyedCommit, LoadHold, LoadOutcome, ReadOptions, Reader,
    RequestKey, Retry, Snapshot,
};
use tidegraph_platform::{Clock, Random};
use tidegraph_remote::{
    ChangesAnswer, CommitOutcome, Commits, Committed, FleetClient, FleetConfig, Network, Newest, RequestId,
    Security,
};
use tidegraph_storage::{Duplicate, IndexState};
use tidegraph_types::{
    Change, Changed, ChangesPage, ChangesRequest, CommitRequest, Epoch, ErrorCode, GremlinSettings,
    GuiHasher, LoadTurn, PartitionCount, Token, Version,
};

/// Settings of a worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Availability zone of the worker; replicas in this zone are asked first.
    pub zone: String,
    /// Pause between two requests for the newest version. Zero: only [`Worker::refresh_version`] asks, for a process
    /// that is stopped between requests.
    pub version_every: Duration,
    /// Longest wait for one answer of the sequencer.
    pub answer_within: Duration,
    /// Longest time that a write waits for a sequencer.
    pub patience: Duration,
    /// How long a query reads a version before nodes are asked to keep it.
    pub pin_after: Duration,
    /// Time between two such requests.
    pub pin_every: Duration,
    /// How often the map is reloaded.
    pub watch: WatchConfig,
    /// Connections to nodes.
    pub fleet: FleetConfig,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            zone: String::new(),
            version_every: Duration::from_millis(10),
            answer_within: Duration::from_secs(5),
            patience: Duration::from_secs(10),
            pin_after: Duration::from_secs(15),
            pin_every: Duration::from_secs(5),
            watch: WatchConfig { refresh_every: Duration::from_secs(1) },
            fleet: FleetConfig::default(),
        }
    }
}

/// The services and settings that a worker depends on.
pub struct WorkerParts {
    /// The graph's name.
    pub graph: String,
    /// The partition map.
    pub map_store: Arc<dyn MapStore>,
    /// Token and certificates for nodes.
    pub security: Security,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Random numbers, for ids and jitter.
    pub random: Arc<dyn Random>,
}

impl std::fmt::Debug for WorkerParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerParts").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// The backend of a process whose graph is in a fleet.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How long a query waits for the first version. A sequencer is elected within seconds; after that an error is better.
const FIRST_VERSION_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two requests for the first version.
const FIRST_VERSION_POLL: Duration = Duration::from_millis(50);

/// Longest wait for a look at the map, when the sequencer does not answer.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// Shortest pause of a thread, whatever the configuration says.
const SHORTEST: Duration = Duration::from_millis(1);

/// Largest distance between the newest version and the one that a transaction reads.
const MOST_BEHIND: u64 = 1_000;

struct Shared {
    graph: Graph,
    watch: Arc<MapWatch>,
    fleet: FleetClient,
    sequencer: Arc<RemoteSequencer>,
    catalog: RemoteCatalog,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Identifies this process to nodes that keep versions for it.
    holder: RequestId,
    readers: Readers,
    pin_after: Duration,
    pin_every: Duration,
    newest: AtomicU64,
    /// The newest version that a caller of this process committed.
    own: AtomicU64,
    gate: LoadGate,
    /// Whether a thread asks for the newest version and opens the gate.
    gated: bool,
    /// Whether loads have threads of their own.
    threads: bool,
    /// Whether any version is known. Without one the worker must not answer as if the graph were empty.
    known: AtomicBool,
    epoch: AtomicU64,
    /// Version of a record that no replica can apply, by the last answer of the sequencer; 0: none. Reads stay below
    /// it.
    halted: AtomicU64,
    writable: AtomicBool,
    stopping: AtomicBool,
    /// How long a query waits for the first known version.
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
    /// Loads the map and looks for the sequencer. Without a sequencer the worker starts too; it answers reads once it
    /// knows a version.
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be loaded, [`Error::Thread`] if the system gives no thread.
    pub fn start(config: WorkerConfig, parts: WorkerParts) -> Result<Self, Error> {
        let WorkerParts { graph, map_store, random, .. } = &parts;
        // Two independent requests to the map's store, sent in parallel, so that the start waits only once.
        let (watch, lease) = std::thread::scope(|scope| {
            let lease = std::thread::Builder::new()
                .name("lease".into())
                .spawn_scoped(scope, || map_store.lease(graph, SEQUENCER));
            let watch = MapWatch::start(map_store.clone(), graph, random.clone(), config.watch.clone());
            (watch, lease.map(std::thread::ScopedJoinHandle::join))
        });
        // An error does not matter here: the lease is read again when the sequencer is needed.
        let lease = lease.ok().and_then(Result::ok).and_then(Result::ok).flatten();
        let has_threads = !config.version_every.is_zero();
        let shared = Shared::new(config, parts, watch?, None);
        if let Some(lease) = &lease {
            shared.sequencer.adopt(lease);
        }
        shared.refresh_version();
        let this = Self { shared: shared.clone(), threads: Mutex::default() };
        if !has_threads {
            return Ok(this);
        }
        let of = shared.clone();
        this.spawn("versions", move || {
            while !of.stopping.load(Ordering::Acquire) {
                of.clock.sleep(of.pause);
                of.refresh_version();
                loads::watch_gate(&of);
            }
        })?;
        this.spawn("pins", move || pins::run(&shared))?;
        Ok(this)
    }

    /// Creates a worker without threads, over a substitute for the network. For simulations. It reloads the map when
    /// the map proves stale, and learns of versions from [`Worker::refresh_version`].
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be loaded.
    pub fn without_threads(
        config: WorkerConfig,
        parts: WorkerParts,
        network: Arc<dyn Network>,
    ) -> Result<Self, Error> {
        let watch = MapWatch::without_thread(parts.map_store.clone(), &parts.graph)?;
        let config = WorkerConfig { version_every: Duration::ZERO, ..config };
        let shared = Shared::new(config, parts, watch, Some(network));
        shared.refresh_version();
        Ok(Self { shared, threads: Mutex::default() })
    }

    /// Asks the sequencer for the newest version, and returns whether it answered. It is asked twice if need be: in a
    /// process that was stopped for a while, the first attempt may only find that the connection is gone. If it does not
    /// answer then, the graph may have been dropped and made again meanwhile: the map is looked at, so that
    /// [`Worker::is_dropped`] says so.
    pub fn refresh_version(&self) -> bool {
        let shared = &self.shared;
        shared.refresh_version();
        if !shared.writable.load(Ordering::Acquire) {
            shared.refresh_version();
        }
        let answered = shared.writable.load(Ordering::Acquire);
        if !answered {
            shared.watch.stale(shared.watch.map().epoch(), LOOK_WITHIN);
        }
        answered
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = tidegraph_platform::spawn(name, work);
        let thread = thread.map_err(|source| Error::Thread { name: name.to_owned(), source })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Stops all threads.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the worker panicked");
            }
        }
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// Whether the graph is in the map no more. Another one of its name may be: this worker never answers for that one.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        matches!(self.shared.watch.error(), Some(tidegraph_cluster::Error::NotFound { .. }))
    }

    /// Returns the map and the status of each node, ordered by id; for a node that does not answer, the error.
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
        let threads = network.is_none();
        let watch = Arc::new(watch);
        let made = watch.map().graph().clone();
        let turn = random.next_u64() as usize % 1024;
        let holder = random_id(&*random);
        let routes = Arc::new(MapRoutes::new(watch.clone(), config.zone.clone(), turn));
        let hasher = GuiHasher::with_bits(made.hash_bits);
        let mut access = config.fleet.clone();
        access.client.graph.clone_from(&graph);
        access.client.incarnation =
            watch.map().incarnation().map_or_else(String::new, |incarnation| incarnation.as_str().into());
        let fleet =
            FleetClient::over(network, access, security, routes, hasher, clock.clone(), random.clone());
        let (answer, patience) = (config.answer_within, config.patience);
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
            pin_after: config.pin_after,
            pin_every: config.pin_every.max(SHORTEST),
            newest: AtomicU64::new(0),
            own: AtomicU64::new(0),
            gate: LoadGate::default(),
            gated: !config.version_every.is_zero(),
            // A substitute for the network is that of a simulation, which has one thread.
            threads,
            known: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            halted: AtomicU64::new(0),
            writable: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            first_patience: patience.min(FIRST_VERSION_WITHIN),
            pause: config.version_every.max(SHORTEST),
        })
    }

    /// Notes a committed version, and that indexes and constraints did not change between `schema` and it. `token` is
    /// the highest that the graph has at the version, if the caller knows it.
    ///
    /// # Errors
    /// Those of [`RemoteCatalog::cover`]; then the version is not read.
    fn note_version(
        &self,
        version: Version,
        schema: Version,
        token: Option<Token>,
    ) -> Result<(), tidegraph_remote::Error> {
        // Both before the version can be read.
        self.catalog.cover(token)?;
        self.fleet.schema_known(schema, version);
        self.newest.fetch_max(version.0, Ordering::AcqRel);
        self.known.store(true, Ordering::Release);
        Ok(())
    }

    /// Lets queries read at the newest version, and notes its load.
    fn adopt(&self, newest: Newest) -> Result<(), tidegraph_remote::Error> {
        let halted = newest.halted.unwrap_or_default();
        if self.halted.swap(halted.0, Ordering::AcqRel) != halted.0 {
            match newest.halted {
                Some(record) => {
                    tracing::error!(%record, "no replica can apply a record: reads stay below it")
                }
                None => tracing::warn!("reads go on at the newest version"),
            }
        }
        // Before the version of the load can be read.
        self.catalog.cover(Some(newest.newest_token))?;
        if !self.gated || !self.known.load(Ordering::Acquire) || newest.load <= self.newest_version() {
            // A reader may have read at the load's version: no later read may see an older one.
            self.gate.open(newest.load);
        }
        // Noted before the load's version can be read.
        self.gate.note(newest.load);
        self.note_version(newest.version, newest.schema, Some(newest.newest_token))?;
        self.epoch.fetch_max(newest.epoch.0, Ordering::AcqRel);
        self.writable.store(true, Ordering::Release);
        Ok(())
    }

    /// Asks the sequencer for the newest version.
    fn refresh_version(&self) {
        let newest = self.sequencer.call_once(|sequencer| sequencer.newest());
        if let Err(error) = newest.and_then(|newest| self.adopt(newest))
            && self.writable.swap(false, Ordering::AcqRel)
        {
            tracing::warn!(%error, "the sequencer does not answer; reads go on at the last version");
        }
    }

    /// Waits briefly until a version is known, and returns whether one is. A new
    /// fleet has no sequencer for some moments.
    fn wait_for_first_version(&self) -> bool {
        if self.known.load(Ordering::Acquire) {
            return true;
        }
        let end = self.clock.now() + self.first_patience;
        loop {
            // With a thread that asks, callers do not: there may be many.
            if !self.gated {
                self.refresh_version();
            }
            if self.known.load(Ordering::Acquire) {
                return true;
            }
            if self.clock.now() >= end || self.stopping.load(Ordering::Acquire) {
                return false;
            }
            self.clock.sleep(FIRST_VERSION_POLL);
        }
    }

    fn newest_version(&self) -> Version {
        Version(self.newest.load(Ordering::Acquire))
    }

    /// Notes a version that a caller of this process committed. If its names are not known now, reads of this process
    /// fail until they are: a caller must find what it wrote.
    fn note_own_commit(&self, committed: Committed) {
        let Committed { version, schema, newest_token, earlier: _ } = committed;
        if let Err(error) = self.note_version(version, schema, newest_token) {
            tracing::warn!(%version, %error, "cannot get the names that the graph has at a version");
        }
        self.own.fetch_max(version.0, Ordering::AcqRel);
    }

    /// After a conflict with a version that this process does not know, asks for the newest version, so that the next
    /// attempt reads what this one conflicted with.
    fn catch_up_after(&self, error: &tidegraph_remote::Error) {
        if let tidegraph_remote::Error::Conflict { written, .. } = error
            && *written > self.newest_version()
        {
            self.refresh_version();
        }
    }

    /// Converts the error of a commit. After a conflict the next attempt reads what this one conflicted with.
    fn commit_error(&self, error: tidegraph_remote::Error) -> tidegraph_engine::Error {
        self.catch_up_after(&error);
        to_commit_error(error)
    }

    /// Returns whether this process can read what its callers committed. If not, asks the sequencer once.
    fn knows_own_commits(&self) -> bool {
        let knows = || self.newest_version().0 >= self.own.load(Ordering::Acquire);
        knows() || {
            self.refresh_version();
            knows()
        }
    }

    /// Returns a version, or the last one before a record that no replica can apply.
    fn below_halt(&self, version: Version) -> Version {
        match self.halted.load(Ordering::Acquire) {
            0 => version,
            halted => version.min(Version(halted - 1)),
        }
    }

    /// Returns the version to read at, which is no older than the newest commit of this process, unless no replica can
    /// apply that commit.
    fn read_position(&self) -> At {
        let newest = self.newest_version();
        let before = self.gate.before(newest);
        let own = self.own.load(Ordering::Acquire);
        let version = self.below_halt(if before.0 < own { newest } else { before });
        At { version, epoch: Epoch::default() }
    }
}

fn random_id(random: &dyn Random) -> RequestId {
    let low = u128::from(random.next_u64());
    RequestId(u128::from(random.next_u64()) << 64 | low)
}

/// Converts an error between processes to one for clients.
fn to_engine_error(error: tidegraph_remote::Error) -> tidegraph_engine::Error {
    use tidegraph_remote::Error as Remote;
    let code = match &error {
        // The load has to read the graph again.
        Remote::Conflict { .. } | Remote::LoadUnknown(_) => ErrorCode::ConcurrentModification,
        Remote::Limit(_) | Remote::TooLarge { .. } => ErrorCode::QueryLimitExceeded,
        Remote::NotAllowed(_) => ErrorCode::InvalidArgument,
        Remote::Cancelled => ErrorCode::Cancelled,
        Remote::Overdue => ErrorCode::TimeLimitExceeded,
        _ => ErrorCode::Unavailable,
    };
    tidegraph_engine::Error::caused_by(code, error)
}

/// The error of a transaction: the client must know whether it may have been committed.
fn to_commit_error(error: tidegraph_remote::Error) -> tidegraph_engine::Error {
    match error {
        tidegraph_remote::Error::InDoubt(_) => {
            tidegraph_engine::Error::caused_by(ErrorCode::CommitOutcomeUnknown, error)
        }
        error => to_engine_error(error),
    }
}

fn token_of(change: &Change) -> Option<Token> {
    match &change.what {
        Changed::VertexLabel(label) => *label,
        Changed::Edge { label, .. } => Some(*label),
        Changed::VertexProperty(key, _) | Changed::EdgeProperty(key, _) => Some(*key),
    }
}

impl Backend for Worker {
    fn partitions(&self) -> PartitionCount {
        self.shared.watch.map().graph().partitions
    }

    fn hasher(&self) -> GuiHasher {
        GuiHasher::with_bits(self.shared.graph.hash_bits)
    }

    fn gremlin(&self) -> GremlinSettings {
        self.shared.graph.gremlin
    }

    fn snapshot(&self, at_least: Option<Version>) -> Result<Snapshot, tidegraph_engine::Error> {
        if !self.shared.wait_for_first_version() {
            let message =
                "the newest version of the graph is not known yet, because the sequencer does not answer";
            let error = tidegraph_engine::Error::new(ErrorCode::Unavailable, message);
            return Err(error.with_retry(Retry::Wait));
        }
        if !self.shared.knows_own_commits() {
            let message =
                "the names of the newest version are not known yet, because the sequencer does not answer";
            let error = tidegraph_engine::Error::new(ErrorCode::Unavailable, message);
            return Err(error.with_retry(Retry::Wait));
        }
        let mut at = self.shared.read_position();
        if let Some(asked) = at_least.filter(|asked| *asked > at.version) {
            at.version = self.shared.below_halt(self.shared.newest_version());
            if asked > at.version {
                // The caller says that it is committed. The sequencer is asked,
                // since nodes would wait for a missing version.
                self.shared.refresh_version();
                at.version = self.shared.below_halt(self.shared.newest_version());
            }
            if asked > at.version {
                return Err(tidegraph_apl::Error::Behind { applied: at.version, asked }.into());
            }
        }
        let held = self.shared.readers.begin(at.version, self.shared.clock.now());
        Ok(Snapshot { at, pin: None, held: Some(held) })
    }

    fn catch_up(&self) -> Result<(), tidegraph_engine::Error> {
        if self.refresh_version() {
            return Ok(());
        }
        let message =
            "the newest version of the graph cannot be learned, because the sequencer does not answer";
        Err(tidegraph_engine::Error::new(ErrorCode::Unavailable, message).with_retry(Retry::Wait))
    }

    fn applied_snapshot(&self) -> Option<Snapshot> {
        let reached = self.shared.fleet.reached()?;
        let at = self.shared.read_position();
        // A read too far in the past would make the commit conflict, and nodes may not keep the version.
        if reached >= at.version || at.version.0 - reached.0 > MOST_BEHIND {
            return None;
        }
        let held = self.shared.readers.begin(reached, self.shared.clock.now());
        Some(Snapshot { at: At { version: reached, ..at }, pin: None, held: Some(held) })
    }

    fn reader<'b>(&'b self, options: ReadOptions<'b>) -> Reader<'b> {
        let within = options.deadline.map(|deadline| deadline.saturating_sub(self.shared.clock.now()));
        Reader::Own(Box::new(self.shared.fleet.query(within, options.cancel.cloned())))
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
        // The id is new, so what was committed up to now is not this request.
        let first_asked = Some(self.shared.newest_version().max(request.read_version));
        let request = CommitRequest { first_asked, ..request };
        let committed = self.shared.sequencer.commit(id, &request);
        let committed = committed.map_err(|error| self.shared.commit_error(error))?;
        self.shared.note_own_commit(committed);
        Ok(committed.version)
    }

    fn outcome_of_key(&self, key: RequestKey) -> Result<Option<Earlier>, tidegraph_engine::Error> {
        let RequestKey { id, first_asked } = key;
        let found = self.shared.sequencer.call(|sequencer| sequencer.outcome_of_key(id, first_asked));
        match found.map_err(to_engine_error)? {
            CommitOutcome::Committed(version) => {
                // The caller must find what it wrote at another worker. The outcome does not say when the schema changed.
                let schema = version;
                self.shared.note_own_commit(Committed { version, schema, newest_token: None, earlier: None });
                Ok(Some(Earlier::Same(version)))
            }
            CommitOutcome::OtherRequest(version) => Ok(Some(Earlier::OtherRequest(version))),
            CommitOutcome::Refused => Ok(None),
            CommitOutcome::Unknown => {
                let message = format!(
                    "it is no longer known whether a request with this key was committed since version {first_asked}"
                );
                Err(tidegraph_engine::Error::new(ErrorCode::CommitOutcomeUnknown, message))
            }
        }
    }

    fn commit_keyed(
        &self,
        request: CommitRequest,
        key: RequestKey,
    ) -> Result<KeyedCommit, tidegraph_engine::Error> {
        let request = CommitRequest { first_asked: Some(key.first_asked), by_key: true, ..request };
        let committed = self.shared.sequencer.commit(key.id, &request);
        let committed = committed.map_err(|error| self.shared.commit_error(error))?;
        self.shared.note_own_commit(committed);
        let version = committed.version;
        Ok(match committed.earlier {
            None => KeyedCommit::Committed(version),
            Some(tidegraph_remote::Earlier::Same) => KeyedCommit::Earlier(Earlier::Same(version)),
            Some(tidegraph_remote::Earlier::OtherRequest) => {
                KeyedCommit::Earlier(Earlier::OtherRequest(version))
            }
        })
    }

    fn totals(&self) -> (u64, u64) {
        let statistics = self.shared.fleet.query(None, None).counts();
        (statistics.vertices, statistics.edges)
    }

    fn statistics(&self) -> Arc<Statistics> {
        self.shared.fleet.query(None, None).counts()
    }

    fn statistics_at(&self, at: At) -> Result<Arc<Statistics>, tidegraph_apl::Error> {
        self.shared.fleet.query(None, None).counts_at(at)
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
        // Nodes enforce their budgets by themselves, and leave the map if they cannot.
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

    fn begin_turn(&self, load_id: &str, turn: LoadTurn) -> Result<Option<Version>, tidegraph_engine::Error> {
        loads::begin_turn(&self.shared, load_id, turn)
    }

    fn end_turn(&self, load_id: &str) {
        loads::end_turn(&self.shared, load_id);
    }

    fn load_outcome(&self, load_id: &str, since: Version) -> Result<LoadOutcome, tidegraph_engine::Error> {
        let id = RequestId::of_text(load_id);
        let outcome = self.shared.sequencer.call_once(|sequencer| sequencer.outcome(id, since));
        Ok(match outcome.map_err(to_engine_error)? {
            CommitOutcome::Committed(version) => LoadOutcome::Visible(version),
            CommitOutcome::Refused => LoadOutcome::NotVisible,
            CommitOutcome::Unknown | CommitOutcome::OtherRequest(_) => LoadOutcome::Unknown,
        })
    }

    fn changes(
        &self,
        request: &ChangesRequest,
        _options: &ReadOptions<'_>,
    ) -> Result<ChangesPage, tidegraph_engine::Error> {
        let answer = self.shared.sequencer.call_once(|sequencer| sequencer.changes(request, &|| false));
        match answer.map_err(to_engine_error)? {
            ChangesAnswer::Page(page) => {
                let newest =
                    page.commits.iter().flat_map(|part| &part.changes.list).filter_map(token_of).max();
                if let Some(newest) = newest {
                    self.shared.catalog.cover(Some(newest)).map_err(to_engine_error)?;
                }
                Ok(page)
            }
            ChangesAnswer::None(none) => Err(FeedError::None(none).into()),
            ChangesAnswer::Busy => Err(FeedError::Busy.into()),
        }
    }

    fn has_replicas(&self) -> bool {
        true
    }

    fn status(&self) -> BackendStatus {
        BackendStatus {
            version: Version(self.shared.newest.load(Ordering::Acquire)),
            epoch: Epoch(self.shared.epoch.load(Ordering::Acquire)),
            writable: self.shared.writable.load(Ordering::Acquire)
                && self.shared.halted.load(Ordering::Acquire) == 0,
            ..BackendStatus::default()
        }
    }

    fn fleet_report(&self) -> Option<String> {
        Some(self.fleet_status().to_string())
    }
}
