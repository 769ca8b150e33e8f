//! Brief tries: what is answered at once, what is left to `query`, and that nothing comes of what is left.

mod support;

use std::time::Duration;
use support::{modern, run};
use tidegraph_engine::{Brief, Database, Language, Parameters, Query};

/// So much time that only the other bounds can end a try.
const ROOMY: Brief = Brief { time: Duration::from_secs(60), memory_bytes: 256 << 10, rows: 100 };

const NAMES: &str = "MATCH (p:person) RETURN p.name";

/// How many rows a try answers; `None`: it was left.
fn rows(database: &Database, text: &str, brief: Brief) -> Option<usize> {
    let parameters = Parameters::default();
    let query = Query::new(Language::OpenCypher, text, &parameters);
    let result = database.query_briefly(&query, brief)?;
    Some(result.unwrap_or_else(|error| panic!("{text}: {error}")).rows.len())
}

#[test]
fn a_text_is_planned_by_query_and_then_answered_briefly() {
    let database = modern();
    assert_eq!(rows(&database, NAMES, ROOMY), None, "not planned yet");
    run(&database, NAMES);
    assert_eq!(rows(&database, NAMES, ROOMY), Some(4));
}

#[test]
fn writes_are_left_and_nothing_comes_of_the_try() {
    let database = modern();
    let text = "CREATE (:person {name: 'twin'})";
    run(&database, text);
    assert_eq!(rows(&database, text, ROOMY), None);
    assert_eq!(run(&database, "MATCH (p {name: 'twin'}) RETURN count(*)"), ["1"]);
}

#[test]
fn what_often_needs_more_than_a_bound_is_not_tried_for_a_while() {
    for (bound, brief) in [
        ("time", Brief { time: Duration::ZERO, ..ROOMY }),
        ("memory", Brief { memory_bytes: 0, ..ROOMY }),
        ("rows", Brief { rows: 3, ..ROOMY }),
    ] {
        let database = modern();
        let text = "MATCH (p:person) WITH p.name AS name ORDER BY name RETURN name";
        run(&database, text);
        assert_eq!(rows(&database, text, ROOMY), Some(4), "{bound}");
        for _ in 0..100 {
            assert_eq!(rows(&database, text, brief), None, "{bound}");
        }
        let skipped = (0..1_000).take_while(|_| rows(&database, text, ROOMY).is_none()).count();
        assert!((1..1_000).contains(&skipped), "{bound}: {skipped} requests went without a try");
        assert_eq!(rows(&database, text, ROOMY), Some(4), "{bound}");
    }
}

#[test]
fn errors_and_the_callers_own_limit_are_told_apart_from_bounds() {
    let database = modern();
    let text = "MATCH (p:person) RETURN p.name + {a: 1}";
    let parameters = Parameters::default();
    let mut query = Query::new(Language::OpenCypher, text, &parameters);
    let expected = database.query(&query).expect_err("a wrong type").to_string();
    let found = database.query_briefly(&query, ROOMY).expect("an answer").expect_err("a wrong type");
    assert_eq!(found.to_string(), expected);
    query.timeout = Some(ROOMY.time);
    assert!(database.query_briefly(&query, ROOMY).is_none(), "its own limit has to be named");
}
