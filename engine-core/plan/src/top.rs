//! Work that storage saves below a sorted slice or a sample: edges after the first few, vertices outside the sample.

use crate::passes::late;
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

/// The first key of a sort with a limit: most rows can be dropped once it is known.
#[derive(Clone, Copy, Debug)]
pub struct FirstKey<'p> {
    /// The key, over the rows of `below`.
    pub key: &'p Expr,
    /// What is bound between `below` and the sort.
    pub bindings: &'p [(Slot, Expr)],
    /// The number of the binding whose value the key is, if it is that of one.
    pub bound: Option<usize>,
    /// The operator below the bindings.
    pub below: &'p Op,
}

impl Op {
    /// For the operator below a sort with a limit: returns the first key of the sort, if nobody sees that the other keys, and
    /// what is bound just below the sort, are not computed for rows that are dropped.
    #[must_use]
    pub fn first_key<'p>(&'p self, keys: &'p [SortKey]) -> Option<FirstKey<'p>> {
        let (first, others) = keys.split_first()?;
        let (below, bindings) = match self {
            Op::Let { input, bindings } => (&**input, &bindings[..]),
            other => (other, &[][..]),
        };
        let bound = match &first.expr {
            Expr::Slot(slot) => bindings.iter().position(|(out, _)| out == slot),
            _ => None,
        };
        let key = bound.map_or(&first.expr, |bound| &bindings[bound].1);
        let mut is_over_below = true;
        key.for_each_slot(&mut |used| is_over_below &= bindings.iter().all(|(slot, _)| *slot != used));
        let may_wait = |(at, (_, expr)): (usize, &(Slot, Expr))| bound == Some(at) || late::may_wait(expr);
        let may_drop = bindings.iter().enumerate().all(may_wait)
            && others.iter().all(|key| late::may_wait(&key.expr))
            && !late::rebinds(bindings);
        // Without anything to save, the sort drops rows as well.
        let saves = !others.is_empty() || bindings.len() > 1 || matches!(below, Op::Filter { .. });
        (is_over_below && may_drop && saves).then_some(FirstKey { key, bindings, bound, below })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn property(slot: u32, key: &str) -> Expr {
        Expr::Property(Box::new(Expr::Slot(Slot(slot))), key.into())
    }

    fn keys(exprs: impl IntoIterator<Item = Expr>) -> Vec<SortKey> {
        let key = |expr| SortKey { expr, order: TotalOrder::OpenCypher, descending: true };
        exprs.into_iter().map(key).collect()
    }

    fn bound(bindings: Vec<(Slot, Expr)>) -> Op {
        Op::Let { input: Box::new(Op::Argument), bindings }
    }

    #[test]
    fn the_first_key_is_known_below_the_bindings() {
        let input = bound(vec![(Slot(1), property(0, "id")), (Slot(2), property(0, "date"))]);
        let by_slot = keys([Expr::Slot(Slot(2)), Expr::Slot(Slot(1))]);
        let first = input.first_key(&by_slot).unwrap();
        assert_eq!((first.key, first.bound, first.below), (&property(0, "date"), Some(1), &Op::Argument));
        let by_property = keys([property(0, "date"), Expr::Slot(Slot(1))]);
        let first = input.first_key(&by_property).unwrap();
        assert_eq!((first.key, first.bound, first.bindings.len()), (&property(0, "date"), None, 2));
        let two = keys([property(0, "date"), property(0, "id")]);
        assert!(Op::Argument.first_key(&two).unwrap().bindings.is_empty());
    }

    #[test]
    fn what_may_fail_or_nothing_saved_keeps_all_rows() {
        let random = || Expr::Call(Function::Rand, vec![]);
        assert!(Op::Argument.first_key(&keys([property(0, "date")])).is_none());
        assert!(Op::Argument.first_key(&keys([property(0, "date"), random()])).is_none());
        // The first key is computed for all rows anyway.
        assert!(Op::Argument.first_key(&keys([random(), property(0, "date")])).is_some());
        let date = (Slot(2), property(0, "date"));
        let by_date = keys([Expr::Slot(Slot(2))]);
        assert!(bound(vec![(Slot(1), random()), date.clone()]).first_key(&by_date).is_none());
        // The key reads another binding, or a slot that is bound again.
        let of_other = bound(vec![(Slot(1), Expr::Slot(Slot(0))), (Slot(2), property(1, "date"))]);
        assert!(of_other.first_key(&by_date).is_none());
        let again = bound(vec![(Slot(1), property(0, "id")), (Slot(0), property(0, "other")), date]);
        assert!(again.first_key(&by_date).is_none());
    }
}
