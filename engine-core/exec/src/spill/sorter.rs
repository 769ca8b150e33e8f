//! Sorting beyond memory: runs that fit into memory are sorted and written to files, and then merged.
//!
//! Runs have levels. As soon as a level has [`FAN_IN`] runs, they are merged into one run of the next level. This bounds
//! the open files, and the memory of a merge, by the logarithm of the number of rows.

use super::{Frames, share};
use crate::batch::BATCH_ROWS;
use crate::op::{Buffer, Pieces, Want};
use crate::value::sorted_rows;
use crate::{Batch, Column, Context, Result};
use std::cmp::Ordering;
use std::sync::Arc;
use tidegraph_plan::TotalOrder;
use tidegraph_types::Value;
use tidegraph_types::order::{gremlin_order, order};

/// Runs of a level that become one of the next.
const FAN_IN: usize = 16;

/// Rows beyond the needed ones that are kept before the surplus is dropped.
const SLACK_ROWS: usize = 4096;

/// The same for rows of a single origin: once the surplus was dropped, most rows are dropped as they arrive.
const SLACK_ROWS_OF_ONE: usize = 512;

/// Longest key, in bytes, that is compared with that of the last wanted row as soon as its row arrives.
pub(crate) const SHORT_KEY_BYTES: usize = 256;

/// The order of a sort key.
#[derive(Clone, Copy)]
pub(crate) struct KeyOrder {
    pub(crate) order: TotalOrder,
    pub(crate) descending: bool,
}

impl KeyOrder {
    /// Ascending, in openCypher's order, with which equivalence agrees.
    pub(crate) const PLAIN: Self = Self { order: TotalOrder::OpenCypher, descending: false };

    /// Compares the values of two rows.
    pub(crate) fn compare(self, a: &Column, at: usize, b: &Column, other: usize) -> Ordering {
        let ordering = match (a, b) {
            (Column::Values(a), Column::Values(b)) => self.order_of(&a[at], &b[other]),
            (Column::Integers(a), Column::Integers(b)) => a.values[at].cmp(&b.values[other]),
            (Column::Vertices(a), Column::Vertices(b)) => a[at].cmp(&b[other]),
            (Column::Edges(a), Column::Edges(b)) => a[at].sid.cmp(&b[other].sid),
            (a, b) => self.order_of(&a.get(at), &b.get(other)),
        };
        if self.descending { ordering.reverse() } else { ordering }
    }

    fn order_of(self, a: &Value, b: &Value) -> Ordering {
        if let (Value::Long(a), Value::Long(b)) = (a, b) {
            return a.cmp(b);
        }
        match self.order {
            TotalOrder::OpenCypher => order(a, b),
            TotalOrder::Gremlin => gremlin_order(a, b),
        }
    }
}

/// Sorts rows by their origins and their first columns. Equal rows stay in the order of their arrival.
pub(crate) struct Sorter {
    keys: Vec<KeyOrder>,
    /// Rows of each origin that are wanted; `None`: all.
    most: Option<usize>,
    /// Rows in memory from which the surplus is dropped.
    threshold: Option<usize>,
    /// Whether all rows have the same origin.
    is_of_one: bool,
    /// The keys of the last wanted row, each a column of one value, once as many rows of a single origin as are wanted were
    /// found. Rows that do not come before it are dropped.
    last: Vec<Option<Column>>,
    buffer: Buffer,
    /// Runs in files by their level. Those of a higher level arrived before those of a lower one.
    levels: Vec<Vec<Frames>>,
}

impl Sorter {
    /// Makes a sorter of rows whose first columns are the keys. `most`: how many rows of each origin are wanted.
    pub(crate) fn new(keys: Vec<KeyOrder>, most: Option<usize>, origins: usize) -> Self {
        let is_of_one = origins == 1;
        let slack = if is_of_one { SLACK_ROWS_OF_ONE } else { SLACK_ROWS };
        let threshold =
            most.and_then(|most| most.checked_mul(2 * origins)).map(|rows| rows.saturating_add(slack));
        Self { keys, most, threshold, is_of_one, last: vec![], buffer: Buffer::default(), levels: vec![] }
    }

