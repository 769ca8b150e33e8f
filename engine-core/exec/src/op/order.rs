//! Sort and tail: they read all input, keep the rows that they may still yield, and yield one origin after the other.

use super::buffer::{Buffer, Pieces};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::value::sorted_rows;
use crate::{Batch, Column, Context, Result};
use std::cmp::Ordering;
use tidegraph_plan::{Expr, SortKey, TotalOrder};
use tidegraph_types::order::{gremlin_order, order};

/// Rows beyond the needed ones that are kept before the surplus is dropped.
const SLACK_ROWS: usize = 4096;

/// Yields sorted rows; with a `top`, only the first of each origin.
pub(super) struct Sort<'p> {
    input: Boxed<'p>,
    keys: &'p [SortKey],
    top: Option<(Option<&'p Expr>, Option<&'p Expr>)>,
    /// Input batches, with the sort keys as their first columns.
    buffer: Buffer,
    origins: usize,
    pieces: Option<Pieces>,
}

impl<'p> Sort<'p> {
    /// Makes a sort. `top` holds skip and limit of the slice above, if there is one.
    pub(super) fn new(
        input: Boxed<'p>,
        keys: &'p [SortKey],
        top: Option<(Option<&'p Expr>, Option<&'p Expr>)>,
    ) -> Self {
        Self { input, keys, top, buffer: Buffer::default(), origins: 1, pieces: None }
    }

    /// Returns how many rows of each origin the slice above can use.
    fn most(&self, ctx: &Context<'_>) -> Result<Option<usize>> {
        let Some((skip, Some(limit))) = self.top else { return Ok(None) };
        let skip = skip.map_or(Ok(0), |skip| compute::count("skip", skip, ctx))?;
        let limit = compute::count("limit", limit, ctx)?;
        Ok(usize::try_from(skip.saturating_add(limit)).ok())
    }

    /// Returns the sorted order of a batch's rows, cut to the first `most` of each origin.
    fn sorted(&self, batch: &Batch, most: Option<usize>, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let keys: Vec<(&Column, &SortKey)> = (self.keys.iter().zip(&batch.columns))
            .filter_map(|(key, column)| column.as_deref().map(|column| (column, key)))
            .collect();
        let value_bytes = keys.iter().map(|(column, _)| column.largest_value_bytes()).max().unwrap_or(0);
        let mut rows = sorted_rows(ctx, batch.len, value_bytes, |a, b| {
            let (a, b) = (a as usize, b as usize);
            let by_origin = batch.origin_of(a).cmp(&batch.origin_of(b));
            keys.iter().fold(by_origin, |ordering, (column, key)| {
                ordering.then_with(|| {
                    let ordering = cell_order(column, a, b, key.order);
                    if key.descending { ordering.reverse() } else { ordering }
                })
            })
        })?;
        if let Some(most) = most {
            let (mut origin, mut seen) = (u32::MAX, 0);
            rows.retain(|row| {
                let of = batch.origin_of(*row as usize);
                seen = if of == origin { seen + 1 } else { 1 };
                origin = of;
                seen <= most
            });
        }
        Ok(rows)
    }

    fn drain(&mut self, ctx: &Context<'_>) -> Result<Pieces> {
        let most = self.most(ctx)?;
        let threshold = most.and_then(|most| most.checked_mul(2 * self.origins)).map(|n| n + SLACK_ROWS);
        while let Some(mut batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            let keys = compute::columns(self.keys.iter().map(|key| &key.expr), &batch, ctx)?;
            batch.columns.splice(0..0, keys.into_iter().map(Some));
            self.buffer.push(batch, ctx)?;
            if threshold.is_some_and(|threshold| self.buffer.rows() > threshold) {
                let all = self.buffer.take(ctx);
                let kept = self.sorted(&all, most, ctx)?;
                self.buffer.push(all.gather(&kept), ctx)?;
            }
        }
        let mut all = self.buffer.take(ctx);
        let rows = self.sorted(&all, most, ctx)?;
        all.columns.drain(..self.keys.len().min(all.columns.len()));
        Pieces::new(all, rows, ctx)
    }
}

fn cell_order(column: &Column, a: usize, b: usize, by: TotalOrder) -> Ordering {
    match column {
        Column::Values(values) => match by {
            TotalOrder::OpenCypher => order(&values[a], &values[b]),
            TotalOrder::Gremlin => gremlin_order(&values[a], &values[b]),
        },
        Column::Vertices(guis) => guis[a].cmp(&guis[b]),
        Column::Edges(edges) => edges[a].sid.cmp(&edges[b].sid),
        Column::Constant(..) => Ordering::Equal,
    }
}

impl Operator for Sort<'_> {
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
