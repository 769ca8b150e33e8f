//! `CALL { … } IN TRANSACTIONS`: a request whose writes are committed in batches.
//!
//! Flow: the clauses before the subquery run and their rows are kept; the subquery runs for some of the rows at a time, each
//! time as a transaction of its own; the clauses after it run over all rows that the batches yielded. Between the three,
//! rows are lists of values in a parameter, with the handles of elements in them.
//!
//! What must never happen: a batch is committed twice, or a batch after an error that ends the request.

use crate::deadline::Deadline;
use crate::query::{Answer, CachedPlan, Query};
use crate::stream::Rows;
use crate::{Database, Error, Language, Parameters};
use tidegraph_exec::view::Counters;
use tidegraph_plan::passes::optimize;
use tidegraph_plan::{
    BatchedPlan, DEFAULT_BATCH_ROWS, Expr, FrontEndError, Limits as PlanLimits, OnError, Plan, ROWS_PARAMETER,
};
use tidegraph_types::{ErrorCode, Map, Str, Value};

/// The rows between two plans, within the memory limit of the request.
struct Between<'q> {
    rows: Vec<Value>,
    bytes: u64,
    limit_bytes: u64,
    query: &'q Query<'q>,
}

impl<'q> Between<'q> {
    fn new(limit_bytes: u64, query: &'q Query<'q>) -> Self {
        Self { rows: vec![], bytes: 0, limit_bytes, query }
    }

    fn add(&mut self, row: Vec<Value>) -> Result<(), Error> {
        let row = Value::list(row);
        self.bytes += (size_of::<Value>() + row.heap_bytes()) as u64;
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
        self.rows.push(row);
        Ok(())
    }
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
        if query.language != Language::OpenCypher || self.cached(query.language, query.text).is_some() {
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
            self.optimized(plan, limits, deadline, |plan, knowledge| optimize(plan, knowledge, |_, _| {}))
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
        let BatchedPlan { input, batch, rest, reports, size, on_error } = batched;
        if query.key.is_some() {
            let message = "CALL { … } IN TRANSACTIONS cannot be sent with an idempotency key, \
                           which stands for one transaction";
            return Err(Error::new(ErrorCode::UnsupportedOperation, message));
        }
        let size = batch_size(size.as_ref(), query)?;
        let input = self.planned_part(input, true, query, deadline)?;
        let batch = self.planned_part(batch, true, query, deadline)?;
        let rest = rest.map(|rest| self.planned_part(rest, false, query, deadline)).transpose()?;
        let deadline = &deadline.within(&input);
        query.ensure_allowed(batch.writes || rest.as_ref().is_some_and(|rest| rest.writes))?;

        let found = self.run_planned(&input, query, None, deadline, &mut Rows::kept())?;
        let mut before = Between::new(self.options.query_memory_bytes, query);
        for row in found.rows {
            before.add(row)?;
        }
        let mut answer = Answer { columns: [].into(), rows: vec![], ..found };
        let mut after = Between::new(self.options.query_memory_bytes.saturating_sub(before.bytes), query);
        let width = batch.columns.len();
        let mut ended = false;
        for (number, rows) in before.rows.chunks(size).enumerate() {
            deadline.ensure()?;
            let mut outcome = Outcome { started: !ended, error: None, number };
            if !ended {
                match self.run_part(&batch, rows, query, deadline) {
                    Ok(part) => {
                        absorb(&mut answer, &part);
                        let status = outcome.status();
                        for mut row in part.rows.into_iter().filter(|_| rest.is_some()) {
                            row.extend(reports.then(|| status.clone()));
                            after.add(row)?;
                        }
                        continue;
                    }
                    Err(error) if on_error == OnError::Fail || ends_request(&error) => return Err(error),
                    Err(error) => outcome.error = Some(error),
                }
                ended = on_error == OnError::Break;
            }
            // The rows stay, with nulls in place of what the subquery would have yielded.
            let status = outcome.status();
            for row in rows.iter().filter(|_| rest.is_some()) {
                let mut row = row.as_slice().unwrap_or_default().to_vec();
                row.resize(width, Value::Null);
                row.extend(reports.then(|| status.clone()));
                after.add(row)?;
            }
        }
        if let Some(rest) = &rest {
            let last = self.run_part(rest, &after.rows, query, deadline)?;
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

/// Returns the number of rows of a batch.
fn batch_size(size: Option<&Expr>, query: &Query<'_>) -> Result<usize, Error> {
    let wrong = |value: &Value| {
        let message = format!("a batch has at least 1 row, not {}", value.for_message());
        Err(Error::new(ErrorCode::InvalidParameter, message))
    };
    let value = match size {
        None => return Ok(usize::try_from(DEFAULT_BATCH_ROWS).unwrap_or(usize::MAX)),
        Some(Expr::Parameter(name)) => match query.parameters.get(name) {
            Some(value) => value,
            None => {
                let message = format!("parameter ${name} is missing");
                return Err(Error::new(ErrorCode::MissingParameter, message));
            }
        },
        Some(Expr::Literal(value)) => value,
        Some(_) => return wrong(&Value::Null),
    };
    match value.as_i64().and_then(|rows| usize::try_from(rows).ok()) {
        Some(rows) if rows > 0 => Ok(rows),
        _ => wrong(value),
    }
}
