//! Constraints that several workers make, or that a worker began to make before it ended (TXN-3).

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use support::{TestFleet, ask, rows};
use tidegraph_engine::Backend;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{CommitRequest, ErrorCode, IndexDefinition, Key, Mutation, Str};

const CREATE: &str = "CREATE CONSTRAINT ids IF NOT EXISTS FOR (p:Person) REQUIRE p.id IS UNIQUE";

/// Does what a worker does before it ends: defines a constraint and compares no values.
fn begin(worker: &dyn Backend) {
    let tokens = worker.catalog().intern(&[Str::from("Person"), Str::from("id")]).unwrap();
    let index = IndexDefinition {
        name: "ids".into(),
        label: tokens[0],
        key: tokens[1],
        unique: true,
        unchecked: true,
    };
    let request = || CommitRequest {
        read_version: worker.snapshot(None).unwrap().at.version,
        read_keys: vec![Key::schema()],
        write_keys: vec![Key::schema(), Key::constraints()],
        mutations: vec![Mutation::DefineIndex { index: index.clone() }],
        ..CommitRequest::default()
    };
    // Until the worker knows that the constraint before was dropped.
    while let Err(error) = worker.commit(request()) {
        assert_eq!(error.code(), ErrorCode::ConcurrentModification, "{error}");
    }
}

#[test]
fn what_a_worker_left_unchecked_is_checked_by_another() {
    let fleet = TestFleet::start(4, 2, 2, 64, NodeConfig::default());
    let (one, begun) = fleet.worker();
    let (other, _worker) = fleet.worker();
    ask(&one, OpenCypher, "UNWIND [1, 2, 2] AS id CREATE (:Person {id: id})").unwrap();
    begin(&*begun);
    fleet.wait_until("it is seen", |_| rows(&other, OpenCypher, "SHOW CONSTRAINTS").len() == 1);
    assert!(rows(&other, OpenCypher, "SHOW INDEXES")[0].contains("BUILDING"));
    let there = ask(&other, OpenCypher, &CREATE.replace("IF NOT EXISTS ", "")).unwrap_err();
    assert!(there.to_string().contains("not complete yet"), "{there}");
    let refused = ask(&other, OpenCypher, CREATE).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::UniqueViolation, "{refused}");
    assert_eq!(rows(&other, OpenCypher, "SHOW CONSTRAINTS").len(), 0);

    ask(&other, OpenCypher, "MATCH (p:Person {id: 2}) WITH p LIMIT 1 DELETE p").unwrap();
    begin(&*begun);
    fleet.wait_until("it is seen", |_| rows(&other, OpenCypher, "SHOW CONSTRAINTS").len() == 1);
    ask(&other, OpenCypher, CREATE).unwrap();
    assert!(rows(&other, OpenCypher, "SHOW INDEXES")[0].contains("ONLINE"));
    let again = ask(&one, OpenCypher, "CREATE (:Person {id: 2})").unwrap_err();
    assert_eq!(again.code(), ErrorCode::UniqueViolation, "{again}");
}

/// The values of more vertices are compared than one answer of a replica has.
#[test]
fn a_constraint_of_many_vertices_is_made() {
    let fleet = TestFleet::start(2, 2, 2, 64, NodeConfig::default());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(1, 20000) AS id CREATE (:Person {id: id})").unwrap();
    ask(&database, OpenCypher, CREATE).unwrap();
    let again = ask(&database, OpenCypher, "CREATE (:Person {id: 19999})").unwrap_err();
    assert_eq!(again.code(), ErrorCode::UniqueViolation, "{again}");
    ask(&database, OpenCypher, "DROP CONSTRAINT ids").unwrap();
    ask(&database, OpenCypher, "CREATE (:Person {id: 1})").unwrap();
    let broken = ask(&database, OpenCypher, CREATE).unwrap_err();
    assert_eq!(broken.code(), ErrorCode::UniqueViolation, "{broken}");
}

#[test]
fn a_constraint_that_another_worker_dropped_is_made_again() {
    let fleet = TestFleet::start(2, 1, 1, 64, NodeConfig::default());
    let workers = [fleet.worker().0, fleet.worker().0];
    for round in 0..20 {
        let (one, other) = (&workers[round % 2], &workers[(round + 1) % 2]);
        ask(one, OpenCypher, CREATE).unwrap();
        ask(one, OpenCypher, "DROP CONSTRAINT ids").unwrap();
        // At once: without a question to the sequencer it would find what was dropped.
        ask(other, OpenCypher, CREATE).unwrap();
        assert_eq!(rows(other, OpenCypher, "SHOW CONSTRAINTS").len(), 1, "round {round}");
        ask(one, OpenCypher, "DROP CONSTRAINT ids").unwrap();
    }
}

#[test]
fn workers_that_make_one_constraint_at_once_agree() {
    let fleet = TestFleet::start(2, 1, 1, 64, NodeConfig::default());
    let workers = [fleet.worker(), fleet.worker()];
    let create = || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .iter()
                .map(|(database, _)| scope.spawn(|| ask(database, OpenCypher, CREATE).map_err(|e| e.code())))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.map(|made| made.map(drop)).collect::<Vec<_>>()
        })
    };
    let count = |text: &str| rows(&workers[0].0, OpenCypher, text).len();
    for _ in 0..3 {
        ask(&workers[0].0, OpenCypher, "UNWIND [1, 2, 2] AS id CREATE (:Person {id: id})").unwrap();
        assert_eq!(create(), vec![Err(ErrorCode::UniqueViolation); 2]);
        // The other worker may have dropped it last.
        fleet.wait_until("it is dropped", |_| count("SHOW CONSTRAINTS") == 0);
        ask(&workers[0].0, OpenCypher, "MATCH (p:Person {id: 2}) WITH p LIMIT 1 DELETE p").unwrap();
        assert_eq!(create(), vec![Ok(()); 2]);
        assert_eq!(count("SHOW CONSTRAINTS"), 1);
        for (database, _) in &workers {
            let again = ask(database, OpenCypher, "CREATE (:Person {id: 2})").unwrap_err();
            assert_eq!(again.code(), ErrorCode::UniqueViolation, "{again}");
        }
        ask(&workers[0].0, OpenCypher, "DROP CONSTRAINT ids").unwrap();
        ask(&workers[0].0, OpenCypher, "MATCH (p:Person) DELETE p").unwrap();
    }
}
