//! What a graph's requests run on: everything in this process, or a fleet.
//!
//! Roles: [`Backend`] is the seam under [`crate::Database`]: where to read, whom to ask, where to commit. [`Local`] is the
//! one with its store and its sequencer in this process; a worker of a fleet brings another one.
//!
//! What must never happen: a commit that is answered and not durable; a reader that outlives the version that it reads.

use crate::Error;
use crate::catalog::SequencerCatalog;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tidegraph_apl::{Apl, At, Catalog, Statistics};
use tidegraph_storage::{Duplicate, IndexState, Pin, Store};
use tidegraph_txn::{LoadCommit, LoadWatch, Sequencer};
use tidegraph_types::{CommitRequest, Epoch, GuiHasher, Mutation, PartitionCount, Str, Version};

/// For whom data is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking<'a> {
    /// When the answer is of no use any more, by the process's clock; `None`: never.
    pub deadline: Option<Duration>,
    /// Set by somebody else to end the request early.
    pub cancel: Option<&'a Arc<AtomicBool>>,
}

/// What is called with the answer to a commit. It must not wait: others are answered after it.
pub type Ended = Box<dyn FnOnce(Result<Version, Error>) + Send>;

/// Where a request reads, and what keeps that readable for as long as it lives.
#[derive(Debug)]
pub struct Snapshot {
    /// The version.
    pub at: At,
    /// What pins it, where that is in this process.
    pub pin: Option<Pin>,
    /// What keeps it readable elsewhere.
    pub held: Option<Box<dyn fmt::Debug + Send + Sync>>,
}

/// The data of a graph, as one request reads it.
pub enum Reader<'b> {
    /// The backend's own.
    Own(&'b dyn Apl),
    /// Made for the request.
    Made(Box<dyn Apl + 'b>),
}

impl<'b> Deref for Reader<'b> {
    type Target = dyn Apl + 'b;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(apl) => *apl,
            Self::Made(apl) => &**apl,
        }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A bulk load that began: transactions are watched for what it rests on, for as long as this lives.
pub trait LoadHold: Send {
    /// Makes the load visible; answers its version, at which it can be read. Goes on trying while `go_on` says so, where that
    /// may help.
    fn commit(&self, load: LoadCommit, go_on: &dyn Fn() -> bool) -> Result<Version, Uncommitted>;
}

/// Why a load was not made visible.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Uncommitted {
    /// Why.
    #[source]
    pub error: Error,
    /// Whether it may be visible all the same, now or later: then its segments must stay.
    pub open: bool,
}

impl<E: Into<Error>> From<E> for Uncommitted {
    fn from(error: E) -> Self {
        Self { error: error.into(), open: false }
    }
}

/// What became of a bulk load whose process is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOutcome {
    /// It is visible since this version.
    Visible(Version),
    /// It is not.
    NotVisible,
    /// Nobody remembers.
    Unknown,
}

/// Vertices and edges, what is kept of them, and how well all is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Newest version that can be read.
    pub version: Version,
    /// Term of the sequencer.
    pub epoch: Epoch,
    /// Whether commits are taken.
    pub writable: bool,
    /// Most memory that the graph may take.
    pub memory_budget: Option<u64>,
    /// Memory that it takes.
    pub memory: u64,
    /// Bytes of properties on disk.
    pub spilled: u64,
}

/// What a graph's requests run on. See the module.
pub trait Backend: Send + Sync + fmt::Debug {
    /// How many partitions the graph has.
    fn partitions(&self) -> PartitionCount;

    /// Computes its GUIs.
    fn hasher(&self) -> GuiHasher;

    /// Where to read now: at the newest version, or at a later one that somebody was told of.
    fn snapshot(&self, at_least: Option<Version>) -> Result<Snapshot, Error>;

    /// Where a transaction can read without waiting for anybody, though others may have committed since: its commit checks what it
    /// read. `None`: where everything else reads.
    fn snapshot_at_hand(&self) -> Option<Snapshot> {
        None
    }

    /// The data, for one request.
    fn reader<'b>(&'b self, asking: Asking<'b>) -> Reader<'b>;

    /// Whether reading may wait, for a disk or for another machine.
    fn may_wait(&self) -> bool;

    /// The dictionary and the source of SIDs.
    fn catalog(&self) -> &dyn Catalog;

    /// Commits changes; answers the version from which they can be read. They are durable then.
    fn commit(&self, request: CommitRequest) -> Result<Version, Error>;

    /// As [`Backend::commit`], but `ended` is called with the answer, which must not wait. Where [`Backend::may_wait`] does not say
    /// otherwise, this does not wait for the disk.
    fn commit_later(&self, request: CommitRequest, ended: Ended) {
        ended(self.commit(request));
    }

