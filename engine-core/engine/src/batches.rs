//! `CALL { … } IN TRANSACTIONS`: a request whose writes are committed in batches.
//!
//! Flow: the clauses before the subquery run and their rows are kept; the subquery runs for some of the rows at a time, each
//! time as a transaction of its own; the clauses after it run over all rows that the batches yielded. Between the three,
//! rows are lists of values in a parameter, with the handles of elements in them. If the first clauses read a file, batches
//! run while it is read, and only the rows of one batch are kept.
//!
//! What must never happen: a batch is committed twice, or a batch after an error that ends the request.

use crate::deadline::Deadline;
use crate::learning::Learning;
use crate::plans::CachedPlan;
use crate::query::{Answer, Query};
use crate::stream::{Head, RowSink, Rows};
use crate::{Database, Error, Language, Parameters};
use std::collections::VecDeque;
use std::time::Duration;
use tidegraph_exec::view::Counters;
use tidegraph_exec::{Interrupt, Stop};
use tidegraph_plan::passes::optimize;
use tidegraph_plan::{
    BatchedPlan, DEFAULT_BATCH_ROWS, Expr, FrontEndError, Limits as PlanLimits, OnError, Plan, ROWS_PARAMETER,
};
use tidegraph_platform::Clock;
use tidegraph_types::{ErrorCode, Kind, Map, Str, Value, Version};

/// The pause before a batch is tried again. Each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The rows between the plans, within the memory limit of the request.
struct Between<'q> {
    /// Rows that wait for their batch.
    waiting: VecDeque<Value>,
    /// Rows for the clauses after the subquery.
    done: Vec<Value>,
    bytes: u64,
    limit_bytes: u64,
    query: &'q Query<'q>,
}

impl<'q> Between<'q> {
    fn new(limit_bytes: u64, query: &'q Query<'q>) -> Self {
        Self { waiting: VecDeque::new(), done: vec![], bytes: 0, limit_bytes, query }
    }

    fn charged(&mut self, row: Vec<Value>) -> Result<Value, Error> {
        let row = Value::list(row);
        self.bytes += bytes_of(&row);
        if self.bytes > self.limit_bytes {
            let message = format!(
                "the rows around CALL {{ … }} IN TRANSACTIONS need more than the memory limit of {} bytes: \
                 split the query, or raise the limit",
                self.limit_bytes
            );
            return Err(Error::new(ErrorCode::QueryLimitExceeded, message));
        }
        if let Some(memory) = self.query.memory {
            memory.grow_to(self.bytes).map_err(tidegraph_exec::Error::from)?;
        }
        Ok(row)
    }

    fn add_waiting(&mut self, row: Vec<Value>) -> Result<(), Error> {
        let row = self.charged(row)?;
        self.waiting.push_back(row);
        Ok(())
    }

    fn add_done(&mut self, row: Vec<Value>) -> Result<(), Error> {
        let row = self.charged(row)?;
        self.done.push(row);
        Ok(())
    }

    /// Takes the rows of the next batch.
    fn take(&mut self, most: usize) -> Vec<Value> {
        let rows: Vec<Value> = self.waiting.drain(..most.min(self.waiting.len())).collect();
        self.bytes = self.bytes.saturating_sub(rows.iter().map(bytes_of).sum());
        rows
    }
}

fn bytes_of(row: &Value) -> u64 {
    (size_of::<Value>() + row.heap_bytes()) as u64
}

/// What happened to the transaction of a batch.
struct Outcome {
    started: bool,
    error: Option<Error>,
    number: usize,
}

impl Outcome {
    /// Returns the status that `REPORT STATUS` shows.
    fn status(&self) -> Value {
        let committed = self.started && self.error.is_none();
        let id = if self.started { Value::string(format!("batch-{}", self.number)) } else { Value::Null };
        let message = self.error.as_ref().map_or(Value::Null, |error| Value::string(error.to_string()));
        let entries: [(&str, Value); 4] = [
            ("started", self.started.into()),
            ("committed", committed.into()),
            ("transactionId", id),
            ("errorMessage", message),
        ];
        Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect::<Map>())
    }
}

