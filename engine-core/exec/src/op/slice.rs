//! Slice and distinct: streaming operators with state for each origin. Over the rounds of a repeat a distinct keeps its
//! state, and a slice counts anew.

use super::{Boxed, Done, Feed, Operator, Want, compute};
use crate::{Batch, Context, Result};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tidegraph_plan::Expr;
use tidegraph_types::{Gui, Value};

/// Drops the first rows of each origin and yields at most a number of those that follow.
pub(super) struct Slice<'p> {
    input: Boxed<'p>,
    skip: Option<&'p Expr>,
    limit: Option<&'p Expr>,
    /// Whether the input writes, so that it must be read to its end.
    input_writes: bool,
    /// Skip and limit, once they are computed.
    bounds: Option<(u64, u64)>,
    seen: Vec<u64>,
    done: Done,
}

impl<'p> Slice<'p> {
    pub(super) fn new(
        input: Boxed<'p>,
        skip: Option<&'p Expr>,
        limit: Option<&'p Expr>,
        input_writes: bool,
    ) -> Self {
        Self { input, skip, limit, input_writes, bounds: None, seen: vec![], done: Done::default() }
    }

    fn bounds(&mut self, ctx: &Context<'_>) -> Result<(u64, u64)> {
        if let Some(bounds) = self.bounds {
            return Ok(bounds);
        }
        let skip = self.skip.map_or(Ok(0), |skip| compute::count("skip", skip, ctx))?;
        let limit = self.limit.map_or(Ok(u64::MAX), |limit| compute::count("limit", limit, ctx))?;
        if limit == 0 {
            (0..self.seen.len() as u32).for_each(|origin| {
                self.done.mark(origin);
            });
        }
        self.bounds = Some((skip, limit));
        Ok((skip, limit))
    }

    /// Returns the number of rows to ask for. With one origin it is no more than can be yielded.
    fn ask(&self, (skip, limit): (u64, u64), want: Want<'_>) -> usize {
        match self.seen[..] {
            [seen] => {
                let left = skip.saturating_add(limit).saturating_sub(seen);
                let to_skip = skip.saturating_sub(seen);
                let useful = to_skip.saturating_add(want.rows as u64).min(left);
                usize::try_from(useful).unwrap_or(usize::MAX).min(crate::batch::BATCH_ROWS)
            }
            _ => want.rows,
        }
    }
}

impl Operator for Slice<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let (skip, limit) = self.bounds(ctx)?;
        let end = skip.saturating_add(limit);
        while !self.done.all() {
            let ask = Want { rows: self.ask((skip, limit), want).max(1), done: Some(&self.done) };
            let Some(batch) = self.input.next(ctx, ask)? else { return Ok(None) };
            let mut kept = Vec::with_capacity(batch.len);
            for row in 0..batch.len {
                let origin = batch.origin_of(row);
                let seen = &mut self.seen[origin as usize];
                if (skip..end).contains(seen) {
                    kept.push(row as u32);
                }
                *seen += 1;
                if *seen >= end {
                    self.done.mark(origin);
                }
            }
            if !kept.is_empty() {
                return Ok(Some(batch.select(&kept)));
            }
        }
        if self.input_writes {
            while self.input.next(ctx, Want::ALL)?.is_some() {
                ctx.check()?;
            }
        }
        Ok(None)
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if feed.fresh {
            self.bounds = None;
        }
        // A repeat feeds all rows of a round at once, so this begins a round.
        self.seen = vec![0; feed.origins.max(1)];
        self.done = Done::new(feed.origins.max(1));
        self.input.feed(ctx, feed);
    }
}

/// Yields the first of the rows with equivalent values.
pub(super) struct Distinct<'p> {
    input: Boxed<'p>,
    by: &'p [Expr],
    /// Single vertices, the common case.
    vertices: FxHashSet<(u32, Gui)>,
    others: FxHashSet<(u32, SmallVec<[Value; 1]>)>,
    charged: usize,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: Boxed<'p>, by: &'p [Expr]) -> Self {
        Self { input, by, vertices: FxHashSet::default(), others: FxHashSet::default(), charged: 0 }
    }

    fn fresh_rows(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let columns = compute::columns(self.by, batch, ctx)?;
        let mut kept = Vec::with_capacity(batch.len);
        let mut bytes = 0;
        for row in 0..batch.len {
            let origin = batch.origin_of(row);
            let fresh = match &columns[..] {
                [column] if let Some(gui) = column.vertex(row) => self.vertices.insert((origin, gui)),
                columns => {
                    let values: SmallVec<[Value; 1]> = columns.iter().map(|c| c.get(row)).collect();
                    let size: usize = values.iter().map(|v| size_of::<Value>() + v.heap_bytes()).sum();
                    let fresh = self.others.insert((origin, values));
                    bytes += if fresh { size } else { 0 };
                    fresh
                }
            };
            if fresh {
                kept.push(row as u32);
                bytes += 24;
            }
        }
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(kept)
    }
}

impl Operator for Distinct<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            ctx.check()?;
            let kept = self.fresh_rows(&batch, ctx)?;
            if !kept.is_empty() {
                return Ok(Some(batch.select(&kept)));
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if feed.fresh {
            self.vertices.clear();
            self.others.clear();
            ctx.memory.release(std::mem::take(&mut self.charged));
        }
        self.input.feed(ctx, feed);
    }
}
