//! Measures what an operator does, for the profile of a request.

use super::{Boxed, Feed, Operator, Want};
use crate::batch::Batch;
use crate::profile::OpKey;
use crate::{Context, Result};
use tidegraph_plan::Op;

/// An operator, and the one of the plan that it runs.
pub(super) struct Measured<'p> {
    operator: Boxed<'p>,
    key: OpKey,
}

impl<'p> Measured<'p> {
    pub(super) fn around(operator: Boxed<'p>, op: &Op) -> Boxed<'p> {
        Box::new(Self { operator, key: OpKey::of(op) })
    }
}

impl Operator for Measured<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let Some(profile) = &ctx.profile else { return self.operator.next(ctx, want) };
        let begun = profile.begin(ctx.view.traffic());
        let batch = self.operator.next(ctx, want);
        let rows = batch.as_ref().map_or(0, |batch| batch.as_ref().map_or(0, |batch| batch.len));
        profile.end(begun, self.key, rows as u64, ctx.view.traffic());
        batch
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.operator.feed(ctx, feed);
    }
}
