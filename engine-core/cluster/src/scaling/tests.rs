//! Decisions over a map in memory, and a group that does what it is told.

use super::*;
use crate::testing::new_graph;
use crate::{
    AppliedVersions, Change, Claim, Heartbeat, Lineage, MemoryMap, Move, Rebalance, Registration,
    ReplicaState, Role, change_all,
};
use ScaleAction::{Drain, End, Launch};
use Wanted::{Fewer, More};
use std::time::Duration;
use tidegraph_types::{Epoch, PartitionId};

const PARTITIONS: u16 = 16;

fn id(n: usize) -> NodeId {
    NodeId::new(&format!("i-{n}")).unwrap()
}

/// A fleet of zones, whose replicas are where the planner wants them.
struct World {
    store: MemoryMap,
    graph: String,
    /// A second graph on the same nodes.
    other: Option<String>,
    machines: Vec<Machine>,
    desired: u32,
    least: u32,
    most: u32,
}

impl World {
    fn new(zones: &[usize]) -> Self {
        let store = MemoryMap::default();
        let graph = new_graph(&store, PARTITIONS);
        let desired = u32::try_from(zones.len()).unwrap();
        let mut world = Self { store, graph, other: None, machines: vec![], desired, least: 2, most: 6 };
        zones.iter().for_each(|zone| world.join(*zone));
        world.settle();
        world
    }

    fn join(&mut self, zone: usize) {
        let node = id(self.machines.len());
        self.register(&node, zone);
        self.set(&node, NodeState::Up);
        self.machines.push(Machine { node, in_service: true, is_leaving: false, template: None });
    }

    fn register(&self, node: &NodeId, zone: usize) {
        self.change(Change::Register(Registration {
            id: node.clone(),
            zone: format!("z{zone}"),
            endpoint: format!("{node}:1"),
            capacity_bytes: 1000,
            roles: [Role::Storage].into(),
        }));
    }

    fn set(&self, node: &NodeId, state: NodeState) {
        change_all(&self.store, &self.graph, &[Change::SetNode { node: node.clone(), state }]).unwrap();
    }

    fn rebalance(&self) -> Rebalance {
        Rebalance::new(Arc::new(self.store.clone()), &self.graph)
    }

    fn change(&self, change: Change) {
        change_all(&self.store, &self.graph, &[change]).unwrap();
    }

    /// Carries out the planner's moves until there are none.
    fn settle(&self) {
        loop {
            let plan = self.rebalance().plan(Goal::Balance).unwrap();
            if plan.moves.is_empty() {
                return;
            }
            for Move { partition, to, from, .. } in plan.moves {
                if let Some(node) = to {
                    self.change(Change::AddReplica { partition, node: node.clone() });
                    for state in [ReplicaState::CatchingUp, ReplicaState::Serving] {
                        self.change(Change::SetReplica { partition, node: node.clone(), state });
                    }
                }
                if let Some(node) = from {
                    self.change(Change::SetReplica {
                        partition,
                        node: node.clone(),
                        state: ReplicaState::Leaving,
                    });
                    self.change(Change::DropReplica { partition, node });
                }
            }
        }
    }

    fn beat(&self, n: usize, used_bytes: u64) {
        let generation = self.store.load(&self.graph, None).unwrap().node(&id(n)).unwrap().generation;
        let applied = AppliedVersions(Default::default());
        let beat = Heartbeat { generation, counter: 1, disk_full: false, used_bytes, applied, stuck: vec![] };
        self.store.heartbeat(&self.graph, &id(n), &beat).unwrap();
    }

    fn next(&self, wanted: Wanted) -> ScaleStep {
        let Self { least, most, desired, .. } = *self;
        let group = ScaleGroup { least, most, desired, machines: &self.machines };
        let others = ["not-made-yet".to_owned()].into_iter().chain(self.other.clone()).collect::<Vec<_>>();
        Scaling::new(Arc::new(self.store.clone()), &self.graph, &others).next(wanted, &group).unwrap()
    }

    fn held(&self, node: &NodeId) -> usize {
        self.store.load(&self.graph, None).unwrap().held_by(node).count()
    }

    /// Checks that nothing is done, for a reason with this part.
    fn refuses(&self, wanted: Wanted, part: &str) {
        let step = self.next(wanted);
        assert_eq!((step.action, step.node, step.capacity), (ScaleAction::Nothing, None, self.desired));
        assert!(step.reason.contains(part), "{} has no {part}", step.reason);
    }
}

#[test]
fn a_busy_fleet_gets_one_node_more_until_it_has_the_most() {
    let mut world = World::new(&[0, 1, 2]);
    let step = world.next(More);
    assert_eq!((step.action, step.capacity), (Launch, 4));
    world.desired = 4;
    world.refuses(More, "3 machines, and wants 4");
    world.join(0);
    world.refuses(More, "replicas move");
    world.settle();
    assert_eq!(world.next(More).action, Launch);
    world.most = 4;
    world.refuses(More, "nodes.most is 4");
}

