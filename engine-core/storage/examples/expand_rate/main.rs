//! How fast frontiers expand in memory, beside what the machine can do: independent random reads in the same run.
//!
//! `cargo run --release -p tidegraph-storage --example expand_rate [VERTICES]` (default 1,000,000). One thread.
//! `… --example expand_rate kronecker [SCALE]` (default 20) is memory, scan and breadth-first search of a skewed graph.

mod kronecker;

use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{Apl, At, Cursor, Expand, Expansion, Projection, VertexRead, VertexRows};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value, Version,
};

const ROUNDS: usize = 5;
const FRONTIER: usize = 100_000;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
}

fn median(mut rounds: Vec<Duration>) -> f64 {
    rounds.sort_unstable();
    rounds[rounds.len() / 2].as_secs_f64()
}

fn time(clock: &RealClock, mut work: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let before = clock.now();
        work();
        clock.now().saturating_sub(before)
    });
    median(rounds.collect())
}

/// Millions of independent 8-byte reads a second over 2 GiB, other places in each round, so that no cache helps.
fn random_reads(clock: &RealClock, random: &mut Random) -> f64 {
    const READS: usize = 1 << 20;
    let words: Vec<u64> = (0..1 << 28).collect();
    let places: Vec<u32> = (0..READS * ROUNDS).map(|_| random.below(words.len()) as u32).collect();
    let mut rounds = places.chunks(READS);
    let seconds = time(clock, || {
        let places = rounds.next().unwrap_or_default();
        let sum = places.iter().fold(0_u64, |sum, &place| sum.wrapping_add(words[place as usize]));
        std::hint::black_box(sum);
    });
    READS as f64 / seconds / 1e6
}

fn main() {
    let first = std::env::args().nth(1);
    let clock = Arc::new(RealClock::new());
    if first.as_deref() == Some("kronecker") {
        let scale = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(20);
        return kronecker::run(&clock, scale);
    }
    let vertices: usize = first.and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut random = Random(42);
    let reads = random_reads(&clock, &mut random);
    println!("independent random reads     {reads:8.2} M/s");
    for (degree, share) in [(1.0, 1), (3.5, 1), (28.0, 4)] {
        measure(&clock, &mut random, vertices / share, degree, reads);
    }
}

/// Expands a frontier in answers that stay in the cache, as a query does.
fn expand(store: &Store, at: At, request: &Expand, frontier: &[Gui], out: &mut Expansion) -> usize {
    let (mut rows, mut cursor) = (0, Some(Cursor::default()));
    while let Some(from) = cursor {
        out.clear();
        cursor = store.expand(at, request, frontier, from, out).expect("the version is kept");
        rows += out.len();
    }
    rows
}

