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

    /// A map with partition 0 on serving nodes of generation 1, and their heartbeats: the applied version of each, and
    /// whether it is stuck at the next one.
    fn fleet(nodes: &[(u64, bool)]) -> (std::sync::Arc<PartitionMap>, Heartbeats) {
        use crate::{Change, Graph, MapStore, MemoryMap, NodeState, Registration, ReplicaState, Role};
        let (store, partition) = (MemoryMap::default(), PartitionId(0));
        let partitions = tidegraph_types::PartitionCount::new(1).unwrap();
        let graph = Graph {
            name: "g".into(),
            partitions,
            shards: 1,
            replication_factor: 2,
            hash_bits: 64,
            gremlin: Default::default(),
            splits: Default::default(),
            shares_objects: false,
        };
        store.create_graph(&graph).unwrap();
        let mut beats = Heartbeats::new();
        for (number, (version, is_stuck)) in nodes.iter().enumerate() {
            let id = NodeId::new(&format!("n{number}")).unwrap();
            let (endpoint, zone, roles) = (format!("10.0.0.{number}:1"), "z".into(), [Role::Storage].into());
            let node = Registration { id: id.clone(), zone, endpoint, capacity_bytes: 0, roles };
            let replica = |state| Change::SetReplica { partition, node: id.clone(), state };
            let changes = [
                Change::Register(node),
                Change::SetNode { node: id.clone(), state: NodeState::Up },
                Change::AddReplica { partition, node: id.clone() },
                replica(ReplicaState::CatchingUp),
                replica(ReplicaState::Serving),
            ];
            changes.into_iter().for_each(|change| {
                store.change("g", None, &[change]).unwrap();
            });
            let stuck = StuckReplica { partition, version: Version(version + 1), reason: "?".into() };
            let beat = Heartbeat {
                generation: 1,
                counter: 1,
                disk_full: false,
                used_bytes: 0,
                applied: applied(&[(0, *version)]),
                stuck: is_stuck.then_some(stuck).into_iter().collect(),
            };
            beats.insert(id, beat);
        }
        (store.load("g", None).unwrap(), beats)
    }

    #[test]
    fn a_record_is_one_that_none_applies_if_all_serving_nodes_report_it() {
        let found = |nodes: &[(u64, bool)]| {
            let (map, beats) = fleet(nodes);
            record_that_none_applies(&map, &beats, PartitionId(0)).map(|stuck| stuck.version.0)
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(9, true)]), Some(10));
        assert_eq!(found(&[(9, true), (9, true)]), Some(10));
        assert_eq!(found(&[(9, true), (9, false)]), None);
        // The second replica has applied the record of the first.
        assert_eq!(found(&[(9, true), (11, true)]), Some(12));
        // The heartbeat of an earlier process says nothing.
        let (map, mut beats) = fleet(&[(9, true)]);
        beats.values_mut().for_each(|beat| beat.generation = 0);
        assert_eq!(record_that_none_applies(&map, &beats, PartitionId(0)), None);
    }

    #[test]
    fn a_version_is_applied_elsewhere_if_another_serving_node_reports_it() {
        let (map, beats) = fleet(&[(9, true), (10, false)]);
        let is_applied = |version, without: Option<&str>| {
            let without = without.map(|id| NodeId::new(id).unwrap());
            is_applied_elsewhere(&map, &beats, PartitionId(0), Version(version), without.as_ref())
        };
        assert!(is_applied(10, None) && is_applied(10, Some("n0")));
        assert!(!is_applied(11, None) && !is_applied(10, Some("n1")));
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