impl Database {
    /// Translates a text with such a subquery; `None` for any other text.
    pub(crate) fn compile_batched(
        &self,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Option<BatchedPlan>, Error> {
        // A text with a plan of its own has no batches.
        if query.language != Language::OpenCypher || self.cached(query).is_some() {
            return Ok(None);
        }
        self.planning(query, deadline, |limits| {
            match tidegraph_opencypher::compile_batched(query.text, &self.options.procedures, limits) {
                Err(FrontEndError::Stopped(stopped)) => Err(deadline.error_of(stopped)),
                compiled => Ok(compiled?),
            }
        })
    }

    /// Calls `work` with the limits of planning a request.
    fn planning<T>(
        &self,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
        work: impl FnOnce(&PlanLimits<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        use tidegraph_exec::Interrupt as _;
        let go_on = || deadline.check().is_ok();
        let take = |bytes| query.memory.is_none_or(|memory| memory.grow_to(bytes).is_ok());
        work(&PlanLimits::new(self.options.query_memory_bytes, &go_on).taking(&take))
    }

    /// Optimises one of the plans.
    pub(crate) fn planned_part(
        &self,
        plan: Plan,
        keeps_handles: bool,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<CachedPlan, Error> {
        let mut planned = self.planning(query, deadline, |limits| {
            let learning = Learning::default();
            self.optimized(plan, limits, deadline, learning, |plan, knowledge| {
                optimize(plan, knowledge, |_, _| {})
            })
        })?;
        planned.keeps_handles = keeps_handles;
        Ok(planned)
    }

    /// Runs a request in batches.
    pub(crate) fn run_batched(
        &self,
        batched: BatchedPlan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        let BatchedPlan { input, batch, rest, reports, size, retry_s, on_error } = batched;
        if query.key.is_some() {
            let message = "CALL { … } IN TRANSACTIONS cannot be sent with an idempotency key, \
                           which stands for one transaction";
            return Err(Error::new(ErrorCode::UnsupportedOperation, message));
        }
        let size = batch_size(size.as_ref(), query)?;
        let retry = retry_s.as_ref().map(|seconds| retry_time(seconds, query)).transpose()?;
        let input = self.planned_part(input, true, query, deadline)?;
        let batch = self.planned_part(batch, true, query, deadline)?;
        let rest = rest.map(|rest| self.planned_part(rest, false, query, deadline)).transpose()?;
        let deadline = &deadline.within(&input);
        query.ensure_allowed(batch.writes || rest.as_ref().is_some_and(|rest| rest.writes))?;

        let mut batches = Batches {
            database: self,
            plan: &batch,
            query,
            deadline,
            size,
            retry,
            on_error,
            keeps_rows: rest.is_some(),
            reports,
            between: Between::new(self.options.query_memory_bytes, query),
            number: 0,
            ended: false,
            answer: nothing_done(),
            error: None,
        };
        // A file may be longer than memory: its rows go into batches while it is read. Other rows are read to their end
        // first, so that their version need not be kept while the batches change the graph.
        let found = if input.plan.root.reads_files() {
            let found = self.run_planned(&input, query, None, deadline, &mut Rows::handed_to(&mut batches));
            if let Some(error) = batches.error.take() {
                return Err(error);
            }
            found?
        } else {
            let mut found = self.run_planned(&input, query, None, deadline, &mut Rows::kept())?;
            for row in std::mem::take(&mut found.rows) {
                batches.between.add_waiting(row)?;
            }
            found
        };
        batches.run(1)?;
        let Batches { mut answer, between, .. } = batches;
        absorb(&mut answer, &found);
        if let Some(rest) = &rest {
            let last = self.run_part(rest, &between.done, query, deadline)?;
            absorb(&mut answer, &last);
            answer.columns = last.columns;
            answer.rows = last.rows;
        }
        Ok(answer)
    }

    /// Runs a plan over rows.
    pub(crate) fn run_part(
        &self,
        planned: &CachedPlan,
        rows: &[Value],
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        let mut parameters: Parameters = query.parameters.clone();
        parameters.insert(Str::new_static(ROWS_PARAMETER), Value::list(rows.to_vec()));
        let query = Query { parameters: &parameters, at_least: None, ..*query };
        self.run_planned(planned, &query, None, deadline, &mut Rows::kept())
    }
}

/// The batches of a request, which run as soon as they have their rows.
struct Batches<'a> {
    database: &'a Database,
    plan: &'a CachedPlan,
    query: &'a Query<'a>,
    deadline: &'a Deadline<'a>,
    /// Number of rows of a batch.
    size: usize,
    /// For how long a batch is tried again after an error that may pass.
    retry: Option<Duration>,
    on_error: OnError,
    /// Whether clauses follow, so that the rows are kept.
    keeps_rows: bool,
    /// Whether the rows get the status of their batch.
    reports: bool,
    between: Between<'a>,
    /// Number of batches before the next one.
    number: usize,
    /// Whether an error ended the batches, and rows only pass through.
    ended: bool,
    answer: Answer,
    /// Why the request fails, if a batch ended it while rows were read.
    error: Option<Error>,
}

impl Batches<'_> {
    /// Runs batches as long as this many rows wait, at least 1.
    fn run(&mut self, least: usize) -> Result<(), Error> {
        while self.between.waiting.len() >= least {
            let rows = self.between.take(self.size);
            self.run_one(&rows)?;
        }
        Ok(())
    }

    fn run_one(&mut self, rows: &[Value]) -> Result<(), Error> {
        self.deadline.ensure()?;
        let mut outcome = Outcome { started: !self.ended, error: None, number: self.number };
        self.number += 1;
        if !self.ended {
            let attempt = || {
                self.deadline.ensure()?;
                self.database.run_part(self.plan, rows, self.query, self.deadline)
            };
            match again(&*self.database.clock, self.retry, attempt) {
                Ok(part) => {
                    absorb(&mut self.answer, &part);
                    let status = outcome.status();
                    for mut row in part.rows.into_iter().filter(|_| self.keeps_rows) {
                        row.extend(self.reports.then(|| status.clone()));
                        self.between.add_done(row)?;
                    }
                    return Ok(());
                }
                Err(error) if self.on_error == OnError::Fail || ends_request(&error) => return Err(error),
                Err(error) => outcome.error = Some(error),
            }
            self.ended = self.on_error == OnError::Break;
        }
        // The rows stay, with nulls in place of what the subquery would have yielded.
        let status = outcome.status();
        for row in rows.iter().filter(|_| self.keeps_rows) {
            let mut row = row.as_slice().unwrap_or_default().to_vec();
            row.resize(self.plan.columns.len(), Value::Null);
            row.extend(self.reports.then(|| status.clone()));
            self.between.add_done(row)?;
        }
        Ok(())
    }
}

impl RowSink for Batches<'_> {
    fn take(&mut self, _: &Head, rows: Vec<Vec<Value>>, _: &dyn Interrupt) -> Result<(), Stop> {
        let mut added = rows.into_iter().map(|row| self.between.add_waiting(row));
        let ran = added.try_for_each(|added| added).and_then(|()| self.run(self.size));
        ran.map_err(|error| {
            self.error = Some(error);
            Stop::Cancelled
        })
    }
}

