//! The processes of a fleet, as parts that a daemon, a test or a simulation drives.
//!
//! Roles: [`StorageNode`] holds replicas of partitions and answers reads; [`sequencing`] makes the process that holds
//! the lease the sequencer, and [`role`] is what else that process does; [`Worker`] is the backend of a process that
//! runs queries and holds no data; `access` (feature `access`) connects a worker to its fleet; [`restart`] begins a new
//! log from checkpoints; `backup` (feature `backup`) copies a graph to another place and restores it from there.
//!
//! Flow of a write: a worker sends a commit to the sequencer → the sequencer appends it to the log → the worker
//! answers its client. Storage nodes follow the log; a reader at that version waits until a replica has applied it.
//!
//! What must never happen here: a decision that only a wall clock supports; an answer to a client that the log does not
//! back; an answer from data that may lack a record (FLT-1).

#[cfg(feature = "access")]
pub mod access;
#[cfg(feature = "backup")]
pub mod backup;
mod error;
mod node;
pub mod restart;
pub mod role;
pub mod sequencing;
mod worker;

pub use error::Error;
pub use node::{NodeConfig, NodeParts, NodeService, StorageNode};
pub use tidegraph_storage::checkpoint::{LocalCopies, RestoreReads};
pub use worker::{Worker, WorkerConfig, WorkerParts};
