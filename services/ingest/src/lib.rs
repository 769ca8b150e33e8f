//! Loads dropped files into a graph: the steps of a load as a Lambda function, for a state machine.
//!
//! Roles: the state machine sends a [`Request`] with an [`Event`] and receives an [`Answer`]; [`answer`] runs the step. [`Settings`] holds
//! the environment variables of the function, [`Connection`] its access to a graph. `tidegraph_engine::loads::Ingest` implements the steps; `docs/ingest.md`
//! draws the machine.
//!
//! Must never: report a step as completed that is not, or fail without a name that tells the machine whether to retry.

mod answer;
mod connection;
mod event;
#[cfg(feature = "lambda")]
mod settings;

pub use answer::{Answer, Error, answer};
pub use connection::{Connected, Connection};
pub use event::{Event, Request};
#[cfg(feature = "lambda")]
pub use settings::{OfGraph, Settings};
