//! Admission of queries: which run now, which wait, which are refused, and how a running one is cancelled.
//!
//! Roles: [`Admission`] holds the slots and the list of running queries; [`Request`] is one query with its caller and
//! its deadline; [`Error`] says why there is no answer. Every protocol of the service (HTTP, the Lambda function)
//! shares one `Admission` and turns answers and errors into its own form: nothing here knows a protocol.
//!
//! Flow: most queries end within microseconds, which is less than a hand-over to another thread costs. So each query is
//! first tried on the thread that read it, within [`Limits::inline`]. The engine gives up a try that takes longer, or whose
//! text it has not planned yet; while all slots are taken, it is tried up to three times. Such a query enters the list, waits for a slot, and runs on a thread of the blocking
//! pool, whose priority is below that of the threads that read sockets. Callers take turns at the slots (`slots`), so
//! that none keeps out the others. An inline write is committed without a thread that waits for it.
//!
//! A long answer is sent while its query runs ([`Admission::stream`]): `stream` says how its rows wait for their client.
//! An answer that is written whole keeps its memory, and its slot if it has one, until the last of its bytes is sent or
//! its client is gone. So clients that do not read cannot make the service hold more than its budget for all queries
//! ([`MemoryPool`]).
//!
//! What must never happen: a try that holds up the other connections of its thread for longer than its limits allow; a
//! query that keeps running although its caller has gone.

mod error;
mod held;
mod inline;
mod list;
mod measure;
mod output;
mod priority;
mod request_memory;
mod slots;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub use error::Error;
pub use inline::INLINE;
pub use list::RunningQuery;
pub use output::{Output, Part};
pub use request_memory::RequestMemory;
pub use stream::{Lent, MOST_PARKED, Parts};
pub use writer::Writer;

use crate::audit::{Audit, Record, Source, Unwritable};
use held::Held;
use inline::Attempt;
use list::{Entry, Listed, ListedTransaction, OpenTransaction, RunningQueries};
use slots::{Caller, Full, Slot, Slots};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stream::{Borrowed, End, Feed, lend};
use tidegraph_engine::{
    Answer, Counters, Database, Explain, GremlinVersion, Head, InlineLimits, Language, MemoryPool,
    Parameters, Principal, Query, Reservation,
};
use tidegraph_platform::memory::machine_bytes;
use tidegraph_platform::metric;
use tidegraph_types::{CommitRequest, ErrorCode, Str, Version};
use tokio::sync::Semaphore;

/// Memory for all queries where the system does not report how much it has.
const MEMORY_OF_UNKNOWN_MACHINE_BYTES: u64 = 1 << 30;

/// Limits of queries.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest time that a query may ask for.
    pub query_timeout: Duration,
    /// Number of queries that run at the same time; others wait.
    pub concurrent_queries: usize,
    /// Number of queries that wait. Others are refused, or those of callers that have more of them there.
    pub queued_queries: usize,
    /// Memory of all queries and of all answers that are not sent yet, in bytes.
    pub memory_total_bytes: u64,
    /// What a query may use on the thread that read it.
    pub inline: InlineLimits,
    /// Parts of the running queries and of the memory that graphs of several may have, in percent: 1 to 100.
    pub graph_quotas: BTreeMap<Arc<str>, u8>,
}

/// Returns a part of a limit; never nothing.
fn percent_of(limit: u64, percent: u8) -> u64 {
    let part = u128::from(limit) * u128::from(percent) / 100;
    u64::try_from(part).unwrap_or(u64::MAX).max(1)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            query_timeout: Duration::from_secs(120),
            concurrent_queries: 64,
            queued_queries: 4_096,
            memory_total_bytes: machine_bytes().map_or(MEMORY_OF_UNKNOWN_MACHINE_BYTES, |all| all / 4),
            inline: INLINE,
            graph_quotas: BTreeMap::new(),
        }
    }
}

