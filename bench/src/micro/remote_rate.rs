//! `micro remote-rate`: times point reads, scans and two-hop traversals over three nodes on loopback and over one store
//! in this process, which shows the cost of the network.
//!
//! Turns alternate; figures are medians of the turns.

// A measurement is not part of the product, so it panics on failures.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegraph_apl::*;
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_remote::{
    FleetClient, FleetConfig, Graphs, Node, RouteMap, Routes, Security, ServedPartition, Server,
    ServerConfig, Services,
};
use tidegraph_storage::{Scope, Store, StoreConfig};
use tidegraph_types::*;

const VERTICES: usize = 100_000;
const EDGES: usize = 2_000_000;
const NODES: usize = 3;
const PARTITIONS: u16 = 8;
const TURNS: usize = 9;
const READS: usize = 2000;
const STARTS: usize = 1000;
/// Number of rows that the executor reads at once; frontiers have this length.
const BATCH: usize = 1024;

struct Held(Vec<Option<Arc<Store>>>);

impl Node for Held {
    fn partition(&self, partition: PartitionId, epoch: Epoch) -> Result<ServedPartition, Error> {
        match &self.0[usize::from(partition.0)] {
            Some(store) => Ok(ServedPartition { apl: store.clone(), store: 1 }),
            None => Err(Error::NotHere { partition, epoch }),
        }
    }
    fn wait_for(&self, _: PartitionId, _: Version, _: Duration) -> bool {
        false
    }
}

struct Fixed(Arc<RouteMap>);

impl Routes for Fixed {
    fn current(&self) -> Arc<RouteMap> {
        self.0.clone()
    }
    fn stale(&self, _: Epoch, _: Duration) {}
}

fn gui(n: usize) -> Gui {
    GuiHasher::default().gui(&format!("v{n}"))
}

fn mutations() -> Vec<Vec<Mutation>> {
    let mut draw = Draw(7);
    let vertex = |n: usize| Mutation::CreateVertex {
        gui: gui(n),
        id: format!("v{n}").into(),
        labels: vec![Token(1)],
        properties: (0..4)
            .map(|key| PropertyWrite {
                key: Token(10 + key),
                cardinality: Cardinality::Single,
                value: Value::Long((n as i64) << key),
            })
            .collect(),
    };
    let vertices: Vec<Mutation> = (0..VERTICES).map(vertex).collect();
    let mut edge = |sid: usize| {
        let mut end = || gui(draw.below(VERTICES as u64) as usize);
        let edge = Edge { sid: Sid(sid as u64 + 1), source: end(), target: end(), label: Token(5) };
        Mutation::CreateEdge { edge, id: None, properties: vec![] }
    };
    let edges: Vec<Mutation> = (0..EDGES).map(&mut edge).collect();
    vertices.chunks(100_000).chain(edges.chunks(100_000)).map(<[Mutation]>::to_vec).collect()
}

fn fill(store: &Store, transactions: &[Vec<Mutation>]) {
    for (version, mutations) in (1..).map(Version).zip(transactions) {
        store.apply(version, mutations);
        store.publish(version);
    }
}

struct Measured {
    p50: f64,
    p99: f64,
    properties: f64,
    values: f64,
    batches: f64,
    whole: f64,
    rows: usize,
}

/// Expands a frontier: in pieces as the executor does, or as a whole.
fn hop(apl: &dyn Apl, at: At, frontier: &[Gui], piece: usize, max_rows: u32) -> Vec<Gui> {
    let request = Expand { max_rows, neighbours_only: true, ..Expand::all(Direction::Out) };
    let (mut reached, mut found) = (Vec::new(), Expansion::default());
    for piece in frontier.chunks(piece) {
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            found.clear();
            cursor = apl.expand(at, &request, piece, from, &mut found).unwrap();
            reached.extend_from_slice(&found.neighbour);
        }
    }
    reached
}

