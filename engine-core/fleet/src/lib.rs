//! The processes of a fleet, as parts that can be driven by a daemon, a test or a simulation.
//!
//! Roles: [`StorageNode`] holds replicas of partitions and answers reads; [`sequencing`] is the sequencer as a role that
//! whoever has its lease takes, and [`role`] what such a process does beside; [`Worker`] is the backend of a process that
//! runs queries and holds no data; `access` (feature `access`) is how it reaches the fleet.
//!
//! Flow of a write: a worker sends a commit to the sequencer → it stands in the log → the worker answers its client. Storage
//! nodes follow the log; whoever reads at that version waits until a replica has applied it.
//!
//! What must never happen here: a decision that only a wall clock supports; an answer to a client that the log does not
//! back; an answer out of data that a node may miss a part of.

#[cfg(feature = "access")]
pub mod access;
mod error;
mod node;
pub mod role;
pub mod sequencing;
mod worker;

pub use error::Error;
pub use node::{Door, LogAccess, NodeConfig, NodeParts, StorageNode};
pub use worker::{Worker, WorkerConfig, WorkerParts};
