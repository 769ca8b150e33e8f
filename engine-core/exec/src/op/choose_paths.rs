//! The choice of the shortest of the paths between two vertices, among rows that come in any order.
//!
//! Only rows that may still be chosen are held. A row that shorter ones replace is dropped with the next clean-up, so that
//! the memory is bounded by the chosen rows, however many paths there are.

use super::buffer::{Buffer, Pieces};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::{Batch, Context, Error, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use tidegraph_plan::{Expr, Op};
use tidegraph_types::Value;

/// Rows that are held beyond twice those that may be chosen, before the others are dropped.
const SLACK_ROWS: usize = 4096;
/// Bytes to charge for an entry of a map, without the values in it.
const ENTRY_BYTES: usize = 96;

/// Origin and values between which paths are chosen.
type Key = (u32, SmallVec<[Value; 2]>);

/// For each length the numbers of the rows in the buffer, in the order of their arrival.
type ByLength = BTreeMap<i64, Vec<u32>>;

/// Yields the rows with the smallest lengths of each group.
pub(super) struct ChoosePaths<'p> {
    input: Boxed<'p>,
    by: &'p [Expr],
    length: &'p Expr,
    count: usize,
    groups: bool,
    /// Rows that may be chosen, and others that were before.
    held: Buffer,
    chosen: FxHashMap<Key, ByLength>,
    /// Number of rows that may be chosen.
    live: usize,
    charged: usize,
    pieces: Option<Pieces>,
}

impl<'p> ChoosePaths<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::ChoosePaths { by, length, count, groups, .. } = op else {
            return Err(Error::Plan("not a choice of paths".to_owned()));
        };
        Ok(Self {
            input,
            by,
            length,
            count: *count as usize,
            groups: *groups,
            held: Buffer::default(),
            chosen: FxHashMap::default(),
            live: 0,
            charged: 0,
            pieces: None,
        })
    }

    /// Holds the rows of a batch that may be chosen.
    fn add(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<()> {
        let columns = compute::columns(self.by.iter().chain([self.length]), batch, ctx)?;
        let Some((lengths, by)) = columns.split_last() else { return Ok(()) };
        let mut kept = vec![];
        for row in 0..batch.len {
            let Some(length) = lengths.get(row).as_i64() else {
                return Err(Error::of_type("the length of a path", "a whole number", &lengths.get(row)));
            };
            let key: Key = (batch.origin_of(row), by.iter().map(|column| column.get(row)).collect());
            let number = (self.held.rows() + kept.len()) as u32;
            if self.take(key, length, number, ctx)? {
                kept.push(row as u32);
            }
        }
        if !kept.is_empty() {
            self.held.push(batch.gather(&kept), ctx)?;
        }
        if self.held.rows() > 2 * self.live + SLACK_ROWS {
            self.clean_up(ctx)?;
        }
        Ok(())
    }

    /// Notes a row that may be chosen, in place of a longer one if there are as many as may be.
    fn take(&mut self, key: Key, length: i64, number: u32, ctx: &Context<'_>) -> Result<bool> {
        if !self.chosen.contains_key(&key) {
            let of_keys: usize = key.1.iter().map(|value| size_of::<Value>() + value.heap_bytes()).sum();
            let bytes = ENTRY_BYTES + of_keys;
            ctx.memory.charge(bytes)?;
            self.charged += bytes;
        }
        let by_length = self.chosen.entry(key).or_default();
        let held = if self.groups { by_length.len() } else { by_length.values().map(Vec::len).sum() };
        let is_known = self.groups && by_length.contains_key(&length);
        if held >= self.count && !is_known {
            let Some(mut longest) = by_length.last_entry().filter(|entry| *entry.key() > length) else {
                return Ok(false);
            };
            let dropped = if self.groups { longest.get().len() } else { 1 };
            let left = longest.get().len() - dropped;
            longest.get_mut().truncate(left);
            if longest.get().is_empty() {
                longest.remove();
            }
            self.live -= dropped;
        }
        ctx.memory.charge(ENTRY_BYTES / 4)?;
        self.charged += ENTRY_BYTES / 4;
        by_length.entry(length).or_default().push(number);
        self.live += 1;
        Ok(true)
    }

    /// Drops the rows that are no longer chosen.
    fn clean_up(&mut self, ctx: &Context<'_>) -> Result<()> {
        let all = self.held.take(ctx);
        let mut kept: Vec<u32> = self.chosen.values().flat_map(ByLength::values).flatten().copied().collect();
        kept.sort_unstable();
        for number in self.chosen.values_mut().flat_map(ByLength::values_mut).flatten() {
            *number = kept.partition_point(|other| other < number) as u32;
        }
        self.held.push(all.gather(&kept), ctx)
    }

    fn drain(&mut self, ctx: &Context<'_>) -> Result<Pieces> {
        while let Some(batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            self.add(&batch, ctx)?;
        }
        let all = self.held.take(ctx);
        let mut rows: Vec<(u32, i64, u32)> = vec![];
        for ((origin, _), by_length) in &self.chosen {
            for (length, numbers) in by_length {
                rows.extend(numbers.iter().map(|number| (*origin, *length, *number)));
            }
        }
        rows.sort_unstable();
        self.forget(ctx);
        Pieces::new(all, rows.into_iter().map(|(.., number)| number).collect(), ctx)
    }

    fn forget(&mut self, ctx: &Context<'_>) {
        self.held.clear(ctx);
        self.chosen = FxHashMap::default();
        self.live = 0;
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

impl Operator for ChoosePaths<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.pieces.is_none() {
            self.pieces = Some(self.drain(ctx)?);
        }
        Ok(self.pieces.as_mut().and_then(|pieces| pieces.next(want, ctx)))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.forget(ctx);
        if let Some(mut pieces) = self.pieces.take() {
            pieces.clear(ctx);
        }
        self.input.feed(ctx, feed);
    }
}
