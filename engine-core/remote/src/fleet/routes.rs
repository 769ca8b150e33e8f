//! The routes of a caller: the nodes that hold each partition.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Epoch, Layout, PartitionId};

/// The nodes that hold a partition: addresses as `host:port`, best first.
pub type Replicas = SmallVec<[Arc<str>; 3]>;

/// A partition map at one epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteMap {
    /// Epoch of the map. Every request carries it (APL-2).
    pub epoch: Epoch,
    /// The partitions that a query asks that begins now.
    pub layout: Layout,
    /// Replicas of these partitions, and of those before a split that queries still ask which began before it.
    pub replicas: FxHashMap<PartitionId, Replicas>,
}

impl RouteMap {
    /// Makes a map of replicas by partition.
    #[must_use]
    pub fn new(
        epoch: Epoch,
        layout: Layout,
        replicas: impl IntoIterator<Item = (PartitionId, Replicas)>,
    ) -> Self {
        Self { epoch, layout, replicas: replicas.into_iter().collect() }
    }

    /// Returns the addresses of all nodes with a replica.
    pub fn addresses(&self) -> impl Iterator<Item = &Arc<str>> {
        self.replicas.values().flatten()
    }

    /// Returns whether the partition may be asked. One before a split is gone once its nodes have given it up.
    #[must_use]
    pub fn has(&self, partition: PartitionId) -> bool {
        self.replicas.contains_key(&partition) || self.layout.number(partition).is_some()
    }

    /// Returns the replicas of a partition.
    #[must_use]
    pub fn of(&self, partition: PartitionId) -> &[Arc<str>] {
        self.replicas.get(&partition).map_or(&[], SmallVec::as_slice)
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
