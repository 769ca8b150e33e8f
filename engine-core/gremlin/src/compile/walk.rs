//! Steps along edges: from vertices to edges and vertices, from edges to their ends.
//!
//! `outE().inV()` reads the adjacency once: the expand binds the edge and its other end, and the step to that end is
//! free.

use super::{Compiler, Cursor, EdgeOrigin, Flow, ObjectKind, Result, call, step, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::fault::Fault;
use crate::names::End;
use tidegraph_plan::{Expr, Function, Op};
use tidegraph_types::{Direction, Str, Value};

impl Compiler {
    /// `out`, `in`, `both`, `outE`, `inE`, `bothE`, `to(direction)`, `toE(direction)`; without `direction`, it is the
    /// first argument. `to_edge`: the current object becomes the edge instead of the vertex at its other end.
    pub(super) fn expand(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        index: usize,
        direction: Option<Direction>,
        to_edge: bool,
    ) -> Result<()> {
        let (direction, args) = match (direction, step.args.split_first()) {
            (Some(direction), _) => (direction, &step.args[..]),
            (None, Some((first, rest))) => (direction_of(first).ok_or_else(|| wrong_arguments(step))?, rest),
            (None, None) => return Err(wrong_arguments(step)),
        };
        let from = flow.cur(step)?;
        let (labels, variable) = self.edge_labels(args)?;
        let across = match direction {
            Direction::Out => End::At(Direction::In),
            Direction::In => End::At(Direction::Out),
            Direction::Both => End::Other,
        };
        flow.scope.single = false;

        // The step to the other end, if only tests stand before it.
        let ahead = if to_edge {
            cursor.steps[cursor.next..]
                .iter()
                .position(|s| step::moves(s) || !s.name.properties().between_ends)
                .map(|i| cursor.next + i)
                .filter(|i| {
                    let s = &cursor.steps[*i];
                    s.name.properties().end.is_some_and(|end| end == across || end == End::Other)
                        && s.args.is_empty()
                })
        } else {
            None
        };
        let jump = ahead == Some(cursor.next) && self.path.is_none();
        let (edge, to) = if !to_edge || jump {
            let result = if jump { cursor.next } else { index };
            let to = self.or_fresh(cursor.dest_of(result));
            (variable.is_some().then(|| self.fresh()), Some(to))
        } else {
            let edge = match cursor.dest_of(index) {
                // Keep the vertex: `otherV()` compares with it.
                Some(slot) if slot != from => slot,
                _ => self.fresh(),
            };
            let far = ahead.map(|i| match cursor.dest_of(i) {
                Some(slot) if slot != from => slot,
                _ => self.fresh(),
            });
            (Some(edge), far)
        };
        flow.wrap(|input| Op::Expand {
            input,
            from,
            direction,
            labels,
            edge,
            to,
            into: false,
            loops_once: false,
            keep: None,
        });
        if let (Some(list), Some(edge)) = (variable, edge) {
            let label = call(Function::Label, vec![Expr::Slot(edge)]);
            flow.filter(Expr::In(Box::new(label), Box::new(list)));
        }
        if jump {
            cursor.next += 1;
        }
        match (edge, to) {
            (Some(edge), far) if to_edge && !jump => {
                flow.set_current(edge, ObjectKind::Edge);
                flow.scope.near = Some(EdgeOrigin { from, far, across });
            }
            (_, Some(to)) => flow.set_current(to, ObjectKind::Vertex),
            _ => {}
        }
        Ok(())
    }

    /// Returns edge labels. If one is a variable, returns no labels, but a list that the label of each edge must be in.
    fn edge_labels(&mut self, args: &[Arg<'_>]) -> Result<(Vec<Str>, Option<Expr>)> {
        if args.iter().any(|a| matches!(a.kind, ArgKind::Variable(_))) {
            let list = args.iter().map(|a| self.expr(a)).collect::<Result<_>>()?;
            return Ok((vec![], Some(Expr::List(list))));
        }
        let labels = self.texts(args)?;
        if labels.is_empty() && !args.is_empty() {
            // If all labels are null, no edge passes; without labels, every edge does.
            return Ok((vec![], Some(Expr::Literal(Value::list(vec![])))));
        }
        Ok((labels, None))
    }

    /// `inV`, `outV`, `bothV`, `otherV`, `toV(direction)`
    pub(super) fn ends(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        dest: Option<tidegraph_plan::Slot>,
    ) -> Result<()> {
        let end = match (step.name.properties().end, step.args.as_slice()) {
            (Some(end), []) => end,
            (None, [arg]) => End::At(direction_of(arg).ok_or_else(|| wrong_arguments(step))?),
            _ => return Err(wrong_arguments(step)),
        };
        let cur = flow.cur(step)?;
        let near = flow.scope.near;
        if let Some(EdgeOrigin { far: Some(far), across, .. }) = near
            && (end == across || end == End::Other)
        {
            flow.set_current(far, ObjectKind::Vertex);
            return Ok(());
        }
        let edge = || vec![Expr::Slot(cur)];
        let out = self.or_fresh(dest);
        match end {
            End::At(Direction::In) => flow.bind(out, call(Function::EndNode, edge())),
            End::At(Direction::Out) => flow.bind(out, call(Function::StartNode, edge())),
            End::Other => {
                let Some(near) = near else {
                    return Err(Fault::unsupported(step.at, "otherV() without an edge step before it"));
                };
                flow.bind(out, call(Function::OtherNode, vec![Expr::Slot(cur), Expr::Slot(near.from)]));
            }
            End::At(Direction::Both) => {
                let list =
                    Expr::List(vec![call(Function::StartNode, edge()), call(Function::EndNode, edge())]);
                flow.scope.single = false;
                flow.wrap(|input| Op::Unwind { input, list, out });
            }
        }
        flow.set_current(out, ObjectKind::Vertex);
        Ok(())
    }
}

fn direction_of(arg: &Arg<'_>) -> Option<Direction> {
    arg.constant()?.properties().direction
}
