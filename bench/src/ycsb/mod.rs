//! The ycsb workload: records of ten fields are read, inserted, changed and deleted by key.
//!
//! It runs in turn against a service over HTTP, against a database in this process, against a cluster on this machine,
//! and against Apache Cassandra. Services and databases keep their log on disk, once synced for every group of writes
//! and once synced as often as Cassandra's log by default. One node of Cassandra stands beside them, with its default
//! settings and with the same durability; a cluster of Cassandra stands beside the cluster, which `scripts/bench.mjs`
//! starts and describes in the file that `TIDEGRAPH_CLUSTER` names. Each rate has the cost of an operation beside it:
//! operations per second of processor time of the servers, which other work on the machine changes less.

mod mix;

use super::Flags;
use super::clients::{Connection, ServiceProcess};
use super::cluster::Cluster;
use super::driver::{self, Outcome, Round, Target, Tasked, median};
use super::machine::cpu_seconds;
use super::peers::{self, Kind, program::Program};
use super::report::{Figure, Report};
use anyhow::ensure;
use mix::Keys;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Options};

/// Number of clients that load records at the same time.
const LOADERS: u64 = 32;

/// Target: operations per core, as a multiple of Cassandra's.
const TIMES_PER_CORE: f64 = 5.0;

/// Interval at which Cassandra syncs its log by default. A power failure may lose the writes that it answered in that
/// time.
const LATE: Duration = Duration::from_secs(10);

/// The peers of a single process, and those of the cluster.
const BESIDE_EMBEDDED: &[Kind] = &[Kind::Cassandra, Kind::CassandraDurable];
const BESIDE_CLUSTER: &[Kind] = &[Kind::CassandraCluster];

/// A database with records.
struct Subject {
    name: &'static str,
    keys: Keys,
    at: At,
    rounds: Vec<Outcome>,
}

enum At {
    /// An HTTP service and the ids of its processes.
    Service { address: String, processes: Vec<u32>, beside: &'static [Kind] },
    /// A database in this process.
    Library(Arc<Database>, Callers),
    /// A peer.
    Peer(Kind, Box<Program>),
}

/// The callers of a database in this process. The cost of making their operations is measured alone and subtracted.
#[derive(Clone, Copy)]
enum Callers {
    /// Threads that wait for their commits.
    Threads,
    /// Tasks on two threads, as in the service.
    Tasks,
}

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let records = flags.scale(20_000, 2_000);
    report.parameter("records", records);
    report.parameter("fields", mix::FIELDS);
    report.parameter("field_bytes", mix::FIELD_BYTES);
    let (kinds, named) = peers::wanted(flags, &[BESIDE_EMBEDDED, BESIDE_CLUSTER].concat())?;
    let directory = tempfile::tempdir()?;
    let start = |name: &str, arguments: &[String]| {
        ServiceProcess::start_with(flags, &directory.path().join(name), arguments)
    };
    let (synced, late) = (
        start("synced", &[])?,
        start("late", &["--sync-log-every-ms".to_owned(), LATE.as_millis().to_string()])?,
    );
    let at = |service: &ServiceProcess| At::Service {
        address: service.address.clone(),
        processes: vec![service.id()],
        beside: BESIDE_EMBEDDED,
    };
    let library = |callers, name: &str, sync_log_every| {
        let data_dir = Some(directory.path().join(name));
        let options = Options { data_dir, sync_log_every, ..Options::default() };
        anyhow::Ok(At::Library(Database::open(options)?, callers))
    };
    report.parameter("late: the log is synced every", format!("{} ms", LATE.as_millis()));
    let mut subjects = vec![
        subject("embedded", at(&synced)),
        subject("embedded, late", at(&late)),
        subject("in process, tasks", library(Callers::Tasks, "tasks", None)?),
        subject("in process, tasks, late", library(Callers::Tasks, "late-tasks", Some(LATE))?),
        subject("in process, threads", library(Callers::Threads, "threads", None)?),
        subject("in process, threads, late", library(Callers::Threads, "late-threads", Some(LATE))?),
    ];
    match Cluster::of_run()? {
        Some(cluster) => {
            report.parameter("cluster", cluster.about());
            let (address, processes) = (cluster.address()?, cluster.servers());
            subjects.push(subject("cluster", At::Service { address, processes, beside: BESIDE_CLUSTER }));
        }
        None => eprintln!("there is no cluster: run `npm run bench -- ycsb`, which starts one"),
    }
    for kind in kinds {
        match Program::start(kind) {
            Ok(program) => {
                report.parameter(&format!("peer {}", kind.name()), program.description());
                subjects.push(subject(kind.name(), At::Peer(kind, Box::new(program))));
            }
            Err(error) => peers::missing(report, kind, &error, named)?,
        }
    }
    for subject in &mut subjects {
        subject.load(records, flags.seed)?;
        subject.warm(flags, report)?;
    }
    for clients in [32, 200] {
        for subject in &mut subjects {
            subject.rounds.clear();
        }
        for round in 0..flags.rounds() as u64 {
            for subject in &mut subjects {
                let outcome = subject.round(clients, flags.round(), flags.seed + round)?;
                subject.rounds.push(outcome);
            }
        }
        report_figures(report, &subjects, clients)?;
    }
    Ok(())
}

