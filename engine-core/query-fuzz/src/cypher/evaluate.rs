//! Evaluates a query clause by clause over lists of rows, as the openCypher specification describes it.
//!
//! Nothing is clever: a clause reads all rows of the clause before it, and a pattern tries every node and every edge.

use super::ast::{Clause, Expr, Pattern, Procedure, Projection, Query, SetItem};
use super::matching::Matcher;
use crate::graph::{Edge, Graph, Node};
use crate::value::{Val, compare, equals, group_by, order};
use crate::{Budget, Stop};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Variables with their values.
pub type Row = BTreeMap<String, Val>;

/// Runs a query, changes the graph, and returns the rows of the answer.
///
/// # Errors
///
/// The query is wrong, or takes too many steps.
pub fn run(query: &Query, graph: &mut Graph) -> Result<Vec<Vec<Val>>, Stop> {
    let (_, answers) = answer(query, &Row::new(), graph, &Budget::default())?;
    Ok(answers)
}

/// Returns the columns and the rows of a query that sees the variables of a row.
fn answer(
    query: &Query,
    outer: &Row,
    graph: &mut Graph,
    budget: &Budget,
) -> Result<(Vec<String>, Vec<Vec<Val>>), Stop> {
    let (mut answers, mut columns) = (vec![], vec![]);
    for part in &query.parts {
        let mut rows = vec![outer.clone()];
        for clause in part {
            rows = run_clause(clause, rows, graph, budget)?;
            columns = match clause {
                Clause::Project(body) => body.items.iter().map(|(_, name)| name.clone()).collect(),
                _ => vec![],
            };
        }
        let column = |row: &Row, name: &String| row.get(name).cloned().unwrap_or(Val::Null);
        let answer = rows.iter().map(|row| columns.iter().map(|name| column(row, name)).collect());
        answers.extend(answer.collect::<Vec<Vec<Val>>>());
    }
    if query.parts.len() > 1 && !query.all {
        let groups = group_by(answers.into_iter().map(|row| (row, ())));
        answers = groups.into_keys().map(|key| key.0).collect();
    }
    Ok((columns, answers))
}

/// Returns the rows of a subquery beside each row.
fn call(
    (optional, imports, query): (bool, &[String], &Query),
    rows: Vec<Row>,
    graph: &mut Graph,
    budget: &Budget,
) -> Result<Vec<Row>, Stop> {
    let mut out = vec![];
    for row in rows {
        let imported = imports.iter().map(|name| Ok((name.clone(), named(&row, name)?)));
        let (columns, mut answers) = answer(query, &imported.collect::<Result<Row, Stop>>()?, graph, budget)?;
        if columns.is_empty() {
            // It only writes.
            out.push(row);
            continue;
        }
        if answers.is_empty() && optional {
            answers.push(vec![Val::Null; columns.len()]);
        }
        for answer in answers {
            let mut row = row.clone();
            row.extend(columns.iter().cloned().zip(answer));
            out.push(row);
        }
        budget.rows(out.len())?;
    }
    Ok(out)
}

/// Returns the rows of a procedure.
fn yielded(procedure: Procedure, graph: &Graph) -> Vec<Val> {
    let all: BTreeSet<&String> = match procedure {
        Procedure::Labels => graph.nodes.iter().flatten().flat_map(|node| &node.labels).collect(),
        Procedure::Types => graph.edges.iter().flatten().map(|edge| &edge.kind).collect(),
    };
    all.into_iter().map(|name| Val::Str(name.clone())).collect()
}

