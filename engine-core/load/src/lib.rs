//! Bulk loading: files → rows → segments of mutations for each partition; and the generator of test graphs.
mod convert;
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

pub use convert::Type;
pub use error::Error;
pub use options::{DEFAULT_MAX_RECORD_BYTES, Dialect, Options};
pub use reject::{Code, MAX_VALUE_BYTES, Rejected};
pub use rows::{DEFAULT_LABEL, EdgeRow, Name, Problem, Property, Row, RowReader, VertexRow, open};
