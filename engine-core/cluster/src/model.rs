//! What the map says: graph, nodes, replicas, checkpoints.
//!
//! The names of the fields are those of the items in DynamoDB (`docs/partition-map.md`); a field that is not known is
//! refused, since it may change what the others mean.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use tidegraph_types::{PartitionCount, PartitionId, Sharding, Str, Version};

/// Most characters in the name of a graph or a node.
const MOST_NAME_CHARS: usize = 64;

/// Refuses what could not stand in a key: names are made of letters, digits, `.`, `_` and `-`.
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
    /// Refuses what could not stand in a key.
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

/// What is fixed when a graph is made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Graph {
    /// Its name, one in the deployment.
    pub name: String,
    /// How many partitions it has.
    pub partitions: PartitionCount,
    /// How many shards its log has.
    pub shards: u16,
    /// How many bits of the hash of an id count: 64 but in tests.
    pub hash_bits: u32,
    /// How many replicas each partition should have.
    pub replication_factor: u16,
}

impl Graph {
    /// Which shard of the log is about which partitions.
    pub fn sharding(&self) -> Result<Sharding, Error> {
        Sharding::new(self.partitions, self.shards).map_err(|_| {
            let reason = "has to be at least 1 and at most the partition count";
            let found = format!("{} for {} partitions", self.shards, self.partitions.get());
            Error::Invalid { what: "shard count", found, reason }
        })
    }

    /// Refuses what cannot be a graph.
    pub fn check(&self) -> Result<(), Error> {
        check_name("graph", &self.name)?;
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

/// What a node may be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Holds replicas.
    Storage,
    /// Takes the sequencer's lease when it is free.
    Sequencer,
}

/// Where a node is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// It started, and does not answer reads yet.
    Joining,
    /// It answers reads of the replicas that serve.
    Up,
    /// It answers reads, gets no new replicas, and is to lose those that it has.
    Draining,
    /// It is lost or was taken away. It may join again.
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

/// A node as it says it is when it registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Its name.
    pub id: NodeId,
    /// Availability zone; any text that is equal for nodes that fail together.
    pub zone: String,
    /// `host:port` where it answers.
    pub endpoint: String,
    /// Bytes of memory and local disk that it has for replicas.
    pub capacity_bytes: u64,
    /// What it may be asked to do.
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
    /// Bytes of memory and local disk that it has for replicas.
    pub capacity_bytes: u64,
    /// What it may be asked to do.
    pub roles: BTreeSet<Role>,
    /// Where it is in its life.
    pub state: NodeState,
    /// How often it registered. A process of an earlier time may not speak for it any more.
    pub generation: u64,
}

impl Node {
    /// Whether it answers reads.
    #[must_use]
    pub fn answers(&self) -> bool {
        matches!(self.state, NodeState::Up | NodeState::Draining)
    }
}

/// Where a replica is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaState {
    /// The node reads a checkpoint.
    Restoring,
    /// The node replays the log.
    CatchingUp,
    /// It answers reads.
    Serving,
    /// It answers reads and is to be dropped.
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
    /// Where it is.
    pub node: NodeId,
    /// Where it is in its life.
    pub state: ReplicaState,
}

/// An image of a partition in the object store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Of which partition.
    pub partition: PartitionId,
    /// At which version.
    pub version: Version,
    /// What its objects' paths begin with.
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
    fn a_graph_that_cannot_be_is_refused() {
        let good = Graph {
            name: "g".into(),
            partitions: PartitionCount::ONE,
            shards: 1,
            hash_bits: 64,
            replication_factor: 2,
        };
        good.check().unwrap();
        let bad = [
            Graph { name: "a/b".into(), ..good.clone() },
            Graph { shards: 0, ..good.clone() },
            Graph { shards: 2, ..good.clone() },
            Graph { hash_bits: 65, ..good.clone() },
            Graph { replication_factor: 0, ..good },
        ];
        for graph in &bad {
            assert!(graph.check().is_err(), "{graph:?}");
        }
        let named = bad[2].check().unwrap_err().to_string();
        assert!(named.contains("2 for 1 partitions"), "{named}");
    }
}
