//! Where replicas should be: a pure function from nodes and what they hold to what they should hold.
//!
//! Rules, the earlier ones first: replicas of a partition are on different nodes; a zone has no more of them than it must
//! (with as many zones as replicas, one each); nodes of a zone hold equally many partitions, give or take one, and so do all nodes
//! where the zones allow it; a replica that is where it may be stays.
//!
//! Flow: *quotas* say how many partitions each node gets, and are the same whatever is held now. What is held beyond a quota
//! or a zone's share is given up. What is missing goes where most room is; where no room fits, others move along a shortest path
//! (as in a flow through a network, of which the quotas are one solution, so that there is always a path or a start anew).
//!
//! It knows nothing of weights and of moves that run; a planner that does asks for fewer moves and can replace it.

use crate::NodeId;
use std::collections::{BTreeMap, VecDeque};
use tidegraph_types::PartitionCount;

/// A node that may hold replicas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its name.
    pub node: NodeId,
    /// Its availability zone.
    pub zone: String,
}

/// Says which nodes should hold each partition. `held` says, by partition, which do now; those that are no candidates are left
/// out. There are as many replicas as `replication`, or as there are candidates. With no candidate, nobody holds anything.
#[must_use]
pub fn place(
    partitions: PartitionCount,
    replication: u16,
    candidates: &[Candidate],
    held: &[Vec<NodeId>],
) -> Vec<Vec<NodeId>> {
    let partitions = usize::from(partitions.get());
    let mut candidates: Vec<&Candidate> = candidates.iter().collect();
    candidates.sort_by(|a, b| (&a.zone, &a.node).cmp(&(&b.zone, &b.node)));
    candidates.dedup_by(|a, b| a.node == b.node);
    let replication = usize::from(replication).min(candidates.len());
    if replication == 0 {
        return vec![Vec::new(); partitions];
    }
    let mut board = Board::new(partitions, replication, &candidates, held);
    board.give_up();
    if !board.fill() {
        board.start_anew();
    }
    let named = |nodes: &Vec<usize>| -> Vec<NodeId> {
        let mut nodes: Vec<_> = nodes.iter().map(|n| candidates[*n].node.clone()).collect();
        nodes.sort();
        nodes
    };
    board.placed.iter().map(named).collect()
}

/// Nodes and zones as numbers, in order of zone.
struct Board {
    replication: usize,
    /// By node.
    zone_of: Vec<usize>,
    /// By zone: most replicas of one partition.
    share: Vec<usize>,
    /// By node: how many partitions it should hold.
    quota: Vec<usize>,
    /// By node: how many it holds.
    load: Vec<usize>,
    /// By partition: its nodes.
    placed: Vec<Vec<usize>>,
}

impl Board {
    fn new(partitions: usize, replication: usize, candidates: &[&Candidate], held: &[Vec<NodeId>]) -> Self {
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
        let mut placed = vec![Vec::new(); partitions];
        for (nodes, held) in placed.iter_mut().zip(held) {
            let mut kept: Vec<usize> = held.iter().filter_map(|node| by_name.get(node).copied()).collect();
            kept.sort_unstable();
            kept.dedup();
            *nodes = kept;
        }
        let mut load = vec![0; candidates.len()];
        placed.iter().flatten().for_each(|node| load[*node] += 1);
        let quota = quotas(partitions, replication, &zones, &share, &zone_of, &load);
        Self { replication, zone_of, share, quota, load, placed }
    }

    fn in_zone(&self, partition: usize, zone: usize) -> usize {
        self.placed[partition].iter().filter(|node| self.zone_of[**node] == zone).count()
    }

    fn remove(&mut self, partition: usize, node: usize) {
        self.placed[partition].retain(|other| *other != node);
        self.load[node] -= 1;
    }

    fn add(&mut self, partition: usize, node: usize) {
        self.placed[partition].push(node);
        self.load[node] += 1;
    }

    /// Whether a partition may have one more replica on a node, its room left aside.
    fn fits(&self, partition: usize, node: usize) -> bool {
        let zone = self.zone_of[node];
        !self.placed[partition].contains(&node) && self.in_zone(partition, zone) < self.share[zone]
    }

    /// Drops what is beyond a zone's share, the replication or a node's quota, from the fullest node each time.
    fn give_up(&mut self) {
        for partition in 0..self.placed.len() {
            loop {
                let nodes = &self.placed[partition];
                let too_many = nodes.len() > self.replication;
                let beyond = |node: &&usize| {
                    let zone = self.zone_of[**node];
                    too_many || self.in_zone(partition, zone) > self.share[zone]
                };
                let over = |node: &usize| self.load[*node] as i64 - self.quota[*node] as i64;
                let Some(node) = nodes.iter().filter(beyond).max_by_key(|node| over(node)).copied() else {
                    break;
                };
                self.remove(partition, node);
            }
        }
        for partition in 0..self.placed.len() {
            let full = |node: &usize| self.load[*node] > self.quota[*node];
            for node in self.placed[partition].clone().into_iter().filter(full).collect::<Vec<_>>() {
                self.remove(partition, node);
            }
        }
    }

    /// Gives every partition what it lacks; false if that was not possible.
    fn fill(&mut self) -> bool {
        (0..self.placed.len()).all(|partition| {
            (self.placed[partition].len()..self.replication).all(|_| {
                let room = |node: usize| self.quota[node].saturating_sub(self.load[node]);
                let best = (0..self.quota.len())
                    .filter(|node| room(*node) > 0 && self.fits(partition, *node))
                    .max_by_key(|node| (room(*node), spread(partition, *node)));
                match best {
                    Some(node) => {
                        self.add(partition, node);
                        true
                    }
                    None => self.move_others(partition),
                }
            })
        })
    }

