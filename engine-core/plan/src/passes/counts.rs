//! Counts the edges of the last step of a pattern instead of making a row of each.
//!
//! `MATCH (a)-[:X]->(b)-[:Y]->(c) RETURN b, count(*)` needs no `c`: the count is the sum of the degrees of `b`. If two steps
//! start from vertices that are bound before both, the count is the sum of the products of two degrees. Edges of the
//! pattern that a step must not use are taken off its degree.
//!
//! Where the last steps close a cycle, their intersection is counted: `MATCH (a)-->(b)-->(c)-->(a) RETURN count(*)` needs
//! no row for each triangle.
//!
//! The pass looks at aggregates that only count rows. It turns the expansions below them into [`Op::CountEdges`], as long
//! as nothing but the count and the rule that a pattern uses no edge twice looks at what they bind.

use crate::{AggregateItem, AggregateKind, Arithmetic, CountChoices, Expr, Op, Plan, Slot};

/// Rewrites the aggregates of the plan.
pub fn run(plan: &mut Plan) {
    let mut slots = plan.slots;
    walk(&mut plan.root, &mut slots);
    plan.slots = slots;
}

fn walk(op: &mut Op, slots: &mut u32) {
    let in_storage = op.counts_in_storage();
    if let Op::Aggregate { input, keys, items } = op
        && !items.is_empty()
        && !(in_storage && is_alone(input))
    {
        let used = |slot: Slot| keys.iter().any(|(_, key)| uses(key, slot));
        let mut counts = vec![];
        while let Some(step) = counted(input, Some(items), &used) {
            counts.push(count_edges(input, step, slots));
        }
        if let Some(step) = counted_intersection(input, items, &used) {
            counts.push(count_choices(input, step, slots));
        }
        if let Some(product) = counts
            .into_iter()
            .map(Expr::Slot)
            .reduce(|a, b| Expr::Arithmetic(Arithmetic::Multiply, Box::new(a), Box::new(b)))
        {
            for item in items {
                (item.kind, item.args) = (AggregateKind::Sum, vec![product.clone()]);
            }
        }
    }
    for child in op.children_mut() {
        walk(child, slots);
    }
}

/// Whether no expansion below this operator can be counted with it. Storage counts the rows of this one already.
fn is_alone(op: &Op) -> bool {
    match op {
        Op::Expand { input, from, .. } => counted(input, None, &|slot| slot == *from).is_none(),
        _ => true,
    }
}

fn uses(expr: &Expr, slot: Slot) -> bool {
    let mut found = false;
    expr.for_each_slot(&mut |used| found |= used == slot);
    found
}

/// What to do with an expansion: the conditions that stay, and the edges that it must not use.
struct Step {
    conditions: Vec<Expr>,
    except: Vec<Slot>,
}

/// Returns the step of the expansion that the operator is, below a filter or not, if it can be counted. `items`: those of
/// the aggregate above it, if they are to be looked at.
fn counted(op: &Op, items: Option<&[AggregateItem]>, used: &dyn Fn(Slot) -> bool) -> Option<Step> {
    let Last { above, conjuncts, step: expand } = last(op);
    let Op::Expand { edge, to, into: false, .. } = expand else { return None };
    let bound: Vec<Slot> = edge.iter().chain(to).copied().collect();
    if bound.iter().any(|slot| used(*slot) || above.contains(slot)) {
        return None;
    }
    if above.is_empty() && !only_count(items.unwrap_or_default(), &bound) {
        return None;
    }
    let mut step = Step { conditions: vec![], except: vec![] };
    for conjunct in conjuncts {
        match conjunct {
            Expr::Unused(slot, others)
                if Some(*slot) == *edge && others.iter().all(|other| !bound.contains(other)) =>
            {
                step.except.extend(others);
            }
            other if bound.iter().any(|slot| uses(other, *slot)) => return None,
            other => step.conditions.push(other.clone()),
        }
    }
    Some(step)
}

/// The last step that is not counted yet, below a filter or not.
struct Last<'p> {
    /// What the counters above it use.
    above: Vec<Slot>,
    conjuncts: Vec<&'p Expr>,
    step: &'p Op,
}

fn last(op: &Op) -> Last<'_> {
    let (mut at, mut above) = (op, vec![]);
    while let Op::CountEdges { input, from, except, .. } = at {
        above.push(*from);
        above.extend(except);
        at = input;
    }
    let (conjuncts, step) = match at {
        Op::Filter { input, predicate: Expr::And(all) } => (all.iter().collect(), &**input),
        Op::Filter { input, predicate } => (vec![predicate], &**input),
        other => (vec![], other),
    };
    Last { above, conjuncts, step }
}