    /// Adds rows.
    pub(crate) fn push(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        let Some(batch) = self.wanted(batch, ctx)? else { return Ok(()) };
        if share(ctx).is_some_and(|share| self.buffer.bytes() + batch.bytes() > share) {
            self.write_run(ctx)?;
        }
        if let Err(error) = self.buffer.push(batch.clone(), ctx) {
            if ctx.spill_files().is_none() || self.buffer.rows() == 0 {
                return Err(error);
            }
            self.write_run(ctx)?;
            self.buffer.push(batch, ctx)?;
        }
        if self.threshold.is_some_and(|threshold| self.buffer.rows() > threshold) {
            let all = self.buffer.take(ctx);
            let kept = self.sorted(&all, ctx)?;
            if let Some(row) = kept.last().filter(|_| self.is_of_one && Some(kept.len()) == self.most) {
                let key = |column: &Arc<Column>| Column::from_values(vec![column.get(*row as usize)]);
                let columns = all.columns.iter().take(self.keys.len());
                self.last = columns.map(|column| column.as_ref().map(key)).collect();
            }
            self.buffer.push(all.gather(&kept), ctx)?;
        }
        Ok(())
    }

    /// Returns the rows that come before the last wanted one of those so far, if there are any. Equal rows come after it.
    fn wanted(&self, batch: Batch, ctx: &Context<'_>) -> Result<Option<Batch>> {
        let keys: Vec<(KeyOrder, &Column, &Column)> = (self.keys.iter().zip(&batch.columns).zip(&self.last))
            .filter_map(|((key, column), last)| Some((*key, column.as_deref()?, last.as_ref()?)))
            .collect();
        let is_long = |column: &Column| column.largest_value_bytes() > SHORT_KEY_BYTES;
        if keys.is_empty() || keys.iter().any(|(_, column, last)| is_long(column) || is_long(last)) {
            return Ok(Some(batch));
        }
        ctx.spend(batch.len)?;
        let comes_before = |row: &u32| {
            let ordering = keys.iter().fold(Ordering::Equal, |ordering, (key, column, last)| {
                ordering.then_with(|| key.compare(column, *row as usize, last, 0))
            });
            ordering.is_lt()
        };
        let rows: Vec<u32> = (0..batch.len as u32).filter(comes_before).collect();
        Ok(match rows.len() {
            0 => None,
            all if all == batch.len => Some(batch),
            _ => Some(batch.select(&rows)),
        })
    }

    /// Adds rows, if there are any.
    pub(crate) fn push_some(&mut self, batch: Option<Batch>, ctx: &Context<'_>) -> Result<()> {
        batch.map_or(Ok(()), |batch| self.push(batch, ctx))
    }

    /// Returns all rows in their order. `drop_keys`: without the first columns.
    pub(crate) fn finish(&mut self, drop_keys: bool, ctx: &Context<'_>) -> Result<Sorted> {
        if self.levels.is_empty() {
            let mut all = self.buffer.take(ctx);
            let rows = self.sorted(&all, ctx)?;
            if drop_keys {
                all.columns.drain(..self.keys.len().min(all.columns.len()));
            }
            return Ok(Sorted::Here(Pieces::new(all, rows, ctx)?));
        }
        self.write_run(ctx)?;
        let runs = std::mem::take(&mut self.levels).into_iter().rev().flatten().collect();
        Ok(Sorted::Merged(Box::new(Merge::new(self.keys.clone(), self.most, drop_keys, runs, ctx)?)))
    }

    /// Drops all rows.
    pub(crate) fn clear(&mut self, ctx: &Context<'_>) {
        self.buffer.clear(ctx);
        self.levels.clear();
        self.last.clear();
    }

