//! Errors of the partition map.

use std::sync::Arc;
use tidegraph_types::{Epoch, ErrorCode};

/// What caused an error: the error underneath, or a text where there is none. Shared, so that an [`Error`] can be
/// cloned.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An error of the partition map.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph, node, replica or partition does not exist.
    #[error("there is no {what}")]
    NotFound {
        /// What does not exist, with its name.
        what: String,
    },
    /// A different graph has this name.
    #[error(
        "graph {graph} exists and has other partitions, shards, replicas, ids or cardinality: choose another name"
    )]
    Exists {
        /// Its name.
        graph: String,
    },
    /// The map has another epoch than the caller expected.
    #[error("the map is at epoch {found}, not {expected}")]
    Stale {
        /// The epoch that the change was made for.
        expected: Epoch,
        /// The epoch that the map has.
        found: Epoch,
    },
    /// Another writer committed first; its item stays.
    #[error("{item} was written by another: {found}")]
    Conflict {
        /// The item.
        item: String,
        /// The item as it is now.
        found: String,
    },
    /// The map does not allow this change.
    #[error("cannot {change}: {reason}")]
    Refused {
        /// The change.
        change: String,
        /// Why the map refuses it.
        reason: String,
    },
    /// A call has more items than are allowed.
    #[error("{found} {what} in one call are more than {limit}")]
    TooMany {
        /// The unit.
        what: &'static str,
        /// How many the call has.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// An item cannot be read: it was edited by hand, or a newer release wrote it.
    #[error("item {item} of graph {graph} is damaged: {reason}")]
    Damaged {
        /// The graph.
        graph: String,
        /// The item.
        item: String,
        /// What is wrong with it.
        #[source]
        reason: Cause,
    },
    /// The store refuses more requests for now. The caller may try again later.
    #[error("cannot {operation} now, there are too many requests: {reason}")]
    Throttled {
        /// What was tried.
        operation: &'static str,
        /// The store's error.
        #[source]
        reason: Cause,
    },
    /// The store does not answer, or other writers committed first at every attempt. A
    /// change may or may not have been made.
    #[error("cannot {operation}: {reason}")]
    Unavailable {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        reason: Cause,
    },
    /// A name or a setting that is not allowed.
    #[error("{what} {found:?} {reason}")]
    Invalid {
        /// The name or setting.
        what: &'static str,
        /// Its value.
        found: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Error {
    /// [`Error::Unavailable`] because of an error or a text.
    pub fn unavailable(
        operation: &'static str,
        reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable { operation, reason: Cause::from(reason.into()) }
    }

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

    /// Whether the same call may succeed later by itself.
    #[must_use]
    pub fn will_pass(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}