/// A query with its caller and its deadline.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names the query in answers and in the list of running queries.
    pub id: String,
    /// Language of the text.
    pub language: Language,
    /// The version of Gremlin that the text speaks; `None`: that of the service.
    pub gremlin_version: Option<GremlinVersion>,
    /// Text of the query.
    pub text: String,
    /// Parameters of the text.
    pub parameters: Parameters,
    /// Time limit of this query. The service's own limit holds as well.
    pub timeout: Option<Duration>,
    /// Oldest version that the query may read.
    pub at_least: Option<Version>,
    /// Whether the query may only read.
    pub read_only: bool,
    /// Key under which the caller repeats the query; see [`Query::key`].
    pub key: Option<String>,
    /// Who asks.
    pub principal: Principal,
    /// Where the request came from.
    pub source: Source,
    /// Memory of the text and of the parameters. It is given back when the query has ended.
    pub memory: Option<Arc<Reservation>>,
    /// Whether the slot is free once the answer is written, although it is not sent: its client asks for it in parts.
    pub frees_slot: bool,
    /// What to answer about the text instead of its rows.
    pub explain: Option<Explain>,
}

impl Request {
    fn query<'a>(
        &'a self,
        admission: &'a Admission,
        cancel: Option<&'a Arc<AtomicBool>>,
        memory: &'a Arc<Reservation>,
    ) -> Query<'a> {
        let longest = admission.limits.query_timeout;
        Query {
            language: self.language,
            gremlin_version: self.gremlin_version,
            text: &self.text,
            parameters: &self.parameters,
            timeout: Some(self.timeout.map_or(longest, |asked| asked.min(longest))),
            cancel,
            at_least: self.at_least,
            read_only: self.read_only,
            key: self.key.as_deref(),
            principal: &self.principal,
            memory: Some(memory),
            explain: self.explain,
            running: Some(&*admission.running),
        }
    }
}

/// A transaction of several queries. Dropping it ends it without effect.
#[derive(Debug)]
pub struct Transaction {
    of_engine: tidegraph_engine::Transaction,
    listed: ListedTransaction,
}

/// An answer in the form of its protocol, or its begin.
#[derive(Debug)]
pub struct Written {
    /// The bytes that the protocol's writer produced.
    pub first: Part,
    /// What follows `first` while the query runs; `None`: `first` is all.
    pub more: Option<Parts>,
    /// Names of the columns.
    pub columns: Arc<[Str]>,
    /// The version that a read saw or a write made.
    pub version: Version,
    /// Number of rows, if the answer was made whole.
    pub rows: u64,
    /// Whether the query changed the graph.
    pub wrote: bool,
    /// Counts of what it changed.
    pub counters: Counters,
    /// Whether an earlier query with the same key had written, and this one did nothing.
    pub repeated: bool,
}

impl Written {
    fn new(first: Part, answer: &Answer) -> Self {
        let Answer { columns, version, wrote, counters, repeated, rows } = answer;
        Self {
            first,
            more: None,
            columns: columns.clone(),
            version: *version,
            rows: rows.len() as u64,
            wrote: *wrote,
            counters: *counters,
            repeated: *repeated,
        }
    }

    /// Makes an answer whose rows were handed over.
    fn of_parts(head: Head, first: Part, more: Option<Parts>) -> Self {
        let Head { columns, version, wrote, counters } = head;
        Self { first, more, columns, version, rows: 0, wrote, counters, repeated: false }
    }
}

/// What the graphs of a service share: slots, places of queries that wait for their clients, and memory.
#[derive(Clone)]
pub struct Capacity {
    slots: Arc<Slots>,
    parked: Arc<Semaphore>,
    memory: Arc<MemoryPool>,
    /// The memory of graphs with a quota.
    parts: Arc<BTreeMap<Arc<str>, Arc<MemoryPool>>>,
}

impl std::fmt::Debug for Capacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capacity").finish_non_exhaustive()
    }
}

impl Capacity {
    /// Makes the capacity of a service.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let quotas = || limits.graph_quotas.iter().map(|(graph, percent)| (graph.clone(), *percent));
        let slots = |percent| percent_of(limits.concurrent_queries as u64, percent) as usize;
        let slots = quotas().map(|(graph, percent)| (graph, slots(percent))).collect();
        let memory = MemoryPool::new(limits.memory_total_bytes);
        let part = |percent| memory.part(percent_of(limits.memory_total_bytes, percent));
        let parts = quotas().map(|(graph, percent)| (graph, part(percent))).collect();
        Self {
            slots: Slots::new(limits.concurrent_queries, limits.queued_queries, slots),
            parked: Arc::new(Semaphore::new(MOST_PARKED)),
            memory,
            parts: Arc::new(parts),
        }
    }
}

