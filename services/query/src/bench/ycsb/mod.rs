//! The ycsb workload: records of ten fields, read, inserted, changed and deleted by key, as seed 002 of our design had it.
//!
//! Against one embedded process with its log on disk, against a cluster on this machine (`scripts/bench.mjs` starts it and says
//! where it is in a file that `TIDEGRAPH_CLUSTER` names), and against Apache Cassandra, in turn. Beside the rate stands what an operation
//! costs: operations for each second of processor time that the servers used, which a busy machine changes less.

mod mix;

use super::Bench;
use super::clients::{Connection, ServiceProcess};
use super::cluster::Cluster;
use super::driver::{self, Outcome, Round, median};
use super::machine::cpu_seconds;
use super::peers::{self, Kind, program::Program};
use super::report::{Figure, Report};
use anyhow::ensure;
use mix::Keys;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::time::Duration;

/// Clients that write at the same time when records are loaded.
const LOADERS: u64 = 32;

/// What issue C asks for, each operation beside one of Cassandra's.
const TIMES_PER_CORE: f64 = 5.0;

/// Somebody with records.
struct Place {
    name: &'static str,
    keys: Keys,
    at: At,
    rounds: Vec<Outcome>,
}

enum At {
    /// An HTTP service, and the processes behind it.
    Service { address: String, processes: Vec<u32> },
    /// A peer.
    Peer(Box<Program>),
}

/// Runs the workload.
pub fn run(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let records = bench.scale(20_000, 2_000);
    report.parameter("records", records);
    report.parameter("fields", mix::FIELDS);
    report.parameter("field_bytes", mix::FIELD_BYTES);
    let (kinds, named) = peers::wanted(bench, &[Kind::Cassandra])?;
    let directory = tempfile::tempdir()?;
    let service = ServiceProcess::start(directory.path())?;
    let at = At::Service { address: service.address.clone(), processes: vec![service.id()] };
    let mut places = vec![place("embedded", at)];
    match Cluster::of_run()? {
        Some(cluster) => {
            report.parameter("cluster", cluster.about());
            places.push(place(
                "cluster",
                At::Service { address: cluster.address()?, processes: cluster.servers() },
            ));
        }
        None => eprintln!("there is no cluster: `npm run bench -- ycsb` starts one"),
    }
    for kind in kinds {
        match Program::start(kind) {
            Ok(program) => {
                report.parameter("peer cassandra", program.description());
                places.push(place("cassandra", At::Peer(Box::new(program))));
            }
            Err(error) => peers::missing(report, kind, &error, named)?,
        }
    }
    for place in &mut places {
        place.load(records, bench.seed)?;
        place.warm(bench)?;
    }
    for clients in [32, 200] {
        for place in &mut places {
            place.rounds.clear();
        }
        for round in 0..bench.rounds() as u64 {
            for place in &mut places {
                let outcome = place.round(clients, bench.round(), bench.seed + round)?;
                place.rounds.push(outcome);
            }
        }
        tell(report, &places, clients)?;
    }
    Ok(())
}

fn place(name: &'static str, at: At) -> Place {
    Place { name, keys: Keys::default(), at, rounds: vec![] }
}

fn tell(report: &mut Report, places: &[Place], clients: usize) -> anyhow::Result<()> {
    let peer = places.iter().find_map(|place| match &place.at {
        At::Peer(program) => Some((place, program.name())),
        At::Service { .. } => None,
    });
    for place in places {
        let beside = peer.filter(|_| !matches!(place.at, At::Peer(_)));
        let name = format!("mix, {clients} clients, {}", place.name);
        let rate = place.middle(|outcome| Some(outcome.rate))?;
        let quantile = |at: usize| place.middle(|outcome| outcome.quantiles_us.map(|all| all[at]));
        let mut figure =
            Figure::rate(name.as_str(), "op/s", rate).latency(quantile(0)?, quantile(1)?, quantile(2)?);
        let cost = |place: &Place| place.middle(|outcome| outcome.server_cpu_us.map(|us| 1e6 / us));
        let mut per_core = Figure::rate(format!("{name}, per core"), "op/s", cost(place)?);
        if let Some((other, label)) = beside {
            let theirs = other.middle(|outcome| Some(outcome.rate))?;
            figure = figure.beside(label, theirs);
            let theirs = cost(other)?;
            per_core = per_core.beside(label, theirs);
            if place.name == "embedded" {
                per_core = per_core.target(TIMES_PER_CORE * theirs);
            }
        }
        report.add(figure);
        report.add(per_core);
    }
    Ok(())
}

impl Place {
    fn middle(&self, of: impl Fn(&Outcome) -> Option<f64>) -> anyhow::Result<f64> {
        let values = self.rounds.iter().filter_map(of);
        median(values).ok_or_else(|| anyhow::anyhow!("{} told no figures", self.name))
    }

    /// Inserts the first records.
    fn load(&mut self, records: u64, seed: u64) -> anyhow::Result<()> {
        match &mut self.at {
            At::Peer(program) => program.fill(0, records)?,
            At::Service { address, .. } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(load(address, records, seed))?;
            }
        }
        self.keys = Keys::loaded(records);
        eprintln!("{}: {records} records are there", self.name);
        Ok(())
    }

    /// A JVM needs a while until its code is compiled; the others get a short time.
    fn warm(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let seconds = match (&self.at, bench.quick) {
            (At::Peer(_), false) => 60,
            (At::Peer(_), true) => 5,
            (At::Service { .. }, false) => 5,
            (At::Service { .. }, true) => 1,
        };
        self.round(32, Duration::from_secs(seconds), bench.seed ^ 0xc0de).map(drop)
    }

    fn round(&mut self, clients: usize, length: Duration, seed: u64) -> anyhow::Result<Outcome> {
        match &mut self.at {
            At::Peer(program) => {
                let (outcome, range) = program.mix(self.keys.range(), clients, length, seed)?;
                self.keys.set(range);
                Ok(outcome)
            }
            At::Service { address, processes } => {
                self.keys.serve(clients);
                let used = || processes.iter().filter_map(|process| cpu_seconds(*process)).sum::<f64>();
                let before = used();
                let round =
                    driver::network(address, clients, length, seed, &|random| vec![self.keys.next(random)])?;
                let cpu = (used() - before) * 1e6 / round.calls.max(1) as f64;
                self.check(&round)?;
                Ok(Outcome { server_cpu_us: Some(cpu), ..round.outcome() })
            }
        }
    }

    /// No operation failed, and records are found whole.
    fn check(&self, round: &Round) -> anyhow::Result<()> {
        if let Some(error) = &round.error {
            anyhow::bail!("{}: an operation ended in an error: {error}", self.name);
        }
        let At::Service { address, .. } = &self.at else { return Ok(()) };
        let (gone, next) = self.keys.range();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = Connection::open(address).await?;
            let step = ((next - gone) / 20).max(1) as usize;
            for number in (gone..next).step_by(step) {
                let answer = connection.call(&mix::read(number)).await?;
                ensure!(mix::is_record(answer), "{}: record {number} is not whole", self.name);
            }
            anyhow::Ok(())
        })
    }
}

async fn load(address: &str, records: u64, seed: u64) -> anyhow::Result<()> {
    let loaders = (0..LOADERS).map(|loader| async move {
        let mut connection = Connection::open(address).await?;
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ (loader << 32));
        for number in (loader..records).step_by(LOADERS as usize) {
            connection.call(&mix::insert(number, &mut random)).await?;
        }
        anyhow::Ok(())
    });
    futures_util::future::try_join_all(loaders).await?;
    Ok(())
}
