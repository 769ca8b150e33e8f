//! Estimates of the rows that each operator of a plan yields, for `EXPLAIN` and `PROFILE`, and for what is learned from
//! the rows that a plan has yielded ([`super::lessons`]).
//!
//! The passes change operators after the search for an order, so the estimates are made for the plan as it runs, with the
//! numbers that the search uses ([`super::estimate`]). Rows of a subplan are those of all of its runs together.

use super::Knowledge;
use super::estimate::Estimate;
use super::lessons::bound_below;
use super::match_order::test_of;
use crate::{
    AggregateKind, ApplyKind, Arm, Comparison, Digest, Expr, Function, Length, Op, Plan, ScanFilter, Slot,
};
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_types::{Direction, Str};

/// Share of the rows that a condition about which nothing is known is assumed to pass.
const UNKNOWN: f64 = 0.5;
/// The same for an equality.
const EQUAL: f64 = 0.1;
/// Items of a list about which nothing is known.
const ITEMS: f64 = 10.0;
/// Repetitions of a walk that are followed at most, as in the search.
const REPETITIONS: u32 = 8;

/// The estimates of a plan, as long as the plan is where it is.
#[derive(Clone, Debug, Default)]
pub struct EstimatedRows(BTreeMap<usize, f64>);

impl EstimatedRows {
    /// Estimates the rows of each operator.
    #[must_use]
    pub fn of(plan: &Plan, knowledge: &Knowledge<'_>) -> Self {
        let mut walk = Walk {
            estimate: Estimate::new(knowledge),
            knowledge,
            found: BTreeMap::new(),
            labels: BTreeMap::new(),
            ways: BTreeMap::new(),
            columns: BTreeMap::new(),
            single: BTreeSet::new(),
            edges: BTreeSet::new(),
            untaught: BTreeSet::new(),
            lists: BTreeMap::new(),
            bound: BTreeMap::new(),
        };
        walk.rows(&plan.root, 1.0);
        Self(walk.found)
    }

    /// Returns the rows of an operator of the plan. `None`: it is never run by itself.
    #[must_use]
    pub fn get(&self, op: &Op) -> Option<f64> {
        self.0.get(&address(op)).copied()
    }
}

/// Returns estimated rows as people read them.
#[must_use]
pub fn shown_rows(rows: f64) -> String {
    if rows < 10.0 { format!("{rows:.1}") } else { format!("{rows:.0}") }
}

fn address(op: &Op) -> usize {
    std::ptr::from_ref(op).addr()
}

/// How a vertex was reached: labels of the edge, and its direction from the vertex back.
type Way = (Vec<Str>, Direction);

struct Walk<'k> {
    estimate: Estimate<'k>,
    knowledge: &'k Knowledge<'k>,
    found: BTreeMap<usize, f64>,
    /// Labels that vertices are known to have.
    labels: BTreeMap<Slot, Vec<Str>>,
    /// The edges that led to a vertex.
    ways: BTreeMap<Slot, Vec<Way>>,
    /// Properties that scans bind.
    columns: BTreeMap<Slot, Expr>,
    /// Slots of the lists of all values of a property, which mostly is one.
    single: BTreeSet<Slot>,
    /// Slots of edges, about whose properties nothing is known.
    edges: BTreeSet<Slot>,
    /// Vertices at the ends of edges whose conditions come next.
    untaught: BTreeSet<Slot>,
    /// Lists that an aggregation makes: the slot of their items, and the number of items of each.
    lists: BTreeMap<Slot, (Slot, f64)>,
    /// The rows in which a slot was bound: it has no more different values.
    bound: BTreeMap<Slot, f64>,
}

