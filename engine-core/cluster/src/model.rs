//! The items of the partition map: graph, nodes, replicas, checkpoints.
//!
//! Field names are those of the items in DynamoDB (`docs/partition-map.md`). An unknown field is refused, since it may
//! change the meaning of the others.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use tidegraph_types::{GremlinSettings, PartitionCount, PartitionId, Sharding, Str, Version, is_graph_name};

/// Maximum number of characters in the name of a graph or a node.
const MOST_NAME_CHARS: usize = 64;

/// Folder of an object store below which graphs that share the store have a folder each.
const GRAPHS_FOLDER: &str = "graphs";

/// Checks the name of a graph.
///
/// # Errors
/// [`Error::Invalid`] if it is none.
pub fn check_graph_name(name: &str) -> Result<(), Error> {
    if is_graph_name(name) {
        return Ok(());
    }
    let reason = "has to be 1 to 64 letters, digits, '.', '_' and '-', not beginning with '.'";
    Err(Error::Invalid { what: "graph", found: name.into(), reason })
}

/// Refuses names that cannot be part of a key: names consist of letters, digits, `.`, `_` and `-`.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), Error> {
    let invalid = |reason| Err(Error::Invalid { what, found: name.into(), reason });
    if name.is_empty() || name.len() > MOST_NAME_CHARS {
        return invalid("has to have 1 to 64 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return invalid("may have letters, digits, '.', '_' and '-' only");
    }
    Ok(())
}

/// Name of a storage node; on AWS the id of its instance.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Str);

impl NodeId {
    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it does not have 1 to 64 letters, digits, `.`, `_` and `-`.
    pub fn new(name: &str) -> Result<Self, Error> {
        check_name("node id", name)?;
        Ok(Self(name.into()))
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The properties of a graph that are fixed when it is created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Graph {
    /// Its name, unique in the deployment.
    pub name: String,
    /// Number of partitions.
    pub partitions: PartitionCount,
    /// Number of shards of its log.
    pub shards: u16,
    /// Number of bits of an id's hash that are used: 64 except in tests.
    pub hash_bits: u32,
    /// Number of replicas that each partition should have.
    pub replication_factor: u16,
    /// What Gremlin means by ids and by properties without a cardinality.
    #[serde(default, skip_serializing_if = "GremlinSettings::is_default")]
    pub gremlin: GremlinSettings,
    /// Whether the graph shares its object store with others, below [`Graph::folder`]. Otherwise the store is its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_objects: bool,
}

impl Graph {
    /// The folder of its objects in the object store; `None`: the store is its own.
    #[must_use]
    pub fn folder(&self) -> Option<String> {
        self.shares_objects.then(|| format!("{GRAPHS_FOLDER}/{}", self.name))
    }

    /// Which shard of the log holds which partitions.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are no shards, or more than partitions.
    pub fn sharding(&self) -> Result<Sharding, Error> {
        Sharding::new(self.partitions, self.shards).map_err(|_| {
            let reason = "has to be at least 1 and at most the partition count";
            let found = format!("{} for {} partitions", self.shards, self.partitions.get());
            Error::Invalid { what: "shard count", found, reason }
        })
    }

    /// Checks all properties.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the first one that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        check_graph_name(&self.name)?;
        let bits = self.hash_bits;
        self.sharding()?;
        if !(1..=64).contains(&bits) {
            let reason = "have to be 1 to 64";
            return Err(Error::Invalid { what: "hash bits", found: bits.to_string(), reason });
        }
        if self.replication_factor == 0 {
            let reason = "has to be at least 1";
            return Err(Error::Invalid { what: "replication factor", found: "0".into(), reason });
        }
        Ok(())
    }
}

/// A task of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Holds replicas.
    Storage,
    /// Is a candidate for the sequencer's lease.
    Sequencer,
}

/// State of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// The node has started and does not answer reads yet.
    Joining,
    /// The node answers reads of its serving replicas.
    Up,
    /// The node answers reads, gets no new replicas, and loses those that it has.
    Draining,
    /// The node is lost or was removed. It may join again.
    Gone,
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Gone => "gone",
        })
    }
}

/// A node's description of itself when it registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Its name.
    pub id: NodeId,
    /// Availability zone: any text that is equal for nodes that fail together.
    pub zone: String,
    /// `host:port` where it answers.
    pub endpoint: String,
    /// Bytes of memory and local disk for replicas.
    pub capacity_bytes: u64,
    /// Its tasks.
    pub roles: BTreeSet<Role>,
}

/// A node in the map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// Availability zone.
    pub zone: String,
    /// `host:port` where it answers.
    pub endpoint: String,
    /// Bytes of memory and local disk for replicas.
    pub capacity_bytes: u64,
    /// Its tasks.
    pub roles: BTreeSet<Role>,
    /// Its state.
    pub state: NodeState,
    /// Number of times that the node registered. A process of an earlier generation no longer speaks for it.
    pub generation: u64,
}

impl Node {
    /// Whether it answers reads.
    #[must_use]
    pub fn answers(&self) -> bool {
        matches!(self.state, NodeState::Up | NodeState::Draining)
    }
}

/// State of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaState {
    /// The node reads a checkpoint.
    Restoring,
    /// The node replays the log.
    CatchingUp,
    /// The replica answers reads.
    Serving,
    /// The replica answers reads and will be dropped.
    Leaving,
}

impl ReplicaState {
    /// Whether it answers reads.
    #[must_use]
    pub fn answers(self) -> bool {
        matches!(self, Self::Serving | Self::Leaving)
    }
}

impl fmt::Display for ReplicaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restoring => "restoring",
            Self::CatchingUp => "catching-up",
            Self::Serving => "serving",
            Self::Leaving => "leaving",
        })
    }
}

/// A copy of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replica {
    /// Its node.
    pub node: NodeId,
    /// Its state.
    pub state: ReplicaState,
}

/// A checkpoint of a partition in the object store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// The partition.
    pub partition: PartitionId,
    /// The version.
    pub version: Version,
    /// Prefix of the paths of its objects.
    pub prefix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_keys() {
        assert_eq!(NodeId::new("i-0123456789abcdef0").unwrap().as_str(), "i-0123456789abcdef0");
        for bad in ["", "a#b", "a b", "ä", &"x".repeat(65)] {
            assert!(matches!(NodeId::new(bad), Err(Error::Invalid { .. })), "{bad}");
        }
    }

    #[test]
    fn names_of_graphs_are_parts_of_paths() {
        check_graph_name("eu.orders").unwrap();
        for bad in ["..", "a/b", "größe"] {
            let error = check_graph_name(bad).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }

    #[test]
    fn a_graph_that_cannot_be_is_refused() {
        let good = Graph {
            name: "g".into(),
            partitions: PartitionCount::ONE,
            shards: 1,
            hash_bits: 64,
            replication_factor: 2,
            gremlin: Default::default(),
            shares_objects: false,
        };
        good.check().unwrap();
        let bad = [
            Graph { name: "a/b".into(), ..good.clone() },
            Graph { name: "..".into(), ..good.clone() },
            Graph { shards: 0, ..good.clone() },
            Graph { shards: 2, ..good.clone() },
            Graph { hash_bits: 65, ..good.clone() },
            Graph { replication_factor: 0, ..good },
        ];
        for graph in &bad {
            assert!(graph.check().is_err(), "{graph:?}");
        }
        let named = bad[3].check().unwrap_err().to_string();
        assert!(named.contains("2 for 1 partitions"), "{named}");
    }
}