fn subject(name: &'static str, at: At) -> Subject {
    Subject { name, keys: Keys::default(), at, rounds: vec![] }
}

fn report_figures(report: &mut Report, subjects: &[Subject], clients: usize) -> anyhow::Result<()> {
    for subject in subjects {
        let name = format!("mix, {clients} clients, {}", subject.name);
        let quantile = |at: usize| subject.middle(|outcome| outcome.quantiles_us.map(|all| all[at]));
        let rate = Figure::rate(name.as_str(), "op/s", subject.rate()?);
        let rate = rate.latency(quantile(0)?, quantile(1)?, quantile(2)?);
        let per_core = Figure::rate(format!("{name}, per core"), "op/s", subject.per_core()?);
        let beside = subject.beside(subjects);
        if beside.is_empty() {
            report.add(rate);
            report.add(per_core);
            continue;
        }
        for (kind, label, other) in beside {
            report.add(rate.clone().beside(label, other.rate()?));
            let theirs = other.per_core()?;
            let figure = per_core.clone().beside(label, theirs);
            report.add(match kind {
                Kind::Cassandra | Kind::CassandraDurable => figure.target(TIMES_PER_CORE * theirs),
                _ => figure,
            });
        }
    }
    Ok(())
}

impl Subject {
    fn middle(&self, of: impl Fn(&Outcome) -> Option<f64>) -> anyhow::Result<f64> {
        let values = self.rounds.iter().filter_map(of);
        median(values).ok_or_else(|| anyhow::anyhow!("{} reported no figures", self.name))
    }

    fn rate(&self) -> anyhow::Result<f64> {
        self.middle(|outcome| Some(outcome.rate))
    }

    /// Returns the operations per second of processor time of the servers.
    fn per_core(&self) -> anyhow::Result<f64> {
        self.middle(|outcome| outcome.server_cpu_us.map(|us| 1e6 / us))
    }

