//! Upgrades step by step, over a map in memory and a group that does what it is told.

mod at_once;
mod templates;

use super::*;
use crate::testing::new_graph;
use crate::{Change, Goal, MemoryMap, Move, Rebalance, Registration, ReplicaState, Role, change_all};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidegraph_types::{PartitionCount, PartitionId};

const OLD: Lineage = Lineage { release: release(0, 1, 4), follows: None };
const NEW: Lineage = Lineage { release: release(0, 2, 0), follows: Some(Line { major: 0, minor: 1 }) };
const PATCH: Lineage = Lineage { release: release(0, 2, 1), ..NEW };
const LATER: Lineage = Lineage { release: release(0, 3, 0), follows: Some(Line { major: 0, minor: 2 }) };

const fn release(major: u32, minor: u32, patch: u32) -> Release {
    Release { major, minor, patch }
}

fn template(version: u32) -> MachineTemplate {
    MachineTemplate { id: "lt-1".into(), version: version.to_string() }
}

fn id(n: usize) -> NodeId {
    NodeId::new(&format!("i-{n}")).unwrap()
}

/// A fleet and its group. New machines run `deployed`, in the zone with the fewest.
struct World {
    /// Whether the group, of zones with as few machines, takes one with a machine of an earlier release.
    is_lucky: bool,
    /// Whether a machine starts or ends between two steps, and not in one.
    is_slow: bool,
    /// Plans of an execution that drains.
    plans: usize,
    at_once: u32,
    has_served: bool,
    store: MemoryMap,
    graph: String,
    deployed: Lineage,
    machines: Vec<Machine>,
    /// What the group starts machines from.
    template: MachineTemplate,
    /// Zones of all machines that were started, by their numbers.
    places: Vec<usize>,
    desired: u32,
}

impl World {
    /// A fleet of one graph with four partitions, each on two nodes.
    fn new(nodes: u32) -> Self {
        let world = Self::with(nodes, 4);
        for partition in 0..4 {
            for n in 0..2 {
                world.serve(partition, (usize::from(partition) + n) % nodes as usize);
            }
        }
        world
    }

    /// A fleet whose graph has no replicas yet.
    fn with(nodes: u32, partitions: u16) -> Self {
        let store = MemoryMap::default();
        let graph = new_graph(&store, partitions);
        let mut world = Self {
            is_lucky: false,
            is_slow: false,
            plans: 1000,
            at_once: 1,
            has_served: false,
            store,
            graph,
            deployed: OLD,
            machines: vec![],
            template: template(1),
            places: vec![],
            desired: nodes,
        };
        world.fill();
        world
    }

    /// The same graph without a group, where nodes join with another release.
    fn of(&self, deployed: Lineage) -> Self {
        let (store, graph, template) = (self.store.clone(), self.graph.clone(), self.template.clone());
        Self { store, graph, template, deployed, machines: vec![], places: vec![], desired: 0, ..*self }
    }

    fn serve(&self, partition: u16, n: usize) {
        let (partition, node) = (PartitionId(partition), id(n));
        let mut changes = vec![Change::AddReplica { partition, node: node.clone() }];
        changes.extend([ReplicaState::CatchingUp, ReplicaState::Serving].map(|state| Change::SetReplica {
            partition,
            node: node.clone(),
            state,
        }));
        change_all(&self.store, &self.graph, &changes).unwrap();
    }

    fn map(&self) -> Arc<PartitionMap> {
        self.store.load(&self.graph, None).unwrap()
    }

    /// The group launches machines until it has as many as it should.
    fn fill(&mut self) {
        while (self.machines.iter().filter(|one| !one.is_leaving).count() as u32) < self.desired {
            let (map, releases) = (self.map(), self.store.releases(&self.graph).unwrap());
            let is_new =
                |one: &&Machine| release_of(&map, &releases, &one.node) == Some(self.deployed.release);
            let zone = |zone: usize| {
                let is_here = |one: &&Machine| !one.is_leaving && self.places[number(&one.node)] == zone;
                let here: Vec<&Machine> = self.machines.iter().filter(is_here).collect();
                (here.len(), self.is_lucky && here.iter().all(&is_new), zone)
            };
            let (_, _, zone) = (0..3).map(zone).min().unwrap();
            let node = id(self.places.len());
            self.places.push(zone);
            let template = Some(self.template.clone());
            self.machines.push(Machine { node, in_service: false, is_leaving: false, template });
            if !self.is_slow {
                self.settle();
            }
        }
    }

