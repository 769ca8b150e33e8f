//! Runs plans over the access pattern language: the one executor of both languages.
//!
//! Roles: [`Execution`] owns one request; [`Context`] is what a request may use (the graph as it sees it, parameters,
//! memory, interruption, randomness); [`View`] lays the request's own writes over what storage answers and collects
//! what the sequencer needs; operators (`op`) pull [`Batch`]es from each other; `value` computes expressions.
//!
//! Flow: plan → a tree of operators, built once → the root is pulled batch by batch → handles in result rows become
//! data (`value::materialize`) → [`Execution::finish`] gives the [`Outcome`] with the commit request, if there is one.
//!
//! What must never happen: a look at storage other than through [`View`], a clock or random number other than the
//! caller's, a buffer that is not charged to the request's memory, anything that only one language could use.

pub mod batch;
pub mod context;
pub mod error;
pub mod execution;
mod op;
pub mod value;
pub mod view;

pub use batch::{Batch, Column};
pub use context::{Context, Entropy, Interrupt, Limits, Memory, NeverInterrupted, Parameters, Stop};
pub use error::Error;
pub use execution::{Execution, Outcome};
pub use view::View;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
