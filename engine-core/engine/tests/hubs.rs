//! Deleting vertices with very many edges in one transaction.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use support::{ask, copy, empty, open, run};
use tidegraph_engine::{Database, Language, Parameters};

/// More edges than a deletion lists one by one.
const EDGES: usize = 70_000;

/// Creates a hub with outgoing and incoming edges and a loop, and neighbours with an edge of their own.
fn hub(database: &Database) {
    run(
        database,
        &format!(
            "CREATE (h:Hub {{`~id`: 'hub'}}), (h)-[:LOOP]->(h) WITH h UNWIND range(1, {EDGES}) AS i \
             CREATE (n:N {{i: i}}) FOREACH (x IN CASE WHEN i % 10 = 0 THEN [1] ELSE [] END | CREATE (n)-[:IN {{i: i}}]->(h)) \
             FOREACH (x IN CASE WHEN i % 10 = 0 THEN [] ELSE [1] END | CREATE (h)-[:OUT {{i: i}}]->(n))"
        ),
    );
    run(database, "MATCH (a:N {i: 1}), (b:N {i: 2}) CREATE (a)-[:STAYS {`~id`: 'stays'}]->(b)");
}

fn total(database: &Database) -> Vec<String> {
    run(database, "MATCH ()-[r]->() RETURN count(r)")
}

#[test]
fn a_hub_goes_with_all_its_edges() {
    let home = tempfile::tempdir().expect("a folder");
    let database = open(&home.path().join("live"));
    hub(&database);
    assert_eq!(total(&database), [(EDGES + 2).to_string()]);
    // The rest of the request sees that the edges are gone, and sees what it creates itself.
    let rows = run(
        &database,
        "MATCH (h:Hub) DETACH DELETE h WITH count(*) AS gone MATCH (n:N) \
         OPTIONAL MATCH (n)<-[out:OUT]-() OPTIONAL MATCH (n)-[into:IN]->() OPTIONAL MATCH (n)-[stays:STAYS]-() \
         RETURN gone, count(n), count(out), count(into), count(stays)",
    );
    assert_eq!(rows, [format!("1 | {EDGES} | 0 | 0 | 2")]);
    assert_eq!(run(&database, "MATCH (h:Hub) RETURN count(h)"), ["0"]);
    assert_eq!(run(&database, "MATCH ()-[r]->() RETURN id(r)"), ["stays"]);
    assert_eq!(run(&database, "MATCH (n:N) WHERE (n)--() RETURN count(n)"), ["2"]);
    copy(&home.path().join("live"), &home.path().join("after"));
    assert_eq!(total(&open(&home.path().join("after"))), ["1"]);
}

#[test]
fn an_edge_between_two_named_vertices_is_looked_for_from_the_one_with_fewer() {
    let database = empty();
    hub(&database);
    run(&database, "MATCH (h:Hub) CREATE (h)-[:OUT]->(:Leaf {`~id`: 'leaf'}), (:Leaf {`~id`: 'other'})");
    for (hub, leaf) in [("a", "b"), ("b", "a")] {
        let query =
            format!("MATCH (a)-[r:OUT]-(b) WHERE id({hub}) = 'hub' AND id({leaf}) = 'leaf' RETURN type(r)");
        let plan = database.explain(Language::OpenCypher, &query).expect("a plan");
        let slot = |id: &str| {
            let looked_up = plan.lines().find(|line| line.ends_with(&format!("of '{id}'")));
            looked_up.and_then(|line| line.split(' ').find(|word| word.starts_with('$'))).map(str::to_owned)
        };
        let (Some(hub), Some(leaf)) = (slot("hub"), slot("leaf")) else {
            panic!("both are looked up: {plan}")
        };
        assert!(plan.contains(&format!("expand {leaf} -[OUT]- into {hub}")), "{plan}");
        assert_eq!(run(&database, &query), ["OUT"]);
        assert!(run(&database, &query.replace("'leaf'", "'other'")).is_empty());
        assert!(run(&database, &query.replace("'leaf'", "'nobody'")).is_empty());
    }
}

#[test]
fn a_vertex_of_the_same_id_can_be_made_and_connected_in_the_same_request() {
    let database = empty();
    hub(&database);
    run(
        &database,
        "MATCH (h:Hub), (n:N {i: 10}) DETACH DELETE h CREATE (again:Hub {`~id`: 'hub'})-[:AGAIN]->(n)",
    );
    let rows = run(&database, "MATCH (h:Hub)-[r]-(n) RETURN type(r), n.i");
    assert_eq!(rows, ["AGAIN | 10"]);
    assert_eq!(total(&database), ["2"]);
}

#[test]
fn the_whole_graph_goes() {
    for text in ["MATCH (n) DETACH DELETE n", "g.V().drop()"] {
        let database = empty();
        hub(&database);
        run(&database, text);
        let status = database.status();
        assert_eq!((status.vertices, status.edges), (0, 0), "{text}");
    }
}

#[test]
fn an_edge_that_is_made_meanwhile_does_not_outlive_its_vertex() {
    let database = empty();
    hub(&database);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                let text = "MATCH (h:Hub), (n:N {i: 3}) CREATE (n)-[:LATE]->(h) RETURN 1";
                made += ask(&database, text, &Parameters::default()).map_or(0, |rows| rows.len());
            }
            made
        });
        run(&database, "MATCH (h:Hub) DETACH DELETE h");
        stop.store(true, Ordering::Relaxed);
        maker.join().expect("the maker ends");
    });
    assert_eq!(run(&database, "MATCH ()-[r]->() RETURN id(r)"), ["stays"]);
    assert_eq!(run(&database, "MATCH (n:N {i: 3}) RETURN size([(n)--(x) | x])"), ["0"]);
}