    /// Returns the sorted order of a batch's rows, cut to the first `most` of each origin.
    fn sorted(&self, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let keys: Vec<(&Column, KeyOrder)> = (self.keys.iter().zip(&batch.columns))
            .filter_map(|(key, column)| column.as_deref().map(|column| (column, *key)))
            // All values of a constant are equal.
            .filter(|(column, _)| !matches!(column, Column::Constant(..)))
            .collect();
        let value_bytes = keys.iter().map(|(column, _)| column.largest_value_bytes()).max().unwrap_or(0);
        let mut rows = sorted_rows(ctx, batch.len, value_bytes, |a, b| {
            let (a, b) = (a as usize, b as usize);
            let by_origin = batch.origin_of(a).cmp(&batch.origin_of(b));
            keys.iter().fold(by_origin, |ordering, (column, key)| {
                ordering.then_with(|| key.compare(column, a, column, b))
            })
        })?;
        if let Some(most) = self.most {
            let mut first = First::new(most);
            rows.retain(|row| first.takes(batch.origin_of(*row as usize)));
        }
        Ok(rows)
    }

    /// Writes the rows in memory to a file.
    fn write_run(&mut self, ctx: &Context<'_>) -> Result<()> {
        if self.buffer.rows() == 0 {
            return Ok(());
        }
        let all = self.buffer.take(ctx);
        let rows = self.sorted(&all, ctx)?;
        let mut run = Frames::create(ctx)?;
        run.push(&all, &rows, ctx)?;
        drop(all);
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(vec![]);
            }
            self.levels[level].push(run);
            if self.levels[level].len() < FAN_IN {
                break;
            }
            let runs = std::mem::take(&mut self.levels[level]);
            let mut merge = Merge::new(self.keys.clone(), self.most, false, runs, ctx)?;
            run = Frames::create(ctx)?;
            while let Some(batch) = merge.next(BATCH_ROWS, ctx)? {
                let rows: Vec<u32> = (0..batch.len as u32).collect();
                run.push(&batch, &rows, ctx)?;
            }
        }
        Ok(())
    }
}

/// Takes the first rows of each origin, one origin after the other.
struct First {
    most: usize,
    origin: u32,
    seen: usize,
}

impl First {
    fn new(most: usize) -> Self {
        Self { most, origin: u32::MAX, seen: 0 }
    }

    fn takes(&mut self, origin: u32) -> bool {
        self.seen = if origin == self.origin { self.seen + 1 } else { 1 };
        self.origin = origin;
        self.seen <= self.most
    }
}

/// Sorted rows.
pub(crate) enum Sorted {
    /// They fit into memory.
    Here(Pieces),
    /// They are in files.
    Merged(Box<Merge>),
}

impl Sorted {
    /// Returns the next rows; `None` at the end.
    pub(crate) fn next(&mut self, want: Want<'_>, ctx: &Context<'_>) -> Result<Option<Batch>> {
        match self {
            Self::Here(pieces) => Ok(pieces.next(want, ctx)),
            Self::Merged(merge) => merge.next(want.rows.min(BATCH_ROWS), ctx),
        }
    }

    /// Drops the rows that are left.
    pub(crate) fn clear(&mut self, ctx: &Context<'_>) {
        match self {
            Self::Here(pieces) => pieces.clear(ctx),
            Self::Merged(merge) => merge.clear(ctx),
        }
    }
}

/// Merges sorted runs.
pub(crate) struct Merge {
    keys: Vec<KeyOrder>,
    first: Option<First>,
    drop_keys: bool,
    /// In the order of arrival.
    runs: Vec<Cursor>,
    /// The numbers of the runs that have rows: a heap whose first has the next row.
    heap: Vec<usize>,
}

/// The place in a run.
struct Cursor {
    run: Frames,
    batch: Batch,
    row: usize,
    charged: usize,
}

impl Cursor {
    fn key(&self, at: usize) -> Option<&Column> {
        self.batch.columns.get(at).and_then(Option::as_deref)
    }

