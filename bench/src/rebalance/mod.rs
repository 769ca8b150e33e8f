//! The rebalance workload: how fast a node restores replicas beside what the object store gives, and what that means for
//! a fleet of 100 nodes with 1 TB each (`large.rs`, with the model of `model.rs`).
//!
//! One store is written as the checkpoint of several replicas. Then the same objects are read in parts, as many at once
//! as a node may, and thrown away; and the replicas are restored with these settings. Rates are medians of rounds, in
//! which both take turns. From the store that is as slow as S3 they are also restored as a node does that starts again,
//! with copies of the objects on its disk.

mod large;
mod model;

use super::Flags;
use super::report::{Figure, Report};
use anyhow::Context;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tidegraph_platform::{Objects, RealClock};
use tidegraph_storage::checkpoint::{LocalCopies, RestoreReads, restore_newest};
use tidegraph_storage::{CheckpointMeta, Manifest, Store, StoreConfig};
use tidegraph_types::{PartitionCount, Version};

/// Parts that a node reads at once by default.
const READS: usize = 16;
/// Bytes of a part.
const PART: u64 = 8 << 20;
/// What a request to S3 takes before its first byte, and the bytes that it brings in a second afterwards.
const FIRST_BYTE: Duration = Duration::from_millis(30);
const REQUEST_RATE: f64 = 85e6;
/// Name of the store that answers as slowly as S3.
const PACED: &str = "S3's pace";
/// MiB a second of the restores that keep to a bandwidth.
const BANDWIDTH: u32 = 100;

/// Replicas in an object store.
struct Source {
    name: &'static str,
    objects: Objects,
    /// All parts of the replicas' objects.
    parts: Vec<(String, Range<u64>)>,
    bytes: u64,
}

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let vertices = flags.scale(300_000, 3_000);
    let replicas = if flags.quick { 2 } else { 8 };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.parameter("vertices of a replica", vertices);
    report.parameter("replicas", replicas);
    report.parameter("parts read at once", READS);
    report.parameter("replicas restored at once", cores);
    let store = Store::new(config(Arc::default()));
    super::micro::checkpoint_rate::build(&store, vertices);
    while store.reclaim(1_000_000) > 0 {}

    let folder = tempfile::tempdir()?;
    let local = Objects::local(folder.path())?;
    let mut sources = vec![
        Source::write("memory", Objects::memory()?, &store, replicas)?,
        Source::write("folder", local, &store, replicas)?,
    ];
    // In memory too, by a store that answers as slowly as S3.
    sources.push(Source::write(PACED, paced()?, &store, replicas)?);
    if let Some(bucket) = std::env::var_os("TIDEGRAPH_BENCH_S3") {
        let bucket = bucket.into_string().map_err(|name| anyhow::anyhow!("{name:?} is no bucket"))?;
        sources.push(Source::write("LocalStack's S3", bucket_of(&bucket)?, &store, replicas)?);
    }
    report.parameter("bytes of a replica", sources[0].bytes / replicas as u64);
    drop(store);
    let (memory, slower) = sources.split_first().context("there is no source")?;
    // Reads of memory take no time, so this is what the processors can do.
    let of_memory = memory.measure(flags, replicas, cores)?;
    of_memory.report(report, memory, cores);
    for source in slower {
        let rates = source.measure(flags, replicas, cores)?;
        rates.report(report, source, cores);
        let bound = rates.read.min(of_memory.many);
        let name = format!("{}: restores, {cores} at once, beside the smaller bound", source.name);
        let bounds = "the smaller of reads and processors";
        report.add(Figure::rate(name, "MB/s", rates.many).beside(bounds, bound).target(0.8 * bound));
        if source.name == PACED {
            source.restores_from_copies(flags, report, replicas, cores, &rates)?;
        }
    }
    memory.keeps_to_a_bandwidth(report, replicas)?;
    large::report(report, of_memory.cpu)
}

