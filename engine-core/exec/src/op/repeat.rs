//! Rounds of a body over a whole frontier.
//!
//! A round, in order: rows that meet `until` (if it is written before the body) leave; rows that meet `emit` (likewise)
//! are also yielded; the body runs over the remaining rows at once; then the conditions written after the body are
//! tested in the same way. The rows of a round are yielded before the next round begins.
//!
//! If the body needs all rows of a round (a sample, a sort, an aggregate, a slice), the first round begins after all input was
//! read: the division of the input into batches must not change the result.
//!
//! The rows of the body keep the repeat's own origins, so a distinct inside the body holds over rounds and input batches. A
//! condition is a subplan whose origins are the rows that it tests.

use super::apply::Subplan;
use super::buffer::Buffer;
use super::{Boxed, Feed, Operator, Want, build};
use crate::value::Evaluator;
use crate::{Batch, Column, Context, Error, Result};
use tidegraph_plan::{Expr, Op, RepeatTest, Slot};
use tidegraph_types::Value;

/// Runs a body repeatedly.
pub(super) struct Repeat<'p> {
    input: Boxed<'p>,
    body: Boxed<'p>,
    until: Option<Test<'p>>,
    emit: Option<Test<'p>>,
    times: Option<&'p Expr>,
    times_before: bool,
    loops: Slot,
    /// The value of `times`, once it is computed.
    most: Option<i64>,
    /// Rows before a round, and how many rounds they have passed.
    frontier: Option<(Batch, i32)>,
    frontier_bytes: usize,
    ready: Buffer,
    origins: usize,
    /// Whether the body was fed since the repeat was.
    body_is_fresh: bool,
    /// Whether the body needs all rows of a round.
    gathers: bool,
}

/// Whether an operator of a body, without its subplans, needs all rows together.
fn gathers(body: &Op) -> bool {
    let mut op = Some(body);
    while let Some(now) = op {
        let needs_all = matches!(
            now,
            Op::Aggregate { .. } | Op::Sort { .. } | Op::Top { .. } | Op::Tail { .. } | Op::Slice { .. }
        );
        if needs_all {
            return true;
        }
        op = now.input();
    }
    false
}

/// A condition on rows.
struct Test<'p> {
    before: bool,
    /// The condition; `None` is always true.
    plan: Option<Subplan<'p>>,
}

impl<'p> Test<'p> {
    fn new(test: &'p RepeatTest, measured: bool) -> Result<Self> {
        let plan = match &*test.plan {
            Op::Argument => None,
            plan => Some(Subplan::new(plan, measured)?),
        };
        Ok(Self { before: test.before, plan })
    }

    fn rows(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let rows = 0..batch.len as u32;
        Ok(match &mut self.plan {
            None => rows.collect(),
            Some(plan) => {
                let found = plan.exists(batch, ctx)?;
                rows.filter(|row| found.is_done(*row)).collect()
            }
        })
    }
}

