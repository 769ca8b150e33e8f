//! The ends of the first edges of a pattern, with the numbers of edges that lead there.

use super::groups::label_groups;
use super::{
    Aggregation, Chain, Digested, FirstExpand, avoids, counters, fresh, ignores_repeats, is_product, item,
    onto, product, takes_weight, unless_null,
};
use crate::{
    AggregateItem, AggregateKind, Arithmetic, CountStep, Digest, EdgeStep, Expr, Op, ScanFilter, Slot,
};
use std::borrow::Cow;
use tidegraph_types::{Direction, Str};

/// A form in which the ends of a chain may be counted.
type Attempt = fn(&Chain<'_>, &Aggregation<'_>, &mut u32) -> Option<Digested>;

/// Returns an aggregation of ends, if it needs nothing else of the first step of a pattern.
pub(super) fn digested(
    chain: &Chain<'_>,
    aggregation: &Aggregation<'_>,
    slots: &mut u32,
) -> Option<Digested> {
    let attempts: [Attempt; 3] = [
        |chain, aggregation, slots| of_chain(&Pattern::of(chain, aggregation, slots)?, slots),
        |chain, aggregation, slots| of_chain(&Pattern::unfolded(chain, aggregation, slots)?, slots),
        |chain, aggregation, slots| of_chain(&Pattern::flipped(chain, aggregation, slots)?, slots),
    ];
    attempts.into_iter().find_map(|attempt| {
        let mut used = *slots;
        let digested = attempt(chain, aggregation, &mut used)?;
        *slots = used;
        Some(digested)
    })
}

/// A pattern that begins with a step from the vertex of a scan.
struct Pattern<'p> {
    vertex: Slot,
    filter: ScanFilter,
    step: EdgeStep,
    edge: Option<Slot>,
    /// The end of the step.
    to: Slot,
    /// Operators above the step, from the lowest on.
    above: Vec<Op>,
    /// Slots that the digest does not bind.
    hidden: Vec<Slot>,
    keys: &'p [(Slot, Expr)],
    items: Cow<'p, [AggregateItem]>,
}

fn step_of(expand: &FirstExpand) -> EdgeStep {
    let FirstExpand { direction, labels, loops_once, .. } = expand;
    EdgeStep { direction: *direction, labels: labels.clone(), loops_once: *loops_once }
}

fn hidden(chain: &Chain<'_>) -> Vec<Slot> {
    chain.columns.iter().map(|column| column.slot).chain([chain.vertex]).collect()
}

impl<'p> Pattern<'p> {
    /// Returns the pattern of an expansion.
    fn of(chain: &Chain<'_>, aggregation: &Aggregation<'p>, slots: &mut u32) -> Option<Self> {
        let expand = chain.expand.as_ref()?;
        Some(Self {
            vertex: chain.vertex,
            filter: chain.filter.clone(),
            step: step_of(expand),
            edge: expand.edge,
            to: expand.to.unwrap_or_else(|| fresh(slots)),
            above: chain.above.clone(),
            hidden: hidden(chain).into_iter().chain(expand.edge).collect(),
            keys: aggregation.keys,
            items: Cow::Borrowed(aggregation.items),
        })
    }

    /// Returns the pattern of a counted step, whose end is tested or has further steps.
    fn unfolded(chain: &Chain<'_>, aggregation: &Aggregation<'p>, slots: &mut u32) -> Option<Self> {
        let ([Op::CountEdges { from, step, except, except_ends, out, .. }], None) =
            (&chain.above[..], &chain.expand)
        else {
            return None;
        };
        let CountStep { direction, labels, loops_once, condition, then, optional } = step;
        let is_free = except.is_empty() && except_ends.is_empty() && !optional && *from == chain.vertex;
        if !is_free || condition.is_none() && then.is_empty() {
            return None;
        }
        let to = condition.as_ref().map_or_else(|| fresh(slots), |(slot, _)| *slot);
        let filter = condition.iter().map(|(_, condition)| Op::Filter {
            input: Box::new(Op::Argument),
            predicate: (**condition).clone(),
        });
        let mut above: Vec<Op> = filter.collect();
        let first = above.len();
        above.extend(then.iter().map(|step| Op::CountEdges {
            input: Box::new(Op::Argument),
            from: to,
            step: step.clone(),
            except: vec![],
            except_ends: vec![],
            out: fresh(slots),
        }));
        // The items count the rows of the step.
        let numbers = counters(&above[first..]);
        let counted = |of_rows: &AggregateItem| match (of_rows.kind, &of_rows.args[..]) {
            (AggregateKind::Sum, [Expr::Slot(slot)]) if slot == out => Some(match &numbers[..] {
                [] => item(of_rows, AggregateKind::CountRows, vec![]),
                _ => {
                    let product = product(numbers.iter().map(|slot| Expr::Slot(*slot)));
                    item(of_rows, AggregateKind::Sum, vec![product])
                }
            }),
            _ => None,
        };
        let items = aggregation.items.iter().map(counted).collect::<Option<Vec<_>>>()?;
        Some(Self {
            vertex: chain.vertex,
            filter: chain.filter.clone(),
            step: EdgeStep { direction: *direction, labels: labels.clone(), loops_once: *loops_once },
            edge: None,
            to,
            above,
            hidden: hidden(chain).into_iter().chain([*out]).collect(),
            keys: aggregation.keys,
            items: Cow::Owned(items),
        })
    }

