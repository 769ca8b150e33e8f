//! What a node offers to others: data of its partitions, commits while it is the sequencer, and how it is.

use crate::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::Apl;
use tidegraph_types::{CommitRequest, Epoch, Key, MadeSince, MadeVertex, PartitionId, Str, Token, Version};

/// The partitions of a node.
pub trait Node: Send + Sync {
    /// A partition, for a caller who routed by the map of an epoch. [`tidegraph_apl::Error::NotHere`] and
    /// [`tidegraph_apl::Error::WrongEpoch`] make the caller load the map anew. Must not wait.
    ///
    /// What is answered holds that one partition as its partition 0: in cursors of scans.
    fn partition(&self, partition: PartitionId, epoch: Epoch) -> Result<Arc<dyn Apl>, tidegraph_apl::Error>;

    /// The version that a partition has reached here; 0: not known. A hint.
    fn applied(&self, _partition: PartitionId) -> Version {
        Version::default()
    }

    /// Waits until a partition has reached a version, but at most so long; answers whether it has.
    fn wait_for(&self, partition: PartitionId, version: Version, at_most: Duration) -> bool;

    /// Keeps a version readable for a while, and those after it, for somebody who asks again as long as he needs it. `None`: he
    /// needs none any more.
    fn pin(&self, _holder: RequestId, _version: Option<Version>) -> Result<(), Error> {
        Err(Error::Unknown("this node keeps no versions for others".into()))
    }
}

/// Names a commit: whoever asks again under the same name gets the same answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub [u8; 16]);

/// What became of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitOutcome {
    /// It is not known: never asked for, or too long ago.
    Unknown,
    /// It is committed.
    Committed(Version),
    /// It never will be.
    Refused,
}

/// Where the sequencer stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Newest {
    /// The newest version that is committed.
    pub version: Version,
    /// The epoch of the sequencer.
    pub epoch: Epoch,
    /// The version of the newest bulk load, or of an older one if that is long ago; 0 for none.
    pub load: Version,
    /// No index or constraint was made or dropped after this version, up to the newest.
    pub schema: Version,
}

/// A transaction that is committed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Committed {
    /// Its version.
    pub version: Version,
    /// No index or constraint was made or dropped after this version, up to the transaction's.
    pub schema: Version,
}

/// A bulk load that is to become visible.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadRequest {
    /// Id of the load.
    pub load_id: String,
    /// Paths of its segments in the object store.
    pub segments: Vec<String>,
    /// The version at which it read.
    pub read_version: Version,
    /// What it rests on.
    pub read_keys: Vec<Key>,
    /// Up to here it has compared the vertices that transactions made with its own.
    pub compared: Version,
    /// A version that was there when this was asked for the first time.
    pub first_asked: Version,
}

/// How far a commit of a bulk load is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadStep {
    /// It is visible.
    Committed(Version),
    /// Whether one of these vertices is in its way is to be said soon: all commits wait for it.
    Rest(Vec<MadeVertex>),
    /// Too many were made: the load is to ask for them, and then to be committed again.
    Ask,
}

/// The sequencer of a graph. A node that is not it answers [`Error::NotSequencer`].
pub trait Commits: Send + Sync {
    /// Commits a transaction. Waits for the log.
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error>;

    /// What became of a commit that was made after a version, if it was made.
    fn outcome(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error>;

    /// Tokens of names, made where they are missing; durable when it returns.
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// SIDs that nobody else gets.
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;

    /// Where the sequencer stands.
    fn newest(&self) -> Result<Newest, Error>;

    /// The dictionary above a token, rising.
    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error>;

    /// A bulk load begins (`None`), or goes on and asks for vertices that were made after a version; those before it are not asked
    /// for again. [`Error::LoadUnknown`] for one that began elsewhere, or of which nothing was heard for long.
    fn watch_load(&self, id: RequestId, above: Option<Version>) -> Result<MadeSince, Error>;

    /// A bulk load is over.
    fn end_load(&self, id: RequestId) -> Result<(), Error>;

    /// Makes a bulk load visible, once however often it is asked for.
    fn commit_load(&self, id: RequestId, load: LoadRequest) -> Result<LoadStep, Error>;

    /// Says whether a vertex of [`LoadStep::Rest`] was in the way: the version that made it. Must not wait. What became of the load is
    /// heard by asking for its commit again.
    fn report_load_collision(&self, id: RequestId, collision: Option<Version>) -> Result<(), Error>;
}

/// How a node is.
pub trait Status: Send + Sync {
    /// A JSON object.
    fn status(&self) -> String;
}

/// What a node offers.
#[derive(Clone, Default)]
pub struct Services {
    /// Data of partitions.
    pub node: Option<Arc<dyn Node>>,
    /// Commits.
    pub commits: Option<Arc<dyn Commits>>,
    /// How it is.
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
