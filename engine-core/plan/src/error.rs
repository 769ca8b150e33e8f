//! Errors of the front ends.

use crate::Stopped;
use tidegraph_types::ErrorCode;

/// The reason why a front end refuses a text, with the place. Line and column count from 1, columns in characters.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum FrontEndError {
    /// The text does not parse or is invalid.
    #[error("{message} at {line}:{column}")]
    Syntax {
        /// What was found and what was expected.
        message: String,
        /// Line.
        line: u32,
        /// Column.
        column: u32,
    },
    /// The text uses a part of the language that is not supported yet.
    #[error("not supported yet: {name} at {line}:{column}")]
    Unsupported {
        /// The construct, as the language's reference names it.
        name: String,
        /// Line.
        line: u32,
        /// Column.
        column: u32,
    },
    /// A limit of the request was reached.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl FrontEndError {
    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Syntax { .. } => ErrorCode::MalformedQuery,
            Self::Unsupported { .. } => ErrorCode::UnsupportedOperation,
            Self::Stopped(stopped) => stopped.code(),
        }
    }
}