fn run_clause(clause: &Clause, rows: Vec<Row>, graph: &mut Graph, budget: &Budget) -> Result<Vec<Row>, Stop> {
    let mut out = vec![];
    match clause {
        Clause::Match { optional, patterns, filter } => {
            let reader = Reader { graph, budget };
            for row in rows {
                let found = reader.filtered(patterns, filter.as_ref(), &row)?;
                if found.is_empty() && *optional {
                    let mut row = row;
                    for name in patterns.iter().flat_map(names_of) {
                        row.entry(name).or_insert(Val::Null);
                    }
                    out.push(row);
                } else {
                    out.extend(found);
                }
                budget.rows(out.len())?;
            }
        }
        Clause::Project(body) => return project(body, rows, &Reader { graph, budget }),
        Clause::Unwind(list, name) => {
            for row in rows {
                let items = match reader_of(graph, budget).value(list, &row)? {
                    Val::List(items) => items,
                    Val::Null => vec![],
                    other => vec![other],
                };
                for item in items {
                    let mut row = row.clone();
                    row.insert(name.clone(), item);
                    out.push(row);
                }
                budget.rows(out.len())?;
            }
        }
        Clause::Call { optional, imports, query } => {
            return call((*optional, imports, query), rows, graph, budget);
        }
        Clause::Procedure { procedure, name } => {
            let values = yielded(*procedure, graph);
            for row in rows {
                out.extend(values.iter().map(|value| {
                    let mut row = row.clone();
                    row.insert(name.clone(), value.clone());
                    row
                }));
                budget.rows(out.len())?;
            }
        }
        Clause::Create(patterns) => {
            // Values see the graph as it was before the clause.
            let before = graph.clone();
            for mut row in rows {
                for pattern in patterns {
                    create(pattern, &mut row, graph, &Reader { graph: &before, budget })?;
                }
                out.push(row);
            }
        }
        Clause::Merge { pattern, on_create, on_match } => {
            for mut row in rows {
                let found = Reader { graph, budget }.filtered(std::slice::from_ref(pattern), None, &row)?;
                let (found, item) = if found.is_empty() {
                    let before = graph.clone();
                    create(pattern, &mut row, graph, &Reader { graph: &before, budget })?;
                    (vec![row], on_create)
                } else {
                    (found, on_match)
                };
                for row in found {
                    if let Some(item) = item {
                        set(item, &row, graph, budget)?;
                    }
                    out.push(row);
                }
            }
        }
        Clause::Set(item) => {
            for row in rows {
                set(item, &row, graph, budget)?;
                out.push(row);
            }
        }
        Clause::RemoveProperty(name, key) => {
            for row in rows {
                set_property(graph, &named(&row, name)?, key, Val::Null);
                out.push(row);
            }
        }
        Clause::RemoveLabel(name, label) => {
            for row in rows {
                if let Val::Node(node) = named(&row, name)?
                    && let Some(node) = &mut graph.nodes[node]
                {
                    node.labels.remove(label);
                }
                out.push(row);
            }
        }
        Clause::Delete { name, .. } => {
            for row in rows {
                match named(&row, name)? {
                    Val::Node(node) => graph.detach_delete(node),
                    Val::Edge(edge) => graph.edges[edge] = None,
                    _ => {}
                }
                out.push(row);
            }
        }
    }
    Ok(out)
}

fn reader_of<'a>(graph: &'a Graph, budget: &'a Budget) -> Reader<'a> {
    Reader { graph, budget }
}

fn names_of(pattern: &Pattern) -> impl Iterator<Item = String> {
    let groups = pattern.steps.iter().filter_map(|(edge, _)| edge.group.as_ref());
    let lists = groups.flat_map(|group| group.names().cloned().map(Some));
    let inner = pattern.steps.iter().flat_map(|(edge, node)| [edge.name.clone(), node.name.clone()]);
    let inner = inner.chain(lists);
    [pattern.path.clone(), pattern.start.name.clone()].into_iter().chain(inner).flatten()
}

fn named(row: &Row, name: &str) -> Result<Val, Stop> {
    row.get(name).cloned().ok_or_else(|| Stop::Wrong(format!("no variable {name}")))
}

fn create(pattern: &Pattern, row: &mut Row, graph: &mut Graph, reader: &Reader<'_>) -> Result<(), Stop> {
    let node = |at: &super::ast::NodePattern, row: &mut Row, graph: &mut Graph| {
        if let Some(Val::Node(node)) = at.name.as_ref().and_then(|name| row.get(name)) {
            return Ok(*node);
        }
        let properties = reader.properties(&at.properties, row)?;
        let labels = at.labels.iter().cloned().collect();
        graph.nodes.push(Some(Node { id: String::new(), labels, properties }));
        let node = graph.nodes.len() - 1;
        if let Some(name) = &at.name {
            row.insert(name.clone(), Val::Node(node));
        }
        Ok::<usize, Stop>(node)
    };
    let mut from = node(&pattern.start, row, graph)?;
    for (edge, to) in &pattern.steps {
        let to = node(to, row, graph)?;
        let (source, target) =
            if edge.direction == super::ast::Direction::Left { (to, from) } else { (from, to) };
        let properties = reader.properties(&edge.properties, row)?;
        let kind = edge.types.first().cloned().unwrap_or_default();
        graph.edges.push(Some(Edge { id: String::new(), source, target, kind, properties }));
        if let Some(name) = &edge.name {
            row.insert(name.clone(), Val::Edge(graph.edges.len() - 1));
        }
        from = to;
    }
    Ok(())
}

