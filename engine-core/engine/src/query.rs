//! Runs a request: front end, plan cache, execution, commit, and retries.
//!
//! A request is one transaction. It reads at one version, which it pins. At its end it hands all of
//! its writes to the sequencer, which commits all of them or none. After a conflict the request runs
//! again from the start, at a newer version. After the loss of a replica it runs again at the same
//! version, a few times: nothing was written or answered by then. [`Retry`] distinguishes the two.
//!
//! A request may name the oldest version that it may read (`at_least`). If this process has not reached that version,
//! the request waits for it, up to [`MAX_VERSION_WAIT`].
//!
//! [`Database::stream`] hands the rows of a read to a [`RowSink`] while the request runs; from the first of them on the
//! request does not run again. A request that writes keeps its rows until its commit.
//!
//! [`Database::query`] may take its time and may wait for the disk. [`Database::query_inline`] is for a thread that
//! serves others too: it gives up at its limits without having changed anything, and the caller uses `query` instead.
//! The writes of an inline request are committed by [`Database::commit_later`], for which no thread waits.

use crate::backend::{BackendStatus, CommitCallback, Earlier, KeyedCommit, RequestKey, Snapshot};
use crate::catalog::FixedCatalog;
use crate::deadline::{Deadline, Trial};
use crate::explain::{Explain, one_report};
use crate::helpers::QueryHelpers;
use crate::plans::CachedPlan;
use crate::running::Running;
use crate::stream::{Head, RowSink, Rows};
use crate::{Database, Error, Principal, Retry, Role};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tidegraph_apl::{At, Catalog, Statistics};
use tidegraph_exec::view::Counters;
use tidegraph_exec::{
    Context, Entropy, Execution, Interrupt as _, Limits, Memory, Parameters, Profile, Reservation,
    StatisticsSource, Stop, View,
};
use tidegraph_gremlin::{Report, Version as GremlinVersion};
use tidegraph_opencypher::Command;
use tidegraph_platform::Random;
use tidegraph_types::{CommitRequest, ErrorCode, IndexDefinition, RequestId, Str, Value, Version};

/// A query language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// Gremlin text.
    Gremlin,
    /// openCypher.
    OpenCypher,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The language of the text.
    pub language: Language,
    /// The text.
    pub text: &'a str,
    /// The version of Gremlin that the text speaks; `None`: that of [`Options::gremlin_version`](crate::Options::gremlin_version).
    pub gremlin_version: Option<GremlinVersion>,
    /// Values of the parameters that the text names.
    pub parameters: &'a Parameters,
    /// Time limit of the request; the database's own limit holds as well.
    pub timeout: Option<Duration>,
    /// Flag that another thread sets to end the request early.
    pub cancel: Option<&'a Arc<AtomicBool>>,
    /// Oldest version that the request may read: one that the caller has seen.
    pub at_least: Option<Version>,
    /// Whether the request may only read. A text that may write is then refused, whether or not it would write.
    pub read_only: bool,
    /// Key under which the caller repeats the request, if it did not get the answer: the writes are then committed once.
    /// A key is known for a limited number of commits. After that a repeat is a new request, unless `at_least` is a version
    /// that the caller saw before it first sent the key: then a repeat that comes too late is refused. Requests that do
    /// not write ignore the key, and so do commands of the schema.
    pub key: Option<&'a str>,
    /// Who asks.
    pub principal: &'a Principal,
    /// The request's part of the memory that all requests share. It keeps what the rows of the answer take.
    pub memory: Option<&'a Arc<Reservation>>,
    /// What to answer about the text instead of its rows. Requests of a transaction answer their rows nevertheless.
    pub explain: Option<Explain>,
    /// The open transactions of the service, for the commands that list and end them.
    pub running: Option<&'a dyn Running>,
}

