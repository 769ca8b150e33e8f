//! The sequencer as a role of a fleet: many candidates, one at a time who leads.
//!
//! Roles: a [`Candidate`] tries for the lease; when it has it, it *takes over* ([`Takeover`] says from what: the newest checkpoint
//! and the log) and lets callers have a [`Leading`]: the sequencer under the lease's epoch. [`GuardedLog`] stands between sequencer and log and lets
//! nothing be acknowledged after the lease.
//!
//! Flow of a take-over:
//! 1. The lease is taken by a conditional write, which raises the epoch. From here on it is renewed, whatever else goes on.
//! 2. The log is opened under that epoch, which fences its shards if it has several, and read from the checkpoint on: versions, tokens, SIDs that
//!    may be in anybody's hands, ids of requests.
//! 3. A record of the new epoch is written. The log refuses what an earlier sequencer sends from then on; if that one was faster, this
//!    attempt fails, and the next one reads what it wrote.
//! 4. Only then callers get the sequencer.
//!
//! What must never happen: an acknowledgement of what is not in the log under the current epoch (the log sees to it: a writer reads back
//! what it wrote, ADR 0008); one epoch for two attempts to write, since what the first one sent may still arrive: after every failure
//! the lease is given back and taken with the next epoch.
//!
//! When the map cannot be reached, nobody else can take the lease there either, but the holder cannot know whether only he is cut off. Two answers
//! are right, and [`Unsure`] chooses: stop when the own time is over, for logs that would take records of two writers; or go on, for logs that refuse a
//! deposed one. In the latter case an acknowledgement is as good as ever, and only [`Leading::newest`] has to ask the log.

mod candidate;
mod guard;
mod takeover;
#[cfg(test)]
mod tests;

pub use candidate::{Candidate, CandidateConfig, Leading, Unsure};
pub use guard::GuardedLog;
pub use takeover::{Base, Publish, Takeover};
