//! One embedded graph database, behind a small API.
//!
//! ```
//! use tidegraph_engine::{Database, Language, Options, Parameters, Query};
//! use tidegraph_types::Value;
//!
//! // Without `data_dir` the graph is in memory.
//! let database = Database::open(Options::default())?;
//! let none = Parameters::default();
//! let create = "CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Grace'})";
//! database.query(&Query::new(Language::OpenCypher, create, &none))?;
//! let count = "g.V().hasLabel('Person').count()";
//! let answer = database.query(&Query::new(Language::Gremlin, count, &none))?;
//! assert_eq!(answer.rows, [[Value::Long(2)]]);
//! # Ok::<(), tidegraph_engine::Error>(())
//! ```
//!
//! Roles: [`Database`] opens a directory (or memory), recovers, runs queries and writes checkpoints. Module `query`
//! runs a text and returns its answer; `applier` applies the sequencer's records to storage; `catalog` gives the query
//! side the dictionary; [`loads`] runs bulk loads; `commands` runs texts without a plan, and `schema` makes the indexes and
//! constraints that they ask for; [`Error`] is the one error of the API. [`Backend`] is the seam to a fleet.
//!
//! Flow of a write: text → front end → plan → executor over a pinned version → commit request → sequencer
//! (conflicts, log, fdatasync) → applier → storage → the version is published → the answer.
//!
//! What must never happen: a write is answered before the log is durable, unless the options allow it
//! (`sync_log_every`); a reader sees part of a transaction or of a load.

mod applier;
mod backend;
mod batches;
mod catalog;
mod changes;
mod checkpoints;
mod commands;
mod csv_files;
mod database;
mod deadline;
mod direct;
mod error;
mod explain;
mod graph_files;
mod helpers;
mod instances;
#[cfg(test)]
mod late_log_tests;
mod learning;
pub mod loads;
mod options;
mod plans;
mod principal;
mod query;
mod query_spill;
mod reset;
mod running;
mod schema;
mod stream;
mod summary;
mod transaction;

pub use applier::StoreApplier;
pub use backend::{
    Backend, BackendStatus, CommitCallback, Earlier, KeyedCommit, LoadCommitError, LoadHold, LoadOutcome,
    ReadOptions, Reader, RequestKey, Snapshot,
};
pub use changes::{ChangeFeed, FeedError};
pub use database::{Database, Status};
pub use error::{Error, Retry};
pub use explain::Explain;
pub use loads::sweep_below;
pub use options::Options;
pub use principal::{Principal, Role, Roles, UnknownRole};
pub use query::{Answer, InlineLimits, Language, PendingAnswer, Query};
pub use reset::RESET_TOKEN_VALID;
pub use running::{Running, RunningStatement, RunningTransaction};
pub use stream::{Head, RowSink};
pub use summary::{EdgeStructure, Summary, VertexStructure};
pub use tidegraph_apl as apl;
pub use tidegraph_exec::view::Counters;
pub use tidegraph_exec::{Interrupt, MemoryPool, Parameters, PoolExhausted, Reservation, Stop};
pub use tidegraph_gremlin::{UnknownLanguage, UnknownVersion, Version as GremlinVersion};
pub use tidegraph_plan as plan;
pub use transaction::Transaction;
