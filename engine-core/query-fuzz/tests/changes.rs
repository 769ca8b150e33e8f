//! The change stream of drawn writes: replayed, its records are exactly the graph.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegraph_engine::{Database, Language, Options, Parameters, Query};
use tidegraph_query_fuzz::graph::Graph;
use tidegraph_query_fuzz::{cypher, gremlin};
use tidegraph_types::{Change, Changed, ChangesFrom, ChangesRequest, ErrorCode, EventId, Str, Token, Value};

const SEEDS: u64 = 60;
const WRITES: usize = 25;

fn ask(database: &Database, language: Language, text: &str) -> Option<Vec<Vec<Value>>> {
    let answer = database.query(&Query::new(language, text, &Parameters::default()));
    answer.ok().map(|answer| answer.rows)
}

/// A graph as lines, with the number of times that each occurs.
type Lines = BTreeMap<String, usize>;

/// Returns the graph as queries see it.
fn graph(database: &Database) -> Lines {
    let ask = |language, text| ask(database, language, text).unwrap_or_else(|| panic!("{text}"));
    let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_else(|| panic!("{value:?}"));
    let mut lines = Lines::new();
    let mut add = |line: String| *lines.entry(line).or_default() += 1;
    for row in ask(Language::OpenCypher, "MATCH (n) RETURN id(n), labels(n)") {
        let Value::List(labels) = &row[1] else { panic!("{row:?}") };
        if labels.is_empty() {
            add(format!("label {:?} none", text(&row[0])));
        }
        labels.iter().for_each(|label| add(format!("label {:?} {:?}", text(&row[0]), text(label))));
    }
    let properties = "g.V().as('v').properties().as('p').select('v','p').by(id()).by(value()).select(values)";
    let keys = "g.V().as('v').properties().as('p').select('v','p').by(id()).by(key()).select(values)";
    for (value, key) in ask(Language::Gremlin, properties).iter().zip(ask(Language::Gremlin, keys)) {
        let (Value::List(value), Value::List(key)) = (&value[0], &key[0]) else {
            panic!("{value:?} {key:?}")
        };
        add(format!("vertex {:?} {:?} {:?}", text(&value[0]), text(&key[1]), value[1]));
    }
    for row in
        ask(Language::OpenCypher, "MATCH (a)-[e]->(b) RETURN id(e), type(e), id(a), id(b), properties(e)")
    {
        let [id, label, from, to] = [0, 1, 2, 3].map(|at: usize| text(&row[at]));
        add(format!("edge {id:?} {label:?} {from:?} {to:?}"));
        let Value::Map(properties) = &row[4] else { panic!("{row:?}") };
        properties.iter().for_each(|(key, value)| add(format!("property {id:?} {:?} {value:?}", text(key))));
    }
    lines
}

fn line(change: &Change, name: impl Fn(Token) -> Str) -> String {
    let id = &change.id;
    match &change.what {
        Changed::VertexLabel(None) => format!("label {id:?} none"),
        Changed::VertexLabel(Some(label)) => format!("label {id:?} {:?}", name(*label)),
        Changed::VertexProperty(key, value) => format!("vertex {id:?} {:?} {value:?}", name(*key)),
        Changed::Edge { label, from, to } => format!("edge {id:?} {:?} {from:?} {to:?}", name(*label)),
        Changed::EdgeProperty(key, value) => format!("property {id:?} {:?} {value:?}", name(*key)),
    }
}

/// A copy of a graph that is made from the stream alone.
#[derive(Default)]
struct Copy {
    lines: Lines,
    at: Option<EventId>,
    records: usize,
}

impl Copy {
    /// Reads to the end of the stream, `limit` records at a time.
    fn read_on(&mut self, database: &Database, limit: usize) {
        loop {
            let from = self.at.map_or(ChangesFrom::Oldest, ChangesFrom::After);
            let page = match database.changes(&ChangesRequest { from, limit, bytes: 1 << 20 }, None) {
                Ok(page) => page,
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::StreamRecordsNotFound, "{error}");
                    return;
                }
            };
            let count: usize = page.commits.iter().map(|part| part.changes.list.len()).sum();
            assert!((1..=limit).contains(&count));
            for part in &page.commits {
                assert!(part.changes.taken_ms > 0);
                for (op, change) in (part.first.op..).zip(&part.changes.list) {
                    let id = EventId { commit: part.first.commit, op };
                    assert!(self.at < Some(id), "{id:?} comes after {:?}", self.at);
                    self.at = Some(id);
                    self.records += 1;
                    self.apply(change, |token| database.name(token));
                }
            }
        }
    }

    fn apply(&mut self, change: &Change, name: impl Fn(Token) -> Str) {
        let line = line(change, name);
        if change.removed {
            let count =
                self.lines.get_mut(&line).unwrap_or_else(|| panic!("{line} is removed and not there"));
            *count -= 1;
            if *count == 0 {
                self.lines.remove(&line);
            }
        } else {
            *self.lines.entry(line).or_default() += 1;
        }
    }
}

fn draw(rng: &mut ChaCha8Rng, shape: &Graph) -> (Language, String) {
    const MANY_VALUES: [&str; 6] = [
        "g.V().limit(2).property(set,'m',1)",
        "g.V().limit(3).property(list,'m',2).property(list,'m','x')",
        "g.V().limit(2).properties('m').limit(1).drop()",
        "g.V().limit(2).property(single,'m',7)",
        "g.V().limit(3).property(list,'m',2,'meta','y')",
        "g.V().limit(1).drop()",
    ];
    match rng.random_range(0..5) {
        0 | 1 => (Language::OpenCypher, cypher::generate::Generator::new(rng).write().to_string()),
        2 | 3 => (Language::Gremlin, gremlin::generate::Generator::new(rng, shape).write().to_string()),
        _ => (Language::Gremlin, MANY_VALUES[rng.random_range(0..MANY_VALUES.len())].to_owned()),
    }
}

fn run_seed(seed: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let database: Arc<Database> =
        Database::open(Options { streams: true, ..Options::default() }).expect("a database in memory");
    let shape = Graph::random(&mut rng, 8, 14);
    if let Some(text) = shape.to_cypher() {
        ask(&database, Language::OpenCypher, &text).expect("the graph is created");
    }
    let mut copy = Copy::default();
    let mut writes = Vec::new();
    for _ in 0..WRITES {
        let (language, text) = draw(&mut rng, &shape);
        if ask(&database, language, &text).is_some() {
            writes.push(text);
        }
        if rng.random_bool(0.3) {
            copy.read_on(&database, rng.random_range(1..30));
            assert_eq!(copy.lines, graph(&database), "seed {seed} after {writes:#?}");
        }
    }
    copy.read_on(&database, 1_000);
    assert_eq!(copy.lines, graph(&database), "seed {seed} after {writes:#?}");
    let mut all = Copy::default();
    all.read_on(&database, 7);
    assert_eq!((all.lines, all.records), (copy.lines, copy.records), "seed {seed}");
    copy.records
}

#[test]
fn replayed_records_of_the_change_stream_are_the_graph() {
    let records: usize = (0..SEEDS).map(run_seed).sum();
    assert!(records > 50 * SEEDS as usize, "only {records} records");
}
