//! Shortest walks between two bound vertices.
//!
//! The search is breadth first from both ends; each step expands the smaller of the two levels as a whole. When level i
//! (from the first vertex) and level j (from the last) meet for the first time, every shortest walk has i + j edges and
//! passes exactly one vertex of both. Each side keeps the edges by which it first reached a vertex, and walks are
//! assembled from these edges.
//!
//! Walks from a vertex to itself are searched breadth first from one end: `circle` along directed edges, `loop_back`
//! along undirected ones. With a least length above 1 the first meeting may be too short. Then all walks are extended
//! level by level until one ends at the last vertex.
//!
//! The search takes no bottom-up steps, as `tidegraph_apl::searches` does. It expands only the smaller of two
//! levels; if both are large they meet after few edges, while a bottom-up step reads every vertex of the graph first.

use super::walk::{EdgeFilter, Follow};
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{Length, Op, Shortest, Slot};
use tidegraph_types::{Edge, Gui, Sid, Value};

/// Yields a row for each shortest walk.
pub(super) struct ShortestPath<'p> {
    input: Boxed<'p>,
    from: Slot,
    to: Slot,
    edges: Slot,
    search: Search<'p>,
    current: Option<(Batch, usize)>,
    /// Walks of the current row that were not yielded yet, in reverse order.
    walks: Vec<Vec<Edge>>,
    charged: usize,
}

impl<'p> ShortestPath<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::ShortestPath { from, to, direction, labels, length, which, edges, edge_filter, .. } = op
        else {
            return Err(Error::Plan("not a shortest path".to_owned()));
        };
        let forward = Follow::new(*direction, labels, true);
        let search = Search {
            backward: forward.reversed(),
            forward,
            length: *length,
            all: *which == Shortest::All,
            filter: edge_filter.as_ref().map(EdgeFilter::new),
            found: Expansion::default(),
            charged: 0,
        };
        let (from, to, edges) = (*from, *to, *edges);
        Ok(Self { input, from, to, edges, search, current: None, walks: vec![], charged: 0 })
    }
}

/// Returns the vertex at an end of a shortest path; `None` for null, from which no path leads.
pub(super) fn end_of_path(batch: &Batch, slot: Slot, row: usize) -> Result<Option<Gui>> {
    let Some(column) = batch.column(slot) else { return Ok(None) };
    match column.vertex(row) {
        Some(gui) => Ok(Some(gui)),
        None if column.is_null(row) => Ok(None),
        None => Err(Error::of_type("a shortest path", "a vertex", &column.get(row))),
    }
}

impl Operator for ShortestPath<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let (mut rows, mut lists) = (vec![], vec![]);
        loop {
            ctx.check()?;
            let Some((batch, row)) = &mut self.current else {
                let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
                self.current = Some((batch, 0));
                continue;
            };
            while rows.len() < want.rows.min(BATCH_ROWS) {
                if let Some(walk) = self.walks.pop() {
                    rows.push(*row as u32 - 1);
                    lists.push(Value::list(walk.into_iter().map(Value::Edge).collect()));
                    continue;
                }
                ctx.memory.release(std::mem::take(&mut self.charged));
                if *row >= batch.len {
                    break;
                }
                let (from, to) = (end_of_path(batch, self.from, *row)?, end_of_path(batch, self.to, *row)?);
                if let (Some(from), Some(to)) = (from, to) {
                    self.walks = self.search.run(batch, *row as u32, from, to, ctx)?;
                    self.walks.reverse();
                    let bytes = self.walks.iter().map(|walk| 24 + size_of_val(walk.as_slice())).sum();
                    ctx.memory.charge(bytes)?;
                    self.charged = bytes;
                }
                *row += 1;
            }
            let out = (!rows.is_empty()).then(|| {
                let mut out = batch.gather(&rows);
                out.set(self.edges, Column::Values(std::mem::take(&mut lists)));
                out
            });
            if *row >= batch.len && self.walks.is_empty() {
                self.current = None;
            }
            if out.is_some() {
                return Ok(out);
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.walks.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.input.feed(ctx, feed);
    }
}

/// The search for one pair of vertices.
struct Search<'p> {
    forward: Follow<'p>,
    backward: Follow<'p>,
    length: Length,
    all: bool,
    filter: Option<EdgeFilter<'p>>,
    found: Expansion,
    charged: usize,
}

