//! A load from beginning to end: files of a source → segments, checked against the graph.
//!
//! Flow:
//! 1. The headers of all files tell vertex files from edge files (left out with `edge_only`).
//! 2. Vertex files: parse threads ([`feed`]) send batches of rows; this thread finds the GUI of each id
//!    ([`ids`]), merges rows of one vertex, writes `CreateVertex` ([`vertices`]).
//! 3. Edge files: the same; both ends must be in the graph or in this load ([`edges`]).
//! 4. The segments are complete; the caller commits all of them at one version, or none.
//!
//! Rows that need to know what an earlier row of the load wrote (a second value of a single-cardinality property, a
//! second row of one edge id) wait until the end of their phase and are then joined with the segments written
//! ([`settle`]).
//!
//! Memory: batches under way, the segment buffer, waiting rows (bounded), and what grows with the load: 16 bytes for
//! each vertex and each edge with an id (two 64-bit hashes). Two ids are taken for one when both hashes agree; for a
//! billion ids that happens with a probability of about 10⁻²¹.
//!
//! Must never: make anything visible. A failed or cancelled load leaves no segments.

mod edges;
mod feed;
mod ids;
mod report;
mod settle;
pub mod steps;
mod target;
mod unique;
mod vertices;

pub use ids::VertexIds;
pub use report::{Counts, FileReport, FileState, Outcome, Status};
pub use target::{Control, Found, LoadTarget, Progress};

use crate::error::Error;
use crate::header::Kind as FileKind;
use crate::options::{Dialect, Options};
use crate::reject::Rejected;
use crate::rows::{Name, Row};
use crate::segments::SegmentWriter;
use crate::source::Source;
use feed::{Batch, Columns, Feed};
use ids::Ids;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tidegraph_platform::Objects;
use tidegraph_types::{PartitionCount, Str, Token};

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
    /// Twice the cores. Parsing does not wait for anything that more threads would hide, so this is `High`.
    Oversubscribe,
}

impl Parallelism {
    /// Parse threads on a machine with so many cores.
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

/// What and how to load.
#[derive(Clone, Debug)]
pub struct Config {
    /// Id of the load; segments are named after it.
    pub load_id: String,
    /// Dialect of the files.
    pub dialect: Dialect,
    /// Options of the parser.
    pub options: Options,
    /// Whether the first error ends the load.
    pub fail_on_error: bool,
    /// Whether a new value of a single-cardinality property replaces the old one (Gremlin dialect).
    pub update_single_cardinality_properties: bool,
    /// Whether to leave out the pass that tells vertex files from edge files; files are taken in order of name.
    pub edge_only: bool,
    /// How many parse threads.
    pub parallelism: Parallelism,
    /// Names of files that an earlier load did ([`Outcome::done`]).
    pub done: FxHashSet<String>,
    /// How many refused rows are kept.
    pub max_errors: usize,
    /// Memory for mutations before they are written.
    pub buffer_bytes: usize,
    /// Memory for rows that wait for the join with the segments.
    pub waiting_bytes: usize,
}

impl Config {
    /// The loader API's defaults.
    #[must_use]
    pub fn new(load_id: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            load_id: load_id.into(),
            dialect,
            options: Options::default(),
            fail_on_error: true,
            update_single_cardinality_properties: false,
            edge_only: false,
            parallelism: Parallelism::default(),
            done: FxHashSet::default(),
            max_errors: 10_000,
            buffer_bytes: 64 << 20,
            waiting_bytes: 64 << 20,
        }
    }
}

