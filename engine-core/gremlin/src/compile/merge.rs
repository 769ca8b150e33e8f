//! `mergeV` and `mergeE`, with literal maps; `merge_map` has those with other maps.
//!
//! The step searches for elements as its map describes. Elements that it finds get the properties of `option(onMatch)`.
//! Without any, it creates one from the map and `option(onCreate)`. The ends of an edge are looked up before both.

use super::merge_map::{is_computed, raise_if};
use super::write::{Writes, vertex_labels};
use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::fault::Fault;
use tidegraph_plan::{Comparison, Expr, Function, Op, PropertyAssignment, ScanFilter, ScanTest, Slot};
use tidegraph_types::{Cardinality, Direction, Str, Value};

/// The message of a contradiction between the map of a merge and its `option(onCreate)`.
pub(super) const OVERRIDES: &str = "option(onCreate) cannot override values from merge() argument";

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

/// Returns the entries of a map argument.
fn entries<'a, 't>(step: &Step<'t>, arg: &'a Arg<'t>) -> Result<Entries<'a, 't>> {
    match &arg.kind {
        ArgKind::Map(entries) => Ok(entries),
        ArgKind::Value(Value::Null) => Ok(&[]),
        ArgKind::List(items) if items.is_empty() => Ok(&[]),
        ArgKind::Variable(_) => Err(Fault::unsupported(arg.at, format!("{}(variable)", step.name))),
        ArgKind::Traversal(_) => Err(Fault::unsupported(arg.at, format!("{}(traversal)", step.name))),
        _ => Err(wrong_arguments(step)),
    }
}

/// Returns the maps of a merge and its options. `default`: the cardinality of properties that name none.
fn maps<'a, 't>(
    step: &'a Step<'t>,
    cursor: &mut Cursor<'a, 't>,
    default: Cardinality,
) -> Result<Maps<'a, 't>> {
    let search = match step.args.as_slice() {
        [map] => entries(step, map)?,
        [] => return Err(Fault::unsupported(step.at, format!("{}() of the current map", step.name))),
        _ => return Err(wrong_arguments(step)),
    };
    let mut maps = Maps {
        search,
        create: &[],
        update: &[],
        update_cardinality: default,
        create_cardinality: default,
        out: None,
        into: None,
    };
    for option in cursor.take_all(StepName::Option) {
        let cardinality = match option.args.get(2) {
            None => default,
            Some(arg) => arg
                .constant()
                .and_then(|constant| constant.properties().cardinality)
                .ok_or_else(|| wrong_arguments(option))?,
        };
        match option.args.as_slice() {
            [when, map, ..] if when.constant() == Some(Constant::OnCreate) => {
                maps.create = entries(option, map)?;
                maps.create_cardinality = cardinality;
            }
            [when, map, ..] if when.constant() == Some(Constant::OnMatch) => {
                maps.update = entries(option, map)?;
                maps.update_cardinality = cardinality;
            }
            [when, _] if when.constant() == Some(Constant::OutV) => maps.out = Some(option),
            [when, _] if when.constant() == Some(Constant::InV) => maps.into = Some(option),
            _ => return Err(wrong_arguments(option)),
        }
    }
    for map in [maps.search, maps.create, maps.update] {
        refuse_hidden(step, map)?;
    }
    Ok(maps)
}

/// Refuses keys and labels that begin with `~`, which are reserved for the engine.
fn refuse_hidden(step: &Step<'_>, map: Entries<'_, '_>) -> Result<()> {
    let hidden = |text: Option<&Str>| text.is_some_and(|text| text.starts_with('~'));
    for (key, value) in map {
        if hidden(key.text()) || (key.constant() == Some(Constant::Label) && hidden(value.text())) {
            let at = if hidden(key.text()) { key.at } else { value.at };
            let message = format!("a key or label of {}() cannot begin with '~'", step.name);
            return Err(Fault::syntax(at, message));
        }
    }
    Ok(())
}

/// Returns the input of the creating operator. `onCreate` may add to the searched map but not contradict it. As in
/// TinkerPop, a contradiction is an error only if an element is created.
fn create_input(maps: &Maps<'_, '_>) -> Box<Op> {
    let input = Box::new(Op::Argument);
    let raised =
        || call(Function::RequireNotNull, vec![Expr::Literal(Value::Null), Expr::literal(OVERRIDES)]);
    match contradiction(maps) {
        Contradiction::None => input,
        Contradiction::Certain => Box::new(Op::Filter { input, predicate: raised() }),
        Contradiction::If(differ) => {
            let otherwise = Box::new(Expr::literal(true));
            Box::new(Op::Filter {
                input,
                predicate: Expr::Case { branches: vec![(differ, raised())], otherwise },
            })
        }
    }
}

