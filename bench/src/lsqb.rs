//! The Labelled Subgraph Query Benchmark: nine patterns over a social network, of which only the matches are counted.
//!
//! The texts are those of <https://github.com/ldbc/lsqb> (folder `cypher`, commit 8f20b3d), the same for Tidegraph and
//! Neo4j; `peers::texts` has Kùzu's. All queries run on one thread, and a peer that can also use all cores is measured
//! a second time. Each figure is the median time of a single query at a time.

use super::Flags;
use super::clients::{Call, ServiceProcess};
use super::driver::{self, Next, Outcome, Round, median};
use super::load::{load_embedded, load_service};
use super::peers::{Data, Peers, Question};
use super::report::{Figure, Report};
use std::time::Duration;
use tidegraph_engine::{Database, Options};

const QUERIES: [(&str, &str); 9] = [
    (
        "q1",
        "MATCH (:Country)<-[:IS_PART_OF]-(:City)<-[:IS_LOCATED_IN]-(:Person)<-[:HAS_MEMBER]-(:Forum)\
         -[:CONTAINER_OF]->(:Post)<-[:REPLY_OF]-(:Comment)-[:HAS_TAG]->(:Tag)-[:HAS_TYPE]->(:TagClass) \
         RETURN count(*) AS count",
    ),
    (
        "q2",
        "MATCH (person1:Person)-[:KNOWS]-(person2:Person), \
         (person1)<-[:HAS_CREATOR]-(comment:Comment)-[:REPLY_OF]->(post:Post)-[:HAS_CREATOR]->(person2) \
         RETURN count(*) AS count",
    ),
    (
        "q3",
        "MATCH (country:Country) \
         MATCH (person1:Person)-[:IS_LOCATED_IN]->(city1:City)-[:IS_PART_OF]->(country) \
         MATCH (person2:Person)-[:IS_LOCATED_IN]->(city2:City)-[:IS_PART_OF]->(country) \
         MATCH (person3:Person)-[:IS_LOCATED_IN]->(city3:City)-[:IS_PART_OF]->(country) \
         MATCH (person1)-[:KNOWS]-(person2)-[:KNOWS]-(person3)-[:KNOWS]-(person1) \
         RETURN count(*) AS count",
    ),
    (
        "q4",
        "MATCH (:Tag)<-[:HAS_TAG]-(message:Message)-[:HAS_CREATOR]->(creator:Person), \
         (message)<-[:LIKES]-(liker:Person), (message)<-[:REPLY_OF]-(comment:Comment) \
         RETURN count(*) AS count",
    ),
    (
        "q5",
        "MATCH (tag1:Tag)<-[:HAS_TAG]-(message:Message)<-[:REPLY_OF]-(comment:Comment)-[:HAS_TAG]->(tag2:Tag) \
         WHERE tag1 <> tag2 \
         RETURN count(*) AS count",
    ),
    (
        "q6",
        "MATCH (person1:Person)-[:KNOWS]-(person2:Person)-[:KNOWS]-(person3:Person)-[:HAS_INTEREST]->(tag:Tag) \
         WHERE person1 <> person3 \
         RETURN count(*) AS count",
    ),
    (
        "q7",
        "MATCH (:Tag)<-[:HAS_TAG]-(message:Message)-[:HAS_CREATOR]->(creator:Person) \
         OPTIONAL MATCH (message)<-[:LIKES]-(liker:Person) \
         OPTIONAL MATCH (message)<-[:REPLY_OF]-(comment:Comment) \
         RETURN count(*) AS count",
    ),
    (
        "q8",
        "MATCH (tag1:Tag)<-[:HAS_TAG]-(message:Message)<-[:REPLY_OF]-(comment:Comment)-[:HAS_TAG]->(tag2:Tag) \
         WHERE NOT (comment)-[:HAS_TAG]->(tag1) AND tag1 <> tag2 \
         RETURN count(*) AS count",
    ),
    (
        "q9",
        "MATCH (person1:Person)-[:KNOWS]-(person2:Person)-[:KNOWS]-(person3:Person)-[:HAS_INTEREST]->(tag:Tag) \
         WHERE NOT (person1)-[:KNOWS]-(person3) AND person1 <> person3 \
         RETURN count(*) AS count",
    ),
];

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let scale = flags.scale(10_000, 50);
    report.parameter("scale", scale);
    report.parameter("seed", flags.seed);
    let files = tempfile::tempdir()?;
    crate::generated::network(scale, flags.seed, files.path())?;
    let database = Database::open(Options::default())?;
    load_embedded(&database, files.path())?;
    let status = database.status();
    report.parameter("vertices", status.vertices);
    report.parameter("edges", status.edges);
    let mut peers = Peers::start(flags, report, Data::Network, &database, files.path())?;
    let directory = tempfile::tempdir()?;
    let service = ServiceProcess::start(flags, directory.path(), files.path())?;
    let seconds = load_service(&service.address, files.path())?;
    let load = Figure::cost("CSV to queryable, durable", "s", seconds);
    let loads: Vec<_> = peers.each().filter_map(|p| Some((p.label.clone(), p.loaded_s?))).collect();
    beside(report, &load, loads);
    let calls: Vec<(&'static str, Box<Next>)> = QUERIES
        .into_iter()
        .filter(|(name, _)| flags.wants(name))
        .map(|(name, text)| (name, Box::new(move |_: &mut _| vec![Call::cypher(text, vec![])]) as Box<Next>))
        .collect();
    let questions: Vec<Question> =
        calls.iter().map(|(name, next)| Question { name, next, compared: None, writes: false }).collect();
    for question in &questions {
        let count = (question.next)(&mut driver::random(0))[0].embedded(&database)?;
        let count = count.iter().flatten().next().and_then(tidegraph_types::Value::as_i64);
        report.parameter(&format!("{}, count", question.name), count);
        peers.check(report, &database, flags.seed, question)?;
    }
    peers.warm(flags, report, 1, &questions)?;
    let mut run = Run { flags, database: &database, service: &service, peers: &mut peers };
    questions.iter().try_for_each(|question| run.ask(report, question))
}

