//! `micro spill-rate`: loads and reads a graph with properties, first without a memory budget and then with budgets of
//! a part of what it took. Each runs in a process of its own and prints rates and the memory of the process. One thread
//! works.
//!
//! Run it with `MIMALLOC_PURGE_DELAY=0`, which gives the allocator the setting that the service uses under a budget.

use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_platform::memory::resident_bytes;
use tidegraph_platform::{Clock, RealClock, RealDisk};
use tidegraph_storage::{MemoryBudget, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Edge, Epoch, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value, Version,
};

const ROUNDS: usize = 3;
const READS: usize = 20_000;
const FRONTIER: usize = 100_000;
const LABEL: Token = Token(1);
const NUMBER: Token = Token(10);

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
}

/// Measures one budget in this process (`none` is no budget); without one, all budgets in processes of their own.
pub fn run(vertices: usize, budget: Option<&str>) -> anyhow::Result<()> {
    if let Some(budget) = budget {
        let limit = match budget {
            "none" => None,
            bytes => Some(
                bytes.parse().with_context(|| format!("the budget {bytes:?} is not a number of bytes"))?,
            ),
        };
        Run::new(vertices, limit).all(limit);
        return Ok(());
    }
    // The first process has no budget and prints what the whole graph takes.
    let whole = child(vertices, "none")?;
    for percent in [100, 50, 25] {
        child(vertices, &(whole / 100 * percent).to_string())?;
    }
    Ok(())
}

/// Runs this program for one budget and returns the bytes that the store took.
fn child(vertices: usize, budget: &str) -> anyhow::Result<u64> {
    let output = std::process::Command::new(std::env::current_exe()?)
        .args(["micro", "spill-rate", &vertices.to_string(), budget])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let took = text.lines().find_map(|line| line.strip_prefix("the store takes"));
    Ok(took.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0))
}

struct Run {
    store: Store,
    clock: Arc<RealClock>,
    random: Random,
    guis: Vec<Gui>,
    most: u64,
    before: u64,
}

fn write(key: u32, value: Value) -> PropertyWrite {
    PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value }
}

impl Run {
    fn new(vertices: usize, budget: Option<u64>) -> Self {
        let clock = Arc::new(RealClock::new());
        let dir = std::env::temp_dir().join("tidegraph-spill-rate");
        let memory = budget.map(|bytes| MemoryBudget {
            bytes,
            disk: Arc::new(RealDisk),
            dir,
            process_bytes: Some(resident_bytes),
        });
        let store = Store::new(StoreConfig { memory, ..StoreConfig::new(clock.clone()) });
        let hasher = store.config().hasher;
        let guis = (0..vertices).map(|index| hasher.gui(&Str::from(format!("v{index}")))).collect();
        let before = resident_bytes().unwrap_or(0);
        Self { store, clock, random: Random(42), guis, most: 0, before }
    }

    fn note(&mut self) {
        self.most = self.most.max(resident_bytes().unwrap_or(0));
    }

    /// Prints the memory of the process beside the memory that the store counts.
    fn stage(&mut self, name: &str) {
        self.note();
        let resident = resident_bytes().unwrap_or(0);
        let counted = self.store.memory_use().in_memory;
        println!(
            "  {name:20} resident {:5} MiB, {:5} MiB at most so far, the store counts {:5} MiB",
            resident >> 20,
            self.most >> 20,
            counted >> 20
        );
    }

    fn load(&mut self) -> f64 {
        let begin = self.clock.now();
        let (mut batch, last) = (Vec::new(), self.guis.len() - 1);
        for index in 0..self.guis.len() {
            let number = self.random.below(1_000_000);
            let text = |what: &str, length: usize| Value::string(format!("{what} {number:0length$}"));
            batch.push(Mutation::CreateVertex {
                gui: self.guis[index],
                id: Str::from(format!("v{index}")),
                labels: vec![LABEL],
                properties: vec![
                    write(NUMBER.0, Value::Int(number as i32)),
                    write(11, Value::Double(number as f64 / 7.0)),
                    write(12, text("name", 8)),
                    write(13, text("street", 20)),
                    write(14, text("some more of a text that is longer", 60)),
                ],
            });
            if batch.len() == 16_384 || index == last {
                self.store.apply_load_block(Version(1), &batch);
                batch.clear();
                self.note();
            }
        }
        self.stage("vertices");
        for sid in 0..self.guis.len() as u64 {
            let (source, target) = (self.random.below(self.guis.len()), self.random.below(self.guis.len()));
            let edge = Edge {
                sid: Sid(sid + 1),
                source: self.guis[source],
                target: self.guis[target],
                label: LABEL,
            };
            batch.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
            if batch.len() == 16_384 || sid as usize == last {
                self.store.apply_load_block(Version(1), &batch);
                batch.clear();
                self.note();
            }
        }
        self.store.publish(Version(1));
        self.stage("edges");
        (self.clock.now() - begin).as_secs_f64()
    }

