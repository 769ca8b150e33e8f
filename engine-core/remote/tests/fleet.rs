//! The APL over three nodes: the suite of the trait, and nodes that die, lag, lose partitions or answer slowly.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_apl::testing::{TestGraph, agree};
use tidegraph_apl::{
    Apl, At, Cursor, Error, Expand, Expansion, Projection, ScanCursor, VertexRead, VertexRows, VertexScan,
};
use tidegraph_platform::{Clock, RealClock, RealRandom, SeededRandom};
use tidegraph_remote::{
    Answer, ClientConfig, FleetClient, FleetConfig, Graphs, Network, Node, RouteMap, Routes, Security,
    ServedPartition, Server, ServerConfig, Services, answer_once,
};
use tidegraph_storage::{Scope, Store, StoreConfig};
use tidegraph_types::{Direction, Epoch, Gui, GuiHasher, Layout, PartitionCount, PartitionId, Version};
use tidegraph_wire::{Message, proto};

const PARTITIONS: u16 = 8;
const LONG: Duration = Duration::from_secs(120);

fn count() -> PartitionCount {
    PartitionCount::new(PARTITIONS).unwrap()
}

fn config(hasher: GuiHasher) -> StoreConfig {
    StoreConfig { partitions: count(), hasher, ..StoreConfig::new(Arc::new(RealClock::new())) }
}

fn fill(store: &Store, graph: &TestGraph, up_to: usize) {
    for (version, mutations) in (1..).map(Version).zip(&graph.transactions).take(up_to) {
        store.apply(version, mutations);
        store.publish(version);
    }
}

/// The partitions of one node, and the faults that a test sets.
struct Held {
    stores: Mutex<BTreeMap<PartitionId, Arc<Store>>>,
    epoch: AtomicU64,
    /// While this is true, the node answers nothing.
    stuck: Mutex<bool>,
    freed: Condvar,
    asked: AtomicU64,
    /// How often the stores were replaced by others.
    restored: AtomicU64,
    clock: RealClock,
}

impl Held {
    fn set_stuck(&self, stuck: bool) {
        *self.stuck.lock() = stuck;
        self.freed.notify_all();
    }
}

impl Node for Held {
    fn partition(&self, partition: PartitionId, epoch: Epoch) -> Result<ServedPartition, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut stuck = self.stuck.lock();
        while *stuck {
            self.freed.wait(&mut stuck);
        }
        let held = Epoch(self.epoch.load(Ordering::Relaxed));
        if held < epoch {
            return Err(Error::WrongEpoch { held, asked: epoch });
        }
        match self.stores.lock().get(&partition) {
            Some(store) => {
                let store_id = self.restored.load(Ordering::Relaxed) + 1;
                Ok(ServedPartition { apl: store.clone(), store: store_id })
            }
            None => Err(Error::NotHere { partition, epoch: held }),
        }
    }

    fn wait_for(&self, partition: PartitionId, version: Version, at_most: Duration) -> bool {
        let until = self.clock.now() + at_most;
        loop {
            let reached =
                self.stores.lock().get(&partition).is_some_and(|store| store.published() >= version);
            if reached || self.clock.now() >= until {
                return reached;
            }
            self.clock.sleep(Duration::from_millis(1));
        }
    }
}

/// A map that a test changes. Reporting it as stale loads the prepared map.
struct Map {
    current: ArcSwap<RouteMap>,
    prepared: Mutex<Option<RouteMap>>,
}

impl Routes for Map {
    fn current(&self) -> Arc<RouteMap> {
        self.current.load_full()
    }

    fn stale(&self, epoch: Epoch, _: Duration) {
        if self.current().epoch <= epoch
            && let Some(newer) = self.prepared.lock().take()
        {
            self.current.store(Arc::new(newer));
        }
    }
}

struct Test {
    graph: TestGraph,
    whole: Store,
    servers: Vec<Server>,
    held: Vec<Arc<Held>>,
    map: Arc<Map>,
    fleet: FleetClient,
}

/// Returns the nodes of a partition.
fn places(partition: PartitionId) -> [usize; 2] {
    let first = usize::from(partition.0) % 3;
    [first, (first + 1) % 3]
}