/// Whether aggregates only count the rows, of which none has a null in these slots. What `count(c)` names is bound by the
/// last step, which is looked at first.
fn only_count(items: &[AggregateItem], bound: &[Slot]) -> bool {
    items.iter().all(|item| {
        let counts = match (item.kind, &item.args[..]) {
            (AggregateKind::CountRows, []) => true,
            (AggregateKind::Count, [Expr::Slot(slot)]) => bound.contains(slot),
            _ => false,
        };
        counts && !item.distinct && !item.empty_is_unbound
    })
}

/// What to do with an intersection: the conditions that stay, those on its edges, and which edges its arms must not use.
struct Choices {
    conditions: Vec<Expr>,
    own: Vec<Expr>,
    except: Vec<Vec<Slot>>,
    differ: Vec<(usize, usize)>,
}

/// Returns the step of the intersection that the operator is, below a filter or not, if it can be counted.
fn counted_intersection(op: &Op, items: &[AggregateItem], used: &dyn Fn(Slot) -> bool) -> Option<Choices> {
    let Last { above, conjuncts, step } = last(op);
    let Op::Intersect { arms, to, count: None, .. } = step else { return None };
    let edges: Vec<Option<Slot>> = arms.iter().map(|arm| arm.edge).collect();
    let bound: Vec<Slot> = edges.iter().flatten().chain([to]).copied().collect();
    if bound.iter().any(|slot| used(*slot) || above.contains(slot)) {
        return None;
    }
    if above.is_empty() && !only_count(items, &bound) {
        return None;
    }
    let arm_of = |slot: Slot| edges.iter().position(|edge| *edge == Some(slot));
    let mut choices =
        Choices { conditions: vec![], own: vec![], except: vec![vec![]; arms.len()], differ: vec![] };
    for conjunct in conjuncts {
        match conjunct {
            Expr::Unused(slot, others) if arm_of(*slot).is_some() && !others.contains(to) => {
                let arm = arm_of(*slot)?;
                for other in others {
                    match arm_of(*other) {
                        Some(other) => choices.differ.push((other, arm)),
                        None => choices.except[arm].push(*other),
                    }
                }
                choices.own.push(conjunct.clone());
            }
            other if bound.iter().any(|slot| uses(other, *slot)) => return None,
            other => choices.conditions.push(other.clone()),
        }
    }
    Some(choices)
}

/// Makes the intersection count; returns the slot of the number of its choices.
fn count_choices(op: &mut Op, choices: Choices, slots: &mut u32) -> Slot {
    let mut at = op;
    while let Op::CountEdges { input, .. } = at {
        at = input;
    }
    if let Op::Filter { input, .. } = at {
        *at = std::mem::replace(input, Op::Argument);
    }
    let out = Slot(*slots);
    *slots += 1;
    let filtered = |input: Op, conditions: Vec<Expr>| match conditions.into_iter().reduce(Expr::and) {
        Some(predicate) => Op::Filter { input: Box::new(input), predicate },
        None => input,
    };
    if let Op::Intersect { input, steps, count, .. } = at {
        let one_by_one = filtered(std::mem::replace(steps, Op::Argument), choices.own);
        **steps = Op::Let { input: Box::new(one_by_one), bindings: vec![(out, Expr::literal(1_i64))] };
        **input = filtered(std::mem::replace(input, Op::Argument), choices.conditions);
        *count = Some(CountChoices { out, except: choices.except, differ: choices.differ });
    }
    out
}