struct Run<'a> {
    flags: &'a Flags,
    database: &'a Database,
    service: &'a ServiceProcess,
    peers: &'a mut Peers,
}

/// Times of a peer in milliseconds.
struct Times {
    label: String,
    beside_embedded: bool,
    ms: Vec<f64>,
}

impl Run<'_> {
    /// Asks Tidegraph and each peer one query in turn, round by round.
    fn ask(&mut self, report: &mut Report, question: &Question) -> anyhow::Result<()> {
        let length = self.flags.round();
        let (mut embedded, mut network) = (vec![], vec![]);
        let mut theirs: Vec<Times> = vec![];
        for _ in 0..self.flags.rounds() {
            embedded.push(median_ms(&driver::embedded(self.database, 1, length, 0, question.next)?)?);
            network.push(median_ms(&driver::network(&self.service.address, 1, length, 0, question.next)?)?);
            self.ask_peers(report, question, length, &mut theirs)?;
        }
        let middle = |rounds: Vec<f64>| median(rounds).unwrap_or(f64::NAN);
        for (way, rounds, embedded) in [("embedded", embedded, true), ("network", network, false)] {
            let ours = Figure::cost(format!("{}, {way}", question.name), "ms", middle(rounds));
            let of_way = theirs.iter().filter(|t| t.beside_embedded == embedded);
            let values = of_way.map(|t| (t.label.clone(), middle(t.ms.clone()))).collect();
            beside(report, &ours, values);
        }
        Ok(())
    }

    fn ask_peers(
        &mut self,
        report: &mut Report,
        question: &Question,
        length: Duration,
        theirs: &mut Vec<Times>,
    ) -> anyhow::Result<()> {
        for peer in self.peers.each() {
            for threads in peer.thread_counts() {
                let label = match threads {
                    Some(threads) => {
                        format!("{}, {threads} threads", peer.label).replace(" 1 threads", " 1 thread")
                    }
                    None => peer.label.clone(),
                };
                if let Some(threads) = threads {
                    peer.use_threads(threads)?;
                }
                let outcome = peer.round(report, question, 1, length, 0);
                let Some(p50) = outcome.and_then(|o| Some(o.quantiles_us?[0])) else { continue };
                let known = theirs.iter().position(|t| t.label == label).unwrap_or_else(|| {
                    let beside_embedded = peer.beside_embedded();
                    theirs.push(Times { label, beside_embedded, ms: vec![] });
                    theirs.len() - 1
                });
                theirs[known].ms.push(p50 / 1e3);
            }
        }
        Ok(())
    }
}

fn median_ms(round: &Round) -> anyhow::Result<f64> {
    if let Some(error) = &round.error {
        anyhow::bail!("a call ended in an error: {error}");
    }
    let Outcome { quantiles_us, .. } = round.outcome();
    Ok(quantiles_us.map_or(f64::NAN, |q| q[0]) / 1e3)
}

/// Reports a figure beside that of each peer, or alone.
fn beside(report: &mut Report, ours: &Figure, theirs: Vec<(String, f64)>) {
    if theirs.is_empty() {
        report.add(ours.clone());
    }
    for (label, value) in theirs {
        report.add(ours.clone().beside(&label, value));
    }
}