impl Test {
    fn new(seed: u64, bits: u32, server: &ServerConfig, fleet: FleetConfig) -> Self {
        let hasher = GuiHasher::with_bits(bits);
        let graph = TestGraph::new(seed, hasher, 150, 900);
        let whole = Store::new(config(hasher));
        fill(&whole, &graph, usize::MAX);
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let held: Vec<Arc<Held>> = (0..3).map(|node| Arc::new(hold(node, hasher, &graph))).collect();
        let serve = |node: &Arc<Held>| {
            let services = Services { node: Some(node.clone()), ..Services::default() };
            let graphs = Graphs::one("default", services);
            Server::start(server.clone(), Security::none(), &graphs, clock.clone(), &RealRandom).unwrap()
        };
        let servers: Vec<Server> = held.iter().map(serve).collect();
        let addresses: Vec<Arc<str>> =
            servers.iter().map(|server| server.address().to_string().into()).collect();
        let replicas = count().all().map(|partition| {
            (partition, places(partition).map(|node| addresses[node].clone()).into_iter().collect())
        });
        let current = RouteMap::new(Epoch(1), Layout::made(count()), replicas);
        let map = Arc::new(Map { current: ArcSwap::from_pointee(current), prepared: Mutex::default() });
        let random = Arc::new(SeededRandom::new(seed));
        let fleet = FleetClient::new(fleet, Security::none(), map.clone(), hasher, clock, random);
        Self { graph, whole, servers, held, map, fleet }
    }

    fn newest(&self) -> At {
        At { version: Version(self.graph.transactions.len() as u64), epoch: Epoch(0) }
    }

    /// Reads everything by requests that need no cursor, and compares the answers.
    fn read(&self) -> Result<(), Error> {
        let apl = self.fleet.query(Some(LONG), None);
        let read = VertexRead { ids: true, properties: Projection::All, ..VertexRead::default() };
        let (mut found, mut expected) = (VertexRows::default(), VertexRows::default());
        apl.vertices(self.newest(), &read, &self.graph.guis, &mut found)?;
        self.whole.vertices(self.newest(), &read, &self.graph.guis, &mut expected).unwrap();
        assert_eq!((&found.present, &found.ids), (&expected.present, &expected.ids));
        let expand = Expand::all(Direction::Out);
        let (mut found, mut expected) = (Expansion::default(), Expansion::default());
        apl.expand(self.newest(), &expand, &self.graph.guis, Cursor::default(), &mut found)?;
        self.whole
            .expand(self.newest(), &expand, &self.graph.guis, Cursor::default(), &mut expected)
            .unwrap();
        assert_eq!(found.row, expected.row);
        Ok(())
    }
}

fn hold(node: usize, hasher: GuiHasher, graph: &TestGraph) -> Held {
    let mine = count().all().filter(|partition| places(*partition).contains(&node));
    let store = |partition| {
        let store = Store::new(config(hasher).of_partition(Scope { partitions: count(), partition }));
        fill(&store, graph, usize::MAX);
        (partition, Arc::new(store))
    };
    Held {
        stores: Mutex::new(mine.map(store).collect()),
        epoch: AtomicU64::new(1),
        stuck: Mutex::new(false),
        freed: Condvar::new(),
        asked: AtomicU64::new(0),
        restored: AtomicU64::new(0),
        clock: RealClock::new(),
    }
}

fn quick() -> FleetConfig {
    let client = ClientConfig {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(50),
        connect_limit: Duration::from_secs(120),
        ..ClientConfig::default()
    };
    FleetConfig { client, statistics_age: Duration::ZERO, ..FleetConfig::default() }
}

/// APL-1: at each version, a fleet that holds later versions answers exactly what one store answers.
#[test]
fn a_fleet_answers_what_one_store_answers() {
    for (seed, bits) in [(1, 64), (2, 6)] {
        let test = Test::new(seed, bits, &ServerConfig::default(), quick());
        for version in 1..=test.newest().version.0 {
            let at = At { version: Version(version), epoch: Epoch(0) };
            agree(&test.whole, &test.fleet.query(Some(LONG), None), at, &test.graph);
        }
    }
}

/// Nodes of a release that does not know the requests for groups and ends. A message of an unknown kind has no kind there.
struct EarlierRelease {
    held: Vec<Arc<Held>>,
    clock: RealClock,
    refused: AtomicU64,
}

