//! Plans moves of replicas: a pure function from the current state of the fleet to an ordered list of moves.
//!
//! Roles: [`FleetState`] is the content of the map and of the heartbeats. `target.rs` computes where replicas should
//! be, for a [`Goal`]; `quota.rs` computes how many a node should hold. [`Plan`] is the difference, and [`Plan::next`]
//! selects the moves that may run at the same time. A process that carries out a plan looks again after some moves and
//! makes a new plan: a plan is never kept.
//!
//! A [`Move`] adds a replica, which its node restores from a checkpoint and the log, and then drops another one.
//! Nothing is copied from a serving node, so the restoring node limits the speed of moves.
//!
//! What must never happen (MAP-2): a replica is dropped while fewer others serve than there should be
//! ([`Move::others`]); the fleet that a finished plan leaves gets another plan that is not empty; one
//! fleet gets two different plans. So a plan that was stopped anywhere continues when it is made again.

mod quota;
mod target;

pub use target::{Candidate, place};

use crate::model::{Node, NodeState, Replica, Role};
use crate::{Heartbeat, NodeId, PartitionMap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegraph_types::{Layout, PartitionId};

/// The goal of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Every partition has its number of replicas, and none on nodes that are lost or
    /// leave. Other replicas stay where they are.
    Repair,
    /// Like `Repair`, and every node holds as much as its weight and zone allow.
    Balance,
}

/// Whether a node may hold and get replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Eligibility {
    /// The node holds replicas and gets more.
    Takes,
    /// The node starts and restores its replicas of the map. It keeps them and gets no more yet.
    Returns,
    /// The node answers reads and loses its replicas.
    Leaves,
    /// The replicas of the node do not count.
    Lost,
}

impl Eligibility {
    fn of(node: &Node) -> Self {
        match node.state {
            _ if !node.roles.contains(&Role::Storage) => Self::Lost,
            NodeState::Up => Self::Takes,
            NodeState::Joining => Self::Returns,
            NodeState::Draining => Self::Leaves,
            NodeState::Gone => Self::Lost,
        }
    }

    fn is_candidate(self) -> bool {
        matches!(self, Self::Takes | Self::Returns)
    }

    fn answers(self) -> bool {
        matches!(self, Self::Takes | Self::Leaves)
    }
}

/// A node as the planner sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetNode {
    /// Its availability zone.
    pub zone: String,
    /// Bytes for replicas; 0 if unknown.
    pub weight: u64,
    /// Whether it may hold and get replicas.
    pub eligibility: Eligibility,
}

/// A fleet as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetState {
    /// Number of replicas that each partition should have.
    pub replication: u16,
    /// All nodes.
    pub nodes: BTreeMap<NodeId, FleetNode>,
    /// The partitions, in order of their names.
    pub names: Vec<PartitionId>,
    /// The replicas of each of them.
    pub partitions: Vec<Vec<Replica>>,
    /// Approximate bytes of one replica. Partitions are divided by a hash and hardly differ.
    pub replica_bytes: u64,
}

impl FleetState {
    /// Returns the fleet of a map and of the heartbeats of its nodes, with the partitions that readers ask, and the ones
    /// into which the graph is being split as far as nodes hold them.
    #[must_use]
    pub fn of(map: &PartitionMap, beats: &BTreeMap<NodeId, Heartbeat>) -> Self {
        let next = map.graph().next_layout();
        let is_next = |(partition, _): &(PartitionId, &[Replica])| {
            next.is_some_and(|layout| layout.number(*partition).is_some())
        };
        Self::of_partitions(map, beats, map.partitions().chain(map.held().filter(is_next)))
    }

    /// Returns the fleet of a map and of the heartbeats of its nodes, with the partitions of `layout`.
    #[must_use]
    pub fn of_layout(map: &PartitionMap, beats: &BTreeMap<NodeId, Heartbeat>, layout: Layout) -> Self {
        Self::of_partitions(map, beats, map.partitions_of(layout))
    }