    /// Vertices and edges, near enough for a plan.
    fn totals(&self) -> (u64, u64);

    /// What the planner asks.
    fn statistics(&self) -> Arc<Statistics>;

    /// Whether there is no vertex at a version, for certain.
    fn is_empty(&self, at: Version) -> Result<bool, Error>;

    /// An error if changes that need memory have none.
    fn check_room(&self) -> Result<(), Error>;

    /// The indexes that there are, complete where all of their parts are.
    fn indexes(&self) -> Result<Vec<IndexState>, Error>;

    /// Sees that the indexes become complete; answers when they are, or when `stop` says so.
    fn fill_indexes(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Error>;

    /// Vertices that share a value under a unique index.
    fn duplicate(&self, index: &str) -> Result<Option<Duplicate>, Error>;

    /// Begins a bulk load of this id. What the load reads, it reads at a snapshot taken after this.
    fn begin_load(&self, load_id: &str) -> Result<Box<dyn LoadHold + '_>, Error>;

    /// What became of a load of another process, or of this one before it was started anew; it was not visible at `since`.
    fn load_outcome(&self, _load_id: &str, _since: Version) -> Result<LoadOutcome, Error> {
        Ok(LoadOutcome::Unknown)
    }

    /// Whether others may answer where one is lost: then what failed before anything was written is worth another try.
    fn has_replicas(&self) -> bool {
        false
    }

    /// How all is.
    fn standing(&self) -> Standing;

    /// What the parts of a fleet say of themselves, as JSON; nothing where there is no fleet.
    fn fleet_report(&self) -> Option<String> {
        None
    }
}

/// A graph in this process.
pub(crate) struct Local {
    pub store: Arc<Store>,
    pub sequencer: Arc<Sequencer>,
    catalog: SequencerCatalog,
}

impl Local {
    pub fn new(store: Arc<Store>, sequencer: Arc<Sequencer>) -> Self {
        let catalog = SequencerCatalog(sequencer.clone());
        Self { store, sequencer, catalog }
    }

    fn check_room_for(&self, request: &CommitRequest) -> Result<(), Error> {
        if request.mutations.iter().all(takes_away) { Ok(()) } else { Ok(self.store.check_room()?) }
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
    fn commit(&self, load: LoadCommit, _go_on: &dyn Fn() -> bool) -> Result<Version, Uncommitted> {
        let committed = self.sequencer.commit_load(&self.watch, load);
        // A sequencer that stopped meanwhile does not know what the log has; the next start does.
        committed.map_err(|error| Uncommitted { open: !self.sequencer.is_writable(), error: error.into() })
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

    fn reader<'b>(&'b self, _asking: Asking<'b>) -> Reader<'b> {
        Reader::Own(&*self.store)
    }

    fn may_wait(&self) -> bool {
        self.store.is_spilling()
    }

    fn catalog(&self) -> &dyn Catalog {
        &self.catalog
    }

    fn commit(&self, request: CommitRequest) -> Result<Version, Error> {
        self.check_room_for(&request)?;
        Ok(self.sequencer.commit(request)?)
    }

    fn commit_later(&self, request: CommitRequest, ended: Ended) {
        match self.check_room_for(&request) {
            Ok(()) => self
                .sequencer
                .commit_later(request, Box::new(move |committed| ended(committed.map_err(Error::from)))),
            Err(error) => ended(Err(error)),
        }
    }

    fn totals(&self) -> (u64, u64) {
        self.store.totals()
    }

    fn statistics(&self) -> Arc<Statistics> {
        Arc::new(self.store.statistics())
    }

    fn is_empty(&self, at: Version) -> Result<bool, Error> {
        // Counts are of the newest version: they count for this one if nothing was committed since.
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

    fn standing(&self) -> Standing {
        let memory = self.store.memory_use();
        Standing {
            version: self.sequencer.version(),
            epoch: self.sequencer.epoch(),
            writable: self.sequencer.is_writable(),
            memory_budget: memory.budget,
            memory: memory.in_memory,
            spilled: memory.spilled,
        }
    }
}

/// Whether a change only takes from the graph.
fn takes_away(mutation: &Mutation) -> bool {
    matches!(
        mutation,
        Mutation::DeleteVertex { .. }
            | Mutation::DeleteEdge { .. }
            | Mutation::RemoveLabels { .. }
            | Mutation::RemoveVertexProperty { .. }
            | Mutation::SetMetaProperty { value: None, .. }
            | Mutation::RemoveEdgeProperty { .. }
            | Mutation::DropIndex { .. }
    )
}

/// The name of an index among others.
pub(crate) fn index_of(indexes: Vec<IndexState>, name: &Str) -> Option<IndexState> {
    indexes.into_iter().find(|index| index.definition.name == *name)
}
