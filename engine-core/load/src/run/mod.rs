//! Runs a load: the files of a source become segments, checked against the graph.
//!
//! Flow:
//! 1. The headers of all files tell vertex files from edge files (skipped with `edge_only`).
//! 2. Vertex files: parse threads ([`feed`]) send batches of rows. This thread finds the GUI of each id ([`ids`]),
//!    merges rows of one vertex and writes `CreateVertex` ([`vertices`]).
//! 3. Edge files: the same. Both ends must be in the graph or in this load ([`edges`]).
//! 4. The segments are complete. The caller commits all of them at one version, or none.
//!
//! Some rows depend on what an earlier row of the load wrote: a second value of a single-cardinality property, a second
//! row of one edge id. They wait until the end of their phase and are then joined with the written segments
//! ([`waiting`]).
//!
//! Memory: batches in flight, the segment buffer, waiting rows (bounded), and 16 bytes (two 64-bit hashes) for each
//! vertex and each edge with an id. Two ids count as one if both hashes agree; in a load of a billion ids the
//! probability of that is about 10⁻²¹.
//!
//! LOAD-1: nothing here makes anything visible, and a failed or cancelled load leaves no segments.

mod edges;
mod feed;
mod files;
mod ids;
mod names;
mod report;
pub mod steps;
mod target;
mod unique;
mod vertices;
mod waiting;

pub use ids::VertexIds;
pub use report::{Counts, FileReport, FileState, Outcome, Status};
pub use target::{Control, Found, LoadTarget, Progress};

use crate::dialect::{Dialect, OnConflict, Rules};
use crate::error::Error;
use crate::header::FileKind;
use crate::options::Options;
use crate::reject::Rejected;
use crate::rows::Row;
use crate::segments::SegmentWriter;
use crate::source::{Source, Stamp};
use crossbeam_channel::RecvTimeoutError;
use feed::{Batch, Feed, Meter};
use files::FileTable;
use ids::{Ids, Met};
use names::Names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_platform::Objects;
use tidegraph_types::{PartitionCount, Str, Token};

/// SIDs that a load asks the graph for at once.
const SIDS_AT_ONCE: u64 = 4096;

/// Time between two questions whether a load is cancelled.
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(50);

/// How many parse threads a load uses, relative to the machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Parallelism {
    /// An eighth of the cores.
    Low,
    /// Half of the cores.
    Medium,
    /// All cores.
    #[default]
    High,
    /// The same as `High`: parsing never waits, so more threads than cores would not help.
    Oversubscribe,
}

impl Parallelism {
    /// Returns the number of parse threads on a machine with `cores` cores; at least 1.
    #[must_use]
    pub fn threads(self, cores: usize) -> usize {
        let threads = match self {
            Self::Low => cores / 8,
            Self::Medium => cores / 2,
            Self::High | Self::Oversubscribe => cores,
        };
        threads.max(1)
    }
}

/// Configuration of a load.
#[derive(Clone, Debug)]
pub struct Config {
    /// Id of the load; segments are named after it.
    pub load_id: String,
    /// Number of the attempt: no two attempts of a load write segments of one name. A record may name those of an earlier
    /// one, whose outcome was not known.
    pub attempt: u32,
    /// Dialect of the files.
    pub dialect: Dialect,
    /// Options of the parser.
    pub options: Options,
    /// Whether the first refused row or file ends the load.
    pub fail_on_error: bool,
    /// Whether a new value of a single-cardinality property replaces the old one (Gremlin dialect).
    pub update_single_cardinality_properties: bool,
    /// Whether to skip the pass that tells vertex files from edge files. Files are then read in order of name.
    pub edge_only: bool,
    /// Number of parse threads.
    pub parallelism: Parallelism,
    /// Files that an earlier load completed ([`Outcome::done`]), by name; those that have not changed are skipped.
    pub done: BTreeMap<String, Stamp>,
    /// Limit of refused rows that the outcome keeps.
    pub max_errors: usize,
    /// Memory for mutations that are not yet written to a segment, in bytes.
    pub buffer_bytes: usize,
    /// Memory for rows that wait for the join with the segments, in bytes.
    pub waiting_bytes: usize,
}

