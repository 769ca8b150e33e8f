//! The suite of tests that every [`MapStore`] passes. Only with the feature `testing`.

// A suite reports by failed assertions.
#![allow(clippy::unwrap_used)]

use crate::{
    AppliedVersions, Change, Checkpoint, Claim, Election, ElectionConfig, ElectionState, Error, Graph,
    Heartbeat, Lease, MOST_ITEMS, MapStore, NodeId, NodeRelease, NodeState, PartitionMap, Registration,
    Release, ReplicaState, Role, SEQUENCER, Upgrade, UpgradeState, change_all,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_platform::{Clock, ManualClock};
use tidegraph_types::{Epoch, PartitionCount, PartitionId, Version};

/// Runs the suite. Each graph that it creates has a new name.
///
/// # Panics
/// When the store does not do what [`MapStore`] promises.
pub fn map_test_suite(store: &Arc<dyn MapStore>) {
    graphs_are_created_once(&**store);
    nodes_register_again(&**store);
    replicas_go_through_their_states(&**store);
    changes_are_made_together_or_not(&**store);
    maps_of_many_items_are_whole(&**store);
    a_refreshed_snapshot_changes_no_map(&**store);
    writers_at_once_lose_nothing(store);
    signs_of_life_are_no_changes(&**store);
    checkpoints_only_get_newer(&**store);
    splits_change_what_readers_ask(&**store);
    releases_are_of_processes(&**store);
    an_upgrade_is_written_by_one(&**store);
    an_upgrade_and_a_split_exclude_each_other(&**store);
    leases_have_one_holder(&**store);
    elections_hand_over(store);
    only_one_of_many_is_elected(store);
}

/// Returns the properties of a graph with a name that no other test uses.
pub(crate) fn graph(partitions: u16) -> Graph {
    static MADE: AtomicU64 = AtomicU64::new(0);
    graph_named(&format!("graph-{}", MADE.fetch_add(1, Ordering::Relaxed)), partitions)
}

/// Returns the properties of a graph with one shard and two replicas of each partition. A test changes what it is about.
///
/// # Panics
/// If `partitions` is no power of two.
#[must_use]
pub fn graph_named(name: &str, partitions: u16) -> Graph {
    Graph {
        name: name.into(),
        partitions: PartitionCount::new(partitions).unwrap(),
        shards: 1,
        hash_bits: 64,
        replication_factor: 2,
        gremlin: Default::default(),
        splits: Default::default(),
        shares_objects: false,
    }
}

pub(crate) fn new_graph(store: &dyn MapStore, partitions: u16) -> String {
    let graph = graph(partitions);
    store.create_graph(&graph).unwrap();
    graph.name
}

pub(crate) fn id(n: usize) -> NodeId {
    NodeId::new(&format!("node-{n:03}")).unwrap()
}

pub(crate) fn register(n: usize) -> Change {
    Change::Register(Registration {
        id: id(n),
        zone: format!("zone-{}", n % 3),
        endpoint: format!("10.0.0.{n}:7000"),
        capacity_bytes: 1 << 40,
        roles: [Role::Storage, Role::Sequencer].into(),
    })
}

fn add(partition: u16, n: usize) -> Change {
    Change::AddReplica { partition: PartitionId(partition), node: id(n) }
}

fn set(partition: u16, n: usize, state: ReplicaState) -> Change {
    Change::SetReplica { partition: PartitionId(partition), node: id(n), state }
}

fn drop_replica(partition: u16, n: usize) -> Change {
    Change::DropReplica { partition: PartitionId(partition), node: id(n) }
}

fn serve(partition: u16, n: usize) -> [Change; 3] {
    let states = [ReplicaState::CatchingUp, ReplicaState::Serving];
    [add(partition, n), set(partition, n, states[0]), set(partition, n, states[1])]
}

fn load(store: &dyn MapStore, graph: &str) -> Arc<PartitionMap> {
    store.load(graph, None).unwrap()
}

fn graphs_are_created_once(store: &dyn MapStore) {
    assert!(matches!(store.load("nowhere", None), Err(Error::NotFound { .. })));
    assert!(matches!(store.change("nowhere", None, &[register(1)]), Err(Error::NotFound { .. })));
    let first = graph(4);
    for _ in 0..2 {
        store.create_graph(&first).unwrap();
    }
    let other = Graph { replication_factor: 3, ..first.clone() };
    assert!(matches!(store.create_graph(&other), Err(Error::Exists { .. })));
    let map = load(store, &first.name);
    assert_eq!((map.graph(), map.epoch(), map.nodes().count()), (&first, Epoch(1), 0));
    assert_eq!(map.partitions().count(), 4);
    assert!(map.replicas(PartitionId(3)).is_empty() && map.replicas(PartitionId(4)).is_empty());
    assert!(Arc::ptr_eq(&store.load(&first.name, Some(&map)).unwrap(), &map));
}

fn nodes_register_again(store: &dyn MapStore) {
    let name = &new_graph(store, 2);
    assert_eq!(store.change(name, None, &[register(1)]).unwrap(), Epoch(2));
    let known = load(store, name);
    let node = known.node(&id(1)).unwrap();
    assert_eq!((node.state, node.generation, node.zone.as_str()), (NodeState::Joining, 1, "zone-1"));
    assert_eq!(node.roles, [Role::Storage, Role::Sequencer].into());
    let up = Change::SetNode { node: id(1), state: NodeState::Up };
    assert_eq!(store.change(name, Some(Epoch(2)), std::slice::from_ref(&up)).unwrap(), Epoch(3));
    // The node is already up.
    assert_eq!(store.change(name, None, std::slice::from_ref(&up)).unwrap(), Epoch(3));
    let stale = store.change(name, Some(Epoch(2)), &[up]).unwrap_err();
    assert!(matches!(stale, Error::Stale { expected: Epoch(2), found: Epoch(3) }), "{stale}");
    assert_eq!(store.change(name, None, &[register(1)]).unwrap(), Epoch(4));
    let map = store.load(name, Some(&known)).unwrap();
    let node = map.node(&id(1)).unwrap();
    assert_eq!((map.epoch(), node.state, node.generation), (Epoch(4), NodeState::Joining, 2));
    assert_eq!(*map, *load(store, name));
    let gone = |state| Change::SetNode { node: id(1), state };
    store.change(name, None, &[gone(NodeState::Gone)]).unwrap();
    let refused = store.change(name, None, &[gone(NodeState::Up)]).unwrap_err();
    assert_eq!(refused.to_string(), "cannot make node node-001 up: it is gone");
    let missing = store.change(name, None, &[Change::SetNode { node: id(9), state: NodeState::Up }]);
    assert!(matches!(missing, Err(Error::NotFound { .. })));
}

/// Shows MAP-2, among others.
fn replicas_go_through_their_states(store: &dyn MapStore) {
    let name = &new_graph(store, 4);
    let up = |n| Change::SetNode { node: id(n), state: NodeState::Up };
    store.change(name, None, &[register(1), register(2), up(1), up(2)]).unwrap();
    assert!(matches!(store.change(name, None, &[add(4, 1)]), Err(Error::NotFound { .. })));
    assert!(matches!(store.change(name, None, &[add(0, 7)]), Err(Error::NotFound { .. })));
    assert!(matches!(
        store.change(name, None, &[set(0, 1, ReplicaState::Serving)]),
        Err(Error::NotFound { .. })
    ));
    store.change(name, None, &[add(0, 2)]).unwrap();
    let refused = store.change(name, None, &[set(0, 2, ReplicaState::Serving)]).unwrap_err();
    assert_eq!(refused.to_string(), "cannot make partition 0 on node node-002 serving: it is restoring");
    assert!(load(store, name).serving(PartitionId(0)).is_empty());
    store.change(name, None, &serve(0, 2)).unwrap();
    store.change(name, None, &[add(0, 1)]).unwrap();
    let map = load(store, name);
    assert_eq!(map.replicas(PartitionId(0)).iter().map(|r| &r.node).collect::<Vec<_>>(), [&id(1), &id(2)]);
    let serving = |map: &PartitionMap| -> Vec<NodeId> {
        map.serving(PartitionId(0)).into_iter().map(|(id, _)| id.clone()).collect()
    };
    assert_eq!(serving(&map), [id(2)]);
    assert_eq!(map.held_by(&id(1)).count(), 1);
    // A replica that does not answer yet cannot replace the old one.
    let refused = store.change(name, None, &[drop_replica(0, 2)]).unwrap_err();
    assert!(refused.to_string().contains("no other replica answers reads"), "{refused}");
    store.change(name, None, &serve(0, 1)).unwrap();
    assert_eq!(serving(&load(store, name)), [id(1), id(2)]);
    store.change(name, None, &[set(0, 1, ReplicaState::Leaving)]).unwrap();
    assert_eq!(serving(&load(store, name)), [id(2), id(1)]);
    store.change(name, None, &[drop_replica(0, 1)]).unwrap();
    store.change(name, None, &[drop_replica(0, 1)]).unwrap();
    assert!(matches!(store.change(name, None, &[drop_replica(0, 2)]), Err(Error::Refused { .. })));
    // A node that starts again answers no reads, whatever the state of its replicas is.
    store.change(name, None, &[register(2)]).unwrap();
    assert_eq!(serving(&load(store, name)), []);
    store.change(name, None, &[Change::SetNode { node: id(1), state: NodeState::Draining }]).unwrap();
    let refused = store.change(name, None, &[add(1, 1)]).unwrap_err();
    assert!(refused.to_string().contains("the node is draining"), "{refused}");
}

fn changes_are_made_together_or_not(store: &dyn MapStore) {
    let name = &new_graph(store, 256);
    let epoch = store.change(name, None, &[register(1)]).unwrap();
    let known = load(store, name);
    assert!(store.change(name, None, &[add(0, 1), add(1, 9)]).is_err());
    let map = store.load(name, Some(&known)).unwrap();
    assert_eq!((map.epoch(), map.replicas(PartitionId(0)).len()), (epoch, 0));
    let many: Vec<Change> = (0..MOST_ITEMS as u16).map(|p| add(p, 1)).collect();
    let refused = store.change(name, None, &many).unwrap_err();
    assert!(matches!(refused, Error::TooMany { found: 100, limit: MOST_ITEMS, .. }), "{refused}");
    assert_eq!(store.change(name, None, &many[1..]).unwrap(), Epoch(epoch.0 + 1));
    assert_eq!(store.change(name, None, &[]).unwrap(), Epoch(epoch.0 + 1));
}

/// Shows MAP-1.
fn maps_of_many_items_are_whole(store: &dyn MapStore) {
    let name = &new_graph(store, 512);
    change_all(store, name, &[register(1), register(2), register(3)]).unwrap();
    let changes: Vec<Change> = (0..512).flat_map(|p| [add(p, 1), add(p, 2), add(p, 3)]).collect();
    change_all(store, name, &changes).unwrap();
    let known = load(store, name);
    assert!(known.partitions().all(|(_, replicas)| replicas.len() == 3));
    assert_eq!(known.held_by(&id(2)).count(), 512);
    store.change(name, None, &[drop_replica(7, 2), drop_replica(511, 3)]).unwrap();
    let next = store.load(name, Some(&known)).unwrap();
    assert_eq!(next.replicas(PartitionId(7)).len() + next.replicas(PartitionId(511)).len(), 4);
    assert_eq!(next.epoch(), Epoch(known.epoch().0 + 1));
    assert_eq!(*next, *load(store, name));
}

fn a_refreshed_snapshot_changes_no_map(store: &dyn MapStore) {
    let name = &new_graph(store, 256);
    change_all(store, name, &[register(1), register(2)]).unwrap();
    change_all(store, name, &(0..256).map(|p| add(p, 1)).collect::<Vec<_>>()).unwrap();
    let mut known = load(store, name);
    for partitions in [0..0, 0..3, 3..90, 90..256] {
        change_all(store, name, &partitions.map(|p| add(p, 2)).collect::<Vec<_>>()).unwrap();
        let next = store.load(name, Some(&known)).unwrap();
        assert_eq!(*next, *load(store, name));
        // Of an earlier map too.
        for map in [&known, &next] {
            store.refresh_snapshot(name, map).unwrap();
            assert_eq!(*next, *load(store, name));
        }
        known = next;
    }
    assert!(matches!(store.refresh_snapshot("nowhere", &known), Err(Error::NotFound { .. })));
}

/// Shows MAP-1 and MAP-4.
fn splits_change_what_readers_ask(store: &dyn MapStore) {
    let name = &new_graph(store, 2);
    let (four, made) = (PartitionCount::new(4).unwrap(), load(store, name).graph().clone());
    change_all(store, name, &[register(1), register(2)]).unwrap();
    for partition in 0..2 {
        store.change(name, None, &serve(partition, 1)).unwrap();
    }
    let refused = store.change(name, None, &[add(4, 1)]).unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    let known = load(store, name);
    let begun = store.change(name, None, &[Change::BeginSplit { into: four }]).unwrap();
    assert_eq!(begun, Epoch(known.epoch().0 + 1));
    assert_eq!(store.change(name, None, &[Change::BeginSplit { into: four }]).unwrap(), begun);
    for partition in 4..8 {
        store.change(name, None, &serve(partition, 2)).unwrap();
    }
    // A reader that knew the graph before the split reads only what changed.
    let during = store.load(name, Some(&known)).unwrap();
    assert_eq!((during.graph().partitions, during.graph().splits.into), (made.partitions, Some(four)));
    assert_eq!((during.partitions().count(), during.held().count()), (2, 6));
    assert_eq!(during.held_by(&id(2)).count(), 4);
    assert_eq!(*during, *load(store, name));
    let complete = [Change::CompleteSplit { into: four }];
    assert!(matches!(store.change(name, Some(begun), &complete), Err(Error::Stale { .. })));
    store.change(name, Some(during.epoch()), &complete).unwrap();
    let after = store.load(name, Some(&during)).unwrap();
    assert_eq!(after.partitions().map(|(partition, _)| partition.0).collect::<Vec<_>>(), [4, 5, 6, 7]);
    assert_eq!(after.graph().splits.from, Some(made.partitions));
    assert!(matches!(store.change(name, None, &[drop_replica(4, 2)]), Err(Error::Refused { .. })));
    store.change(name, None, &[drop_replica(0, 1), drop_replica(1, 1), Change::EndSplit]).unwrap();
    let end = store.load(name, Some(&known)).unwrap();
    assert_eq!((end.held().count(), end.graph().splits.from), (4, None));
    assert_eq!(end.graph().unsplit(), made);
    assert_eq!(*end, *load(store, name));
    store.create_graph(&made).unwrap();
}

/// Shows MAP-1.
fn writers_at_once_lose_nothing(store: &Arc<dyn MapStore>) {
    let name = &new_graph(&**store, 64);
    std::thread::scope(|scope| {
        for n in 0..4 {
            scope.spawn(move || {
                store.change(name, None, &[register(n)]).unwrap();
                for partition in 0..6 {
                    store.change(name, None, &serve(partition, n)).unwrap();
                }
            });
        }
        // Meanwhile a reader sees complete maps, with growing epochs.
        scope.spawn(move || {
            let mut known = load(&**store, name);
            while known.epoch() < Epoch(1 + 4 * 7) {
                let next = store.load(name, Some(&known)).unwrap();
                assert!(next.epoch() >= known.epoch());
                assert_eq!(next.is_torn(), None);
                known = next;
            }
        });
    });
    let map = load(&**store, name);
    assert_eq!(map.epoch(), Epoch(1 + 4 * 7));
    assert!((0..6).all(|p| map.replicas(PartitionId(p)).len() == 4));
}

fn signs_of_life_are_no_changes(store: &dyn MapStore) {
    let name = &new_graph(store, 4);
    let epoch = store.change(name, None, &[register(1)]).unwrap();
    assert!(store.heartbeats(name).unwrap().is_empty());
    let applied = AppliedVersions((0..4).map(|p| (PartitionId(p), Version(u64::from(p) / 2))).collect());
    let reason = "a segment is missing".to_owned();
    let stuck = vec![crate::StuckReplica { partition: PartitionId(0), version: Version(1), reason }];
    let beat = Heartbeat { generation: 1, counter: 1, disk_full: false, used_bytes: 7, applied, stuck };
    store.heartbeat(name, &id(1), &beat).unwrap();
    let next = Heartbeat { generation: 2, counter: 0, disk_full: true, ..beat.clone() };
    store.heartbeat(name, &id(1), &next).unwrap();
    assert_eq!(store.heartbeats(name).unwrap(), [(id(1), next.clone())].into());
    assert!(next.is_newer_than(&beat));
    // A heartbeat of the process that ran before the node registered again.
    let late = Heartbeat { counter: 99, ..beat };
    assert!(matches!(store.heartbeat(name, &id(1), &late), Err(Error::Conflict { .. })));
    assert_eq!(store.heartbeats(name).unwrap().len(), 1);
    assert_eq!(load(store, name).epoch(), epoch);
}

fn releases_are_of_processes(store: &dyn MapStore) {
    let name = &new_graph(store, 4);
    let epoch = store.change(name, None, &[register(1)]).unwrap();
    assert!(store.releases(name).unwrap().is_empty());
    let of = |generation, patch| NodeRelease { generation, release: Release { major: 1, minor: 10, patch } };
    for stated in [of(1, 0), of(1, 0), of(2, 3)] {
        store.note_release(name, &id(1), &stated).unwrap();
    }
    // A process that ran before the node registered again.
    assert!(matches!(store.note_release(name, &id(1), &of(1, 9)), Err(Error::Conflict { .. })));
    assert_eq!(store.releases(name).unwrap(), [(id(1), of(2, 3))].into());
    assert_eq!(load(store, name).epoch(), epoch);
    assert!(matches!(store.releases("nowhere"), Err(Error::NotFound { .. })));
}

/// The first state of an upgrade.
fn upgrade_begun() -> Upgrade {
    Upgrade {
        serial: 1,
        release: Release { major: 0, minor: 2, patch: 0 },
        state: UpgradeState::Running,
        holder: "a".into(),
        capacity: 3,
        launched: false,
        reason: String::new(),
        floor: None,
    }
}

/// Shows UPG-1.
fn an_upgrade_is_written_by_one(store: &dyn MapStore) {
    let name = &new_graph(store, 4);
    assert_eq!(store.upgrade(name).unwrap(), None);
    let first = upgrade_begun();
    store.write_upgrade(name, None, &first).unwrap();
    let theirs = Upgrade { holder: "b".into(), ..first.clone() };
    let conflict = store.write_upgrade(name, None, &theirs).unwrap_err();
    assert!(conflict.to_string().contains("the upgrade to 0.2.0 of a is running"), "{conflict}");
    let done = Upgrade {
        serial: 2,
        state: UpgradeState::Finished,
        launched: true,
        floor: Some(first.release),
        ..first.clone()
    };
    store.write_upgrade(name, Some(&first), &done).unwrap();
    assert!(matches!(store.write_upgrade(name, Some(&first), &theirs), Err(Error::Conflict { .. })));
    assert_eq!(store.upgrade(name).unwrap(), Some(done));
}

/// Each of the two looks first that the other does not run.
fn an_upgrade_and_a_split_exclude_each_other(store: &dyn MapStore) {
    let name = &new_graph(store, 4);
    let eight = PartitionCount::new(8).unwrap();
    let begun = upgrade_begun();
    let begin_split = [Change::BeginSplit { into: eight }];
    // A split that was checked before the upgrade began.
    let checked = load(store, name).epoch();
    store.write_upgrade(name, None, &begun).unwrap();
    // An earlier attempt wrote it.
    store.write_upgrade(name, None, &begun).unwrap();
    let stale = store.change(name, Some(checked), &begin_split).unwrap_err();
    assert!(matches!(stale, Error::Stale { .. }), "{stale}");
    // What does not begin an upgrade changes no map.
    let running = load(store, name).epoch();
    let launched = Upgrade { serial: 2, launched: true, ..begun.clone() };
    store.write_upgrade(name, Some(&begun), &launched).unwrap();
    let stopped = Upgrade { serial: 3, state: UpgradeState::Stopped, ..launched.clone() };
    store.write_upgrade(name, Some(&launched), &stopped).unwrap();
    assert_eq!(load(store, name).epoch(), running);
    // An upgrade that was checked before the split began.
    store.change(name, Some(running), &begin_split).unwrap();
    let again = Upgrade { serial: 4, ..begun.clone() };
    let refused = store.write_upgrade(name, Some(&stopped), &again).unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("a split of the graph"), "{refused}");
    assert_eq!(store.upgrade(name).unwrap().as_ref(), Some(&stopped));
    store.change(name, None, &[Change::AbortSplit]).unwrap();
    store.write_upgrade(name, Some(&stopped), &again).unwrap();
    let conflict =
        store.write_upgrade(name, Some(&stopped), &Upgrade { holder: "b".into(), ..again.clone() });
    assert!(matches!(conflict, Err(Error::Conflict { .. })), "{conflict:?}");
    assert_eq!(store.upgrade(name).unwrap(), Some(again));
}

