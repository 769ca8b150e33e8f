//! The identity workload: five short reads and five short writes on a graph of many small trees.

use super::Flags;
use super::clients::{Call, Connection, ServiceProcess};
use super::driver;
use super::peers::{Data, Peers, Question};
use super::report::Report;
use super::versus::Databases;
use anyhow::{Context, bail};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidegraph_engine::{Database, Options};
use tidegraph_types::Value;

/// Types of partners that the generator uses.
pub const PARTNER_TYPES: [&str; 17] = tidegraph_load::generate::identity::PARTNER_TYPES;

/// The graph in this process, its files, and the ids that queries start from.
pub struct Graph {
    /// The database.
    pub database: Arc<Database>,
    /// The files that the graph was loaded from.
    pub files: TempDir,
    golden_entities: Vec<Value>,
    devices: Vec<Value>,
    partners: Vec<Value>,
}

impl Graph {
    /// Generates the files and loads them into a database in memory.
    #[allow(clippy::disallowed_methods, reason = "this measures the world")]
    pub fn load(scale: u64, seed: u64, report: &mut Report) -> anyhow::Result<Self> {
        report.parameter("golden_entities", scale);
        report.parameter("seed", seed);
        let files = tempfile::tempdir()?;
        crate::generated::identity(scale, seed, files.path())?;
        let database = Database::open(Options::default())?;
        let start = Instant::now();
        super::load::load_embedded(&database, files.path())?;
        let status = database.status();
        let seconds = start.elapsed().as_secs_f64();
        report.parameter("vertices", status.vertices);
        report.parameter("edges", status.edges);
        eprintln!("loaded {} vertices and {} edges in {seconds:.1} s", status.vertices, status.edges);
        let ids = |label: &'static str| -> anyhow::Result<Vec<Value>> {
            let text: &'static str = match label {
                "GoldenEntity" => "MATCH (n:GoldenEntity) RETURN id(n)",
                "Device" => "MATCH (n:Device) RETURN id(n)",
                _ => "MATCH (n:Partner) RETURN id(n)",
            };
            let rows = Call::cypher(text, vec![]).embedded(&database)?;
            let mut ids: Vec<Value> = rows.into_iter().flatten().collect();
            ids.sort_by(tidegraph_types::order::order);
            Ok(ids)
        };
        let (golden_entities, devices, partners) = (ids("GoldenEntity")?, ids("Device")?, ids("Partner")?);
        Ok(Self { golden_entities, devices, partners, files, database })
    }

    /// Starts a service and loads the same files into it.
    pub fn serve(&self, flags: &Flags) -> anyhow::Result<(ServiceProcess, TempDir)> {
        let directory = tempfile::tempdir()?;
        let service = ServiceProcess::start(flags, directory.path(), self.files.path())?;
        super::load::load_service(&service.address, self.files.path())?;
        Ok((service, directory))
    }

    fn pick(from: &[Value], random: &mut ChaCha8Rng) -> Value {
        from[random.random_range(0..from.len())].clone()
    }

    /// Returns the id of a random golden entity.
    pub fn random_ge(&self, random: &mut ChaCha8Rng) -> Value {
        Self::pick(&self.golden_entities, random)
    }

    fn random_type(random: &mut ChaCha8Rng) -> Value {
        Value::from(PARTNER_TYPES[random.random_range(0..PARTNER_TYPES.len())])
    }
}

/// A query of the workload in both languages.
struct Kind {
    name: &'static str,
    gremlin: &'static str,
    cypher: &'static str,
    start: Start,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Ge,
    GeAndType,
    Device,
    TwoGes,
    DeviceAndType,
    Partner,
    GeWrite,
    GeTypeScore,
}

const READS: [Kind; 5] = [
    Kind {
        name: "SR1",
        gremlin: "g.V(ge).out('HAS_PARTNER').elementMap('type')",
        cypher: "MATCH (g)-[:HAS_PARTNER]->(p) WHERE id(g) = $ge RETURN id(p), labels(p), p.type",
        start: Start::Ge,
    },
    Kind {
        name: "SR2",
        gremlin: "g.V(ge).out('HAS_PARTNER').has('type', T1).out()",
        cypher: "MATCH (g)-[:HAS_PARTNER]->(p)-->(s) WHERE id(g) = $ge AND p.type = $T1 RETURN s",
        start: Start::GeAndType,
    },
    Kind {
        name: "SR3",
        gremlin: "g.V(ge).both().choose(hasLabel('Partner'), out()).dedup()",
        cypher: "MATCH (g)--(n) WHERE id(g) = $ge OPTIONAL MATCH (n)-->(s) WHERE n:Partner \
                 WITH CASE WHEN n:Partner THEN s ELSE n END AS r WHERE r IS NOT NULL RETURN DISTINCT r",
        start: Start::Ge,
    },
    Kind {
        name: "SR4",
        gremlin: "g.V(dev).in('HAS_DEVICE','PROVIDED_DEVICE').choose(hasLabel('GoldenEntity'), \
                  out().choose(hasLabel('Partner'), out()), \
                  both().choose(hasLabel('GoldenEntity'), out().choose(hasLabel('Partner'), out()))).not(hasLabel('Household'))",
        cypher: "",
        start: Start::Device,
    },
    Kind {
        name: "SR5",
        gremlin: "g.V(dev).in('HAS_DEVICE','PROVIDED_DEVICE').both('HAS_PARTNER','HAS_DEVICE','PROVIDED_DEVICE')\
                  .choose(hasLabel('Partner','GoldenEntity'), out('PROVIDED_DEVICE','HAS_DEVICE','HAS_PARTNER'))\
                  .choose(hasLabel('Partner'), out('PROVIDED_DEVICE')).dedup()",
        cypher: "",
        start: Start::Device,
    },
];