fn config(reads: Arc<RestoreReads>) -> StoreConfig {
    let config = StoreConfig::new(Arc::new(RealClock::new()));
    StoreConfig { partitions: PartitionCount::ONE, window: Duration::ZERO, reads, ..config }
}

fn paced() -> anyhow::Result<Objects> {
    let pace = ThrottleConfig {
        wait_get_per_call: FIRST_BYTE,
        wait_get_per_byte: Duration::from_secs_f64(1.0 / REQUEST_RATE),
        wait_list_per_call: FIRST_BYTE,
        ..ThrottleConfig::default()
    };
    let store = ThrottledStore::new(InMemory::new(), pace);
    Ok(Objects::new(Arc::new(store), "paced")?)
}

#[cfg(feature = "s3")]
fn bucket_of(name: &str) -> anyhow::Result<Objects> {
    Ok(Objects::s3(name, None, [])?)
}

#[cfg(not(feature = "s3"))]
fn bucket_of(name: &str) -> anyhow::Result<Objects> {
    anyhow::bail!("the bucket {name:?} needs the feature s3 of tidegraph-bench")
}

/// The processor time of this process in seconds.
fn cpu_seconds() -> f64 {
    super::micro::checkpoint_rate::cpu_seconds()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs `work` for each number below `count`, `at_once` of them in parallel.
fn in_parallel(
    count: usize,
    at_once: usize,
    work: impl Fn(usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let run = || -> anyhow::Result<()> {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    number if number < count => work(number)?,
                    _ => return Ok(()),
                }
            }
        };
        let threads: Vec<_> = (0..at_once.min(count)).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| anyhow::anyhow!("a thread of the measurement panicked"))?
        })
    })
}

impl Source {
    /// Writes the replicas.
    fn write(name: &'static str, objects: Objects, store: &Store, replicas: usize) -> anyhow::Result<Self> {
        for replica in 0..replicas {
            store.checkpoint(Version(1), &objects, &format!("p{replica}"), CheckpointMeta::default())?;
        }
        Self::of(name, objects, replicas)
    }

    /// Finds replicas that were written.
    fn of(name: &'static str, objects: Objects, replicas: usize) -> anyhow::Result<Self> {
        let (mut parts, mut bytes) = (Vec::new(), 0);
        for replica in 0..replicas {
            for object in objects.list(&format!("p{replica}/data-"))? {
                bytes += object.bytes;
                for start in (0..object.bytes).step_by(PART as usize) {
                    parts.push((object.path.clone(), start..(start + PART).min(object.bytes)));
                }
            }
        }
        anyhow::ensure!(bytes > 0, "there is no replica in {name}");
        Ok(Self { name, objects, parts, bytes })
    }

    /// Returns the MB/s of reading all parts, and of restoring all replicas with these settings.
    fn rate(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
        let start = Instant::now();
        work()?;
        Ok(self.bytes as f64 / start.elapsed().as_secs_f64() / 1e6)
    }

    fn read(&self) -> anyhow::Result<f64> {
        self.rate(|| {
            in_parallel(self.parts.len(), READS, |number| {
                let (path, range) = &self.parts[number];
                let bytes = self.objects.get_range(path, range.clone())?;
                anyhow::ensure!(bytes.len() as u64 == range.end - range.start, "{path} is short");
                std::hint::black_box(bytes);
                Ok(())
            })
        })
    }

    fn restore(&self, replicas: usize, at_once: usize, reads: RestoreReads) -> anyhow::Result<f64> {
        self.restore_with(replicas, at_once, config(Arc::new(reads)))
    }

    fn restore_with(&self, replicas: usize, at_once: usize, config: StoreConfig) -> anyhow::Result<f64> {
        self.rate(|| {
            in_parallel(replicas, at_once, |replica| {
                let restored = restore_newest(&config, &self.objects, &format!("p{replica}"))?;
                let restored = restored.context("there is no checkpoint")?;
                anyhow::ensure!(restored.store.totals().0 > 0, "replica {replica} is empty");
                Ok(())
            })
        })
    }