    /// Machines that were launched come up, and those that leave are gone.
    fn settle(&mut self) {
        for machine in &mut self.machines {
            if machine.is_leaving {
                set(&self.store, &self.graph, &machine.node, NodeState::Gone);
            } else if !machine.in_service {
                machine.in_service = true;
            }
        }
        self.machines.retain(|machine| !machine.is_leaving);
        let missing: Vec<NodeId> = self.machines.iter().map(|one| one.node.clone()).collect();
        for node in missing.iter().filter(|node| self.map().node(node).is_none()) {
            self.join(node, self.places[number(node)]).unwrap();
        }
    }

    fn join(&self, node: &NodeId, zone: usize) -> Result<(), Error> {
        check_join(&self.store, &self.graph, node, self.deployed)?;
        let registration = Registration {
            id: node.clone(),
            zone: format!("z{zone}"),
            endpoint: format!("{node}:1"),
            capacity_bytes: 0,
            roles: [Role::Storage].into(),
        };
        change_all(&self.store, &self.graph, &[Change::Register(registration)])?;
        let generation = self.store.load(&self.graph, None)?.node(node).map_or(0, |node| node.generation);
        let stated = NodeRelease { generation, release: self.deployed.release };
        self.store.note_release(&self.graph, node, &stated)?;
        self.set(node, NodeState::Up);
        Ok(())
    }

    fn set(&self, node: &NodeId, state: NodeState) {
        set(&self.store, &self.graph, node, state);
    }

    fn upgrades(&self) -> Upgrades {
        Upgrades::of(Arc::new(self.store.clone()), &self.graph, self.deployed)
    }

    fn begin(&self, holder: &str) -> Result<Began, Error> {
        self.upgrades().begin(holder, self.deployed.release, size(self.desired), None)
    }

    fn group(&self) -> UpgradeGroup<'_> {
        let Self { ref machines, desired, at_once, has_served, ref template, .. } = *self;
        UpgradeGroup { machines, desired, at_once, has_served, template: Some(template) }
    }

    fn next(&self, holder: &str) -> Result<Next, Error> {
        self.upgrades().next(holder, self.group())
    }

    /// Moves replicas as the machine that drains does, which has a limit of plans.
    fn move_replicas(&self) {
        let rebalance = Rebalance::new(Arc::new(self.store.clone()), &self.graph);
        for _ in 0..self.plans {
            let plan = rebalance.plan(Goal::Repair).unwrap();
            if plan.is_empty() && plan.coming.is_empty() {
                return;
            }
            let moves: Vec<Move> = plan.next(64, 4).into_iter().cloned().collect();
            rebalance.advance(&moves).unwrap();
            self.bring_up();
            self.check_replicas();
        }
    }

    /// Replicas that nodes restore serve.
    fn bring_up(&self) {
        for (partition, replicas) in self.map().partitions() {
            for replica in replicas.iter().filter(|replica| !replica.state.answers()) {
                for state in [ReplicaState::CatchingUp, ReplicaState::Serving] {
                    let change = Change::SetReplica { partition, node: replica.node.clone(), state };
                    change_all(&self.store, &self.graph, &[change]).unwrap();
                }
            }
        }
    }

    /// No partition has fewer answering replicas than it should.
    fn check_replicas(&self) {
        let map = self.map();
        for (partition, _) in map.partitions() {
            assert!(map.serving(partition).len() >= 2, "{partition}");
        }
    }

    fn drain(&self, node: &NodeId) {
        self.set(node, NodeState::Draining);
        self.move_replicas();
    }

    /// Does what a step said, as the state machine does.
    fn perform(&mut self, next: &Next) {
        // What the last step began.
        if self.is_slow {
            self.settle();
        }
        match (next.action, &next.node) {
            (Action::Launch, _) => {
                self.desired = next.capacity;
                self.fill();
            }
            (Action::Drain, Some(node)) => self.drain(node),
            (Action::End, Some(node)) => {
                assert_eq!(self.map().held_by(node).count(), 0, "UPG-2");
                self.has_served = true;
                self.machines.iter_mut().filter(|one| one.node == *node).for_each(|one| {
                    (one.in_service, one.is_leaving) = (false, true);
                });
                self.desired -= u32::from(next.is_last);
                self.fill();
            }
            _ => {}
        }
        if !self.is_slow {
            self.settle();
        }
        self.check_replicas();
    }

    /// Runs steps until the upgrade is done or `steps` are over; returns what was done.
    fn run(&mut self, holder: &str, steps: usize) -> Vec<String> {
        let mut done = Vec::new();
        for _ in 0..steps {
            let next = self.next(holder).unwrap();
            let node = next.node.as_ref().map(|node| format!(" {node}")).unwrap_or_default();
            let canary = if next.is_canary { " (canary)" } else { "" };
            done.push(format!("{:?}{node}{canary}", next.action));
            self.perform(&next);
            if next.action == Action::Done {
                break;
            }
        }
        done
    }

    fn is_upgraded(&self) -> bool {
        let map = self.store.load(&self.graph, None).unwrap();
        let releases = self.store.releases(&self.graph).unwrap();
        let all =
            |release| self.machines.iter().all(|one| release_of(&map, &releases, &one.node) == Some(release));
        all(self.deployed.release)
    }

    fn zones(&self) -> BTreeSet<String> {
        let map = self.store.load(&self.graph, None).unwrap();
        self.machines.iter().map(|one| map.node(&one.node).unwrap().zone.clone()).collect()
    }
}

