//! Walks of variable length in which no edge occurs twice.
//!
//! The search is depth first, by pieces. Level 0 is the input batch. A piece of about a batch of walks of one length
//! extends walks of the level above; it is yielded and extended itself before the next piece of the same length. So
//! memory is bounded by the length of the walks times a batch, however many walks there are. A walk holds its last edge
//! and the walk that it extends.

use super::expand::Frontier;
use super::walk::{EdgeFilter, Follow, holds_edge};
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use std::collections::VecDeque;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{Length, Op, Slot};
use tidegraph_types::{Edge, Gui, Sid, Token, Value};

/// Yields a row for each walk within a length.
pub(super) struct VarExpand<'p> {
    input: Boxed<'p>,
    from: Slot,
    follow: Follow<'p>,
    length: Length,
    edges: Option<Slot>,
    to: Slot,
    into: bool,
    filter: Option<EdgeFilter<'p>>,
    exclude: &'p [Slot],
    batch: Option<Batch>,
    levels: Vec<Level>,
    ready: VecDeque<Batch>,
    found: Expansion,
    charged: usize,
}

/// Walks of one length, and how far they have been extended.
#[derive(Default)]
struct Level {
    /// The last vertex of each walk.
    vertices: Vec<Gui>,
    /// The last edge; meaningless at level 0.
    last: Vec<Edge>,
    /// The walk of the level above that each walk extends; at level 0 the walk itself.
    parent: Vec<u32>,
    /// The row of the batch.
    row: Vec<u32>,
    /// Where extending continues.
    cursor: Cursor,
}

impl Level {
    fn bytes(&self) -> usize {
        self.vertices.len() * (size_of::<Gui>() + size_of::<Edge>() + 8)
    }

    fn push(&mut self, vertex: Gui, last: Edge, parent: u32, row: u32) {
        self.vertices.push(vertex);
        self.last.push(last);
        self.parent.push(parent);
        self.row.push(row);
    }

    fn keep(&mut self, kept: &[u32]) {
        self.vertices = kept.iter().map(|i| self.vertices[*i as usize]).collect();
        self.last = kept.iter().map(|i| self.last[*i as usize]).collect();
        self.parent = kept.iter().map(|i| self.parent[*i as usize]).collect();
        self.row = kept.iter().map(|i| self.row[*i as usize]).collect();
    }
}

const NO_EDGE: Edge = Edge { sid: Sid(0), source: Gui(0), target: Gui(0), label: Token(0) };

