//! Scans of which storage on other machines answers less than rows: groups of vertices, or the ends of their edges with
//! the numbers of edges.
//!
//! Storage may answer the same group or the same end several times; the aggregation above combines them. Where storage
//! cannot answer so, the operator yields the rows of its subplan: a group of one vertex, or an end of one edge.
//!
//! What must never happen: an answer from storage while the request has pending writes, or while it records what it
//! reads.

use super::scan::{Source, Vertices};
use super::scan_values::of_scan;
use super::walk::Follow;
use super::{Boxed, Feed, Operator, Pieces, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use tidegraph_apl::{
    Cursor, EndCounts, Expansion, GroupItem, Grouping, Groups, ScanCursor, VertexScan, Weight,
};
use tidegraph_plan::{Digest, DigestItem, EdgeStep, Op, Slot};
use tidegraph_types::{Gui, Str, Value};

/// Groups of one answer of a node.
const GROUPS: u32 = 4 * BATCH_ROWS as u32;
/// Ends of one answer of a node.
const ENDS: u32 = 64 * BATCH_ROWS as u32;
/// Ends after which rows are made of them.
const ENDS_KEPT: usize = 128 * BATCH_ROWS;
/// Ends of a batch: more than of other batches, since the next operator asks storage for each batch.
const BATCH_ENDS: usize = 8 * BATCH_ROWS;
/// Vertices whose edges are read one by one if they have too many ends.
const CHUNK: u32 = 256;
/// Bytes that are charged for the answers of all nodes to one request: for groups...
const GROUPS_BYTES: usize = 16 << 20;
/// ...and for ends, of which an answer has more.
const ENDS_BYTES: usize = 48 << 20;

/// A scan whose rows storage makes.
pub(super) struct DigestScan<'p> {
    source: Vertices<'p>,
    digest: &'p Digest,
    rows: Boxed<'p>,
    feed: Option<Feed>,
    slots: usize,
    state: State<'p>,
    charged: usize,
}

enum State<'p> {
    /// Nothing was decided yet.
    Begin,
    /// The subplan yields the rows.
    Rows,
    Groups(Box<GroupScan>),
    Ends(Box<EndScan<'p>>),
    Done,
}

impl<'p> DigestScan<'p> {
    pub(super) fn new(rows: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::DigestScan { filter, digest, .. } = op else {
            return Err(Error::Plan("not a scan that storage digests".to_owned()));
        };
        let source = Vertices::new(filter);
        Ok(Self { source, digest, rows, feed: None, slots: 0, state: State::Done, charged: 0 })
    }

    /// Decides who makes the rows.
    fn begin(&mut self, ctx: &Context<'_>) -> Result<State<'p>> {
        let Some(feed) = self.feed.take() else { return Ok(State::Done) };
        self.slots = feed.batch.columns.len();
        let is_able = feed.is_root() && ctx.view.may_digest();
        if is_able {
            if !self.source.begin(&feed.batch, 0, ctx)? {
                return Ok(State::Done);
            }
            let bytes = match self.digest {
                Digest::Groups { .. } => GROUPS_BYTES,
                Digest::Ends { .. } => ENDS_BYTES,
            };
            if self.source.unchecked.is_empty() && ctx.memory.charge(bytes).is_ok() {
                self.charged = bytes;
                let scan = self.source.scan.clone();
                return Ok(match self.digest {
                    Digest::Groups { .. } => match GroupScan::new(scan, self.digest, ctx) {
                        Some(scan) => State::Groups(Box::new(scan)),
                        None => State::Done,
                    },
                    Digest::Ends { .. } => match EndScan::new(scan, self.digest, ctx) {
                        Some(scan) => State::Ends(Box::new(scan)),
                        None => State::Done,
                    },
                });
            }
        }
        self.rows.feed(ctx, feed);
        Ok(State::Rows)
    }

    fn release(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        if let State::Groups(scan) = &mut self.state {
            scan.ready.clear(ctx);
        }
    }
}

impl Operator for DigestScan<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        ctx.check()?;
        if matches!(self.state, State::Begin) {
            self.state = self.begin(ctx)?;
        }
        let slots = self.slots;
        let batch = match &mut self.state {
            State::Rows => return self.rows.next(ctx, want),
            State::Groups(scan) => scan.next(slots, ctx, want)?,
            State::Ends(scan) => scan.next(slots, ctx)?,
            State::Begin | State::Done => None,
        };
        if batch.is_none() {
            self.release(ctx);
            self.state = State::Done;
        }
        Ok(batch)
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.release(ctx);
        self.state = State::Begin;
        self.feed = Some(feed);
    }
}

