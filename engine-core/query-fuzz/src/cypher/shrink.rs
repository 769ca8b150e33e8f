//! Smaller versions of a query, to find a small one that still fails.

use super::ast::{Clause, Expr, Group, NodePattern, Pattern, Projection, Query, SetItem};

/// Returns queries that are a little smaller. Some of them are not valid.
#[must_use]
pub fn smaller(query: &Query) -> Vec<Query> {
    let mut out = vec![];
    for index in 0..query.parts.len() {
        if query.parts.len() > 1 {
            let mut query = query.clone();
            query.parts.remove(index);
            out.push(query);
        }
        for part in smaller_part(&query.parts[index]) {
            let mut query = query.clone();
            query.parts[index] = part;
            out.push(query);
        }
    }
    out
}

fn smaller_part(part: &[Clause]) -> Vec<Vec<Clause>> {
    let mut out = vec![];
    for index in 0..part.len() {
        if index + 1 < part.len() {
            let mut part = part.to_vec();
            part.remove(index);
            out.push(part);
        }
        for clause in smaller_clause(&part[index]) {
            let mut part = part.to_vec();
            part[index] = clause;
            out.push(part);
        }
    }
    out
}

fn smaller_clause(clause: &Clause) -> Vec<Clause> {
    match clause {
        Clause::Match { optional, patterns, filter } => {
            let mut out = vec![];
            if *optional {
                out.push(Clause::Match {
                    optional: false,
                    patterns: patterns.clone(),
                    filter: filter.clone(),
                });
            }
            for filter in smaller_option(filter.as_ref()) {
                out.push(Clause::Match { optional: *optional, patterns: patterns.clone(), filter });
            }
            for patterns in smaller_list(patterns, 1, smaller_pattern) {
                out.push(Clause::Match { optional: *optional, patterns, filter: filter.clone() });
            }
            out
        }
        Clause::Project(body) => smaller_projection(body).into_iter().map(Clause::Project).collect(),
        Clause::Unwind(list, name) => {
            smaller_expr(list).into_iter().map(|list| Clause::Unwind(list, name.clone())).collect()
        }
        Clause::Call { optional, imports, query } => {
            let mut out: Vec<Clause> = smaller(query)
                .into_iter()
                .map(|query| Clause::Call { optional: *optional, imports: imports.clone(), query })
                .collect();
            if *optional {
                out.push(Clause::Call { optional: false, imports: imports.clone(), query: query.clone() });
            }
            out
        }
        Clause::Create(patterns) => {
            smaller_list(patterns, 1, smaller_pattern).into_iter().map(Clause::Create).collect()
        }
        Clause::Merge { pattern, on_create, on_match } => {
            let make = |on_create: &Option<SetItem>, on_match: &Option<SetItem>, pattern: &Pattern| {
                let (on_create, on_match) = (on_create.clone(), on_match.clone());
                Clause::Merge { pattern: pattern.clone(), on_create, on_match }
            };
            let mut out = vec![];
            if on_create.is_some() {
                out.push(make(&None, on_match, pattern));
            }
            if on_match.is_some() {
                out.push(make(on_create, &None, pattern));
            }
            out.extend(smaller_pattern(pattern).iter().map(|pattern| make(on_create, on_match, pattern)));
            out
        }
        Clause::Set(SetItem::Property(name, key, value)) => smaller_expr(value)
            .into_iter()
            .map(|value| Clause::Set(SetItem::Property(name.clone(), key.clone(), value)))
            .collect(),
        _ => vec![],
    }
}

fn smaller_projection(body: &Projection) -> Vec<Projection> {
    let mut out = vec![];
    let mut with = |change: &dyn Fn(&mut Projection)| {
        let mut body = body.clone();
        change(&mut body);
        out.push(body);
    };
    if body.distinct {
        with(&|body| body.distinct = false);
    }
    if body.skip.is_some() {
        with(&|body| body.skip = None);
    }
    if body.limit.is_some() {
        with(&|body| body.limit = None);
    }
    if !body.order.is_empty() && body.skip.is_none() && body.limit.is_none() {
        with(&|body| body.order.clear());
    }
    for index in 0..body.items.len() {
        if body.items.len() > 1 && body.order.is_empty() {
            with(&|body| drop(body.items.remove(index)));
        }
        for expr in smaller_expr(&body.items[index].0) {
            with(&|body| body.items[index].0 = expr.clone());
        }
    }
    for filter in smaller_option(body.filter.as_ref()) {
        with(&|body| body.filter.clone_from(&filter));
    }
    out
}