/// Returns the answer of a request before its first part.
fn nothing_done() -> Answer {
    let (columns, rows, counters) = ([].into(), vec![], Counters::default());
    Answer { columns, rows, version: Version::default(), wrote: false, counters, repeated: false }
}

/// Adds what a part did to the answer of the request.
fn absorb(answer: &mut Answer, part: &Answer) {
    let mut counters: Counters = answer.counters;
    counters.add(&part.counters);
    answer.counters = counters;
    answer.wrote |= part.wrote;
    answer.version = answer.version.max(part.version);
}

/// Whether an error concerns the request and not only the batch.
fn ends_request(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::Cancelled | ErrorCode::TimeLimitExceeded | ErrorCode::CommitOutcomeUnknown
    )
}

/// Calls `attempt` again after errors that may pass, for this long.
fn again<T>(
    clock: &dyn Clock,
    retry: Option<Duration>,
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let Some(retry) = retry else { return attempt() };
    let end = clock.now().saturating_add(retry);
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt() {
            Err(error) if may_pass(&error) && clock.now() + pause < end => clock.sleep(pause),
            other => return other,
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Whether the same batch may succeed later. Nothing of it was committed.
fn may_pass(error: &Error) -> bool {
    matches!(error.code().kind(), Kind::Conflict | Kind::Unavailable)
}

/// Returns a number that the text gives, or a parameter.
fn number<'q>(expr: &'q Expr, query: &'q Query<'_>) -> Result<&'q Value, Error> {
    match expr {
        Expr::Parameter(name) => query.parameters.get(name).ok_or_else(|| {
            let message = format!("parameter ${name} is missing");
            Error::new(ErrorCode::MissingParameter, message)
        }),
        Expr::Literal(value) => Ok(value),
        _ => Ok(&Value::Null),
    }
}