    /// Returns the pattern from the other end of a single step on, of which only labels are tested.
    fn flipped(chain: &Chain<'_>, aggregation: &Aggregation<'p>, slots: &mut u32) -> Option<Self> {
        let only_labels = ScanFilter { labels: chain.filter.labels.clone(), ..ScanFilter::default() };
        if chain.filter != only_labels {
            return None;
        }
        let (labels, step, other, edge, items, rest) = match (&chain.above[..], &chain.expand) {
            ([Op::CountEdges { from, step, except, except_ends, out, .. }], None) => {
                let CountStep { direction, labels, loops_once, condition: Some((slot, condition)), .. } =
                    step
                else {
                    return None;
                };
                let is_free = except.is_empty() && except_ends.is_empty() && !step.optional;
                if !is_free || !step.then.is_empty() || *from != chain.vertex {
                    return None;
                }
                let counted = |of_rows: &AggregateItem| match (of_rows.kind, &of_rows.args[..]) {
                    (AggregateKind::Sum, [Expr::Slot(slot)]) if slot == out => {
                        item(of_rows, AggregateKind::CountRows, vec![])
                    }
                    _ => of_rows.clone(),
                };
                let items: Vec<AggregateItem> = aggregation.items.iter().map(counted).collect();
                let of_edges =
                    EdgeStep { direction: *direction, labels: labels.clone(), loops_once: *loops_once };
                (label_groups(condition, *slot)?, of_edges, *slot, None, Cow::Owned(items), vec![])
            }
            ([Op::Filter { predicate, .. }, rest @ ..], Some(expand)) => {
                let to = expand.to?;
                let labels = label_groups(predicate, to)?;
                let items = Cow::Borrowed(aggregation.items);
                (labels, step_of(expand), to, expand.edge, items, rest.to_vec())
            }
            _ => return None,
        };
        let to = chain.vertex;
        let of_to = chain
            .filter
            .labels
            .iter()
            .map(|group| Expr::HasAnyLabel(Box::new(Expr::Slot(to)), group.clone()));
        let filter =
            of_to.reduce(Expr::and).map(|predicate| Op::Filter { input: Box::new(Op::Argument), predicate });
        let bindings: Vec<(Slot, Expr)> = chain
            .columns
            .iter()
            .map(|column| {
                let property = Expr::Property(Box::new(Expr::Slot(to)), column.key.clone());
                (!column.each).then_some((column.slot, property))
            })
            .collect::<Option<_>>()?;
        let columns = (!bindings.is_empty()).then(|| Op::Let { input: Box::new(Op::Argument), bindings });
        let vertex = if edge.is_none() && chain.expand.is_none() { fresh(slots) } else { other };
        Some(Self {
            vertex,
            filter: ScanFilter { labels, ..ScanFilter::default() },
            step: EdgeStep { direction: step.direction.reversed(), ..step },
            edge,
            to,
            above: filter.into_iter().chain(columns).chain(rest).collect(),
            hidden: [vertex, other].into_iter().chain(edge).collect(),
            keys: aggregation.keys,
            items,
        })
    }
}

/// Which of the edges to an end a counter must not count: the edge of the row.
enum Same {
    None,
    Loops,
    All,
}

/// Returns which edges of the first step are also edges of a step from its end on.
fn same_edges(first: &EdgeStep, second: &CountStep) -> Option<Same> {
    let is_within = |all: &[Str]| all.is_empty() || !first.labels.is_empty();
    let covers = is_within(&second.labels)
        && (second.labels.is_empty() || first.labels.iter().all(|label| second.labels.contains(label)));
    if !covers {
        let is_apart = !first.labels.is_empty()
            && !second.labels.is_empty()
            && first.labels.iter().all(|label| !second.labels.contains(label));
        return is_apart.then_some(Same::None);
    }
    match (first.direction, second.direction) {
        (Direction::Both, Direction::Both) => (first.loops_once && second.loops_once).then_some(Same::All),
        (Direction::Both, _) | (_, Direction::Both) => None,
        (one, other) if one == other => Some(Same::Loops),
        _ => Some(Same::All),
    }
}

