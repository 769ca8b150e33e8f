//! One embedded database: everything in one process, behind a small face.
//!
//! Roles: [`Database`] opens a directory (or memory), recovers, runs queries and writes checkpoints; `query` takes a
//! text to an answer; `applier` is how the sequencer's records reach storage; `catalog` is the dictionary as the query
//! side sees it; `loads` runs bulk loads; `schema` makes indexes and constraints.
//!
//! Flow of a write: text → front end → plan → executor over a pinned version → commit request → sequencer (conflicts,
//! log, fdatasync) → applier → storage → the version is published → the answer.
//!
//! What must never happen: an answer before the log is durable, unless the options say so (`sync_log_every_ms`); a reader that sees part of a transaction or of a load.

mod applier;
mod backend;
mod catalog;
mod checkpoints;
mod database;
mod direct;
mod error;
mod explain;
#[cfg(test)]
mod late_log_tests;
pub mod loads;
mod options;
mod principal;
mod query;
mod schema;

pub use applier::StoreApplier;
pub use backend::{Asking, Backend, Ended, LoadHold, LoadOutcome, Reader, Snapshot, Standing, Uncommitted};
pub use database::{Database, Status};
pub use error::Error;
pub use loads::sweep_below;
pub use options::Options;
pub use principal::Principal;
pub use query::{Answer, Brief, Brought, Language, Query};
pub use tidegraph_apl as apl;
pub use tidegraph_exec::Parameters;