    fn time(&mut self, mut work: impl FnMut(&mut Self)) -> f64 {
        let mut rounds: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let before = self.clock.now();
                work(self);
                self.note();
                self.clock.now().saturating_sub(before)
            })
            .collect();
        rounds.sort_unstable();
        rounds[ROUNDS / 2].as_secs_f64()
    }

    /// Returns the median and the 99th percentile, in microseconds, of reading one of the first `among` vertices with
    /// all properties.
    fn points(&mut self, among: usize) -> (f64, f64) {
        let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
        let at = At { version: self.store.published(), epoch: Epoch(0) };
        let mut rows = VertexRows::default();
        let mut nanos: Vec<u64> = (0..2 * READS)
            .map(|_| {
                let gui = self.guis[self.random.below(among)];
                rows.clear();
                let before = self.clock.now();
                self.store.vertices(at, &read, &[gui], &mut rows).expect("the vertex can be read");
                assert!(rows.present[0] && rows.cells.len() == 5);
                self.clock.now().saturating_sub(before).as_nanos() as u64
            })
            .skip(READS)
            .collect();
        self.note();
        nanos.sort_unstable();
        (nanos[READS / 2] as f64 / 1e3, nanos[READS * 99 / 100] as f64 / 1e3)
    }

    fn all(mut self, budget: Option<u64>) {
        let seconds = self.load();
        let vertices = self.guis.len();
        while self.store.reclaim(1 << 20) > 0 {}
        match budget {
            None => println!("--- no budget, {vertices} vertices with 5 properties, as many edges"),
            Some(bytes) => println!("--- a budget of {} MiB", bytes >> 20),
        }
        let used = self.store.memory_use();
        println!("the store takes {:12} bytes, {} of them topology", used.in_memory, used.fixed);
        println!("on disk         {:12} bytes", used.spilled);
        println!(
            "load            {:8.0} thousand vertices and edges/s",
            2.0 * vertices as f64 / seconds / 1e3
        );
        let (p50, p99) = self.points(vertices);
        println!("point reads     {p50:8.1} us p50, {p99:.1} us p99, of any vertex");
        self.stage("point reads");
        let (p50, p99) = self.points(vertices / 10);
        println!("point reads     {p50:8.1} us p50, {p99:.1} us p99, of a tenth of them");
        let frontier: Vec<Gui> = (0..FRONTIER).map(|_| self.guis[self.random.below(vertices)]).collect();
        let at = At { version: self.store.published(), epoch: Epoch(0) };
        let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
        let seconds = self.time(|run| {
            let mut rows = VertexRows::default();
            run.store.vertices(at, &read, &frontier, &mut rows).expect("the frontier can be read");
        });
        println!("frontier        {:8.0} ns a vertex", seconds * 1e9 / FRONTIER as f64);
        self.stage("frontier");
        let test = Test::Range { low: Some((Value::Long(999_900), true)), high: None };
        let scan = VertexScan {
            labels: vec![vec![LABEL]],
            predicates: vec![PropertyPredicate { key: NUMBER, test, sole: false }],
            max_rows: u32::MAX,
        };
        let mut found = Vec::new();
        let seconds = self.time(|run| {
            found.clear();
            let mut cursor = ScanCursor::default();
            while let Some(next) =
                run.store.scan_vertices(at, &scan, cursor, &mut found).expect("the scan goes through")
            {
                cursor = next;
            }
        });
        println!("column scan     {:8.1} M rows/s, {} found", vertices as f64 / seconds / 1e6, found.len());
        let most = self.most;
        println!(
            "resident        {:8} MiB at most, {} MiB before the graph, {:.2} of {}",
            most >> 20,
            self.before >> 20,
            most as f64 / budget.unwrap_or(used.in_memory) as f64,
            if budget.is_some() { "the budget" } else { "what the store counts" }
        );
        println!("{:?}", self.store.memory_use());
    }
}
