//! The request for a load in steps, and its division into tasks.

use super::FOLDER;
use crate::dialect::Dialect;
use crate::error::{Cause, Error};
use crate::options::Options;
use crate::run::feed::{self, Columns, Meter};
use crate::run::report::{FileReport, FileState};
use crate::run::{Config, Parallelism};
use crate::source::{Access, Allowed, File, Source};
use crate::split::{self, Part};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidegraph_types::{PartitionCount, Token};

/// Limit of parts of a load: a state machine passes all their numbers in one answer.
const MOST_CHUNKS: u64 = 10_000;
/// Rough limit of segments of a load: the task of each group may write one for each partition.
const MOST_SEGMENTS: u64 = 16_384;
/// Estimate of how much smaller compressed text is.
const COMPRESSION: u64 = 5;

/// Request for a load in steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// URI of the files.
    pub source: String,
    /// What may be read. A plan does not keep it: its files were allowed when it was made.
    #[serde(skip)]
    pub allowed: Allowed,
    /// Region of the bucket.
    pub region: Option<String>,
    /// Paths below the source, each with the ETag that the file must have; `None` for all files.
    pub files: Option<Vec<(String, Option<String>)>>,
    /// Dialect of the files; `None` to detect it from the first one.
    pub dialect: Option<Dialect>,
    /// Options of the parser.
    pub options: Options,
    /// Whether the first refused row or file ends the load.
    pub fail_on_error: bool,
    /// Whether a new value of a single-cardinality property replaces the old one (Gremlin dialect).
    pub update_single_cardinality_properties: bool,
    /// Approximate bytes of text that one task reads.
    pub chunk_bytes: u64,
    /// Approximate bytes of text for one group of partitions.
    pub group_bytes: u64,
}

impl Request {
    /// Returns the loader API's defaults, with the rights of the process.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            allowed: Allowed::everything(),
            region: None,
            files: None,
            dialect: None,
            options: Options::default(),
            fail_on_error: true,
            update_single_cardinality_properties: false,
            chunk_bytes: 64 << 20,
            group_bytes: 64 << 20,
        }
    }
}

/// State that is fixed for one attempt to commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Version at which the graph was read first.
    pub version: u64,
    /// Label and key of each uniqueness constraint at that version.
    pub unique: Vec<(Token, Token)>,
}

/// Division of a load into tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Id of the load.
    pub load_id: String,
    /// The request.
    pub request: Request,
    /// Dialect of the files.
    pub dialect: Dialect,
    pub(super) files: Vec<Planned>,
    pub(super) chunks: Vec<Chunk>,
    groups: u16,
}

/// A file of a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Planned {
    pub file: File,
    /// Columns of its header; `None` if the header cannot be read.
    columns: Option<Columns>,
}

/// The part of a file that one task reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub file: u32,
    /// `None` for the whole file.
    pub part: Option<Part>,
}

impl Plan {
    pub(super) fn object(load_id: &str) -> String {
        format!("{FOLDER}/{load_id}/plan.json")
    }

    /// Lists the files, reads their headers, divides the large ones.
    pub(super) fn make(load_id: &str, request: &Request, partitions: PartitionCount) -> Result<Self, Error> {
        let access = Access { region: request.region.as_deref(), ..Access::to(&request.allowed) };
        let mut source = Source::open(&request.source, &access)?;
        if let Some(wanted) = &request.files {
            source = source.only(wanted)?;
        }
        let dialect = match request.dialect {
            Some(dialect) => dialect,
            None => source.detect(&request.options)?,
        };
        let bytes: u64 = source.files().iter().map(|file| file.bytes).sum();
        let chunk_bytes = request.chunk_bytes.max(bytes / MOST_CHUNKS + 1);
        let (mut files, mut chunks, mut text) = (Vec::new(), Vec::new(), 0);
        for (number, file) in (0..).zip(source.files()) {
            let compressed = is_compressed(&file.path);
            text += if compressed { file.bytes * COMPRESSION } else { file.bytes };
            let mut planned = Planned { file: file.clone(), columns: None };
            let divided = || -> Result<_, Error> {
                let reader = feed::open(&source, file, dialect, &request.options, &Meter::default())?;
                let columns = Columns::of(reader.header());
                if compressed || file.bytes <= chunk_bytes {
                    return Ok((columns, None));
                }
                let reader = source.reader(file)?;
                let parts = split::split(reader, chunk_bytes, request.options.max_record_bytes);
                let parts = parts.map_err(|error| crate::rows::file_error(&file.name, 0, error))?;
                Ok((columns, Some(parts)))
            };
            match divided() {
                Ok((columns, parts)) => {
                    planned.columns = Some(columns);
                    match parts {
                        None => chunks.push(Chunk { file: number, part: None }),
                        Some(parts) => {
                            chunks.extend(
                                parts.into_iter().map(|part| Chunk { file: number, part: Some(part) }),
                            );
                        }
                    }
                }
                // The task of a file that is wrong reports it.
                Err(error) if is_no_fault_of_the_file(&error) => return Err(error),
                Err(error) if error.rejected().is_some() => {
                    chunks.push(Chunk { file: number, part: None });
                }
                Err(error) => return Err(error),
            }
            files.push(planned);
        }
        let most = u64::from(partitions.get()).min(MOST_SEGMENTS / u64::from(partitions.get())).max(1);
        let groups = (text / request.group_bytes.max(1) + 1).next_power_of_two().min(most);
        let groups = u16::try_from(groups).unwrap_or(1);
        Ok(Self { load_id: load_id.to_owned(), request: request.clone(), dialect, files, chunks, groups })
    }

    pub(super) fn groups(&self) -> Result<PartitionCount, Error> {
        PartitionCount::new(self.groups)
            .map_err(|_| Error::Internal("the number of groups is no power of two"))
    }

    /// Returns the configuration of the load that a task makes.
    pub(super) fn config(&self) -> Config {
        let request = &self.request;
        Config {
            options: request.options.clone(),
            fail_on_error: request.fail_on_error,
            update_single_cardinality_properties: request.update_single_cardinality_properties,
            parallelism: Parallelism::Low,
            ..Config::new(&self.load_id, self.dialect)
        }
    }

    /// Returns the reports of files before anything was read.
    pub(super) fn reports(&self) -> Vec<FileReport> {
        let report = |planned: &Planned| FileReport::new(&planned.file, FileState::NotDone);
        self.files.iter().map(report).collect()
    }

    pub(super) fn columns(&self) -> Vec<Option<Arc<Columns>>> {
        self.files.iter().map(|planned| planned.columns.clone().map(Arc::new)).collect()
    }

    /// Opens the source with the files as they were listed.
    pub(super) fn source(&self) -> Result<Source, Error> {
        let files = self.files.iter().map(|planned| planned.file.clone()).collect();
        Source::known(&self.request.source, self.request.region.as_deref(), files)
    }

    /// Returns the size of all files, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|planned| planned.file.bytes).sum()
    }
}

/// Whether an error is not the file's fault: the store cannot be reached, or the file changed since it was listed.
pub(super) fn is_no_fault_of_the_file(error: &Error) -> bool {
    matches!(error, Error::File { cause: Cause::Store | Cause::Changed, .. })
}

fn is_compressed(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    lower.ends_with(".gz") || lower.ends_with(".bz2")
}