impl Network for EarlierRelease {
    fn send(&self, address: &str, call: Vec<u8>, answer: Answer) -> Result<u64, tidegraph_remote::Error> {
        use proto::apl_request::Kind::{CountEnds, GroupVertices, TopVertices};
        let mut call = proto::Call::decode(call.as_slice()).unwrap();
        let Some(proto::call::Kind::Apl(apl)) = &mut call.kind else { panic!("{call:?}") };
        for request in apl.parts.iter_mut().filter_map(|part| part.request.as_mut()) {
            if matches!(request.kind, Some(GroupVertices(_) | CountEnds(_) | TopVertices(_))) {
                request.kind = None;
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        let held = &self.held[address.parse::<usize>().unwrap()];
        let services = Services { node: Some(held.clone()), ..Services::default() };
        let reply = answer_once(&services, &call.encode_to_vec(), &self.clock, true);
        answer.give(reply.map(|reply| reply.unwrap().into()));
        Ok(1)
    }

    fn sleep(&self, _: Duration) {}
}

#[test]
fn rows_come_from_nodes_that_know_no_groups() {
    let (hasher, clock) = (GuiHasher::default(), Arc::new(RealClock::new()));
    let graph = TestGraph::new(11, hasher, 60, 200);
    let whole = Store::new(config(hasher));
    fill(&whole, &graph, usize::MAX);
    let held = (0..3).map(|node| Arc::new(hold(node, hasher, &graph))).collect();
    let earlier = Arc::new(EarlierRelease { held, clock: RealClock::new(), refused: AtomicU64::new(0) });
    let replicas = count().all().map(|partition| {
        (partition, places(partition).map(|node| node.to_string().into()).into_iter().collect())
    });
    let current = RouteMap::new(Epoch(1), Layout::made(count()), replicas);
    let map = Arc::new(Map { current: ArcSwap::from_pointee(current), prepared: Mutex::default() });
    let random = Arc::new(SeededRandom::new(11));
    let network = Some(earlier.clone() as Arc<dyn Network>);
    let fleet = FleetClient::over(network, quick(), Security::none(), map, hasher, clock, random);
    let at = At { version: Version(graph.transactions.len() as u64), epoch: Epoch(0) };
    agree(&whole, &fleet.query(Some(LONG), None), at, &graph);
    let refused = earlier.refused.load(Ordering::Relaxed);
    assert!((1..=u64::from(PARTITIONS)).contains(&refused), "{refused} requests were refused, not one scan");
}

#[test]
fn answers_that_are_too_large_are_asked_for_in_halves() {
    let server = ServerConfig { reply_bytes: 6000, ..ServerConfig::default() };
    let test = Test::new(3, 64, &server, quick());
    test.read().unwrap();
    let apl = test.fleet.query(Some(LONG), None);
    let mut found = Vec::new();
    apl.resolve_edges(test.newest(), &test.graph.edge_ids, &mut found).unwrap();
    assert_eq!(found.len(), test.graph.edge_ids.len());
}

#[test]
fn a_node_that_dies_is_not_noticed_by_readers() {
    let mut test = Test::new(4, 64, &ServerConfig::default(), quick());
    test.read().unwrap();
    let mut dying = test.servers.remove(0);
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let test = &test;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    test.read().unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let wait_for = |count: u64| {
            while reads.load(Ordering::Relaxed) < count {
                std::thread::yield_now();
            }
        };
        wait_for(20);
        dying.stop();
        wait_for(reads.load(Ordering::Relaxed) + 60);
        done.store(true, Ordering::Relaxed);
    });
    assert!(test.fleet.counters().failed_over.load(Ordering::Relaxed) > 0);
    // The node comes back at its address and gets requests again.
    let config = ServerConfig { listen: dying.address().to_string(), ..ServerConfig::default() };
    let services = Services { node: Some(test.held[0].clone()), ..Services::default() };
    let clock = Arc::new(RealClock::new());
    let graphs = Graphs::one("default", services);
    let _again = Server::start(config, Security::none(), &graphs, clock, &RealRandom).unwrap();
    let before = test.held[0].asked.load(Ordering::Relaxed);
    while test.held[0].asked.load(Ordering::Relaxed) == before {
        test.read().unwrap();
    }
    agree(&test.whole, &test.fleet.query(Some(LONG), None), test.newest(), &test.graph);
}

