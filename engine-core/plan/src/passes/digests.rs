//! Lets storage on other machines make less than rows of the vertices of a plan's first scan, where an aggregation needs
//! no more.
//!
//! *Groups* (`groups.rs`): if keys and arguments are properties of one vertex, whose edges are only counted, each node
//! groups its vertices, and the aggregation combines the groups. The vertex is that of the scan, or the one at the other
//! end of its edges: `MATCH (a)-->(b)-->(c) RETURN count(*)` needs only the degrees of `b` if every `a` counts.
//!
//! *Ends* (`ends.rs`): if nothing but the other end of the first edges is needed, and how many edges lead there, nodes
//! count the edges by their ends. `MATCH (a:A)-->(b)-->(c) RETURN count(*)` then needs a row for each `b`.
//!
//! Distinct rows are groups or ends, too: `MATCH (p:Person) RETURN DISTINCT p.city`.
//!
//! *Semi joins*: where a row needs only that there is an edge, or that there is none, nodes answer how many there are.
//!
//! The pass runs after `counts`, whose counters it looks at. It handles only plans that write nothing, because a
//! transaction has to see what it changed and to record what it read.

mod ends;
mod groups;

use super::keep::{Live, step};
use crate::{
    AggregateItem, AggregateKind, ApplyKind, Arithmetic, BindKind, Comparison, CountStep, Expr, Op, Plan,
    ScanColumn, ScanFilter, Slot,
};
use tidegraph_types::{Direction, Str};

/// Rewrites the first aggregation, or the first distinct rows, of the plan.
pub fn run(plan: &mut Plan) {
    if plan.root.writes() || plan.root.analyzes() {
        return;
    }
    let mut slots = plan.slots;
    let after = Live::of(plan.columns.iter().map(|column| column.slot));
    walk(&mut plan.root, &mut slots, after, false);
    count_semi_joins(&mut plan.root, &mut slots);
    plan.slots = slots;
}

/// Lets storage count the edges where a row needs only one: a number for each row moves, not an edge.
fn count_semi_joins(op: &mut Op, slots: &mut u32) {
    if let Op::Apply { input, plan, kind: ApplyKind::Semi } = op
        && let Op::Expand { input: of_plan, from, direction, labels, into: false, loops_once, .. } = &**plan
        && is_outer_row(of_plan, *from)
    {
        let (direction, labels, loops_once) = (*direction, labels.clone(), *loops_once);
        let step =
            CountStep { direction, labels, loops_once, condition: None, then: vec![], optional: false };
        let (from, input) = (*from, std::mem::replace(input, Box::new(Op::Argument)));
        let (except, except_ends, out) = (vec![], vec![], fresh(slots));
        *op = Op::CountEdges { input, from, step, except, except_ends, out };
    }
    if let Op::Apply { input, plan, kind: ApplyKind::Anti } = op
        && let Op::Expand { input: of_plan, from, into: false, .. } = &**plan
        && is_outer_row(of_plan, *from)
    {
        let [input, plan] = [input, plan].map(|op| std::mem::replace(op, Box::new(Op::Argument)));
        let out = fresh(slots);
        let counted = Op::Bind { input, plan, out, kind: BindKind::Count };
        let predicate = Expr::compare(Comparison::Equal, Expr::Slot(out), Expr::literal(0_i64));
        *op = Op::Filter { input: Box::new(counted), predicate };
    }
    op.children_mut().into_iter().for_each(|child| count_semi_joins(child, slots));
}

/// `after`: the slots that are used after the operator. `stops`: whether rows stop before the last one.
fn walk(op: &mut Op, slots: &mut u32, after: Live, stops: bool) {
    if let Op::Distinct { input, by } = op
        && !stops
        && let Some(digested) = distinct(input, by, &after, slots)
    {
        **input = digested;
        return;
    }
    if let Op::Aggregate { input, keys, items } = op
        && let Some(chain) = chain(&*input)
    {
        // Storage counts the vertices of a scan already.
        let is_counted = chain.expand.is_none() && chain.above.is_empty() && keys.is_empty();
        let only_counts = |item: &AggregateItem| {
            matches!(item.kind, AggregateKind::CountRows | AggregateKind::Count) && !item.distinct
        };
        let aggregation = Aggregation { input: &*input, keys: &*keys, items: &*items };
        if !(is_counted && items.iter().all(only_counts) && aggregation.counts_rows(&chain))
            && let Some(Digested { input: of_digest, keys: of_keys, items: of_items }) =
                groups::digested(&chain, &aggregation, slots)
                    .or_else(|| ends::digested(&chain, &aggregation, slots))
        {
            (**input, *keys, *items) = (of_digest, of_keys, of_items);
        }
        return;
    }
    let stops = match op {
        Op::Slice { limit, .. } => stops || limit.is_some(),
        Op::Aggregate { .. } | Op::Sort { .. } | Op::Top { .. } | Op::Tail { .. } | Op::Eager { .. } => false,
        _ => stops,
    };
    let before = step(op, after, false);
    if let Some(input) = op.children_mut().into_iter().next() {
        walk(input, slots, before, stops);
    }
}