const WRITES: [Kind; 5] = [
    Kind {
        name: "SW1",
        gremlin: "g.V(ge1).out('HAS_HOUSEHOLD').limit(1).addE('HAS_HOUSEHOLD').from(__.V(ge2))",
        cypher: "",
        start: Start::TwoGes,
    },
    Kind {
        name: "SW2",
        gremlin: "g.V(dev).as('d').addV('Partner').property('type', T1).as('p').addV('Cookie').as('c').addV('IpAddress').as('i')\
                  .addE('PROVIDED_COOKIE').from('p').to('c').addE('PROVIDED_IP_ADDR').from('p').to('i')\
                  .addE('PROVIDED_DEVICE').from('p').to('d').V(dev).in('HAS_DEVICE').limit(1).addE('HAS_PARTNER').to('p')",
        cypher: "",
        start: Start::DeviceAndType,
    },
    Kind {
        name: "SW3",
        gremlin: "g.V(partner).out().property(single, 'last_updated_ts', rnd)",
        cypher: "MATCH (p)-->(s) WHERE id(p) = $partner SET s.last_updated_ts = $rnd",
        start: Start::Partner,
    },
    Kind {
        name: "SW4",
        gremlin: "g.V(ge).property(single, 'first_name', rnd).property(single, 'last_name', rnd).property(single, 'email_hash', rnd)\
                  .property(single, 'date_of_birth_day', 1).property(single, 'date_of_birth_month', 2)\
                  .property(single, 'date_of_birth_year', 1990).property(single, 'demonym', rnd)\
                  .property(single, 'educationalAttainment', rnd).property(single, 'maritalStatus', rnd)\
                  .property(single, 'race', rnd).property(single, 'sex', rnd)",
        cypher: "",
        start: Start::GeWrite,
    },
    Kind {
        name: "SW5",
        gremlin: "g.V(ge).outE('HAS_PARTNER').where(otherV().values('type').is(T1)).property('score', rnd)",
        cypher: "MATCH (g)-[e:HAS_PARTNER]->(p) WHERE id(g) = $ge AND p.type = $T1 SET e.score = $rnd",
        start: Start::GeTypeScore,
    },
];

/// A read that other workloads ask too.
#[derive(Clone, Copy)]
pub struct Read {
    /// The traversal.
    pub text: &'static str,
    start: Start,
}

/// Returns one of the five reads, or the read of a vertex (`point read`), by its name.
pub fn read(name: &str) -> Option<Read> {
    if name == "point read" {
        return Some(Read { text: "g.V(ge)", start: Start::Ge });
    }
    let kind = READS.iter().find(|kind| kind.name == name)?;
    Some(Read { text: kind.gremlin, start: kind.start })
}

impl Read {
    /// Draws the parameters of a call.
    pub fn parameters(self, graph: &Graph, random: &mut ChaCha8Rng) -> Vec<(&'static str, Value)> {
        self.start.parameters(graph, random)
    }
}

impl Kind {
    fn question<'a>(&self, next: &'a driver::Next<'a>, writes: bool) -> Question<'a> {
        Question { name: self.name, next, compared: None, writes }
    }

    fn call(&self, graph: &Graph, random: &mut ChaCha8Rng) -> Call {
        Call::gremlin(self.gremlin, self.start.parameters(graph, random))
    }
}

