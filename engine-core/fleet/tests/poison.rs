//! Records of the log that replicas cannot apply.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::{GRAPH, Log, TestFleet, ask, rows};
use tidegraph_cluster::{Change, MapStore, NodeId};
use tidegraph_engine::Backend;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::NodeConfig;
use tidegraph_log::{Body, Follower, LogBackend, LogStore, Position, Record};
use tidegraph_types::{Epoch, ErrorCode, PartitionCount, PartitionId, ShardId};

const PARTITIONS: u16 = 2;
const SEGMENT: &str = "loads/lost/p00000-1";
const COUNT: &str = "MATCH (p:Person) RETURN count(p)";
/// Longer than the pause after which a node tries to restore a stuck replica.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// A log whose commits above a version cannot be applied: they name a segment that does not exist.
#[derive(Clone)]
struct PoisonedLog {
    log: Log,
    /// The version; `u64::MAX`: all commits can be applied.
    above: Arc<AtomicU64>,
}

struct PoisonedReader {
    reader: Box<dyn Follower>,
    above: Arc<AtomicU64>,
}

impl PoisonedLog {
    fn of(fleet: &TestFleet) -> Self {
        Self { log: fleet.log.clone(), above: Arc::new(AtomicU64::new(u64::MAX)) }
    }
}

impl LogBackend for PoisonedLog {
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        Box::new(PoisonedReader { reader: self.log.follow(shard, after), above: self.above.clone() })
    }

    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        self.log.open(epoch)
    }
}

impl Follower for PoisonedReader {
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, tidegraph_log::Error> {
        let mut record = self.reader.next(at_most)?;
        if let Some(record) = &mut record
            && record.version.0 > self.above.load(Ordering::Acquire)
            && let Body::Commit { next_sid, .. } = &record.body
        {
            let segments = vec![SEGMENT.into()];
            record.body = Body::Load { load_id: "lost".into(), segments, next_sid: *next_sid };
        }
        Ok(record)
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, tidegraph_log::Error> {
        self.reader.is_near_end(within)
    }
}

/// Whether a node answers reads of all partitions, by the map.
fn serves_all(fleet: &TestFleet, node: &str) -> bool {
    let map = fleet.map.load(GRAPH, None).unwrap();
    let serves = |partition| map.serving(partition).iter().any(|(id, _)| id.as_str() == node);
    PartitionCount::new(PARTITIONS).unwrap().all().all(serves)
}

/// Whether all replicas of a node answer reads and are stuck at the same record, by its status.
fn is_stuck(fleet: &TestFleet, node: &str) -> bool {
    let member = fleet.members.iter().find(|member| member.id.as_str() == node).unwrap();
    let status = member.node.status();
    let replicas = status["replicas"].as_array().unwrap();
    let stuck = |replica: &&serde_json::Value| {
        replica["ready"] == true
            && replica["stuckAt"].is_u64()
            && replica["error"].as_str().is_some_and(|error| error.contains(SEGMENT))
    };
    replicas.iter().filter(stuck).count() == usize::from(PARTITIONS)
}

#[test]
fn a_record_that_no_replica_can_apply_stops_writes_and_reads_go_on() {
    let mut fleet = TestFleet::start(PARTITIONS, 1, 1, 64, NodeConfig::default());
    let _maintenance = fleet.maintain();
    let log = PoisonedLog::of(&fleet);
    for name in ["a", "b"] {
        fleet.join_with(name, Arc::new(log.clone()));
        fleet.assign_all_to(name);
    }
    let n0 = NodeId::new("n0").unwrap();
    for partition in (0..PARTITIONS).map(PartitionId) {
        fleet.map.change(GRAPH, None, &[Change::DropReplica { partition, node: n0.clone() }]).unwrap();
    }
    let (database, worker) = fleet.worker();
    let good = ask(&database, OpenCypher, "CREATE (:Person {n: 1})").unwrap().version;
    log.above.store(good.0, Ordering::Release);
    // The commit is in the log, so it is acknowledged. No replica can apply it.
    let poison = ask(&database, OpenCypher, "CREATE (:Person {n: 2})").unwrap().version;
    fleet.wait_until("both nodes are stuck", |fleet| is_stuck(fleet, "a") && is_stuck(fleet, "b"));
    fleet.wait_until("writes stop", |_| !worker.status().writable);
    assert_eq!(worker.fleet_status()["haltedVersion"], poison.0);
    let is_refused = || {
        let error = ask(&database, OpenCypher, "CREATE (:Person {n: 3})").unwrap_err();
        let text = error.to_string();
        assert_eq!(error.code(), ErrorCode::Unavailable, "{text}");
        for part in ["writes are stopped", "partition 0", &format!("version {poison}"), SEGMENT] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    };
    is_refused();
    // This worker committed the record, and another one never read a version below it.
    let (other, other_worker) = fleet.worker();
    assert_eq!(rows(&database, OpenCypher, COUNT), ["[Long(1)]"]);
    assert_eq!(rows(&other, OpenCypher, COUNT), ["[Long(1)]"]);
    assert!(!other_worker.status().writable);

    // A node that starts again cannot apply the record either, and answers reads before it.
    let stopped = fleet.kill("a");
    stopped.node.stop();
    fleet.join_with("a", Arc::new(log.clone()));
    fleet.wait_until("it serves", |fleet| serves_all(fleet, "a") && is_stuck(fleet, "a"));
    let stopped = fleet.kill("b");
    stopped.node.stop();
    assert_eq!(rows(&database, OpenCypher, COUNT), ["[Long(1)]"]);
    is_refused();

    // The cause is removed: the node restores its replicas beside the stuck ones, and writes go on.
    log.above.store(u64::MAX, Ordering::Release);
    fleet.wait_until("writes go on", |fleet| {
        fleet.node_clock.advance(RETRY_PAUSE);
        worker.status().writable && other_worker.status().writable
    });
    assert_eq!(worker.fleet_status()["haltedVersion"], serde_json::Value::Null);
    assert_eq!(rows(&other, OpenCypher, COUNT), ["[Long(2)]"]);
    ask(&database, OpenCypher, "CREATE (:Person {n: 3})").unwrap();
    assert_eq!(rows(&database, OpenCypher, COUNT), ["[Long(3)]"]);
}

#[test]
fn a_record_that_one_replica_cannot_apply_breaks_that_replica_only() {
    let mut fleet = TestFleet::start(PARTITIONS, 1, 1, 64, NodeConfig::default());
    let _maintenance = fleet.maintain();
    let log = PoisonedLog::of(&fleet);
    fleet.join_with("a", Arc::new(log.clone()));
    fleet.assign_all_to("a");
    let (database, worker) = fleet.worker();
    let good = ask(&database, OpenCypher, "CREATE (:Person {n: 1})").unwrap().version;
    log.above.store(good.0, Ordering::Release);
    ask(&database, OpenCypher, "CREATE (:Person {n: 2})").unwrap();
    fleet.wait_until("the replicas leave the map", |fleet| {
        let map = fleet.map.load(GRAPH, None).unwrap();
        assert!(worker.status().writable);
        map.partitions().all(|(partition, _)| map.serving(partition).len() == 1)
    });
    assert!(!serves_all(&fleet, "a") && serves_all(&fleet, "n0"));
    ask(&database, OpenCypher, "CREATE (:Person {n: 3})").unwrap();
    assert_eq!(rows(&database, OpenCypher, COUNT), ["[Long(3)]"]);
    log.above.store(u64::MAX, Ordering::Release);
    fleet.wait_until("they are restored", |fleet| serves_all(fleet, "a"));
}
