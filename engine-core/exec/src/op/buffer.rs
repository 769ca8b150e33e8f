//! Buffered rows, charged to the request's memory.

use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::spill::Queue;
use crate::{Batch, Context, Result};
use std::collections::VecDeque;

/// A queue of batches, with the bytes charged for them.
#[derive(Default)]
pub(crate) struct Buffer {
    batches: VecDeque<Batch>,
    rows: usize,
    charged: usize,
}

impl Buffer {
    /// Charges a batch and appends it.
    pub(crate) fn push(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        let bytes = batch.bytes();
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        self.rows += batch.len;
        self.batches.push_back(batch);
        Ok(())
    }

    /// Number of bytes that are charged.
    pub(crate) fn bytes(&self) -> usize {
        self.charged
    }

    /// Number of buffered rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Removes the first batch and releases its memory.
    pub(crate) fn pop(&mut self, ctx: &Context<'_>) -> Option<Batch> {
        let batch = self.batches.pop_front();
        match &batch {
            None => self.clear(ctx),
            Some(batch) => {
                let bytes = batch.bytes().min(self.charged);
                ctx.memory.release(bytes);
                self.charged -= bytes;
                self.rows -= batch.len;
            }
        }
        batch
    }

    /// Removes all rows as one batch and releases their memory.
    pub(crate) fn take(&mut self, ctx: &Context<'_>) -> Batch {
        let batches = Vec::from(std::mem::take(&mut self.batches));
        self.clear(ctx);
        Batch::concat(batches)
    }

    /// Drops all batches and releases their memory.
    pub(crate) fn clear(&mut self, ctx: &Context<'_>) {
        self.batches.clear();
        self.rows = 0;
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

/// One large batch that is yielded in pieces, in a given order of its rows.
#[derive(Default)]
pub(crate) struct Pieces {
    batch: Batch,
    order: Vec<u32>,
    at: usize,
    charged: usize,
}

impl Pieces {
    /// Charges a batch, to yield these rows in this order.
    pub(crate) fn new(batch: Batch, order: Vec<u32>, ctx: &Context<'_>) -> Result<Self> {
        let charged = batch.bytes() + order.len() * size_of::<u32>();
        ctx.memory.charge(charged)?;
        Ok(Self { batch, order, at: 0, charged })
    }

    /// Returns the next piece; `None` at the end.
    pub(crate) fn next(&mut self, want: Want<'_>, ctx: &Context<'_>) -> Option<Batch> {
        let end = self.order.len().min(self.at + want.rows.min(BATCH_ROWS));
        if self.at >= end {
            self.clear(ctx);
            return None;
        }
        let piece = self.batch.gather(&self.order[self.at..end]);
        self.at = end;
        Some(piece)
    }

    /// Drops the batch and releases its memory.
    pub(crate) fn clear(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        *self = Self::default();
    }
}

/// Reads all input before it yields a row.
pub(super) struct Eager<'p> {
    input: Boxed<'p>,
    queue: Queue,
    drained: bool,
}

impl<'p> Eager<'p> {
    pub(super) fn new(input: Boxed<'p>) -> Self {
        Self { input, queue: Queue::default(), drained: false }
    }
}

impl Operator for Eager<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        if !self.drained {
            while let Some(batch) = self.input.next(ctx, Want::ALL)? {
                ctx.check()?;
                self.queue.push(batch, ctx)?;
            }
            self.drained = true;
        }
        self.queue.pop(ctx)
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.queue.clear(ctx);
        self.drained = false;
        self.input.feed(ctx, feed);
    }
}
