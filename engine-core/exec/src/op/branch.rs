//! Several subplans for each row: union, coalesce, choose.
//!
//! For a single outer row the rows of the branches are yielded as they come. For several, the rows of all branches are
//! buffered and yielded in the order of the outer rows, which the languages promise.

use super::apply::{Subplan, with_outer_origin};
use super::buffer::{Buffer, Pieces};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Context, Result};
use tidegraph_plan::{Branch, Expr, Op};

/// The rows of all branches for one outer batch, in the order of the outer rows.
#[derive(Default)]
struct Merged {
    buffer: Buffer,
    pieces: Option<(Pieces, Batch)>,
}

impl Merged {
    /// Reads a branch to its end and appends its rows. Calls `seen` with each origin.
    fn read(&mut self, branch: &mut Subplan<'_>, ctx: &Context<'_>, mut seen: impl FnMut(u32)) -> Result<()> {
        while let Some(batch) = branch.next(ctx, BATCH_ROWS)? {
            ctx.check()?;
            (0..batch.len).for_each(|row| seen(batch.origin_of(row)));
            self.buffer.push(batch, ctx)?;
        }
        Ok(())
    }

    /// Reads a branch that got only some outer rows. An aggregate also yields rows for the others, which are dropped.
    fn read_of(
        &mut self,
        branch: &mut Subplan<'_>,
        outer: &[u32],
        ctx: &Context<'_>,
        mut seen: impl FnMut(u32),
    ) -> Result<()> {
        while let Some(mut batch) = branch.next(ctx, BATCH_ROWS)? {
            ctx.check()?;
            let is_of = |row: &u32| outer.binary_search(&batch.origin_of(*row as usize)).is_ok();
            let kept: Vec<u32> = (0..batch.len as u32).filter(is_of).collect();
            if kept.len() < batch.len {
                batch = batch.gather(&kept);
            }
            (0..batch.len).for_each(|row| seen(batch.origin_of(row)));
            self.buffer.push(batch, ctx)?;
        }
        Ok(())
    }

    fn finish(&mut self, outer: Batch, ctx: &Context<'_>) -> Result<()> {
        let all = self.buffer.take(ctx);
        let mut rows: Vec<u32> = (0..all.len as u32).collect();
        if all.origin.is_some() {
            rows.sort_by_key(|row| all.origin_of(*row as usize));
        }
        self.pieces = Some((Pieces::new(all, rows, ctx)?, outer));
        Ok(())
    }

    fn next(&mut self, want: Want<'_>, ctx: &Context<'_>) -> Option<Batch> {
        let (pieces, outer) = self.pieces.as_mut()?;
        match pieces.next(want, ctx) {
            Some(batch) => Some(with_outer_origin(batch, outer)),
            None => {
                self.pieces = None;
                None
            }
        }
    }

    fn clear(&mut self, ctx: &Context<'_>) {
        self.buffer.clear(ctx);
        if let Some((mut pieces, _)) = self.pieces.take() {
            pieces.clear(ctx);
        }
    }
}

/// Yields the rows of all branches.
pub(super) struct Union<'p> {
    input: Boxed<'p>,
    branches: Vec<Subplan<'p>>,
    merged: Merged,
    /// A single outer row, and the number of the branch that is read now.
    single: Option<(Batch, usize)>,
}

impl<'p> Union<'p> {
    pub(super) fn new(input: Boxed<'p>, branches: &'p [Op], measured: bool) -> Result<Self> {
        let branches = branches.iter().map(|plan| Subplan::new(plan, measured)).collect::<Result<_>>()?;
        Ok(Self { input, branches, merged: Merged::default(), single: None })
    }

    fn next_of_single(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        while let Some((outer, at)) = &mut self.single {
            let Some(branch) = self.branches.get_mut(*at) else { break };
            if let Some(batch) = branch.next(ctx, want.rows)? {
                return Ok(Some(with_outer_origin(batch, outer)));
            }
            *at += 1;
            if let Some(next) = self.branches.get_mut(*at) {
                next.start(outer, ctx);
            }
        }
        self.single = None;
        Ok(None)
    }
}