    /// Makes room for a partition: it takes a full node, of which a partition moves to another node, and so on to one with
    /// room. False if there is no such path.
    fn move_others(&mut self, partition: usize) -> bool {
        let nodes = self.quota.len();
        let mut holders: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (other, held) in self.placed.iter().enumerate() {
            held.iter().for_each(|node| holders[*node].push(other));
        }
        // By node: the one before it on the path, and the partition that comes to it from there.
        let mut before: Vec<Option<(usize, usize)>> = vec![None; nodes];
        let mut seen: Vec<bool> = (0..nodes).map(|node| self.fits(partition, node)).collect();
        let mut queue: VecDeque<usize> = (0..nodes).filter(|node| seen[*node]).collect();
        while let Some(node) = queue.pop_front() {
            if self.load[node] < self.quota[node] {
                return self.walk(partition, node, &before);
            }
            for other in holders[node].iter().copied().filter(|other| *other != partition) {
                for next in 0..nodes {
                    let same_zone = self.zone_of[next] == self.zone_of[node];
                    let fits = match same_zone {
                        true => !self.placed[other].contains(&next),
                        false => self.fits(other, next),
                    };
                    if fits && !seen[next] {
                        seen[next] = true;
                        before[next] = Some((node, other));
                        queue.push_back(next);
                    }
                }
            }
        }
        false
    }

    /// Moves along a path to the node with room. False, and nothing moved, if a partition stands on it twice in a way that does
    /// not fit.
    fn walk(&mut self, partition: usize, end: usize, before: &[Option<(usize, usize)>]) -> bool {
        let (placed, load) = (self.placed.clone(), self.load.clone());
        let mut node = end;
        let mut is_right = true;
        while let Some((from, other)) = before[node] {
            self.remove(other, from);
            is_right &= self.fits(other, node);
            self.add(other, node);
            node = from;
        }
        is_right &= self.fits(partition, node);
        if is_right {
            self.add(partition, node);
        } else {
            (self.placed, self.load) = (placed, load);
        }
        is_right
    }

    /// Places everything without regard to what is held: the nodes in order of zone, each as often as its quota says,
    /// dealt to the partitions in turn. No node comes twice to a partition, since no quota is above the number of
    /// partitions, and no zone more often than its share.
    fn start_anew(&mut self) {
        self.placed.iter_mut().for_each(Vec::clear);
        self.load.fill(0);
        let partitions = self.placed.len();
        let quota = self.quota.clone();
        let dealt = quota.iter().enumerate().flat_map(|(node, quota)| std::iter::repeat_n(node, *quota));
        for (turn, node) in dealt.enumerate() {
            self.add(turn % partitions, node);
        }
    }
}

/// Most replicas of one partition in each zone: as equal as the sizes of the zones allow.
fn shares(zones: &[usize], replication: usize) -> Vec<usize> {
    let most = (1..=replication)
        .find(|most| zones.iter().map(|size| (*size).min(*most)).sum::<usize>() >= replication)
        .unwrap_or(replication);
    zones.iter().map(|size| (*size).min(most)).collect()
}

/// How many partitions each node gets: all equally many, but where that is more than the share of a zone, whose nodes then get
/// equally many of that. What does not divide goes to those that hold most now.
fn quotas(
    partitions: usize,
    replication: usize,
    zones: &[usize],
    share: &[usize],
    zone_of: &[usize],
    load: &[usize],
) -> Vec<usize> {
    let mut of_zone: Vec<Option<usize>> = vec![None; zones.len()];
    let (mut left, mut nodes) = (partitions * replication, zone_of.len());
    // Zones that cannot take as much as an equal part for each node.
    while let Some(zone) = (0..zones.len())
        .filter(|zone| of_zone[*zone].is_none())
        .find(|zone| share[*zone] * partitions * nodes <= left * zones[*zone])
    {
        of_zone[zone] = Some(share[zone] * partitions);
        left -= share[zone] * partitions;
        nodes -= zones[zone];
    }
    let mut quota = vec![0; zone_of.len()];
    // A part for some nodes: equal, and one more for those that hold most, as long as their zone has room.
    let mut deal = |members: Vec<usize>, total: usize| {
        let each = total.checked_div(members.len()).unwrap_or(0);
        members.iter().for_each(|node| quota[*node] = each);
        let mut rest = total - each * members.len();
        let mut by_load = members;
        by_load.sort_by_key(|node| (std::cmp::Reverse(load[*node]), *node));
        for node in by_load {
            let zone = zone_of[node];
            let in_zone: usize = (0..zone_of.len()).filter(|n| zone_of[*n] == zone).map(|n| quota[n]).sum();
            if rest > 0 && in_zone < share[zone] * partitions {
                quota[node] += 1;
                rest -= 1;
            }
        }
    };
    for (zone, total) in of_zone.iter().enumerate() {
        if let Some(total) = total {
            deal((0..zone_of.len()).filter(|node| zone_of[*node] == zone).collect(), *total);
        }
    }
    deal((0..zone_of.len()).filter(|node| of_zone[zone_of[*node]].is_none()).collect(), left);
    quota
}

/// Decides between nodes with equal room, differently for every partition, so that the partitions of a node have their other
/// replicas on many nodes.
fn spread(partition: usize, node: usize) -> u64 {
    // SplitMix64.
    let mut x = ((partition as u64) << 32 | node as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
