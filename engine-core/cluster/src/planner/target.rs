//! Computes the target placement of replicas: a pure function from nodes and their replicas.
//!
//! Rules, the most important first: replicas of a partition are on different nodes; a zone has no more of them than it
//! must (one each, with as many zones as replicas); nodes hold partitions in proportion to their weight, give or take
//! one, as far as zones allow; as few replicas move as possible.
//!
//! Flow: *quotas* say how many partitions each node should hold. Replicas beyond the replication factor or a zone's
//! share are given up. Missing replicas go to the nodes with most room. Then replicas move from nodes with too many to
//! nodes with too few: directly, if a partition of the one fits on the other, else along a shortest path over other
//! nodes.
//!
//! A repair ([`Goal::Repair`]) only prefers the quotas: it adds missing replicas and moves none that may stay.

use super::Goal;
use super::quota::{quotas, rounded, shares};
use crate::NodeId;
use std::collections::BTreeMap;
use tidegraph_types::PartitionCount;

/// A node that may hold replicas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its name.
    pub node: NodeId,
    /// Its availability zone.
    pub zone: String,
    /// Bytes for replicas. Only the proportion counts; 0 counts as the average of the others.
    pub weight: u64,
}

/// Returns the nodes that should hold each partition. `held` has the nodes that hold each partition now; nodes that are
/// not candidates are ignored. Each partition gets `replication` replicas, or one on each candidate if there are fewer.
#[must_use]
pub fn place(
    partitions: PartitionCount,
    replication: u16,
    candidates: &[Candidate],
    held: &[Vec<NodeId>],
) -> Vec<Vec<NodeId>> {
    let held =
        |partition: usize| held.get(partition).into_iter().flatten().map(|node| (node, true)).collect();
    let held: Vec<Vec<(&NodeId, bool)>> = (0..usize::from(partitions.get())).map(held).collect();
    target(Goal::Balance, replication, candidates, &|_| true, &held)
}

/// Like [`place`], for a goal. `takes` says whether a candidate may get new replicas; `held` also says whether a
/// replica serves.
pub(super) fn target(
    goal: Goal,
    replication: u16,
    candidates: &[Candidate],
    takes: &dyn Fn(&NodeId) -> bool,
    held: &[Vec<(&NodeId, bool)>],
) -> Vec<Vec<NodeId>> {
    let mut candidates: Vec<&Candidate> = candidates.iter().collect();
    candidates.sort_by(|a, b| (&a.zone, &a.node).cmp(&(&b.zone, &b.node)));
    candidates.dedup_by(|a, b| a.node == b.node);
    let replication = usize::from(replication).min(candidates.len());
    if replication == 0 {
        return vec![Vec::new(); held.len()];
    }
    let mut assignment = Assignment::new(replication, &candidates, takes, held);
    assignment.give_up(goal);
    assignment.fill();
    if goal == Goal::Balance {
        assignment.level();
    }
    let named = |nodes: &Vec<usize>| -> Vec<NodeId> {
        let mut nodes: Vec<_> = nodes.iter().map(|n| candidates[*n].node.clone()).collect();
        nodes.sort();
        nodes
    };
    assignment.placed.iter().map(named).collect()
}

/// Longest path to search when a shorter one exists that costs more than one restore.
const FARTHEST: usize = 6;

/// A partition, the node that it leaves, and the node that it goes to.
type Step = (usize, usize, usize);

/// The last step of a path to a node.
#[derive(Clone, Copy)]
struct Way {
    /// Cost of the path up to here, in restores.
    cost: i64,
    /// Whether the moved replica does not serve yet. Such a replica is on its way already, and moves last.
    is_idle: bool,
    from: usize,
    partition: usize,
}

/// The node with too few replicas that a layer reaches at the lowest cost, and that cost.
fn cheapest(over: &[i64], layer: &[Option<Way>]) -> Option<(i64, usize)> {
    let ends = over.iter().zip(layer).enumerate().filter(|(_, (over, _))| **over < 0);
    let reached = ends.filter_map(|(node, (over, way))| way.map(|way| (way.cost, *over, way.is_idle, node)));
    reached.min().map(|(cost, .., node)| (cost, node))
}

/// The path to the node `end` through all layers, the last step first.
fn unwind(layers: &[Vec<Option<Way>>], end: usize) -> Vec<Step> {
    let mut steps = Vec::with_capacity(layers.len());
    let mut at = end;
    for layer in layers.iter().rev() {
        let Some(way) = layer[at] else { break };
        steps.push((way.partition, way.from, at));
        at = way.from;
    }
    steps
}

/// An assignment of partitions to nodes. Nodes and zones are numbers, in order of zone.
struct Assignment {
    replication: usize,
    /// By node.
    zone_of: Vec<usize>,
    /// By node: whether it may get new replicas.
    takes: Vec<bool>,
    /// By zone: most replicas of one partition.
    share: Vec<usize>,
    /// By node: number of partitions that it should hold.
    quota: Vec<usize>,
    /// By node: the partitions that it holds.
    holds: Vec<Vec<usize>>,
    /// By partition: its assigned nodes.
    placed: Vec<Vec<usize>>,
    /// By partition: the nodes that hold it now.
    held: Vec<Vec<usize>>,
    /// By partition: the nodes where it serves now.
    serves: Vec<Vec<usize>>,
}

