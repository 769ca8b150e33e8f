//! Bolt, the protocol of Neo4j's drivers: its handshake, its chunks, its messages, and PackStream, their value format.
//!
//! Roles: [`handshake`] agrees on a version; [`Messages`] takes messages out of chunks; [`Request`] is a message of a
//! client; [`Reply`] writes messages of a server; [`packstream`] reads and writes values. Nothing here knows a socket or
//! the engine: the service's sessions do.
//!
//! Source: <https://neo4j.com/docs/bolt/current/>.
//!
//! What must never happen: bytes of a client end the process, or take more memory than [`Budget`] grants: nothing is
//! allocated for a length that a client merely claims, and nesting has a limit.

mod chunks;
pub mod handshake;
mod message;
pub mod packstream;

pub use chunks::{Message, Messages, end_of_messages, write_chunks};
pub use handshake::Version;
pub use message::{Pull, Reply, Request, RequestError, Run};
pub use packstream::Dialect;
pub use tidegraph_types::Budget;