fn checkpoints_only_get_newer(store: &dyn MapStore) {
    let name = &new_graph(store, 4);
    let checkpoint = |p, v| Checkpoint {
        partition: PartitionId(p),
        version: Version(v),
        prefix: format!("checkpoints/p{p:04}/{v}"),
    };
    for (p, v) in [(3, 5), (1, 10), (1, 9), (1, 11), (3, 5)] {
        store.note_checkpoint(name, &checkpoint(p, v)).unwrap();
    }
    assert_eq!(store.checkpoints(name).unwrap(), [checkpoint(1, 11), checkpoint(3, 5)]);
    assert!(matches!(store.note_checkpoint(name, &checkpoint(4, 1)), Err(Error::NotFound { .. })));
}

fn claim(holder: &str) -> Claim {
    let endpoint = format!("{holder}:1");
    Claim { holder: holder.into(), endpoint, ttl: Duration::from_secs(10), above: Epoch(0) }
}

/// Shows MAP-3.
fn leases_have_one_holder(store: &dyn MapStore) {
    let name = &new_graph(store, 1);
    assert_eq!(store.lease(name, SEQUENCER).unwrap(), None);
    let take = |seen: Option<&Lease>, who: &str| store.take_lease(name, SEQUENCER, seen, &claim(who));
    let first = take(None, "a").unwrap();
    assert_eq!((first.epoch, first.ttl_ms, first.endpoint.as_str()), (Epoch(1), 10_000, "a:1"));
    assert!(matches!(take(None, "b"), Err(Error::Conflict { .. })));
    let renewed = store.renew_lease(name, SEQUENCER, &first).unwrap();
    assert_eq!(store.lease(name, SEQUENCER).unwrap().as_ref(), Some(&renewed));
    // The lease was renewed after `b` had seen it.
    assert!(matches!(take(Some(&first), "b"), Err(Error::Conflict { .. })));
    // The holder missed an answer and does not know its own counter.
    let renewed = store.renew_lease(name, SEQUENCER, &renewed).unwrap();
    let second = take(Some(&renewed), "b").unwrap();
    assert_eq!((second.epoch, second.holder.as_str()), (Epoch(2), "b"));
    assert!(matches!(store.renew_lease(name, SEQUENCER, &renewed), Err(Error::Conflict { .. })));
    assert!(matches!(store.release_lease(name, SEQUENCER, &renewed), Err(Error::Conflict { .. })));
    store.release_lease(name, SEQUENCER, &second).unwrap();
    assert!(matches!(store.renew_lease(name, SEQUENCER, &second), Err(Error::Conflict { .. })));
    let free = store.lease(name, SEQUENCER).unwrap().unwrap();
    assert!(free.is_free() && free.epoch == Epoch(2));
    let above = Claim { above: Epoch(40), ..claim("c") };
    let third = store.take_lease(name, SEQUENCER, Some(&free), &above).unwrap();
    assert_eq!(third.epoch, Epoch(41));
    // Other leases are independent.
    assert_eq!(store.lease(name, "rebalance").unwrap(), None);
}

