//! The log: the one durable truth of a graph.
//!
//! Roles: [`Record`] is what is written; [`LogStore`] is the seam between the sequencer and a backend; [`FileLog`] is
//! the backend of a graph in one process, `kafka::KafkaLog` (feature `kafka`) the one of a fleet, [`MemoryLog`] and
//! [`SharedLog`] those of tests. [`ShardedLog`] is a log of several shards of a backend. [`Follower`] is how storage nodes read a log that another process writes. One suite (`suite.rs`) runs against each.
//!
//! Flow: the sequencer hands over the records of several transactions as one slice; the backend writes them together
//! and makes them durable together (group commit), and only then answers; a file log may be told to sync now and then instead. At start, the backend finds its tail, and
//! storage reads every record after its checkpoint. After a checkpoint, what lies before it is trimmed.
//!
//! Invariants: versions are contiguous and epochs never fall; a record that was acknowledged is there after every
//! crash, whole and in its place; what was never whole is cut and never read. Damage of anything else is
//! [`Error::Corrupt`]: the log must never repair itself by forgetting what it acknowledged.

mod error;
mod file;
mod follow;
#[cfg(feature = "kafka")]
pub mod kafka;
mod late_sync;
mod memory;
mod record;
mod recovery;
mod shards;
mod shared;
mod sight;
mod store;

pub use error::Error;
pub use file::{FileLog, FileLogOptions};
pub use follow::{Follower, Position};
pub use memory::MemoryLog;
pub use record::{Body, Record};
pub use recovery::Recovery;
pub use shards::{ShardedLog, SharedShard, SharedShards};
pub use shared::{SharedLog, SharedLogFollower, SharedLogHandle};
pub use store::{LogStore, Records, Tail};

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod suite;
