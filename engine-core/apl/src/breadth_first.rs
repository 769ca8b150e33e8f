//! Breadth-first search, in the direction that is less work at each level: down from the frontier, or up to it.
//!
//! Flow: the search keeps the set of what it has reached. A step down expands the frontier and keeps what is new. A step up
//! asks for the vertices that were not reached and have a neighbour that was: such a neighbour is of the frontier, or the
//! vertex would have been reached before. Where edges are followed both ways, a step up also tells which vertices are left;
//! as soon as these are fewer, the search keeps the set of them instead, and what is not in it was reached. So the
//! vertices of the largest level, which no other comes near to, are put into no set at all.
//!
//! A frontier's edges are estimated from the degrees of some of its vertices, and what a step up would look at from the
//! number of vertices that are left.
//!
//! What must never happen: a set that changes within a step up (a vertex would become a parent one level too early).

use crate::{Apl, At, BottomUp, Cursor, Error, Expand, Expansion, Explored, Parents, ScanCursor, VertexSet};
use tidegraph_types::{Direction, Gui};

/// A step up looks at about this part of the edges that are left: the threshold of GAP and of the paper.
const ALPHA: u64 = 15;
/// A frontier with fewer edges always goes down: whatever is left, it is no work.
const FEW: u64 = 1 << 14;
/// Vertices of a frontier whose degrees are looked at.
const SAMPLE: usize = 128;
/// Vertices that one request expands, and rows of one answer.
const PIECE: usize = 4096;
const ROWS: u32 = 1 << 14;

/// What one request of a search has reached.
#[derive(Clone, Copy, Debug)]
pub struct Reached<'r> {
    /// How far the vertices are from the start.
    pub depth: u32,
    /// Vertices that were reached for the first time; perhaps none.
    pub vertices: &'r [Gui],
    /// For each of them a neighbour one step nearer.
    pub parents: &'r [Gui],
    /// Whether they were reached by a step up.
    pub upwards: bool,
    /// Bytes that the search holds.
    pub bytes: usize,
}

/// Visits what can be reached from some vertices along edges of a kind, nearest first, each once; the starts themselves are
/// not visited. `visit` is called after every request, so that it can look whether to go on; it answers that, or an error.
/// Of the request only direction and labels count.
pub fn breadth_first<E: From<Error>>(
    apl: &dyn Apl,
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
    apl: &'s dyn Apl,
    at: At,
    down: Expand,
    up: Expand,
    /// What was reached; or, inverse, what is left.
    set: VertexSet,
    inverse: bool,
    /// Whether the last step went up.
    follows: bool,
    explored: Explored,
    depth: u32,
    frontier: Vec<Gui>,
    next: Vec<Gui>,
    /// Vertices of the graph, and ends of edges that can be followed; counted when they matter.
    graph: Option<(u64, u64)>,
}

impl Search<'_> {
    fn bytes(&self) -> usize {
        self.set.bytes() + self.explored.bytes() + (self.frontier.capacity() + self.next.capacity()) * 8
    }

    /// Vertices, and ends of edges of the kind.
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

    /// About how many edges the frontier has: as many as some of its vertices have, for each.
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
        // A vertex that edges only lead away from is in no set of those that are left.
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
