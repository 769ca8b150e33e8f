//! Items and their keys. `docs/partition-map.md` describes the layout.

#![expect(clippy::disallowed_types, reason = "the maps are of the SDK's type")]

use crate::map::Mark;
use crate::model::{Graph, Incarnation, Node, NodeId, Replica, ReplicaState};
use crate::{Cause, Checkpoint, Error, PartitionMap};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use tidegraph_platform::metric;
use tidegraph_types::{Epoch, PartitionId, Version};

/// Attribute of the hash key: the graph's name.
pub(super) const GRAPH: &str = "graph";
/// Attribute of the range key: what the item is about.
pub(super) const ITEM: &str = "item";
/// Epoch of the last change; the range key of the index. Only items of the map itself have it.
pub(super) const CHANGED_AT: &str = "changedAt";
/// Number of changes of the item; of the graph's item: number of changes of all others.
pub(super) const CHANGES: &str = "changes";
/// Attribute of the graph's own item: a text that tells the graph from others that had its name before.
pub(super) const INCARNATION: &str = "incarnation";
/// Attribute of the graph's own item, if the graph is being dropped.
pub(super) const DROPPING: &str = "dropping";
/// Key of the graph's own item.
pub(super) const GRAPH_KEY: &str = "map#graph";

const NODE: &str = "map#node#";
const PARTITION: &str = "map#part#";
pub(super) const BEAT: &str = "beat#";
pub(super) const CHECKPOINT: &str = "checkpoint#";
pub(super) const LEASE: &str = "lease#";
pub(super) const RELEASE: &str = "release#";
pub(super) const UPGRADE: &str = "upgrade";
/// Key of the snapshot of the map. It has no [`CHANGED_AT`], so no load of items finds it.
pub(super) const SNAPSHOT: &str = "snapshot";
/// Attribute of the upgrade: the number of its changes.
pub(super) const SERIAL: &str = "serial";

pub(super) type Attributes = HashMap<String, AttributeValue>;

pub(super) fn node_key(id: &NodeId) -> String {
    format!("{NODE}{id}")
}

pub(super) fn partition_key(partition: PartitionId) -> String {
    format!("{PARTITION}{:05}", partition.0)
}

pub(super) fn checkpoint_key(partition: PartitionId) -> String {
    format!("{CHECKPOINT}{:05}", partition.0)
}

pub(super) fn lease_key(name: &str) -> String {
    format!("{LEASE}{name}")
}

/// The key attributes of an item.
pub(super) fn key(graph: &str, item: &str) -> Attributes {
    [(GRAPH, graph), (ITEM, item)]
        .map(|(name, value)| (name.to_owned(), AttributeValue::S(value.into())))
        .into()
}

pub(super) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A whole item.
pub(super) fn item(
    graph: &str,
    key_text: &str,
    mark: Option<Mark>,
    value: &impl Serialize,
) -> Result<Attributes, Error> {
    let encoded: Result<Attributes, _> = serde_dynamo::aws_sdk_dynamodb_1::to_item(value);
    let mut attributes = encoded.map_err(|error| damaged(graph, key_text, error))?;
    attributes.extend(key(graph, key_text));
    if let Some(mark) = mark {
        attributes.insert(CHANGED_AT.into(), number(mark.changed_at.0));
        attributes.insert(CHANGES.into(), number(mark.changes));
    }
    Ok(attributes)
}

/// The graph's own item.
pub(super) fn graph_item(
    graph: &Graph,
    incarnation: Option<&Incarnation>,
    mark: Mark,
) -> Result<Attributes, Error> {
    let mut item = item(&graph.name, GRAPH_KEY, Some(mark), graph)?;
    if let Some(incarnation) = incarnation {
        item.insert(INCARNATION.into(), AttributeValue::S(incarnation.as_str().into()));
    }
    Ok(item)
}

pub(super) fn damaged(
    graph: &str,
    item: &str,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    metric::refused(metric::Refused::MapItem);
    Error::Damaged { graph: graph.into(), item: item.into(), reason: Cause::from(reason.into()) }
}

/// An item that was read.
pub(super) struct Read {
    pub key: String,
    attributes: Attributes,
}

impl Read {
    pub fn new(graph: &str, mut attributes: Attributes) -> Result<Self, Error> {
        attributes.remove(GRAPH);
        match attributes.remove(ITEM) {
            Some(AttributeValue::S(key)) => Ok(Self { key, attributes }),
            other => Err(damaged(graph, &format!("{other:?}"), "its key is no text")),
        }
    }

