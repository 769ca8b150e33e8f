//! Changes of the map, and the rules that allow or refuse them. The functions are pure: a
//! backend reads the items that a change touches, asks here for the new items, and writes
//! them on condition that none has changed meanwhile.
//!
//! A change names the wanted state. If an item already has that state, nothing changes,
//! so a caller that missed an answer may repeat the request.

use crate::model::{Node, NodeId, NodeState, Registration, Replica, ReplicaState};
use crate::{Error, PartitionMap};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegraph_types::PartitionId;

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
    /// A node loses its replica of a partition. Refused for the last replica that answers reads (MAP-2).
    DropReplica {
        /// The partition.
        partition: PartitionId,
        /// The node.
        node: NodeId,
    },
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
        }
    }
}

/// The items that changes touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scope {
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
            nodes: self.nodes.iter().map(|id| (id.clone(), map.node(id).cloned())).collect(),
            partitions: self.partitions.iter().map(|p| (*p, map.replicas(*p).to_vec())).collect(),
        }
    }
}

impl Scope {
    /// Applies changes in order. `partitions` is the number of partitions of the graph.
    pub fn apply(&mut self, changes: &[Change], partitions: u16) -> Result<(), Error> {
        changes.iter().try_for_each(|change| self.apply_one(change, partitions))
    }

    fn apply_one(&mut self, change: &Change, partitions: u16) -> Result<(), Error> {
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
                let replicas = self.replicas(*partition, partitions)?;
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
                let replicas = self.replicas(*partition, partitions)?;
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
                let replicas = self.replicas(*partition, partitions)?;
                let Some(at) = replicas.iter().position(|replica| replica.node == *node) else {
                    return Ok(());
                };
                let others = || replicas.iter().filter(|replica| replica.node != *node);
                // MAP-2.
                let answers = replicas[at].state.answers();
                if others().next().is_none() || answers && !others().any(|other| other.state.answers()) {
                    return Err(refused("no other replica answers reads".into()));
                }
                replicas.remove(at);
            }
        }
        Ok(())
    }

    fn node(&mut self, id: &NodeId) -> Result<&mut Node, Error> {
        let found = self.nodes.get_mut(id).and_then(Option::as_mut);
        found.ok_or_else(|| Error::NotFound { what: format!("node {id}") })
    }

    fn replicas(&mut self, partition: PartitionId, count: u16) -> Result<&mut Vec<Replica>, Error> {
        if partition.0 >= count {
            return Err(Error::NotFound { what: format!("partition {partition}, there are {count}") });
        }
        Ok(self.partitions.entry(partition).or_default())
    }
}
