//! Keeps only the first value of each group where `head(collect(x))` uses no other.
//!
//! "The newest like of each person" is written as a sort, `collect` and `head`. The list of each group is made, though only its
//! first item is used. If nothing else uses the list, the aggregate becomes [`AggregateKind::First`].
//!
//! The pass handles the operators from which the rows of the plan come, and not subplans, since what is used after these is
//! not at hand.
//!
//! **Invariant.** The slot of the list is read by nothing but its heads.

use super::keep::{self, Live};
use crate::{AggregateItem, AggregateKind, Expr, Function, Op, Plan, Slot};
use tidegraph_types::Value;

/// Replaces lists of which only the first item is used.
pub fn run(plan: &mut Plan) {
    let live = Live::of(plan.columns.iter().map(|column| column.slot));
    walk(&mut plan.root, live);
}

fn walk(mut op: &mut Op, mut after: Live) {
    loop {
        rewrite(op, &after);
        after = keep::step(op, after, false);
        match op.children_mut().into_iter().next() {
            Some(input) => op = input,
            None => return,
        }
    }
}

/// Replaces lists that are made just below `op`, given the slots that are used after it.
fn rewrite(op: &mut Op, after: &Live) {
    let Op::Let { input, bindings } = op else { return };
    let Some(items) = items_of(input) else { return };
    for item in items {
        let is_list = item.kind == AggregateKind::Collect && !item.weighted && !after.contains(item.out);
        let heads = || bindings.iter().filter(|(_, expr)| is_head_of(expr, item.out));
        let is_unused = |(_, expr): &(Slot, Expr)| is_head_of(expr, item.out) || !uses(expr, item.out);
        // A binding may give the slot another value.
        let is_bound = bindings.iter().any(|(slot, _)| *slot == item.out);
        if !is_list || is_bound || heads().next().is_none() || !bindings.iter().all(is_unused) {
            continue;
        }
        item.kind = AggregateKind::First;
        for (_, expr) in &mut *bindings {
            if is_head_of(expr, item.out) {
                *expr = Expr::Slot(item.out);
            }
        }
    }
}

/// Returns the items of an aggregation whose rows an operator passes on.
fn items_of(op: &mut Op) -> Option<&mut Vec<AggregateItem>> {
    match op {
        Op::Aggregate { items, .. } => Some(items),
        Op::Keep { input, .. } => items_of(input),
        _ => None,
    }
}

/// Whether an expression is the first item of the list in a slot.
fn is_head_of(expr: &Expr, list: Slot) -> bool {
    let list = Expr::Slot(list);
    match expr {
        Expr::Call(Function::Head, args) => args[..] == [list],
        Expr::Index(base, index) => {
            **base == list && matches!(**index, Expr::Literal(Value::Long(0) | Value::Int(0)))
        }
        _ => false,
    }
}

fn uses(expr: &Expr, slot: Slot) -> bool {
    let mut is_used = false;
    expr.for_each_slot(&mut |used| is_used |= used == slot);
    is_used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    fn head(slot: u32) -> Expr {
        Expr::Call(Function::Head, vec![Expr::Slot(Slot(slot))])
    }

    fn size(slot: u32) -> Expr {
        Expr::Call(Function::Size, vec![Expr::Slot(Slot(slot))])
    }

    /// The text of a plan that collects `$1` of each `$0` into `$2`, after the pass.
    fn text(bindings: Vec<(Slot, Expr)>, answer: u32) -> String {
        let rows = Op::Unwind { input: Box::new(Op::Argument), list: Expr::List(vec![]), out: Slot(1) };
        let item = AggregateItem {
            out: Slot(2),
            kind: AggregateKind::Collect,
            args: vec![Expr::Slot(Slot(1))],
            distinct: false,
            empty_is_unbound: false,
            weighted: false,
        };
        let keys = vec![(Slot(0), Expr::Slot(Slot(0)))];
        let groups = Op::Aggregate { input: Box::new(rows), keys, items: vec![item] };
        let groups = Op::Keep { input: Box::new(groups), slots: vec![Slot(0), Slot(2)] };
        let root = Op::Let { input: Box::new(groups), bindings };
        let columns = vec![Column { name: "x".into(), slot: Slot(answer) }];
        let mut plan = Plan { root, slots: 5, columns, timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    #[test]
    fn the_head_of_a_list_is_the_first_value() {
        let first = Expr::Index(Box::new(Expr::Slot(Slot(2))), Box::new(Expr::literal(0_i64)));
        assert_eq!(
            text(vec![(Slot(3), head(2)), (Slot(4), first)], 3),
            "unwind $1 of []\naggregate by [$0 = $0] to [$2 = First($1)]\nkeep [$0, $2]\nlet $3 = $2, $4 = $2\nanswer x=$3\n"
        );
    }

    #[test]
    fn a_list_that_is_used_stays_a_list() {
        let stays = |bindings, answer| {
            let text = text(bindings, answer);
            assert!(text.contains("Collect($1)"), "{text}");
        };
        stays(vec![(Slot(3), head(2))], 2);
        stays(vec![(Slot(3), head(2)), (Slot(4), size(2))], 3);
        stays(vec![(Slot(3), size(2))], 3);
        stays(vec![(Slot(2), head(2))], 2);
        let second = Expr::Index(Box::new(Expr::Slot(Slot(2))), Box::new(Expr::literal(1_i64)));
        stays(vec![(Slot(3), second)], 3);
    }
}
