//! Operators for the tests of passes.

use crate::{Expr, Op, Slot};
use tidegraph_types::Direction;

/// Follows edges with the label `X` out of a vertex; `into`: to a vertex that is bound.
pub(super) fn expand(input: Op, from: u32, edge: u32, to: u32, into: bool) -> Op {
    Op::Expand {
        input: Box::new(input),
        from: Slot(from),
        direction: Direction::Out,
        labels: vec!["X".into()],
        edge: Some(Slot(edge)),
        to: Some(Slot(to)),
        into,
        loops_once: true,
        keep: None,
    }
}

/// Keeps the rows in which an edge is none of the others.
pub(super) fn unused(input: Op, edge: u32, others: &[u32]) -> Op {
    let predicate = Expr::Unused(Slot(edge), others.iter().copied().map(Slot).collect());
    Op::Filter { input: Box::new(input), predicate }
}
