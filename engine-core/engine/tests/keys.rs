//! Writes that a client repeats under its key happen once (TXN-4).

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{copy, open, run};
use tidegraph_engine::{
    Answer, Database, Error, InlineLimits, Language, Options, Parameters, Principal, Query,
};
use tidegraph_types::{ErrorCode, Value, Version};

const ADD: &str = "CREATE (n:N {i: $i}) RETURN n.i AS i";

fn parameters(i: i64) -> Parameters {
    Parameters::from_iter([("i".into(), Value::from(i))])
}

/// Asks for `text` under a key that was first sent at version `since`.
fn ask_as(who: &Principal, database: &Database, key: &str, since: Version, i: i64) -> Result<Answer, Error> {
    let parameters = parameters(i);
    let query = Query::new(Language::OpenCypher, ADD, &parameters);
    database.query(&Query { key: Some(key), at_least: Some(since), principal: who, ..query })
}

fn ask(database: &Database, key: &str, since: Version, i: i64) -> Result<Answer, Error> {
    ask_as(&Principal::Anonymous, database, key, since, i)
}

fn count(database: &Database) -> Vec<String> {
    run(database, "MATCH (n:N) RETURN count(n)")
}

#[test]
fn a_write_that_is_repeated_under_its_key_happens_once() {
    let database = Database::open(Options::default()).expect("a database");
    let since = Version(0);
    let first = ask(&database, "k", since, 7).expect("a write");
    assert!(first.wrote && !first.repeated && first.rows == [[Value::from(7)]]);
    for _ in 0..2 {
        let again = ask(&database, "k", since, 7).expect("the answer to a repeat");
        assert!(again.wrote && again.repeated && again.rows.is_empty(), "{again:?}");
        assert_eq!((again.version, &again.columns), (first.version, &first.columns));
    }
    assert_eq!(count(&database), ["1"]);
    // The same text with another parameter is another request; so is the same number of another type.
    let reused = ask(&database, "k", since, 8).expect_err("another request");
    assert_eq!(reused.code(), ErrorCode::IdempotencyKeyReused);
    let double = Parameters::from_iter([("i".into(), Value::Double(7.0))]);
    let query = Query::new(Language::OpenCypher, ADD, &double);
    let reused = database.query(&Query { key: Some("k"), at_least: Some(since), ..query });
    assert_eq!(reused.expect_err("another request").code(), ErrorCode::IdempotencyKeyReused);
    assert_eq!(count(&database), ["1"]);
    // Keys of another caller are other keys.
    let other = ask_as(&Principal::SharedToken, &database, "k", since, 8).expect("a write");
    assert!(!other.repeated);
    // So that it is not run by a thread that must not wait.
    let values = parameters(7);
    let query =
        Query { key: Some("k"), at_least: Some(since), ..Query::new(Language::OpenCypher, ADD, &values) };
    let limits = InlineLimits { time: std::time::Duration::from_secs(1), memory_bytes: 1 << 20, rows: 10 };
    assert!(database.query_inline(&query, limits).is_none());
}

#[test]
fn gremlin_writes_happen_once_too() {
    let database = Database::open(Options::default()).expect("a database");
    let none = Parameters::default();
    let query = Query::new(Language::Gremlin, "g.addV('N')", &none);
    let query = Query { key: Some("k"), at_least: Some(Version(0)), ..query };
    let first = database.query(&query).expect("a write");
    let again = database.query(&query).expect("the answer to a repeat");
    assert!(!first.repeated && again.repeated && again.version == first.version, "{first:?} {again:?}");
    assert_eq!(count(&database), ["1"]);
}

#[test]
fn a_repeat_that_would_fail_or_find_nothing_to_write_is_answered_as_a_repeat() {
    let database = Database::open(Options::default()).expect("a database");
    run(&database, "CREATE (:Task {state: 'open'})");
    let none = Parameters::default();
    for text in ["CREATE (:N {`~id`: 'only'})", "MATCH (t:Task {state: 'open'}) SET t.state = 'done'"] {
        let query = Query::new(Language::OpenCypher, text, &none);
        let query = Query { key: Some(text), at_least: Some(Version(0)), ..query };
        assert!(!database.query(&query).expect("a write").repeated);
        assert!(database.query(&query).expect("the answer to a repeat").repeated, "{text}");
    }
}

