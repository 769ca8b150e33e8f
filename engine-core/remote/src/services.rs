//! What a node offers to others: data of its partitions, commits while it is the sequencer, and how it is.

use crate::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::Apl;
use tidegraph_types::{CommitRequest, Epoch, PartitionId, Str, Token, Version};

/// The partitions of a node.
pub trait Node: Send + Sync {
    /// A partition, for a caller who routed by the map of an epoch. [`tidegraph_apl::Error::NotHere`] and
    /// [`tidegraph_apl::Error::WrongEpoch`] make the caller load the map anew. Must not wait.
    ///
    /// What is answered holds that one partition as its partition 0: in cursors of scans.
    fn partition(&self, partition: PartitionId, epoch: Epoch) -> Result<Arc<dyn Apl>, tidegraph_apl::Error>;

    /// Waits until a partition has reached a version, but at most so long; answers whether it has.
    fn wait_for(&self, partition: PartitionId, version: Version, at_most: Duration) -> bool;
}

/// Names a commit: whoever asks again under the same name gets the same answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub [u8; 16]);

/// What became of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is not known: never asked for, or too long ago.
    Unknown,
    /// It is committed.
    Committed(Version),
    /// It never will be.
    Refused,
}

/// The sequencer of a graph. A node that is not it answers [`Error::NotSequencer`].
pub trait Commits: Send + Sync {
    /// Commits a transaction; answers its version. Waits for the log.
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Version, Error>;

    /// What became of a commit.
    fn outcome(&self, id: RequestId) -> Result<Outcome, Error>;

    /// Tokens of names, made where they are missing; durable when it returns.
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error>;

    /// SIDs that nobody else gets.
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error>;

    /// The newest version that is committed, and the epoch of the sequencer.
    fn newest(&self) -> Result<(Version, Epoch), Error>;

    /// The dictionary above a token, rising.
    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error>;
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
