//! Changes of the map, and the rules that allow or refuse them. The functions are pure: a
//! backend reads the items that a change touches, asks here for the new items, and writes
//! them on condition that none has changed meanwhile.
//!
//! A change names the wanted state. If an item already has that state, nothing changes,
//! so a caller that missed an answer may repeat the request.

use crate::model::{Graph, Node, NodeId, NodeState, Registration, Replica, ReplicaState};
use crate::{Error, PartitionMap};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegraph_types::{PartitionCount, PartitionId};

/// Maximum number of items that one call may touch. DynamoDB takes 100 in a transaction, and the graph's item is one of
/// them.
pub const MOST_ITEMS: usize = 99;

/// A change of the map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A node starts, for the first time or again. It becomes joining, with the next generation; no read goes to it.
    Register(Registration),
    /// A node changes its state.
    SetNode {
        /// The node.
        node: NodeId,
        /// The new state.
        state: NodeState,
    },
    /// A node gets a replica of a partition, and starts to restore it.
    AddReplica {
        /// The partition.
        partition: PartitionId,
        /// The node.
        node: NodeId,
    },
    /// A replica changes its state: forward from restoring to catching up, serving and leaving; back from leaving to
    /// serving; and from any state to restoring, for a node that lost its data.
    SetReplica {
        /// The partition.
        partition: PartitionId,
        /// The node.
        node: NodeId,
        /// The new state.
        state: ReplicaState,
    },
    /// A node loses its replica of a partition. Refused for the last replica that answers reads (MAP-2), unless no
    /// reader asks the partition: the graph is being split into it, or was split from it.
    DropReplica {
        /// The partition.
        partition: PartitionId,
        /// The node.
        node: NodeId,
    },
    /// The graph is being split: nodes may get replicas of the next partitions. Refused while another split runs.
    BeginSplit {
        /// Number of the next partitions.
        into: PartitionCount,
    },
    /// Readers ask the next partitions from now on. Make it at the epoch at which all of them are complete (MAP-2).
    CompleteSplit {
        /// Number of the next partitions.
        into: PartitionCount,
    },
    /// The next partitions are given up. Make it at the epoch at which nodes hold none of them.
    AbortSplit,
    /// The partitions before the split are given up. Make it at the epoch at which nodes hold none of them.
    EndSplit,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(node) => write!(f, "register node {}", node.id),
            Self::SetNode { node, state } => write!(f, "make node {node} {state}"),
            Self::AddReplica { partition, node } => write!(f, "add partition {partition} to node {node}"),
            Self::SetReplica { partition, node, state } => {
                write!(f, "make partition {partition} on node {node} {state}")
            }
            Self::DropReplica { partition, node } => write!(f, "drop partition {partition} from node {node}"),
            Self::BeginSplit { into } => write!(f, "begin to split into {} partitions", into.get()),
            Self::CompleteSplit { into } => write!(f, "complete the split into {} partitions", into.get()),
            Self::AbortSplit => f.write_str("abort the split"),
            Self::EndSplit => f.write_str("end the split"),
        }
    }
}

/// The items that changes touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scope {
    pub graph: Graph,
    pub nodes: BTreeMap<NodeId, Option<Node>>,
    pub partitions: BTreeMap<PartitionId, Vec<Replica>>,
}

/// The names of items that changes touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Touched {
    pub nodes: BTreeSet<NodeId>,
    pub partitions: BTreeSet<PartitionId>,
}

impl Touched {
    /// The items that changes touch; an error if they are more than one call takes.
    pub fn by(changes: &[Change]) -> Result<Self, Error> {
        let mut touched = Self::default();
        for change in changes {
            match change {
                Change::Register(Registration { id: node, .. }) | Change::SetNode { node, .. } => {
                    touched.nodes.insert(node.clone());
                }
                Change::AddReplica { partition, node } => {
                    touched.nodes.insert(node.clone());
                    touched.partitions.insert(*partition);
                }
                Change::SetReplica { partition, .. } | Change::DropReplica { partition, .. } => {
                    touched.partitions.insert(*partition);
                }
                // Of the graph's own item, which every change writes.
                Change::BeginSplit { .. }
                | Change::CompleteSplit { .. }
                | Change::AbortSplit
                | Change::EndSplit => {}
            }
        }
        let found = touched.nodes.len() + touched.partitions.len();
        if found > MOST_ITEMS {
            return Err(Error::TooMany { what: "items of the map", found, limit: MOST_ITEMS });
        }
        Ok(touched)
    }

    /// Takes these items from a map.
    pub fn of(&self, map: &PartitionMap) -> Scope {
        Scope {
            graph: map.graph().clone(),
            nodes: self.nodes.iter().map(|id| (id.clone(), map.node(id).cloned())).collect(),
            partitions: self.partitions.iter().map(|p| (*p, map.replicas(*p).to_vec())).collect(),
        }
    }
}

/// The error for a partition that a graph does not have.
pub(crate) fn no_partition(graph: &Graph, partition: PartitionId) -> Error {
    Error::NotFound { what: format!("partition {partition}, there are {}", graph.partitions.get()) }
}

