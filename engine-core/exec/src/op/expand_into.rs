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

use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{Op, Slot};
use tidegraph_types::{Edge, Gui, Sid, Token};

/// Edges of the kept lists of one side: 8 MiB.
const MOST_KEPT: u64 = 1 << 18;
/// Edges per call to storage.
const READ_ROWS: usize = 8 * BATCH_ROWS;

/// Yields a row for each edge between two bound vertices.
pub(super) struct ExpandInto<'p> {
    input: Boxed<'p>,
    ends: [Slot; 2],
    /// The edges, followed from the first and from the second end.
    follow: [Follow<'p>; 2],
    edge: Option<Slot>,
    keep: Option<&'p [Slot]>,
    lists: [Lists; 2],
    /// The generation of the view that the lists show.
    generation: u64,
    current: Option<Current>,
    found: Expansion,
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

/// An edge in the list of a vertex.
#[derive(Clone, Copy)]
struct Listed {
    neighbour: Gui,
    sid: Sid,
    label: Token,
    outgoing: bool,
}

/// Lists of edges of one side, each sorted by neighbour.
#[derive(Default)]
struct Lists {
    of: FxHashMap<Gui, Range<usize>>,
    edges: Vec<Listed>,
    /// Whether they hold only edges of the current batch.
    is_partial: bool,
    charged: usize,
}

impl Lists {
    fn clear(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        *self = Self::default();
    }

    fn charge(&mut self, bytes: usize, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }

    fn list(&self, vertex: Gui) -> &[Listed] {
        self.of.get(&vertex).and_then(|range| self.edges.get(range.clone())).unwrap_or_default()
    }
}

/// Returns the distinct vertices of one side that have no list yet.
fn without_list(pairs: &[(u32, [Gui; 2])], side: usize, lists: &Lists) -> Vec<Gui> {
    let vertices = pairs.iter().map(|(_, ends)| ends[side]);
    let mut vertices: Vec<Gui> = vertices.filter(|vertex| !lists.of.contains_key(vertex)).collect();
    vertices.sort_unstable();
    vertices.dedup();
    vertices
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
            lists: Default::default(),
            generation: 0,
            current: None,
            found: Expansion::default(),
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
        for lists in &mut self.lists {
            if is_changed || lists.is_partial {
                lists.clear(ctx);
            }
        }
        if ctx.view.is_recording() {
            let vertices = without_list(pairs, 0, &self.lists[0]);
            self.read_lists(0, &vertices, Some(pairs), ctx)?;
            return Ok(0);
        }
        let mut vertices = [0, 1].map(|side| without_list(pairs, side, &self.lists[side]));
        if let Some(side) = vertices.iter().position(Vec::is_empty) {
            return Ok(side);
        }
        let mut edges = [0; 2];
        for side in 0..2 {
            edges[side] = self.count(side, &vertices[side], ctx)?;
        }
        let side = usize::from(edges[1] < edges[0]);
        if self.lists[side].edges.len() as u64 + edges[side] > MOST_KEPT {
            self.lists[side].clear(ctx);
            vertices[side] = without_list(pairs, side, &self.lists[side]);
            edges[side] = self.count(side, &vertices[side], ctx)?;
        }
        let only = (edges[side] > MOST_KEPT).then_some(pairs);
        self.read_lists(side, &vertices[side], only, ctx)?;
        Ok(side)
    }

    fn count(&mut self, side: usize, vertices: &[Gui], ctx: &Context<'_>) -> Result<u64> {
        let mut degrees = Vec::with_capacity(vertices.len());
        ctx.view.degrees(self.follow[side].request(usize::MAX), vertices, &mut degrees)?;
        Ok(degrees.into_iter().sum())
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
        let lists = &mut self.lists[side];
        lists.is_partial = wanted.is_some();
        let mut listed: Vec<(u32, Listed)> = vec![];
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            ctx.check()?;
            self.found.clear();
            cursor =
                ctx.view.expand(self.follow[side].request(READ_ROWS), vertices, from, &mut self.found)?;
            let before = listed.len();
            for index in 0..self.found.len() {
                let (row, neighbour) = (self.found.row[index], self.found.neighbour[index]);
                if wanted.as_ref().is_none_or(|wanted| wanted.contains(&[vertices[row as usize], neighbour]))
                {
                    let (sid, label, outgoing) = match self.edge {
                        Some(_) => {
                            (self.found.sid[index], self.found.label[index], self.found.outgoing[index])
                        }
                        None => (Sid::default(), Token::default(), true),
                    };
                    listed.push((row, Listed { neighbour, sid, label, outgoing }));
                }
            }
            lists.charge((listed.len() - before) * 2 * size_of::<(u32, Listed)>(), ctx)?;
        }
        // Edges between the same two vertices keep their order.
        listed.sort_by_key(|(row, listed)| (*row, listed.neighbour));
        lists.charge(vertices.len() * size_of::<(Gui, Range<usize>)>(), ctx)?;
        let mut rest = &listed[..];
        for (row, vertex) in vertices.iter().enumerate() {
            let own = rest.partition_point(|(of, _)| *of as usize == row);
            let begin = lists.edges.len();
            lists.edges.extend(rest[..own].iter().map(|(_, listed)| *listed));
            lists.of.insert(*vertex, begin..lists.edges.len());
            rest = &rest[own..];
        }
        Ok(())
    }

    /// Returns the next rows of the current batch; none at its end.
    fn take(&mut self, want: Want<'_>) -> Option<Batch> {
        let Current { batch, pairs, side, pair, item } = self.current.as_mut()?;
        let limit = want.rows.min(BATCH_ROWS);
        let (mut rows, mut edges) = (vec![], vec![]);
        while rows.len() < limit {
            let Some((row, ends)) = pairs.get(*pair) else { break };
            let (vertex, other) = (ends[*side], ends[1 - *side]);
            let list = self.lists[*side].list(vertex);
            let at = item.unwrap_or_else(|| list.partition_point(|listed| listed.neighbour < other));
            match list.get(at).filter(|listed| listed.neighbour == other) {
                Some(listed) if want.wants(batch.origin_of(*row as usize)) => {
                    *item = Some(at + 1);
                    rows.push(*row);
                    let (source, target) = if listed.outgoing { (vertex, other) } else { (other, vertex) };
                    edges.push(Edge { sid: listed.sid, source, target, label: listed.label });
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
        self.lists.iter_mut().for_each(|lists| lists.clear(ctx));
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
