//! Reports of tasks and stages.

use super::elements::Ids;
use super::runs::Run;
use super::{Stage, Steps};
use crate::error::Error;
use crate::reject::{Code, Rejected};
use crate::run::report::{Counts, FileState, Outcome, Status};
use crate::run::{Load, VertexIds, sum};
use crate::segments::SegmentInfo;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegraph_types::{ErrorCode, Str, Token};

/// Limit of refused rows that the report of a stage keeps.
const KEPT_ERRORS: usize = 10_000;
/// Limit of ends and ids of edges that a commit compares with changes: 256 MB.
const MOST_EDGES_MET: u64 = 32 << 20;

/// Report of one task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskReport {
    pub(super) runs: Vec<Run>,
    pub(super) names: Vec<(Str, Token)>,
    counts: BTreeMap<u32, Counts>,
    /// Files that could not be read to their end.
    failed: Vec<u32>,
    errors: Vec<Refused>,
    /// Number of refused rows and files.
    pub rejected: u64,
    pub(super) segments: Vec<SegmentInfo>,
    pub(super) ids: Vec<Ids>,
    /// Whether the ends and ids of its edges are noted; a task of an earlier release did not.
    #[serde(default)]
    pub(super) has_edges_met: bool,
    vertices: u64,
    edges: u64,
    /// Bytes of files that the task read.
    pub bytes: u64,
}

/// A refused row in a stored report.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Refused {
    file: std::sync::Arc<str>,
    line: u64,
    column: Option<Str>,
    value: Option<Str>,
    reason: String,
    code: Code,
}

impl From<Rejected> for Refused {
    fn from(rejected: Rejected) -> Self {
        let Rejected { file, line, column, value, reason, code } = rejected;
        Self { file, line, column, value, reason, code }
    }
}

impl From<Refused> for Rejected {
    fn from(refused: Refused) -> Self {
        let Refused { file, line, column, value, reason, code } = refused;
        Self { file, line, column, value, reason, code }
    }
}

impl TaskReport {
    /// Reports what a load counted so far, without its segments.
    pub(super) fn of(load: &mut Load<'_>) -> Self {
        let counts = (0..).zip(&load.files.reports).filter(|(_, file)| file.counts != Counts::default());
        Self {
            counts: counts.map(|(number, file)| (number, file.counts)).collect(),
            errors: std::mem::take(&mut load.tally.errors).into_iter().map(Into::into).collect(),
            rejected: load.tally.progress.rejected,
            vertices: load.tally.vertices,
            edges: load.tally.edges,
            ..Self::default()
        }
    }

    pub(super) fn counts_of(&mut self, file: u32) -> &mut Counts {
        self.counts.entry(file).or_default()
    }

    pub(super) fn reject(&mut self, file: u32, rejected: Rejected, most: usize) {
        self.counts_of(file).reject(rejected.code);
        self.rejected += 1;
        if self.errors.len() < most {
            self.errors.push(rejected.into());
        }
    }

    pub(super) fn reject_file(&mut self, file: u32, rejected: Rejected, most: usize) {
        self.failed.push(file);
        self.reject(file, rejected, most);
    }

    /// Returns the number of rows that the task read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.counts.values().map(|counts| counts.rows).sum()
    }
}

/// Sum of the reports of a stage's tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StageReport {
    pub(super) runs: Vec<Run>,
    pub(super) names: Vec<(Str, Token)>,
    counts: BTreeMap<u32, Counts>,
    failed: Vec<u32>,
    errors: Vec<Refused>,
    pub(super) rejected: u64,
    segments: Vec<SegmentInfo>,
    pub(super) ids: Vec<Ids>,
    /// Number of tasks that did not note the ends and ids of their edges; `None` in a report of an earlier release.
    #[serde(default)]
    without_edges_met: Option<u64>,
    vertices: u64,
    edges: u64,
}

impl StageReport {
    pub(super) fn add(&mut self, done: TaskReport) {
        self.runs.extend(done.runs);
        self.names.extend(done.names);
        for (file, counts) in done.counts {
            self.counts.entry(file).or_default().add(&counts);
        }
        self.failed.extend(done.failed);
        self.errors.extend(done.errors.into_iter().take(KEPT_ERRORS.saturating_sub(self.errors.len())));
        self.rejected += done.rejected;
        self.segments.extend(done.segments);
        self.ids.extend(done.ids);
        *self.without_edges_met.get_or_insert(0) += u64::from(!done.has_edges_met);
        self.vertices += done.vertices;
        self.edges += done.edges;
    }

