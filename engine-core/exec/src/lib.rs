//! Runs plans over the access pattern language (APL): the one executor of both languages.
//!
//! Roles: [`Execution`] is one running request. [`Context`] holds what a request may use:
//! its view of the graph, parameters, memory, interruption, randomness. [`View`] applies
//! the request's own writes to storage's answers and collects what the sequencer needs.
//! Operators (`op`) pull [`Batch`]es from each other. [`value`] computes expressions.
//!
//! Flow: plan → a tree of operators, built once → the root is pulled batch by batch → handles in result rows
//! become data ([`value::materialize`]) → [`Summary`] with the commit request, if there is one.
//!
//! What must never happen: a read of storage bypasses [`View`]; a request uses a clock or
//! random numbers other than the caller's; a buffer or a row of the answer is not charged
//! to the request's memory; an operator serves only one language.

pub mod batch;
pub mod context;
pub mod csv;
pub mod error;
pub mod execution;
pub mod file_error;
pub mod graph_files;
mod java_random;
mod op;
mod pool;
mod procedure;
mod profile;
mod registers;
mod spill;
pub mod value;
pub mod view;

pub use batch::{Batch, Column};
pub use context::{
    Context, Entropy, Helpers, Interrupt, Limits, Memory, NeverInterrupted, Parameters, StatisticsSource,
    Stop,
};
pub use csv::{CsvFiles, CsvRecords, CsvStep};
pub use error::Error;
pub use execution::{Execution, Summary};
pub use file_error::FileError;
pub use graph_files::{GraphElements, GraphFiles, GraphStep};
pub use pool::{MemoryPool, PoolExhausted, Reservation, SMALL_BYTES};
pub use profile::{Measure, Profile};
pub use spill::{SpillError, SpillFile, SpillFiles};
pub use view::View;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
