//! Writes that read a little in the past, so that they do not wait for replicas: they commit as if they had read the
//! newest version (TXN-2).

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use support::{TestFleet, ask, rows};
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::{Backend, Database};
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{ErrorCode, Value};

#[test]
fn a_writer_sees_what_it_wrote_before() {
    let fleet = TestFleet::start(4, 3, 2, 64, NodeConfig::default());
    let (database, worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:Counter {`~id`: 'c', n: 0})").unwrap();
    let mut in_the_past = 0;
    for n in 1..=300_i64 {
        let text = "MATCH (c:Counter) WHERE id(c) = 'c' SET c.n = c.n + 1 RETURN c.n";
        assert_eq!(ask(&database, OpenCypher, text).unwrap().rows, [[Value::Long(n)]]);
        // Creates another vertex, which was not written recently.
        ask(&database, OpenCypher, &format!("CREATE (:Other {{`~id`: 'o{n}'}})")).unwrap();
        // A writing query finds what was written a moment ago, and so does one that writes nothing in the end.
        let merged = format!("MERGE (o:Other {{`~id`: 'o{n}'}}) ON CREATE SET o.again = true RETURN o.again");
        assert_eq!(ask(&database, OpenCypher, &merged).unwrap().rows, [[Value::Null]]);
        let deleted = format!("MATCH (o:Other) WHERE id(o) = 'o{n}' DETACH DELETE o RETURN 1");
        assert_eq!(ask(&database, OpenCypher, &deleted).unwrap().rows.len(), 1);
        if let Some(snapshot) = worker.applied_snapshot() {
            assert!(snapshot.at.version < worker.status().version);
            in_the_past += 1;
        }
    }
    assert!(in_the_past > 0, "nothing was read in the past");
    assert_eq!(rows(&database, OpenCypher, "MATCH (o:Other) RETURN count(o)"), ["[Long(0)]"]);
}

/// Repeats a query until no other writer conflicts with it.
fn until_it_wins(database: &Database, text: &str) {
    while let Err(error) = ask(database, OpenCypher, text) {
        assert_eq!(error.code(), ErrorCode::ConcurrentModification, "{error}");
    }
}

#[test]
fn writers_at_several_workers_lose_nothing() {
    const EACH: i64 = 60;
    let fleet = TestFleet::start(4, 3, 2, 64, NodeConfig::default());
    let workers: Vec<_> = (0..3).map(|_| fleet.worker()).collect();
    let (first, _) = &workers[0];
    ask(first, OpenCypher, "UNWIND range(0, 2) AS n CREATE (:Counter {`~id`: 'c' + toString(n), n: 0})")
        .unwrap();
    std::thread::scope(|scope| {
        for (database, _) in &workers {
            scope.spawn(move || {
                // Another worker learns of the counters after some milliseconds, and finds none until then.
                while rows(database, OpenCypher, "MATCH (c:Counter) RETURN count(c)") != ["[Long(3)]"] {}
                for n in 0..EACH {
                    let one = n % 3;
                    let text = format!("MATCH (c:Counter) WHERE id(c) = 'c{one}' SET c.n = c.n + 1");
                    until_it_wins(database, &text);
                    until_it_wins(database, &format!("MERGE (:Shared {{`~id`: 's{n}'}})"));
                }
            });
        }
    });
    // The first worker learns of the others' last commits after some milliseconds.
    let newest = workers.iter().map(|(_, worker)| worker.status().version).max().unwrap();
    fleet.wait_until("the first worker knows of all", |_| workers[0].1.status().version >= newest);
    let sum = rows(first, OpenCypher, "MATCH (c:Counter) RETURN sum(c.n)");
    assert_eq!(sum, [format!("[Long({})]", 3 * EACH)]);
    assert_eq!(rows(first, OpenCypher, "MATCH (s:Shared) RETURN count(s)"), [format!("[Long({EACH})]")]);
}
