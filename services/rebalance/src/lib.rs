//! The steps of a rebalance and of an upgrade as an AWS Lambda function, for the state machines that heal, scale out,
//! drain and upgrade.
//!
//! Roles: [`Event`] is the request of a state machine, `{"step": …}`. [`Steps`] answers it, over any map. `main.rs`
//! connects both to the Runtime API. The steps are those of [`tidegraph_cluster::Rebalance`], which the command line
//! uses too.
//!
//! Flow: one event, one step, one answer, on which the state machine branches. A step may be requested again after its
//! answer was lost, by the same execution or another one.
//!
//! What must never happen: state in the function between two events; waiting for a move (state machines wait, and pay
//! nothing for it). The only wait is between two looks at heartbeats, in `detect`.

mod answer;
mod event;
mod settings;
mod steps;

pub use answer::{Answer, Lot, Needed};
pub use event::{Event, MOST_MACHINES, MOST_MOVES};
pub use settings::{Invalid, Settings};
pub use steps::{Error, Steps};
