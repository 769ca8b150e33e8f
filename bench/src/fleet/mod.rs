//! The fleet workload: the cost of the way from a worker to the nodes of a cluster on this machine. It measures reads
//! beside reads in this process, commits beside bare writes to the log, and the start of a worker as a Lambda function.
//!
//! The worker is in this process, so that the figures contain the way to the nodes and not HTTP. Both graphs are the
//! same, and answers are compared before anything is timed.

mod function;
mod log;

use super::Flags;
use super::clients::Call;
use super::cluster::Cluster;
use super::driver::{self, median};
use super::report::{Figure, Report};
use anyhow::{Context, ensure};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::Arc;
use std::time::Instant;
use tidegraph_engine::{Database, Options};
use tidegraph_platform::Objects;
use tidegraph_query::lambda::Configuration;
use tidegraph_types::{
    Cardinality, CommitRequest, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Value, Version,
};

/// Number of outgoing edges of each vertex.
const DEGREE: u64 = 10;
/// Number of mutations in a transaction that fills the graph.
const AT_ONCE: usize = 1_000;
/// Number of vertices that the two hops start from.
const STARTS: usize = 1_000;
/// Bytes of a commit and of a bare message.
pub const BYTES: usize = 200;

/// Targets.
const POINT_READ_US: f64 = 150.0;
const TWO_HOPS: f64 = 2.5;
const TWO_HOPS_COUNTED: f64 = 1.5;
const COMMIT: f64 = 1.5;
const COLD_START_MS: f64 = 50.0;

const POINT: &str = "MATCH (n:Person) WHERE id(n) = $id RETURN n.age AS age";
const TWO: &str = "UNWIND $ids AS id MATCH (a:Person) WHERE id(a) = id MATCH (a)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN count(c) AS n";
/// Two hops from everywhere, which the nodes count.
const TWO_COUNTED: [(&str, &str); 2] = [
    ("two hops counted, remote", "MATCH (a)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*) AS n"),
    (
        "two hops counted from a label, remote",
        "MATCH (a:Person)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*) AS n",
    ),
];

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let cluster =
        Cluster::of_run()?.context("there is no cluster: run `npm run bench -- fleet`, which starts one")?;
    report.parameter("cluster", cluster.about());
    let vertices = flags.scale(20_000, 2_000);
    report.parameter("vertices", vertices);
    report.parameter("edges", vertices * DEGREE);
    let remote = connect(&cluster)?;
    let embedded = Database::open(Options::default())?;
    for database in [&embedded, &remote] {
        fill(database, vertices, flags.seed)?;
    }
    reads(flags, report, &embedded, &remote, vertices)?;
    two_hops(flags, report, &embedded, &remote, vertices)?;
    two_hops_counted(flags, report, &embedded, &remote)?;
    commits(flags, report, &cluster, &remote)?;
    function::cold_starts(flags, report, &cluster, vertices)?;
    embedded.close();
    remote.close();
    Ok(())
}