fn measure(clock: &Arc<RealClock>, random: &mut Random, vertices: usize, degree: f64, reads: f64) {
    let config = StoreConfig { window: Duration::ZERO, ..StoreConfig::new(clock.clone()) };
    let store = Store::new(config);
    let ids: Vec<Str> = (0..vertices).map(|i| Str::from(format!("v{i}"))).collect();
    let guis: Vec<Gui> = ids.iter().map(|id| store.config().hasher.gui(id)).collect();
    let edges = (vertices as f64 * degree) as usize;
    let before = clock.now();
    let mut load = store.begin_load(Version(1));
    let mut batch = Vec::new();
    for (id, &gui) in ids.iter().zip(&guis) {
        let age = PropertyWrite {
            key: Token(9),
            cardinality: Cardinality::Single,
            value: Value::Int(random.below(100) as i32),
        };
        let (labels, properties) = (vec![Token(1)], vec![age]);
        batch.push(Mutation::CreateVertex { gui, id: id.clone(), labels, properties });
        if batch.len() == 8192 {
            load.apply(&batch);
            batch.clear();
        }
    }
    for sid in 1..=edges {
        let edge = Edge {
            sid: Sid(sid as u64),
            // Whole degrees for all, the rest at random.
            source: guis
                [if sid <= edges / vertices * vertices { sid % vertices } else { random.below(vertices) }],
            target: guis[random.below(vertices)],
            label: Token(2),
        };
        batch.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
        if batch.len() == 8192 {
            load.apply(&batch);
            batch.clear();
        }
    }
    load.apply(&batch);
    load.finish();
    store.publish(Version(1));
    let loaded = clock.now().saturating_sub(before).as_secs_f64();
    let before = clock.now();
    store.publish(Version(2));
    while store.reclaim(1 << 20) > 0 {}
    let settled = clock.now().saturating_sub(before).as_secs_f64();
    println!("\n{vertices} vertices, {edges} edges");
    println!("load                         {:8.2} M elements/s", (vertices + edges) as f64 / loaded / 1e6);
    println!("settle                       {:8.2} M elements/s", (vertices + edges) as f64 / settled / 1e6);
    let memory = store.memory();
    println!(
        "memory                       {:8.1} bytes/element   {memory:?}",
        memory.total() as f64 / (vertices + edges) as f64
    );

    let at = At { version: store.published(), epoch: Epoch(0) };
    let request = Expand { max_rows: 1 << 14, ..Expand::all(Direction::Out) };
    let frontiers: Vec<Vec<Gui>> =
        (0..ROUNDS).map(|_| (0..FRONTIER).map(|_| guis[random.below(vertices)]).collect()).collect();
    // Another one in each round.
    let mut next = (0..ROUNDS).cycle();
    let mut frontier = || &frontiers[next.next().unwrap_or(0)][..];
    let mut out = Expansion::default();
    let mut rows = 0;
    let seconds = time(clock, || {
        rows = expand(&store, at, &request, frontier(), &mut out);
    });
    let rate = rows as f64 / seconds / 1e6;
    println!(
        "expand, frontier of 100,000  {:8.2} M vertices/s  {rate:8.2} M tuples/s  {:.2} tuples a random read",
        FRONTIER as f64 / seconds / 1e6,
        rate / reads
    );
    let bare = Expand { neighbours_only: true, ..request.clone() };
    let seconds = time(clock, || {
        expand(&store, at, &bare, frontier(), &mut out);
    });
    let rate = rows as f64 / seconds / 1e6;
    println!(
        "  neighbours only            {:8.2} M vertices/s  {rate:8.2} M tuples/s  {:.2} tuples a random read",
        FRONTIER as f64 / seconds / 1e6,
        rate / reads
    );
    let one = time(clock, || {
        for gui in &frontier()[..20_000] {
            out.clear();
            store
                .expand(at, &request, std::slice::from_ref(gui), Cursor::default(), &mut out)
                .expect("the version is kept");
        }
    });
    println!("expand, one vertex           {:8.0} ns", one / 20_000.0 * 1e9);
    let mut degrees = Vec::new();
    let seconds = time(clock, || {
        degrees.clear();
        store.degrees(at, &request, frontier(), &mut degrees).expect("the version is kept");
    });
    println!("degrees                      {:8.2} M vertices/s", FRONTIER as f64 / seconds / 1e6);
    let mut cells = VertexRows::default();
    let read = VertexRead { ids: true, labels: true, properties: Projection::Keys(vec![Token(9)]) };
    let seconds = time(clock, || {
        cells.clear();
        store.vertices(at, &read, frontier(), &mut cells).expect("the version is kept");
    });
    println!("id, labels and one property  {:8.2} M vertices/s", FRONTIER as f64 / seconds / 1e6);
    let mut found = Vec::new();
    let asked: Vec<Str> = (0..FRONTIER * ROUNDS).map(|_| ids[random.below(vertices)].clone()).collect();
    let mut rounds = asked.chunks(FRONTIER);
    let seconds = time(clock, || {
        found.clear();
        let asked = rounds.next().unwrap_or_default();
        store.resolve_vertices(at, asked, &mut found).expect("the version is kept");
    });
    println!("resolve ids                  {:8.2} M vertices/s", FRONTIER as f64 / seconds / 1e6);
}
