//! The reads of the LDBC Social Network Benchmark's Interactive workload: seven short ones (IS1 to IS7), which start from a
//! person or a message, and fourteen complex ones (IC1 to IC14), which go two or three steps, aggregate and sort.
//!
//! `queries` has the texts, `parameters` draws what they ask for. Tidegraph and Neo4j have the same texts, the same
//! indexes and the same parameters. One client asks one read after the other; each read has its rate, its median time
//! and its 99th percentile.

mod parameters;
mod queries;
#[cfg(test)]
mod tests;

use super::Flags;
use super::clients::{Call, Connection, ServiceProcess};
use super::driver::{self, Next};
use super::load::{load_embedded, load_service};
use super::peers::{Data, Peers, Question};
use super::report::Report;
use super::versus::Databases;
use parameters::Known;
use queries::{READS, Read};
use tidegraph_engine::{Database, Options};

/// Number of calls whose rows are counted.
const COUNTED: usize = 20;

/// Ids are unique, as in LDBC's scripts for Cypher. Peers have such constraints for all labels.
const CONSTRAINTS: [&str; 9] = [
    "CREATE CONSTRAINT city_id FOR (n:City) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT comment_id FOR (n:Comment) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT country_id FOR (n:Country) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT forum_id FOR (n:Forum) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT message_id FOR (n:Message) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT organisation_id FOR (n:Organisation) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT person_id FOR (n:Person) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT post_id FOR (n:Post) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT tag_id FOR (n:Tag) REQUIRE n.id IS UNIQUE",
];

/// The indexes of LDBC's scripts for Cypher.
const INDEXES: [&str; 6] = [
    "CREATE INDEX country_name FOR (n:Country) ON (n.name)",
    "CREATE INDEX message_creation FOR (n:Message) ON (n.creationDate)",
    "CREATE INDEX person_first_name FOR (n:Person) ON (n.firstName)",
    "CREATE INDEX post_creation FOR (n:Post) ON (n.creationDate)",
    "CREATE INDEX tag_name FOR (n:Tag) ON (n.name)",
    "CREATE INDEX tag_class_name FOR (n:TagClass) ON (n.name)",
];

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let scale = flags.scale(3_000, 60);
    report.parameter("scale", scale);
    report.parameter("seed", flags.seed);
    let files = tempfile::tempdir()?;
    crate::generated::snb(scale, flags.seed, files.path())?;
    let database = Database::open(Options::default())?;
    load_embedded(&database, files.path())?;
    let schema = || CONSTRAINTS.into_iter().chain(INDEXES);
    for text in schema() {
        Call::cypher(text, vec![]).embedded(&database)?;
    }
    let status = database.status();
    report.parameter("vertices", status.vertices);
    report.parameter("edges", status.edges);
    let mut peers = Peers::start(flags, report, Data::Snb, &database, files.path())?;
    peers.command(INDEXES.into_iter().chain(["CALL db.awaitIndexes(600)"]))?;
    let directory = tempfile::tempdir()?;
    let service = ServiceProcess::start(flags, directory.path(), files.path())?;
    load_service(&service.address, files.path())?;
    send(&service.address, schema())?;
    let known = Known::of(&database)?;
    let calls: Vec<(&'static Read, Box<Next>)> =
        READS.iter().filter(|read| flags.wants(read.name)).map(|read| (read, next(read, &known))).collect();
    let questions: Vec<Question> = calls
        .iter()
        .map(|(read, next)| Question { name: read.name, next, compared: None, writes: false })
        .collect();
    for question in &questions {
        report.parameter(&format!("{}, rows of {COUNTED} calls", question.name), rows(question, &database)?);
        peers.check(report, &database, flags.seed, question)?;
    }
    peers.warm(flags, report, 1, &questions)?;
    let mut databases =
        Databases { flags, database: Some(&database), service: &service, peers: &mut peers, tails: true };
    questions.iter().try_for_each(|question| databases.ask(report, question.name, question, 1, 0))
}

/// Returns what makes the calls of a read.
fn next<'a>(read: &'static Read, known: &'a Known) -> Box<Next<'a>> {
    Box::new(move |random| vec![Call::cypher(read.text, known.draw(read.draw, random))])
}

/// Returns the number of rows of the first calls, all together.
fn rows(question: &Question, database: &Database) -> anyhow::Result<usize> {
    let mut random = driver::random(0);
    let mut rows = 0;
    for call in std::iter::repeat_with(|| (question.next)(&mut random)).take(COUNTED).flatten() {
        rows += call.embedded(database)?.len();
    }
    Ok(rows)
}

/// Sends commands to a service, one after the other.
fn send(address: &str, texts: impl Iterator<Item = &'static str>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = Connection::open(address).await?;
        for text in texts {
            connection.call(&Call::cypher(text, vec![])).await?;
        }
        Ok(())
    })
}
