//! The scan workload: the cost of reading without a query language, through the APL of a database in this process on
//! one thread: neighbours of random frontiers, scans of edges and of a column, point reads, breadth-first search, and
//! the memory of the graph. Each figure stands beside a limit of the machine or a search over plain arrays,
//! which is measured in turn with it.
//!
//! Answers are read as queries read them, some thousand rows at a time, so that they stay in the cache.

mod graphs;
mod search;

use super::Flags;
use super::driver::median;
use super::report::{Figure, Report};
use crate::kronecker;
use graphs::{COLUMN_BYTES, Graph};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::time::Instant;
use tidegraph_engine::apl::{
    Apl, At, Cursor, EdgeRun, EdgeRuns, EdgeScan, Expand, Expansion, Projection, PropertyPredicate,
    ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::{Direction, Gui, Sid, Value};

/// Number of rows in an answer.
const ROWS: u32 = 1 << 14;
/// Bytes of an edge in the settled part of a list: neighbour and SID. The list holds the label.
const STORED_BYTES: f64 = 12.0;
/// Number of vertices whose properties are read one by one.
const POINTS: usize = 50_000;

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let scale = flags.scale(20, 12).clamp(8, 26) as u32;
    report.parameter("scale", scale);
    report.parameter("seed", flags.seed);
    report.parameter("rows of one answer", ROWS);
    let unit = 1_usize << scale;
    for (degree, vertices, target) in [(1.0, unit * 4, 0.25), (3.5, unit * 2, 0.75), (28.0, unit / 2, 4.0)] {
        expansion(flags, report, degree, vertices, target)?;
    }
    properties(flags, report, unit)?;
    kronecker(flags, report, scale)
}

type Work<'w> = &'w mut dyn FnMut() -> anyhow::Result<()>;