impl Scope {
    /// Applies changes in order.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        changes.iter().try_for_each(|change| self.apply_one(change))
    }

    fn apply_one(&mut self, change: &Change) -> Result<(), Error> {
        let refused = |reason: String| Error::Refused { change: change.to_string(), reason };
        match change {
            Change::Register(new) => {
                let slot = self.nodes.entry(new.id.clone()).or_default();
                let generation = slot.as_ref().map_or(0, |node| node.generation) + 1;
                *slot = Some(Node {
                    zone: new.zone.clone(),
                    endpoint: new.endpoint.clone(),
                    capacity_bytes: new.capacity_bytes,
                    roles: new.roles.clone(),
                    state: NodeState::Joining,
                    generation,
                });
            }
            Change::SetNode { node, state } => {
                let found = self.node(node)?;
                let allowed = match (found.state, *state) {
                    (from, to) if from == to => true,
                    (NodeState::Gone, _) | (_, NodeState::Joining) => false,
                    (NodeState::Joining, NodeState::Draining) => false,
                    _ => true,
                };
                if !allowed {
                    return Err(refused(format!("it is {}", found.state)));
                }
                found.state = *state;
            }
            Change::AddReplica { partition, node } => {
                let state = self.node(node)?.state;
                let replicas = self.replicas(*partition)?;
                if replicas.iter().any(|replica| replica.node == *node) {
                    return Ok(());
                }
                if !matches!(state, NodeState::Joining | NodeState::Up) {
                    return Err(refused(format!("the node is {state}")));
                }
                let at = replicas.partition_point(|replica| replica.node < *node);
                replicas.insert(at, Replica { node: node.clone(), state: ReplicaState::Restoring });
            }
            Change::SetReplica { partition, node, state } => {
                let replicas = self.replicas(*partition)?;
                let Some(replica) = replicas.iter_mut().find(|replica| replica.node == *node) else {
                    let what = format!("replica of partition {partition} on node {node}");
                    return Err(Error::NotFound { what });
                };
                use ReplicaState::{CatchingUp, Leaving, Restoring, Serving};
                let allowed = match (replica.state, *state) {
                    (from, to) if from == to => true,
                    (_, Restoring) => true,
                    (Restoring, CatchingUp) | (CatchingUp, Serving) => true,
                    (Serving, Leaving) | (Leaving, Serving) => true,
                    _ => false,
                };
                if !allowed {
                    return Err(refused(format!("it is {}", replica.state)));
                }
                replica.state = *state;
            }
            Change::DropReplica { partition, node } => {
                let is_read = self.graph.layout().number(*partition).is_some();
                let replicas = self.replicas(*partition)?;
                let Some(at) = replicas.iter().position(|replica| replica.node == *node) else {
                    return Ok(());
                };
                let others = || replicas.iter().filter(|replica| replica.node != *node);
                // MAP-2.
                let answers = replicas[at].state.answers();
                let is_last =
                    others().next().is_none() || answers && !others().any(|other| other.state.answers());
                if is_read && is_last {
                    return Err(refused("no other replica answers reads".into()));
                }
                replicas.remove(at);
            }
            Change::BeginSplit { .. }
            | Change::CompleteSplit { .. }
            | Change::AbortSplit
            | Change::EndSplit => self.split(change)?,
        }
        Ok(())
    }

    fn split(&mut self, change: &Change) -> Result<(), Error> {
        let refused = |reason: String| Err(Error::Refused { change: change.to_string(), reason });
        let graph = &mut self.graph;
        let now = graph.partitions;
        match *change {
            Change::BeginSplit { into } if graph.splits.into == Some(into) => {}
            Change::BeginSplit { into } => {
                if let Some(other) = graph.splits.into {
                    return refused(format!("the graph is being split into {} partitions", other.get()));
                }
                if let Some(former) = graph.splits.from {
                    return refused(format!(
                        "nodes still hold some of the {} partitions before the last split",
                        former.get()
                    ));
                }
                if into.get() <= now.get() {
                    return refused(format!("the graph has {} partitions", now.get()));
                }
                graph.splits.into = Some(into);
            }
            Change::CompleteSplit { into } if now == into => {}
            Change::CompleteSplit { into } => {
                if graph.splits.into != Some(into) {
                    return refused("no such split runs".into());
                }
                graph.splits.created_with = Some(graph.created_with());
                graph.splits.from = Some(now);
                (graph.partitions, graph.splits.into) = (into, None);
            }
            Change::AbortSplit => graph.splits.into = None,
            _ => graph.splits.from = None,
        }
        Ok(())
    }

    fn node(&mut self, id: &NodeId) -> Result<&mut Node, Error> {
        let found = self.nodes.get_mut(id).and_then(Option::as_mut);
        found.ok_or_else(|| Error::NotFound { what: format!("node {id}") })
    }

    fn replicas(&mut self, partition: PartitionId) -> Result<&mut Vec<Replica>, Error> {
        if !self.graph.has(partition) {
            return Err(no_partition(&self.graph, partition));
        }
        Ok(self.partitions.entry(partition).or_default())
    }
}
