//! Tells each `Expand` and `Intersect` which slots are used after it, so that it does not copy dead columns, each walk
//! whether its edges are used, and each `LoadCsv` whether the numbers of its records are.
//!
//! The pass walks against the flow of rows with the set of live slots.
//!
//! **Invariant.** A slot is kept if a later operator, an answer column or a later round of a repeat reads it.

use crate::{ApplyKind, BindKind, Op, Plan, Slot};
use fixedbitset::FixedBitSet;

/// Sets `keep` of each `Expand` and `Intersect`, and removes edges of walks that nobody uses.
pub fn run(plan: &mut Plan) {
    let live = Live::of(plan.columns.iter().map(|c| c.slot));
    walk(&mut plan.root, live, true);
}

/// Returns the slots that a subplan needs of its `Argument`, if no slot is used after it.
pub(super) fn needs(plan: &Op) -> Vec<Slot> {
    needs_before(plan, Live::default()).slots()
}

/// Returns the slots that a subplan needs of its `Argument`, given the slots that are used after it.
pub(crate) fn needs_before(plan: &Op, after: Live) -> Live {
    walk(&mut plan.clone(), after, false)
}

/// A set of slots.
#[derive(Clone, Default)]
pub(crate) struct Live(FixedBitSet);

impl Live {
    pub(crate) fn of(slots: impl IntoIterator<Item = Slot>) -> Self {
        let mut live = Self::default();
        slots.into_iter().for_each(|slot| live.insert(slot));
        live
    }

    pub(super) fn insert(&mut self, slot: Slot) {
        self.0.grow_and_insert(slot.0 as usize);
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if (slot.0 as usize) < self.0.len() {
            self.0.remove(slot.0 as usize);
        }
    }

    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.0.contains(slot.0 as usize)
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.union_with(&other.0);
    }

    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.0.ones().map(|slot| Slot(slot as u32)).collect()
    }

    fn add_exprs(&mut self, op: &Op) {
        for expr in op.exprs() {
            expr.for_each_slot(&mut |slot| self.insert(slot));
        }
    }
}

/// Returns the slots that `op` and the operators below it need of their `Argument`, given the slots that are used after
/// `op`. `set`: also sets `keep` in them.
fn walk(op: &mut Op, after: Live, set: bool) -> Live {
    let before = step(op, after, set);
    match op.children_mut().into_iter().next() {
        Some(input) => walk(input, before, set),
        None => before,
    }
}

/// Returns the slots that `op` and its subplans need of its input, given the slots that are used after `op`. `set`: also sets
/// `keep` in it.
pub(super) fn step(op: &mut Op, after: Live, set: bool) -> Live {
    let mut before = after;
    match op {
        Op::Argument => {}
        Op::Expand { from, edge, to, into, keep, .. } => {
            if let Some(edge) = edge {
                before.remove(*edge);
            }
            if let (Some(to), false) = (&to, &into) {
                before.remove(*to);
            }
            if set {
                *keep = Some(before.slots());
            }
            before.insert(*from);
            if let (Some(to), true) = (&to, &into) {
                before.insert(*to);
            }
        }
        Op::CountEdges { from, except, except_ends, out, .. } => {
            before.remove(*out);
            before.insert(*from);
            except.iter().chain(&*except_ends).for_each(|slot| before.insert(*slot));
        }
        Op::Intersect { .. } => intersect(op, &mut before, set),
        // It begins a plan.
        Op::DigestScan { rows, .. } => return walk(rows, before, set),
        Op::VarExpand { from, to, into, edges, exclude, .. } => {
            if set && edges.is_some_and(|edges| !before.contains(edges)) {
                *edges = None;
            }
            if let Some(edges) = edges {
                before.remove(*edges);
            }
            if *into {
                before.insert(*to);
            } else {
                before.remove(*to);
            }
            before.insert(*from);
            exclude.iter().for_each(|slot| before.insert(*slot));
            before.add_exprs(op);
        }
        Op::QuantifiedPath { .. } => quantified(op, &mut before, set),
        Op::PathSearch { .. } => searched(op, &mut before, set),
        Op::LoadCsv { out, number, file, .. } => {
            if set {
                *number = number.filter(|slot| before.contains(*slot));
                *file = file.filter(|slot| before.contains(*slot));
            }
            [Some(*out), *number, *file].into_iter().flatten().for_each(|slot| before.remove(slot));
            before.add_exprs(op);
        }
        Op::ShortestPath { from, to, .. } => {
            before.insert(*from);
            before.insert(*to);
            before.add_exprs(op);
        }
        Op::NearestPath { from, to, steps, at, edge, distance, edges, .. } => {
            before.remove(*edges);
            let mut needed = walk(steps, Live::of([*edge, *distance]), set);
            needed.remove(*at);
            before.extend(&needed);
            before.insert(*from);
            before.insert(*to);
        }
        Op::Analyze { weights, steps, at, edge, .. } => {
            // Its steps get a row with nothing bound.
            walk(steps, Live::of([*at, *edge]), set);
            weights.iter().for_each(|slot| before.insert(*slot));
        }
        Op::Aggregate { .. } => {
            before = Live::default();
            before.add_exprs(op);
        }
        Op::Keep { slots, .. } => before.0.intersect_with(&Live::of(slots.iter().copied()).0),
        Op::Each { by, .. } => by.iter().for_each(|slot| before.insert(*slot)),
        Op::Bulk { by, weight, .. } => by.iter().chain(&*weight).for_each(|slot| before.insert(*slot)),
        Op::Let { bindings, .. } => {
            for (slot, expr) in bindings.iter().rev() {
                before.remove(*slot);
                expr.for_each_slot(&mut |used| before.insert(used));
            }
        }
        Op::Match { pattern, .. } => {
            pattern.nodes.iter().for_each(|n| before.insert(n.slot));
            pattern.edges.iter().for_each(|e| before.insert(e.slot));
            before.add_exprs(op);
        }
        _ => {
            subplans(op, &mut before, set);
            before.add_exprs(op);
        }
    }
    before
}

