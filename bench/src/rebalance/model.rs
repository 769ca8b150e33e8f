//! A model of large fleets: how long replicas move when nodes are added, and how long a rolling upgrade takes.
//!
//! The plans are those of the real planner, and the waits are those of the state machines
//! (`infra/lib/state-machines/moves.ts`, `upgrade.ts`). What a node restores in a second is the smallest of its bounds
//! ([`Machine::bounds`]). Queries, the records of the log after a checkpoint and failures are not part of it.

use anyhow::Context;
use std::collections::BTreeMap;
use tidegraph_cluster::{
    Eligibility, FleetNode, FleetState, Goal, Move, NodeId, Plan, Replica, ReplicaState,
};
use tidegraph_types::PartitionId;

/// Lots of a plan, and how many of them a machine looks after at once.
const LOTS: usize = 32;
const LOTS_AT_ONCE: usize = 8;
/// Looks at a lot until the next plan, and seconds between two of them.
const LOOKS: usize = 6;
const LOOK_S: f64 = 15.0;
/// Seconds between two plans.
const BREATH_S: f64 = 5.0;
/// Plans of an execution. The detector starts the next one within a minute.
const ROUNDS: usize = 10;
const DETECT_S: f64 = 60.0;
/// Seconds between two steps of an upgrade, and of a drain's end until the machine's end is seen.
const UPGRADE_WAIT_S: f64 = 30.0;
/// Seconds from the end of a machine to that of the next one: a wait, and the steps of a round.
const UPGRADE_END_S: f64 = 10.0;

/// What a node can do.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes a second of its network.
    pub network: f64,
    /// Bytes a second of one request to the object store.
    pub request: f64,
    /// Parts that its restores read at once (`--restore-reads`).
    pub reads: f64,
    /// Bytes a second that one processor restores.
    pub processor: f64,
    /// Replicas that it restores at once (`--restores-at-once`), a processor each.
    pub restores: f64,
    /// Seconds from a machine's launch until its daemon is up.
    pub start_s: f64,
}

impl Machine {
    /// Returns the bounds of what it restores in a second, in bytes.
    pub fn bounds(&self) -> [(&'static str, f64); 3] {
        [
            ("network", self.network),
            ("reads at once", self.reads * self.request),
            ("processors of restores", self.restores * self.processor),
        ]
    }

    /// Returns the smallest bound.
    pub fn bound(&self) -> (&'static str, f64) {
        let [first, rest @ ..] = self.bounds();
        rest.into_iter().fold(first, |least, one| if one.1 < least.1 { one } else { least })
    }
}

/// Settings of moves.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Moves at once (`rebalance.moves`).
    pub moves: usize,
    /// Moves to one node at once (`rebalance.restoresPerNode`).
    pub per_node: usize,
}

/// What moves took.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Took {
    pub seconds: f64,
    /// Replicas that were restored.
    pub moves: usize,
    /// Most replicas that one node restored.
    pub most_of_a_node: usize,
    /// Plans that were made.
    pub rounds: usize,
}

/// A fleet whose replicas move.
pub struct World {
    pub fleet: FleetState,
    machine: Machine,
    limits: Limits,
    /// When a node has restored what it was given.
    free_at: BTreeMap<NodeId, f64>,
    /// When a replica serves that is being restored.
    ready_at: BTreeMap<(usize, NodeId), f64>,
    restored: BTreeMap<NodeId, usize>,
    now: f64,
}

fn id(number: usize) -> anyhow::Result<NodeId> {
    Ok(NodeId::new(&format!("node-{number:05}"))?)
}

impl World {
    /// A fleet in three zones, whose replicas are where the planner puts them.
    pub fn new(
        nodes: usize,
        partitions: usize,
        replication: u16,
        replica_bytes: u64,
        machine: Machine,
        limits: Limits,
    ) -> anyhow::Result<Self> {
        // A graph that was never split names its partitions by their numbers.
        let fleet = FleetState {
            replication,
            nodes: BTreeMap::new(),
            names: (0..u16::try_from(partitions)?).map(PartitionId).collect(),
            partitions: vec![Vec::new(); partitions],
            replica_bytes,
        };
        let (free_at, ready_at, restored) = Default::default();
        let mut world = Self { fleet, machine, limits, free_at, ready_at, restored, now: 0.0 };
        for number in 0..nodes {
            world.add(number, number % 3)?;
        }
        let plan = world.fleet.plan(Goal::Balance);
        for one in &plan.moves {
            let node = one.to.clone().context("nothing is there to be dropped")?;
            let replica = Replica { node, state: ReplicaState::Serving };
            world.fleet.partitions[usize::from(one.partition.0)].push(replica);
        }
        anyhow::ensure!(world.fleet.plan(Goal::Balance).is_empty(), "the first placement is not balanced");
        Ok(world)
    }

