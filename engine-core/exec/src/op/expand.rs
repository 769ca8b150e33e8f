//! One step along edges.
//!
//! The frontier is a whole input batch. Storage answers in pieces of about as many rows as the caller wants, so that
//! the first few edges of a hub are cheap.

use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use std::sync::Arc;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{Op, Slot, TopEdges};
use tidegraph_types::Gui;

/// Edges per call if only the first by a property are wanted.
const TOP_SCAN_ROWS: usize = 8 * BATCH_ROWS;
/// Rows per call to storage on other machines, if all rows are wanted: a round trip takes longer than filling a batch
/// of the usual size.
const FAR_ROWS: usize = 8 * BATCH_ROWS;
/// Largest number of first edges for which storage selects them.
const MAX_TOP: u64 = BATCH_ROWS as u64;

/// Yields a row for each edge at a vertex.
pub(super) struct Expand<'p> {
    input: Boxed<'p>,
    from: Slot,
    follow: Follow<'p>,
    edge: Option<Slot>,
    to: Option<Slot>,
    into: bool,
    keep: Option<&'p [Slot]>,
    current: Option<(Batch, Frontier, Cursor)>,
    found: Expansion,
    /// Set if only the first edges by a property are used; then with their number, once it is computed.
    top: Option<(TopEdges<'p>, Option<u64>)>,
}

/// Vertices to expand, and their rows in the batch.
pub(super) enum Frontier {
    /// The vertices of this column, one in every row.
    Column(Arc<Column>),
    /// Vertices and their rows.
    Rows(Vec<Gui>, Vec<u32>),
}

impl Frontier {
    /// Returns the vertices of a slot, without the rows where it is null.
    pub(super) fn of(batch: &Batch, slot: Slot, place: &'static str) -> Result<Self> {
        let Some(column) = batch.column(slot) else { return Ok(Self::Rows(vec![], vec![])) };
        if matches!(&**column, Column::Vertices(_)) {
            return Ok(Self::Column(Arc::clone(column)));
        }
        let (mut guis, mut rows) = (vec![], vec![]);
        for row in 0..batch.len {
            match column.vertex(row) {
                Some(gui) => {
                    guis.push(gui);
                    rows.push(row as u32);
                }
                None if column.is_null(row) => {}
                None => return Err(Error::of_type(place, "a vertex", &column.get(row))),
            }
        }
        Ok(Self::Rows(guis, rows))
    }

    pub(super) fn vertices(&self) -> &[Gui] {
        match self {
            Self::Column(column) => match &**column {
                Column::Vertices(guis) => guis,
                _ => &[],
            },
            Self::Rows(guis, _) => guis,
        }
    }

    /// Returns the row of the batch for a row of the frontier.
    pub(super) fn row(&self, index: u32) -> u32 {
        match self {
            Self::Column(_) => index,
            Self::Rows(_, rows) => rows[index as usize],
        }
    }
}

