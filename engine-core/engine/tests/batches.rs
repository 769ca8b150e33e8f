//! `CALL { … } IN TRANSACTIONS`, `EXPLAIN`, `PROFILE`, `SHOW … YIELD` and the procedures about the graph.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_engine::{Answer, Database, Error, Language, Options, Parameters, Query, Transaction};
use tidegraph_types::{ErrorCode, Value};

fn database() -> Arc<Database> {
    Database::open(Options::default()).unwrap()
}

fn try_with(database: &Database, text: &str, parameters: &Parameters) -> Result<Answer, Error> {
    database.query(&Query::new(Language::OpenCypher, text, parameters))
}

fn ask(database: &Database, text: &str) -> Vec<Vec<Value>> {
    try_with(database, text, &Parameters::default()).unwrap_or_else(|error| panic!("{text}: {error}")).rows
}

fn refused(database: &Database, text: &str) -> Error {
    try_with(database, text, &Parameters::default()).map(|answer| answer.rows).unwrap_err()
}

fn count(database: &Database, label: &str) -> Value {
    ask(database, &format!("MATCH (n:{label}) RETURN count(n)")).remove(0).remove(0)
}

#[test]
fn each_batch_is_a_transaction() {
    let database = database();
    // Makes the names known, so that only the batches are versions.
    ask(&database, "CREATE (n:Item {n: 0, m: 0}) DELETE n");
    let before = database.status().version;
    let text = "UNWIND range(1, 10) AS i CALL (i) { CREATE (:Item {n: i}) } IN TRANSACTIONS OF 3 ROWS";
    let answer = try_with(&database, text, &Parameters::default()).unwrap();
    assert_eq!(answer.counters.vertices_created, 10);
    assert!(answer.wrote && answer.rows.is_empty());
    // Ten rows are four batches, each a commit.
    assert_eq!(database.status().version, before + 4);
    assert_eq!(count(&database, "Item"), Value::Long(10));
    // Elements go into batches, and the clauses after them see what was written.
    let text = "MATCH (n:Item) CALL (n) { SET n.m = n.n * 2 RETURN n.m AS m } IN TRANSACTIONS OF $size ROWS RETURN sum(m)";
    let size = Parameters::from_iter([("size".into(), Value::Long(4))]);
    assert_eq!(try_with(&database, text, &size).unwrap().rows, [[Value::Long(110)]]);
    for concurrently in ["IN CONCURRENT", "IN 3 CONCURRENT", "IN $size CONCURRENT"] {
        let text = text.replacen("IN", concurrently, 1);
        assert!(try_with(&database, &text, &size).is_ok(), "{text}");
    }
    assert!(ask(&database, "MATCH (n:Item) CALL { WITH n DETACH DELETE n } IN TRANSACTIONS").is_empty());
    assert_eq!(count(&database, "Item"), Value::Long(0));
}

#[test]
fn a_batch_that_fails_ends_the_request_or_is_reported() {
    let work = |on_error: &str| {
        format!(
            "UNWIND [1, 2, 0, 4, 5] AS i CALL (i) {{ CREATE (:Item {{n: 10 / i}}) RETURN 10 / i AS x }} \
             IN TRANSACTIONS OF 2 ROWS {on_error}"
        )
    };
    let database_of = |on_error: &str, rest: &str| {
        let database = database();
        let result = try_with(&database, &format!("{} {rest}", work(on_error)), &Parameters::default());
        (database, result)
    };
    let (database, failed) = database_of("", "RETURN x");
    assert!(failed.is_err_and(|error| error.to_string().contains("division by zero")));
    assert_eq!(count(&database, "Item"), Value::Long(2));

    // An error that stays is not tried again, and other words for the same.
    let (database, failed) = database_of("ON ERROR RETRY FOR 0.5 SECONDS", "RETURN x");
    assert!(failed.is_err_and(|error| error.to_string().contains("division by zero")));
    assert_eq!(count(&database, "Item"), Value::Long(2));
    let (database, answer) = database_of("ON ERROR RETRY THEN CONTINUE", "RETURN count(*)");
    assert_eq!(answer.unwrap().rows, [[Value::Long(5)]]);
    assert_eq!(count(&database, "Item"), Value::Long(3));

    let rest = "RETURN i, x, s.started, s.committed, s.errorMessage IS NULL";
    let row = |i: i64, x: Option<i64>, started: bool, committed: bool, quiet: bool| {
        let x = x.map_or(Value::Null, Value::Long);
        vec![Value::Long(i), x, started.into(), committed.into(), quiet.into()]
    };
    let (database, answer) = database_of("ON ERROR CONTINUE REPORT STATUS AS s", rest);
    assert_eq!(
        answer.unwrap().rows,
        [
            row(1, Some(10), true, true, true),
            row(2, Some(5), true, true, true),
            row(0, None, true, false, false),
            row(4, None, true, false, false),
            row(5, Some(2), true, true, true),
        ]
    );
    assert_eq!(count(&database, "Item"), Value::Long(3));

    let (database, answer) = database_of("ON ERROR BREAK REPORT STATUS AS s", rest);
    assert_eq!(answer.unwrap().rows[4], row(5, None, false, false, true));
    assert_eq!(count(&database, "Item"), Value::Long(2));
}