fn set(store: &MemoryMap, graph: &str, node: &NodeId, state: NodeState) {
    change_all(store, graph, &[Change::SetNode { node: node.clone(), state }]).unwrap();
}

fn number(node: &NodeId) -> usize {
    node.as_str()[2..].parse().unwrap()
}

const fn size(desired: u32) -> GroupSize {
    GroupSize { desired, least: 0 }
}

#[test]
fn nodes_are_replaced_one_after_the_other_in_their_zones() {
    let replaced =
        ["Launch", "Drain i-0", "End i-0 (canary)", "Drain i-1", "End i-1", "Drain i-2", "End i-2"];
    for is_lucky in [true, false] {
        let mut world = World::new(3);
        world.is_lucky = is_lucky;
        world.deployed = NEW;
        assert!(matches!(world.begin("a").unwrap(), Began::Ours(_)));
        // If the group starts two in one zone, one of them is too many at the end.
        let last: &[&str] = if is_lucky { &["Done"] } else { &["Drain i-3", "End i-3", "Done"] };
        assert_eq!(world.run("a", 100), [&replaced[..], last].concat());
        assert!(world.is_upgraded());
        assert_eq!((world.desired, world.machines.len(), world.zones().len()), (3, 3, 3));
        let ended = world.upgrades().end("a", None).unwrap();
        assert_eq!((ended.state, ended.floor), (UpgradeState::Finished, Some(NEW.release)));
    }
}

#[test]
fn larger_fleets_stay_even_over_their_zones() {
    for (nodes, is_lucky) in [(6, true), (6, false), (7, false), (9, true), (9, false)] {
        let mut world = World::new(nodes);
        world.is_lucky = is_lucky;
        world.deployed = NEW;
        world.begin("a").unwrap();
        let done = world.run("a", 200);
        assert_eq!(done.last().map(String::as_str), Some("Done"), "{nodes}: {done:?}");
        assert!(world.is_upgraded());
        assert_eq!((world.desired, world.machines.len()), (nodes, nodes as usize));
        let map = world.store.load(&world.graph, None).unwrap();
        let mut zones = [0; 3];
        for machine in &world.machines {
            zones[usize::from(map.node(&machine.node).unwrap().zone.as_bytes()[1] - b'0')] += 1;
        }
        assert!(zones.iter().max().unwrap() - zones.iter().min().unwrap() <= 1, "{nodes}: {zones:?}");
        // No more than one machine more than there are is drained.
        let drains = done.iter().filter(|one| one.starts_with("Drain")).count();
        assert!(drains <= nodes as usize + 1, "{nodes}: {done:?}");
    }
}

