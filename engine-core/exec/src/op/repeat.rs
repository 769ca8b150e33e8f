//! Rounds of a body.
//!
//! A row passes a round, in order: if it meets `until` (if that is written before the body) it leaves; if it meets `emit`
//! (likewise) it is also yielded; the body runs; then the conditions written after the body are tested in the same way.
//!
//! *Lazy*: the body gets some of the waiting rows at a time, and only while the caller wants more rows. Rows wait in the order
//! in which they came, so all rows of a round pass before those of the next: breadth first. What does not fit into memory
//! waits in a file.
//!
//! If the body needs all rows of a round (a sample, a sort, an aggregate, a slice), it gets them at once. Then, and if it has a
//! distinct, the first round begins after all input was read: the division of the input into batches must not change the
//! result. If the body merges equal rows, it gets as many rows of a round as an eighth of the memory holds.
//!
//! The rows of the body keep the repeat's own origins, so a distinct inside the body holds over rounds and input batches. A
//! condition is a subplan whose origins are the rows that it tests.
//!
//! What must never happen: rows of two rounds in one batch, because they share the number of the round.

use super::apply::Subplan;
use super::buffer::Buffer;
use super::{Boxed, Feed, Growth, Operator, Want, build};
use crate::batch::BATCH_ROWS;
use crate::spill::Queue;
use crate::value::Evaluator;
use crate::{Batch, Column, Context, Error, Result};
use tidegraph_plan::{Expr, Op, RepeatTest, Slot};
use tidegraph_types::Value;

/// Rows that the body gets at a time, if the caller wants all rows: enough to ask other machines seldom.
const ROUND_ROWS: usize = 16 * BATCH_ROWS;
/// The part of the memory that is left that the rows of a round may take, if the body merges them.
const PART: u64 = 8;

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
    /// Rows that wait for the round `rounds`, and those for the round after it.
    now: Queue,
    later: Queue,
    /// The number of rounds that the rows in `now` have passed.
    rounds: i32,
    /// Whether the body has rows of round `rounds`.
    is_running: bool,
    /// Bytes that are charged for what the body got.
    fed_bytes: usize,
    ready: Buffer,
    origins: usize,
    /// Whether the body was fed since the repeat was.
    body_is_fresh: bool,
    gathers: Gathers,
    /// Whether all input is read before the first round.
    reads_all: bool,
    /// Whether the body writes, so that it must be read to its end.
    body_writes: bool,
    growth: Growth,
}

/// How many rows of a round the body gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gathers {
    /// Some.
    Some,
    /// Many, because it merges them.
    Many,
    /// All, because the result depends on it.
    All,
}

