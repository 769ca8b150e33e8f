//! The memory limit of a query: rows of an answer count, in addition to what operators buffer.

mod support;

use std::sync::Arc;
use support::{ask, run};
use tidegraph_engine::{Database, Options, Parameters};
use tidegraph_types::{ErrorCode, Value};

/// Number of vertices of the graph. They form pairs, each with an edge.
const VERTICES: usize = 10_000;
/// Bytes of rows with one number each: the minimum that an answer with all vertices needs.
const ROWS_BYTES: usize = VERTICES * (size_of::<Vec<Value>>() + size_of::<Value>());

/// Queries for a number of each vertex, in both languages.
const NUMBERS: [&str; 2] = ["MATCH (p:P) RETURN p.i", "g.V().hasLabel('P').values('i')"];

fn pairs(query_memory_bytes: usize) -> Arc<Database> {
    let options = Options { query_memory_bytes: query_memory_bytes as u64, ..Options::default() };
    let database = Database::open(options).expect("a graph in memory");
    let text = "x".repeat(100);
    let vertex = |i: &str| format!("(:P {{i: {i}, text: '{text}' + toString({i})}})");
    let create = format!("CREATE {}-[:NEXT]->{}", vertex("2 * i"), vertex("2 * i + 1"));
    for from in (0..VERTICES / 2).step_by(100) {
        run(&database, &format!("UNWIND range({from}, {}) AS i {create}", from + 99));
    }
    database
}

fn refused(database: &Database, text: &str) -> String {
    let error = ask(database, text, &Parameters::default()).expect_err(text);
    assert_eq!(error.code(), ErrorCode::QueryLimitExceeded, "{text}: {error}");
    error.to_string()
}

#[test]
fn rows_over_the_memory_limit_are_refused_though_operators_stay_small() {
    let limit = ROWS_BYTES * 3 / 4;
    let database = pairs(limit);
    for text in NUMBERS {
        let message = refused(&database, text);
        assert!(message.contains(&format!("over its limit of {limit}:")), "{message}");
        assert!(
            message.ends_with("filter or aggregate earlier, return less, or raise the limit"),
            "{message}"
        );
    }
    // The same scans fit when they return a single row.
    assert_eq!(run(&database, "MATCH (p:P) RETURN max(p.i)"), ["9999"]);
    assert_eq!(run(&database, "g.V().hasLabel('P').values('i').max()"), ["9999"]);
}

#[test]
fn rows_just_below_the_memory_limit_are_answered() {
    for text in NUMBERS {
        refused(&pairs(ROWS_BYTES - 1), text);
        assert_eq!(run(&pairs(ROWS_BYTES * 11 / 10), text).len(), VERTICES, "{text}");
    }
}

#[test]
fn what_the_values_of_rows_hold_is_charged() {
    // `tight` has room for rows of numbers, but not for the data that these values hold.
    let (tight, roomy) = (pairs(ROWS_BYTES * 11 / 10), pairs(64 << 20));
    for (text, rows) in [
        ("MATCH (p:P) RETURN p.text", VERTICES),
        ("MATCH (p:P) RETURN [p.i, p.i, p.i]", VERTICES),
        ("MATCH (p:P) RETURN {a: p.i, b: [p.i]}", VERTICES),
        ("MATCH (p:P) RETURN p", VERTICES),
        ("MATCH (:P)-[r:NEXT]->(:P) RETURN r, [r]", VERTICES / 2),
        ("MATCH path = (:P)-[:NEXT]->(:P) RETURN path", VERTICES / 2),
        ("g.V().hasLabel('P').values('text')", VERTICES),
        ("g.V().hasLabel('P').valueMap('i')", VERTICES),
        ("g.V().hasLabel('P')", VERTICES),
        ("g.V().hasLabel('P').out('NEXT').path()", VERTICES / 2),
    ] {
        refused(&tight, text);
        assert_eq!(run(&roomy, text).len(), rows, "{text}");
    }
}

#[test]
fn side_effects_are_charged_while_they_grow() {
    let (tight, roomy) = (pairs(ROWS_BYTES * 11 / 10), pairs(64 << 20));
    for step in [
        "aggregate('x').by('text')",
        "store('x').by('text')",
        "groupCount('x').by('text')",
        "group('x').by('text').by('i')",
        "group('x').by('text').by(count())",
        "sideEffect(values('text').store('x'))",
        "union(store('x').by('text'), values('none'))",
        "tree('x').by('text')",
    ] {
        let text = format!("g.V().hasLabel('P').{step}.cap('x').count(local)");
        refused(&tight, &text);
        assert_eq!(run(&roomy, &text), [VERTICES.to_string()], "{text}");
    }
}
