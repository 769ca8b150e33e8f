//! The interface below [`crate::Database`]: which version to read, which storage to ask, which sequencer commits.
//!
//! Roles: [`Backend`] is the trait. [`Local`] implements it with a store and a sequencer in this process; the worker of
//! a fleet implements it over the network.
//!
//! What must never happen: a commit is answered before it is durable; a reader outlives the version that it reads.

use crate::Error;
use crate::catalog::SequencerCatalog;
use crate::changes::ChangeFeed;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_apl::{Apl, At, Catalog, Statistics};
use tidegraph_platform::Clock;
use tidegraph_storage::{Duplicate, IndexState, Pin, Store};
use tidegraph_txn::{LoadCommit, LoadWatch, Sequencer};
use tidegraph_types::{
    ChangesPage, ChangesRequest, CommitRequest, Epoch, ErrorCode, GremlinSettings, GuiHasher, LoadTurn,
    Mutation, PartitionCount, RequestId, Str, Version,
};

/// Options of the reads of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions<'a> {
    /// Deadline by the process's clock; `None` for none.
    pub deadline: Option<Duration>,
    /// Flag that another thread sets to end the request early.
    pub cancel: Option<&'a Arc<AtomicBool>>,
}

/// Receives the result of a commit. It must not wait: the results of other commits come after it.
pub type CommitCallback = Box<dyn FnOnce(Result<Version, Error>) + Send>;

/// The key under which a client repeats a request, and what the request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestKey {
    /// Id that is made from the key and the request ([`RequestId::of_key`]).
    pub id: RequestId,
    /// A version that the client saw before it first sent the key.
    pub first_asked: Version,
}

/// A request that was committed earlier under a key, with the version of its commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Earlier {
    /// The same request.
    Same(Version),
    /// Another request.
    OtherRequest(Version),
}

/// Result of a commit under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyedCommit {
    /// This call committed the transaction, at this version.
    Committed(Version),
    /// A request was committed under the key before, so this one was not. A commit that was sent twice because its first
    /// answer was lost may count as such a request.
    Earlier(Earlier),
}

/// A version to read. The version stays readable while this lives.
#[derive(Debug)]
pub struct Snapshot {
    /// The version.
    pub at: At,
    /// Pins the version in the store of this process.
    pub pin: Option<Pin>,
    /// Keeps the version readable on other machines.
    pub held: Option<Box<dyn fmt::Debug + Send + Sync>>,
}

/// Access to a graph's data for one request.
pub enum Reader<'b> {
    /// Storage that all requests share.
    Shared(&'b dyn Apl),
    /// Access that was made for the request.
    Own(Box<dyn Apl + 'b>),
}

impl<'b> Deref for Reader<'b> {
    type Target = dyn Apl + 'b;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shared(apl) => *apl,
            Self::Own(apl) => &**apl,
        }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A bulk load that has begun. While this lives, the sequencer watches transactions for what the load depends on.
pub trait LoadHold: Send + Sync {
    /// Called between two batches of rows: what has no thread shows that the load is alive.
    fn go_on(&self) {}

    /// Makes the load visible and returns its version, which can be read then. If another
    /// attempt may help, it continues until `go_on` returns `false`.
    ///
    /// # Errors
    ///
    /// `ConcurrentModification` if a transaction changed what the load depends on, `Unavailable` if the sequencer
    /// cannot commit. [`LoadCommitError::open`] says whether the load may be visible nevertheless.
    fn commit(&self, load: LoadCommit, go_on: &dyn Fn() -> bool) -> Result<Version, LoadCommitError>;
}

/// Why a load was not made visible.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct LoadCommitError {
    /// The error.
    #[source]
    pub error: Error,
    /// Whether the load may be visible nevertheless, now or later. Its segments must stay then.
    pub open: bool,
}

impl<E: Into<Error>> From<E> for LoadCommitError {
    fn from(error: E) -> Self {
        Self { error: error.into(), open: false }
    }
}

/// The outcome of a bulk load whose process is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOutcome {
    /// The load is visible since this version.
    Visible(Version),
    /// The load is not visible.
    NotVisible,
    /// The sequencer does not remember the load.
    Unknown,
}

/// The state of a backend: versions, memory, and whether it takes commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BackendStatus {
    /// Newest version that can be read.
    pub version: Version,
    /// Term of the sequencer.
    pub epoch: Epoch,
    /// Whether the sequencer accepts commits.
    pub writable: bool,
    /// Memory budget of the graph in bytes; `None` for no limit.
    pub memory_budget: Option<u64>,
    /// Memory of the graph in bytes.
    pub memory: u64,
    /// Bytes of properties on disk because of the budget.
    pub spilled: u64,
}

