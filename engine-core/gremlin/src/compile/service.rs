//! `call()`: services. They are the procedures that a program adds to the registry, and the two services of TinkerGraph,
//! which are compositions of other steps.
//!
//! Parameters are those of a map, of the map that a traversal makes, and of `with()`; of equal names the last one counts.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::filter::Subject;
use crate::fault::Fault;
use crate::lexer::shorten;
use std::sync::Arc;
use tidegraph_plan::{Argument, BindKind, Body, Comparison, Expr, Function, Op, Procedure, Slot};
use tidegraph_types::{Direction, Str, Symbol, Value};

/// Lists the names of the services.
const LIST: &str = "--list";
/// Finds properties by their text.
const SEARCH: &str = "tinker.search";
/// Counts the edges of a vertex.
const DEGREE: &str = "tinker.degree.centrality";

/// The parameters of a call.
struct Parameters<'a, 't> {
    /// Maps, the last of which wins.
    maps: Vec<Expr>,
    /// Those of `with()`, which win over the maps.
    withs: Vec<(Str, &'a Arg<'t>, Expr)>,
}

impl Parameters<'_, '_> {
    /// Returns the value of a parameter; unbound if the call does not have it.
    fn get(&self, name: &str) -> Expr {
        if let Some((.., value)) = self.withs.iter().rfind(|(known, ..)| known == name) {
            return value.clone();
        }
        let entry = |map: &Expr| call(Function::MapGet, vec![map.clone(), Expr::literal(name)]);
        let mut found: Vec<Expr> = self.maps.iter().rev().map(entry).collect();
        match found.len() {
            0 => Expr::Literal(Value::Unbound),
            1 => found.remove(0),
            _ => call(Function::Coalesce, found),
        }
    }

    /// Returns the constant that `with()` gives for a name.
    fn constant(&self, name: &str) -> Option<Constant> {
        self.withs.iter().rfind(|(known, ..)| known == name).and_then(|(_, arg, _)| arg.constant())
    }
}

