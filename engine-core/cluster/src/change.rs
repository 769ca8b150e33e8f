//! Changes of the map, and which of them it allows. Pure: every backend reads what a change touches, asks here, and
//! writes what came out under the condition that nothing of it was changed meanwhile.
//!
//! A change says how things should be. What is so already is no change, so that whoever lost an answer asks again.

use crate::model::{Node, NodeId, NodeState, Registration, Replica, ReplicaState};
use crate::{Error, PartitionMap};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegraph_types::PartitionId;

/// How many items one call may touch: DynamoDB takes 100 in a transaction, and the graph's is one of them.
pub const MOST_ITEMS: usize = 99;

/// A change of the map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A node starts, for the first time or again. It is joining then, and of the next generation; no read goes to it.
    Register(Registration),
    /// A node gets to another state.
    SetNode {
        /// Which node.
        node: NodeId,
        /// Its next state.
        state: NodeState,
    },
    /// A node is to hold a partition: it begins to restore it.
    AddReplica {
        /// Which partition.
        partition: PartitionId,
        /// On which node.
        node: NodeId,
    },
    /// A replica gets to another state: forward from restoring over catching up to serving and leaving, back from
    /// leaving to serving, and to restoring from everywhere, for a node that lost what it had.
    SetReplica {
        /// Of which partition.
        partition: PartitionId,
        /// On which node.
        node: NodeId,
        /// Its next state.
        state: ReplicaState,
    },
    /// A node is no longer to hold a partition. Refused for the last replica that answers reads.
    DropReplica {
        /// Which partition.
        partition: PartitionId,
        /// On which node.
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

/// The items that some changes touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scope {
    pub nodes: BTreeMap<NodeId, Option<Node>>,
    pub partitions: BTreeMap<PartitionId, Vec<Replica>>,
}

/// Names of items.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Touched {
    pub nodes: BTreeSet<NodeId>,
    pub partitions: BTreeSet<PartitionId>,
}

impl Touched {
    /// What changes have to look at; an error if that is more than one call takes.
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

    /// Those items of a map.
    pub fn of(&self, map: &PartitionMap) -> Scope {
        Scope {
            nodes: self.nodes.iter().map(|id| (id.clone(), map.node(id).cloned())).collect(),
            partitions: self.partitions.iter().map(|p| (*p, map.replicas(*p).to_vec())).collect(),
        }
    }
}

impl Scope {
    /// Carries changes out in order. `partitions` is how many the graph has.
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
