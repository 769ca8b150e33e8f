//! A fleet in one process: nodes with servers on 127.0.0.1, a log and a map in memory, a sequencer.

// No test uses all of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{
    Candidate as Place, Change, Claim, Graph, MapStore, MemoryMap, NodeId, Registration, Role, SEQUENCER,
    place,
};
use tidegraph_engine::{Answer, Database, Language, Options, Parameters, Query};
use tidegraph_fleet::role::{CheckpointRecovery, LeaderMaintenance, MaintenanceConfig, SequencerService};
use tidegraph_fleet::sequencing::{Candidate, CandidateConfig, Unsure};
use tidegraph_fleet::{
    LocalCopies, NodeConfig, NodeParts, NodeService, StorageNode, Worker, WorkerConfig, WorkerParts,
};
use tidegraph_log::testing::{SharedLog, SharedShard, SharedShards};
use tidegraph_log::{Follower, LogBackend, LogStore, Position};
use tidegraph_platform::{Clock, Objects, RealClock, RealDisk, RealRandom};
use tidegraph_remote::{
    ClientConfig, Graphs, RemoteCommits, RemoteNode, Security, Server, ServerConfig, Services,
};
use tidegraph_types::{Epoch, GremlinSettings, ShardId, Sharding, Version};

pub const GRAPH: &str = "g";
/// Time limit of every wait: generous, because other programs may keep the machine busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Settings with which a stalled process causes no error in a worker.
pub fn patient() -> WorkerConfig {
    WorkerConfig { answer_within: PATIENCE / 2, patience: PATIENCE, ..WorkerConfig::default() }
}

/// The log, shared by the whole fleet.
#[derive(Clone)]
pub enum Log {
    One(SharedLog),
    Several(SharedShards),
}

impl Log {
    fn new(sharding: Sharding) -> Self {
        match sharding.shards() {
            1 => Self::One(SharedLog::new()),
            _ => Self::Several(SharedShards::new(sharding)),
        }
    }

    /// Trims the log.
    pub fn trim(&self, below: Version) {
        match self {
            Self::One(log) => log.writer(ShardId(0)).trim(below).unwrap(),
            Self::Several(log) => log.trim(below).unwrap(),
        }
    }

    /// Returns the version of the oldest record of a log of one shard.
    pub fn first(&self) -> Version {
        match self {
            Self::One(log) => log.writer(ShardId(0)).first().unwrap_or_default(),
            Self::Several(_) => panic!("a log of several shards"),
        }
    }

    /// One of several shards.
    pub fn shard(&self, shard: ShardId) -> &SharedShard {
        match self {
            Self::One(_) => panic!("a log of one shard"),
            Self::Several(log) => log.shard(shard),
        }
    }
}

impl LogBackend for Log {
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        match self {
            Self::One(log) => LogBackend::follow(log, shard, after),
            Self::Several(log) => log.follow(shard, after),
        }
    }
    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        match self {
            Self::One(log) => log.open(epoch),
            Self::Several(log) => LogBackend::open(log, epoch),
        }
    }
}

/// The machine's clock, which a test can advance.
#[derive(Debug)]
pub struct AdvancingClock {
    real: RealClock,
    ahead_nanos: AtomicU64,
}

