//! The number of edges at a vertex, instead of a row for each.

use super::expand::Frontier;
use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want};
use crate::{Batch, Column, Context, Error, Result};
use smallvec::SmallVec;
use tidegraph_plan::{Op, Slot};
use tidegraph_types::{Edge, Gui, Value};

/// Yields the rows whose vertex has edges, with their number.
pub(super) struct CountEdges<'p> {
    input: Boxed<'p>,
    from: Slot,
    follow: Follow<'p>,
    except: &'p [Slot],
    out: Slot,
}

impl<'p> CountEdges<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::CountEdges { from, direction, labels, loops_once, except, out, .. } = op else {
            return Err(Error::Plan("not a count of edges".to_owned()));
        };
        let follow = Follow::new(*direction, labels, *loops_once);
        Ok(Self { input, from: *from, follow, except, out: *out })
    }

    /// Returns how many of the edges that a row must not use are among those that are counted at its vertex.
    fn excepted(&self, batch: &Batch, row: usize, vertex: Gui) -> u64 {
        let mut found: SmallVec<[Edge; 4]> = SmallVec::new();
        let mut add = |edge: Edge| {
            if self.follow.follows(edge, vertex) && !found.iter().any(|other| other.sid == edge.sid) {
                found.push(edge);
            }
        };
        for column in self.except.iter().filter_map(|slot| batch.column(*slot)) {
            match column.edge(row) {
                Some(edge) => add(edge),
                None => {
                    let value = column.get(row);
                    value.as_slice().into_iter().flatten().filter_map(Value::as_edge).for_each(&mut add);
                }
            }
        }
        found.len() as u64
    }
}

impl Operator for CountEdges<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let frontier = Frontier::of(&batch, self.from, "following an edge")?;
            let vertices = frontier.vertices();
            if vertices.is_empty() || !self.follow.resolve(vertices, ctx) {
                continue;
            }
            let mut degrees = Vec::with_capacity(vertices.len());
            ctx.view.degrees(self.follow.request(usize::MAX), vertices, &mut degrees)?;
            let (mut rows, mut counts) = (vec![], vec![]);
            for (index, degree) in degrees.into_iter().enumerate() {
                let row = frontier.row(index as u32);
                let count = degree.saturating_sub(self.excepted(&batch, row as usize, vertices[index]));
                if count > 0 {
                    rows.push(row);
                    counts.push(Value::Long(i64::try_from(count).unwrap_or(i64::MAX)));
                }
            }
            if !rows.is_empty() {
                let mut out = batch.select(&rows);
                out.set(self.out, Column::Values(counts));
                return Ok(Some(out));
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}