impl<'a> Query<'a> {
    /// Makes an anonymous request without a time limit of its own and without a way to cancel it.
    ///
    /// Parameters are values by name:
    ///
    /// ```
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    /// use tidegraph_types::Value;
    ///
    /// let database = Database::open(Options::default())?;
    /// let mut parameters = Parameters::default();
    /// parameters.insert("names".into(), Value::list(vec!["Ada".into(), "Grace".into()]));
    /// let text = "UNWIND $names AS name RETURN name ORDER BY name DESC";
    /// let answer = database.query(&Query::new(Language::OpenCypher, text, &parameters))?;
    /// assert_eq!(answer.rows, [[Value::from("Grace")], [Value::from("Ada")]]);
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    #[must_use]
    pub fn new(language: Language, text: &'a str, parameters: &'a Parameters) -> Self {
        let principal = &Principal::Anonymous;
        Self {
            language,
            text,
            gremlin_version: None,
            parameters,
            timeout: None,
            cancel: None,
            at_least: None,
            read_only: false,
            key: None,
            principal,
            memory: None,
            explain: None,
            running: None,
        }
    }

    /// Refuses a text that writes in a request that may only read, and a text for which the principal lacks the role.
    pub(crate) fn ensure_allowed(&self, writes: bool) -> Result<(), Error> {
        self.ensure_may_write(writes)?;
        self.principal.ensure(if writes { Role::Write } else { Role::Read })
    }

    /// The same for a command of the schema, whose changes concern all users of the graph.
    pub(crate) fn ensure_allowed_schema(&self, writes: bool) -> Result<(), Error> {
        self.ensure_may_write(writes)?;
        self.principal.ensure(if writes { Role::Admin } else { Role::Read })
    }

    fn ensure_may_write(&self, writes: bool) -> Result<(), Error> {
        if writes && self.read_only {
            return Err(Error::new(
                ErrorCode::MethodNotAllowed,
                "the request may only read, but its query writes",
            ));
        }
        Ok(())
    }
}

/// The answer to a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Names of the columns; the one column of Gremlin is named `result`.
    pub columns: Arc<[Str]>,
    /// Rows, each as long as `columns`. Vertices and edges are there with their data.
    pub rows: Vec<Vec<Value>>,
    /// The version that a read saw or a write made.
    pub version: Version,
    /// Whether the request changed the graph.
    pub wrote: bool,
    /// Counts of what it changed.
    pub counters: Counters,
    /// Whether an earlier request with the same key had changed the graph, and this one did nothing. There are no rows
    /// then, because they are not kept; the version is that of the earlier request.
    pub repeated: bool,
}

/// An answer that is valid once its writes are committed.
#[derive(Debug)]
pub struct PendingAnswer {
    /// The answer. With a commit, its version is the one that the commit makes.
    pub answer: Answer,
    /// The writes, for [`Database::commit_later`]; `None` if there are none. After a
    /// conflict the request must run again.
    pub commit: Option<CommitRequest>,
}

/// Limits of a request on a thread that serves others too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineLimits {
    /// Time limit.
    pub time: Duration,
    /// Memory limit in bytes, for what operators buffer and for the answer's rows.
    pub memory_bytes: u64,
    /// Maximum number of rows of the answer.
    pub rows: u64,
}

/// The platform's random numbers, for the executor.
pub(crate) struct PlatformEntropy<'a>(pub(crate) &'a dyn Random);

impl Entropy for PlatformEntropy<'_> {
    fn random_u64(&self) -> u64 {
        self.0.next_u64()
    }
}

/// How often a request runs again because a replica was lost.
pub(crate) const MAX_REPLICA_RETRIES: u32 = 3;
/// How long a request waits for the version that it asks for, if its time limit allows.
const MAX_VERSION_WAIT: Duration = Duration::from_secs(10);
/// Time between two checks for that version.
const VERSION_POLL: Duration = Duration::from_millis(2);

/// A text of at most this many bytes cannot make a plan too deep for the smallest stack of a thread.
const SHALLOW_TEXT_BYTES: usize = 512;
/// Twice the stack that the deepest plan of the languages needs. What is not used takes no memory.
const DEEP_STACK_BYTES: usize = 64 << 20;

/// Runs `work` on a stack large enough for any plan of the text.
///
/// The languages, the passes and the executor walk plans by recursion. A plan of thousands of steps needs more stack
/// than a thread has by default, and a stack overflow ends the whole process.
pub(crate) fn with_deep_stack<T>(text: &str, work: impl FnOnce() -> T) -> T {
    if text.len() <= SHALLOW_TEXT_BYTES {
        return work();
    }
    stacker::maybe_grow(DEEP_STACK_BYTES, DEEP_STACK_BYTES + (8 << 20), work)
}

