//! Counts the edges of the last step of a pattern instead of making a row of each.
//!
//! `MATCH (a)-[:X]->(b)-[:Y]->(c) RETURN b, count(*)` needs no `c`: the count is the sum of the degrees of `b`. If two steps
//! start from vertices that are bound before both, the count is the sum of the products of two degrees. Edges of the
//! pattern that a step must not use are taken off its degree, and so are edges to a vertex that its end must differ from.
//!
//! A step whose end is only the start of steps that are counted is counted together with them: each of its edges counts as
//! often as the product of their numbers. Tests of subqueries (`WHERE NOT (a)-->(b)`) that need nothing that a step binds
//! are made before it. So a pattern without cycles needs rows of its first vertex only, if there are no
//! conditions between its vertices. Conditions on the labels of an end go along. `OPTIONAL MATCH` counts at least once.
//!
//! Where the last steps close a cycle, their intersection is counted: `MATCH (a)-->(b)-->(c)-->(a) RETURN count(*)` needs
//! no row for each triangle.
//!
//! The pass looks at aggregates that only count rows. It turns the expansions below them into [`Op::CountEdges`], as long
//! as nothing but the count and the rule that a pattern uses no edge twice looks at what they bind.

use super::keep;
use crate::{
    AggregateItem, AggregateKind, ApplyKind, Arithmetic, Comparison, CountChoices, CountStep, Expr, Op, Plan,
    Slot,
};

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
        && !(in_storage && is_alone(input, *slots))
    {
        let used = |slot: Slot| keys.iter().any(|(_, key)| uses(key, slot));
        fold(input, Some(items), &used, slots);
        let mut counts = counters(input).1;
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

/// Counts the last steps, from the last one on.
fn fold(op: &mut Op, items: Option<&[AggregateItem]>, used: &dyn Fn(Slot) -> bool, slots: &mut u32) {
    loop {
        if let Some(step) = counted(op, items, used) {
            count_edges(op, step, slots);
        } else if let Some(step) = counted_option(op, items, used, slots) {
            count_option(op, step, slots);
        } else {
            break;
        }
    }
}

/// Whether no expansion below this operator can be counted with it. Storage counts the rows of this one already.
fn is_alone(op: &Op, mut slots: u32) -> bool {
    match op {
        Op::Expand { input, .. } => {
            let none = |_: Slot| false;
            counted(input, None, &none).is_none() && counted_option(input, None, &none, &mut slots).is_none()
        }
        _ => true,
    }
}

fn uses(expr: &Expr, slot: Slot) -> bool {
    let mut found = false;
    expr.for_each_slot(&mut |used| found |= used == slot);
    found
}

/// What to do with an expansion.
struct Step {
    /// The conditions that stay.
    conditions: Vec<Expr>,
    /// The edges that it must not use, and the vertices where it must not end.
    except: Vec<Slot>,
    except_ends: Vec<Slot>,
    /// The condition on its end, with the slot of the end.
    condition: Option<(Slot, Box<Expr>)>,
    /// The slots of the counters that start at its end.
    then: Vec<Slot>,
}

/// Returns the step of the expansion that the operator is, below a filter or not, if it can be counted. `items`: those of
/// the aggregate above it, if they are to be looked at.
fn counted(op: &Op, items: Option<&[AggregateItem]>, used: &dyn Fn(Slot) -> bool) -> Option<Step> {
    let Last { above, guards, conjuncts, step: expand } = last(op);
    let Op::Expand { edge, to, into: false, .. } = expand else { return None };
    let bound: Vec<Slot> = edge.iter().chain(to).copied().collect();
    if guards
        .iter()
        .flat_map(|guard| guard.subplans())
        .flat_map(keep::needs)
        .any(|slot| bound.contains(&slot))
    {
        return None;
    }
    if bound.iter().any(|slot| used(*slot))
        || above.is_empty() && !only_count(items.unwrap_or_default(), &bound)
    {
        return None;
    }
    let then = starting(&above, *edge, *to)?;
    let mut step = Step { conditions: vec![], except: vec![], except_ends: vec![], condition: None, then };
    for conjunct in conjuncts {
        match conjunct {
            Expr::Unused(slot, others)
                if Some(*slot) == *edge && others.iter().all(|other| !bound.contains(other)) =>
            {
                step.except.extend(others);
            }
            other if !bound.iter().any(|slot| uses(other, *slot)) => step.conditions.push(other.clone()),
            other => {
                let to = (*to)?;
                if tests_labels(other, to) {
                    let before = step.condition.take().map(|(_, condition)| *condition);
                    let all = before.into_iter().chain([other.clone()]).reduce(Expr::and)?;
                    step.condition = Some((to, Box::new(all)));
                } else {
                    step.except_ends.push(differs_from(other, to).filter(|slot| !bound.contains(slot))?);
                }
            }
        }
    }
    Some(step)
}

/// Returns the slots of the counters above a step that start at its end; `None` if one of them cannot be counted with it.
fn starting(above: &[&Op], edge: Option<Slot>, to: Option<Slot>) -> Option<Vec<Slot>> {
    let binds = |slot: &Slot| Some(*slot) == edge || Some(*slot) == to;
    let mut found = vec![];
    for op in above {
        let Op::CountEdges { from, except, except_ends, out, .. } = op else { return None };
        let mut excepted = except.iter().chain(except_ends);
        if Some(*from) == edge
            || excepted.clone().any(binds)
            || Some(*from) == to && excepted.next().is_some()
        {
            return None;
        }
        if Some(*from) == to {
            found.push(*out);
        }
    }
    Some(found)
}

/// Whether an expression looks at nothing but labels of the vertex.
fn tests_labels(expr: &Expr, vertex: Slot) -> bool {
    match expr {
        Expr::HasLabels(base, _) | Expr::HasAnyLabel(base, _) => **base == Expr::Slot(vertex),
        Expr::And(all) | Expr::Or(all) => all.iter().all(|one| tests_labels(one, vertex)),
        Expr::Not(inner) => tests_labels(inner, vertex),
        _ => false,
    }
}

/// Returns the slot that the vertex must differ from, if this is what the expression says.
fn differs_from(expr: &Expr, vertex: Slot) -> Option<Slot> {
    let pair = match expr {
        Expr::Compare(Comparison::NotEqual, a, b) => [a, b],
        Expr::Not(inner) => match &**inner {
            Expr::Compare(Comparison::Equal, a, b) => [a, b],
            _ => return None,
        },
        _ => return None,
    };
    match pair.map(|side| &**side) {
        [Expr::Slot(a), Expr::Slot(b)] if *a == vertex => Some(*b),
        [Expr::Slot(a), Expr::Slot(b)] if *b == vertex => Some(*a),
        _ => None,
    }
}

/// The last step that is not counted yet, below a filter or not.
struct Last<'p> {
    /// The counters above it.
    above: Vec<&'p Op>,
    /// The tests of subqueries between them and the step.
    guards: Vec<&'p Op>,
    conjuncts: Vec<&'p Expr>,
    step: &'p Op,
}