fn smaller_option(expr: Option<&Expr>) -> Vec<Option<Expr>> {
    let Some(expr) = expr else { return vec![] };
    let mut out = vec![None];
    out.extend(smaller_expr(expr).into_iter().map(Some));
    out
}

/// Removes an item, or makes one smaller.
fn smaller_list<T: Clone>(items: &[T], least: usize, smaller: impl Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let mut out = vec![];
    for index in 0..items.len() {
        if items.len() > least {
            let mut items = items.to_vec();
            items.remove(index);
            out.push(items);
        }
        for item in smaller(&items[index]) {
            let mut items = items.to_vec();
            items[index] = item;
            out.push(items);
        }
    }
    out
}

fn smaller_pattern(pattern: &Pattern) -> Vec<Pattern> {
    let mut out = vec![];
    let mut with = |change: &dyn Fn(&mut Pattern)| {
        let mut pattern = pattern.clone();
        change(&mut pattern);
        out.push(pattern);
    };
    if pattern.path.is_some() {
        with(&|pattern| pattern.path = None);
    }
    if pattern.shortest.is_some() {
        with(&|pattern| pattern.shortest = None);
        return out;
    }
    if !pattern.steps.is_empty() {
        with(&|pattern| drop(pattern.steps.pop()));
        with(&|pattern| pattern.start = pattern.steps.remove(0).1);
    }
    if pattern.start.name.is_some() {
        with(&|pattern| pattern.start.name = None);
    }
    if !pattern.start.labels.is_empty() {
        with(&|pattern| pattern.start.labels.clear());
    }
    if !pattern.start.properties.is_empty() {
        with(&|pattern| pattern.start.properties.clear());
    }
    for (index, (edge, node)) in pattern.steps.iter().enumerate() {
        if edge.name.is_some() {
            with(&|pattern| pattern.steps[index].0.name = None);
        }
        if edge.types.len() > 1 {
            with(&|pattern| pattern.steps[index].0.types.truncate(1));
        }
        if !edge.types.is_empty() {
            with(&|pattern| pattern.steps[index].0.types.clear());
        }
        if let Some(group) = &edge.group {
            for smaller in smaller_group(group) {
                with(&|pattern| pattern.steps[index].0.group = Some(Box::new(smaller.clone())));
            }
            with(&|pattern| pattern.steps[index].0 = group.edge.clone());
        } else if edge.range.is_some() {
            with(&|pattern| pattern.steps[index].0.range = None);
        }
        if !edge.properties.is_empty() {
            with(&|pattern| pattern.steps[index].0.properties.clear());
        }
        if node.name.is_some() {
            with(&|pattern| pattern.steps[index].1.name = None);
        }
        if !node.labels.is_empty() {
            with(&|pattern| pattern.steps[index].1.labels.clear());
        }
        if !node.properties.is_empty() {
            with(&|pattern| pattern.steps[index].1.properties.clear());
        }
    }
    out
}

fn smaller_group(group: &Group) -> Vec<Group> {
    let mut out = vec![];
    let mut with = |change: &dyn Fn(&mut Group)| {
        let mut smaller = group.clone();
        change(&mut smaller);
        if smaller.to_string() != group.to_string() {
            out.push(smaller);
        }
    };
    for filter in smaller_option(group.filter.as_ref()) {
        with(&|group| group.filter.clone_from(&filter));
    }
    let ends: [fn(&mut Group) -> &mut NodePattern; 2] = [|group| &mut group.left, |group| &mut group.right];
    for node in ends {
        with(&|group| node(group).name = None);
        with(&|group| node(group).labels.clear());
        with(&|group| node(group).properties.clear());
    }
    with(&|group| group.edge.name = None);
    with(&|group| group.edge.types.clear());
    with(&|group| group.edge.properties.clear());
    out
}