impl Config {
    /// Returns the loader API's defaults.
    #[must_use]
    pub fn new(load_id: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            load_id: load_id.into(),
            attempt: 0,
            dialect,
            options: Options::default(),
            fail_on_error: true,
            update_single_cardinality_properties: false,
            edge_only: false,
            parallelism: Parallelism::default(),
            done: BTreeMap::default(),
            max_errors: 10_000,
            buffer_bytes: 64 << 20,
            waiting_bytes: 64 << 20,
        }
    }
}

/// Loads a source into segments in `objects`.
///
/// Defects of files and rows are reported in the outcome, not as errors.
///
/// # Errors
///
/// * [`Error::Target`] if the graph refuses a question.
/// * [`Error::Objects`] and [`Error::Segment`] if a segment cannot be written or read.
/// * [`Error::Cancelled`] if `control` cancels the load.
///
/// The segments of the load are then removed, as far as the store allows.
pub fn run(
    config: &Config,
    source: &Source,
    target: &dyn LoadTarget,
    objects: &Objects,
    control: &dyn Control,
) -> Result<Outcome, Error> {
    let files = source.files().iter().map(|file| {
        let is_done = config.done.get(&*file.name).is_some_and(|stamp| stamp.is_same(&file.stamp()));
        FileReport::new(file, if is_done { FileState::Skipped } else { FileState::NotDone })
    });
    let files: Vec<_> = files.collect();
    let names = Names::of_files(files.len());
    let writer = SegmentWriter::new(
        objects.clone(),
        target.graph(),
        &config.load_id,
        target.partitions(),
        target.hasher(),
        config.buffer_bytes,
    )
    .in_background();
    let writer = if config.attempt > 0 { writer.named(&format!("{:03}", config.attempt)) } else { writer };
    let context = Context::new(config, target, objects, control)?;
    let mut load = Load::new(context, FileTable::new(files), names, writer)?;
    let stop = load.tally.meter.stop.clone();
    match stopped_by(control, &stop, || load.phases(source)) {
        Ok(()) => load.finish(),
        Err(Stop::AtRejected) => load.fail(),
        Err(Stop::Error(error)) => {
            // Report the first error. Segments that stay behind are found by their load id.
            if let Err(e) = load.writer.discard() {
                tracing::warn!(load_id = config.load_id, error = %e, "segments of a failed load were left");
            }
            Err(error)
        }
    }
}

