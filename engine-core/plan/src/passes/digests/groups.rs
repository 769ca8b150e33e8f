//! Groups of vertices by their properties.
//!
//! Numbers, sums, least and greatest values of properties are computed by storage. For a key or an argument that is computed
//! from properties, these properties are keys of the groups: it is computed once for each group. Any other aggregate, such
//! as `collect`, takes each group as often as it has rows.

use super::{
    Aggregation, Chain, Digested, avoids, counters, fresh, is_product, item, product, takes_weight,
    unless_null,
};
use crate::{
    AggregateItem, AggregateKind, CountStep, Digest, DigestItem, EdgeStep, Expr, Op, ScanColumn, ScanFilter,
    Slot,
};
use tidegraph_types::Str;

/// Returns an aggregation of groups, if one vertex has all properties that the aggregation needs.
pub(super) fn digested(
    chain: &Chain<'_>,
    aggregation: &Aggregation<'_>,
    slots: &mut u32,
) -> Option<Digested> {
    centers(chain).into_iter().find_map(|center| {
        let mut used = *slots;
        let digested = Grouping::new(chain, &center, aggregation, &mut used).digested()?;
        *slots = used;
        Some(digested)
    })
}

/// A vertex whose edges are all that a pattern has.
struct Center<'p> {
    vertex: Slot,
    /// Other slots that are never null.
    bound: Vec<Slot>,
    columns: &'p [ScanColumn],
    filter: ScanFilter,
    steps: Vec<EdgeStep>,
    distinct: bool,
}

/// A counter.
struct Counter<'p> {
    from: Slot,
    step: &'p CountStep,
    except: &'p [Slot],
}

/// Returns the vertices that may be grouped.
fn centers<'p>(chain: &Chain<'p>) -> Vec<Center<'p>> {
    let (mut counted, mut labels) = (vec![], vec![]);
    let end = chain.expand.as_ref().and_then(|expand| expand.to);
    for op in &chain.above {
        match op {
            // The other end has these labels.
            Op::Filter { predicate, .. } => match end.and_then(|end| label_groups(predicate, end)) {
                Some(more) => labels.extend(more),
                None => return vec![],
            },
            Op::CountEdges { from, step, except, except_ends, .. } if except_ends.is_empty() => {
                counted.push(Counter { from: *from, step, except });
            }
            Op::Let { .. } => {}
            _ => return vec![],
        }
    }
    let all_from = |slot: Slot| counted.iter().all(|counter| counter.from == slot);
    let every_vertex = chain.filter == ScanFilter::default();
    let plain = || counted.iter().map(|counter| plain(counter.step)).collect::<Option<Vec<_>>>();
    let Some(expand) = &chain.expand else {
        let no_except = counted.iter().all(|counter| counter.except.is_empty());
        if let ([Counter { step, .. }], true) = (&counted[..], no_except)
            && every_vertex
            && let Some(center) = middle(step)
        {
            return vec![center];
        }
        return match plain() {
            Some(steps) if no_except && all_from(chain.vertex) => vec![own(chain, steps, false)],
            _ => vec![],
        };
    };
    let distinct = match &counted[..] {
        [Counter { except: [one], .. }] if Some(*one) == expand.edge => true,
        all if all.iter().all(|counter| counter.except.is_empty()) => false,
        _ => return vec![],
    };
    let Some(others) = plain() else { return vec![] };
    let first = EdgeStep {
        direction: expand.direction,
        labels: expand.labels.clone(),
        loops_once: expand.loops_once,
    };
    let mut found = vec![];
    if all_from(chain.vertex) && labels.is_empty() {
        let steps = std::iter::once(first.clone()).chain(others.clone()).collect();
        let bound = expand.edge.into_iter().chain(expand.to).collect();
        found.push(Center { bound, ..own(chain, steps, distinct) });
    }
    if let Some(to) = expand.to
        && all_from(to)
        && every_vertex
    {
        let first = EdgeStep { direction: first.direction.reversed(), ..first };
        found.push(Center {
            vertex: to,
            bound: expand.edge.into_iter().chain([chain.vertex]).collect(),
            columns: &[],
            filter: ScanFilter { labels, ..ScanFilter::default() },
            steps: std::iter::once(first).chain(others).collect(),
            distinct,
        });
    }
    found
}