    /// Reads the next batch. Returns whether there is one.
    fn advance(&mut self, ctx: &Context<'_>) -> Result<bool> {
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.batch = Batch::default();
        let Some(batch) = self.run.pop()? else { return Ok(false) };
        let bytes = batch.bytes();
        ctx.memory.charge(bytes)?;
        (self.charged, self.batch, self.row) = (bytes, batch, 0);
        Ok(self.batch.len > 0)
    }
}

impl Merge {
    fn new(
        keys: Vec<KeyOrder>,
        most: Option<usize>,
        drop_keys: bool,
        runs: Vec<Frames>,
        ctx: &Context<'_>,
    ) -> Result<Self> {
        let mut merge = Self { keys, first: most.map(First::new), drop_keys, runs: vec![], heap: vec![] };
        for run in runs {
            let mut cursor = Cursor { run, batch: Batch::default(), row: 0, charged: 0 };
            if cursor.advance(ctx)? {
                merge.heap.push(merge.runs.len());
            }
            merge.runs.push(cursor);
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift(at);
        }
        Ok(merge)
    }

    /// Whether the row of one run comes before that of another.
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.runs[a], &self.runs[b]);
        let by_origin = x.batch.origin_of(x.row).cmp(&y.batch.origin_of(y.row));
        let by_keys = self.keys.iter().enumerate().fold(by_origin, |ordering, (at, key)| {
            ordering.then_with(|| match (x.key(at), y.key(at)) {
                (Some(left), Some(right)) => key.compare(left, x.row, right, y.row),
                // A key is bound in all rows or in none.
                _ => Ordering::Equal,
            })
        });
        by_keys.then(a.cmp(&b)).is_lt()
    }

    /// Moves an entry of the heap down to its place.
    fn sift(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    fn next(&mut self, most: usize, ctx: &Context<'_>) -> Result<Option<Batch>> {
        let mut columns: Vec<Option<Vec<Value>>> = vec![];
        let mut origins: Vec<u32> = vec![];
        let dropped = if self.drop_keys { self.keys.len() } else { 0 };
        while origins.len() < most
            && let Some(run) = self.heap.first().copied()
        {
            ctx.spend(1 + self.heap.len())?;
            let cursor = &mut self.runs[run];
            let origin = cursor.batch.origin_of(cursor.row);
            if self.first.as_mut().is_none_or(|first| first.takes(origin)) {
                columns.resize(columns.len().max(cursor.batch.columns.len().saturating_sub(dropped)), None);
                for (to, from) in columns.iter_mut().zip(cursor.batch.columns.iter().skip(dropped)) {
                    let Some(from) = from else { continue };
                    let to = to.get_or_insert_default();
                    // Unbound in the rows before.
                    to.resize(origins.len(), Value::Unbound);
                    to.push(from.get(cursor.row));
                }
                origins.push(origin);
            }
            // A batch without origins is one of many rows of a single origin.
            let is_enough = self.first.as_ref().is_some_and(|first| first.seen >= first.most);
            if is_enough && cursor.batch.origin.is_none() {
                self.heap.clear();
                break;
            }
            cursor.row += 1;
            if cursor.row == cursor.batch.len && !cursor.advance(ctx)? {
                self.heap.swap_remove(0);
            }
            self.sift(0);
        }
        if origins.is_empty() {
            self.clear(ctx);
            return Ok(None);
        }
        let len = origins.len();
        let column = |values: Option<Vec<Value>>| {
            values.map(|mut values| {
                values.resize(len, Value::Unbound);
                Arc::new(Column::from_values(values))
            })
        };
        let origin = origins.iter().any(|origin| *origin > 0).then(|| Arc::new(origins));
        Ok(Some(Batch { len, columns: columns.into_iter().map(column).collect(), origin }))
    }

    fn clear(&mut self, ctx: &Context<'_>) {
        self.heap.clear();
        for cursor in self.runs.drain(..) {
            ctx.memory.release(cursor.charged);
        }
    }
}
