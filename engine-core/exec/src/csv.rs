//! CSV files, as `LOAD CSV` reads them: traits of what the caller provides.
//!
//! The caller decides which files a request may read and how their bytes become fields; the executor pulls records. So
//! it knows neither disks nor object stores.

use crate::{FileError, Interrupt, Result};
use tidegraph_types::Value;

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
    ) -> Result<Box<dyn CsvRecords>, FileError>;
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
    fn step(&mut self, fields: &mut Vec<Value>) -> Result<CsvStep, FileError>;

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
