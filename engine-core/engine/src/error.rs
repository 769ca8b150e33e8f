//! Errors at the boundary: a stable code and a message that names the value and where it stands.

use tidegraph_types::ErrorCode;

/// Why the database did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: ErrorCode,
    message: String,
}

impl Error {
    /// An error of a code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

macro_rules! from {
    ($($source:ty),* $(,)?) => {
        $(impl From<$source> for Error {
            fn from(error: $source) -> Self {
                Self::new(error.code(), error.to_string())
            }
        })*
    };
}

from!(
    tidegraph_apl::Error,
    tidegraph_exec::Error,
    tidegraph_load::Error,
    tidegraph_log::Error,
    tidegraph_plan::FrontEndError,
    tidegraph_platform::disk::Error,
    tidegraph_platform::objects::Error,
    tidegraph_storage::Error,
    tidegraph_txn::Error,
);
