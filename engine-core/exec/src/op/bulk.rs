//! One row of rows that are identical in some slots, with a weight.
//!
//! With a weight, rows are read until the input ends or an eighth of the memory that is left is full, and then yielded with
//! their weights. Without one, a row passes at once unless an identical one did. Merging is never needed for the answer to be
//! right: where few rows are identical, the next ones pass without a comparison, and what does not fit is forgotten.
//!
//! *Identical* is stricter than equivalent: the integer 1 and the float 1.0 are told apart by later operators.
//!
//! What must never happen: a weight that overflows passes for a right one; rows of different origins become one.

use super::buffer::{Buffer, Pieces};
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::value;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_plan::{Op, Slot};
use tidegraph_types::{Gui, Path, Str, Symbol, Value};

/// Rows after which it is looked at how many were identical...
const TRIED: u64 = 4 * BATCH_ROWS as u64;
/// ...and if fewer than one out of this many was...
const WORTH_MERGING: u64 = 8;
/// ...this many rows pass without a comparison.
const SKIPPED: u64 = 16 * TRIED;
/// The part of the memory that is left that merged rows may take.
const PART: u64 = 8;
/// Bytes of an entry of a table, beyond what its key holds.
const ENTRY_BYTES: usize = 48;

/// A value as far as it is compared. Kinds that are not here are never identical.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Null,
    Unbound,
    Bool(bool),
    /// An integer and its width in bits.
    Whole(u8, i64),
    /// The bits of a float and its width.
    Float(u8, u64),
    Text(Str),
    Symbol(Symbol),
    Vertex(Gui),
    Edge(tidegraph_types::Sid),
    /// Objects with their labels.
    Path(Box<[Labelled]>),
}

impl Part {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Unbound => Self::Unbound,
            Value::Bool(v) => Self::Bool(*v),
            Value::Byte(v) => Self::Whole(8, i64::from(*v)),
            Value::Short(v) => Self::Whole(16, i64::from(*v)),
            Value::Int(v) => Self::Whole(32, i64::from(*v)),
            Value::Long(v) => Self::Whole(64, *v),
            Value::Float(v) => Self::Float(32, u64::from(v.to_bits())),
            Value::Double(v) => Self::Float(64, v.to_bits()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Symbol(symbol) => Self::Symbol(*symbol),
            Value::Vertex(gui) => Self::Vertex(*gui),
            Value::Edge(edge) => Self::Edge(edge.sid),
            Value::Path(path) => Self::Path(parts_of(path)?),
            _ => return None,
        })
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Path(parts) => parts.len() * size_of::<Labelled>(),
            _ => 0,
        }
    }
}

/// An object of a path with its labels.
type Labelled = (Part, Vec<Str>);

fn parts_of(path: &Path) -> Option<Box<[Labelled]>> {
    let labels = |at: usize| path.labels.get(at).cloned().unwrap_or_default();
    path.objects.iter().enumerate().map(|(at, object)| Some((Part::of(object)?, labels(at)))).collect()
}

type Parts = SmallVec<[Part; 2]>;

/// Rows by what is compared, each with its number.
#[derive(Default)]
struct Table {
    /// A single vertex, the common case.
    vertices: FxHashMap<(u32, Gui), u32>,
    others: FxHashMap<(u32, Parts), u32>,
    charged: usize,
}

impl Table {
    /// Returns the number of the row that is identical to this one. Otherwise gives it the number `next`, if there is memory,
    /// and returns `None`.
    fn find(
        &mut self,
        columns: &[Arc<Column>],
        row: usize,
        origin: u32,
        next: u32,
        ctx: &Context<'_>,
    ) -> Option<u32> {
        if let [column] = columns
            && let Some(gui) = column.vertex(row)
        {
            let key = (origin, gui);
            let known = self.vertices.get(&key).copied();
            if known.is_none() && ctx.memory.charge(ENTRY_BYTES).is_ok() {
                self.charged += ENTRY_BYTES;
                self.vertices.insert(key, next);
            }
            return known;
        }
        let parts: Parts = columns.iter().map(|column| Part::of(&column.get(row))).collect::<Option<_>>()?;
        let bytes =
            ENTRY_BYTES + parts.iter().map(|part| size_of::<Part>() + part.heap_bytes()).sum::<usize>();
        let key = (origin, parts);
        let known = self.others.get(&key).copied();
        if known.is_none() && ctx.memory.charge(bytes).is_ok() {
            self.charged += bytes;
            self.others.insert(key, next);
        }
        known
    }

