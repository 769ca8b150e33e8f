//! The social workload: an R-MAT graph with profiles, and six tests over one connection, as they are usual for this
//! kind of graph.

use super::Flags;
use super::clients::{Call, ServiceProcess};
use super::driver;
use super::load::{load_embedded, load_service};
use super::peers::{Data, Peers, Question};
use super::report::{Figure, Report};
use super::versus::Databases;
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
    fn load(flags: &Flags, report: &mut Report) -> anyhow::Result<Self> {
        let scale = flags.scale(18, 12);
        report.parameter("scale", scale);
        report.parameter("seed", flags.seed);
        let files = tempfile::tempdir()?;
        crate::generated::social(scale, flags.seed, files.path())?;
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

    /// Returns two different vertices. One peer refuses to search for the path from a vertex to itself.
    fn two(&self, random: &mut ChaCha8Rng) -> (Value, Value) {
        loop {
            let (a, b) = (self.any(random), self.any(random));
            if a != b {
                return (a, b);
            }
        }
    }

    fn any(&self, random: &mut ChaCha8Rng) -> Value {
        self.ids[random.random_range(0..self.ids.len())].clone()
    }
}

const READ: &str = "MATCH (n) WHERE id(n) = $id RETURN n";
const WRITE: &str = "CREATE (n:Written {age: $age, region: 'bench', completion: 50}) RETURN id(n)";
const AGES: &str = "MATCH (n:Profile) RETURN n.age AS age, count(*) AS profiles";
/// DISTINCT after the first hop: from a hub there are many more walks of two hops than vertices that they reach.
const TWO_HOPS: &str = "MATCH (n)-[:FRIEND]->(a) WHERE id(n) = $id RETURN id(a) AS id UNION \
                        MATCH (n)-[:FRIEND]->(a) WHERE id(n) = $id WITH DISTINCT a \
                        MATCH (a)-[:FRIEND]->(b) RETURN DISTINCT id(b) AS id";
const TWO_HOPS_GREMLIN: &str = "g.V(id0).out('FRIEND').union(identity(), out('FRIEND')).dedup().id()";
const TWO_HOP_PROFILES: &str = "g.V(id0).out('FRIEND').union(identity(), out('FRIEND')).dedup().valueMap()";
const TWO_HOP_VERTICES: &str = "g.V(id0).out('FRIEND').union(identity(), out('FRIEND')).dedup()";
const SHORTEST: &str = "MATCH (a), (b) WHERE id(a) = $a AND id(b) = $b \
                        MATCH p = shortestPath((a)-[:FRIEND*..15]->(b)) RETURN length(p)";

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let social = Social::load(flags, report)?;
    same_two_hops(&social)?;
    let mut peers = Peers::start(flags, report, Data::Social, &social.database, social.files.path())?;
    let directory = tempfile::tempdir()?;
    let service = ServiceProcess::start(flags, directory.path(), social.files.path())?;
    load_service(&service.address, social.files.path())?;
    let single = |text: &'static str, name: &'static str| -> Box<driver::Next> {
        let social = &social;
        Box::new(move |random| {
            let parameters = vec![(name, social.any(random))];
            vec![if name == "id0" { Call::gremlin(text, parameters) } else { Call::cypher(text, parameters) }]
        })
    };
    let calls: [(&'static str, Box<driver::Next>, Option<Call>); 5] = [
        ("single read", single(READ, "id"), None),
        ("neighbours of neighbours, ids", single(TWO_HOPS_GREMLIN, "id0"), None),
        // The timed text returns maps without ids.
        (
            "neighbours of neighbours, profiles",
            single(TWO_HOP_PROFILES, "id0"),
            Some(Call::gremlin(TWO_HOP_VERTICES, vec![])),
        ),
        (
            "shortest path",
            Box::new(|random| {
                let (a, b) = social.two(random);
                vec![Call::cypher(SHORTEST, vec![("a", a), ("b", b)])]
            }),
            None,
        ),
        ("ages of all", Box::new(|_| vec![Call::cypher(AGES, vec![])]), None),
    ];
    let reads: Vec<Question> = calls
        .iter()
        .map(|(name, next, compared)| Question { name, next, compared: compared.clone(), writes: false })
        .collect();
    for question in &reads {
        peers.check(report, &social.database, flags.seed, question)?;
    }
    peers.warm(flags, report, 1, &reads)?;
    let database = Some(&*social.database);
    let mut databases = Databases { flags, database, service: &service, peers: &mut peers, tails: false };
    for question in &reads {
        databases.ask(report, question.name, question, 1, 0)?;
    }
    databases.database = None;
    let write: Box<driver::Next> =
        Box::new(|r| vec![Call::cypher(WRITE, vec![("age", Value::Long(r.random_range(0..112)))])]);
    let write = Question { name: "single write", next: &write, compared: None, writes: true };
    databases.peers.check(report, &social.database, flags.seed, &write)?;
    databases.peers.warm(flags, report, 1, std::slice::from_ref(&write))?;
    databases.ask(report, "single write, synced", &write, 1, 0)?;
    Ok(())
}

/// Checks that both languages find the same neighbours.
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