/// Whether `onCreate` contradicts the searched map.
enum Contradiction {
    None,
    Certain,
    /// If this holds, which depends on parameters.
    If(Expr),
}

fn contradiction(maps: &Maps<'_, '_>) -> Contradiction {
    let same_key = |a: &Arg<'_>, b: &Arg<'_>| match (a.constant(), b.constant()) {
        (Some(x), Some(y)) => x == y || end_key(a).is_some_and(|end| end_key(b) == Some(end)),
        _ => a.kind == b.kind,
    };
    let mut differ = vec![];
    for (key, value) in maps.create {
        let Some((_, looked_for)) = maps.search.iter().find(|(k, _)| same_key(k, key)) else { continue };
        match (super::literal(looked_for), super::literal(value)) {
            (Some(a), Some(b)) if a == b => {}
            _ if of_end(&looked_for.kind) == of_end(&value.kind) => {}
            _ => match (known(looked_for), known(value)) {
                (Some(a @ Expr::Parameter(_)), Some(b)) | (Some(a), Some(b @ Expr::Parameter(_))) => {
                    let equal = Expr::compare(Comparison::Equal, a, b);
                    differ.push(super::not(call(Function::Coalesce, vec![equal, Expr::literal(false)])));
                }
                _ => return Contradiction::Certain,
            },
        }
    }
    if differ.is_empty() { Contradiction::None } else { Contradiction::If(Expr::Or(differ)) }
}

/// Returns the id of a vertex at the end of an edge, for which a map may have the id or the vertex.
fn of_end<'a, 't>(end: &'a ArgKind<'t>) -> &'a ArgKind<'t> {
    match end {
        ArgKind::Vertex(id) => &id.kind,
        _ => end,
    }
}

/// Returns a value that the request knows before it runs.
fn known(arg: &Arg<'_>) -> Option<Expr> {
    match &arg.kind {
        ArgKind::Variable(name) => Some(Expr::Parameter((*name).into())),
        _ => super::literal(arg).map(Expr::Literal),
    }
}

/// Returns the end of the edge that a key stands for: `OUT` and `from` are the source, `IN` and `to` the target.
pub(super) fn end_key(key: &Arg<'_>) -> Option<Direction> {
    key.constant()?.properties().direction.filter(|direction| *direction != Direction::Both)
}

