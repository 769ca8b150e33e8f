//! `micro topology-rate`: reads topology straight from a store and prints rates beside the limits of the machine,
//! measured in turn. Parts: `scan` reads all edges, `search` runs breadth-first searches, `expand` reads neighbours of
//! random frontiers.

use crate::kronecker;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Cursor, EdgeRuns, EdgeScan, Error, Expand, Expansion, ScanCursor, searches::breadth_first,
};
use tidegraph_platform::RealClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Direction, Edge, Epoch, Gui, Mutation, Sid, Str, Token, Version};

const ROWS: u32 = 1 << 14;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Returns the processor time of this thread in seconds. Other work on the machine changes it less than the time of a
/// clock.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the number of rounds, from the environment variable `ROUNDS`.
fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(9)
}

/// Runs two pieces of work in turn and returns the median seconds of each.
fn in_turn(mut one: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let mut taken = [vec![], vec![]];
    for _ in 0..rounds() {
        let start = processor_seconds();
        one();
        taken[0].push(processor_seconds() - start);
        let start = processor_seconds();
        other();
        taken[1].push(processor_seconds() - start);
    }
    let [one, other] = taken.map(median);
    (one, other)
}

struct Graph {
    store: Store,
    at: At,
    guis: Vec<Gui>,
}

/// Builds a graph in the order of a load: vertices by partition and GUI, edges by those of their source.
fn graph(vertices: usize, edges: &[(u32, u32)]) -> Graph {
    let config = StoreConfig::new(Arc::new(RealClock::new()));
    let store = Store::new(StoreConfig { window: Duration::ZERO, ..config });
    let (hasher, partitions) = (store.config().hasher, store.config().partitions);
    let guis: Vec<Gui> = (0..vertices).map(|number| hasher.gui(&format!("v{number}"))).collect();
    let place = |gui: Gui| (partitions.of(gui), gui);
    let mut load = store.begin_load(Version(1));
    let mut order: Vec<usize> = (0..vertices).collect();
    order.sort_unstable_by_key(|n| place(guis[*n]));
    for some in order.chunks(8192) {
        let made = some.iter().map(|n| Mutation::CreateVertex {
            gui: guis[*n],
            id: Str::from(format!("v{n}")),
            labels: vec![Token(1)],
            properties: vec![],
        });
        load.apply(&made.collect::<Vec<_>>());
    }
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by_cached_key(|n| place(guis[edges[*n].0 as usize]));
    for some in order.chunks(8192) {
        let made = some.iter().map(|n| {
            let (source, target) = (guis[edges[*n].0 as usize], guis[edges[*n].1 as usize]);
            let edge = Edge { sid: Sid(*n as u64 + 1), source, target, label: Token(2) };
            Mutation::CreateEdge { edge, id: None, properties: vec![] }
        });
        load.apply(&made.collect::<Vec<_>>());
    }
    let outcome = load.finish();
    assert_eq!(outcome.edges_created, edges.len() as u64);
    store.publish(Version(1));
    store.publish(Version(2));
    while store.reclaim(1 << 20) > 0 {}
    Graph { store, at: At { version: Version(2), epoch: Epoch(0) }, guis }
}

fn regular(vertices: usize, degree: f64) -> Vec<(u32, u32)> {
    let mut random = Random(7);
    let edges = (vertices as f64 * degree) as usize;
    let whole = degree as usize * vertices;
    let mut any = || random.below(vertices) as u32;
    (0..edges).map(|n| if n < whole { ((n % vertices) as u32, any()) } else { (any(), any()) }).collect()
}

/// Returns work that copies memory.
fn copying<'c>(from: &'c [u64], to: &'c mut [u64]) -> impl FnMut() + 'c {
    move || {
        to.copy_from_slice(black_box(from));
        black_box(&mut *to);
    }
}

fn scan(graph: &Graph, edges: usize) {
    let from = vec![1_u64; 1 << 25];
    let mut to = vec![0_u64; from.len()];
    let scan = EdgeScan { max_rows: ROWS, ..EdgeScan::default() };
    let mut out = EdgeRuns::default();
    let work = || {
        let (mut cursor, mut total) = (Some(ScanCursor::default()), 0);
        while let Some(from) = cursor {
            out.clear();
            cursor = graph.store.scan_edges(graph.at, &scan, from, &mut out).expect("this version is kept");
            total += out.len();
        }
        assert_eq!(total, edges);
    };
    let (copy, ours) = in_turn(copying(&from, &mut to), work);
    report_scan("edges as columns", edges, ours, copy);
    let mut out = Vec::new();
    let work = || {
        let (mut cursor, mut total) = (Some(ScanCursor::default()), 0);
        while let Some(from) = cursor {
            out.clear();
            cursor =
                graph.store.scan_edge_rows(graph.at, &scan, from, &mut out).expect("this version is kept");
            total += out.len();
        }
        assert_eq!(total, edges);
    };
    let (copy, ours) = in_turn(copying(&from, &mut to), work);
    report_scan("edges as rows", edges, ours, copy);
}

