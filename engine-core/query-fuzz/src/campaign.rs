//! Gives drawn queries to the engine and to the reference evaluators, and compares the answers.
//!
//! Flow: for each seed, draw a graph and create it in an empty engine; then draw queries, some of which write. After a
//! write the evaluator's graph is replaced by what the engine has, so that both know the ids of new elements.

use crate::concurrent::Fleet;
use crate::graph::{Graph, show_answer};
use crate::value::Val;
use crate::{Stop, cypher, gremlin};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Error, Language, Options, Parameters, Query};
use tidegraph_types::{ErrorCode, Value};

/// The part of the queries that write.
const WRITES: f64 = 0.15;

/// Number of queries for one graph.
pub const QUERIES_PER_SEED: u64 = 50;

/// A query of either language.
#[derive(Clone, Debug)]
pub enum Drawn {
    /// openCypher
    Cypher(cypher::ast::Query),
    /// Gremlin
    Gremlin(gremlin::ast::Traversal),
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cypher(query) => query.fmt(f),
            Self::Gremlin(traversal) => write!(f, "g{traversal}"),
        }
    }
}

impl Drawn {
    pub(crate) fn language(&self) -> Language {
        match self {
            Self::Cypher(_) => Language::OpenCypher,
            Self::Gremlin(_) => Language::Gremlin,
        }
    }

    /// Whether the query changes the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Cypher(query) => query.writes(),
            Self::Gremlin(traversal) => traversal.writes(),
        }
    }

    pub(crate) fn has_bags(&self) -> bool {
        match self {
            Self::Cypher(query) => query.has_bags(),
            Self::Gremlin(traversal) => traversal.has_bags(),
        }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Self::Cypher(query) => query.is_ordered(),
            Self::Gremlin(traversal) => traversal.is_ordered(),
        }
    }

    pub(crate) fn evaluate(&self, graph: &mut Graph) -> Result<Vec<Vec<Val>>, Stop> {
        match self {
            Self::Cypher(query) => cypher::evaluate::run(query, graph),
            Self::Gremlin(traversal) => gremlin::evaluate::run(traversal, graph),
        }
    }

    pub(crate) fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Cypher(query) => cypher::shrink::smaller(query).into_iter().map(Self::Cypher).collect(),
            Self::Gremlin(traversal) => traversal.smaller().into_iter().map(Self::Gremlin).collect(),
        }
    }
}

/// A query whose answer is not the evaluator's.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Seed of the graph and its queries.
    pub seed: u64,
    /// openCypher that creates the graph before the query.
    pub graph: String,
    /// The query, made smaller.
    pub query: String,
    /// What the engine answered.
    pub got: String,
    /// What the evaluator answered.
    pub expected: String,
    /// The query as it was drawn.
    pub original: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, graph, query, got, expected, original } = self;
        write!(
            f,
            "seed {seed}\n  graph:    {graph}\n  query:    {query}\n  got:      {got}\n  expected: {expected}\n  \
             drawn as: {original}"
        )
    }
}

/// What a run has done.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Number of queries that were compared.
    pub compared: u64,
    /// Number of those whose answer has rows.
    pub with_rows: u64,
    /// Number of those that write.
    pub writes: u64,
    /// Number of queries that were not compared, because the evaluator took too many steps.
    pub skipped: u64,
    /// Queries that the evaluator answered, but not the engine within its time limit.
    pub timed_out: Vec<String>,
    /// Reasons of the evaluator for queries that it calls wrong; the generator should draw none.
    pub wrong: Vec<String>,
    /// Differences.
    pub differences: Vec<Difference>,
}

impl Outcome {
    /// Adds another outcome.
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.with_rows += other.with_rows;
        self.writes += other.writes;
        self.skipped += other.skipped;
        self.timed_out.extend(other.timed_out);
        self.wrong.extend(other.wrong);
        self.differences.extend(other.differences);
    }
}

/// Which languages to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Languages {
    /// Both
    Both,
    /// openCypher only
    Cypher,
    /// Gremlin only
    Gremlin,
}

/// The time after which the engine gives up a query. The evaluator has answered it in few steps by then, in the order in
/// which it is written. Such queries are printed, but are no differences: another order may be as good by all that the
/// planner can know.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Threads of a query, with its own.
const THREADS: usize = 3;

/// Runs a query on the engine.
///
/// # Errors
///
/// Those of the engine.
pub fn ask(database: &Database, language: Language, text: &str) -> Result<Vec<Vec<Value>>, Error> {
    let none = Parameters::default();
    let query = Query { timeout: Some(TIMEOUT), ..Query::new(language, text, &none) };
    Ok(database.query(&query)?.rows)
}

