//! Rows beyond the memory of a request, in temporary files: sorting, grouping, distinct rows and queues go on there and
//! answer the same.
//!
//! Roles: [`SpillFiles`] is what the caller provides. [`Frames`] are batches in a file, one behind the other. A [`Queue`]
//! keeps rows in their order. A [`Sorter`] sorts them: runs that fit into memory are sorted and written, and then
//! merged. Groups and distinct rows that do not fit are sorted by their keys, so that equal ones meet, and then by their
//! arrival ([`Arrivals`]).
//!
//! What must never happen: a file that outlives its request; bytes of another place decoded as rows, so each frame has a
//! checksum.

mod arrivals;
mod frames;
mod queue;
mod sorter;

pub(crate) use arrivals::Arrivals;
pub(crate) use frames::Frames;
pub(crate) use queue::Queue;
pub(crate) use sorter::{KeyOrder, SHORT_KEY_BYTES, Sorted, Sorter};

use crate::Context;
use tidegraph_types::ErrorCode;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Temporary files of a request.
pub trait SpillFiles: Sync {
    /// Creates an empty file, which is gone when the returned value is dropped.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn create(&self) -> Result<Box<dyn SpillFile>, SpillError>;
}

/// A temporary file.
pub trait SpillFile: Send {
    /// Writes bytes at the end.
    ///
    /// # Errors
    ///
    /// The disk is full, gone or fails, or the requests of the process have as many bytes in files as they may.
    fn append(&mut self, bytes: &[u8]) -> Result<(), SpillError>;

    /// Fills `bytes` from byte `offset` on.
    ///
    /// # Errors
    ///
    /// The file is shorter, or the disk fails.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), SpillError>;
}

/// Why rows cannot be written or read back.
#[derive(Debug, thiserror::Error)]
#[error("the query needs more memory than it may hold, and its rows do not go to the disk: {error}")]
pub struct SpillError {
    code: ErrorCode,
    #[source]
    error: BoxError,
}

impl SpillError {
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

/// Returns the bytes that an operator holds before it writes rows to a file; `None` if it may not.
pub(crate) fn share(ctx: &Context<'_>) -> Option<usize> {
    ctx.spill_files()?;
    Some(usize::try_from(ctx.limits.memory_bytes / 4).unwrap_or(usize::MAX))
}