/// Returns the vertex of the scan.
fn own<'p>(chain: &Chain<'p>, steps: Vec<EdgeStep>, distinct: bool) -> Center<'p> {
    let (vertex, columns, filter) = (chain.vertex, chain.columns, chain.filter.clone());
    Center { vertex, bound: vec![], columns, filter, steps, distinct }
}

/// Returns the vertex between a step and those after it, for a step from any vertex.
fn middle<'p>(step: &CountStep) -> Option<Center<'p>> {
    let CountStep { direction, labels, loops_once, condition, then, optional: false } = step else {
        return None;
    };
    let mut filter = ScanFilter::default();
    let vertex = match condition {
        Some((slot, condition)) => {
            filter.labels = label_groups(condition, *slot)?;
            *slot
        }
        None if then.is_empty() => return None,
        None => Slot(u32::MAX),
    };
    let first = EdgeStep { direction: direction.reversed(), labels: labels.clone(), loops_once: *loops_once };
    let mut steps = vec![first];
    for step in then {
        steps.push(plain(step)?);
    }
    Some(Center { vertex, bound: vec![], columns: &[], filter, steps, distinct: false })
}

/// Returns the groups of labels that a condition tests, if it tests nothing else.
pub(super) fn label_groups(condition: &Expr, vertex: Slot) -> Option<Vec<Vec<Str>>> {
    match condition {
        Expr::HasLabels(base, labels) if **base == Expr::Slot(vertex) => {
            Some(labels.iter().map(|label| vec![label.clone()]).collect())
        }
        Expr::HasAnyLabel(base, labels) if **base == Expr::Slot(vertex) => Some(vec![labels.clone()]),
        Expr::And(all) => {
            let all = all.iter().map(|one| label_groups(one, vertex)).collect::<Option<Vec<_>>>()?;
            Some(all.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// Returns a counted step whose edges each count once.
fn plain(step: &CountStep) -> Option<EdgeStep> {
    let CountStep { direction, labels, loops_once, condition: None, then, optional: false } = step else {
        return None;
    };
    let (direction, labels, loops_once) = (*direction, labels.clone(), *loops_once);
    then.is_empty().then_some(EdgeStep { direction, labels, loops_once })
}

/// A digest in the making.
struct Grouping<'g, 'p> {
    center: &'g Center<'p>,
    aggregation: &'g Aggregation<'g>,
    /// Slots that operators below the aggregation bind to other expressions.
    bindings: Vec<(Slot, Expr)>,
    counters: Vec<Slot>,
    /// Slots below the aggregation of which groups know nothing.
    hidden: Vec<Slot>,
    keys: Vec<(Slot, Str)>,
    results: Vec<(Slot, DigestItem)>,
    /// What the slots of the digest are for a single row.
    of_row: Vec<(Slot, Expr)>,
    slots: &'g mut u32,
}

impl<'g, 'p> Grouping<'g, 'p> {
    fn new(
        chain: &'g Chain<'p>,
        center: &'g Center<'p>,
        aggregation: &'g Aggregation<'g>,
        slots: &'g mut u32,
    ) -> Self {
        let bindings = chain.above.iter().flat_map(|op| match op {
            Op::Let { bindings, .. } => bindings.clone(),
            _ => vec![],
        });
        let (bindings, counters) = (bindings.collect(), counters(&chain.above));
        let expand = chain.expand.iter().flat_map(|expand| [expand.edge, expand.to]).flatten();
        let columns = chain.columns.iter().map(|column| column.slot);
        let hidden =
            expand.chain(columns).chain([chain.vertex, center.vertex]).chain(counters.clone()).collect();
        let (keys, results, of_row) = (vec![], vec![], vec![]);
        Self { center, aggregation, bindings, counters, hidden, keys, results, of_row, slots }
    }

    fn digested(mut self) -> Option<Digested> {
        let Aggregation { input, keys, items } = *self.aggregation;
        let keys = keys.iter().map(|(slot, key)| Some((*slot, self.key(key)?)));
        let keys = keys.collect::<Option<Vec<_>>>()?;
        let items = items.iter().map(|item| self.item(item)).collect::<Option<Vec<_>>>()?;
        if self.results.is_empty() {
            self.result(DigestItem::Rows, self.rows());
        }
        let Center { filter, steps, distinct, .. } = self.center;
        let digest = Digest::Groups {
            keys: self.keys,
            items: self.results,
            steps: steps.clone(),
            distinct: *distinct,
        };
        let mut input = input.clone();
        without_keeps(&mut input);
        let rows = Op::Let { input: Box::new(input), bindings: self.of_row };
        let (filter, rows) = (filter.clone(), Box::new(rows));
        let input = Op::DigestScan { input: Box::new(Op::Argument), filter, digest, rows };
        Some(Digested { input, keys, items })
    }

    /// Returns the number of rows that a row below the aggregation stands for.
    fn rows(&self) -> Expr {
        product(self.counters.iter().map(|slot| Expr::Slot(*slot)))
    }

    /// Returns the property of the vertex that an expression is.
    fn property(&self, expr: &Expr) -> Option<Str> {
        self.property_before(expr, self.bindings.len())
    }

    /// Returns the property that an expression is above the first bindings.
    fn property_before(&self, expr: &Expr, bindings: usize) -> Option<Str> {
        match expr {
            Expr::Slot(slot) => {
                match self.bindings[..bindings].iter().rposition(|(bound, _)| bound == slot) {
                    Some(at) => self.property_before(&self.bindings[at].1, at),
                    None => {
                        let column = self.center.columns.iter().find(|column| column.slot == *slot)?;
                        (!column.each).then(|| column.key.clone())
                    }
                }
            }
            Expr::Property(base, key) => {
                let is_stored = !key.starts_with('~') && **base == Expr::Slot(self.center.vertex);
                is_stored.then(|| key.clone())
            }
            _ => None,
        }
    }

    /// Makes an expression a key of the digest, or the properties of which it is computed. Returns the expression over the
    /// slots of the keys.
    fn key(&mut self, expr: &Expr) -> Option<Expr> {
        if let Some(property) = self.property(expr) {
            return Some(self.key_of(property, expr));
        }
        if expr.is_random() {
            return None;
        }
        let mut computed = expr.clone();
        self.replace(&mut computed, self.bindings.len())?;
        let is_known = avoids(&computed, &self.hidden)
            && self.bindings.iter().all(|(slot, _)| avoids(&computed, &[*slot]));
        is_known.then_some(computed)
    }

    /// Puts slots of keys in place of the properties in an expression above the first bindings. `None`: it uses something
    /// else of the rows.
    fn replace(&mut self, expr: &mut Expr, bindings: usize) -> Option<()> {
        if let Some(property) = self.property_before(expr, bindings) {
            // Above all bindings, a slot may have another meaning.
            let of_row = match self.column_of(&property) {
                Some(slot) => Expr::Slot(slot),
                None => Expr::Property(Box::new(Expr::Slot(self.center.vertex)), property.clone()),
            };
            *expr = self.key_of(property, &of_row);
            return Some(());
        }
        if let Expr::Slot(slot) = expr {
            if let Some(at) = self.bindings[..bindings].iter().rposition(|(bound, _)| bound == slot) {
                *expr = self.bindings[at].1.clone();
                return self.replace(expr, at);
            }
            return (!self.hidden.contains(slot)).then_some(());
        }
        expr.children_mut().into_iter().try_for_each(|inner| self.replace(inner, bindings))
    }

    /// Returns the slot to which the scan binds a property.
    fn column_of(&self, property: &Str) -> Option<Slot> {
        let mut columns = self.center.columns.iter();
        columns.find(|column| column.key == *property && !column.each).map(|column| column.slot)
    }

    /// Makes a property a key of the digest; `expr` is it in a row.
    fn key_of(&mut self, property: Str, expr: &Expr) -> Expr {
        if let Some((slot, _)) = self.keys.iter().find(|(_, known)| *known == property) {
            return Expr::Slot(*slot);
        }
        let slot = fresh(self.slots);
        self.keys.push((slot, property));
        self.of_row.push((slot, expr.clone()));
        Expr::Slot(slot)
    }

    /// Returns the aggregate that takes each group as often as it has rows.
    fn weighted(&mut self, of_rows: &AggregateItem) -> Option<AggregateItem> {
        use AggregateKind as Kind;
        let ignores_weight = of_rows.distinct || matches!(of_rows.kind, Kind::Min | Kind::Max);
        let takes_rows = ignores_weight || takes_weight(of_rows.kind) && self.counters.is_empty();
        if of_rows.weighted || !takes_rows {
            return None;
        }
        let mut args = of_rows.args.iter().map(|arg| self.key(arg)).collect::<Option<Vec<_>>>()?;
        if !ignores_weight {
            args.push(self.result(DigestItem::Rows, self.rows()));
        }
        Some(AggregateItem { args, weighted: !ignores_weight, ..of_rows.clone() })
    }

    /// Adds a result, which is `of_row` for a single row. Returns its slot.
    fn result(&mut self, result: DigestItem, of_row: Expr) -> Expr {
        if let Some((slot, _)) = self.results.iter().find(|(_, known)| *known == result) {
            return Expr::Slot(*slot);
        }
        let slot = fresh(self.slots);
        self.results.push((slot, result));
        self.of_row.push((slot, of_row));
        Expr::Slot(slot)
    }

    /// Returns the aggregate that combines the results of groups to an aggregate of rows.
    fn item(&mut self, of_rows: &AggregateItem) -> Option<AggregateItem> {
        use AggregateKind as Kind;
        let is_bound = |slot: &Slot| *slot == self.center.vertex || self.center.bound.contains(slot);
        let counts = match (of_rows.kind, &of_rows.args[..]) {
            (Kind::CountRows, []) => self.counters.is_empty(),
            (Kind::Count, [Expr::Slot(slot)]) => {
                self.counters.is_empty() && !of_rows.distinct && is_bound(slot)
            }
            (Kind::Sum, [arg]) => !self.counters.is_empty() && is_product(arg, &self.counters),
            _ => false,
        };
        if counts {
            let rows = self.result(DigestItem::Rows, self.rows());
            return Some(item(of_rows, Kind::Sum, vec![rows]));
        }
        let [arg] = &of_rows.args[..] else { return self.weighted(of_rows) };
        if !self.counters.is_empty() && !avoids(arg, &self.counters) {
            return None;
        }
        let is_extreme = matches!(of_rows.kind, Kind::Min | Kind::Max);
        if of_rows.distinct && !is_extreme {
            return self.weighted(of_rows);
        }
        let Some(key) = self.property(arg) else { return self.weighted(of_rows) };
        let (rows, is_sole) = (self.rows(), self.center.steps.is_empty());
        Some(match of_rows.kind {
            Kind::Count => {
                let values = self.result(DigestItem::Values(key), unless_null(arg.clone(), rows));
                item(of_rows, Kind::Sum, vec![values])
            }
            Kind::Sum if is_sole => {
                let sum = self.result(DigestItem::Sum(key), arg.clone());
                item(of_rows, Kind::Sum, vec![sum])
            }
            Kind::Average if is_sole => {
                let sum = self.result(DigestItem::Sum(key.clone()), arg.clone());
                let values = self.result(DigestItem::Values(key), unless_null(arg.clone(), rows));
                item(of_rows, Kind::AverageOfSums, vec![sum, values])
            }
            Kind::Min => {
                let least = self.result(DigestItem::Min(key), arg.clone());
                item(of_rows, Kind::Min, vec![least])
            }
            Kind::Max => {
                let greatest = self.result(DigestItem::Max(key), arg.clone());
                item(of_rows, Kind::Max, vec![greatest])
            }
            _ => return self.weighted(of_rows),
        })
    }
}

/// Removes operators that only unbind slots.
fn without_keeps(op: &mut Op) {
    while let Op::Keep { input, .. } = op {
        *op = std::mem::replace(&mut **input, Op::Argument);
    }
    if let Some(input) = op.children_mut().into_iter().next() {
        without_keeps(input);
    }
}