/// Runs pieces of work in turn for some rounds, so that other work of the machine affects all of them, and returns the
/// median seconds of each.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn in_turn<const N: usize>(flags: &Flags, mut works: [Work<'_>; N]) -> anyhow::Result<[f64; N]> {
    let mut rounds = [const { vec![] }; N];
    for _ in 0..flags.rounds() * 2 + 1 {
        for (work, rounds) in works.iter_mut().zip(&mut rounds) {
            let start = Instant::now();
            work()?;
            rounds.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(rounds.map(|rounds| median(rounds).unwrap_or(f64::NAN)))
}

/// Independent random reads of eight bytes from a table larger than any cache, never twice in the same order.
struct RandomReads {
    words: Vec<u64>,
    state: u64,
}

impl RandomReads {
    fn new(flags: &Flags) -> Self {
        let words = (0..1 << if flags.quick { 20 } else { 28 }).collect();
        Self { words, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Does a number of reads. Their places come from a generator that costs less than a read.
    fn some(&mut self) -> usize {
        const SOME: usize = 1 << 20;
        let mask = self.words.len() - 1;
        let (mut sum, mut state) = (0_u64, self.state);
        for _ in 0..SOME {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            sum = sum.wrapping_add(self.words[state as usize & mask]);
        }
        self.state = state;
        black_box(sum);
        SOME
    }
}

/// Expands a frontier in answers of some thousand rows. Returns the number of rows.
fn expand(
    apl: &dyn Apl,
    at: At,
    request: &Expand,
    frontier: &[Gui],
    out: &mut Expansion,
) -> anyhow::Result<usize> {
    let (mut rows, mut cursor) = (0, Some(Cursor::default()));
    while let Some(from) = cursor {
        out.clear();
        cursor = apl.expand(at, request, frontier, from, out)?;
        rows += out.len();
    }
    Ok(rows)
}

/// Measures the neighbours of random frontiers in a graph of one out-degree.
fn expansion(
    flags: &Flags,
    report: &mut Report,
    degree: f64,
    vertices: usize,
    target: f64,
) -> anyhow::Result<()> {
    let graph = Graph::load(flags, vertices, &graphs::regular(flags, vertices, degree), false)?;
    let snapshot = graph.database.snapshot()?;
    let at = snapshot.at;
    let apl = graph.database.apl();
    let apl = &*apl;
    let mut limit = RandomReads::new(flags);
    let mut random = ChaCha8Rng::seed_from_u64(flags.seed);
    let mut out = Expansion::default();
    for size in [100_000, 500_000] {
        // Another frontier in each round.
        let frontiers: Vec<Vec<Gui>> = (0..4)
            .map(|_| (0..size).map(|_| graph.guis[random.random_range(0..vertices)]).collect())
            .collect();
        for neighbours_only in [true, false] {
            let request = Expand { max_rows: ROWS, neighbours_only, ..Expand::all(Direction::Out) };
            let mut next = frontiers.iter().cycle();
            let (mut rows, mut reads) = (0, 0);
            let mut read = || {
                reads = limit.some();
                Ok(())
            };
            let mut work = || {
                let frontier = next.next().map_or(&[][..], Vec::as_slice);
                rows = expand(apl, at, &request, frontier, &mut out)?;
                Ok(())
            };
            let [by_reads, by_us] = in_turn(flags, [&mut read, &mut work])?;
            let (rate, reads) = (rows as f64 / by_us / 1e6, reads as f64 / by_reads / 1e6);
            let what = if neighbours_only { "neighbours" } else { "neighbours, SIDs, labels" };
            let name = format!("{what}, out-degree {degree}, {size} vertices");
            report.add(Figure::rate(&name, "M tuples/s", rate).beside("random reads", reads));
            report.add(Figure::rate(&name, "tuples a random read", rate / reads).target(target));
        }
    }
    graph.database.close();
    Ok(())
}

/// Returns the nanoseconds of a random read whose place depends on the read before.
fn dependent_read(flags: &Flags) -> anyhow::Result<f64> {
    const STEPS: usize = 500_000;
    let bits = if flags.quick { 20 } else { 28 };
    let mask = (1_u64 << bits) - 1;
    // A linear congruential generator of full period: one cycle through all places.
    let step = |at: u64| (at.wrapping_mul(0x2545_f491_4f6c_dd1d) + 0x1234_5677) & mask;
    let next: Vec<u32> = (0..=mask).map(|at| step(at) as u32).collect();
    let mut at = 0_u32;
    let mut work = || {
        for _ in 0..STEPS {
            at = next[at as usize];
        }
        black_box(at);
        Ok(())
    };
    let [taken] = in_turn(flags, [&mut work])?;
    Ok(taken * 1e9 / STEPS as f64)
}

/// Returns the seconds of some work and the GB per second of copying memory in turn with it. Copied bytes count once.
fn beside_copy(flags: &Flags, work: Work<'_>) -> anyhow::Result<(f64, f64)> {
    let from = vec![1_u64; 1 << if flags.quick { 20 } else { 25 }];
    let mut to = vec![0_u64; from.len()];
    let mut copy = || {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        Ok(())
    };
    let [by_copy, by_us] = in_turn(flags, [&mut copy, work])?;
    Ok((by_us, (from.len() * 8) as f64 / by_copy / 1e9))
}

/// Measures vertices with properties: column scan, point reads, memory.
fn properties(flags: &Flags, report: &mut Report, vertices: usize) -> anyhow::Result<()> {
    let graph = Graph::load(flags, vertices, &[], true)?;
    let snapshot = graph.database.snapshot()?;
    let at = snapshot.at;
    let apl = graph.database.apl();
    let apl = &*apl;
    let properties = graph.database.memory().properties as f64 / vertices as f64;
    report.add(
        Figure::cost(
            "fixed-width properties, memory to raw bytes",
            "times",
            properties / COLUMN_BYTES as f64,
        )
        .target(1.5),
    );
    let token = |name: &str| {
        let token = graph.database.catalog().token(name);
        token.ok_or_else(|| anyhow::anyhow!("the graph has no {name}"))
    };
    for (name, bytes) in [("whole", 4), ("long", 8), ("real", 8)] {
        let low = if name == "real" { Value::Double(142_840.0) } else { Value::Long(999_900) };
        let test = Test::Range { low: Some((low, true)), high: None };
        let scan = VertexScan {
            labels: vec![vec![token("Thing")?]],
            predicates: vec![PropertyPredicate::any(token(name)?, test)],
            max_rows: ROWS,
        };
        let (mut out, mut found) = (Vec::new(), 0);
        let (taken, copy) = beside_copy(flags, &mut || {
            let mut cursor = Some(ScanCursor::default());
            found = 0;
            while let Some(from) = cursor {
                out.clear();
                cursor = apl.scan_vertices(at, &scan, from, &mut out)?;
                found += out.len();
            }
            Ok(())
        })?;
        anyhow::ensure!(found < vertices / 100, "{found} vertices of {vertices} pass a narrow range");
        let rate = (vertices * bytes) as f64 / taken / 1e9;
        let name = format!("scan of one column, a predicate, {bytes} bytes ({name})");
        report.add(Figure::rate(name, "GB/s", rate).beside("memory copy", copy).target(0.6 * copy));
    }
    points(flags, report, &graph, at)?;
    graph.database.close();
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn points(flags: &Flags, report: &mut Report, graph: &Graph, at: At) -> anyhow::Result<()> {
    let apl = graph.database.apl();
    let apl = &*apl;
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
    let mut rows = VertexRows::default();
    let dependent = dependent_read(flags)?;
    let mut random = ChaCha8Rng::seed_from_u64(flags.seed);
    let mut nanos = vec![];
    for _ in 0..POINTS {
        let gui = graph.guis[random.random_range(0..graph.guis.len())];
        rows.clear();
        let start = Instant::now();
        apl.vertices(at, &read, &[gui], &mut rows)?;
        nanos.push(start.elapsed().as_nanos() as f64);
        anyhow::ensure!(rows.present[0], "{gui} is not there");
    }
    let clock: Vec<f64> = (0..1000).map(|_| Instant::now().elapsed().as_nanos() as f64).collect();
    report.parameter("ns of reading the clock, within each point read", median(clock).unwrap_or(0.0));
    nanos.sort_by(f64::total_cmp);
    let quantile = |share: f64| nanos[(nanos.len() as f64 * share) as usize] / 1e3;
    let p50 = quantile(0.5);
    report.add(
        Figure::cost("a vertex with its properties, p50", "us", p50)
            .latency(p50, quantile(0.99), quantile(0.999))
            .beside("dependent random read", dependent / 1e3),
    );
    report.add(
        Figure::cost("a vertex with its properties, p50", "dependent random reads", p50 * 1e3 / dependent)
            .target(5.0),
    );
    let frontier: Vec<Gui> =
        (0..100_000).map(|_| graph.guis[random.random_range(0..graph.guis.len())]).collect();
    let mut work = || {
        for piece in frontier.chunks(1024) {
            rows.clear();
            apl.vertices(at, &read, piece, &mut rows)?;
        }
        Ok(())
    };
    let [taken] = in_turn(flags, [&mut work])?;
    let rate = frontier.len() as f64 / taken / 1e6;
    report.add(Figure::rate("vertices of a frontier with their properties", "M/s", rate));
    Ok(())
}

/// Measures a skewed graph: memory, a scan of all edges, breadth-first search.
fn kronecker(flags: &Flags, report: &mut Report, scale: u32) -> anyhow::Result<()> {
    let vertices = 1_usize << scale;
    let edges = kronecker::pairs(flags.seed, scale);
    let graph = Graph::load(flags, vertices, &edges, false)?;
    let snapshot = graph.database.snapshot()?;
    let at = snapshot.at;
    let count = graph.edges as f64;
    let memory = graph.database.memory();
    let topology = memory.adjacency + memory.indexes + vertices * 64;
    let name = format!("memory an edge, Kronecker {scale}");
    report.add(
        Figure::cost(format!("{name}, both directions, nodes, index"), "bytes", topology as f64 / count)
            .target(32.0),
    );
    report.add(Figure::cost(
        format!("{name}, with vertices and ids"),
        "bytes",
        memory.total() as f64 / count,
    ));
    let parts = [
        ("blocks", memory.adjacency - memory.adjacency_free),
        ("free among blocks", memory.adjacency_free),
        ("indexes", memory.indexes),
        ("nodes and rows", memory.vertices),
        ("older versions", memory.versions),
    ];
    for (what, bytes) in parts {
        report.parameter(&format!("{what}, bytes an edge"), (bytes as f64 / count * 100.0).round() / 100.0);
    }
    edge_scan(flags, report, &graph, at, scale)?;
    searches(flags, report, &graph, at, &edges)?;
    graph.database.close();
    Ok(())
}

fn edge_scan(flags: &Flags, report: &mut Report, graph: &Graph, at: At, scale: u32) -> anyhow::Result<()> {
    let scan = EdgeScan { max_rows: ROWS, ..EdgeScan::default() };
    let (mut out, mut total, mut bytes) = (EdgeRuns::default(), 0, 0);
    let (taken, copy) = beside_copy(flags, &mut || {
        let mut cursor = Some(ScanCursor::default());
        (total, bytes) = (0, 0);
        while let Some(from) = cursor {
            out.clear();
            cursor = graph.database.apl().scan_edges(at, &scan, from, &mut out)?;
            total += out.len();
            bytes += out.len() * (size_of::<Gui>() + size_of::<Sid>());
            bytes += out.runs.len() * size_of::<EdgeRun>();
        }
        Ok(())
    })?;
    anyhow::ensure!(total == graph.edges, "{total} edges of {}", graph.edges);
    let rate = |bytes: f64| total as f64 * bytes / taken / 1e9;
    let name = format!("scan of all edges, Kronecker {scale}");
    report.add(Figure::rate(&name, "M edges/s", rate(1e3)));
    report.add(
        Figure::rate(format!("{name}, 12 bytes as stored"), "GB/s", rate(STORED_BYTES))
            .beside("memory copy", copy)
            .target(0.6 * copy),
    );
    report.add(
        Figure::rate(format!("{name}, bytes answered"), "GB/s", bytes as f64 / taken / 1e9)
            .beside("memory copy", copy),
    );
    Ok(())
}

/// Measures breadth-first searches from some vertices with edges.
fn searches(
    flags: &Flags,
    report: &mut Report,
    graph: &Graph,
    at: At,
    edges: &[(u32, u32)],
) -> anyhow::Result<()> {
    let vertices = graph.guis.len();
    let rows = search::Rows::of(vertices, edges);
    let mut random = ChaCha8Rng::seed_from_u64(flags.seed);
    let mut starts = vec![];
    while starts.len() < flags.rounds() * 2 + 1 {
        let start = random.random_range(0..vertices as u32);
        starts.extend((rows.degree(start) > 0).then_some(start));
    }
    let Some(apl) = graph.database.searches() else { anyhow::bail!("the graph is not in this process") };
    let first = starts[0];
    let mut tree = Vec::with_capacity(vertices);
    let reached = search::live(apl, at, graph.guis[first as usize], &mut tree)?;
    let (down, both) = (rows.search_down(first), rows.search(first));
    anyhow::ensure!(
        reached == down && reached == both,
        "searches reach {reached}, {down} and {both} vertices from v{first}"
    );
    report.parameter("vertices reached by a search", reached);
    let [mut downwards, mut turning, mut ours] = [0, 1, 2].map(|_| starts.iter().copied().cycle());
    let mut plain = || {
        black_box(rows.search_down(downwards.next().unwrap_or(first)));
        Ok(())
    };
    let mut best = || {
        black_box(rows.search(turning.next().unwrap_or(first)));
        Ok(())
    };
    let mut live = || {
        let start = ours.next().unwrap_or(first);
        black_box(search::live(apl, at, graph.guis[start as usize], &mut tree)?);
        Ok(())
    };
    let [plain, best, live] = in_turn(flags, [&mut plain, &mut best, &mut live])?;
    let name = "breadth-first search of the live graph, both ways";
    let figure = |peer: &str, value: f64| Figure::cost(name, "s", live).beside(peer, value);
    report.add(figure("sparse rows, downwards (ours)", plain));
    report.add(figure("sparse rows, direction-optimizing (ours)", best).target(2.0 * best));
    Ok(())
}