/// Returns the number of rows of a batch.
fn batch_size(size: Option<&Expr>, query: &Query<'_>) -> Result<usize, Error> {
    let Some(size) = size else { return Ok(usize::try_from(DEFAULT_BATCH_ROWS).unwrap_or(usize::MAX)) };
    let value = number(size, query)?;
    match value.as_i64().and_then(|rows| usize::try_from(rows).ok()) {
        Some(rows) if rows > 0 => Ok(rows),
        _ => {
            let message = format!("a batch has at least 1 row, not {}", value.for_message());
            Err(Error::new(ErrorCode::InvalidParameter, message))
        }
    }
}

/// Returns for how long a batch is tried again.
fn retry_time(seconds: &Expr, query: &Query<'_>) -> Result<Duration, Error> {
    let value = number(seconds, query)?;
    let time = value.as_f64().filter(|seconds| *seconds > 0.0);
    time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        let message =
            format!("the time of RETRY is a positive number of seconds, not {}", value.for_message());
        Error::new(ErrorCode::InvalidParameter, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_platform::ManualClock;

    #[test]
    fn errors_that_may_pass_are_tried_again_for_a_time() {
        let failing = |code, times: u32, retry| {
            let (clock, mut calls) = (ManualClock::default(), 0);
            let result = again(&clock, retry, || {
                calls += 1;
                if calls > times { Ok(()) } else { Err(Error::new(code, "it failed")) }
            });
            (result.is_ok(), calls, clock.now())
        };
        let second = Some(Duration::from_secs(1));
        assert_eq!(failing(ErrorCode::Unavailable, 1, None), (false, 1, Duration::ZERO));
        assert_eq!(failing(ErrorCode::BadRequest, 1, second), (false, 1, Duration::ZERO));
        assert_eq!(failing(ErrorCode::CommitOutcomeUnknown, 1, second), (false, 1, Duration::ZERO));
        assert_eq!(
            failing(ErrorCode::ConcurrentModification, 2, second),
            (true, 3, Duration::from_millis(30))
        );
        // 10 + 20 + 40 + 80 + 160 + 320 ms; the next pause would end too late.
        let late = Duration::from_millis(630);
        assert_eq!(failing(ErrorCode::Unavailable, u32::MAX, second), (false, 7, late));
        assert_eq!(failing(ErrorCode::Unavailable, 20, Some(Duration::MAX)).1, 21);
    }
}
