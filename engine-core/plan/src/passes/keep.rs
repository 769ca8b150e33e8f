//! Tells each `Expand` which slots are used after it, so that it does not copy dead columns.
//!
//! The pass walks against the flow of rows with the set of live slots.
//!
//! **Invariant.** A slot is kept if a later operator, an answer column or a later round of a repeat reads it.

use crate::{ApplyKind, BindKind, Op, Plan, Slot};
use std::collections::BTreeSet;

type Live = BTreeSet<Slot>;

/// Sets `keep` of each `Expand`.
pub fn run(plan: &mut Plan) {
    let live = plan.columns.iter().map(|c| c.slot).collect();
    walk(&mut plan.root, &live);
}

fn add_exprs(op: &Op, live: &mut Live) {
    for expr in op.exprs() {
        expr.for_each_slot(&mut |slot| {
            live.insert(slot);
        });
    }
}

/// Sets `keep` in `op` and the operators below it, given the slots that are used after `op`. Returns the slots that its
/// `Argument` must bind.
fn walk(op: &mut Op, after: &Live) -> Live {
    let mut before = after.clone();
    match op {
        Op::Argument => return before,
        Op::Expand { from, edge, to, into, keep, .. } => {
            if let Some(edge) = edge {
                before.remove(edge);
            }
            if let (Some(to), false) = (&to, &into) {
                before.remove(to);
            }
            *keep = Some(before.iter().copied().collect());
            before.insert(*from);
            if let (Some(to), true) = (&to, &into) {
                before.insert(*to);
            }
        }
        Op::VarExpand { from, to, into, edges, exclude, .. } => {
            if let Some(edges) = edges {
                before.remove(edges);
            }
            if *into {
                before.insert(*to);
            } else {
                before.remove(to);
            }
            before.insert(*from);
            before.extend(exclude.iter().copied());
            add_exprs(op, &mut before);
        }
        Op::ShortestPath { from, to, .. } => {
            before.extend([*from, *to]);
            add_exprs(op, &mut before);
        }
        Op::Aggregate { .. } => {
            before = Live::new();
            add_exprs(op, &mut before);
        }
        Op::Keep { slots, .. } => before.retain(|slot| slots.contains(slot)),
        Op::Let { bindings, .. } => {
            for (slot, expr) in bindings.iter().rev() {
                before.remove(slot);
                expr.for_each_slot(&mut |used| {
                    before.insert(used);
                });
            }
        }
        Op::Match { pattern, .. } => {
            before.extend(pattern.nodes.iter().map(|n| n.slot));
            before.extend(pattern.edges.iter().map(|e| e.slot));
            add_exprs(op, &mut before);
        }
        Op::Apply { plan, kind, .. } => {
            let inner_after = match kind {
                ApplyKind::Cross | ApplyKind::Optional(_) => after.clone(),
                ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Discard => Live::new(),
            };
            before.extend(walk(plan, &inner_after));
        }
        Op::Bind { plan, out, kind, .. } => {
            before.remove(out);
            let inner_after = match kind {
                BindKind::First(slot) | BindKind::Collect(slot) => Live::from([*slot]),
                BindKind::Exists | BindKind::Count => Live::new(),
            };
            before.extend(walk(plan, &inner_after));
        }
        Op::Union { branches, .. } | Op::Coalesce { branches, .. } => {
            for branch in branches {
                before.extend(walk(branch, after));
            }
        }
        Op::Choose { branches, otherwise, .. } => {
            for branch in branches.iter_mut().map(|b| &mut b.plan).chain(otherwise.as_deref_mut()) {
                before.extend(walk(branch, after));
            }
            add_exprs(op, &mut before);
        }
        Op::Repeat { body, until, emit, loops, .. } => {
            before.insert(*loops);
            for test in until.iter_mut().chain(emit) {
                before.extend(walk(&mut test.plan, &Live::new()));
            }
            // Each round must pass on the slots that a later round reads.
            loop {
                let needed = walk(body, &before);
                let size = before.len();
                before.extend(needed);
                if before.len() == size {
                    break;
                }
            }
            add_exprs(op, &mut before);
        }
        Op::Merge { matching, create, .. } => {
            let needed = walk(matching, after);
            before.extend(needed);
            before.extend(walk(create, after));
        }
        _ => add_exprs(op, &mut before),
    }
    match op.children_mut().into_iter().next() {
        Some(input) => walk(input, &before),
        None => before,
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
    fn only_what_is_used_later_is_kept() {
        let lookup =
            Op::LookupVertices { input: Box::new(Op::Argument), ids: Expr::literal("a"), out: Slot(0) };
        let mut plan = Plan {
            root: expand(expand(lookup, 0, 1), 1, 2),
            slots: 3,
            columns: vec![
                Column { name: "b".into(), slot: Slot(2) },
                Column { name: "a".into(), slot: Slot(0) },
            ],
        };
        run(&mut plan);
        assert_eq!(
            plan.to_string(),
            "look up vertices $0 of 'a'\nexpand $0 -[]-> $1 keep [$0]\nexpand $1 -[]-> $2 keep [$0]\nanswer b=$2, a=$0\n"
        );
    }

    #[test]
    fn a_later_round_keeps_what_an_earlier_one_must_hand_on() {
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
        };
        run(&mut plan);
        // The body reads $2 in every round, so the expand inside it must keep the slot.
        assert!(plan.to_string().contains("keep [$2, $4]"), "{plan}");
    }
}