fn set(item: &SetItem, row: &Row, graph: &mut Graph, budget: &Budget) -> Result<(), Stop> {
    match item {
        SetItem::Property(name, key, value) => {
            let value = Reader { graph, budget }.value(value, row)?;
            set_property(graph, &named(row, name)?, key, value);
        }
        SetItem::Label(name, label) => {
            if let Val::Node(node) = named(row, name)?
                && let Some(node) = &mut graph.nodes[node]
            {
                node.labels.insert(label.clone());
            }
        }
        SetItem::Map { name, replace, entries } => {
            let of = named(row, name)?;
            let mut values = vec![];
            for (key, value) in entries {
                values.push((key, Reader { graph, budget }.value(value, row)?));
            }
            if *replace {
                match of {
                    Val::Node(node) => graph.nodes[node].iter_mut().for_each(|node| node.properties.clear()),
                    Val::Edge(edge) => graph.edges[edge].iter_mut().for_each(|edge| edge.properties.clear()),
                    _ => {}
                }
            }
            for (key, value) in values {
                set_property(graph, &of, key, value);
            }
        }
    }
    Ok(())
}

/// Sets a property, or removes it if the value is null.
pub fn set_property(graph: &mut Graph, of: &Val, key: &str, value: Val) {
    let properties = match of {
        Val::Node(node) => graph.nodes[*node].as_mut().map(|node| &mut node.properties),
        Val::Edge(edge) => graph.edges[*edge].as_mut().map(|edge| &mut edge.properties),
        _ => None,
    };
    if let Some(properties) = properties {
        if value.is_null() {
            properties.remove(key);
        } else {
            properties.insert(key.to_owned(), value);
        }
    }
}

fn project(body: &Projection, rows: Vec<Row>, reader: &Reader<'_>) -> Result<Vec<Row>, Stop> {
    let mut out = vec![];
    if body.items.iter().any(|(expr, _)| expr.is_aggregate()) {
        let keys: Vec<_> = body.items.iter().filter(|(expr, _)| !expr.is_aggregate()).collect();
        let mut keyed = vec![];
        for row in rows {
            let key: Result<Vec<Val>, Stop> = keys.iter().map(|(expr, _)| reader.value(expr, &row)).collect();
            keyed.push((key?, row));
        }
        let mut groups: Vec<(Vec<Val>, Vec<Row>)> =
            group_by(keyed).into_iter().map(|(key, rows)| (key.0, rows)).collect();
        if groups.is_empty() && keys.is_empty() {
            groups.push((vec![], vec![]));
        }
        for (key, rows) in groups {
            let mut row = Row::new();
            for ((_, name), value) in keys.iter().zip(key) {
                row.insert(name.clone(), value);
            }
            for (expr, name) in &body.items {
                if let Expr::Aggregate { function, distinct, of } = expr {
                    let value = reader.aggregate(function, *distinct, of.as_deref(), &rows)?;
                    row.insert(name.clone(), value);
                }
            }
            out.push(row);
        }
    } else {
        for row in rows {
            let values = body.items.iter().map(|(expr, name)| Ok((name.clone(), reader.value(expr, &row)?)));
            out.push(values.collect::<Result<Row, Stop>>()?);
        }
    }
    if body.distinct {
        let groups = group_by(out.into_iter().map(|row| (row.values().cloned().collect(), row)));
        out = groups.into_values().filter_map(|mut rows| rows.pop()).collect();
    }
    if !body.order.is_empty() {
        let mut keyed = vec![];
        for row in out {
            let keys: Result<Vec<Val>, Stop> =
                body.order.iter().map(|(key, _)| reader.value(key, &row)).collect();
            keyed.push((keys?, row));
        }
        keyed.sort_by(|(a, _), (b, _)| {
            let by = a.iter().zip(b).zip(&body.order).map(|((a, b), (_, down))| {
                let by = order(a, b);
                if *down { by.reverse() } else { by }
            });
            by.fold(Ordering::Equal, Ordering::then)
        });
        out = keyed.into_iter().map(|(_, row)| row).collect();
    }
    let kept = out.into_iter().skip(body.skip.unwrap_or(0)).take(body.limit.unwrap_or(usize::MAX));
    let mut out: Vec<Row> = kept.collect();
    if let Some(filter) = &body.filter {
        let mut passed = vec![];
        for row in out {
            if reader.value(filter, &row)?.truth() == Some(true) {
                passed.push(row);
            }
        }
        out = passed;
    }
    Ok(out)
}

