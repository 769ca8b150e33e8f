//! `mergeV` and `mergeE` with maps that are known only at run time: variables, results of traversals, the current map.
//!
//! The parts of a map (id, label, ends, properties) are read from it for each row. Without an id in its map, `mergeV`
//! scans all vertices, and `mergeE` the edges of an end or all edges.

use super::merge::{OVERRIDES, end_key, same_end};
use super::write::vertex_labels;
use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::filter::Subject;
use crate::fault::Fault;
use tidegraph_plan::{
    BindKind, Branch, Comparison, Expr, Function, GremlinType, Op, Quantifier, ScanFilter, Slot,
};
use tidegraph_types::{Cardinality, Direction, Symbol, Value};

/// The arguments of a merge and of its options.
struct Given<'a, 't> {
    search: Option<&'a Arg<'t>>,
    create: Option<&'a Arg<'t>>,
    update: Option<&'a Arg<'t>>,
    cardinality: Cardinality,
    out: Option<&'a Step<'t>>,
    into: Option<&'a Step<'t>>,
}

/// The parts of a map, each in a slot that is unbound or null without the part.
#[derive(Clone, Copy)]
struct Parts {
    map: Slot,
    id: Slot,
    label: Slot,
    out: Slot,
    into: Slot,
    properties: Slot,
}

/// Whether a map of the merge is known only at run time.
pub(super) fn is_computed(step: &Step<'_>, cursor: &Cursor<'_, '_>) -> bool {
    let computed = |arg: &Arg<'_>| match &arg.kind {
        ArgKind::Variable(_) | ArgKind::Traversal(_) => true,
        ArgKind::Map(entries) => entries.iter().any(|(_, value)| value.steps().is_some()),
        _ => false,
    };
    let options = cursor.steps[cursor.next..].iter().take_while(|s| s.name == StepName::Option);
    let of_options = options.filter_map(|option| match option.args.as_slice() {
        [when, map, ..] if matches!(when.constant(), Some(Constant::OnCreate | Constant::OnMatch)) => {
            Some(map)
        }
        _ => None,
    });
    if step.name == StepName::MergeE && lacks_end(step, cursor) {
        return true;
    }
    step.args.is_empty() || step.args.iter().chain(of_options).any(computed)
}

/// Whether an end of the edge is given neither in a map nor by an option.
fn lacks_end(step: &Step<'_>, cursor: &Cursor<'_, '_>) -> bool {
    let options = || cursor.steps[cursor.next..].iter().take_while(|s| s.name == StepName::Option);
    [(Direction::Out, Constant::OutV), (Direction::In, Constant::InV)].into_iter().any(|(end, option)| {
        let of_map = |arg: &Arg<'_>| match &arg.kind {
            ArgKind::Map(entries) => entries.iter().any(|(key, _)| end_key(key) == Some(end)),
            _ => false,
        };
        let by_option = |step: &Step<'_>| match step.args.as_slice() {
            [when, map, ..] => when.constant() == Some(option) || of_map(map),
            _ => false,
        };
        !step.args.iter().any(of_map) && !options().any(by_option)
    })
}

/// Returns the arguments of a merge and its options. `cardinality`: that of properties that name none.
fn given<'a, 't>(
    step: &'a Step<'t>,
    cursor: &mut Cursor<'a, 't>,
    cardinality: Cardinality,
) -> Result<Given<'a, 't>> {
    let search = match step.args.as_slice() {
        [] => None,
        [map] => Some(map),
        _ => return Err(wrong_arguments(step)),
    };
    let mut given = Given { search, create: None, update: None, cardinality, out: None, into: None };
    for option in cursor.take_all(StepName::Option) {
        match option.args.as_slice() {
            [when, map, ..] if when.constant() == Some(Constant::OnCreate) => given.create = Some(map),
            [when, map, rest @ ..] if when.constant() == Some(Constant::OnMatch) => {
                given.update = Some(map);
                if let [cardinality] = rest {
                    let cardinality = cardinality.constant().and_then(|c| c.properties().cardinality);
                    given.cardinality = cardinality.ok_or_else(|| wrong_arguments(option))?;
                }
            }
            [when, _] if when.constant() == Some(Constant::OutV) => given.out = Some(option),
            [when, _] if when.constant() == Some(Constant::InV) => given.into = Some(option),
            _ => return Err(wrong_arguments(option)),
        }
    }
    Ok(given)
}

