//! Why a query has no answer.

use crate::audit::Unwritable;
use std::io;
use tidegraph_engine::PoolExhausted;
use tidegraph_types::ErrorCode;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another query with this id waits or runs.
    #[error("a query with the id {id:?} is already running; choose another id")]
    DuplicateId {
        /// The id of both.
        id: String,
    },
    /// As many queries wait as may wait.
    #[error("{waiting} queries are waiting already; try again later")]
    QueueFull {
        /// Number of waiting queries.
        waiting: usize,
    },
    /// All queries and unsent answers together hold as much memory as they may.
    #[error(transparent)]
    Memory(#[from] PoolExhausted),
    /// The query cannot be recorded in the audit log.
    #[error(transparent)]
    Audit(#[from] Unwritable),
    /// The engine refused the query or failed.
    #[error(transparent)]
    Query(#[from] tidegraph_engine::Error),
    /// The protocol's writer failed.
    #[error("the answer could not be written")]
    Write(#[source] io::Error),
    /// The query panicked, or its thread was lost.
    #[error("the query ended because of a defect: {reason}")]
    Defect {
        /// The message of the panic.
        reason: String,
    },
}

impl Error {
    /// Returns the code of the error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Memory(error) => error.code(),
            Self::DuplicateId { .. } => ErrorCode::InvalidParameter,
            Self::QueueFull { .. } => ErrorCode::TooManyRequests,
            Self::Audit(_) => ErrorCode::Unavailable,
            Self::Query(error) => error.code(),
            Self::Write(_) | Self::Defect { .. } => ErrorCode::Internal,
        }
    }

    pub(super) fn defect(reason: impl std::fmt::Display) -> Self {
        Self::Defect { reason: reason.to_string() }
    }

    pub(super) fn of_writer(error: io::Error) -> Self {
        match super::output::exhausted(&error) {
            Some(exhausted) => Self::Memory(exhausted),
            None => Self::Write(error),
        }
    }
}