impl<'p> Expand<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::Expand { from, direction, labels, edge, to, into, loops_once, keep, .. } = op else {
            return Err(Error::Plan("not an expand".to_owned()));
        };
        let follow = Follow::new(*direction, labels, *loops_once);
        Ok(Self {
            input,
            from: *from,
            follow: if edge.is_none() { follow.neighbours_only() } else { follow },
            edge: *edge,
            to: *to,
            into: *into,
            keep: keep.as_deref(),
            current: None,
            found: Expansion::default(),
            top: None,
        })
    }

    /// Restricts the expand to the first edges by a property; it may still yield others.
    pub(super) fn only_top(self, top: TopEdges<'p>) -> Self {
        Self { top: Some((top, None)), ..self }
    }

    /// Returns which first edges to ask storage for; `None` for all edges, if the graph does not have the key or too
    /// many edges are wanted.
    fn wanted(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<Option<tidegraph_apl::TopEdges>> {
        let Some((top, count)) = &mut self.top else { return Ok(None) };
        let count = match count {
            Some(count) => *count,
            None => {
                let skip = top.skip.map_or(Ok(0), |skip| compute::count("skip", skip, ctx))?;
                let limit = compute::count("limit", top.limit, ctx)?;
                *count.insert(skip.saturating_add(limit))
            }
        };
        let Some(key) = ctx.view.catalog().token(top.key) else { return Ok(None) };
        let (count, descending) = (u32::try_from(count).unwrap_or(u32::MAX), top.descending);
        // The slice above applies to each origin by itself.
        let each = batch.origin.is_some();
        Ok((u64::from(count) < MAX_TOP).then_some(tidegraph_apl::TopEdges { key, descending, count, each }))
    }

    /// Drops the edges that do not end at the vertex that the row already has.
    fn retain_into(&mut self, batch: &Batch, frontier: &Frontier) -> Result<()> {
        let Some(to) = self.to.filter(|_| self.into) else { return Ok(()) };
        let Some(column) = batch.column(to) else {
            self.found.clear();
            return Ok(());
        };
        let mut result = Ok(());
        self.found.retain(|row, neighbour| {
            let row = frontier.row(row) as usize;
            match column.vertex(row) {
                Some(gui) => gui == neighbour,
                None => {
                    if !column.is_null(row) {
                        result = Err(Error::of_type("following an edge", "a vertex", &column.get(row)));
                    }
                    false
                }
            }
        });
        result
    }

    fn output(&self, batch: &Batch, frontier: &Frontier) -> Batch {
        let mapped: Vec<u32>;
        let rows: &[u32] = match frontier {
            Frontier::Column(_) => &self.found.row,
            Frontier::Rows(..) => {
                mapped = self.found.row.iter().map(|row| frontier.row(*row)).collect();
                &mapped
            }
        };
        let mut out = match self.keep {
            Some(keep) => batch.gather_slots(rows, keep),
            None => batch.gather(rows),
        };
        if let Some(edge) = self.edge {
            let vertices = frontier.vertices();
            let edges = (0..self.found.len()).map(|index| self.found.edge(index, vertices)).collect();
            out.set(edge, Column::Edges(edges));
        }
        if let Some(to) = self.to.filter(|to| !self.into || out.column(*to).is_none()) {
            out.set(to, Column::Vertices(self.found.neighbour.clone()));
        }
        out
    }
}

impl Operator for Expand<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some((batch, frontier, mut cursor)) = self.current.take() else {
                let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
                let frontier = Frontier::of(&batch, self.from, "following an edge")?;
                if self.follow.resolve(frontier.vertices(), ctx) && !frontier.vertices().is_empty() {
                    self.current = Some((batch, frontier, Cursor::default()));
                }
                continue;
            };
            let vertices = frontier.vertices();
            // Skips vertices whose rows are no longer wanted, also in the middle of their edges.
            if want.done.is_some() && cursor != Cursor::default() {
                while (cursor.row as usize) < vertices.len()
                    && !want.wants(batch.origin_of(frontier.row(cursor.row) as usize))
                {
                    cursor = Cursor { row: cursor.row + 1, ..Cursor::default() };
                }
                if cursor.row as usize >= vertices.len() {
                    continue;
                }
            }
            let rows = if self.into { BATCH_ROWS } else { want.rows.min(BATCH_ROWS) };
            let rows = if rows == BATCH_ROWS && ctx.view.is_far() { FAR_ROWS } else { rows };
            self.found.clear();
            let next = match self.wanted(&batch, ctx)? {
                Some(top) => {
                    let request = self.follow.request(TOP_SCAN_ROWS);
                    ctx.view.top_edges(request, &top, vertices, cursor, &mut self.found)?
                }
                None => ctx.view.expand(self.follow.request(rows), vertices, cursor, &mut self.found)?,
            };
            self.retain_into(&batch, &frontier)?;
            let out = (!self.found.is_empty()).then(|| self.output(&batch, &frontier));
            if let Some(next) = next {
                self.current = Some((batch, frontier, next));
            }
            if out.is_some() {
                return Ok(out);
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.input.feed(ctx, feed);
    }
}
