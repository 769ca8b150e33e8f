//! `mergeV` and `mergeE`, with maps that are written out.
//!
//! What the map says is looked for; if nothing is found it is made, with what `option(onCreate)` adds. What is found gets
//! the properties of `option(onMatch)`. The ends of an edge are looked up first, for both.

use super::write::{Written, vertex_labels};
use super::{Compiler, Cursor, Flow, Kind, Result, call, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::error::Failure;
use tidegraph_plan::{Comparison, Expr, Function, Op, PropertyAssignment, ScanFilter, ScanTest, Slot};
use tidegraph_types::{Cardinality, Direction, Str, Value};

type Entries<'a, 't> = &'a [(Arg<'t>, Arg<'t>)];

/// The maps of one merge.
struct Maps<'a, 't> {
    search: Entries<'a, 't>,
    create: Entries<'a, 't>,
    update: Entries<'a, 't>,
    update_cardinality: Cardinality,
    create_cardinality: Cardinality,
    out: Option<&'a Step<'t>>,
    into: Option<&'a Step<'t>>,
}

/// A map argument.
fn entries<'a, 't>(step: &Step<'t>, arg: &'a Arg<'t>) -> Result<Entries<'a, 't>> {
    match &arg.kind {
        ArgKind::Map(entries) => Ok(entries),
        ArgKind::Value(Value::Null) => Ok(&[]),
        ArgKind::List(items) if items.is_empty() => Ok(&[]),
        ArgKind::Variable(_) => Err(Failure::unsupported(arg.at, format!("{}(variable)", step.name))),
        ArgKind::Traversal(_) => Err(Failure::unsupported(arg.at, format!("{}(traversal)", step.name))),
        _ => Err(wrong_arguments(step)),
    }
}

fn maps<'a, 't>(step: &'a Step<'t>, cursor: &mut Cursor<'a, 't>) -> Result<Maps<'a, 't>> {
    let search = match step.args.as_slice() {
        [map] => entries(step, map)?,
        [] => return Err(Failure::unsupported(step.at, format!("{}() of the current map", step.name))),
        _ => return Err(wrong_arguments(step)),
    };
    let mut maps = Maps {
        search,
        create: &[],
        update: &[],
        update_cardinality: Cardinality::Set,
        create_cardinality: Cardinality::Set,
        out: None,
        into: None,
    };
    for option in cursor.take_all("option") {
        let cardinality = match option.args.get(2).map(Arg::constant) {
            None | Some(Some("set")) => Cardinality::Set,
            Some(Some("single")) => Cardinality::Single,
            Some(Some("list")) => Cardinality::List,
            _ => return Err(wrong_arguments(option)),
        };
        match option.args.as_slice() {
            [when, map, ..] if when.constant() == Some("onCreate") => {
                maps.create = entries(option, map)?;
                maps.create_cardinality = cardinality;
            }
            [when, map, ..] if when.constant() == Some("onMatch") => {
                maps.update = entries(option, map)?;
                maps.update_cardinality = cardinality;
            }
            [when, _] if when.constant() == Some("outV") => maps.out = Some(option),
            [when, _] if when.constant() == Some("inV") => maps.into = Some(option),
            _ => return Err(wrong_arguments(option)),
        }
    }
    for map in [maps.search, maps.create, maps.update] {
        refuse_hidden(step, map)?;
    }
    Ok(maps)
}

/// Keys and labels that begin with `~` belong to the engine.
fn refuse_hidden(step: &Step<'_>, map: Entries<'_, '_>) -> Result<()> {
    let hidden = |text: Option<&Str>| text.is_some_and(|text| text.starts_with('~'));
    for (key, value) in map {
        if hidden(key.text()) || (key.constant() == Some("label") && hidden(value.text())) {
            let at = if hidden(key.text()) { key.at } else { value.at };
            let message = format!("a key or label of {}() cannot begin with '~'", step.name);
            return Err(Failure::syntax(at, message));
        }
    }
    Ok(())
}

/// The row from which the new element is made. What is looked for is also made, and `onCreate` can only add to it: if
/// it says otherwise that is an error, but as in TinkerPop only when there is something to make.
fn create_input(maps: &Maps<'_, '_>) -> Box<Op> {
    let input = Box::new(Op::Argument);
    if !overrides(maps) {
        return input;
    }
    let message = Expr::literal("option(onCreate) cannot override what is looked for");
    let raised = call(Function::RequireNotNull, vec![Expr::Literal(Value::Null), message]);
    Box::new(Op::Filter { input, predicate: raised })
}

fn overrides(maps: &Maps<'_, '_>) -> bool {
    let names = |key: &Arg<'_>| match key.constant() {
        Some("from") => Some("OUT"),
        Some("to") => Some("IN"),
        _ => None,
    };
    let same_key = |a: &Arg<'_>, b: &Arg<'_>| match (a.constant(), b.constant()) {
        (Some(x), Some(y)) => names(a).unwrap_or(x) == names(b).unwrap_or(y),
        _ => a.kind == b.kind,
    };
    maps.create.iter().any(|(key, value)| {
        let looked_for = maps.search.iter().find(|(k, _)| same_key(k, key));
        looked_for.is_some_and(|(_, looked_for)| match (super::literal(looked_for), super::literal(value)) {
            (Some(a), Some(b)) => a != b,
            _ => looked_for.kind != value.kind,
        })
    })
}

