//! The commit workload: the cost of a transaction without a query language.
//!
//! A transaction writes two properties of two vertices that it read. First one caller with the log in memory: the cost
//! of checking, applying and publishing. Then the log is on disk, with one caller and with 64, beside bare writes to
//! the disk.

use super::Flags;
use super::report::{Figure, Report};
use hdrhistogram::Histogram;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidegraph_engine::{Database, Options};
use tidegraph_types::{
    Cardinality, CommitRequest, ErrorCode, Gui, Key, Mutation, PropertyWrite, Str, Token, Value, Version,
};

const CLIENTS: u64 = 64;

/// The vertices that transactions write to.
struct Counters {
    guis: Vec<Gui>,
    key: Token,
}

impl Counters {
    fn make(database: &Database, count: u64) -> anyhow::Result<Self> {
        let tokens = database.catalog().intern(&["Counter".into(), "n".into()])?;
        let (label, key) = (tokens[0], tokens[1]);
        let ids: Vec<Str> = (0..count).map(|n| format!("counter-{n}").into()).collect();
        let guis: Vec<Gui> = ids.iter().map(|id| database.plain_gui(id)).collect();
        for (ids, guis) in ids.chunks(1_000).zip(guis.chunks(1_000)) {
            let vertex = |(id, gui): (&Str, &Gui)| Mutation::CreateVertex {
                gui: *gui,
                id: id.clone(),
                labels: vec![label],
                properties: vec![write(key, 0)],
            };
            let mutations = ids.iter().zip(guis).map(vertex).collect();
            database.commit(CommitRequest { mutations, ..CommitRequest::default() })?;
        }
        Ok(Self { guis, key })
    }

    fn transaction(&self, read_version: Version, random: &mut ChaCha8Rng) -> CommitRequest {
        let mut pick = || self.guis[random.random_range(0..self.guis.len())];
        let (a, b) = (pick(), pick());
        let keys = vec![Key::content(a), Key::content(b)];
        let value = random.random_range(0..1 << 40);
        let set = |gui| Mutation::SetVertexProperty { gui, write: write(self.key, value) };
        CommitRequest {
            read_version,
            read_keys: keys.clone(),
            write_keys: keys,
            mutations: vec![set(a), set(b)],
            request: None,
            first_asked: None,
            by_key: false,
            changes: None,
        }
    }
}

fn write(key: Token, value: i64) -> PropertyWrite {
    PropertyWrite { key, cardinality: Cardinality::Single, value: Value::Long(value) }
}

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let vertices = flags.scale(100_000, 5_000);
    report.parameter("vertices", vertices);
    report.parameter("clients", CLIENTS);
    let memory = Database::open(Options::default())?;
    let counters = Counters::make(&memory, vertices)?;
    let mut rounds = vec![];
    for round in 0..flags.rounds() as u64 {
        rounds.push(callers(flags, &memory, &counters, 1, round)?);
    }
    let (rate, latency) = medians(&rounds);
    report.add(
        Figure::rate("two changes, log in memory, 1 caller", "tx/s", rate)
            .latency(latency[0], latency[1], latency[2]),
    );
    report.add(Figure::cost("two changes, log in memory, p50", "us", latency[0]).target(10.0));
    report.add(Figure::cost("two changes, log in memory, p99", "us", latency[1]).target(50.0));
    memory.close();

    let directory = tempfile::tempdir()?;
    let options = Options { data_dir: Some(directory.path().join("data")), ..Options::default() };
    let durable = Database::open(options)?;
    let counters = Counters::make(&durable, vertices)?;
    let disk = 1e6 / report.machine().fdatasync_us;
    for (clients, target) in [(1, None), (CLIENTS, Some(50_000.0))] {
        let mut rounds = vec![];
        for round in 0..flags.rounds() as u64 {
            rounds.push(callers(flags, &durable, &counters, clients, round)?);
        }
        let (rate, latency) = medians(&rounds);
        let name = format!("two changes, durable, {clients} caller{}", if clients == 1 { "" } else { "s" });
        let mut figure = Figure::rate(name, "tx/s", rate)
            .latency(latency[0], latency[1], latency[2])
            .beside("append and fdatasync, one after the other", disk);
        if let Some(target) = target {
            figure = figure.target(target);
        }
        report.add(figure);
    }
    durable.close();
    Ok(())
}

/// Rate and latencies (p50, p99, p99.9 in microseconds) of one round.
type Round = (f64, [f64; 3]);

fn medians(rounds: &[Round]) -> Round {
    let median = |of: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(&|r| r.0), [0, 1, 2].map(|i| median(&move |r| r.1[i])))
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn callers(
    flags: &Flags,
    database: &Database,
    counters: &Counters,
    clients: u64,
    round: u64,
) -> anyhow::Result<Round> {
    let done = AtomicU64::new(0);
    let start = Instant::now();
    let latencies = std::thread::scope(|scope| {
        let work = |client: u64| {
            let done = &done;
            scope.spawn(move || -> anyhow::Result<Histogram<u64>> {
                let mut random = ChaCha8Rng::seed_from_u64(flags.seed ^ (client << 32) ^ (round << 48));
                let mut latencies = Histogram::new_with_bounds(1, 60_000_000_000, 3)?;
                while start.elapsed() < flags.round() {
                    let began = Instant::now();
                    let version = database.snapshot()?.at.version;
                    match database.commit(counters.transaction(version, &mut random)) {
                        Ok(_) => {
                            latencies.saturating_record(began.elapsed().as_nanos() as u64);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        // Another caller committed first: the transaction is not counted.
                        Err(error) if error.code() == ErrorCode::ConcurrentModification => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(latencies)
            })
        };
        let handles: Vec<_> = (0..clients).map(work).collect();
        let mut all = Histogram::new_with_bounds(1, 60_000_000_000, 3)?;
        for handle in handles {
            let latencies = handle.join().map_err(|_| anyhow::anyhow!("a caller panicked"))??;
            all.add(latencies)?;
        }
        anyhow::Ok(all)
    })?;
    let rate = done.into_inner() as f64 / start.elapsed().as_secs_f64();
    Ok((rate, [0.5, 0.99, 0.999].map(|q| latencies.value_at_quantile(q) as f64 / 1e3)))
}
