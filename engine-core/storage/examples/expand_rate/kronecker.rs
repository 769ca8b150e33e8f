//! A Kronecker graph (a = 0.57, b = c = 0.19, 16 edges a vertex): memory an edge, a scan of all edges beside copying
//! memory, and a breadth-first search beside one over compressed sparse rows.

use super::{Random, time};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{Apl, At, Cursor, EdgeScan, Expand, Expansion, ScanCursor};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Direction, Edge, Epoch, Gui, Mutation, Sid, Str, Token, Version};

const EDGES_A_VERTEX: usize = 16;
/// Vertices that one request expands.
const PIECE: usize = 4096;

/// Places of the visited vertices: open addressing by GUI, which is a hash already.
struct Visited {
    entries: Vec<u64>,
}

impl Visited {
    fn new(vertices: usize) -> Self {
        Self { entries: vec![0; (vertices * 2).next_power_of_two()] }
    }

    /// True the first time.
    fn visit(&mut self, gui: Gui) -> bool {
        let mask = self.entries.len() - 1;
        let mut at = gui.0 as usize & mask;
        loop {
            let entry = &mut self.entries[at];
            if *entry == gui.0 {
                return false;
            }
            if *entry == 0 {
                *entry = gui.0;
                return true;
            }
            at = (at + 1) & mask;
        }
    }
}

fn edges_of(scale: u32, random: &mut Random) -> Vec<(u32, u32)> {
    let vertices = 1_usize << scale;
    let pair = |random: &mut Random| {
        let (mut source, mut target) = (0, 0);
        for _ in 0..scale {
            let draw = random.below(100);
            let (s, t) = match draw {
                0..57 => (0, 0),
                57..76 => (0, 1),
                76..95 => (1, 0),
                _ => (1, 1),
            };
            (source, target) = (source << 1 | s, target << 1 | t);
        }
        (source, target)
    };
    (0..vertices * EDGES_A_VERTEX).map(|_| pair(random)).collect()
}

struct Rows {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

fn rows_of(vertices: usize, edges: &[(u32, u32)]) -> Rows {
    let mut starts = vec![0_u32; vertices + 1];
    edges.iter().for_each(|(source, _)| starts[*source as usize + 1] += 1);
    for vertex in 0..vertices {
        starts[vertex + 1] += starts[vertex];
    }
    let (mut next, mut targets) = (starts.clone(), vec![0; edges.len()]);
    for (source, target) in edges {
        targets[next[*source as usize] as usize] = *target;
        next[*source as usize] += 1;
    }
    Rows { starts, targets }
}

fn search_rows(rows: &Rows, start: u32) -> usize {
    let mut parents = vec![u32::MAX; rows.starts.len() - 1];
    parents[start as usize] = start;
    let (mut frontier, mut next, mut seen) = (vec![start], Vec::new(), 1);
    while !frontier.is_empty() {
        for &vertex in &frontier {
            let (from, to) = (rows.starts[vertex as usize], rows.starts[vertex as usize + 1]);
            for &target in &rows.targets[from as usize..to as usize] {
                if parents[target as usize] == u32::MAX {
                    parents[target as usize] = vertex;
                    next.push(target);
                }
            }
        }
        seen += next.len();
        std::mem::swap(&mut frontier, &mut next);
        next.clear();
    }
    seen
}

fn search_store(store: &Store, at: At, vertices: usize, start: Gui) -> usize {
    let mut visited = Visited::new(vertices);
    visited.visit(start);
    let request = Expand { max_rows: 1 << 16, ..Expand::all(Direction::Out) };
    let (mut frontier, mut next, mut seen) = (vec![start], Vec::new(), 1);
    let mut out = Expansion::default();
    while !frontier.is_empty() {
        for piece in frontier.chunks(PIECE) {
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                out.clear();
                cursor = store.expand(at, &request, piece, from, &mut out).expect("the version is kept");
                next.extend(out.neighbour.iter().copied().filter(|gui| visited.visit(*gui)));
            }
        }
        seen += next.len();
        std::mem::swap(&mut frontier, &mut next);
        next.clear();
    }
    seen
}