    fn of_partitions<'m>(
        map: &'m PartitionMap,
        beats: &BTreeMap<NodeId, Heartbeat>,
        partitions: impl Iterator<Item = (PartitionId, &'m [Replica])>,
    ) -> Self {
        let (names, partitions) = partitions.map(|(name, replicas)| (name, replicas.to_vec())).unzip();
        let node = |(id, node): (&NodeId, &Node)| {
            let (zone, weight) = (node.zone.clone(), node.capacity_bytes);
            (id.clone(), FleetNode { zone, weight, eligibility: Eligibility::of(node) })
        };
        let held: usize = beats.values().map(|beat| beat.applied.0.len()).sum();
        let used: u64 = beats.values().map(|beat| beat.used_bytes).sum();
        Self {
            replication: map.graph().replication_factor,
            nodes: map.nodes().map(node).collect(),
            names,
            partitions,
            replica_bytes: used.checked_div(held as u64).unwrap_or(0),
        }
    }

    fn eligibility(&self, node: &NodeId) -> Eligibility {
        self.nodes.get(node).map_or(Eligibility::Lost, |node| node.eligibility)
    }

    /// Whether a replica answers reads now.
    fn answers(&self, replica: &Replica) -> bool {
        replica.state.answers() && self.eligibility(&replica.node).answers()
    }

    /// Number of replicas of a partition that answer reads.
    fn alive(&self, partition: PartitionId) -> usize {
        let place = self.names.binary_search(&partition).unwrap_or(usize::MAX);
        self.partitions.get(place).into_iter().flatten().filter(|replica| self.answers(replica)).count()
    }

    /// The plan to reach a goal if the node `drain` left.
    #[must_use]
    pub fn planned(&self, goal: Goal, drain: Option<&NodeId>) -> Plan {
        let mut fleet = self.clone();
        if let Some(node) = drain
            .and_then(|node| fleet.nodes.get_mut(node))
            .filter(|node| node.eligibility == Eligibility::Takes)
        {
            node.eligibility = Eligibility::Leaves;
        }
        fleet.plan(goal)
    }

    /// The plan to reach a goal.
    #[must_use]
    pub fn plan(&self, goal: Goal) -> Plan {
        let candidate = |(id, node): (&NodeId, &FleetNode)| Candidate {
            node: id.clone(),
            zone: node.zone.clone(),
            weight: node.weight,
        };
        let candidates: Vec<Candidate> =
            self.nodes.iter().filter(|(_, node)| node.eligibility.is_candidate()).map(candidate).collect();
        let held: Vec<Vec<(&NodeId, bool)>> = self
            .partitions
            .iter()
            .map(|replicas| replicas.iter().map(|one| (&one.node, one.state.answers())).collect())
            .collect();
        let takes = |node: &NodeId| self.eligibility(node) == Eligibility::Takes;
        let wanted = target::target(goal, self.replication, &candidates, &takes, &held);
        let mut plan = Plan { replica_bytes: self.replica_bytes, ..Plan::default() };
        for (partition, nodes) in wanted.iter().enumerate() {
            self.moves_of(partition, nodes, &mut plan);
        }
        // Partitions with the fewest answering replicas come first, moves that only free memory last.
        plan.moves.sort_by_key(|one| (one.to.is_none(), self.alive(one.partition), one.partition));
        plan
    }