/// Loads a source into segments of `objects`.
///
/// Errors are those of the graph, the object store and the caller's cancellation; what is wrong with files and rows is
/// in the outcome.
pub fn run(
    config: &Config,
    source: &Source,
    target: &dyn LoadTarget,
    objects: &Objects,
    control: &dyn Control,
) -> Result<Outcome, Error> {
    let files = source.files().iter().map(|file| FileReport {
        name: file.name.clone(),
        bytes: file.bytes,
        state: if config.done.contains(&*file.name) { FileState::Skipped } else { FileState::NotDone },
        counts: Counts::default(),
    });
    let files: Vec<_> = files.collect();
    let tokens = Names::OfFiles(vec![Vec::new(); files.len()]);
    let writer = SegmentWriter::new(
        objects.clone(),
        target.graph(),
        &config.load_id,
        target.partitions(),
        target.hasher(),
        config.buffer_bytes,
    );
    let mut load = Load::new(config, files, tokens, writer, Parts { target, objects, control })?;
    match load.phases(source) {
        Ok(()) => load.finish(),
        Err(Stop::AtRejected) => load.fail(),
        Err(Stop::Error(error)) => {
            // The first error is the one to tell; left-over segments are found by their load id.
            if let Err(e) = load.writer.discard() {
                tracing::warn!(load_id = config.load_id, error = %e, "segments of a failed load were left");
            }
            Err(error)
        }
    }
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

/// Tokens of the names in rows.
enum Names {
    /// For each file, the tokens of its names.
    OfFiles(Vec<Vec<Token>>),
    /// A name is the number of its token already.
    Tokens,
}

impl Names {
    fn token(&self, file: usize, name: Name) -> Token {
        match self {
            Self::OfFiles(files) => files[file][name.0 as usize],
            Self::Tokens => Token(name.0),
        }
    }
}

/// What a load is given.
#[derive(Clone, Copy)]
struct Parts<'a> {
    target: &'a dyn LoadTarget,
    objects: &'a Objects,
    control: &'a dyn Control,
}

/// The state of a running load.
struct Load<'a> {
    config: &'a Config,
    target: &'a dyn LoadTarget,
    objects: &'a Objects,
    control: &'a dyn Control,
    graph_is_empty: bool,
    writer: SegmentWriter,
    ids: Ids,
    partitions: PartitionCount,
    files: Vec<FileReport>,
    tokens: Names,
    columns: Vec<Option<Arc<Columns>>>,
    interned: FxHashMap<Str, Token>,
    errors: Vec<Rejected>,
    progress: Progress,
    bytes_read: Arc<AtomicU64>,
    sids: std::ops::Range<u64>,
    waiting: settle::Waiting,
    unique: unique::Unique,
    vertices: u64,
    edges: u64,
}

impl<'a> Load<'a> {
    fn new(
        config: &'a Config,
        files: Vec<FileReport>,
        tokens: Names,
        writer: SegmentWriter,
        parts: Parts<'a>,
    ) -> Result<Self, Error> {
        let Parts { target, objects, control } = parts;
        let to_read = || files.iter().filter(|f| f.state == FileState::NotDone);
        Ok(Self {
            config,
            target,
            objects,
            control,
            graph_is_empty: target.is_empty()?,
            writer,
            ids: Ids::new(target.hasher()),
            partitions: target.partitions(),
            tokens,
            columns: files.iter().map(|_| None).collect(),
            interned: FxHashMap::default(),
            errors: Vec::new(),
            progress: Progress {
                bytes_total: to_read().map(|f| f.bytes).sum(),
                files_total: to_read().count(),
                ..Progress::default()
            },
            bytes_read: Arc::default(),
            sids: 0..0,
            waiting: settle::Waiting::default(),
            unique: unique::Unique::new(target.unique_keys()?),
            vertices: 0,
            edges: 0,
            files,
        })
    }

    fn phases(&mut self, source: &Source) -> Result<(), Stop> {
        let all: Vec<usize> =
            (0..self.files.len()).filter(|i| self.files[*i].state == FileState::NotDone).collect();
        if self.config.edge_only {
            self.phase(source, &all)?;
            self.settle_vertices()?;
            return self.settle_edges();
        }
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for index in all {
            if self.control.cancelled() {
                return Err(Error::Cancelled.into());
            }
            let file = &source.files()[index];
            match feed::open(source, file, self.config.dialect, &self.config.options, None) {
                Ok(reader) if reader.header().kind == FileKind::Vertices => vertices.push(index),
                Ok(_) => edges.push(index),
                Err(error) => self.file_failed(index, error)?,
            }
        }
        self.phase(source, &vertices)?;
        self.settle_vertices()?;
        self.phase(source, &edges)?;
        self.settle_edges()
    }

