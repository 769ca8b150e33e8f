//! What makes a file or a whole load fail, as opposed to one row ([`crate::Rejected`]).

use crate::reject::{Code, Rejected};
use std::sync::Arc;
use tidegraph_types::ErrorCode;

/// What is behind a failure of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The file is not what it should be.
    File,
    /// It was changed or taken away since it was listed.
    Changed,
    /// The store could not be reached: it may be read another time.
    Store,
}

impl Cause {
    /// What is behind an error of the object store.
    pub(crate) fn of(error: &tidegraph_platform::objects::Error) -> Self {
        match error {
            tidegraph_platform::objects::Error::NotFound { .. }
            | tidegraph_platform::objects::Error::Changed { .. } => Self::Changed,
            error if error.code() == ErrorCode::Unavailable => Self::Store,
            _ => Self::File,
        }
    }
}

/// A failure of a file or of the load.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The header row is wrong.
    #[error("{0}")]
    Header(Box<Rejected>),
    /// A file could not be read to its end: damaged, cut short, or gone.
    #[error("{file}: reading failed after {rows} rows: {reason}")]
    File {
        /// The file.
        file: Arc<str>,
        /// How many rows were read before.
        rows: u64,
        /// Why.
        reason: String,
        /// Whether the object store refused the credentials.
        denied: bool,
        /// What is behind it.
        cause: Cause,
    },
    /// The source names nothing that can be read.
    #[error("source {source_uri}: {reason}")]
    Source {
        /// The source as given.
        source_uri: String,
        /// Why.
        reason: String,
    },
    /// The object store refused to list the source: the credentials are wrong, or may not.
    #[error("source {source_uri}: access denied: {reason}")]
    Denied {
        /// The source as given.
        source_uri: String,
        /// What the store said.
        reason: String,
    },
    /// A parameter is wrong.
    #[error("{name} {value:?}: {reason}")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// Why.
        reason: String,
    },
    /// A segment is damaged or cannot be written.
    #[error("segment {object}: {source}")]
    Segment {
        /// Its name.
        object: String,
        /// Why, with the byte offset.
        source: tidegraph_wire::Error,
    },
    /// The object store failed.
    #[error("object store: {0}")]
    Objects(#[from] tidegraph_platform::objects::Error),
    /// Generated files could not be written.
    #[error("writing {path} failed: {source}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The graph that is loaded into refused.
    #[error("{message}")]
    Target {
        /// Its code.
        code: ErrorCode,
        /// Its message.
        message: String,
    },
    /// The load was cancelled.
    #[error("the load was cancelled")]
    Cancelled,
    /// A parse thread ended without saying why.
    #[error("internal: {0}")]
    Internal(&'static str),
}

impl Error {
    /// An error of the graph that is loaded into.
    pub fn target(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Target { code, message: message.into() }
    }

    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::File { cause: Cause::Store, .. } => ErrorCode::Unavailable,
            Self::Header(_) | Self::File { .. } | Self::Source { .. } => ErrorCode::BadRequest,
            Self::Denied { .. } => ErrorCode::AccessDenied,
            Self::Parameter { .. } => ErrorCode::InvalidParameter,
            Self::Segment { source, .. } => source.code(),
            Self::Objects(source) => source.code(),
            Self::Write { .. } => ErrorCode::Unavailable,
            Self::Target { code, .. } => *code,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }

    /// As an entry of the error log, where it is about one file.
    #[must_use]
    pub fn rejected(&self) -> Option<Rejected> {
        match self {
            Self::Header(rejected) => Some((**rejected).clone()),
            Self::File { file, rows, reason, denied, .. } => {
                let code = if *denied { Code::AccessDenied } else { Code::File };
                Some(Rejected::new(file, 0, code, format!("reading failed after {rows} rows: {reason}")))
            }
            _ => None,
        }
    }
}
