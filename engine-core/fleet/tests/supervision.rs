//! A node whose thread panics does not stay in the map without applying records.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{GRAPH, Log, TestFleet, ask, rows};
use tidegraph_cluster::{MapStore, NodeState};
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::NodeConfig;
use tidegraph_log::{Follower, LogBackend, LogStore, Position, Record};
use tidegraph_types::{Epoch, ShardId};

/// A log whose readers panic from a moment on.
struct PanickingLog {
    log: Log,
    panics: Arc<AtomicBool>,
}

struct PanickingReader {
    reader: Box<dyn Follower>,
    panics: Arc<AtomicBool>,
}

impl LogBackend for PanickingLog {
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        Box::new(PanickingReader { reader: self.log.follow(shard, after), panics: self.panics.clone() })
    }

    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        self.log.open(epoch)
    }
}

impl Follower for PanickingReader {
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, tidegraph_log::Error> {
        assert!(!self.panics.load(Ordering::Acquire), "a defect of the test");
        self.reader.next(at_most)
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, tidegraph_log::Error> {
        self.reader.is_near_end(within)
    }
}

#[test]
fn a_node_whose_feed_panics_leaves_the_map_with_the_reason() {
    let mut fleet = TestFleet::start(2, 2, 2, 64, NodeConfig::default());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:Person {n: 1})").unwrap();
    // A third node, which then has all replicas beside the first two.
    let panics = Arc::new(AtomicBool::new(false));
    fleet.join_with("failing", Arc::new(PanickingLog { log: fleet.log.clone(), panics: panics.clone() }));
    fleet.assign_all_to("failing");
    let failing = fleet.members.pop().unwrap();
    assert_eq!(failing.node.failure(), None);
    panics.store(true, Ordering::Release);
    fleet.wait_until("the node fails", |_| failing.node.failure().is_some());
    let reason = failing.node.failure().unwrap();
    assert!(reason.contains("feed 0") && reason.contains("a defect of the test"), "{reason}");
    assert_eq!(failing.node.status()["failure"], reason.as_str());
    let state = |fleet: &TestFleet| fleet.map.load(GRAPH, None).unwrap().node(&failing.id).unwrap().state;
    fleet.wait_until("the map knows", |fleet| state(fleet) == NodeState::Gone);
    // Its other threads have ended, so nothing joins again.
    failing.node.stop();
    assert_eq!(state(&fleet), NodeState::Gone);
    ask(&database, OpenCypher, "CREATE (:Person {n: 2})").unwrap();
    assert_eq!(rows(&database, OpenCypher, "MATCH (p:Person) RETURN count(p)"), ["[Long(2)]"]);
}
