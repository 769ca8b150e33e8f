//! Breadth-first search that takes each step in the cheaper direction: top-down from the frontier, or bottom-up to it.
//!
//! Flow: the search keeps the set of reached vertices. A top-down step expands the frontier and keeps the new vertices.
//! A bottom-up step asks for the unreached vertices that have a reached neighbour: the neighbour is in the frontier, or
//! the vertex would have been reached earlier. If edges are followed both ways, a bottom-up step also tells which
//! vertices remain; once they are fewer than the reached ones, the search keeps the set of the remaining vertices
//! instead. So the vertices of the largest level, which is far larger than the others, enter no set at all.
//!
//! The search estimates the edges of a frontier from the degrees of some of its vertices, and the work of a bottom-up
//! step from the number of remaining vertices.
//!
//! Must never: change the set within a bottom-up step (a vertex would become a parent one level too early).

use super::{BottomUp, Explored, Parents, Searches, VertexSet};
use crate::{At, Cursor, Error, Expand, Expansion, ScanCursor};
use tidegraph_types::{Direction, Gui};

/// A bottom-up step reads about one in `ALPHA` of the remaining edges: the threshold of the GAP suite and of the paper.
const ALPHA: u64 = 15;
/// A frontier with fewer edges is always expanded top-down: the work is negligible.
const FEW: u64 = 1 << 14;
/// Number of vertices of a frontier whose degrees are sampled.
const SAMPLE: usize = 128;
/// Vertices that one request expands.
const PIECE: usize = 4096;
/// Rows of one answer.
const ROWS: u32 = 1 << 14;

/// The vertices that one request of a search reached.
#[derive(Clone, Copy, Debug)]
pub struct Reached<'r> {
    /// Distance of the vertices from the starts, in edges.
    pub depth: u32,
    /// Vertices reached for the first time; may be empty.
    pub vertices: &'r [Gui],
    /// For each of the vertices, a neighbour one step nearer to the starts.
    pub parents: &'r [Gui],
    /// Whether a bottom-up step reached them.
    pub upwards: bool,
    /// Size of the search's state in bytes.
    pub bytes: usize,
}

/// Visits the vertices that can be reached from some vertices along edges of a kind: nearest first, each once, without
/// the starts. Calls `visit` after every request; it returns whether to continue. Of `request`, only direction and
/// labels are used.
///
/// # Errors
///
/// The errors of [every request](crate::Apl#errors), and those that `visit` returns.
pub fn breadth_first<E: From<Error>>(
    apl: &dyn Searches,
    at: At,
    request: &Expand,
    starts: &[Gui],
    visit: &mut dyn FnMut(Reached<'_>) -> Result<bool, E>,
) -> Result<(), E> {
    let mut search = Search {
        apl,
        at,
        down: Expand { max_rows: ROWS, neighbours_only: true, ..request.clone() },
        up: Expand {
            direction: request.direction.reversed(),
            max_rows: ROWS,
            neighbours_only: true,
            ..request.clone()
        },
        set: VertexSet::default(),
        inverse: false,
        follows: false,
        explored: Explored::default(),
        depth: 0,
        frontier: Vec::new(),
        next: Vec::new(),
        graph: None,
    };
    search.frontier.extend(starts.iter().copied().filter(|start| search.set.insert(*start)));
    while !search.frontier.is_empty() {
        search.depth += 1;
        let go_on = if search.goes_up()? { search.step_up(visit)? } else { search.step_down(visit)? };
        if !go_on {
            break;
        }
        std::mem::swap(&mut search.frontier, &mut search.next);
        search.next.clear();
    }
    Ok(())
}

struct Search<'s> {
    apl: &'s dyn Searches,
    at: At,
    down: Expand,
    up: Expand,
    /// The reached vertices; with `inverse`, the remaining ones.
    set: VertexSet,
    inverse: bool,
    /// Whether the last step was bottom-up.
    follows: bool,
    explored: Explored,
    depth: u32,
    frontier: Vec<Gui>,
    next: Vec<Gui>,
    /// Vertices of the graph, and ends of edges that can be followed; counted when first needed.
    graph: Option<(u64, u64)>,
}

