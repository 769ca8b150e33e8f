//! How fast properties are read and written, beside what the machine can do in the same run: a column scan with a
//! predicate beside copying, a point read beside dependent random reads, memory beside the raw bytes of the columns.
//!
//! `cargo run --release -p tidegraph-storage --example property_rate [VERTICES]` (default 1,000,000). One thread.

use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Cardinality, Epoch, Gui, Mutation, PropertyWrite, Str, Token, Value, Version};

const ROUNDS: usize = 7;
const READS: usize = 100_000;
const LABEL: Token = Token(1);
/// Keys with the bytes of their columns: an int, a long, a double, a truth value, a text of up to 12 bytes.
const KEYS: [(Token, usize); 5] =
    [(Token(10), 4), (Token(11), 8), (Token(12), 8), (Token(13), 1), (Token(14), 16)];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
}

fn time(clock: &RealClock, mut work: impl FnMut()) -> f64 {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let before = clock.now();
            work();
            clock.now().saturating_sub(before)
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2].as_secs_f64()
}

/// Gigabytes a second read and written again by copying 256 MiB, the bytes counted once.
fn copy_rate(clock: &RealClock) -> f64 {
    let from: Vec<u64> = (0..1 << 25).collect();
    let mut to = vec![0_u64; from.len()];
    let seconds = time(clock, || {
        to.copy_from_slice(&from);
        std::hint::black_box(&mut to);
    });
    (from.len() * 8) as f64 / seconds / 1e9
}

