//! Transactions of several requests.
//!
//! All requests of a transaction read one version, and see what the earlier ones wrote. What they wrote and read stays in
//! this process ([`Carried`]) until [`Database::commit_transaction`] hands it to the sequencer, which commits all of it or nothing:
//! a transaction of several requests conflicts as one of a single request does. It is not run again after a conflict,
//! because only its caller knows why it sent the requests that it sent.
//!
//! The rows of a request may leave while it runs ([`Database::stream_within`]); the next request begins when it has ended.
//!
//! What must never happen: a transaction is committed after one of its requests failed, because a part of that request
//! may be among its writes; a request runs again after rows of it were handed on.

use crate::backend::Snapshot;
use crate::deadline::Deadline;
use crate::explain::{profile_columns, profile_rows};
use crate::plans::CachedPlan;
use crate::query::{Answer, MAX_REPLICA_RETRIES, PlatformEntropy, Query, command, prefix, with_deep_stack};
use crate::stream::{Head, RowSink, Rows};
use crate::{Database, Error, Explain, Retry};
use std::fmt;
use std::sync::Arc;
use tidegraph_exec::view::{Carried, Counters, View};
use tidegraph_exec::{Execution, Profile, Reservation};
use tidegraph_opencypher::Command;
use tidegraph_types::{ErrorCode, Version};

/// A transaction of several requests. Dropping it ends it without effect.
///
/// ```
/// use tidegraph_engine::{Database, Language, Options, Parameters, Query, Transaction};
/// use tidegraph_types::Value;
///
/// let database = Database::open(Options::default())?;
/// let none = Parameters::default();
/// let query = |text| Query::new(Language::OpenCypher, text, &none);
///
/// let mut transaction = Transaction::new(None, None, false);
/// database.query_within(&mut transaction, &query("CREATE (:Person {name: 'Ada'})"))?;
/// let inside = database.query_within(&mut transaction, &query("MATCH (p:Person) RETURN p.name"))?;
/// assert_eq!(inside.rows, [[Value::from("Ada")]]);
/// assert!(database.query(&query("MATCH (p:Person) RETURN p.name"))?.rows.is_empty());
///
/// database.commit_transaction(transaction)?;
/// assert_eq!(database.query(&query("MATCH (p:Person) RETURN p.name"))?.rows, inside.rows);
/// # Ok::<(), tidegraph_engine::Error>(())
/// ```
pub struct Transaction {
    at_least: Option<Version>,
    read_only: bool,
    /// The version that all requests read: chosen by the first.
    snapshot: Option<Snapshot>,
    /// Whether a request of it made or dropped an index or a constraint.
    has_schema: bool,
    /// `None` once a request has failed.
    carried: Option<Carried>,
    counters: Counters,
    memory: Option<Arc<Reservation>>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("snapshot", &self.snapshot)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Transaction {
    /// Begins a transaction that reads at least the version `at_least`, and that may only read if `read_only` is set. What
    /// it carries counts in `memory`.
    #[must_use]
    pub fn new(at_least: Option<Version>, memory: Option<Arc<Reservation>>, read_only: bool) -> Self {
        let carried = Some(Carried::new(!read_only));
        let counters = Counters::default();
        Self { at_least, read_only, snapshot: None, has_schema: false, carried, counters, memory }
    }

    /// Returns the version that its requests read; `None` before the first.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.snapshot.as_ref().map(|snapshot| snapshot.at.version)
    }

    /// Takes what a request has left.
    fn keep(&mut self, carried: Carried, writes: bool) -> Result<(), Error> {
        if let Some(memory) = &self.memory {
            memory.grow_to(carried.bytes() as u64).map_err(tidegraph_exec::Error::from)?;
        }
        if writes {
            self.counters = carried.counters();
        }
        self.carried = Some(carried);
        Ok(())
    }
}

/// What to answer about a request.
enum Output<'r, 's> {
    /// Its rows.
    Rows(&'r mut Rows<'s>),
    /// What the operators of its plan did.
    Profile,
}

/// A request of a transaction that failed.
struct Failed {
    error: Error,
    /// What the transaction carries nevertheless, if it is whole.
    carried: Option<Box<Carried>>,
}

impl From<tidegraph_exec::Error> for Failed {
    fn from(error: tidegraph_exec::Error) -> Self {
        Self { error: error.into(), carried: None }
    }
}

