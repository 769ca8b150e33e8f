//! Explains a text: shows the plans that it becomes, without running it.

use crate::deadline::Deadline;
use crate::plans::CachedPlan;
use crate::query::{PlatformEntropy, command, with_deep_stack};
use crate::{Answer, Database, Error, Language, Parameters, Query};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::Apl;
use tidegraph_exec::view::Counters;
use tidegraph_exec::{Execution, Measure, Profile, View};
use tidegraph_plan::BatchedPlan;
use tidegraph_plan::passes::Trace;
use tidegraph_types::{ErrorCode, Str, Value};

/// What to answer about a text instead of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Explain {
    /// The plans of the text, which is not run: a row for each line of text, in the column `plan`.
    Plan,
    /// What each operator of the plan did. The text is run, and its writes are committed. A row for each line of the plan,
    /// in the columns `operator`, `calls`, `rows`, `estimatedRows` (what the planner expected), and, of the operator alone,
    /// `milliseconds`, `requests` (messages to nodes of a fleet) and `bytes` (of these and their answers). The numbers are
    /// null where another operator did the work, or where no row came to the operator.
    Profile,
}

/// Returns the columns of a profile.
pub(crate) fn profile_columns() -> Arc<[Str]> {
    ["operator", "calls", "rows", "estimatedRows", "milliseconds", "requests", "bytes"].map(Str::from).into()
}

/// Returns the row of a profile for a line of the plan.
pub(crate) fn profile_row(line: String, measure: Option<Measure>, estimated: Option<f64>) -> Vec<Value> {
    let count = |count: u64| Value::Long(i64::try_from(count).unwrap_or(i64::MAX));
    let mut row = vec![Value::string(line)];
    let estimated = estimated.map_or(Value::Null, |rows| Value::Double((rows * 10.0).round() / 10.0));
    match measure {
        Some(Measure { calls, rows, time, traffic }) => {
            row.extend([count(calls), count(rows), estimated, Value::Double(time.as_secs_f64() * 1e3)]);
            row.extend([count(traffic.requests), count(traffic.bytes)]);
        }
        None => row.extend([Value::Null, Value::Null, estimated, Value::Null, Value::Null, Value::Null]),
    }
    row
}

/// Returns an explanation as one text, because the answers of Gremlin have one column.
pub(crate) fn one_report(answer: Answer) -> Answer {
    let cell = |value: &Value| match value {
        Value::String(text) => text.to_string(),
        Value::Double(number) => format!("{number:.3}"),
        Value::Null => "-".to_owned(),
        value => value.as_i64().map_or_else(String::new, |number| number.to_string()),
    };
    let mut report = String::new();
    if answer.columns.len() > 1 {
        let _ = writeln!(report, "{}", answer.columns.iter().map(Str::as_str).collect::<Vec<_>>().join("  "));
    }
    for row in &answer.rows {
        let _ = writeln!(report, "{}", row.iter().map(cell).collect::<Vec<_>>().join("  "));
    }
    Answer { columns: ["result"].map(Str::from).into(), rows: vec![vec![Value::string(report)]], ..answer }
}

/// Runs a request that has a profile to its last row, and returns the rows of the profile.
pub(crate) fn profile_rows(
    database: &Database,
    planned: &CachedPlan,
    execution: &mut Execution<'_, '_>,
    apl: &dyn Apl,
) -> Result<Vec<Vec<Value>>, Error> {
    let mut count = 0;
    while let Some(rows) = execution.next_rows()? {
        count += rows.len() as u64;
        execution.release_rows();
    }
    database.judged(planned, execution);
    let estimated = database.estimated_rows(&planned.plan, &planned.learning.lessons);
    let profile = execution.context().profile.as_ref();
    // What the rows of the answer hold of elements is read after the last operator.
    let by_operators = profile.map(Profile::traffic).unwrap_or_default();
    let traffic = apl.traffic().since(by_operators);
    let last = Measure { calls: 1, rows: count, time: Duration::ZERO, traffic };
    let rows = planned.plan.lines().into_iter().map(|(line, op)| {
        let is_answer = op.is_none() && line.starts_with("answer ");
        let measure = op.and_then(|op| profile?.measure(op)).or(is_answer.then_some(last));
        profile_row(line, measure, op.and_then(|op| estimated.get(op)))
    });
    Ok(rows.collect())
}