/// The slots of a service and its list of waiting and running queries.
pub struct Admission {
    database: Arc<Database>,
    /// The graph, if it shares its capacity with others.
    graph: Option<Arc<str>>,
    limits: Limits,
    slots: Arc<Slots>,
    /// Places of queries that wait for their clients without a slot.
    parked: Arc<Semaphore>,
    running: Arc<RunningQueries>,
    accepted: AtomicU64,
    memory: Arc<MemoryPool>,
    audit: OnceLock<Audit>,
    queries: OnceLock<metric::Queries>,
}

impl Admission {
    /// Makes the admission of a database.
    #[must_use]
    pub fn new(database: Arc<Database>, limits: Limits) -> Arc<Self> {
        let capacity = Capacity::new(&limits);
        Self::within(database, limits, capacity, None)
    }

    /// Makes the admission of one graph of several that share a capacity. None of them gets all of it.
    #[must_use]
    pub fn of_graph(
        database: Arc<Database>,
        limits: Limits,
        capacity: &Capacity,
        graph: &Arc<str>,
    ) -> Arc<Self> {
        Self::within(database, limits, capacity.clone(), Some(graph.clone()))
    }

    fn within(
        database: Arc<Database>,
        limits: Limits,
        capacity: Capacity,
        graph: Option<Arc<str>>,
    ) -> Arc<Self> {
        let Capacity { slots, parked, memory, parts } = capacity;
        let memory = graph.as_ref().and_then(|graph| parts.get(graph)).unwrap_or(&memory).clone();
        Arc::new(Self {
            database,
            graph,
            limits,
            slots,
            parked,
            running: Arc::default(),
            accepted: AtomicU64::new(0),
            memory,
            audit: OnceLock::new(),
            queries: OnceLock::new(),
        })
    }

    /// Records all later queries in an audit log. A second log is ignored.
    pub fn record_in(&self, audit: Audit) {
        let _ = self.audit.set(audit);
    }

    /// Returns the audit log.
    #[must_use]
    pub fn audit(&self) -> Option<&Audit> {
        self.audit.get()
    }

    async fn record(&self, request: &Request) -> Result<Option<Record>, Unwritable> {
        match self.audit.get() {
            Some(audit) => Ok(Some(audit.begin_query(request).await?)),
            None => Ok(None),
        }
    }