fn election(store: &Arc<dyn MapStore>, clock: &Arc<ManualClock>, graph: &str, who: &str) -> Election {
    let clock: Arc<dyn Clock> = clock.clone();
    let config = ElectionConfig {
        ttl: Duration::from_secs(1),
        renew_every: Duration::from_millis(100),
        margin_percent: 20,
    };
    Election::new(store.clone(), clock, graph, SEQUENCER, claim(who), config)
}

fn holds(standing: ElectionState) -> Arc<crate::Tenure> {
    match standing {
        ElectionState::Held(tenure) => tenure,
        ElectionState::Waiting(lease) => panic!("waits for {lease:?}"),
    }
}

/// Shows MAP-3.
fn elections_hand_over(store: &Arc<dyn MapStore>) {
    let name = &new_graph(&**store, 1);
    // The two clocks are independent.
    let (clock_a, clock_b) = (Arc::new(ManualClock::default()), Arc::new(ManualClock::default()));
    clock_b.advance(Duration::from_secs(12_345));
    let (mut a, mut b) = (election(store, &clock_a, name, "a"), election(store, &clock_b, name, "b"));
    let waits =
        |standing: ElectionState| assert!(matches!(standing, ElectionState::Waiting(_)), "{standing:?}");
    let tenure = holds(a.step().unwrap());
    assert!(tenure.is_sure() && tenure.epoch() == Epoch(1));
    // While the lease is renewed, no other candidate gets it.
    for _ in 0..30 {
        waits(b.step().unwrap());
        clock_a.advance(Duration::from_millis(500));
        clock_b.advance(Duration::from_millis(500));
        assert!(holds(a.step().unwrap()).is_sure());
    }
    // `a` stops renewing: its own time ends first, and then `b` may take the lease.
    waits(b.step().unwrap());
    for passed in (100..=1200).step_by(100) {
        clock_a.advance(Duration::from_millis(100));
        clock_b.advance(Duration::from_millis(100));
        let standing = b.step().unwrap();
        assert_eq!(tenure.is_sure(), passed < 1000, "{passed}");
        assert_eq!(matches!(standing, ElectionState::Held(_)), passed >= 1200, "{passed}");
    }
    assert!(!tenure.has_ended());
    waits(a.step().unwrap());
    assert!(tenure.has_ended() && !tenure.is_sure());
    // After it is given back, no candidate has to wait.
    b.give_back();
    assert_eq!(holds(a.step().unwrap()).epoch(), Epoch(3));
}

/// Shows MAP-3.
fn only_one_of_many_is_elected(store: &Arc<dyn MapStore>) {
    let name = &new_graph(&**store, 1);
    let holders: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn(move || {
                    let clock = Arc::new(ManualClock::default());
                    let mut election = election(store, &clock, name, &format!("n{n}"));
                    matches!(election.step().unwrap(), ElectionState::Held(_))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(holders.iter().filter(|holds| **holds).count(), 1, "{holders:?}");
}
