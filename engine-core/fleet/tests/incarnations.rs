//! A graph that is dropped, and made again under its name: processes that knew the first one never answer for the next one,
//! and nothing of the first one is written when its data has been removed.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use support::{GRAPH, TestFleet, ask, patient, rows};
use tidegraph_cluster::{Change, MapStore, NodeState, Release, Upgrade, UpgradeState, WatchConfig};
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::{NodeConfig, WorkerConfig};

/// A worker of a function: it learns of versions and of the map when a request comes, and is stopped in between.
fn suspended() -> WorkerConfig {
    let watch = WatchConfig { refresh_every: Duration::from_secs(1 << 20) };
    // A write waits this long for a sequencer that takes it.
    let patience = Duration::from_secs(20);
    WorkerConfig { version_every: Duration::ZERO, watch, patience, ..patient() }
}

/// Ends all processes of a fleet but its workers, and returns one with the next graph of the name in the same map.
fn made_again(mut fleet: TestFleet) -> TestFleet {
    fleet.map.begin_drop(GRAPH).unwrap();
    fleet.stop_sequencer();
    let names: Vec<String> = fleet.members.iter().map(|member| member.id.to_string()).collect();
    names.iter().for_each(|name| drop(fleet.kill(name)));
    fleet.map.finish_drop(GRAPH);
    let mut next = TestFleet::without_graph(fleet.graph.clone(), fleet.config.clone());
    next.map = fleet.map.clone();
    next.map.create_graph(&next.graph).unwrap();
    next.start_processes(2);
    next
}

/// Shows MAP-5.
#[test]
fn a_worker_that_was_stopped_meanwhile_does_not_go_on_in_the_next_graph() {
    let fleet = TestFleet::start(2, 2, 2, 64, NodeConfig::default());
    let (database, worker) = fleet.worker_with(suspended(), fleet.clock.clone());
    ask(&database, OpenCypher, "CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Bob'})").unwrap();
    assert_eq!(rows(&database, OpenCypher, "MATCH (n:Person) RETURN count(n)"), ["[Long(2)]"]);

    let fleet = made_again(fleet);
    let (next, _next_worker) = fleet.worker();
    for n in 0..5 {
        ask(&next, OpenCypher, &format!("CREATE (:Order {{number: {n}}})-[:ITEM]->(:Part)")).unwrap();
    }
    assert!(!worker.refresh_version(), "it is not welcome");
    assert!(worker.is_dropped());
    for query in ["MATCH (n) RETURN labels(n)", "CREATE (:Person {name: 'Eve'})"] {
        let refused = ask(&database, OpenCypher, query).unwrap_err();
        assert_eq!(refused.code(), tidegraph_types::ErrorCode::Unavailable, "{refused}");
    }
    // It stays so, whatever the next graph does.
    ask(&next, OpenCypher, "CREATE (:Order {number: 9})").unwrap();
    assert!(!worker.refresh_version() && worker.is_dropped());
    let labels = "MATCH (n) UNWIND labels(n) AS label RETURN DISTINCT label ORDER BY label";
    let text = rows(&next, OpenCypher, labels).join(" ");
    assert!(text.contains("Order") && text.contains("Part") && !text.contains("Person"), "{text}");
}

#[test]
fn a_node_gives_signs_of_life_until_it_has_written_its_last_checkpoint() {
    let config = NodeConfig {
        checkpoint_versions: 1,
        beat: Duration::from_millis(20),
        watch: WatchConfig { refresh_every: Duration::from_millis(20) },
        ..NodeConfig::default()
    };
    let mut fleet = TestFleet::start(1, 1, 1, 64, config);
    let (database, _worker) = fleet.worker();
    let (reached, at_gate) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    fleet.map.meanwhile("note a checkpoint", 0, move || {
        reached.send(()).unwrap();
        // The end of the test opens it too.
        let _ = gate.recv();
    });
    ask(&database, OpenCypher, "CREATE (:Person)").unwrap();
    at_gate.recv().unwrap();
    // Its objects are written, and its note is not.
    fleet.map.begin_drop(GRAPH).unwrap();
    fleet.wait_until("the node sees it", |fleet| fleet.members[0].node.is_dropped());
    let member = Arc::new(fleet.members.remove(0));
    let stopping = member.clone();
    let stopped = tidegraph_platform::spawn("stopping", move || stopping.node.stop()).unwrap();
    let counter = |fleet: &TestFleet| fleet.map.heartbeats(GRAPH).unwrap()[&member.id].counter;
    let begun = counter(&fleet);
    fleet.wait_until("it gives signs of life", |fleet| counter(fleet) > begun + 20);
    assert!(!stopped.is_finished());
    drop(open);
    stopped.join().unwrap();
    assert_eq!(fleet.map.checkpoints(GRAPH).unwrap(), [], "no note of a graph that is being dropped");
}

#[test]
fn a_node_that_was_lost_does_not_join_an_upgraded_fleet_again() {
    let config = NodeConfig {
        beat: Duration::from_millis(20),
        watch: WatchConfig { refresh_every: Duration::from_millis(20) },
        ..NodeConfig::default()
    };
    let fleet = TestFleet::start(1, 2, 1, 64, config);
    let lost = &fleet.members[0];
    let this = Release::THIS;
    let upgraded = |floor| Upgrade {
        serial: 1,
        release: this,
        state: UpgradeState::Finished,
        holder: "h".into(),
        capacity: 2,
        launched: false,
        reason: String::new(),
        floor: Some(floor),
    };
    let gone = Change::SetNode { node: lost.id.clone(), state: NodeState::Gone };
    let state = |fleet: &TestFleet| fleet.map.load(GRAPH, None).unwrap().node(&lost.id).unwrap().state;
    let now = upgraded(this);
    fleet.map.write_upgrade(GRAPH, None, &now).unwrap();
    fleet.map.change(GRAPH, None, std::slice::from_ref(&gone)).unwrap();
    fleet.wait_until("it joins again", |fleet| state(fleet) == NodeState::Up);
    assert_eq!(lost.node.failure(), None);

    let next = Upgrade { serial: 2, ..upgraded(Release { minor: this.minor + 1, patch: 0, ..this }) };
    fleet.map.write_upgrade(GRAPH, Some(&now), &next).unwrap();
    fleet.map.change(GRAPH, None, &[gone]).unwrap();
    fleet.wait_until("it gives up", |_| lost.node.failure().is_some());
    assert_eq!(state(&fleet), NodeState::Gone);
    let reason = lost.node.failure().unwrap();
    assert!(reason.contains("may not join again") && reason.contains("never downgraded"), "{reason}");
}