/// Creates a graph in a new engine in memory. Each of its queries has help of other threads as soon as its plan allows it.
///
/// # Errors
///
/// Those of the engine.
pub fn create(graph: &Graph) -> Result<Arc<Database>, Error> {
    let options = Options {
        partitions: 4,
        query_threads: Some(THREADS),
        query_alone: Duration::ZERO,
        ..Options::default()
    };
    let database = Database::open(options)?;
    if let Some(text) = graph.to_cypher() {
        ask(&database, Language::OpenCypher, &text)?;
    }
    Ok(database)
}

/// Reads the whole graph of an engine.
pub(crate) fn read(database: &Database) -> Result<Graph, Error> {
    let nodes = ask(database, Language::OpenCypher, "MATCH (n) RETURN n")?;
    let edges = ask(database, Language::OpenCypher, "MATCH ()-[r]->() RETURN r")?;
    Ok(Graph::from_answers(&nodes, &edges))
}

/// The answers of both sides to one query.
enum Compared {
    Same { rows: usize },
    Different { got: String, expected: String },
    Skipped(Stop),
    TimedOut,
}

fn compare(database: &Database, graph: &Graph, query: &Drawn) -> Compared {
    let known = graph.ids();
    let mut after = graph.clone();
    let expected = match query.evaluate(&mut after) {
        Ok(rows) => rows,
        Err(stop) => return Compared::Skipped(stop),
    };
    let bags = query.has_bags();
    let expected: Vec<String> = expected
        .iter()
        .map(|row| row.iter().map(|value| after.show(value, bags, &known)).collect::<Vec<_>>().join(" | "))
        .collect();
    let got = match ask(database, query.language(), &query.to_string()) {
        Ok(rows) => rows,
        Err(error) if error.code() == ErrorCode::TimeLimitExceeded => return Compared::TimedOut,
        Err(error) => {
            let got = format!("{}: {}", error.code(), error.chain());
            return Compared::Different { got, expected: in_text(&expected) };
        }
    };
    let got: Vec<String> = got
        .iter()
        .map(|row| row.iter().map(|value| show_answer(value, bags, &known)).collect::<Vec<_>>().join(" | "))
        .collect();
    let rows = got.len();
    let ordered = query.is_ordered();
    if let Some(different) = different(got, expected, ordered) {
        return different;
    }
    if query.writes() {
        let found = match read(database) {
            Ok(found) => found.lines(&known),
            Err(error) => vec![error.to_string()],
        };
        if let Some(different) = different(found, after.lines(&known), false) {
            return different;
        }
    }
    Compared::Same { rows }
}

fn different(mut got: Vec<String>, mut expected: Vec<String>, ordered: bool) -> Option<Compared> {
    if !ordered {
        got.sort();
        expected.sort();
    }
    (got != expected).then(|| Compared::Different { got: in_text(&got), expected: in_text(&expected) })
}

pub(crate) fn in_text(rows: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if rows.len() > SHOWN { format!(" and {} more", rows.len() - SHOWN) } else { String::new() };
    format!("{} rows: {}{more}", rows.len(), rows[..rows.len().min(SHOWN)].join("; "))
}

/// Makes the engine that has a graph.
type Create<'c> = &'c dyn Fn(&Graph) -> Result<Arc<Database>, Error>;

/// Runs the queries of one seed on embedded engines.
///
/// # Errors
///
/// The engine does not create the graph.
pub fn run_seed(seed: u64, queries: u64, languages: Languages) -> Result<Outcome, Error> {
    run_seed_on(&create, true, seed, queries, languages)
}

/// Runs the queries of one seed at a worker of a fleet.
///
/// # Errors
///
/// The fleet does not create the graph.
pub fn run_seed_in(fleet: &Fleet, seed: u64, queries: u64, languages: Languages) -> Result<Outcome, Error> {
    // Indexes would stay for the next seed.
    run_seed_on(&|graph| fleet.create(graph), false, seed, queries, languages)
}

fn run_seed_on(
    create: Create<'_>,
    may_index: bool,
    seed: u64,
    queries: u64,
    languages: Languages,
) -> Result<Outcome, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (nodes, edges) = [(3, 3), (6, 8), (9, 12)][rng.random_range(0..3)];
    let mut graph = Graph::random(&mut rng, nodes, edges);
    let database = create(&graph)?;
    if rng.random_bool(0.3) && may_index {
        let command = "CREATE INDEX FOR (n:A) ON (n.a)";
        ask(&database, Language::OpenCypher, command)?;
        ask(&database, Language::OpenCypher, "CREATE INDEX FOR (n:B) ON (n.s)")?;
    }
    let mut outcome = Outcome::default();
    for _ in 0..queries {
        let query = draw(&mut rng, languages, &graph, WRITES);
        match compare(&database, &graph, &query) {
            Compared::Same { rows } => {
                outcome.compared += 1;
                outcome.with_rows += u64::from(rows > 0);
                outcome.writes += u64::from(query.writes());
            }
            Compared::Skipped(Stop::TooMuch) => outcome.skipped += 1,
            Compared::TimedOut => {
                outcome.timed_out.push(format!("seed {seed}: {query}"));
                // A statement that was stopped wrote nothing.
                continue;
            }
            Compared::Skipped(Stop::Wrong(reason)) => {
                outcome.wrong.push(format!("seed {seed}: {reason}: {query}"));
            }
            Compared::Different { got, expected } => {
                outcome.differences.push(shrink(create, seed, &graph, &query, (got, expected)));
                // The graphs may differ from here on.
                return Ok(outcome);
            }
        }
        if query.writes() {
            graph = read(&database)?;
        }
    }
    Ok(outcome)
}