#[test]
fn an_upgrade_that_was_stopped_anywhere_goes_on_where_it_stood() {
    for stop in 0..14 {
        let mut world = World::new(3);
        world.deployed = NEW;
        world.begin("a").unwrap();
        world.run("a", stop);
        let stopped = world.upgrades().end("a", Some("an alarm")).unwrap();
        assert_eq!((stopped.state, stopped.reason.as_str()), (UpgradeState::Stopped, "an alarm"));
        // A patch of the release resumes it.
        world.deployed = if stop % 2 == 0 { NEW } else { PATCH };
        assert!(matches!(world.begin("b").unwrap(), Began::Ours(_)), "stopped after {stop}");
        let error = world.next("a").unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "UPG-1: {error}");
        assert_eq!(world.run("b", 100).last().map(String::as_str), Some("Done"), "stopped after {stop}");
        assert!(world.is_upgraded(), "stopped after {stop}");
        assert_eq!((world.desired, world.machines.len()), (3, 3), "stopped after {stop}");
    }
}

#[test]
fn one_of_two_upgrades_runs() {
    let mut world = World::new(3);
    world.deployed = NEW;
    world.begin("a").unwrap();
    let Began::Theirs(theirs) = world.begin("b").unwrap() else { panic!("UPG-1") };
    assert_eq!(theirs.holder, "a");
    // The holder itself may ask again, because an answer may be lost.
    assert!(matches!(world.begin("a").unwrap(), Began::Ours(_)));
    // A holder that is dead is named by who takes over; another one by mistake changes nothing.
    let over = |dead| world.upgrades().begin("b", NEW.release, size(3), Some(dead)).unwrap();
    assert!(matches!(over("c"), Began::Theirs(_)));
    assert!(matches!(over("a"), Began::Ours(_)));
    assert!(world.upgrades().end("a", None).is_err());
}

#[test]
fn a_release_that_is_skipped_or_before_is_refused() {
    let mut world = World::new(3);
    let refused = |world: &World| world.begin("a").unwrap_err().to_string();
    world.deployed = LATER;
    assert_eq!(
        refused(&world),
        "cannot upgrade to 0.3.0: node i-0: 0.3.0 follows 0.2, not 0.1.4: upgrade to 0.2 first"
    );
    let join = world.join(&id(9), 0).unwrap_err().to_string();
    assert!(join.contains("node i-0 is in the fleet, and 0.3.0 follows 0.2, not 0.1.4"), "{join}");
    world.deployed = NEW;
    let other = world.upgrades().begin("a", LATER.release, size(3), None).unwrap_err().to_string();
    assert!(other.contains("the deployed programs are of release 0.2.0"), "{other}");
    world.begin("a").unwrap();
    world.run("a", 2);
    world.upgrades().end("a", Some("an alarm")).unwrap();
    // While the upgrade is not finished, machines of both releases may join.
    world.deployed = OLD;
    world.join(&id(8), 1).unwrap();
    assert!(refused(&world).contains("0.1.4 is older than 0.2.0: a fleet is never downgraded"));
    world.set(&id(8), NodeState::Gone);
    world.deployed = NEW;
    world.begin("b").unwrap();
    world.run("b", 100);
    world.upgrades().end("b", None).unwrap();
    world.deployed = OLD;
    let join = world.join(&id(7), 1).unwrap_err().to_string();
    assert!(join.contains("register node i-7 of release 0.1.4: the fleet was upgraded to 0.2.0"), "{join}");
    assert!(refused(&world).contains("never downgraded"));
}

