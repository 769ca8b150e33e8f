//! Why a transaction was not committed.

use tidegraph_log::Cause;
use tidegraph_types::{ErrorCode, RequestId, Version};

/// An error of the sequencer. [`Error::InDoubt`] and [`Error::Forgotten`] leave open whether the transaction was
/// committed, and [`Error::Repeated`] says that it was; after every other error it was not.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another transaction wrote something that this one read. The caller may run it again.
    #[error("what was read at version {read_version} was changed by version {written}")]
    Conflict {
        /// The version at which the transaction read.
        read_version: Version,
        /// A version that changed what the transaction read, or may have.
        written: Version,
    },
    /// The transaction would conflict with a bulk load that has its turn, or may. The caller may run it again.
    #[error(
        "a bulk load that conflicted with transactions again and again has its turn, and concerns what this \
         transaction writes"
    )]
    LoadTurn {
        /// The version at which the transaction read.
        read_version: Version,
    },
    /// The transaction is too large.
    #[error("the transaction has {found} {what}, more than the limit of {limit}")]
    TooLarge {
        /// The unit.
        what: &'static str,
        /// How many the transaction has.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// A property value of a type that cannot be stored.
    #[error("a value of type {type_name} cannot be stored")]
    NotStorable {
        /// Name of the type.
        type_name: &'static str,
    },
    /// The transaction claims to have read a version that does not exist yet.
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
    /// The request may have been committed so long ago that its id is forgotten. It is not committed now.
    #[error(
        "it is no longer known whether request {request} was committed: it was first sent at version \
         {read_version} or later, and ids are known only for versions after {forgotten}"
    )]
    Forgotten {
        /// Id of the request.
        request: RequestId,
        /// The version at which it read, or one that existed before it was first sent.
        read_version: Version,
        /// The newest version whose request ids are forgotten.
        forgotten: Version,
    },
    /// An earlier transaction with the same key and request was committed, so this one was not. What this one read and
    /// computed is not what was committed.
    #[error("a request with the same key was committed as version {version}")]
    Repeated {
        /// The version of that commit.
        version: Version,
    },
    /// Another request with the same key was committed.
    #[error("the key belongs to another request, which was committed as version {version}")]
    KeyReused {
        /// The version of that commit.
        version: Version,
    },
    /// The transaction was handed to the log, and the log did not tell whether it has it.
    #[error("it is not known whether the transaction was committed: {reason}")]
    InDoubt {
        /// Why.
        #[source]
        reason: Cause,
    },
    /// Writes are not possible now, or no longer. The transaction was not committed.
    #[error("writes are not possible: {reason}")]
    Unavailable {
        /// Why.
        #[source]
        reason: Cause,
    },
}

impl Error {
    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } | Self::LoadTurn { .. } => ErrorCode::ConcurrentModification,
            Self::TooLarge { .. } | Self::DictionaryFull { .. } => ErrorCode::QueryLimitExceeded,
            Self::NotStorable { .. } => ErrorCode::InvalidArgument,
            Self::FutureVersion { .. } => ErrorCode::Internal,
            Self::Repeated { .. } | Self::KeyReused { .. } => ErrorCode::IdempotencyKeyReused,
            Self::Forgotten { .. } | Self::InDoubt { .. } => ErrorCode::CommitOutcomeUnknown,
            Self::Unavailable { .. } => ErrorCode::Unavailable,
        }
    }

    pub(crate) fn in_doubt(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::InDoubt { reason: cause(reason) }
    }

    pub(crate) fn unavailable(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable { reason: cause(reason) }
    }
}

/// Why the sequencer stopped: an error of the log, and what follows from it.
#[derive(Debug, thiserror::Error)]
#[error("{source}; {consequence}")]
pub(crate) struct Stopped {
    pub consequence: &'static str,
    pub source: tidegraph_log::Error,
}

/// An error or a text as a cause.
pub(crate) fn cause(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Cause {
    Cause::from(reason.into())
}
