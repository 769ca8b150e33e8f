//! Slice, time limit and distinct: streaming operators with state for each origin. Over the rounds of a repeat a distinct keeps its
//! state, and a slice counts anew.

use super::{Boxed, Done, Feed, Operator, Want, compute};
use crate::spill::{Arrivals, Sorted};
use crate::{Batch, Context, Result};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::time::Duration;
use tidegraph_plan::{Expr, Op};
use tidegraph_types::{Gui, Value};

/// Drops the first rows of each origin and yields at most a number of those that follow.
pub(super) struct Slice<'p> {
    input: Boxed<'p>,
    skip: Option<&'p Expr>,
    limit: Option<&'p Expr>,
    /// Whether the input writes, so that it must be read to its end.
    input_writes: bool,
    /// Whether the input changes registers, so that an empty slice asks it for a row all the same.
    input_collects: bool,
    /// Skip and limit, once they are computed.
    bounds: Option<(u64, u64)>,
    seen: Vec<u64>,
    done: Done,
}

impl<'p> Slice<'p> {
    pub(super) fn new(input: Boxed<'p>, skip: Option<&'p Expr>, limit: Option<&'p Expr>, below: &Op) -> Self {
        let (input_writes, input_collects) = (below.writes(), below.collects());
        let (bounds, seen, done) = (None, vec![], Done::default());
        Self { input, skip, limit, input_writes, input_collects, bounds, seen, done }
    }

    fn bounds(&mut self, ctx: &Context<'_>) -> Result<(u64, u64)> {
        if let Some(bounds) = self.bounds {
            return Ok(bounds);
        }
        let skip = self.skip.map_or(Ok(0), |skip| compute::count("skip", skip, ctx))?;
        let limit = self.limit.map_or(Ok(u64::MAX), |limit| compute::count("limit", limit, ctx))?;
        if limit == 0 && !self.input_collects {
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
                let left = skip.saturating_add(limit.max(1)).saturating_sub(seen);
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

/// Yields the rows that come within a time from the first one on, over all rounds of a repeat.
pub(super) struct TimeLimit<'p> {
    input: Boxed<'p>,
    limit: Duration,
    /// When the first row came.
    began: Option<Duration>,
}

impl<'p> TimeLimit<'p> {
    pub(super) fn new(input: Boxed<'p>, limit: Duration) -> Self {
        Self { input, limit, began: None }
    }

    fn is_over(&self, ctx: &Context<'_>) -> bool {
        self.began.is_some_and(|began| ctx.interrupt.elapsed().saturating_sub(began) >= self.limit)
    }
}

impl Operator for TimeLimit<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.is_over(ctx) {
            return Ok(None);
        }
        let batch = self.input.next(ctx, want)?;
        if batch.is_some() && self.began.is_none() {
            self.began = Some(ctx.interrupt.elapsed());
        }
        Ok(batch.filter(|_| !self.is_over(ctx)))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if feed.fresh {
            self.began = None;
        }
        self.input.feed(ctx, feed);
    }
}

/// Yields the first of the rows with equivalent values.
///
/// Values that do not fit into half of the request's memory go to files, with their rows: those rows come at the end, in
/// the order of their arrival too.
pub(super) struct Distinct<'p> {
    input: Boxed<'p>,
    by: &'p [Expr],
    /// Single vertices, the common case.
    vertices: FxHashSet<(u32, Gui)>,
    others: FxHashSet<(u32, SmallVec<[Value; 1]>)>,
    charged: usize,
    /// Whether values are compared with those of later feeds, too. Those in files could not be.
    rounds: bool,
    /// Rows whose values are not in memory.
    overflow: Option<Arrivals>,
    /// What is left of them.
    rest: Option<Sorted>,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: Boxed<'p>, by: &'p [Expr]) -> Self {
        Self {
            input,
            by,
            vertices: FxHashSet::default(),
            others: FxHashSet::default(),
            charged: 0,
            rounds: false,
            overflow: None,
            rest: None,
        }
    }

    fn fresh_rows(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let columns = compute::columns(self.by, batch, ctx)?;
        let may_spill = ctx.spill_files().is_some() && batch.origin.is_none() && !self.rounds;
        let half = usize::try_from(ctx.limits.memory_bytes / 2).unwrap_or(usize::MAX);
        let mut kept = Vec::with_capacity(batch.len);
        let mut over = vec![];
        for row in 0..batch.len {
            let origin = batch.origin_of(row);
            let vertex = if let [column] = &columns[..] { column.vertex(row) } else { None };
            let mut bytes = 24;
            let other = match vertex {
                Some(gui) if self.vertices.contains(&(origin, gui)) => continue,
                Some(_) => None,
                None => {
                    let values: SmallVec<[Value; 1]> = columns.iter().map(|c| c.get(row)).collect();
                    bytes += values.iter().map(|v| size_of::<Value>() + v.heap_bytes()).sum::<usize>();
                    let entry = (origin, values);
                    if self.others.contains(&entry) {
                        continue;
                    }
                    Some(entry)
                }
            };
            let is_full = self.overflow.is_some() || self.charged + bytes > half;
            if may_spill && (is_full || ctx.memory.charge(bytes).is_err()) {
                self.overflow.get_or_insert_with(|| Arrivals::new(columns.len()));
                over.push(row as u32);
                continue;
            }
            if !may_spill {
                ctx.memory.charge(bytes)?;
            }
            self.charged += bytes;
            match (other, vertex) {
                (Some(entry), _) => drop(self.others.insert(entry)),
                (None, Some(gui)) => drop(self.vertices.insert((origin, gui))),
                (None, None) => {}
            }
            kept.push(row as u32);
        }
        if let Some(overflow) = &mut self.overflow {
            overflow.push(&columns, batch.columns.iter().map(Option::as_ref), &over, ctx)?;
        }
        Ok(kept)
    }

    fn forget(&mut self, ctx: &Context<'_>) {
        self.vertices.clear();
        self.others.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
    }
}

impl Operator for Distinct<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some(rest) = &mut self.rest {
                return rest.next(want, ctx);
            }
            let Some(batch) = self.input.next(ctx, want)? else {
                let Some(overflow) = self.overflow.take() else { return Ok(None) };
                self.forget(ctx);
                self.rest = Some(overflow.firsts(ctx)?);
                continue;
            };
            ctx.check()?;
            let kept = self.fresh_rows(&batch, ctx)?;
            if !kept.is_empty() {
                return Ok(Some(batch.select(&kept)));
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if feed.fresh {
            self.forget(ctx);
            if let Some(mut overflow) = self.overflow.take() {
                overflow.clear(ctx);
            }
            if let Some(mut rest) = self.rest.take() {
                rest.clear(ctx);
            }
        }
        self.rounds = feed.rounds;
        self.input.feed(ctx, feed);
    }
}
