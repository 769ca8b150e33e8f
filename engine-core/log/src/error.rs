//! Errors of the log.

use std::path::PathBuf;
use std::sync::Arc;
use tidegraph_platform::DiskError;
use tidegraph_types::{Epoch, ErrorCode, ShardId, Version};

/// What caused an error: the error underneath, or a text where there is none. It is shared, so that a log can report
/// the failure that poisoned it with every later append.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An error of the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk is full. Nothing of the request was written; the log stays usable.
    #[error("the log is full: {0}")]
    Full(#[source] DiskError),
    /// The disk failed. If the request was an append, nothing of it was written; the log stays usable.
    #[error("the log cannot be used: {0}")]
    Io(#[source] DiskError),
    /// An earlier write may or may not be durable, so nothing can be written after it. Opening the log again shows
    /// which.
    #[error("the log takes no more records since a write failed: {reason}")]
    Poisoned {
        /// The failure.
        #[source]
        reason: Cause,
    },
    /// Stored bytes are damaged, or a file is missing. Nothing was cut.
    #[error("log file {} is damaged at byte {offset}: {reason}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// What is wrong there.
        #[source]
        reason: Cause,
    },
    /// Files are missing: the log reached further when it was last open. Nothing was changed.
    #[error(
        "log files are missing from {}: the log reached version {least} or more, and ends at version {tail}. \
         Put the files back, or start with `--accept-loss {left}` to continue from version {left} without the \
         changes after it",
        dir.display()
    )]
    Lost {
        /// The directory of the log.
        dir: PathBuf,
        /// A version that the log once held.
        least: Version,
        /// Version of the last record that is left; 0 if there is none.
        tail: Version,
        /// The newest version that the log and the checkpoint can give together.
        left: Version,
    },
    /// A whole record of a kind that this version does not know. No reader may skip it: its change would be lost.
    #[error(
        "record of version {version} in log file {} at byte {offset} cannot be applied: {source}",
        file.display()
    )]
    Newer {
        /// Version of the record.
        version: Version,
        /// The file of the record.
        file: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// The kind that is not known.
        source: tidegraph_wire::Error,
    },
    /// A record that does not follow the last one. This is a defect of the caller; nothing was written.
    #[error("record of version {version} and epoch {epoch} in shard {shard} cannot follow {tail}")]
    OutOfOrder {
        /// Version of the record.
        version: Version,
        /// Epoch of the record.
        epoch: Epoch,
        /// Shard of the record.
        shard: ShardId,
        /// The tail of the log, as text.
        tail: String,
    },
    /// A record that cannot be encoded, because of its size or of a value in it. Nothing was written.
    #[error("record of version {version} cannot be written: {source}")]
    Encode {
        /// Version of the record.
        version: Version,
        /// What is wrong with it.
        source: tidegraph_wire::Error,
    },
    /// The version was trimmed.
    #[error("version {requested} is no longer in the log, which begins at version {first}")]
    Trimmed {
        /// The version asked for.
        requested: Version,
        /// The oldest version in the log.
        first: Version,
    },
    /// The archive of a backup cannot be read or written.
    #[error("the archive of the log cannot be used: {source}")]
    Archive {
        /// The failure.
        source: std::io::Error,
    },
    /// Kafka refused, or did not answer. If the request was an append, nothing of it was written; the log stays usable.
    #[error("the log cannot {operation} partition {partition} of Kafka topic {topic}: {reason}")]
    Broker {
        /// What was tried.
        operation: &'static str,
        /// The graph's topic.
        topic: String,
        /// The shard's partition.
        partition: u16,
        /// The client's error.
        #[source]
        reason: Cause,
    },
    /// A message that is not a record of this log.
    #[error("partition {partition} of Kafka topic {topic} is damaged at offset {offset}: {reason}")]
    Damaged {
        /// The graph's topic.
        topic: String,
        /// The shard's partition.
        partition: u16,
        /// Offset of the message.
        offset: i64,
        /// What is wrong with it.
        #[source]
        reason: Cause,
    },
    /// Messages that should be there are gone. Another process may have trimmed them.
    #[error(
        "partition {partition} of Kafka topic {topic} has no offset {offset}: the next message has offset {found}"
    )]
    Missing {
        /// The graph's topic.
        topic: String,
        /// The shard's partition.
        partition: u16,
        /// The offset that was expected.
        offset: i64,
        /// The offset that was found.
        found: i64,
    },
    /// The log is at this epoch already, or a higher one: the process that opens it is late.
    #[error("the log is at epoch {found}, and cannot be opened to write under epoch {epoch}")]
    Behind {
        /// The epoch of the process that opens it.
        epoch: Epoch,
        /// The highest epoch in the log.
        found: Epoch,
    },
    /// Shards differ about a version.
    #[error("version {version} is not the same in all shards of the log: {reason}")]
    Disagree {
        /// The version.
        version: Version,
        /// What differs.
        reason: String,
    },
    /// A topic that was created for another number of shards.
    #[error(
        "Kafka topic {topic} has {partitions} partitions and the graph's log has {shards} shards: \
         create the topic with {shards} partitions"
    )]
    Shards {
        /// The topic.
        topic: String,
        /// Its partitions.
        partitions: usize,
        /// Shards of the graph's log.
        shards: u16,
    },
    /// A topic that would delete records by itself, or could lose acknowledged ones.
    #[error(
        "Kafka topic {topic} has {setting} {found}, and the log of a graph needs {needed}: change the topic, or name another"
    )]
    TopicSetting {
        /// The topic.
        topic: String,
        /// The setting of the topic, as Kafka names it.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The value that the log needs.
        needed: String,
    },
    /// Another process has the log open.
    #[error("the log is in use: {0}")]
    InUse(#[source] DiskError),
    /// This binary was built without the backend.
    #[error("this binary has no log in {backend}: build it with the cargo feature `{feature}`")]
    NotBuilt {
        /// Name of the backend.
        backend: &'static str,
        /// The cargo feature that has it.
        feature: &'static str,
    },
    /// The backend does not support this.
    #[error("a log in {backend} cannot {operation}")]
    Unsupported {
        /// Name of the backend.
        backend: &'static str,
        /// What was asked for.
        operation: &'static str,
    },
}

impl Error {
    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Full(_)
            | Self::Io(_)
            | Self::Poisoned { .. }
            | Self::Archive { .. }
            | Self::Broker { .. }
            | Self::Behind { .. }
            | Self::Shards { .. }
            | Self::TopicSetting { .. }
            | Self::InUse(_) => ErrorCode::Unavailable,
            Self::Corrupt { .. }
            | Self::Lost { .. }
            | Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::Missing { .. }
            | Self::Disagree { .. } => ErrorCode::Corrupt,
            Self::Encode { source, .. } => match source {
                tidegraph_wire::Error::TooLong { .. } => ErrorCode::QueryLimitExceeded,
                other => other.code(),
            },
            Self::OutOfOrder { .. } | Self::Trimmed { .. } => ErrorCode::Internal,
            Self::NotBuilt { .. } | Self::Unsupported { .. } => ErrorCode::InvalidParameter,
        }
    }

    /// [`Error::Poisoned`] because of an error or a text.
    #[must_use]
    pub fn poisoned(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Poisoned { reason: cause(reason) }
    }

    /// An error of the disk in an operation that left nothing behind.
    pub(crate) fn disk(error: DiskError) -> Self {
        if error.is_full() { Self::Full(error) } else { Self::Io(error) }
    }
}

/// An error or a text as a cause.
pub(crate) fn cause(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Cause {
    Arc::from(reason.into())
}
