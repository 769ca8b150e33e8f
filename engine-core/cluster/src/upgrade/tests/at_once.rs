//! Upgrades that replace several machines at once: how many there are and drain at each step, with the real planner.

use super::*;
use crate::{Claim, SEQUENCER};
use std::time::Duration;
use tidegraph_types::Epoch;

/// Partitions of the graph, with two replicas each.
const PARTITIONS: u16 = 32;

impl World {
    /// A fleet whose nodes have their share, and which is to be upgraded.
    fn placed(nodes: u32, at_once: u32) -> Self {
        let mut world = Self::with(nodes, PARTITIONS);
        let rebalance = Rebalance::new(Arc::new(world.store.clone()), &world.graph);
        loop {
            let plan = rebalance.plan(Goal::Balance).unwrap();
            if plan.is_empty() {
                break;
            }
            rebalance.advance(&plan.moves).unwrap();
            world.bring_up();
        }
        world.check_replicas();
        (world.at_once, world.deployed) = (at_once, NEW);
        world
    }

    fn draining(&self) -> Vec<NodeId> {
        let map = self.map();
        let is_draining = |id: &NodeId| map.node(id).is_some_and(|node| node.state == NodeState::Draining);
        let serving = self.machines.iter().filter(|one| one.in_service && is_draining(&one.node));
        serving.map(|one| one.node.clone()).collect()
    }

    /// Runs steps like [`World::run`], and checks each of them. `nodes` is the size of the group, `most` how many may be
    /// replaced at once. Returns the largest number of nodes that drained together, and the numbers of drains and ends.
    fn checked(&mut self, holder: &str, nodes: u32, most: u32, steps: usize) -> Counts {
        let mut counts = Counts::default();
        for _ in 0..steps {
            let next = self.next(holder).unwrap();
            self.perform(&next);
            let draining = self.draining().len();
            assert!(draining <= most as usize, "{draining} nodes drain at once");
            let staying = self.machines.iter().filter(|one| !one.is_leaving).count();
            assert!(staying <= (nodes + most) as usize, "{staying} machines");
            assert!((nodes..=nodes + most).contains(&self.desired), "{} machines are wanted", self.desired);
            counts.most = counts.most.max(draining);
            counts.drains += usize::from(next.action == Action::Drain);
            counts.ends += usize::from(next.action == Action::End);
            counts.is_done = next.action == Action::Done;
            if counts.is_done {
                break;
            }
        }
        counts
    }

    /// The fleet runs the release, has its own size, and its zones are even.
    fn check_end(&self, nodes: u32, what: &str) {
        assert!(self.is_upgraded(), "{what}");
        assert_eq!((self.desired, self.machines.len()), (nodes, nodes as usize), "{what}");
        let mut zones = [0; 3];
        self.machines.iter().for_each(|one| zones[self.places[number(&one.node)]] += 1);
        assert!(zones.iter().max().unwrap() - zones.iter().min().unwrap() <= 1, "{what}: {zones:?}");
        assert!(self.draining().is_empty(), "{what}");
    }
}

#[derive(Default, Debug)]
struct Counts {
    most: usize,
    drains: usize,
    ends: usize,
    is_done: bool,
}

#[test]
fn after_the_canary_some_machines_are_replaced_at_once() {
    for (nodes, at_once) in [(12, 3), (12, 4), (13, 3), (14, 6), (24, 6), (30, 16), (7, 2), (5, 5), (3, 3)] {
        for (is_lucky, is_slow, plans) in
            [(true, false, 1000), (false, false, 1000), (false, true, 1000), (true, true, 2)]
        {
            let what = format!("{nodes} nodes, {at_once} at once, {is_lucky}, {is_slow}, {plans}");
            let mut world = World { is_lucky, is_slow, plans, ..World::placed(nodes, at_once) };
            world.begin("a").unwrap();
            let counts = world.checked("a", nodes, at_once, 2000);
            assert!(counts.is_done, "{what}: {counts:?}");
            world.check_end(nodes, &what);
            // The batches are full: the canary and the last ones are smaller.
            assert_eq!(counts.most, at_once.min(nodes - 1) as usize, "{what}");
            let batches = 1 + (nodes as usize - 1).div_ceil(at_once as usize);
            // Where the group chose another zone, new machines too many are drained at the end.
            let more = (at_once as usize / 2).max(3);
            assert!(counts.ends <= nodes as usize + more, "{what}: {counts:?}");
            assert!(plans < 1000 || counts.drains <= batches + 3, "{what}: {counts:?} for {batches} batches");
            let ended = world.upgrades().end("a", None).unwrap();
            assert_eq!((ended.state, ended.launched), (UpgradeState::Finished, false), "{what}");
        }
    }
}

