//! What a log can answer instead.

use std::path::PathBuf;
use tidegraph_platform::DiskError;
use tidegraph_types::{Epoch, ErrorCode, ShardId, Version};

/// An error of the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no room. Nothing of the request was written; the log stays usable.
    #[error("the log is full: {0}")]
    Full(#[source] DiskError),
    /// The disk failed. If the request was an append, nothing of it was written; the log stays usable.
    #[error("the log cannot be used: {0}")]
    Io(#[source] DiskError),
    /// An earlier write may or may not be durable, so nothing can be written after it. Opening the log anew finds
    /// out.
    #[error("the log takes no more records since a write failed: {reason}")]
    Poisoned {
        /// The failure.
        reason: String,
    },
    /// Stored bytes are damaged, or a file is missing. Nothing was cut.
    #[error("log file {} is damaged at byte {offset}: {reason}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A whole record that says something this version does not know. Nobody may go past it: what it says would be lost.
    #[error(
        "record of version {version} in log file {} at byte {offset} cannot be applied: {source}",
        file.display()
    )]
    Newer {
        /// Version of the record.
        version: Version,
        /// The file that it stands in.
        file: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is not known.
        source: tidegraph_wire::Error,
    },
    /// A record that does not follow the last one. A defect of the caller; nothing was written.
    #[error("record of version {version} and epoch {epoch} in shard {shard} cannot follow {tail}")]
    OutOfOrder {
        /// Version of the record.
        version: Version,
        /// Epoch of the record.
        epoch: Epoch,
        /// Shard of the record.
        shard: ShardId,
        /// What is there, as text.
        tail: String,
    },
    /// A record that cannot be written, because of its size or of a value in it. Nothing was written.
    #[error("record of version {version} cannot be written: {source}")]
    Encode {
        /// Version of the record.
        version: Version,
        /// Why not.
        source: tidegraph_wire::Error,
    },
    /// The version was trimmed.
    #[error("version {requested} is no longer in the log, which begins at version {first}")]
    Trimmed {
        /// The version asked for.
        requested: Version,
        /// The oldest one there is.
        first: Version,
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
        /// What the client said.
        reason: String,
    },
    /// A message that is no record, or one that is missing.
    #[error("partition {partition} of Kafka topic {topic} is damaged at offset {offset}: {reason}")]
    Damaged {
        /// The graph's topic.
        topic: String,
        /// The shard's partition.
        partition: u16,
        /// Where in the partition.
        offset: i64,
        /// What is wrong there.
        reason: String,
    },
    /// The log is at this epoch already, or a higher one: whoever opens it under a lower epoch is late.
    #[error("the log is at epoch {found}, and cannot be opened to write under epoch {epoch}")]
    Behind {
        /// The epoch of who opens it.
        epoch: Epoch,
        /// The highest one in the log.
        found: Epoch,
    },
    /// Shards do not say the same of a version.
    #[error("version {version} is not the same in all shards of the log: {reason}")]
    Disagree {
        /// The version.
        version: Version,
        /// What differs.
        reason: String,
    },
    /// A topic that was made for another number of shards.
    #[error(
        "Kafka topic {topic} has {partitions} partitions, the graph's log has {shards} shards: they have to be as many"
    )]
    Shards {
        /// The topic.
        topic: String,
        /// Its partitions.
        partitions: usize,
        /// What the graph needs.
        shards: u16,
    },
    /// Another process has the log open.
    #[error("the log is in use: {0}")]
    InUse(#[source] DiskError),
}

impl Error {
    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Full(_)
            | Self::Io(_)
            | Self::Poisoned { .. }
            | Self::Broker { .. }
            | Self::Behind { .. }
            | Self::Shards { .. }
            | Self::InUse(_) => ErrorCode::Unavailable,
            Self::Corrupt { .. } | Self::Newer { .. } | Self::Damaged { .. } | Self::Disagree { .. } => {
                ErrorCode::Corrupt
            }
            Self::Encode { source, .. } => match source {
                tidegraph_wire::Error::TooLong { .. } => ErrorCode::QueryLimitExceeded,
                other => other.code(),
            },
            Self::OutOfOrder { .. } | Self::Trimmed { .. } => ErrorCode::Internal,
        }
    }

    /// An error of the disk in an operation that left nothing behind.
    pub(crate) fn disk(error: DiskError) -> Self {
        if error.is_full() { Self::Full(error) } else { Self::Io(error) }
    }
}
