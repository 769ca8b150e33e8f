//! Checks the rules of plans on many fleets, and carries plans out over a map, stopping anywhere.

use super::*;
use crate::testing::{graph, id};
use crate::{Change, Graph, MapStore, MemoryMap, Registration, ReplicaState, change_all};
use proptest::prelude::*;
use tidegraph_types::PartitionCount;

/// A map with a fleet, and the events that change it.
struct World {
    store: MemoryMap,
    graph: Graph,
    /// Number of replicas that were added.
    added: usize,
}

impl World {
    fn new(partitions: u16, replication: u16) -> Self {
        let partitions = PartitionCount::new(partitions).unwrap();
        let graph = Graph { partitions, replication_factor: replication, ..graph(1) };
        let store = MemoryMap::default();
        store.create_graph(&graph).unwrap();
        Self { store, graph, added: 0 }
    }

    fn change(&self, changes: &[Change]) {
        change_all(&self.store, &self.graph.name, changes).unwrap();
    }

    fn node(&self, n: usize, zone: usize, capacity_bytes: u64) {
        let registration = Registration {
            id: id(n),
            zone: format!("zone-{zone}"),
            endpoint: format!("10.0.0.{n}:1"),
            capacity_bytes,
            roles: [Role::Storage].into(),
        };
        self.change(&[Change::Register(registration)]);
        self.set(n, NodeState::Up);
    }

    fn set(&self, n: usize, state: NodeState) {
        self.change(&[Change::SetNode { node: id(n), state }]);
    }

    fn fleet(&self) -> FleetState {
        let map = self.store.load(&self.graph.name, None).unwrap();
        FleetState { replica_bytes: 10, ..FleetState::of(&map, &BTreeMap::new()) }
    }

    /// Makes the next change of a move; returns false if it has to wait.
    fn step(&mut self, one: &Move) -> bool {
        let fleet = self.fleet();
        let replicas = &fleet.partitions[usize::from(one.partition.0)];
        let partition = one.partition;
        if let Some(to) = &one.to {
            match replicas.iter().find(|replica| replica.node == *to).map(|replica| replica.state) {
                None => {
                    assert_eq!(fleet.eligibility(to), Eligibility::Takes, "{one:?}");
                    self.change(&[Change::AddReplica { partition, node: to.clone() }]);
                    self.added += 1;
                    return true;
                }
                Some(state) if !state.answers() => return false,
                Some(_) => {}
            }
        }
        let Some(from) = &one.from else { return false };
        let others = replicas.iter().filter(|other| other.node != *from && fleet.answers(other)).count();
        let is_there = replicas.iter().any(|replica| replica.node == *from);
        if is_there && others >= one.others {
            self.change(&[Change::DropReplica { partition, node: from.clone() }]);
            let alive = self.fleet().alive(partition);
            assert!(alive >= 1, "{one:?} left nothing that answers");
            return true;
        }
        false
    }

    /// Marks some of the replicas that nodes are bringing up as serving.
    fn bring_up(&self, mut chosen: impl FnMut() -> bool) {
        let map = self.store.load(&self.graph.name, None).unwrap();
        for (partition, replicas) in map.partitions() {
            for replica in replicas.iter().filter(|replica| !replica.state.answers()) {
                if map.node(&replica.node).is_some_and(Node::answers) && chosen() {
                    let set = |state| Change::SetReplica { partition, node: replica.node.clone(), state };
                    self.change(&[set(ReplicaState::CatchingUp), set(ReplicaState::Serving)]);
                }
            }
        }
    }

    /// Plans and carries plans out, some steps at a time, until nothing is left. Returns
    /// the number of added replicas.
    fn finish(&mut self, goal: Goal, mut random: impl FnMut(usize) -> usize) -> usize {
        let before = self.added;
        for _ in 0..10_000 {
            let plan = self.fleet().plan(goal);
            if plan.is_empty() && plan.coming.is_empty() {
                return self.added - before;
            }
            for one in plan.next(1 + random(8), 2) {
                // A plan is dropped in the middle, as when its process dies.
                if random(4) == 0 {
                    break;
                }
                self.step(one);
            }
            self.bring_up(|| random(3) > 0);
        }
        panic!("no end: {:?}", self.fleet().plan(goal));
    }

    /// Like [`World::finish`], without stops.
    fn rebalance_until_still(&mut self, goal: Goal) -> usize {
        self.finish(goal, |n| n - 1)
    }

