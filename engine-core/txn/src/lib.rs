//! The sequencer: gives versions, checks conflicts and appends to the log. Each graph has one at a time.
//!
//! Roles: [`Sequencer`] is the handle that all threads share. The *committer* (`committer.rs`) has the log and the
//! [`Applier`]. One caller at a time *leads*: it runs the committer for all that wait, on its own thread, so that a
//! lone writer waits only for the log. A thread of the sequencer leads for callers that do not wait. `keys.rs` knows
//! when each key was last written, `queue.rs` has the waiting requests, `created.rs` the vertices that transactions create while a bulk load runs,
//! `committed_requests.rs` the ids of committed requests, and `dictionary.rs` the tokens, which readers use without the
//! committer.
//!
//! Flow of a commit:
//! 1. [`Sequencer::commit`] checks sizes and values on the caller's thread and queues the request. A caller that finds
//!    no leader leads.
//! 2. The leader takes the waiting requests (group commit). In order, it refuses each request with a read key that was
//!    written after its read version, also by an earlier request of the same group; the others get the next versions.
//! 3. All records go to the log in one append. When it returns, they are committed.
//! 4. The leader applies each record, publishes its version, and only then answers the callers, so that a client reads
//!    its own write after the answer. Then it makes the first request that arrived meanwhile lead.
//!
//! Invariants (named in `ARCHITECTURE.md`):
//! * TXN-1: versions grow with each commit, and no version is given twice. A transaction is committed exactly if its
//!   record is in the log.
//! * TXN-2: a transaction commits only if nothing that it read was written after its read version.
//! * TXN-3: a constraint that was answered holds at every later version. The engine sees to that; the sequencer tells
//!   it the newest version that changed the schema ([`Sequencer::newest_schema`]).
//! * TXN-4: a request that is sent again under its id is committed once, whichever process is the sequencer.
//!
//! A bulk load that lost against transactions several times gets a *turn* ([`Sequencer::begin_turn`]): commits that would
//! conflict with it wait in `queue.rs`, for a limited time, while all others go on.
//!
//! A refused append leaves no trace: keys, tokens, ids and versions go back to what they were. When the log cannot say
//! what is durable, or a record cannot be applied, the sequencer stops and refuses every later write; it never guesses.
//!
//! A transaction that conflicts:
//!
//! ```
//! use tidegraph_log::{LogLocation, Record};
//! use tidegraph_txn::{Applier, Error, Recovered, Sequencer, SequencerConfig};
//! use tidegraph_types::{CommitRequest, Epoch, Gui, Key, Mutation, Sharding, Version};
//!
//! struct Storage;
//!
//! impl Applier for Storage {
//!     fn apply(&mut self, _record: &Record) {}
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = LogLocation::Memory.open(Sharding::ONE, Epoch(0))?;
//! let sequencer =
//!     Sequencer::start(SequencerConfig::default(), log, Recovered::default(), Box::new(Storage));
//! let request = |read_version, id| CommitRequest {
//!     read_version,
//!     read_keys: vec![Key(7)],
//!     write_keys: vec![Key(7)],
//!     mutations: vec![Mutation::AddException { id, gui: Gui(7) }],
//!     request: None,
//!     first_asked: None,
//!     by_key: false,
//!     changes: None,
//! };
//! let version = sequencer.commit(request(Version(0), "a".into()))?;
//! // Version 1 is the record that starts the epoch.
//! assert_eq!(version, Version(2));
//! // The second one read key 7 before it was written.
//! let refused = sequencer.commit(request(Version(0), "b".into()));
//! assert!(matches!(refused, Err(Error::Conflict { written, .. }) if written == version));
//! sequencer.commit(request(version, "b".into()))?;
//! # Ok(())
//! # }
//! ```

mod committed_requests;
mod committer;
mod config;
mod created;
mod dictionary;
mod error;
mod keys;
mod queue;
mod request;
mod sequencer;

pub use config::SequencerConfig;
pub use created::{Comparison, LoadWatch, NewVertices, ReportLimit};
pub use error::Error;
pub use request::{LoadCommit, LoadProgress, OnAnswer};
pub use sequencer::{Applier, Recovered, Sequencer};

#[cfg(test)]
mod tests;
