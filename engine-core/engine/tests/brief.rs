//! Brief tries: what is answered at once, what is left to `query`, and that nothing comes of what is left.

mod support;

use std::sync::Arc;
use std::time::Duration;
use support::{modern, run};
use tidegraph_engine::{Brief, Brought, Database, Error, Language, Parameters, Query};
use tidegraph_types::{ErrorCode, Map, Value, Version};

/// So much time that only the other bounds can end a try.
const ROOMY: Brief = Brief { time: Duration::from_secs(60), memory_bytes: 256 << 10, rows: 100 };

const NAMES: &str = "MATCH (p:person) RETURN p.name";

/// How many rows a try answers; `None`: it was left.
fn rows(database: &Database, text: &str, brief: Brief) -> Option<usize> {
    let parameters = Parameters::default();
    let query = Query::new(Language::OpenCypher, text, &parameters);
    let result = database.query_briefly(&query, brief)?;
    let brought = result.unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(brought.commit, None, "{text}");
    Some(brought.answer.rows.len())
}

/// What a brief try of a write wants to commit; `None`: it was left.
fn brought(database: &Database, text: &str) -> Option<Brought> {
    let parameters = Parameters::default();
    let query = Query::new(Language::OpenCypher, text, &parameters);
    let result = database.query_briefly(&query, ROOMY)?;
    Some(result.unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Commits it, and waits here for the answer.
fn commit(database: &Database, brought: Brought) -> Result<Version, Error> {
    let (ended, end) = std::sync::mpsc::channel();
    let request = brought.commit.expect("a write");
    database.commit_later(request, Box::new(move |committed| drop(ended.send(committed))));
    end.recv().expect("an answer")
}

#[test]
fn a_text_is_planned_by_query_and_then_answered_briefly() {
    let database = modern();
    assert_eq!(rows(&database, NAMES, ROOMY), None, "not planned yet");
    run(&database, NAMES);
    assert_eq!(rows(&database, NAMES, ROOMY), Some(4));
}

const TWINS: &str = "MATCH (p {name: 'twin'}) RETURN count(*)";

#[test]
fn a_write_is_brought_and_comes_to_be_when_it_is_committed() {
    let database = modern();
    let text = "CREATE (p:person {name: 'twin'}) RETURN p.name";
    assert!(brought(&database, text).is_none(), "not planned yet");
    run(&database, text);
    let write = brought(&database, text).expect("a brief write");
    assert_eq!(write.answer.rows, [[Value::from("twin")]]);
    assert_eq!(run(&database, TWINS), ["1"], "nothing before its commit");
    let before = database.status().version;
    let version = commit(&database, write).unwrap();
    assert_eq!(version, Version(before + 1));
    assert_eq!(run(&database, TWINS), ["2"]);
    // What is brought and never committed leaves nothing.
    drop(brought(&database, text));
    assert_eq!(run(&database, TWINS), ["2"]);
}

#[test]
fn a_write_that_makes_names_is_left() {
    let database = modern();
    let text = "UNWIND $names AS name MATCH (p:person {name: 'marko'}) SET p += name RETURN 1";
    let set = |key: &str| {
        let entry = Value::Map(Map::from_iter([(Value::from(key), Value::Long(1))]).into());
        Parameters::from_iter([("names".into(), Value::List(vec![entry].into()))])
    };
    let (known, new) = (set("age"), set("never heard of"));
    let briefly =
        |parameters| database.query_briefly(&Query::new(Language::OpenCypher, text, parameters), ROOMY);
    database.query(&Query::new(Language::OpenCypher, text, &known)).unwrap();
    assert!(briefly(&known).is_some_and(|brought| brought.unwrap().commit.is_some()));
    assert!(briefly(&new).is_none(), "a name has to be made, which waits for the log");
    database.query(&Query::new(Language::OpenCypher, text, &new)).unwrap();
    assert!(briefly(&new).is_some_and(|brought| brought.unwrap().commit.is_some()));
}

#[test]
fn of_two_that_bring_the_same_one_conflicts() {
    let database = modern();
    let text = "MATCH (p:person {name: 'marko'}) SET p.age = p.age + 1";
    run(&database, text);
    let (first, second) = (brought(&database, text).unwrap(), brought(&database, text).unwrap());
    commit(&database, first).unwrap();
    let error = commit(&database, second).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConcurrentModification);
    assert_eq!(run(&database, "MATCH (p:person {name: 'marko'}) RETURN p.age"), ["31"]);
}

#[test]
fn many_commits_without_a_thread_that_waits_share_the_log() {
    let database = Arc::new(modern());
    run(&database, "CREATE (:Mark {of: 0})");
    let (ended, end) = std::sync::mpsc::channel();
    let text = "CREATE (:Mark {of: $of})";
    let of = |of: i64| Parameters::from_iter([("of".into(), Value::Long(of))]);
    database.query(&Query::new(Language::OpenCypher, text, &of(0))).unwrap();
    for number in 0..500 {
        let parameters = of(number);
        let query = Query::new(Language::OpenCypher, text, &parameters);
        let request = database.query_briefly(&query, ROOMY).unwrap().unwrap().commit.unwrap();
        let ended = ended.clone();
        database.commit_later(request, Box::new(move |committed| ended.send(committed.unwrap()).unwrap()));
        // Some wait on their threads, and lead where it is their turn.
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