/// Runs `work`, and sets `stop` when `control` cancels the load: no batch comes while a reader is in a long record.
fn stopped_by<T>(control: &dyn Control, stop: &AtomicBool, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (ended, wait) = crossbeam_channel::bounded::<()>(0);
        scope.spawn(move || {
            while wait.recv_timeout(LOOK_FOR_CANCEL) == Err(RecvTimeoutError::Timeout) {
                if control.cancelled() {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        let result = work();
        drop(ended);
        result
    })
}

/// Why a load ends early.
enum Stop {
    /// A row was refused and `fail_on_error` is on; it is in the list of errors.
    AtRejected,
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// The inputs of a load, which do not change while it runs.
#[derive(Clone, Copy)]
struct Context<'a> {
    config: &'a Config,
    target: &'a dyn LoadTarget,
    objects: &'a Objects,
    control: &'a dyn Control,
    graph_is_empty: bool,
    partitions: PartitionCount,
}

impl<'a> Context<'a> {
    fn new(
        config: &'a Config,
        target: &'a dyn LoadTarget,
        objects: &'a Objects,
        control: &'a dyn Control,
    ) -> Result<Self, Error> {
        let (graph_is_empty, partitions) = (target.is_empty()?, target.partitions());
        Ok(Self { config, target, objects, control, graph_is_empty, partitions })
    }
}

/// Counts of a load.
#[derive(Default)]
struct Tally {
    progress: Progress,
    meter: Meter,
    /// Refused rows, at most [`Config::max_errors`].
    errors: Vec<Rejected>,
    /// New vertices.
    vertices: u64,
    /// New edges.
    edges: u64,
}

/// The state of a running load.
struct Load<'a> {
    context: Context<'a>,
    files: FileTable,
    names: Names,
    tally: Tally,
    writer: SegmentWriter,
    ids: Ids,
    /// SIDs that the graph gave and that no edge has yet.
    sids: std::ops::Range<u64>,
    waiting: waiting::WaitingRows,
    unique: unique::Unique,
}

impl<'a> Load<'a> {
    fn new(
        context: Context<'a>,
        files: FileTable,
        names: Names,
        writer: SegmentWriter,
    ) -> Result<Self, Error> {
        let to_read = || files.reports.iter().filter(|f| f.state == FileState::NotDone);
        let progress = Progress {
            bytes_total: to_read().map(|f| f.stamp.bytes).sum(),
            files_total: to_read().count(),
            ..Progress::default()
        };
        let config = context.config;
        let on_conflict = config.dialect.rules().on_conflict(config.update_single_cardinality_properties);
        Ok(Self {
            context,
            files,
            names,
            tally: Tally { progress, ..Tally::default() },
            // A transaction may write a value after the load has looked for one.
            writer: writer.keeping_values(on_conflict != OnConflict::Replace),
            ids: Ids::new(context.target.hasher()),
            sids: 0..0,
            waiting: waiting::WaitingRows::default(),
            unique: unique::Unique::new(context.target.unique_keys()?),
        })
    }

    fn phases(&mut self, source: &Source) -> Result<(), Stop> {
        let all: Vec<usize> = (0..self.files.reports.len())
            .filter(|i| self.files.reports[*i].state == FileState::NotDone)
            .collect();
        let config = self.context.config;
        if config.edge_only {
            self.phase(source, &all, None)?;
            self.apply_waiting_vertices()?;
            return self.apply_waiting_edges();
        }
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for index in all {
            if self.context.control.cancelled() {
                return Err(Error::Cancelled.into());
            }
            let file = &source.files()[index];
            match feed::open(source, file, config.dialect, &config.options, &self.tally.meter) {
                Ok(reader) if reader.header().kind == FileKind::Vertices => vertices.push(index),
                Ok(_) => edges.push(index),
                Err(error) => self.file_failed(index, error)?,
            }
        }
        self.phase(source, &vertices, None)?;
        self.apply_waiting_vertices()?;
        let met = self.ids.met().clone();
        self.phase(source, &edges, Some(met))?;
        self.apply_waiting_edges()
    }

    /// Reads some files with several threads. `met`: the vertices of the load, if there will be no more of them.
    fn phase(&mut self, source: &Source, files: &[usize], met: Option<Arc<Met>>) -> Result<(), Stop> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let config = self.context.config;
        let threads = config.parallelism.threads(cores).min(files.len());
        let meter = self.tally.meter.clone();
        let feed = Feed {
            source,
            dialect: config.dialect,
            options: &config.options,
            files,
            next: AtomicUsize::new(0),
            meter: &meter,
            met,
        };
        std::thread::scope(|scope| {
            let (sender, batches) = crossbeam_channel::bounded(threads * 2);
            for _ in 0..threads {
                let (sender, feed) = (sender.clone(), &feed);
                scope.spawn(move || feed.work(&sender));
            }
            drop(sender);
            let mut ended = 0;
            for batch in batches {
                ended += usize::from(batch.end);
                if let Err(e) = self.batch(batch) {
                    // Each thread ends when it next reads `stop`, or when the channel is closed.
                    meter.stop.store(true, Ordering::Relaxed);
                    return Err(e);
                }
            }
            if ended == files.len() {
                Ok(())
            } else {
                Err(Error::Internal("a parse thread ended early").into())
            }
        })
    }

    fn batch(&mut self, batch: Batch) -> Result<(), Stop> {
        if self.context.control.cancelled() {
            return Err(Error::Cancelled.into());
        }
        let Batch { file, rows, looked_up, rejected, names, columns, end, failure } = batch;
        if let Some(columns) = columns {
            self.files.columns[file] = Some(Arc::new(columns));
        }
        self.names.extend_file(file, &names, self.context.target)?;
        let count = (rows.len() + rejected.len()) as u64;
        self.files.reports[file].counts.rows += count;
        self.tally.progress.rows += count;
        rejected.into_iter().try_for_each(|r| self.reject(file, r))?;
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for row in rows {
            match row {
                Row::Vertex(row) => vertices.push(row),
                Row::Edge(row) => edges.push(row),
            }
        }
        if !vertices.is_empty() {
            self.vertex_rows(file, vertices)?;
        }
        if !edges.is_empty() {
            self.edge_rows(file, edges, looked_up)?;
        }
        match failure {
            Some(error) => self.file_failed(file, error)?,
            None if end => {
                let report = &mut self.files.reports[file];
                report.state =
                    if report.counts.errors() == 0 { FileState::Done } else { FileState::DoneWithErrors };
                self.tally.progress.files_done += 1;
            }
            None => {}
        }
        self.tally.progress.bytes_read = self.tally.meter.read.load(Ordering::Relaxed);
        self.context.control.progress(&self.tally.progress);
        Ok(())
    }

    /// Returns the label that a new vertex without labels gets in a file.
    fn default_label(&mut self, file: usize) -> Result<Option<Token>, Error> {
        let Some(label) = self.rules(file).default_label() else { return Ok(None) };
        Ok(self.names.intern(&[Str::new_static(label)], self.context.target)?.pop())
    }

    fn reject(&mut self, file: usize, rejected: Rejected) -> Result<(), Stop> {
        let report = &mut self.files.reports[file];
        report.counts.reject(rejected.code);
        // A waiting row may be refused after its file was read.
        if report.state == FileState::Done {
            report.state = FileState::DoneWithErrors;
        }
        self.tally.progress.rejected += 1;
        if self.tally.errors.len() < self.context.config.max_errors {
            self.tally.errors.push(rejected);
        }
        if self.context.config.fail_on_error { Err(Stop::AtRejected) } else { Ok(()) }
    }

    fn file_failed(&mut self, file: usize, error: Error) -> Result<(), Stop> {
        // A cancelled load stops its readers, whose files are not to blame.
        if self.context.control.cancelled() {
            return Err(Error::Cancelled.into());
        }
        self.files.reports[file].state = FileState::Failed;
        self.tally.progress.files_done += 1;
        match error.rejected() {
            Some(rejected) => self.reject(file, rejected),
            None => Err(Stop::Error(error)),
        }
    }

    fn refuse(&self, file: usize, line: u64, code: crate::Code, reason: String) -> Rejected {
        Rejected::new(&self.files.reports[file].name, line, code, reason)
    }

    /// Returns the rules of a file's dialect.
    fn rules(&self, file: usize) -> &'static dyn Rules {
        let columns = self.files.columns[file].as_ref();
        columns.map_or(self.context.config.dialect, |columns| columns.dialect).rules()
    }

    fn sid(&mut self) -> Result<u64, Error> {
        if self.sids.is_empty() {
            self.sids = self.context.target.allocate_sids(SIDS_AT_ONCE)?;
        }
        self.sids.next().ok_or(Error::Internal("the graph gave no SIDs"))
    }

    fn finish(self) -> Result<Outcome, Error> {
        let Self { writer, ids, files, tally, .. } = self;
        let Tally { errors, vertices, edges, .. } = tally;
        let segments = writer.finish()?;
        let (status, vertex_ids) = (Status::Completed, ids.into_vertices());
        let (counts, files) = (sum(&files.reports), files.reports);
        Ok(Outcome { status, files, counts, vertices, edges, errors, segments, vertex_ids })
    }

    fn fail(self) -> Result<Outcome, Error> {
        self.writer.discard()?;
        Ok(Outcome {
            status: Status::Failed,
            counts: sum(&self.files.reports),
            files: self.files.reports,
            vertices: 0,
            edges: 0,
            errors: self.tally.errors,
            segments: Vec::new(),
            vertex_ids: VertexIds::default(),
        })
    }
}

fn sum(files: &[FileReport]) -> Counts {
    let mut counts = Counts::default();
    files.iter().for_each(|f| counts.add(&f.counts));
    counts
}

#[cfg(test)]
mod tests;
