//! Other databases, measured beside Tidegraph: the same graph and the same questions, in the same run and in turn.
//!
//! `postgres` runs the server of the machine; `program` runs the peers that `npm run bench` installs; `texts` holds the
//! questions in their languages; `rows` writes answers in the notation in which they are compared.
//!
//! Flow: [`Peers::start`] starts and fills the peers of the run; [`Peers::check`] compares answers before anything is
//! timed, and drops the question for a peer with a different answer; [`Peers::warm`] warms up;
//! then each round asks Tidegraph and every peer in turn.
//!
//! A peer that was named and does not start is an error; a peer that was not named is reported as missing. A question
//! whose answers differ never has a figure.

pub mod postgres;
pub mod program;
mod rows;
pub mod texts;

use super::Flags;
use super::clients::Call;
use super::driver::{Next, Outcome};
use super::report::Report;
use clap::ValueEnum;
use postgres::Postgres;
use program::{Asked, Program};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tidegraph_engine::Database;

/// A database to measure beside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub enum Kind {
    /// PostgreSQL on this machine, prepared SQL under pgbench (identity, pokec).
    Postgres,
    /// Gremlin Server with TinkerGraph (identity, load).
    Gremlin,
    /// Neo4j Community over Bolt (identity, pokec, lsqb, snb, load).
    #[value(name = "neo4j")]
    Neo4j,
    /// Kùzu, embedded (pokec, lsqb, load).
    Kuzu,
    /// Apache Cassandra, one node (ycsb).
    Cassandra,
    /// Apache Cassandra, one node that acknowledges writes once they are on disk (ycsb).
    CassandraDurable,
    /// Apache Cassandra, three nodes (ycsb).
    CassandraCluster,
    /// No peer.
    None,
}

impl Kind {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Gremlin => "gremlin",
            Self::Neo4j => "neo4j",
            Self::Kuzu => "kuzu",
            Self::Cassandra => "cassandra",
            Self::CassandraDurable => "cassandra-durable",
            Self::CassandraCluster => "cassandra-cluster",
            Self::None => "none",
        }
    }

    fn is_jvm(self) -> bool {
        !matches!(self, Self::Postgres | Self::Kuzu | Self::None)
    }
}

enum Server {
    Postgres(Box<Postgres>),
    Program(Box<Program>),
}

/// A running peer.
pub struct Peer {
    kind: Kind,
    /// Name in the report.
    pub label: String,
    server: Server,
    /// Duration of its load in seconds, if it loaded the files.
    pub loaded_s: Option<f64>,
    /// Questions that it answers differently or cannot be asked.
    refused: HashSet<&'static str>,
}

/// The graph of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// The identity graph: many small trees.
    Identity,
    /// The social graph: profiles that are friends of each other.
    Social,
    /// The network of persons, forums and messages.
    Network,
    /// The network with properties.
    Snb,
}

/// A question of a workload.
pub struct Question<'a> {
    /// Name in the tables of texts.
    pub name: &'static str,
    /// Makes Tidegraph's call.
    pub next: &'a Next<'a>,
    /// Tidegraph's text whose answer is compared, if it is not the timed text. It has the same parameters.
    pub compared: Option<Call>,
    /// Whether the question writes. Then only the numbers of rows are compared, because each answer has its own ids and
    /// values.
    pub writes: bool,
}

/// The peers of a run.
#[derive(Default)]
pub struct Peers(Vec<Peer>);

/// Number of starts whose answers are compared before a question is timed.
const COMPARED: usize = 20;
/// Time after which no more answers are compared.
const COMPARING: Duration = Duration::from_secs(30);
/// Number of different calls in a round.
const CALLS: usize = 5_000;

/// Returns the peers out of `able` that the run asks for, and whether they were named.
pub fn wanted(flags: &Flags, able: &[Kind]) -> anyhow::Result<(Vec<Kind>, bool)> {
    let Some(named) = &flags.peers else { return Ok((able.to_vec(), false)) };
    let named: Vec<Kind> = named.iter().copied().filter(|k| *k != Kind::None).collect();
    for kind in &named {
        anyhow::ensure!(able.contains(kind), "{} is not a peer of this workload", kind.name());
    }
    Ok((named, true))
}

