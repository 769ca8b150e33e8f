//! Queries whose replica dies while they run (APL-2), and versions that a request names.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::{TestFleet, ask, rows};
use tidegraph_apl::Error;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::{Backend, Database, Head, Interrupt, Parameters, Query, RowSink, Stop, Transaction};
use tidegraph_fleet::{NodeConfig, WorkerConfig};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{ErrorCode, Value, Version};

thread_local! {
    /// Number of times that this thread may read the clock before the alarm rings; `None`: it never rings.
    static LOOKS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Counts how often one thread reads the clock, and rings at a chosen reading: in the
/// middle of a query, which reads the clock repeatedly.
struct Alarm {
    clock: RealClock,
    looks: AtomicU64,
    rings: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarm").finish_non_exhaustive()
    }
}

impl Clock for Alarm {
    fn now(&self) -> Duration {
        if let Some(left) = LOOKS.get() {
            self.looks.fetch_add(1, Ordering::Relaxed);
            LOOKS.set(Some(left.saturating_sub(1)));
            if left == 1
                && let Some(ring) = self.rings.lock().take()
            {
                ring();
            }
        }
        self.clock.now()
    }

    fn wall(&self) -> jiff::Timestamp {
        self.clock.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}

/// Runs a query while the replica that answers it dies, after the query has read half of what it reads. `run` runs it the
/// first time, and `again` while the replica dies.
fn replica_dies<T>(
    run: impl Fn(&Database, &Query<'_>) -> Vec<Vec<Value>>,
    again: impl FnOnce(&Database, &Query<'_>, &[Vec<Value>]) -> T,
) -> T {
    let config = NodeConfig { beat: Duration::from_millis(50), ..NodeConfig::default() };
    let mut fleet = TestFleet::start(1, 2, 2, 64, config);
    let alarm =
        Arc::new(Alarm { clock: RealClock::new(), looks: AtomicU64::new(0), rings: Mutex::default() });
    let (database, _worker) = fleet.worker_with(support::patient(), alarm.clone());
    ask(&database, OpenCypher, "UNWIND range(0, 19999) AS n CREATE (:Person {n: n})").unwrap();
    let none = Parameters::default();
    let query = Query::new(OpenCypher, "MATCH (a:Person) RETURN a.n", &none);
    let expected = run(&database, &query);
    assert_eq!(expected.len(), 20_000);
    // Finds out which replica answers, and how often the query reads the clock.
    let asked = |fleet: &TestFleet| -> Vec<u64> {
        let requests = |member: &support::Member| member.server.counters().requests.load(Ordering::Relaxed);
        fleet.members.iter().map(requests).collect()
    };
    let before = asked(&fleet);
    LOOKS.set(Some(u64::MAX));
    assert_eq!(run(&database, &query), expected);
    LOOKS.set(None);
    let more: Vec<u64> = asked(&fleet).iter().zip(&before).map(|(after, before)| after - before).collect();
    let name = if more[0] > more[1] { "n0" } else { "n1" };
    assert!(more.iter().max().unwrap() > &4, "the query is asked in pieces: {more:?}");
    let at = fleet.members.iter().position(|member| member.id.as_str() == name).unwrap();
    let support::Member { server, node, .. } = fleet.members.remove(at);
    let server = Arc::new(Mutex::new(server));
    let dies = server.clone();
    *alarm.rings.lock() = Some(Box::new(move || dies.lock().stop()));
    LOOKS.set(Some(alarm.looks.load(Ordering::Relaxed) / 2));
    let result = again(&database, &query, &expected);
    LOOKS.set(None);
    assert!(alarm.rings.lock().is_none(), "it died while the query ran");
    // Now the other replica answers.
    assert_eq!(run(&database, &query), expected);
    // The same holds for a query that writes, up to its commit.
    ask(&database, OpenCypher, "MATCH (a:Person) WHERE a.n < 10 SET a.seen = true").unwrap();
    drop(node);
    result
}

fn alone(database: &Database, query: &Query<'_>) -> Vec<Vec<Value>> {
    database.query(query).unwrap().rows
}

fn within(database: &Database, query: &Query<'_>) -> Vec<Vec<Value>> {
    let mut transaction = Transaction::new(None, None, false);
    let rows = database.query_within(&mut transaction, query).unwrap().rows;
    database.commit_transaction(transaction).unwrap();
    rows
}

#[test]
fn a_query_whose_replica_dies_between_two_pieces_is_run_again() {
    replica_dies(alone, |database, query, expected| assert_eq!(alone(database, query), expected));
}

#[test]
fn a_query_of_a_transaction_whose_replica_dies_is_run_again() {
    replica_dies(within, |database, query, expected| assert_eq!(within(database, query), expected));
}

/// Counts the rows that it takes.
struct Counts(usize);

impl RowSink for Counts {
    fn take(&mut self, _: &Head, rows: Vec<Vec<Value>>, _: &dyn Interrupt) -> Result<(), Stop> {
        self.0 += rows.len();
        Ok(())
    }
}

#[test]
fn a_query_whose_first_rows_have_left_is_not_run_again() {
    let (error, rows) = replica_dies(within, |database, query, _| {
        let mut transaction = Transaction::new(None, None, false);
        let mut sink = Counts(0);
        let error = database.stream_within(&mut transaction, query, &mut sink).unwrap_err();
        let ended = database.query_within(&mut transaction, query).unwrap_err();
        assert_eq!(ended.code(), ErrorCode::BadRequest, "{ended}");
        (error, sink.0)
    });
    assert_eq!(error.code(), ErrorCode::Unavailable, "{error}");
    assert!((1..20_000).contains(&rows), "{rows}");
}

#[test]
fn a_version_that_a_request_asks_for_is_waited_for() {
    let fleet = TestFleet::start(2, 2, 2, 64, NodeConfig::default());
    let (first, _first_worker) = fleet.worker();
    let (second, _second_worker) = fleet.worker();
    let parameters = Parameters::default();
    let reads = Query::new(OpenCypher, "MATCH (a:A) RETURN max(a.n)", &parameters);
    for n in 0..50 {
        let written = ask(&first, OpenCypher, &format!("CREATE (:A {{n: {n}}})")).unwrap();
        let seen = second.query(&Query { at_least: Some(written.version), ..reads }).unwrap();
        assert!(seen.version >= written.version);
        assert_eq!(seen.rows, [[tidegraph_types::Value::Long(n)]]);
    }
    // This version does not exist.
    let newest = second.status().version;
    let far =
        Query { at_least: Some(Version(newest + 1_000)), timeout: Some(Duration::from_secs(2)), ..reads };
    let refused = second.query(&far).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable, "{refused}");
    assert!(refused.to_string().contains(&format!("version {}", newest + 1_000)), "{refused}");
}

#[test]
fn what_a_long_query_reads_is_kept_and_no_longer_than_that() {
    let config = NodeConfig {
        window: Duration::from_millis(100),
        // The test advances the clock past it.
        pin_lease: Duration::from_secs(600),
        beat: Duration::from_millis(50),
        ..NodeConfig::default()
    };
    let fleet = TestFleet::start(2, 2, 2, 64, config);
    let (writes, _writer) = fleet.worker();
    let (pin_after, pin_every) = (Duration::from_millis(1), Duration::from_millis(10));
    let config = WorkerConfig { pin_after, pin_every, ..support::patient() };
    let (reads, worker) = fleet.worker_with(config, fleet.clock.clone());
    let kept = |fleet: &TestFleet, version: Option<Version>| {
        let version = version.map(|version| version.0);
        fleet.members.iter().all(|member| member.node.status()["keptVersion"].as_u64() == version)
    };
    let is_too_old = |at| {
        let mut found = Vec::new();
        match writes.apl().resolve_vertices(at, &["a".into()], &mut found) {
            Ok(()) => false,
            Err(Error::TooOld { .. }) => true,
            Err(error) => panic!("{error}"),
        }
    };
    for ends_by_itself in [false, true] {
        let written = ask(&writes, OpenCypher, "CREATE (:A {n: 0})").unwrap().version;
        let parameters = Parameters::default();
        let read = Query { at_least: Some(written), ..Query::new(OpenCypher, "RETURN 1", &parameters) };
        reads.query(&read).unwrap();
        let long = reads.snapshot().unwrap();
        assert!(long.at.version >= written);
        fleet.wait_until("it is kept", |fleet| kept(fleet, Some(long.at.version)));
        for n in 0..5 {
            ask(&writes, OpenCypher, &format!("MATCH (a:A) SET a.n = {n}")).unwrap();
            fleet.node_clock.advance(Duration::from_millis(60));
        }
        assert!(!is_too_old(long.at), "it is read still");
        let at = long.at;
        if ends_by_itself {
            // The worker seems to die in the middle of its query. Only the end of the lease releases the pin.
            worker.stop();
            assert!(kept(&fleet, Some(at.version)));
            fleet.node_clock.advance(Duration::from_secs(601));
        } else {
            drop(long);
        }
        fleet.wait_until("it is let go", |fleet| kept(fleet, None));
        ask(&writes, OpenCypher, "MATCH (a:A) SET a.n = 7").unwrap();
        fleet.wait_until("older versions are forgotten", |_| is_too_old(at));
    }
}

/// A process that is stopped between requests asks for the newest version only when one begins. So a write that
/// conflicts has to learn of the version that it conflicted with.
#[test]
fn a_write_that_conflicts_runs_again_with_what_it_conflicted_with() {
    let fleet = TestFleet::start(2, 1, 1, 64, NodeConfig::default());
    let (other, _worker) = fleet.worker();
    let config = WorkerConfig { version_every: Duration::ZERO, ..support::patient() };
    let (one, worker) = fleet.worker_with(config, fleet.clock.clone());
    ask(&other, OpenCypher, "CREATE (:P {n: 0})").unwrap();
    assert!(worker.refresh_version());
    let before = worker.status().version;
    ask(&other, OpenCypher, "MATCH (p:P) SET p.n = p.n + 1").unwrap();
    assert_eq!(worker.status().version, before);
    ask(&one, OpenCypher, "MATCH (p:P) SET p.n = p.n + 1").unwrap();
    assert_eq!(rows(&one, OpenCypher, "MATCH (p:P) RETURN p.n"), ["[Long(2)]"]);
}