impl Database {
    /// Runs a request to its end on the caller's thread, whatever the size of its stack.
    ///
    /// ```
    /// use tidegraph_engine::{Database, Language, Options, Parameters, Query};
    /// use tidegraph_types::Value;
    ///
    /// let database = Database::open(Options::default())?;
    /// let none = Parameters::default();
    /// let create = "CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Grace'})";
    /// database.query(&Query::new(Language::OpenCypher, create, &none))?;
    ///
    /// let cypher = "MATCH (:Person {name: 'Ada'})-[:KNOWS]->(p) RETURN p.name AS name";
    /// let answer = database.query(&Query::new(Language::OpenCypher, cypher, &none))?;
    /// assert_eq!(&*answer.columns, ["name"]);
    /// assert_eq!(answer.rows, [[Value::from("Grace")]]);
    ///
    /// let gremlin = "g.V().has('name', 'Ada').out('KNOWS').values('name')";
    /// let same = database.query(&Query::new(Language::Gremlin, gremlin, &none))?;
    /// assert_eq!(same.rows, answer.rows);
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// By [`Error::code`]: the text is wrong (`MalformedQuery`) or uses what a language does not have yet
    /// (`UnsupportedOperation`); it writes and the request may only read (`MethodNotAllowed`); the principal lacks the
    /// role for it (`AccessDenied`); a parameter or an
    /// operand does not fit; a constraint would break; a limit was reached (`TimeLimitExceeded`, `QueryLimitExceeded`);
    /// transactions kept conflicting (`ConcurrentModification`); the caller cancelled; the graph cannot be read or
    /// written now (`Unavailable`). Only after `CommitOutcomeUnknown` it is open whether writes were
    /// committed.
    pub fn query(&self, query: &Query<'_>) -> Result<Answer, Error> {
        self.query_with(query, &mut Rows::kept())
    }

    /// Runs a request as [`Database::query`] does, and hands its rows to `sink` as they are made, if the request only
    /// reads. The rows of the answer are those that the sink was not given: all of them or none.
    ///
    /// # Errors
    ///
    /// The same as [`Database::query`]. The sink may have been given rows before. If it stops the request, the error is
    /// `Cancelled` or `TimeLimitExceeded`.
    pub fn stream(&self, query: &Query<'_>, sink: &mut dyn RowSink) -> Result<Answer, Error> {
        self.query_with(query, &mut Rows::handed_to(sink))
    }

    fn query_with(&self, query: &Query<'_>, rows: &mut Rows<'_>) -> Result<Answer, Error> {
        let _span =
            tracing::debug_span!("query", language = ?query.language, principal = %query.principal).entered();
        with_deep_stack(query.text, || self.query_here(query, rows))
    }

    fn query_here(&self, query: &Query<'_>, rows: &mut Rows<'_>) -> Result<Answer, Error> {
        if let Some((explain, text)) = prefix(query) {
            return self.query_here(&Query { text, explain: Some(explain), ..*query }, rows);
        }
        if let Some((explain, text)) = report(query) {
            let query = Query { text, explain: Some(explain), ..*query };
            return Ok(one_report(self.query_here(&query, rows)?));
        }
        let deadline = self.deadline_of(query);
        match query.explain {
            Some(Explain::Plan) => return self.answer_plan(query),
            Some(Explain::Profile) => return self.answer_profile(query, &deadline),
            None => {}
        }
        if let Some(command) = command(query.language, query.text)? {
            query.ensure_allowed_schema(command.writes())?;
            self.snapshot_for(query.at_least, &deadline)?;
            return self.run_command(&command, query, &deadline);
        }
        if let Some(batched) = self.compile_batched(query, &deadline)? {
            return self.run_batched(batched, query, &deadline);
        }
        let planned = self.plan(query, &deadline)?;
        let deadline = deadline.within(&planned);
        query.ensure_allowed(planned.writes)?;
        let key = query.key.filter(|_| planned.writes).map(|key| self.request_key(query, key));
        if let Some(answer) = self.repeated(&planned, key)? {
            return Ok(answer);
        }
        let answer = self.run_planned(&planned, query, key, &deadline, rows);
        let may_be_repeat = match &answer {
            // It may have seen, or failed because of, what the same request wrote meanwhile.
            Ok(answer) => !answer.wrote,
            Err(error) => !matches!(error.code(), ErrorCode::Cancelled | ErrorCode::TimeLimitExceeded),
        };
        if !may_be_repeat {
            return answer;
        }
        match self.repeated(&planned, key) {
            Ok(Some(repeated)) => Ok(repeated),
            Err(error) if error.code() == ErrorCode::CommitOutcomeUnknown => Err(error),
            _ => answer,
        }
    }