/// Reports a peer that cannot be started. Fails if the peer was named.
pub fn missing(report: &mut Report, kind: Kind, error: &anyhow::Error, named: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!named, "{} was named and cannot be started: {error:#}", kind.name());
    eprintln!("{} is missing: {error:#}", kind.name());
    report.parameter(&format!("peer {}", kind.name()), format!("missing: {error:#}"));
    Ok(())
}

impl Peers {
    /// Starts and fills the peers of a run.
    pub fn start(
        flags: &Flags,
        report: &mut Report,
        data: Data,
        database: &Database,
        csv: &Path,
    ) -> anyhow::Result<Self> {
        let able: &[Kind] = match data {
            Data::Identity => &[Kind::Postgres, Kind::Gremlin, Kind::Neo4j],
            Data::Social => &[Kind::Postgres, Kind::Neo4j, Kind::Kuzu],
            Data::Network => &[Kind::Neo4j, Kind::Kuzu],
            Data::Snb => &[Kind::Neo4j],
        };
        let (kinds, named) = wanted(flags, able)?;
        let mut peers = vec![];
        for kind in kinds {
            match Peer::start(kind, flags, data, database, csv) {
                Ok(peer) => {
                    if let Server::Program(program) = &peer.server {
                        report.parameter(&format!("peer {}", kind.name()), program.description());
                    }
                    peers.push(peer);
                }
                Err(error) => missing(report, kind, &error, named)?,
            }
        }
        Ok(Self(peers))
    }

    /// Returns the peers, to ask them in turn.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.0.iter_mut()
    }

    /// Sends commands to all peers, one after the other.
    pub fn command<'t>(&mut self, texts: impl Iterator<Item = &'t str> + Clone) -> anyhow::Result<()> {
        for peer in &mut self.0 {
            let Server::Program(program) = &mut peer.server else { continue };
            for text in texts.clone() {
                program.rows(text, &serde_json::Map::new())?;
            }
        }
        Ok(())
    }

    /// Compares answers. A peer that answers differently is not asked the question again.
    pub fn check(
        &mut self,
        report: &mut Report,
        database: &Database,
        seed: u64,
        question: &Question,
    ) -> anyhow::Result<()> {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xc0de);
        let mut calls: Vec<Call> =
            std::iter::repeat_with(|| (question.next)(&mut random)).take(COMPARED).flatten().collect();
        if calls.iter().all(|call| call.parameters.is_empty()) {
            // Without parameters all calls have the same answer.
            calls.truncate(1);
        }
        let mut ours = vec![];
        let start = Instant::now();
        for call in &calls {
            if start.elapsed() > COMPARING && !ours.is_empty() {
                break;
            }
            let compared = match &question.compared {
                Some(other) => Call { parameters: call.parameters.clone(), ..other.clone() },
                None => call.clone(),
            };
            ours.push(rows::notation(&compared.embedded(database)?));
        }
        if ours.len() < calls.len() {
            report.parameter(&format!("{}, calls compared", question.name), ours.len());
            calls.truncate(ours.len());
        }
        for peer in &mut self.0 {
            if let Some(difference) = peer.difference(question, &calls, &ours) {
                peer.refuse(report, question.name, &difference);
            }
        }
        Ok(())
    }

    /// Warms up with the questions one after the other. A peer on the JVM needs two minutes of reads until its code is
    /// compiled; writes follow and get half a minute. Other peers need less, and with `--quick` all get less.
    pub fn warm(
        &mut self,
        flags: &Flags,
        report: &mut Report,
        clients: usize,
        questions: &[Question],
    ) -> anyhow::Result<()> {
        let writes = questions.iter().any(|q| q.writes);
        let what = if writes { "writes" } else { "reads" };
        for peer in &mut self.0 {
            let seconds = match (peer.kind.is_jvm(), flags.quick, writes) {
                (true, false, false) => 120,
                (true, false, true) => 30,
                (false, false, _) => 10,
                (true, true, false) => 8,
                (true, true, true) => 3,
                (false, true, _) => 1,
            };
            let short = if flags.quick { " (shortened: --quick)" } else { "" };
            eprintln!("warming up {} with {what} for {seconds} s{short}", peer.label);
            report.parameter(&format!("{}, warm-up, {what}", peer.label), format!("{seconds} s{short}"));
            peer.warm(clients, Duration::from_secs(seconds), questions)?;
        }
        Ok(())
    }
}

