//! Edges between two vertices that are both bound: the last step of a cycle.
//!
//! Many rows of a batch share a vertex at one of the ends. The lists of edges of the distinct vertices of one side are
//! read once, sorted by the vertex at the other end, and kept for later batches. Each row is then a binary search, not a
//! walk over a list. The side is the one whose lists that are not kept yet have fewer edges. So the last step of
//! `(a)-->(b)-->(c)-->(a)` intersects the neighbours of `b` with the kept list of `a`, as a worst-case optimal join does
//! (Ngo, Porat, Ré and Rudra, "Worst-case optimal join algorithms", PODS 2012).
//!
//! If the lists of a batch are longer than [`MOST_KEPT`], they are read in pieces, and only edges between two vertices of
//! one row are kept. A view that records what it reads always looks from the first end, so that a transaction depends on
//! no more vertices than its text names.
//!
//! What must never happen: a kept list is used after the request changed the graph.

use super::lists::{Lists, count_edges};
use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::FxHashSet;
use tidegraph_plan::{Op, Slot};
use tidegraph_types::Gui;

/// Edges of the kept lists of one side: 8 MiB.
const MOST_KEPT: u64 = 1 << 18;

/// Yields a row for each edge between two bound vertices.
pub(super) struct ExpandInto<'p> {
    input: Boxed<'p>,
    ends: [Slot; 2],
    /// The edges, followed from the first and from the second end.
    follow: [Follow<'p>; 2],
    edge: Option<Slot>,
    keep: Option<&'p [Slot]>,
    sides: [Side; 2],
    /// The generation of the view that the lists show.
    generation: u64,
    current: Option<Current>,
}

/// A batch whose edges are partly yielded.
struct Current {
    batch: Batch,
    /// The rows with two vertices.
    pairs: Vec<(u32, [Gui; 2])>,
    side: usize,
    /// The next pair, and where to go on in its list.
    pair: usize,
    item: Option<usize>,
}

/// The lists of one side.
#[derive(Default)]
struct Side {
    lists: Lists,
    /// Whether they hold only edges of the current batch.
    is_partial: bool,
}

impl Side {
    fn clear(&mut self, ctx: &Context<'_>) {
        self.lists.clear(ctx);
        self.is_partial = false;
    }
}

/// Returns the distinct vertices of one side that have no list yet.
fn without_list(pairs: &[(u32, [Gui; 2])], side: usize, lists: &Lists) -> Vec<Gui> {
    lists.missing(pairs.iter().map(|(_, ends)| ends[side]))
}

impl<'p> ExpandInto<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::Expand { from, direction, labels, edge, to: Some(to), into: true, loops_once, keep, .. } = op
        else {
            return Err(Error::Plan("not an expand into a bound vertex".to_owned()));
        };
        let follow = Follow::new(*direction, labels, *loops_once);
        let follow = if edge.is_none() { follow.neighbours_only() } else { follow };
        let back = follow.reversed();
        Ok(Self {
            input,
            ends: [*from, *to],
            follow: [follow, back],
            edge: *edge,
            keep: keep.as_deref(),
            sides: Default::default(),
            generation: 0,
            current: None,
        })
    }

    fn pairs(&self, batch: &Batch) -> Result<Vec<(u32, [Gui; 2])>> {
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

    /// Reads the lists that the pairs need; returns the side of the lists.
    fn read(&mut self, pairs: &[(u32, [Gui; 2])], ctx: &Context<'_>) -> Result<usize> {
        let is_changed = std::mem::replace(&mut self.generation, ctx.view.generation()) != self.generation;
        for side in &mut self.sides {
            if is_changed || side.is_partial {
                side.clear(ctx);
            }
        }
        if ctx.view.is_recording() {
            let vertices = without_list(pairs, 0, &self.sides[0].lists);
            self.read_lists(0, &vertices, Some(pairs), ctx)?;
            return Ok(0);
        }
        let mut vertices = [0, 1].map(|side| without_list(pairs, side, &self.sides[side].lists));
        if let Some(side) = vertices.iter().position(Vec::is_empty) {
            return Ok(side);
        }
        let mut edges = [0; 2];
        for side in 0..2 {
            edges[side] = count_edges(&mut self.follow[side], &vertices[side], ctx)?;
        }
        let side = usize::from(edges[1] < edges[0]);
        if self.sides[side].lists.len() + edges[side] > MOST_KEPT {
            self.sides[side].clear(ctx);
            vertices[side] = without_list(pairs, side, &self.sides[side].lists);
            edges[side] = count_edges(&mut self.follow[side], &vertices[side], ctx)?;
        }
        let only = (edges[side] > MOST_KEPT).then_some(pairs);
        self.read_lists(side, &vertices[side], only, ctx)?;
        Ok(side)
    }

    /// Reads the lists of vertices. `only`: keeps only edges between the vertices of a pair.
    fn read_lists(
        &mut self,
        side: usize,
        vertices: &[Gui],
        only: Option<&[(u32, [Gui; 2])]>,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let wanted: Option<FxHashSet<[Gui; 2]>> =
            only.map(|pairs| pairs.iter().map(|(_, ends)| [ends[side], ends[1 - side]]).collect());
        let keeps = |of: Gui, other: Gui| wanted.as_ref().is_none_or(|wanted| wanted.contains(&[of, other]));
        let Side { lists, is_partial } = &mut self.sides[side];
        *is_partial = wanted.is_some();
        lists.read(&mut self.follow[side], self.edge.is_some(), vertices, &keeps, ctx)
    }

    /// Returns the next rows of the current batch; none at its end.
    fn take(&mut self, want: Want<'_>) -> Option<Batch> {
        let Current { batch, pairs, side, pair, item } = self.current.as_mut()?;
        let limit = want.rows.min(BATCH_ROWS);
        let (mut rows, mut edges) = (vec![], vec![]);
        while rows.len() < limit {
            let Some((row, ends)) = pairs.get(*pair) else { break };
            let (vertex, other) = (ends[*side], ends[1 - *side]);
            let lists = &self.sides[*side].lists;
            let range = lists.range(vertex);
            let list = lists.neighbours(&range);
            let at = item.unwrap_or_else(|| list.partition_point(|neighbour| *neighbour < other));
            match list.get(at).filter(|neighbour| **neighbour == other) {
                Some(_) if want.wants(batch.origin_of(*row as usize)) => {
                    *item = Some(at + 1);
                    rows.push(*row);
                    edges.extend(lists.edges(&range).get(at).map(|edge| edge.edge(vertex, other)));
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

    fn forget(&mut self, ctx: &Context<'_>) {
        self.sides.iter_mut().for_each(|side| side.clear(ctx));
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
                self.forget(ctx);
                return Ok(None);
            };
            let pairs = self.pairs(&batch)?;
            let from: Vec<Gui> = pairs.iter().map(|(_, ends)| ends[0]).collect();
            if self.follow[0].resolve(&from, ctx) && self.follow[1].resolve(&[], ctx) && !pairs.is_empty() {
                let side = self.read(&pairs, ctx)?;
                self.current = Some(Current { batch, pairs, side, pair: 0, item: None });
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.input.feed(ctx, feed);
    }
}
