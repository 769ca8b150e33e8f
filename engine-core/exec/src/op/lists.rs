//! Lists of edges of vertices, each sorted by the vertex at the other end, that an operator keeps for later batches.
//!
//! What must never happen: a kept list is used after the request changed the graph. The operator that keeps the lists
//! compares the generation of the view.

use super::walk::Follow;
use crate::batch::BATCH_ROWS;
use crate::{Context, Result};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_types::{Edge, Gui, Sid, Token};

/// Edges per call to storage.
const READ_ROWS: usize = 8 * BATCH_ROWS;

/// An edge beside the vertex at its other end.
#[derive(Clone, Copy, Default)]
pub(super) struct Listed {
    pub sid: Sid,
    label: Token,
    outgoing: bool,
}

impl Listed {
    /// Returns the edge, given the vertex of its list and the one at the other end.
    pub fn edge(self, of: Gui, neighbour: Gui) -> Edge {
        let (source, target) = if self.outgoing { (of, neighbour) } else { (neighbour, of) };
        Edge { sid: self.sid, source, target, label: self.label }
    }
}

/// The edges of vertices.
#[derive(Default)]
pub(super) struct Lists {
    of: FxHashMap<Gui, Range<u32>>,
    neighbours: Vec<Gui>,
    /// Beside `neighbours`, or empty if nobody looks at edges.
    edges: Vec<Listed>,
    charged: usize,
    found: Expansion,
}

impl Lists {
    /// Drops all lists.
    pub fn clear(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        *self = Self::default();
    }

    /// Number of edges in all lists.
    pub fn len(&self) -> u64 {
        self.neighbours.len() as u64
    }

    /// Memory that the lists are charged for.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Memory of an edge.
    pub fn bytes_of_edge(has_edges: bool) -> usize {
        size_of::<Gui>() + if has_edges { size_of::<Listed>() } else { 0 }
    }

    /// Returns the places of the list of a vertex.
    pub fn range(&self, vertex: Gui) -> Range<u32> {
        self.of.get(&vertex).cloned().unwrap_or_default()
    }

    /// Returns the vertices at the other ends in some places.
    pub fn neighbours(&self, range: &Range<u32>) -> &[Gui] {
        self.neighbours.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// Returns the edges in some places; none if nobody looks at edges.
    pub fn edges(&self, range: &Range<u32>) -> &[Listed] {
        self.edges.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// Returns the distinct vertices that have no list yet.
    pub fn missing(&self, vertices: impl Iterator<Item = Gui>) -> Vec<Gui> {
        let mut vertices: Vec<Gui> = vertices.filter(|vertex| !self.of.contains_key(vertex)).collect();
        vertices.sort_unstable();
        vertices.dedup();
        vertices
    }

    /// Reads the lists of vertices that have none. `has_edges`: somebody looks at the edges. `keeps`: which of the edges
    /// are kept, by the vertex of the list and the one at the other end.
    pub fn read(
        &mut self,
        follow: &mut Follow<'_>,
        has_edges: bool,
        vertices: &[Gui],
        keeps: &dyn Fn(Gui, Gui) -> bool,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let mut listed: Vec<(u32, Gui, Listed)> = vec![];
        let mut unsorted = 0;
        let mut cursor = (!vertices.is_empty()).then(Cursor::default);
        while let Some(from) = cursor {
            ctx.check()?;
            self.found.clear();
            cursor = ctx.view.expand(follow.request(READ_ROWS), vertices, from, &mut self.found)?;
            let before = listed.len();
            let found = &self.found;
            for at in 0..found.len() {
                let (row, neighbour) = (found.row[at], found.neighbour[at]);
                if keeps(vertices[row as usize], neighbour) {
                    let edge = match has_edges {
                        true => {
                            let (sid, label) = (found.sid[at], found.label[at]);
                            Listed { sid, label, outgoing: found.outgoing[at] }
                        }
                        false => Listed::default(),
                    };
                    listed.push((row, neighbour, edge));
                }
            }
            let bytes = (listed.len() - before) * size_of::<(u32, Gui, Listed)>();
            ctx.memory.charge(bytes).inspect_err(|_| ctx.memory.release(unsorted))?;
            unsorted += bytes;
        }
        // Edges between the same two vertices keep their order.
        listed.sort_by_key(|(row, neighbour, _)| (*row, *neighbour));
        ctx.memory.release(unsorted);
        let bytes =
            listed.len() * Self::bytes_of_edge(has_edges) + vertices.len() * size_of::<(Gui, Range<u32>)>();
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        let mut rest = &listed[..];
        for (row, vertex) in vertices.iter().enumerate() {
            let own = rest.partition_point(|(of, ..)| *of as usize == row);
            let begin = self.neighbours.len() as u32;
            self.neighbours.extend(rest[..own].iter().map(|(_, neighbour, _)| *neighbour));
            if has_edges {
                self.edges.extend(rest[..own].iter().map(|(.., edge)| *edge));
            }
            self.of.insert(*vertex, begin..self.neighbours.len() as u32);
            rest = &rest[own..];
        }
        Ok(())
    }
}

/// Returns the number of edges that reading the lists of vertices would find.
pub(super) fn count_edges(follow: &mut Follow<'_>, vertices: &[Gui], ctx: &Context<'_>) -> Result<u64> {
    if vertices.is_empty() {
        return Ok(0);
    }
    let mut degrees = Vec::with_capacity(vertices.len());
    ctx.view.degrees(follow.request(usize::MAX), vertices, &mut degrees)?;
    Ok(degrees.into_iter().sum())
}