fn is_end(key: &Arg<'_>) -> bool {
    matches!(key.constant(), Some("OUT" | "IN" | "from" | "to"))
}

impl Compiler {
    /// What a map asks for or writes; the ends of an edge are left out.
    fn merge_written(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        entries: Entries<'_, '_>,
        cardinality: Cardinality,
    ) -> Result<Written> {
        let mut written = Written::default();
        for (key, value) in entries.iter().filter(|(key, _)| !is_end(key)) {
            if matches!(value.kind, ArgKind::Traversal(_)) {
                return Err(Failure::unsupported(
                    value.at,
                    format!("a traversal in the map of {}()", step.name),
                ));
            }
            self.assignment(flow, step, key, value, cardinality, vec![], &mut written)?;
        }
        Ok(written)
    }

    pub(super) fn merge_vertex<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let maps = maps(step, cursor)?;
        let search = self.merge_written(flow, step, maps.search, maps.create_cardinality)?;
        let extra = self.merge_written(flow, step, maps.create, maps.create_cardinality)?;
        let update = self.merge_written(flow, step, maps.update, maps.update_cardinality)?;
        refuse_identity(step, &update)?;
        let out = self.or_fresh(dest);

        let mut matching = flow.child();
        let input = Box::new(Op::Argument);
        let labels: Vec<Str> = match &search.label {
            Some(Expr::Literal(Value::String(label))) => label.split("::").map(Str::from).collect(),
            Some(_) => return Err(Failure::unsupported(step.at, "mergeV() with a variable as the label")),
            None => vec![],
        };
        let mut rest = vec![];
        matching.op = if let Some(ids) = search.id.clone() {
            rest.extend(labels.iter().map(|l| Expr::HasAnyLabel(Box::new(Expr::Slot(out)), vec![l.clone()])));
            for property in &search.properties {
                rest.push(self.holds(out, property)?);
            }
            Op::LookupVertices { input, ids, out }
        } else {
            let mut filter = ScanFilter {
                labels: labels.iter().map(|l| vec![l.clone()]).collect(),
                ..ScanFilter::default()
            };
            for property in &search.properties {
                match (&property.key, &property.value) {
                    (Expr::Literal(Value::String(key)), Expr::Literal(value)) if value.is_storable() => {
                        filter.predicates.push((key.clone(), ScanTest::Equals(property.value.clone())));
                    }
                    (Expr::Literal(Value::String(key)), Expr::Parameter(_)) => {
                        // A variable may hold what a scan does not test, so that it is tested again.
                        filter.predicates.push((key.clone(), ScanTest::Equals(property.value.clone())));
                        rest.push(self.holds(out, property)?);
                    }
                    _ => rest.push(self.holds(out, property)?),
                }
            }
            Op::ScanVertices { input, out, filter, columns: vec![] }
        };
        for test in rest {
            matching.filter(test);
        }
        self.write_rest(&mut matching, out, update);