#[test]
fn nothing_is_touched_while_a_replica_is_missing_or_a_machine_is_away() {
    let mut world = World::new(3);
    world.deployed = NEW;
    world.begin("a").unwrap();
    let next = |world: &World| world.next("a").unwrap();
    world.set(&id(2), NodeState::Gone);
    let waits = next(&world);
    assert_eq!((waits.action, waits.reason.as_str()), (Action::Wait, "machine i-2 is not up"));
    // Its successor is up, and has no replicas yet.
    world.machines.retain(|machine| machine.node != id(2));
    world.fill();
    let waits = next(&world);
    assert_eq!((waits.action, waits.upgraded, waits.left), (Action::Wait, 1, 2));
    assert!(waits.reason.contains("moves are left"), "{}", waits.reason);
    world.machines[0].is_leaving = true;
    world.machines[0].in_service = false;
    assert_eq!(next(&world).reason, "machine i-0 is being terminated");
}

#[test]
fn a_machine_more_than_there_should_be_is_drained_though_it_is_new() {
    let mut world = World::new(3);
    world.deployed = NEW;
    world.begin("a").unwrap();
    let first = world.next("a").unwrap();
    assert_eq!((first.action, first.capacity), (Action::Launch, 4));
    // While the group starts it, the group replaces a machine that was lost: there are two new ones.
    for n in 0..3 {
        let node = id(n);
        world.deployed = NEW;
        let zone = n;
        change_all(
            &world.store,
            &world.graph,
            &[Change::SetNode { node: node.clone(), state: NodeState::Gone }],
        )
        .unwrap();
        world.join(&node, zone).unwrap();
    }
    world.perform(&first);
    assert_eq!(world.run("a", 100).last().map(String::as_str), Some("Done"));
    assert_eq!((world.desired, world.machines.len()), (3, 3));
}

#[test]
fn a_release_of_an_earlier_generation_counts_for_nothing() {
    let world = World::new(3);
    let map = world.store.load(&world.graph, None).unwrap();
    let releases = world.store.releases(&world.graph).unwrap();
    assert_eq!(release_of(&map, &releases, &id(0)), Some(OLD.release));
    // A build that states no release starts on the machine.
    let node = map.node(&id(0)).unwrap();
    let registration = Registration {
        id: id(0),
        zone: node.zone.clone(),
        endpoint: node.endpoint.clone(),
        capacity_bytes: 0,
        roles: node.roles.clone(),
    };
    change_all(&world.store, &world.graph, &[Change::Register(registration)]).unwrap();
    let map = world.store.load(&world.graph, None).unwrap();
    assert_eq!(release_of(&map, &releases, &id(0)), None);
    let refused = Upgrades::of(Arc::new(world.store.clone()), &world.graph, NEW);
    let refused = refused.begin("a", NEW.release, size(3), None).unwrap_err().to_string();
    assert!(refused.contains("node i-0: a build that states no release"), "{refused}");
}

#[test]
fn an_upgrade_is_one_of_all_graphs_of_the_fleet() {
    let mut world = World::new(3);
    let other = World { graph: new_graph(&world.store, 1), ..world.of(OLD) };
    (0..3).for_each(|n| other.join(&id(n), n).unwrap());
    [0, 1].into_iter().for_each(|n| other.serve(0, n));
    world.deployed = NEW;
    let others = [other.graph.clone(), "not made yet".to_owned()];
    let upgrades = world.upgrades().with(&others);
    assert!(matches!(upgrades.begin("a", NEW.release, size(3), None).unwrap(), Began::Ours(_)));
    // UPG-1: who has the upgrade of the first graph has all, also what an earlier holder left.
    let Began::Theirs(_) = upgrades.begin("b", NEW.release, size(3), None).unwrap() else { panic!("UPG-1") };
    assert!(matches!(upgrades.begin("b", NEW.release, size(3), Some("a")).unwrap(), Began::Ours(_)));
    let of_other = || world.store.upgrade(&other.graph).unwrap().unwrap();
    assert_eq!((of_other().holder.as_str(), of_other().state), ("b", UpgradeState::Running));

    let next = |world: &World| {
        let next = world.upgrades().with(&others).next("b", world.group()).unwrap();
        (next.action, next.node, next.reason)
    };
    world.desired = 4;
    world.fill();
    // Its daemon is up for one graph and not for the other.
    assert_eq!(next(&world), (Action::Wait, None, "machine i-3 is not up".into()));
    let newer = other.of(NEW);
    newer.join(&id(3), 0).unwrap();
    assert_eq!(next(&world).0, Action::Drain);
    world.drain(&id(0));
    newer.set(&id(0), NodeState::Draining);
    // UPG-2: it holds nothing of the first graph, and a replica of the other one.
    let still = (Action::Drain, Some(id(0)), "node i-0 still holds replicas".into());
    assert_eq!(next(&world), still);
    newer.drain(&id(0));
    assert_eq!(next(&world), (Action::End, Some(id(0)), "node i-0 holds nothing".into()));
    // A replica of the other graph is missing: no node can be spared.
    world.perform(&Next {
        action: Action::End,
        node: Some(id(0)),
        capacity: 4,
        is_canary: true,
        is_last: false,
        upgraded: 1,
        left: 3,
        reason: String::new(),
    });
    newer.set(&id(0), NodeState::Gone);
    newer.join(&id(4), 0).unwrap();
    let drop = Change::DropReplica { partition: PartitionId(0), node: id(1) };
    change_all(&world.store, &newer.graph, &[drop]).unwrap();
    let (action, _, reason) = next(&world);
    assert_eq!(action, Action::Wait);
    assert!(reason.starts_with(&format!("graph {}: 1 moves are left", newer.graph)), "{reason}");

    upgrades.end("b", None).unwrap();
    let ended = world.store.upgrade(&newer.graph).unwrap().unwrap();
    assert_eq!((ended.state, ended.floor), (UpgradeState::Finished, Some(NEW.release)));
    let refused = newer.of(OLD).join(&id(9), 0).unwrap_err();
    assert!(refused.to_string().contains("the fleet was upgraded to 0.2.0"), "{refused}");
}