/// Adds the slots that an intersection needs, and sets what it and its steps keep.
fn intersect(op: &mut Op, before: &mut Live, set: bool) {
    let Op::Intersect { arms, to, steps, count, keep, .. } = op else { return };
    let needed = walk(steps, before.clone(), set);
    arms.iter().filter_map(|arm| arm.edge).chain([*to]).for_each(|slot| before.remove(slot));
    if let Some(count) = count {
        before.remove(count.out);
    }
    if set {
        *keep = Some(before.slots());
    }
    before.extend(&needed);
    arms.iter().for_each(|arm| before.insert(arm.from));
}

/// Drops the lists of a quantified path that nothing uses, and adds the slots that the operator needs.
fn quantified(op: &mut Op, before: &mut Live, set: bool) {
    before.add_exprs(op);
    let Op::QuantifiedPath { from, to, into, body, first, last, steps, edges, groups, exclude, uses, .. } =
        op
    else {
        return;
    };
    if set {
        groups.retain(|(_, list)| before.contains(*list));
        *edges = edges.filter(|slot| before.contains(*slot));
    }
    groups.iter().for_each(|(_, list)| before.remove(*list));
    edges.iter().for_each(|slot| before.remove(*slot));
    let of_repetition = steps.iter().chain(groups.iter().map(|(slot, _)| slot)).chain([&*last]);
    let mut needed = walk(body, Live::of(of_repetition.copied()), set);
    needed.remove(*first);
    if set {
        *uses = Some(needed.slots());
    }
    before.extend(&needed);
    if *into {
        before.insert(*to);
    } else {
        before.remove(*to);
    }
    before.insert(*from);
    exclude.iter().for_each(|slot| before.insert(*slot));
}

/// Drops the lists of searched paths that nothing uses, and adds the slots that the operator needs.
fn searched(op: &mut Op, before: &mut Live, set: bool) {
    let Op::PathSearch { from, to, into, parts, uses, .. } = op else { return };
    for part in &mut *parts {
        if set {
            part.groups.retain(|(_, list)| before.contains(*list));
            part.edges = part.edges.filter(|slot| before.contains(*slot));
        }
        part.groups.iter().for_each(|(_, list)| before.remove(*list));
        part.edges.iter().for_each(|slot| before.remove(*slot));
        before.remove(part.end);
    }
    let mut needed = Live::default();
    for part in parts {
        let of_repetition = part.steps.iter().chain(part.groups.iter().map(|(slot, _)| slot));
        let mut of_part = walk(&mut part.body, Live::of(of_repetition.chain([&part.last]).copied()), set);
        of_part.remove(part.first);
        let mut of_check = Live::default();
        part.check.iter().for_each(|check| check.for_each_slot(&mut |slot| of_check.insert(slot)));
        of_check.remove(part.end);
        needed.extend(&of_part);
        needed.extend(&of_check);
    }
    if set {
        *uses = Some(needed.slots());
    }
    before.extend(&needed);
    if *into {
        before.insert(*to);
    }
    before.insert(*from);
}

