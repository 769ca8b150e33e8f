//! Rows of a sort with a limit that cannot be among the first are dropped after their first key, before anything else is
//! read of them.
//!
//! `ORDER BY m.date DESC, m.id LIMIT 20` over a million messages needs the ids of few of them. Once 20 rows are known, a row
//! with an earlier date than the 20th is none of the first. A filter just below that reads the same vertex reads the date,
//! too, in the same visit.
//!
//! What must never happen: a row is dropped that the sort needs, or an error of a later key or binding is lost because its
//! row was dropped. So keys and bindings that may fail are computed first, and rows that are equal in the first key stay.

use super::row::{Filter, Runs};
use super::{Boxed, Feed, Operator, Want, build, compute};
use crate::profile::OpKey;
use crate::spill::{KeyOrder, SHORT_KEY_BYTES};
use crate::value::reads_same_elements;
use crate::{Batch, Column, Context, Result};
use std::sync::Arc;
use tidegraph_plan::{FirstKey, Op};

/// Where the rows come from.
enum Source<'p> {
    Rows(Boxed<'p>),
    /// A filter that reads the elements of the first key.
    Filtered(Box<Filter<'p>>, OpKey),
}

/// The input of a sort with a limit.
pub(super) struct FirstRows<'p> {
    source: Source<'p>,
    first: FirstKey<'p>,
    order: KeyOrder,
    runs: Runs<'p>,
    /// The first key of the last wanted row of those so far, a column of one value.
    last: Option<Column>,
}

impl<'p> FirstRows<'p> {
    pub(super) fn new(first: FirstKey<'p>, order: KeyOrder, measured: bool) -> Result<Self> {
        let source = match first.below {
            Op::Filter { input, predicate } if reads_same_elements(predicate, first.key) => {
                let filter = Filter::new(build(input, measured)?, input, predicate);
                Source::Filtered(Box::new(filter), OpKey::of(first.below))
            }
            other => Source::Rows(build(other, measured)?),
        };
        let runs = Runs::of(first.bindings);
        Ok(Self { source, first, order, runs, last: None })
    }

    /// Returns the next rows with all bindings, at least one. `most`: how many rows are wanted, if they have one origin.
    pub(super) fn next(&mut self, ctx: &Context<'_>, most: Option<usize>) -> Result<Option<Batch>> {
        // On other machines, to read all keys at once saves a message for each batch.
        if ctx.view.is_far()
            && let Source::Rows(rows) = &mut self.source
        {
            let Some(mut batch) = rows.next(ctx, Want::ALL)? else { return Ok(None) };
            self.runs.bind(&mut batch, None, ctx)?;
            return Ok(Some(batch));
        }
        loop {
            let Some((mut batch, mut key)) = self.source.next(&self.first, ctx)? else { return Ok(None) };
            // An earlier write of the request may have deleted an element, which is an error to read.
            if let Some(most) = most.filter(|_| batch.origin.is_none() && ctx.view.generation() == 0) {
                let rows = self.wanted(&key, most, ctx)?;
                if rows.is_empty() {
                    continue;
                }
                if rows.len() < batch.len {
                    key = Arc::new(key.gather(&rows));
                    batch = batch.gather(&rows);
                }
            }
            if let Some(known) = self.first.bound {
                batch.set_shared(self.first.bindings[known].0, key);
            }
            self.runs.bind(&mut batch, self.first.bound, ctx)?;
            return Ok(Some(batch));
        }
    }

    /// Returns the rows that may be among the first, ascending.
    fn wanted(&mut self, key: &Column, most: usize, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let all = || (0..key.len() as u32).collect::<Vec<u32>>();
        if most == 0 || key.largest_value_bytes() > SHORT_KEY_BYTES {
            return Ok(all());
        }
        ctx.spend(key.len())?;
        let order = self.order;
        let not_after =
            |row: u32, (column, at): (&Column, usize)| order.compare(key, row as usize, column, at).is_le();
        let mut rows = match &self.last {
            Some(last) => all().into_iter().filter(|row| not_after(*row, (last, 0))).collect(),
            None => all(),
        };
        if rows.len() < most {
            return Ok(rows);
        }
        let mut by_key = rows.clone();
        let (_, last, _) =
            by_key.select_nth_unstable_by(most - 1, |a, b| order.compare(key, *a as usize, key, *b as usize));
        let last = *last as usize;
        rows.retain(|row| not_after(*row, (key, last)));
        self.last = Some(key.gather(&[last as u32]));
        Ok(rows)
    }

    pub(super) fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.last = None;
        match &mut self.source {
            Source::Rows(rows) => rows.feed(ctx, feed),
            Source::Filtered(filter, _) => filter.feed(ctx, feed),
        }
    }
}

impl Source<'_> {
    /// Returns the next rows and their first keys.
    fn next(&mut self, first: &FirstKey<'_>, ctx: &Context<'_>) -> Result<Option<(Batch, Arc<Column>)>> {
        match self {
            Self::Rows(rows) => {
                let Some(batch) = rows.next(ctx, Want::ALL)? else { return Ok(None) };
                let key = compute::column(first.key, &batch, ctx)?;
                Ok(Some((batch, key)))
            }
            Self::Filtered(filter, op) => {
                let begun = ctx.profile.as_ref().map(|profile| profile.begin(ctx.view.traffic()));
                let passing = filter.next_with(ctx, Want::ALL, first.key);
                if let Some((profile, begun)) = ctx.profile.as_ref().zip(begun) {
                    let rows =
                        passing.as_ref().map_or(0, |found| found.as_ref().map_or(0, |(batch, _)| batch.len));
                    profile.end(begun, *op, rows as u64, ctx.view.traffic());
                }
                passing
            }
        }
    }
}