#[test]
fn one_is_replaced_until_an_execution_let_a_canary_serve() {
    let mut world = World::placed(12, 3);
    // A machine was lost after the deployment, so that one of the release is there already.
    world.set(&id(5), NodeState::Gone);
    world.join(&id(5), world.places[5]).unwrap();
    world.begin("a").unwrap();
    let done = world.run("a", 3);
    assert_eq!((done[0].as_str(), &done[2][..4], world.desired), ("Launch", "End ", 13));
    assert!(done[1].starts_with("Drain") && done[2].ends_with("(canary)"), "{done:?}");
    let next = world.next("a").unwrap();
    assert_eq!((next.action, next.capacity, next.left), (Action::Launch, 15, 10));
    world.perform(&next);
    let next = world.next("a").unwrap();
    let nodes = world.draining();
    assert_eq!((next.action, nodes.len()), (Action::Drain, 3));
    assert!(next.node.as_ref().is_some_and(|node| nodes.contains(node)), "{next:?} {nodes:?}");
    assert!(next.reason.starts_with("3 machines more than 12 are up: nodes i-"), "{}", next.reason);
    world.perform(&next);
    // The next execution lets one serve again, and goes on with those that are drained.
    world.upgrades().end("a", Some("an alarm")).unwrap();
    world.has_served = false;
    world.begin("b").unwrap();
    let ends: Vec<bool> = (0..3)
        .map(|_| {
            let next = world.next("b").unwrap();
            assert_eq!((next.action, next.is_last), (Action::End, false));
            world.perform(&next);
            next.is_canary
        })
        .collect();
    assert_eq!(ends, [true, false, false]);
    assert_eq!(world.draining(), []);
}

#[test]
fn an_upgrade_of_several_at_once_goes_on_wherever_it_was_stopped() {
    for stop in 0..40 {
        for (is_slow, is_performed, then) in
            [(false, true, 3), (true, true, 1), (true, false, 5), (false, false, 2)]
        {
            let what = format!("stopped after {stop}, {is_slow}, {is_performed}, {then}");
            let mut world = World { is_slow, plans: 3, ..World::placed(10, 3) };
            world.begin("a").unwrap();
            let counts = world.checked("a", 10, 3, stop);
            if !is_performed && !counts.is_done {
                world.next("a").unwrap();
            }
            world.upgrades().end("a", Some("an alarm")).unwrap();
            world.deployed = if stop % 2 == 0 { NEW } else { PATCH };
            (world.at_once, world.has_served) = (then, false);
            world.begin("b").unwrap();
            let counts = world.checked("b", 10, then.max(3), 1000);
            assert!(counts.is_done, "{what}: {counts:?}");
            world.check_end(10, &what);
        }
    }
}

#[test]
fn the_sequencer_is_the_last_of_a_batch() {
    for sequencer in 1..12 {
        let mut world = World::placed(12, 6);
        let claim = Claim {
            holder: "s".into(),
            endpoint: format!("{}:1", id(sequencer)),
            ttl: Duration::from_secs(1),
            above: Epoch(0),
        };
        world.store.take_lease(&world.graph, SEQUENCER, None, &claim).unwrap();
        world.begin("a").unwrap();
        let mut ends: Vec<NodeId> = Vec::new();
        for _ in 0..200 {
            let next = world.next("a").unwrap();
            if next.action == Action::End && next.node == Some(id(sequencer)) {
                assert_eq!(world.draining(), [id(sequencer)], "others of its batch end before it");
                let here = |node: &&NodeId| world.places[number(node)] == sequencer % 3 && number(node) < 12;
                assert_eq!(ends.iter().filter(here).count(), 3, "others of its zone end before it: {ends:?}");
            }
            if next.action == Action::End {
                ends.extend(next.node.clone());
            }
            world.perform(&next);
            if next.action == Action::Done {
                break;
            }
        }
        world.check_end(12, &format!("sequencer {sequencer}"));
    }
}

