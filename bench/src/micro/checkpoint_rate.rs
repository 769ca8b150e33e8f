//! `micro checkpoint-rate`: writes and restores whole and incremental checkpoints, and prints their rates beside those
//! of the machine's disk and memory from the same run.
//!
//! Each vertex has a text, a long, a double and an int, and five edges; one edge of ten has an id and a property. Rates
//! are medians of several rounds. The files lie in a temporary directory inside the given one.

use anyhow::Context;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, Objects, RealClock};
use tidegraph_storage::checkpoint::{prune, restore_newest};
use tidegraph_storage::{CheckpointMeta, Manifest, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Edge, Gui, GuiHasher, Mutation, PropertyWrite, Sid, Str, Token, Value, Version,
};

const ROUNDS: usize = 5;
const DEGREE: u64 = 5;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * n) >> 32
    }
}

fn middle(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn timed<T>(clock: &RealClock, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let before = clock.now();
    let result = work()?;
    Ok((clock.now().saturating_sub(before).as_secs_f64(), result))
}

/// Returns the processor time of this process in seconds, with a resolution of 0.01; 0 where there is no `/proc`.
pub fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The duration of several rounds, and their processor time.
#[derive(Default)]
struct Rounds {
    seconds: Vec<f64>,
    cpu: f64,
}

impl Rounds {
    fn time<T>(&mut self, clock: &RealClock, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let before = cpu_seconds();
        let (seconds, result) = timed(clock, work)?;
        self.seconds.push(seconds);
        self.cpu += cpu_seconds() - before;
        Ok(result)
    }
}

/// Returns the MB/s of writing and syncing a file of 512 MiB.
fn disk_rate(clock: &RealClock, directory: &Path) -> anyhow::Result<f64> {
    let piece = vec![0x5a_u8; 8 << 20];
    let mut rounds = Vec::new();
    for _ in 0..3 {
        let mut file = tempfile::tempfile_in(directory)?;
        let work = || {
            (0..64).try_for_each(|_| file.write_all(&piece))?;
            Ok(file.sync_data()?)
        };
        rounds.push(timed(clock, work)?.0);
    }
    Ok((512 << 20) as f64 / middle(rounds) / 1e6)
}

/// Returns the MB/s of copying memory and computing its checksum.
fn copy_rate(clock: &RealClock) -> anyhow::Result<f64> {
    let from = vec![7_u8; 256 << 20];
    let mut to = vec![0_u8; from.len()];
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let work = || {
            to.copy_from_slice(&from);
            std::hint::black_box(crc32c::crc32c(&to));
            Ok(())
        };
        rounds.push(timed(clock, work)?.0);
    }
    Ok(from.len() as f64 / middle(rounds) / 1e6)
}

fn gui(n: u64) -> (Str, Gui) {
    let id = Str::from(format!("person-{n}"));
    let gui = GuiHasher::default().gui(&id);
    (id, gui)
}

fn write(key: u32, value: Value) -> PropertyWrite {
    PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value }
}

pub fn build(store: &Store, vertices: u64) {
    let mut random = Random(1);
    let mut some = Vec::new();
    for n in 0..vertices {
        let (id, gui) = gui(n);
        let properties = vec![
            write(10, Value::string(format!("the name of {n}"))),
            write(11, Value::Long(n as i64)),
            write(12, Value::Double(n as f64 / 3.0)),
            write(13, Value::Int(random.below(90) as i32)),
        ];
        some.push(Mutation::CreateVertex { gui, id, labels: vec![Token(1)], properties });
        if some.len() == 100_000 || n + 1 == vertices {
            store.apply_load_block(Version(1), &some);
            some.clear();
        }
    }
    for n in 0..vertices * DEGREE {
        let (source, target) = (gui(n / DEGREE).1, gui(random.below(vertices)).1);
        let edge = Edge { sid: Sid(n + 1), source, target, label: Token(2) };
        let id = (n % 10 == 0).then(|| Str::from(format!("knows-{n}")));
        let properties = if n % 10 == 0 { vec![(Token(14), Value::Int(n as i32))] } else { vec![] };
        some.push(Mutation::CreateEdge { edge, id, properties });
        if some.len() == 200_000 || n + 1 == vertices * DEGREE {
            store.apply_load_block(Version(1), &some);
            some.clear();
        }
    }
    store.publish(Version(1));
}