fn measure(apl: &dyn Apl, at: At, turn: usize) -> Measured {
    let read = VertexRead { properties: Projection::All, ..VertexRead::default() };
    let mut times = Vec::with_capacity(READS);
    let mut rows = VertexRows::default();
    for n in 0..READS {
        let one = [gui((n * 37 + turn) % VERTICES)];
        let start = Instant::now();
        rows.clear();
        apl.vertices(at, &read, &one, &mut rows).unwrap();
        times.push(start.elapsed());
        assert_eq!(rows.cells.len(), 4);
    }
    times.sort_unstable();
    let many: Vec<Gui> = (0..BATCH).map(|n| gui((n * 41 + turn) % VERTICES)).collect();
    let start = Instant::now();
    for _ in 0..20 {
        rows.clear();
        apl.vertices(at, &read, &many, &mut rows).unwrap();
    }
    let properties = start.elapsed().as_secs_f64() * 1e6 / 20.0;
    let start = Instant::now();
    let scan = VertexScan { max_rows: BATCH as u32, ..VertexScan::default() };
    let (mut found, mut cursor, mut seen) = (ScannedValues::default(), Some(ScanCursor::default()), 0);
    while let Some(from) = cursor {
        found.begin(1);
        cursor = apl.scan_values(at, &scan, &[Token(10)], from, &mut found).unwrap();
        seen += found.vertices.len();
    }
    assert_eq!(seen, VERTICES);
    let values = start.elapsed().as_secs_f64() * 1e3;
    let starts: Vec<Gui> = (0..STARTS).map(|n| gui((n * 97 + turn * 13) % VERTICES)).collect();
    let two_hops = |piece: usize, max_rows: u32| {
        let start = Instant::now();
        let first = hop(apl, at, &starts, piece, max_rows);
        let second = hop(apl, at, &first, piece, max_rows);
        (start.elapsed().as_secs_f64() * 1e3, second.len())
    };
    let (batches, _) = two_hops(BATCH, 4 * BATCH as u32);
    let (whole, rows) = two_hops(usize::MAX, 1 << 17);
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Measured {
        p50: micros(times[READS / 2]),
        p99: micros(times[READS * 99 / 100]),
        properties,
        values,
        batches,
        whole,
        rows,
    }
}

/// Prints the times.
pub fn run() {
    let transactions = mutations();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let count = PartitionCount::new(PARTITIONS).unwrap();
    let config = || StoreConfig { partitions: count, ..StoreConfig::new(clock.clone()) };
    let whole = Store::new(config());
    fill(&whole, &transactions);
    let mut held: Vec<Held> = (0..NODES).map(|_| Held(vec![None; usize::from(PARTITIONS)])).collect();
    for partition in count.all() {
        let store = Store::new(config().of_partition(Scope { partitions: count, partition }));
        fill(&store, &transactions);
        held[usize::from(partition.0) % NODES].0[usize::from(partition.0)] = Some(Arc::new(store));
    }
    let serve = |held| {
        let services = Services { node: Some(Arc::new(held)), ..Services::default() };
        let graphs = Graphs::one("default", services);
        Server::start(ServerConfig::default(), Security::none(), &graphs, clock.clone(), &RealRandom).unwrap()
    };
    let servers: Vec<Server> = held.into_iter().map(serve).collect();
    let address = |partition: PartitionId| servers[usize::from(partition.0) % NODES].address().to_string();
    let replicas =
        count.all().map(|partition| (partition, std::iter::once(Arc::from(address(partition))).collect()));
    let map = RouteMap::new(Epoch(1), Layout::made(count), replicas);
    let fleet = FleetClient::new(
        FleetConfig::default(),
        Security::none(),
        Arc::new(Fixed(Arc::new(map))),
        GuiHasher::default(),
        clock.clone(),
        Arc::new(RealRandom),
    );
    let at = At { version: whole.published(), epoch: Epoch(0) };
    let (mut local, mut remote) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let apl = fleet.query(None, None);
        local.push(measure(&whole, at, turn));
        remote.push(measure(&apl, at, turn));
        assert_eq!(local[turn].rows, remote[turn].rows);
    }
    let median = |of: &[Measured], value: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = of.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{VERTICES} vertices, {EDGES} edges, {PARTITIONS} partitions, {NODES} nodes; medians of {TURNS} turns"
    );
    let show = |what: &str, unit: &str, value: fn(&Measured) -> f64| {
        let (here, there) = (median(&local, value), median(&remote, value));
        println!(
            "{what:48} one store {here:9.2} {unit}   {NODES} nodes {there:9.2} {unit}   {:6.2} times",
            there / here
        );
    };
    show("point read, p50", "us", |m| m.p50);
    show("point read, p99", "us", |m| m.p99);
    show("properties of 1,024 vertices", "us", |m| m.properties);
    show("one key of all vertices, in batches", "ms", |m| m.values);
    show("two hops from 1,000 starts, as the executor asks", "ms", |m| m.batches);
    show("two hops from 1,000 starts, whole frontiers", "ms", |m| m.whole);
    println!("edges that the two hops end with: {}", local[0].rows);
}