impl Search<'_> {
    fn bytes(&self) -> usize {
        self.set.bytes() + self.explored.bytes() + (self.frontier.capacity() + self.next.capacity()) * 8
    }

    /// Returns the numbers of vertices and of ends of edges of the kind.
    fn graph(&mut self) -> (u64, u64) {
        *self.graph.get_or_insert_with(|| {
            let statistics = self.apl.statistics();
            let edges = match &self.down.labels {
                None => statistics.edges,
                Some(labels) => {
                    let of = statistics.edges_by_label.iter().filter(|(label, _)| labels.contains(label));
                    of.map(|(_, count)| count).sum()
                }
            };
            let ends = if self.down.direction == Direction::Both { 2 } else { 1 };
            (statistics.vertices, edges * ends)
        })
    }

    /// Estimates the edges of the frontier from the degrees of some of its vertices.
    fn frontier_edges(&self) -> Result<u64, Error> {
        let step = self.frontier.len().div_ceil(SAMPLE);
        let some: Vec<Gui> = self.frontier.iter().copied().step_by(step).collect();
        let mut degrees = Vec::with_capacity(some.len());
        self.apl.degrees(self.at, &self.down, &some, &mut degrees)?;
        Ok(degrees.iter().sum::<u64>() * self.frontier.len() as u64 / some.len() as u64)
    }

    fn goes_up(&mut self) -> Result<bool, Error> {
        let ahead = self.frontier_edges()?;
        if ahead < FEW {
            return Ok(false);
        }
        let (vertices, edges) = self.graph();
        let left = match self.explored.left() {
            _ if self.inverse => self.set.len() as u64,
            Some(left) => left,
            None => vertices.saturating_sub(self.set.len() as u64),
        };
        let edges_left = (u128::from(edges) * u128::from(left) / u128::from(vertices.max(1))) as u64;
        Ok(ahead > left.max(edges_left / ALPHA))
    }

    fn step_down<E: From<Error>>(
        &mut self,
        visit: &mut dyn FnMut(Reached<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.follows = false;
        let (mut out, mut parents) = (Expansion::default(), Vec::new());
        for piece in 0..self.frontier.len().div_ceil(PIECE) {
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                let frontier = &self.frontier[piece * PIECE..];
                let frontier = &frontier[..frontier.len().min(PIECE)];
                out.clear();
                parents.clear();
                cursor = self.apl.expand(self.at, &self.down, frontier, from, &mut out)?;
                let before = self.next.len();
                for (row, neighbour) in out.row.iter().zip(&out.neighbour) {
                    let new =
                        if self.inverse { self.set.remove(*neighbour) } else { self.set.insert(*neighbour) };
                    if new {
                        self.next.push(*neighbour);
                        parents.push(frontier[*row as usize]);
                    }
                }
                let vertices = &self.next[before..];
                let bytes = self.bytes();
                if !visit(Reached { depth: self.depth, vertices, parents: &parents, upwards: false, bytes })?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn step_up<E: From<Error>>(
        &mut self,
        visit: &mut dyn FnMut(Reached<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let (mut out, mut cursor) = (Parents::default(), Some(ScanCursor::default()));
        // A vertex with outgoing edges only would be in no set of remaining vertices.
        let rest = self.up.direction == Direction::Both;
        let follows = std::mem::replace(&mut self.follows, true);
        let mut left = Vec::new();
        while let Some(from) = cursor {
            out.clear();
            let step = BottomUp { edges: &self.up, set: &self.set, inverse: self.inverse, follows, rest };
            cursor = self.apl.bottom_up(self.at, &step, &mut self.explored, from, &mut out)?;
            self.next.extend_from_slice(&out.vertex);
            left.extend_from_slice(&out.rest);
            let (vertices, parents) = (&out.vertex[..], &out.parent[..]);
            let bytes = self.bytes() + left.capacity() * 8;
            if !visit(Reached { depth: self.depth, vertices, parents, upwards: true, bytes })? {
                return Ok(false);
            }
        }
        self.inverse |= rest && left.len() < self.set.len() + self.next.len();
        if self.inverse {
            self.set = VertexSet::default();
        }
        let new = if self.inverse { &left } else { &self.next };
        self.set.reserve(new.len());
        for vertex in new {
            self.set.insert(*vertex);
        }
        Ok(true)
    }
}
