//! Steps that change the graph: `addV`, `addE`, `property`, `drop`.
//!
//! The default cardinality of vertex properties is `set`, as in Neptune. Edges have single values.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::filter::Subject;
use crate::compile::step::moves;
use crate::fault::Fault;
use tidegraph_plan::{BindKind, Expr, Function, Op, PropertyAssignment, Slot};
use tidegraph_types::{Cardinality, Value};

/// The writes of `property()` steps.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) id: Option<Expr>,
    pub(super) label: Option<Expr>,
    pub(super) properties: Vec<PropertyAssignment>,
    /// Properties whose value a child computes; it may have no result.
    maybe: Vec<PropertyAssignment>,
    /// Maps that the request binds.
    maps: Vec<Expr>,
}

impl Compiler {
    pub(super) fn add_vertex(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let label = match step.args.as_slice() {
            [] => None,
            [arg] => Some(self.label_value(flow, step, arg)?),
            _ => return Err(wrong_arguments(step)),
        };
        let mut written = Writes::default();
        for property in cursor.take_all(StepName::Property) {
            self.written(flow, property, &mut written)?;
        }
        let label = written.label.take().or(label);
        let labels = vertex_labels(label);
        let out = self.or_fresh(dest);
        // Creation writes the properties before the first one with meta-properties; the rest are written one by one.
        let plain = written.properties.iter().take_while(|property| property.meta.is_empty()).count();
        let rest = written.properties.split_off(plain);
        let (id, properties) = (written.id.take(), std::mem::replace(&mut written.properties, rest));
        let properties_from = if written.maps.len() == 1 { written.maps.pop() } else { None };
        flow.wrap(|input| Op::CreateVertex { input, out, id, labels, properties, properties_from });
        flow.set_current(out, ObjectKind::Vertex);
        self.write_rest(flow, out, written);
        Ok(())
    }