impl Database {
    /// Runs a request within a transaction. The version, the key and the commit of a request on its own do not apply:
    /// [`Query::at_least`] and [`Query::key`] are ignored, and the answer's version is the one that was read.
    ///
    /// # Errors
    ///
    /// The same as [`Database::query`], but for conflicts, which [`Database::commit_transaction`] reports. `BadRequest` if
    /// it both writes and makes or drops an index or a constraint, which takes effect at once. After an error the transaction can only be dropped; but if the request was
    /// cancelled (`Cancelled`) after its last write, the transaction goes on.
    pub fn query_within(&self, transaction: &mut Transaction, query: &Query<'_>) -> Result<Answer, Error> {
        self.within(transaction, query, &mut Rows::kept())
    }

    /// Runs a request within a transaction as [`Database::query_within`] does, and hands its rows to `sink` as they are
    /// made; those of a request that writes, once it has performed all its writes. The rows of the answer are those that
    /// the sink was not given: all of them or none.
    ///
    /// # Errors
    ///
    /// The same as [`Database::query_within`]. The sink may have been given rows before. If it stops the request with
    /// `Cancelled`, because nobody wants more rows, the transaction goes on.
    pub fn stream_within(
        &self,
        transaction: &mut Transaction,
        query: &Query<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Answer, Error> {
        self.within(transaction, query, &mut Rows::handed_to(sink))
    }

    fn within(
        &self,
        transaction: &mut Transaction,
        query: &Query<'_>,
        rows: &mut Rows<'_>,
    ) -> Result<Answer, Error> {
        let _span =
            tracing::debug_span!("query", language = ?query.language, principal = %query.principal).entered();
        with_deep_stack(query.text, || self.within_here(transaction, query, rows))
    }

    fn within_here(
        &self,
        transaction: &mut Transaction,
        query: &Query<'_>,
        rows: &mut Rows<'_>,
    ) -> Result<Answer, Error> {
        if transaction.carried.is_none() {
            return Err(failed_before());
        }
        let deadline = self.deadline_of(query);
        let (query, profiles) = match prefix(query) {
            Some((Explain::Plan, text)) => return self.answer_plan(&Query { text, ..*query }),
            Some((Explain::Profile, text)) => (Query { text, ..*query }, true),
            None => (*query, false),
        };
        let query = &query;
        // Put back only after success.
        let mut carried = transaction.carried.take().ok_or_else(failed_before)?;
        if let Some(command) = command(query.language, query.text)? {
            if profiles {
                transaction.carried = Some(carried);
                return self.answer_plan(query);
            }
            let query = Query { read_only: query.read_only || transaction.read_only, ..*query };
            let answer = self.command_within(transaction, &carried, &command, &query, &deadline)?;
            transaction.carried = Some(carried);
            return Ok(answer);
        }
        if self.compile_batched(query, &deadline)?.is_some() {
            let message = "A query with 'CALL { ... } IN TRANSACTIONS' can only be executed in an implicit transaction, \
                           but tried to execute in an explicit transaction.";
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        let planned = self.plan(query, &deadline)?;
        let deadline = deadline.within(&planned);
        Query { read_only: query.read_only || transaction.read_only, ..*query }
            .ensure_allowed(planned.writes)?;
        if planned.writes && transaction.has_schema {
            return Err(mixed());
        }
        let snapshot = match &mut transaction.snapshot {
            Some(snapshot) => snapshot,
            none => none.insert(self.snapshot_for(transaction.at_least, &deadline)?),
        };
        let mut losses = 0;
        loop {
            let Failed { error, carried: kept } = match self.execute_within(
                &planned,
                query,
                &deadline,
                snapshot,
                carried,
                transaction.counters,
                if profiles { Output::Profile } else { Output::Rows(&mut *rows) },
            ) {
                Ok((answer, kept)) => {
                    transaction.keep(kept, planned.writes)?;
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            let Some(kept) = kept else { return Err(error) };
            let is_lost = error.retry() == Retry::OtherReplica && self.backend.has_replicas();
            // A write may have read what it wrote.
            if is_lost && !planned.writes && !rows.were_handed() && losses < MAX_REPLICA_RETRIES {
                deadline.ensure()?;
                tracing::debug!(error = %error.chain(), "a replica was lost during a query: run again");
                losses += 1;
                carried = *kept;
                continue;
            }
            if error.code() == ErrorCode::Cancelled {
                transaction.keep(*kept, planned.writes)?;
            }
            return Err(error);
        }
    }

    /// Runs a command. One that makes or drops an index or a constraint takes effect at once: the end of the transaction
    /// does not change it. So a transaction has either such commands or writes, as in Neo4j.
    fn command_within(
        &self,
        transaction: &mut Transaction,
        carried: &Carried,
        command: &Command,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        query.ensure_allowed_schema(command.writes())?;
        if !command.writes() {
            return self.run_command(command, query, deadline);
        }
        if carried.generation() > 0 {
            return Err(mixed());
        }
        let answer = self.run_command(command, query, deadline)?;
        transaction.has_schema = true;
        transaction.at_least = transaction.at_least.max(Some(answer.version));
        Ok(answer)
    }

    /// Runs a request once, and returns its answer and what the transaction carries on. `earlier`: what the requests
    /// before it have changed.
    fn execute_within(
        &self,
        planned: &CachedPlan,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
        snapshot: &Snapshot,
        carried: Carried,
        earlier: Counters,
        output: Output<'_, '_>,
    ) -> Result<(Answer, Carried), Failed> {
        let apl = self.backend.reader(deadline.options());
        let (carried_bytes, generation) = (carried.bytes(), carried.generation());
        let view =
            View::resume(&*apl, self.backend.catalog(), snapshot.at, carried).streaming(self.options.streams);
        let entropy = PlatformEntropy(&*self.random);
        let mut context = self.context(view, query, deadline, self.limits(), &entropy);
        context.memory.charge(carried_bytes)?;
        let now = || self.clock.now();
        if let Output::Profile = output {
            context.profile = Some(Profile::new(&now));
        }
        let mut execution = Execution::new(&planned.plan, context)?;
        let make = || {
            execution.perform_writes()?;
            let view = &execution.context().view;
            view.check_request()?;
            let wrote = view.wrote_since(generation);
            let counters = if planned.writes { view.counters().since(&earlier) } else { Counters::default() };
            let (columns, version) = (planned.columns.clone(), snapshot.at.version);
            let head = Head { columns, version, wrote, counters };
            let (columns, rows) = match output {
                Output::Rows(rows) => {
                    let rows = rows.take_all(&mut execution, &head, false, deadline)?;
                    (head.columns, rows)
                }
                Output::Profile => (profile_columns(), profile_rows(self, planned, &mut execution, &*apl)?),
            };
            Ok(Answer { columns, rows, version, wrote, counters, repeated: false })
        };
        match make() {
            Ok(answer) => Ok((answer, execution.carry()?)),
            Err(error) => Err(Failed { error, carried: execution.stop().map(Box::new) }),
        }
    }

    /// Commits a transaction, and returns the version that it made; or that it read, if it changed nothing.
    ///
    /// # Errors
    ///
    /// `ConcurrentModification` if another transaction changed what this one read: nothing is committed then;
    /// `ConstraintViolation` or `UniqueViolation` if the graph would break a rule; `BadRequest` if a request of the
    /// transaction failed; `Unavailable` or `CommitOutcomeUnknown` as for [`Database::query`].
    pub fn commit_transaction(&self, transaction: Transaction) -> Result<Version, Error> {
        let carried = transaction.carried.ok_or_else(failed_before)?;
        let Some(snapshot) = transaction.snapshot else { return Ok(self.backend.status().version) };
        let request = {
            let none = crate::Parameters::default();
            let deadline = self.deadline_of(&Query::new(crate::Language::OpenCypher, "", &none));
            let apl = self.backend.reader(deadline.options());
            let view = View::resume(&*apl, self.backend.catalog(), snapshot.at, carried);
            view.streaming(self.options.streams).commit_request()?.0
        };
        match request {
            Some(request) => self.backend.commit(request),
            None => Ok(snapshot.at.version),
        }
    }
}

fn mixed() -> Error {
    let message = "a transaction cannot both write and make or drop indexes or constraints: use one for each";
    Error::new(ErrorCode::BadRequest, message)
}

fn failed_before() -> Error {
    Error::new(
        ErrorCode::BadRequest,
        "a request of the transaction failed: the transaction can only be ended",
    )
}
