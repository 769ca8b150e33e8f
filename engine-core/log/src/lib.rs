//! The log: the one durable truth of a graph.
//!
//! Roles: [`Record`] is one entry; [`LogStore`] is the trait between the sequencer and a backend; [`Follower`] reads a
//! log that another process writes, and [`Follow`] gives readers beside the writer. [`LogLocation`] names where a log is and opens it there: [`FileLog`] for a graph in
//! one process, `kafka::KafkaLog` (feature `kafka`) for a fleet, [`MemoryLog`] for a graph that ends with its process.
//! `ShardedLog` combines the shards of a backend, and `WholeFollower` joins what its followers read. [`archive`] has the
//! format of records that are kept outside of a log, in a backup. The module `testing` (feature `testing`) has the suite of tests that
//! every backend passes, and logs in memory that several processes share.
//!
//! Flow: the sequencer passes the records of several transactions as one slice. The backend writes them together, makes
//! them durable together (group commit), and only then returns; [`FileLogOptions::sync_every`] moves the sync to a
//! later time. At start, the backend finds its tail, and storage reads every record after its checkpoint. After a
//! checkpoint, the sequencer trims the records that the checkpoint holds.
//!
//! Invariants (named in `ARCHITECTURE.md`):
//! * LOG-1: versions are contiguous and epochs never fall, so a transaction is committed exactly if its whole record
//!   is in the log under the current epoch.
//! * LOG-2: an acknowledged record survives every crash, whole and in its place.
//! * LOG-3: recovery cuts a torn tail and nothing else. Any other damage is [`Error::Corrupt`], and missing files are
//!   [`Error::Lost`]: the log never repairs itself by forgetting acknowledged records.
//! * LOG-4: a log of several shards hands out a record only if every shard has it, and never replaces it afterwards.
//! * LOG-5: a log that syncs later loses nothing that was synced, and of the rest only the end.
//!
//! A log in memory:
//!
//! ```
//! use tidegraph_log::{Body, LogLocation, Record};
//! use tidegraph_types::{Epoch, ShardId, Sharding, Version};
//!
//! # fn main() -> Result<(), tidegraph_log::Error> {
//! let mut log = LogLocation::Memory.open(Sharding::ONE, Epoch(0))?;
//! let record = |version| Record {
//!     shard: ShardId(0),
//!     epoch: Epoch(1),
//!     version: Version(version),
//!     body: Body::EpochStart,
//! };
//! log.append(&[record(1), record(2)])?;
//! assert_eq!(log.tail().map(|tail| tail.version), Some(Version(2)));
//! let records: Vec<Record> = log.read_from(Version(2))?.collect::<Result<_, _>>()?;
//! assert_eq!(records, [record(2)]);
//! // Versions are contiguous.
//! assert!(log.append(&[record(9)]).is_err());
//! # Ok(())
//! # }
//! ```

#[cfg(any(feature = "kafka", feature = "testing", test))]
mod acceptor;
pub mod archive;
mod error;
mod file;
mod file_follower;
mod follow;
#[cfg(feature = "kafka")]
pub mod kafka;
mod kafka_options;
mod late_sync;
mod location;
mod memory;
mod reach;
mod record;
mod recovery;
#[cfg(any(feature = "kafka", feature = "testing", test))]
mod shards;
mod store;
#[cfg(any(feature = "testing", test))]
pub mod testing;
#[cfg(any(feature = "kafka", feature = "testing", test))]
mod whole;

pub use error::{Cause, Error};
pub use file::{FORMATS, FileLog, FileLogOptions};
pub use follow::{Details, FirstShard, Follow, Follower, Position};
pub use kafka_options::{KafkaOptions, KafkaTls, NewTopic, Token, Tokens};
pub use location::{LogBackend, LogCopies, LogLocation};
pub use memory::MemoryLog;
pub use record::{Body, Record};
pub use recovery::Recovery;
#[cfg(any(feature = "kafka", feature = "testing", test))]
pub use shards::ShardedLog;
pub use store::{LogStore, Records, Tail};
#[cfg(any(feature = "kafka", feature = "testing", test))]
pub use whole::WholeFollower;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod golden_tests;
