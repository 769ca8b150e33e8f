//! Dropped files → the graph: the steps of a load as a Lambda function, for a state machine.
//!
//! Roles: [`Event`] is what the state machine asks, [`Answer`] what it hears, [`Settings`] what the function's environment variables say;
//! [`answer`] has a step done. The steps themselves are `tidegraph_engine::loads::Ingest`; `docs/ingest.md` draws the machine.
//!
//! What must never happen: a step that says it is done and is not; an error without a name that tells the machine whether
//! to try again.

mod answer;
mod event;
#[cfg(feature = "lambda")]
mod settings;

pub use answer::{Answer, Error, answer};
pub use event::Event;
#[cfg(feature = "lambda")]
pub use settings::Settings;
