//! Bulk loading: files → rows → segments of mutations for each partition; and the generator of test graphs.
//!
//! Roles: [`source`] lists the files of a `file://` or `s3://` source; [`rows`] reads one file, with [`header`] giving
//! its columns their meaning; [`run`] takes a whole load from the first file to the last segment, asking the graph that
//! it loads into through [`run::LoadTarget`]; [`segments`] writes and reads what the load leaves in object storage;
//! [`generate`] makes the graphs of the benchmarks.
//!
//! Flow: a caller (the embedded engine, a load Lambda) opens a [`source::Source`], calls [`run::run`], and commits the
//! segments of its outcome with one log record, so that the load becomes visible at one version or not at all.
//! `docs/loading.md` tells the rules from a user's side.
//!
//! Must never: make anything visible, know the engine or HTTP, or use memory that grows with a file.

mod convert;
mod dialect;
mod error;
pub mod generate;
pub mod header;
mod options;
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
