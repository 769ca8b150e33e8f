//! Tests of the steps, over a map in memory.

use super::*;
use crate::testing::{graph, id};
use crate::{Graph, Lease, MemoryMap, Move, Registration, Role, change_all};
use std::time::Duration;
use tidegraph_types::{PartitionCount, PartitionId};

const TTL: Duration = Duration::from_secs(10);

fn register(n: usize) -> [Change; 2] {
    let registration = Registration {
        id: id(n),
        zone: format!("zone-{}", n % 3),
        endpoint: format!("10.0.0.{n}:1"),
        capacity_bytes: 0,
        roles: [Role::Storage].into(),
    };
    [Change::Register(registration), Change::SetNode { node: id(n), state: NodeState::Up }]
}

/// Returns a graph of eight partitions with two replicas each on `nodes` nodes. Nothing is placed yet.
fn fleet(nodes: usize) -> (MemoryMap, String, Rebalance) {
    let store = MemoryMap::default();
    let graph = Graph { partitions: PartitionCount::new(8).unwrap(), ..graph(1) };
    store.create_graph(&graph).unwrap();
    (0..nodes).for_each(|n| change_all(&store, &graph.name, &register(n)).unwrap());
    let rebalance = Rebalance::new(Arc::new(store.clone()), &graph.name);
    (store, graph.name, rebalance)
}

fn bring_up(store: &MemoryMap, graph: &str) {
    let map = store.load(graph, None).unwrap();
    for (partition, replicas) in map.partitions() {
        for replica in replicas.iter().filter(|replica| !replica.state.answers()) {
            for state in [ReplicaState::CatchingUp, ReplicaState::Serving] {
                let change = Change::SetReplica { partition, node: replica.node.clone(), state };
                store.change(graph, None, &[change]).unwrap();
            }
        }
    }
}

/// Plans and advances until nothing is left. Returns the number of calls.
fn finish(store: &MemoryMap, graph: &str, rebalance: &Rebalance, goal: Goal) -> usize {
    for looks in 0..100 {
        let plan = rebalance.plan(goal).unwrap();
        if plan.is_empty() && plan.coming.is_empty() {
            return looks;
        }
        let moves: Vec<Move> = plan.next(4, 2).into_iter().cloned().collect();
        rebalance.advance(&moves).unwrap();
        bring_up(store, graph);
    }
    panic!("no end");
}

#[test]
fn a_graph_is_placed_healed_and_balanced() {
    let (store, graph, rebalance) = fleet(3);
    assert_eq!(rebalance.verify().unwrap(), Coverage { partitions: 8, dark: 8, ..Coverage::default() });
    finish(&store, &graph, &rebalance, Goal::Repair);
    let whole = Coverage { partitions: 8, whole: 8, dark: 0, replicas: 16 };
    assert_eq!(rebalance.verify().unwrap(), whole);
    store.change(&graph, None, &[Change::SetNode { node: id(0), state: NodeState::Gone }]).unwrap();
    assert!(rebalance.verify().unwrap().whole < 8);
    finish(&store, &graph, &rebalance, Goal::Repair);
    assert_eq!(rebalance.verify().unwrap(), whole);
    change_all(&store, &graph, &register(3)).unwrap();
    assert_eq!(finish(&store, &graph, &rebalance, Goal::Repair), 0);
    assert!(finish(&store, &graph, &rebalance, Goal::Balance) > 0);
    let map = store.load(&graph, None).unwrap();
    assert_eq!((map.held_by(&id(0)).count(), rebalance.verify().unwrap()), (0, whole));
    assert!((5..=6).contains(&map.held_by(&id(3)).count()));
}

#[test]
fn a_node_is_drained_and_kept_again() {
    let (store, graph, rebalance) = fleet(4);
    finish(&store, &graph, &rebalance, Goal::Balance);
    assert_eq!(rebalance.drain(&id(1)).unwrap(), NodeState::Draining);
    assert_eq!(rebalance.drain(&id(1)).unwrap(), NodeState::Draining);
    finish(&store, &graph, &rebalance, Goal::Repair);
    assert_eq!(store.load(&graph, None).unwrap().held_by(&id(1)).count(), 0);
    assert_eq!(rebalance.keep(&id(1)).unwrap(), NodeState::Up);
    finish(&store, &graph, &rebalance, Goal::Balance);
    assert_eq!(store.load(&graph, None).unwrap().held_by(&id(1)).count(), 4);
    let unknown = rebalance.drain(&id(9)).unwrap_err().to_string();
    assert!(unknown.contains("node-009"), "{unknown}");
}

#[test]
fn a_move_goes_through_its_stages_and_may_be_asked_for_again() {
    let (store, graph, rebalance) = fleet(3);
    finish(&store, &graph, &rebalance, Goal::Balance);
    let map = store.load(&graph, None).unwrap();
    let held: Vec<NodeId> = map.replicas(PartitionId(0)).iter().map(|one| one.node.clone()).collect();
    let to = (0..3).map(id).find(|node| !held.contains(node)).unwrap();
    let one = Move {
        partition: PartitionId(0),
        to: Some(to.clone()),
        from: Some(held[0].clone()),
        is_begun: false,
        others: 2,
    };
    let stage = || rebalance.advance(std::slice::from_ref(&one)).unwrap().remove(0).stage;
    let set = |state| {
        let change = Change::SetReplica { partition: PartitionId(0), node: to.clone(), state };
        store.change(&graph, None, &[change]).unwrap();
    };
    assert_eq!((stage(), stage()), (Stage::Restoring, Stage::Restoring));
    set(ReplicaState::CatchingUp);
    assert_eq!(stage(), Stage::CatchingUp);
    set(ReplicaState::Serving);
    // Another replica is lost in the meantime, so the old one has to stay.
    let gone = Change::SetNode { node: held[1].clone(), state: NodeState::Gone };
    store.change(&graph, None, &[gone]).unwrap();
    assert_eq!((stage(), stage()), (Stage::Waits, Stage::Waits));
    let number = held[1].as_str().trim_start_matches("node-").parse().unwrap();
    change_all(&store, &graph, &register(number)).unwrap();
    assert_eq!(stage(), Stage::Leaving);
    assert_eq!(store.load(&graph, None).unwrap().replicas(PartitionId(0)).len(), 3);
    assert_eq!((stage(), stage()), (Stage::Done, Stage::Done));
    assert_eq!(store.load(&graph, None).unwrap().replicas(PartitionId(0)).len(), 2);
}