    /// Reads some files with several threads.
    fn phase(&mut self, source: &Source, files: &[usize]) -> Result<(), Stop> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.config.parallelism.threads(cores).min(files.len());
        let stop = AtomicBool::new(false);
        let bytes_read = self.bytes_read.clone();
        let feed = Feed {
            source,
            dialect: self.config.dialect,
            options: &self.config.options,
            files,
            next: AtomicUsize::new(0),
            stop: &stop,
            bytes_read: &bytes_read,
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
                    // The threads end when they next look, or find that nobody listens.
                    stop.store(true, Ordering::Relaxed);
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
        if self.control.cancelled() {
            return Err(Error::Cancelled.into());
        }
        let Batch { file, rows, rejected, names, columns, end, failure } = batch;
        if let Some(columns) = columns {
            self.columns[file] = Some(Arc::new(columns));
        }
        let tokens = self.intern(&names)?;
        if let Names::OfFiles(files) = &mut self.tokens {
            files[file].extend(tokens);
        }
        let count = (rows.len() + rejected.len()) as u64;
        self.files[file].counts.rows += count;
        self.progress.rows += count;
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
            self.edge_rows(file, edges)?;
        }
        match failure {
            Some(error) => self.file_failed(file, error)?,
            None if end => {
                let report = &mut self.files[file];
                report.state =
                    if report.counts.errors() == 0 { FileState::Done } else { FileState::DoneWithErrors };
                self.progress.files_done += 1;
            }
            None => {}
        }
        self.progress.bytes_read = self.bytes_read.load(Ordering::Relaxed);
        self.control.progress(&self.progress);
        Ok(())
    }

    /// Tokens of names; the graph is asked once for each.
    fn intern(&mut self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let mut unknown: Vec<Str> =
            names.iter().filter(|n| !self.interned.contains_key(*n)).cloned().collect();
        if !unknown.is_empty() {
            unknown.sort();
            unknown.dedup();
            let tokens = self.target.intern(&unknown)?;
            self.interned.extend(unknown.into_iter().zip(tokens));
        }
        names
            .iter()
            .map(|n| {
                self.interned.get(n).copied().ok_or(Error::Internal("the graph gave no token for a name"))
            })
            .collect()
    }

    fn reject(&mut self, file: usize, rejected: Rejected) -> Result<(), Stop> {
        let report = &mut self.files[file];
        report.counts.reject(rejected.code);
        // A row may be refused after its file was read, when waiting rows are settled.
        if report.state == FileState::Done {
            report.state = FileState::DoneWithErrors;
        }
        self.progress.rejected += 1;
        if self.errors.len() < self.config.max_errors {
            self.errors.push(rejected);
        }
        if self.config.fail_on_error { Err(Stop::AtRejected) } else { Ok(()) }
    }

    fn file_failed(&mut self, file: usize, error: Error) -> Result<(), Stop> {
        self.files[file].state = FileState::Failed;
        self.progress.files_done += 1;
        match error.rejected() {
            Some(rejected) => self.reject(file, rejected),
            None => Err(Stop::Error(error)),
        }
    }

    fn refuse(&self, file: usize, line: u64, code: crate::Code, reason: String) -> Rejected {
        Rejected::new(&self.files[file].name, line, code, reason)
    }

    fn opencypher(&self, file: usize) -> bool {
        self.columns[file].as_ref().map_or(self.config.dialect, |c| c.dialect) == Dialect::OpenCypher
    }

    fn sid(&mut self) -> Result<u64, Error> {
        if self.sids.is_empty() {
            self.sids = self.target.allocate_sids(4096)?;
        }
        self.sids.next().ok_or(Error::Internal("the graph gave no SIDs"))
    }

    fn finish(self) -> Result<Outcome, Error> {
        let Self { writer, ids, files, errors, vertices, edges, .. } = self;
        let segments = writer.finish()?;
        let (status, counts, vertex_ids) = (Status::Completed, sum(&files), ids.into_vertices());
        Ok(Outcome { status, files, counts, vertices, edges, errors, segments, vertex_ids })
    }

    fn fail(self) -> Result<Outcome, Error> {
        self.writer.discard()?;
        Ok(Outcome {
            status: Status::Failed,
            counts: sum(&self.files),
            files: self.files,
            vertices: 0,
            edges: 0,
            errors: self.errors,
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

type Queue<T> = VecDeque<T>;

#[cfg(test)]
mod tests;
