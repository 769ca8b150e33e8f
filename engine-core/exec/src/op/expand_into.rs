//! Edges between two vertices that are both bound: the last step of a cycle.
//!
//! The last step of `(a)-->(b)-->(c)-->(a)` intersects the neighbours of `b` with the kept list of `a` ([`EdgeFinder`]), as
//! a worst-case optimal join does (Ngo, Porat, Ré and Rudra, "Worst-case optimal join algorithms", PODS 2012).

use super::pairs::{EdgeFinder, Pair};
use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use tidegraph_plan::{Op, Slot};

/// Yields a row for each edge between two bound vertices.
pub(super) struct ExpandInto<'p> {
    input: Boxed<'p>,
    ends: [Slot; 2],
    finder: EdgeFinder<'p>,
    edge: Option<Slot>,
    keep: Option<&'p [Slot]>,
    current: Option<Current>,
    /// Whether the lists outlive the input, which is one partition of several.
    keeps: bool,
}

/// A batch whose edges are partly yielded.
struct Current {
    batch: Batch,
    /// The rows with two vertices.
    pairs: Vec<Pair>,
    /// The next pair, and where to go on in its list.
    pair: usize,
    item: Option<usize>,
}

impl<'p> ExpandInto<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::Expand { from, direction, labels, edge, to: Some(to), into: true, loops_once, keep, .. } = op
        else {
            return Err(Error::Plan("not an expand into a bound vertex".to_owned()));
        };
        let follow = Follow::new(*direction, labels, *loops_once);
        Ok(Self {
            input,
            ends: [*from, *to],
            finder: EdgeFinder::new(follow, edge.is_some()),
            edge: *edge,
            keep: keep.as_deref(),
            current: None,
            keeps: false,
        })
    }

    fn pairs(&self, batch: &Batch) -> Result<Vec<Pair>> {
        let [Some(from), Some(to)] = self.ends.map(|slot| batch.column(slot)) else { return Ok(vec![]) };
        let vertex = |column: &Column, row: usize| match column.vertex(row) {
            None if !column.is_null(row) => {
                Err(Error::of_type("following an edge", "a vertex", &column.get(row)))
            }
            vertex => Ok(vertex),
        };
        let mut pairs = Vec::with_capacity(batch.len);
        for row in 0..batch.len {
            if let (Some(from), Some(to)) = (vertex(from, row)?, vertex(to, row)?) {
                pairs.push((row as u32, [from, to]));
            }
        }
        Ok(pairs)
    }

    /// Returns the next rows of the current batch; none at its end.
    fn take(&mut self, want: Want<'_>) -> Option<Batch> {
        let Current { batch, pairs, pair, item } = self.current.as_mut()?;
        let limit = want.rows.min(BATCH_ROWS);
        let (mut rows, mut edges) = (vec![], vec![]);
        while rows.len() < limit {
            let Some((row, ends)) = pairs.get(*pair) else { break };
            let (list, listed, [vertex, other]) = self.finder.list(*ends);
            let at = item.unwrap_or_else(|| list.partition_point(|neighbour| *neighbour < other));
            match list.get(at).filter(|neighbour| **neighbour == other) {
                Some(_) if want.wants(batch.origin_of(*row as usize)) => {
                    *item = Some(at + 1);
                    rows.push(*row);
                    edges.extend(listed.get(at).map(|edge| edge.edge(vertex, other)));
                }
                _ => (*pair, *item) = (*pair + 1, None),
            }
        }
        let out = (!rows.is_empty()).then(|| {
            let mut out = match self.keep {
                Some(keep) => batch.gather_slots(&rows, keep),
                None => batch.gather(&rows),
            };
            if let Some(edge) = self.edge {
                out.set(edge, Column::Edges(edges));
            }
            out
        });
        if *pair >= pairs.len() {
            self.current = None;
        }
        out
    }
}

impl Operator for ExpandInto<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if self.current.is_some() {
                if let Some(out) = self.take(want) {
                    return Ok(Some(out));
                }
                continue;
            }
            let Some(batch) = self.input.next(ctx, want)? else {
                if !self.keeps {
                    self.finder.forget(ctx);
                }
                return Ok(None);
            };
            let pairs = self.pairs(&batch)?;
            if self.finder.read(&pairs, ctx)? {
                self.current = Some(Current { batch, pairs, pair: 0, item: None });
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        if std::mem::replace(&mut self.keeps, feed.partition.is_some()) && !self.keeps {
            self.finder.forget(ctx);
        }
        self.input.feed(ctx, feed);
    }
}
