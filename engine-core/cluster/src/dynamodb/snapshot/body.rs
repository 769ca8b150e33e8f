//! The body of a snapshot: JSON in a gzip stream, whose checksum shows damage. `docs/formats/map-snapshot.md` describes
//! it. Partitions are columns, and replicas name their nodes by position, which makes the body a tenth of the items.

use super::items;
use crate::map::Mark;
use crate::model::{Graph, Incarnation, Node, NodeId, Replica, ReplicaState};
use crate::{Error, PartitionMap};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use tidegraph_types::{Epoch, PartitionId};

/// Most bytes of JSON, so that a damaged body cannot take all memory.
const MOST_TEXT: u64 = 64 << 20;

type Reason = Box<dyn std::error::Error + Send + Sync>;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    graph: Graph,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<Incarnation>,
    epoch: Epoch,
    changes: u64,
    nodes: Vec<NodeEntry>,
    partitions: Partitions,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NodeEntry {
    id: String,
    changed_at: Epoch,
    changes: u64,
    node: Node,
}

/// All columns have the same length.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Partitions {
    numbers: Vec<PartitionId>,
    changed_at: Vec<Epoch>,
    changes: Vec<u64>,
    /// Positions of the replicas' nodes in [`Body::nodes`].
    nodes: Vec<Vec<usize>>,
    states: Vec<Vec<ReplicaState>>,
}

impl Body {
    fn of(map: &PartitionMap) -> Result<Self, Reason> {
        let mut positions = BTreeMap::new();
        let mut nodes = Vec::new();
        for (id, node, mark) in map.marked_nodes() {
            positions.insert(id, nodes.len());
            nodes.push(NodeEntry {
                id: id.to_string(),
                changed_at: mark.changed_at,
                changes: mark.changes,
                node: node.clone(),
            });
        }
        let mut partitions = Partitions::default();
        for (partition, replicas, mark) in map.marked_partitions() {
            partitions.numbers.push(partition);
            partitions.changed_at.push(mark.changed_at);
            partitions.changes.push(mark.changes);
            let position = |replica: &Replica| {
                positions
                    .get(&replica.node)
                    .copied()
                    .ok_or_else(|| format!("there is no node {}", replica.node))
            };
            partitions.nodes.push(replicas.iter().map(position).collect::<Result<_, _>>()?);
            partitions.states.push(replicas.iter().map(|replica| replica.state).collect());
        }
        Ok(Self {
            graph: map.graph().clone(),
            incarnation: map.incarnation().cloned(),
            epoch: map.epoch(),
            changes: map.changes(),
            nodes,
            partitions,
        })
    }

    fn into_map(self) -> Result<PartitionMap, Reason> {
        let Partitions { numbers, changed_at, changes, nodes, states } = self.partitions;
        let lengths = [changed_at.len(), changes.len(), nodes.len(), states.len()];
        if lengths.iter().any(|length| *length != numbers.len()) {
            return Err(format!("{} partitions have columns of {lengths:?}", numbers.len()).into());
        }
        self.graph.check()?;
        let map = PartitionMap::new(self.graph, self.epoch, self.changes);
        let mut map = map.of_incarnation(self.incarnation);
        let mut ids = Vec::with_capacity(self.nodes.len());
        for NodeEntry { id, changed_at, changes, node } in self.nodes {
            let id = NodeId::new(&id)?;
            ids.push(id.clone());
            map.put_node(id, node, Mark { changed_at, changes });
        }
        let marks =
            changed_at.into_iter().zip(changes).map(|(changed_at, changes)| Mark { changed_at, changes });
        for (((partition, mark), nodes), states) in numbers.into_iter().zip(marks).zip(nodes).zip(states) {
            if nodes.len() != states.len() {
                return Err(format!("partition {partition} has other states than replicas").into());
            }
            let replica = |(position, state): (usize, ReplicaState)| {
                let node =
                    ids.get(position).cloned().ok_or_else(|| format!("there is no node {position}"))?;
                Ok(Replica { node, state })
            };
            let replicas: Result<Vec<Replica>, String> = nodes.into_iter().zip(states).map(replica).collect();
            if !map.put_partition(partition, replicas?, mark) {
                return Err(format!("the graph has no partition {partition}").into());
            }
        }
        match map.is_torn() {
            None => Ok(map),
            Some(torn) => Err(torn.into()),
        }
    }
}

/// Encodes a map.
pub(super) fn encode(map: &PartitionMap) -> Result<Vec<u8>, Error> {
    let write = || -> Result<Vec<u8>, Reason> {
        let mut compressor = GzEncoder::new(Vec::new(), Compression::best());
        compressor.write_all(&serde_json::to_vec(&Body::of(map)?)?)?;
        Ok(compressor.finish()?)
    };
    write().map_err(|reason| items::damaged(&map.graph().name, items::SNAPSHOT, reason))
}

/// Decodes the map of a graph at an epoch.
pub(super) fn decode(graph: &str, epoch: Epoch, bytes: &[u8]) -> Result<PartitionMap, Reason> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).take(MOST_TEXT).read_to_end(&mut text)?;
    if text.len() as u64 == MOST_TEXT {
        return Err(format!("it has {MOST_TEXT} bytes or more").into());
    }
    let body: Body = serde_json::from_slice(&text)?;
    if body.graph.name != graph || body.epoch != epoch {
        return Err(format!("it is of graph {} at epoch {}, not {epoch}", body.graph.name, body.epoch).into());
    }
    body.into_map()
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
