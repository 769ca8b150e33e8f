//! Which node holds what, as far as a caller has to know.

use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Epoch, PartitionCount, PartitionId};

/// Where a partition can be read: addresses as `host:port`, best first.
pub type Replicas = SmallVec<[Arc<str>; 3]>;

/// A partition map at one epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteMap {
    /// Its epoch; every request carries it.
    pub epoch: Epoch,
    /// How many partitions the graph has.
    pub count: PartitionCount,
    /// The replicas of each partition.
    pub replicas: Vec<Replicas>,
}

impl RouteMap {
    /// The replicas of a partition.
    #[must_use]
    pub fn of(&self, partition: PartitionId) -> &[Arc<str>] {
        self.replicas.get(usize::from(partition.0)).map_or(&[], SmallVec::as_slice)
    }
}

/// The partition map, as it changes.
pub trait Routes: Send + Sync {
    /// The newest map that is known here. Cheap: asked for at each request.
    fn current(&self) -> Arc<RouteMap>;

    /// The map of this epoch was wrong somewhere. Loads a newer one; returns when it is there, or after so long at most.
    /// Many callers may say this at the same time.
    fn stale(&self, epoch: Epoch, at_most: Duration);
}
