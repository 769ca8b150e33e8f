//! Reads of what is not there yet: a transaction that creates it conflicts with the one that missed it.

mod support;

use support::{empty, run};
use tidegraph_engine::{Database, Error, InlineLimits, Language, Parameters, Query};
use tidegraph_types::{CommitRequest, ErrorCode, Version};

const LIMITS: InlineLimits =
    InlineLimits { time: std::time::Duration::from_secs(60), memory_bytes: 16 << 20, rows: 1000 };

/// The writes of a statement that read the present version.
fn pending(database: &Database, text: &str) -> CommitRequest {
    let parameters = Parameters::default();
    let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
    let query = Query::new(language, text, &parameters);
    let answer = database.query_inline(&query, LIMITS).expect("it is planned").expect("it succeeds");
    answer.commit.expect("it writes")
}

fn commit(database: &Database, request: CommitRequest) -> Result<Version, Error> {
    let (done, end) = std::sync::mpsc::channel();
    database.commit_later(request, Box::new(move |committed| drop(done.send(committed))));
    end.recv().expect("an answer")
}

/// Runs `reader` on the graph that `setup` makes, commits `writer`, and then the writes of `reader`, which must
/// conflict.
fn conflicts(setup: &str, reader: &str, writer: &str) {
    let database = empty();
    run(&database, setup);
    // Inline requests need a plan that was used before. The second time, the reader does the same again.
    run(&database, reader);
    let request = pending(&database, reader);
    run(&database, writer);
    let error = commit(&database, request).expect_err(reader);
    assert_eq!(error.code(), ErrorCode::ConcurrentModification, "{reader}: {error}");
}

#[test]
fn a_label_that_the_graph_does_not_have_yet_at_each_hop() {
    let setup =
        "CREATE (:A {name: 'a'})-[:KNOWS]->(:M {name: 'm'})-[:KNOWS]->(:N {name: 'n'}), (:F {name: 'f'})";
    for (hops, at) in [("*1..2", "m"), ("*1..3", "n"), ("*1..2", "a")] {
        let reader = format!(
            "MATCH (a:A) OPTIONAL MATCH (a)-[:KNOWS|BLOCKS{hops}]->(x:F) \
             WITH a, count(x) AS c WHERE c = 0 SET a.ok = true"
        );
        let writer = format!("MATCH (m {{name: '{at}'}}), (f:F) CREATE (m)-[:BLOCKS]->(f)");
        conflicts(setup, &reader, &writer);
    }
}

#[test]
fn an_edge_id_in_the_form_of_a_generated_one() {
    conflicts(
        "CREATE (:A {`~id`: 'a'}), (:B {`~id`: 'b'}), (:Z {ok: true})-[:X]->(:Z)",
        "g.E('0000000000000001-7').count().is(0).V('a').property(single, 'ok', true)",
        "g.V('a').as('a').V('b').addE('X').from('a').property(id, '0000000000000001-7')",
    );
}