    pub(crate) fn deadline_of<'q>(&'q self, query: &Query<'q>) -> Deadline<'q> {
        let limit = self.options.query_timeout;
        let limit = query.timeout.map_or(limit, |asked| asked.min(limit));
        Deadline::new(&*self.clock, limit, query.cancel)
    }

    fn request_key(&self, query: &Query<'_>, key: &str) -> RequestKey {
        // In any order that the client sends them in.
        let parameters: BTreeMap<_, _> = query.parameters.iter().collect();
        // Written with types and quotes, so that different requests have different texts.
        let request = format_args!("{:?} {:?} {parameters:?}", query.language, query.text);
        let caller = query.principal.to_string();
        let first_asked = query.at_least.unwrap_or_else(|| self.backend.status().version);
        RequestKey { id: RequestId::of_key(&caller, key, request), first_asked }
    }

    /// Runs a planned request, again after each conflict and each loss of a replica, and commits its writes.
    pub(crate) fn run_planned(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        key: Option<RequestKey>,
        deadline: &Deadline<'_>,
        rows: &mut Rows<'_>,
    ) -> Result<Answer, Error> {
        if let Some(answer) = self.write_at_applied_version(planned, query, key, deadline) {
            return answer;
        }
        let clock = &*self.clock;
        let (mut conflicts, mut losses) = (0, 0);
        let mut same: Option<Snapshot> = None;
        loop {
            let snapshot = match same.take() {
                Some(snapshot) => snapshot,
                // The next attempt must see the writes that the last one conflicted with.
                None if conflicts > 0 && self.backend.has_replicas() => {
                    let BackendStatus { version, .. } = self.backend.status();
                    self.snapshot_for(Some(query.at_least.unwrap_or_default().max(version)), deadline)?
                }
                None => self.snapshot_for(query.at_least, deadline)?,
            };
            let catalog = self.backend.catalog();
            let executed = self.execute(planned, query, deadline, self.limits(), &snapshot, catalog, rows);
            let error = match executed {
                Ok(PendingAnswer { answer, commit: None }) => return Ok(answer),
                Ok(PendingAnswer { answer, commit: Some(request) }) => {
                    match self.commit_answer(answer, request, key) {
                        Ok(answer) => return Ok(answer),
                        // Only a conflict rules out that the writes were committed.
                        Err(error) if error.retry() == Retry::NewerVersion => error,
                        Err(error) => return Err(error),
                    }
                }
                // The next attempt would hand them on again.
                Err(error) if rows.were_handed() => return Err(error),
                Err(error) => error,
            };
            match error.retry() {
                Retry::NewerVersion if conflicts < self.options.conflict_retries => {
                    deadline.ensure()?;
                    // A random pause, so that the same transactions do not conflict again.
                    let most_us = 50_u64 << conflicts.min(8);
                    clock.sleep(Duration::from_micros(self.random.next_u64() % most_us));
                    conflicts += 1;
                    // The transaction that won may be the same request.
                    if let Some(answer) = self.repeated(planned, key)? {
                        return Ok(answer);
                    }
                }
                Retry::OtherReplica if self.backend.has_replicas() && losses < MAX_REPLICA_RETRIES => {
                    deadline.ensure()?;
                    tracing::debug!(error = %error.chain(), "a replica was lost during a query: run again");
                    losses += 1;
                    same = Some(snapshot);
                }
                _ => return Err(error),
            }
        }
    }