    fn loads(&self) -> BTreeMap<NodeId, usize> {
        let fleet = self.fleet();
        let mut loads: BTreeMap<NodeId, usize> = fleet.nodes.keys().map(|node| (node.clone(), 0)).collect();
        for replica in fleet.partitions.iter().flatten() {
            *loads.get_mut(&replica.node).unwrap() += 1;
        }
        loads
    }

    /// Checks that every partition has all replicas, on nodes that may hold them, in as many zones as possible.
    fn check_whole(&self) {
        let fleet = self.fleet();
        let holds: Vec<_> =
            fleet.nodes.values().filter(|node| node.eligibility == Eligibility::Takes).collect();
        let wanted = usize::from(fleet.replication).min(holds.len());
        for (partition, replicas) in fleet.partitions.iter().enumerate() {
            assert_eq!(fleet.alive(fleet.names[partition]), wanted, "{replicas:?}");
        }
    }
}

/// Returns a balanced fleet with one node in each of three zones.
fn three(partitions: u16, replication: u16) -> World {
    let mut world = World::new(partitions, replication);
    (0..3).for_each(|n| world.node(n, n, 0));
    assert_eq!(world.rebalance_until_still(Goal::Repair), usize::from(partitions * replication));
    world
}

#[test]
fn a_lost_node_costs_what_it_held() {
    let mut world = three(32, 2);
    world.node(3, 0, 0);
    world.set(0, NodeState::Gone);
    let lost = world.loads()[&id(0)];
    let plan = world.fleet().plan(Goal::Repair);
    assert_eq!((plan.restores(), plan.moves.len(), plan.short), (lost, lost, 0));
    assert_eq!(plan.bytes(), 10 * lost as u64);
    assert!(plan.moves.iter().all(|one| one.to == Some(id(3)) && one.from == Some(id(0)) && one.others == 2));
    assert_eq!(world.rebalance_until_still(Goal::Repair), lost);
    world.check_whole();
    assert_eq!(world.loads()[&id(0)], 0);
}

#[test]
fn a_node_that_came_back_needs_nothing() {
    let world = three(32, 2);
    world.set(0, NodeState::Gone);
    assert!(!world.fleet().plan(Goal::Repair).is_empty());
    world.node(0, 0, 0);
    assert!(world.fleet().plan(Goal::Repair).is_empty() && world.fleet().plan(Goal::Balance).is_empty());
}

#[test]
fn what_was_begun_for_a_node_that_came_back_is_given_up() {
    let mut world = three(32, 2);
    world.node(3, 0, 0);
    world.set(0, NodeState::Gone);
    let plan = world.fleet().plan(Goal::Repair);
    for one in plan.next(5, 8) {
        assert!(world.step(one));
    }
    world.node(0, 0, 0);
    let plan = world.fleet().plan(Goal::Repair);
    assert_eq!((plan.moves.len(), plan.restores()), (5, 0));
    assert!(plan.moves.iter().all(|one| one.from == Some(id(3))), "{plan:?}");
    world.rebalance_until_still(Goal::Repair);
    assert_eq!(world.loads()[&id(3)], 0);
}

#[test]
fn a_target_that_dies_is_replaced() {
    let mut world = three(32, 2);
    (3..5).for_each(|n| world.node(n, 0, 0));
    world.set(0, NodeState::Gone);
    for one in world.fleet().plan(Goal::Repair).next(8, 4) {
        world.step(one);
    }
    world.set(3, NodeState::Gone);
    world.rebalance_until_still(Goal::Repair);
    world.check_whole();
    assert_eq!((world.loads()[&id(0)], world.loads()[&id(3)]), (0, 0));
}

/// Shows MAP-2.
#[test]
fn the_only_replica_that_answers_is_kept_and_moved_first() {
    let mut world = three(8, 2);
    world.set(0, NodeState::Gone);
    world.set(1, NodeState::Draining);
    let plan = world.fleet().plan(Goal::Repair);
    // One node is left, so only one replica is possible.
    assert!(plan.moves.iter().all(|one| one.from != Some(id(0))), "{plan:?}");
    assert_eq!(plan.short, 8);
    let alive: Vec<usize> = plan.moves.iter().map(|one| world.fleet().alive(one.partition)).collect();
    assert!(alive.is_sorted() && alive[0] == 1, "{alive:?}");
    world.rebalance_until_still(Goal::Repair);
    assert!((0..8).all(|partition| world.fleet().alive(PartitionId(partition)) == 1));
    // The lost node may register again.
    assert_eq!(world.loads()[&id(0)] + world.loads()[&id(2)], 8 + world.loads()[&id(0)]);
    assert_eq!(world.loads()[&id(1)], 0);
}

