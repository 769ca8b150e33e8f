//! Why a transaction was not committed.

use tidegraph_types::{ErrorCode, RequestId, Version};

/// An error of the sequencer. Only [`Error::Unavailable`] leaves open whether the transaction was committed, and only
/// when its reason says so, and [`Error::Forgotten`], which says nothing else.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something that the transaction read was written since. Run it again.
    #[error("what was read at version {read_version} was changed by version {written}")]
    Conflict {
        /// The version at which the transaction read.
        read_version: Version,
        /// A version that changed what it read, or may have.
        written: Version,
    },
    /// The transaction is too large.
    #[error("the transaction has {found} {what}, more than the limit of {limit}")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many may be.
        limit: usize,
    },
    /// A property value of a type that cannot be stored.
    #[error("a value of type {type_name} cannot be stored")]
    NotStorable {
        /// Name of the type.
        type_name: &'static str,
    },
    /// The transaction claims to have read a version that is not there yet.
    #[error("version {read_version} cannot have been read, the newest is {newest}")]
    FutureVersion {
        /// The version at which the transaction says it read.
        read_version: Version,
        /// The newest version.
        newest: Version,
    },
    /// The dictionary has no tokens left.
    #[error("the graph has {count} labels and property keys and takes no more")]
    DictionaryFull {
        /// How many there are.
        count: usize,
    },
    /// The request may have been committed before, so long ago that its id is not remembered. It is not committed now.
    #[error(
        "whether request {request} was committed is not known any more: it read at version {read_version}, \
         and requests are remembered from after version {forgotten} on"
    )]
    Forgotten {
        /// Its id.
        request: RequestId,
        /// The version at which it read.
        read_version: Version,
        /// The newest version of which the request is not remembered.
        forgotten: Version,
    },
    /// Writes are not possible now, or no more.
    #[error("writes are not possible: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl Error {
    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } => ErrorCode::ConcurrentModification,
            Self::TooLarge { .. } | Self::DictionaryFull { .. } => ErrorCode::QueryLimitExceeded,
            Self::NotStorable { .. } => ErrorCode::InvalidArgument,
            Self::FutureVersion { .. } => ErrorCode::Internal,
            Self::Forgotten { .. } | Self::Unavailable { .. } => ErrorCode::Unavailable,
        }
    }

    pub(crate) fn unavailable(reason: impl ToString) -> Self {
        Self::Unavailable { reason: reason.to_string() }
    }
}