    /// Adds an empty node.
    pub fn add(&mut self, number: usize, zone: usize) -> anyhow::Result<NodeId> {
        let node = FleetNode { zone: format!("zone-{zone}"), weight: 1, eligibility: Eligibility::Takes };
        self.fleet.nodes.insert(id(number)?, node);
        id(number)
    }

    fn replica(&mut self, partition: usize, node: &NodeId) -> Option<&mut Replica> {
        self.fleet.partitions[partition].iter_mut().find(|replica| replica.node == *node)
    }

    /// Moves replicas until the goal is reached, as the state machines do.
    pub fn run(&mut self, goal: Goal) -> anyhow::Result<Took> {
        let began = self.now;
        let mut took = Took::default();
        self.restored.clear();
        loop {
            let plan = self.fleet.plan(goal);
            if plan.is_empty() && plan.coming.is_empty() {
                break;
            }
            anyhow::ensure!(took.rounds < 100_000, "the plans do not end");
            took.moves += self.round(&plan);
            took.rounds += 1;
            self.now += if took.rounds.is_multiple_of(ROUNDS) { DETECT_S } else { BREATH_S };
        }
        took.seconds = self.now - began;
        took.most_of_a_node = self.restored.values().copied().max().unwrap_or(0);
        Ok(took)
    }

    /// Carries out one plan: lots of moves, some of them at once. Returns the moves that were begun.
    fn round(&mut self, plan: &Plan) -> usize {
        let mut lots: BTreeMap<Option<NodeId>, Vec<Move>> = BTreeMap::new();
        for one in plan.next(self.limits.moves, self.limits.per_node) {
            if lots.len() < LOTS || lots.contains_key(&one.to) {
                lots.entry(one.to.clone()).or_default().push(one.clone());
            }
        }
        let mut branches = vec![self.now; LOTS_AT_ONCE];
        let mut begun = 0;
        for moves in lots.into_values() {
            branches.sort_by(f64::total_cmp);
            begun += moves.iter().filter(|one| one.to.is_some() && !one.is_begun).count();
            branches[0] = self.lot(moves, branches[0]);
        }
        self.now = branches.into_iter().fold(self.now, f64::max);
        begun
    }

    /// Looks at the moves to one node until they are over. Returns when the lot ends.
    fn lot(&mut self, mut moves: Vec<Move>, mut now: f64) -> f64 {
        for look in 1..=LOOKS {
            moves.retain(|one| !self.step(one, now));
            if moves.is_empty() || look == LOOKS {
                break;
            }
            now += LOOK_S;
        }
        now
    }

    /// Does the next step of a move. Returns whether it is over.
    fn step(&mut self, one: &Move, now: f64) -> bool {
        let partition = usize::from(one.partition.0);
        if let Some(to) = &one.to {
            let Some(replica) = self.replica(partition, to) else {
                let seconds = self.fleet.replica_bytes as f64 / self.machine.bound().1;
                let free = self.free_at.entry(to.clone()).or_default();
                *free = free.max(now) + seconds;
                self.ready_at.insert((partition, to.clone()), *free);
                let replica = Replica { node: to.clone(), state: ReplicaState::Restoring };
                self.fleet.partitions[partition].push(replica);
                *self.restored.entry(to.clone()).or_default() += 1;
                return false;
            };
            if !replica.state.answers() {
                let key = (partition, to.clone());
                if self.ready_at.get(&key).is_some_and(|ready| *ready > now) {
                    return false;
                }
                self.ready_at.remove(&key);
                if let Some(replica) = self.replica(partition, to) {
                    replica.state = ReplicaState::Serving;
                }
            }
        }
        let Some(from) = &one.from else { return true };
        match self.replica(partition, from) {
            None => true,
            Some(replica) if replica.state == ReplicaState::Leaving => {
                self.fleet.partitions[partition].retain(|replica| replica.node != *from);
                true
            }
            Some(replica) => {
                replica.state = ReplicaState::Leaving;
                false
            }
        }
    }

