//! Finds the walks of variable length of which only the ends matter, so that a breadth-first search finds them.
//!
//! The pass walks against the flow of rows. A `Distinct`, or an aggregate of distinct values, does not care how often a
//! row comes; neither does a subplan of which only is asked whether it yields a row. Operators that treat each row by
//! itself pass that on to their input.
//!
//! **Invariant.** A walk yields each end once only if no operator after it sees its edges or counts its rows.

use crate::{AggregateItem, AggregateKind, ApplyKind, BindKind, Expr, Op, Plan};

/// Sets `ends_only` of walks. The pass `keep` has removed the edges that nobody uses.
pub fn run(plan: &mut Plan) {
    walk(&mut plan.root, false);
}

/// `once`: whether it is enough that each of the operator's rows comes once.
fn walk(op: &mut Op, once: bool) {
    if let Op::VarExpand { edges: None, length, ends_only, .. } = op {
        *ends_only = once && length.min <= 1;
    }
    let is_steady = !op.exprs().into_iter().any(Expr::is_random);
    let (input, subplans) = match op {
        Op::Distinct { .. } => (true, false),
        Op::Aggregate { items, .. } => (items.iter().all(ignores_repeats), false),
        Op::Apply { kind: ApplyKind::Semi | ApplyKind::Anti, .. } => (once, true),
        Op::Apply { kind: ApplyKind::Cross | ApplyKind::Optional(_), .. } | Op::Union { .. } => (once, once),
        Op::Bind { kind: BindKind::Exists, .. } => (once, true),
        Op::Bind { .. } => (once, false),
        Op::ScanVertices { .. }
        | Op::ScanEdges { .. }
        | Op::LookupVertices { .. }
        | Op::LookupEdges { .. }
        | Op::Expand { .. }
        | Op::CountEdges { .. }
        | Op::Intersect { .. }
        | Op::VarExpand { .. }
        | Op::ShortestPath { .. }
        | Op::Filter { .. }
        | Op::Let { .. }
        | Op::Keep { .. }
        | Op::Unwind { .. }
        | Op::Sort { .. }
        | Op::Eager { .. }
        | Op::Bulk { .. } => (once, false),
        _ => (false, false),
    };
    let has_input = op.input().is_some();
    for (index, child) in op.children_mut().into_iter().enumerate() {
        let is_input = has_input && index == 0;
        walk(child, is_steady && if is_input { input } else { subplans });
    }
}

/// Whether an aggregate is the same if rows come more often.
pub(super) fn ignores_repeats(item: &AggregateItem) -> bool {
    item.distinct || matches!(item.kind, AggregateKind::Min | AggregateKind::Max | AggregateKind::CollectSet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, Length, Slot};
    use tidegraph_types::Direction;

    fn walk_of(min: u32, edges: Option<Slot>) -> Op {
        Op::VarExpand {
            input: Box::new(Op::Argument),
            from: Slot(0),
            direction: Direction::Out,
            labels: vec![],
            length: Length { min, max: None },
            edges,
            to: Slot(1),
            into: false,
            edge_filter: None,
            exclude: vec![],
            ends_only: false,
        }
    }

    fn text(root: Op) -> String {
        let mut plan = Plan { root, slots: 4, columns: vec![], timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    }

    fn distinct(input: Op) -> Op {
        Op::Distinct { input: Box::new(input), by: vec![Expr::Slot(Slot(1))] }
    }

    #[test]
    fn distinct_ends_are_reached() {
        assert!(text(distinct(walk_of(1, None))).starts_with("reach $0"));
        let first =
            Op::Slice { input: Box::new(walk_of(1, None)), skip: None, limit: Some(Expr::literal(1)) };
        for op in [
            walk_of(1, None),
            distinct(walk_of(2, None)),
            distinct(walk_of(1, Some(Slot(2)))),
            distinct(first),
        ] {
            assert!(text(op).starts_with("walk $0"));
        }
    }

    #[test]
    fn a_subplan_that_is_asked_whether_it_has_a_row_reaches() {
        let apply =
            |kind| Op::Apply { input: Box::new(Op::Argument), plan: Box::new(walk_of(0, None)), kind };
        assert!(text(apply(ApplyKind::Semi)).contains("reach $0"));
        assert!(text(apply(ApplyKind::Cross)).contains("walk $0"));
        assert!(text(distinct(apply(ApplyKind::Cross))).contains("reach $0"));
    }

    #[test]
    fn random_values_and_counts_need_every_walk() {
        let random = Op::Let {
            input: Box::new(walk_of(1, None)),
            bindings: vec![(Slot(2), Expr::Call(Function::Rand, vec![]))],
        };
        assert!(text(distinct(random)).starts_with("walk $0"));
        let count = |kind, distinct| Op::Aggregate {
            input: Box::new(walk_of(1, None)),
            keys: vec![],
            items: vec![AggregateItem {
                out: Slot(2),
                kind,
                args: vec![Expr::Slot(Slot(1))],
                distinct,
                empty_is_unbound: false,
                weighted: false,
            }],
        };
        assert!(text(count(AggregateKind::Count, false)).starts_with("walk $0"));
        assert!(text(count(AggregateKind::Count, true)).starts_with("reach $0"));
        assert!(text(count(AggregateKind::Max, false)).starts_with("reach $0"));
    }
}
