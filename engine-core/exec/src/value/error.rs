//! Why an expression could not be computed.

use tidegraph_types::ErrorCode;

/// An error of an expression.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request lacks a parameter that the text names.
    #[error("parameter ${0} is missing")]
    MissingParameter(tidegraph_types::Str),
}

impl Error {
    /// The code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::MissingParameter(_) => ErrorCode::MissingParameter,
        }
    }
}
