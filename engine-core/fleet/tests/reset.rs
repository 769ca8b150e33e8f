//! Fast resets of a fleet: at any worker, with replicas that come from checkpoints and the log, beside writers and loads.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;
use support::{GRAPH, TestFleet, ask, rows};
use tidegraph_cluster::MapStore;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::{Database, Query, Transaction};
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{ErrorCode, Value};

const FILL: &[&str] = &[
    "UNWIND range(0, 199) AS n CREATE (:Person {`~id`: 'p' + toString(n), n: n, name: 'p' + toString(n)})",
    "MATCH (a:Person), (b:Person) WHERE b.n = (a.n * 7 + 3) % 200 \
     CREATE (a)-[:KNOWS {`~id`: 'e' + toString(a.n), since: a.n}]->(b)",
];

fn fill(database: &Database) {
    for text in FILL {
        ask(database, OpenCypher, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let text = "MATCH (a:Person)-[k:KNOWS]->(b) RETURN count(*), sum(k.since)";
    assert_eq!(ask(database, OpenCypher, text).unwrap().rows, [[Value::Long(200), Value::Long(19_900)]]);
}

fn is_empty(database: &Database) -> bool {
    let found = [
        "MATCH (a) RETURN a",
        "MATCH ()-[k]->() RETURN k",
        "MATCH (a:Person {n: 7}) RETURN a",
        "MATCH (a) WHERE id(a) = 'p7' RETURN a",
    ];
    found.iter().all(|text| rows(database, OpenCypher, text).is_empty())
}

fn reset(database: &Database) {
    let token = database.begin_reset().unwrap();
    database.reset(&token).unwrap();
}

#[test]
fn all_replicas_are_empty_and_go_on() {
    [1, 2, 4].into_iter().for_each(|shards| {
        let config =
            NodeConfig { beat: Duration::from_millis(50), checkpoint_versions: 3, ..NodeConfig::default() };
        let mut fleet = TestFleet::start_sharded(shards, 4, 2, 2, 64, config);
        let (one, _worker) = fleet.worker();
        let (other, _other_worker) = fleet.worker();
        ask(&one, OpenCypher, "CREATE INDEX FOR (p:Person) ON (p.n)").unwrap();
        fill(&one);
        // A token is valid at any worker, once.
        let token = one.begin_reset().unwrap();
        other.reset(&token).unwrap();
        assert!(is_empty(&other), "a worker sees its own reset");
        fleet.wait_until("the other worker sees it", |_| is_empty(&one));
        assert_eq!(one.reset(&token).unwrap_err().code(), ErrorCode::PreconditionsFailed);
        fill(&one);
        // A node without the graph takes all replicas, from a checkpoint and the log after it.
        fleet.wait_until("all have a checkpoint", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
        reset(&other);
        ask(&other, OpenCypher, "CREATE (:Later {n: 1})").unwrap();
        fleet.hand_all_to("n8");
        let _gone = [fleet.kill("n0"), fleet.kill("n1")];
        assert_eq!(rows(&other, OpenCypher, "MATCH (a) RETURN labels(a), a.n").len(), 1);
        ask(&other, OpenCypher, "MATCH (a:Later) DELETE a").unwrap();
        assert!(is_empty(&other));
        fill(&other);
        let found = rows(&other, OpenCypher, "MATCH (a:Person) WHERE a.n = 7 RETURN id(a)");
        assert_eq!(found.len(), 1, "{found:?}");
    });
}

#[test]
fn transactions_of_before_conflict_and_those_that_read_go_on() {
    let fleet = TestFleet::start(4, 2, 2, 64, NodeConfig::default());
    let (database, _worker) = fleet.worker();
    let (other, _other_worker) = fleet.worker();
    fill(&database);
    let none = tidegraph_engine::Parameters::default();
    let within = |transaction: &mut Transaction, text: &str| {
        database.query_within(transaction, &Query::new(OpenCypher, text, &none))
    };
    let mut writes = Transaction::new(None, None, false);
    within(&mut writes, "MATCH (p:Person {n: 7}) SET p.n = 1007").unwrap();
    let mut reads = Transaction::new(None, None, false);
    let count = "MATCH (p:Person) RETURN count(p)";
    let before = within(&mut reads, count).unwrap().rows;
    reset(&other);
    assert!(is_empty(&other));
    assert_eq!(within(&mut reads, count).unwrap().rows, before, "it reads its version");
    let conflict = database.commit_transaction(writes).unwrap_err();
    assert_eq!(conflict.code(), ErrorCode::ConcurrentModification, "{conflict}");
    drop(reads);
    // Its caller runs it again, when this worker knows the version of the reset.
    fleet.wait_until("this worker sees it", |_| is_empty(&database));
    ask(&database, OpenCypher, "CREATE (:Person {`~id`: 'p7', n: 1})").unwrap();
    assert_eq!(rows(&database, OpenCypher, "MATCH (p) RETURN id(p), p.n").len(), 1);
}
