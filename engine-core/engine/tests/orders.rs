//! The order in which a pattern is written does not decide the work that it takes.

mod support;

use support::{empty, run};
use tidegraph_engine::{Database, Explain, Language, Parameters, Query};

/// Kinds of edges: the label of the source, of the edge and of the target.
const KINDS: [(&str, &str, &str); 5] = [
    ("Person", "KNOWS", "Person"),
    ("Person", "LIVES_IN", "City"),
    ("Person", "WORKS_AT", "Company"),
    ("Company", "SITS_IN", "City"),
    ("Person", "LIKES", "Tag"),
];
const PATTERNS: usize = 50;
/// Work of the worst order of writing by that of the best one. Plans of about the same estimate may differ a little.
const MOST_RATIO: u64 = 2;
/// Rows that do not matter.
const FEW: u64 = 200;

/// A graph in which few persons are known by many.
fn graph() -> std::sync::Arc<Database> {
    let database = empty();
    run(&database, "UNWIND range(0, 9) AS i CREATE (:City {n: i})");
    run(
        &database,
        "UNWIND range(0, 29) AS i MATCH (c:City {n: i % 10}) CREATE (:Company {n: i})-[:SITS_IN]->(c)",
    );
    run(&database, "UNWIND range(0, 59) AS i CREATE (:Tag {n: i})");
    run(
        &database,
        "UNWIND range(0, 399) AS i MATCH (c:City {n: i * i % 10}), (k:Company {n: i * 7 % 30}) \
         CREATE (p:Person {n: i})-[:LIVES_IN]->(c), (p)-[:WORKS_AT]->(k)",
    );
    run(
        &database,
        "UNWIND range(0, 399) AS i MATCH (p:Person {n: i}), (t:Tag {n: i % 60}) CREATE (p)-[:LIKES]->(t)",
    );
    run(
        &database,
        "UNWIND range(0, 1999) AS i MATCH (a:Person {n: i % 400}), (b:Person {n: i * i % 397 * (i % 5) / 5}) \
         CREATE (a)-[:KNOWS]->(b)",
    );
    database
}

/// Random numbers that are the same in each run (Lehmer's generator, modulus 2^31 - 1).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 as usize % limit
    }
}

/// An edge of a pattern: the variables of its ends and its kind.
type Edge = (String, usize, String);

/// Draws a connected pattern: each edge begins or ends at a vertex of the edges before it. It may close a cycle.
fn pattern(random: &mut Random) -> Vec<Edge> {
    let mut vertices: Vec<(String, &str)> = vec![("v0".to_owned(), "Person")];
    let mut edges = vec![];
    let count = 2 + random.below(4);
    while edges.len() < count {
        let kind = random.below(KINDS.len());
        let (source, _, target) = KINDS[kind];
        let mut end = |label: &'static str, is_new: bool, random: &mut Random| {
            let known: Vec<String> =
                vertices.iter().filter(|(_, of)| *of == label).map(|(name, _)| name.clone()).collect();
            if known.is_empty() || is_new {
                vertices.push((format!("v{}", vertices.len()), label));
                return (vertices[vertices.len() - 1].0.clone(), known.is_empty() || is_new);
            }
            (known[random.below(known.len())].clone(), false)
        };
        let (from, from_is_new) = end(source, false, random);
        let to_may_be_new = random.below(3) > 0;
        let (to, to_is_new) = end(target, !from_is_new && to_may_be_new, random);
        if from_is_new && to_is_new {
            vertices.truncate(vertices.len() - 2);
            continue;
        }
        edges.push((from, kind, to));
    }
    edges
}

/// Writes a pattern, beginning with another edge and in another direction for each turn.
fn text(edges: &[Edge], turn: usize, condition: &str) -> String {
    let mut edges = edges.to_vec();
    let count = edges.len();
    edges.rotate_left(turn % count);
    if turn % 2 == 1 {
        edges.reverse();
    }
    let parts: Vec<String> = edges
        .iter()
        .enumerate()
        .map(|(at, (from, kind, to))| {
            let (source, label, target) = KINDS[*kind];
            if (at + turn).is_multiple_of(2) {
                format!("({from}:{source})-[:{label}]->({to}:{target})")
            } else {
                format!("({to}:{target})<-[:{label}]-({from}:{source})")
            }
        })
        .collect();
    format!("MATCH {} {condition}RETURN count(*) AS n", parts.join(", "))
}

/// Returns the rows that the operators of a text made.
fn work(database: &Database, text: &str) -> u64 {
    let none = Parameters::default();
    let query = Query { explain: Some(Explain::Profile), ..Query::new(Language::OpenCypher, text, &none) };
    let answer = database.query(&query).unwrap_or_else(|error| panic!("{text}: {error}"));
    answer.rows.iter().filter_map(|row| row[2].as_i64()).map(|rows| rows as u64).sum()
}

#[test]
fn the_order_of_writing_does_not_decide_the_work() {
    let database = graph();
    let mut random = Random(7);
    for number in 0..PATTERNS {
        let edges = pattern(&mut random);
        let condition = match random.below(3) {
            0 => format!("WHERE {}.n < 5 ", edges[0].0),
            1 => format!("WHERE {}.n = 3 ", edges[edges.len() - 1].2),
            _ => String::new(),
        };
        let texts: Vec<String> = (0..6).map(|turn| text(&edges, turn, &condition)).collect();
        let answers: Vec<_> = texts.iter().map(|text| run(&database, text)).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{number}: {texts:#?} {answers:?}");
        let works: Vec<u64> = texts.iter().map(|text| work(&database, text)).collect();
        let (least, most) = (works.iter().min().unwrap(), works.iter().max().unwrap());
        assert!(*most <= MOST_RATIO * least + FEW, "{number}: {works:?} {texts:#?}");
    }
}