impl<'p> Repeat<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op, measured: bool) -> Result<Self> {
        let Op::Repeat { body, until, emit, times, times_before, loops, .. } = op else {
            return Err(Error::Plan("not a repeat".to_owned()));
        };
        let test = |test| Test::new(test, measured);
        Ok(Self {
            input,
            body: build(body, measured)?,
            until: until.as_ref().map(test).transpose()?,
            emit: emit.as_ref().map(test).transpose()?,
            times: times.as_ref(),
            times_before: *times_before,
            loops: *loops,
            most: None,
            frontier: None,
            frontier_bytes: 0,
            ready: Buffer::default(),
            origins: 1,
            body_is_fresh: true,
            gathers: gathers(body),
        })
    }

    fn most(&mut self, ctx: &Context<'_>) -> Result<Option<i64>> {
        let Some(times) = self.times else { return Ok(None) };
        if self.most.is_none() {
            let value = Evaluator::constant(times, ctx)?;
            match value.as_i64() {
                Some(times) => self.most = Some(times),
                None => return Err(Error::of_type("times", "an integer", &value)),
            }
        }
        Ok(self.most)
    }

    /// Tests the conditions on one side of the body: yields the rows that leave and the emitted ones, and returns the
    /// rows that stay.
    fn test(&mut self, batch: Batch, before: bool, rounds: i32, ctx: &Context<'_>) -> Result<Option<Batch>> {
        let most = self.most(ctx)?.filter(|_| self.times_before == before);
        if most.is_some_and(|most| i64::from(rounds) >= most) {
            self.ready.push(batch, ctx)?;
            return Ok(None);
        }
        let mut batch = batch;
        if let Some(until) = self.until.as_mut().filter(|test| test.before == before) {
            let leaving = until.rows(&batch, ctx)?;
            if leaving.len() == batch.len {
                self.ready.push(batch, ctx)?;
                return Ok(None);
            }
            if !leaving.is_empty() {
                self.ready.push(batch.gather(&leaving), ctx)?;
                let staying: Vec<u32> =
                    (0..batch.len as u32).filter(|row| leaving.binary_search(row).is_err()).collect();
                batch = batch.gather(&staying);
            }
        }
        if let Some(emit) = self.emit.as_mut().filter(|test| test.before == before) {
            let yielded = emit.rows(&batch, ctx)?;
            if !yielded.is_empty() {
                self.ready.push(batch.clone().select(&yielded), ctx)?;
            }
        }
        Ok(Some(batch))
    }

    /// Reads the remaining input and returns all of it as one batch.
    fn with_the_rest(&mut self, first: Batch, ctx: &Context<'_>) -> Result<Batch> {
        let mut all = Buffer::default();
        all.push(first, ctx)?;
        while let Some(batch) = self.input.next(ctx, Want::ALL)? {
            ctx.check()?;
            all.push(batch, ctx)?;
        }
        Ok(all.take(ctx))
    }

    fn round(&mut self, batch: Batch, rounds: i32, ctx: &Context<'_>) -> Result<()> {
        let mut batch = batch;
        batch.set(self.loops, Column::Constant(Value::Int(rounds), batch.len));
        let Some(batch) = self.test(batch, true, rounds, ctx)? else { return Ok(()) };
        let fresh = std::mem::take(&mut self.body_is_fresh);
        self.body.feed(ctx, Feed { fresh, rounds: true, ..Feed::new(batch, self.origins) });
        let mut next = Buffer::default();
        let rounds = rounds.saturating_add(1);
        while let Some(mut batch) = self.body.next(ctx, Want::ALL)? {
            ctx.check()?;
            batch.set(self.loops, Column::Constant(Value::Int(rounds), batch.len));
            if let Some(batch) = self.test(batch, false, rounds, ctx)? {
                next.push(batch, ctx)?;
            }
        }
        if next.rows() > 0 {
            let batch = next.take(ctx);
            self.frontier_bytes = batch.bytes();
            ctx.memory.charge(self.frontier_bytes)?;
            self.frontier = Some((batch, rounds));
        }
        Ok(())
    }
}

impl Operator for Repeat<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.ready.pop(ctx) {
                return Ok(Some(batch));
            }
            if let Some((batch, rounds)) = self.frontier.take() {
                ctx.memory.release(std::mem::take(&mut self.frontier_bytes));
                self.round(batch, rounds, ctx)?;
                continue;
            }
            let Some(batch) = self.input.next(ctx, if self.gathers { Want::ALL } else { want })? else {
                return Ok(None);
            };
            let batch = if self.gathers { self.with_the_rest(batch, ctx)? } else { batch };
            self.round(batch, 0, ctx)?;
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.frontier = None;
        ctx.memory.release(std::mem::take(&mut self.frontier_bytes));
        self.ready.clear(ctx);
        self.origins = feed.origins;
        self.body_is_fresh |= feed.fresh;
        self.input.feed(ctx, feed);
    }
}
