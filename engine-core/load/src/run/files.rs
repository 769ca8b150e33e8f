//! The files of a running load.

use super::feed::Columns;
use super::report::FileReport;
use std::sync::Arc;

/// Report and columns of each file, in the order of the source.
pub(super) struct FileTable {
    pub reports: Vec<FileReport>,
    /// `None` until the header was read.
    pub columns: Vec<Option<Arc<Columns>>>,
}

impl FileTable {
    pub fn new(reports: Vec<FileReport>) -> Self {
        let columns = reports.iter().map(|_| None).collect();
        Self { reports, columns }
    }
}