    fn clear(&mut self, ctx: &Context<'_>) {
        self.vertices.clear();
        self.others.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

/// Yields one of identical rows.
pub(super) struct Bulk<'p> {
    input: Boxed<'p>,
    by: &'p [Slot],
    weight: Option<Slot>,
    over_rounds: bool,
    table: Table,
    /// Bytes that the table and the rows may take, since they were empty last.
    share: usize,
    rows: Buffer,
    weights: Vec<i64>,
    ready: Option<Pieces>,
    /// Rows that were compared, and those of them that were identical to another one, since the last look.
    tried: u64,
    met: u64,
    /// Rows that pass without a comparison.
    skip: u64,
    ended: bool,
}

impl<'p> Bulk<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::Bulk { by, weight, over_rounds, .. } = op else {
            return Err(Error::Plan("not a bulk".to_owned()));
        };
        Ok(Self {
            input,
            by,
            weight: *weight,
            over_rounds: *over_rounds,
            table: Table::default(),
            share: 0,
            rows: Buffer::default(),
            weights: vec![],
            ready: None,
            tried: 0,
            met: 0,
            skip: 0,
            ended: false,
        })
    }

    fn columns(&self, batch: &Batch) -> SmallVec<[Arc<Column>; 4]> {
        let unbound = || Arc::new(Column::Constant(Value::Unbound, batch.len));
        self.by.iter().map(|slot| batch.column(*slot).cloned().unwrap_or_else(unbound)).collect()
    }

    /// Whether it is worth comparing the next rows.
    fn is_worth_it(&mut self) -> bool {
        if self.over_rounds || self.tried < TRIED {
            return true;
        }
        let worth = self.met * WORTH_MERGING >= self.tried;
        (self.tried, self.met) = (0, 0);
        if !worth {
            self.skip = SKIPPED;
        }
        worth
    }

    /// Begins a table if there is none, and returns whether it is full.
    fn is_full(&mut self, ctx: &Context<'_>) -> bool {
        if self.table.charged == 0 && self.rows.bytes() == 0 {
            // Rows of all rounds must not be forgotten: a search would not end.
            let part = if self.over_rounds { 2 } else { PART };
            self.share = usize::try_from(ctx.memory.left() / part).unwrap_or(usize::MAX);
        }
        self.table.charged + self.rows.bytes() + self.weights.len() * size_of::<i64>() > self.share
    }

    /// Returns the rows of a batch that are not identical to one that passed.
    fn fresh_rows(&mut self, batch: &Batch, ctx: &Context<'_>) -> Vec<u32> {
        if self.is_full(ctx) {
            self.table.clear(ctx);
        }
        let columns = self.columns(batch);
        let mut kept = Vec::with_capacity(batch.len);
        for row in 0..batch.len {
            if self.table.find(&columns, row, batch.origin_of(row), 0, ctx).is_none() {
                kept.push(row as u32);
            }
        }
        self.tried += batch.len as u64;
        self.met += (batch.len - kept.len()) as u64;
        kept
    }

    /// Reads rows and adds up their weights. Returns whether there may be more of them.
    fn absorb(&mut self, weight: Slot, ctx: &Context<'_>, want: Want<'_>) -> Result<()> {
        loop {
            let Some(batch) = self.input.next(ctx, want)? else {
                self.ended = true;
                return Ok(());
            };
            ctx.check()?;
            let is_full = self.is_full(ctx);
            let columns = self.columns(&batch);
            let mut kept = Vec::with_capacity(batch.len);
            for row in 0..batch.len {
                let times = value::times(&batch.value(weight, row))?;
                let next = u32::try_from(self.weights.len()).unwrap_or(u32::MAX);
                match self.table.find(&columns, row, batch.origin_of(row), next, ctx) {
                    Some(known) => {
                        let sum = &mut self.weights[known as usize];
                        *sum = sum.checked_add(times).ok_or_else(value::too_many_rows)?;
                    }
                    None => {
                        self.weights.push(times);
                        kept.push(row as u32);
                    }
                }
            }
            self.tried += batch.len as u64;
            self.met += (batch.len - kept.len()) as u64;
            if !kept.is_empty() {
                self.rows.push(batch.select(&kept), ctx)?;
            }
            if is_full || want.rows < BATCH_ROWS || !self.is_worth_it() {
                return Ok(());
            }
        }
    }

    /// Makes the rows that were read ready, with their weights.
    fn flush(&mut self, weight: Slot, ctx: &Context<'_>) -> Result<()> {
        self.table.clear(ctx);
        if self.weights.is_empty() {
            return Ok(());
        }
        let mut batch = self.rows.take(ctx);
        let weights = std::mem::take(&mut self.weights).into_iter().map(Value::Long).collect();
        batch.set(weight, Column::Values(weights));
        let order = (0..batch.len as u32).collect();
        self.ready = Some(Pieces::new(batch, order, ctx)?);
        Ok(())
    }

    fn forget(&mut self, ctx: &Context<'_>) {
        self.table.clear(ctx);
        (self.tried, self.met, self.skip) = (0, 0, 0);
    }
}

impl Operator for Bulk<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(ready) = &mut self.ready {
                if let Some(batch) = ready.next(want, ctx) {
                    return Ok(Some(batch));
                }
                self.ready = None;
            }
            if self.ended {
                return Ok(None);
            }
            if self.skip > 0 {
                let batch = self.input.next(ctx, want)?;
                self.skip = self.skip.saturating_sub(batch.as_ref().map_or(0, |batch| batch.len as u64));
                return Ok(batch);
            }
            if let Some(weight) = self.weight {
                self.absorb(weight, ctx, want)?;
                self.flush(weight, ctx)?;
                continue;
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let kept = self.fresh_rows(&batch, ctx);
            self.is_worth_it();
            if !kept.is_empty() {
                return Ok(Some(batch.select(&kept)));
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if feed.fresh || !self.over_rounds {
            self.forget(ctx);
        }
        self.rows.clear(ctx);
        self.weights.clear();
        if let Some(mut ready) = self.ready.take() {
            ready.clear(ctx);
        }
        self.ended = false;
        self.input.feed(ctx, feed);
    }
}
