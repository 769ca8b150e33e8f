//! The ends of walks of variable length, each once for a row: a breadth-first search.
//!
//! There may be exponentially more walks than ends. If nobody sees the edges of a walk, nor how many walks lead to an end,
//! the search visits each vertex once. An end within the length is one that a walk without a repeated edge reaches,
//! because the shortest walk repeats nothing.
//!
//! The start itself is an end if a walk leads back to it. Along directed edges that is the first edge into the start.
//! Along undirected edges it is the shortest cycle through the start: an edge outside of the search tree that joins two
//! of the tree's branches below the start.
//!
//! Several rows are searched at once, so that storage is asked for whole levels. Fewer are, down to one, if their
//! searches visit many vertices.

use super::expand::Frontier;
use super::walk::{EdgeFilter, Follow, holds_edge};
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{Length, Op, Slot};
use tidegraph_types::{Gui, Sid};

/// Most rows that are searched at once.
const MOST_ROWS: usize = 64;
/// Visited vertices of a search of several rows from which on the next search has fewer rows.
const MANY_VISITED: usize = 1 << 16;
/// Branch of the start in the search tree.
const ROOT: u32 = u32::MAX;

/// Yields a row for each end within a length.
pub(super) struct Reach<'p> {
    input: Boxed<'p>,
    from: Slot,
    follow: Follow<'p>,
    length: Length,
    to: Slot,
    into: bool,
    filter: Option<EdgeFilter<'p>>,
    exclude: &'p [Slot],
    current: Option<(Batch, Frontier)>,
    /// The next start of the batch.
    next_start: usize,
    rows_at_once: usize,
    search: Search,
    found: Expansion,
    charged: usize,
}

/// The search from some rows of a batch.
#[derive(Default)]
struct Search {
    visited: FxHashMap<(u32, Gui), Visit>,
    /// Vertices of the level that is extended, and of the next one, with their rows.
    level: Vec<(u32, Gui)>,
    next: Vec<(u32, Gui)>,
    /// Where extending continues; `None`: at the end of the level.
    cursor: Option<Cursor>,
    depth: u32,
    starts: FxHashMap<u32, Start>,
    /// Ends that were not yielded yet.
    ends: Vec<(u32, Gui)>,
}

/// How the search reached a vertex.
#[derive(Clone, Copy)]
struct Visit {
    depth: u32,
    branch: u32,
    edge: Option<Sid>,
}

/// The search of one row.
struct Start {
    vertex: Gui,
    /// Whether the start is an end.
    is_end: bool,
    /// The one vertex that is wanted as an end.
    wanted: Option<Gui>,
    /// Whether the one vertex was found.
    is_over: bool,
    branches: u32,
}

impl Start {
    /// Whether an end is wanted.
    fn wants(&mut self, end: Gui) -> bool {
        match self.wanted {
            Some(wanted) if wanted == end => !std::mem::replace(&mut self.is_over, true),
            Some(_) => false,
            None => true,
        }
    }
}

impl<'p> Reach<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::VarExpand { from, direction, labels, length, to, into, edge_filter, exclude, .. } = op else {
            return Err(Error::Plan("not a variable length expand".to_owned()));
        };
        let follow = Follow::new(*direction, labels, true);
        let by_edges = edge_filter.is_some() || !exclude.is_empty() || !follow.is_directed();
        Ok(Self {
            input,
            from: *from,
            follow: if by_edges { follow } else { follow.neighbours_only() },
            length: *length,
            to: *to,
            into: *into,
            filter: edge_filter.as_ref().map(EdgeFilter::new),
            exclude,
            current: None,
            next_start: 0,
            rows_at_once: 1,
            search: Search::default(),
            found: Expansion::default(),
            charged: 0,
        })
    }

    /// Begins the search from the next rows of the batch; returns `false` if there are no more.
    fn begin(&mut self, ctx: &Context<'_>) -> Result<bool> {
        let visited = self.search.visited.len();
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.search = Search::default();
        let Some((batch, frontier)) = &self.current else { return Ok(false) };
        let most = if ctx.view.is_far() { BATCH_ROWS } else { MOST_ROWS };
        self.rows_at_once = if visited > MANY_VISITED {
            (self.rows_at_once / 4).max(1)
        } else {
            (self.rows_at_once * 2).min(most)
        };
        let end = frontier.vertices().len().min(self.next_start + self.rows_at_once);
        let starts = self.next_start..end;
        self.next_start = end;
        if starts.is_empty() {
            return Ok(false);
        }
        for index in starts {
            let (row, vertex) = (frontier.row(index as u32), frontier.vertices()[index]);
            let wanted = if self.into { wanted(batch, self.to, row)? } else { None };
            let is_over = self.into && wanted.is_none();
            let mut start = Start { vertex, is_end: self.length.min == 0, wanted, is_over, branches: 0 };
            if is_over {
                continue;
            }
            if start.is_end && start.wants(vertex) {
                self.search.ends.push((row, vertex));
            }
            if !start.is_over && self.length.max != Some(0) {
                self.search.level.push((row, vertex));
            }
            self.search.visited.insert((row, vertex), Visit { depth: 0, branch: ROOT, edge: None });
            self.search.starts.insert(row, start);
        }
        self.search.cursor = Some(Cursor::default());
        Ok(true)
    }

    /// Extends a piece of the level.
    fn step(&mut self, ctx: &Context<'_>) -> Result<()> {
        let (Some((batch, _)), Some(cursor)) = (&self.current, self.search.cursor) else { return Ok(()) };
        let vertices: Vec<Gui> = self.search.level.iter().map(|(_, vertex)| *vertex).collect();
        if vertices.is_empty() || !self.follow.resolve(&vertices, ctx) {
            self.search.level.clear();
            self.search.next.clear();
            self.search.cursor = None;
            return Ok(());
        }
        self.found.clear();
        let next = ctx.view.expand(self.follow.request(BATCH_ROWS), &vertices, cursor, &mut self.found)?;
        let mut kept: Vec<u32> = (0..self.found.len() as u32).collect();
        if !self.exclude.is_empty() {
            kept.retain(|index| {
                let index = *index as usize;
                let (row, _) = self.search.level[self.found.row[index] as usize];
                !holds_edge(batch, self.exclude, row, self.found.sid[index])
            });
        }
        if let Some(filter) = &self.filter {
            let rows: Vec<u32> = kept
                .iter()
                .map(|index| self.search.level[self.found.row[*index as usize] as usize].0)
                .collect();
            let edges = kept.iter().map(|index| self.found.edge(*index as usize, &vertices)).collect();
            kept =
                filter.passing(batch, &rows, edges, ctx)?.into_iter().map(|at| kept[at as usize]).collect();
        }
        let before = self.search.visited.len();
        for index in kept {
            self.search.reach(&self.found, index as usize, self.follow.is_directed(), self.length.max);
        }
        // A visit takes its entry in the map, one in a level, and one among the ends.
        let bytes = (self.search.visited.len() - before) * (2 * size_of::<((u32, Gui), Visit)>() + 32);
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        self.search.cursor = next;
        if next.is_none() {
            self.search.descend(self.length.max);
        }
        Ok(())
    }

    /// Yields ends.
    fn take(&mut self, limit: usize) -> Option<Batch> {
        let (batch, _) = self.current.as_ref()?;
        let at = self.search.ends.len().saturating_sub(limit);
        let ends = self.search.ends.split_off(at);
        if ends.is_empty() {
            return None;
        }
        let rows: Vec<u32> = ends.iter().map(|(row, _)| *row).collect();
        let mut out = batch.gather(&rows);
        if !self.into {
            out.set(self.to, Column::Vertices(ends.into_iter().map(|(_, end)| end).collect()));
        }
        Some(out)
    }
}