/// APL-2: a cursor is valid only for the replica that returned it.
#[test]
fn a_scan_does_not_go_on_at_another_replica() {
    let mut test = Test::new(5, 64, &ServerConfig::default(), quick());
    let apl = test.fleet.query(Some(LONG), None);
    let scan = VertexScan { max_rows: 2, ..VertexScan::default() };
    let mut found = Vec::new();
    let next = apl.scan_vertices(test.newest(), &scan, ScanCursor::default(), &mut found).unwrap();
    let next = next.unwrap();
    assert!(next.partition == 0 && next.replica > 0, "{next:?}");
    let other = test.fleet.query(Some(LONG), None);
    assert!(
        other.scan_vertices(test.newest(), &scan, next, &mut found).is_err(),
        "a cursor of another query"
    );
    let place = places(PartitionId(0))[0];
    test.servers[place].stop();
    let go_on = |found: &mut Vec<Gui>| {
        let error = apl.scan_vertices(test.newest(), &scan, next, found).unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        error.to_string()
    };
    go_on(&mut found);
    // The cursor is invalid at the same node after a restart, too.
    let config =
        ServerConfig { listen: test.servers[place].address().to_string(), ..ServerConfig::default() };
    let services = Services { node: Some(test.held[place].clone()), ..Services::default() };
    let clock = Arc::new(RealClock::new());
    let graphs = Graphs::one("default", services);
    let _again = Server::start(config, Security::none(), &graphs, clock, &RealRandom).unwrap();
    while !go_on(&mut found).contains("restarted") {
        std::thread::yield_now();
    }
    // The query runs again as a whole.
    agree(&test.whole, &test.fleet.query(Some(LONG), None), test.newest(), &test.graph);
}

/// APL-2: a cursor is valid only for the store that returned it, also if the process goes on and restores the replica.
#[test]
fn a_scan_does_not_go_on_in_a_store_that_was_restored_anew() {
    let test = Test::new(10, 64, &ServerConfig::default(), quick());
    let apl = test.fleet.query(Some(LONG), None);
    let scan = VertexScan { max_rows: 2, ..VertexScan::default() };
    let scan_on = |from: ScanCursor| apl.scan_vertices(test.newest(), &scan, from, &mut Vec::new());
    let scanned = scan_on(ScanCursor::default()).unwrap().unwrap();
    assert!(scanned.replica > 0, "{scanned:?}");
    scan_on(scanned).unwrap();
    // Every node goes on under its address and in its run, but with other stores.
    for (node, held) in test.held.iter().enumerate() {
        *held.stores.lock() = hold(node, GuiHasher::default(), &test.graph).stores.into_inner();
        held.restored.fetch_add(1, Ordering::Relaxed);
    }
    let error = scan_on(scanned).unwrap_err();
    assert!(matches!(&error, Error::Unavailable(reason) if reason.contains("restored")), "{error}");
    // The query runs again as a whole.
    agree(&test.whole, &test.fleet.query(Some(LONG), None), test.newest(), &test.graph);
}

/// APL-2: a node that does not hold the partition at the map's epoch does not answer.
#[test]
fn a_partition_that_moved_is_found_by_a_newer_map() {
    let test = Test::new(6, 64, &ServerConfig::default(), quick());
    test.read().unwrap();
    // The partitions of node 0 move to node 2. Only the prepared map shows it.
    let moved = std::mem::take(&mut *test.held[0].stores.lock());
    test.held[2].stores.lock().extend(moved);
    let mut newer = RouteMap::clone(&test.map.current());
    newer.epoch = Epoch(2);
    let addresses: Vec<Arc<str>> =
        test.servers.iter().map(|server| server.address().to_string().into()).collect();
    for replicas in newer.replicas.values_mut() {
        replicas.iter_mut().filter(|at| **at == addresses[0]).for_each(|at| *at = addresses[2].clone());
    }
    *test.map.prepared.lock() = Some(newer);
    test.held.iter().for_each(|held| held.epoch.store(2, Ordering::Relaxed));
    test.read().unwrap();
    assert_eq!(test.map.current().epoch, Epoch(2));
    agree(&test.whole, &test.fleet.query(Some(LONG), None), test.newest(), &test.graph);
    // Readers have a newer map than the nodes: readers wait for the nodes, not the other way round.
    let mut newest = RouteMap::clone(&test.map.current());
    newest.epoch = Epoch(3);
    test.map.current.store(Arc::new(newest));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| test.read());
        while test.fleet.counters().reloaded.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        test.held.iter().for_each(|held| held.epoch.store(3, Ordering::Relaxed));
        reader.join().unwrap().unwrap();
    });
}