/// Evaluates expressions over a graph.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) graph: &'a Graph,
    pub(super) budget: &'a Budget,
}

impl Reader<'_> {
    fn filtered(&self, patterns: &[Pattern], filter: Option<&Expr>, row: &Row) -> Result<Vec<Row>, Stop> {
        let mut found = vec![];
        for row in Matcher::all(*self, patterns, row)? {
            let passes = match filter {
                Some(filter) => self.value(filter, &row)?.truth() == Some(true),
                None => true,
            };
            if passes {
                found.push(row);
            }
        }
        Ok(found)
    }

    fn properties(&self, map: &[(String, Expr)], row: &Row) -> Result<BTreeMap<String, Val>, Stop> {
        let mut properties = BTreeMap::new();
        for (key, value) in map {
            let value = self.value(value, row)?;
            if !value.is_null() {
                properties.insert(key.clone(), value);
            }
        }
        Ok(properties)
    }

    fn aggregate(
        &self,
        function: &str,
        distinct: bool,
        of: Option<&Expr>,
        rows: &[Row],
    ) -> Result<Val, Stop> {
        let Some(of) = of else { return Ok(integer(rows.len())) };
        let mut values = vec![];
        for row in rows {
            let value = self.value(of, row)?;
            if !value.is_null() {
                values.push(value);
            }
        }
        if distinct {
            let groups = group_by(values.into_iter().map(|value| (vec![value], ())));
            values = groups.into_keys().flat_map(|key| key.0).collect();
        }
        let sum = || values.iter().filter_map(Val::number).sum::<f64>();
        Ok(match function {
            "count" => integer(values.len()),
            "collect" => Val::List(values),
            "min" => values.into_iter().min_by(order).unwrap_or(Val::Null),
            "max" => values.into_iter().max_by(order).unwrap_or(Val::Null),
            #[allow(clippy::cast_possible_truncation, reason = "small integers")]
            "sum" => Val::Int(sum() as i64),
            "avg" if values.is_empty() => Val::Null,
            #[allow(clippy::cast_precision_loss, reason = "few values")]
            "avg" => Val::Float(sum() / values.len() as f64),
            _ => return Err(Stop::Wrong(format!("no aggregate {function}"))),
        })
    }

    /// Evaluates an expression.
    pub(super) fn value(&self, expr: &Expr, row: &Row) -> Result<Val, Stop> {
        let value = |expr: &Expr| self.value(expr, row);
        Ok(match expr {
            Expr::Literal(value) => value.clone(),
            Expr::Name(name) => named(row, name)?,
            Expr::Property(name, key) => self.graph.property(&named(row, name)?, key),
            Expr::Binary(operator, a, b) => binary(operator, &value(a)?, &value(b)?)?,
            Expr::Not(a) => Val::of_truth(value(a)?.truth().map(|truth| !truth)),
            Expr::IsNull(a) => Val::Bool(value(a)?.is_null()),
            Expr::IsNotNull(a) => Val::Bool(!value(a)?.is_null()),
            Expr::List(items) => Val::List(items.iter().map(value).collect::<Result<_, _>>()?),
            Expr::HasLabel(name, label) => match named(row, name)? {
                Val::Node(node) => {
                    Val::Bool(self.graph.node(node).is_some_and(|node| node.labels.contains(label)))
                }
                _ => Val::Null,
            },
            Expr::Call(name, arguments) => {
                let arguments: Vec<Val> = arguments.iter().map(value).collect::<Result<_, _>>()?;
                self.call(name, &arguments)?
            }
            Expr::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if value(condition)?.truth() == Some(true) {
                        return value(result);
                    }
                }
                value(otherwise)?
            }
            Expr::Exists(patterns, filter) => {
                Val::Bool(!self.filtered(patterns, filter.as_deref(), row)?.is_empty())
            }
            Expr::Count(patterns, filter) => integer(self.filtered(patterns, filter.as_deref(), row)?.len()),
            Expr::Comprehension { name, list, filter, value } => {
                let Val::List(items) = self.value(list, row)? else { return Ok(Val::Null) };
                let mut out = vec![];
                for item in items {
                    let mut row = row.clone();
                    row.insert(name.clone(), item);
                    let passes = match filter {
                        Some(filter) => self.value(filter, &row)?.truth() == Some(true),
                        None => true,
                    };
                    if passes {
                        out.push(self.value(value, &row)?);
                    }
                }
                Val::List(out)
            }
            Expr::Quantifier { kind, name, list, filter } => {
                let Val::List(items) = value(list)? else { return Ok(Val::Null) };
                let (mut yes, mut no, mut unknown) = (0, 0, 0);
                for item in items {
                    let mut row = row.clone();
                    row.insert(name.clone(), item);
                    match self.value(filter, &row)?.truth() {
                        Some(true) => yes += 1,
                        Some(false) => no += 1,
                        None => unknown += 1,
                    }
                }
                quantified(kind, yes, no, unknown)
            }
            Expr::Index(list, index) => match (value(list)?, value(index)?) {
                (Val::List(items), Val::Int(index)) => {
                    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
                    let at = if index < 0 { len + index } else { index };
                    let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                    item.cloned().unwrap_or(Val::Null)
                }
                _ => Val::Null,
            },
            Expr::MapProjection { name, all, entries } => {
                let of = named(row, name)?;
                if of.is_null() {
                    return Ok(Val::Null);
                }
                let mut map: BTreeMap<String, Val> = BTreeMap::new();
                for key in crate::graph::ALL_KEYS.iter().filter(|_| *all) {
                    let property = self.graph.property(&of, key);
                    if !property.is_null() {
                        map.insert((*key).to_owned(), property);
                    }
                }
                for (key, entry) in entries {
                    map.insert(key.clone(), value(entry)?);
                }
                Val::Map(map.into_iter().map(|(key, value)| (Val::Str(key), value)).collect())
            }
            Expr::Aggregate { .. } => return Err(Stop::Wrong("an aggregate inside".to_owned())),
        })
    }

    fn call(&self, name: &str, arguments: &[Val]) -> Result<Val, Stop> {
        if name == "coalesce" {
            return Ok(arguments.iter().find(|value| !value.is_null()).cloned().unwrap_or(Val::Null));
        }
        if arguments.iter().any(Val::is_null) {
            return Ok(Val::Null);
        }
        Ok(match (name, arguments) {
            ("id", [element @ (Val::Node(_) | Val::Edge(_))]) => self.graph.id(element),
            ("type", [Val::Edge(edge)]) => {
                self.graph.edge(*edge).map_or(Val::Null, |edge| Val::Str(edge.kind.clone()))
            }
            ("startNode", [Val::Edge(edge)]) => {
                self.graph.edge(*edge).map_or(Val::Null, |edge| Val::Node(edge.source))
            }
            ("endNode", [Val::Edge(edge)]) => {
                self.graph.edge(*edge).map_or(Val::Null, |edge| Val::Node(edge.target))
            }
            ("size", [Val::List(items)]) => integer(items.len()),
            ("size", [Val::Str(text)]) => integer(text.chars().count()),
            ("length", [Val::Path(items)]) => integer(items.len() / 2),
            ("nodes", [Val::Path(items)]) => Val::List(items.iter().step_by(2).cloned().collect()),
            ("relationships", [Val::Path(items)]) => {
                Val::List(items.iter().skip(1).step_by(2).cloned().collect())
            }
            ("head", [Val::List(items)]) => items.first().cloned().unwrap_or(Val::Null),
            ("last", [Val::List(items)]) => items.last().cloned().unwrap_or(Val::Null),
            ("reverse", [Val::List(items)]) => Val::List(items.iter().rev().cloned().collect()),
            ("labels", [Val::Node(node)]) => {
                let labels = self.graph.node(*node).into_iter().flat_map(|node| &node.labels);
                Val::List(labels.cloned().map(Val::Str).collect())
            }
            ("keys", [of @ (Val::Node(_) | Val::Edge(_))]) => {
                let all = crate::graph::ALL_KEYS.iter().filter(|key| !self.graph.property(of, key).is_null());
                Val::List(all.map(|key| Val::Str((*key).to_owned())).collect())
            }
            ("collToSet", [Val::List(items)]) => distinct_of(items, |_| true),
            ("collSubtract", [Val::List(items), Val::List(others)]) => {
                distinct_of(items, |item| !has(others, item))
            }
            ("collIntersection", [Val::List(items), Val::List(others)]) => {
                distinct_of(items, |item| has(others, item))
            }
            ("collSort", [Val::List(items)]) => {
                let mut sorted = items.clone();
                sorted.sort_by(order);
                Val::List(sorted)
            }
            ("abs", [Val::Int(int)]) => Val::Int(int.abs()),
            ("toUpper", [Val::Str(text)]) => Val::Str(text.to_uppercase()),
            ("toString", [Val::Int(int)]) => Val::Str(int.to_string()),
            ("range", [Val::Int(from), Val::Int(to)]) => Val::List((*from..=*to).map(Val::Int).collect()),
            _ => return Err(Stop::Wrong(format!("{name}({arguments:?})"))),
        })
    }
}