/// Returns the vertex that a row has bound as the end; `None` if it is null.
fn wanted(batch: &Batch, slot: Slot, row: u32) -> Result<Option<Gui>> {
    let Some(column) = batch.column(slot) else { return Ok(None) };
    match column.vertex(row as usize) {
        None if !column.is_null(row as usize) => {
            Err(Error::of_type("following a path", "a vertex", &column.get(row as usize)))
        }
        vertex => Ok(vertex),
    }
}

impl Search {
    /// Follows an edge from a vertex of the level.
    fn reach(&mut self, found: &Expansion, index: usize, is_directed: bool, max: Option<u32>) {
        let (row, from) = self.level[found.row[index] as usize];
        let Some(start) = self.starts.get_mut(&row).filter(|start| !start.is_over) else { return };
        let to = found.neighbour[index];
        let edge = (!is_directed).then(|| found.sid[index]);
        let Some(before) = self.visited.get(&(row, from)).copied() else { return };
        match self.visited.entry((row, to)) {
            Entry::Vacant(vacant) => {
                let branch = if before.branch == ROOT {
                    start.branches += 1;
                    start.branches
                } else {
                    before.branch
                };
                vacant.insert(Visit { depth: before.depth + 1, branch, edge });
                self.next.push((row, to));
                if start.wants(to) {
                    self.ends.push((row, to));
                }
            }
            Entry::Occupied(_) if start.is_end => {}
            Entry::Occupied(there) => {
                let there = there.get();
                let closes = if is_directed {
                    to == start.vertex
                } else {
                    let is_of_tree = edge == before.edge || edge == there.edge;
                    let is_loop = from == to && to == start.vertex;
                    let length = before.depth + there.depth + 1;
                    is_loop
                        || !is_of_tree && before.branch != there.branch && max.is_none_or(|max| length <= max)
                };
                if closes {
                    start.is_end = true;
                    if start.wants(start.vertex) {
                        self.ends.push((row, start.vertex));
                    }
                }
            }
        }
    }

    /// Goes on with the next level.
    fn descend(&mut self, max: Option<u32>) {
        self.depth += 1;
        self.level = std::mem::take(&mut self.next);
        self.level.retain(|(row, _)| self.starts.get(row).is_some_and(|start| !start.is_over));
        if max.is_some_and(|max| self.depth >= max) {
            self.level.clear();
        }
        self.cursor = (!self.level.is_empty()).then(Cursor::default);
    }
}

impl Operator for Reach<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(out) = self.take(want.rows.min(BATCH_ROWS)) {
                return Ok(Some(out));
            }
            if self.search.cursor.is_some() {
                self.step(ctx)?;
                continue;
            }
            if self.current.is_some() {
                if !self.begin(ctx)? {
                    self.current = None;
                }
                continue;
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let frontier = Frontier::of(&batch, self.from, "following a path")?;
            self.current = Some((batch, frontier));
            self.next_start = 0;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.search = Search::default();
        self.current = None;
        self.input.feed(ctx, feed);
    }
}
