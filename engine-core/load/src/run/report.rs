//! The outcome of a load: counts, refused rows, the state of each file, the segments.

use super::ids::VertexIds;
use crate::reject::{Code, Rejected};
use crate::segments::SegmentInfo;
use crate::source::{File, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Counts as the loader API reports them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Rows read, refused ones included.
    pub rows: u64,
    /// Statements: each label and property value of a vertex (at least one a row), each edge and its property values.
    pub total_records: u64,
    /// Statements of rows whose element exists already, in the graph or in this load. For openCypher: such rows.
    pub total_duplicates: u64,
    /// Rows that violate the format, and files that could not be read.
    pub parsing_errors: u64,
    /// Rows with a value that is not of its column's type.
    pub datatype_mismatch_errors: u64,
    /// Rows that contradict the graph or other rows.
    pub insert_errors: u64,
}

impl Counts {
    pub(crate) fn reject(&mut self, code: Code) {
        match code {
            Code::Parsing | Code::File | Code::AccessDenied | Code::Internal => self.parsing_errors += 1,
            Code::Datatype => self.datatype_mismatch_errors += 1,
            Code::MissingVertex | Code::EdgeIdReused | Code::SingleCardinality | Code::NotUnique => {
                self.insert_errors += 1
            }
        }
    }

    /// Returns the number of refused rows and files.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.parsing_errors + self.datatype_mismatch_errors + self.insert_errors
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.total_records += other.total_records;
        self.total_duplicates += other.total_duplicates;
        self.parsing_errors += other.parsing_errors;
        self.datatype_mismatch_errors += other.datatype_mismatch_errors;
        self.insert_errors += other.insert_errors;
    }
}

/// State of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileState {
    /// Not read to its end because the load ended.
    NotDone,
    /// Not read: an earlier load completed it, and it has not changed since.
    Skipped,
    /// All its rows are in the segments.
    Done,
    /// Read to the end, but some rows were refused.
    DoneWithErrors,
    /// The header is wrong or the file could not be read to its end. Rows read before that are in the segments.
    Failed,
}

/// Report of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// The file.
    pub name: Arc<str>,
    /// Its size, time and ETag when it was listed.
    pub stamp: Stamp,
    /// Its state.
    pub state: FileState,
    /// Its counts.
    pub counts: Counts,
}

impl FileReport {
    /// Makes the report of a file of which nothing was read.
    pub(crate) fn new(file: &File, state: FileState) -> Self {
        Self { name: file.name.clone(), stamp: file.stamp(), state, counts: Counts::default() }
    }
}

/// How a load ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All files were read. With `fail_on_error` off, rows may have been refused.
    Completed,
    /// The load stopped at the first refused row or file. Its segments were removed.
    Failed,
}

/// Outcome of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How the load ended.
    pub status: Status,
    /// The files, in the order of the source.
    pub files: Vec<FileReport>,
    /// Sum of the counts of all files.
    pub counts: Counts,
    /// Number of new vertices.
    pub vertices: u64,
    /// Number of new edges.
    pub edges: u64,
    /// Refused rows, at most [`crate::run::Config::max_errors`].
    pub errors: Vec<Rejected>,
    /// The segments in the order in which they are applied; empty if the load failed.
    pub segments: Vec<SegmentInfo>,
    /// The vertices in the segments, for the check against vertices that transactions created meanwhile; empty if the
    /// load failed.
    pub vertex_ids: VertexIds,
}

impl Outcome {
    /// Returns the files that need no second load until they change. A later `mode=RESUME` passes them as
    /// [`crate::run::Config::done`]. Keep them only if the segments are committed.
    pub fn done(&self) -> impl Iterator<Item = &FileReport> {
        self.files.iter().filter(|f| matches!(f.state, FileState::Done | FileState::Skipped))
    }
}
