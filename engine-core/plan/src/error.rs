//! Why a text was not turned into a plan.

use tidegraph_types::ErrorCode;

/// An error of a front end, with its place in the text (both from 1, columns in characters).
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum FrontEndError {
    /// The text does not parse, or names what cannot be.
    #[error("{message} at {line}:{column}")]
    Syntax {
        /// What was found and what was expected.
        message: String,
        /// Line.
        line: u32,
        /// Column.
        column: u32,
    },
    /// A part of the language that is not there yet.
    #[error("not supported yet: {name} at {line}:{column}")]
    Unsupported {
        /// The construct, as the language's reference names it.
        name: String,
        /// Line.
        line: u32,
        /// Column.
        column: u32,
    },
}

impl FrontEndError {
    /// The code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Syntax { .. } => ErrorCode::MalformedQuery,
            Self::Unsupported { .. } => ErrorCode::UnsupportedOperation,
        }
    }
}
