//! The steps of a rebalance as an AWS Lambda function, for the state machines that heal, scale out and drain.
//!
//! Roles: [`Event`] is what a state machine asks for, `{"step": …}`; [`Steps`] answers it, over any map; `main.rs` puts that behind the Runtime API.
//! What the steps do is [`tidegraph_cluster::Rebalance`], which the command line uses too.
//!
//! Flow: one event, one step, one answer that says what the state machine branches on. A step may be asked for again, after its answer was lost, by
//! the same execution or by another one.
//!
//! What must never happen: anything kept in the function between two events; a wait for a move in here (state machines wait, and pay nothing for it).
//! The one wait is between two looks at signs of life, in `detect`.

mod answer;
mod event;
mod settings;
mod steps;

pub use answer::{Answer, Lot, Needed};
pub use event::{Event, MOST_MOVES};
pub use settings::{Invalid, Settings};
pub use steps::{Error, Steps};
