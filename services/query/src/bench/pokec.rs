//! The social workload: an R-MAT graph with profiles; six tests of one connection, as seed papers of the field run them.

use super::clients::{Call, ServiceProcess};
use super::driver::{self, Round};
use super::load::{load_embedded, load_service};
use super::report::{Figure, Report};
use super::{Bench, Peer, postgres};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidegraph_engine::{Database, Options};
use tidegraph_types::Value;

struct Social {
    database: Arc<Database>,
    files: TempDir,
    ids: Vec<Value>,
}

impl Social {
    fn load(bench: &Bench, report: &mut Report) -> anyhow::Result<Self> {
        let scale = bench.scale(18, 12);
        report.parameter("scale", scale);
        report.parameter("seed", bench.seed);
        let files = tempfile::tempdir()?;
        crate::cli::write_social(scale, bench.seed, files.path())?;
        let database = Database::open(Options::default())?;
        load_embedded(&database, files.path())?;
        let status = database.status();
        report.parameter("vertices", status.vertices);
        report.parameter("edges", status.edges);
        report.add(Figure::cost(
            "memory for each edge, profiles included",
            "bytes",
            database.memory_bytes() as f64 / status.edges.max(1) as f64,
        ));
        let rows = Call::cypher("MATCH (n) RETURN id(n)", vec![]).embedded(&database)?;
        let mut ids: Vec<Value> = rows.into_iter().flatten().collect();
        ids.sort_by(tidegraph_types::order::order);
        Ok(Self { database, files, ids })
    }

    fn any(&self, random: &mut ChaCha8Rng) -> Value {
        self.ids[random.random_range(0..self.ids.len())].clone()
    }
}

const READ: &str = "MATCH (n) WHERE id(n) = $id RETURN n";
const WRITE: &str = "CREATE (n:Written {age: $age, region: 'bench', completion: 50}) RETURN id(n)";
const AGES: &str = "MATCH (n:Profile) RETURN n.age AS age, count(*) AS profiles";
const TWO_HOPS: &str = "MATCH (n)-[:FRIEND]->(a) WHERE id(n) = $id OPTIONAL MATCH (a)-[:FRIEND]->(b) \
                        WITH collect(a) + collect(b) AS both UNWIND both AS x RETURN DISTINCT id(x)";
const TWO_HOPS_GREMLIN: &str = "g.V(id0).out('FRIEND').union(identity(), out('FRIEND')).dedup().id()";
const TWO_HOP_PROFILES: &str = "g.V(id0).out('FRIEND').union(identity(), out('FRIEND')).dedup().valueMap()";
const SHORTEST: &str = "MATCH (a), (b) WHERE id(a) = $a AND id(b) = $b \
                        MATCH p = shortestPath((a)-[:FRIEND*..15]->(b)) RETURN length(p)";

/// Runs the workload.
pub fn run(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let social = Social::load(bench, report)?;
    same_two_hops(&social)?;
    let peer = if bench.with_peer(Peer::Postgres) {
        match postgres::Postgres::start_social(&social.database, bench.round()) {
            Ok(peer) => Some(peer),
            Err(error) => {
                eprintln!("PostgreSQL is left out: {error:#}");
                None
            }
        }
    } else {
        None
    };
    let directory = tempfile::tempdir()?;
    let service = ServiceProcess::start(directory.path())?;
    load_service(&service.address, social.files.path())?;
    let reads: [(&str, Box<driver::Next>); 4] = [
        ("single read", Box::new(|r| vec![Call::cypher(READ, vec![("id", social.any(r))])])),
        (
            "neighbours of neighbours, ids",
            Box::new(|r| vec![Call::gremlin(TWO_HOPS_GREMLIN, vec![("id0", social.any(r))])]),
        ),
        (
            "neighbours of neighbours, profiles",
            Box::new(|r| vec![Call::gremlin(TWO_HOP_PROFILES, vec![("id0", social.any(r))])]),
        ),
        (
            "shortest path",
            Box::new(|r| vec![Call::cypher(SHORTEST, vec![("a", social.any(r)), ("b", social.any(r))])]),
        ),
    ];
    for (name, next) in &reads {
        both(bench, report, &social, &service, name, next, peer.as_ref())?;
    }
    let ages: Box<driver::Next> = Box::new(|_| vec![Call::cypher(AGES, vec![])]);
    both(bench, report, &social, &service, "ages of all", &ages, peer.as_ref())?;
    let write: Box<driver::Next> =
        Box::new(|r| vec![Call::cypher(WRITE, vec![("age", Value::Long(r.random_range(0..112)))])]);
    let rounds = rounds(bench, |r| driver::network(&service.address, 1, bench.round(), r, &write))?;
    report.add(driver::figure("single write, synced, network", &rounds)?);
    Ok(())
}

fn rounds(bench: &Bench, mut one: impl FnMut(u64) -> anyhow::Result<Round>) -> anyhow::Result<Vec<Round>> {
    (0..bench.rounds() as u64).map(&mut one).collect()
}

fn both(
    bench: &Bench,
    report: &mut Report,
    social: &Social,
    service: &ServiceProcess,
    name: &'static str,
    next: &driver::Next,
    peer: Option<&postgres::Postgres>,
) -> anyhow::Result<()> {
    let (mut embedded, mut network, mut peers) = (vec![], vec![], vec![]);
    for r in 0..bench.rounds() as u64 {
        embedded.push(driver::embedded(&social.database, 1, bench.round(), r, next)?);
        network.push(driver::network(&service.address, 1, bench.round(), r, next)?);
        if let Some(peer) = peer.filter(|p| p.has(name)) {
            peers.push(peer.rate(name, 1)?);
        }
    }
    peers.sort_by(f64::total_cmp);
    let peer_rate = peers.get(peers.len() / 2).copied();
    for (place, rounds) in [("embedded", &embedded), ("network", &network)] {
        let mut figure = driver::figure(format!("{name}, 1 client, {place}"), rounds)?;
        if let Some(rate) = peer_rate {
            figure = figure.beside("PostgreSQL 15, pgbench, prepared", rate);
        }
        report.add(figure);
    }
    Ok(())
}

/// The two languages must find the same neighbours.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn same_two_hops(social: &Social) -> anyhow::Result<()> {
    let start = Instant::now();
    for id in social.ids.iter().step_by((social.ids.len() / 50).max(1)) {
        let rows = |call: Call| -> anyhow::Result<Vec<Value>> {
            let mut rows: Vec<Value> = call.embedded(&social.database)?.into_iter().flatten().collect();
            rows.sort_by(tidegraph_types::order::order);
            Ok(rows)
        };
        let a = rows(Call::gremlin(TWO_HOPS_GREMLIN, vec![("id0", id.clone())]))?;
        let b = rows(Call::cypher(TWO_HOPS, vec![("id", id.clone())]))?;
        anyhow::ensure!(a == b, "two hops from {id:?}: {} in Gremlin, {} in openCypher", a.len(), b.len());
        if start.elapsed() > Duration::from_secs(20) {
            break;
        }
    }
    Ok(())
}
