//! Edges at the rim of a pattern whose matches are only counted: they need no rows if they are followed last.

use super::Lowering;
use crate::passes::keep;
use crate::{AggregateItem, AggregateKind, ApplyKind, Op, PatternEdge, PatternNode, Slot};
use std::collections::BTreeSet;

/// Returns the slots that an operator and those above it look at, if they only count the rows of its input.
pub(super) fn used_of_input(op: &Op, used: Option<&BTreeSet<Slot>>) -> Option<BTreeSet<Slot>> {
    let mut all = BTreeSet::new();
    match op {
        Op::Aggregate { items, .. } => {
            let counts = |item: &AggregateItem| item.kind == AggregateKind::CountRows && !item.distinct;
            if items.is_empty() || !items.iter().all(counts) {
                return None;
            }
        }
        Op::Apply { plan, kind: ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Optional(_), .. } => {
            all.extend(used?);
            all.extend(keep::needs(plan));
        }
        Op::Filter { .. } => all.extend(used?),
        _ => return None,
    }
    for expr in op.exprs() {
        expr.for_each_slot(&mut |slot| {
            all.insert(slot);
        });
    }
    Some(all)
}

impl Lowering<'_> {
    /// Returns the edges of a part whose matches can be counted without rows: those at the rim, the outermost first. Empty
    /// if somebody needs the rows.
    pub(super) fn rim(&self, edges: &[usize]) -> Vec<usize> {
        let Some(used) = &self.used_above else { return vec![] };
        let mut rim: Vec<usize> = vec![];
        let is_leaf = |node: usize, edge: usize, rim: &[usize]| {
            let PatternNode { slot, properties, .. } = &self.nodes[node];
            let is_tested = !properties.is_empty() || self.conjuncts.of(*slot).next().is_some();
            let mut others =
                self.edges_at[node].iter().filter(|other| **other != edge && !rim.contains(other));
            !self.node_done[node] && !is_tested && !used.contains(slot) && others.next().is_none()
        };
        let is_free = |edge: usize| {
            let PatternEdge { slot, left, right, properties, length, body, bound, .. } = &self.edges[edge];
            let is_tested = !properties.is_empty() || self.conjuncts.of(*slot).next().is_some();
            let is_plain = length.is_none() && body.is_none() && !*bound && left != right;
            let mut others = (0..self.edges.len()).filter(|other| *other != edge);
            is_plain
                && !is_tested
                && !used.contains(slot)
                && !others.any(|other| self.may_be_same(edge, other))
        };
        loop {
            let next = edges.iter().copied().find(|&edge| {
                let PatternEdge { left, right, .. } = self.edges[edge];
                let has_leaf = is_leaf(left, edge, &rim) || is_leaf(right, edge, &rim);
                !rim.contains(&edge) && has_leaf && is_free(edge)
            });
            match next {
                Some(edge) => rim.push(edge),
                None => return rim,
            }
        }
    }
}
