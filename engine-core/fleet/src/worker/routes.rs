//! Derives routes to replicas from the partition map.

use arc_swap::ArcSwap;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{MapWatch, PartitionMap};
use tidegraph_remote::{Replicas, RouteMap, Routes};
use tidegraph_types::{Epoch, PartitionId};

/// Routes derived from a watched map.
pub(super) struct MapRoutes {
    watch: Arc<MapWatch>,
    zone: String,
    /// Offset that spreads partitions over replicas differently in each worker.
    turn: usize,
    made: ArcSwap<RouteMap>,
}

impl MapRoutes {
    pub fn new(watch: Arc<MapWatch>, zone: String, turn: usize) -> Self {
        let made = ArcSwap::from_pointee(routes(&watch.map(), &zone, turn));
        Self { watch, zone, turn, made }
    }
}

/// Lists the serving replicas of each partition: those in `zone` first, each group rotated by `turn`.
fn routes(map: &PartitionMap, zone: &str, turn: usize) -> RouteMap {
    let of = |(partition, _): (PartitionId, _)| -> (PartitionId, Replicas) {
        let mut serving = map.serving(partition);
        if !serving.is_empty() {
            let by = (turn + usize::from(partition.0)) % serving.len();
            serving.rotate_left(by);
        }
        serving.sort_by_key(|(_, node)| node.zone != zone);
        (partition, serving.into_iter().map(|(_, node)| Arc::from(node.endpoint.as_str())).collect())
    };
    let former = map.graph().former_layout();
    let former =
        map.held().filter(|(partition, _)| former.is_some_and(|layout| layout.number(*partition).is_some()));
    RouteMap::new(map.epoch(), map.graph().layout(), map.partitions().chain(former).map(of))
}

impl Routes for MapRoutes {
    fn current(&self) -> Arc<RouteMap> {
        let map = self.watch.map();
        let made = self.made.load_full();
        if made.epoch == map.epoch() {
            return made;
        }
        let new = Arc::new(routes(&map, &self.zone, self.turn));
        self.made.store(new.clone());
        new
    }

    fn stale(&self, epoch: Epoch, at_most: Duration) {
        self.watch.stale(epoch, at_most);
    }
}
