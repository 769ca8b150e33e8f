//! Messages between the processes of a fleet: access to data (APL), commits, and the health of a node.
//!
//! Roles: [`Server`] answers for the [`Services`] of a node; [`RemoteNode`] is the client of one node, over a few
//! connections that many callers share; [`FleetApl`] implements [`tidegraph_apl::Apl`] over many nodes, so that the
//! executor does not know whether data is in the same process; [`Routes`] tells it which node holds which partition.
//!
//! Flow of a read:
//! 1. [`FleetApl`] splits a frontier by partition and sends each node one request for all partitions asked of it.
//! 2. The node's thread for the connection decodes the request. It answers a small
//!    request itself, and hands a large one to a pool.
//! 3. The caller's thread sleeps until the answers arrive, and merges them in the order of the frontier. It asks
//!    another replica if a node is lost, behind or slow.
//!
//! APL-2 holds here: an answer comes from the partition of the asked version, on a node that holds it at the map's
//! epoch, and a position in one replica is never used with another.
//!
//! Must never: wait without bound (a request has a deadline, a connection a keep-alive); allocate what a length field
//! claims before the bytes arrived; answer from a partition that the node does not hold by the caller's map.

#[cfg(feature = "args")]
mod args;
mod certificates;
mod changes;
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
pub use certificates::{CertificateSource, CertificateTexts, Pem, TlsFiles, TlsMode};
pub use client::{Answer, ClientConfig, Network, RemoteCommits, RemoteNode};
pub use error::Error;
pub use fleet::{FleetApl, FleetClient, FleetConfig, FleetCounters, Replicas, RouteMap, Routes};
pub use security::{Security, SecurityConfig, TokenSource, Tokens};
pub use server::{Counters, Graphs, Server, ServerConfig, answer_once};
pub use services::{
    ChangesAnswer, CommitOutcome, Commits, Committed, Earlier, LastChanges, LoadRequest, LoadStep, Newest,
    Node, ServedPartition, Services, Status,
};

use tidegraph_types::Formats;
pub use tidegraph_types::RequestId;
use tidegraph_wire::proto::call::Kind as Call;

/// Versions of the protocol that this build speaks. Two processes use the newest one that both have; a call that the
/// older side does not know is not sent to it.
pub const PROTOCOLS: Formats = Formats::only(2);

/// Returns whether a call may wait for the log. Such calls have only a share of a connection (`places`).
fn is_commit(call: &Call) -> bool {
    matches!(
        call,
        Call::Commit(_)
            | Call::Intern(_)
            | Call::Allocate(_)
            | Call::Outcome(_)
            | Call::WatchLoad(_)
            | Call::LoadChanges(_)
            | Call::LoadTurn(_)
            | Call::EndLoad(_)
            | Call::CommitLoad(_)
    )
}

/// Returns the name of a call in traces.
fn call_name(call: &Call) -> &'static str {
    match call {
        Call::Apl(_) => "apl",
        Call::Commit(_) => "commit",
        Call::Outcome(_) => "outcome",
        Call::Intern(_) => "intern",
        Call::Allocate(_) => "allocate",
        Call::Newest(_) => "newest",
        Call::Tokens(_) => "tokens",
        Call::Status(_) => "status",
        Call::WatchLoad(_) => "watch-load",
        Call::EndLoad(_) => "end-load",
        Call::CommitLoad(_) => "commit-load",
        Call::SettleLoad(_) => "settle-load",
        Call::Pin(_) => "pin",
        Call::LoadChanges(_) => "load-changes",
        Call::LoadTurn(_) => "load-turn",
        Call::Changes(_) => "changes",
    }
}

/// Returns the maximum number of unanswered calls of a connection, and how many of them may wait for the log. Both
/// sides derive it from the limit in the welcome. The other places stay free for reads, which never wait for commits.
fn places(in_flight: u32) -> (usize, usize) {
    let all = in_flight.max(2) as usize;
    (all, all / 2)
}
