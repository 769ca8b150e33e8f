//! A node that starts again restores its replicas from the copies on its disk.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[path = "support/gate.rs"]
mod gate;
mod support;

use gate::Gate;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use support::{GRAPH, TestFleet, ask, rows};
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{Change, MapStore, NodeId};
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::{LocalCopies, NodeConfig};
use tidegraph_platform::{FaultyDisk, Objects};
use tidegraph_storage::Manifest;
use tidegraph_types::PartitionId;

fn copies(near: &Objects) -> Option<Arc<LocalCopies>> {
    Some(Arc::new(LocalCopies::open(near.clone()).unwrap()))
}

/// Paths of the copies, sorted.
fn paths(near: &Objects) -> Vec<String> {
    near.list("").unwrap().into_iter().map(|object| object.path).collect()
}

/// Paths of the objects that the checkpoints need which the map notes, sorted.
fn needed(fleet: &TestFleet) -> Vec<String> {
    let noted = fleet.map.checkpoints(GRAPH).unwrap();
    let manifests = noted.iter().filter_map(|noted| Manifest::latest(&fleet.objects, &noted.prefix).unwrap());
    let mut paths: Vec<String> = manifests
        .flat_map(|manifest| manifest.objects().map(|object| object.path.clone()).collect::<Vec<_>>())
        .collect();
    paths.sort_unstable();
    paths
}

/// Waits until the copies are those that the newest checkpoints need.
fn wait_for_copies(fleet: &TestFleet, near: &Objects, checkpoints: usize) {
    fleet.wait_until("the newest checkpoints are copied", |fleet| {
        // Another look is due.
        fleet.node_clock.advance(Duration::from_secs(60));
        let needed = needed(fleet);
        fleet.map.checkpoints(GRAPH).unwrap().len() == checkpoints
            && !needed.is_empty()
            && paths(near) == needed
    });
}

const COUNT: &str = "MATCH (a:Person)-[k:KNOWS]->(b) RETURN count(*), sum(a.n), sum(b.n)";

#[test]
fn a_node_that_starts_again_needs_no_object_that_it_has_copied() {
    let config =
        NodeConfig { checkpoint_versions: 1, beat: Duration::from_millis(50), ..NodeConfig::default() };
    let mut fleet = TestFleet::start(2, 0, 1, 64, config);
    let near = Objects::memory().unwrap();
    fleet.copies = copies(&near);
    fleet.join("n0");
    fleet.assign_all_to("n0");
    let (database, _worker) = fleet.worker();
    let people = "UNWIND range(0, 199) AS n CREATE (:Person {n: n})-[:KNOWS]->(:Person {n: -n})";
    ask(&database, OpenCypher, people).unwrap();
    let expected = rows(&database, OpenCypher, COUNT);
    wait_for_copies(&fleet, &near, 2);

    drop(fleet.kill("n0"));
    let away: Vec<(String, Vec<u8>)> = needed(&fleet)
        .into_iter()
        .map(|path| (path.clone(), fleet.objects.get(&path).unwrap().to_vec()))
        .collect();
    for (path, _) in &away {
        fleet.objects.delete(path).unwrap();
    }
    fleet.copies = copies(&near);
    fleet.join("n0");
    fleet.wait_until("it serves again", |fleet| {
        let map = fleet.map.load(GRAPH, None).unwrap();
        map.graph().partitions.all().all(|partition| map.serving(partition).len() == 1)
    });
    assert_eq!(rows(&database, OpenCypher, COUNT), expected);
    for (path, bytes) in away {
        fleet.objects.put(&path, bytes).unwrap();
    }

    // A newer checkpoint takes the place of the older one, and another node's copies are those of its own replicas.
    ask(&database, OpenCypher, "MATCH (a:Person) WHERE a.n > 0 SET a.n = a.n + 1000").unwrap();
    let expected = rows(&database, OpenCypher, COUNT);
    wait_for_copies(&fleet, &near, 2);
    let other = Objects::memory().unwrap();
    fleet.copies = copies(&other);
    fleet.hand_all_to("n1");
    wait_for_copies(&fleet, &other, 2);
    fleet.wait_until("n0 has removed copies of what it no longer holds", |fleet| {
        fleet.node_clock.advance(Duration::from_secs(60));
        paths(&near).is_empty()
    });
    assert_eq!(rows(&database, OpenCypher, COUNT), expected);
}

/// The copies are a cache, and a node that is being restored needs its disk for property pages.
#[test]
fn copies_make_room_while_a_replica_is_restored() {
    let config = NodeConfig {
        checkpoint_versions: 1,
        beat: Duration::from_millis(50),
        restores_at_once: 1,
        ..NodeConfig::default()
    };
    let mut fleet = TestFleet::without_graph(graph_named(GRAPH, 2), config);
    let (objects, gate) = Gate::objects();
    fleet.objects = objects;
    fleet.map.create_graph(&fleet.graph).unwrap();
    fleet.start_processes(1);
    let (database, _worker) = fleet.worker();
    ask(
        &database,
        OpenCypher,
        "UNWIND range(0, 199) AS n CREATE (:Person {n: n})-[:KNOWS]->(:Person {n: -n})",
    )
    .unwrap();
    let expected = rows(&database, OpenCypher, COUNT);
    // A node with copies of one of two partitions.
    let (near, disk) = (Objects::memory().unwrap(), FaultyDisk::new(1));
    let opened = LocalCopies::open(near.clone()).unwrap();
    fleet.copies = Some(Arc::new(opened.on_disk(Arc::new(disk.clone()), PathBuf::from("/copies"), 1 << 20)));
    fleet.join("a");
    let (a, [first, second]) = (NodeId::new("a").unwrap(), [PartitionId(0), PartitionId(1)]);
    let add = |fleet: &TestFleet, partition| {
        fleet.map.change(GRAPH, None, &[Change::AddReplica { partition, node: a.clone() }]).unwrap();
    };
    let serves = |fleet: &TestFleet, partition| {
        let map = fleet.map.load(GRAPH, None).unwrap();
        map.serving(partition).iter().any(|(id, _)| **id == a)
    };
    add(&fleet, first);
    let is_copied = |fleet: &TestFleet| {
        fleet.node_clock.advance(Duration::from_secs(60));
        let copied = paths(&near);
        fleet.map.checkpoints(GRAPH).unwrap().len() == 2
            && !copied.is_empty()
            && needed(fleet).iter().filter(|path| path.contains("p00000")).eq(&copied)
    };
    fleet.wait_until("there are copies", is_copied);

    // The restore of the other one waits, and the disk runs full.
    gate.close("checkpoints/p00001/");
    add(&fleet, second);
    fleet.wait_until("the restore waits", |_| gate.waiting() > 0);
    disk.set_space(Some(0));
    fleet.wait_until("the copies are removed", |_| paths(&near).is_empty());
    assert!(gate.waiting() > 0 && !serves(&fleet, second));

    // There is room again: they are copied again.
    disk.set_space(None);
    gate.open();
    fleet.wait_until("all serve", |fleet| serves(fleet, first) && serves(fleet, second));
    wait_for_copies(&fleet, &near, 2);
    assert_eq!(rows(&database, OpenCypher, COUNT), expected);
}