        let label = extra.label.or_else(|| search.label.clone());
        let create = Op::CreateVertex {
            input: create_input(&maps),
            out,
            id: extra.id.or(search.id),
            labels: vertex_labels(label),
            properties: united(search.properties, extra.properties),
            properties_from: None,
        };
        let (matching, create) = (Box::new(matching.op), Box::new(create));
        flow.wrap(|input| Op::Merge { input, matching, create });
        flow.scope.single &= maps.search.iter().any(|(key, _)| key.constant() == Some("id"));
        flow.goto(out, Kind::Vertex);
        Ok(())
    }

    pub(super) fn merge_edge<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let maps = maps(step, cursor)?;
        let from = self.merge_end(flow, step, &maps, ["OUT", "from"], maps.out)?;
        let to = self.merge_end(flow, step, &maps, ["IN", "to"], maps.into)?;
        let search = self.merge_written(flow, step, maps.search, maps.create_cardinality)?;
        let extra = self.merge_written(flow, step, maps.create, maps.create_cardinality)?;
        let update = self.merge_written(flow, step, maps.update, maps.update_cardinality)?;
        refuse_identity(step, &update)?;
        let out = self.or_fresh(dest);

        let mut matching = flow.child();
        let input = Box::new(Op::Argument);
        let edge = || Expr::Slot(out);
        let label_test = |label: &Expr| {
            Expr::compare(Comparison::Equal, call(Function::Label, vec![edge()]), label.clone())
        };
        let mut tests = vec![];
        if let Some(ids) = search.id.clone() {
            matching.op = Op::LookupEdges { input, ids, out };
            tests.extend(search.label.as_ref().map(label_test));
            let ends = [(Function::StartNode, from, ["OUT", "from"]), (Function::EndNode, to, ["IN", "to"])];
            for (function, slot, names) in ends {
                // An end that only the new edge needs is no condition.
                if end_of(maps.search, names).is_some() {
                    tests.push(Expr::compare(
                        Comparison::Equal,
                        call(function, vec![edge()]),
                        Expr::Slot(slot),
                    ));
                }
            }
        } else {
            let labels = match &search.label {
                Some(Expr::Literal(Value::String(label))) => vec![label.clone()],
                Some(label) => {
                    tests.push(label_test(label));
                    vec![]
                }
                None => vec![],
            };
            // An end that only the new edge needs is no condition.
            let only_new =
                |names, option: Option<&Step<'_>>| option.is_none() && end_of(maps.search, names).is_none();
            let any_from = only_new(["OUT", "from"], maps.out);
            let any_to = only_new(["IN", "to"], maps.into);
            matching.op = if any_from && any_to {
                Op::ScanEdges { input, out, labels }
            } else {
                let (from, to, direction) = match any_from {
                    true => (to, self.fresh(), Direction::In),
                    false if any_to => (from, self.fresh(), Direction::Out),
                    false => (from, to, Direction::Out),
                };
                Op::Expand {
                    input,
                    from,
                    direction,
                    labels,
                    edge: Some(out),
                    to: Some(to),
                    into: !any_from && !any_to,
                    loops_once: false,
                    keep: None,
                }
            };
        }
        for property in &search.properties {
            let Expr::Literal(Value::String(key)) = &property.key else { return Err(wrong_arguments(step)) };
            let value = Expr::Property(Box::new(edge()), key.clone());
            tests.push(Expr::compare(Comparison::Equal, value, property.value.clone()));
        }
        for test in tests {
            matching.filter(test);
        }
        self.write_rest(&mut matching, out, update);

        let create = Op::CreateEdge {
            input: create_input(&maps),
            out,
            id: extra.id.or(search.id),
            label: extra.label.or(search.label).unwrap_or_else(|| Expr::literal("edge")),
            from: Expr::Slot(from),
            to: Expr::Slot(to),
            properties: united(search.properties, extra.properties),
            properties_from: None,
        };
        let (matching, create) = (Box::new(matching.op), Box::new(create));
        flow.wrap(|input| Op::Merge { input, matching, create });
        flow.scope.single = false;
        flow.goto(out, Kind::Edge);
        Ok(())
    }

    /// The vertex at an end of the edge, from the map or an `option(outV)`, `option(inV)`.
    fn merge_end(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        maps: &Maps<'_, '_>,
        names: [&str; 2],
        option: Option<&Step<'_>>,
    ) -> Result<Slot> {
        let given = end_of(maps.search, names).or_else(|| end_of(maps.create, names));
        let end = match (given.map(|g| &g.kind), option) {
            (None | Some(ArgKind::Constant("outV" | "inV")), Some(option)) => {
                let end = Step { at: option.at, name: option.name, args: option.args[1..].to_vec() };
                if matches!(end.args.first().map(|a| &a.kind), Some(ArgKind::Map(_) | ArgKind::Text(_))) {
                    return Err(Failure::unsupported(option.at, "option() of an end that is no traversal"));
                }
                self.end(flow, &end)?
            }
            (Some(ArgKind::Vertex(id)), None) => {
                let id = self.expr(id)?;
                self.looked_up(flow, id)
            }
            (Some(_), None) => {
                let id = match given {
                    Some(arg) => self.expr(arg)?,
                    None => return Err(wrong_arguments(step)),
                };
                self.looked_up(flow, id)
            }
            _ => {
                let missing = format!("mergeE() without Direction.{}", names[0]);
                return Err(Failure::unsupported(step.at, missing));
            }
        };
        Ok(self.slot_of(flow, end))
    }

    /// Whether a vertex has a value.
    fn holds(&mut self, vertex: Slot, property: &PropertyAssignment) -> Result<Expr> {
        let key = match &property.key {
            Expr::Literal(Value::String(key)) => text(key),
            key => key.clone(),
        };
        let values = call(Function::PropertyValues, vec![Expr::Slot(vertex), key]);
        self.any(values, |_, item| Ok(Expr::compare(Comparison::Equal, item.clone(), property.value.clone())))
    }
}

/// The entry of an end.
fn end_of<'a, 't>(entries: Entries<'a, 't>, names: [&str; 2]) -> Option<&'a Arg<'t>> {
    entries.iter().find(|(key, _)| key.constant().is_some_and(|c| names.contains(&c))).map(|(_, value)| value)
}

fn refuse_identity(step: &Step<'_>, update: &Written) -> Result<()> {
    if update.id.is_some() || update.label.is_some() {
        return Err(Failure::syntax(step.at, "option(onMatch) cannot change id or label".into()));
    }
    Ok(())
}

/// Properties of a new element: those looked for, except what `onCreate` says otherwise.
fn united(search: Vec<PropertyAssignment>, extra: Vec<PropertyAssignment>) -> Vec<PropertyAssignment> {
    let mut all: Vec<PropertyAssignment> =
        search.into_iter().filter(|s| extra.iter().all(|e| e.key != s.key)).collect();
    all.extend(extra);
    all
}