    /// Removes the number of changes and the epoch of the last one, and returns them.
    pub fn mark(&mut self, graph: &str) -> Result<Mark, Error> {
        let mut take = |name| match self.attributes.remove(name) {
            Some(AttributeValue::N(text)) => text.parse::<u64>().ok(),
            _ => None,
        };
        match (take(CHANGED_AT), take(CHANGES)) {
            (Some(changed_at), Some(changes)) => Ok(Mark { changed_at: Epoch(changed_at), changes }),
            _ => Err(damaged(graph, &self.key, format!("{CHANGED_AT} or {CHANGES} is no number"))),
        }
    }

    /// Removes the incarnation of a graph, and returns it.
    pub fn take_incarnation(&mut self, graph: &str) -> Result<Option<Incarnation>, Error> {
        match self.attributes.remove(INCARNATION) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(Incarnation::from(text.as_str()))),
            Some(_) => Err(damaged(graph, &self.key, format!("{INCARNATION} is no text"))),
        }
    }

    /// Removes the mark of a graph that is being dropped, and returns whether there was one.
    pub fn take_dropping(&mut self) -> bool {
        self.attributes.remove(DROPPING).is_some()
    }

    /// Returns the key with the numbers that a living process raises.
    pub fn counted(&self) -> String {
        let number = |name: &str| match self.attributes.get(name) {
            Some(AttributeValue::N(text)) => text.as_str(),
            _ => "-",
        };
        format!("{} {} {} {}", self.key, number("generation"), number("epoch"), number("counter"))
    }

    /// Decodes the remaining attributes.
    pub fn value<T: DeserializeOwned>(self, graph: &str) -> Result<T, Error> {
        serde_dynamo::aws_sdk_dynamodb_1::from_item(self.attributes)
            .map_err(|error| damaged(graph, &self.key, error))
    }

    /// Puts an item of a node or a partition into a map.
    pub fn put_into(mut self, map: &mut PartitionMap) -> Result<(), Error> {
        let graph = map.graph().name.clone();
        let mark = self.mark(&graph)?;
        let key = self.key.clone();
        if mark.changes == 0 {
            return Err(damaged(&graph, &key, "it was never changed, and is there"));
        }
        if let Some(id) = key.strip_prefix(NODE) {
            let id = NodeId::new(id).map_err(|error| damaged(&graph, &key, error))?;
            map.put_node(id, self.value::<Node>(&graph)?, mark);
        } else if let Some(number) = key.strip_prefix(PARTITION) {
            let bad = || damaged(&graph, &key, "there is no such partition");
            let partition = PartitionId(number.parse().map_err(|_| bad())?);
            let replicas = self.value::<PartitionItem>(&graph)?.into_replicas(&graph, &key)?;
            if key != partition_key(partition) || !map.put_partition(partition, replicas, mark) {
                return Err(bad());
            }
        } else {
            return Err(damaged(&graph, &key, "it is no item of a map"));
        }
        Ok(())
    }
}

/// The replicas of a partition.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PartitionItem {
    replicas: BTreeMap<String, ReplicaState>,
}

impl PartitionItem {
    pub fn new(replicas: &[Replica]) -> Self {
        let pair = |replica: &Replica| (replica.node.to_string(), replica.state);
        Self { replicas: replicas.iter().map(pair).collect() }
    }

    pub fn into_replicas(self, graph: &str, key: &str) -> Result<Vec<Replica>, Error> {
        let replica = |(node, state): (String, ReplicaState)| {
            let node = NodeId::new(&node).map_err(|error| damaged(graph, key, error))?;
            Ok(Replica { node, state })
        };
        self.replicas.into_iter().map(replica).collect()
    }
}

/// A checkpoint of a partition.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckpointItem {
    version: u64,
    prefix: String,
}

impl CheckpointItem {
    pub fn new(checkpoint: &Checkpoint) -> Self {
        Self { version: checkpoint.version.0, prefix: checkpoint.prefix.clone() }
    }

    pub fn into_checkpoint(self, graph: &str, key: &str) -> Result<Checkpoint, Error> {
        let number = key.strip_prefix(CHECKPOINT).and_then(|number| number.parse().ok());
        let partition = PartitionId(number.ok_or_else(|| damaged(graph, key, "there is no such partition"))?);
        Ok(Checkpoint { partition, version: Version(self.version), prefix: self.prefix })
    }
}
