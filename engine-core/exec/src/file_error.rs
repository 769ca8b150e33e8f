//! Errors of the files that a request reads.

use tidegraph_types::ErrorCode;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a file cannot be read.
#[derive(Debug)]
pub struct FileError {
    code: ErrorCode,
    error: BoxError,
}

impl FileError {
    /// Makes an error with the message of another one.
    pub fn new(code: ErrorCode, error: impl Into<BoxError>) -> Self {
        Self { code, error: error.into() }
    }

    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
