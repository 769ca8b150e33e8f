//! `pageRank`, `peerPressure` and `connectedComponent`: algorithms on the whole graph, whose results later steps read as properties
//! of vertices.
//!
//! In TinkerPop a computer runs them between traversals. One that comes directly behind `V()` begins at every vertex alike; behind
//! other steps, `pageRank` and `peerPressure` begin with the number of traversers at each vertex.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::fault::Fault;
use tidegraph_plan::{Algorithm, Op, Slot};
use tidegraph_types::Str;

/// What the `with()` steps of an algorithm say.
struct Options<'a, 't> {
    edges: Option<&'a [Step<'t>]>,
    key: Option<Str>,
    rounds: Option<u32>,
}

/// Returns the name of an option without its prefix: `~tinkerpop.pageRank.times`, `PageRank.times`.
fn name_of<'a>(step: &Step<'_>, arg: &'a Arg<'_>) -> Option<&'a str> {
    let name = step.name.text();
    match &arg.kind {
        ArgKind::Text(text) => text.strip_prefix("~tinkerpop.")?.strip_prefix(name)?.strip_prefix('.'),
        ArgKind::Other(text) => {
            let (owner, option) = text.split_once('.')?;
            owner.eq_ignore_ascii_case(name).then_some(option)
        }
        _ => None,
    }
}

impl<'a, 't> Options<'a, 't> {
    fn read(step: &Step<'t>, withs: &'a [Step<'t>]) -> Result<Self> {
        let mut options = Self { edges: None, key: None, rounds: None };
        for with in withs {
            let name = with.args.first().and_then(|arg| name_of(step, arg));
            match (name, with.args.get(1..).unwrap_or_default()) {
                (Some("edges"), [Arg { kind: ArgKind::Traversal(steps), .. }]) => options.edges = Some(steps),
                (Some("propertyName"), [Arg { kind: ArgKind::Text(key), .. }]) => {
                    options.key = Some(key.clone());
                }
                (Some("times"), [Arg { kind: ArgKind::Value(times), .. }])
                    if step.name != StepName::ConnectedComponent =>
                {
                    let times = times.as_i64().and_then(|times| u32::try_from(times).ok());
                    options.rounds = Some(times.ok_or_else(|| wrong_arguments(with))?);
                }
                _ => return Err(wrong_arguments(with)),
            }
        }
        Ok(options)
    }
}

/// Whether a step runs an algorithm.
fn runs_algorithm(step: &Step<'_>) -> bool {
    matches!(step.name, StepName::PageRank | StepName::PeerPressure | StepName::ConnectedComponent)
}

/// Whether an algorithm behind these steps begins at every vertex alike.
fn begins_alike(before: &[Step<'_>]) -> bool {
    matches!(before, [Step { name: StepName::V, .. }, rest @ ..]
        if rest.iter().all(|step| matches!(step.name, StepName::As | StepName::With) || runs_algorithm(step)))
}

impl Compiler {
    /// `pageRank()`, `pageRank(damping)`, `peerPressure()`, `connectedComponent()`, with their options
    pub(super) fn analyze(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        index: usize,
    ) -> Result<()> {
        let cur = flow.cur(step)?;
        if !flow.scope.root {
            return Err(Fault::unsupported(step.at, format!("{}() inside another step", step.name)));
        }
        if flow.scope.kind != ObjectKind::Vertex {
            return Err(Fault::unsupported(step.at, format!("{}() of what may be no vertex", step.name)));
        }
        let options = Options::read(step, cursor.take_all(StepName::With))?;
        let (algorithm, key, edges) = match (step.name, step.args.as_slice()) {
            (StepName::PageRank, args) => {
                let damping = match args {
                    [] => Some(0.85),
                    [Arg { kind: ArgKind::Value(value), .. }] => value.as_f64(),
                    _ => None,
                };
                let damping = damping.filter(|part| (0.0..=1.0).contains(part));
                let damping = damping
                    .ok_or_else(|| Fault::syntax(step.at, "pageRank() takes a number from 0 to 1".into()))?;
                let rounds = options.rounds.unwrap_or(20);
                let key = "gremlin.pageRankVertexProgram.pageRank";
                (Algorithm::PageRank { damping, rounds }, key, StepName::OutE)
            }
            (StepName::PeerPressure, []) => {
                let rounds = options.rounds.unwrap_or(30);
                let key = "gremlin.peerPressureVertexProgram.cluster";
                (Algorithm::PeerPressure { rounds }, key, StepName::OutE)
            }
            (StepName::ConnectedComponent, []) => {
                let key = "gremlin.connectedComponentVertexProgram.component";
                (Algorithm::ConnectedComponent, key, StepName::BothE)
            }
            _ => return Err(wrong_arguments(step)),
        };
        let is_counted = step.name != StepName::ConnectedComponent && !begins_alike(&cursor.steps[..index]);
        let plain = [Step { at: step.at, name: edges, args: vec![] }];
        let (steps, at, edge) = self.all_edges(step, options.edges.unwrap_or(&plain))?;
        let key = options.key.unwrap_or_else(|| key.into());
        let (steps, weights) = (Box::new(steps), is_counted.then_some(cur));
        flow.wrap(|input| Op::Analyze { input, algorithm, key, weights, steps, at, edge });
        self.analyzed.get_or_insert((step.at, step.name));
        Ok(())
    }

    /// Returns the plan of the edges that a traversal gives for each vertex, with the slots of vertex and edge.
    fn all_edges(&mut self, step: &Step<'_>, edges: &[Step<'_>]) -> Result<(Op, Slot, Slot)> {
        let path = self.path.take();
        let made = self.edges_of_vertices(step, edges);
        self.path = path;
        made
    }

    fn edges_of_vertices(&mut self, step: &Step<'_>, edges: &[Step<'_>]) -> Result<(Op, Slot, Slot)> {
        let mut flow = Flow::new();
        (flow.scope.root, flow.scope.alias) = (false, false);
        self.steps(&mut flow, &[Step { at: step.at, name: StepName::V, args: vec![] }], None)?;
        let at = flow.cur(step)?;
        if let [Step { name: StepName::OutE | StepName::InE | StepName::BothE, .. }] = edges {
            self.steps(&mut flow, edges, None)?;
        } else {
            // The traversal runs for each vertex by itself.
            let traversal = Arg { at: step.at, kind: ArgKind::Traversal(edges.to_vec()) };
            let local = Step { at: step.at, name: StepName::Local, args: vec![traversal] };
            self.steps(&mut flow, &[local], None)?;
        }
        if !matches!(flow.scope.kind, ObjectKind::Edge | ObjectKind::Unknown) {
            return Err(Fault::syntax(step.at, format!("{}() needs a traversal to edges", step.name)));
        }
        let edge = flow.cur(step)?;
        Ok((flow.op, at, edge))
    }

    /// Refuses what an algorithm would do to other parts of a request.
    pub(super) fn check_analyzed(&self, root: &Op, is_last: bool) -> Result<()> {
        let Some((at, name)) = self.analyzed else { return Ok(()) };
        if root.writes() {
            return Err(Fault::unsupported(at, format!("{name}() beside steps that write")));
        }
        if !is_last {
            return Err(Fault::unsupported(at, format!("{name}() before the last traversal of a request")));
        }
        Ok(())
    }
}