/// Connects a worker in this process.
fn connect(cluster: &Cluster) -> anyhow::Result<Arc<Database>> {
    let set_by_lambda = [
        ("AWS_LAMBDA_RUNTIME_API", "none"),
        ("AWS_LAMBDA_FUNCTION_NAME", "bench"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
    ];
    let set_by_lambda = set_by_lambda.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut configuration =
        Configuration::read(cluster.environment.clone().into_iter().chain(set_by_lambda))?;
    let mut access = configuration.graphs.swap_remove(0);
    // This process has no credentials, and DynamoDB Local needs none.
    access.table.local = true;
    // Unlike a function, this worker keeps asking for the newest version, as a long-lived worker does.
    access.worker.version_every = tidegraph_fleet::WorkerConfig::default().version_every;
    let worker = access.connect()?;
    Ok(Database::connect(configuration.options, worker, Arc::new(Objects::memory()?))?)
}

fn id(number: u64) -> Str {
    format!("person-{number}").into()
}

/// Creates the same graph in a database.
fn fill(database: &Database, vertices: u64, seed: u64) -> anyhow::Result<()> {
    let tokens = database.catalog().intern(&["Person".into(), "age".into(), "KNOWS".into()])?;
    let (label, age, knows) = (tokens[0], tokens[1], tokens[2]);
    let guis: Vec<Gui> = (0..vertices).map(|number| database.plain_gui(&id(number))).collect();
    let vertex = |(number, gui): (u64, &Gui)| {
        let value = Value::Long((number % 100) as i64);
        let property = PropertyWrite { key: age, cardinality: Cardinality::Single, value };
        Mutation::CreateVertex { gui: *gui, id: id(number), labels: vec![label], properties: vec![property] }
    };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let sids = database.catalog().allocate_sids(vertices * DEGREE)?;
    let edge = |(number, sid): (u64, u64)| {
        let source = guis[(number / DEGREE) as usize];
        let target = guis[random.random_range(0..guis.len())];
        let edge = Edge { sid: Sid(sid), source, target, label: knows };
        Mutation::CreateEdge { edge, id: None, properties: vec![] }
    };
    let mutations: Vec<Mutation> = (0..).zip(&guis).map(vertex).chain((0..).zip(sids).map(edge)).collect();
    for mutations in mutations.chunks(AT_ONCE) {
        let request = CommitRequest { mutations: mutations.to_vec(), ..CommitRequest::default() };
        database.commit(request)?;
    }
    Ok(())
}

fn reads(
    flags: &Flags,
    report: &mut Report,
    embedded: &Database,
    remote: &Database,
    vertices: u64,
) -> anyhow::Result<()> {
    let next = |random: &mut ChaCha8Rng| {
        let number = random.random_range(0..vertices);
        vec![Call::cypher(POINT, vec![("id", id(number).into())])]
    };
    let mut random = ChaCha8Rng::seed_from_u64(flags.seed);
    for call in (0..20).flat_map(|_| next(&mut random)) {
        ensure!(call.embedded(embedded)? == call.embedded(remote)?, "different answers to {call:?}");
    }
    let (mut here, mut there) = (vec![], vec![]);
    for round in 0..flags.rounds() as u64 {
        for (database, rounds) in [(embedded, &mut here), (remote, &mut there)] {
            rounds.push(driver::embedded(database, 1, flags.round(), flags.seed + round, &next)?);
        }
    }
    let p50 = |rounds: &[driver::Round]| {
        let all = rounds.iter().filter_map(|round| Some(round.outcome().quantiles_us?[0]));
        median(all).context("no rounds")
    };
    report.add(driver::figure("point read, 1 client, embedded", &here)?);
    report.add(driver::figure("point read, 1 client, remote", &there)?);
    let figure = Figure::cost("point read, remote, p50", "us", p50(&there)?).beside("embedded", p50(&here)?);
    report.add(figure.target(POINT_READ_US));
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn two_hops(
    flags: &Flags,
    report: &mut Report,
    embedded: &Database,
    remote: &Database,
    vertices: u64,
) -> anyhow::Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(flags.seed ^ 2);
    let (mut here, mut there) = (vec![], vec![]);
    // The first round only compares answers and lets both databases plan.
    for round in 0..=3 * flags.rounds() {
        let starts: Vec<Value> =
            (0..STARTS).map(|_| Value::from(id(random.random_range(0..vertices)))).collect();
        let call = Call::cypher(TWO, vec![("ids", Value::List(Arc::new(starts)))]);
        let timed = |database: &Database| {
            let start = Instant::now();
            let rows = call.embedded(database)?;
            anyhow::Ok((rows, start.elapsed().as_secs_f64() * 1e3))
        };
        let ((mine, short), (theirs, long)) = (timed(embedded)?, timed(remote)?);
        ensure!(mine == theirs, "two hops find {mine:?} embedded and {theirs:?} in the cluster");
        if round > 0 {
            here.push(short);
            there.push(long);
        }
    }
    let (here, there) = (median(here).context("no rounds")?, median(there).context("no rounds")?);
    let figure = Figure::cost("two hops of 1,000 starts, remote", "ms", there).beside("embedded", here);
    report.add(figure.target(TWO_HOPS * here));
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn two_hops_counted(
    flags: &Flags,
    report: &mut Report,
    embedded: &Database,
    remote: &Database,
) -> anyhow::Result<()> {
    for (name, text) in TWO_COUNTED {
        let call = Call::cypher(text, vec![]);
        let timed = |database: &Database| {
            let start = Instant::now();
            let rows = call.embedded(database)?;
            anyhow::Ok((rows, start.elapsed().as_secs_f64() * 1e3))
        };
        let (mut here, mut there) = (vec![], vec![]);
        for round in 0..=3 * flags.rounds() {
            let ((mine, short), (theirs, long)) = (timed(embedded)?, timed(remote)?);
            ensure!(mine == theirs, "{text} finds {mine:?} embedded and {theirs:?} in the cluster");
            if round > 0 {
                here.push(short);
                there.push(long);
            }
        }
        let (here, there) = (median(here).context("no rounds")?, median(there).context("no rounds")?);
        let figure = Figure::cost(name, "ms", there).beside("embedded", here);
        report.add(figure.target(TWO_HOPS_COUNTED * here));
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn commits(flags: &Flags, report: &mut Report, cluster: &Cluster, remote: &Database) -> anyhow::Result<()> {
    let tokens = remote.catalog().intern(&["Mark".into(), "text".into()])?;
    let count = if flags.quick { 300 } else { 2_000 };
    let (mut ours, mut bare, mut followed) = (vec![], vec![], vec![]);
    for round in 0..flags.rounds() {
        bare.push(log::latency(cluster, count, 0)?);
        followed.push(log::latency(cluster, count, cluster.nodes())?);
        let mut times = vec![];
        for number in 0..count {
            let id: Str = format!("mark-{round}-{number}").into();
            let value = Value::from(Str::from("x".repeat(BYTES)));
            let property = PropertyWrite { key: tokens[1], cardinality: Cardinality::Single, value };
            let gui = remote.plain_gui(&id);
            let mark =
                Mutation::CreateVertex { gui, id, labels: vec![tokens[0]], properties: vec![property] };
            let request =
                CommitRequest { read_version: Version(0), mutations: vec![mark], ..CommitRequest::default() };
            let start = Instant::now();
            remote.commit(request)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        ours.push(times[times.len() / 2]);
    }
    let (ours, bare) = (median(ours).context("no rounds")?, median(bare).context("no rounds")?);
    let followed = median(followed).context("no rounds")?;
    let figure =
        Figure::cost("commit, 1 caller, p50", "us", ours).beside("a bare write to Kafka, acks=all", bare);
    report.add(figure.target(COMMIT * bare));
    let beside = "a bare write to a topic that as many follow as there are nodes";
    report.add(Figure::cost("commit, 1 caller, p50, besides", "us", ours).beside(beside, followed));
    Ok(())
}