fn smaller_expr(expr: &Expr) -> Vec<Expr> {
    let boxed = |expr: &Expr| Box::new(expr.clone());
    match expr {
        Expr::Binary(operator, a, b) => {
            let mut out = vec![(**a).clone(), (**b).clone()];
            out.extend(smaller_expr(a).iter().map(|a| Expr::Binary(operator, boxed(a), b.clone())));
            out.extend(smaller_expr(b).iter().map(|b| Expr::Binary(operator, a.clone(), boxed(b))));
            out
        }
        Expr::Not(a) => {
            let mut out = vec![(**a).clone()];
            out.extend(smaller_expr(a).iter().map(|a| Expr::Not(boxed(a))));
            out
        }
        Expr::List(items) => smaller_list(items, 0, smaller_expr).into_iter().map(Expr::List).collect(),
        Expr::Call(name, arguments) => {
            let fewer = smaller_list(arguments, 1, smaller_expr);
            let mut out = arguments.clone();
            out.extend(fewer.into_iter().map(|arguments| Expr::Call(name, arguments)));
            out
        }
        Expr::Case(branches, otherwise) => {
            let mut out: Vec<Expr> = branches.iter().map(|(_, value)| value.clone()).collect();
            out.push((**otherwise).clone());
            out
        }
        Expr::Exists(patterns, filter) => {
            smaller_subquery(patterns, filter, &|patterns, filter| Expr::Exists(patterns, filter))
        }
        Expr::Count(patterns, filter) => {
            smaller_subquery(patterns, filter, &|patterns, filter| Expr::Count(patterns, filter))
        }
        Expr::Aggregate { function, distinct, of: Some(of) } => {
            let make = |distinct: bool, of: Box<Expr>| Expr::Aggregate { function, distinct, of: Some(of) };
            let mut out = vec![];
            if *distinct {
                out.push(make(false, of.clone()));
            }
            out.extend(smaller_expr(of).iter().map(|of| make(*distinct, boxed(of))));
            out
        }
        Expr::Comprehension { name, list, filter, value } => {
            let make = |list: &Expr, filter: Option<Expr>, value: &Expr| Expr::Comprehension {
                name: name.clone(),
                list: boxed(list),
                filter: filter.map(Box::new),
                value: boxed(value),
            };
            let old = filter.as_deref().cloned();
            let mut out = vec![(**list).clone()];
            out.extend(smaller_option(old.as_ref()).into_iter().map(|filter| make(list, filter, value)));
            out.extend(smaller_expr(value).iter().map(|value| make(list, old.clone(), value)));
            out.extend(smaller_expr(list).iter().map(|list| make(list, old.clone(), value)));
            out
        }
        Expr::Quantifier { kind, name, list, filter } => {
            let make = |list: &Expr, filter: &Expr| Expr::Quantifier {
                kind,
                name: name.clone(),
                list: boxed(list),
                filter: boxed(filter),
            };
            let mut out: Vec<Expr> = smaller_expr(list).iter().map(|list| make(list, filter)).collect();
            out.extend(smaller_expr(filter).iter().map(|filter| make(list, filter)));
            out
        }
        Expr::MapProjection { name, all, entries } => (0..entries.len())
            .map(|at| {
                let mut entries = entries.clone();
                entries.remove(at);
                Expr::MapProjection { name: name.clone(), all: *all, entries }
            })
            .collect(),
        _ => vec![],
    }
}

/// Makes the parts of a subquery smaller.
fn smaller_subquery(
    patterns: &[Pattern],
    filter: &Option<Box<Expr>>,
    make: &dyn Fn(Vec<Pattern>, Option<Box<Expr>>) -> Expr,
) -> Vec<Expr> {
    let filters = smaller_option(filter.as_deref());
    let mut out: Vec<Expr> =
        filters.into_iter().map(|filter| make(patterns.to_vec(), filter.map(Box::new))).collect();
    let fewer = smaller_list(patterns, 1, smaller_pattern);
    out.extend(fewer.into_iter().map(|patterns| make(patterns, filter.clone())));
    out
}
