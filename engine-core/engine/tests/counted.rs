//! A pattern that is counted has as many matches as it has rows, and clauses that follow each other mean the same as one
//! after the other.

mod support;

use std::sync::Arc;
use support::{empty, run};
use tidegraph_engine::Database;

/// Random numbers that are the same in each run (Lehmer's generator, modulus 2^31 - 1).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 % limit
    }
}

/// A small graph with loops, parallel edges and vertices of several labels.
fn graph(seed: u64) -> Arc<Database> {
    let mut random = Random(seed);
    let database = empty();
    for n in 0..9 {
        let labels = [":A", ":B", ":A:B", ":C"][random.below(4) as usize];
        run(&database, &format!("CREATE (:V{labels} {{n: {n}}})"));
    }
    for _ in 0..18 + random.below(8) {
        let (from, to) = (random.below(9), random.below(9));
        let label = ["X", "X", "Y"][random.below(3) as usize];
        run(&database, &format!("MATCH (a {{n: {from}}}), (b {{n: {to}}}) CREATE (a)-[:{label}]->(b)"));
    }
    database
}

fn number(database: &Database, text: &str) -> i64 {
    let rows = run(database, text);
    rows[0].parse().unwrap_or_else(|_| panic!("{text}: {rows:?}"))
}

/// Patterns, all with a vertex `a`, and whether all of it is counted from the first vertex on.
const PATTERNS: [(&str, bool); 22] = [
    ("MATCH (a:A)-[:X]->(b:B)-[:Y]->(c)", true),
    ("MATCH (a)-[:X]->(b:B)-[:Y]->(c:C), (b)<-[:Z|Y]-(d:A)", false),
    ("MATCH (a:V)-[:X]-(b:A)-[:Y]-(c:B)", true),
    ("MATCH (a:V)<-[:X]-(b:A:B)-[:Y]->(c)<-[:Y]-(d)", false),
    ("MATCH (a:A)-[:X]->(b), (a)-[:Y]->(c:B), (a)<-[:Y]-(d:A)", false),
    ("MATCH (a:A)-[:X]-(b)-[:X]-(c)", false),
    ("MATCH (a:A)-[:X]-(b)-[:X]-(c:B) WHERE a <> c", false),
    ("MATCH (a)-[:X]-(b)-[:X]-(c)-[:Y]->(d:V) WHERE a <> c", false),
    ("MATCH (a)-[:X]->(b)-[:Y]->(c) WHERE a <> c AND NOT c = b", false),
    ("MATCH (a)-[:X]->(b)-[:Y]->(c) WHERE a <> c AND c <> a", false),
    ("MATCH (a)-[:X]->(b)<-[:Y]-(c)-[:X]->(d) WHERE d <> a AND d <> b", false),
    ("MATCH (a)-[:X]->(b)-[:Y]->(c) WHERE NOT (a)-[:Y]->(b)", false),
    ("MATCH (a)-[:X]->(b)-[:Y]->(c) WHERE NOT (a)-[:X]->(c) AND a <> c", false),
    ("MATCH (a)-[:X]->(b) WHERE (b)-[:Y]-() OPTIONAL MATCH (b)-[:Y]->(c:A)", false),
    ("MATCH (a:A) OPTIONAL MATCH (a)-[:X]->(b:B) OPTIONAL MATCH (a)<-[:Y]-(c)", true),
    ("MATCH (a:A) OPTIONAL MATCH (a)-[:X]->(b:B)-[:Y]->(c:C)", true),
    ("MATCH (a:A) OPTIONAL MATCH (a)-[:X]->(b:B) OPTIONAL MATCH (b)-[:Y]->(c)", false),
    ("MATCH (a:A) OPTIONAL MATCH (a)-[:X]->(b) WHERE b.n > 3", false),
    ("MATCH (a)-[:X]->(b) WHERE a.n < b.n OPTIONAL MATCH (b)-[:X]->(c) OPTIONAL MATCH (a)-[:Y]-(d:V)", false),
    ("MATCH (a)-[:X]->(b) MATCH (b)-[:X]->(c) MATCH (c)-[:X]->(a)", false),
    ("MATCH (a:A) MATCH (a)-[:X]-(b) MATCH (a:B)-[:X]-(c) WHERE b.n <= c.n", false),
    ("MATCH (a)-[:Y]->(b) MATCH (c)-[:Y]->(d) WHERE a.n = c.n", false),
];

