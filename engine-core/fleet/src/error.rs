//! Why a process of a fleet could not do something.

use tidegraph_types::{PartitionId, Version};

/// An error of a process of a fleet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The map.
    #[error(transparent)]
    Map(#[from] tidegraph_cluster::Error),
    /// The log.
    #[error(transparent)]
    Log(#[from] tidegraph_log::Error),
    /// Another process.
    #[error(transparent)]
    Remote(#[from] tidegraph_remote::Error),
    /// A checkpoint.
    #[error(transparent)]
    Storage(#[from] tidegraph_storage::Error),
    /// A replica.
    #[error(transparent)]
    Apl(#[from] tidegraph_apl::Error),
    /// The object store.
    #[error(transparent)]
    Objects(#[from] tidegraph_platform::objects::Error),
    /// The local disk.
    #[error(transparent)]
    Disk(#[from] tidegraph_platform::disk::Error),
    /// A record that does not follow the last one.
    #[error("partition {partition} is at version {applied}, the next record has version {next}")]
    Gap {
        /// The partition.
        partition: PartitionId,
        /// What it has.
        applied: Version,
        /// What came.
        next: Version,
    },
    /// A record that cannot be applied.
    #[error("record {version} cannot be applied to partition {partition}: {reason}")]
    Apply {
        /// The partition.
        partition: PartitionId,
        /// The record.
        version: Version,
        /// Why.
        reason: String,
    },
    /// The system gives no thread.
    #[error("no thread for {name}: {reason}")]
    Thread {
        /// What for.
        name: String,
        /// Why.
        reason: String,
    },
}