pub fn run(clock: &Arc<RealClock>, scale: u32) {
    let vertices = 1_usize << scale;
    let edges = edges_of(scale, &mut Random(7));
    let store = Store::new(StoreConfig { window: Duration::ZERO, ..StoreConfig::new(clock.clone()) });
    let ids: Vec<Str> = (0..vertices).map(|i| Str::from(format!("v{i}"))).collect();
    let guis: Vec<Gui> = ids.iter().map(|id| store.config().hasher.gui(id)).collect();
    let mut batch = Vec::new();
    for (id, &gui) in ids.iter().zip(&guis) {
        let labels = vec![Token(1)];
        batch.push(Mutation::CreateVertex { gui, id: id.clone(), labels, properties: vec![] });
    }
    let mut load = store.begin_load(Version(1));
    load.apply(&batch);
    let before = clock.now();
    for (piece, some) in edges.chunks(1 << 16).enumerate() {
        batch.clear();
        for (index, (source, target)) in some.iter().enumerate() {
            let edge = Edge {
                sid: Sid(((piece << 16) + index + 1) as u64),
                source: guis[*source as usize],
                target: guis[*target as usize],
                label: Token(2),
            };
            batch.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
        }
        load.apply(&batch);
    }
    load.finish();
    let loaded = clock.now().saturating_sub(before).as_secs_f64();
    store.publish(Version(1));
    let before = clock.now();
    store.publish(Version(2));
    while store.reclaim(1 << 20) > 0 {}
    let settled = clock.now().saturating_sub(before).as_secs_f64();
    let count = edges.len() as f64;
    println!("Kronecker scale {scale}: {vertices} vertices, {} edges", edges.len());
    println!("load                         {:8.2} M edges/s", count / loaded / 1e6);
    println!("settle                       {:8.2} M edges/s", count / settled / 1e6);
    let memory = store.memory();
    let topology = memory.adjacency + memory.indexes + vertices * 64;
    println!("topology (nodes, index, both directions) {:8.1} bytes/edge", topology as f64 / count);
    println!("adjacency blocks                         {:8.1} bytes/edge", memory.adjacency as f64 / count);
    println!("all                                      {:8.1} bytes/edge", memory.total() as f64 / count);

    let at = At { version: store.published(), epoch: Epoch(0) };
    let from: Vec<u64> = (0..1 << 26).collect();
    let mut to = vec![0_u64; from.len()];
    let seconds = time(clock, || {
        to.copy_from_slice(&from);
        std::hint::black_box(&to);
    });
    let copied = (from.len() * 8) as f64 / seconds / 1e9;
    println!("copy of 512 MiB              {copied:8.2} GB/s");
    let scan = EdgeScan { max_rows: 1 << 14, ..EdgeScan::default() };
    let mut out: Vec<Edge> = Vec::new();
    let mut total = 0;
    let seconds = time(clock, || {
        total = 0;
        let mut cursor = Some(ScanCursor::default());
        while let Some(from) = cursor {
            out.clear();
            cursor = store.scan_edges(at, &scan, from, &mut out).expect("the version is kept");
            total += out.len();
        }
    });
    assert_eq!(total, edges.len());
    println!(
        "scan of all edges            {:8.2} M/s, {:.2} GB/s read, {:.2} GB/s answered",
        count / seconds / 1e6,
        count * 12.0 / seconds / 1e9,
        count * size_of::<Edge>() as f64 / seconds / 1e9
    );

    let rows = rows_of(vertices, &edges);
    let start = edges[0].0;
    let mut seen = 0;
    let by_rows = time(clock, || seen = search_rows(&rows, start));
    let mut found = 0;
    let by_store = time(clock, || found = search_store(&store, at, vertices, guis[start as usize]));
    assert_eq!(seen, found, "both searches reach the same vertices");
    println!(
        "search of {seen} vertices: sparse rows {by_rows:.3} s, store {by_store:.3} s, {:.2} times",
        by_store / by_rows
    );
}
