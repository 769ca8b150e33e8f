//! The sequencer: gives versions, checks conflicts, appends to the log. One at a time for each graph.
//!
//! Roles: [`Sequencer`] is the handle that every thread of the process shares; the *owner* (`owner.rs`) has the log and
//! the [`Applier`], and one of the callers at a time *leads* it: no thread of its own, so that a lone writer waits for
//! the log and for nobody else (a thread of its own leads for those who do not wait); `keys.rs` remembers when each key was last written; `made.rs` notes the vertices that are
//! made while a bulk load runs; `remembered.rs` knows the ids of requests that were committed; `dictionary.rs` is the token dictionary, which readers use without asking the owner.
//!
//! Flow of a commit:
//! 1. [`Sequencer::commit`] checks sizes and values on the caller's thread and queues the request. Who finds no leader leads.
//! 2. The leader takes what waits (group commit) and, in order, refuses each request of which a read key was written
//!    after its read version, by an earlier transaction of the same group too; the others get the next versions.
//! 3. All records go to the log in one append. When it answers, they are committed.
//! 4. The leader applies each record, publishes its version, and only then answers the callers, so that a client that
//!    was answered reads its own write. Then it tells the first of those who came meanwhile to lead.
//!
//! Invariants: a transaction is committed if and only if its record is in the log (TXN-1: no version is given twice);
//! it commits only if nothing that it read was written after its read version (TXN-2). A refused append leaves no
//! trace here: keys, tokens, ids and versions go back to what they were. When the log cannot say what is durable, or a
//! record cannot be applied, the sequencer stops and refuses every write from then on; it must never guess.

mod config;
mod dictionary;
mod error;
mod keys;
mod made;
mod owner;
mod remembered;
mod request;
mod sequencer;

pub use config::SequencerConfig;
pub use error::Error;
pub use made::{LoadWatch, NewVertices};
pub use request::{Ended, LoadCommit};
pub use sequencer::{Applier, Recovered, Sequencer};

#[cfg(test)]
mod tests;
