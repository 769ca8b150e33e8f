//! Settings that are fixed when a graph is made: types of ids (IDS-2), and the default cardinality. What they mean for
//! steps is in `scenarios/gremlin_typed`.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::path::Path;
use std::sync::Arc;
use support::run;
use tidegraph_engine::{Database, Error, Options};
use tidegraph_types::{Cardinality, ElementIds, ErrorCode, GremlinSettings};

fn options(data: &Path, ids: Option<ElementIds>, default_cardinality: Option<Cardinality>) -> Options {
    Options { data_dir: Some(data.to_owned()), ids, default_cardinality, ..Options::default() }
}

fn open(data: &Path, ids: Option<ElementIds>, cardinality: Option<Cardinality>) -> Arc<Database> {
    Database::open(options(data, ids, cardinality)).expect("a database")
}

fn refusal(opened: Result<Arc<Database>, Error>) -> String {
    let error = opened.err().expect("it is refused");
    assert_eq!(error.code(), ErrorCode::InvalidParameter);
    error.to_string()
}

#[test]
fn a_graph_keeps_its_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = open(folder.path(), Some(ElementIds::Longs), Some(Cardinality::Single));
    run(&made, "g.addV('t').property(T.id, 1).property('k', 1).property('k', 2)");
    made.close();
    drop(made);
    let again = open(folder.path(), None, None);
    let settings = GremlinSettings { ids: ElementIds::Longs, default_cardinality: Cardinality::Single };
    assert_eq!(again.status().gremlin, settings);
    assert_eq!(run(&again, "g.V(1).id().is(typeOf(GType.LONG))"), ["1"]);
    assert_eq!(run(&again, "g.V(1).property('k', 3).values('k')"), ["3"]);
    again.close();
    drop(again);
    // The same settings, given again.
    drop(open(folder.path(), Some(ElementIds::Longs), Some(Cardinality::Single)));
}

#[test]
fn other_settings_than_those_of_the_graph_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path(), Some(ElementIds::Typed), None));
    let wanted = Database::open(options(folder.path(), Some(ElementIds::Strings), None));
    assert_eq!(
        refusal(wanted),
        "the graph was made with ids typed and cannot be opened with strings: leave the setting out, or make another graph"
    );
    let wanted = Database::open(options(folder.path(), None, Some(Cardinality::Single)));
    let text = refusal(wanted);
    assert!(text.contains("the default cardinality set and cannot be opened with single"), "{text}");
}

#[test]
fn a_graph_without_settings_has_the_file_that_earlier_versions_read() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path(), None, None));
    let file = std::fs::read_to_string(folder.path().join("graph.json")).expect("a file");
    let file: serde_json::Value = serde_json::from_str(&file).expect("json");
    let mut keys: Vec<&String> = file.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(keys, ["format", "hash_bits", "partitions"]);
}

#[test]
fn open_cypher_sees_the_text_of_ids() {
    let typed = Options { ids: Some(ElementIds::Typed), ..Options::default() };
    let database = Database::open(typed).expect("a graph in memory");
    run(&database, "g.addV('t').property(T.id, 1).addV('t').property(T.id, '1')");
    let ids = run(&database, "MATCH (n) RETURN id(n) AS id ORDER BY id");
    assert_eq!(ids, run(&database, "RETURN '1' AS id UNION ALL RETURN 'string:1' AS id"));
    assert_eq!(run(&database, "MATCH (n) WHERE elementId(n) = 'string:1' RETURN count(n)"), ["1"]);
    run(&database, "CREATE (:t {`~id`: '7'})-[:e {`~id`: '8'}]->(:t {`~id`: 'string:7'})");
    assert_eq!(run(&database, "g.V(7).outE().hasId(8).inV().hasId('7').count()"), ["1"]);
    // An id that the engine makes is the same in both languages.
    run(&database, "CREATE (:made)");
    assert_eq!(run(&database, "g.V().hasLabel('made').id().is(typeOf(GType.UUID)).count()"), ["1"]);
}

#[test]
fn deleted_and_new_vertices_of_one_transaction_keep_their_ids() {
    let typed = Options { ids: Some(ElementIds::Typed), ..Options::default() };
    let database = Database::open(typed).expect("a graph in memory");
    run(&database, "g.addV('t').property(T.id, 1)");
    run(&database, "g.V(1).drop(); g.addV('u').property(T.id, 1L)");
    assert_eq!(run(&database, "g.V(1).label()"), run(&database, "g.inject('u')"));
    run(&database, "g.V(1).addE('e').to(__.V(1)); g.V(1).outE().property('w', 1)");
    assert_eq!(run(&database, "g.V(1).outE().has('w', 1).inV().hasId(1).count()"), ["1"]);
}
