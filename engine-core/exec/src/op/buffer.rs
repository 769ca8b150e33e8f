//! Rows that are kept until they are wanted, charged to the request's memory.

use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Context, Result};
use std::collections::VecDeque;

/// Batches that wait, with what they cost.
#[derive(Default)]
pub(super) struct Buffer {
    batches: VecDeque<Batch>,
    rows: usize,
    charged: usize,
}

impl Buffer {
    /// Keeps a batch.
    pub(super) fn push(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        let bytes = batch.bytes();
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        self.rows += batch.len;
        self.batches.push_back(batch);
        Ok(())
    }

    /// Rows that wait.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The next batch as it was pushed; what it cost is given back.
    pub(super) fn pop(&mut self, ctx: &Context<'_>) -> Option<Batch> {
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

    /// All rows as one batch, which is no longer charged.
    pub(super) fn take(&mut self, ctx: &Context<'_>) -> Batch {
        let batches = Vec::from(std::mem::take(&mut self.batches));
        self.clear(ctx);
        Batch::concat(batches)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, ctx: &Context<'_>) {
        self.batches.clear();
        self.rows = 0;
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

/// One large batch that is handed out in pieces, in a given order of its rows.
#[derive(Default)]
pub(super) struct Pieces {
    batch: Batch,
    order: Vec<u32>,
    at: usize,
    charged: usize,
}

impl Pieces {
    /// These rows of a batch, in this order.
    pub(super) fn new(batch: Batch, order: Vec<u32>, ctx: &Context<'_>) -> Result<Self> {
        let charged = batch.bytes() + order.len() * size_of::<u32>();
        ctx.memory.charge(charged)?;
        Ok(Self { batch, order, at: 0, charged })
    }

    /// The next piece.
    pub(super) fn next(&mut self, want: Want<'_>, ctx: &Context<'_>) -> Option<Batch> {
        let end = self.order.len().min(self.at + want.rows.min(BATCH_ROWS));
        if self.at >= end {
            self.clear(ctx);
            return None;
        }
        let piece = self.batch.gather(&self.order[self.at..end]);
        self.at = end;
        Some(piece)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        *self = Self::default();
    }
}

/// Reads everything before it yields anything.
pub(super) struct Eager<'p> {
    input: Boxed<'p>,
    buffer: Buffer,
    drained: bool,
}

impl<'p> Eager<'p> {
    pub(super) fn new(input: Boxed<'p>) -> Self {
        Self { input, buffer: Buffer::default(), drained: false }
    }
}

impl Operator for Eager<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        if !self.drained {
            while let Some(batch) = self.input.next(ctx, Want::ALL)? {
                ctx.check()?;
                self.buffer.push(batch, ctx)?;
            }
            self.drained = true;
        }
        Ok(self.buffer.pop(ctx))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.buffer.clear(ctx);
        self.drained = false;
        self.input.feed(ctx, feed);
    }
}
