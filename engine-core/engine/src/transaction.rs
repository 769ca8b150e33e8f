//! Transactions of several requests.
//!
//! All requests of a transaction read one version, and see what the earlier ones wrote. What they wrote and read stays in
//! this process ([`Carried`]) until [`Database::commit_transaction`] hands it to the sequencer, which commits all of it or nothing:
//! a transaction of several requests conflicts as one of a single request does. It is not run again after a conflict,
//! because only its caller knows why it sent the requests that it sent.
//!
//! What must never happen: a transaction is committed after one of its requests failed, because a part of that request
//! may be among its writes.

use crate::backend::Snapshot;
use crate::query::{Answer, Query, prefix, schema_command, with_deep_stack};
use crate::{Database, Error, Explain};
use std::fmt;
use std::sync::Arc;
use tidegraph_exec::Reservation;
use tidegraph_exec::view::{Carried, Counters, View};
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
        Self { at_least, read_only, snapshot: None, carried, counters: Counters::default(), memory }
    }

    /// Returns the version that its requests read; `None` before the first.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.snapshot.as_ref().map(|snapshot| snapshot.at.version)
    }
}

impl Database {
    /// Runs a request within a transaction. The version, the key and the commit of a request on its own do not apply:
    /// [`Query::at_least`] and [`Query::key`] are ignored, and the answer's version is the one that was read.
    ///
    /// # Errors
    ///
    /// The same as [`Database::query`], but for conflicts, which [`Database::commit_transaction`] reports. `UnsupportedOperation` for
    /// commands about indexes and constraints. After an error the transaction can only be dropped.
    pub fn query_within(&self, transaction: &mut Transaction, query: &Query<'_>) -> Result<Answer, Error> {
        let _span =
            tracing::debug_span!("query", language = ?query.language, principal = %query.principal).entered();
        with_deep_stack(query.text, || self.query_within_here(transaction, query))
    }

    fn query_within_here(&self, transaction: &mut Transaction, query: &Query<'_>) -> Result<Answer, Error> {
        if transaction.carried.is_none() {
            return Err(failed_before());
        }
        let deadline = self.deadline_of(query);
        match prefix(query) {
            Some((Explain::Plan, text)) => return self.answer_plan(&Query { text, ..*query }),
            Some((Explain::Profile, _)) => {
                transaction.carried = None;
                let message = "PROFILE cannot be part of a transaction: send it on its own";
                return Err(Error::new(ErrorCode::UnsupportedOperation, message));
            }
            None => {}
        }
        // Put back only after success.
        let carried = transaction.carried.take().ok_or_else(failed_before)?;
        if schema_command(query.language, query.text)?.is_some() {
            let message = "commands about indexes and constraints cannot be part of a transaction: send them on their own";
            return Err(Error::new(ErrorCode::UnsupportedOperation, message));
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
        let snapshot = match &mut transaction.snapshot {
            Some(snapshot) => snapshot,
            none => none.insert(self.snapshot_for(transaction.at_least, &deadline)?),
        };
        let generation = carried.generation();
        let (rows, carried) = self.execute_within(&planned, query, &deadline, snapshot, carried)?;
        let version = snapshot.at.version;
        if let Some(memory) = &transaction.memory {
            memory.grow_to(carried.bytes() as u64).map_err(tidegraph_exec::Error::from)?;
        }
        let counters = if planned.writes {
            let now = carried.counters();
            now.since(&std::mem::replace(&mut transaction.counters, now))
        } else {
            Counters::default()
        };
        let (columns, wrote) = (planned.columns.clone(), carried.generation() > generation);
        transaction.carried = Some(carried);
        Ok(Answer { columns, rows, version, wrote, counters, repeated: false })
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
            view.commit_request()?.0
        };
        match request {
            Some(request) => self.backend.commit(request),
            None => Ok(snapshot.at.version),
        }
    }
}

fn failed_before() -> Error {
    Error::new(
        ErrorCode::BadRequest,
        "a request of the transaction failed: the transaction can only be ended",
    )
}