/// Whether a list has an item that is equivalent to a value.
fn has(items: &[Val], value: &Val) -> bool {
    items.iter().any(|item| order(item, value) == Ordering::Equal)
}

/// Returns the first of equivalent items that pass.
fn distinct_of(items: &[Val], passes: impl Fn(&Val) -> bool) -> Val {
    let mut out: Vec<Val> = vec![];
    for item in items {
        if passes(item) && !has(&out, item) {
            out.push(item.clone());
        }
    }
    Val::List(out)
}

fn quantified(kind: &str, yes: usize, no: usize, unknown: usize) -> Val {
    let known = match kind {
        "all" if no > 0 => Some(false),
        "any" if yes > 0 => Some(true),
        "none" if yes > 0 => Some(false),
        "single" if yes > 1 => Some(false),
        _ if unknown > 0 => None,
        "any" => Some(false),
        "single" => Some(yes == 1),
        _ => Some(true),
    };
    Val::of_truth(known)
}

fn integer(number: usize) -> Val {
    Val::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn binary(operator: &str, a: &Val, b: &Val) -> Result<Val, Stop> {
    let truths = (a.truth(), b.truth());
    let compared = |wanted: fn(Ordering) -> bool| Val::of_truth(compare(a, b).map(wanted));
    let texts = |test: fn(&str, &str) -> bool| match (a, b) {
        (Val::Str(a), Val::Str(b)) => Val::Bool(test(a, b)),
        _ => Val::Null,
    };
    Ok(match operator {
        "=" => Val::of_truth(equals(a, b)),
        "<>" => Val::of_truth(equals(a, b).map(|equal| !equal)),
        "<" => compared(Ordering::is_lt),
        "<=" => compared(Ordering::is_le),
        ">" => compared(Ordering::is_gt),
        ">=" => compared(Ordering::is_ge),
        "AND" => Val::of_truth(match truths {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        "OR" => Val::of_truth(match truths {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
        "XOR" => Val::of_truth(truths.0.zip(truths.1).map(|(a, b)| a != b)),
        "STARTS WITH" => texts(|a, b| a.starts_with(b)),
        "ENDS WITH" => texts(|a, b| a.ends_with(b)),
        "CONTAINS" => texts(|a, b| a.contains(b)),
        "IN" => match b {
            Val::List(items) => Val::of_truth(contains(items, a)),
            _ => Val::Null,
        },
        "+" | "-" | "*" => match (a, b) {
            (Val::Null, _) | (_, Val::Null) => Val::Null,
            (Val::Int(a), Val::Int(b)) => Val::Int(match operator {
                "+" => a + b,
                "-" => a - b,
                _ => a.checked_mul(*b).ok_or(Stop::TooMuch)?,
            }),
            (Val::Str(a), Val::Str(b)) if operator == "+" => Val::Str(format!("{a}{b}")),
            (Val::List(a), Val::List(b)) if operator == "+" => Val::List([&a[..], &b[..]].concat()),
            _ => return Err(Stop::Wrong(format!("{a:?} {operator} {b:?}"))),
        },
        _ => return Err(Stop::Wrong(format!("no operator {operator}"))),
    })
}

fn contains(items: &[Val], value: &Val) -> Option<bool> {
    let mut known = Some(false);
    for item in items {
        match equals(value, item) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => known = None,
        }
    }
    known
}
