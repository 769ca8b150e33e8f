//! Graphs that are larger than their memory budget.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use support::{ask, run};
use tidegraph_engine::{Database, Options, Parameters};
use tidegraph_types::ErrorCode;

fn open(dir: &std::path::Path, budget: Option<u64>) -> std::sync::Arc<Database> {
    let options =
        Options { data_dir: Some(dir.to_path_buf()), memory_budget_bytes: budget, ..Options::default() };
    Database::open(options).expect("the database opens")
}

const TEXT: &str = "a text of some length, so that the properties of the graph are most of it";

fn fill(database: &Database) {
    for batch in 0..100 {
        let text = format!(
            "UNWIND range({}, {}) AS i CREATE (:P {{i: i, text: '{TEXT} ' + toString(i)}})",
            batch * 200,
            batch * 200 + 199
        );
        run(database, &text);
    }
}

fn check(database: &Database) {
    assert_eq!(run(database, "MATCH (n:P) RETURN count(n), sum(n.i)"), ["20000 | 199990000"]);
    let query = format!("MATCH (n:P) WHERE n.text = '{TEXT} 777' RETURN n.i");
    assert_eq!(run(database, &query), ["777"]);
    let query = "MATCH (n:P) WHERE n.i % 1000 = 7 RETURN sum(size(n.text))";
    let expected: usize = (0..20).map(|k| TEXT.len() + 1 + (k * 1000 + 7).to_string().len()).sum();
    assert_eq!(run(database, query), [expected.to_string()]);
}

#[test]
fn properties_that_do_not_fit_are_read_and_changed_all_the_same() {
    let home = tempfile::tempdir().expect("a folder");
    let whole = {
        let database = open(&home.path().join("whole"), None);
        fill(&database);
        database.status().memory_bytes
    };
    let dir = home.path().join("graph");
    let database = open(&dir, Some(whole / 2));
    fill(&database);
    // Pages can be evicted once one version brought all of their rows, or once older versions are forgotten.
    check(&database);
    let status = database.status();
    assert_eq!(status.memory_budget_bytes, Some(whole / 2));
    assert!(status.spilled_bytes > 0, "{status:?}");
    run(&database, "MATCH (n:P) WHERE n.i = 5 SET n.text = 'short'");
    assert_eq!(run(&database, "MATCH (n:P) WHERE n.text = 'short' RETURN n.i"), ["5"]);
    run(&database, &format!("MATCH (n:P) WHERE n.i = 5 SET n.text = '{TEXT} 5'"));
    database.checkpoint().expect("a checkpoint of pages in the file");
    drop(database);
    // Recovery stays within the budget too.
    let database = open(&dir, Some(whole / 2));
    check(&database);
    assert!(database.status().spilled_bytes > 0, "{:?}", database.status());
}

#[test]
fn what_cannot_leave_memory_is_refused_when_it_is_more_than_the_budget() {
    let home = tempfile::tempdir().expect("a folder");
    fill(&open(home.path(), None));
    let database = open(home.path(), Some(10_000));
    let fixed = database.status().memory_bytes;
    let refused =
        ask(&database, "CREATE (:P {i: -1})", &Parameters::default()).expect_err("there is no room");
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert!(refused.to_string().contains("the memory budget is 10000"), "{refused}");
    assert!(fixed > 10_000);
    check(&database);
    run(&database, "MATCH (n:P) WHERE n.i >= 10000 DELETE n");
    assert_eq!(run(&database, "MATCH (n:P) RETURN count(n)"), ["10000"]);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named_at_the_start() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("a file");
    std::fs::write(&file, "x").expect("written");
    let options = Options {
        memory_budget_bytes: Some(1 << 30),
        spill_dir: Some(file.join("below")),
        ..Options::default()
    };
    let error = Database::open(options).err().expect("no directory can be below a file");
    assert!(error.to_string().contains("a file"), "{error}");
}
