//! Merge: match or create, row by row, so that each row sees the writes of the rows before it.

use super::buffer::Buffer;
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Context, Result};
use std::sync::Arc;

/// Yields for each row the rows of `matching` or, if there are none, of `create`.
pub(super) struct Merge<'p> {
    input: Boxed<'p>,
    matching: Boxed<'p>,
    create: Boxed<'p>,
    current: Option<(Batch, usize)>,
}

impl<'p> Merge<'p> {
    pub(super) fn new(input: Boxed<'p>, matching: Boxed<'p>, create: Boxed<'p>) -> Self {
        Self { input, matching, create, current: None }
    }

    /// Appends all rows of one outer row.
    fn row(&mut self, outer: &Batch, row: usize, out: &mut Buffer, ctx: &Context<'_>) -> Result<()> {
        let origin = outer.origin.is_some().then(|| outer.origin_of(row));
        for plan in [&mut self.matching, &mut self.create] {
            let mut batch = outer.gather(&[row as u32]);
            batch.origin = None;
            plan.feed(ctx, Feed::new(batch, 1));
            let mut any = false;
            while let Some(mut batch) = plan.next(ctx, Want::ALL)? {
                ctx.check()?;
                any = true;
                batch.origin = origin.map(|origin| Arc::new(vec![origin; batch.len]));
                out.push(batch, ctx)?;
            }
            if any {
                break;
            }
        }
        Ok(())
    }
}

impl Operator for Merge<'_> {
    fn next(&mut self, ctx: &Context<'_>, _: Want<'_>) -> Result<Option<Batch>> {
        let mut out = Buffer::default();
        loop {
            ctx.check()?;
            let Some((outer, row)) = self.current.take() else {
                let Some(outer) = self.input.next(ctx, Want::ALL)? else { break };
                self.current = Some((outer, 0));
                continue;
            };
            self.row(&outer, row, &mut out, ctx)?;
            if row + 1 < outer.len {
                self.current = Some((outer, row + 1));
            }
            if out.rows() >= BATCH_ROWS {
                break;
            }
        }
        Ok((out.rows() > 0).then(|| out.take(ctx)))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.input.feed(ctx, feed);
    }
}
