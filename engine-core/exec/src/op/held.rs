//! Charges the values that an operator computed, as long as the batch that it yielded last may be in use.
//!
//! Operators pass batches on without a copy, so that the values of each operator above live at the same time. An
//! operator that keeps a batch for longer charges it itself.

use super::{Boxed, Feed, Operator, Want};
use crate::{Batch, Context, Result};
use tidegraph_plan::Slot;

/// Yields the batches of an operator and charges the columns that it made.
pub(super) struct Held<'p> {
    inner: Boxed<'p>,
    /// The slots that the operator computes.
    slots: Vec<Slot>,
    charged: usize,
}

impl<'p> Held<'p> {
    /// Wraps an operator that computes the values of these slots.
    pub(super) fn around(inner: Boxed<'p>, slots: Vec<Slot>) -> Boxed<'p> {
        if slots.is_empty() { inner } else { Box::new(Self { inner, slots, charged: 0 }) }
    }

    fn release(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

impl Operator for Held<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        self.release(ctx);
        let Some(batch) = self.inner.next(ctx, want)? else { return Ok(None) };
        let bytes = self.slots.iter().filter_map(|slot| batch.column(*slot)).map(|c| c.heap_bytes()).sum();
        ctx.memory.charge(bytes)?;
        self.charged = bytes;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.release(ctx);
        self.inner.feed(ctx, feed);
    }
}