#[test]
fn batches_are_refused_where_they_cannot_be() {
    let database = database();
    let none = Parameters::default();
    let text = "UNWIND [1] AS i CALL (i) { CREATE (:Item) } IN TRANSACTIONS";
    let mut transaction = Transaction::new(None, None, false);
    let error =
        database.query_within(&mut transaction, &Query::new(Language::OpenCypher, text, &none)).unwrap_err();
    assert!(error.to_string().contains("can only be executed in an implicit transaction"), "{error}");
    drop(transaction);

    let reader = Query { read_only: true, ..Query::new(Language::OpenCypher, text, &none) };
    assert_eq!(database.query(&reader).unwrap_err().code(), ErrorCode::MethodNotAllowed);
    let keyed = Query { key: Some("once"), ..Query::new(Language::OpenCypher, text, &none) };
    assert_eq!(database.query(&keyed).unwrap_err().code(), ErrorCode::UnsupportedOperation);
    for (text, code) in [
        ("CREATE (:A) WITH 1 AS i CALL (i) { CREATE (:Item) } IN TRANSACTIONS", ErrorCode::MalformedQuery),
        ("CALL { CALL { CREATE (:Item) } IN TRANSACTIONS } RETURN 1 AS x", ErrorCode::MalformedQuery),
        ("CALL { CREATE (:Item) } IN TRANSACTIONS OF 0 ROWS", ErrorCode::MalformedQuery),
        ("CALL { CREATE (:Item) } IN TRANSACTIONS OF $missing ROWS", ErrorCode::MissingParameter),
        ("CALL { CREATE (:Item) } IN TRANSACTIONS REPORT STATUS AS s", ErrorCode::MalformedQuery),
        ("CALL { CREATE (:Item) } IN 0 CONCURRENT TRANSACTIONS", ErrorCode::MalformedQuery),
        ("CALL { CREATE (:Item) } IN 2 TRANSACTIONS", ErrorCode::MalformedQuery),
        ("CALL { CREATE (:Item) } IN TRANSACTIONS ON ERROR RETRY FOR -1 SECONDS", ErrorCode::MalformedQuery),
        (
            "CALL { CREATE (:Item) } IN TRANSACTIONS ON ERROR RETRY FOR $missing SECS",
            ErrorCode::MissingParameter,
        ),
    ] {
        assert_eq!(refused(&database, text).code(), code, "{text}");
    }
    assert_eq!(count(&database, "Item"), Value::Long(0));
}