fn report_scan(what: &str, edges: usize, ours: f64, copy: f64) {
    let (rate, copy) = (edges as f64 * 12.0 / ours / 1e9, (8_usize << 25) as f64 / copy / 1e9);
    println!(
        "{what:40} {:8.1} M/s {rate:6.2} GB/s, copying {copy:6.2} GB/s: {:.3}",
        edges as f64 / ours / 1e6,
        rate / copy
    );
}

fn expand(degree: f64, vertices: usize) {
    let graph = graph(vertices, &regular(vertices, degree));
    let words: Vec<u64> = (0..1 << 28).collect();
    let mut random = Random(1);
    for neighbours_only in [true, false] {
        for size in [100_000, 500_000] {
            let frontiers: Vec<Vec<Gui>> =
                (0..4).map(|_| (0..size).map(|_| graph.guis[random.below(vertices)]).collect()).collect();
            let request = Expand { max_rows: ROWS, neighbours_only, ..Expand::all(Direction::Out) };
            let (mut next, mut rows, mut out) = (frontiers.iter().cycle(), 0, Expansion::default());
            let mut place = Random(random.next());
            let reads = || {
                let mut sum = 0_u64;
                for _ in 0..1 << 20 {
                    sum = sum.wrapping_add(words[place.next() as usize & (words.len() - 1)]);
                }
                black_box(sum);
            };
            let (reads, ours) = in_turn(reads, || {
                let (frontier, mut cursor) = (next.next().expect("it goes round"), Some(Cursor::default()));
                rows = 0;
                while let Some(from) = cursor {
                    out.clear();
                    cursor = graph
                        .store
                        .expand(graph.at, &request, frontier, from, &mut out)
                        .expect("this version is kept");
                    rows += out.len();
                }
            });
            let (rate, reads) = (rows as f64 / ours, f64::from(1 << 20) / reads);
            let what = if neighbours_only { "neighbours" } else { "edges" };
            println!(
                "{what:10} degree {degree:4} frontier {size} {:8.1} M/s {:6.1} ns a vertex, random reads {:6.2} M/s: {:.3}",
                rate / 1e6,
                ours * 1e9 / size as f64,
                reads / 1e6,
                rate / reads
            );
        }
    }
}

/// Measures breadth-first searches from vertices with edges, one after the other.
fn search(graph: &Graph, edges: &[(u32, u32)]) {
    let mut random = Random(3);
    let request = Expand::all(Direction::Both);
    let mut pairs: Vec<(Gui, Gui)> = Vec::new();
    let mut taken = vec![];
    for round in 0..rounds() {
        let (start, _) = edges[random.below(edges.len())];
        let mut levels: Vec<(&str, usize, f64)> = vec![];
        pairs.clear();
        let begin = processor_seconds();
        let searched: Result<(), Error> =
            breadth_first(&graph.store, graph.at, &request, &[graph.guis[start as usize]], &mut |reached| {
                pairs.extend(reached.vertices.iter().copied().zip(reached.parents.iter().copied()));
                levels.resize(reached.depth as usize, ("", 0, 0.0));
                let level = &mut levels[reached.depth as usize - 1];
                level.0 = if reached.upwards { "up" } else { "down" };
                level.1 += reached.vertices.len();
                level.2 = processor_seconds() - begin;
                Ok(true)
            });
        searched.expect("this version is kept");
        taken.push(processor_seconds() - begin);
        if round < 3 {
            let steps: Vec<String> = levels
                .iter()
                .map(|(way, count, until)| format!("{way} {count} until {:.1} ms", until * 1e3))
                .collect();
            println!("search from v{start}: {} vertices; {}", pairs.len() + 1, steps.join(", "));
        }
    }
    println!("a search: {:.1} ms", median(taken) * 1e3);
}

/// Prints the rates of some parts, or of all if none is named; graphs have about 2^`scale` vertices.
pub fn run(scale: u32, parts: &[String]) {
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    if wants("scan") || wants("search") {
        let edges = kronecker::pairs(42, scale);
        let graph = graph(1 << scale, &edges);
        let memory = graph.store.memory();
        println!(
            "{} vertices, {} edges, adjacency {} MB, versions {}",
            1_usize << scale,
            edges.len(),
            memory.adjacency >> 20,
            memory.versions
        );
        if wants("scan") {
            scan(&graph, edges.len());
        }
        if wants("search") {
            search(&graph, &edges);
        }
    }
    if wants("expand") {
        let unit = 1_usize << scale;
        for (degree, vertices) in [(1.0, unit * 4), (3.5, unit * 2), (28.0, unit / 2)] {
            expand(degree, vertices);
        }
    }
}