    /// Runs a write at a version that the replicas have already applied, so that it does not wait for
    /// them. Its commit checks all of its reads, so the result is the same as at the newest version.
    ///
    /// Returns `None` if nothing was written and the request must run at the newest version: the request failed,
    /// another transaction wrote what it read, or it wrote nothing, so that no commit checks its reads.
    fn write_at_applied_version(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        key: Option<RequestKey>,
        deadline: &Deadline<'_>,
    ) -> Option<Result<Answer, Error>> {
        if !planned.writes || !planned.applied.allows() {
            return None;
        }
        let snapshot = self.backend.applied_snapshot()?;
        let catalog = self.backend.catalog();
        let limits = self.limits();
        let executed = self.execute(planned, query, deadline, limits, &snapshot, catalog, &mut Rows::kept());
        let Ok(PendingAnswer { answer, commit: Some(request) }) = executed else {
            planned.applied.failed();
            return None;
        };
        match self.commit_answer(answer, request, key) {
            Ok(answer) => Some(Ok(answer)),
            Err(error) if error.retry() == Retry::NewerVersion => {
                planned.applied.failed();
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Commits the writes of an answer, once for each key.
    pub(crate) fn commit_answer(
        &self,
        answer: Answer,
        request: CommitRequest,
        key: Option<RequestKey>,
    ) -> Result<Answer, Error> {
        let Some(key) = key else {
            return Ok(Answer { version: self.backend.commit(request)?, wrote: true, ..answer });
        };
        match self.backend.commit_keyed(request, key)? {
            KeyedCommit::Committed(version) => Ok(Answer { version, wrote: true, ..answer }),
            KeyedCommit::Earlier(earlier) => answer_of_earlier(answer.columns, earlier),
        }
    }

    /// Returns the answer of a request whose key was committed before.
    fn repeated(&self, planned: &CachedPlan, key: Option<RequestKey>) -> Result<Option<Answer>, Error> {
        let Some(key) = key else { return Ok(None) };
        let earlier = self.backend.outcome_of_key(key)?;
        earlier.map(|earlier| answer_of_earlier(planned.columns.clone(), earlier)).transpose()
    }

    /// Returns the snapshot to read; waits for `at_least` if this process has not reached it.
    pub(crate) fn snapshot_for(
        &self,
        at_least: Option<Version>,
        deadline: &Deadline<'_>,
    ) -> Result<Snapshot, Error> {
        let Some(asked) = at_least else { return self.backend.snapshot(None) };
        let until = self.clock.now() + MAX_VERSION_WAIT;
        loop {
            let error = match self.backend.snapshot(Some(asked)) {
                Err(error) if error.retry() == Retry::Wait => error,
                other => return other,
            };
            let stop = deadline.check();
            if let Err(Stop::Cancelled) = stop {
                return Err(tidegraph_exec::Error::from(Stop::Cancelled).into());
            }
            if stop.is_err() || self.clock.now() >= until {
                let message = format!("version {asked} is not here yet: {error}; try again");
                return Err(Error::new(ErrorCode::Unavailable, message).with_source(error));
            }
            self.clock.sleep(VERSION_POLL);
        }
    }

    /// Runs a request that ends within the limits, without waiting for the disk. A write is run up to its commit.
    ///
    /// Returns `None` if the caller must use [`Database::query`] instead: the text was not planned before, the request
    /// needs more than the limits, or reading may wait, as it does for files. Nothing has changed then.
    ///
    /// # Errors
    ///
    /// The same as [`Database::query`], but for conflicts and limits.
    pub fn query_inline(
        &self,
        query: &Query<'_>,
        limits: InlineLimits,
    ) -> Option<Result<PendingAnswer, Error>> {
        if self.backend.may_wait() || query.explain.is_some() {
            return None;
        }
        let planned = self.cached(query)?;
        if planned.reads_files || !planned.inline.allows() {
            return None;
        }
        if let Err(error) = query.ensure_allowed(planned.writes) {
            return Some(Err(error));
        }
        if planned.writes && query.key.is_some() {
            // The key is looked up first, which may wait.
            return None;
        }
        let own = planned.plan.timeout.unwrap_or(Duration::MAX);
        let allowed = query.timeout.unwrap_or(Duration::MAX).min(own);
        if allowed.min(self.options.query_timeout) <= limits.time {
            // The request's own limit comes first, and the error has to name that one.
            return None;
        }
        let snapshot = match self.backend.snapshot(query.at_least) {
            Ok(snapshot) => snapshot,
            // `query` waits for the version.
            Err(_) if query.at_least.is_some() => return None,
            Err(error) => return Some(Err(error)),
        };
        let most = self.limits();
        let most = Limits {
            memory_bytes: most.memory_bytes.min(limits.memory_bytes),
            result_rows: most.result_rows.min(limits.rows),
            spills: false,
        };
        let deadline = Deadline::new(&*self.clock, limits.time, query.cancel);
        let catalog = FixedCatalog(self.backend.catalog());
        let result = with_deep_stack(query.text, || {
            self.execute(&planned, query, &deadline, most, &snapshot, &catalog, &mut Rows::kept())
        });
        let code = result.as_ref().err().map(Error::code);
        if matches!(code, Some(ErrorCode::TimeLimitExceeded | ErrorCode::QueryLimitExceeded)) {
            planned.inline.failed();
            return None;
        }
        planned.inline.succeeded();
        Some(result)
    }

    /// Commits the writes of [`Database::query_inline`] and passes the version, or the error, to `done`, which must not
    /// wait.
    pub fn commit_later(&self, request: CommitRequest, done: CommitCallback) {
        self.backend.commit_later(request, done);
    }

    /// Makes an id for a request: a random UUID.
    #[must_use]
    pub fn request_id(&self) -> Str {
        PlatformEntropy(&*self.random).uuid()
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.options.query_memory_bytes,
            result_rows: self.options.query_rows,
            spills: true,
        }
    }

    /// Runs a request up to its commit, and learns from it. If its plan is on trial and takes too long, the request runs
    /// by the plan before.
    fn execute(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
        limits: Limits,
        snapshot: &Snapshot,
        catalog: &dyn Catalog,
        rows: &mut Rows<'_>,
    ) -> Result<PendingAnswer, Error> {
        let _span = tracing::debug_span!("execute", version = snapshot.at.version.0.cast_signed()).entered();
        let on_trial = planned.learning.trial().filter(|_| limits.spills);
        let (before, trial) = on_trial
            .map(|(before, time)| (before, Trial::until(self.clock.now().saturating_add(time))))
            .unzip();
        if let Some(trial) = &trial {
            rows.tell(trial.is_over.clone());
        }
        let of_trial = trial.as_ref().map(|trial| deadline.on_trial(trial));
        let own = of_trial.as_ref().unwrap_or(deadline);
        let executed = self.execute_once(planned, query, own, limits, snapshot, catalog, rows);
        let Err(error) = &executed else { return executed };
        if limits.spills {
            self.learn_of_error(planned, query, error);
        }
        match (before, trial) {
            (Some(before), Some(trial)) if trial.has_ended() && deadline.ensure().is_ok() => {
                self.execute_once(before, query, deadline, limits, snapshot, catalog, rows)
            }
            _ => executed,
        }
    }

    fn execute_once(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
        limits: Limits,
        snapshot: &Snapshot,
        catalog: &dyn Catalog,
        rows: &mut Rows<'_>,
    ) -> Result<PendingAnswer, Error> {
        let at = snapshot.at;
        // Rows for another plan are no answer; their memory is limited.
        let limits = if planned.keeps_handles { Limits { result_rows: u64::MAX, ..limits } } else { limits };
        let apl = self.backend.reader(deadline.options());
        let view = View::new(&*apl, catalog, at, planned.writes).streaming(self.options.streams);
        let entropy = PlatformEntropy(&*self.random);
        // A thread that serves others too has no time to learn, nor any for plans that take long.
        let counts = limits.spills && planned.learning.counts();
        let helpers = QueryHelpers::new(self, planned, query, deadline, snapshot, limits).filter(|_| !counts);
        let mut context = self.context(view, query, deadline, limits, &entropy);
        let (now, began) = (|| self.clock.now(), self.clock.now());
        if counts {
            context.profile = Some(Profile::new(&now));
        }
        if let Some(helpers) = &helpers {
            context.now = helpers.now();
            context.helpers = Some(helpers);
        }
        let mut execution = Execution::new(&planned.plan, context)?;
        if planned.keeps_handles {
            execution.keep_handles();
        }
        let counters = Counters::default();
        let head = Head { columns: planned.columns.clone(), version: at.version, wrote: false, counters };
        let rows = rows.take_all(&mut execution, &head, planned.writes, deadline)?;
        let judgement = counts.then(|| self.judged(planned, &execution));
        let summary = execution.finish()?;
        let time = self.clock.now().saturating_sub(began);
        match judgement {
            Some(judgement) => self.learn(planned, query, judgement, time),
            None => planned.learning.took(time),
        }
        let answer = Answer {
            columns: head.columns,
            rows,
            version: at.version,
            wrote: summary.commit.is_some(),
            counters: summary.counters,
            repeated: false,
        };
        Ok(PendingAnswer { answer, commit: summary.commit })
    }

    pub(crate) fn context<'a>(
        &'a self,
        view: View<'a>,
        query: &Query<'a>,
        deadline: &'a Deadline<'_>,
        limits: Limits,
        entropy: &'a PlatformEntropy<'_>,
    ) -> Context<'a> {
        let mut context = Context::new(view, query.parameters, limits, deadline, entropy, self.clock.wall());
        context.memory = Memory::drawing(limits.memory_bytes, query.memory.cloned());
        context.statistics = Some(self);
        context.csv_files = Some(self);
        context.graph_files = Some(self);
        context.spill = self.spill.as_ref().map(|files| files as _);
        context.procedures = &self.options.procedures;
        context.deleted_is_error = query.language == Language::OpenCypher;
        if query.language == Language::Gremlin {
            context.ids = self.gremlin.ids;
        }
        context
    }
}