/// Returns groups or ends of which the same distinct rows are made, if nothing but these is used later.
fn distinct(input: &Op, by: &[Expr], after: &Live, slots: &mut u32) -> Option<Op> {
    let chain = chain(input)?;
    let slot_of = |expr: &Expr| match expr {
        Expr::Slot(slot) => Some(*slot),
        _ => None,
    };
    let columns: Vec<Slot> = by.iter().map(slot_of).collect::<Option<_>>()?;
    if columns.is_empty() || after.slots().iter().any(|slot| !columns.contains(slot)) {
        return None;
    }
    let keys: Vec<(Slot, Expr)> = columns.into_iter().zip(by.iter().cloned()).collect();
    let aggregation = Aggregation { input, keys: &keys, items: &[] };
    let Digested { input, keys, .. } = groups::digested(&chain, &aggregation, slots)
        .or_else(|| ends::digested(&chain, &aggregation, slots))?;
    let bindings: Vec<(Slot, Expr)> =
        keys.into_iter().filter(|(slot, expr)| *expr != Expr::Slot(*slot)).collect();
    Some(if bindings.is_empty() { input } else { Op::Let { input: Box::new(input), bindings } })
}

/// Whether an operator yields the outer rows, perhaps without those in which a vertex is null: these have no edges.
fn is_outer_row(op: &Op, vertex: Slot) -> bool {
    let is_null = || Expr::IsNull(Box::new(Expr::Slot(vertex)));
    match op {
        Op::Argument => true,
        Op::Filter { input, predicate } => {
            matches!(**input, Op::Argument) && *predicate == Expr::Not(Box::new(is_null()))
        }
        _ => false,
    }
}

/// The parts of an aggregation.
struct Aggregation<'p> {
    input: &'p Op,
    keys: &'p [(Slot, Expr)],
    items: &'p [AggregateItem],
}

impl Aggregation<'_> {
    /// Whether each item counts rows of the scan's vertex.
    fn counts_rows(&self, chain: &Chain<'_>) -> bool {
        let vertex = Expr::Slot(chain.vertex);
        self.items.iter().flat_map(|item| &item.args).all(|arg| *arg == vertex)
    }
}

/// What takes the place of an aggregation's parts.
struct Digested {
    input: Op,
    keys: Vec<(Slot, Expr)>,
    items: Vec<AggregateItem>,
}

/// The operators below an aggregation, from the plan's first scan on.
#[derive(Clone)]
struct Chain<'p> {
    /// The vertex of the scan.
    vertex: Slot,
    filter: ScanFilter,
    columns: &'p [ScanColumn],
    /// The expansion directly above the scan.
    expand: Option<FirstExpand>,
    /// The operators above those, from the lowest on. Their inputs mean nothing.
    above: Vec<Op>,
}

/// An expansion from the vertex of the scan.
#[derive(Clone)]
struct FirstExpand {
    direction: Direction,
    labels: Vec<Str>,
    loops_once: bool,
    edge: Option<Slot>,
    to: Option<Slot>,
}

/// Returns the operators below an aggregation; `None` if there are others than the pass knows.
fn chain(mut op: &Op) -> Option<Chain<'_>> {
    let mut above = vec![];
    loop {
        match op {
            Op::Keep { input, .. } => op = input,
            Op::Filter { input, .. } | Op::Let { input, .. } | Op::CountEdges { input, .. } => {
                above.push(op);
                op = input;
            }
            Op::Expand { input, from, direction, labels, edge, to, into: false, loops_once, .. } => {
                let scan = chain(input)?;
                if scan.expand.is_some() || !scan.above.is_empty() || scan.vertex != *from {
                    return None;
                }
                let (direction, labels, loops_once) = (*direction, labels.clone(), *loops_once);
                let expand = FirstExpand { direction, labels, loops_once, edge: *edge, to: *to };
                return Some(Chain { expand: Some(expand), above: detached(above), ..scan });
            }
            Op::ScanVertices { input, out, filter, columns } if matches!(**input, Op::Argument) => {
                let above = detached(above);
                return Some(Chain { vertex: *out, filter: filter.clone(), columns, expand: None, above });
            }
            _ => return None,
        }
    }
}

