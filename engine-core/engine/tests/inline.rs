//! Inline requests: which ones are answered at once, which ones are left to `query`, and
//! that the latter change nothing.

mod support;

use std::sync::Arc;
use std::time::Duration;
use support::{modern, run};
use tidegraph_engine::{Database, Error, InlineLimits, Language, Parameters, PendingAnswer, Query};
use tidegraph_types::{ErrorCode, Map, Value, Version};

/// Enough time that only the other limits can end an inline request.
const ROOMY: InlineLimits =
    InlineLimits { time: Duration::from_secs(60), memory_bytes: 256 << 10, rows: 100 };

const NAMES: &str = "MATCH (p:person) RETURN p.name";

/// Returns the number of rows of an inline request, or `None` if it was left to `query`.
fn rows(database: &Database, text: &str, limits: InlineLimits) -> Option<usize> {
    let parameters = Parameters::default();
    let query = Query::new(Language::OpenCypher, text, &parameters);
    let result = database.query_inline(&query, limits)?;
    let pending = result.unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(pending.commit, None, "{text}");
    Some(pending.answer.rows.len())
}

/// Returns an inline write before its commit, or `None` if it was left to `query`.
fn pending(database: &Database, text: &str) -> Option<PendingAnswer> {
    let parameters = Parameters::default();
    let query = Query::new(Language::OpenCypher, text, &parameters);
    let result = database.query_inline(&query, ROOMY)?;
    Some(result.unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Commits the writes and waits for the result.
fn commit(database: &Database, pending: PendingAnswer) -> Result<Version, Error> {
    let (done, end) = std::sync::mpsc::channel();
    let request = pending.commit.expect("a write");
    database.commit_later(request, Box::new(move |committed| drop(done.send(committed))));
    end.recv().expect("an answer")
}

#[test]
fn a_text_is_planned_by_query_and_then_answered_inline() {
    let database = modern();
    assert_eq!(rows(&database, NAMES, ROOMY), None, "not planned yet");
    run(&database, NAMES);
    assert_eq!(rows(&database, NAMES, ROOMY), Some(4));
}

const TWINS: &str = "MATCH (p {name: 'twin'}) RETURN count(*)";

#[test]
fn a_write_is_pending_until_it_is_committed() {
    let database = modern();
    let text = "CREATE (p:person {name: 'twin'}) RETURN p.name";
    assert!(pending(&database, text).is_none(), "not planned yet");
    run(&database, text);
    let write = pending(&database, text).expect("an inline write");
    assert_eq!(write.answer.rows, [[Value::from("twin")]]);
    assert_eq!(run(&database, TWINS), ["1"], "nothing before its commit");
    let before = database.status().version;
    let version = commit(&database, write).unwrap();
    assert_eq!(version, Version(before + 1));
    assert_eq!(run(&database, TWINS), ["2"]);
    // Writes that are not committed leave nothing behind.
    drop(pending(&database, text));
    assert_eq!(run(&database, TWINS), ["2"]);
}

#[test]
fn a_write_that_adds_names_is_left_to_query() {
    let database = modern();
    let text = "UNWIND $names AS name MATCH (p:person {name: 'marko'}) SET p += name RETURN 1";
    let set = |key: &str| {
        let entry = Value::Map(Map::from_iter([(Value::from(key), Value::Long(1))]).into());
        Parameters::from_iter([("names".into(), Value::List(vec![entry].into()))])
    };
    let (known, new) = (set("age"), set("never heard of"));
    let inline =
        |parameters| database.query_inline(&Query::new(Language::OpenCypher, text, parameters), ROOMY);
    database.query(&Query::new(Language::OpenCypher, text, &known)).unwrap();
    assert!(inline(&known).is_some_and(|pending| pending.unwrap().commit.is_some()));
    assert!(inline(&new).is_none(), "a name has to be made, which waits for the log");
    database.query(&Query::new(Language::OpenCypher, text, &new)).unwrap();
    assert!(inline(&new).is_some_and(|pending| pending.unwrap().commit.is_some()));
}

#[test]
fn one_of_two_inline_writes_of_the_same_property_conflicts() {
    let database = modern();
    let text = "MATCH (p:person {name: 'marko'}) SET p.age = p.age + 1";
    run(&database, text);
    let (first, second) = (pending(&database, text).unwrap(), pending(&database, text).unwrap());
    commit(&database, first).unwrap();
    let error = commit(&database, second).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConcurrentModification);
    assert_eq!(run(&database, "MATCH (p:person {name: 'marko'}) RETURN p.age"), ["31"]);
}

#[test]
fn many_commits_without_a_thread_that_waits_share_the_log() {
    let database = Arc::new(modern());
    run(&database, "CREATE (:Mark {of: 0})");
    let (done, end) = std::sync::mpsc::channel();
    let text = "CREATE (:Mark {of: $of})";
    let of = |of: i64| Parameters::from_iter([("of".into(), Value::Long(of))]);
    database.query(&Query::new(Language::OpenCypher, text, &of(0))).unwrap();
    for number in 0..500 {
        let parameters = of(number);
        let query = Query::new(Language::OpenCypher, text, &parameters);
        let request = database.query_inline(&query, ROOMY).unwrap().unwrap().commit.unwrap();
        let done = done.clone();
        database.commit_later(request, Box::new(move |committed| done.send(committed.unwrap()).unwrap()));
        // Some commits block their thread, and that thread leads the group when its turn comes.
        if number % 50 == 0 {
            run(&database, "CREATE (:Mark {of: -1})");
        }
    }
    let mut versions: Vec<Version> = (0..500).map(|_| end.recv().unwrap()).collect();
    versions.dedup();
    assert_eq!(versions.len(), 500);
    assert!(versions.is_sorted(), "answers come in the order of versions");
    assert_eq!(run(&database, "MATCH (m:Mark) RETURN count(*)"), ["512"]);
}

#[test]
fn a_text_that_often_exceeds_a_limit_is_not_tried_for_a_while() {
    for (bound, limits) in [
        ("time", InlineLimits { time: Duration::ZERO, ..ROOMY }),
        ("memory", InlineLimits { memory_bytes: 0, ..ROOMY }),
        ("rows", InlineLimits { rows: 3, ..ROOMY }),
    ] {
        let database = modern();
        let text = "MATCH (p:person) WITH p.name AS name ORDER BY name RETURN name";
        run(&database, text);
        assert_eq!(rows(&database, text, ROOMY), Some(4), "{bound}");
        for _ in 0..100 {
            assert_eq!(rows(&database, text, limits), None, "{bound}");
        }
        let skipped = (0..1_000).take_while(|_| rows(&database, text, ROOMY).is_none()).count();
        assert!((1..1_000).contains(&skipped), "{bound}: {skipped} requests went without a try");
        assert_eq!(rows(&database, text, ROOMY), Some(4), "{bound}");
    }
}

#[test]
fn errors_and_the_callers_own_limit_are_told_apart_from_inline_limits() {
    let database = modern();
    let text = "MATCH (p:person) RETURN p.name + {a: 1}";
    let parameters = Parameters::default();
    let mut query = Query::new(Language::OpenCypher, text, &parameters);
    let expected = database.query(&query).expect_err("a wrong type").to_string();
    let found = database.query_inline(&query, ROOMY).expect("an answer").expect_err("a wrong type");
    assert_eq!(found.to_string(), expected);
    query.timeout = Some(ROOMY.time);
    assert!(database.query_inline(&query, ROOMY).is_none(), "its own limit has to be named");
}
