//! Aggregations in a fleet: nodes answer groups and ends of edges instead of rows. Answers are those of an embedded
//! database, and few messages and bytes move.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;
use support::{PATIENCE, TestFleet, ask, patient, rows};
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::{Backend, Database, Explain, Options, Parameters, Query, Transaction};
use tidegraph_fleet::{NodeConfig, Worker};
use tidegraph_types::Value;

const VERTICES: usize = 240;

/// Creates vertices with values of several types, and edges among which are loops, parallel ones and hubs.
const GRAPH: [&str; 7] = [
    "UNWIND range(0, 199) AS n CREATE (:Person {`~id`: 'p' + toString(n), age: n % 37, \
     city: CASE WHEN n % 5 = 0 THEN null ELSE 'c' + toString(n % 7) END, \
     x: CASE n % 4 WHEN 0 THEN n WHEN 1 THEN n / 2.0 WHEN 2 THEN -n END, \
     odd: CASE n % 9 WHEN 0 THEN 'text' WHEN 1 THEN [1, n] ELSE n END})",
    "UNWIND range(200, 239) AS n CREATE (:Robot {`~id`: 'p' + toString(n), age: 1.0 * (n % 37), city: n % 7})",
    "MATCH (p:Person) WHERE p.age % 3 = 0 SET p:Old",
    "UNWIND range(0, 999) AS n MATCH (a) WHERE id(a) = 'p' + toString(n * 7 % 240) \
     MATCH (b) WHERE id(b) = 'p' + toString((n * n + 3 * n) % 240) CREATE (a)-[:KNOWS]->(b)",
    "UNWIND range(0, 299) AS n MATCH (a) WHERE id(a) = 'p' + toString(n % 11) \
     MATCH (b) WHERE id(b) = 'p' + toString(n * 13 % 240) CREATE (a)-[:LIKES]->(b)",
    "UNWIND range(0, 39) AS n MATCH (a) WHERE id(a) = 'p' + toString(n) CREATE (a)-[:KNOWS]->(a)",
    "UNWIND range(0, 9) AS n MATCH (a) WHERE id(a) = 'p' + toString(n) CREATE (a)-[:LIKES]->(a)",
];

const GROUPS: &str = "group vertices in storage";
const ENDS: &str = "count ends in storage";
const ROWS: &str = "";