fn different_counts(theirs: &[usize], calls: &[Call], ours: &[Vec<String>]) -> Option<String> {
    let found = theirs.iter().zip(ours).zip(calls).find(|((theirs, ours), _)| **theirs != ours.len())?;
    let ((theirs, ours), call) = found;
    Some(format!("{theirs} rows, ours are {}, for {:?}", ours.len(), call.parameters))
}

fn different_rows(
    kind: Kind,
    program: &mut Program,
    question: &Question,
    calls: &[Call],
    ours: &[Vec<String>],
) -> anyhow::Result<Option<String>> {
    let start = Instant::now();
    for (at, (call, ours)) in calls.iter().zip(ours).enumerate() {
        if start.elapsed() > COMPARING {
            eprintln!("{}: only {at} answers of {} are compared", question.name, kind.name());
            break;
        }
        let Some(text) = texts::text(kind, question.name, call.text) else {
            return Ok(Some("it has no text for it".to_owned()));
        };
        let theirs = program.rows(text, &call.json_parameters())?;
        let same = if question.writes { theirs.len() == ours.len() } else { theirs == *ours };
        if !same {
            let first = theirs.iter().zip(ours).find(|(a, b)| a != b);
            let (theirs, ours, parameters) = (theirs.len(), ours.len(), &call.parameters);
            return Ok(Some(format!(
                "{theirs} rows, ours are {ours}; first difference {first:?}, for {parameters:?}"
            )));
        }
    }
    Ok(None)
}

impl Peer {
    fn start(kind: Kind, flags: &Flags, data: Data, database: &Database, csv: &Path) -> anyhow::Result<Self> {
        let mut loaded_s = None;
        let (label, server) = match (kind, data) {
            (Kind::Postgres, _) => {
                let server = match data {
                    Data::Identity => Postgres::start(database, flags.round())?,
                    Data::Social | Data::Network | Data::Snb => {
                        Postgres::start_social(database, flags.round())?
                    }
                };
                ("PostgreSQL 15, pgbench, prepared".to_owned(), Server::Postgres(Box::new(server)))
            }
            _ => {
                let (program, loaded) = if kind == Kind::Neo4j {
                    Program::import(kind, csv)?
                } else {
                    let mut program = Program::start(kind)?;
                    let loaded = program.load(csv)?;
                    (program, loaded)
                };
                let status = database.status();
                loaded.expect(status.vertices, status.edges)?;
                loaded_s = Some(loaded.seconds);
                eprintln!("{}: loaded in {:.1} s", program.name(), loaded.seconds);
                (program.name().to_owned(), Server::Program(Box::new(program)))
            }
        };
        Ok(Self { kind, label, server, loaded_s, refused: HashSet::new() })
    }

    /// Returns whether it runs in the process of its client, so that it is compared with calls in this process.
    pub fn beside_embedded(&self) -> bool {
        matches!(self.kind, Kind::Kuzu | Kind::Postgres)
    }