    /// Replaces `count` of the first `nodes` nodes as the machine of upgrades does: the first one alone, then up to
    /// `at_once` together. It lets the group have as many machines more, waits until they are up, drains as many old nodes
    /// by one plan, and ends their machines one by one; with each end, the group starts the next one.
    pub fn upgrade(
        &mut self,
        nodes: usize,
        count: usize,
        at_once: usize,
        soak_s: f64,
    ) -> anyhow::Result<Took> {
        let began = self.now;
        let mut all = Took::default();
        let mut replaced = 0;
        while replaced < count {
            let is_canary = replaced == 0;
            let batch = replaced..(replaced + if is_canary { 1 } else { at_once }).min(count);
            replaced = batch.end;
            // After the canary, its successor starts first, and then the others of the second batch.
            let starts = if batch.start == 1 && batch.len() > 1 { 2.0 } else { 1.0 };
            self.now += starts * (self.machine.start_s + UPGRADE_WAIT_S);
            for number in batch.clone() {
                // The group starts machines in the zones of those that ended.
                self.add(nodes + number, number % 3)?;
            }
            for number in batch.clone() {
                self.fleet.nodes.get_mut(&id(number)?).context("an old node")?.eligibility =
                    Eligibility::Leaves;
            }
            let took = self.run(Goal::Repair)?;
            self.now += UPGRADE_WAIT_S + batch.len() as f64 * UPGRADE_END_S;
            self.now += if is_canary { soak_s } else { 0.0 };
            for number in batch {
                self.fleet.nodes.remove(&id(number)?);
            }
            all.moves += took.moves;
            all.rounds += took.rounds;
            all.most_of_a_node = all.most_of_a_node.max(took.most_of_a_node);
        }
        all.seconds = self.now - began;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { moves: 256, per_node: 16 };

    fn machine() -> Machine {
        Machine { network: 1e9, request: 85e6, reads: 16.0, processor: 300e6, restores: 8.0, start_s: 180.0 }
    }

    #[test]
    fn the_smallest_bound_is_named() {
        assert_eq!(machine().bound(), ("network", 1e9));
        assert_eq!(Machine { reads: 4.0, ..machine() }.bound(), ("reads at once", 340e6));
        assert_eq!(Machine { restores: 1.0, ..machine() }.bound(), ("processors of restores", 300e6));
    }

    #[test]
    fn added_nodes_get_their_share_and_no_more_moves_than_that() {
        let bytes = 1_000_000_000;
        let mut world = World::new(20, 256, 3, bytes, machine(), LIMITS).unwrap();
        world.add(20, 2).unwrap();
        world.add(21, 0).unwrap();
        let took = world.run(Goal::Balance).unwrap();
        // Each zone holds each partition once: eight nodes share one zone, seven another.
        let (of_eight, of_seven) = (256 / 8, 256 / 7);
        assert!((of_eight + of_seven..=of_eight + of_seven + 2).contains(&took.moves), "{took:?}");
        assert!((of_seven..=of_seven + 1).contains(&took.most_of_a_node), "{took:?}");
        // No node restores faster than its bound, and waits of the machine are not much of it.
        let least = took.most_of_a_node as f64 * bytes as f64 / machine().bound().1;
        assert!(took.seconds >= least && took.seconds < least + 240.0, "{took:?}, at least {least} s");
        assert!(world.fleet.plan(Goal::Balance).is_empty());
    }

    #[test]
    fn fewer_moves_at_once_take_longer() {
        let took = |limits| {
            let mut world = World::new(20, 256, 3, 1_000_000_000, machine(), limits).unwrap();
            world.add(20, 2).unwrap();
            world.run(Goal::Balance).unwrap()
        };
        let (few, many) = (took(Limits { moves: 1, per_node: 1 }), took(LIMITS));
        assert_eq!(few.moves, many.moves);
        assert!(few.seconds > 2.0 * many.seconds, "{few:?} {many:?}");
    }

    #[test]
    fn an_upgrade_moves_each_replica_once_and_leaves_no_old_node() {
        for at_once in [1, 3, 4] {
            let mut world = World::new(9, 64, 3, 1_000_000_000, machine(), LIMITS).unwrap();
            let took = world.upgrade(9, 9, at_once, 600.0).unwrap();
            assert!((64 * 3..=64 * 3 * 3 / 2).contains(&took.moves), "{took:?}");
            let mut nodes = world.fleet.nodes.keys();
            assert!(nodes.all(|node| *node >= id(9).unwrap()));
            let whole = |replicas: &Vec<Replica>| {
                replicas.len() == 3 && replicas.iter().all(|one| one.state.answers())
            };
            assert!(world.fleet.partitions.iter().all(whole));
            // The canary, and the others in batches of this size.
            let batches = 1 + 8_usize.div_ceil(at_once);
            assert!(took.seconds > batches as f64 * 180.0 + 600.0, "{took:?}");
        }
    }

    #[test]
    fn machines_that_are_replaced_at_once_restore_at_the_same_time() {
        // A replica takes ten seconds, and a node 53 of them.
        let took = |at_once| {
            let mut world = World::new(18, 320, 3, 10_000_000_000, machine(), LIMITS).unwrap();
            world.upgrade(18, 18, at_once, 0.0).unwrap()
        };
        let (one, three, six) = (took(1), took(3), took(6));
        assert!(
            one.seconds > 2.0 * three.seconds && three.seconds > 1.5 * six.seconds,
            "{one:?} {three:?} {six:?}"
        );
        // As many replicas move, give or take what zones with an odd number of nodes need.
        for some in [three, six] {
            assert!(some.moves.abs_diff(one.moves) < one.moves / 10, "{one:?} {some:?}");
        }
    }
}