#[test]
fn a_prefix_explains_or_profiles_a_query() {
    let database = database();
    let plan = ask(&database, "EXPLAIN CREATE (:Item)");
    assert!(
        plan.iter().any(|row| row[0].as_str().is_some_and(|line| line.contains("create vertex"))),
        "{plan:?}"
    );
    assert_eq!(count(&database, "Item"), Value::Long(0));
    let batches = ask(&database, "EXPLAIN UNWIND [1] AS i CALL (i) { CREATE (:Item) } IN TRANSACTIONS");
    assert_eq!(batches[0][0], Value::from("input:"));
    let profile = try_with(&database, "// why?\nPROFILE CREATE (:Item)", &Parameters::default()).unwrap();
    assert_eq!(
        &*profile.columns,
        ["operator", "calls", "rows", "estimatedRows", "milliseconds", "requests", "bytes"]
    );
    assert_eq!(count(&database, "Item"), Value::Long(1));
    assert_eq!(refused(&database, "EXPLAIN RETURN x").code(), ErrorCode::MalformedQuery);
    // Within a transaction, a plan changes nothing.
    let none = Parameters::default();
    let mut transaction = Transaction::new(None, None, false);
    let explain = Query::new(Language::OpenCypher, "EXPLAIN CREATE (:Item)", &none);
    assert!(!database.query_within(&mut transaction, &explain).unwrap().rows.is_empty());
    database.commit_transaction(transaction).unwrap();
    assert_eq!(count(&database, "Item"), Value::Long(1));
}

#[test]
fn show_lists_what_there_is() {
    let database = database();
    ask(&database, "CREATE (:Item {n: 1})-[:NEXT {w: 2}]->(:Item {n: 2})");
    ask(&database, "CREATE INDEX items FOR (n:Item) ON (n.n)");
    let text = |text: &str| Value::from(text);
    assert_eq!(
        ask(&database, "SHOW INDEXES YIELD name, state WHERE state = 'ONLINE' RETURN name"),
        [[text("items")]]
    );
    assert_eq!(ask(&database, "SHOW INDEXES YIELD name AS n RETURN n + '!'"), [[text("items!")]]);
    assert_eq!(ask(&database, "SHOW INDEXES WHERE name = 'other'").len(), 0);
    assert_eq!(ask(&database, "SHOW INDEXES YIELD *")[0].len(), 7);
    let procedures = "SHOW PROCEDURES YIELD name WHERE name STARTS WITH 'db.schema' RETURN count(*)";
    assert_eq!(ask(&database, procedures), [[Value::Long(3)]]);
    assert_eq!(
        ask(&database, "SHOW FUNCTIONS YIELD name, category ORDER BY name DESC LIMIT 1"),
        [[text("year"), text("Temporal")]]
    );
    assert_eq!(ask(&database, "SHOW DATABASES YIELD name, default"), [[text("neo4j"), true.into()]]);
    assert_eq!(ask(&database, "CALL db.indexes() YIELD name, state"), [[text("items"), text("ONLINE")]]);
    assert_eq!(
        ask(&database, "CALL db.schema.nodeTypeProperties() YIELD nodeType, propertyName, propertyTypes"),
        [[text(":`Item`"), text("n"), Value::list(vec![text("Long")])]]
    );
    assert_eq!(
        ask(&database, "CALL db.schema.relTypeProperties() YIELD relType, propertyName"),
        [[text(":`NEXT`"), text("w")]]
    );
    let schema =
        "CALL db.schema.visualization() YIELD nodes, relationships RETURN size(nodes), size(relationships)";
    assert_eq!(ask(&database, schema), [[Value::Long(1), Value::Long(1)]]);
    assert_eq!(
        ask(&database, "CALL dbms.procedures() YIELD name WHERE name = 'db.ping' RETURN count(*)"),
        [[Value::Long(1)]]
    );
    assert_eq!(refused(&database, "SHOW TRANSACTIONS").code(), ErrorCode::UnsupportedOperation);
    assert_eq!(refused(&database, "SHOW INDEXES YIELD nothing").code(), ErrorCode::MalformedQuery);
}

#[test]
fn every_listed_function_is_known() {
    let database = database();
    let rows = ask(&database, "SHOW FUNCTIONS YIELD name");
    assert!(rows.len() > 100, "{}", rows.len());
    for row in rows {
        let name = row[0].as_str().unwrap();
        let error = try_with(&database, &format!("RETURN {name}()"), &Parameters::default());
        let unknown = error.is_err_and(|error| error.to_string().contains("unknown function"));
        assert!(!unknown, "{name}");
    }
}