/// Gigabytes a second of summing 256 MiB: reading alone.
fn sum_rate(clock: &RealClock) -> f64 {
    let words: Vec<u64> = (0..1 << 25).collect();
    let seconds = time(clock, || {
        std::hint::black_box(words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
    });
    (words.len() * 8) as f64 / seconds / 1e9
}

/// Nanoseconds of a random read whose address comes from the one before, over 1 GiB.
fn dependent_read(clock: &RealClock, random: &mut Random) -> f64 {
    let mut next: Vec<u32> = (0..1 << 28).collect();
    // One cycle through all of it (Sattolo).
    for index in (1..next.len()).rev() {
        next.swap(index, random.below(index));
    }
    let mut at = 0_u32;
    let seconds = time(clock, || {
        for _ in 0..READS * 10 {
            at = next[at as usize];
        }
        std::hint::black_box(at);
    });
    seconds * 1e9 / (READS * 10) as f64
}

fn write(key: Token, value: Value) -> PropertyWrite {
    PropertyWrite { key, cardinality: Cardinality::Single, value }
}

fn main() {
    let vertices: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let clock = Arc::new(RealClock::new());
    let mut random = Random(42);
    let (copy, sum) = (copy_rate(&clock), sum_rate(&clock));
    println!("copying                     {copy:8.2} GB/s");
    println!("summing                     {sum:8.2} GB/s");
    let dependent = dependent_read(&clock, &mut random);
    println!("dependent random read       {dependent:8.1} ns");

    let store = Store::new(StoreConfig { window: Duration::ZERO, ..StoreConfig::new(clock.clone()) });
    let guis = load(&store, &clock, vertices, &mut random);
    memory(&store, vertices);
    let at = At { version: store.published(), epoch: Epoch(0) };
    scans(&store, &clock, at, vertices, copy);
    points(&store, &clock, at, &guis, &mut random, dependent);
    writes(&store, &clock, &guis, &mut random);
}

fn load(store: &Store, clock: &RealClock, vertices: usize, random: &mut Random) -> Vec<Gui> {
    let mut batch = Vec::new();
    let (mut guis, mut seconds) = (Vec::new(), 0.0);
    for index in 0..vertices {
        let id = Str::from(format!("v{index}"));
        let gui = store.config().hasher.gui(&id);
        guis.push(gui);
        let number = random.below(1_000_000);
        let properties = vec![
            write(KEYS[0].0, Value::Int(number as i32)),
            write(KEYS[1].0, Value::Long(number as i64)),
            write(KEYS[2].0, Value::Double(number as f64 / 7.0)),
            write(KEYS[3].0, Value::Bool(number.is_multiple_of(2))),
            write(KEYS[4].0, Value::string(format!("name {}", number % 1000))),
        ];
        batch.push(Mutation::CreateVertex { gui, id, labels: vec![LABEL], properties });
        if batch.len() == 65_536 || index + 1 == vertices {
            let before = clock.now();
            store.apply_load_block(Version(1), &batch);
            seconds += clock.now().saturating_sub(before).as_secs_f64();
            batch.clear();
        }
    }
    store.publish(Version(1));
    while store.reclaim(1 << 20) > 0 {}
    println!("loading                     {:8.2} M values/s", (vertices * KEYS.len()) as f64 / seconds / 1e6);
    guis
}

fn memory(store: &Store, vertices: usize) {
    let memory = store.memory();
    let raw: usize = KEYS.iter().map(|(_, bytes)| bytes).sum::<usize>() * vertices;
    println!("raw column bytes a vertex   {:8.1}", raw as f64 / vertices as f64);
    println!(
        "properties a vertex         {:8.1} bytes ({:.2} of the raw)",
        memory.properties as f64 / vertices as f64,
        memory.properties as f64 / raw as f64
    );
    println!("all of a vertex             {:8.1} bytes", memory.total() as f64 / vertices as f64);
    println!("{memory:?}");
}

fn scans(store: &Store, clock: &RealClock, at: At, vertices: usize, copy: f64) {
    let range = |low: Value| Test::Range { low: Some((low, true)), high: None };
    let tests = [
        ("int", 0, range(Value::Long(999_900))),
        ("long", 1, range(Value::Long(999_900))),
        ("double", 2, range(Value::Double(142_840.0))),
        ("text", 4, Test::Equals(Value::string("name 77"))),
    ];
    for (name, key, test) in tests {
        let (key, bytes) = KEYS[key];
        let scan = VertexScan {
            labels: vec![vec![LABEL]],
            predicates: vec![PropertyPredicate::any(key, test)],
            max_rows: u32::MAX,
        };
        let mut found = Vec::new();
        let seconds = time(clock, || {
            found.clear();
            let next = store.scan_vertices(at, &scan, ScanCursor::default(), &mut found);
            assert!(matches!(next, Ok(None)));
        });
        let rate = (vertices * bytes) as f64 / seconds / 1e9;
        println!(
            "scan of a column ({name:6})   {rate:8.2} GB/s ({:.0} % of copying), {:.0} M rows/s, {} found",
            100.0 * rate / copy,
            vertices as f64 / seconds / 1e6,
            found.len()
        );
    }
}

fn points(store: &Store, clock: &RealClock, at: At, guis: &[Gui], random: &mut Random, dependent: f64) {
    let read = VertexRead { ids: true, labels: true, properties: Projection::All };
    let mut rows = VertexRows::default();
    let mut nanos: Vec<u64> = (0..READS)
        .map(|_| {
            let gui = guis[random.below(guis.len())];
            rows.clear();
            let before = clock.now();
            let answer = store.vertices(at, &read, &[gui], &mut rows);
            let nanos = clock.now().saturating_sub(before).as_nanos() as u64;
            assert!(answer.is_ok() && rows.present[0]);
            nanos
        })
        .collect();
    nanos.sort_unstable();
    let percentile = |share: f64| nanos[(nanos.len() as f64 * share) as usize] as f64;
    println!(
        "point read of a vertex      {:8.0} ns p50 ({:.1} dependent reads), {:.0} ns p99",
        percentile(0.5),
        percentile(0.5) / dependent,
        percentile(0.99)
    );
    let frontier: Vec<Gui> = (0..READS).map(|_| guis[random.below(guis.len())]).collect();
    let seconds = time(clock, || {
        rows.clear();
        assert!(store.vertices(at, &read, &frontier, &mut rows).is_ok());
    });
    println!("reads of a frontier         {:8.0} ns a vertex", seconds * 1e9 / READS as f64);
}

fn writes(store: &Store, clock: &RealClock, guis: &[Gui], random: &mut Random) {
    let mut version = store.published();
    let mut nanos: Vec<u64> = Vec::new();
    let begin = clock.now();
    for _ in 0..READS {
        let mutations = [0, 1].map(|key| {
            let number = random.below(1_000_000);
            let value = if key == 0 { Value::Int(number as i32) } else { Value::Long(number as i64) };
            Mutation::SetVertexProperty {
                gui: guis[random.below(guis.len())],
                write: write(KEYS[key].0, value),
            }
        });
        version = version.next();
        let before = clock.now();
        store.apply(version, &mutations);
        store.publish(version);
        nanos.push(clock.now().saturating_sub(before).as_nanos() as u64);
    }
    let seconds = clock.now().saturating_sub(begin).as_secs_f64();
    nanos.sort_unstable();
    println!(
        "writes of two properties    {:8.0} a second, {} ns p50, {} ns p99",
        READS as f64 / seconds,
        nanos[READS / 2],
        nanos[READS * 99 / 100]
    );
    let (mut found, scan) = (
        Vec::new(),
        VertexScan {
            labels: vec![],
            predicates: vec![PropertyPredicate::any(KEYS[0].0, Test::Equals(Value::Long(7)))],
            max_rows: u32::MAX,
        },
    );
    let dirty = time(clock, || {
        found.clear();
        let at = At { version, epoch: Epoch(0) };
        assert!(store.scan_vertices(at, &scan, ScanCursor::default(), &mut found).is_ok());
    });
    println!("scan after the writes       {:8.0} M rows/s", guis.len() as f64 / dirty / 1e6);
    while store.reclaim(1 << 20) > 0 {}
    println!("versions left               {:8} bytes", store.memory().versions);
}
