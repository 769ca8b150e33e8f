//! Several statements in a text, time limits in texts, explanations, and the summary of a graph.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_engine::{
    Answer, Database, Error, Explain, Language, Options, Parameters, Query, VertexStructure,
};
use tidegraph_types::{ErrorCode, Value};

fn database() -> Arc<Database> {
    Database::open(Options::default()).unwrap()
}

fn ask(database: &Database, language: Language, text: &str) -> Result<Answer, Error> {
    database.query(&Query::new(language, text, &Parameters::default()))
}

fn gremlin(database: &Database, text: &str) -> Vec<Vec<Value>> {
    ask(database, Language::Gremlin, text).unwrap_or_else(|error| panic!("{text}: {error}")).rows
}

#[test]
fn statements_run_one_after_the_other_and_the_last_one_answers() {
    let database = database();
    let text = "g.addV('a').property(id, '1').next();\n\
                g.addV('a').property(id, '2')\n\
                g.V('1').addE('e').to(__.V('2')).iterate();;\n\
                g.V('1').as('x').out().as('y').path().by(id).unfold()";
    assert_eq!(gremlin(&database, text), [[Value::from("1")], [Value::from("2")]]);
    // A statement that finds nothing, or much, does not change how often the next one runs.
    assert_eq!(gremlin(&database, "g.V('none').out(); g.V().count()"), [[Value::Long(2)]]);
    assert_eq!(gremlin(&database, "g.V().drop(); g.V().count()"), [[Value::Long(0)]]);
    assert_eq!(
        gremlin(&database, "g.inject(1, 2).as('x'); g.inject(3).as('x').select('x')"),
        [[Value::Int(3)]]
    );
    assert!(gremlin(&database, "g.V().count(); g.addV('b').iterate()").is_empty());
}

#[test]
fn statements_are_one_transaction() {
    let database = database();
    let failed = ask(&database, Language::Gremlin, "g.addV('a'); g.V().fail('no')");
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(gremlin(&database, "g.V().count()"), [[Value::Long(0)]]);
}

#[test]
fn what_follows_a_statement_is_the_next_one_or_the_end() {
    let database = database();
    for (text, message) in [
        ("g.V(); x", "expected \"g\" or the end of the text, found \"x\" at 1:8"),
        ("g.V() x", "expected \".\" or the end of the text, found \"x\" at 1:7"),
    ] {
        assert_eq!(ask(&database, Language::Gremlin, text).unwrap_err().to_string(), message);
    }
    // A comma after the last argument, as Neptune takes it.
    assert_eq!(
        gremlin(&database, "g.inject(1, 2,).fold()"),
        [[Value::list(vec![Value::Int(1), Value::Int(2)])]]
    );
}

/// A query that takes far longer than a test.
const LONG: &str = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(*)";

#[test]
fn a_text_limits_its_own_time() {
    let database = database();
    let long = format!("USING QUERY:TIMEOUTMILLISECONDS 20 {LONG}");
    let error = ask(&database, Language::OpenCypher, &long).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TimeLimitExceeded);
    assert!(error.to_string().contains("20 ms"), "{error}");
    let again = ask(&database, Language::OpenCypher, &long).unwrap_err();
    assert_eq!(again.code(), ErrorCode::TimeLimitExceeded, "planned before");
    let text =
        "g.with('evaluationTimeout', 20L).inject(1).repeat(union(identity(), identity())).times(60).count()";
    let error = ask(&database, Language::Gremlin, text).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TimeLimitExceeded, "{error}");
    // Neptune's other hints do not change the answer.
    let hinted = "USING QUERY:PLANCACHE 'enabled' USING QUERY:TIMEOUTMILLISECONDS 0 RETURN 1 AS one";
    assert_eq!(ask(&database, Language::OpenCypher, hinted).unwrap().rows, [[Value::Long(1)]]);
    assert_eq!(gremlin(&database, "g.with('Neptune#repeatMode', 'DFS').inject(1)"), [[Value::Int(1)]]);
    for (language, text, message) in [
        (Language::Gremlin, "g.with('evaluationTimeout', 'x').V()", "needs a number of milliseconds"),
        (Language::OpenCypher, "USING QUERY:TIMEOUTMILLISECONDS soon RETURN 1", "a number of milliseconds"),
        (Language::OpenCypher, "USING QUERY:OTHER 1 RETURN 1", "USING QUERY:OTHER"),
        (Language::OpenCypher, "USING PERIODIC COMMIT RETURN 1", "USING"),
    ] {
        let error = ask(&database, language, text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn a_profile_says_what_each_operator_did() {
    let database = database();
    let create = "UNWIND range(1, 10) AS n CREATE (:P {n: n})-[:E]->(:Q)";
    let explained = |text: &str, explain| {
        let none = Parameters::default();
        database
            .query(&Query { explain: Some(explain), ..Query::new(Language::OpenCypher, text, &none) })
            .unwrap()
    };
    let planned = explained(create, Explain::Plan);
    assert!(!planned.wrote && planned.columns.first().is_some_and(|name| name == "plan"), "{planned:?}");
    let wrote = explained(create, Explain::Profile);
    assert!(wrote.wrote, "{wrote:?}");
    assert_eq!(wrote.counters.vertices_created, 20);

    let read = explained("MATCH (p:P)-[:E]->(q) WHERE p.n > 3 RETURN p.n, q", Explain::Profile);
    assert_eq!(
        &*read.columns,
        ["operator", "calls", "rows", "estimatedRows", "milliseconds", "requests", "bytes"]
    );
    let rows_of = |start: &str| {
        let row = read.rows.iter().find(|row| row[0].as_str().is_some_and(|text| text.starts_with(start)));
        row.unwrap_or_else(|| panic!("{start}: {:?}", read.rows))[2].clone()
    };
    assert_eq!(rows_of("expand"), Value::Long(7));
    assert_eq!(rows_of("answer"), Value::Long(7));
}

#[test]
fn a_summary_names_what_the_graph_has() {
    let database = database();
    for text in [
        "UNWIND range(1, 30) AS n CREATE (:Person {name: 'p' + toString(n), age: n})",
        "MATCH (a:Person), (b:Person) WHERE b.age = a.age + 1 CREATE (a)-[:KNOWS {since: a.age}]->(b)",
        "MATCH (a:Person {age: 1}) CREATE (a)-[:LIVES_IN]->(:City {name: 'c'})",
    ] {
        ask(&database, Language::OpenCypher, text).unwrap();
    }
    let summary = database.summary();
    assert_eq!((summary.vertices, summary.edges), (31, 30));
    assert_eq!(summary.vertex_labels, [("City".into(), 1), ("Person".into(), 30)]);
    assert_eq!(summary.edge_labels, [("KNOWS".into(), 29), ("LIVES_IN".into(), 1)]);
    assert_eq!(summary.vertex_keys, [("name".into(), 31), ("age".into(), 30)]);
    assert_eq!(summary.edge_keys, [("since".into(), 29)]);
    let of_people = VertexStructure {
        vertices: 30,
        keys: vec!["age".into(), "name".into()],
        outgoing: vec!["KNOWS".into(), "LIVES_IN".into()],
    };
    assert_eq!(summary.vertex_structures.first(), Some(&of_people));
    let edges: Vec<(u64, usize)> =
        summary.edge_structures.iter().map(|one| (one.edges, one.keys.len())).collect();
    assert_eq!(edges, [(29, 1), (1, 0)]);
}