    /// Returns the limits of this service.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the time on the database's clock.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        self.database.now()
    }

    /// Returns the number of queries that were accepted since the start.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns the memory of all queries and unsent answers; of those of the graph if it has a quota.
    #[must_use]
    pub fn memory(&self) -> &MemoryPool {
        &self.memory
    }

    /// Returns the waiting and running queries. Queries that end within [`Limits::inline`] are not among them.
    #[must_use]
    pub fn running(&self) -> Vec<RunningQuery> {
        self.running.all()
    }

    /// Returns a waiting or running query.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<RunningQuery> {
        self.running.find(id)
    }

    /// Asks a waiting or running query to end early. Returns whether there is one with this id.
    pub fn cancel(&self, id: &str) -> bool {
        self.running.cancel(id)
    }

    /// Runs a query and writes its whole answer. Dropping the future cancels the query, unless it is being committed.
    ///
    /// `write` is called again from the start when the output of an inline try was too small.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateId`], [`Error::QueueFull`], [`Error::Memory`] and [`Error::Audit`] if the query is refused; [`Error::Query`] if the engine fails;
    /// [`Error::Write`] if `write` fails on an output without a limit; [`Error::Defect`] if a thread panics.
    pub async fn run(
        self: &Arc<Self>,
        request: Request,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()> + Send + 'static,
    ) -> Result<Written, Error> {
        self.measured(async {
            let record = self.record(&request).await?;
            let written = self.run_recorded(request, write).await;
            if let Some(record) = record {
                record.end_query(written.as_ref().map(|w| (w.rows, w.wrote)).map_err(Error::code));
            }
            written
        })
        .await
    }

    async fn run_recorded(
        self: &Arc<Self>,
        request: Request,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()> + Send + 'static,
    ) -> Result<Written, Error> {
        let memory = self.memory.reserve();
        // Its first bytes: a query that cannot have them is refused before it starts.
        memory.grow_to(1)?;
        match self.try_inline(&request, &memory, &write) {
            Attempt::Finished(result) => result,
            Attempt::Commits(commit, written) => match self.commit_written(commit, written).await {
                Some(result) => result,
                None => self.run_in_slot(request, memory, write).await,
            },
            Attempt::Answered(answer) => {
                let admission = self.clone();
                on_own_thread(move || {
                    let output = Output::of(admission.memory.reserve(), answer.wrote);
                    // Held while the rows are.
                    let _rows = memory;
                    written(&request, &answer, output, Held::default(), write)
                })
                .await
            }
            Attempt::NotInline => self.run_in_slot(request, memory, write).await,
        }
    }

    /// Runs a query, and returns its answer as soon as it is whole, or as a part of it is to be sent. What follows is
    /// written while the query runs, if it only reads. Dropping the future, or what it returns, cancels the query, unless
    /// it is being committed.
    ///
    /// # Errors
    ///
    /// The same as [`Admission::run`], as long as nothing of the answer was returned.
    pub async fn stream(self: &Arc<Self>, request: Request, writer: impl Writer) -> Result<Written, Error> {
        self.measured(async {
            let mut record = self.record(&request).await?;
            let streamed = self.stream_recorded(request, writer, &mut record).await;
            // Unless the query took it to its thread.
            if let Some(record) = record {
                record.end_query(streamed.as_ref().map(|w| (w.rows, w.wrote)).map_err(Error::code));
            }
            streamed
        })
        .await
    }

    async fn stream_recorded(
        self: &Arc<Self>,
        request: Request,
        writer: impl Writer,
        record: &mut Option<Record>,
    ) -> Result<Written, Error> {
        let memory = self.memory.reserve();
        memory.grow_to(1)?;
        let write = |_: &Request, answer: &Answer, output: &mut Output| writer.whole(answer, output);
        match self.try_inline(&request, &memory, write) {
            Attempt::Finished(result) => return result,
            Attempt::Commits(commit, written) => {
                if let Some(result) = self.commit_written(commit, written).await {
                    return result;
                }
            }
            // It runs again, to be written in parts.
            Attempt::Answered(_) | Attempt::NotInline => {}
        }
        self.stream_in_slot(request, memory, writer, record, None).await
    }

    /// Commits an inline write; `None` if it must run again, to read the transaction that it lost against.
    async fn commit_written(
        &self,
        commit: CommitRequest,
        written: Written,
    ) -> Option<Result<Written, Error>> {
        let committed = self.commit(commit).await;
        let lost = |error: &tidegraph_engine::Error| error.code() == ErrorCode::ConcurrentModification;
        if matches!(&committed, Err(Error::Query(error)) if lost(error)) {
            return None;
        }
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(committed.map(|version| Written { version, wrote: true, ..written }))
    }

    /// Runs a query as [`Admission::in_slot`] does, and hands over its answer in parts.
    async fn stream_in_slot(
        self: &Arc<Self>,
        request: Request,
        memory: Arc<Reservation>,
        writer: impl Writer,
        record: &mut Option<Record>,
        mut within: Option<Borrowed>,
    ) -> Result<Written, Error> {
        let open = within.as_ref().map(|borrowed| borrowed.transaction.listed.open().clone());
        let (listed, cancel) = self.list(&request, open)?;
        let cancel_on_drop = CancelOnDrop(cancel.clone());
        let slot = self.slot(&request.principal, request.source).await?;
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let (mut feed, parts) = stream::pipe(writer, self.clone(), slot, cancel_on_drop, record.take());
        let admission = self.clone();
        let span = tidegraph_platform::traces::current();
        tokio::task::spawn_blocking(move || {
            priority::lower();
            let _span = span.entered();
            // What the query holds is given back before its client learns of the end.
            let end = admission.run_into(&mut feed, request, listed, &cancel, memory, within.as_mut());
            if let Some(borrowed) = within.filter(|_| end.is_ok()) {
                borrowed.give_back();
            }
            feed.finish(end);
        });
        parts.begin().await
    }

    /// Runs a query on this thread, and hands over its answer.
    fn run_into(
        &self,
        feed: &mut Feed<impl Writer>,
        request: Request,
        listed: Listed,
        cancel: &Arc<AtomicBool>,
        memory: Arc<Reservation>,
        within: Option<&mut Borrowed>,
    ) -> Result<End, Error> {
        // On the list until this ends, which may be after the caller has gone.
        let _listed = listed;
        let _span = tracing::info_span!("request", id = request.id, principal = %request.principal).entered();
        let query = request.query(self, Some(cancel), &memory);
        let is_within = within.is_some();
        let answer = match within {
            None => self.database.stream(&query, feed),
            Some(borrowed) => self.database.stream_within(&mut borrowed.transaction.of_engine, &query, feed),
        };
        let answer = match (answer, feed.failure()) {
            (Ok(answer), _) => answer,
            (Err(_), Some(failure)) => return Err(failure),
            (Err(error), None)
                if is_within && feed.is_discarded() && error.code() == ErrorCode::Cancelled =>
            {
                return Ok(End::Handed);
            }
            (Err(error), None) => return Err(error.into()),
        };
        if feed.has_begun() {
            return feed.end();
        }
        let output = Output::of(self.memory.reserve(), answer.wrote);
        let slot = feed.take_slot().filter(|_| !request.frees_slot);
        let held = slot.map_or_else(Held::default, Held::of);
        let write = |_: &Request, answer: &Answer, output: &mut Output| feed.writer().whole(answer, output);
        Ok(End::Whole(Box::new(written(&request, &answer, output, held, write)?)))
    }

    /// Commits a transaction without a thread that waits for it. It commits even if the caller has gone.
    async fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.database.commit_later(request, Box::new(move |committed| drop(sender.send(committed))));
        Ok(receiver.await.map_err(Error::defect)??)
    }

    async fn run_in_slot(
        self: &Arc<Self>,
        request: Request,
        memory: Arc<Reservation>,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()> + Send + 'static,
    ) -> Result<Written, Error> {
        let execute = |database: &Database, query: &Query<'_>| Ok((database.query(query)?, ()));
        let (written, ()) = self.in_slot(request, None, memory, execute, write).await?;
        Ok(written)
    }

    /// Puts a query on the list, waits for a slot, and runs it on a thread of the blocking pool.
    async fn in_slot<T: Send + 'static>(
        self: &Arc<Self>,
        request: Request,
        within: Option<Arc<OpenTransaction>>,
        memory: Arc<Reservation>,
        execute: impl FnOnce(&Database, &Query<'_>) -> Result<(Answer, T), tidegraph_engine::Error>
        + Send
        + 'static,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()> + Send + 'static,
    ) -> Result<(Written, T), Error> {
        let (listed, cancel) = self.list(&request, within)?;
        let _cancel_on_drop = CancelOnDrop(cancel.clone());
        // The time limit of the query starts when the query does: waiting does not count against it.
        let slot = self.slot(&request.principal, request.source).await?;
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let admission = self.clone();
        on_own_thread(move || {
            // On the list until the thread ends, which may be after the caller has gone.
            let _listed = listed;
            let _span =
                tracing::info_span!("request", id = request.id, principal = %request.principal).entered();
            let query = request.query(&admission, Some(&cancel), &memory);
            let (answer, more) = execute(&admission.database, &query)?;
            let output = Output::of(admission.memory.reserve(), answer.wrote);
            let held = if request.frees_slot { Held::default() } else { Held::of(slot) };
            Ok((written(&request, &answer, output, held, write)?, more))
        })
        .await
    }

    /// Puts a query on the list, with the flag that cancels it.
    fn list(
        &self,
        request: &Request,
        within: Option<Arc<OpenTransaction>>,
    ) -> Result<(Listed, Arc<AtomicBool>), Error> {
        let cancel = Arc::new(AtomicBool::new(false));
        let entry = Entry {
            language: request.language,
            text: request.text.clone(),
            principal: request.principal.clone(),
            source: request.source,
            within,
            cancel: cancel.clone(),
            started: self.database.now(),
        };
        Ok((self.running.insert(&request.id, entry)?, cancel))
    }

    /// Waits for a slot.
    async fn slot(&self, principal: &Principal, source: Source) -> Result<Slot, Error> {
        let caller = Caller::new(principal, source).within(self.graph.clone());
        let slot = self.slots.acquire(caller).await;
        slot.map_err(|Full { waiting }| Error::QueueFull { waiting })
    }

    /// Begins a transaction of several queries. What it carries counts as memory of the queries.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if they leave none.
    pub fn begin(
        &self,
        principal: &Principal,
        source: Source,
        at_least: Option<Version>,
        read_only: bool,
    ) -> Result<Transaction, Error> {
        let memory = self.memory.reserve();
        memory.grow_to(1)?;
        let of_engine = tidegraph_engine::Transaction::new(at_least, Some(memory), read_only);
        Ok(Transaction { of_engine, listed: self.running.open(principal, source, self.now()) })
    }

    /// Runs a query of a transaction and writes its answer, as [`Admission::run`] does. An error ends the transaction.
    ///
    /// # Errors
    ///
    /// The same as [`Admission::run`].
    pub async fn run_within(
        self: &Arc<Self>,
        mut transaction: Transaction,
        request: Request,
        write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()> + Send + 'static,
    ) -> Result<(Written, Transaction), Error> {
        self.measured(async {
            let record = self.record(&request).await?;
            let memory = self.memory.reserve();
            let run = async {
                memory.grow_to(1)?;
                let within = transaction.listed.open().clone();
                let execute = move |database: &Database, query: &Query<'_>| {
                    let answer = database.query_within(&mut transaction.of_engine, query)?;
                    Ok((answer, transaction))
                };
                self.in_slot(request, Some(within), memory, execute, write).await
            };
            let ran = run.await;
            if let Some(record) = record {
                record.end_query(ran.as_ref().map(|(w, _)| (w.rows, w.wrote)).map_err(Error::code));
            }
            ran
        })
        .await
    }

    /// Runs a query of a transaction, as [`Admission::stream`] does; rows of a write leave, too. The transaction comes
    /// back when the query has ended. An error ends the transaction.
    ///
    /// # Errors
    ///
    /// The same as [`Admission::stream`].
    pub async fn stream_within(
        self: &Arc<Self>,
        transaction: Transaction,
        request: Request,
        writer: impl Writer,
    ) -> Result<(Written, Lent), Error> {
        self.measured(async {
            let mut record = self.record(&request).await?;
            let (borrowed, lent) = lend(transaction);
            let run = async {
                let memory = self.memory.reserve();
                memory.grow_to(1)?;
                self.stream_in_slot(request, memory, writer, &mut record, Some(borrowed)).await
            };
            let streamed = run.await;
            // Unless the query took it to its thread.
            if let Some(record) = record {
                record.end_query(streamed.as_ref().map(|w| (w.rows, w.wrote)).map_err(Error::code));
            }
            Ok((streamed?, lent))
        })
        .await
    }

    /// Commits a transaction. It commits even if the caller has gone.
    ///
    /// # Errors
    ///
    /// [`Error::QueueFull`] or [`Error::Audit`] if it is refused; [`Error::Query`] if the engine does not commit it;
    /// [`Error::Defect`] if a thread panics.
    pub async fn commit_transaction(
        self: &Arc<Self>,
        transaction: Transaction,
        principal: &Principal,
        source: Source,
    ) -> Result<Version, Error> {
        let record = match self.audit.get() {
            Some(audit) => Some(audit.begin("commit", principal, source).await?),
            None => None,
        };
        let committed = self.commit_recorded(transaction, principal, source).await;
        if let Some(record) = record {
            record.end(committed.as_ref().map(|_| ()).map_err(Error::code));
        }
        committed
    }

    async fn commit_recorded(
        self: &Arc<Self>,
        transaction: Transaction,
        principal: &Principal,
        source: Source,
    ) -> Result<Version, Error> {
        let slot = self.slot(principal, source).await?;
        let Transaction { of_engine, listed } = transaction;
        if listed.open().is_terminated() {
            let message = "the transaction was terminated, and is not committed";
            return Err(tidegraph_engine::Error::new(ErrorCode::Cancelled, message).into());
        }
        let database = self.database.clone();
        on_own_thread(move || {
            let _held = (slot, listed);
            Ok(database.commit_transaction(of_engine)?)
        })
        .await
    }
}

/// Cancels a query when the future that waits for it is dropped: its caller has gone.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn written(
    request: &Request,
    answer: &Answer,
    mut output: Output,
    held: Held,
    write: impl Fn(&Request, &Answer, &mut Output) -> io::Result<()>,
) -> Result<Written, Error> {
    write(request, answer, &mut output).map_err(Error::of_writer)?;
    Ok(Written::new(output.into_part(held), answer))
}

async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let span = tidegraph_platform::traces::current();
    let work = move || {
        priority::lower();
        span.in_scope(work)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::defect(error)))
}