#[test]
fn a_key_needs_no_version_and_reads_ignore_it() {
    let database = Database::open(Options::default()).expect("a database");
    let values = parameters(1);
    let write = Query { key: Some("k"), ..Query::new(Language::OpenCypher, ADD, &values) };
    for repeated in [false, true] {
        assert_eq!(database.query(&write).expect("an answer").repeated, repeated);
    }
    assert_eq!(count(&database), ["1"]);
    let read = Query { text: "MATCH (n) RETURN count(n) + $i", ..write };
    for _ in 0..2 {
        let answer = database.query(&read).expect("a read ignores the key");
        assert!(!answer.repeated && answer.rows == [[Value::from(2)]]);
    }
}

#[test]
fn requests_with_one_key_at_once_write_once() {
    const AT_ONCE: usize = 8;
    let database = Database::open(Options::default()).expect("a database");
    for round in 0..20 {
        let (since, key) = (Version(database.status().version), format!("k{round}"));
        let (start, repeated) = (Barrier::new(AT_ONCE), AtomicU64::new(0));
        let versions: Vec<Version> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let answer = ask(&database, &key, since, 1).expect("an answer");
                        repeated.fetch_add(u64::from(answer.repeated), Ordering::Relaxed);
                        assert_eq!(answer.rows.is_empty(), answer.repeated);
                        answer.version
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
        assert_eq!(repeated.into_inner(), AT_ONCE as u64 - 1);
    }
    assert_eq!(count(&database), ["20"]);
}

#[test]
fn keys_outlive_a_restart_as_long_as_the_log_has_them() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed) = (home.path().join("live"), home.path().join("crashed"));
    let database = open(&live);
    let first = ask(&database, "before", Version(0), 1).expect("a write");
    run(&database, "CREATE (:Other)");
    // The log keeps what is below the newest checkpoint.
    database.checkpoint().expect("a checkpoint");
    let late = ask(&database, "after", Version(0), 2).expect("a write");
    copy(&live, &crashed);
    for dir in [&crashed, &live] {
        let again;
        let database = if dir == &crashed {
            again = open(dir);
            &again
        } else {
            &database
        };
        for (key, i, version) in [("before", 1, first.version), ("after", 2, late.version)] {
            let answer = ask(database, key, Version(0), i).expect("the answer to a repeat");
            assert!(answer.repeated && answer.version == version, "{key}: {answer:?}");
        }
        assert_eq!(count(database), ["2"]);
    }
}

#[test]
fn a_key_that_the_log_no_longer_has_is_in_doubt() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed) = (home.path().join("live"), home.path().join("crashed"));
    let database = open(&live);
    ask(&database, "k", Version(0), 1).expect("a write");
    let checkpoint = database.checkpoint().expect("a checkpoint");
    drop(database);
    copy(&live, &crashed);
    std::fs::remove_dir_all(crashed.join("log")).expect("it is there");
    let data_dir = Some(crashed);
    let missing = Database::open(Options { data_dir: data_dir.clone(), ..Options::default() });
    let version = match missing {
        Ok(_) => None,
        Err(error) => {
            let text = error.to_string();
            let (_, version) = text.split_once("--accept-loss ").expect("what to do");
            version.split('`').next().and_then(|text| text.parse().ok())
        }
    };
    let database = Database::open(Options { data_dir, accept_loss: version, ..Options::default() });
    let database = database.expect("the checkpoint has the graph");
    let error = ask(&database, "k", Version(0), 1).expect_err("the key is forgotten");
    assert_eq!(error.code(), ErrorCode::CommitOutcomeUnknown);
    assert_eq!(count(&database), ["1"]);
    // Nothing was committed since the checkpoint.
    let known = Version(database.status().version);
    assert!(known >= checkpoint);
    assert!(!ask(&database, "new", known, 2).expect("a write").repeated);
}