impl Compiler {
    /// `mergeV` and `mergeE` of maps for which [`is_computed`] holds.
    pub(super) fn merge_computed<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let of_vertices = step.name == StepName::MergeV;
        let given = given(step, cursor, self.settings.default_cardinality)?;
        let starts = flow.scope.cur.is_none();
        if starts {
            if given.search.is_none() {
                return Err(wrong_arguments(step));
            }
            // Traversals in arguments start from the traverser that TinkerPop's engine makes.
            let slot = self.fresh();
            flow.bind(slot, Expr::literal(false));
            (flow.scope.cur, flow.scope.kind) = (Some(slot), ObjectKind::Scalar);
        }
        let incoming = Subject::current(flow, step)?;
        let map = match given.search {
            Some(arg) => self.merge_map(flow, step, arg, &incoming)?,
            None => Expr::Slot(flow.cur(step)?),
        };
        let search = self.parts(flow, step, map);
        let out = self.or_fresh(dest);

        // Maps that no traversal makes are checked also if they are not needed, in 3.8 together.
        let is_given = |arg: &Arg<'_>| arg.steps().is_none();
        let update = match given.update.filter(|arg| is_given(arg)) {
            Some(arg) => {
                let map = self.merge_map(flow, step, arg, &incoming)?;
                Some(self.checked_map(flow, step, map))
            }
            None => None,
        };
        let (mut create, extra) = match given.create.filter(|arg| is_given(arg)) {
            Some(arg) if !self.version.contradictions_wait_for_creation() => {
                let map = self.merge_map(flow, step, arg, &incoming)?;
                let extra = self.parts(flow, step, map);
                if given.search.is_some_and(is_given) {
                    self.refuse_override(flow, search, extra);
                }
                (flow.child(), extra)
            }
            _ => {
                let mut create = flow.child();
                let map = match given.create {
                    Some(arg) => self.merge_map(&mut create, step, arg, &incoming)?,
                    None => call(Function::MakeMap, vec![]),
                };
                let extra = self.parts(&mut create, step, map);
                (create, extra)
            }
        };
        self.refuse_override(&mut create, search, extra);
        let either = |a: Slot, b: Slot| call(Function::Coalesce, vec![Expr::Slot(a), Expr::Slot(b)]);
        let id = Some(either(extra.id, search.id));
        let merged = vec![Expr::Slot(search.properties), Expr::Slot(extra.properties)];
        let properties_from = Some(call(Function::MergeMaps, merged));

