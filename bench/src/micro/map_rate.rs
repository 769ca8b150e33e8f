//! `micro map-rate`: times operations on a partition map of 4,096 partitions with three replicas each on 300 nodes, in
//! memory and, where its endpoint is given, in DynamoDB Local.

use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions, Usage};
use tidegraph_cluster::{
    AppliedVersions, Candidate, Change, Claim, Graph, Heartbeat, MapStore, MemoryMap, NodeId, NodeState,
    Registration, Role, SEQUENCER, change_all, place,
};
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_types::{Epoch, PartitionCount, PartitionId, Version};

const PARTITIONS: u16 = 4096;
const REPLICAS: u16 = 3;
const NODES: usize = 300;

/// Prints times and request units.
pub fn run(endpoint: Option<String>) {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    println!("in memory");
    measure(&MemoryMap::default(), &*clock, &Usage::default);
    if let Some(endpoint) = endpoint {
        println!("in DynamoDB at {endpoint}");
        let options = DynamoOptions {
            table_prefix: format!("rate-{}-", std::process::id()),
            attempt_timeout: Duration::from_secs(30),
            ..DynamoOptions::local(endpoint)
        };
        let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom)).expect("a client");
        map.create_tables().expect("the table is made");
        measure(&map, &*clock, &|| map.usage());
    }
}

fn measure(store: &dyn MapStore, clock: &dyn Clock, usage: &dyn Fn() -> Usage) {
    let graph = Graph {
        name: "large".into(),
        partitions: PartitionCount::new(PARTITIONS).expect("a power of two"),
        shards: 1,
        hash_bits: 64,
        replication_factor: REPLICAS,
        gremlin: Default::default(),
        splits: Default::default(),
        shares_objects: false,
    };
    store.create_graph(&graph).expect("the graph is made");
    let ids: Vec<NodeId> =
        (0..NODES).map(|n| NodeId::new(&format!("i-0a1b2c3d4e5f{n:05}")).expect("a name")).collect();
    let zone = |n: usize| format!("us-east-1{}", ["a", "b", "c"][n % 3]);
    let registrations = (0..NODES).map(|n| {
        Change::Register(Registration {
            id: ids[n].clone(),
            zone: zone(n),
            endpoint: format!("10.0.{}.{}:7400", n / 250, n % 250),
            capacity_bytes: 937_000_000_000,
            roles: [Role::Storage, Role::Sequencer].into(),
        })
    });
    let registrations: Vec<Change> = registrations
        .chain(ids.iter().map(|id| Change::SetNode { node: id.clone(), state: NodeState::Up }))
        .collect();
    let candidates: Vec<Candidate> =
        (0..NODES).map(|n| Candidate { node: ids[n].clone(), zone: zone(n), weight: 0 }).collect();
    let mut timed = Timed { clock, usage, before: usage() };
    timed.report("nodes registered", 1, &mut || {
        change_all(store, "large", &registrations).expect("nodes register");
    });
    let mut placed = Vec::new();
    timed.report("placement computed", 1, &mut || {
        placed = place(graph.partitions, REPLICAS, &candidates, &[]);
    });
    let added: Vec<Change> = (0..)
        .map(PartitionId)
        .zip(&placed)
        .flat_map(|(partition, nodes)| {
            nodes.iter().map(move |node| Change::AddReplica { partition, node: node.clone() })
        })
        .collect();
    timed.report("replicas placed", 1, &mut || {
        change_all(store, "large", &added).expect("replicas are placed");
    });
    let mut known = store.load("large", None).expect("the map");
    timed.before = usage();
    timed.report("map loaded", 9, &mut || known = store.load("large", None).expect("the map"));
    timed.report("snapshot written", 1, &mut || {
        store.refresh_snapshot("large", &known).expect("it is written");
    });
    timed.report("map loaded with it", 9, &mut || known = store.load("large", None).expect("the map"));
    timed.report("looked, nothing changed", 99, &mut || {
        known = store.load("large", Some(&known)).expect("the map");
    });
    let state = tidegraph_cluster::ReplicaState::CatchingUp;
    let mut turn = 0;
    timed.report("replica changed, and looked", 99, &mut || {
        let partition = PartitionId(turn);
        let node = placed[usize::from(partition.0)][0].clone();
        turn += 1;
        store.change("large", None, &[Change::SetReplica { partition, node, state }]).expect("it changes");
        known = store.load("large", Some(&known)).expect("the map");
    });
    timed.report("map loaded, changed since", 9, &mut || known = store.load("large", None).expect("the map"));
    timed.report("snapshot written again", 1, &mut || {
        store.refresh_snapshot("large", &known).expect("it is written");
    });
    let mut counter = 0;
    timed.report("sign of life", 99, &mut || {
        counter += 1;
        let held = known.held_by(&ids[0]).map(|(partition, _)| (partition, Version(1_000_000 + counter)));
        let applied = AppliedVersions(held.collect());
        let beat = Heartbeat {
            generation: 1,
            counter,
            disk_full: false,
            used_bytes: 1 << 38,
            applied,
            stuck: vec![],
        };
        store.heartbeat("large", &ids[0], &beat).expect("it is noted");
    });
    let claim = Claim {
        holder: "a".into(),
        endpoint: "10.0.0.1:7400".into(),
        ttl: Duration::from_secs(1),
        above: Epoch(0),
    };
    let mut lease = store.take_lease("large", SEQUENCER, None, &claim).expect("nobody has it");
    timed.report("lease renewed", 99, &mut || {
        lease = store.renew_lease("large", SEQUENCER, &lease).expect("it is held");
    });
}

struct Timed<'a> {
    clock: &'a dyn Clock,
    usage: &'a dyn Fn() -> Usage,
    before: Usage,
}

impl Timed<'_> {
    /// Repeats an operation and prints its median time and its mean usage.
    fn report(&mut self, what: &str, times: usize, act: &mut dyn FnMut()) {
        let mut took: Vec<Duration> = (0..times)
            .map(|_| {
                let began = self.clock.now();
                act();
                self.clock.now() - began
            })
            .collect();
        took.sort_unstable();
        let now = (self.usage)();
        let each = |value: f64| value / times as f64;
        let requests = each((now.requests - self.before.requests) as f64);
        let reads = each(now.read_units - self.before.read_units);
        let writes = each(now.write_units - self.before.write_units);
        self.before = now;
        let median = took[times / 2];
        println!(
            "  {what:28} {median:>12.3?}  {requests:>6.1} requests  {reads:>7.1} RRU  {writes:>9.1} WRU"
        );
    }
}
