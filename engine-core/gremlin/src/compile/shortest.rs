//! `shortestPath`: all shortest paths from each vertex to the targets, by the search of the engine that openCypher uses too. With
//! distances of edges, or along edges of a traversal, another search of the engine finds the nearest paths.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::by::By;
use crate::compile::filter::Subject;
use crate::fault::Fault;
use std::borrow::Cow;
use tidegraph_plan::{ApplyKind, Expr, Function, Length, Op, Shortest, Slot};
use tidegraph_types::{Direction, Str, Value};

/// What the `with()` steps of a `shortestPath()` say.
struct Options<'a, 't> {
    target: Option<&'a [Step<'t>]>,
    direction: Direction,
    labels: Vec<Str>,
    /// The edges, if they are not those of a direction with some labels.
    along: Option<&'a [Step<'t>]>,
    distance: Option<&'a Arg<'t>>,
    most: Option<f64>,
    edges: bool,
}

/// Returns the name of an option without its prefix: `~tinkerpop.shortestPath.target`, `ShortestPath.target`.
fn name_of<'a>(arg: &'a Arg<'_>) -> Option<&'a str> {
    match &arg.kind {
        ArgKind::Text(text) => text.strip_prefix("~tinkerpop.shortestPath."),
        ArgKind::Other(text) => text.strip_prefix("ShortestPath."),
        _ => None,
    }
}

impl<'a, 't> Options<'a, 't> {
    fn read(steps: &'a [Step<'t>]) -> Result<Self> {
        let mut options = Self {
            target: None,
            direction: Direction::Both,
            labels: vec![],
            along: None,
            distance: None,
            most: None,
            edges: false,
        };
        for step in steps {
            let name = step.args.first().and_then(name_of).ok_or_else(|| wrong_arguments(step))?;
            match (name, step.args.get(1).map(|arg| &arg.kind)) {
                ("target", Some(ArgKind::Traversal(steps))) => options.target = Some(steps),
                ("includeEdges", None) => options.edges = true,
                ("includeEdges", Some(ArgKind::Value(Value::Bool(edges)))) => options.edges = *edges,
                ("edges", Some(ArgKind::Constant(constant))) => {
                    options.direction =
                        constant.properties().direction.ok_or_else(|| wrong_arguments(step))?;
                }
                ("edges", Some(ArgKind::Traversal(steps))) => {
                    if options.read_edges(steps).is_none() {
                        options.along = Some(steps);
                    }
                }
                ("maxDistance", Some(ArgKind::Value(value))) => {
                    let most = value.as_f64().filter(|most| *most >= 0.0);
                    options.most = Some(most.ok_or_else(|| wrong_arguments(step))?);
                }
                ("distance", Some(ArgKind::Text(_) | ArgKind::Traversal(_))) => {
                    options.distance = step.args.get(1);
                }
                _ => return Err(wrong_arguments(step)),
            }
        }
        Ok(options)
    }

    /// Reads the edges that paths use from a traversal of one step, if it is one to edges with some labels.
    fn read_edges(&mut self, steps: &[Step<'_>]) -> Option<()> {
        let [step] = steps else { return None };
        let direction = match step.name {
            StepName::OutE => Direction::Out,
            StepName::InE => Direction::In,
            StepName::BothE => Direction::Both,
            _ => return None,
        };
        self.labels = step.args.iter().map(|arg| arg.text().cloned()).collect::<Option<_>>()?;
        self.direction = direction;
        Some(())
    }

    /// Returns the steps to the edges of a vertex.
    fn steps(&self, at: usize) -> Cow<'a, [Step<'t>]> {
        if let Some(steps) = self.along {
            return Cow::Borrowed(steps);
        }
        let name = match self.direction {
            Direction::Out => StepName::OutE,
            Direction::In => StepName::InE,
            Direction::Both => StepName::BothE,
        };
        let labels = self.labels.iter().map(|label| Arg { at, kind: ArgKind::Text(label.clone()) });
        Cow::Owned(vec![Step { at, name, args: labels.collect() }])
    }
}