        let mut matching = flow.child();
        if of_vertices {
            matching.op = found_vertices(search, out);
            let label =
                call(Function::Coalesce, vec![either(extra.label, search.label), Expr::literal("vertex")]);
            let labels = vertex_labels(Some(label));
            create.wrap(|input| Op::CreateVertex {
                input,
                out,
                id,
                labels,
                properties: vec![],
                properties_from,
            });
        } else {
            let mut ends = [None, None];
            for (end, (part, option)) in
                ends.iter_mut().zip([(search.out, given.out), (search.into, given.into)])
            {
                let vertex = match option {
                    Some(option) => {
                        let end = Step { at: option.at, name: option.name, args: option.args[1..].to_vec() };
                        self.merge_option_end(flow, option, &end)?
                    }
                    None => self.looked_up(flow, Expr::Slot(part)),
                };
                *end = Some(self.slot_of(flow, vertex));
            }
            let [Some(from), Some(to)] = ends else { return Err(wrong_arguments(step)) };
            // An end that only `onCreate` gives is looked up for a new edge.
            let from_map = self.looked_up(&mut create, Expr::Slot(extra.out));
            let to_map = self.looked_up(&mut create, Expr::Slot(extra.into));
            matching.op =
                self.found_edges(search, [from, to], [given.out, given.into].map(|o| o.is_some()), out);
            let label =
                call(Function::Coalesce, vec![either(extra.label, search.label), Expr::literal("edge")]);
            let end = |vertex: Slot, other: Expr| call(Function::Coalesce, vec![Expr::Slot(vertex), other]);
            let (from, to) = (end(from, from_map), end(to, to_map));
            create.wrap(|input| Op::CreateEdge {
                input,
                out,
                id,
                label,
                from,
                to,
                properties: vec![],
                properties_from,
            });
        }
        for test in self.merge_tests(search, out, of_vertices) {
            matching.filter(test);
        }
        let kind = if of_vertices { ObjectKind::Vertex } else { ObjectKind::Edge };
        if let Some(arg) = given.update {
            let sees_incoming = self.version.merge_options_see_the_incoming() && !starts;
            let element = Subject { expr: Expr::Slot(out), kind, near: None };
            let map = match update {
                Some(map) => map,
                None => {
                    let at = if sees_incoming { incoming } else { element };
                    if sees_incoming {
                        let is_element = call(Function::TypeOf(GremlinType::Element), vec![at.expr.clone()]);
                        let message = format!("the traverser that comes to {}() is an element", step.name);
                        raise_if(&mut matching, is_element, message);
                    }
                    let map = self.merge_map(&mut matching, step, arg, &at)?;
                    self.checked_map(&mut matching, step, map)
                }
            };
            let (element, cardinality) = (Expr::Slot(out), given.cardinality);
            matching.wrap(|input| Op::SetPropertyMap {
                input,
                element,
                map: Expr::Slot(map),
                replace: false,
                cardinality,
            });
        }
        let (matching, create) = (Box::new(matching.op), Box::new(create.op));
        flow.wrap(|input| Op::Merge { input, matching, create });
        flow.scope.single = false;
        flow.set_current(out, kind);
        Ok(())
    }

    /// Returns a map argument as an expression.
    fn merge_map(&mut self, flow: &mut Flow, step: &Step<'_>, arg: &Arg<'_>, at: &Subject) -> Result<Expr> {
        match &arg.kind {
            ArgKind::Traversal(steps) => Ok(self.child_value(flow, steps, at.clone())?.expr),
            ArgKind::Map(entries) => {
                let mut args = vec![];
                for (key, value) in entries {
                    args.push(self.expr(key)?);
                    args.push(match &value.kind {
                        ArgKind::Traversal(steps) => self.child_value(flow, steps, at.clone())?.expr,
                        ArgKind::Cardinality(..) => {
                            let what = format!("a cardinality in a map of {}() with a variable", step.name);
                            return Err(Fault::unsupported(value.at, what));
                        }
                        ArgKind::Vertex(id) => self.expr(id)?,
                        // An option gives this end.
                        ArgKind::Constant(Constant::OutV | Constant::InV) => Expr::Literal(Value::Null),
                        _ => self.expr(value)?,
                    });
                }
                Ok(call(Function::MakeMap, args))
            }
            _ => self.expr(arg),
        }
    }

    /// Binds a map, empty if it is null, and refuses other values and keys that begin with `~`.
    fn checked_map(&mut self, flow: &mut Flow, step: &Step<'_>, map: Expr) -> Slot {
        let (slot, entry) = (self.fresh(), self.fresh());
        flow.bind(slot, call(Function::Coalesce, vec![map, call(Function::MakeMap, vec![])]));
        let is_map = call(Function::TypeOf(GremlinType::Map), vec![Expr::Slot(slot)]);
        raise_if(flow, not(is_map), format!("{}() takes a map", step.name));
        let hidden = |text| call(Function::StartsWith, vec![text, Expr::literal("~")]);
        let of_entry = |function| call(function, vec![Expr::Slot(entry)]);
        let is_label = Expr::compare(
            Comparison::Equal,
            of_entry(Function::MapKeys),
            Expr::Literal(Value::Symbol(Symbol::Label)),
        );
        let any_hidden = Expr::Quantified {
            quantifier: Quantifier::Any,
            variable: entry,
            list: Box::new(call(Function::Unfold, vec![Expr::Slot(slot)])),
            predicate: Box::new(Expr::Or(vec![
                hidden(of_entry(Function::MapKeys)),
                Expr::And(vec![is_label.clone(), hidden(of_entry(Function::MapValues))]),
                Expr::And(vec![is_label, is_null(of_entry(Function::MapValues))]),
            ])),
        };
        let message = format!("a key or label of {}() cannot be null or begin with '~'", step.name);
        raise_if(flow, any_hidden, message);
        slot
    }

    /// Binds the parts of a map.
    fn parts(&mut self, flow: &mut Flow, step: &Step<'_>, map: Expr) -> Parts {
        let map = self.checked_map(flow, step, map);
        let symbols = [Symbol::Id, Symbol::Label, Symbol::Out, Symbol::In];
        let key = |symbol| Expr::Literal(Value::Symbol(symbol));
        let [id, label, out, into] = symbols.map(|symbol| {
            let slot = self.fresh();
            flow.bind(slot, call(Function::MapGet, vec![Expr::Slot(map), key(symbol)]));
            slot
        });
        let properties = self.fresh();
        let without = |map, symbol| call(Function::RemoveKey, vec![map, key(symbol)]);
        flow.bind(properties, symbols.into_iter().fold(Expr::Slot(map), without));
        Parts { map, id, label, out, into, properties }
    }

    /// `onCreate` may add to the map but not contradict it.
    fn refuse_override(&mut self, create: &mut Flow, search: Parts, extra: Parts) {
        let entry = self.fresh();
        let of_entry = |function| call(function, vec![Expr::Slot(entry)]);
        let before = call(Function::MapGet, vec![Expr::Slot(search.map), of_entry(Function::MapKeys)]);
        let same = Expr::compare(Comparison::Equal, before.clone(), of_entry(Function::MapValues));
        let is = |end| {
            let key = of_entry(Function::MapKeys);
            Expr::compare(Comparison::Equal, key, Expr::Literal(Value::Symbol(end)))
        };
        let ids = [before.clone(), of_entry(Function::MapValues)].map(|end| self.id_of_end(end));
        let [one, other] = ids;
        let same_id = call(
            Function::Coalesce,
            vec![Expr::compare(Comparison::Equal, one, other), Expr::literal(false)],
        );
        let same_end = Expr::And(vec![Expr::Or(vec![is(Symbol::Out), is(Symbol::In)]), same_id]);
        let contradicts = Expr::Quantified {
            quantifier: Quantifier::Any,
            variable: entry,
            list: Box::new(call(Function::Unfold, vec![Expr::Slot(extra.map)])),
            predicate: Box::new(Expr::And(vec![not(is_null(before)), not(same), not(same_end)])),
        };
        raise_if(create, contradicts, OVERRIDES.into());
    }

    /// Returns the id of an end of an edge, for which a map may have the id or the vertex.
    fn id_of_end(&self, end: Expr) -> Expr {
        let is_element = call(Function::TypeOf(GremlinType::Element), vec![end.clone()]);
        let id = call(Function::Id, vec![end.clone()]);
        let id = Expr::Case { branches: vec![(is_element, id)], otherwise: Box::new(end) };
        // Without types, a number stands for its text.
        if self.settings.ids.have_types() { id } else { call(Function::AsText, vec![id]) }
    }

    /// Returns the vertex that a map describes, or that a variable names by its id.
    pub(super) fn vertex_of_map(&mut self, flow: &mut Flow, step: &Step<'_>, arg: &Arg<'_>) -> Result<Expr> {
        let none = Subject { expr: Expr::Literal(Value::Null), kind: ObjectKind::Unknown, near: None };
        let given = self.merge_map(flow, step, arg, &none)?;
        let given = self.slot_of(flow, given);
        let is_map = call(Function::TypeOf(GremlinType::Map), vec![Expr::Slot(given)]);
        let id = Expr::Literal(Value::Symbol(Symbol::Id));
        let map = Expr::Case {
            branches: vec![(is_map, Expr::Slot(given))],
            otherwise: Box::new(call(Function::MakeMap, vec![id, Expr::Slot(given)])),
        };
        let search = self.parts(flow, step, map);
        let (vertex, out) = (self.fresh(), self.fresh());
        let mut found = flow.child();
        found.op = found_vertices(search, vertex);
        for test in self.merge_tests(search, vertex, true) {
            found.filter(test);
        }
        let plan = Box::new(found.op);
        flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(vertex) });
        Ok(Expr::Slot(out))
    }

    /// Returns the test whether a vertex has all labels that a text names, with `::` between them.
    pub(super) fn has_labels_of(&mut self, vertex: Slot, text: Expr) -> Expr {
        let name = self.fresh();
        let names = |label| call(Function::Split, vec![label, Expr::literal("::")]);
        let own = call(Function::Label, vec![Expr::Slot(vertex)]);
        Expr::Quantified {
            quantifier: Quantifier::All,
            variable: name,
            list: Box::new(names(text)),
            predicate: Box::new(Expr::In(Box::new(Expr::Slot(name)), Box::new(names(own)))),
        }
    }

    /// Returns the tests of label and properties.
    fn merge_tests(&mut self, search: Parts, out: Slot, of_vertices: bool) -> Vec<Expr> {
        let label = Expr::Slot(search.label);
        let has_label = if of_vertices {
            self.has_labels_of(out, label.clone())
        } else {
            Expr::compare(Comparison::Equal, call(Function::Label, vec![Expr::Slot(out)]), label.clone())
        };
        let (entry, item) = (self.fresh(), self.fresh());
        let of_entry = |function| call(function, vec![Expr::Slot(entry)]);
        let values = call(Function::PropertyValues, vec![Expr::Slot(out), of_entry(Function::MapKeys)]);
        let equals = Expr::compare(Comparison::Equal, Expr::Slot(item), of_entry(Function::MapValues));
        let has_value = Expr::Quantified {
            quantifier: Quantifier::Any,
            variable: item,
            list: Box::new(values),
            predicate: Box::new(equals),
        };
        let has_all = Expr::Quantified {
            quantifier: Quantifier::All,
            variable: entry,
            list: Box::new(call(Function::Unfold, vec![Expr::Slot(search.properties)])),
            predicate: Box::new(has_value),
        };
        vec![Expr::Or(vec![is_null(label), has_label]), has_all]
    }

    /// Returns the edges that may be the searched ones. `by_option` tells which ends an `option()` gives.
    fn found_edges(&mut self, search: Parts, ends: [Slot; 2], by_option: [bool; 2], out: Slot) -> Op {
        let [from, to] = ends;
        let other = self.fresh();
        let expand = |from, direction, to, into| Op::Expand {
            input: Box::new(Op::Argument),
            from,
            direction,
            labels: vec![],
            edge: Some(out),
            to: Some(to),
            into,
            loops_once: false,
            keep: None,
        };
        let is_free = |part, by_option| {
            if by_option { Expr::literal(false) } else { is_null(Expr::Slot(part)) }
        };
        let (any_from, any_to) = (is_free(search.out, by_option[0]), is_free(search.into, by_option[1]));
        let mut looked_up =
            Op::LookupEdges { input: Box::new(Op::Argument), ids: Expr::Slot(search.id), out };
        for test in [
            Expr::Or(vec![any_from.clone(), same_end(Function::StartNode, out, from)]),
            Expr::Or(vec![any_to.clone(), same_end(Function::EndNode, out, to)]),
        ] {
            looked_up = Op::Filter { input: Box::new(looked_up), predicate: test };
        }
        let scan = Op::ScanEdges { input: Box::new(Op::Argument), out, labels: vec![] };
        let branches = vec![
            Branch { condition: not(is_null(Expr::Slot(search.id))), plan: looked_up },
            Branch { condition: Expr::And(vec![any_from.clone(), any_to.clone()]), plan: scan },
            Branch { condition: any_from, plan: expand(to, Direction::In, other, false) },
            Branch { condition: any_to, plan: expand(from, Direction::Out, other, false) },
        ];
        let otherwise = Some(Box::new(expand(from, Direction::Out, to, true)));
        Op::Choose { input: Box::new(Op::Argument), branches, otherwise }
    }
}

/// Returns the vertices that may be the searched ones.
fn found_vertices(search: Parts, out: Slot) -> Op {
    let scan = Op::ScanVertices {
        input: Box::new(Op::Argument),
        out,
        filter: ScanFilter::default(),
        columns: vec![],
    };
    let ids = Expr::Slot(search.id);
    let lookup = Op::LookupVertices { input: Box::new(Op::Argument), ids: ids.clone(), out };
    let branches = vec![Branch { condition: is_null(ids), plan: scan }];
    Op::Choose { input: Box::new(Op::Argument), branches, otherwise: Some(Box::new(lookup)) }
}

/// Ends the request with an error if a condition is true for a row.
pub(super) fn raise_if(flow: &mut Flow, condition: Expr, message: String) {
    let error =
        call(Function::RequireNotNull, vec![Expr::Literal(Value::Null), Expr::literal(message.as_str())]);
    flow.filter(Expr::Case { branches: vec![(condition, error)], otherwise: Box::new(Expr::literal(true)) });
}