#[test]
fn moves_that_cannot_be_say_why() {
    let (store, graph, rebalance) = fleet(3);
    finish(&store, &graph, &rebalance, Goal::Balance);
    let says = |partition: u16, to: usize| {
        let of = Move {
            partition: PartitionId(partition),
            to: Some(id(to)),
            from: None,
            is_begun: false,
            others: 0,
        };
        match rebalance.advance(&[of]).unwrap().remove(0).stage {
            Stage::Void { reason } => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(says(0, 7).contains("node-007"));
    assert!(says(99, 1).contains("99"));
    store.change(&graph, None, &[Change::SetNode { node: id(1), state: NodeState::Gone }]).unwrap();
    assert!(says(0, 1).contains("gone"));
}

/// Shows MAP-2.
#[test]
fn the_last_replica_stays_whatever_a_move_says() {
    let (store, graph, rebalance) = fleet(1);
    finish(&store, &graph, &rebalance, Goal::Repair);
    let one = Move { partition: PartitionId(0), to: None, from: Some(id(0)), is_begun: false, others: 0 };
    assert_eq!(rebalance.advance(&[one]).unwrap()[0].stage, Stage::Waits);
    assert_eq!(store.load(&graph, None).unwrap().replicas(PartitionId(0)).len(), 1);
}

/// Shows MAP-2.
#[test]
fn two_drops_of_one_partition_are_not_decided_on_together() {
    let (store, graph, rebalance) = fleet(3);
    finish(&store, &graph, &rebalance, Goal::Balance);
    let map = store.load(&graph, None).unwrap();
    let moves: Vec<Move> = map
        .replicas(PartitionId(0))
        .iter()
        .map(|replica| Move {
            partition: PartitionId(0),
            to: None,
            from: Some(replica.node.clone()),
            is_begun: false,
            others: 1,
        })
        .collect();
    for _ in 0..5 {
        rebalance.advance(&moves).unwrap();
        assert!(!store.load(&graph, None).unwrap().serving(PartitionId(0)).is_empty());
    }
}

#[test]
fn one_rebalances_and_the_other_hears_who_does() {
    let (_, _, rebalance) = fleet(1);
    let ours = |acquired: Result<Acquired, Error>| match acquired.unwrap() {
        Acquired::Ours(lease) => lease,
        other => panic!("{other:?}"),
    };
    let theirs = |seen: Option<&Lease>| match rebalance.acquire("b", TTL, seen).unwrap() {
        Acquired::Theirs(lease) => lease,
        other => panic!("{other:?}"),
    };
    ours(rebalance.acquire("a", TTL, None));
    let seen = theirs(None);
    assert_eq!((seen.holder.as_str(), takeover_wait(&seen)), ("a", Duration::from_secs(12)));
    // The lease is in use: `a`, which holds it, gets it again.
    rebalance.renew("a").unwrap();
    let seen = theirs(Some(&seen));
    ours(rebalance.acquire("a", TTL, None));
    let seen = theirs(Some(&seen));
    // The lease has not changed since it was seen, so `b` gets it.
    ours(rebalance.acquire("b", TTL, Some(&seen)));
    let lost = rebalance.renew("a").unwrap_err();
    assert!(matches!(&lost, Error::Conflict { found, .. } if found.contains('b')), "{lost}");
    rebalance.release("a").unwrap();
    rebalance.renew("b").unwrap();
    rebalance.release("b").unwrap();
    rebalance.release("b").unwrap();
    ours(rebalance.acquire("a", TTL, None));
}

#[test]
fn nodes_that_say_nothing_are_lost_whatever_they_were() {
    let (store, graph, rebalance) = fleet(3);
    // This node dies while it starts.
    store.change(&graph, None, &register(2)[..1]).unwrap();
    let generations = |n: usize| store.load(&graph, None).unwrap().node(&id(n)).unwrap().generation;
    let beat = |n: usize, counter| {
        let beat = crate::Heartbeat {
            generation: generations(n),
            counter,
            disk_full: false,
            used_bytes: 0,
            applied: crate::AppliedVersions::default(),
            stuck: vec![],
        };
        store.heartbeat(&graph, &id(n), &beat).unwrap();
    };
    beat(0, 1);
    beat(1, 1);
    let before = rebalance.heartbeat_snapshot().unwrap();
    beat(0, 2);
    // A node that registers again between two snapshots is alive.
    change_all(&store, &graph, &register(3)).unwrap();
    assert_eq!(rebalance.mark_lost(&before).unwrap(), [id(1), id(2)]);
    assert_eq!(rebalance.mark_lost(&before).unwrap(), []);
    // All nodes are silent: the cause is probably the map.
    let before = rebalance.heartbeat_snapshot().unwrap();
    assert_eq!(rebalance.mark_lost(&before).unwrap(), []);
    assert_eq!(rebalance.node_state(&id(2)).unwrap(), NodeState::Gone);
    assert_eq!(rebalance.node_state(&id(3)).unwrap(), NodeState::Up);
}