    fn moves_of(&self, partition: usize, wanted: &[NodeId], plan: &mut Plan) {
        let replicas = &self.partitions[partition];
        let Some(&number) = self.names.get(partition) else { return };
        let on = |node: &NodeId| replicas.iter().find(|replica| replica.node == *node);
        plan.short += usize::from(self.replication).saturating_sub(wanted.len());
        let mut coming = Vec::new();
        let mut new = Vec::new();
        for node in wanted {
            match on(node) {
                Some(replica) if replica.state.answers() => {
                    if replica.state == crate::ReplicaState::Leaving {
                        plan.stay.push((number, node.clone()));
                    }
                }
                Some(_) => coming.push(node),
                None => new.push(node),
            }
        }
        // Replicas on a lost node are dropped only when others have them: the node may come back.
        let is_whole = wanted.len() >= usize::from(self.replication);
        let is_needless = |replica: &&Replica| {
            !wanted.contains(&replica.node)
                && (is_whole || self.eligibility(&replica.node) != Eligibility::Lost)
        };
        let mut old: Vec<&Replica> = replicas.iter().filter(is_needless).collect();
        // Replicas that do not answer go first.
        old.sort_by_key(|replica| self.answers(replica));
        let others = |replica: &Replica| match self.answers(replica)
            || self.eligibility(&replica.node) == Eligibility::Lost
        {
            true => wanted.len().max(1),
            false => 1,
        };
        let mut old = old.into_iter().rev();
        for (node, is_begun) in
            new.iter().map(|node| (*node, false)).chain(coming.iter().map(|node| (*node, true)))
        {
            let from = old.next();
            if is_begun && from.is_none() {
                plan.coming.push((number, node.clone()));
                continue;
            }
            plan.moves.push(Move {
                partition: number,
                to: Some(node.clone()),
                from: from.map(|replica| replica.node.clone()),
                is_begun,
                others: from.map_or(0, others),
            });
        }
        plan.moves.extend(old.map(|replica| Move {
            partition: number,
            to: None,
            from: Some(replica.node.clone()),
            is_begun: false,
            others: others(replica),
        }));
    }
}

/// A move of a replica: add it on `to`, then drop it on `from`. One of the two may be missing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Move {
    /// The partition.
    pub partition: PartitionId,
    /// The node that gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<NodeId>,
    /// The node that loses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
    /// Whether the map has the new replica already.
    #[serde(default)]
    pub is_begun: bool,
    /// Number of other replicas that must answer reads before `from` is dropped.
    #[serde(default)]
    pub others: usize,
}

/// The moves to a goal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The moves, in the order in which they should begin.
    pub moves: Vec<Move>,
    /// Replicas in the right place that do not serve yet. Their nodes bring them up without a move.
    pub coming: Vec<(PartitionId, NodeId)>,
    /// Replicas that were to be dropped and should stay.
    pub stay: Vec<(PartitionId, NodeId)>,
    /// Number of replicas that no node can take, because there are too few nodes.
    pub short: usize,
    /// Approximate bytes of one replica.
    pub replica_bytes: u64,
}

impl Plan {
    /// Whether the goal is reached, or will be without a move.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.stay.is_empty()
    }

    /// Number of replicas to restore that no node restores yet.
    #[must_use]
    pub fn restores(&self) -> usize {
        self.moves.iter().filter(|one| one.to.is_some() && !one.is_begun).count()
    }

    /// Approximate bytes to restore.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.replica_bytes.saturating_mul(self.restores() as u64)
    }

    /// The moves that should run now: at most `most`, and at most `restores_per_node` restores on each node. Moves that
    /// run already count, and come first.
    #[must_use]
    pub fn next(&self, most: usize, restores_per_node: usize) -> Vec<&Move> {
        let mut busy: BTreeMap<&NodeId, usize> = BTreeMap::new();
        let begun = self.moves.iter().filter(|one| one.is_begun).filter_map(|one| one.to.as_ref());
        begun
            .chain(self.coming.iter().map(|(_, node)| node))
            .for_each(|node| *busy.entry(node).or_default() += 1);
        let running = self.moves.iter().filter(|one| one.is_begun);
        let waiting = self.moves.iter().filter(|one| !one.is_begun).filter(|one| match &one.to {
            None => true,
            Some(node) => {
                let restores = busy.entry(node).or_default();
                let has_room = *restores < restores_per_node.max(1);
                *restores += usize::from(has_room);
                has_room
            }
        });
        running.chain(waiting).take(most.max(1)).collect()
    }
}

#[cfg(test)]
mod tests;