/// The level that first reached a vertex, and the edges by which it did, each with
/// the vertex before. The start has none.
type Reached = (u32, SmallVec<[(Gui, Edge); 1]>);

/// The progress of the search from one end.
struct Side {
    reached: FxHashMap<Gui, Reached>,
    level: Vec<Gui>,
    depth: u32,
}

impl Side {
    fn new(start: Gui) -> Self {
        Self { reached: FxHashMap::from_iter([(start, (0, SmallVec::new()))]), level: vec![start], depth: 0 }
    }

    /// Returns all shortest ways from the start to a vertex, each in reverse.
    fn ways(&self, vertex: Gui, most: usize) -> Vec<Vec<Edge>> {
        let (mut done, mut open) = (vec![], vec![(vertex, vec![])]);
        while let Some((at, way)) = open.pop() {
            let before = self.reached.get(&at).map_or(&[][..], |(_, before)| before.as_slice());
            if before.is_empty() {
                done.push(way);
                if done.len() >= most {
                    break;
                }
                continue;
            }
            for (previous, edge) in before {
                let mut longer: Vec<Edge> = way.clone();
                longer.push(*edge);
                open.push((*previous, longer));
            }
        }
        done
    }
}

impl Search<'_> {
    fn run(
        &mut self,
        batch: &Batch,
        row: u32,
        from: Gui,
        to: Gui,
        ctx: &Context<'_>,
    ) -> Result<Vec<Vec<Edge>>> {
        let result = if self.length.min == 0 && from == to {
            Ok(vec![vec![]])
        } else if self.length.max == Some(0) {
            Ok(vec![])
        } else if self.length.min > 1 {
            self.walk_by_walk(batch, row, from, to, ctx)
        } else if from == to && self.forward.is_directed() {
            self.circle(batch, row, from, ctx)
        } else if from == to {
            self.loop_back(batch, row, from, ctx)
        } else {
            self.meet_in_the_middle(batch, row, from, to, ctx)
        };
        ctx.memory.release(std::mem::take(&mut self.charged));
        result
    }

    fn charge(&mut self, bytes: usize, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }

    /// Reads the edges at some vertices and calls `take` for each piece, with index of the vertex, edge and other end.
    /// `take` may stop the read.
    fn edges_of(
        &mut self,
        backward: bool,
        batch: &Batch,
        row: u32,
        frontier: &[Gui],
        ctx: &Context<'_>,
        mut take: impl FnMut(u32, Edge, Gui) -> bool,
    ) -> Result<usize> {
        let follow = if backward { &mut self.backward } else { &mut self.forward };
        if !follow.resolve(frontier, ctx) {
            return Ok(0);
        }
        let (mut cursor, mut taken) = (Some(Cursor::default()), 0);
        while let Some(from) = cursor {
            ctx.check()?;
            self.found.clear();
            cursor = ctx.view.expand(follow.request(4 * BATCH_ROWS), frontier, from, &mut self.found)?;
            let edges: Vec<Edge> =
                (0..self.found.len()).map(|index| self.found.edge(index, frontier)).collect();
            let passing = match &self.filter {
                Some(filter) => filter.passing(batch, &vec![row; edges.len()], edges.clone(), ctx)?,
                None => (0..edges.len() as u32).collect(),
            };
            for index in passing {
                let index = index as usize;
                taken += 1;
                if !take(self.found.row[index], edges[index], self.found.neighbour[index]) {
                    return Ok(taken);
                }
            }
        }
        Ok(taken)
    }

    fn meet_in_the_middle(
        &mut self,
        batch: &Batch,
        row: u32,
        from: Gui,
        to: Gui,
        ctx: &Context<'_>,
    ) -> Result<Vec<Vec<Edge>>> {
        let mut sides = [Side::new(from), Side::new(to)];
        let most = self.length.max.unwrap_or(u32::MAX);
        while sides[0].depth + sides[1].depth < most {
            let backward = sides[1].level.len() < sides[0].level.len();
            let (own, other) = match &mut sides {
                [first, last] if backward => (last, &*first),
                [first, last] => (first, &*last),
            };
            let level = std::mem::take(&mut own.level);
            own.depth += 1;
            let (depth, all) = (own.depth, self.all);
            let mut meetings: Vec<Gui> = vec![];
            let reached = &mut own.reached;
            let next = &mut own.level;
            let taken = self.edges_of(backward, batch, row, &level, ctx, |index, edge, neighbour| {
                let before = (level[index as usize], edge);
                match reached.entry(neighbour) {
                    Entry::Vacant(entry) => {
                        entry.insert((depth, SmallVec::from_iter([before])));
                        next.push(neighbour);
                        if other.reached.contains_key(&neighbour) {
                            meetings.push(neighbour);
                        }
                    }
                    Entry::Occupied(mut entry) if all && entry.get().0 == depth => {
                        entry.get_mut().1.push(before);
                    }
                    Entry::Occupied(_) => {}
                }
                all || meetings.is_empty()
            })?;
            if !meetings.is_empty() {
                return Ok(self.join(&sides, &meetings));
            }
            let fresh = sides[usize::from(backward)].level.len();
            if fresh == 0 {
                return Ok(vec![]);
            }
            let extra = if all { taken * size_of::<(Gui, Edge)>() } else { 0 };
            self.charge(fresh * 96 + extra, ctx)?;
        }
        Ok(vec![])
    }

    fn join(&self, sides: &[Side; 2], meetings: &[Gui]) -> Vec<Vec<Edge>> {
        let most = if self.all { usize::MAX } else { 1 };
        let mut walks = vec![];
        for meeting in meetings {
            let ends = sides[1].ways(*meeting, most);
            for mut start in sides[0].ways(*meeting, most) {
                start.reverse();
                for end in &ends {
                    walks.push(start.iter().chain(end).copied().collect());
                    if walks.len() >= most {
                        return walks;
                    }
                }
            }
        }
        walks
    }

    /// Finds the shortest walks from a vertex back to itself along directed edges. Such a walk passes no vertex twice,
    /// so a breadth-first search finds it; the start counts as not reached until an edge ends there.
    fn circle(&mut self, batch: &Batch, row: u32, start: Gui, ctx: &Context<'_>) -> Result<Vec<Vec<Edge>>> {
        let mut side = Side { reached: FxHashMap::default(), level: vec![start], depth: 0 };
        let most = self.length.max.unwrap_or(u32::MAX);
        while !side.level.is_empty() && side.depth < most {
            let level = std::mem::take(&mut side.level);
            side.depth += 1;
            let (depth, all) = (side.depth, self.all);
            let mut closing: Vec<(Gui, Edge)> = vec![];
            let (reached, next) = (&mut side.reached, &mut side.level);
            self.edges_of(false, batch, row, &level, ctx, |index, edge, neighbour| {
                let before = (level[index as usize], edge);
                if neighbour == start {
                    closing.push(before);
                    return all;
                }
                match reached.entry(neighbour) {
                    Entry::Vacant(entry) => {
                        entry.insert((depth, SmallVec::from_iter([before])));
                        next.push(neighbour);
                    }
                    Entry::Occupied(mut entry) if all && entry.get().0 == depth => {
                        entry.get_mut().1.push(before)
                    }
                    Entry::Occupied(_) => {}
                }
                true
            })?;
            let mut walks = vec![];
            for (previous, edge) in closing {
                for mut walk in side.ways(previous, if all { usize::MAX } else { 1 }) {
                    walk.reverse();
                    walk.push(edge);
                    walks.push(walk);
                }
            }
            if !walks.is_empty() {
                return Ok(walks);
            }
            self.charge(side.level.len() * 96, ctx)?;
        }
        Ok(vec![])
    }

    /// Finds the shortest walks from a vertex back to itself along edges in both directions, no edge twice: the
    /// smallest cycles through the vertex, each in both directions.
    ///
    /// Both halves of such a cycle are shortest ways from the start, and they begin with different edges. The search
    /// keeps the first edge of each vertex's ways (its branch), and finds the cycle where two branches touch: by an
    /// edge within a level, or at a vertex of the next level. Before that all ways to a vertex belong to one branch;
    /// otherwise there would be a smaller cycle.
    fn loop_back(
        &mut self,
        batch: &Batch,
        row: u32,
        start: Gui,
        ctx: &Context<'_>,
    ) -> Result<Vec<Vec<Edge>>> {
        let mut side = Side::new(start);
        let mut branches: FxHashMap<Gui, Sid> = FxHashMap::default();
        let (most, all) = (self.length.max.unwrap_or(u32::MAX), self.all);
        // A cycle is assembled from two ways from the start: the ends of the ways, and the edges between them.
        while !side.level.is_empty() && 2 * side.depth < most {
            let level = std::mem::take(&mut side.level);
            let depth = side.depth;
            side.depth += 1;
            let mut within: Vec<(Gui, Edge, Gui)> = vec![];
            let (reached, next, branches_now) = (&mut side.reached, &mut side.level, &mut branches);
            let taken = self.edges_of(false, batch, row, &level, ctx, |index, edge, neighbour| {
                let from = level[index as usize];
                let branch = branches_now.get(&from).copied().unwrap_or(edge.sid);
                match reached.entry(neighbour) {
                    Entry::Vacant(entry) => {
                        entry.insert((depth + 1, SmallVec::from_iter([(from, edge)])));
                        branches_now.insert(neighbour, branch);
                        next.push(neighbour);
                    }
                    Entry::Occupied(mut entry) => {
                        let known = branches_now.get(&neighbour).copied();
                        if entry.get().0 == depth {
                            // Only a loop ends at the start itself.
                            if known != Some(branch) && (from != neighbour || from == start) {
                                within.push((from, edge, neighbour));
                                return all;
                            }
                        } else if entry.get().0 == depth + 1 && (all || known != Some(branch)) {
                            entry.get_mut().1.push((from, edge));
                        }
                    }
                }
                true
            })?;
            let mut walks = vec![];
            for (from, edge, to) in within {
                self.close(&side, from, &[edge], to, &mut walks);
            }
            if walks.is_empty() && 2 * side.depth <= most {
                for meeting in &side.level {
                    let Some((_, before)) = side.reached.get(meeting) else { continue };
                    let branch = |(from, edge): &(Gui, Edge)| branches.get(from).copied().unwrap_or(edge.sid);
                    for first in before {
                        for last in before.iter().filter(|last| branch(last) != branch(first)) {
                            self.close(&side, first.0, &[first.1, last.1], last.0, &mut walks);
                        }
                    }
                }
            }
            if !walks.is_empty() {
                return Ok(walks);
            }
            let extra = if all { taken * size_of::<(Gui, Edge)>() } else { 0 };
            self.charge(side.level.len() * 128 + extra, ctx)?;
        }
        Ok(vec![])
    }

    /// Adds the walks that go from the start to `from`, along the edges `by`, and from `to` back to the start.
    fn close(&self, side: &Side, from: Gui, by: &[Edge], to: Gui, walks: &mut Vec<Vec<Edge>>) {
        let most = if self.all { usize::MAX } else { 1 };
        if walks.len() >= most {
            return;
        }
        let backs = side.ways(to, most);
        for mut way in side.ways(from, most) {
            way.reverse();
            way.extend_from_slice(by);
            walks.extend(backs.iter().map(|back| way.iter().chain(back).copied().collect()));
        }
    }

    /// Finds the shortest walks of a least length that the first meeting may miss, by extending all walks.
    fn walk_by_walk(
        &mut self,
        batch: &Batch,
        row: u32,
        from: Gui,
        to: Gui,
        ctx: &Context<'_>,
    ) -> Result<Vec<Vec<Edge>>> {
        let mut ends = vec![from];
        let mut walks: Vec<Vec<Edge>> = vec![vec![]];
        let mut depth = 0;
        while !walks.is_empty() && self.length.max.is_none_or(|max| depth < max) {
            depth += 1;
            let (mut next_ends, mut next_walks) = (vec![], vec![]);
            self.edges_of(false, batch, row, &ends, ctx, |index, edge, neighbour| {
                let walk = &walks[index as usize];
                if !walk.iter().any(|e| e.sid == edge.sid) {
                    let mut longer = Vec::with_capacity(walk.len() + 1);
                    longer.extend_from_slice(walk);
                    longer.push(edge);
                    next_ends.push(neighbour);
                    next_walks.push(longer);
                }
                true
            })?;
            self.charge(next_walks.len() * (32 + depth as usize * size_of::<Edge>()), ctx)?;
            if depth >= self.length.min {
                let most = if self.all { usize::MAX } else { 1 };
                let found: Vec<Vec<Edge>> = (next_ends.iter().zip(&next_walks))
                    .filter(|(end, _)| **end == to)
                    .map(|(_, walk)| walk.clone())
                    .take(most)
                    .collect();
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            (ends, walks) = (next_ends, next_walks);
        }
        Ok(vec![])
    }
}
