//! Joins the patterns of `MATCH` clauses that follow each other, so that one search orders all their edges.
//!
//! Edges of one clause must differ, edges of two clauses need not: [`MatchPattern::clauses`] tells them apart. Patterns stay
//! apart if one of them has more than plain edges, or if there would be too many edges for a search.

use super::search::MOST_EDGES;
use crate::{MatchPattern, Op};

/// Joins a pattern with those of the clauses right before it.
pub(super) fn join(input: &mut Box<Op>, pattern: &mut MatchPattern) {
    while let Op::Match { input: before, pattern: first } = &mut **input {
        if first.edges.len() + pattern.edges.len() > MOST_EDGES || !is_plain(first) || !is_plain(pattern) {
            return;
        }
        let before = std::mem::replace(before, Box::new(Op::Argument));
        *pattern = joined(std::mem::take(first), std::mem::take(pattern));
        *input = before;
    }
}

fn is_plain(pattern: &MatchPattern) -> bool {
    let is_plain = |edge: &crate::PatternEdge| !edge.bound && edge.length.is_none() && edge.body.is_none();
    pattern.paths.is_empty() && pattern.edges.iter().all(is_plain)
}

fn joined(mut all: MatchPattern, second: MatchPattern) -> MatchPattern {
    let mut numbers = vec![];
    for node in second.nodes {
        let known = all.nodes.iter().position(|other| other.slot == node.slot);
        numbers.push(known.unwrap_or(all.nodes.len()));
        match known {
            Some(known) => {
                let known = &mut all.nodes[known];
                for label in node.labels {
                    if !known.labels.contains(&label) {
                        known.labels.push(label);
                    }
                }
                known.properties.extend(node.properties);
            }
            None => all.nodes.push(node),
        }
    }
    let clause = |clauses: &[u32], edge: usize| clauses.get(edge).copied().unwrap_or_default();
    let mut clauses: Vec<u32> = (0..all.edges.len()).map(|edge| clause(&all.clauses, edge)).collect();
    let next = clauses.iter().max().map_or(0, |last| last + 1);
    clauses.extend((0..second.edges.len()).map(|edge| next + clause(&second.clauses, edge)));
    all.clauses = clauses;
    for mut edge in second.edges {
        (edge.left, edge.right) = (numbers[edge.left], numbers[edge.right]);
        all.edges.push(edge);
    }
    all.predicate = all.predicate.into_iter().chain(second.predicate).reduce(crate::Expr::and);
    all
}