impl Start {
    fn parameters(self, graph: &Graph, random: &mut ChaCha8Rng) -> Vec<(&'static str, Value)> {
        let ge = |random: &mut ChaCha8Rng| graph.random_ge(random);
        let device = |random: &mut ChaCha8Rng| Graph::pick(&graph.devices, random);
        let number = |random: &mut ChaCha8Rng| Value::Long(random.random_range(0..1 << 40));
        match self {
            Start::Ge => vec![("ge", ge(random))],
            Start::GeAndType => vec![("ge", ge(random)), ("T1", Graph::random_type(random))],
            Start::Device => vec![("dev", device(random))],
            Start::TwoGes => vec![("ge1", ge(random)), ("ge2", ge(random))],
            Start::DeviceAndType => vec![("dev", device(random)), ("T1", Graph::random_type(random))],
            Start::Partner => {
                vec![("partner", Graph::pick(&graph.partners, random)), ("rnd", number(random))]
            }
            Start::GeWrite => vec![
                ("ge", ge(random)),
                ("rnd", Value::from(format!("x{:x}", random.random::<u32>()).as_str())),
            ],
            Start::GeTypeScore => {
                vec![
                    ("ge", ge(random)),
                    ("T1", Graph::random_type(random)),
                    ("rnd", Value::Double(random.random())),
                ]
            }
        }
    }
}

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let graph = Graph::load(flags.scale(26_000, 500), flags.seed, report)?;
    compare_languages(&graph, flags.seed)?;
    let mut peers = Peers::start(flags, report, Data::Identity, &graph.database, graph.files.path())?;
    let (service, _directory) = graph.serve(flags)?;
    let calls = |kinds: &'static [Kind; 5]| -> Vec<Box<driver::Next>> {
        let next = |kind: &'static Kind| {
            let graph = &graph;
            Box::new(move |random: &mut ChaCha8Rng| vec![kind.call(graph, random)]) as Box<driver::Next>
        };
        kinds.iter().map(next).collect()
    };
    let (reads, writes) = (calls(&READS), calls(&WRITES));
    let reads: Vec<Question> = READS
        .iter()
        .zip(&reads)
        .filter(|(kind, _)| flags.wants(kind.name))
        .map(|(kind, next)| kind.question(next, false))
        .collect();
    let writes: Vec<Question> = WRITES
        .iter()
        .zip(&writes)
        .filter(|(kind, _)| flags.wants(kind.name))
        .map(|(kind, next)| kind.question(next, true))
        .collect();
    for question in &reads {
        peers.check(report, &graph.database, flags.seed, question)?;
    }
    peers.warm(flags, report, 16, &reads)?;
    let all_clients: &[usize] = if flags.quick { &[1, 16] } else { &[1, 16, 32] };
    let database = Some(&*graph.database);
    let mut databases = Databases { flags, database, service: &service, peers: &mut peers, tails: false };
    for question in &reads {
        for &clients in all_clients {
            databases.ask(report, question.name, question, clients, 0)?;
        }
    }
    // From here on the graphs differ. Writes of the database in this process are not durable, because it is in memory,
    // so they are not timed.
    databases.database = None;
    for question in &writes {
        databases.peers.check(report, &graph.database, flags.seed, question)?;
    }
    databases.peers.warm(flags, report, 1, &writes)?;
    for question in &writes {
        for clients in [1, 16] {
            databases.ask(report, &format!("{}, durable", question.name), question, clients, 100)?;
        }
    }
    if !flags.wants("mixed") {
        return Ok(());
    }
    let mixed: Box<driver::Next> = Box::new(|random| {
        let kinds = if random.random_range(0..100) < 80 { &READS } else { &WRITES };
        vec![kinds[random.random_range(0..5)].call(&graph, random)]
    });
    for clients in [16, 32] {
        let rounds = (0..flags.rounds())
            .map(|r| driver::network(&service.address, clients, flags.round(), 200 + r as u64, &mixed))
            .collect::<anyhow::Result<Vec<_>>>()?;
        report.add(driver::figure(format!("reads and writes 80:20, {clients} clients, network"), &rounds)?);
    }
    Ok(())
}

/// Checks that openCypher queries return as many rows as the traversals with the same starts.
fn compare_languages(graph: &Graph, seed: u64) -> anyhow::Result<()> {
    use rand_chacha::rand_core::SeedableRng;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for kind in READS.iter().filter(|k| !k.cypher.is_empty()) {
        for _ in 0..20 {
            let traversal = kind.call(graph, &mut random);
            let query = Call::cypher(kind.cypher, traversal.parameters.clone());
            let (a, b) = (traversal.embedded(&graph.database)?.len(), query.embedded(&graph.database)?.len());
            if a != b {
                bail!(
                    "{}: the traversal answers {a} rows, openCypher {b}, for {:?}",
                    kind.name,
                    traversal.parameters
                );
            }
        }
    }
    Ok(())
}

/// Submits a load to a service and returns the time until it has completed.
#[allow(clippy::disallowed_methods, reason = "a command that waits for a service; nothing to simulate")]
pub fn wait_for_load(address: &str, source: &str) -> anyhow::Result<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Instant::now();
    runtime.block_on(async {
        let mut connection = Connection::open(address).await?;
        let body = json!({"source": source, "format": "csv", "mode": "NEW"});
        let answer: serde_json::Value =
            serde_json::from_slice(connection.post_json("/loader", &body).await?)?;
        let id = answer["payload"]["loadId"].as_str().context("the answer has no load id")?.to_owned();
        loop {
            let bytes = connection.get(&format!("/loader/{id}")).await?;
            let status: serde_json::Value = serde_json::from_slice(bytes)?;
            match status["payload"]["overallStatus"]["status"].as_str().unwrap_or_default() {
                "LOAD_COMPLETED" => return Ok(start.elapsed()),
                "LOAD_NOT_STARTED" | "LOAD_IN_QUEUE" | "LOAD_IN_PROGRESS" => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                other => bail!("the load ended as {other}: {status}"),
            }
        }
    })
}

/// Returns the URI of a folder as a source of a load.
pub fn source_of(folder: &std::path::Path) -> String {
    format!("file://{}", PathBuf::from(folder).display())
}
