//! Finds the edges between pairs of vertices.
//!
//! Many pairs share a vertex. The lists of edges of the distinct vertices of one side are read once, sorted by the vertex
//! at the other end, and kept for later pairs. Each pair is then a binary search, not a walk over a list. The side is the
//! one whose lists that are not kept yet have fewer edges.
//!
//! If the lists are longer than [`MOST_KEPT`], they are read in pieces, and only edges between two vertices of one pair are
//! kept. A view that records what it reads always looks from the first end, so that a transaction depends on no more
//! vertices than its text names.
//!
//! What must never happen: a kept list is used after the request changed the graph.

use super::lists::{Listed, Lists, count_edges};
use super::walk::Follow;
use crate::{Context, Result};
use rustc_hash::FxHashSet;
use tidegraph_types::Gui;

/// Edges of the kept lists of one side: 8 MiB.
const MOST_KEPT: u64 = 1 << 18;

/// A row and two vertices of it.
pub(super) type Pair = (u32, [Gui; 2]);

/// Finds edges between pairs of vertices.
pub(super) struct EdgeFinder<'p> {
    /// The edges, followed from the first and from the second vertex.
    follow: [Follow<'p>; 2],
    /// Whether somebody looks at the edges, not only at their number.
    has_edges: bool,
    sides: [Side; 2],
    /// The side whose lists hold the edges of the pairs that were read last.
    side: usize,
    /// The generation of the view that the lists show.
    generation: u64,
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
fn without_list(pairs: &[Pair], side: usize, lists: &Lists) -> Vec<Gui> {
    lists.missing(pairs.iter().map(|(_, ends)| ends[side]))
}

impl<'p> EdgeFinder<'p> {
    /// Makes a finder of edges that lead from the first to the second vertex of a pair.
    pub fn new(follow: Follow<'p>, has_edges: bool) -> Self {
        let follow = if has_edges { follow } else { follow.neighbours_only() };
        let back = follow.reversed();
        Self { follow: [follow, back], has_edges, sides: Default::default(), side: 0, generation: 0 }
    }

    /// Reads the lists that the pairs need; returns whether there can be edges at all.
    pub fn read(&mut self, pairs: &[Pair], ctx: &Context<'_>) -> Result<bool> {
        let from: Vec<Gui> = pairs.iter().map(|(_, ends)| ends[0]).collect();
        if !self.follow[0].resolve(&from, ctx) || !self.follow[1].resolve(&[], ctx) || pairs.is_empty() {
            return Ok(false);
        }
        self.side = self.read_side(pairs, ctx)?;
        Ok(true)
    }

    /// Returns the vertices at the other ends and the edges (if somebody looks at them) of the list in which the edges of
    /// a pair are, and the vertices of the pair: that of the list and the other one.
    pub fn list(&self, [first, second]: [Gui; 2]) -> (&[Gui], &[Listed], [Gui; 2]) {
        let ends = if self.side == 0 { [first, second] } else { [second, first] };
        let lists = &self.sides[self.side].lists;
        let range = lists.range(ends[0]);
        (lists.neighbours(&range), lists.edges(&range), ends)
    }

    /// Returns the number of edges of a pair.
    pub fn count(&self, pair: [Gui; 2]) -> u64 {
        let (list, _, [_, other]) = self.list(pair);
        let begin = list.partition_point(|neighbour| *neighbour < other);
        list[begin..].iter().take_while(|neighbour| **neighbour == other).count() as u64
    }

    /// Drops all lists.
    pub fn forget(&mut self, ctx: &Context<'_>) {
        self.sides.iter_mut().for_each(|side| side.clear(ctx));
    }

    /// Reads the lists of one side; returns the side.
    fn read_side(&mut self, pairs: &[Pair], ctx: &Context<'_>) -> Result<usize> {
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
        only: Option<&[Pair]>,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let wanted: Option<FxHashSet<[Gui; 2]>> =
            only.map(|pairs| pairs.iter().map(|(_, ends)| [ends[side], ends[1 - side]]).collect());
        let keeps = |of: Gui, other: Gui| wanted.as_ref().is_none_or(|wanted| wanted.contains(&[of, other]));
        let Side { lists, is_partial } = &mut self.sides[side];
        *is_partial = wanted.is_some();
        lists.read(&mut self.follow[side], self.has_edges, vertices, &keeps, ctx)
    }
}