impl Compiler {
    /// `shortestPath()` with its options.
    pub(super) fn shortest_path(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let from = Subject::current(flow, step)?;
        if from.kind != ObjectKind::Vertex {
            return Err(Fault::unsupported(step.at, "shortestPath() of what may be no vertex"));
        }
        let Expr::Slot(from) = from.expr else { return Err(wrong_arguments(step)) };
        let options = Options::read(cursor.take_all(StepName::With))?;
        let out = self.or_fresh(dest);
        let mut child = flow.child();
        child.scope.alias = false;
        let to = self.targets(&mut child, step, options.target)?;
        let edges = self.fresh();
        if options.along.is_some() || options.distance.is_some() {
            self.nearest_path(&mut child, step, &options, (from, to, edges))?;
        } else {
            let max = options.most.map(|most| most.min(f64::from(u32::MAX)) as u32);
            child.wrap(|input| Op::ShortestPath {
                input,
                from,
                to,
                direction: options.direction,
                labels: options.labels,
                length: Length { min: 0, max },
                which: Shortest::All,
                edges,
                edge_filter: None,
            });
        }
        let whole = call(Function::MakePath, vec![Expr::Slot(from), Expr::Slot(edges), Expr::Slot(to)]);
        if options.edges {
            child.bind(out, whole);
        } else {
            let vertices = self.vertices_of(whole);
            child.bind(out, vertices);
            // Edges side by side lead along the same vertices.
            child.wrap(|input| Op::Distinct { input, by: vec![Expr::Slot(out)] });
        }
        let plan = Box::new(child.op);
        flow.wrap(|input| Op::Apply { input, plan, kind: ApplyKind::Cross });
        flow.scope.single = false;
        flow.set_current(out, ObjectKind::Unknown);
        Ok(())
    }

    /// Returns the slot of the vertices to which paths are searched.
    fn targets(&mut self, flow: &mut Flow, step: &Step<'_>, target: Option<&[Step<'_>]>) -> Result<Slot> {
        let mut steps = vec![Step { at: step.at, name: StepName::V, args: vec![] }];
        if let Some(target) = target {
            if target.iter().all(|step| step.name.properties().has) {
                steps.extend_from_slice(target);
            } else {
                let arg = Arg { at: step.at, kind: ArgKind::Traversal(target.to_vec()) };
                steps.push(Step { at: step.at, name: StepName::Filter, args: vec![arg] });
            }
        }
        let path = self.path.take();
        let compiled = self.steps(flow, &steps, None);
        self.path = path;
        compiled?;
        flow.cur(step)
    }

    /// Returns the path of the vertices of a path.
    fn vertices_of(&mut self, path: Expr) -> Expr {
        let (accumulator, variable) = (self.fresh(), self.fresh());
        let longer = call(Function::PathAppend, vec![Expr::Slot(accumulator), Expr::Slot(variable)]);
        Expr::Reduce {
            accumulator,
            start: Box::new(Expr::Literal(Value::Unbound)),
            variable,
            list: Box::new(call(Function::Nodes, vec![path])),
            step: Box::new(longer),
        }
    }

    /// Paths by the distances of edges, or along the edges of a traversal.
    fn nearest_path(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        options: &Options<'_, '_>,
        (from, to, edges): (Slot, Slot, Slot),
    ) -> Result<()> {
        let path = self.path.take();
        let steps = self.steps_to_edges(step, options);
        self.path = path;
        let (steps, at, edge, distance) = steps?;
        let (steps, most) = (Box::new(steps), options.most);
        flow.wrap(|input| Op::NearestPath { input, from, to, steps, at, edge, distance, most, edges });
        Ok(())
    }

    /// Returns the plan of the edges at a vertex: with the slots of the vertex, the edge and its distance.
    fn steps_to_edges(
        &mut self,
        step: &Step<'_>,
        options: &Options<'_, '_>,
    ) -> Result<(Op, Slot, Slot, Slot)> {
        let at = self.fresh();
        let mut flow = Flow::new();
        (flow.scope.root, flow.scope.alias) = (false, false);
        (flow.scope.cur, flow.scope.kind) = (Some(at), ObjectKind::Vertex);
        self.steps(&mut flow, &options.steps(step.at), None)?;
        if !matches!(flow.scope.kind, ObjectKind::Edge | ObjectKind::Unknown) {
            return Err(Fault::syntax(step.at, "shortestPath() needs a traversal to edges".into()));
        }
        let edge = Subject::current(&flow, step)?;
        let slot = flow.cur(step)?;
        let by = match options.distance.map(|distance| &distance.kind) {
            Some(ArgKind::Text(key)) => By::Key(key.clone()),
            Some(ArgKind::Traversal(steps)) => By::Traversal(steps),
            _ => {
                let distance = self.slot_of(&mut flow, Expr::literal(1.0));
                return Ok((flow.op, at, slot, distance));
            }
        };
        let distance = self.by_value(&mut flow, &by, edge.expr, edge.kind)?;
        let distance = self.slot_of(&mut flow, distance.expr);
        Ok((flow.op, at, slot, distance))
    }
}