impl Compiler {
    /// Returns the id, label and properties of a map, without the ends of an edge.
    fn merge_written(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        entries: Entries<'_, '_>,
        cardinality: Cardinality,
    ) -> Result<Writes> {
        let mut written = Writes::default();
        for (key, value) in entries.iter().filter(|(key, _)| end_key(key).is_none()) {
            if matches!(value.kind, ArgKind::Traversal(_)) {
                return Err(Fault::unsupported(
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
        if is_computed(step, cursor) {
            return self.merge_computed(flow, cursor, step, dest);
        }
        let maps = maps(step, cursor, self.settings.default_cardinality)?;
        self.refuse_contradiction(flow, step, &maps)?;
        let search = self.merge_written(flow, step, maps.search, maps.create_cardinality)?;
        let extra = self.merge_written(flow, step, maps.create, maps.create_cardinality)?;
        let update = self.merge_written(flow, step, maps.update, maps.update_cardinality)?;
        refuse_identity(step, &update)?;
        let out = self.or_fresh(dest);

        let mut rest = vec![];
        let labels: Vec<Str> = match &search.label {
            Some(Expr::Literal(Value::String(label))) => label.split("::").map(Str::from).collect(),
            Some(label) => {
                let hidden = call(Function::StartsWith, vec![label.clone(), Expr::literal("~")]);
                raise_if(flow, hidden, "a label of mergeV() cannot begin with '~'".into());
                rest.push(self.has_labels_of(out, label.clone()));
                vec![]
            }
            None => vec![],
        };
        let mut matching = flow.child();
        let input = Box::new(Op::Argument);
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
                    (Expr::Literal(Value::String(key)), Expr::Literal(value)) if value.is_scalar() => {
                        filter.predicates.push((key.clone(), ScanTest::Equals(property.value.clone())));
                    }
                    (Expr::Literal(Value::String(key)), Expr::Parameter(_)) => {
                        // A variable may hold a value that a scan cannot test, so that a filter tests it again.
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
        flow.scope.single &= maps.search.iter().any(|(key, _)| key.constant() == Some(Constant::Id));
        flow.set_current(out, ObjectKind::Vertex);
        Ok(())
    }

    pub(super) fn merge_edge<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        dest: Option<Slot>,
    ) -> Result<()> {
        if is_computed(step, cursor) {
            return self.merge_computed(flow, cursor, step, dest);
        }
        let maps = maps(step, cursor, self.settings.default_cardinality)?;
        self.refuse_contradiction(flow, step, &maps)?;
        let from = self.merge_end(flow, step, &maps, Direction::Out, maps.out)?;
        let to = self.merge_end(flow, step, &maps, Direction::In, maps.into)?;
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
            let ends = [(Function::StartNode, from, Direction::Out), (Function::EndNode, to, Direction::In)];
            for (function, slot, end) in ends {
                // An end that only `onCreate` gives does not restrict the search.
                if end_of(maps.search, end).is_some() {
                    tests.push(same_end(function, out, slot));
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
            // An end that only `onCreate` gives does not restrict the search.
            let only_new =
                |end, option: Option<&Step<'_>>| option.is_none() && end_of(maps.search, end).is_none();
            let any_from = only_new(Direction::Out, maps.out);
            let any_to = only_new(Direction::In, maps.into);
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
        flow.set_current(out, ObjectKind::Edge);
        Ok(())
    }

    /// Returns the vertex at an end of the edge, from the map or from `option(outV)` or `option(inV)`.
    fn merge_end(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        maps: &Maps<'_, '_>,
        end: Direction,
        option: Option<&Step<'_>>,
    ) -> Result<Slot> {
        let given = end_of(maps.search, end).or_else(|| end_of(maps.create, end));
        let end = match (given.map(|g| &g.kind), option) {
            (None | Some(ArgKind::Constant(Constant::OutV | Constant::InV)), Some(option)) => {
                let end = Step { at: option.at, name: option.name, args: option.args[1..].to_vec() };
                self.merge_option_end(flow, option, &end)?
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
                let name = if end == Direction::In { "IN" } else { "OUT" };
                let missing = format!("mergeE() without Direction.{name}");
                return Err(Fault::unsupported(step.at, missing));
            }
        };
        Ok(self.slot_of(flow, end))
    }

    /// In 3.8, a contradiction between literal maps is an error also if an element is found.
    fn refuse_contradiction(&self, flow: &mut Flow, step: &Step<'_>, maps: &Maps<'_, '_>) -> Result<()> {
        if self.version.contradictions_wait_for_creation() {
            return Ok(());
        }
        match contradiction(maps) {
            Contradiction::None => Ok(()),
            Contradiction::Certain => Err(Fault::syntax(step.at, OVERRIDES.into())),
            Contradiction::If(differ) => {
                raise_if(flow, differ, OVERRIDES.into());
                Ok(())
            }
        }
    }

    /// Returns the vertex of `option(outV)` or `option(inV)`, without the option's first argument.
    pub(super) fn merge_option_end(
        &mut self,
        flow: &mut Flow,
        option: &Step<'_>,
        end: &Step<'_>,
    ) -> Result<Expr> {
        match end.args.as_slice() {
            [arg @ Arg { kind: ArgKind::Map(_) | ArgKind::Variable(_), .. }] => {
                self.vertex_of_map(flow, end, arg)
            }
            [Arg { kind: ArgKind::Text(_), .. }] => {
                Err(Fault::unsupported(option.at, "option() of an end that is a string"))
            }
            _ => self.end(flow, end),
        }
    }

    /// Returns the test whether a vertex has the value of a property.
    fn holds(&mut self, vertex: Slot, property: &PropertyAssignment) -> Result<Expr> {
        let key = match &property.key {
            Expr::Literal(Value::String(key)) => text(key),
            key => key.clone(),
        };
        let values = call(Function::PropertyValues, vec![Expr::Slot(vertex), key]);
        self.any(values, |_, item| Ok(Expr::compare(Comparison::Equal, item.clone(), property.value.clone())))
    }
}

/// Returns the test whether an edge has a vertex at an end.
pub(super) fn same_end(function: Function, edge: Slot, vertex: Slot) -> Expr {
    Expr::compare(Comparison::Equal, call(function, vec![Expr::Slot(edge)]), Expr::Slot(vertex))
}

/// Returns the entry for an end.
fn end_of<'a, 't>(entries: Entries<'a, 't>, end: Direction) -> Option<&'a Arg<'t>> {
    entries.iter().find(|(key, _)| end_key(key) == Some(end)).map(|(_, value)| value)
}

fn refuse_identity(step: &Step<'_>, update: &Writes) -> Result<()> {
    if update.id.is_some() || update.label.is_some() {
        return Err(Fault::syntax(step.at, "option(onMatch) cannot change id or label".into()));
    }
    Ok(())
}

/// Joins the properties of a new element. Those of `onCreate` replace searched ones with the same key.
fn united(search: Vec<PropertyAssignment>, extra: Vec<PropertyAssignment>) -> Vec<PropertyAssignment> {
    let mut all: Vec<PropertyAssignment> =
        search.into_iter().filter(|s| extra.iter().all(|e| e.key != s.key)).collect();
    all.extend(extra);
    all
}