impl Assignment {
    fn new(
        replication: usize,
        candidates: &[&Candidate],
        takes: &dyn Fn(&NodeId) -> bool,
        held: &[Vec<(&NodeId, bool)>],
    ) -> Self {
        let mut zone_of = Vec::with_capacity(candidates.len());
        let mut zones: Vec<usize> = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            if index == 0 || candidates[index - 1].zone != candidate.zone {
                zones.push(0);
            }
            zone_of.push(zones.len() - 1);
            zones[*zone_of.last().unwrap_or(&0)] += 1;
        }
        let share = shares(&zones, replication);
        let by_name: BTreeMap<&NodeId, usize> =
            candidates.iter().enumerate().map(|(index, c)| (&c.node, index)).collect();
        let mut placed = vec![Vec::new(); held.len()];
        let mut serves = vec![Vec::new(); held.len()];
        let mut holds = vec![Vec::new(); candidates.len()];
        for (partition, held) in held.iter().enumerate() {
            let known = |(node, serves): &(&NodeId, bool)| Some((*by_name.get(*node)?, *serves));
            let mut kept: Vec<(usize, bool)> = held.iter().filter_map(known).collect();
            kept.sort_unstable();
            kept.dedup_by_key(|(node, _)| *node);
            for (node, is_serving) in kept {
                placed[partition].push(node);
                holds[node].push(partition);
                if is_serving {
                    serves[partition].push(node);
                }
            }
        }
        let weights = rounded(&candidates.iter().map(|candidate| candidate.weight).collect::<Vec<_>>());
        let loads: Vec<usize> = holds.iter().map(Vec::len).collect();
        let quota = quotas(held.len(), replication, &zone_of, &share, &weights, &loads);
        let takes = candidates.iter().map(|candidate| takes(&candidate.node)).collect();
        let held = placed.clone();
        Self { replication, zone_of, takes, share, quota, holds, placed, held, serves }
    }

    /// Number of partitions that a node holds beyond its quota; negative if it lacks some.
    fn over(&self, node: usize) -> i64 {
        self.holds[node].len() as i64 - self.quota[node] as i64
    }

    fn in_zone(&self, partition: usize, zone: usize) -> usize {
        self.placed[partition].iter().filter(|node| self.zone_of[**node] == zone).count()
    }

    fn remove(&mut self, partition: usize, node: usize) {
        self.placed[partition].retain(|other| *other != node);
        self.holds[node].retain(|other| *other != partition);
    }

    fn add(&mut self, partition: usize, node: usize) {
        self.placed[partition].push(node);
        self.holds[node].push(partition);
    }

    /// Whether a partition may have one more replica on a node, quotas aside.
    fn fits(&self, partition: usize, node: usize) -> bool {
        let zone = self.zone_of[node];
        self.takes[node]
            && !self.placed[partition].contains(&node)
            && self.in_zone(partition, zone) < self.share[zone]
    }

    /// Whether a partition may move from one node to another.
    fn may_move(&self, partition: usize, from: usize, to: usize) -> bool {
        match self.zone_of[from] == self.zone_of[to] {
            true => self.takes[to] && !self.placed[partition].contains(&to),
            false => self.fits(partition, to),
        }
    }

    /// Drops replicas beyond the replication factor and, to balance, beyond a zone's share. A repair first drops
    /// replicas that do not serve yet, because a node that came back makes them unnecessary. A balance first
    /// drops replicas of the fullest node, because a replica that is being restored elsewhere is there by plan.
    fn give_up(&mut self, goal: Goal) {
        for partition in 0..self.placed.len() {
            loop {
                let nodes = &self.placed[partition];
                let too_many = nodes.len() > self.replication;
                let beyond = |node: &&usize| {
                    let zone = self.zone_of[**node];
                    too_many || goal == Goal::Balance && self.in_zone(partition, zone) > self.share[zone]
                };
                let rank = |node: &&usize| {
                    let is_idle = !self.serves[partition].contains(node);
                    let is_crowded =
                        self.in_zone(partition, self.zone_of[**node]) > self.share[self.zone_of[**node]];
                    match goal {
                        Goal::Repair => (is_idle, i64::from(is_crowded), self.over(**node), false),
                        Goal::Balance => (is_crowded, self.over(**node), 0, !is_idle),
                    }
                };
                let Some(node) = nodes.iter().filter(beyond).max_by_key(rank).copied() else { break };
                self.remove(partition, node);
            }
        }
    }

    /// Adds the missing replicas of every partition, where a node may take them.
    fn fill(&mut self) {
        for partition in 0..self.placed.len() {
            while self.placed[partition].len() < self.replication {
                let best = (0..self.quota.len())
                    .filter(|node| self.fits(partition, *node))
                    .min_by_key(|node| (self.over(*node), spread(partition, *node)));
                let Some(node) = best else { break };
                self.add(partition, node);
            }
        }
    }

    /// Moves replicas until no node is above its quota while another that could take one is below.
    fn level(&mut self) {
        // First the free steps: a partition that is being moved is in both places, and may stay in either.
        let is_moving =
            |(held, placed): (&Vec<usize>, &Vec<usize>)| held.iter().any(|node| !placed.contains(node));
        let still = self.held.iter().zip(&self.placed).map(|pair| !is_moving(pair)).collect();
        self.level_for(0, still);
        self.level_for(i64::MAX, vec![false; self.placed.len()]);
    }

    /// Like [`Assignment::level`], with paths that cost at most `most` and without the barred partitions.
    fn level_for(&mut self, most: i64, mut barred: Vec<bool>) {
        while let Some(path) = self.path(most, &barred) {
            // A partition that failed is not tried again, so that the loop ends.
            if let Err(partition) = self.walk(&path) {
                barred[partition] = true;
            }
        }
    }

    /// Finds a cheapest path from a node with too many replicas to one with too few, the last step first.
    ///
    /// A step costs one restore, unless the node at its end holds the partition already. Taking away a replica that was
    /// only planned gives one restore back. So a path over other nodes may cost no more than a direct one. The search
    /// is that of Bellman and Ford: layer `n` has the cheapest paths of `n` steps.
    fn path(&self, dearest: i64, barred: &[bool]) -> Option<Vec<Step>> {
        let over: Vec<i64> = (0..self.quota.len()).map(|node| self.over(node)).collect();
        let most = over.iter().copied().max().unwrap_or(0);
        if most <= 0 || (0..over.len()).all(|node| over[node] >= 0 || !self.takes[node]) {
            return None;
        }
        // Usually there is a direct step from the fullest node for one restore.
        let fullest = over.iter().position(|over| *over == most);
        let alone: Vec<Option<i64>> =
            (0..over.len()).map(|node| (Some(node) == fullest).then_some(0)).collect();
        let straight = self.layer(&alone, barred);
        let cheap = dearest.min(1);
        if let Some((cost, end)) = cheapest(&over, &straight)
            && cost <= cheap
        {
            return Some(unwind(&[straight], end));
        }
        let mut layers: Vec<Vec<Option<Way>>> = Vec::new();
        let mut best: Option<(i64, usize, usize)> = None;
        let is_enough = |best: &Option<(i64, usize, usize)>, deep: usize| {
            best.map_or(dearest < 1 && deep >= FARTHEST, |(cost, ..)| cost <= cheap || deep >= FARTHEST)
        };
        while layers.len() < over.len() && !is_enough(&best, layers.len()) {
            let reached: Vec<Option<i64>> = match layers.last() {
                None => over.iter().map(|over| (*over > 0).then_some(0)).collect(),
                Some(layer) => layer.iter().map(|way| way.map(|way| way.cost)).collect(),
            };
            let layer = self.layer(&reached, barred);
            if let Some((cost, end)) = cheapest(&over, &layer)
                && cost <= dearest
                && best.is_none_or(|(least, ..)| cost < least)
            {
                best = Some((cost, layers.len() + 1, end));
            }
            layers.push(layer);
        }
        let (_, deep, end) = best?;
        Some(unwind(&layers[..deep], end))
    }

    /// By node: the cheapest step to it from a node of the layer before, whose costs are `reached`.
    fn layer(&self, reached: &[Option<i64>], barred: &[bool]) -> Vec<Option<Way>> {
        let mut ways: Vec<Option<Way>> = vec![None; reached.len()];
        for (from, cost) in reached.iter().enumerate() {
            let Some(cost) = cost else { continue };
            for partition in self.holds[from].iter().copied().filter(|partition| !barred[*partition]) {
                let back = i64::from(!self.held[partition].contains(&from));
                let is_idle = !self.serves[partition].contains(&from);
                for (next, way) in ways.iter_mut().enumerate() {
                    if !self.may_move(partition, from, next) {
                        continue;
                    }
                    let cost = cost + i64::from(!self.held[partition].contains(&next)) - back;
                    if way.is_none_or(|best| (cost, is_idle) < (best.cost, best.is_idle)) {
                        *way = Some(Way { cost, is_idle, from, partition });
                    }
                }
            }
        }
        ways
    }
    /// Moves along a path. If a partition is on it twice and does not fit, nothing moves, and the error is that
    /// partition.
    fn walk(&mut self, path: &[Step]) -> Result<(), usize> {
        for (done, (partition, from, to)) in path.iter().copied().enumerate() {
            if !self.may_move(partition, from, to) {
                for (partition, from, to) in path[..done].iter().rev().copied() {
                    self.remove(partition, to);
                    self.add(partition, from);
                }
                return Err(partition);
            }
            self.remove(partition, from);
            self.add(partition, to);
        }
        Ok(())
    }
}

/// Breaks ties between nodes with equal room, differently for each partition, so that the partitions of a node have
/// their other replicas on many nodes.
fn spread(partition: usize, node: usize) -> u64 {
    // SplitMix64.
    let mut x = ((partition as u64) << 32 | node as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
