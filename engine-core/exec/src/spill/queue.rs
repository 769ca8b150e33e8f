//! Rows that wait, in their order.

use super::{Frames, share};
use crate::op::Buffer;
use crate::{Batch, Context, Result};

/// A queue of batches. Those beyond the memory of an operator wait in a file.
#[derive(Default)]
pub(crate) struct Queue {
    /// The first batches.
    memory: Buffer,
    /// The others.
    file: Option<Frames>,
}

impl Queue {
    /// Appends a batch.
    pub(crate) fn push(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        if self.file.is_none() {
            let Some(share) = share(ctx) else { return self.memory.push(batch, ctx) };
            let fits = self.memory.bytes() + batch.bytes() <= share;
            if fits && self.memory.push(batch.clone(), ctx).is_ok() {
                return Ok(());
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Frames::create(ctx)?),
        };
        let rows: Vec<u32> = (0..batch.len as u32).collect();
        file.push(&batch, &rows, ctx)
    }

    /// Removes the first batch.
    pub(crate) fn pop(&mut self, ctx: &Context<'_>) -> Result<Option<Batch>> {
        if let Some(batch) = self.memory.pop(ctx) {
            return Ok(Some(batch));
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        let batch = file.pop()?;
        if batch.is_none() {
            self.file = None;
        }
        Ok(batch)
    }

    /// Drops all batches.
    pub(crate) fn clear(&mut self, ctx: &Context<'_>) {
        self.memory.clear(ctx);
        self.file = None;
    }
}
