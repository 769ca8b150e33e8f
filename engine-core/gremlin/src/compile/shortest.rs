//! `shortestPath`: all shortest paths from each vertex to the targets, by the search of the engine that openCypher uses too.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::filter::Subject;
use crate::fault::Fault;
use tidegraph_plan::{ApplyKind, Expr, Function, Length, Op, Shortest, Slot};
use tidegraph_types::{Direction, Str, Value};

/// What the `with()` steps of a `shortestPath()` say.
struct Options<'a, 't> {
    target: Option<&'a [Step<'t>]>,
    direction: Direction,
    labels: Vec<Str>,
    max: Option<u32>,
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
        let mut options =
            Self { target: None, direction: Direction::Both, labels: vec![], max: None, edges: false };
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
                ("edges", Some(ArgKind::Traversal(steps))) => options.read_edges(step, steps)?,
                ("maxDistance", Some(ArgKind::Value(value))) => {
                    let most =
                        value.as_f64().filter(|most| *most >= 0.0).ok_or_else(|| wrong_arguments(step))?;
                    options.max = Some(most.min(f64::from(u32::MAX)) as u32);
                }
                ("distance", Some(_)) => {
                    return Err(Fault::unsupported(step.at, "shortestPath() with distances of edges"));
                }
                _ => return Err(wrong_arguments(step)),
            }
        }
        Ok(options)
    }

    /// Reads the edges that paths use from a traversal of one step.
    fn read_edges(&mut self, with: &Step<'_>, steps: &[Step<'_>]) -> Result<()> {
        let other =
            || Fault::unsupported(with.at, "shortestPath() along other edges than outE(), inE() or bothE()");
        let [step] = steps else { return Err(other()) };
        self.direction = match step.name {
            StepName::OutE => Direction::Out,
            StepName::InE => Direction::In,
            StepName::BothE => Direction::Both,
            _ => return Err(other()),
        };
        let labels = step.args.iter().map(|arg| arg.text().cloned().ok_or_else(other));
        self.labels = labels.collect::<Result<_>>()?;
        Ok(())
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
        let vertices = Step { at: step.at, name: StepName::V, args: vec![] };
        let mut steps = vec![vertices];
        if let Some(target) = options.target {
            if target.iter().all(|step| step.name.properties().has) {
                steps.extend_from_slice(target);
            } else {
                let arg = Arg { at: step.at, kind: ArgKind::Traversal(target.to_vec()) };
                steps.push(Step { at: step.at, name: StepName::Filter, args: vec![arg] });
            }
        }
        let path = self.path.take();
        let compiled = self.steps(&mut child, &steps, None);
        self.path = path;
        compiled?;
        let to = child.cur(step)?;
        let edges = self.fresh();
        child.wrap(|input| Op::ShortestPath {
            input,
            from,
            to,
            direction: options.direction,
            labels: options.labels,
            length: Length { min: 0, max: options.max },
            which: Shortest::All,
            edges,
            edge_filter: None,
        });
        let whole = call(Function::MakePath, vec![Expr::Slot(from), Expr::Slot(edges), Expr::Slot(to)]);
        if options.edges {
            child.bind(out, whole);
        } else {
            let (accumulator, variable) = (self.fresh(), self.fresh());
            child.bind(
                out,
                Expr::Reduce {
                    accumulator,
                    start: Box::new(Expr::Literal(Value::Unbound)),
                    variable,
                    list: Box::new(call(Function::Nodes, vec![whole])),
                    step: Box::new(call(
                        Function::PathAppend,
                        vec![Expr::Slot(accumulator), Expr::Slot(variable)],
                    )),
                },
            );
            // Edges side by side lead along the same vertices.
            child.wrap(|input| Op::Distinct { input, by: vec![Expr::Slot(out)] });
        }
        let plan = Box::new(child.op);
        flow.wrap(|input| Op::Apply { input, plan, kind: ApplyKind::Cross });
        flow.scope.single = false;
        flow.set_current(out, ObjectKind::Unknown);
        Ok(())
    }
}