    /// Returns a label given as a string, a variable or a traversal.
    fn label_value(&mut self, flow: &mut Flow, step: &Step<'_>, arg: &Arg<'_>) -> Result<Expr> {
        match &arg.kind {
            ArgKind::Text(_) | ArgKind::Variable(_) => self.expr(arg),
            ArgKind::Traversal(steps) => {
                let at = match flow.scope.cur {
                    Some(_) => Subject::current(flow, step)?,
                    None => {
                        Subject { expr: Expr::Literal(Value::Null), kind: ObjectKind::Unknown, near: None }
                    }
                };
                Ok(self.child_value(flow, steps, at)?.expr)
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    pub(super) fn add_edge(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let [label] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        let label = self.label_value(flow, step, label)?;
        let (mut from, mut to) = (None, None);
        let mut written = Writes::default();
        while let Some(next) =
            cursor.peek().filter(|s| matches!(s.name, StepName::From | StepName::To | StepName::Property))
        {
            cursor.next += 1;
            match next.name {
                StepName::Property => self.written(flow, next, &mut written)?,
                StepName::From => from = Some(self.end(flow, next)?),
                _ => to = Some(self.end(flow, next)?),
            }
        }
        let here = flow.scope.cur.map(Expr::Slot);
        let missing = |end: &str| Fault::syntax(step.at, format!("addE() without {end}()"));
        let from = from.or_else(|| here.clone()).ok_or_else(|| missing("from"))?;
        let to = to.or(here).ok_or_else(|| missing("to"))?;
        let label = written.label.take().unwrap_or(label);
        let out = self.or_fresh(dest);
        let all = written.properties.iter().chain(&written.maybe);
        if all.into_iter().any(|property| !property.meta.is_empty()) {
            return Err(Fault::syntax(step.at, "properties of an edge have no properties themselves".into()));
        }
        let (id, properties) = (written.id.take(), std::mem::take(&mut written.properties));
        let properties_from = if written.maps.len() == 1 { written.maps.pop() } else { None };
        flow.wrap(|input| Op::CreateEdge { input, out, id, label, from, to, properties, properties_from });
        flow.set_current(out, ObjectKind::Edge);
        self.write_rest(flow, out, written);
        Ok(())
    }

    /// Returns an end of a new edge.
    pub(super) fn end(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<Expr> {
        let [arg] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        match &arg.kind {
            ArgKind::Text(label) => {
                let (object, _, kind) = self.labelled(flow, label, arg.at)?;
                if object == Expr::Literal(Value::Unbound) {
                    return Err(Fault::syntax(arg.at, format!("no step has the label '{label}'")));
                }
                Ok(self.end_vertex(flow, object, kind == ObjectKind::Vertex))
            }
            ArgKind::Traversal(steps) => {
                if flow.scope.cur.is_some() {
                    let at = Subject::current(flow, step)?;
                    let end = self.child_value(flow, steps, at)?.expr;
                    let is_vertex = self.ends_at_vertex(flow, steps);
                    return Ok(self.end_vertex(flow, end, is_vertex));
                }
                let mut child = flow.child();
                self.steps(&mut child, steps, None)?;
                let Some(end) = child.scope.cur else { return Err(wrong_arguments(step)) };
                let out = self.fresh();
                let plan = Box::new(child.op);
                flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(end) });
                let is_vertex = self.ends_at_vertex(flow, steps);
                Ok(self.end_vertex(flow, Expr::Slot(out), is_vertex))
            }
            ArgKind::Vertex(id) => {
                let ids = self.expr(id)?;
                Ok(self.looked_up(flow, ids))
            }
            ArgKind::Variable(name) => {
                let ids = Expr::Parameter((*name).into());
                Ok(self.looked_up(flow, ids))
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Returns the vertex at an end. In 3.8, the value may be its id.
    fn end_vertex(&mut self, flow: &mut Flow, end: Expr, is_vertex: bool) -> Expr {
        if is_vertex || !self.version.ends_may_be_ids() { end } else { self.looked_up(flow, end) }
    }

    /// Looks up the vertex with an id, and returns its slot.
    pub(super) fn looked_up(&mut self, flow: &mut Flow, ids: Expr) -> Expr {
        let (vertex, out) = (self.fresh(), self.fresh());
        let plan = Box::new(Op::LookupVertices { input: Box::new(Op::Argument), ids, out: vertex });
        flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(vertex) });
        Expr::Slot(out)
    }

    /// Looks up the edge with an id, and returns its slot.
    pub(super) fn looked_up_edge(&mut self, flow: &mut Flow, ids: Expr) -> Expr {
        let (edge, out) = (self.fresh(), self.fresh());
        let plan = Box::new(Op::LookupEdges { input: Box::new(Op::Argument), ids, out: edge });
        flow.wrap(|input| Op::Bind { input, plan, out, kind: BindKind::First(edge) });
        Expr::Slot(out)
    }

    // ---- properties

    /// `property` steps on an existing element.
    pub(super) fn set_properties(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        index: usize,
    ) -> Result<()> {
        let first = &cursor.steps[index];
        let cur = flow.cur(first)?;
        cursor.next = index;
        let mut written = Writes::default();
        for step in cursor.take_all(StepName::Property) {
            self.written(flow, step, &mut written)?;
            if written.id.is_some() || written.label.is_some() {
                let what = if written.id.is_some() { "id" } else { "label" };
                return Err(Fault::syntax(step.at, format!("the {what} of an element cannot be changed")));
            }
        }
        self.write_rest(flow, cur, written);
        Ok(())
    }

    /// Writes the properties that the creation of the element did not write.
    pub(super) fn write_rest(&mut self, flow: &mut Flow, element: Slot, written: Writes) {
        if !written.properties.is_empty() {
            let properties = written.properties;
            flow.wrap(|input| Op::SetProperties { input, element: Expr::Slot(element), properties });
        }
        for map in written.maps {
            flow.wrap(|input| Op::SetPropertyMap {
                input,
                element: Expr::Slot(element),
                map,
                replace: false,
                cardinality: self.settings.default_cardinality,
            });
        }
        for assignment in written.maybe {
            // A null value would remove the key, but a child without a result must change nothing.
            let element = Expr::Case {
                branches: vec![(super::is_null(assignment.value.clone()), Expr::Literal(Value::Null))],
                otherwise: Box::new(Expr::Slot(element)),
            };
            flow.wrap(|input| Op::SetProperties { input, element, properties: vec![assignment] });
        }
    }

    /// Adds the writes of one `property` step.
    fn written(&mut self, flow: &mut Flow, step: &Step<'_>, written: &mut Writes) -> Result<()> {
        let given =
            step.args.first().and_then(Arg::constant).and_then(|constant| constant.properties().cardinality);
        let args = &step.args[usize::from(given.is_some())..];
        let default = given.unwrap_or(self.settings.default_cardinality);
        match args {
            [key, value, meta @ ..] if args.len().is_multiple_of(2) => {
                let meta = self.meta_properties(flow, step, meta)?;
                self.assignment(flow, step, key, value, default, meta, written)
            }
            [Arg { kind: ArgKind::Map(entries), .. }] => {
                for (key, value) in entries {
                    self.assignment(flow, step, key, value, default, vec![], written)?;
                }
                Ok(())
            }
            [Arg { kind: ArgKind::Value(Value::Null), .. }] => Ok(()),
            [Arg { kind: ArgKind::Variable(name), at }] => {
                if given.is_some() {
                    return Err(Fault::unsupported(*at, "property(cardinality, variable)"));
                }
                written.maps.push(Expr::Parameter((*name).into()));
                Ok(())
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Returns alternating keys and values as meta-properties.
    fn meta_properties(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        args: &[Arg<'_>],
    ) -> Result<Vec<(Expr, Expr)>> {
        let mut meta = vec![];
        for pair in args.chunks_exact(2) {
            let key = match &pair[0].kind {
                ArgKind::Text(_) | ArgKind::Variable(_) => self.expr(&pair[0])?,
                ArgKind::Constant(name) => {
                    return Err(Fault::unsupported(pair[0].at, format!("{name} of a property")));
                }
                _ => return Err(wrong_arguments(step)),
            };
            // A child without a result writes nothing, like a null.
            meta.push((key, self.written_value(flow, step, &pair[1])?.0));
        }
        Ok(meta)
    }

    /// Returns a value to be written, and whether there always is one.
    fn written_value(&mut self, flow: &mut Flow, step: &Step<'_>, value: &Arg<'_>) -> Result<(Expr, bool)> {
        let ArgKind::Traversal(steps) = &value.kind else { return Ok((self.expr(value)?, true)) };
        let at = match flow.scope.cur {
            Some(_) => Subject::current(flow, step)?,
            None => Subject { expr: Expr::Literal(Value::Null), kind: ObjectKind::Unknown, near: None },
        };
        let result = self.child_value(flow, steps, at)?;
        if result.productive {
            return Ok((result.expr, true));
        }
        Ok((Expr::Slot(self.slot_of(flow, result.expr)), false))
    }

    pub(super) fn assignment(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        key: &Arg<'_>,
        value: &Arg<'_>,
        default: Cardinality,
        meta: Vec<(Expr, Expr)>,
        written: &mut Writes,
    ) -> Result<()> {
        let (cardinality, value) = match &value.kind {
            ArgKind::Cardinality(cardinality, inner) => (*cardinality, &**inner),
            _ => (default, value),
        };
        let (expr, always) = self.written_value(flow, step, value)?;
        match &key.kind {
            ArgKind::Constant(name @ (Constant::Id | Constant::Label)) if !meta.is_empty() => {
                return Err(Fault::syntax(key.at, format!("the {name} of an element has no properties")));
            }
            ArgKind::Constant(Constant::Id) => written.id = Some(expr),
            ArgKind::Constant(Constant::Label) => written.label = Some(expr),
            ArgKind::Text(_) | ArgKind::Variable(_) | ArgKind::Traversal(_) => {
                // A key that a child computes is a string at run time, or an error.
                let (key, _) = self.written_value(flow, step, key)?;
                let assignment = PropertyAssignment { key, value: expr, cardinality, meta };
                if always { written.properties.push(assignment) } else { written.maybe.push(assignment) }
            }
            ArgKind::Other(name) => return Err(Fault::unsupported(key.at, name.to_string())),
            _ => return Err(wrong_arguments(step)),
        }
        Ok(())
    }

    /// Whether a traversal can only come to vertices.
    fn ends_at_vertex(&self, flow: &Flow, steps: &[Step<'_>]) -> bool {
        if let [Step { name: StepName::Select, args, .. }] = steps
            && let [Arg { kind: ArgKind::Text(label), .. }] = args.as_slice()
        {
            // An entry of a map or a side effect of this name comes first.
            let is_label = !flow.scope.kind.may_be_map() && matches!(self.side(label, 0), Ok(None));
            return is_label && flow.label(label).is_some_and(|label| label.kind == ObjectKind::Vertex);
        }
        steps.iter().rfind(|step| moves(step)).is_none_or(|last| {
            last.name.properties().to_vertex
                || matches!(last.name, StepName::V | StepName::AddV | StepName::MergeV)
        })
    }

    pub(super) fn drop_elements(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        flow.wrap(|input| Op::Delete { input, targets: vec![Expr::Slot(cur)], detach: true });
        flow.drop_rows();
        Ok(())
    }
}

/// Returns the labels of a new vertex. `a::b` are two labels, as in Neptune.
pub(super) fn vertex_labels(label: Option<Expr>) -> Vec<Expr> {
    match label {
        None => vec![Expr::literal("vertex")],
        Some(Expr::Literal(Value::String(text))) => text.split("::").map(Expr::literal).collect(),
        Some(expr) => vec![call(Function::Split, vec![expr, Expr::literal("::")])],
    }
}