/// Looks at the operators of a body, without its subplans: how many rows of a round it is to get, and whether it has a
/// distinct, which holds over rounds.
fn needs(body: &Op) -> (Gathers, bool) {
    let (mut op, mut gathers, mut has_distinct) = (Some(body), Gathers::Some, false);
    while let Some(now) = op {
        let own = match now {
            Op::Aggregate { .. }
            | Op::Sort { .. }
            | Op::Top { .. }
            | Op::Tail { .. }
            | Op::Slice { .. }
            | Op::ChoosePaths { .. }
            | Op::Collect { eager: true, .. } => Gathers::All,
            Op::Bulk { over_rounds: false, .. } => Gathers::Many,
            _ => Gathers::Some,
        };
        gathers = gathers.max(own);
        has_distinct |= matches!(now, Op::Distinct { .. });
        // The rounds of a loop in the body are parts of a round of this one.
        if let Op::Repeat { body, .. } = now {
            let (of_inner, distinct) = needs(body);
            gathers = gathers.max(of_inner);
            has_distinct |= distinct;
        }
        op = now.input();
    }
    (gathers, has_distinct)
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
        let body_writes = body.writes();
        let (gathers, has_distinct) = needs(body);
        // What is written must not depend on where batches end.
        let gathers = if body_writes { Gathers::All } else { gathers };
        Ok(Self {
            input,
            body: build(body, measured)?,
            until: until.as_ref().map(test).transpose()?,
            emit: emit.as_ref().map(test).transpose()?,
            times: times.as_ref(),
            times_before: *times_before,
            loops: *loops,
            most: None,
            now: Queue::default(),
            later: Queue::default(),
            rounds: 0,
            is_running: false,
            fed_bytes: 0,
            ready: Buffer::default(),
            origins: 1,
            body_is_fresh: true,
            gathers,
            reads_all: has_distinct || gathers == Gathers::All,
            body_writes,
            growth: Growth::default(),
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

    /// Removes rows that wait for the same round, as many as the body is to get; `None` if none wait for it.
    fn take(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let (most_rows, most_bytes) = match self.gathers {
            Gathers::All => (usize::MAX, usize::MAX),
            Gathers::Many => (usize::MAX, usize::try_from(ctx.memory.left() / PART).unwrap_or(usize::MAX)),
            Gathers::Some if want.rows < BATCH_ROWS => (self.growth.next(), usize::MAX),
            Gathers::Some => (ROUND_ROWS, usize::MAX),
        };
        let mut taken = Buffer::default();
        while taken.rows() < most_rows && taken.bytes() < most_bytes {
            ctx.check()?;
            let Some(batch) = self.now.pop(ctx)? else { break };
            if self.body_writes || want.done.is_none() {
                taken.push(batch, ctx)?;
                continue;
            }
            let wanted: Vec<u32> =
                (0..batch.len as u32).filter(|row| want.wants(batch.origin_of(*row as usize))).collect();
            if !wanted.is_empty() {
                taken.push(batch.select(&wanted), ctx)?;
            }
        }
        Ok((taken.rows() > 0).then(|| taken.take(ctx)))
    }

    /// Reads input rows, which wait for the first round. Returns whether there are any.
    fn read(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<bool> {
        self.rounds = 0;
        let input_want = if self.reads_all { Want::ALL } else { want };
        let limit = usize::try_from(ctx.memory.left() / PART).unwrap_or(usize::MAX);
        let mut bytes = 0;
        while let Some(batch) = self.input.next(ctx, input_want)? {
            ctx.check()?;
            bytes += batch.bytes();
            self.now.push(batch, ctx)?;
            let is_enough = match self.gathers {
                _ if self.reads_all => false,
                Gathers::Many => bytes >= limit || want.rows < BATCH_ROWS,
                Gathers::Some | Gathers::All => true,
            };
            if is_enough {
                break;
            }
        }
        Ok(bytes > 0)
    }

    /// Gives the body rows that wait.
    fn start(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        let mut batch = batch;
        batch.set(self.loops, Column::Constant(Value::Int(self.rounds), batch.len));
        let Some(batch) = self.test(batch, true, self.rounds, ctx)? else { return Ok(()) };
        let bytes = batch.bytes();
        ctx.memory.charge(bytes)?;
        self.fed_bytes = bytes;
        let fresh = std::mem::take(&mut self.body_is_fresh);
        self.body.feed(ctx, Feed { fresh, rounds: true, ..Feed::new(batch, self.origins) });
        self.is_running = true;
        Ok(())
    }

    /// Takes rows from the body.
    fn run(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<()> {
        let done = if self.body_writes { None } else { want.done };
        let Some(mut batch) = self.body.next(ctx, Want { rows: BATCH_ROWS, done })? else {
            self.is_running = false;
            ctx.memory.release(std::mem::take(&mut self.fed_bytes));
            return Ok(());
        };
        let rounds = self.rounds.saturating_add(1);
        batch.set(self.loops, Column::Constant(Value::Int(rounds), batch.len));
        if let Some(batch) = self.test(batch, false, rounds, ctx)? {
            self.later.push(batch, ctx)?;
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
            if self.is_running {
                self.run(ctx, want)?;
                continue;
            }
            if let Some(batch) = self.take(ctx, want)? {
                self.start(batch, ctx)?;
                continue;
            }
            std::mem::swap(&mut self.now, &mut self.later);
            self.rounds = self.rounds.saturating_add(1);
            if let Some(batch) = self.take(ctx, want)? {
                self.start(batch, ctx)?;
            } else if !self.read(ctx, want)? {
                return Ok(None);
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.now.clear(ctx);
        self.later.clear(ctx);
        ctx.memory.release(std::mem::take(&mut self.fed_bytes));
        self.ready.clear(ctx);
        (self.rounds, self.is_running) = (0, false);
        self.growth = Growth::default();
        self.origins = feed.origins;
        self.body_is_fresh |= feed.fresh;
        self.input.feed(ctx, feed);
    }
}