fn last(op: &Op) -> Last<'_> {
    let (mut at, mut above, mut guards) = (op, vec![], vec![]);
    while let Op::CountEdges { input, .. } = at {
        above.push(at);
        at = input;
    }
    while let Op::Apply { input, kind: ApplyKind::Semi | ApplyKind::Anti, .. } = at {
        guards.push(at);
        at = input;
    }
    let (conjuncts, step) = match at {
        Op::Filter { input, predicate: Expr::And(all) } => (all.iter().collect(), &**input),
        Op::Filter { input, predicate } => (vec![predicate], &**input),
        other => (vec![], other),
    };
    Last { above, guards, conjuncts, step }
}

/// Returns the slots that counters use, and those of their numbers.
fn counters(op: &Op) -> (Vec<Slot>, Vec<Slot>) {
    let (mut used, mut outs) = (vec![], vec![]);
    for op in last(op).above {
        if let Op::CountEdges { from, except, except_ends, out, .. } = op {
            used.push(*from);
            used.extend(except.iter().chain(except_ends));
            outs.push(*out);
        }
    }
    (used, outs)
}

/// An `OPTIONAL MATCH` that can be counted.
struct Optional {
    from: Slot,
    step: CountStep,
}

/// Returns the step of the `OPTIONAL MATCH` that the operator is, below a filter or not, if all of it can be counted.
fn counted_option(
    op: &Op,
    items: Option<&[AggregateItem]>,
    used: &dyn Fn(Slot) -> bool,
    slots: &mut u32,
) -> Option<Optional> {
    let Last { above, guards, conjuncts, step } = last(op);
    let Op::Apply { plan, kind: ApplyKind::Optional(bound), .. } = step else { return None };
    let above_uses = counters(op).0;
    let is_used = |slot: &Slot| {
        used(*slot) || above_uses.contains(slot) || conjuncts.iter().any(|conjunct| uses(conjunct, *slot))
    };
    let needs_rows = above.is_empty() && !only_count(items.unwrap_or_default(), &[]);
    if !guards.is_empty() || needs_rows || bound.iter().any(is_used) {
        return None;
    }
    let mut plan = (**plan).clone();
    fold(&mut plan, None, &|_| false, slots);
    let Op::CountEdges { input, from, step, except, except_ends, .. } = plan else { return None };
    // A null vertex has no edges, so that its test says nothing more.
    let of_argument = match *input {
        Op::Argument => true,
        Op::Filter { input, predicate } => {
            let is_null = Expr::IsNull(Box::new(Expr::Slot(from)));
            *input == Op::Argument && predicate == Expr::Not(Box::new(is_null))
        }
        _ => false,
    };
    let is_whole = of_argument && except.is_empty() && except_ends.is_empty();
    is_whole.then_some(Optional { from, step: CountStep { optional: true, ..step } })
}