/// The backend of a graph's requests. See the module.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Returns the number of partitions of the graph.
    fn partitions(&self) -> PartitionCount;

    /// Returns the hasher that computes the graph's GUIs.
    fn hasher(&self) -> GuiHasher;

    /// Returns a snapshot of the newest version, or of a later one that the caller has heard of.
    ///
    /// # Errors
    ///
    /// `Unavailable` with [`Retry::Wait`](crate::Retry::Wait) if this process has not reached the version.
    fn snapshot(&self, at_least: Option<Version>) -> Result<Snapshot, Error>;

    /// Learns of every version that was committed before the call. Later snapshots are of that version or newer.
    ///
    /// Reads of a process may be some milliseconds behind commits of others. A command that answers from what it reads
    /// (`IF NOT EXISTS`) must not be.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sequencer does not answer.
    fn catch_up(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns a snapshot of a version that the replicas have already applied, for a
    /// transaction that does not want to wait for them: its commit checks whether the
    /// data that it read has changed since. `None` if [`Backend::snapshot`] is as good.
    fn applied_snapshot(&self) -> Option<Snapshot> {
        None
    }

    /// Returns access to the data for one request.
    fn reader<'b>(&'b self, options: ReadOptions<'b>) -> Reader<'b>;

    /// Returns the settings of Gremlin with which the graph was made.
    fn gremlin(&self) -> GremlinSettings;

    /// Whether a read may wait for a disk or for another machine.
    fn may_wait(&self) -> bool;

    /// Returns the dictionary of names, which also allocates SIDs.
    fn catalog(&self) -> &dyn Catalog;

    /// Commits changes durably and returns the version from which they can be read.
    ///
    /// # Errors
    ///
    /// `ConcurrentModification` with [`Retry::NewerVersion`](crate::Retry::NewerVersion) if another transaction wrote
    /// what this one read; then nothing is committed, now or later. `CommitOutcomeUnknown` leaves open whether the changes were
    /// committed. Other codes if the request cannot be committed as it is.
    fn commit(&self, request: CommitRequest) -> Result<Version, Error>;

    /// Returns what was committed under the key of a client. `None` if nothing is known; [`Backend::commit_keyed`] then
    /// decides.
    ///
    /// # Errors
    ///
    /// `CommitOutcomeUnknown` if a request may have been committed so long ago that its key is forgotten; `Unavailable`
    /// if the sequencer does not answer.
    fn outcome_of_key(&self, key: RequestKey) -> Result<Option<Earlier>, Error>;

    /// Commits as [`Backend::commit`] does, unless a request was committed under the key before. The changes must not
    /// be empty.
    ///
    /// # Errors
    ///
    /// Those of [`Backend::commit`] and of [`Backend::outcome_of_key`].
    fn commit_keyed(&self, request: CommitRequest, key: RequestKey) -> Result<KeyedCommit, Error>;

    /// Commits as [`Backend::commit`] does, and passes the result to `done`, which must not wait. The call itself waits
    /// for the disk only if [`Backend::may_wait`].
    fn commit_later(&self, request: CommitRequest, done: CommitCallback) {
        done(self.commit(request));
    }

    /// Estimates the numbers of vertices and of edges, for plans.
    fn totals(&self) -> (u64, u64);

    /// Returns the statistics that the planner reads. In a fleet they are some seconds old.
    fn statistics(&self) -> Arc<Statistics>;

    /// Returns the statistics as they are at a version, or later.
    ///
    /// # Errors
    ///
    /// Those of storage.
    fn statistics_at(&self, at: At) -> Result<Arc<Statistics>, tidegraph_apl::Error>;

    /// Whether the graph certainly has no vertex at a version.
    ///
    /// # Errors
    ///
    /// `Unavailable` if storage does not answer.
    fn is_empty(&self, at: Version) -> Result<bool, Error>;

    /// Checks whether changes that need memory can be accepted.
    ///
    /// # Errors
    ///
    /// `Unavailable` if they would exceed the memory budget.
    fn check_room(&self) -> Result<(), Error>;

    /// Returns the indexes. One is complete if it is complete in all partitions.
    ///
    /// # Errors
    ///
    /// `Unavailable` if a node does not answer.
    fn indexes(&self) -> Result<Vec<IndexState>, Error>;

    /// Fills the incomplete indexes; returns when all are complete or when `stop` returns `true`.
    ///
    /// # Errors
    ///
    /// `Unavailable` if storage cannot be read.
    fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Error>;

    /// Returns two vertices that share a value under a unique index, if there are any.
    ///
    /// # Errors
    ///
    /// `Unavailable` if storage cannot be read.
    fn duplicate(&self, index: &str) -> Result<Option<Duplicate>, Error>;

    /// Begins a bulk load of this id. The load must read at a snapshot taken after this call.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sequencer does not answer.
    fn begin_load(&self, load_id: &str) -> Result<Box<dyn LoadHold + '_>, Error>;

    /// Gives a load its turn: until it ends, commits that would conflict with the load wait. Returns the version at
    /// which the load must read at least; `None` if it gets no turn, because another load has one.
    ///
    /// The turn ends with the commit of the load, with [`Backend::end_turn`], after its time limit, and with the
    /// sequencer.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sequencer does not answer.
    fn begin_turn(&self, _load_id: &str, _turn: LoadTurn) -> Result<Option<Version>, Error> {
        Ok(None)
    }

    /// Ends the turn of a load, if it has one.
    fn end_turn(&self, _load_id: &str) {}

    /// Returns the outcome of a load that another process began, or this one before its restart. The load was not
    /// visible at `since`.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sequencer does not answer.
    fn load_outcome(&self, _load_id: &str, _since: Version) -> Result<LoadOutcome, Error> {
        Ok(LoadOutcome::Unknown)
    }

    /// Returns changes of the graph in the order of their commits.
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` from a backend without a stream; those of
    /// [`ChangeFeed::page`](crate::ChangeFeed::page).
    fn changes(&self, _request: &ChangesRequest, _options: &ReadOptions<'_>) -> Result<ChangesPage, Error> {
        Err(Error::new(ErrorCode::UnsupportedOperation, "this process cannot read the log of the graph"))
    }

    /// Whether there are replicas: then a request that lost one before it wrote anything can run again.
    fn has_replicas(&self) -> bool {
        false
    }

    /// Returns the newest version, the sequencer's state and the memory in use.
    fn status(&self) -> BackendStatus;

    /// Returns the state of all nodes of a fleet as JSON; `None` without a fleet.
    fn fleet_report(&self) -> Option<String> {
        None
    }
}

/// A graph in this process.
pub(crate) struct Local {
    pub store: Arc<Store>,
    pub sequencer: Arc<Sequencer>,
    clock: Arc<dyn Clock>,
    catalog: SequencerCatalog,
    feed: Option<ChangeFeed>,
    gremlin: GremlinSettings,
}

impl Local {
    pub fn new(
        store: Arc<Store>,
        sequencer: Arc<Sequencer>,
        clock: Arc<dyn Clock>,
        feed: Option<ChangeFeed>,
        gremlin: GremlinSettings,
    ) -> Self {
        let catalog = SequencerCatalog(sequencer.clone());
        Self { store, sequencer, clock, catalog, feed, gremlin }
    }

    fn now_ms(&self) -> i64 {
        self.clock.wall().as_millisecond()
    }

    fn check_room_for(&self, request: &CommitRequest) -> Result<(), Error> {
        if request.mutations.iter().all(only_removes) { Ok(()) } else { Ok(self.store.check_room()?) }
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("store", &self.store).finish_non_exhaustive()
    }
}

struct LocalLoad<'l> {
    sequencer: &'l Sequencer,
    watch: LoadWatch,
}

impl LoadHold for LocalLoad<'_> {
    fn commit(&self, load: LoadCommit, _go_on: &dyn Fn() -> bool) -> Result<Version, LoadCommitError> {
        let committed = self.sequencer.commit_load(&self.watch, load);
        // A sequencer that has stopped cannot tell what is in the log; the next start can.
        committed
            .map_err(|error| LoadCommitError { open: !self.sequencer.is_writable(), error: error.into() })
    }
}

impl Backend for Local {
    fn partitions(&self) -> PartitionCount {
        self.store.config().partitions
    }

    fn hasher(&self) -> GuiHasher {
        self.store.config().hasher
    }

    fn snapshot(&self, at_least: Option<Version>) -> Result<Snapshot, Error> {
        let pin = self.store.pin_published();
        let (applied, asked) = (pin.version(), at_least.unwrap_or_default());
        if applied < asked {
            return Err(tidegraph_apl::Error::Behind { applied, asked }.into());
        }
        Ok(Snapshot { at: At { version: applied, epoch: Epoch::default() }, pin: Some(pin), held: None })
    }

    fn reader<'b>(&'b self, _: ReadOptions<'b>) -> Reader<'b> {
        Reader::Shared(&*self.store)
    }

    fn gremlin(&self) -> GremlinSettings {
        self.gremlin
    }

    fn may_wait(&self) -> bool {
        self.store.is_spilling()
    }

    fn catalog(&self) -> &dyn Catalog {
        &self.catalog
    }

    fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        self.check_room_for(&request)?;
        Ok(self.sequencer.commit(request.taken_at(|| self.now_ms()))?)
    }

    fn outcome_of_key(&self, key: RequestKey) -> Result<Option<Earlier>, Error> {
        match self.sequencer.outcome_of_key(key.id, key.first_asked) {
            Ok(found) => Ok(found.map(Earlier::Same)),
            Err(tidegraph_txn::Error::KeyReused { version }) => Ok(Some(Earlier::OtherRequest(version))),
            Err(error) => Err(error.into()),
        }
    }

    fn commit_keyed(&self, request: CommitRequest, key: RequestKey) -> Result<KeyedCommit, Error> {
        self.check_room_for(&request)?;
        let (request_id, first_asked) = (Some(key.id), Some(key.first_asked));
        match self.sequencer.commit(CommitRequest {
            request: request_id,
            first_asked,
            by_key: true,
            ..request.taken_at(|| self.now_ms())
        }) {
            Ok(version) => Ok(KeyedCommit::Committed(version)),
            Err(tidegraph_txn::Error::Repeated { version }) => {
                Ok(KeyedCommit::Earlier(Earlier::Same(version)))
            }
            Err(tidegraph_txn::Error::KeyReused { version }) => {
                Ok(KeyedCommit::Earlier(Earlier::OtherRequest(version)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn commit_later(&self, request: CommitRequest, done: CommitCallback) {
        match self.check_room_for(&request) {
            Ok(()) => self.sequencer.commit_later(
                request.taken_at(|| self.now_ms()),
                Box::new(move |committed| done(committed.map_err(Error::from))),
            ),
            Err(error) => done(Err(error)),
        }
    }

    fn totals(&self) -> (u64, u64) {
        self.store.totals()
    }

    fn statistics(&self) -> Arc<Statistics> {
        Arc::new(self.store.statistics())
    }

    fn statistics_at(&self, _at: At) -> Result<Arc<Statistics>, tidegraph_apl::Error> {
        Ok(self.statistics())
    }

    fn is_empty(&self, at: Version) -> Result<bool, Error> {
        // The counts are those of the newest version. They hold for `at` if nothing was committed since.
        Ok(self.store.totals().0 == 0 && self.store.published() == at)
    }

    fn check_room(&self) -> Result<(), Error> {
        Ok(self.store.check_room()?)
    }

    fn indexes(&self) -> Result<Vec<IndexState>, Error> {
        Ok(self.store.indexes())
    }

    fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        Ok(self.store.fill_indexes(stop)?)
    }

    fn duplicate(&self, index: &str) -> Result<Option<Duplicate>, Error> {
        Ok(self.store.duplicate(index)?)
    }

    fn begin_load(&self, _load_id: &str) -> Result<Box<dyn LoadHold + '_>, Error> {
        Ok(Box::new(LocalLoad { sequencer: &self.sequencer, watch: self.sequencer.begin_load() }))
    }

    fn begin_turn(&self, load_id: &str, turn: LoadTurn) -> Result<Option<Version>, Error> {
        Ok(self.sequencer.begin_turn(RequestId::of_text(load_id), turn, &self.clock)?)
    }

    fn end_turn(&self, load_id: &str) {
        self.sequencer.end_turn(RequestId::of_text(load_id));
    }

    fn changes(&self, request: &ChangesRequest, options: &ReadOptions<'_>) -> Result<ChangesPage, Error> {
        let Some(feed) = &self.feed else {
            return Err(Error::new(ErrorCode::UnsupportedOperation, "the log of this graph has no readers"));
        };
        let stop = || {
            options.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
                || options.deadline.is_some_and(|deadline| self.clock.now() >= deadline)
        };
        Ok(feed.page(request, self.sequencer.version(), &stop)?)
    }

    fn status(&self) -> BackendStatus {
        let memory = self.store.memory_use();
        BackendStatus {
            version: self.sequencer.version(),
            epoch: self.sequencer.epoch(),
            writable: self.sequencer.is_writable(),
            memory_budget: memory.budget,
            memory: memory.in_memory,
            spilled: memory.spilled,
        }
    }
}

/// Whether a change only removes from the graph.
fn only_removes(mutation: &Mutation) -> bool {
    matches!(
        mutation,
        Mutation::DeleteVertex { .. }
            | Mutation::DeleteEdge { .. }
            | Mutation::RemoveLabels { .. }
            | Mutation::RemoveVertexProperty { .. }
            | Mutation::SetMetaProperty { value: None, .. }
            | Mutation::RemoveEdgeProperty { .. }
            | Mutation::DropIndex { .. }
            | Mutation::Reset
    )
}

/// Returns the index of this name.
pub(crate) fn index_of(indexes: Vec<IndexState>, name: &Str) -> Option<IndexState> {
    indexes.into_iter().find(|index| index.definition.name == *name)
}