/// Where the values of a slot come from.
#[derive(Clone, Copy)]
enum Place {
    /// A column of the answer.
    Key(usize),
    Item(usize),
    /// The graph never had the property.
    Null,
    Zero,
}

/// A scan that is answered by groups.
struct GroupScan {
    scan: VertexScan,
    grouping: Grouping,
    places: Vec<(Slot, Place)>,
    cursor: Option<ScanCursor>,
    ready: Pieces,
}

impl GroupScan {
    /// Prepares a scan; `None` if every vertex stands for no row.
    fn new(scan: VertexScan, digest: &Digest, ctx: &Context<'_>) -> Option<Self> {
        let Digest::Groups { keys, items, steps, distinct } = digest else { return None };
        let token = |name: &Str| ctx.view.catalog().token(name);
        let mut grouping = Grouping::default();
        let mut places = Vec::with_capacity(keys.len() + items.len());
        for (slot, key) in keys {
            let place = match token(key) {
                Some(key) => {
                    grouping.keys.push(key);
                    Place::Key(grouping.keys.len() - 1)
                }
                None => Place::Null,
            };
            places.push((*slot, place));
        }
        for (slot, item) in items {
            let (item, otherwise) = match item {
                DigestItem::Rows => (Some(GroupItem::Rows), Place::Null),
                DigestItem::Values(key) => (token(key).map(GroupItem::Values), Place::Zero),
                DigestItem::Sum(key) => (token(key).map(GroupItem::Sum), Place::Null),
                DigestItem::Min(key) => (token(key).map(GroupItem::Min), Place::Null),
                DigestItem::Max(key) => (token(key).map(GroupItem::Max), Place::Null),
            };
            let place = match item {
                Some(item) => {
                    grouping.items.push(item);
                    Place::Item(grouping.items.len() - 1)
                }
                None => otherwise,
            };
            places.push((*slot, place));
        }
        if grouping.items.is_empty() {
            grouping.items.push(GroupItem::Rows);
        }
        let mut all = Vec::with_capacity(steps.len());
        for EdgeStep { direction, labels, loops_once } in steps {
            let mut follow = Follow::new(*direction, labels, *loops_once);
            if !follow.resolve(&[], ctx) {
                return None;
            }
            all.push(follow.request(usize::MAX).clone());
        }
        grouping.weight = Weight { steps: all, distinct: *distinct };
        let scan = VertexScan { max_rows: GROUPS, ..scan };
        let (cursor, ready) = (Some(ScanCursor::default()), Pieces::default());
        Some(Self { scan, grouping, places, cursor, ready })
    }

    fn next(&mut self, slots: usize, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.ready.next(want, ctx) {
                return Ok(Some(batch));
            }
            let Some(from) = self.cursor else { return Ok(None) };
            ctx.check()?;
            let mut groups = Groups::default();
            self.cursor = ctx.view.group_vertices(&self.scan, &self.grouping, from, &mut groups)?;
            if !groups.is_empty() {
                let batch = self.batch(groups, slots);
                let order = (0..batch.len as u32).collect();
                self.ready = Pieces::new(batch, order, ctx)?;
            }
        }
    }

    fn batch(&self, mut groups: Groups, slots: usize) -> Batch {
        let len = groups.len();
        let mut out = Batch::unbound(len, slots);
        for (slot, place) in &self.places {
            let values = match place {
                Place::Key(at) => std::mem::take(&mut groups.keys[*at]),
                Place::Item(at) => std::mem::take(&mut groups.items[*at]),
                Place::Null | Place::Zero => {
                    let value = if matches!(place, Place::Zero) { Value::Long(0) } else { Value::Null };
                    out.set(*slot, Column::Constant(value, len));
                    continue;
                }
            };
            let values = values.into_iter().map(|mut value| {
                of_scan(&mut value, false);
                value
            });
            out.set(*slot, Column::Values(values.collect()));
        }
        out
    }
}

