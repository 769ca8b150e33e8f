//! Why a connection or a request failed.

use tidegraph_types::Version;
use tidegraph_wire::proto;

/// An error between two processes.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection broke before the answer came. The request may have been carried out.
    #[error("the connection to {peer} is lost: {reason}")]
    Lost {
        /// Address of the peer.
        peer: String,
        /// The cause.
        reason: String,
    },
    /// The peer cannot be connected to. The request was not sent; the next attempt is made after a pause.
    #[error("{peer} cannot be reached: {reason}")]
    Unreachable {
        /// Address of the peer.
        peer: String,
        /// The cause.
        reason: String,
    },
    /// The peer refused the connection, because of its version, its graph or the token.
    #[error("{peer} refuses the connection: {reason}")]
    Refused {
        /// Address of the peer.
        peer: String,
        /// The cause.
        reason: String,
    },
    /// The peer sent bytes that break the protocol.
    #[error("the peer sent bytes that break the protocol: {0}")]
    Garbage(String),
    /// A message is longer than the limit. Ask for less at once.
    #[error("a message of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Length of the message in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The peer does not know the request, or does not offer the service.
    #[error("the peer does not serve the request: {0}")]
    Unknown(String),
    /// The peer cannot answer now. Ask another, or later.
    #[error("the peer cannot answer now: {0}")]
    Unavailable(String),
    /// A later version changed what the transaction read. Run it again.
    #[error("what was read at version {read_version} was changed by version {written}")]
    Conflict {
        /// The version at which the transaction read.
        read_version: Version,
        /// A version that changed it, or may have.
        written: Version,
    },
    /// The transaction is too large, or the dictionary is full.
    #[error("{0}")]
    Limit(String),
    /// The transaction breaks a rule and can never be committed.
    #[error("{0}")]
    NotAllowed(String),
    /// The transaction may or may not be committed. Ask for its outcome.
    #[error("the outcome of the transaction is unknown: {0}")]
    InDoubt(String),
    /// The node is not the sequencer.
    #[error("the node is not the sequencer: {0}")]
    NotSequencer(String),
    /// The sequencer does not know the bulk load: it took over after the load began, or heard nothing of it for long.
    /// The load is not committed.
    #[error("the sequencer does not know the load: {0}")]
    LoadUnknown(String),
    /// Writes are stopped, because no replica of a partition can apply a record of the log. Nothing was committed.
    #[error("{0}")]
    Halted(String),
    /// The deadline has passed.
    #[error("the deadline of the request has passed")]
    Overdue,
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// Certificates or keys cannot be used.
    #[error("the certificates cannot be used: {0}")]
    Certificates(String),
    /// The place that has the fleet's secret does not give it.
    #[error("the secret of the fleet cannot be read: {0}")]
    Secret(String),
}

impl Error {
    pub(crate) fn lost(peer: &str, reason: impl ToString) -> Self {
        Self::Lost { peer: peer.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn garbage(reason: impl ToString) -> Self {
        Self::Garbage(reason.to_string())
    }

    /// Returns whether another node may answer the request.
    #[must_use]
    pub fn is_of_node(&self) -> bool {
        matches!(
            self,
            Self::Lost { .. }
                | Self::Unreachable { .. }
                | Self::Refused { .. }
                | Self::Garbage(_)
                | Self::Unavailable(_)
        )
    }

    /// Returns the message of a failure.
    pub(crate) fn to_failure(&self) -> proto::Failure {
        use proto::failure::Reason;
        let (mut first, mut second) = (0, 0);
        let reason = match self {
            Self::Garbage(_) => Reason::Malformed,
            Self::TooLarge { bytes, limit } => {
                (first, second) = (*bytes, *limit);
                Reason::TooLarge
            }
            Self::Unknown(_) => Reason::Unknown,
            Self::Conflict { read_version, written } => {
                (first, second) = (read_version.0, written.0);
                Reason::Conflict
            }
            Self::Limit(_) => Reason::Limit,
            Self::NotAllowed(_) => Reason::Refused,
            Self::InDoubt(_) => Reason::InDoubt,
            Self::NotSequencer(_) => Reason::NotSequencer,
            Self::LoadUnknown(_) => Reason::LoadUnknown,
            Self::Halted(_) => Reason::Halted,
            Self::Overdue | Self::Cancelled => Reason::Stopped,
            Self::Lost { .. }
            | Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Unavailable(_)
            | Self::Certificates(_)
            | Self::Secret(_) => Reason::Unavailable,
        };
        let text = match self {
            Self::Garbage(text)
            | Self::Unknown(text)
            | Self::Limit(text)
            | Self::NotAllowed(text)
            | Self::InDoubt(text)
            | Self::NotSequencer(text)
            | Self::LoadUnknown(text)
            | Self::Halted(text)
            | Self::Unavailable(text) => text.clone(),
            other => other.to_string(),
        };
        proto::Failure { reason: reason.into(), text, first, second }
    }

    /// Returns the error of a failure message.
    pub(crate) fn from_failure(failure: proto::Failure) -> Self {
        use proto::failure::Reason;
        let text = failure.text.clone();
        match failure.reason() {
            Reason::Unspecified | Reason::Unavailable => Self::Unavailable(text),
            Reason::Unknown | Reason::Malformed => Self::Unknown(text),
            Reason::TooLarge => Self::TooLarge { bytes: failure.first, limit: failure.second },
            Reason::Conflict => {
                Self::Conflict { read_version: Version(failure.first), written: Version(failure.second) }
            }
            Reason::Limit => Self::Limit(text),
            Reason::Refused => Self::NotAllowed(text),
            Reason::InDoubt => Self::InDoubt(text),
            Reason::NotSequencer => Self::NotSequencer(text),
            Reason::LoadUnknown => Self::LoadUnknown(text),
            Reason::Halted => Self::Halted(text),
            Reason::Stopped => Self::Overdue,
        }
    }
}

impl From<Error> for tidegraph_apl::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Overdue => Self::Overdue,
            Error::Cancelled => Self::Cancelled,
            Error::TooLarge { bytes, limit } => Self::TooLarge { bytes, limit },
            Error::Unknown(text) => Self::NotServed(text),
            other => Self::Unavailable(other.to_string()),
        }
    }
}
