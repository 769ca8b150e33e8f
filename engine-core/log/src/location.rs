//! The location of a log, which also opens the log. Only this module knows every backend.
//!
//! A new backend is a type that implements [`LogStore`] and [`LogBackend`], a variant of [`LogLocation`], and an arm of
//! [`LogLocation::backend`]. The engine, the processes of a fleet, the daemon and the simulation use only what is here.

use crate::{Error, FileLog, FileLogOptions, Follower, KafkaOptions, LogStore, MemoryLog, Position, Record};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::Disk;
use tidegraph_types::{Epoch, ShardId, Sharding};

/// Where the log of a graph is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LogLocation {
    /// The memory of this process. The log ends with the process.
    Memory,
    /// Files in a directory, which one process at a time has open.
    File {
        /// The disk of the directory.
        disk: Arc<dyn Disk>,
        /// The directory; it is created if it does not exist.
        dir: PathBuf,
        /// Settings of the log.
        options: FileLogOptions,
    },
    /// A topic in Kafka, which the processes of a fleet share. Needs the cargo feature `kafka`.
    Kafka(KafkaOptions),
}

/// The log of one graph at its location.
///
/// The processes of a fleet share one of these per process; simulations and tests bring their own.
pub trait LogBackend: Send + Sync {
    /// Creates the log, with as many copies as `copies` says. Does nothing if the log exists with the same shards.
    /// Backends that create a log when it is first opened have nothing to do.
    ///
    /// # Errors
    /// [`Error::Shards`] if the log exists with another number of shards; [`Error::Broker`] if the backend fails.
    fn create(&self, _copies: LogCopies) -> Result<(), Error> {
        Ok(())
    }

    /// Opens all shards for writing, under an epoch that no other process has.
    ///
    /// `Epoch(0)` stands for no epoch: the caller raises the epoch itself, after it has read the log. Only backends
    /// that keep other processes out, or that need no fence, accept it.
    ///
    /// # Errors
    /// [`Error::Behind`] if the log has this epoch already, or a higher one; [`Error::InUse`] if another process has
    /// the log open; [`Error::Corrupt`], [`Error::Damaged`] or [`Error::Disagree`] if stored records are damaged;
    /// [`Error::Unsupported`] if the backend cannot hold that many shards; otherwise the failure of the backend.
    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, Error>;

    /// Follows one shard from behind a position on. Nothing is read yet: errors come from [`Follower::next`], also
    /// [`Error::Unsupported`] from a backend that only one process can read.
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower>;
}

/// How many copies a new log has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogCopies {
    /// Copies of each shard.
    pub total: u16,
    /// Copies that must have a record before the log acknowledges it.
    pub in_sync: u16,
}

impl LogLocation {
    /// The log of a graph with these shards at this location. Connects to nothing yet.
    ///
    /// # Errors
    /// [`Error::NotBuilt`] if this binary was built without the backend.
    pub fn backend(&self, sharding: Sharding) -> Result<Arc<dyn LogBackend>, Error> {
        Ok(match self {
            Self::Memory | Self::File { .. } => Arc::new(OneProcess { location: self.clone(), sharding }),
            #[cfg(feature = "kafka")]
            Self::Kafka(options) => Arc::new(crate::kafka::KafkaBackend::new(options.clone(), sharding)),
            #[cfg(not(feature = "kafka"))]
            Self::Kafka(_) => return Err(Error::NotBuilt { backend: "Kafka", feature: "kafka" }),
        })
    }

    /// Returns whether nothing was ever written to a log that processes share: there is no topic, or it never had a
    /// message. A log whose records were all trimmed is not new.
    ///
    /// # Errors
    /// [`Error::Broker`] if the backend fails; [`Error::Unsupported`] if the log belongs to one process;
    /// [`Error::NotBuilt`] if this binary was built without the backend.
    pub fn is_new(&self) -> Result<bool, Error> {
        let operation = "say without being opened whether it is new";
        match self {
            Self::Memory => Err(Error::Unsupported { backend: "memory", operation }),
            Self::File { .. } => Err(Error::Unsupported { backend: "files", operation }),
            #[cfg(feature = "kafka")]
            Self::Kafka(options) => crate::kafka::is_new(options),
            #[cfg(not(feature = "kafka"))]
            Self::Kafka(_) => Err(Error::NotBuilt { backend: "Kafka", feature: "kafka" }),
        }
    }

    /// Deletes a log that processes share, with all its records; does nothing if there is none.
    ///
    /// # Errors
    /// [`Error::Broker`] if the backend fails; [`Error::Unsupported`] if the log belongs to one process;
    /// [`Error::NotBuilt`] if this binary was built without the backend.
    pub fn delete(&self) -> Result<(), Error> {
        let operation = "be deleted without being opened";
        match self {
            Self::Memory => Err(Error::Unsupported { backend: "memory", operation }),
            Self::File { .. } => Err(Error::Unsupported { backend: "files", operation }),
            #[cfg(feature = "kafka")]
            Self::Kafka(options) => crate::kafka::delete_topic_if_exists(options),
            #[cfg(not(feature = "kafka"))]
            Self::Kafka(_) => Err(Error::NotBuilt { backend: "Kafka", feature: "kafka" }),
        }
    }