fn of_chain(pattern: &Pattern<'_>, slots: &mut u32) -> Option<Digested> {
    let Pattern { filter, step, edge, to, above, hidden, keys, items, .. } = pattern;
    let (edges, loops) = (fresh(slots), fresh(slots));
    let (mut operators, mut taken_off) = (vec![], None);
    for op in above {
        let mut op = op.clone();
        if let Op::CountEdges { from, step: counted, except, except_ends, .. } = &mut op {
            if hidden.contains(from) || except_ends.iter().any(|slot| hidden.contains(slot)) {
                return None;
            }
            if let ([one], Some(edge)) = (&except[..], edge)
                && one == edge
            {
                // The edge of the row, followed again, ends at the vertex of the scan.
                let passes = counted.condition.as_ref().is_none_or(|(slot, condition)| {
                    let tested = label_groups(condition, *slot);
                    tested.is_some_and(|all| all.iter().all(|group| filter.labels.contains(group)))
                });
                let is_plain = passes && counted.then.is_empty() && !counted.optional;
                if !is_plain || taken_off.is_some() || *from != *to {
                    return None;
                }
                taken_off = Some(same_edges(step, counted)?);
                except.clear();
            }
            if !except.is_empty() {
                return None;
            }
        }
        if op.exprs().into_iter().any(|expr| !avoids(expr, hidden)) {
            return None;
        }
        operators.push(op);
    }
    let counters = counters(&operators);
    if taken_off.is_some() && counters.len() != 1 {
        return None;
    }
    if keys.iter().any(|(_, key)| !avoids(key, hidden)) {
        return None;
    }
    let multiplied = product(std::iter::once(edges).chain(counters.iter().copied()).map(Expr::Slot));
    let less = |slot: Slot| {
        let less = Box::new(Expr::Slot(slot));
        Expr::Arithmetic(Arithmetic::Subtract, Box::new(multiplied.clone()), less)
    };
    let rows = match taken_off {
        None | Some(Same::None) => multiplied.clone(),
        Some(Same::Loops) => less(loops),
        Some(Same::All) => less(edges),
    };
    let bound = [Some(*to), *edge];
    let items = items.iter().map(|of_rows| counted(of_rows, &rows, &counters, &bound, hidden));
    let items = items.collect::<Option<Vec<_>>>()?;
    let digest = Digest::Ends { step: step.clone(), to: *to, edges, loops };
    let rows = Box::new(row_by_row(pattern, edges, loops));
    let (input, filter) = (Box::new(Op::Argument), filter.clone());
    let digest = Op::DigestScan { input, filter, digest, rows };
    let input = operators.into_iter().fold(digest, |input, op| onto(op, input));
    Some(Digested { input, keys: keys.to_vec(), items })
}

/// Returns the aggregate of ends that is an aggregate of rows, of which each end stands for several.
fn counted(
    of_rows: &AggregateItem,
    rows: &Expr,
    counters: &[Slot],
    bound: &[Option<Slot>],
    hidden: &[Slot],
) -> Option<AggregateItem> {
    use AggregateKind as Kind;
    if !counters.is_empty() {
        let is_number = matches!(
            (of_rows.kind, &of_rows.args[..]), (Kind::Sum, [arg]) if is_product(arg, counters)
        );
        return is_number.then(|| item(of_rows, Kind::Sum, vec![rows.clone()]));
    }
    match (of_rows.kind, &of_rows.args[..]) {
        (Kind::CountRows, []) => Some(item(of_rows, Kind::Sum, vec![rows.clone()])),
        (Kind::Count, [Expr::Slot(slot)]) if !of_rows.distinct && bound.contains(&Some(*slot)) => {
            Some(item(of_rows, Kind::Sum, vec![rows.clone()]))
        }
        (_, args) if args.iter().any(|arg| !avoids(arg, hidden)) => None,
        (Kind::Count, [arg]) if !of_rows.distinct => {
            Some(item(of_rows, Kind::Sum, vec![unless_null(arg.clone(), rows.clone())]))
        }
        _ if ignores_repeats(of_rows) => Some(of_rows.clone()),
        // The value of an end is read once, and taken as often as edges lead there.
        (kind, args) if takes_weight(kind) && !of_rows.distinct && !of_rows.weighted => {
            let is_random = args.iter().any(Expr::is_random);
            let args = args.iter().chain([rows]).cloned().collect();
            (!is_random).then(|| AggregateItem { args, weighted: true, ..of_rows.clone() })
        }
        _ => None,
    }
}

/// Returns the rows of a digest, one for each edge.
fn row_by_row(pattern: &Pattern<'_>, edges: Slot, loops: Slot) -> Op {
    let Pattern { vertex, filter, step: EdgeStep { direction, labels, loops_once }, to, .. } = pattern;
    let scan = Op::ScanVertices {
        input: Box::new(Op::Argument),
        out: *vertex,
        filter: filter.clone(),
        columns: vec![],
    };
    let expand = Op::Expand {
        input: Box::new(scan),
        from: *vertex,
        direction: *direction,
        labels: labels.clone(),
        edge: None,
        to: Some(*to),
        into: false,
        loops_once: *loops_once,
        keep: None,
    };
    let ends = [*vertex, *to].map(|slot| Box::new(Expr::Slot(slot)));
    let [from, end] = ends;
    let is_loop = Expr::Compare(crate::Comparison::Equal, from, end);
    let one = Expr::Case {
        branches: vec![(is_loop, Expr::literal(1_i64))],
        otherwise: Box::new(Expr::literal(0_i64)),
    };
    Op::Let { input: Box::new(expand), bindings: vec![(edges, Expr::literal(1_i64)), (loops, one)] }
}