    /// Measures reads and restores.
    fn measure(&self, flags: &Flags, replicas: usize, cores: usize) -> anyhow::Result<Rates> {
        let reads = |most: usize| RestoreReads::new(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN));
        let (mut read, mut many, mut alone, mut one, mut cpu) = (vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..flags.rounds() {
            read.push(self.read()?);
            let before = cpu_seconds();
            many.push(self.restore(replicas, cores, reads(READS))?);
            cpu.push(self.bytes as f64 / (cpu_seconds() - before).max(0.01));
            alone.push(self.restore(replicas, 1, reads(READS))?);
            one.push(self.restore(replicas, 1, reads(1))?);
        }
        Ok(Rates {
            read: middle(read),
            many: middle(many),
            alone: middle(alone),
            one: middle(one),
            cpu: middle(cpu),
        })
    }

    /// Measures restores that read copies of all objects from a folder.
    fn restores_from_copies(
        &self,
        flags: &Flags,
        report: &mut Report,
        replicas: usize,
        cores: usize,
        without: &Rates,
    ) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let copies = Arc::new(LocalCopies::open(Objects::cache(folder.path())?)?);
        for replica in 0..replicas {
            let manifest = Manifest::latest(&self.objects, &format!("p{replica}"))?;
            let manifest = manifest.context("there is no checkpoint")?;
            copies.keep(&manifest, &self.objects, &RestoreReads::default(), &|| false)?;
        }
        let config = StoreConfig { copies: Some(copies), ..config(Arc::default()) };
        let rates = |at_once: usize| -> anyhow::Result<f64> {
            let rounds = (0..flags.rounds()).map(|_| self.restore_with(replicas, at_once, config.clone()));
            Ok(middle(rounds.collect::<anyhow::Result<_>>()?))
        };
        let mut add = |name: &str, rate: f64, without: f64| {
            let name = format!("{}: {name}, from copies on the disk", self.name);
            report.add(Figure::rate(name, "MB/s", rate).beside("without copies", without));
        };
        add(&format!("restores, {cores} at once"), rates(cores)?, without.many);
        add("one restore at a time", rates(1)?, without.alone);
        Ok(())
    }

    fn keeps_to_a_bandwidth(&self, report: &mut Report, replicas: usize) -> anyhow::Result<()> {
        let kib = NonZeroU32::new(BANDWIDTH * 1024).context("the bandwidth is 0")?;
        let reads = RestoreReads::default().with_bandwidth(kib, Arc::new(RealClock::new()));
        let rate = self.restore(replicas, 2, reads)?;
        let most = f64::from(BANDWIDTH) * (1 << 20) as f64 / 1e6;
        let name = format!("{}: restores that keep to {BANDWIDTH} MiB/s", self.name);
        report.add(Figure::rate(name, "MB/s", rate).beside("the bandwidth", most));
        Ok(())
    }
}

/// Rates of a source in MB/s.
struct Rates {
    /// Plain reads of the same parts.
    read: f64,
    /// As many restores at once as processors.
    many: f64,
    /// One restore at a time.
    alone: f64,
    /// One restore at a time with one read at a time.
    one: f64,
    /// Bytes that one processor restores in a second, with all that the process does meanwhile.
    cpu: f64,
}

impl Rates {
    fn report(&self, report: &mut Report, source: &Source, cores: usize) {
        let peer = format!("{READS} reads of the same parts at once");
        let rate = |name: &str, value| {
            Figure::rate(format!("{}: {name}", source.name), "MB/s", value).beside(&peer, self.read)
        };
        let many = rate(&format!("restores, {cores} at once"), self.many);
        // Memory is no object store: it shows what the processors can do.
        report.add(if source.name == "memory" { many } else { many.target(0.8 * self.read) });
        report.add(rate("one restore at a time", self.alone));
        report.add(rate("one restore at a time, one read at a time", self.one));
        let name = format!("{}: restored in a second of a processor", source.name);
        report.add(Figure::rate(name, "MB", self.cpu / 1e6));
    }
}