#[test]
fn all_replicas_lost_are_restored_elsewhere() {
    let mut world = three(8, 1);
    (3..6).for_each(|n| world.node(n, n - 3, 0));
    (0..3).for_each(|n| world.set(n, NodeState::Gone));
    assert_eq!(world.rebalance_until_still(Goal::Repair), 8);
    world.check_whole();
}

#[test]
fn a_new_node_gets_its_share_and_nothing_else_moves() {
    let mut world = three(64, 2);
    world.node(3, 0, 0);
    assert!(world.fleet().plan(Goal::Repair).is_empty());
    // 32 is a quarter of the 128 replicas.
    assert_eq!(world.rebalance_until_still(Goal::Balance), 32);
    assert!(world.loads().values().all(|load| *load == 32), "{:?}", world.loads());
}

#[test]
fn a_node_gets_by_its_weight() {
    let mut world = World::new(64, 1);
    world.node(0, 0, 1 << 30);
    world.node(1, 1, 3 << 30);
    world.rebalance_until_still(Goal::Balance);
    assert_eq!(world.loads().into_values().collect::<Vec<_>>(), [16, 48]);
}

#[test]
fn a_node_that_leaves_is_emptied_while_it_answers() {
    let mut world = three(32, 2);
    world.node(3, 2, 0);
    world.set(2, NodeState::Draining);
    let held = world.loads()[&id(2)];
    assert_eq!(world.rebalance_until_still(Goal::Repair), held);
    world.check_whole();
    assert_eq!((world.loads()[&id(2)], world.loads()[&id(3)]), (0, held));
}

#[test]
fn nodes_that_start_keep_what_they_have_and_get_nothing() {
    let mut world = three(16, 2);
    world.node(3, 0, 0);
    world.change(&[Change::Register(Registration {
        id: id(3),
        zone: "zone-0".into(),
        endpoint: "10.0.0.3:1".into(),
        capacity_bytes: 0,
        roles: [Role::Storage].into(),
    })]);
    assert!(world.fleet().plan(Goal::Balance).is_empty());
    world.set(0, NodeState::Gone);
    assert!(world.fleet().plan(Goal::Repair).moves.iter().all(|one| one.to != Some(id(3))));
    world.set(3, NodeState::Up);
    world.rebalance_until_still(Goal::Repair);
    world.check_whole();
}

#[test]
fn what_runs_at_once_is_bounded() {
    let mut world = three(64, 2);
    (3..6).for_each(|n| world.node(n, n - 3, 0));
    let plan = world.fleet().plan(Goal::Balance);
    assert_eq!(plan.next(100, 2).len(), 6);
    assert_eq!(plan.next(4, 2).len(), 4);
    for one in plan.next(4, 2) {
        world.step(one);
    }
    // Running moves count against the limit, and come first.
    let plan = world.fleet().plan(Goal::Balance);
    let next = plan.next(100, 2);
    assert_eq!((next.len(), next.iter().filter(|one| one.is_begun).count()), (6, 4));
    assert!(next[..4].iter().all(|one| one.is_begun));
}

#[test]
fn large_fleets_are_planned_in_one_go() {
    let candidates: Vec<Candidate> =
        (0..300).map(|n| Candidate { node: id(n), zone: format!("zone-{}", n % 3), weight: 0 }).collect();
    let count = PartitionCount::new(4096).unwrap();
    let placed = place(count, 3, &candidates[..270], &[]);
    let next = place(count, 3, &candidates, &placed);
    let moved: usize =
        placed.iter().zip(&next).map(|(a, b)| b.iter().filter(|node| !a.contains(node)).count()).sum();
    // Only replicas that the new nodes receive move.
    let held = |n: usize| next.iter().filter(|nodes| nodes.contains(&id(n))).count();
    assert_eq!(moved, (270..300).map(held).sum::<usize>());
    assert!((270..300).all(|n| (40..=41).contains(&held(n))));
}

