//! Errors of the processes of a fleet.

use tidegraph_types::{PartitionId, Version};

/// An error of a process of a fleet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The partition map, or a lease in it.
    #[error(transparent)]
    Map(#[from] tidegraph_cluster::Error),
    /// The log.
    #[error(transparent)]
    Log(#[from] tidegraph_log::Error),
    /// A request to another process.
    #[error(transparent)]
    Remote(#[from] tidegraph_remote::Error),
    /// A store or its checkpoint.
    #[error(transparent)]
    Storage(#[from] tidegraph_storage::Error),
    /// A read of a replica.
    #[error(transparent)]
    Apl(#[from] tidegraph_apl::Error),
    /// The object store.
    #[error(transparent)]
    Objects(#[from] tidegraph_platform::objects::Error),
    /// The local disk.
    #[error(transparent)]
    Disk(#[from] tidegraph_platform::disk::Error),
    /// The sequencer.
    #[error(transparent)]
    Sequencer(#[from] tidegraph_txn::Error),
    /// The engine, which removes segments of loads.
    #[error(transparent)]
    Engine(#[from] tidegraph_engine::Error),
    /// The log skipped a version.
    #[error("partition {partition} is at version {applied}, but the next record has version {next}")]
    Gap {
        /// The partition.
        partition: PartitionId,
        /// The last applied version.
        applied: Version,
        /// The version of the record that arrived.
        next: Version,
    },
    /// A replica cannot apply a record.
    #[error("record {version} cannot be applied to partition {partition}: {source}")]
    Apply {
        /// The partition.
        partition: PartitionId,
        /// The version of the record.
        version: Version,
        /// Why.
        source: tidegraph_engine::Error,
    },
    /// A replica that is brought up can apply no further record.
    #[error("the replica of partition {partition} broke: {reason}")]
    Broken {
        /// The partition.
        partition: PartitionId,
        /// Why.
        reason: String,
    },
    /// The map notes a checkpoint whose manifest does not exist.
    #[error("the checkpoint of partition {partition} at {prefix} is gone")]
    CheckpointGone {
        /// The partition.
        partition: PartitionId,
        /// Where the checkpoint should be in the object store.
        prefix: String,
    },
    /// A checkpoint is not one of the graph.
    #[error("the checkpoint {object} is not one of this graph: {reason}")]
    Foreign {
        /// Its manifest.
        object: String,
        /// Why not.
        reason: String,
    },
    /// A backup cannot be made, read or restored.
    #[cfg(feature = "backup")]
    #[error(transparent)]
    Backup(#[from] crate::backup::Error),
    /// The system gives no thread.
    #[error("cannot start a thread for {name}: {source}")]
    Thread {
        /// The name of the thread.
        name: String,
        /// Why.
        source: std::io::Error,
    },
}
