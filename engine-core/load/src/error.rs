//! Errors of a file or of a whole load, as opposed to those of a row ([`crate::Rejected`]).

use crate::reject::{Code, Rejected};
use std::io;
use std::sync::Arc;
use tidegraph_platform::objects;
use tidegraph_types::ErrorCode;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What made a file unreadable. It decides whether the file is refused or read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The content of the file is wrong: the file is refused.
    File,
    /// The credentials do not allow to read it: the file is refused.
    Denied,
    /// The file was changed or removed since it was listed: the load has to begin anew.
    Changed,
    /// The store could not be reached: the file may be readable later.
    Store,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Compressed data ends too early.
    #[error("the compressed file is cut short ({0})")]
    CutShort(#[source] io::Error),
    /// The file is not in the format that its name says.
    #[error("the file is not in the format {format}, as its name says: {found}")]
    Format {
        /// The format.
        format: &'static str,
        /// What the file is instead.
        found: String,
    },
    /// The local disk failed, or the decompression.
    #[error(transparent)]
    Io(io::Error),
    /// The object store failed.
    #[error(transparent)]
    Objects(Box<objects::Error>),
}

impl From<objects::Error> for ReadError {
    fn from(error: objects::Error) -> Self {
        Self::Objects(Box::new(error))
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::CutShort(error);
        }
        match error.downcast::<objects::Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::Io(error),
        }
    }
}

impl ReadError {
    /// Returns what made the file unreadable.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::CutShort(_) | Self::Format { .. } => Cause::File,
            Self::Io(error) => match error.kind() {
                io::ErrorKind::NotFound => Cause::Changed,
                io::ErrorKind::PermissionDenied => Cause::Denied,
                _ => Cause::File,
            },
            Self::Objects(error) => match **error {
                objects::Error::NotFound { .. } | objects::Error::Changed { .. } => Cause::Changed,
                objects::Error::Denied { .. } => Cause::Denied,
                _ if error.code() == ErrorCode::Unavailable => Cause::Store,
                _ => Cause::File,
            },
        }
    }
}

/// An error of the graph that a load writes to.
#[derive(Debug)]
pub struct TargetError {
    code: ErrorCode,
    error: BoxError,
}

impl std::fmt::Display for TargetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for TargetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// An error of a file or of the load.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The header row is wrong.
    #[error("{0}")]
    Header(Box<Rejected>),
    /// A file could not be read to its end.
    #[error("{file}: reading failed after {rows} rows: {source}")]
    File {
        /// The file.
        file: Arc<str>,
        /// Number of rows read before.
        rows: u64,
        /// What made it unreadable.
        cause: Cause,
        /// Why reading failed.
        source: ReadError,
    },
    /// A record of a plain file is wrong.
    #[error("{file}, line {line}: {reason}")]
    Record {
        /// The file.
        file: Arc<str>,
        /// Line on which the record begins, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// The source names nothing that can be read.
    #[error("source {source_uri}: {reason}")]
    Source {
        /// The source as given.
        source_uri: String,
        /// Why.
        reason: String,
    },
    /// The source is outside of what loads may read.
    #[error(
        "source {source_uri}: nothing may be loaded from there: --load-from allows folders, buckets and prefixes"
    )]
    NotAllowed {
        /// The source as given.
        source_uri: String,
    },
    /// A local source could not be listed.
    #[error("source {source_uri}: reading {path} failed: {source}")]
    List {
        /// The source as given.
        source_uri: String,
        /// The file or directory.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The object store refused to list the source: the credentials are wrong or lack the permission.
    #[error("source {source_uri}: access denied: {source}")]
    Denied {
        /// The source as given.
        source_uri: String,
        /// What the store said.
        source: Box<objects::Error>,
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
    /// A plan or report of a load in steps is damaged.
    #[error("{object} is damaged: {source}")]
    Stored {
        /// The object, with its store.
        object: String,
        /// Where its JSON is wrong.
        source: serde_json::Error,
    },
    /// A plan or report of a load in steps cannot be encoded.
    #[error(transparent)]
    Encode(serde_json::Error),
    /// The object store failed.
    #[error("object store: {0}")]
    Objects(#[from] objects::Error),
    /// Generated files could not be written.
    #[error("writing {path} failed: {source}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The graph that the load writes to returned an error.
    #[error(transparent)]
    Target(TargetError),
    /// The load was cancelled.
    #[error("the load was cancelled")]
    Cancelled,
    /// A broken invariant of the loader.
    #[error("internal: {0}")]
    Internal(&'static str),
}

impl Error {
    /// Makes an error of the graph that a load writes to.
    pub fn target(code: ErrorCode, error: impl Into<BoxError>) -> Self {
        Self::Target(TargetError { code, error: error.into() })
    }

    /// Returns the stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::File { cause: Cause::Store, .. } | Self::Write { .. } => ErrorCode::Unavailable,
            Self::Header(_)
            | Self::File { .. }
            | Self::Record { .. }
            | Self::Source { .. }
            | Self::List { .. } => ErrorCode::BadRequest,
            Self::Denied { .. } | Self::NotAllowed { .. } => ErrorCode::AccessDenied,
            Self::Parameter { .. } => ErrorCode::InvalidParameter,
            Self::Segment { source, .. } => source.code(),
            Self::Stored { .. } => ErrorCode::Corrupt,
            Self::Objects(source) => source.code(),
            Self::Target(error) => error.code,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Encode(_) | Self::Internal(_) => ErrorCode::Internal,
        }
    }

    /// Returns the entry of the error log for an error of one file.
    #[must_use]
    pub fn rejected(&self) -> Option<Rejected> {
        match self {
            Self::Header(rejected) => Some((**rejected).clone()),
            Self::File { file, rows, cause, source } => {
                let code = if *cause == Cause::Denied { Code::AccessDenied } else { Code::File };
                Some(Rejected::new(file, 0, code, format!("reading failed after {rows} rows: {source}")))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn causes_are_told_by_types() {
        let io = |kind: io::ErrorKind| ReadError::from(io::Error::from(kind)).cause();
        assert_eq!(io(io::ErrorKind::NotFound), Cause::Changed);
        assert_eq!(io(io::ErrorKind::PermissionDenied), Cause::Denied);
        assert_eq!(io(io::ErrorKind::InvalidData), Cause::File);
        assert_eq!(io(io::ErrorKind::UnexpectedEof), Cause::File);
        let changed = objects::Error::Changed { object: "memory://a".into() };
        assert_eq!(ReadError::from(io::Error::other(changed)).cause(), Cause::Changed);
    }

    #[test]
    fn an_error_of_the_target_keeps_its_sources() {
        let io = io::Error::from(io::ErrorKind::TimedOut);
        let file: Arc<str> = "a.csv".into();
        let inner = Error::File { file, rows: 2, cause: Cause::File, source: ReadError::Io(io) };
        let message = inner.to_string();
        let outer = Error::target(ErrorCode::TimeLimitExceeded, inner);
        assert_eq!((outer.to_string(), outer.code()), (message, ErrorCode::TimeLimitExceeded));
        assert!(outer.source().is_some_and(|source| source.is::<ReadError>()));
    }
}
