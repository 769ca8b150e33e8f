//! What the rows of a plan that ran teach about its pattern: where the estimates were wrong, and by how much.
//!
//! Flow: a run counts the rows of each operator. [`Lessons::learn`] compares the growth of the rows at each operator with
//! the estimated growth, and notes the ratio for the vertex that a scan or a condition chose, or for the edge that was
//! followed. The next search multiplies its numbers by these ratios, so that it finds the rows that were seen for every
//! part of the pattern that the plan has followed, and carries over what it learned to other orders.
//!
//! Slots name vertices: the front end gives the same ones to the same text.
//!
//! Source of the idea: Stillger, Lohman, Markl and Kandil, "LEO, DB2's learning optimizer", VLDB 2001.

use super::rows::EstimatedRows;
use crate::{ApplyKind, BindKind, Op, Plan, Slot};
use std::collections::BTreeMap;

/// Vertices and edges that are remembered.
const MOST: usize = 256;
/// Ratios beyond this, or its inverse, are those of an estimate that says nothing.
const LARGEST: f64 = 1e9;

/// Ratios of rows seen and rows estimated.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lessons {
    vertices: BTreeMap<Slot, f64>,
    /// By the vertex from which the edge was followed, and the one to which.
    edges: BTreeMap<(Slot, Slot), f64>,
}

/// What a run says about the estimates.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The largest ratio of an estimate and the rows of an operator, whichever is more; at least 1.
    pub worst: f64,
    /// The rows of all operators together: the work of the plan.
    pub rows: u64,
    /// The lessons that the plan was made with, and those of the run.
    pub lessons: Lessons,
}

impl Lessons {
    /// Returns the factor for the number of vertices that pass the conditions of one of the pattern.
    #[must_use]
    pub fn of_vertex(&self, slot: Slot) -> f64 {
        self.vertices.get(&slot).copied().unwrap_or(1.0)
    }

    /// Returns the factor for the number of edges of the pattern that lead from a vertex to another one.
    #[must_use]
    pub fn of_edge(&self, from: Slot, to: Slot) -> f64 {
        self.edges.get(&(from, to)).copied().unwrap_or(1.0)
    }

    /// Judges a run of a plan that was made with these lessons. `seen`: the rows that an operator yielded, if it was
    /// counted.
    #[must_use]
    pub fn learn(
        &self,
        plan: &Plan,
        estimated: &EstimatedRows,
        seen: &dyn Fn(&Op) -> Option<u64>,
    ) -> Judgement {
        let mut judgement = Judgement { worst: 1.0, rows: 0, lessons: self.clone() };
        judgement.walk(&plan.root, &Rows { estimated, seen }, true);
        judgement
    }
}

struct Rows<'r> {
    estimated: &'r EstimatedRows,
    seen: &'r dyn Fn(&Op) -> Option<u64>,
}

impl Rows<'_> {
    /// Returns the estimated and the seen rows of an operator.
    fn of(&self, op: &Op) -> Option<(f64, f64)> {
        let seen = match (op, (self.seen)(op)) {
            // A root's argument is one row, which nobody counts.
            (Op::Argument, None) => self.estimated.get(op)?,
            (_, seen) => seen? as f64,
        };
        Some((self.estimated.get(op)?, seen))
    }
}

impl Judgement {
    /// Judges an operator and those below it. `whole`: whether all of its rows were asked for.
    fn walk(&mut self, op: &Op, rows: &Rows<'_>, whole: bool) {
        if !matches!(op, Op::Argument) {
            self.rows = self.rows.saturating_add((rows.seen)(op).unwrap_or(0));
        }
        let found = if whole { rows.of(op) } else { None };
        // A group or an end comes once from each partition that has it.
        if let Some((estimated, seen)) = found.filter(|_| !matches!(op, Op::DigestScan { .. })) {
            let (estimated, seen) = (estimated.max(1.0), seen.max(1.0));
            self.worst = self.worst.max(estimated / seen).max(seen / estimated);
        }
        let input = op.input();
        if let (Some(after), Some(before)) = (found, input.and_then(|input| rows.of(input))) {
            self.note(op, before, after);
        }
        // A slice stops its input, unless that is read as a whole first.
        let of_input = match op {
            Op::Slice { limit, .. } => whole && limit.is_none(),
            Op::Sort { .. }
            | Op::Top { .. }
            | Op::Tail { .. }
            | Op::Aggregate { .. }
            | Op::ChoosePaths { .. }
            | Op::Eager { .. } => true,
            _ => whole,
        };
        let of_subplans = match op {
            Op::Apply { kind: ApplyKind::Semi | ApplyKind::Anti, .. } | Op::Coalesce { .. } => false,
            Op::Bind { kind, .. } => whole && !matches!(kind, BindKind::Exists | BindKind::First(_)),
            _ => whole,
        };
        for child in op.children() {
            let is_input = input.is_some_and(|input| std::ptr::eq(input, child));
            self.walk(child, rows, if is_input { of_input } else { of_subplans });
        }
    }

    /// Notes how much more the rows grew at an operator than was estimated.
    fn note(&mut self, op: &Op, before: (f64, f64), after: (f64, f64)) {
        // Of less than a row nothing is known.
        if before.1 < 1.0 {
            return;
        }
        let growth = |before: f64, after: f64| after.max(0.1) / before.max(1e-3);
        let ratio = growth(before.1, after.1) / growth(before.0, after.0);
        let known = match op {
            Op::ScanVertices { out, .. } => self.vertex(*out),
            Op::Filter { input, .. } => bound_below(input).and_then(|slot| self.vertex(slot)),
            Op::Expand { from, to: Some(to), .. }
            | Op::VarExpand { from, to, .. }
            | Op::QuantifiedPath { from, to, .. } => self.edge(*from, *to),
            Op::Intersect { arms, to, count: None, .. } => {
                arms.last().and_then(|arm| self.edge(arm.from, *to))
            }
            _ => None,
        };
        if let Some(known) = known.filter(|_| ratio.is_finite()) {
            *known = (*known * ratio).clamp(1.0 / LARGEST, LARGEST);
        }
    }

    fn vertex(&mut self, slot: Slot) -> Option<&mut f64> {
        let is_full = self.lessons.vertices.len() >= MOST && !self.lessons.vertices.contains_key(&slot);
        (!is_full).then(|| self.lessons.vertices.entry(slot).or_insert(1.0))
    }

    fn edge(&mut self, from: Slot, to: Slot) -> Option<&mut f64> {
        let is_full = self.lessons.edges.len() >= MOST && !self.lessons.edges.contains_key(&(from, to));
        (!is_full).then(|| self.lessons.edges.entry((from, to)).or_insert(1.0))
    }
}

/// Returns the vertex that a step just below a condition binds.
pub(super) fn bound_below(op: &Op) -> Option<Slot> {
    match op {
        Op::Filter { input, .. } | Op::Let { input, .. } | Op::Keep { input, .. } => bound_below(input),
        Op::ScanVertices { out, .. } | Op::LookupVertices { out, .. } => Some(*out),
        Op::Expand { to: Some(to), into: false, .. } | Op::Intersect { to, .. } => Some(*to),
        _ => None,
    }
}