/// An event between two plans.
#[derive(Clone, Debug)]
enum Event {
    Join { zone: usize, weight: u64 },
    Lose(usize),
    Return(usize),
    Drain(usize),
    Finish(Goal),
    Begin(Goal, usize),
}

fn event() -> impl Strategy<Value = Event> {
    let goal = prop_oneof![Just(Goal::Repair), Just(Goal::Balance)];
    prop_oneof![
        (0_usize..3, 0_u64..3).prop_map(|(zone, weight)| Event::Join { zone, weight }),
        (0_usize..6).prop_map(Event::Lose),
        (0_usize..6).prop_map(Event::Return),
        (0_usize..6).prop_map(Event::Drain),
        goal.clone().prop_map(Event::Finish),
        (goal, 1_usize..10).prop_map(|(goal, steps)| Event::Begin(goal, steps)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// Shows MAP-2. Whatever happens, and wherever plans are stopped: they come to an end, the last answering replica
    /// is never dropped (`World::step` checks that), and the plan after a finished one is empty.
    #[test]
    fn plans_come_to_an_end_wherever_they_are_stopped(
        bits in 0_u32..6,
        replication in 1_u16..4,
        zones in proptest::collection::vec(0_usize..3, 1..5),
        events in proptest::collection::vec(event(), 0..8),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(1 << bits, replication);
        zones.iter().enumerate().for_each(|(n, zone)| world.node(n, *zone, 0));
        let mut nodes = zones.clone();
        let mut draws = seed;
        let mut random = move |n: usize| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (draws >> 33) as usize % n
        };
        world.finish(Goal::Balance, &mut random);
        for event in events {
            let state = |world: &World, n: usize| world.fleet().nodes.get(&id(n)).map(|node| node.eligibility);
            let takers = world.fleet().nodes.values().filter(|node| node.eligibility == Eligibility::Takes).count();
            match event {
                Event::Join { zone, weight } => {
                    world.node(nodes.len(), zone, weight);
                    nodes.push(zone);
                }
                // At least one node must accept replicas, or no plan can end.
                Event::Lose(n) if takers > 1 && state(&world, n).is_some_and(Eligibility::answers) => {
                    world.set(n, NodeState::Gone);
                }
                Event::Drain(n) if takers > 1 && state(&world, n) == Some(Eligibility::Takes) => {
                    world.set(n, NodeState::Draining);
                }
                Event::Return(n) if n < nodes.len() => world.node(n, nodes[n], 0),
                Event::Begin(goal, steps) => {
                    let plan = world.fleet().plan(goal);
                    for one in plan.next(steps, 2) {
                        world.step(one);
                    }
                    world.bring_up(|| random(2) > 0);
                }
                Event::Finish(goal) => { world.finish(goal, &mut random); }
                _ => {}
            }
        }
        for goal in [Goal::Repair, Goal::Balance, Goal::Repair] {
            world.finish(goal, &mut random);
            world.check_whole();
            prop_assert!(world.fleet().plan(goal).is_empty());
        }
    }

    /// A repair restores only missing replicas; a balance moves only as many as nodes lack, if zones do not matter.
    #[test]
    fn as_few_bytes_move_as_can_be(
        bits in 2_u32..7,
        before in 2_usize..6,
        more in 1_usize..4,
        lose in 0_usize..2,
    ) {
        let mut world = World::new(1 << bits, 2);
        (0..before).for_each(|n| world.node(n, n, 0));
        world.rebalance_until_still(Goal::Balance);
        (before..before + more).for_each(|n| world.node(n, n, 0));
        (0..lose).for_each(|n| world.set(n, NodeState::Gone));
        let loads = world.loads();
        let missing: usize = (0..lose).map(|n| loads[&id(n)]).sum();
        let plan = world.fleet().plan(Goal::Repair);
        prop_assert_eq!((plan.restores(), plan.bytes()), (missing, 10 * missing as u64));
        let plan = world.fleet().plan(Goal::Balance);
        let restores = plan.restores();
        let moved = world.rebalance_until_still(Goal::Balance);
        prop_assert_eq!(moved, restores);
        // No plan reaches these loads with fewer moves. If a node with room already holds
        // the missing partition, another replica has to move away first.
        let least: usize = world.loads().iter().map(|(node, load)| load.saturating_sub(loads[node])).sum();
        prop_assert!((least..=least + lose).contains(&moved), "{} moved, {} at least", moved, least);
    }
}