/// Returns operators without their inputs, the last one first.
fn detached(ops: Vec<&Op>) -> Vec<Op> {
    let detach = |op: &Op| match op {
        Op::Filter { predicate, .. } => {
            Op::Filter { input: Box::new(Op::Argument), predicate: predicate.clone() }
        }
        Op::Let { bindings, .. } => Op::Let { input: Box::new(Op::Argument), bindings: bindings.clone() },
        Op::CountEdges { from, step, except, except_ends, out, .. } => Op::CountEdges {
            input: Box::new(Op::Argument),
            from: *from,
            step: step.clone(),
            except: except.clone(),
            except_ends: except_ends.clone(),
            out: *out,
        },
        other => other.clone(),
    };
    ops.into_iter().rev().map(detach).collect()
}

/// Puts an operator on another.
fn onto(mut op: Op, input: Op) -> Op {
    if let Some(child) = op.children_mut().into_iter().next() {
        *child = input;
    }
    op
}

fn fresh(slots: &mut u32) -> Slot {
    *slots += 1;
    Slot(*slots - 1)
}

/// Returns the product of counters; 1 if there are none.
fn product(factors: impl IntoIterator<Item = Expr>) -> Expr {
    let multiply = |a, b| Expr::Arithmetic(Arithmetic::Multiply, Box::new(a), Box::new(b));
    factors.into_iter().reduce(multiply).unwrap_or_else(|| Expr::literal(1_i64))
}

/// Whether an expression is the product of exactly these counters.
fn is_product(expr: &Expr, counters: &[Slot]) -> bool {
    fn factors(expr: &Expr, found: &mut Vec<Slot>) -> bool {
        match expr {
            Expr::Slot(slot) => {
                found.push(*slot);
                true
            }
            Expr::Arithmetic(Arithmetic::Multiply, a, b) => factors(a, found) && factors(b, found),
            _ => false,
        }
    }
    let (mut found, mut expected) = (vec![], counters.to_vec());
    let is_one = factors(expr, &mut found);
    found.sort_unstable();
    expected.sort_unstable();
    is_one && found == expected
}

/// Returns the slots of the counters among operators.
fn counters(ops: &[Op]) -> Vec<Slot> {
    let out = |op: &Op| match op {
        Op::CountEdges { out, .. } => Some(*out),
        _ => None,
    };
    ops.iter().filter_map(out).collect()
}

/// Whether an expression uses none of these slots.
fn avoids(expr: &Expr, slots: &[Slot]) -> bool {
    let mut found = false;
    expr.for_each_slot(&mut |slot| found |= slots.contains(&slot));
    !found
}

/// Returns 0 where an expression is null, and else a number.
fn unless_null(expr: Expr, number: Expr) -> Expr {
    let branches = vec![(Expr::IsNull(Box::new(expr)), Expr::literal(0_i64))];
    Expr::Case { branches, otherwise: Box::new(number) }
}

/// Returns the same item as another kind of aggregate.
fn item(item: &AggregateItem, kind: AggregateKind, args: Vec<Expr>) -> AggregateItem {
    AggregateItem { kind, args, distinct: false, ..item.clone() }
}

/// Whether an aggregate can take its argument as often as another one says.
fn takes_weight(kind: AggregateKind) -> bool {
    use AggregateKind as Kind;
    matches!(
        kind,
        Kind::Count
            | Kind::Sum
            | Kind::Average
            | Kind::Collect
            | Kind::StdDev
            | Kind::StdDevP
            | Kind::PercentileCont
            | Kind::PercentileDisc
    )
}

/// Whether an aggregate is the same however often its argument comes.
fn ignores_repeats(item: &AggregateItem) -> bool {
    let is_extreme = matches!(item.kind, AggregateKind::Min | AggregateKind::Max);
    let is_sum = matches!(item.kind, AggregateKind::Count | AggregateKind::Sum | AggregateKind::Average);
    item.args.len() == 1 && (is_extreme || is_sum && item.distinct)
}

#[cfg(test)]
mod tests;
