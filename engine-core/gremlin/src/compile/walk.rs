//! Steps along edges: from vertices to edges and vertices, from edges to their ends.
//!
//! `outE().inV()` and the like read the adjacency once: the expand binds the other end together with the edge, and the
//! step to it costs nothing.

use super::{Compiler, Cursor, Flow, Kind, Near, Result, call, step, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step};
use crate::error::Failure;
use tidegraph_plan::{Expr, Function, Op};
use tidegraph_types::{Direction, Str, Value};

/// Steps between an edge step and the step to its other end, over which the expand may reach.
const TRANSPARENT: &[&str] = &[
    "and", "as", "barrier", "coin", "dedup", "filter", "has", "hasId", "hasLabel", "hasNot", "identity",
    "is", "limit", "not", "or", "order", "range", "sample", "skip", "tail", "where", "by",
];

impl Compiler {
    /// `out`, `in`, `both`, `outE`, `inE`, `bothE`, `to(direction)`, `toE(direction)`
    pub(super) fn expand(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        index: usize,
    ) -> Result<()> {
        let (direction, args) = match step.name {
            "out" | "outE" => (Direction::Out, &step.args[..]),
            "in" | "inE" => (Direction::In, &step.args[..]),
            "both" | "bothE" => (Direction::Both, &step.args[..]),
            _ => {
                let Some((first, rest)) = step.args.split_first() else { return Err(wrong_arguments(step)) };
                (direction(first).ok_or_else(|| wrong_arguments(step))?, rest)
            }
        };
        let from = flow.cur(step)?;
        let (labels, variable) = self.edge_labels(args)?;
        let to_edge = step.name.ends_with('E');
        let across = match direction {
            Direction::Out => "inV",
            Direction::In => "outV",
            Direction::Both => "otherV",
        };
        flow.scope.single = false;

        // The step to the other end, if nothing but tests stands before it.
        let ahead = if to_edge {
            cursor.steps[cursor.next..]
                .iter()
                .position(|s| step::moves(s) || !TRANSPARENT.contains(&s.name))
                .map(|i| cursor.next + i)
                .filter(|i| {
                    let s = &cursor.steps[*i];
                    (s.name == across || s.name == "otherV") && s.args.is_empty()
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
                // The vertex must stay: the edge's other end is told from it.
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
                flow.goto(edge, Kind::Edge);
                flow.scope.near = Some(Near { from, far, across });
            }
            (_, Some(to)) => flow.goto(to, Kind::Vertex),
            _ => {}
        }
        Ok(())
    }

    /// Edge labels; if one is a variable, none and the list to compare with.
    fn edge_labels(&mut self, args: &[Arg<'_>]) -> Result<(Vec<Str>, Option<Expr>)> {
        if args.iter().any(|a| matches!(a.kind, ArgKind::Variable(_))) {
            let list = args.iter().map(|a| self.expr(a)).collect::<Result<_>>()?;
            return Ok((vec![], Some(Expr::List(list))));
        }
        let labels = self.texts(args)?;
        if labels.is_empty() && !args.is_empty() {
            // Only nulls: no label at all, not any label.
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
        let name = match (step.name, step.args.as_slice()) {
            ("toV", [arg]) => match direction(arg) {
                Some(Direction::Out) => "outV",
                Some(Direction::In) => "inV",
                Some(Direction::Both) => "bothV",
                None => return Err(wrong_arguments(step)),
            },
            ("toV", _) => return Err(wrong_arguments(step)),
            (name, []) => name,
            _ => return Err(wrong_arguments(step)),
        };
        let cur = flow.cur(step)?;
        let near = flow.scope.near;
        if let Some(Near { far: Some(far), across, .. }) = near
            && (name == across || name == "otherV")
        {
            flow.goto(far, Kind::Vertex);
            return Ok(());
        }
        let edge = || vec![Expr::Slot(cur)];
        let out = self.or_fresh(dest);
        match name {
            "inV" => flow.bind(out, call(Function::EndNode, edge())),
            "outV" => flow.bind(out, call(Function::StartNode, edge())),
            "otherV" => {
                let Some(near) = near else {
                    return Err(Failure::unsupported(step.at, "otherV() without an edge step before it"));
                };
                flow.bind(out, call(Function::OtherNode, vec![Expr::Slot(cur), Expr::Slot(near.from)]));
            }
            _ => {
                let list =
                    Expr::List(vec![call(Function::StartNode, edge()), call(Function::EndNode, edge())]);
                flow.scope.single = false;
                flow.wrap(|input| Op::Unwind { input, list, out });
            }
        }
        flow.goto(out, Kind::Vertex);
        Ok(())
    }
}

fn direction(arg: &Arg<'_>) -> Option<Direction> {
    match arg.constant()? {
        "OUT" | "from" => Some(Direction::Out),
        "IN" | "to" => Some(Direction::In),
        "BOTH" => Some(Direction::Both),
        _ => None,
    }
}