impl Database {
    /// Answers with the plans of a text.
    pub(crate) fn answer_plan(&self, query: &Query<'_>) -> Result<Answer, Error> {
        // The plan of a text shows labels, keys and counts, and changes nothing.
        query.ensure_allowed(false)?;
        let text = self.explain_query(query)?;
        Ok(Answer {
            columns: ["plan"].map(Str::from).into(),
            rows: text.lines().map(|line| vec![Value::string(line)]).collect(),
            version: self.backend.status().version,
            wrote: false,
            counters: Counters::default(),
            repeated: false,
        })
    }

    /// Runs a request and returns, instead of its rows, what the operators of its plan did. It commits its writes once: a
    /// conflict is an error.
    pub(crate) fn answer_profile(&self, query: &Query<'_>, deadline: &Deadline<'_>) -> Result<Answer, Error> {
        if command(query.language, query.text)?.is_some() {
            return self.answer_plan(query);
        }
        if self.compile_batched(query, deadline)?.is_some() {
            let message = "a profile of CALL { … } IN TRANSACTIONS, which runs several plans";
            return Err(Error::new(ErrorCode::UnsupportedOperation, format!("not supported yet: {message}")));
        }
        let planned = self.plan(query, deadline)?;
        let deadline = deadline.within(&planned);
        query.ensure_allowed(planned.writes)?;
        let snapshot = self.snapshot_for(query.at_least, &deadline)?;
        let now = || self.clock.now();
        let apl = self.backend.reader(deadline.options());
        let view = View::new(&*apl, self.backend.catalog(), snapshot.at, planned.writes);
        let entropy = PlatformEntropy(&*self.random);
        let mut context = self.context(view, query, &deadline, self.limits(), &entropy);
        context.profile = Some(Profile::new(&now));
        let mut execution = Execution::new(&planned.plan, context)?;
        let rows = profile_rows(self, &planned, &mut execution, &*apl)?;
        let summary = execution.finish()?;
        let answer = Answer {
            columns: profile_columns(),
            rows,
            version: snapshot.at.version,
            wrote: false,
            counters: summary.counters,
            repeated: false,
        };
        match summary.commit {
            Some(request) => self.commit_answer(answer, request, None),
            None => Ok(answer),
        }
    }

    /// Returns the three optimised plans of a request in batches.
    fn explain_batched(
        &self,
        batched: BatchedPlan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<String, Error> {
        let mut printed = String::new();
        let parts = [("input", Some(batched.input)), ("batch", Some(batched.batch)), ("rest", batched.rest)];
        for (name, plan) in parts {
            if let Some(plan) = plan {
                let planned = self.planned_part(plan, true, query, deadline)?;
                let _ = write!(printed, "{name}:\n{}", planned.plan);
            }
        }
        Ok(printed)
    }

    /// Returns the plans of a text without running it: the plan of the front end, the
    /// plan after each optimiser pass that changed it, and the plan that runs. A command
    /// about indexes or constraints has no plan and is returned as it was parsed.
    ///
    /// The text is planned again, with the current statistics of the graph. Later
    /// requests with this text run that plan.
    ///
    /// # Errors
    /// `MalformedQueryException` and `UnsupportedOperationException` as for [`Database::query`], and errors of reading
    /// the graph's newest version.
    pub fn explain(&self, language: Language, text: &str) -> Result<String, Error> {
        self.explain_query(&Query::new(language, text, &Parameters::default()))
    }

    fn explain_query(&self, query: &Query<'_>) -> Result<String, Error> {
        if let Some(command) = command(query.language, query.text)? {
            return Ok(command.to_string());
        }
        with_deep_stack(query.text, || {
            let deadline = Deadline::new(&*self.clock, self.options.query_timeout, None);
            if let Some(batched) = self.compile_batched(query, &deadline)? {
                return self.explain_batched(batched, query, &deadline);
            }
            let mut printed = String::new();
            self.plan_anew(query, &deadline, |plan, knowledge| {
                let trace = Trace::of(plan, knowledge)?;
                printed = trace.to_string();
                Ok(trace.optimized().clone())
            })?;
            Ok(printed)
        })
    }
}
