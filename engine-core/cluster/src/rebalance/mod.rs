//! Carries out plans, in steps that the command line and the state machines call.
//!
//! Roles: [`Rebalance`] has the steps; each may be called again. [`Rebalance::acquire`] (`lease.rs`) keeps two
//! processes from working against each other. [`Rebalance::advance`] (`advance.rs`) makes the next change of some moves
//! and reports their stages.
//!
//! Flow: acquire → plan → advance until the moves are done → plan, until nothing is left → verify → release.
//! Nodes restore the replicas that the map gives them and make them serve by themselves, so a move is three changes of
//! the map and waiting.
//!
//! What must never happen: a replica dropped by a decision on an old map (drops are made at the epoch of the map that
//! they were decided on, MAP-2); state between two steps that is not in the map. So any process can continue where
//! another was stopped. The lease saves work; safety does not depend on it.

mod advance;
mod lease;

pub use advance::{Advanced, Stage};
pub use lease::{Acquired, REBALANCER, takeover_wait};

use crate::{
    Change, Error, FleetState, Goal, MapStore, Node, NodeId, NodeState, PartitionMap, Plan, ReplicaState,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The steps of a rebalance of one graph.
#[derive(Clone, Debug)]
pub struct Rebalance {
    pub(crate) store: Arc<dyn MapStore>,
    pub(crate) graph: String,
}

/// How many partitions of a graph have enough replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Number of partitions.
    pub partitions: usize,
    /// Partitions with at least as many answering replicas as they should have.
    pub whole: usize,
    /// Partitions without an answering replica.
    pub dark: usize,
    /// Answering replicas.
    pub replicas: usize,
}

impl Rebalance {
    /// The steps for a graph.
    pub fn new(store: Arc<dyn MapStore>, graph: &str) -> Self {
        Self { store, graph: graph.into() }
    }

    /// Reads the fleet as it is.
    ///
    /// # Errors
    /// The same as [`MapStore::load`].
    pub fn fleet(&self) -> Result<FleetState, Error> {
        let map = self.store.load(&self.graph, None)?;
        Ok(FleetState::of(&map, &self.store.heartbeats(&self.graph)?))
    }

    /// Plans the moves to a goal. Replicas that were to be dropped and should stay serve again.
    ///
    /// # Errors
    /// The same as [`MapStore::load`] and [`MapStore::change`].
    pub fn plan(&self, goal: Goal) -> Result<Plan, Error> {
        let plan = self.fleet()?.plan(goal);
        let stays = |(partition, node): &(_, NodeId)| Change::SetReplica {
            partition: *partition,
            node: node.clone(),
            state: ReplicaState::Serving,
        };
        let changes: Vec<Change> = plan.stay.iter().map(stays).collect();
        crate::change_all(&*self.store, &self.graph, &changes)?;
        Ok(plan)
    }

    /// Counts the partitions that have enough replicas now.
    ///
    /// # Errors
    /// The same as [`MapStore::load`].
    pub fn verify(&self) -> Result<Coverage, Error> {
        let map = self.store.load(&self.graph, None)?;
        let wanted = usize::from(map.graph().replication_factor);
        let mut found = Coverage::default();
        for (partition, _) in map.partitions() {
            let answers = map.serving(partition).len();
            found.partitions += 1;
            found.replicas += answers;
            found.whole += usize::from(answers >= wanted);
            found.dark += usize::from(answers == 0);
        }
        Ok(found)
    }

    /// Drains a node: it answers reads until other nodes have its replicas. Only a node that is up is drained; returns
    /// the state of the node.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such node; otherwise as [`MapStore::change`].
    pub fn drain(&self, node: &NodeId) -> Result<NodeState, Error> {
        self.set(node, NodeState::Draining, |state| state == NodeState::Up)
    }

    /// Ends the draining of a node, which then holds replicas again; returns its state.
    ///
    /// # Errors
    /// The same as [`Rebalance::drain`].
    pub fn keep(&self, node: &NodeId) -> Result<NodeState, Error> {
        self.set(node, NodeState::Up, |state| state == NodeState::Draining)
    }

    fn set(&self, node: &NodeId, to: NodeState, from: fn(NodeState) -> bool) -> Result<NodeState, Error> {
        let map = self.store.load(&self.graph, None)?;
        let state = self.state(&map, node)?;
        if !from(state) {
            return Ok(state);
        }
        self.store.change(&self.graph, None, &[Change::SetNode { node: node.clone(), state: to }])?;
        Ok(to)
    }

    fn state(&self, map: &PartitionMap, node: &NodeId) -> Result<NodeState, Error> {
        let found = map.node(node).map(|node| node.state);
        found.ok_or_else(|| Error::NotFound { what: format!("node {node} in graph {}", self.graph) })
    }

    /// The state of a node.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such node; otherwise as [`MapStore::load`].
    pub fn node_state(&self, node: &NodeId) -> Result<NodeState, Error> {
        self.state(&*self.store.load(&self.graph, None)?, node)
    }

    /// Reads the generations and heartbeats of all nodes that are not gone.
    ///
    /// # Errors
    /// The same as [`MapStore::load`].
    pub fn heartbeat_snapshot(&self) -> Result<HeartbeatSnapshot, Error> {
        let map = self.store.load(&self.graph, None)?;
        let beats = self.store.heartbeats(&self.graph)?;
        let sign = |(id, node): (&NodeId, &Node)| {
            let said = beats.get(id).map(|beat| (beat.generation, beat.counter));
            (node.state != NodeState::Gone).then(|| (id.clone(), (node.generation, said)))
        };
        Ok(HeartbeatSnapshot(map.nodes().filter_map(sign).collect()))
    }

    /// Marks nodes as gone that have sent no heartbeat since `before`, and returns them. The
    /// caller has waited in between for longer than a live node ever pauses. A live node that
    /// is marked nevertheless joins again by itself. If all nodes are silent, none is marked:
    /// the map probably accepts no heartbeats, and without any node no reads would be answered.
    ///
    /// The leader's maintenance does this too, for nodes that are up. This also finds a node that died while it
    /// started, and all of them where there is no sequencer.
    ///
    /// # Errors
    /// The same as [`MapStore::load`] and [`MapStore::change`].
    pub fn mark_lost(&self, before: &HeartbeatSnapshot) -> Result<Vec<NodeId>, Error> {
        let now = self.heartbeat_snapshot()?;
        let is_silent = |(id, sign): &(&NodeId, &Sign)| before.0.get(*id) == Some(*sign);
        let lost: Vec<NodeId> = now.0.iter().filter(is_silent).map(|(id, _)| id.clone()).collect();
        if lost.len() == now.0.len() {
            if !lost.is_empty() {
                tracing::warn!(nodes = lost.len(), "no node sends heartbeats: none is marked as gone");
            }
            return Ok(Vec::new());
        }
        let gone = |node: &NodeId| Change::SetNode { node: node.clone(), state: NodeState::Gone };
        crate::change_all(&*self.store, &self.graph, &lost.iter().map(gone).collect::<Vec<_>>())?;
        Ok(lost)
    }
}

/// Generation of a node, and generation and counter of its last heartbeat.
type Sign = (u64, Option<(u64, u64)>);

/// Generations and heartbeats at one moment, of the nodes that are not gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatSnapshot(BTreeMap<NodeId, Sign>);

#[cfg(test)]
mod tests;