    /// Sorts names and files after the last report was added, so that every process that gathers writes the same bytes.
    pub(super) fn sort(&mut self) {
        self.names.sort();
        self.names.dedup();
        self.failed.sort_unstable();
        self.failed.dedup();
    }
}

impl Steps<'_> {
    fn stages(&self, round: u32) -> Result<Vec<StageReport>, Error> {
        let mut found = Vec::new();
        let mut stage = Some(Stage::Parse);
        while let Some(this) = stage {
            match self.gathered(this, round) {
                Ok(gathered) => found.push(gathered),
                // The stage had no tasks, or the load ended before it.
                Err(error) if error.code() == ErrorCode::NotFound => {}
                Err(error) => return Err(error),
            }
            stage = this.after();
        }
        Ok(found)
    }

    /// Returns the outcome so far, with the segments to commit. Its `vertex_ids` are empty: see [`Steps::vertex_ids`].
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the store fails; [`Error::Stored`] if a report is damaged.
    pub fn outcome(&self, round: u32, status: Status) -> Result<Outcome, Error> {
        let stages = self.stages(round)?;
        let mut files = self.plan.reports();
        let (mut errors, mut segments): (Vec<Rejected>, _) = (Vec::new(), Vec::new());
        let (mut vertices, mut edges) = (0, 0);
        for stage in stages {
            for (file, counts) in stage.counts {
                if let Some(report) = files.get_mut(file as usize) {
                    report.counts.add(&counts);
                }
            }
            for file in stage.failed {
                if let Some(report) = files.get_mut(file as usize) {
                    report.state = FileState::Failed;
                }
            }
            errors.extend(stage.errors.into_iter().map(Rejected::from));
            segments.extend(stage.segments);
            vertices += stage.vertices;
            edges += stage.edges;
        }
        errors.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        errors.truncate(KEPT_ERRORS);
        segments.sort_by(|a: &SegmentInfo, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
        if status == Status::Completed {
            for report in files.iter_mut().filter(|report| report.state != FileState::Failed) {
                report.state = match report.counts.errors() {
                    0 => FileState::Done,
                    _ => FileState::DoneWithErrors,
                };
            }
        } else {
            (segments, vertices, edges) = (Vec::new(), 0, 0);
        }
        let vertex_ids = VertexIds::default();
        Ok(Outcome { status, counts: sum(&files), files, vertices, edges, errors, segments, vertex_ids })
    }

    /// Returns what the load has met: a table with 16 bytes for each vertex, and a list with 8 bytes for each end and id
    /// of its edges. A longer list than [`MOST_EDGES_MET`] is left out: then every change of the graph concerns the load.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the store fails; [`Error::Stored`] or [`Error::Segment`] if a stored object is damaged.
    pub fn vertex_ids(&self, round: u32) -> Result<VertexIds, Error> {
        let mut ids = VertexIds::default();
        let (mut ends, mut edge_ids) = (Vec::new(), Vec::new());
        let mut is_noted = true;
        for stage in [Stage::Vertices, Stage::Sources, Stage::Targets, Stage::Edges] {
            let gathered = match self.gathered(stage, round) {
                Err(error) if error.code() == ErrorCode::NotFound => continue,
                gathered => gathered?,
            };
            is_noted &= stage == Stage::Vertices || gathered.without_edges_met == Some(0);
            let edges_met: u64 = gathered.ids.iter().map(|noted| noted.edges_met).sum();
            is_noted &= ends.len() as u64 + edge_ids.len() as u64 + edges_met <= MOST_EDGES_MET;
            for noted in gathered.ids {
                if noted.edges_met > 0 && !is_noted {
                    continue;
                }
                let note = self.listed(&noted.object)?;
                ids.extend(note.guis.into_iter().zip(note.checks));
                ends.extend(note.ends);
                edge_ids.extend(note.edge_ids);
            }
        }
        if is_noted {
            ids.set_edges(ends, edge_ids);
        }
        Ok(ids)
    }
}
