//! The services that a node offers: data of its partitions, commits while it is the sequencer, and its health.

use crate::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::Apl;
use tidegraph_types::{
    ChangesPage, ChangesRequest, CommitRequest, Epoch, Key, LoadChange, LoadChanges, LoadTurn, MadeSince,
    MadeVertex, NoChanges, PartitionId, RequestId, Str, Token, Version,
};

/// A partition that a node serves.
#[derive(Clone)]
pub struct ServedPartition {
    /// Its data. The store has the partition as its partition 0, as cursors of scans show.
    pub apl: Arc<dyn Apl>,
    /// Random id of the store. A store that is restored anew has another id, even in the same process: positions in the
    /// earlier store mean nothing to it (APL-2). Never 0.
    pub store: u64,
}

impl std::fmt::Debug for ServedPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedPartition").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The partitions of a node.
pub trait Node: Send + Sync {
    /// Returns a partition, for a caller that routed by the map of `epoch` (APL-2). Must not wait.
    ///
    /// # Errors
    ///
    /// [`tidegraph_apl::Error::NotHere`] if the node does not hold the partition, [`tidegraph_apl::Error::WrongEpoch`]
    /// if its map is older than the caller's. Both make the caller load a newer map.
    fn partition(
        &self,
        partition: PartitionId,
        epoch: Epoch,
    ) -> Result<ServedPartition, tidegraph_apl::Error>;

    /// Returns the version that a partition of the node has applied; 0: unknown. A hint.
    fn applied(&self, _partition: PartitionId) -> Version {
        Version::default()
    }

    /// Waits until a partition has applied a version, at most `at_most`. Returns whether it has.
    fn wait_for(&self, partition: PartitionId, version: Version, at_most: Duration) -> bool;

    /// Keeps a version and all later ones readable for a while, for a holder that repeats the request as long as it
    /// needs them. `None` releases them.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the node does not keep versions; [`Error::Unavailable`] while it starts.
    fn pin(&self, _holder: RequestId, _version: Option<Version>) -> Result<(), Error> {
        Err(Error::Unknown("this node does not keep versions for callers".into()))
    }
}

/// The outcome of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitOutcome {
    /// Unknown: it was never requested, or too long ago.
    Unknown,
    /// It is committed at this version.
    Committed(Version),
    /// It will never be committed.
    Refused,
    /// Another request with its key is committed at this version.
    OtherRequest(Version),
}

/// The newest versions that the sequencer committed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Newest {
    /// The newest committed version.
    pub version: Version,
    /// The epoch of the sequencer.
    pub epoch: Epoch,
    /// Version of the newest bulk load, or of an older one if it is long ago; 0: none.
    pub load: Version,
    /// No index or constraint was made or dropped after this version, up to the newest.
    pub schema: Version,
    /// The highest token that the graph has at the newest version, or a higher one.
    pub newest_token: Token,
    /// Version of a record that no replica of a partition can apply. Readers stay below it.
    pub halted: Option<Version>,
}

/// A committed transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Committed {
    /// Its version.
    pub version: Version,
    /// No index or constraint was made or dropped after this version, up to the transaction's.
    pub schema: Version,
    /// The highest token that the graph has at the version, or a higher one; `None`: not known.
    pub newest_token: Option<Token>,
    /// What was committed earlier under the key of the client; `None` if this call committed the transaction.
    pub earlier: Option<Earlier>,
}

/// A request that was committed earlier, under the key of a client. The version of [`Committed`] is its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Earlier {
    /// The same request.
    Same,
    /// Another request: the transaction is not committed.
    OtherRequest,
}

/// A request to make a bulk load visible.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadRequest {
    /// Id of the load.
    pub load_id: String,
    /// Paths of its segments in the object store.
    pub segments: Vec<String>,
    /// The version at which the load read.
    pub read_version: Version,
    /// Keys that the load depends on.
    pub read_keys: Vec<Key>,
    /// Version up to which the load has compared its vertices with those that transactions made.
    pub compared: Version,
    /// Version up to which the load has compared itself with [the changes](Commits::load_changes) since it read. `None`:
    /// it compares none, and any change refuses it.
    pub changes_compared: Option<Version>,
    /// A version that was committed before the first attempt of this request.
    pub first_asked: Version,
    /// The number with which the load last began; see [`Commits::begin_load`].
    pub beginning: u64,
}

/// What transactions did after a load compared itself with them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LastChanges {
    /// Number of the question to the load, which no other one has; 0 from a sequencer of an earlier release.
    pub question: u64,
    /// The vertices that they made.
    pub vertices: Vec<MadeVertex>,
    /// The changes of data that the load may have checked its input against.
    pub changes: Vec<(Version, LoadChange)>,
}

/// The answer to a request for changes.
#[derive(Clone, PartialEq, Debug)]
pub enum ChangesAnswer {
    /// The changes.
    Page(ChangesPage),
    /// Why there are none.
    None(NoChanges),
    /// Too many requests read the log.
    Busy,
}