#[test]
fn a_group_that_cannot_start_all_machines_goes_on_with_fewer() {
    let mut world = World::placed(12, 6);
    world.begin("a").unwrap();
    world.run("a", 3);
    let next = world.next("a").unwrap();
    assert_eq!((next.action, next.capacity), (Action::Launch, 18));
    world.perform(&next);
    // Two of them never come: the zone has no capacity.
    let never = world.machines.split_off(16);
    never.iter().for_each(|one| world.set(&one.node, NodeState::Gone));
    let waits = world.next("a").unwrap();
    assert_eq!((waits.action, waits.reason.as_str()), (Action::Wait, "16 of 18 machines are in service"));
    world.upgrades().end("a", Some("nothing happened for too long")).unwrap();
    world.begin("b").unwrap();
    world.at_once = 2;
    let fewer = world.next("b").unwrap();
    assert_eq!((fewer.action, fewer.capacity), (Action::Launch, 16));
    assert_eq!(fewer.reason, "the group should have 18 machines, and 16 are enough");
    world.perform(&fewer);
    assert!(world.checked("b", 12, 6, 500).is_done);
    world.check_end(12, "with fewer");
}

#[test]
fn a_group_that_may_not_be_as_small_keeps_its_least_size() {
    let mut world = World::placed(6, 3);
    world.begin("a").unwrap();
    world.run("a", 4);
    assert_eq!(world.desired, 9);
    world.upgrades().end("a", Some("an alarm")).unwrap();
    let begin = |least: u32, desired: u32| {
        let size = GroupSize { desired, least };
        let began = world.upgrades().begin("b", NEW.release, size, Some("b")).unwrap();
        let Began::Ours(upgrade) = began else { panic!("{began:?}") };
        (upgrade.capacity, upgrade.launched)
    };
    assert_eq!(begin(0, 9), (6, true));
    // A deployment with more nodes came in between.
    assert_eq!(begin(8, 9), (8, true));
    assert_eq!(begin(12, 12), (12, false));
}

#[test]
fn a_batch_drains_of_all_graphs() {
    let mut world = World::placed(6, 2);
    let other = World { graph: new_graph(&world.store, 1), ..world.of(OLD) };
    (0..6).for_each(|n| other.join(&id(n), n % 3).unwrap());
    [0, 1].into_iter().for_each(|n| other.serve(0, n));
    let newer = other.of(NEW);
    let others = [other.graph.clone()];
    world.upgrades().with(&others).begin("a", NEW.release, size(6), None).unwrap();
    world.has_served = true;
    world.desired = 8;
    world.fill();
    [6, 7].into_iter().for_each(|n| newer.join(&id(n), world.places[n]).unwrap());
    let next = |world: &World| world.upgrades().with(&others).next("a", world.group()).unwrap();
    let first = next(&world);
    let nodes = world.draining();
    assert_eq!((first.action, nodes.as_slice()), (Action::Drain, [id(0), id(1)].as_slice()));
    for node in &nodes {
        assert_eq!(newer.map().node(node).unwrap().state, NodeState::Draining, "{node}");
    }
    // One of them was kept of the other graph by somebody: it is marked again.
    newer.set(&id(1), NodeState::Up);
    world.move_replicas();
    assert_eq!(next(&world).reason, "nodes i-0, i-1 still hold replicas");
    assert_eq!(newer.map().node(&id(1)).unwrap().state, NodeState::Draining);
    newer.move_replicas();
    assert_eq!(next(&world).action, Action::End);
}