/// Replaces the `OPTIONAL MATCH` by a counter.
fn count_option(op: &mut Op, Optional { from, step }: Optional, slots: &mut u32) {
    let mut at = op;
    while let Op::CountEdges { input, .. } = at {
        at = input;
    }
    let (predicate, apply) = match std::mem::replace(at, Op::Argument) {
        Op::Filter { input, predicate } => (Some(predicate), *input),
        other => (None, other),
    };
    if let Op::Apply { input, .. } = apply {
        let input = match predicate {
            Some(predicate) => Box::new(Op::Filter { input, predicate }),
            None => input,
        };
        *at = Op::CountEdges { input, from, step, except: vec![], except_ends: vec![], out: fresh(slots) };
    }
}

fn fresh(slots: &mut u32) -> Slot {
    *slots += 1;
    Slot(*slots - 1)
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
    let Last { above, guards, conjuncts, step } = last(op);
    let Op::Intersect { arms, to, count: None, .. } = step else { return None };
    if !guards.is_empty() {
        return None;
    }
    let edges: Vec<Option<Slot>> = arms.iter().map(|arm| arm.edge).collect();
    let bound: Vec<Slot> = edges.iter().flatten().chain([to]).copied().collect();
    let above_uses = counters(op).0;
    if bound.iter().any(|slot| used(*slot) || above_uses.contains(slot)) {
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
    let out = fresh(slots);
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

/// Replaces the expansion by a counter, which takes along those that start at its end.
fn count_edges(op: &mut Op, found: Step, slots: &mut u32) {
    let mut above = vec![];
    let mut at = std::mem::replace(op, Op::Argument);
    while let Op::CountEdges { input, from, step, except, except_ends, out } = at {
        above.push((from, step, except, except_ends, out));
        at = *input;
    }
    let mut guards = vec![];
    while let Op::Apply { input, plan, kind } = at {
        guards.push((plan, kind));
        at = *input;
    }
    if let Op::Filter { input, .. } = at {
        at = *input;
    }
    let Op::Expand { input, from, direction, labels, loops_once, .. } = at else { return };
    let mut input = match found.conditions.into_iter().reduce(Expr::and) {
        Some(predicate) => Box::new(Op::Filter { input, predicate }),
        None => input,
    };
    for (plan, kind) in guards.into_iter().rev() {
        input = Box::new(Op::Apply { input, plan, kind });
    }
    let (then, above): (Vec<_>, Vec<_>) = above.into_iter().partition(|(.., out)| found.then.contains(out));
    let then = then.into_iter().map(|(_, step, ..)| step).collect();
    let step = CountStep { direction, labels, loops_once, condition: found.condition, then, optional: false };
    let (except, except_ends) = (found.except, found.except_ends);
    *op = Op::CountEdges { input, from, step, except, except_ends, out: fresh(slots) };
    for (from, step, except, except_ends, out) in above.into_iter().rev() {
        let input = Box::new(std::mem::replace(op, Op::Argument));
        *op = Op::CountEdges { input, from, step, except, except_ends, out };
    }
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
        let item = AggregateItem {
            out: Slot(9),
            kind,
            args,
            distinct: false,
            empty_is_unbound: false,
            weighted: false,
        };
        let keys = keys.iter().map(|key| (Slot(*key), Expr::Slot(Slot(*key)))).collect();
        let root = Op::Aggregate { input: Box::new(input), keys, items: vec![item] };
        let columns = vec![Column { name: "n".into(), slot: Slot(9) }];
        let mut plan = Plan { root, slots: 10, columns, timeout: None, seed: None, references: false };
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
    fn a_condition_on_the_last_vertex_is_counted_if_it_needs_nothing_else() {
        let labelled = |slot| Expr::HasLabels(Box::new(Expr::Slot(Slot(slot))), vec!["L".into()]);
        let rows = |condition: Expr| {
            let predicate = condition.and(Expr::Unused(Slot(3), vec![Slot(1)]));
            Op::Filter { input: Box::new(expand(expand(Op::Argument, 0, 1, 2), 2, 3, 4)), predicate }
        };
        let text = |condition: Expr| count(rows(condition), &[], AggregateKind::CountRows, vec![]);
        let named = Expr::Property(Box::new(Expr::Slot(Slot(4))), "name".into());
        assert!(!text(named).contains("count edges"));
        let of_last = text(labelled(4));
        assert!(of_last.contains("count edges $10 of $2 -[X]-> ($4:L) without [$1]"), "{of_last}");
        let of_first = text(labelled(2));
        assert!(of_first.contains("filter $2:L\ncount edges $10 of $2"), "{of_first}");
        let differs = |a, b| Expr::compare(Comparison::NotEqual, Expr::Slot(Slot(a)), Expr::Slot(Slot(b)));
        for (a, b) in [(0, 4), (4, 0)] {
            let other = text(differs(a, b));
            assert!(other.contains("count edges $10 of $2 -[X]-> without [$1] not to [$0]"), "{other}");
        }
        // An edge of the step itself.
        assert!(!text(differs(4, 3)).contains("count edges"));
    }

    #[test]
    fn tests_of_subqueries_come_before_what_they_do_not_need() {
        let rows = |end| {
            let rows = expand(expand(Op::Argument, 0, 1, 2), 2, 3, 4);
            let plan = Box::new(super::super::testing::expand(Op::Argument, 0, 5, end, true));
            Op::Apply { input: Box::new(rows), plan, kind: ApplyKind::Anti }
        };
        let text = |end| count(rows(end), &[], AggregateKind::CountRows, vec![]);
        assert!(
            text(2).contains("apply anti\n  argument\n  expand $0 -[X]-> into $2 edge $5\ncount edges"),
            "{}",
            text(2)
        );
        assert!(!text(4).contains("count edges"), "{}", text(4));
    }

    #[test]
    fn an_optional_match_counts_at_least_once() {
        let rows = |uses: u32| {
            let plan = Box::new(expand(expand(Op::Argument, 0, 1, 2), 2, 3, 4));
            let kind = ApplyKind::Optional([1, 2, 3, 4].map(Slot).into());
            expand(Op::Apply { input: Box::new(Op::Argument), plan, kind }, uses, 5, 6)
        };
        let text = |uses| count(rows(uses), &[], AggregateKind::CountRows, vec![]);
        let both = "of $0 -[X]-> (-[X]->) or once";
        assert!(text(0).contains(both) && text(0).contains(" * "), "{}", text(0));
        assert!(text(2).contains("apply optional"), "{}", text(2));
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
            let mut plan =
                Plan { root, slots: 8, columns: vec![], timeout: None, seed: None, references: false };
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
        assert!(text.contains("of $0 -[X]-> (-[X]->)") && text.contains(" * "), "{text}");
        assert!(!text.contains("expand"), "{text}");
        // The second step must not use the edge of the first.
        let rows = unused(expand(expand(expand(Op::Argument, 0, 1, 2), 0, 3, 4), 2, 5, 6), 5, &[3]);
        let text = count(rows, &[], AggregateKind::CountRows, vec![]);
        assert!(text.contains("expand $0 -[X]-> $4 edge $3"), "{text}");
    }
}