/// The next step of the commit of a bulk load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadStep {
    /// The load is visible at this version.
    Committed(Version),
    /// The load must say soon whether one of these conflicts with it: all commits wait for the answer.
    Rest(LastChanges),
    /// Transactions made too many vertices or changes: the load must ask for them, and then request its commit again.
    Ask,
}

/// The sequencer of a graph.
///
/// # Errors
///
/// Every method fails with [`Error::NotSequencer`] on a node that is not the sequencer.
pub trait Commits: Send + Sync {
    /// Commits a transaction, once for each id (TXN-4). Waits for the log.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`], [`Error::Limit`] or [`Error::NotAllowed`] if it is refused; [`Error::InDoubt`] if the
    /// outcome is unknown; those of [every method](Commits#errors).
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error>;

    /// Returns the outcome of a commit that was first requested after the version `since`.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn outcome(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error>;

    /// Returns the outcome of a request whose id is made from a key of the client. `since` is a version that the client
    /// saw before it first sent the key. [`CommitOutcome::Refused`] means only that this process does not have it:
    /// [`Commits::commit`] finds what another one committed.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn outcome_of_key(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error>;

    /// Returns the tokens of names, and makes those that are missing. They are durable when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the dictionary is full; those of [every method](Commits#errors).
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// Returns `count` SIDs; none of them is ever handed out again (IDS-1).
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;

    /// Returns the newest committed versions.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn newest(&self) -> Result<Newest, Error>;

    /// Returns the tokens above a token with their names, rising.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error>;

    /// Begins a bulk load, or begins it again; returns the newest version. `beginning` is a number that the caller draws
    /// anew each time. From then on, [`Commits::commit_load`] refuses requests of this load with another number: one that
    /// arrives late must not commit segments that the load has removed since.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] while the load is being committed; those of [every method](Commits#errors).
    fn begin_load(&self, id: RequestId, beginning: u64) -> Result<Version, Error>;

    /// Returns the vertices that transactions made after a version. The load must not ask for earlier ones again.
    ///
    /// # Errors
    ///
    /// [`Error::LoadUnknown`] if the load began at another sequencer, or was silent for long; those of
    /// [every method](Commits#errors).
    fn watch_load(&self, id: RequestId, above: Version) -> Result<MadeSince, Error>;

    /// Returns changes after a version that bulk loads depend on, as far back as the sequencer knows them.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors); [`Error::Unknown`] if the sequencer runs an earlier release.
    fn load_changes(&self, above: Version) -> Result<LoadChanges, Error>;

    /// Gives a bulk load its turn: until it ends, commits that would conflict with the load wait. `None` ends the turn.
    /// Returns the version at which the load must read at least, or `None` if it has no turn.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors); [`Error::Unknown`] if the sequencer runs an earlier release.
    fn load_turn(&self, id: RequestId, turn: Option<LoadTurn>) -> Result<Option<Version>, Error>;

    /// Reads changes of the change stream, until `stop` returns true.
    ///
    /// # Errors
    ///
    /// [`Error::Overdue`] if it was stopped, [`Error::Unavailable`] if the log cannot be read; those of
    /// [every method](Commits#errors); [`Error::Unknown`] if the sequencer runs an earlier release, or reads no log.
    fn changes(&self, _request: &ChangesRequest, _stop: &dyn Fn() -> bool) -> Result<ChangesAnswer, Error> {
        Err(Error::Unknown("this node reads no log for the change stream".into()))
    }

    /// Ends a bulk load. Its turn goes on.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn end_load(&self, id: RequestId) -> Result<(), Error>;

    /// Makes a bulk load visible, once however often this is called (LOAD-1). Returns the next step.
    ///
    /// # Errors
    ///
    /// The same as [`Self::commit`] and [`Self::watch_load`].
    fn commit_load(&self, id: RequestId, load: LoadRequest) -> Result<LoadStep, Error>;

    /// Answers the question of [`LoadStep::Rest`]: the version of a vertex or change that conflicts with the load, or `None`.
    /// An answer to an earlier question is late and counts for nothing. The outcome of the load is found by requesting its
    /// commit again.
    ///
    /// # Errors
    ///
    /// The errors of [every method](Commits#errors).
    fn report_load_collision(
        &self,
        id: RequestId,
        question: u64,
        collision: Option<Version>,
    ) -> Result<(), Error>;
}

/// The health of a node.
pub trait Status: Send + Sync {
    /// Returns the health as a JSON object.
    fn status(&self) -> String;
}

/// The services that a node offers.
#[derive(Clone, Default)]
pub struct Services {
    /// Incarnation of the graph: tells it from others that had its name before. Clients of another one are refused. Empty if
    /// the graph has none.
    pub incarnation: String,
    /// Data of partitions.
    pub node: Option<Arc<dyn Node>>,
    /// Commits.
    pub commits: Option<Arc<dyn Commits>>,
    /// Health.
    pub status: Option<Arc<dyn Status>>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services")
            .field("node", &self.node.is_some())
            .field("commits", &self.commits.is_some())
            .field("status", &self.status.is_some())
            .finish()
    }
}