fn written(manifest: &Manifest) -> u64 {
    manifest.partitions.iter().map(|partition| partition.objects[0].bytes).sum()
}

/// Prints the rates; the files lie below `directory`.
pub fn run(vertices: u64, directory: &Path) -> anyhow::Result<()> {
    let clock = RealClock::new();
    let (disk, memory) = (disk_rate(&clock, directory)?, copy_rate(&clock)?);
    println!(
        "disk, written and synced: {disk:.0} MB/s; copied and summed in memory, one core: {memory:.0} MB/s"
    );

    let config = StoreConfig { window: Duration::ZERO, ..StoreConfig::new(Arc::new(RealClock::new())) };
    let store = Store::new(config.clone());
    build(&store, vertices);
    // First with the undo records of the load, as right after a load, then without.
    for round in ["right after the load", "settled"] {
        let mut rounds = Rounds::default();
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            let files = tempfile::tempdir_in(directory)?;
            let objects = Objects::local(files.path())?;
            let work = || Ok(store.checkpoint(Version(1), &objects, "c", CheckpointMeta::default())?);
            let manifest = rounds.time(&clock, work)?;
            bytes = written(&manifest);
        }
        let elements = vertices + vertices * DEGREE;
        report(&format!("whole checkpoint, {round}"), bytes, elements, rounds, disk);
        while store.reclaim(1_000_000) > 0 {}
    }

    let files = tempfile::tempdir_in(directory)?;
    let objects = Objects::local(files.path())?;
    let whole = store.checkpoint(Version(1), &objects, "c", CheckpointMeta::default())?;
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let restored = rounds.time(&clock, || Ok(restore_newest(&config, &objects, "c")?))?;
        let restored = restored.context("there is no checkpoint")?.store;
        assert_eq!(restored.totals(), (vertices, vertices * DEGREE), "what was restored");
    }
    report("restore", written(&whole), vertices * (1 + DEGREE), rounds, disk);

    let mut version = 1;
    let mut random = Random(2);
    for (name, everywhere) in [("one percent changed, in one place", false), ("one percent, anywhere", true)]
    {
        let mut rounds = Rounds::default();
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            version += 1;
            let count = vertices / 100;
            let first = random.below(vertices - count);
            let changes = (first..first + count).map(|n| {
                let n = if everywhere { random.below(vertices) } else { n };
                Mutation::SetVertexProperty { gui: gui(n).1, write: write(11, Value::Long(-(n as i64))) }
            });
            store.apply(Version(version), &changes.collect::<Vec<_>>());
            store.publish(Version(version));
            let work = || Ok(store.checkpoint(Version(version), &objects, "c", CheckpointMeta::default())?);
            let manifest = rounds.time(&clock, work)?;
            prune(&objects, "c", 1)?;
            bytes = written(&manifest);
        }
        report(name, bytes, vertices / 100, rounds, disk);
    }
    let restored = restore_newest(&config, &objects, "c")?.context("there is no checkpoint")?.store;
    assert_eq!(restored.totals(), store.totals(), "what was restored from increments");
    Ok(())
}

fn report(name: &str, bytes: u64, elements: u64, rounds: Rounds, disk: f64) {
    let (bytes, elements) = (bytes as f64 / 1e6, elements as f64 / 1e6);
    let cpu = rounds.cpu / rounds.seconds.len() as f64;
    let seconds = middle(rounds.seconds);
    println!(
        "{name}: {bytes:.1} MB in {:.0} ms: {:.0} MB/s ({:.2} of the disk), {:.2} M elements/s; \
         {:.0} ms of processors",
        seconds * 1e3,
        bytes / seconds,
        bytes / seconds / disk,
        elements / seconds,
        cpu * 1e3
    );
}
