//! Finds a shortest cycle in a directed graph.
//!
//! First it removes nodes that can be in no cycle: those without an incoming edge from a remaining node. Then a
//! breadth-first search from each remaining node finds the shortest way back.

use super::Reason;
use std::collections::{BTreeMap, VecDeque};

/// Returns a shortest cycle, if there is one: each node with the reason for the edge to the next node.
pub(super) fn find(nodes: usize, edges: &BTreeMap<(usize, usize), Reason>) -> Option<Vec<(usize, Reason)>> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut arriving = vec![0_usize; nodes];
    for (from, to) in edges.keys() {
        next[*from].push(*to);
        arriving[*to] += 1;
    }
    let mut free: Vec<usize> = (0..nodes).filter(|node| arriving[*node] == 0).collect();
    let mut left = nodes;
    while let Some(node) = free.pop() {
        left -= 1;
        for to in &next[node] {
            arriving[*to] -= 1;
            if arriving[*to] == 0 {
                free.push(*to);
            }
        }
    }
    if left == 0 {
        return None;
    }
    let starts = (0..nodes).filter(|node| arriving[*node] > 0);
    let shortest = starts.filter_map(|start| back_to(start, &next)).min_by_key(Vec::len)?;
    let pairs = shortest.iter().zip(shortest.iter().cycle().skip(1));
    Some(pairs.map(|(from, to)| (*from, edges[&(*from, *to)])).collect())
}

/// Returns the shortest way from a node back to itself. The node is first, and not repeated at the end.
fn back_to(start: usize, next: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut from: Vec<Option<usize>> = vec![None; next.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for to in &next[node] {
            if *to == start {
                let mut way = vec![node];
                while let Some(before) =
                    way.last().filter(|last| **last != start).and_then(|last| from[*last])
                {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if from[*to].is_none() {
                from[*to] = Some(node);
                queue.push_back(*to);
            }
        }
    }
    None
}
