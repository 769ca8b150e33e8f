//! What a node answers.

use super::Shared;
use super::feed::{Feed, Stands};
use super::replica::Replica;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegraph_apl::{Apl, Error};
use tidegraph_remote::{Commits, Node, RequestId, Services, Status};
use tidegraph_types::{Epoch, PartitionId, Version};

/// What a node's server answers from. There before the node is: a node says where it listens when it registers.
#[derive(Clone, Default)]
pub struct Door(Arc<OnceLock<Arc<Shared>>>);

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("open", &self.0.get().is_some()).finish()
    }
}

impl Door {
    /// What a server offers; `commits` where the node may be the sequencer.
    #[must_use]
    pub fn services(&self, commits: Option<Arc<dyn Commits>>) -> Services {
        Services { node: Some(Arc::new(self.clone())), commits, status: Some(Arc::new(self.clone())) }
    }

    /// From now on there is a node behind it.
    pub(super) fn open(&self, shared: &Arc<Shared>) {
        // A door has one node.
        let _ = self.0.set(shared.clone());
    }

    fn find(&self, partition: PartitionId) -> Option<Arc<Replica>> {
        self.0.get()?.get(partition).filter(|replica| replica.is_ready())
    }
}

impl Node for Door {
    fn partition(&self, partition: PartitionId, epoch: Epoch) -> Result<Arc<dyn Apl>, Error> {
        match self.find(partition) {
            Some(replica) => Ok(replica.store.clone()),
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

impl Status for Door {
    fn status(&self) -> String {
        self.0
            .get()
            .map_or_else(|| json!({ "state": "starting", "replicas": [] }), |shared| status(shared))
            .to_string()
    }
}

/// How a node is.
pub(super) fn status(shared: &Shared) -> Value {
    let map = shared.watch.map();
    let stands: Vec<Stands> = shared.feeds.iter().map(Feed::standing).collect();
    // A shard of which there is no replica here is not read.
    let fed = || stands.iter().filter(|stands| stands.feeds);
    let replicas = shared.all().into_iter().map(|replica| {
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
                    "complete": index.complete,
                    "entries": index.entries,
                })
            })
            .collect();
        json!({
            "partition": replica.partition.0,
            "ready": replica.is_ready(),
            "version": replica.applied().0,
            "checkpoint": replica.checkpointed.load(std::sync::atomic::Ordering::Relaxed),
            "vertices": vertices,
            "edges": edges,
            "memoryBytes": memory.in_memory,
            "spilledBytes": memory.spilled,
            "indexes": indexes,
            "error": replica.broken(),
        })
    });
    json!({
        "node": shared.id.as_str(),
        "mapEpoch": map.epoch().0,
        "state": map.node(&shared.id).map(|node| node.state.to_string()),
        "logVersion": fed().map(|stands| stands.version.0).min().unwrap_or_default(),
        "nearEndOfLog": fed().count() > 0 && fed().all(|stands| stands.near_end),
        "logError": stands.iter().find_map(|stands| stands.error.as_ref()),
        "keptVersion": shared.pins.oldest().map(|version| version.0),
        "diskFull": shared.disk_full.load(std::sync::atomic::Ordering::Relaxed),
        "replicas": replicas.collect::<Vec<_>>(),
    })
}
