//! Why the map could not be read or changed.

use tidegraph_types::{Epoch, ErrorCode};

/// An error of the partition map.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What there is not, with its name.
        what: String,
    },
    /// A graph of this name is there, and it is another one.
    #[error("graph {graph} is there already, and made otherwise")]
    Exists {
        /// Its name.
        graph: String,
    },
    /// The map was changed since.
    #[error("the map is at epoch {found}, not {expected}")]
    Stale {
        /// The epoch that the change was made for.
        expected: Epoch,
        /// The epoch that the map has.
        found: Epoch,
    },
    /// Somebody else wrote in between; what he wrote stands.
    #[error("{item} was written by another: {found}")]
    Conflict {
        /// The item.
        item: String,
        /// What stands there now.
        found: String,
    },
    /// The map does not allow this change.
    #[error("cannot {change}: {reason}")]
    Refused {
        /// What was asked for.
        change: String,
        /// Why not.
        reason: String,
    },
    /// More than one call takes.
    #[error("{found} {what} in one call are more than {limit}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many may be.
        limit: usize,
    },
    /// An item says what cannot be. Somebody edited it, or a newer release wrote it.
    #[error("item {item} of graph {graph} is damaged: {reason}")]
    Damaged {
        /// Which graph.
        graph: String,
        /// Which item.
        item: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Too many requests; the store wants fewer.
    #[error("cannot {operation} now, there are too many requests: {reason}")]
    Throttled {
        /// What was tried.
        operation: &'static str,
        /// What the store said.
        reason: String,
    },
    /// The store does not answer, or others change the map all the time. Whether a change was made is not known.
    #[error("cannot {operation}: {reason}")]
    Unavailable {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// A name or a setting that cannot be.
    #[error("{what} {found:?} {reason}")]
    Invalid {
        /// What it should have been.
        what: &'static str,
        /// What it was.
        found: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Error {
    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::Stale { .. } | Self::Conflict { .. } => ErrorCode::ConcurrentModification,
            Self::Exists { .. } | Self::Refused { .. } | Self::TooMany { .. } | Self::Invalid { .. } => {
                ErrorCode::InvalidParameter
            }
            Self::Damaged { .. } => ErrorCode::Corrupt,
            Self::Throttled { .. } => ErrorCode::TooManyRequests,
            Self::Unavailable { .. } => ErrorCode::Unavailable,
        }
    }

    /// Whether the same call may succeed later, without anybody doing anything.
    #[must_use]
    pub fn will_pass(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}
