//! Shortest walks between two bound vertices.
//!
//! Breadth first from both ends, a whole level at a time, always the smaller level. When the levels i (from the first
//! vertex) and j (from the last) meet for the first time, every shortest walk has i + j edges and passes exactly one
//! vertex of both. Each side remembers by which edges a vertex was first reached; walks are put together from these.
//!
//! Walks from a vertex to itself are searched breadth first from one end (`circle` along directed edges, `loop_back` along
//! undirected ones). Least lengths above 1 are no matter of first meetings: there all walks are prolonged level by level
//! until one ends where it must.
//!
//! Steps up, as [`tidegraph_apl::breadth_first`] takes them, are not taken: only the smaller of two levels is expanded, and
//! where both are large they meet after few edges, while a step up begins with a look at every vertex of the graph.

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

/// A row for each shortest walk.
pub(super) struct ShortestPath<'p> {
    input: Boxed<'p>,
    from: Slot,
    to: Slot,
    edges: Slot,
    search: Search<'p>,
    current: Option<(Batch, usize)>,
    /// Walks of the row at hand that were not yielded yet, reversed.
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

    fn vertex(batch: &Batch, slot: Slot, row: usize) -> Result<Option<Gui>> {
        let Some(column) = batch.column(slot) else { return Ok(None) };
        match column.vertex(row) {
            Some(gui) => Ok(Some(gui)),
            None if column.is_null(row) => Ok(None),
            None => Err(Error::of_type("a shortest path", "a vertex", &column.get(row))),
        }
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
                let (from, to) = (Self::vertex(batch, self.from, *row)?, Self::vertex(batch, self.to, *row)?);
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

/// In which level a vertex was first reached, and by which edges, with the vertex before; the start has none.
type Reached = (u32, SmallVec<[(Gui, Edge); 1]>);

/// How far a side has come.
struct Side {
    reached: FxHashMap<Gui, Reached>,
    level: Vec<Gui>,
    depth: u32,
}

impl Side {
    fn new(start: Gui) -> Self {
        Self { reached: FxHashMap::from_iter([(start, (0, SmallVec::new()))]), level: vec![start], depth: 0 }
    }

    /// All ways from the start to a vertex, each from the vertex back.
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

    /// The edges at some vertices: index into them, edge, other end. Calls `take` piece by piece; it may stop.
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

    /// Shortest walks from a vertex back to it along directed edges. Such a walk passes no vertex twice, so breadth first
    /// finds it; the start counts as not reached until an edge ends there.
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

    /// Shortest walks from a vertex back to it along edges in both directions, no edge twice: the smallest cycles through
    /// it, each in both directions.
    ///
    /// Both halves of such a cycle are shortest ways from the start, and they begin with different edges. So breadth
    /// first, with the first edge of each vertex's ways (its branch), finds it where two branches touch: by an edge
    /// within a level, or at a vertex of the next one. Before that all ways to a vertex are of one branch; else there
    /// was a smaller cycle.
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
        // A cycle is put together from two ways from the start: ends of the ways, and the edges between them.
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
                            // At the start itself only a loop ends.
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

    /// Adds the walks from the start to a vertex, by some edges, and from another vertex back to the start.
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

    /// Shortest walks of at least so many edges that first meetings do not find them: all walks are prolonged.
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
