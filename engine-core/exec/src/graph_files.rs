//! Files that hold a graph, as Gremlin's `io()` reads them: traits of what the caller provides.
//!
//! The caller decides which files a request may read and how their bytes become elements; the executor pulls elements
//! and writes them. So it knows neither disks nor formats.

use crate::{FileError, Interrupt, Result};
use tidegraph_types::{Elements, FileElement, GraphFormat};

/// The files that a request may read.
pub trait GraphFiles: Sync {
    /// Opens the file at an address, for its vertices or its edges. Asks `interrupt` while it waits, if it can.
    ///
    /// # Errors
    ///
    /// Why there is no such file, or why it may not be read; the message names the address.
    fn open_graph(
        &self,
        url: &str,
        format: GraphFormat,
        elements: Elements,
        interrupt: &dyn Interrupt,
    ) -> Result<Box<dyn GraphElements>, FileError>;
}

/// The vertices or the edges of an open file.
pub trait GraphElements: Send {
    /// Returns the name of the file, as errors name it.
    fn file(&self) -> &str;

    /// Reads on, by a bounded number of bytes. Adds the elements that it completes to `found`.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, and on which line. The elements cannot be read on then.
    fn step(&mut self, found: &mut Vec<FileElement>) -> Result<GraphStep, FileError>;

    /// Returns the bytes of memory that the reader holds, with those that its next step takes at most.
    fn held_bytes(&self) -> usize;
}

/// Result of reading on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphStep {
    /// The file goes on.
    More,
    /// The file has no more elements.
    End,
}
