//! Bytes between the processes of a fleet: access to data (APL), commits, and how a node is.
//!
//! Roles: [`Server`] answers for the [`Services`] of a node; [`RemoteNode`] is a node seen from outside, over a few
//! connections that many callers share; [`FleetApl`] implements [`tidegraph_apl::Apl`] over many nodes, so that the
//! executor does not know whether data is in the same process; [`Routes`] tells it which node holds what.
//!
//! Flow of a read:
//! 1. [`FleetApl`] splits a frontier by partition and sends each node one request with all that concerns it.
//! 2. The node's thread for the connection decodes it and, if it is small, calls the partition and sends the answer; what
//!    is large goes to a pool.
//! 3. The caller's thread sleeps until the answers are there, puts them together in the order of the frontier, and asks
//!    another replica where a node is lost, behind or slow.
//!
//! Must never: wait without end (a request has a deadline, a connection a keep-alive), take memory for what a length
//! claims, or answer from a partition that the node does not hold at the caller's map.

#[cfg(feature = "args")]
mod args;
mod client;
mod error;
mod fleet;
mod frame;
mod link;
mod outbox;
mod security;
mod server;
mod services;

#[cfg(feature = "args")]
pub use args::TlsArgs;
pub use client::{Answer, ClientConfig, Network, RemoteCommits, RemoteNode};
pub use error::Error;
pub use fleet::{FleetApl, FleetClient, FleetConfig, FleetCounters, Replicas, RouteMap, Routes};
pub use security::{Security, SecurityConfig, TlsFiles};
pub use server::{Counters, Server, ServerConfig, answer_once};
pub use services::{
    CommitOutcome, Commits, Committed, LoadRequest, LoadStep, Newest, Node, RequestId, Services, Status,
};

/// The version of the protocol that this build speaks.
pub const PROTOCOL: u32 = 1;
