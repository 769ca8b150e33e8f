//! Rows that are handed over while their request runs.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

mod support;

use support::{ask, run};
use tidegraph_engine::{
    Answer, Database, Error, Head, Interrupt, Language, Options, Parameters, Query, RowSink, Stop,
    Transaction,
};
use tidegraph_types::{ErrorCode, Value};

/// Counts rows, and wants no more after some of them.
#[derive(Default)]
struct Counts {
    batches: usize,
    rows: usize,
    most: Option<usize>,
    /// What the head said of the vertices that were created.
    created: u64,
}

impl RowSink for Counts {
    fn take(&mut self, head: &Head, rows: Vec<Vec<Value>>, interrupt: &dyn Interrupt) -> Result<(), Stop> {
        interrupt.check()?;
        assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == head.columns.len()));
        self.batches += 1;
        self.created = head.counters.vertices_created;
        self.rows += rows.len();
        if self.most.is_some_and(|most| self.rows >= most) { Err(Stop::Cancelled) } else { Ok(()) }
    }
}

fn stream(database: &Database, text: &str, sink: &mut Counts) -> Result<Answer, Error> {
    let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
    database.stream(&Query::new(language, text, &Parameters::default()), sink)
}

const MEMORY: u64 = 4 << 20;

fn small() -> std::sync::Arc<Database> {
    let database = Database::open(Options { query_memory_bytes: MEMORY, ..Options::default() }).unwrap();
    for from in (0..40_000).step_by(500) {
        run(
            &database,
            &format!("UNWIND range({from}, {}) AS i CREATE (:P {{i: i, text: toString(i)}})", from + 499),
        );
    }
    database
}

#[test]
fn rows_that_were_handed_over_take_no_memory() {
    let database = small();
    for text in ["MATCH (p:P) RETURN p.i, p", "g.V().hasLabel('P')", "g.V().hasLabel('P').valueMap()"] {
        let error = ask(&database, text, &Parameters::default()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::QueryLimitExceeded, "{text}");
        let mut sink = Counts::default();
        let answer = stream(&database, text, &mut sink).unwrap();
        assert_eq!((sink.rows, answer.rows.len(), answer.wrote), (40_000, 0, false), "{text}");
        assert!(sink.batches > 20, "{}", sink.batches);
    }
}

#[test]
fn rows_of_a_write_are_kept_for_its_commit() {
    let database = Database::open(Options::default()).unwrap();
    let mut sink = Counts::default();
    let answer =
        stream(&database, "UNWIND range(1, 3000) AS i CREATE (n:N {i: i}) RETURN n.i", &mut sink).unwrap();
    assert_eq!((sink.rows, answer.rows.len(), answer.wrote), (0, 3_000, true));
    let answer = stream(&database, "SHOW INDEXES", &mut sink).unwrap();
    assert_eq!((sink.rows, answer.wrote), (0, false));
}

#[test]
fn a_sink_that_wants_no_more_ends_the_request() {
    let database = small();
    let mut sink = Counts { most: Some(200), ..Counts::default() };
    let text = "UNWIND range(1, 30000) AS a UNWIND range(1, 30000) AS b RETURN a, b";
    let error = stream(&database, text, &mut sink).unwrap_err();
    assert_eq!((error.code(), sink.rows < 2_000), (ErrorCode::Cancelled, true));
}

#[test]
fn limits_and_errors_hold_after_the_first_rows() {
    let options = Options { query_rows: 2_000, ..Options::default() };
    let database = Database::open(options).unwrap();
    let mut sink = Counts::default();
    let error = stream(&database, "UNWIND range(1, 30000) AS i RETURN i", &mut sink).unwrap_err();
    assert_eq!(
        (error.code(), sink.rows <= 2_000, sink.rows > 0),
        (ErrorCode::QueryLimitExceeded, true, true)
    );
    let mut sink = Counts::default();
    let error = stream(&database, "UNWIND range(1, 1500) AS i RETURN 1 / (1000 - i)", &mut sink).unwrap_err();
    assert!(sink.rows > 0 && sink.rows < 1_000, "{}", sink.rows);
    assert_ne!(error.code(), ErrorCode::Internal);
}

fn within(
    database: &Database,
    transaction: &mut Transaction,
    text: &str,
    sink: &mut Counts,
) -> Result<Answer, Error> {
    database.stream_within(transaction, &Query::new(Language::OpenCypher, text, &Parameters::default()), sink)
}

#[test]
fn rows_of_a_transaction_that_were_handed_over_take_no_memory() {
    let database = small();
    let mut transaction = Transaction::new(None, None, true);
    for text in ["MATCH (p:P) RETURN p.i, p", "MATCH (p:P) RETURN properties(p)"] {
        let mut sink = Counts::default();
        let answer = within(&database, &mut transaction, text, &mut sink).unwrap();
        assert_eq!((sink.rows, answer.rows.len(), answer.wrote), (40_000, 0, false), "{text}");
        assert!(sink.batches > 20, "{}", sink.batches);
    }
}

#[test]
fn a_transaction_goes_on_when_nobody_wants_more_rows() {
    let database = Database::open(Options::default()).unwrap();
    let mut transaction = Transaction::new(None, None, false);
    let mut sink = Counts { most: Some(200), ..Counts::default() };
    let endless = "UNWIND range(1, 30000) AS a UNWIND range(1, 30000) AS b RETURN a, b";
    let error = within(&database, &mut transaction, endless, &mut sink).unwrap_err();
    assert_eq!((error.code(), sink.rows < 2_000), (ErrorCode::Cancelled, true));
    // All writes of a request are performed before its first row.
    let mut sink = Counts { most: Some(1), ..Counts::default() };
    let create = "UNWIND range(1, 5000) AS i CREATE (n:N {i: i}) RETURN n.i";
    let error = within(&database, &mut transaction, create, &mut sink).unwrap_err();
    assert_eq!((error.code(), sink.created), (ErrorCode::Cancelled, 5_000));
    assert!(sink.rows < 5_000, "{}", sink.rows);
    let mut sink = Counts::default();
    let more = "MATCH (n:N) WITH count(n) AS n CREATE (m:M {n: n}) RETURN m.n";
    let answer = within(&database, &mut transaction, more, &mut sink).unwrap();
    assert_eq!((sink.rows, sink.created, answer.counters.vertices_created, answer.wrote), (1, 1, 1, true));
    assert!(ask(&database, "MATCH (n:N) RETURN n", &Parameters::default()).unwrap().is_empty());
    database.commit_transaction(transaction).unwrap();
    let counted = ask(&database, "MATCH (m:M) RETURN m.n", &Parameters::default()).unwrap();
    assert_eq!(counted, [[Value::Long(5_000)]]);
}

#[test]
fn an_error_after_the_first_rows_ends_the_transaction() {
    let database = Database::open(Options::default()).unwrap();
    let mut transaction = Transaction::new(None, None, false);
    let mut sink = Counts::default();
    let late = "UNWIND range(1, 1500) AS i RETURN 1 / (1000 - i)";
    within(&database, &mut transaction, late, &mut sink).unwrap_err();
    assert!(sink.rows > 0 && sink.rows < 1_000, "{}", sink.rows);
    let ended = within(&database, &mut transaction, "RETURN 1", &mut sink).unwrap_err();
    assert_eq!(ended.code(), ErrorCode::BadRequest, "{ended}");
    assert_eq!(database.commit_transaction(transaction).unwrap_err().code(), ErrorCode::BadRequest);
}