/// Replaces the expansion; returns the slot of the number of its edges.
fn count_edges(op: &mut Op, step: Step, slots: &mut u32) -> Slot {
    let mut at = op;
    while let Op::CountEdges { input, .. } = at {
        at = input;
    }
    let expand = match std::mem::replace(at, Op::Argument) {
        Op::Filter { input, .. } => *input,
        other => other,
    };
    let out = Slot(*slots);
    *slots += 1;
    if let Op::Expand { input, from, direction, labels, loops_once, .. } = expand {
        let input = match step.conditions.into_iter().reduce(Expr::and) {
            Some(predicate) => Box::new(Op::Filter { input, predicate }),
            None => input,
        };
        *at = Op::CountEdges { input, from, direction, labels, loops_once, except: step.except, out };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::unused;
    use super::*;
    use crate::Column;

    fn expand(input: Op, from: u32, edge: u32, to: u32) -> Op {
        super::super::testing::expand(input, from, edge, to, false)
    }

    fn count(input: Op, keys: &[u32], kind: AggregateKind, args: Vec<Expr>) -> String {
        let item = AggregateItem { out: Slot(9), kind, args, distinct: false, empty_is_unbound: false };
        let keys = keys.iter().map(|key| (Slot(*key), Expr::Slot(Slot(*key)))).collect();
        let root = Op::Aggregate { input: Box::new(input), keys, items: vec![item] };
        let columns = vec![Column { name: "n".into(), slot: Slot(9) }];
        let mut plan = Plan { root, slots: 10, columns, timeout: None };
        run(&mut plan);
        plan.to_string()
    }

    #[test]
    fn the_last_step_is_counted_without_the_edges_before() {
        let rows = || unused(expand(expand(Op::Argument, 0, 1, 2), 2, 3, 4), 3, &[1]);
        let expected = "expand $0 -[X]-> $2 edge $1\ncount edges $10 of $2 -[X]-> without [$1]\n\
                        aggregate by [] to [$9 = Sum($10)]\nanswer n=$9\n";
        assert_eq!(count(rows(), &[], AggregateKind::CountRows, vec![]), expected);
        assert_eq!(count(rows(), &[], AggregateKind::Count, vec![Expr::Slot(Slot(4))]), expected);
        assert!(count(rows(), &[2], AggregateKind::CountRows, vec![]).contains("count edges"));
        for (keys, kind, args) in [
            (&[4][..], AggregateKind::CountRows, vec![]),
            (&[][..], AggregateKind::Count, vec![Expr::Slot(Slot(2))]),
            (&[][..], AggregateKind::Sum, vec![Expr::Slot(Slot(4))]),
        ] {
            assert!(!count(rows(), keys, kind, args).contains("count edges"));
        }
    }

    #[test]
    fn a_condition_on_the_last_vertex_needs_its_rows() {
        let labelled = |slot| Expr::HasLabels(Box::new(Expr::Slot(Slot(slot))), vec!["L".into()]);
        let rows = |slot| {
            let predicate = labelled(slot).and(Expr::Unused(Slot(3), vec![Slot(1)]));
            Op::Filter { input: Box::new(expand(expand(Op::Argument, 0, 1, 2), 2, 3, 4)), predicate }
        };
        assert!(!count(rows(4), &[], AggregateKind::CountRows, vec![]).contains("count edges"));
        let text = count(rows(2), &[], AggregateKind::CountRows, vec![]);
        assert!(text.contains("filter $2:L\ncount edges $10 of $2"), "{text}");
    }

    #[test]
    fn the_last_steps_of_a_cycle_are_counted_together() {
        let closed = |condition: Option<Expr>| {
            let first = expand(Op::Argument, 0, 1, 2);
            let closing = super::super::testing::expand(expand(first, 2, 3, 4), 4, 5, 0, true);
            let all = unused(unused(closing, 5, &[3, 1]), 3, &[1]);
            let root = match condition {
                Some(predicate) => Op::Filter { input: Box::new(all), predicate },
                None => all,
            };
            let mut plan = Plan { root, slots: 8, columns: vec![], timeout: None };
            crate::passes::cycles::run(&mut plan);
            plan.root
        };
        let text = count(closed(None), &[2], AggregateKind::CountRows, vec![]);
        let expected =
            "count vertices $10 that meet $2 -[X]-> without [$1], $0 <-[X]- without [$1] (0 and 1 differ)\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("    let $10 = 1\n") && text.contains("Sum($10)"), "{text}");
        // A key, or a condition, that needs the vertex.
        let text = count(closed(None), &[4], AggregateKind::CountRows, vec![]);
        assert!(text.contains("intersect $4"), "{text}");
        let labelled = Expr::HasLabels(Box::new(Expr::Slot(Slot(4))), vec!["L".into()]);
        let text = count(closed(Some(labelled)), &[], AggregateKind::CountRows, vec![]);
        assert!(text.contains("intersect $4"), "{text}");
        // A condition on a vertex that was bound before comes before.
        let labelled = Expr::HasLabels(Box::new(Expr::Slot(Slot(2))), vec!["L".into()]);
        let text = count(closed(Some(labelled)), &[], AggregateKind::CountRows, vec![]);
        assert!(text.contains("filter $2:L\ncount vertices $10"), "{text}");
    }

    #[test]
    fn two_steps_from_bound_vertices_multiply() {
        let rows = expand(expand(expand(Op::Argument, 0, 1, 2), 0, 3, 4), 2, 5, 6);
        let text = count(rows, &[], AggregateKind::CountRows, vec![]);
        assert!(text.contains("Sum($10 * $11)") || text.contains("Sum(($10 * $11))"), "{text}");
        // The second step must not use the edge of the first.
        let rows = unused(expand(expand(expand(Op::Argument, 0, 1, 2), 0, 3, 4), 2, 5, 6), 5, &[3]);
        let text = count(rows, &[], AggregateKind::CountRows, vec![]);
        assert!(text.contains("expand $0 -[X]-> $4 edge $3"), "{text}");
    }
}