    /// Returns the numbers of threads for one query with which it can be measured, or a single `None` if it does not let
    /// its user choose.
    pub fn thread_counts(&self) -> Vec<Option<usize>> {
        if self.kind != Kind::Kuzu {
            return vec![None];
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut counts = vec![Some(1), Some(cores)];
        counts.dedup();
        counts
    }

    /// Sets the number of threads for one query.
    pub fn use_threads(&mut self, threads: usize) -> anyhow::Result<()> {
        match &mut self.server {
            Server::Program(program) => program.use_threads(threads),
            Server::Postgres(_) => anyhow::bail!("{} does not let its user choose the threads", self.label),
        }
    }

    /// Returns how its answers differ, or `None` if they are equal.
    fn difference(&mut self, question: &Question, calls: &[Call], ours: &[Vec<String>]) -> Option<String> {
        let name = question.name;
        let result = match &mut self.server {
            Server::Postgres(postgres) if postgres.has(name) => {
                postgres.counts(name, calls).map(|counts| different_counts(&counts, calls, ours))
            }
            Server::Postgres(_) => Ok(Some("there is no SQL for it".to_owned())),
            Server::Program(program) => different_rows(self.kind, program, question, calls, ours),
        };
        result.unwrap_or_else(|error| Some(format!("{error:#}")))
    }

    fn asked(&self, question: &Question, count: usize, seed: u64) -> Vec<Asked> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let calls = std::iter::repeat_with(|| (question.next)(&mut random)).take(count).flatten();
        calls
            .filter_map(|call| {
                Some((texts::text(self.kind, question.name, call.text)?, call.json_parameters()))
            })
            .collect()
    }

    fn warm(&mut self, clients: usize, length: Duration, questions: &[Question]) -> anyhow::Result<()> {
        let questions: Vec<&Question> = questions.iter().filter(|q| !self.refused.contains(q.name)).collect();
        if questions.is_empty() {
            return Ok(());
        }
        let length = length / u32::try_from(questions.len())?;
        for question in questions {
            let asked = self.asked(question, CALLS, 1 << 40);
            match &mut self.server {
                Server::Postgres(postgres) => {
                    postgres.rate(question.name, clients)?;
                }
                Server::Program(program) => {
                    program.run(&asked, clients, length)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a round. Returns `None` if the peer is not asked this question. A peer that fails is reported and not asked
    /// again.
    pub fn round(
        &mut self,
        report: &mut Report,
        question: &Question,
        clients: usize,
        length: Duration,
        seed: u64,
    ) -> Option<Outcome> {
        if self.refused.contains(question.name) {
            return None;
        }
        let asked = self.asked(question, CALLS, seed);
        let outcome = match &mut self.server {
            Server::Postgres(postgres) => {
                let rate = postgres.rate(question.name, clients);
                rate.map(|rate| Outcome { rate, quantiles_us: None, server_cpu_us: None })
            }
            Server::Program(program) => program.run(&asked, clients, length),
        };
        match outcome {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                self.refuse(report, question.name, &format!("with {clients} clients: {error:#}"));
                None
            }
        }
    }

    fn refuse(&mut self, report: &mut Report, name: &'static str, why: &str) {
        eprintln!("{}: {name} is not timed: {why}", self.label);
        report.parameter(&format!("{}, {name}", self.label), format!("not timed: {why}"));
        self.refused.insert(name);
    }

    /// Returns whether several clients may write at the same time.
    pub fn writes_together(&self) -> bool {
        self.kind == Kind::Neo4j
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::Value;

    #[test]
    fn a_different_number_of_rows_is_told_with_its_start() {
        let calls = ["a", "b"].map(|id| Call::gremlin("g.V(id)", vec![("id", Value::from(id))]));
        let ours = [vec!["x".to_owned()], vec![]];
        assert_eq!(different_counts(&[1, 0], &calls, &ours), None);
        let told = different_counts(&[1, 2], &calls, &ours).unwrap();
        assert!(told.starts_with("2 rows, ours are 0") && told.contains("\"b\""), "{told}");
    }

    #[test]
    fn every_question_of_the_identity_graph_has_a_text_for_neo4j() {
        for name in ["SR1", "SR2", "SR3", "SR4", "SR5", "SW1", "SW2", "SW3", "SW4", "SW5"] {
            assert!(texts::text(Kind::Neo4j, name, "").is_some(), "{name}");
        }
        assert_eq!(texts::text(Kind::Kuzu, "SR1", ""), None);
    }

    #[test]
    fn neo4j_counts_patterns_in_our_words_and_kuzu_with_names_of_its_tables() {
        for name in ["q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9"] {
            assert_eq!(texts::text(Kind::Neo4j, name, "ours"), Some("ours"), "{name}");
            let text = texts::text(Kind::Kuzu, name, "ours").unwrap();
            assert!(text == "ours" || text.contains("Message") || text.contains("_Person_City"), "{name}");
        }
    }
}