    /// Returns the running peers that this database is compared with. A peer is compared with none.
    fn beside<'a>(&self, subjects: &'a [Self]) -> Vec<(Kind, &'a str, &'a Self)> {
        let beside = match self.at {
            At::Service { beside, .. } => beside,
            At::Library(..) => BESIDE_EMBEDDED,
            At::Peer(..) => return vec![],
        };
        let peer = |subject: &'a Self| match &subject.at {
            At::Peer(kind, program) if beside.contains(kind) => Some((*kind, program.name(), subject)),
            _ => None,
        };
        subjects.iter().filter_map(peer).collect()
    }

    /// Inserts the first records.
    fn load(&mut self, records: u64, seed: u64) -> anyhow::Result<()> {
        match &mut self.at {
            At::Peer(_, program) => program.fill(0, records)?,
            At::Service { address, .. } => load(records, seed, async || Connection::open(address).await)?,
            At::Library(database, _) => load(records, seed, async || Ok(Tasked(database.clone())))?,
        }
        self.keys = Keys::loaded(records);
        eprintln!("{}: {records} records were inserted", self.name);
        Ok(())
    }

    /// Returns the time of the warm-up. A JVM needs a while until its code is compiled, and three JVMs that share the
    /// operations and the processor need more than three times as long; other databases get a short time.
    fn warm_up(&self, flags: &Flags) -> Duration {
        Duration::from_secs(match (&self.at, flags.quick) {
            (At::Peer(Kind::CassandraCluster, _), false) => 400,
            (At::Peer(..), false) => 120,
            // The brokers run on the JVM too.
            (At::Service { beside: BESIDE_CLUSTER, .. }, false) => 120,
            (At::Service { .. } | At::Library(..), false) => 5,
            (At::Peer(..), true) => 5,
            (At::Service { .. } | At::Library(..), true) => 1,
        })
    }

    fn warm(&mut self, flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
        let length = self.warm_up(flags);
        let short = if flags.quick { " (shortened: --quick)" } else { "" };
        let told = format!("{} s{short}", length.as_secs());
        eprintln!("{}: warming up for {told}", self.name);
        report.parameter(&format!("{}, warm-up", self.name), told);
        self.round(32, length, flags.seed ^ 0xc0de).map(drop)
    }

    fn round(&mut self, clients: usize, length: Duration, seed: u64) -> anyhow::Result<Outcome> {
        match &mut self.at {
            At::Peer(_, program) => {
                let (outcome, range) = program.mix(self.keys.range(), clients, length, seed)?;
                self.keys.set(range);
                Ok(outcome)
            }
            At::Service { address, processes, .. } => {
                self.keys.serve(clients);
                let used = || processes.iter().filter_map(|process| cpu_seconds(*process)).sum::<f64>();
                let before = used();
                let round =
                    driver::network(address, clients, length, seed, &|random| vec![self.keys.next(random)])?;
                let cpu = (used() - before) * 1e6 / round.calls.max(1) as f64;
                self.check(&round)?;
                Ok(Outcome { server_cpu_us: Some(cpu), ..round.outcome() })
            }
            At::Library(database, callers) => {
                self.keys.serve(clients);
                let making_us = mix::making_us(seed);
                let used = || cpu_seconds(std::process::id()).unwrap_or_default();
                let before = used();
                let next = |random: &mut ChaCha8Rng| vec![self.keys.next(random)];
                let round = match callers {
                    Callers::Threads => driver::embedded(database, clients, length, seed, &next)?,
                    Callers::Tasks => driver::embedded_tasks(database, clients, length, seed, &next)?,
                };
                let cpu = (used() - before) * 1e6 / round.calls.max(1) as f64 - making_us;
                self.check(&round)?;
                Ok(Outcome { server_cpu_us: Some(cpu), ..round.outcome() })
            }
        }
    }

    /// Checks that no operation failed and that records are complete.
    fn check(&self, round: &Round) -> anyhow::Result<()> {
        if let Some(error) = &round.error {
            anyhow::bail!("{}: an operation ended in an error: {error}", self.name);
        }
        let (gone, next) = self.keys.range();
        let address = match &self.at {
            At::Service { address, .. } => address,
            At::Library(database, _) => {
                ensure!(database.status().vertices == next - gone, "{}: records are missing", self.name);
                return Ok(());
            }
            At::Peer(..) => return Ok(()),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = Connection::open(address).await?;
            let step = ((next - gone) / 20).max(1) as usize;
            for number in (gone..next).step_by(step) {
                let answer = connection.call(&mix::read(number)).await?;
                ensure!(mix::is_record(answer), "{}: record {number} is incomplete", self.name);
            }
            anyhow::Ok(())
        })
    }
}

/// Loads records by several clients at the same time.
fn load<C: Target>(
    records: u64,
    seed: u64,
    client: impl AsyncFn() -> anyhow::Result<C>,
) -> anyhow::Result<()> {
    let client = &client;
    let loaders = (0..LOADERS).map(|loader| async move {
        let mut client = client().await?;
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ (loader << 32));
        for number in (loader..records).step_by(LOADERS as usize) {
            client.answer(&mix::insert(number, &mut random)).await?;
        }
        anyhow::Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(futures_util::future::try_join_all(loaders))?;
    Ok(())
}
