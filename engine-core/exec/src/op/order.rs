//! Sort and tail: they read all input, keep the rows that they may still yield, and yield one origin after the other.

use super::buffer::{Buffer, Pieces};
use super::first_rows::FirstRows;
use super::{Boxed, Feed, Operator, Want, compute};
use crate::spill::{KeyOrder, Sorted, Sorter};
use crate::{Batch, Context, Result};
use tidegraph_plan::{Expr, SortKey};

/// Rows beyond the needed ones that are kept before the surplus is dropped.
const SLACK_ROWS: usize = 4096;

/// The rows below a sort.
pub(super) enum Input<'p> {
    Rows(Boxed<'p>),
    /// Rows that a slice above the sort may need.
    First(Box<FirstRows<'p>>),
}

/// Yields sorted rows; with a `top`, only the first of each origin.
pub(super) struct Sort<'p> {
    input: Input<'p>,
    keys: &'p [SortKey],
    top: Option<(Option<&'p Expr>, Option<&'p Expr>)>,
    origins: usize,
    /// Input rows, with the sort keys as their first columns.
    sorter: Option<Sorter>,
    sorted: Option<Sorted>,
}

impl<'p> Sort<'p> {
    /// Makes a sort. `top` holds skip and limit of the slice above, if there is one.
    pub(super) fn new(
        input: Input<'p>,
        keys: &'p [SortKey],
        top: Option<(Option<&'p Expr>, Option<&'p Expr>)>,
    ) -> Self {
        Self { input, keys, top, origins: 1, sorter: None, sorted: None }
    }

    /// Returns how many rows of each origin the slice above can use.
    fn most(&self, ctx: &Context<'_>) -> Result<Option<usize>> {
        let Some((skip, Some(limit))) = self.top else { return Ok(None) };
        let skip = skip.map_or(Ok(0), |skip| compute::count("skip", skip, ctx))?;
        let limit = compute::count("limit", limit, ctx)?;
        Ok(usize::try_from(skip.saturating_add(limit)).ok())
    }

    fn drain(&mut self, ctx: &Context<'_>) -> Result<Sorted> {
        let orders = self.keys.iter().map(|key| KeyOrder { order: key.order, descending: key.descending });
        let most = self.most(ctx)?;
        let sorter = self.sorter.insert(Sorter::new(orders.collect(), most, self.origins));
        loop {
            let batch = match &mut self.input {
                Input::Rows(rows) => rows.next(ctx, Want::ALL)?,
                Input::First(rows) => rows.next(ctx, most.filter(|_| self.origins == 1))?,
            };
            let Some(mut batch) = batch else { break };
            ctx.check()?;
            let keys = compute::columns(self.keys.iter().map(|key| &key.expr), &batch, ctx)?;
            batch.columns.splice(0..0, keys.into_iter().map(Some));
            sorter.push(batch, ctx)?;
        }
        sorter.finish(true, ctx)
    }
}

impl Operator for Sort<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.sorted.is_none() {
            self.sorted = Some(self.drain(ctx)?);
        }
        self.sorted.as_mut().map_or(Ok(None), |sorted| sorted.next(want, ctx))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if let Some(mut sorter) = self.sorter.take() {
            sorter.clear(ctx);
        }
        if let Some(mut sorted) = self.sorted.take() {
            sorted.clear(ctx);
        }
        self.origins = feed.origins.max(1);
        match &mut self.input {
            Input::Rows(rows) => rows.feed(ctx, feed),
            Input::First(rows) => rows.feed(ctx, feed),
        }
    }
}

/// Yields the last rows of each origin.
pub(super) struct Tail<'p> {
    input: Boxed<'p>,
    count: &'p Expr,
    buffer: Buffer,
    origins: usize,
    pieces: Option<Pieces>,
}

impl<'p> Tail<'p> {
    pub(super) fn new(input: Boxed<'p>, count: &'p Expr) -> Self {
        Self { input, count, buffer: Buffer::default(), origins: 1, pieces: None }
    }

    /// Returns the last `count` rows of each origin, in the order of arrival.
    fn last(&self, batch: &Batch, count: usize) -> Vec<u32> {
        let mut seen = vec![0_usize; self.origins];
        let mut rows: Vec<u32> = (0..batch.len as u32)
            .rev()
            .filter(|row| {
                let origin = batch.origin_of(*row as usize) as usize;
                seen[origin] += 1;
                seen[origin] <= count
            })
            .collect();
        rows.reverse();
        rows
    }

    fn drain(&mut self, ctx: &Context<'_>) -> Result<Pieces> {
        let count = usize::try_from(compute::count("tail", self.count, ctx)?).unwrap_or(usize::MAX);
        let threshold = count.saturating_mul(2 * self.origins).saturating_add(SLACK_ROWS);
        while let Some(batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            self.buffer.push(batch, ctx)?;
            if self.buffer.rows() > threshold {
                let all = self.buffer.take(ctx);
                let kept = self.last(&all, count);
                self.buffer.push(all.gather(&kept), ctx)?;
            }
        }
        let all = self.buffer.take(ctx);
        let mut rows = self.last(&all, count);
        rows.sort_by_key(|row| all.origin_of(*row as usize));
        Pieces::new(all, rows, ctx)
    }
}

impl Operator for Tail<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.pieces.is_none() {
            self.pieces = Some(self.drain(ctx)?);
        }
        Ok(self.pieces.as_mut().and_then(|pieces| pieces.next(want, ctx)))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.buffer.clear(ctx);
        if let Some(mut pieces) = self.pieces.take() {
            pieces.clear(ctx);
        }
        self.origins = feed.origins.max(1);
        self.input.feed(ctx, feed);
    }
}
