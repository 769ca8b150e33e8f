//! Answers of a storage node to other processes.

use super::Shared;
use super::feed::{Feed, FeedStatus};
use super::replica::Replica;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegraph_apl::Error;
use tidegraph_remote::{Commits, Node, RequestId, ServedPartition, Services, Status};
use tidegraph_types::{Epoch, PartitionId, Version};

/// The services of a node's server. It exists before the node, because a node
/// registers with the endpoint of its server.
#[derive(Clone, Default)]
pub struct NodeService(Arc<OnceLock<Arc<Shared>>>);

impl std::fmt::Debug for NodeService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeService").field("attached", &self.0.get().is_some()).finish()
    }
}

impl NodeService {
    /// Returns the services for a server. `commits` is needed if the node can become the sequencer.
    #[must_use]
    pub fn services(&self, commits: Option<Arc<dyn Commits>>) -> Services {
        let (node, status) = (Arc::new(self.clone()), Arc::new(self.clone()));
        Services { node: Some(node), commits, status: Some(status), ..Services::default() }
    }

    /// Answers for `shared` from now on.
    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        // A service has one node for its whole life.
        let _ = self.0.set(shared.clone());
    }

    fn find(&self, partition: PartitionId) -> Option<Arc<Replica>> {
        // FLT-1 and APL-2: only a ready replica of the asked partition answers.
        self.0.get()?.get(partition).filter(|replica| replica.is_ready())
    }
}

impl Node for NodeService {
    fn partition(&self, partition: PartitionId, epoch: Epoch) -> Result<ServedPartition, Error> {
        match self.find(partition) {
            Some(replica) => Ok(ServedPartition { apl: replica.store.clone(), store: replica.store_id }),
            None => {
                let held = self.0.get().map_or_else(Epoch::default, |shared| shared.watch.map().epoch());
                if held < epoch {
                    Err(Error::WrongEpoch { held, asked: epoch })
                } else {
                    Err(Error::NotHere { partition, epoch: held })
                }
            }
        }
    }

    fn applied(&self, partition: PartitionId) -> Version {
        self.find(partition).map_or_else(Version::default, |replica| replica.applied())
    }

    fn wait_for(&self, partition: PartitionId, version: Version, at_most: Duration) -> bool {
        self.find(partition).is_some_and(|replica| replica.wait_for(version, at_most))
    }

    fn pin(&self, holder: RequestId, version: Option<Version>) -> Result<(), tidegraph_remote::Error> {
        match self.0.get() {
            Some(shared) => shared.pins.keep(shared, holder, version),
            None => Err(tidegraph_remote::Error::Unavailable("the node is starting".into())),
        }
    }
}

impl Status for NodeService {
    fn status(&self) -> String {
        self.0
            .get()
            .map_or_else(|| json!({ "state": "starting", "replicas": [] }), |shared| status(shared))
            .to_string()
    }
}

/// Returns the status of a node as JSON.
pub(super) fn status(shared: &Shared) -> Value {
    let map = shared.watch.map();
    let feeds: Vec<FeedStatus> = shared.feeds.iter().map(Feed::status).collect();
    // A shard without a replica on this node is not read.
    let fed = || feeds.iter().filter(|feed| feed.feeds);
    let replicas = shared.all().into_iter().map(|replica| {
        // Before what follows, which is then of this version or a later one: a worker takes the indexes for those of it.
        let version = replica.applied();
        let (vertices, edges) = replica.store.totals();
        let memory = replica.store.memory_use();
        let indexes: Vec<Value> = replica
            .store
            .indexes()
            .iter()
            .map(|index| {
                let definition = &index.definition;
                json!({
                    "name": definition.name.as_str(),
                    "label": definition.label.0,
                    "key": definition.key.0,
                    "unique": definition.unique,
                    "unchecked": definition.unchecked,
                    "complete": index.complete,
                    "entries": index.entries,
                })
            })
            .collect();
        json!({
            "partition": replica.partition.0,
            "ready": replica.is_ready(),
            "version": version.0,
            "checkpoint": replica.checkpointed.load(std::sync::atomic::Ordering::Relaxed),
            "vertices": vertices,
            "edges": edges,
            "memoryBytes": memory.in_memory,
            "spilledBytes": memory.spilled,
            "indexes": indexes,
            "stuckAt": replica.stuck_at().map(|version| version.0),
            "error": replica.broken().map(|broken| broken.reason),
        })
    });
    json!({
        "node": shared.id.as_str(),
        "mapEpoch": map.epoch().0,
        "state": map.node(&shared.id).map(|node| node.state.to_string()),
        "logVersion": fed().map(|feed| feed.version.0).min().unwrap_or_default(),
        "nearEndOfLog": fed().count() > 0 && fed().all(|feed| feed.near_end),
        "logError": feeds.iter().find_map(|feed| feed.error.as_ref()),
        "keptVersion": shared.pins.oldest().map(|version| version.0),
        "failure": *shared.failure.lock(),
        "diskFull": shared.disk_full.load(std::sync::atomic::Ordering::Relaxed),
        "replicas": replicas.collect::<Vec<_>>(),
    })
}
