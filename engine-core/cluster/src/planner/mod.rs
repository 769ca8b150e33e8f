//! Which replicas have to move: a pure function from a fleet as it is to an ordered list of moves.
//!
//! Roles: [`FleetState`] is what the map and the signs of life say; `target.rs` says where replicas should be, for a [`Goal`]; `quota.rs`
//! how many a node should hold; [`Plan`] is what is between the two, and says what may run at the same time ([`Plan::next`]).
//! Whoever carries a plan out looks again after some moves and plans anew: a plan is never kept.
//!
//! A [`Move`] adds a replica, which its node restores from a checkpoint and the log, and then drops another one. Nothing is copied from a node
//! that serves, so what bounds moves is the node that restores.
//!
//! What must never happen: a replica dropped while fewer others serve than there should be ([`Move::others`]); a plan of what came out of a plan that
//! is not empty; two plans of one fleet that differ. So a plan that was stopped anywhere goes on when it is made again.

mod quota;
mod target;

pub use target::{Candidate, place};

use crate::model::{Node, NodeState, Replica, Role};
use crate::{Beat, NodeId, PartitionMap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegraph_types::PartitionId;

/// What a plan is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// As many replicas as there should be, none on nodes that are lost or leave; what is where it may be stays.
    Repair,
    /// All that, and every node as much as its weight and zone allow.
    Balance,
}

/// How a node stands to replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duty {
    /// It holds replicas and gets more.
    Takes,
    /// It starts, and restores what the map says that it holds. It keeps that and gets nothing more yet.
    Returns,
    /// It answers reads and is to lose what it holds.
    Leaves,
    /// Nobody counts on what it holds.
    Lost,
}

impl Duty {
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
    /// Bytes that it has for replicas; 0 is not known.
    pub weight: u64,
    /// How it stands.
    pub duty: Duty,
}

/// A fleet as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetState {
    /// How many replicas each partition should have.
    pub replication: u16,
    /// All nodes.
    pub nodes: BTreeMap<NodeId, FleetNode>,
    /// By partition: its replicas.
    pub partitions: Vec<Vec<Replica>>,
    /// Bytes of one replica, about: partitions are divided by a hash and hardly differ.
    pub replica_bytes: u64,
}

impl FleetState {
    /// The fleet of a map and the signs of life that its nodes gave.
    #[must_use]
    pub fn of(map: &PartitionMap, beats: &BTreeMap<NodeId, Beat>) -> Self {
        let node = |(id, node): (&NodeId, &Node)| {
            let (zone, weight) = (node.zone.clone(), node.capacity_bytes);
            (id.clone(), FleetNode { zone, weight, duty: Duty::of(node) })
        };
        let held: usize = beats.values().map(|beat| beat.applied.0.len()).sum();
        let used: u64 = beats.values().map(|beat| beat.used_bytes).sum();
        Self {
            replication: map.graph().replication_factor,
            nodes: map.nodes().map(node).collect(),
            partitions: map.partitions().map(|(_, replicas)| replicas.to_vec()).collect(),
            replica_bytes: used.checked_div(held as u64).unwrap_or(0),
        }
    }

    fn duty(&self, node: &NodeId) -> Duty {
        self.nodes.get(node).map_or(Duty::Lost, |node| node.duty)
    }

    /// Whether a replica answers reads now.
    fn answers(&self, replica: &Replica) -> bool {
        replica.state.answers() && self.duty(&replica.node).answers()
    }

    /// How many replicas of a partition answer reads.
    fn alive(&self, partition: usize) -> usize {
        self.partitions[partition].iter().filter(|replica| self.answers(replica)).count()
    }

    /// What would have to be done if a node left.
    #[must_use]
    pub fn planned(&self, goal: Goal, drain: Option<&NodeId>) -> Plan {
        let mut fleet = self.clone();
        if let Some(node) =
            drain.and_then(|node| fleet.nodes.get_mut(node)).filter(|node| node.duty == Duty::Takes)
        {
            node.duty = Duty::Leaves;
        }
        fleet.plan(goal)
    }

    /// What has to be done to reach a goal.
    #[must_use]
    pub fn plan(&self, goal: Goal) -> Plan {
        let candidate = |(id, node): (&NodeId, &FleetNode)| Candidate {
            node: id.clone(),
            zone: node.zone.clone(),
            weight: node.weight,
        };
        let candidates: Vec<Candidate> =
            self.nodes.iter().filter(|(_, node)| node.duty.is_candidate()).map(candidate).collect();
        let held: Vec<Vec<(&NodeId, bool)>> = self
            .partitions
            .iter()
            .map(|replicas| replicas.iter().map(|one| (&one.node, one.state.answers())).collect())
            .collect();
        let takes = |node: &NodeId| self.duty(node) == Duty::Takes;
        let wanted = target::target(goal, self.replication, &candidates, &takes, &held);
        let mut plan = Plan { replica_bytes: self.replica_bytes, ..Plan::default() };
        for (partition, nodes) in wanted.iter().enumerate() {
            self.moves_of(partition, nodes, &mut plan);
        }
        // What is nearest to being lost comes first, what only frees memory last.
        plan.moves
            .sort_by_key(|one| (one.to.is_none(), self.alive(usize::from(one.partition.0)), one.partition));
        plan
    }

    fn moves_of(&self, partition: usize, wanted: &[NodeId], plan: &mut Plan) {
        let replicas = &self.partitions[partition];
        let Ok(number) = u16::try_from(partition) else { return };
        let number = PartitionId(number);
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
        // What a lost node held is forgotten only when others have it: it may come back.
        let is_whole = wanted.len() >= usize::from(self.replication);
        let is_needless = |replica: &&Replica| {
            !wanted.contains(&replica.node) && (is_whole || self.duty(&replica.node) != Duty::Lost)
        };
        let mut old: Vec<&Replica> = replicas.iter().filter(is_needless).collect();
        // What does not answer may go first.
        old.sort_by_key(|replica| self.answers(replica));
        let others = |replica: &Replica| match self.answers(replica) || self.duty(&replica.node) == Duty::Lost
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

/// One move of a replica: add it here, then drop it there. One of the two may be missing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Move {
    /// Of which partition.
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
    /// How many other replicas have to answer reads before `from` is dropped.
    #[serde(default)]
    pub others: usize,
}

/// What has to be done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// In the order in which they should begin.
    pub moves: Vec<Move>,
    /// Replicas that are where they should be and do not serve yet: their nodes bring them up by themselves.
    pub coming: Vec<(PartitionId, NodeId)>,
    /// Replicas that were to be dropped and should stay.
    pub stay: Vec<(PartitionId, NodeId)>,
    /// How many replicas nobody can take: there are too few nodes.
    pub short: usize,
    /// Bytes of one replica, about.
    pub replica_bytes: u64,
}

impl Plan {
    /// Whether all is as it should be, or will be without anybody doing anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.stay.is_empty()
    }

    /// How many replicas have to be restored that nobody restores yet.
    #[must_use]
    pub fn restores(&self) -> usize {
        self.moves.iter().filter(|one| one.to.is_some() && !one.is_begun).count()
    }

    /// How many bytes have to be restored, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.replica_bytes.saturating_mul(self.restores() as u64)
    }

    /// What should run now: at most so many moves, and on each node at most so many restores. What runs already counts and comes first.
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
