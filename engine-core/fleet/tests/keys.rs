//! Writes that a client repeats under its key at any worker, over a take-over, happen once (TXN-4).

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use support::{TestFleet, rows};
use tidegraph_cluster::MapStore;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::{Answer, Database, Error, Parameters, Query};
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{ErrorCode, Version};

/// Number of requests that the sequencer remembers in a test.
const REMEMBERED: usize = 64;
const COUNT: &str = "MATCH (n:N) RETURN count(n)";

fn ask(database: &Database, key: &str, since: Version, text: &str) -> Result<Answer, Error> {
    let none = Parameters::default();
    database.query(&Query { key: Some(key), at_least: Some(since), ..Query::new(OpenCypher, text, &none) })
}

#[test]
fn a_write_that_is_repeated_at_another_worker_and_sequencer_happens_once() {
    let mut fleet = TestFleet::start(1, 2, 2, 8, NodeConfig::default());
    let (one, _worker) = fleet.worker();
    let (other, _other_worker) = fleet.worker();
    let since = support::ask(&one, OpenCypher, "RETURN 1").unwrap().version;
    let text = "CREATE (n:N {i: 1}) RETURN n.i";
    let first = ask(&one, "k", since, text).unwrap();
    assert!(!first.repeated && first.rows.len() == 1);
    for round in 0..2 {
        for database in [&one, &other] {
            let again = ask(database, "k", since, text).unwrap();
            assert!(again.repeated && again.rows.is_empty() && again.version == first.version, "{again:?}");
            assert_eq!(rows(database, OpenCypher, COUNT), ["[Long(1)]"]);
            let reused = ask(database, "k", since, "CREATE (:N {i: 2})").unwrap_err();
            assert_eq!(reused.code(), ErrorCode::IdempotencyKeyReused);
        }
        if round == 0 {
            fleet.stop_sequencer();
            fleet.start_sequencer();
        }
    }
}

#[test]
fn workers_that_send_one_key_at_once_write_once() {
    let fleet = TestFleet::start(1, 1, 1, 8, NodeConfig::default());
    let workers = [fleet.worker(), fleet.worker()];
    let since = support::ask(&workers[0].0, OpenCypher, "RETURN 1").unwrap().version;
    for round in 0..10 {
        let (start, key) = (Barrier::new(4), format!("k{round}"));
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let (database, start, key) = (&workers[n % 2].0, &start, &key);
                    scope.spawn(move || {
                        start.wait();
                        ask(database, key, since, "CREATE (n:N) RETURN 1").unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(answers.iter().all(|answer| answer.version == answers[0].version), "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| answer.rows.len() == 1).count(), 1, "{answers:?}");
    }
    let newest = workers[0].0.status().version;
    let none = Parameters::default();
    let read = Query { at_least: Some(Version(newest)), ..Query::new(OpenCypher, COUNT, &none) };
    assert_eq!(workers[1].0.query(&read).unwrap().rows[0][0].as_i64(), Some(10));
}

#[test]
fn a_key_that_a_take_over_forgot_is_in_doubt() {
    let beat = Duration::from_millis(50);
    let config = NodeConfig { checkpoint_versions: 3, beat, ..NodeConfig::default() };
    let mut fleet = TestFleet::start(1, 1, 1, 8, config);
    let (database, _worker) = fleet.worker();
    let since = support::ask(&database, OpenCypher, "RETURN 1").unwrap().version;
    let first = ask(&database, "k", since, "CREATE (:N)").unwrap();
    for _ in 0..8 {
        support::ask(&database, OpenCypher, "CREATE (:Other)").unwrap();
    }
    fleet.wait_until("a checkpoint has the write", |fleet| {
        let noted = fleet.map.checkpoints(support::GRAPH).unwrap();
        !noted.is_empty() && noted.iter().all(|noted| noted.version >= first.version)
    });
    // The next sequencer reads nothing below the checkpoint.
    fleet.candidate.asked_again = 0;
    fleet.stop_sequencer();
    fleet.start_sequencer();
    let error = ask(&database, "k", since, "CREATE (:N)").unwrap_err();
    assert_eq!(error.code(), ErrorCode::CommitOutcomeUnknown);
    assert_eq!(rows(&database, OpenCypher, COUNT), ["[Long(1)]"]);
}

#[test]
fn a_write_that_read_before_the_ids_that_are_known_is_committed() {
    let mut fleet = TestFleet::start(1, 1, 1, 8, NodeConfig::default());
    fleet.stop_sequencer();
    // Many more commits come while the slow one is computed, and fewer while it is on its way to the sequencer.
    fleet.candidate.sequencer.remembered_requests = REMEMBERED;
    fleet.start_sequencer();
    let workers = [fleet.worker(), fleet.worker()];
    let slow = "UNWIND range(1, 2000000) AS i WITH max(i) AS m CREATE (n:Slow {m: m}) RETURN n.m";
    let (done, quick) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                support::ask(&workers[1].0, OpenCypher, "CREATE (:Quick)").unwrap();
                quick.fetch_add(1, Ordering::Relaxed);
            }
        });
        let tries = (0..20).map(|_| {
            let before = quick.load(Ordering::Relaxed);
            let written = support::ask(&workers[0].0, OpenCypher, slow);
            (written.map(|answer| answer.rows[0][0].as_i64()), quick.load(Ordering::Relaxed) - before)
        });
        let mut tries = tries.skip_while(|(written, quick)| written.is_ok() && *quick <= 2 * REMEMBERED);
        let found = tries.next();
        done.store(true, Ordering::Relaxed);
        let (written, _) = found.expect("enough commits come while the slow one is computed");
        assert_eq!(written.unwrap(), Some(2_000_000));
    });
}
