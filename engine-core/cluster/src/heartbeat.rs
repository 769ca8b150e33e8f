//! Heartbeats of nodes: that a node is alive, and the version of each of its replicas. They do not change the map.

use crate::{Node, NodeId, PartitionMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tidegraph_types::{PartitionId, Version};

/// A heartbeat of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Heartbeat {
    /// Number of times that the node had registered. A heartbeat of an earlier generation is refused.
    pub generation: u64,
    /// Grows with every heartbeat. A watcher compares counters over a time of its own clock; clocks are never compared.
    pub counter: u64,
    /// Whether the node's disk is full. Then it gets no replicas.
    pub disk_full: bool,
    /// Bytes that the node's replicas take.
    pub used_bytes: u64,
    /// The applied version of each of its replicas.
    pub applied: AppliedVersions,
    /// Replicas that answer reads and cannot apply their next record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<StuckReplica>,
}

/// A replica that cannot apply its next record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StuckReplica {
    /// Its partition.
    pub partition: PartitionId,
    /// The version of the record.
    pub version: Version,
    /// Why the record cannot be applied.
    pub reason: String,
}

/// Heartbeats of all nodes of a graph.
pub type Heartbeats = BTreeMap<NodeId, Heartbeat>;

/// Returns the record that no replica of a partition can apply, if each node that answers reads of the partition
/// reports a record that it cannot apply. If they report several, it is the last one: the others can be applied.
#[must_use]
pub fn record_that_none_applies<'b>(
    map: &PartitionMap,
    beats: &'b Heartbeats,
    partition: PartitionId,
) -> Option<&'b StuckReplica> {
    let mut last: Option<&StuckReplica> = None;
    for (id, node) in map.serving(partition) {
        let beat = current_beat(beats, id, node)?;
        let stuck = beat.stuck.iter().find(|stuck| stuck.partition == partition)?;
        last = last.filter(|last| last.version >= stuck.version).or(Some(stuck));
    }
    last
}

/// Whether a node other than `without` answers reads of a partition and has applied a version, by its last heartbeat.
#[must_use]
pub fn is_applied_elsewhere(
    map: &PartitionMap,
    beats: &Heartbeats,
    partition: PartitionId,
    version: Version,
    without: Option<&NodeId>,
) -> bool {
    map.serving(partition).into_iter().filter(|(id, _)| Some(*id) != without).any(|(id, node)| {
        let applied = current_beat(beats, id, node).and_then(|beat| beat.applied.0.get(&partition));
        applied.is_some_and(|applied| *applied >= version)
    })
}

/// Returns the heartbeat of a node, unless an earlier process of the node sent it.
fn current_beat<'b>(beats: &'b Heartbeats, id: &NodeId, node: &Node) -> Option<&'b Heartbeat> {
    beats.get(id).filter(|beat| beat.generation == node.generation)
}

impl Heartbeat {
    /// Whether this heartbeat is newer than `other`.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.generation, self.counter) > (other.generation, other.counter)
    }
}

/// Applied versions by partition. The text groups replicas by version: `4711:0-15,32;4709:16`. A node follows the log
/// with one reader for all its replicas, so there are few versions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppliedVersions(pub BTreeMap<PartitionId, Version>);

impl AppliedVersions {
    /// Formats the text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut by_version: BTreeMap<Version, Vec<u16>> = BTreeMap::new();
        for (partition, version) in &self.0 {
            by_version.entry(*version).or_default().push(partition.0);
        }
        let mut text = String::new();
        for (version, partitions) in by_version.iter().rev() {
            let separator = if text.is_empty() { "" } else { ";" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{version}:");
            let runs = partitions.chunk_by(|a, b| a + 1 == *b);
            for (index, run) in runs.enumerate() {
                let separator = if index == 0 { "" } else { "," };
                let (first, last) = (run[0], run[run.len() - 1]);
                let _ = match first == last {
                    true => write!(text, "{separator}{first}"),
                    false => write!(text, "{separator}{first}-{last}"),
                };
            }
        }
        text
    }

    /// Parses the text.
    ///
    /// # Errors
    /// What is wrong with it: a group that is not `VERSION:FIRST-LAST,…`, or a partition that occurs twice.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut applied = BTreeMap::new();
        for group in text.split(';').filter(|group| !group.is_empty()) {
            let bad = || format!("{group:?} is not VERSION:FIRST-LAST,…");
            let (version, runs) = group.split_once(':').ok_or_else(bad)?;
            let version = Version(version.parse().map_err(|_| bad())?);
            for run in runs.split(',') {
                let (first, last) = run.split_once('-').unwrap_or((run, run));
                let first: u16 = first.parse().map_err(|_| bad())?;
                let last: u16 = last.parse().map_err(|_| bad())?;
                if first > last {
                    return Err(bad());
                }
                for partition in first..=last {
                    if applied.insert(PartitionId(partition), version).is_some() {
                        return Err(format!("partition {partition} occurs twice"));
                    }
                }
            }
        }
        Ok(Self(applied))
    }
}

impl Serialize for AppliedVersions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for AppliedVersions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn applied(pairs: &[(u16, u64)]) -> AppliedVersions {
        AppliedVersions(pairs.iter().map(|(p, v)| (PartitionId(*p), Version(*v))).collect())
    }

    #[test]
    fn replicas_of_one_version_stand_together() {
        let text = applied(&[(0, 7), (1, 7), (2, 7), (4, 7), (3, 6)]).to_text();
        assert_eq!(text, "7:0-2,4;6:3");
        assert_eq!(applied(&[]).to_text(), "");
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["7", "7:", "x:1", "7:2-1", "7:1,1", "7:1;6:1", "7:70000", "7:1-2-3", "-1:2"] {
            assert!(AppliedVersions::from_text(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn text_says_all(pairs in proptest::collection::btree_map(0_u16..200, 0_u64..4, 0..150)) {
            let applied = AppliedVersions(pairs.into_iter().map(|(p, v)| (PartitionId(p), Version(v))).collect());
            prop_assert_eq!(AppliedVersions::from_text(&applied.to_text()).unwrap(), applied);
        }
    }
}
