//! Computes what only the answer shows after a sort with a limit, for the few rows that are left.
//!
//! `RETURN m.content, m.date ORDER BY m.date DESC LIMIT 20` binds both properties below the sort, which may have a million
//! rows. The sort needs the date only. The other bindings move above the slice, where there are twenty rows.
//!
//! The pass comes after `columns`: what the first scan reads beside its vertices costs little, and its bindings are slots.
//! Plans that write are left alone, because a property has the same value above the sort only if nothing changes it.
//!
//! **Invariant.** A binding moves only if the sort does not use it, and if nobody sees that it is not computed for the rows
//! that are dropped.

use crate::{Expr, Function, Op, Plan, Slot};
use std::collections::BTreeSet;

/// Moves bindings above slices of sorts.
pub fn run(plan: &mut Plan) {
    if !plan.root.writes() {
        walk(&mut plan.root);
    }
}

fn walk(op: &mut Op) {
    if let Some(late) = late_bindings(op) {
        let slice = std::mem::replace(op, Op::Argument);
        *op = Op::Let { input: Box::new(slice), bindings: late };
    }
    op.children_mut().into_iter().for_each(walk);
}

/// Removes and returns the bindings below a slice of a sort that can be computed above it.
fn late_bindings(op: &mut Op) -> Option<Vec<(Slot, Expr)>> {
    let Op::Slice { input, limit: Some(_), .. } = op else { return None };
    let Op::Sort { input: below, keys } = &mut **input else { return None };
    let Op::Let { input: rows, bindings } = &mut **below else { return None };
    if rebinds(bindings) {
        return None;
    }
    let mut used = BTreeSet::new();
    keys.iter().for_each(|key| add_slots(&key.expr, &mut used));
    let mut stays = vec![false; bindings.len()];
    for ((slot, expr), stays) in bindings.iter().zip(&mut stays).rev() {
        if used.contains(slot) || !may_wait(expr) {
            add_slots(expr, &mut used);
            *stays = true;
        }
    }
    let is_work = |(_, expr): &(Slot, Expr)| !matches!(expr, Expr::Slot(_) | Expr::Literal(_));
    if !bindings.iter().zip(&stays).any(|(binding, stays)| !stays && is_work(binding)) {
        return None;
    }
    let (mut early, mut late) = (vec![], vec![]);
    for (binding, stays) in std::mem::take(bindings).into_iter().zip(stays) {
        if stays { early.push(binding) } else { late.push(binding) }
    }
    if early.is_empty() {
        *below = std::mem::replace(rows, Box::new(Op::Argument));
    } else {
        *bindings = early;
    }
    Some(late)
}

/// Whether a binding gives a new value to a slot that the same or an earlier one uses or binds.
pub(crate) fn rebinds(bindings: &[(Slot, Expr)]) -> bool {
    let mut seen = BTreeSet::new();
    bindings.iter().any(|(slot, expr)| {
        add_slots(expr, &mut seen);
        let is_seen = seen.contains(slot);
        seen.insert(*slot);
        is_seen
    })
}

fn add_slots(expr: &Expr, slots: &mut BTreeSet<Slot>) {
    expr.for_each_slot(&mut |slot| {
        slots.insert(slot);
    });
}

/// Whether skipping the expression for a row has no visible effect.
pub(crate) fn may_wait(expr: &Expr) -> bool {
    match expr {
        Expr::Slot(_) | Expr::Literal(_) => true,
        Expr::Property(base, _) => matches!(**base, Expr::Slot(_) | Expr::Property(..)) && may_wait(base),
        Expr::Call(Function::Coalesce | Function::Id | Function::Labels | Function::Type, args) => {
            args.iter().all(may_wait)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SortKey, TotalOrder};

    fn property(slot: u32, key: &str) -> Expr {
        Expr::Property(Box::new(Expr::Slot(Slot(slot))), key.into())
    }

    fn top(bindings: Vec<(Slot, Expr)>, key: Expr) -> Op {
        let rows = Op::Unwind { input: Box::new(Op::Argument), list: Expr::List(vec![]), out: Slot(0) };
        let rows = Op::Let { input: Box::new(rows), bindings };
        let keys = vec![SortKey { expr: key, order: TotalOrder::OpenCypher, descending: false }];
        let sort = Op::Sort { input: Box::new(rows), keys };
        Op::Slice { input: Box::new(sort), skip: None, limit: Some(Expr::literal(2_i64)) }
    }

    fn text(root: Op) -> String {
        let mut plan = Plan { root, slots: 4, columns: vec![], timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    #[test]
    fn bindings_that_the_sort_does_not_use_come_after_the_slice() {
        let both = vec![(Slot(1), property(0, "name")), (Slot(2), property(0, "date"))];
        assert_eq!(
            text(top(both.clone(), Expr::Slot(Slot(2)))),
            "unwind $0 of []\nlet $2 = $0.date\nsort [$2]\nslice limit 2\nlet $1 = $0.name\n"
        );
        assert_eq!(
            text(top(both, property(0, "date"))),
            "unwind $0 of []\nsort [$0.date]\nslice limit 2\nlet $1 = $0.name, $2 = $0.date\n"
        );
    }

    #[test]
    fn what_the_sort_or_others_need_and_what_may_fail_stays() {
        let stays = |bindings: Vec<(Slot, Expr)>, key| {
            let text = text(top(bindings, key));
            assert!(text.ends_with("slice limit 2\n"), "{text}");
        };
        let name = (Slot(1), property(0, "name"));
        stays(vec![name.clone()], Expr::Slot(Slot(1)));
        stays(
            vec![name.clone(), (Slot(2), Expr::Negate(Box::new(Expr::Slot(Slot(1)))))],
            property(0, "date"),
        );
        stays(vec![(Slot(1), Expr::Call(Function::Rand, vec![]))], property(0, "date"));
        stays(vec![(Slot(1), Expr::Slot(Slot(0)))], property(0, "date"));
        // The key sees the slot as it is after the binding.
        stays(vec![(Slot(0), property(0, "name"))], Expr::Slot(Slot(0)));
        stays(
            vec![name.clone(), (Slot(0), Expr::literal(1_i64)), (Slot(2), property(0, "x"))],
            property(0, "y"),
        );
    }
}
