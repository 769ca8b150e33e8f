//! What a load did: counts, refused rows, the state of each file, the segments.

use super::ids::VertexIds;
use crate::reject::{Code, Rejected};
use crate::segments::SegmentInfo;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Counts as the loader API reports them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Rows read, refused ones too.
    pub rows: u64,
    /// Single statements: the labels and property values of a vertex (at least one), an edge and its property values.
    pub total_records: u64,
    /// Statements of rows whose element was there before (in the graph or in this load). For openCypher, such rows.
    pub total_duplicates: u64,
    /// Rows that are not what the format asks for, and files that could not be read.
    pub parsing_errors: u64,
    /// Rows with a value that is not of its column's type.
    pub datatype_mismatch_errors: u64,
    /// Rows that the graph cannot take.
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

    /// Refused rows and files.
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

/// How it went with one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileState {
    /// Not begun, or ended in the middle because the load ended.
    NotDone,
    /// An earlier load did it; not read.
    Skipped,
    /// All its rows are in the segments.
    Done,
    /// Read to the end, but some rows were refused.
    DoneWithErrors,
    /// Its header is wrong or it could not be read to the end. Rows read before are in the segments.
    Failed,
}

/// One file of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// The file.
    pub name: Arc<str>,
    /// Its size.
    pub bytes: u64,
    /// How it went.
    pub state: FileState,
    /// What was counted.
    pub counts: Counts,
}

/// How a load ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All files were read; with `fail_on_error` off some rows may have been refused.
    Completed,
    /// It stopped at the first error. Its segments were removed.
    Failed,
}

/// What a load did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Its files, in the order of the source.
    pub files: Vec<FileReport>,
    /// Sum over the files.
    pub counts: Counts,
    /// New vertices.
    pub vertices: u64,
    /// New edges.
    pub edges: u64,
    /// Refused rows, the first so many.
    pub errors: Vec<Rejected>,
    /// The segments in order of applying; none if it failed.
    pub segments: Vec<SegmentInfo>,
    /// The vertices in them, to be checked against those that were made meanwhile; none if it failed.
    pub vertex_ids: VertexIds,
}

impl Outcome {
    /// Names of the files that need no second load: what a later `mode=RESUME` passes as
    /// [`crate::run::Config::done`]. Only to be kept when the segments are committed.
    pub fn done(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.iter().filter(|f| matches!(f.state, FileState::Done | FileState::Skipped)).map(|f| &f.name)
    }
}