impl StatisticsSource for Database {
    fn statistics(&self, at: At) -> Result<Arc<Statistics>, tidegraph_apl::Error> {
        self.backend.statistics_at(at)
    }

    fn indexes(&self) -> Result<Vec<(IndexDefinition, bool)>, tidegraph_apl::Error> {
        let indexes = self.backend.indexes();
        let indexes = indexes.map_err(|error| tidegraph_apl::Error::Unavailable(error.to_string()))?;
        Ok(indexes.into_iter().map(|index| (index.definition, index.complete)).collect())
    }
}

fn answer_of_earlier(columns: Arc<[Str]>, earlier: Earlier) -> Result<Answer, Error> {
    match earlier {
        Earlier::Same(version) => {
            let counters = Counters::default();
            Ok(Answer { columns, rows: vec![], version, wrote: true, counters, repeated: true })
        }
        Earlier::OtherRequest(version) => Err(Error::new(
            ErrorCode::IdempotencyKeyReused,
            format!(
                "the idempotency key belongs to another request, which was committed as version {version}: \
                 a repeat has the same text and parameters, and every other request has a key of its own"
            ),
        )),
    }
}

/// Splits `EXPLAIN` or `PROFILE` from an openCypher text. `None`: the text has none, or the caller asks for an explanation
/// itself.
pub(crate) fn prefix<'q>(query: &Query<'q>) -> Option<(Explain, &'q str)> {
    if query.language != Language::OpenCypher || query.explain.is_some() {
        return None;
    }
    let (prefix, text) = tidegraph_opencypher::Prefix::of(query.text)?;
    let explain = match prefix {
        tidegraph_opencypher::Prefix::Explain => Explain::Plan,
        tidegraph_opencypher::Prefix::Profile => Explain::Profile,
    };
    // The plan of the text without the prefix is kept by that text.
    Some((explain, text.trim_start()))
}

/// Splits `explain()` or `profile()` from the end of a Gremlin text. `None`: the text has none, or the caller asks for an
/// explanation itself.
fn report<'q>(query: &Query<'q>) -> Option<(Explain, &'q str)> {
    if query.language != Language::Gremlin || query.explain.is_some() {
        return None;
    }
    let (report, text) = Report::of(query.text)?;
    Some((if report == Report::Explain { Explain::Plan } else { Explain::Profile }, text))
}

/// Parses a text that is a command; `None` for any other text.
pub(crate) fn command(language: Language, text: &str) -> Result<Option<Command>, Error> {
    match language {
        Language::Gremlin => Ok(None),
        Language::OpenCypher => Ok(tidegraph_opencypher::command(text)?),
    }
}
