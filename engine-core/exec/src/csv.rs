//! CSV files, as `LOAD CSV` reads them: traits of what the caller provides.
//!
//! The caller decides which files a request may read and how their bytes become fields; the executor pulls records. So
//! it knows neither disks nor object stores.

use crate::{Interrupt, Result};
use tidegraph_types::{ErrorCode, Value};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The CSV files that a request may read.
pub trait CsvFiles: Sync {
    /// Opens the file at an address. Asks `interrupt` while it waits, if it can.
    ///
    /// # Errors
    ///
    /// Why there is no such file, or why it may not be read; the message names the address.
    fn open(
        &self,
        url: &str,
        terminator: char,
        interrupt: &dyn Interrupt,
    ) -> Result<Box<dyn CsvRecords>, CsvError>;
}

/// The records of an open file.
pub trait CsvRecords: Send {
    /// Returns the name of the file, for the function `file()`.
    fn file(&self) -> &str;

    /// Reads on, by a bounded number of bytes. Adds the fields of the next record to `fields` if it is whole: strings,
    /// and null for an empty field without quotes.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, and on which line. The records cannot be read on then.
    fn step(&mut self, fields: &mut Vec<Value>) -> Result<CsvStep, CsvError>;

    /// Returns the bytes of memory that the reader holds, which change with each step.
    fn held_bytes(&self) -> usize;
}

/// Result of reading on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CsvStep {
    /// A record was read.
    Record,
    /// There is no whole record yet.
    Pause,
    /// The file has no more records.
    End,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub struct CsvError {
    code: ErrorCode,
    error: BoxError,
}

impl CsvError {
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

impl std::fmt::Display for CsvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for CsvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