#[test]
fn a_split_of_any_graph_keeps_an_upgrade_of_all_from_beginning() {
    let mut world = World::new(3);
    let other = new_graph(&world.store, 2);
    world.deployed = NEW;
    let upgrades = world.upgrades().with(std::slice::from_ref(&other));
    let into = PartitionCount::new(4).unwrap();
    change_all(&world.store, &other, &[Change::BeginSplit { into }]).unwrap();
    let refused = upgrades.begin("a", NEW.release, size(3), None).unwrap_err().to_string();
    assert!(refused.contains(&format!("a split of the graph {other} is unfinished")), "{refused}");
    // Otherwise the upgrade of the first graph would keep its own split and new shares away.
    assert!(world.store.upgrade(&world.graph).unwrap().is_none());
    change_all(&world.store, &other, &[Change::AbortSplit]).unwrap();
    assert!(matches!(upgrades.begin("a", NEW.release, size(3), None).unwrap(), Began::Ours(_)));
}

/// Splits that begin after the upgrade looked for them.
#[test]
fn a_split_that_begins_meanwhile_keeps_an_upgrade_from_beginning() {
    for (operation, passed, of_first) in [("read releases", 0, true), ("write the upgrade", 1, false)] {
        let mut world = World::new(3);
        let other = new_graph(&world.store, 2);
        world.deployed = NEW;
        let upgrades = world.upgrades().with(std::slice::from_ref(&other));
        let into = PartitionCount::new(8).unwrap();
        let split = if of_first { world.graph.clone() } else { other.clone() };
        let (store, graph) = (world.store.clone(), split.clone());
        world.store.meanwhile(operation, passed, move || {
            change_all(&store, &graph, &[Change::BeginSplit { into }]).unwrap();
        });
        let refused = upgrades.begin("a", NEW.release, size(3), None).unwrap_err().to_string();
        assert!(refused.contains(&format!("a split of the graph {split} is unfinished")), "{refused}");
        for graph in [&world.graph, &other] {
            let upgrade = world.store.upgrade(graph).unwrap();
            assert!(upgrade.is_none_or(|upgrade| upgrade.state == UpgradeState::Stopped), "{graph}");
        }
        change_all(&world.store, &split, &[Change::AbortSplit]).unwrap();
        assert!(matches!(upgrades.begin("a", NEW.release, size(3), None).unwrap(), Began::Ours(_)));
        for graph in [&world.graph, &other] {
            assert_eq!(world.store.upgrade(graph).unwrap().unwrap().state, UpgradeState::Running);
        }
    }
}
