//! Work that storage saves below a sorted slice or a sample: edges after the first few, vertices outside the sample.

use crate::{Expr, Function, Op, Slot, SortKey, TotalOrder};
use tidegraph_types::{Direction, Str};

/// An expand of which only the first edges by a property are used.
#[derive(Clone, Copy, Debug)]
pub struct TopEdges<'p> {
    /// The slot of the edge.
    pub edge: Slot,
    /// The property by which edges are sorted, in openCypher's order.
    pub key: &'p Str,
    /// Whether the largest value comes first.
    pub descending: bool,
    /// Number of leading edges to drop.
    pub skip: Option<&'p Expr>,
    /// Number of edges to use after those.
    pub limit: &'p Expr,
}

impl Op {
    /// For a slice above a sort: returns the edges that it needs of the expand below. `None`: the sort key is no
    /// property of the expand's edge, or operators between them may drop rows or fail.
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

/// A scan of vertices of which only the first by properties are used.
#[derive(Clone, Debug)]
pub struct TopVertices<'p> {
    /// The properties by which vertices are sorted, in openCypher's order, each with whether the largest comes first.
    pub order: Vec<(&'p Str, bool)>,
    /// Number of leading vertices to drop.
    pub skip: Option<&'p Expr>,
    /// Number of vertices to use after those.
    pub limit: &'p Expr,
}

impl Op {
    /// For a slice above a sort: returns the vertices that it needs of the plan's first scan. `None`: a sort key is no
    /// property of the scan's vertex, or operators between them may drop rows or fail.
    #[must_use]
    pub fn top_vertices(&self) -> Option<TopVertices<'_>> {
        let Op::Slice { input, skip, limit: Some(limit) } = self else { return None };
        let Op::Sort { input, keys } = &**input else { return None };
        if keys.iter().any(|key| key.order != TotalOrder::OpenCypher) {
            return None;
        }
        let mut exprs: Vec<&Expr> = keys.iter().map(|key| &key.expr).collect();
        let (mut op, mut elements) = (&**input, vec![]);
        loop {
            match op {
                Op::Keep { input, .. } => op = input,
                Op::Let { input, bindings } => {
                    for (slot, bound) in bindings.iter().rev() {
                        // Of a vertex these cannot fail either.
                        match bound {
                            Expr::Call(Function::Id | Function::Labels, args) => match &args[..] {
                                [Expr::Slot(element)] => elements.push(*element),
                                _ => return None,
                            },
                            other if !cannot_fail(other) => return None,
                            _ => {}
                        }
                        for expr in &mut exprs {
                            if **expr == Expr::Slot(*slot) {
                                *expr = bound;
                            }
                        }
                    }
                    op = input;
                }
                Op::ScanVertices { input, out, columns, .. } if matches!(**input, Op::Argument) => {
                    if elements.iter().any(|element| element != out) {
                        return None;
                    }
                    let property = |expr: &Expr| {
                        let column = columns.iter().find(|column| *expr == Expr::Slot(column.slot))?;
                        (!column.each).then_some(&column.key)
                    };
                    let order = exprs.into_iter().zip(keys);
                    let order = order.map(|(expr, key)| Some((property(expr)?, key.descending)));
                    let order = order.collect::<Option<Vec<_>>>()?;
                    return Some(TopVertices { order, skip: skip.as_ref(), limit });
                }
                _ => return None,
            }
        }
    }
}

impl Op {
    /// For a `Top`: returns the scan of which it takes a uniform sample. `None`: the `Top` does not take one.
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

/// Whether skipping the expression for a row has no visible effect.
fn cannot_fail(expr: &Expr) -> bool {
    match expr {
        Expr::Slot(_) | Expr::Literal(_) => true,
        Expr::Property(base, _) => matches!(**base, Expr::Slot(_)),
        _ => false,
    }
}