/// Adds the slots that the subplans of an operator need; `before` holds the slots that are used after it.
fn subplans(op: &mut Op, before: &mut Live, set: bool) {
    let after = before.clone();
    match op {
        Op::Apply { plan, kind, .. } => {
            let inner_after = match kind {
                ApplyKind::Cross | ApplyKind::Optional(_) => after,
                ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Discard => Live::default(),
            };
            before.extend(&walk(plan, inner_after, set));
        }
        Op::Bind { plan, out, kind, .. } => {
            before.remove(*out);
            let inner_after = match kind {
                BindKind::First(slot) | BindKind::Collect(slot) => Live::of([*slot]),
                BindKind::Exists | BindKind::Count => Live::default(),
            };
            before.extend(&walk(plan, inner_after, set));
        }
        Op::Union { branches, .. } | Op::Coalesce { branches, .. } => {
            for branch in branches {
                before.extend(&walk(branch, after.clone(), set));
            }
        }
        Op::Choose { branches, otherwise, .. } => {
            for branch in branches.iter_mut().map(|b| &mut b.plan).chain(otherwise.as_deref_mut()) {
                before.extend(&walk(branch, after.clone(), set));
            }
        }
        Op::Repeat { body, until, emit, loops, .. } => {
            before.insert(*loops);
            for test in until.iter_mut().chain(emit) {
                before.extend(&walk(&mut test.plan, Live::default(), set));
            }
            // Each round must pass on the slots that a later round reads. One walk finds the slots that the body needs,
            // because the slots that the next round adds are among them already. So a nested loop is walked once for
            // each level around it. Two walks for each level would double the number of walks with each level.
            let needed = walk(body, before.clone(), false);
            before.extend(&needed);
            if set {
                walk(body, before.clone(), true);
            }
        }
        Op::Merge { matching, create, .. } => {
            before.extend(&walk(matching, after.clone(), set));
            before.extend(&walk(create, after, set));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Expr};
    use tidegraph_types::Direction;

    fn expand(input: Op, from: u32, to: u32) -> Op {
        Op::Expand {
            input: Box::new(input),
            from: Slot(from),
            direction: Direction::Out,
            labels: vec![],
            edge: None,
            to: Some(Slot(to)),
            into: false,
            loops_once: false,
            keep: None,
        }
    }

    #[test]
    fn only_slots_that_are_used_later_are_kept() {
        let lookup =
            Op::LookupVertices { input: Box::new(Op::Argument), ids: Expr::literal("a"), out: Slot(0) };
        let mut plan = Plan {
            root: expand(expand(lookup, 0, 1), 1, 2),
            slots: 3,
            columns: vec![
                Column { name: "b".into(), slot: Slot(2) },
                Column { name: "a".into(), slot: Slot(0) },
            ],
            timeout: None,
            seed: None,
            references: false,
        };
        run(&mut plan);
        assert_eq!(
            plan.to_string(),
            "look up vertices $0 of 'a'\nexpand $0 -[]-> $1 keep [$0]\nexpand $1 -[]-> $2 keep [$0]\nanswer b=$2, a=$0\n"
        );
    }

    #[test]
    fn a_round_keeps_the_slots_that_a_later_round_reads() {
        let step = Op::Let {
            input: Box::new(expand(Op::Argument, 0, 1)),
            bindings: vec![(Slot(0), Expr::Slot(Slot(1))), (Slot(3), Expr::Slot(Slot(2)))],
        };
        let mut plan = Plan {
            root: Op::Repeat {
                input: Box::new(Op::Argument),
                body: Box::new(step),
                until: None,
                emit: None,
                times: Some(Expr::literal(2)),
                times_before: false,
                loops: Slot(4),
            },
            slots: 5,
            columns: vec![Column { name: "r".into(), slot: Slot(3) }],
            timeout: None,
            seed: None,
            references: false,
        };
        run(&mut plan);
        // The body reads $2 in every round, so the expand inside it must keep the slot.
        assert!(plan.to_string().contains("keep [$2, $4]"), "{plan}");
    }
}
