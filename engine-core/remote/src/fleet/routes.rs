//! The routes of a caller: the nodes that hold each partition.

use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Epoch, PartitionCount, PartitionId};

/// The nodes that hold a partition: addresses as `host:port`, best first.
pub type Replicas = SmallVec<[Arc<str>; 3]>;

/// A partition map at one epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteMap {
    /// Epoch of the map. Every request carries it (APL-2).
    pub epoch: Epoch,
    /// Number of partitions of the graph.
    pub count: PartitionCount,
    /// Replicas of each partition.
    pub replicas: Vec<Replicas>,
}

impl RouteMap {
    /// Returns the replicas of a partition.
    #[must_use]
    pub fn of(&self, partition: PartitionId) -> &[Arc<str>] {
        self.replicas.get(usize::from(partition.0)).map_or(&[], SmallVec::as_slice)
    }
}

/// Source of the partition map.
pub trait Routes: Send + Sync {
    /// Returns the newest map known in this process. Cheap: called for each request.
    fn current(&self) -> Arc<RouteMap>;

    /// Loads a newer map, because the map of `epoch` proved wrong. Returns once it is loaded, or after `at_most`.
    /// Several callers may call this at the same time.
    fn stale(&self, epoch: Epoch, at_most: Duration);
}
