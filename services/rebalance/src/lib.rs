//! The steps of a rebalance and of an upgrade as an AWS Lambda function, for the state machines that heal, scale out,
//! drain and upgrade.
//!
//! Roles: [`Request`] is what a state machine asks, `{"step": …}`, perhaps with a graph. [`Graphs`] answers it, over any
//! map, with the steps of that graph. `main.rs` connects both to the Runtime API. The steps are those of [`tidegraph_cluster::Rebalance`], which the command line
//! uses too.
//!
//! Flow: one event, one step, one answer, on which the state machine branches. A step may be requested again after its
//! answer was lost, by the same execution or another one.
//!
//! What must never happen: state in the function between two events; waiting for a move (state machines wait, and pay
//! nothing for it). The only wait is between two looks at heartbeats, in `detect`.

mod answer;
mod event;
mod graphs;
mod settings;
mod steps;

pub use answer::{Answer, Lot, Needed, OfGraph};
pub use event::{Event, MOST_MACHINES, MOST_MOVES, Request};
pub use graphs::Graphs;
pub use settings::{Invalid, Settings};
pub use steps::Error;