#[test]
fn as_many_matches_are_counted_as_there_are_rows() {
    for seed in [3, 17, 40, 99, 256, 1_000] {
        let database = graph(seed);
        for (pattern, _) in PATTERNS {
            let rows = run(&database, &format!("{pattern} RETURN a.n")).len() as i64;
            assert_eq!(
                number(&database, &format!("{pattern} RETURN count(*)")),
                rows,
                "{pattern}, seed {seed}"
            );
            let by_key = run(&database, &format!("{pattern} RETURN a.n AS n, count(*) AS rows"));
            let sum: i64 =
                by_key.iter().map(|row| row.split(" | ").nth(1).unwrap().parse::<i64>().unwrap()).sum();
            assert_eq!(sum, rows, "{pattern} by a.n, seed {seed}");
        }
    }
}

#[test]
fn clauses_that_follow_each_other_keep_their_meaning() {
    for seed in [5, 23, 71] {
        let database = graph(seed);
        for (pattern, _) in PATTERNS {
            // Nothing is joined across a WITH.
            let apart =
                pattern.replace(" MATCH", " WITH * MATCH").replace("OPTIONAL WITH * MATCH", "OPTIONAL MATCH");
            let sorted = |text: &str| {
                let mut rows = run(&database, &format!("{text} RETURN a.n"));
                rows.sort();
                rows
            };
            assert_eq!(sorted(pattern), sorted(&apart), "{pattern}, seed {seed}");
        }
    }
}

#[test]
fn a_pattern_without_cycles_is_counted_from_its_first_vertex() {
    let database = graph(7);
    for (pattern, whole) in PATTERNS {
        let plan = run(&database, &format!("EXPLAIN {pattern} RETURN count(*)"));
        let text = plan.join("\n");
        let text = &text[text.find("final").unwrap_or_default()..];
        assert_eq!(!text.contains("expand ") && text.contains("count edges"), whole, "{pattern}: {text}");
    }
}

#[test]
fn an_edge_that_was_written_in_the_same_query_counts() {
    let database = empty();
    run(&database, "CREATE (a:A {n: 0})-[:X]->(:B {n: 1})-[:Y]->(:C {n: 2})");
    let text = "MATCH (b:B) CREATE (b)-[:Y]->(:C {n: 3}) WITH count(*) AS made \
                MATCH (a:A)-[:X]->(b:B)-[:Y]->(c:C) RETURN count(*)";
    assert_eq!(number(&database, text), 2);
}

#[test]
fn many_tests_of_a_label_find_the_same_vertices_as_few() {
    let database = empty();
    run(&database, "UNWIND range(1, 12000) AS i CREATE (:A {n: i})-[:X]->(:B {n: i})");
    run(&database, "UNWIND range(1, 8000) AS i CREATE (:A {n: i})-[:X]->(:C {n: i})");
    run(&database, "MATCH (b:B) WHERE b.n <= 100 SET b:C");
    run(&database, "MATCH (b:B) WHERE b.n > 11990 REMOVE b:B SET b:D");
    for (label, expected) in [("B", 11_990), ("C", 8_100), ("B:C", 100), ("D", 10), ("None", 0)] {
        // The direction decides nothing, but the order of the plan may.
        for pattern in [format!("(a:A)-[:X]->(b:{label})"), format!("(b:{label})<-[:X]-(a:A)")] {
            assert_eq!(number(&database, &format!("MATCH {pattern} RETURN count(*)")), expected, "{pattern}");
            assert_eq!(
                number(&database, &format!("MATCH {pattern} RETURN sum(a.n - a.n + 1)")),
                expected,
                "{pattern}"
            );
        }
    }
    let written = "MATCH (a:A)-[:X]->(b) SET b:E WITH count(*) AS n MATCH (a:A)-[:X]->(b:E) RETURN count(*)";
    assert_eq!(number(&database, written), 20_000);
    assert_eq!(number(&database, "MATCH (a:A)-[:X]->(b:E) RETURN count(*)"), 20_000);
}