impl Operator for Union<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.merged.next(want, ctx) {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.next_of_single(ctx, want)? {
                return Ok(Some(batch));
            }
            let Some(outer) = self.input.next(ctx, want)? else { return Ok(None) };
            if outer.len == 1 {
                if let Some(first) = self.branches.first_mut() {
                    first.start(&outer, ctx);
                }
                self.single = Some((outer, 0));
                continue;
            }
            for branch in &mut self.branches {
                branch.start(&outer, ctx);
                self.merged.read(branch, ctx, |_| {})?;
            }
            self.merged.finish(outer, ctx)?;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.merged.clear(ctx);
        self.single = None;
        self.input.feed(ctx, feed);
    }
}

/// Yields for each row the rows of the first branch that has any.
pub(super) struct Coalesce<'p> {
    input: Boxed<'p>,
    branches: Vec<Subplan<'p>>,
    merged: Merged,
}

impl<'p> Coalesce<'p> {
    pub(super) fn new(input: Boxed<'p>, branches: &'p [Op], measured: bool) -> Result<Self> {
        let branches = branches.iter().map(|plan| Subplan::new(plan, measured)).collect::<Result<_>>()?;
        Ok(Self { input, branches, merged: Merged::default() })
    }
}

impl Operator for Coalesce<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.merged.next(want, ctx) {
                return Ok(Some(batch));
            }
            let Some(outer) = self.input.next(ctx, want)? else { return Ok(None) };
            let mut left: Vec<u32> = (0..outer.len as u32).collect();
            let mut seen = vec![false; outer.len];
            for branch in &mut self.branches {
                if left.is_empty() {
                    break;
                }
                branch.start_rows(&outer, &left, ctx);
                self.merged.read_of(branch, &left, ctx, |origin| seen[origin as usize] = true)?;
                left.retain(|row| !seen[*row as usize]);
            }
            self.merged.finish(outer, ctx)?;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.merged.clear(ctx);
        self.input.feed(ctx, feed);
    }
}

/// Yields for each row the rows of the first branch whose condition is true.
pub(super) struct Choose<'p> {
    input: Boxed<'p>,
    branches: Vec<(&'p Expr, Subplan<'p>)>,
    otherwise: Option<Subplan<'p>>,
    merged: Merged,
}

impl<'p> Choose<'p> {
    pub(super) fn new(
        input: Boxed<'p>,
        branches: &'p [Branch],
        otherwise: Option<&'p Op>,
        measured: bool,
    ) -> Result<Self> {
        let branches = branches
            .iter()
            .map(|branch| Ok((&branch.condition, Subplan::new(&branch.plan, measured)?)))
            .collect::<Result<_>>()?;
        let otherwise = otherwise.map(|plan| Subplan::new(plan, measured)).transpose()?;
        Ok(Self { input, branches, otherwise, merged: Merged::default() })
    }
}

impl Operator for Choose<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.merged.next(want, ctx) {
                return Ok(Some(batch));
            }
            let Some(outer) = self.input.next(ctx, want)? else { return Ok(None) };
            let mut left: Vec<u32> = (0..outer.len as u32).collect();
            for (condition, branch) in &mut self.branches {
                if left.is_empty() {
                    break;
                }
                // Only rows that no earlier branch took: an error of a condition counts only where it is reached.
                let chosen = if left.len() == outer.len {
                    compute::filter(condition, &outer, ctx)?
                } else {
                    let rows = compute::filter(condition, &outer.gather(&left), ctx)?;
                    rows.into_iter().map(|row| left[row as usize]).collect()
                };
                if !chosen.is_empty() {
                    left.retain(|row| chosen.binary_search(row).is_err());
                    branch.start_rows(&outer, &chosen, ctx);
                    self.merged.read_of(branch, &chosen, ctx, |_| {})?;
                }
            }
            if let Some(otherwise) = self.otherwise.as_mut().filter(|_| !left.is_empty()) {
                otherwise.start_rows(&outer, &left, ctx);
                self.merged.read_of(otherwise, &left, ctx, |_| {})?;
            }
            self.merged.finish(outer, ctx)?;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.merged.clear(ctx);
        self.input.feed(ctx, feed);
    }
}
