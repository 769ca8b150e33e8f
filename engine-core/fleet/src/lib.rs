//! The processes of a fleet, as parts that can be driven by a daemon, a test or a simulation.
//!
//! Roles: [`sequencing`] is the sequencer as a role that whoever has its lease takes.
//!
//! What must never happen here: a decision that only a wall clock supports; an answer to a client that the log does not.

pub mod sequencing;
