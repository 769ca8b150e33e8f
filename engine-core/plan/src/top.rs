//! The first few edges by a property: what a sorted slice above an expand lets storage leave out.

use crate::{Expr, Function, Op, Slot, SortKey, TotalOrder};
use tidegraph_types::{Direction, Str};

/// Edges of an expand of which only the first few are used.
#[derive(Clone, Copy, Debug)]
pub struct TopEdges<'p> {
    /// Where the expand binds the edge.
    pub edge: Slot,
    /// The property that they are sorted by, in openCypher's order.
    pub key: &'p Str,
    /// Largest first.
    pub descending: bool,
    /// So many of the first are dropped.
    pub skip: Option<&'p Expr>,
    /// So many are used after that.
    pub limit: &'p Expr,
}

impl Op {
    /// For a slice: what it wants of the expand below its sort, if every row of that is a row of the sort, sorted by one
    /// property of the edge.
    #[must_use]
    pub fn top_edges(&self) -> Option<TopEdges<'_>> {
        let Op::Slice { input, skip, limit: Some(limit) } = self else { return None };
        let Op::Sort { input, keys } = &**input else { return None };
        let [key] = &keys[..] else { return None };
        let (mut op, mut expr) = (&**input, &key.expr);
        if key.order != TotalOrder::OpenCypher {
            return None;
        }
        loop {
            match op {
                Op::Keep { input, .. } => op = input,
                Op::Let { input, bindings } => {
                    for (slot, bound) in bindings.iter().rev() {
                        if !cannot_fail(bound) {
                            return None;
                        }
                        match expr {
                            Expr::Slot(used) if used == slot => expr = bound,
                            Expr::Property(base, _) if **base == Expr::Slot(*slot) => return None,
                            _ => {}
                        }
                    }
                    op = input;
                }
                Op::Expand { edge: Some(edge), into: false, direction, .. } => {
                    let Expr::Property(base, name) = expr else { return None };
                    let is_of_edge = **base == Expr::Slot(*edge) && !name.starts_with('~');
                    let both = *direction == Direction::Both;
                    return (is_of_edge && !both).then_some(TopEdges {
                        edge: *edge,
                        key: name,
                        descending: key.descending,
                        skip: skip.as_ref(),
                        limit,
                    });
                }
                _ => return None,
            }
        }
    }
}

impl Op {
    /// For the first rows by some keys: the scan of which that is a uniform sample.
    #[must_use]
    pub fn sampled_scan(&self) -> Option<&Op> {
        let Op::Top { input, keys, .. } = self else { return None };
        let [SortKey { expr: Expr::Call(Function::SampleKey, weight), descending: true, .. }] = &keys[..]
        else {
            return None;
        };
        let Op::ScanVertices { input: below, .. } = &**input else { return None };
        let uniform = matches!(weight[..], [Expr::Literal(_)]) && matches!(**below, Op::Argument);
        uniform.then_some(&**input)
    }
}

/// Whether an expression can be left out for a row without anybody noticing.
fn cannot_fail(expr: &Expr) -> bool {
    match expr {
        Expr::Slot(_) | Expr::Literal(_) => true,
        Expr::Property(base, _) => matches!(**base, Expr::Slot(_)),
        _ => false,
    }
}
