//! The memory of a process stays near its budget while a graph of several times that size
//! is loaded, read and changed, and all answers are correct. The test runs in a process
//! of its own, with the allocator of the service and its setting.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
#![cfg(target_os = "linux")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use rand::{Rng, SeedableRng, rngs::StdRng};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_platform::memory::resident_bytes;
use tidegraph_platform::{ManualClock, RealDisk};
use tidegraph_storage::{MemoryBudget, Store, StoreConfig};
use tidegraph_types::{Cardinality, Edge, Epoch, Gui, Mutation, PropertyWrite, Sid, Token, Value, Version};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BUDGET: u64 = 64 << 20;
const VERTICES: usize = 160_000;
const BLOCK: usize = 2048;
const NUMBER: Token = Token(10);
const TEXT: Token = Token(11);
/// Marks the process that is measured.
const CHILD: &str = "TIDEGRAPH_TEST_MEASURED";

#[test]
fn a_process_stays_near_its_budget() {
    if std::env::var_os(CHILD).is_some() {
        return Run::new().all();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_stays_near_its_budget", "--nocapture"])
        .env(CHILD, "1")
        // `tidegraph serve` sets this if it has a budget.
        .env("MIMALLOC_PURGE_DELAY", "0")
        .output()
        .unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    println!("{text}");
}

/// Returns the text of a vertex after a number of changes: 100 to 2,000 bytes.
fn text(vertex: usize, changes: u32) -> Value {
    let length = 100 + vertex * 7919 % 1900;
    Value::string(format!("{vertex} after {changes} {:x<length$}", ""))
}

struct Run {
    store: Store,
    clock: Arc<ManualClock>,
    random: StdRng,
    guis: Vec<Gui>,
    changes: Vec<u32>,
    version: Version,
    most: (u64, &'static str),
    _directory: tempfile::TempDir,
}

impl Run {
    fn new() -> Self {
        let (clock, directory) = (Arc::new(ManualClock::default()), tempfile::tempdir().unwrap());
        let memory = MemoryBudget {
            bytes: BUDGET,
            disk: Arc::new(RealDisk),
            dir: directory.path().to_owned(),
            process_bytes: Some(resident_bytes),
        };
        let store = Store::new(StoreConfig { memory: Some(memory), ..StoreConfig::new(clock.clone()) });
        let hasher = store.config().hasher;
        let guis = (0..VERTICES).map(|n| hasher.gui(&format!("v{n}"))).collect();
        let (random, version) = (StdRng::seed_from_u64(5), Version(0));
        Self {
            store,
            clock,
            random,
            guis,
            changes: Vec::new(),
            version,
            most: (0, ""),
            _directory: directory,
        }
    }

    fn at(&self) -> At {
        At { version: self.store.published(), epoch: Epoch(0) }
    }

    fn note(&mut self, what: &'static str) {
        self.most = self.most.max((resident_bytes().unwrap(), what));
    }

    fn publish(&mut self) {
        self.store.publish(self.version);
        self.clock.advance(Duration::from_secs(1));
        self.store.reclaim(1 << 14);
    }

    fn read(&mut self, count: usize) {
        let there = self.changes.len();
        let vertices: Vec<usize> = (0..count).map(|_| self.random.random_range(0..there)).collect();
        let frontier: Vec<Gui> = vertices.iter().map(|n| self.guis[*n]).collect();
        let read =
            VertexRead { ids: true, labels: true, properties: Projection::All, ..VertexRead::default() };
        let mut rows = VertexRows::default();
        self.store.vertices(self.at(), &read, &frontier, &mut rows).unwrap();
        for (row, vertex) in vertices.into_iter().enumerate() {
            assert_eq!(rows.ids[row], format!("v{vertex}"));
            let find = |key| rows.cells_of(row).iter().find(|cell| cell.key == key).unwrap();
            assert_eq!(find(NUMBER).value, Value::Int(vertex as i32));
            assert_eq!(find(TEXT).value, text(vertex, self.changes[vertex]));
        }
        self.note("a frontier is read");
    }

    fn load(&mut self) {
        let write = |key, value| PropertyWrite { key, cardinality: Cardinality::Single, value };
        let mut sid = 0;
        for first in (0..VERTICES).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(VERTICES);
            self.version = self.version.next();
            let rows = block.clone().map(|n| Mutation::CreateVertex {
                gui: self.guis[n],
                id: format!("v{n}").into(),
                labels: vec![Token(1)],
                properties: vec![write(NUMBER, Value::Int(n as i32)), write(TEXT, text(n, 0))],
            });
            let mut load: Vec<Mutation> = rows.collect();
            for source in block.clone() {
                sid += 1;
                let target = self.guis[self.random.random_range(0..block.end)];
                let edge = Edge { sid: Sid(sid), source: self.guis[source], target, label: Token(2) };
                load.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
            }
            self.store.apply_load_block(self.version, &load);
            drop(load);
            self.changes.resize(block.end, 0);
            self.publish();
            self.note("a block is loaded");
            self.read(8);
        }
    }

    fn change(&mut self) {
        self.version = self.version.next();
        let mut writes = Vec::new();
        for _ in 0..5 {
            let vertex = self.random.random_range(0..VERTICES);
            self.changes[vertex] += 1;
            let value = text(vertex, self.changes[vertex]);
            let write = PropertyWrite { key: TEXT, cardinality: Cardinality::Single, value };
            writes.push(Mutation::SetVertexProperty { gui: self.guis[vertex], write });
        }
        self.store.apply(self.version, &writes);
        self.publish();
        self.note("texts are changed");
    }

    fn scan(&mut self) {
        let low = self.random.random_range(0..VERTICES as i32 - 100);
        let test =
            Test::Range { low: Some((Value::Int(low), true)), high: Some((Value::Int(low + 100), false)) };
        let scan = VertexScan {
            labels: vec![vec![Token(1)]],
            predicates: vec![PropertyPredicate { key: NUMBER, test, sole: false }],
            max_rows: u32::MAX,
        };
        let (mut found, mut cursor) = (Vec::new(), Some(ScanCursor::default()));
        while let Some(from) = cursor {
            cursor = self.store.scan_vertices(self.at(), &scan, from, &mut found).unwrap();
        }
        let mut expected = self.guis[low as usize..low as usize + 100].to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        self.note("a scan went through");
    }

    fn all(mut self) {
        self.load();
        for round in 0..100 {
            self.read(if round % 25 == 0 { 1000 } else { 5 });
            self.change();
            if round % 20 == 0 {
                self.scan();
            }
        }
        let used = self.store.memory_use();
        let (most, when) = self.most;
        println!(
            "{most} bytes at most, when {when}, of {BUDGET}: {:.2}; {used:?}",
            most as f64 / BUDGET as f64
        );
        assert!(used.spilled > 2 * BUDGET, "a graph of several times the budget: {used:?}");
        assert!(most < BUDGET + BUDGET / 100 * 15, "{most} bytes when {when}");
    }
}