/// Queries, and what storage does for each.
const QUERIES: [(&str, &str); 72] = [
    ("MATCH (p:Person) RETURN p.city, count(*)", GROUPS),
    ("MATCH (p:Person) WHERE p.age > 30 RETURN p.city, count(*), sum(p.age)", GROUPS),
    ("MATCH (p:Person) RETURN p.city, sum(p.x), avg(p.x), min(p.x), max(p.x), count(p.x)", GROUPS),
    ("MATCH (p) RETURN p.age, count(*), min(p.city), max(p.odd)", GROUPS),
    ("MATCH (p) RETURN p.age AS age, p.city AS city, count(p)", GROUPS),
    ("MATCH (p:Person) RETURN sum(p.age), avg(p.age), count(p.city)", GROUPS),
    ("MATCH (p:Nobody) RETURN sum(p.age), avg(p.age), count(p.city), min(p.age)", GROUPS),
    ("MATCH (p:Person) RETURN p.nothing, count(p.nowhere), sum(p.nowhere), avg(p.nowhere)", GROUPS),
    ("MATCH (p:Person) RETURN count(DISTINCT p.city), count(*), sum(DISTINCT p.age)", GROUPS),
    ("MATCH (p:Person) RETURN p.city, count(DISTINCT p.age), max(DISTINCT p.x)", GROUPS),
    ("MATCH (p:Person) WITH p.city AS city, p.age AS age RETURN city, max(age), count(*)", GROUPS),
    ("MATCH (p:Person) WHERE p.age > $none RETURN p.city, count(*)", GROUPS),
    ("MATCH (p:Person) RETURN p.odd, count(*)", GROUPS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age, count(*)", GROUPS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN count(*)", GROUPS),
    ("MATCH (a)-->()-->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)-[:KNOWS]->()-[:LIKES]->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)-[:KNOWS]->()<-[:KNOWS]-(c) RETURN count(*)", GROUPS),
    ("MATCH (a)<-[:KNOWS]-()-[:KNOWS]->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)--()--(c) RETURN count(*)", GROUPS),
    ("MATCH (a)--()-->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)-->(b:Person)-->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)-->(b)-->(c) RETURN b.age, count(*)", GROUPS),
    ("MATCH (a)-[:KNOWS]->(b) MATCH (b)-[:KNOWS]->(c) RETURN count(*)", GROUPS),
    ("MATCH (a)-[:MISSING]->()-->(c) RETURN count(*)", GROUPS),
    ("MATCH (a:Person)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->()-[:LIKES]->(c) RETURN count(*)", ENDS),
    ("MATCH (a:Robot)-->()<--(c) RETURN count(*)", ENDS),
    ("MATCH (a:Robot)--()--(c) RETURN count(*)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->(b:Person)-[:LIKES]->(c:Robot) RETURN count(*)", ENDS),
    ("MATCH (a:Old)-[:KNOWS]->(b:Person) RETURN count(*)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->(b:Person)-[:KNOWS]->(c:Person) RETURN count(*)", ENDS),
    ("MATCH (a:Old)-[:KNOWS]->(b)<-[:KNOWS]-(c:Old) RETURN count(*)", ENDS),
    ("MATCH (a:Old)-[:KNOWS]-(b)-[:KNOWS]-(c:Old) RETURN count(*)", ENDS),
    ("MATCH (a:Old)-[:KNOWS]->(b)-[:KNOWS]->(c:Robot) RETURN count(*)", ROWS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN b.age, count(*)", ENDS),
    ("MATCH (a:Old)-[:KNOWS]->(b:Person) RETURN b.city, count(*), min(b.age), count(DISTINCT b.age)", ENDS),
    ("MATCH (a:Old)-[:KNOWS]-(b:Person) RETURN b.age % 5, count(b), count(b.x)", ENDS),
    ("MATCH (a:Robot)-[:KNOWS]->(b) WHERE b.age > 10 RETURN b, count(*)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->(b)-[:LIKES]->(c) RETURN b.age, count(*)", ENDS),
    ("MATCH (a:Person {age: 3})-[:KNOWS]->()-[:KNOWS]->()-[:KNOWS]->(d) RETURN count(*)", ROWS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age, b.age, count(*)", ROWS),
    ("MATCH (a:Person)-[k:KNOWS]->(b) RETURN k.since, count(*)", ROWS),
    ("MATCH (a:Robot)-[:KNOWS]->(b) RETURN b.age, sum(b.x)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN sum(b.x), avg(b.x), count(b.x), min(b.x), max(b.odd)", ENDS),
    ("MATCH (a:Person)-[:LIKES]->(b:Person) RETURN b.city, avg(b.age), stDev(b.age), sum(b.age * 2)", ENDS),
    (
        "MATCH (a:Old)-[:KNOWS]-(b) RETURN b.city, sum(b.age), count(DISTINCT b), percentileCont(b.age, 0.3)",
        ENDS,
    ),
    ("MATCH (a:Person)-[:KNOWS]->(b) WITH collect(b) AS all UNWIND all AS one RETURN one", ENDS),
    ("MATCH (a:Robot)-->(b) WITH b.city AS city, b.age AS age RETURN city, sum(age), max(age)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN b.city, sum(DISTINCT b.age), avg(DISTINCT b.age)", ENDS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN b.city, sum(b.age + a.age)", ROWS),
    ("MATCH (p:Person) RETURN p.city, collect(p.age)[0..0], count(*)", GROUPS),
    ("MATCH (p) WITH p.city AS city, collect(p.age) AS ages UNWIND ages AS age RETURN city, age", GROUPS),
    ("MATCH (p) WITH collect(p.odd) AS all UNWIND all AS one RETURN one", GROUPS),
    ("MATCH (p) RETURN p.age / 2, count(*), sum(p.age * 2)", GROUPS),
    ("MATCH (p) RETURN toString(p.age) + '!', count(*), max(p.age % 7)", GROUPS),
    ("MATCH (p) RETURN p.age > 20 AND p.city IS NULL, count(p), avg(p.age + 1), count(p.x / 2)", GROUPS),
    (
        "MATCH (p:Person) WITH p.age % 4 AS four, p.city AS city RETURN four, size(city), percentileDisc(four, 0.5)",
        GROUPS,
    ),
    ("MATCH (p:Person) RETURN p.city, size(collect(DISTINCT p.age % 6)), count(DISTINCT p.age % 6)", GROUPS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age % 5, count(*), sum(a.age)", GROUPS),
    ("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age % 5, rand() < 2, count(*)", ROWS),
    ("MATCH (p:Person) RETURN labels(p), p.city, count(*)", ROWS),
    ("MATCH (p) RETURN DISTINCT p.city", GROUPS),
    (
        "MATCH (p:Person) WITH DISTINCT p.city AS city, p.age % 3 AS three RETURN city, three, size(city)",
        GROUPS,
    ),
    ("MATCH (a:Person)-[:LIKES]->(b) RETURN DISTINCT b", ENDS),
    ("MATCH (a:Person)-[:LIKES]->(b) RETURN DISTINCT b.age, b.city", ENDS),
    ("MATCH (a:Person)-[:LIKES]->(b) RETURN DISTINCT a.age, b.city", ROWS),
    ("MATCH (p:Person) WHERE p.age % 2 = 0 RETURN p.city, count(*)", ROWS),
    ("MATCH (p:Person) RETURN stDev(p.age) > 1, percentileCont(p.age, 0.25)", GROUPS),
    ("MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(a) RETURN count(*)", ROWS),
    ("MATCH (p:Person) RETURN count(*)", ROWS),
];

/// Starts a worker that asks for statistics each time. Otherwise those of a half made graph could order the patterns. No
/// answer is so slow that a second replica is asked: the tests count messages.
fn informed_worker(fleet: &TestFleet) -> (Arc<Database>, Arc<Worker>) {
    let mut config = patient();
    config.fleet.statistics_age = Duration::ZERO;
    config.fleet.hedge_after = PATIENCE;
    fleet.worker_with(config, fleet.clock.clone())
}

/// An embedded database and a fleet with the same graph.
struct Both {
    embedded: Arc<Database>,
    worker: Arc<Database>,
    fleet: TestFleet,
}

impl Both {
    fn new() -> Self {
        let fleet = TestFleet::start(8, 3, 2, 64, NodeConfig::default());
        let (worker, _) = informed_worker(&fleet);
        let embedded = Database::open(Options::default()).unwrap();
        for database in [&embedded, &worker] {
            GRAPH.iter().for_each(|text| drop(ask(database, OpenCypher, text).unwrap()));
        }
        Self { embedded, worker, fleet }
    }

    fn agree(&self, text: &str) {
        assert_eq!(answer(&self.worker, text), answer(&self.embedded, text), "{text}");
    }
}

/// Returns a row as text. Numbers that are equal are shown alike, whatever vertex gave the key of a group.
fn shown(row: &[Value]) -> String {
    let value = |value: &Value| match value.as_f64() {
        Some(number) => format!("{number:.6}"),
        None => format!("{value:?}"),
    };
    row.iter().map(value).collect::<Vec<_>>().join(" | ")
}

/// Returns the rows of a query as sorted text, or its error.
fn answer(database: &Database, text: &str) -> Vec<String> {
    let parameters: Parameters = [("none".into(), Value::Null)].into_iter().collect();
    match database.query(&Query::new(OpenCypher, text, &parameters)) {
        Ok(answer) => {
            let mut rows: Vec<String> = answer.rows.iter().map(|row| shown(row)).collect();
            rows.sort();
            rows
        }
        Err(error) => vec![format!("{}: {error}", error.code())],
    }
}

#[test]
fn digests_answer_what_rows_answer() {
    let both = Both::new();
    for (text, by) in QUERIES {
        both.agree(text);
        let plan = both.worker.explain(OpenCypher, text).unwrap();
        let last = plan.rsplit("final:").next().unwrap_or_default();
        let is_digested = last.contains("in storage") && !last.contains("counted in storage");
        let is_expected = match by {
            "" => !is_digested,
            // With the rows that are expected of it.
            by => last.lines().any(|line| line.contains(by) && line.contains("(~")),
        };
        assert!(is_expected, "{text}\n{plan}");
        assert!(!both.embedded.explain(OpenCypher, text).unwrap().contains("vertices in storage"), "{text}");
    }
}

#[test]
fn rows_are_taken_where_memory_is_short() {
    let mut both = Both::new();
    let (_, worker) = informed_worker(&both.fleet);
    both.fleet.wait_until("the second worker knows the graph", |_| {
        worker.status().version >= ask(&both.worker, OpenCypher, "RETURN 1").unwrap().version
    });
    let options = Options { query_memory_bytes: 4 << 20, ..Options::default() };
    both.worker = both.fleet.database(options, &worker);
    for (text, by) in QUERIES.iter().filter(|(_, by)| !by.is_empty()) {
        both.agree(text);
        assert!(both.worker.explain(OpenCypher, text).unwrap().contains(by), "{text}");
    }
    // Rows of all vertices, or of more.
    let (_, bytes) = moved(&both.worker, "MATCH (p:Person) RETURN p.city, count(*)");
    assert!(bytes > 8 * 200, "{bytes} bytes");
}

#[test]
fn the_first_vertices_are_those_of_all_nodes() {
    let both = Both::new();
    for text in [
        "MATCH (p:Person) RETURN p.age, p.x ORDER BY p.age DESC, p.x LIMIT 7",
        "MATCH (p) RETURN p.city AS city, p.age ORDER BY city, p.age DESC SKIP 3 LIMIT 20",
        "MATCH (p:Person) WHERE p.age > 9 RETURN p.odd ORDER BY p.odd LIMIT 33",
        "MATCH (p:Person) WITH p ORDER BY p.age, p.x DESC LIMIT 5 MATCH (p)-[:KNOWS]->(q) RETURN p.age, count(*)",
        "MATCH (p) RETURN p.nothing, p.age ORDER BY p.nothing, p.age LIMIT 4",
        "MATCH (p) RETURN p.age ORDER BY p.age LIMIT 0",
        "MATCH (p) RETURN p.age ORDER BY p.age SKIP 235 LIMIT 5000",
    ] {
        both.agree(text);
    }
    let (of_first, of_all) =
        ("MATCH (p) RETURN p.age ORDER BY p.age LIMIT 5", "MATCH (p) RETURN p.age ORDER BY p.age");
    let [(first, few), (_, many)] = [of_first, of_all].map(|text| {
        moved(&both.worker, text);
        moved(&both.worker, text)
    });
    assert!(first <= 3 && few < many / 3, "{first} messages, {few} bytes of {many}");
}

#[test]
fn semi_joins_move_numbers() {
    let both = Both::new();
    let text = "MATCH (p:Person) WHERE (p)-[:LIKES]->() RETURN p.age, p.city";
    let plan = both.worker.explain(OpenCypher, text).unwrap();
    assert!(plan.rsplit("final:").next().unwrap().contains("count edges"), "{plan}");
    for text in [
        text,
        "MATCH (p:Person) WHERE (p)-[:LIKES]->() RETURN p.city, count(*)",
        "MATCH (p) WHERE EXISTS { (p)<-[:LIKES]-() } AND NOT (p)-[:LIKES]->() RETURN p.age",
        "MATCH (p)-[:LIKES]->(q) WHERE (q)--() RETURN p.age, count(q)",
        "MATCH (p:Person) WHERE (p)-[:MISSING]->() RETURN p.age",
        "MATCH (p:Person) WHERE NOT (p)-[:MISSING]->() RETURN p.age",
        "MATCH (p) WHERE NOT (p)--() RETURN p.age, p.city",
        "MATCH (p:Person) WHERE NOT EXISTS { (p)<-[:LIKES]-() } RETURN p.city, count(*)",
        "MATCH (p:Robot) OPTIONAL MATCH (p)-[:LIKES]->(q) WITH q WHERE NOT (q)-[:KNOWS]->() RETURN q, count(*)",
    ] {
        both.agree(text);
    }
    // For each vertex a number, and no edges.
    let text = "MATCH (p) WHERE NOT (p)-[:KNOWS]->() RETURN count(p)";
    let plan = both.worker.explain(OpenCypher, text).unwrap();
    assert!(!plan.rsplit("final:").next().unwrap().contains("apply anti"), "{plan}");
    moved(&both.worker, text);
    let (_, numbers) = moved(&both.worker, text);
    let (_, edges) = moved(&both.worker, "MATCH (p) OPTIONAL MATCH (p)-[k:KNOWS]->() RETURN count(id(k))");
    assert!(numbers < edges / 2, "{numbers} and {edges} bytes");
}

#[test]
fn what_cannot_be_added_is_the_same_error() {
    let both = Both::new();
    for text in ["MATCH (p:Person) RETURN sum(p.odd)", "MATCH (p:Person) RETURN p.age % 2, avg(p.city)"] {
        both.agree(text);
        assert!(
            answer(&both.worker, text)[0].contains("sum") || answer(&both.worker, text)[0].contains("avg")
        );
    }
    // Durations can be added, but not by nodes.
    for database in [&both.embedded, &both.worker] {
        let text = "MATCH (p:Person) WHERE p.age < 9 SET p.time = duration({minutes: p.age})";
        ask(database, OpenCypher, text).unwrap();
    }
    both.agree("MATCH (p:Person) RETURN p.city, toString(sum(p.time)), toString(avg(p.time)), count(p.time)");
    // The sum of the parts is too large, and so is a part.
    for database in [&both.embedded, &both.worker] {
        let text = "UNWIND range(0, 99) AS n CREATE (:Huge {n: 9223372036854775807})";
        ask(database, OpenCypher, text).unwrap();
    }
    both.agree("MATCH (h:Huge) RETURN sum(h.n)");
    both.agree("MATCH (h:Huge) RETURN avg(h.n) > 9e18, count(h.n), max(h.n)");
}

#[test]
fn a_transaction_sees_what_it_wrote() {
    let both = Both::new();
    let none = Parameters::default();
    let mut answers = vec![];
    for database in [&both.embedded, &both.worker] {
        let mut transaction = Transaction::new(None, None, false);
        let mut within = |text: &str| {
            let query = Query::new(OpenCypher, text, &none);
            let mut rows: Vec<String> = database
                .query_within(&mut transaction, &query)
                .unwrap()
                .rows
                .iter()
                .map(|row| shown(row))
                .collect();
            rows.sort();
            rows
        };
        let mut found = vec![];
        for write in [
            "RETURN 1",
            "MATCH (p:Person) WHERE p.age < 5 SET p.age = 50",
            "MATCH (p:Person {age: 7}) DETACH DELETE p",
            "MATCH (a:Robot), (b:Person {age: 50}) CREATE (a)-[:KNOWS]->(b)",
        ] {
            within(write);
            for (text, _) in QUERIES.iter().filter(|(text, by)| !by.is_empty() && !text.contains('$')) {
                // Sums of floats depend on their order.
                if !text.contains("avg") && !text.contains("sum(p.x)") {
                    found.push((*text, within(text)));
                }
            }
        }
        answers.push(found);
    }
    assert_eq!(answers[0], answers[1]);
    // In one statement, too.
    both.agree("MATCH (p:Person {age: 3}) SET p.age = 60 WITH count(*) AS n MATCH (q:Person) RETURN n, q.age, count(*)");
}

/// Returns the messages and the bytes of a query, as its profile shows them.
fn moved(database: &Database, text: &str) -> (i64, i64) {
    let none = Parameters::default();
    let query = Query { explain: Some(Explain::Profile), ..Query::new(OpenCypher, text, &none) };
    let answer = database.query(&query).unwrap();
    let columns: Vec<&str> = answer.columns.iter().map(|column| column.as_str()).collect();
    assert_eq!(columns, ["operator", "calls", "rows", "estimatedRows", "milliseconds", "requests", "bytes"]);
    let sum = |at: usize| answer.rows.iter().filter_map(|row| row[at].as_i64()).sum();
    (sum(5), sum(6))
}

#[test]
fn a_profile_shows_messages_and_bytes() {
    let both = Both::new();
    let text = "MATCH (p:Person) RETURN p";
    assert_eq!(moved(&both.embedded, text), (0, 0));
    let (requests, bytes) = moved(&both.worker, text);
    // Ids alone have several bytes each.
    assert!(requests >= 3 && bytes > 200 * 8, "{requests} messages, {bytes} bytes");
}

/// A regression to rows would move at least 8 bytes for each vertex or edge.
#[test]
fn counts_and_groups_move_few_bytes() {
    let both = Both::new();
    for (text, most_requests, most_bytes) in [
        ("MATCH (a)-->()-->(c) RETURN count(*)", 3, 900),
        ("MATCH (a:Person)-[:KNOWS]->(b) RETURN count(*)", 3, 900),
        ("MATCH (p:Person) WHERE p.age > 30 RETURN count(p.city), sum(p.age)", 3, 900),
        ("MATCH (p:Person) RETURN p.city, count(*), sum(p.age)", 3, 2_500),
        // Ends of six partitions, and the degrees of at most all vertices.
        ("MATCH (a:Person)-[:KNOWS]->()-[:KNOWS]->(c) RETURN count(*)", 6, 14_000),
    ] {
        // The first run may learn of the graph what the others know.
        moved(&both.worker, text);
        let (requests, bytes) = moved(&both.worker, text);
        assert!(requests <= most_requests, "{text}: {requests} messages");
        assert!(bytes <= most_bytes, "{text}: {bytes} bytes");
        let plan = both.worker.explain(OpenCypher, text).unwrap();
        assert!(plan.contains("in storage"), "{plan}");
    }
    let all = moved(&both.worker, "MATCH (p) RETURN id(p)");
    assert!(all.1 > 8 * VERTICES as i64, "{all:?}");
    assert_eq!(rows(&both.worker, OpenCypher, "MATCH (p) RETURN count(p)"), ["[Long(240)]"]);
}
