//! Why storage did not answer a request.

use tidegraph_types::{Epoch, ErrorCode, PartitionId, Version};

/// Why storage did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The replica has not applied the version yet. Another replica may have: ask it, or wait.
    #[error("storage is at version {applied}, the request asks for {asked}")]
    Behind {
        /// Newest version that the replica can read.
        applied: Version,
        /// The version that the request asked for.
        asked: Version,
    },
    /// Storage no longer keeps the version. Run the query again at a newer one.
    #[error("version {asked} is no longer kept, the oldest is {oldest}")]
    TooOld {
        /// Oldest version that can be read.
        oldest: Version,
        /// The version that the request asked for.
        asked: Version,
    },
    /// Storage cannot answer now. Run the query again.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// A node does not know the request, because it runs an earlier release. Compose the answer of more basic requests.
    #[error("a node does not serve the request: {0}")]
    NotServed(String),
    /// Stored bytes are damaged.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The node does not hold the partition. Load a newer map.
    #[error("partition {partition} is not on this node by the map of epoch {epoch}")]
    NotHere {
        /// The partition.
        partition: PartitionId,
        /// Epoch of the node's map.
        epoch: Epoch,
    },
    /// The node's map has another epoch, and the maps differ for this partition.
    #[error("the node goes by the map of epoch {held}, the request by that of epoch {asked}")]
    WrongEpoch {
        /// Epoch of the node's map.
        held: Epoch,
        /// Epoch of the map that the caller routed the request by.
        asked: Epoch,
    },
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The caller's deadline has passed.
    #[error("the deadline of the request has passed")]
    Overdue,
    /// A request or its answer does not fit one message. Ask for less at once.
    #[error("a message of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Length of the message in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
}

impl Error {
    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Behind { .. }
            | Self::TooOld { .. }
            | Self::Unavailable(_)
            | Self::NotServed(_)
            | Self::NotHere { .. }
            | Self::WrongEpoch { .. } => ErrorCode::Unavailable,
            Self::Corrupt(_) => ErrorCode::Corrupt,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Overdue => ErrorCode::TimeLimitExceeded,
            Self::TooLarge { .. } => ErrorCode::QueryLimitExceeded,
        }
    }
}