/// A scan that is answered by the ends of edges.
struct EndScan<'p> {
    scan: VertexScan,
    follow: Follow<'p>,
    to: Slot,
    edges: Slot,
    loops: Slot,
    cursor: Option<ScanCursor>,
    /// Vertices whose edges are read one by one, and where to continue in them.
    chunk: Option<(Vec<Gui>, Cursor)>,
    /// Ends of which rows are made, from this index on.
    ready: EndCounts,
    at: usize,
}

impl<'p> EndScan<'p> {
    /// Prepares a scan; `None` if no vertex has such an edge.
    fn new(scan: VertexScan, digest: &'p Digest, ctx: &Context<'_>) -> Option<Self> {
        let Digest::Ends { step: EdgeStep { direction, labels, loops_once }, to, edges, loops } = digest
        else {
            return None;
        };
        let mut follow = Follow::new(*direction, labels, *loops_once).neighbours_only();
        if !follow.resolve(&[], ctx) {
            return None;
        }
        let scan = VertexScan { max_rows: ENDS, ..scan };
        let (cursor, ready) = (Some(ScanCursor::default()), EndCounts::default());
        let (to, edges, loops) = (*to, *edges, *loops);
        Some(Self { scan, follow, to, edges, loops, cursor, chunk: None, ready, at: 0 })
    }

    fn next(&mut self, slots: usize, ctx: &Context<'_>) -> Result<Option<Batch>> {
        if self.at >= self.ready.len() {
            (self.ready, self.at) = (EndCounts::default(), 0);
            while self.ready.len() < ENDS_KEPT && (self.chunk.is_some() || self.cursor.is_some()) {
                ctx.check()?;
                self.read(ctx)?;
            }
        }
        let rows = self.at..self.ready.len().min(self.at + BATCH_ENDS);
        if rows.is_empty() {
            return Ok(None);
        }
        self.at = rows.end;
        let long = |count: &u64| Value::Long(i64::try_from(*count).unwrap_or(i64::MAX));
        let mut out = Batch::unbound(rows.len(), slots);
        out.set(self.to, Column::Vertices(self.ready.ends[rows.clone()].to_vec()));
        out.set(self.edges, Column::Values(self.ready.edges[rows.clone()].iter().map(long).collect()));
        out.set(self.loops, Column::Values(self.ready.loops[rows].iter().map(long).collect()));
        Ok(Some(out))
    }

    /// Adds the ends of some more edges.
    fn read(&mut self, ctx: &Context<'_>) -> Result<()> {
        if let Some((vertices, from)) = self.chunk.take() {
            let mut found = Expansion::default();
            let next = ctx.view.expand(self.follow.request(BATCH_ENDS), &vertices, from, &mut found)?;
            for (row, end) in found.row.iter().zip(&found.neighbour) {
                self.ready.add(*end, 1, u64::from(vertices[*row as usize] == *end));
            }
            self.chunk = next.map(|next| (vertices, next));
            return Ok(());
        }
        let Some(from) = self.cursor else { return Ok(()) };
        let request = self.follow.request(usize::MAX);
        match ctx.view.count_ends(&self.scan, request, from, &mut self.ready) {
            Ok(next) => self.cursor = next,
            Err(Error::Storage(tidegraph_apl::Error::TooLarge { .. })) => {
                let (scan, mut vertices) = (VertexScan { max_rows: CHUNK, ..self.scan.clone() }, vec![]);
                self.cursor = ctx.view.digested_vertices(&scan, from, &mut vertices)?;
                self.chunk = Some((vertices, Cursor::default())).filter(|(vertices, _)| !vertices.is_empty());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