/// Draws a query that writes with a certain probability.
pub(crate) fn draw(rng: &mut ChaCha8Rng, languages: Languages, graph: &Graph, writes: f64) -> Drawn {
    let writes = rng.random_bool(writes);
    let gremlin = match languages {
        Languages::Both => rng.random_bool(0.5),
        Languages::Cypher => false,
        Languages::Gremlin => true,
    };
    if gremlin {
        let generator = gremlin::generate::Generator::new(rng, graph);
        return Drawn::Gremlin(if writes { generator.write() } else { generator.read() });
    }
    let mut generator = cypher::generate::Generator::new(rng);
    Drawn::Cypher(if writes { generator.write() } else { generator.read() })
}

/// Compares on a new engine. Returns the answers if they differ in the same way as before: both are rows, or the engine
/// refuses with the same code.
fn still_fails(create: Create<'_>, graph: &Graph, query: &Drawn, before: &str) -> Option<(String, String)> {
    let database = create(graph).ok()?;
    // Names and places in a message change with the query.
    let kind = |text: &str| -> String {
        let plain = |word: &&str| word.chars().all(char::is_alphabetic);
        text.split([' ', ':', ',']).filter(plain).take(9).collect()
    };
    let is_error = |text: &str| !text.contains(" rows: ");
    match compare(&database, graph, query) {
        Compared::Different { got, expected } if !is_error(before) && !is_error(&got) => {
            Some((got, expected))
        }
        Compared::Different { got, expected } if is_error(before) && kind(&got) == kind(before) => {
            Some((got, expected))
        }
        _ => None,
    }
}

/// Makes a failing query and its graph smaller while they still fail.
fn shrink(
    create: Create<'_>,
    seed: u64,
    graph: &Graph,
    query: &Drawn,
    answers: (String, String),
) -> Difference {
    const MAX_TRIES: usize = 3_000;
    let (mut graph, mut smallest, mut answers) = (graph.clone(), query.clone(), answers);
    let mut tries = 0;
    if still_fails(create, &graph, &smallest, &answers.0).is_none() {
        // It depends on what happened before, so the smaller ones would not fail either.
        tries = MAX_TRIES;
    }
    'again: while tries < MAX_TRIES {
        for candidate in smallest.smaller() {
            tries += 1;
            if let Some(found) = still_fails(create, &graph, &candidate, &answers.0) {
                (smallest, answers) = (candidate, found);
                continue 'again;
            }
        }
        for candidate in smaller_graphs(&graph) {
            tries += 1;
            if let Some(found) = still_fails(create, &candidate, &smallest, &answers.0) {
                (graph, answers) = (candidate, found);
                continue 'again;
            }
        }
        break;
    }
    Difference {
        seed,
        graph: graph.to_cypher().unwrap_or_default(),
        query: smallest.to_string(),
        got: answers.0,
        expected: answers.1,
        original: query.to_string(),
    }
}

pub(crate) fn smaller_graphs(graph: &Graph) -> Vec<Graph> {
    let mut out = vec![];
    for (index, _) in graph.live_nodes() {
        let mut graph = graph.clone();
        graph.detach_delete(index);
        out.push(graph);
    }
    for (index, _) in graph.live_edges() {
        let mut graph = graph.clone();
        graph.edges[index] = None;
        out.push(graph);
    }
    let elements = graph.live_nodes().map(|(index, node)| (Val::Node(index), &node.properties));
    let elements =
        elements.chain(graph.live_edges().map(|(index, edge)| (Val::Edge(index), &edge.properties)));
    for (of, properties) in elements {
        for key in properties.keys() {
            let mut graph = graph.clone();
            cypher::evaluate::set_property(&mut graph, &of, key, Val::Null);
            out.push(graph);
        }
    }
    for (index, node) in graph.live_nodes() {
        for label in &node.labels {
            let mut graph = graph.clone();
            let labels: BTreeSet<String> =
                node.labels.iter().filter(|other| *other != label).cloned().collect();
            graph.nodes[index].iter_mut().for_each(|node| node.labels.clone_from(&labels));
            out.push(graph);
        }
    }
    out
}
