//! What a load is asked to do.

use serde::{Deserialize, Serialize};
use tidegraph_load::run::Parallelism;

/// Formats of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Format {
    /// Gremlin CSV (`csv`).
    GremlinCsv,
    /// openCypher CSV (`opencypher`).
    OpenCypherCsv,
    /// One of the two, by the header of the first file: what a drop folder has.
    Detect,
}

/// Whether an earlier load of the same source counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// Files that an earlier load of the source has loaded are left out; without an earlier load it is an error.
    Resume,
    /// Everything is loaded.
    New,
    /// As `Resume` when there was an earlier load, else as `New`.
    Auto,
}

/// A load as the loader API asks for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// `file://` or `s3://` addresses of files or folders; all become visible together.
    pub sources: Vec<String>,
    /// Format of the files.
    pub format: Format,
    /// Region of the bucket.
    pub region: Option<String>,
    /// Whether earlier loads count.
    pub mode: Mode,
    /// The first refused row ends the load, and nothing of it is visible.
    pub fail_on_error: bool,
    /// Parse threads.
    pub parallelism: Parallelism,
    /// Empty quoted fields are empty strings.
    pub allow_empty_strings: bool,
    /// A new value of a single-cardinality property replaces the old one.
    pub update_single_cardinality_properties: bool,
    /// Wait when another load runs.
    pub queue_request: bool,
    /// Loads that must be completed before.
    pub dependencies: Vec<String>,
    /// openCypher: relationship files have `:ID`.
    pub user_provided_edge_ids: bool,
    /// Files are taken in order, without looking at their headers first.
    pub edge_only_load: bool,
}

impl LoadSpec {
    /// The loader API's defaults.
    #[must_use]
    pub fn new(sources: Vec<String>, format: Format) -> Self {
        Self {
            sources,
            format,
            region: None,
            mode: Mode::New,
            fail_on_error: true,
            parallelism: Parallelism::High,
            allow_empty_strings: false,
            update_single_cardinality_properties: false,
            queue_request: true,
            dependencies: vec![],
            user_provided_edge_ids: true,
            edge_only_load: false,
        }
    }
}