#[test]
fn an_idle_fleet_drains_a_node_of_the_fullest_zone_and_ends_it_when_it_holds_nothing() {
    let mut world = World::new(&[0, 1, 2, 1]);
    // Two machines are in zone 1; the other two zones keep theirs.
    let step = world.next(Fewer);
    assert_eq!((step.action, step.capacity), (Drain, 4));
    let node = step.node.unwrap();
    assert!([id(1), id(3)].contains(&node), "{node}");
    world.rebalance().drain(&node).unwrap();
    assert!(world.held(&node) > 0);
    assert_eq!((world.next(Fewer).action, world.next(Fewer).node), (Drain, Some(node.clone())));
    world.settle();
    assert_eq!(world.held(&node), 0);
    let step = world.next(Fewer);
    assert_eq!((step.action, step.node, step.capacity), (End, Some(node.clone()), 3));
    world.machines.iter_mut().find(|one| one.node == node).unwrap().is_leaving = true;
    world.refuses(Fewer, "is being terminated");
    world.machines.retain(|one| one.node != node);
    world.desired = 3;
    world.set(&node, NodeState::Gone);
    world.least = 3;
    world.refuses(Fewer, "at least 3 stay");
}

#[test]
fn the_sequencer_leaves_last_in_its_zone() {
    let world = World::new(&[0, 1, 2, 1]);
    for sequencer in [1, 3] {
        let seen = world.store.lease(&world.graph, SEQUENCER).unwrap();
        let claim = Claim {
            holder: format!("s-{sequencer}"),
            endpoint: format!("i-{sequencer}:1"),
            ttl: Duration::from_secs(1),
            above: Epoch(0),
        };
        world.store.take_lease(&world.graph, SEQUENCER, seen.as_ref(), &claim).unwrap();
        assert_eq!(world.next(Fewer).node, Some(id(4 - sequencer)));
    }
}

#[test]
fn nothing_changes_while_an_upgrade_or_a_heal_is_under_way() {
    let mut world = World::new(&[0, 1, 2, 0]);
    let upgrades = Upgrades::new(Arc::new(world.store.clone()), &world.graph);
    upgrades.begin("u", Lineage::THIS.release, crate::GroupSize { desired: 4, least: 0 }, None).unwrap();
    for wanted in [More, Fewer] {
        world.refuses(wanted, "an upgrade runs");
    }
    upgrades.end("u", Some("stopped")).unwrap();
    assert_eq!(world.next(More).action, Launch);
    // A replica is missing.
    let lost = world.store.load(&world.graph, None).unwrap().replicas(PartitionId(3))[0].node.clone();
    world.change(Change::DropReplica { partition: PartitionId(3), node: lost });
    for wanted in [More, Fewer] {
        world.refuses(wanted, "1 moves are left");
    }
    world.settle();
    // A node was lost, and its machine is replaced.
    world.set(&id(2), NodeState::Gone);
    world.refuses(Fewer, "machine i-2 is not up");
    world.register(&id(2), 2);
    world.machines[2].in_service = false;
    world.refuses(More, "machine i-2 is not up");
}

#[test]
fn replicas_keep_their_number_their_zones_and_their_memory() {
    let mut world = World::new(&[0, 1]);
    world.least = 1;
    // Two replicas need two nodes, whatever the bounds say.
    world.refuses(Fewer, "at least 2 stay");
    let mut world = World::new(&[0, 0, 1]);
    assert!([Some(id(0)), Some(id(1))].contains(&world.next(Fewer).node));
    world.machines.retain(|one| one.node != id(1));
    world.set(&id(1), NodeState::Gone);
    world.settle();
    world.join(2);
    assert_eq!(world.machines.len(), 3);
    let world = World::new(&[0, 1, 2]);
    (0..3).for_each(|n| world.beat(n, 600));
    assert_eq!(world.next(Fewer).action, Drain);
    world.beat(0, 900);
    world.refuses(Fewer, "2100 bytes of replicas have memory of 2000 bytes");
}

#[test]
fn a_fleet_of_two_graphs_changes_when_both_allow_it() {
    let mut world = World::new(&[0, 1, 2, 1]);
    let other =
        World { store: world.store.clone(), graph: new_graph(&world.store, PARTITIONS), ..World::new(&[]) };
    world.other = Some(other.graph.clone());
    // The daemons have not joined the second graph yet.
    for wanted in [More, Fewer] {
        world.refuses(wanted, "machine i-0 is not up");
    }
    let mut other = other;
    [0, 1, 2, 1].into_iter().for_each(|zone| other.join(zone));
    world.refuses(More, &format!("graph {}: ", other.graph));
    other.settle();
    assert_eq!(world.next(More).action, Launch);
    let node = world.next(Fewer).node.unwrap();
    world.rebalance().drain(&node).unwrap();
    world.settle();
    // The first graph has left the node, the second one has not.
    assert_eq!((world.held(&node), other.held(&node) > 0), (0, true));
    assert_eq!((world.next(Fewer).action, world.next(Fewer).node), (Drain, Some(node.clone())));
    other.rebalance().drain(&node).unwrap();
    other.settle();
    assert_eq!((world.next(Fewer).action, world.next(Fewer).node), (End, Some(node.clone())));
    for graph in [&world, &other] {
        graph.rebalance().keep(&node).unwrap();
        graph.settle();
    }
    // Memory is that of each graph: the other one has room.
    (0..4).for_each(|n| other.beat(n, 900));
    world.refuses(Fewer, &format!("graph {}: without node", other.graph));
}

#[test]
fn nothing_changes_before_there_is_a_graph() {
    let store = Arc::new(MemoryMap::default());
    let group = ScaleGroup { least: 2, most: 6, desired: 2, machines: &[] };
    let step = Scaling::new(store, "a", &["b".into()]).next(More, &group).unwrap();
    assert_eq!((step.action, step.reason.as_str()), (ScaleAction::Nothing, "no graph exists yet"));
}
