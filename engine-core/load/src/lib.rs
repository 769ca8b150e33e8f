//! Bulk loading: turns files into rows, and rows into segments of mutations for each partition. Also generates test
//! graphs.
//!
//! Roles: [`source`] lists the files of a `file://` or `s3://` source. [`rows`] reads one file; [`header`] gives its
//! columns their meaning, and a [`Dialect`] decides everything in which the CSV formats differ. [`run`] runs a whole
//! load from the first file to the last segment and asks the graph through [`run::LoadTarget`]. [`segments`] writes and
//! reads the segments in object storage. [`plain`] reads a file of any columns for a query (`LOAD CSV`), [`graph_file`] one that holds a graph
//! (Gremlin's `io()`). [`generate`] makes the graphs of the benchmarks.
//!
//! Flow: a caller (the embedded engine, a load Lambda) opens a [`source::Source`], calls [`run::run`], and commits the
//! segments of the outcome with one log record. So the load becomes visible at one version or not at all (LOAD-1).
//! `docs/loading.md` describes the rules from a user's side.
//!
//! Must never: make anything visible, depend on the engine or HTTP, or use memory that grows with a file.

mod convert;
mod decompress;
mod dialect;
mod error;
pub mod generate;
pub mod graph_file;
pub mod header;
mod options;
pub mod plain;
mod records;
mod reject;
pub mod rows;
pub mod run;
pub mod segments;
pub mod source;
pub mod split;

pub use convert::Type;
pub use dialect::Dialect;
pub use error::{Cause, Error, ReadError, TargetError};
pub use header::Header;
pub use options::{DEFAULT_MAX_RECORD_BYTES, Options};
pub use reject::{Code, MAX_VALUE_BYTES, Rejected};
pub use rows::{DEFAULT_LABEL, EdgeRow, Name, Problem, Property, Row, RowReader, VertexRow, open};
pub use source::Source;