impl Walk<'_> {
    /// Estimates an operator and those below it. `outer`: rows of [`Op::Argument`].
    fn rows(&mut self, op: &Op, outer: f64) -> f64 {
        let input = op.input().map_or(outer, |input| self.rows(input, outer));
        let rows = self.after(op, input, outer);
        let rows = if rows.is_finite() { rows.max(0.0) } else { f64::MAX };
        self.found.insert(address(op), rows);
        self.bind(op, rows);
        rows
    }

    /// Estimates a subplan. What it does to the rows says nothing about the values of the slots that were bound before it.
    fn subplan(&mut self, plan: &Op, outer: f64) -> f64 {
        let before = self.bound.clone();
        let rows = self.rows(plan, outer);
        self.bound.extend(before);
        rows
    }

    /// Estimates one of several subplans whose rows follow each other, or one that is repeated. A slot that it binds has other
    /// values, too.
    fn branch(&mut self, plan: &Op, outer: f64) -> f64 {
        let before = self.bound.clone();
        let rows = self.rows(plan, outer);
        let after = std::mem::replace(&mut self.bound, before);
        self.bound.retain(|slot, rows| after.get(slot) == Some(rows));
        rows
    }

    /// Notes the rows in which the slots of an operator are bound, and where their values come from.
    fn bind(&mut self, op: &Op, rows: f64) {
        let mut bound = |slot: Slot| {
            self.bound.insert(slot, rows);
        };
        match op {
            Op::ScanVertices { out, columns, .. } => {
                bound(*out);
                columns.iter().for_each(|column| bound(column.slot));
            }
            Op::Expand { edge, to, into, .. } => {
                edge.iter().chain(to.iter().filter(|_| !into)).for_each(|slot| bound(*slot));
            }
            Op::VarExpand { to, into: false, .. } => bound(*to),
            Op::Unwind { out, .. } => bound(*out),
            Op::Let { bindings, .. } => {
                for (slot, expr) in bindings {
                    self.bound.insert(*slot, rows);
                    if let Expr::Slot(from) = expr {
                        self.copy(*from, *slot);
                    }
                }
            }
            Op::Aggregate { keys, items, .. } => {
                for (slot, expr) in keys {
                    if let Expr::Slot(from) = expr {
                        self.copy(*from, *slot);
                    }
                    self.bound.insert(*slot, rows);
                }
                self.bound.extend(items.iter().map(|item| (item.out, rows)));
            }
            _ => {}
        }
    }

    /// Notes that a slot has the values of another one.
    fn copy(&mut self, from: Slot, to: Slot) {
        if from == to {
            return;
        }
        fn copied<T: Clone>(map: &mut BTreeMap<Slot, T>, from: Slot, to: Slot) {
            match map.get(&from).cloned() {
                Some(known) => drop(map.insert(to, known)),
                None => drop(map.remove(&to)),
            }
        }
        copied(&mut self.labels, from, to);
        copied(&mut self.ways, from, to);
        copied(&mut self.lists, from, to);
        copied(&mut self.bound, from, to);
    }

    fn all(&self) -> f64 {
        (self.knowledge.statistics.vertices as f64).max(1.0)
    }

    /// Returns the labels of a vertex: those that it is known to have, or else the one that the edges imply which led to it.
    fn labels_of(&self, slot: Slot) -> Vec<Str> {
        if let Some(labels) = self.labels.get(&slot).filter(|labels| !labels.is_empty()) {
            return labels.clone();
        }
        let ways = self.ways.get(&slot).into_iter().flatten();
        ways.filter_map(|(edges, direction)| self.estimate.implied(*direction, edges)).take(1).collect()
    }

    /// Returns the rows after an operator, from those of its input.
    fn after(&mut self, op: &Op, input: f64, outer: f64) -> f64 {
        match op {
            Op::ScanVertices { out, filter, columns, .. } => {
                self.single.extend(columns.iter().filter(|column| column.each).map(|column| column.slot));
                for column in columns.iter().filter(|column| !column.each) {
                    let property = Expr::Property(Box::new(Expr::Slot(*out)), column.key.clone());
                    self.columns.insert(column.slot, property);
                }
                input * self.scanned(*out, filter)
            }
            Op::DigestScan { digest, rows, .. } => {
                let whole = self.rows(rows, outer);
                match digest {
                    Digest::Groups { keys, .. } => {
                        let of_keys =
                            keys.iter().map(|(_, key)| self.values_of(key).unwrap_or(whole.powf(0.75)));
                        of_keys.product::<f64>().min(whole)
                    }
                    Digest::Ends { .. } => whole.min(self.all()),
                }
            }
            Op::ScanEdges { labels, out, .. } => {
                self.edges.insert(*out);
                input * self.edges_with(labels)
            }
            Op::LookupVertices { ids, .. } | Op::LookupEdges { ids, .. } => input * items(ids, 1.0),
            Op::Expand { from, direction, labels, edge, to, into, .. } => {
                self.edges.extend(*edge);
                let fan = self.fan(*from, *to, *direction, labels);
                match to {
                    Some(_) if *into => input * fan / self.all(),
                    Some(to) => {
                        self.untaught.insert(*to);
                        self.ways.insert(*to, vec![(labels.clone(), direction.reversed())]);
                        input * fan
                    }
                    None => input * fan,
                }
            }
            Op::CountEdges { from, step, .. } => {
                let fan = self.fan(*from, None, step.direction, &step.labels);
                input * if step.optional { 1.0 } else { fan.min(1.0) }
            }
            Op::Intersect { arms, to, count, .. } => {
                self.edges.extend(arms.iter().filter_map(|arm| arm.edge));
                let choices = self.met(arms, *to);
                if count.is_some() { input * choices.min(1.0) } else { input * choices }
            }
            Op::VarExpand { from, direction, labels, length, to, into, ends_only, .. } => {
                let fan = repeated(self.fan(*from, Some(*to), *direction, labels), *length);
                // Without a step, it is the vertex where the walk starts.
                if !into && length.min > 0 {
                    self.ways.insert(*to, vec![(labels.clone(), direction.reversed())]);
                }
                let ends = self.estimate.vertices(&self.labels_of(*to)).max(1.0);
                let fan = if *ends_only { fan.min(ends) } else { fan };
                input * if *into { fan / self.all() } else { fan }
            }
            Op::QuantifiedPath { body, to, into, length, .. } => {
                // The subplan runs for each number of repetitions.
                let step = self.branch(body, input.max(1.0)) / input.max(1.0);
                let fan = repeated(step, *length);
                self.ways.remove(to);
                input * if *into { fan / self.all() } else { fan }
            }
            Op::PathSearch { parts, into, to, count, .. } => {
                let mut reached = input;
                for part in parts {
                    let step = self.rows(&part.body, input.max(1.0)) / input.max(1.0);
                    reached *= part.length.map_or(step, |length| repeated(step, length));
                }
                self.ways.remove(to);
                let ends = if *into { 1.0 } else { self.all() };
                reached.min(input * ends * f64::from(*count))
            }
            Op::Filter { input: below, predicate } => {
                let predicate = self.with_properties(predicate);
                let of_vertex = bound_below(below).filter(|slot| self.untaught.remove(slot));
                let lesson = of_vertex.zip(self.knowledge.lessons);
                let lesson = lesson.map_or(1.0, |(slot, lessons)| lessons.of_vertex(slot));
                input * (self.passing(&predicate) * lesson).min(1.0)
            }
            Op::Unwind { list, .. } => {
                let is_single = match list {
                    Expr::Slot(slot) => self.single.contains(slot),
                    list => matches!(list, Expr::Call(Function::PropertyValues, _)),
                };
                let made = match (list, op) {
                    (Expr::Slot(list), Op::Unwind { out, .. }) => {
                        self.lists.get(list).map(|made| (*made, *out))
                    }
                    _ => None,
                };
                if let Some(((item, length), out)) = made {
                    self.copy(item, out);
                    return input * length;
                }
                input * items(list, if is_single { 1.0 } else { ITEMS })
            }
            Op::CallProcedure { .. } => input * ITEMS,
            Op::LoadCsv { .. } => input * ITEMS * ITEMS * ITEMS,
            Op::Aggregate { keys, items, .. } => {
                let groups = match keys.is_empty() {
                    true => outer.min(input.max(1.0)),
                    false => self.distinct(keys.iter().map(|(_, key)| key), input),
                };
                for item in items {
                    if let (AggregateKind::Collect | AggregateKind::CollectSet, [of @ Expr::Slot(slot)]) =
                        (item.kind, &item.args[..])
                    {
                        let differ = item.distinct || item.kind == AggregateKind::CollectSet;
                        let values = if differ { self.distinct([of].into_iter(), input) } else { input };
                        self.lists.insert(item.out, (*slot, (values / groups.max(1.0)).max(1.0)));
                    }
                }
                groups
            }
            Op::Distinct { by, .. } => self.distinct(by.iter(), input),
            Op::ChoosePaths { by, count, .. } => {
                (self.distinct(by.iter(), input) * f64::from(*count)).min(input)
            }
            Op::Bulk { by, .. } => {
                let by: Vec<_> = by.iter().map(|slot| Expr::Slot(*slot)).collect();
                self.distinct(by.iter(), input)
            }
            Op::Slice { skip, limit, .. } => {
                let skipped = skip.as_ref().and_then(number).unwrap_or(0.0);
                limit.as_ref().and_then(number).map_or(input - skipped, |limit| (input - skipped).min(limit))
            }
            Op::Top { count, .. } | Op::Tail { count, .. } => number(count).map_or(input, |n| input.min(n)),
            _ => self.after_subplans(op, input),
        }
    }

    fn after_subplans(&mut self, op: &Op, input: f64) -> f64 {
        match op {
            Op::Apply { plan, kind, .. } => {
                let inner = self.subplan(plan, input);
                let share = if input > 0.0 { (inner / input).min(1.0) } else { 0.0 };
                match kind {
                    ApplyKind::Cross => inner,
                    ApplyKind::Optional(_) => inner.max(input),
                    ApplyKind::Semi => input * share,
                    ApplyKind::Anti => input * (1.0 - share).max(EQUAL),
                    ApplyKind::Discard => input,
                }
            }
            Op::Bind { plan, .. } => {
                self.subplan(plan, input);
                input
            }
            Op::Union { branches, .. } => branches.iter().map(|branch| self.branch(branch, input)).sum(),
            Op::Coalesce { branches, .. } => {
                branches.iter().map(|branch| self.branch(branch, input)).reduce(f64::max).unwrap_or(input)
            }
            Op::Choose { branches, otherwise, .. } => {
                let each = input / (branches.len() + usize::from(otherwise.is_some())).max(1) as f64;
                let of_branches: f64 = branches.iter().map(|branch| self.branch(&branch.plan, each)).sum();
                of_branches + otherwise.as_ref().map_or(0.0, |plan| self.branch(plan, each))
            }
            Op::Repeat { body, times, .. } => {
                let step = self.branch(body, input.max(1.0)) / input.max(1.0);
                let times = times.as_ref().and_then(number).unwrap_or(3.0).clamp(0.0, f64::from(REPETITIONS));
                input * step.powf(times)
            }
            Op::Merge { matching, create, .. } => {
                self.branch(create, input);
                self.branch(matching, input).max(input)
            }
            // The others yield a row for each row.
            _ => input,
        }
    }

    /// Returns the vertices that a scan finds, and notes their labels.
    fn scanned(&mut self, out: Slot, filter: &ScanFilter) -> f64 {
        let one: Vec<Str> = filter
            .labels
            .iter()
            .filter_map(|group| match &group[..] {
                [label] => Some(label.clone()),
                _ => None,
            })
            .collect();
        let mut rows = self.estimate.vertices(&one);
        for group in filter.labels.iter().filter(|group| group.len() > 1) {
            let any: f64 =
                group.iter().map(|label| self.estimate.vertices(std::slice::from_ref(label))).sum();
            rows *= (any / self.all()).min(1.0);
        }
        for (key, test) in filter.tests() {
            rows *= self.estimate.share(&one, key, test).0;
        }
        self.ways.remove(&out);
        self.labels.insert(out, one);
        rows * self.knowledge.lessons.map_or(1.0, |lessons| lessons.of_vertex(out))
    }

    fn edges_with(&self, labels: &[Str]) -> f64 {
        let statistics = self.knowledge.statistics;
        if labels.is_empty() {
            return statistics.edges as f64;
        }
        let tokens: Vec<_> = labels.iter().filter_map(|label| self.knowledge.catalog.token(label)).collect();
        let of = statistics.edges_by_label.iter().filter(|(label, _)| tokens.contains(label));
        of.map(|(_, count)| *count as f64).sum()
    }

    /// Returns the mean number of edges of a vertex.
    fn fan(&self, from: Slot, to: Option<Slot>, direction: Direction, labels: &[Str]) -> f64 {
        let lesson = to.and_then(|to| Some(self.knowledge.lessons?.of_edge(from, to)));
        self.estimate.degree(direction, &self.labels_of(from), labels) * lesson.unwrap_or(1.0)
    }

    /// Returns the choices of an intersection for a row.
    fn met(&mut self, arms: &[Arm], to: Slot) -> f64 {
        let all = self.all();
        let mut choices = 1.0;
        for (at, Arm { from, direction, labels, .. }) in arms.iter().enumerate() {
            let fan = self.fan(*from, Some(to), *direction, labels);
            choices *= if at == 0 { fan } else { fan / all };
        }
        let ways = arms.iter().map(|arm| (arm.labels.clone(), arm.direction.reversed()));
        self.ways.insert(to, ways.collect());
        self.untaught.insert(to);
        choices
    }

    /// Returns a condition over properties instead of the slots that a scan binds them to.
    fn with_properties(&self, condition: &Expr) -> Expr {
        fn replace(expr: &mut Expr, columns: &BTreeMap<Slot, Expr>) {
            match expr {
                Expr::Slot(slot) => {
                    if let Some(property) = columns.get(slot) {
                        *expr = property.clone();
                    }
                }
                other => other.children_mut().into_iter().for_each(|child| replace(child, columns)),
            }
        }
        let mut condition = condition.clone();
        if !self.columns.is_empty() {
            replace(&mut condition, &self.columns);
        }
        condition
    }

    /// Returns the share of the rows that pass a condition. Notes labels that it demands.
    fn passing(&mut self, condition: &Expr) -> f64 {
        match condition {
            Expr::And(all) => all.iter().map(|part| self.passing(part)).product(),
            Expr::Or(all) => {
                let labels = self.labels.clone();
                let failing: f64 = all.iter().map(|part| 1.0 - self.passing(part)).product();
                self.labels = labels;
                1.0 - failing
            }
            Expr::Unused(..) => 1.0,
            Expr::HasLabels(base, labels) => match **base {
                Expr::Slot(slot) => self.labelled(slot, labels),
                _ => UNKNOWN,
            },
            other => self.tested(other),
        }
    }

    fn tested(&mut self, condition: &Expr) -> f64 {
        let mut slots = vec![];
        condition.for_each_slot(&mut |slot| slots.push(slot));
        let mut vertices = slots.into_iter().filter(|slot| !self.edges.contains(slot));
        let found = vertices.find_map(|slot| Some((slot, test_of(condition, slot)?)));
        if let Some((slot, tested)) = found {
            return self.estimate.share(&self.labels_of(slot), &tested.key, &tested.test).0;
        }
        match condition {
            Expr::Not(inner) => match &**inner {
                // Most values differ.
                Expr::Compare(Comparison::Equal, ..) => 1.0 - EQUAL,
                Expr::IsNull(_) => 1.0,
                inner => {
                    let labels = self.labels.clone();
                    let passing = self.passing(inner);
                    self.labels = labels;
                    (1.0 - passing).max(EQUAL)
                }
            },
            Expr::Compare(Comparison::Equal, ..) => EQUAL,
            Expr::Compare(Comparison::NotEqual, ..) => 1.0 - EQUAL,
            _ => UNKNOWN,
        }
    }

    /// Returns the share of the vertices at the ends of the edges that led to them which have these labels, too.
    fn labelled(&mut self, slot: Slot, labels: &[Str]) -> f64 {
        let before = self.labels_of(slot);
        let mut after = before.clone();
        after.extend(labels.iter().filter(|label| !before.contains(label)).cloned());
        let count = |labels: &[Str]| self.estimate.vertices(labels);
        let of_all = count(&before);
        let mut share = if of_all > 0.0 { count(&after) / of_all } else { 0.0 };
        for (edges, direction) in self.ways.get(&slot).into_iter().flatten() {
            let degree = |labels: &[Str]| self.estimate.degree(*direction, labels, edges);
            let mean = degree(&before);
            if mean > 0.0 {
                share *= degree(&after) / mean;
            }
        }
        self.labels.insert(slot, after);
        share.min(1.0)
    }

    /// Returns the number of different values of a property key.
    fn values_of(&self, key: &str) -> Option<f64> {
        let key = self.knowledge.catalog.token(key)?;
        let mut counts = self.knowledge.statistics.distinct.iter();
        counts.find(|(token, _)| *token == key).map(|(_, count)| *count as f64)
    }

    /// Returns the number of different values of some expressions.
    fn distinct<'e>(&self, exprs: impl Iterator<Item = &'e Expr>, input: f64) -> f64 {
        let mut values = 1.0;
        for expr in exprs {
            let of_key = match self.with_properties(expr) {
                Expr::Literal(_) | Expr::Parameter(_) => Some(1.0),
                Expr::Property(_, key) => self.values_of(&key),
                Expr::Slot(slot) => {
                    let labels = self.labels_of(slot);
                    let is_vertex = self.labels.contains_key(&slot) || !labels.is_empty();
                    let vertices = is_vertex.then(|| self.estimate.vertices(&labels));
                    // Fewer rows than now may have bound it.
                    let bound = self.bound.get(&slot).copied().filter(|bound| *bound < input);
                    vertices.into_iter().chain(bound.map(|bound| bound.max(1.0))).reduce(f64::min)
                }
                _ => None,
            };
            values *= of_key.unwrap_or_else(|| input.max(1.0).powf(0.75));
        }
        values.min(input)
    }
}

/// Returns the walks of all lengths from a vertex, as the search counts them.
fn repeated(step: f64, Length { min, max }: Length) -> f64 {
    let most = max.unwrap_or(REPETITIONS).min(REPETITIONS).max(min.min(REPETITIONS));
    (min.min(REPETITIONS)..=most).map(|times| step.powi(times as i32)).sum()
}

fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(value) => value.as_i64().map(|whole| whole as f64),
        _ => None,
    }
}

/// Returns the number of items of a list; `unknown` if the plan does not tell.
fn items(list: &Expr, unknown: f64) -> f64 {
    match list {
        Expr::List(items) => items.len() as f64,
        Expr::Literal(value) => value.as_slice().map_or(1.0, |items| items.len() as f64),
        Expr::Call(Function::Range, args) => match (&args.first(), &args.get(1)) {
            (Some(low), Some(high)) if args.len() == 2 => {
                number(low).zip(number(high)).map_or(unknown, |(low, high)| (high - low + 1.0).max(0.0))
            }
            _ => unknown,
        },
        _ => unknown,
    }
}

#[cfg(test)]
mod tests;