    /// Opens the log of a graph with these shards for writing: [`LogBackend::open`] of [`LogLocation::backend`].
    ///
    /// # Errors
    /// The errors of the two.
    pub fn open(&self, sharding: Sharding, epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
        self.backend(sharding)?.open(epoch)
    }
}

/// A log that only the process that opens it reads and writes.
struct OneProcess {
    /// [`LogLocation::Memory`] or [`LogLocation::File`].
    location: LogLocation,
    sharding: Sharding,
}

impl OneProcess {
    fn name(&self) -> &'static str {
        match self.location {
            LogLocation::File { .. } => "files",
            _ => "memory",
        }
    }
}

impl LogBackend for OneProcess {
    fn open(&self, _epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
        if self.sharding.shards() != 1 {
            return Err(Error::Unsupported { backend: self.name(), operation: "have several shards" });
        }
        Ok(match &self.location {
            LogLocation::File { disk, dir, options } => {
                Box::new(FileLog::open(disk.clone(), dir, ShardId(0), options.clone())?)
            }
            _ => Box::new(MemoryLog::new(ShardId(0))),
        })
    }

    fn follow(&self, _shard: ShardId, _after: Position) -> Box<dyn Follower> {
        Box::new(NoFollower { backend: self.name() })
    }
}

/// Fails at every call: the log is open to one process only.
struct NoFollower {
    backend: &'static str,
}

impl NoFollower {
    fn error(&self) -> Error {
        Error::Unsupported { backend: self.backend, operation: "be followed by another process" }
    }
}

impl Follower for NoFollower {
    fn next(&mut self, _at_most: Duration) -> Result<Option<Record>, Error> {
        Err(self.error())
    }

    fn is_near_end(&mut self, _within: u64) -> Result<bool, Error> {
        Err(self.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{commit, log_test_suite, read_all};
    use std::cell::Cell;
    use std::path::Path;
    use tidegraph_platform::FaultyDisk;
    use tidegraph_types::{ErrorCode, PartitionCount, Version};

    fn files(disk: &FaultyDisk, dir: &str) -> LogLocation {
        let options = FileLogOptions { file_bytes: 2000, ..FileLogOptions::default() };
        LogLocation::File { disk: Arc::new(disk.clone()), dir: Path::new(dir).into(), options }
    }

    #[test]
    fn a_log_opened_by_its_location_behaves_as_a_log() {
        let disk = FaultyDisk::new(1);
        let count = Cell::new(0);
        log_test_suite(|| {
            count.set(count.get() + 1);
            files(&disk, &format!("/log-{}", count.get())).open(Sharding::ONE, Epoch(0)).unwrap()
        });
        log_test_suite(|| LogLocation::Memory.open(Sharding::ONE, Epoch(0)).unwrap());
    }

    #[test]
    fn a_location_opens_the_same_log_again_and_one_at_a_time() {
        let location = files(&FaultyDisk::new(1), "/log");
        let mut log = location.open(Sharding::ONE, Epoch(0)).unwrap();
        log.append(&[commit(1, 1, "a")]).unwrap();
        assert!(matches!(location.open(Sharding::ONE, Epoch(0)), Err(Error::InUse(_))));
        drop(log);
        let mut log = location.open(Sharding::ONE, Epoch(0)).unwrap();
        assert_eq!(read_all(&mut *log, 1).unwrap(), [commit(1, 1, "a")]);
        assert_eq!(log.first(), Some(Version(1)));
    }

    #[test]
    fn a_log_of_one_process_refuses_followers_and_shards() {
        let sharding = Sharding::new(PartitionCount::new(4).unwrap(), 2).unwrap();
        for location in [LogLocation::Memory, files(&FaultyDisk::new(1), "/log")] {
            let refused = location.open(sharding, Epoch(0)).err().unwrap();
            assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
            assert_eq!(refused.code(), ErrorCode::InvalidParameter);
            let backend = location.backend(Sharding::ONE).unwrap();
            backend.create(LogCopies { total: 1, in_sync: 1 }).unwrap();
            let mut follower = backend.follow(ShardId(0), Position::default());
            assert!(matches!(follower.next(Duration::ZERO), Err(Error::Unsupported { .. })));
            assert!(matches!(follower.is_near_end(1), Err(Error::Unsupported { .. })));
        }
    }

    #[cfg(not(feature = "kafka"))]
    #[test]
    fn kafka_without_its_feature_is_refused_by_name() {
        let kafka = LogLocation::Kafka(KafkaOptions::new("127.0.0.1:9092", "g"));
        let refused = kafka.open(Sharding::ONE, Epoch(1)).err().unwrap();
        assert_eq!(
            refused.to_string(),
            "this binary has no log in Kafka: build it with the cargo feature `kafka`"
        );
    }
}