impl AdvancingClock {
    pub fn advance(&self, duration: Duration) {
        self.ahead_nanos.fetch_add(duration.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Clock for AdvancingClock {
    fn now(&self) -> Duration {
        self.real.now() + Duration::from_nanos(self.ahead_nanos.load(Ordering::Relaxed))
    }

    fn wall(&self) -> jiff::Timestamp {
        self.real.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration);
    }
}

pub struct Member {
    pub id: NodeId,
    pub server: Server,
    pub node: StorageNode,
}

pub struct TestFleet {
    pub clock: Arc<dyn Clock>,
    /// The clock of the storage nodes, which a test can advance. Connections and leases do not use it.
    pub node_clock: Arc<AdvancingClock>,
    pub map: Arc<MemoryMap>,
    pub log: Log,
    pub objects: Arc<Objects>,
    /// Copies of checkpoints that the next node has.
    pub copies: Option<Arc<LocalCopies>>,
    pub members: Vec<Member>,
    pub config: NodeConfig,
    /// Settings of sequencers that start after they were set.
    pub candidate: CandidateConfig,
    sequencer: Option<(Server, Arc<Candidate>)>,
    pub graph: Graph,
}

impl TestFleet {
    /// Starts a node, assigns all partitions to it, and drops them from all others.
    pub fn hand_all_to(&mut self, name: &str) {
        self.join(name);
        self.assign_all_to(name);
        let node = self.members.last().unwrap().id.clone();
        let partitions = self.graph.partitions;
        for partition in partitions.all() {
            let map = self.map.load(GRAPH, None).unwrap();
            let others = map.replicas(partition).iter().map(|replica| replica.node.clone());
            let drop = others.filter(|id| *id != node).map(|node| Change::DropReplica { partition, node });
            self.map.change(GRAPH, None, &drop.collect::<Vec<_>>()).unwrap();
        }
    }

    /// Assigns all partitions to the node that joined last, and waits until it serves them.
    pub fn assign_all_to(&mut self, name: &str) {
        assert_eq!(self.members.last().unwrap().id.as_str(), name);
        let node = self.members.last().unwrap().id.clone();
        let partitions = self.graph.partitions;
        for partition in partitions.all() {
            self.map.change(GRAPH, None, &[Change::AddReplica { partition, node: node.clone() }]).unwrap();
        }
        self.wait_until("it serves all", |fleet| {
            let map = fleet.map.load(GRAPH, None).unwrap();
            partitions.all().all(|partition| map.serving(partition).iter().any(|(id, _)| **id == node))
        });
    }

    /// Starts nodes with a graph of some partitions, and waits until all replicas serve.
    pub fn start(
        partitions: u16,
        nodes: usize,
        replication: u16,
        hash_bits: u32,
        config: NodeConfig,
    ) -> Self {
        Self::start_sharded(1, partitions, nodes, replication, hash_bits, config)
    }

    /// Like [`TestFleet::start`], with a log of `shards` shards.
    pub fn start_sharded(
        shards: u16,
        partitions: u16,
        nodes: usize,
        replication: u16,
        hash_bits: u32,
        config: NodeConfig,
    ) -> Self {
        let graph = graph_named(GRAPH, partitions);
        Self::started(Graph { shards, hash_bits, replication_factor: replication, ..graph }, nodes, config)
    }

    /// Like [`TestFleet::start`], with a graph that has these settings.
    pub fn start_with(
        gremlin: GremlinSettings,
        partitions: u16,
        nodes: usize,
        replication: u16,
        config: NodeConfig,
    ) -> Self {
        let graph = graph_named(GRAPH, partitions);
        Self::started(Graph { replication_factor: replication, gremlin, ..graph }, nodes, config)
    }

    fn started(graph: Graph, nodes: usize, config: NodeConfig) -> Self {
        let mut fleet = Self::without_graph(graph, config);
        fleet.map.create_graph(&fleet.graph).unwrap();
        fleet.start_processes(nodes);
        fleet
    }

    /// Makes an empty log, map and object store, for a graph that is created later. Nothing runs.
    pub fn without_graph(graph: Graph, config: NodeConfig) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let node_clock = Arc::new(AdvancingClock { real: RealClock::new(), ahead_nanos: AtomicU64::new(0) });
        let map = Arc::new(MemoryMap::default());
        let objects = Arc::new(Objects::memory().unwrap());
        let log = Log::new(graph.sharding().unwrap());
        let candidate = CandidateConfig { unsure: Unsure::GoOn, ..CandidateConfig::default() };
        let (members, sequencer) = (vec![], None);
        Self {
            clock,
            node_clock,
            map,
            log,
            objects,
            copies: None,
            members,
            config,
            candidate,
            sequencer,
            graph,
        }
    }

    /// Starts a sequencer and nodes for the graph, and waits until all replicas serve.
    pub fn start_processes(&mut self, nodes: usize) {
        let fleet = self;
        let (layout, replication) = (fleet.graph.layout(), fleet.graph.replication_factor);
        fleet.start_sequencer();
        (0..nodes).for_each(|number| fleet.join(&format!("n{number}")));
        let candidates: Vec<Place> = fleet
            .members
            .iter()
            .enumerate()
            .map(|(number, member)| Place { node: member.id.clone(), zone: format!("z{number}"), weight: 1 })
            .collect();
        let held = vec![vec![]; usize::from(layout.count().get())];
        let placed = place(layout.count(), replication, &candidates, &held);
        for (partition, nodes) in layout.all().zip(&placed) {
            let add = |node: &NodeId| Change::AddReplica { partition, node: node.clone() };
            fleet.map.change(GRAPH, None, &nodes.iter().map(add).collect::<Vec<_>>()).unwrap();
        }
        fleet.wait_until("all serve", |fleet| {
            let map = fleet.map.load(GRAPH, None).unwrap();
            layout.all().all(|p| map.serving(p).len() == usize::from(replication).min(nodes))
        });
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = self.clock.now() + PATIENCE;
        while !is_so(self) {
            let states: Vec<_> = self.members.iter().map(|member| member.node.status()).collect();
            assert!(self.clock.now() < end, "waited too long until {what}: {states:#?}");
            self.clock.sleep(Duration::from_millis(10));
        }
    }

    /// Starts a sequencer and waits until it has taken over.
    pub fn start_sequencer(&mut self) {
        let service = SequencerService::default();
        service.tell_changes_of(Arc::new(self.log.clone()), self.clock.clone());
        let server = self
            .serve("sequencer", Services { commits: Some(Arc::new(service.clone())), ..Services::default() });
        let claim = Claim {
            holder: format!("s{}", self.clock.now().as_nanos()),
            endpoint: server.address().to_string(),
            ttl: Duration::ZERO,
            above: Epoch(0),
        };
        let takeover = CheckpointRecovery {
            graph: GRAPH.into(),
            map_store: self.map.clone(),
            objects: self.objects.clone(),
            log: Arc::new(self.log.clone()),
        };
        let config = self.candidate.clone();
        let (map, clock) = (self.map.clone(), self.clock.clone());
        let candidate = Candidate::start(map, clock, GRAPH, claim, Arc::new(takeover), config).unwrap();
        let candidate = Arc::new(candidate);
        service.attach(&candidate);
        self.wait_until("there is a sequencer", |_| candidate.leadership().is_some());
        self.sequencer = Some((server, candidate));
    }

    /// Starts the maintenance of the process that is the sequencer.
    pub fn maintain(&self) -> LeaderMaintenance {
        self.maintain_holding(MaintenanceConfig::default().hold)
    }

    /// Starts the maintenance, whose trim waits for the archive for this time at most.
    pub fn maintain_holding(&self, hold: Duration) -> LeaderMaintenance {
        let config = MaintenanceConfig {
            lost_after: PATIENCE,
            step: Duration::from_millis(100),
            hold,
            ..MaintenanceConfig::default()
        };
        let (map, objects) = (self.map.clone(), self.objects.clone());
        let candidate = self.leading();
        LeaderMaintenance::start(GRAPH, map, objects, candidate, self.clock.clone(), config).unwrap()
    }

    /// Returns the candidate that is the sequencer.
    pub fn leading(&self) -> Arc<Candidate> {
        self.sequencer.as_ref().unwrap().1.clone()
    }

    /// Stops the sequencer.
    pub fn stop_sequencer(&mut self) {
        if let Some((mut server, candidate)) = self.sequencer.take() {
            server.stop();
            candidate.close();
        }
    }

    fn incarnation(&self) -> String {
        self.map.load(GRAPH, None).unwrap().incarnation().unwrap().as_str().into()
    }

    fn serve(&self, name: &str, services: Services) -> Server {
        let config = ServerConfig { node: name.into(), ..ServerConfig::default() };
        let services = Services { incarnation: self.incarnation(), ..services };
        let graphs = Graphs::one(GRAPH, services);
        Server::start(config, Security::none(), &graphs, self.clock.clone(), &RealRandom).unwrap()
    }

    /// Starts a node.
    pub fn join(&mut self, name: &str) {
        self.join_with(name, Arc::new(self.log.clone()));
    }

    /// Starts a node that reads the log through `log`.
    pub fn join_with(&mut self, name: &str, log: Arc<dyn LogBackend>) {
        let service = NodeService::default();
        let server = self.serve(name, service.services(None));
        let id = NodeId::new(name).unwrap();
        let registration = Registration {
            id: id.clone(),
            zone: "z".into(),
            endpoint: server.address().to_string(),
            capacity_bytes: 1 << 30,
            roles: [Role::Storage].into(),
        };
        let parts = NodeParts {
            graph: GRAPH.into(),
            registration,
            map_store: self.map.clone(),
            log,
            objects: self.objects.clone(),
            clock: self.node_clock.clone(),
            random: Arc::new(RealRandom),
            disk: Arc::new(RealDisk),
            reads: Arc::default(),
            copies: self.copies.clone(),
        };
        let node = StorageNode::start(self.config.clone(), parts, &service).unwrap();
        self.members.push(Member { id, server, node });
    }

    /// Kills a node: its connections break, and the map still lists it.
    pub fn kill(&mut self, name: &str) -> Member {
        let at = self.members.iter().position(|member| member.id.as_str() == name).unwrap();
        let mut member = self.members.remove(at);
        member.server.stop();
        member
    }

    /// Starts a worker, and a database over the fleet.
    pub fn worker(&self) -> (Arc<Database>, Arc<Worker>) {
        self.worker_with(patient(), self.clock.clone())
    }

    /// Returns the sequencer as a worker reaches it.
    pub fn sequencer(&self) -> RemoteCommits {
        let lease = self.map.lease(GRAPH, SEQUENCER).unwrap().unwrap();
        let incarnation = self.incarnation();
        let config = ClientConfig { graph: GRAPH.into(), incarnation, ..ClientConfig::default() };
        let (clock, random) = (self.clock.clone(), Arc::new(RealRandom));
        RemoteCommits::new(
            RemoteNode::new(&lease.endpoint, config, Security::none(), clock, random),
            PATIENCE,
        )
    }

    /// Starts a worker whose writes the change stream tells.
    pub fn streaming_worker(&self) -> (Arc<Database>, Arc<Worker>) {
        let options = Options { streams: true, ..Options::default() };
        self.worker_of(options, patient(), self.clock.clone())
    }

    /// Starts a worker with its own settings and clock.
    pub fn worker_with(&self, config: WorkerConfig, clock: Arc<dyn Clock>) -> (Arc<Database>, Arc<Worker>) {
        self.worker_of(Options::default(), config, clock)
    }

    /// Starts a worker with its own settings and clock, and a database with its own options.
    pub fn worker_of(
        &self,
        options: Options,
        config: WorkerConfig,
        clock: Arc<dyn Clock>,
    ) -> (Arc<Database>, Arc<Worker>) {
        let parts = WorkerParts {
            graph: GRAPH.into(),
            map_store: self.map.clone(),
            security: Security::none(),
            clock,
            random: Arc::new(RealRandom),
        };
        let worker = Arc::new(Worker::start(config, parts).unwrap());
        let database = self.database(options, &worker);
        (database, worker)
    }

    /// Connects a database with its own options through a worker.
    pub fn database(&self, options: Options, worker: &Arc<Worker>) -> Arc<Database> {
        Database::connect(options, worker.clone(), self.objects.clone()).unwrap()
    }
}

pub fn ask(database: &Database, language: Language, text: &str) -> Result<Answer, tidegraph_engine::Error> {
    database.query(&Query::new(language, text, &Parameters::default()))
}

/// Runs a query and returns its rows as sorted text.
pub fn rows(database: &Database, language: Language, text: &str) -> Vec<String> {
    let answer = ask(database, language, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut rows: Vec<String> = answer.rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}