/// APL-2: a replica that has not applied the asked version does not answer.
#[test]
fn a_replica_that_is_behind_is_passed_over() {
    let test = Test::new(
        7,
        64,
        &ServerConfig { version_wait: Duration::from_millis(5), ..ServerConfig::default() },
        quick(),
    );
    let hasher = GuiHasher::default();
    for (partition, store) in &mut *test.held[0].stores.lock() {
        let scope = Scope { partitions: count(), partition: *partition };
        let behind = Store::new(config(hasher).of_partition(scope));
        fill(&behind, &test.graph, 1);
        *store = Arc::new(behind);
    }
    for _ in 0..5 {
        test.read().unwrap();
    }
    // No node has this version, so there is an error that says so.
    let mut out = Vec::new();
    let at = At { version: Version(99), epoch: Epoch(0) };
    let apl = test.fleet.query(Some(Duration::from_millis(300)), None);
    let error = apl.resolve_vertices(at, &test.graph.ids, &mut out).unwrap_err();
    assert!(matches!(error, Error::Behind { .. } | Error::Overdue), "{error}");
    // The version is applied while a reader waits for it.
    let late: Vec<Arc<Store>> =
        test.held.iter().flat_map(|held| held.stores.lock().values().cloned().collect::<Vec<_>>()).collect();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let at = At { version: test.newest().version.next(), epoch: Epoch(0) };
            let mut out = Vec::new();
            test.fleet
                .query(Some(LONG), None)
                .resolve_vertices(at, &test.graph.ids, &mut out)
                .map(|()| out.len())
        });
        for store in &late {
            for version in store.published().0 + 1..=test.newest().version.0 + 1 {
                let mutations = test.graph.transactions.get(version as usize - 1);
                store.apply(Version(version), mutations.map_or(&[], Vec::as_slice));
                store.publish(Version(version));
            }
        }
        assert_eq!(reader.join().unwrap().unwrap(), test.graph.ids.len());
    });
}

#[test]
fn a_slow_node_is_asked_beside_another_one() {
    // Only the stuck node is slow, even on a busy machine, so the budget of second requests is left for it.
    let fleet = FleetConfig { hedge_after: Duration::from_millis(50), ..quick() };
    let test = Test::new(8, 64, &ServerConfig::default(), fleet);
    let one = |gui: Gui| {
        let mut rows = VertexRows::default();
        let apl = test.fleet.query(Some(LONG), None);
        apl.vertices(test.newest(), &VertexRead::default(), &[gui], &mut rows).map(|()| rows.present[0])
    };
    // After some answers the client knows how long answers take.
    for round in 0..400 {
        one(test.graph.guis[round % test.graph.guis.len()]).unwrap();
    }
    test.held[0].set_stuck(true);
    // Every partition of the stuck node has its other replica on another node. The stuck
    // node is freed only at the end.
    for round in 0..400 {
        one(test.graph.guis[round % test.graph.guis.len()]).unwrap();
    }
    // Second requests are a small share: after some of them the client asks the other replica first.
    let hedged = test.fleet.counters().hedged.load(Ordering::Relaxed);
    assert!((1..=45).contains(&hedged), "{hedged} second requests");
    test.held[0].set_stuck(false);
    test.read().unwrap();
}

#[test]
fn a_query_ends_at_its_deadline_and_when_it_is_cancelled() {
    let test = Test::new(9, 64, &ServerConfig::default(), quick());
    test.held.iter().for_each(|held| held.set_stuck(true));
    let ask = |apl: &dyn Apl| {
        let mut out = Vec::new();
        apl.resolve_vertices(test.newest(), &test.graph.ids, &mut out).unwrap_err()
    };
    let error = ask(&test.fleet.query(Some(Duration::from_millis(20)), None));
    assert!(matches!(error, Error::Overdue), "{error}");
    let cancelled = Arc::new(AtomicBool::new(false));
    let apl = test.fleet.query(Some(LONG), Some(cancelled.clone()));
    std::thread::scope(|scope| {
        let query = scope.spawn(|| ask(&apl));
        let asked = || test.held.iter().map(|held| held.asked.load(Ordering::Relaxed)).sum::<u64>();
        while asked() == 0 {
            std::thread::yield_now();
        }
        cancelled.store(true, Ordering::Relaxed);
        let error = query.join().unwrap();
        assert!(matches!(error, Error::Cancelled), "{error}");
    });
    test.held.iter().for_each(|held| held.set_stuck(false));
    test.read().unwrap();
}
