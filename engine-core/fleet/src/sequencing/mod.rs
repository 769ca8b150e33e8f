//! The sequencer as a role of a fleet: there are many candidates, and one leads at a time.
//!
//! Roles: a [`Candidate`] tries for the lease; when it holds the lease, it *takes over* from a [`RecoverySource`] (the
//! newest checkpoint and the log) and gives callers a [`Leadership`]: the sequencer under the lease's epoch.
//! [`GuardedLog`] stands between sequencer and log and acknowledges nothing after the lease.
//!
//! Flow of a take-over:
//! 1. A conditional write takes the lease and raises the epoch. From now on the
//!    lease is renewed, whatever else happens.
//! 2. The log is opened under that epoch, which fences its shards if there are several. It is read from the checkpoint
//!    on: for versions, tokens, SIDs that a process may hold, ids of requests.
//! 3. A record of the new epoch is written. From then on the log refuses what an earlier sequencer sends. If that one
//!    wrote first, this attempt fails, and the next one reads what it wrote.
//! 4. Only then do callers get the sequencer.
//!
//! What must never happen: an acknowledgement of a record that is not in the log under the current epoch (the log
//! ensures it: a writer reads back what it wrote, ADR 0008); two attempts to write under one epoch, since a record of
//! the first may still arrive. After each failure the lease is released and taken again with the next epoch.
//!
//! While the map cannot be reached, no other process can take the lease there. But its holder cannot know
//! whether it alone is cut off. [`Unsure`] chooses between two safe answers: stop when the lease's time is
//! over, for logs that would accept records of two writers; or go on, for logs that refuse a deposed writer.
//! If it goes on, acknowledgements remain valid, and only [`Leadership::newest`] has to ask the log.

mod candidate;
mod guard;
mod takeover;
#[cfg(test)]
mod tests;

pub use candidate::{Candidate, CandidateConfig, Leadership, Unsure};
pub use guard::GuardedLog;
pub use takeover::{PublishOnly, RecoveryBase, RecoverySource};