impl Compiler {
    /// `call()`, `call(service)`, `call(service, map)`, `call(service, traversal)`, `call(service, map, traversal)`
    pub(super) fn service<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let (name, args) = match step.args.as_slice() {
            [] => (LIST, &[][..]),
            [Arg { kind: ArgKind::Text(name), .. }, rest @ ..] => (name.as_str(), rest),
            _ => return Err(wrong_arguments(step)),
        };
        if args.len() > 2 {
            return Err(wrong_arguments(step));
        }
        let parameters = self.parameters(flow, step, args, cursor.take_all(StepName::With))?;
        match name {
            LIST => self.list_services(flow, &parameters, step, dest),
            SEARCH => self.search(flow, &parameters, step, dest),
            DEGREE => self.degree(flow, &parameters, step, dest),
            _ => {
                let procedure = self.procedures.find(name).filter(|one| is_service(one)).cloned();
                let Some(procedure) = procedure else {
                    let message = format!("no service is named '{}'", shorten(name));
                    return Err(Fault::syntax(step.at, message));
                };
                self.call_procedure(flow, &procedure, &parameters, step, dest)
            }
        }
    }

    fn parameters<'a, 't>(
        &mut self,
        flow: &mut Flow,
        step: &Step<'t>,
        args: &[Arg<'t>],
        withs: &'a [Step<'t>],
    ) -> Result<Parameters<'a, 't>> {
        let object = match flow.scope.cur {
            Some(_) => Subject::current(flow, step)?,
            None => Subject { expr: Expr::Literal(Value::Null), kind: ObjectKind::Unknown, near: None },
        };
        let mut parameters = Parameters { maps: vec![], withs: vec![] };
        for arg in args {
            let map = match &arg.kind {
                ArgKind::Traversal(steps) => self.child_value(flow, steps, object.clone())?.expr,
                ArgKind::Map(_) | ArgKind::Variable(_) => self.expr(arg)?,
                _ => return Err(wrong_arguments(step)),
            };
            parameters.maps.push(map);
        }
        for with in withs {
            let [Arg { kind: ArgKind::Text(name), .. }, value] = with.args.as_slice() else {
                return Err(wrong_arguments(with));
            };
            let expr = match &value.kind {
                ArgKind::Traversal(steps) => self.child_value(flow, steps, object.clone())?.expr,
                // The service asks for the constant itself.
                ArgKind::Constant(_) => {
                    super::literal(value).map_or(Expr::Literal(Value::Null), Expr::Literal)
                }
                _ => self.expr(value)?,
            };
            parameters.withs.push((name.clone(), value, expr));
        }
        Ok(parameters)
    }

    /// Lists the names of the services, or the one that the parameter `service` names.
    fn list_services(
        &mut self,
        flow: &mut Flow,
        parameters: &Parameters<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        if parameters.withs.iter().any(|(name, ..)| name == "verbose") {
            return Err(Fault::unsupported(step.at, "call() with the parameter verbose"));
        }
        let mut names: Vec<Value> = vec![SEARCH.into(), DEGREE.into()];
        let added = self.procedures.iter().filter(|procedure| is_service(procedure));
        names.extend(added.map(|procedure| procedure.signature().name.clone().into()));
        let (name, wanted) = (self.fresh(), self.fresh());
        flow.bind(wanted, parameters.get("service"));
        let is_wanted = Expr::compare(Comparison::Equal, Expr::Slot(name), Expr::Slot(wanted));
        let listed = Expr::Comprehension {
            variable: name,
            list: Box::new(Expr::Literal(Value::list(names))),
            filter: Some(Box::new(Expr::Or(vec![is_null(Expr::Slot(wanted)), is_wanted]))),
            map: None,
        };
        self.yielded(flow, listed, dest, ObjectKind::Scalar);
        Ok(())
    }

    /// Continues with the items of a list.
    fn yielded(&mut self, flow: &mut Flow, list: Expr, dest: Option<Slot>, kind: ObjectKind) {
        let out = self.or_fresh(dest);
        flow.wrap(|input| Op::Unwind { input, list, out });
        flow.scope.single = false;
        flow.set_current(out, kind);
    }

    /// `tinker.search`: the properties whose text has a match of a regular expression, of vertices, edges or properties.
    fn search(
        &mut self,
        flow: &mut Flow,
        parameters: &Parameters<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        if flow.scope.cur.is_some() {
            return Err(Fault::syntax(step.at, format!("the service {SEARCH} starts a traversal")));
        }
        let (kind, property, value) = (self.fresh(), self.fresh(), self.fresh());
        flow.bind(kind, parameters.get("type"));
        flow.scope.cur = Some(kind);
        let plain = |name| Step { at: step.at, name, args: vec![] };
        let (vertices, edges) = (plain(StepName::V), plain(StepName::E));
        let properties = || plain(StepName::Properties);
        let branches = [
            ("Vertex", vec![vertices.clone(), properties()]),
            ("Edge", vec![edges, properties()]),
            ("VertexProperty", vec![vertices, properties(), properties()]),
        ];
        let mut plans = vec![];
        for (name, steps) in branches {
            let mut child = flow.child();
            child.scope.single = flow.scope.single;
            let is_kind = Expr::compare(Comparison::Equal, Expr::Slot(kind), Expr::literal(name));
            child.filter(Expr::Or(vec![is_null(Expr::Slot(kind)), is_kind]));
            self.steps(&mut child, &steps, Some(property))?;
            plans.push(child.op);
        }
        flow.wrap(|input| Op::Union { input, branches: plans });
        let shown = call(Function::AsText, vec![call(Function::PropertyValue, vec![Expr::Slot(property)])]);
        flow.bind(value, shown);
        let found = |function, name| {
            let pattern = parameters.get(name);
            let matches = call(function, vec![Expr::Slot(value), pattern.clone()]);
            not(is_null(pattern)).and(matches)
        };
        flow.filter(Expr::Or(vec![found(Function::Regex, "search"), found(Function::MatchesWhole, "regex")]));
        flow.scope.single = false;
        let out = self.or_fresh(dest);
        flow.bind(out, Expr::Slot(property));
        flow.set_current(out, ObjectKind::Property);
        // The path begins with the property.
        flow.scope.path_ended = true;
        Ok(())
    }

    /// `tinker.degree.centrality`: the number of edges of a vertex in a direction, which is `IN` unless given.
    fn degree(
        &mut self,
        flow: &mut Flow,
        parameters: &Parameters<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let from = flow.cur(step)?;
        let given = parameters.constant("direction").and_then(|constant| constant.properties().direction);
        let dynamic = given.is_none() && (!parameters.maps.is_empty() || !parameters.withs.is_empty());
        let out = self.or_fresh(dest);
        if dynamic {
            let (outgoing, incoming) = (self.fresh(), self.fresh());
            self.count_edges(flow, from, Direction::Out, outgoing);
            self.count_edges(flow, from, Direction::In, incoming);
            let direction = parameters.get("direction");
            let out_is = Expr::Literal(Value::Symbol(Symbol::Out));
            let is_out = Expr::compare(Comparison::Equal, direction, out_is);
            let counted = Expr::Case {
                branches: vec![(is_out, Expr::Slot(outgoing))],
                otherwise: Box::new(Expr::Slot(incoming)),
            };
            flow.bind(out, counted);
        } else {
            self.count_edges(flow, from, given.unwrap_or(Direction::In), out);
        }
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }

    fn count_edges(&mut self, flow: &mut Flow, from: Slot, direction: Direction, out: Slot) {
        let expand = Op::Expand {
            input: Box::new(Op::Argument),
            from,
            direction,
            labels: vec![],
            edge: None,
            to: Some(self.fresh()),
            into: false,
            loops_once: false,
            keep: None,
        };
        flow.wrap(|input| Op::Bind { input, plan: Box::new(expand), out, kind: BindKind::Count });
    }

    /// Calls a procedure of the registry. One column is the object, several are a map.
    fn call_procedure(
        &mut self,
        flow: &mut Flow,
        procedure: &Arc<Procedure>,
        parameters: &Parameters<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let signature = procedure.signature();
        let mut args = vec![];
        for Argument { field, default } in &signature.arguments {
            let given = parameters.get(&field.name);
            let otherwise = match default {
                Some(default) => Expr::Literal(default.clone()),
                None => {
                    let message =
                        format!("call() of {} lacks the parameter '{}'", signature.name, field.name);
                    let message = Expr::literal(message.as_str());
                    call(Function::RequireNotNull, vec![Expr::Literal(Value::Null), message])
                }
            };
            let slot = self.slot_of(flow, given);
            let branches = vec![(Expr::IsBound(slot), Expr::Slot(slot))];
            args.push(Expr::Case { branches, otherwise: Box::new(otherwise) });
        }
        let columns: Vec<(Str, Slot)> =
            signature.columns.iter().map(|field| (field.name.clone(), self.fresh())).collect();
        let yields = columns.iter().enumerate().map(|(at, (_, slot))| (at, *slot)).collect();
        let procedure = Arc::clone(procedure);
        flow.wrap(|input| Op::CallProcedure { input, procedure, args, yields });
        flow.scope.single = false;
        let value = match columns.as_slice() {
            [] if flow.scope.cur.is_some() => return Ok(()),
            [] => return Err(Fault::unsupported(step.at, "call() of a procedure without columns after g")),
            [(_, slot)] => Expr::Slot(*slot),
            columns => {
                let entries = columns.iter().flat_map(|(name, slot)| [text(name), Expr::Slot(*slot)]);
                call(Function::MakeMap, entries.collect())
            }
        };
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.set_current(out, ObjectKind::Unknown);
        Ok(())
    }
}

/// Whether a procedure is a service: one that a program added. The engine's own are those of openCypher's tools, under
/// the names that these expect.
fn is_service(procedure: &Procedure) -> bool {
    let name = &procedure.signature().name;
    let is_of_opencypher = ["db.", "dbms."].iter().any(|own| name.starts_with(own));
    matches!(procedure.body(), Body::Function(_)) && !is_of_opencypher
}