impl<'p> VarExpand<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::VarExpand { from, direction, labels, length, edges, to, into, edge_filter, exclude, .. } = op
        else {
            return Err(Error::Plan("not a variable length expand".to_owned()));
        };
        Ok(Self {
            input,
            from: *from,
            follow: Follow::new(*direction, labels, true),
            length: *length,
            edges: *edges,
            to: *to,
            into: *into,
            filter: edge_filter.as_ref().map(EdgeFilter::new),
            exclude,
            batch: None,
            levels: vec![],
            ready: VecDeque::new(),
            found: Expansion::default(),
            charged: 0,
        })
    }

    fn begin(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        let frontier = Frontier::of(&batch, self.from, "following a path")?;
        let mut level = Level::default();
        for (index, gui) in frontier.vertices().iter().enumerate() {
            level.push(*gui, NO_EDGE, index as u32, frontier.row(index as u32));
        }
        let possible = self.follow.resolve(frontier.vertices(), ctx);
        self.batch = Some(batch);
        self.levels.push(level);
        if self.length.min == 0 {
            self.emit(ctx)?;
        }
        if !possible || self.length.max == Some(0) || frontier.vertices().is_empty() {
            self.levels.clear();
        }
        Ok(())
    }

    /// Whether a walk of the deepest level holds an edge.
    fn holds_edge(&self, walk: usize, sid: Sid) -> bool {
        let mut walk = walk;
        for level in self.levels[1..].iter().rev() {
            if level.last[walk].sid == sid {
                return true;
            }
            walk = level.parent[walk] as usize;
        }
        false
    }

    /// Returns the next piece of walks that extend those of the deepest level; `None` if there are no more.
    fn extend(&mut self, ctx: &Context<'_>) -> Result<Option<Level>> {
        let Some(top) = self.levels.last() else { return Ok(None) };
        if top.cursor.row as usize >= top.vertices.len() {
            return Ok(None);
        }
        self.found.clear();
        if top.cursor == Cursor::default() {
            // Each level searches for the labels that the graph does not have yet at other vertices.
            self.follow.resolve(&top.vertices, ctx);
        }
        let request = self.follow.request(BATCH_ROWS);
        let next = ctx.view.expand(request, &top.vertices, top.cursor, &mut self.found)?;
        let mut level = Level::default();
        for index in 0..self.found.len() {
            let parent = self.found.row[index];
            let edge = self.found.edge(index, &top.vertices);
            let row = top.row[parent as usize];
            if !self.holds_edge(parent as usize, edge.sid) && !self.is_excluded(row, edge.sid) {
                level.push(self.found.neighbour[index], edge, parent, row);
            }
        }
        let end = Cursor { row: u32::MAX, ..Cursor::default() };
        if let Some(top) = self.levels.last_mut() {
            top.cursor = next.unwrap_or(end);
        }
        if let (Some(filter), Some(batch)) = (&self.filter, &self.batch) {
            let kept = filter.passing(batch, &level.row, level.last.clone(), ctx)?;
            level.keep(&kept);
        }
        Ok(Some(level))
    }

    fn is_excluded(&self, row: u32, sid: Sid) -> bool {
        self.batch.as_ref().is_some_and(|batch| holds_edge(batch, self.exclude, row, sid))
    }

    fn edge_list(&self, walk: usize) -> Value {
        let mut list = Vec::with_capacity(self.levels.len() - 1);
        let mut walk = walk;
        for level in self.levels[1..].iter().rev() {
            list.push(Value::Edge(level.last[walk]));
            walk = level.parent[walk] as usize;
        }
        list.reverse();
        Value::list(list)
    }

    /// Makes rows from the walks of the deepest level.
    fn emit(&mut self, ctx: &Context<'_>) -> Result<()> {
        let (Some(batch), Some(level)) = (&self.batch, self.levels.last()) else { return Ok(()) };
        let target = batch.column(self.to).filter(|_| self.into);
        let mut walks: Vec<usize> = Vec::with_capacity(level.vertices.len());
        for (walk, gui) in level.vertices.iter().enumerate() {
            let row = level.row[walk] as usize;
            let ends = match target {
                None => !self.into,
                Some(column) => match column.vertex(row) {
                    Some(wanted) => wanted == *gui,
                    None if column.is_null(row) => false,
                    None => return Err(Error::of_type("following a path", "a vertex", &column.get(row))),
                },
            };
            if ends {
                walks.push(walk);
            }
        }
        for piece in walks.chunks(BATCH_ROWS) {
            ctx.check()?;
            let rows: Vec<u32> = piece.iter().map(|walk| level.row[*walk]).collect();
            let mut out = batch.gather(&rows);
            if let Some(edges) = self.edges {
                out.set(edges, Column::Values(piece.iter().map(|walk| self.edge_list(*walk)).collect()));
            }
            if !self.into {
                out.set(self.to, Column::Vertices(piece.iter().map(|walk| level.vertices[*walk]).collect()));
            }
            self.ready.push_back(out);
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context<'_>) -> Result<()> {
        match self.extend(ctx)? {
            None => {
                if let Some(level) = self.levels.pop()
                    && !self.levels.is_empty()
                {
                    let bytes = level.bytes();
                    ctx.memory.release(bytes);
                    self.charged -= bytes;
                }
            }
            Some(level) if level.vertices.is_empty() => {}
            Some(level) => {
                let bytes = level.bytes();
                ctx.memory.charge(bytes)?;
                self.charged += bytes;
                self.levels.push(level);
                let depth = (self.levels.len() - 1) as u32;
                if depth >= self.length.min {
                    self.emit(ctx)?;
                }
                if self.length.max.is_some_and(|max| depth >= max) {
                    self.levels.pop();
                    ctx.memory.release(bytes);
                    self.charged -= bytes;
                }
            }
        }
        Ok(())
    }
}

impl Operator for VarExpand<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if !self.levels.is_empty() {
                self.step(ctx)?;
                continue;
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            self.begin(batch, ctx)?;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.levels.clear();
        self.ready.clear();
        self.batch = None;
        self.input.feed(ctx, feed);
    }
}
