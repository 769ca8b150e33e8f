//! Carrying plans out: the steps that the command line and the state machines are made of.
//!
//! Roles: [`Rebalance`] has the steps, each a call that may be made again; [`Rebalance::acquire`] (`lease.rs`) sees to it that two do not work
//! against each other; [`Rebalance::advance`] (`advance.rs`) does what is next of some moves and says how they stand.
//!
//! Flow: acquire → plan → advance, again and again, until the moves are done → plan, until there is nothing left → verify → release. Nodes restore
//! what the map gives them and make it serve by themselves, so that a move is three changes of the map and waiting.
//!
//! What must never happen: a replica dropped by a look at a map that was changed since (drops are made at the epoch of the map that they
//! were decided on); anything kept between two steps that the map does not say. So whoever is stopped anywhere is followed by anybody, and the lease is
//! there to save work, not to be safe.

mod advance;
mod lease;

pub use advance::{Advanced, Stage};
pub use lease::{Acquired, REBALANCER, patience};

use crate::{
    Change, Error, FleetState, Goal, MapStore, Node, NodeId, NodeState, PartitionMap, Plan, ReplicaState,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The steps for one graph.
#[derive(Clone, Debug)]
pub struct Rebalance {
    store: Arc<dyn MapStore>,
    graph: String,
}

/// How whole a graph is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wholeness {
    /// Partitions.
    pub partitions: usize,
    /// Those that have as many replicas that answer as they should.
    pub whole: usize,
    /// Those of which nothing answers.
    pub dark: usize,
    /// Replicas that answer.
    pub replicas: usize,
}

impl Rebalance {
    /// For a graph.
    pub fn new(store: Arc<dyn MapStore>, graph: &str) -> Self {
        Self { store, graph: graph.into() }
    }

    /// The fleet as it is.
    pub fn fleet(&self) -> Result<FleetState, Error> {
        let map = self.store.load(&self.graph, None)?;
        Ok(FleetState::of(&map, &self.store.beats(&self.graph)?))
    }

    /// Plans. What was to be dropped and should stay serves again.
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

    /// How whole the graph is now.
    pub fn verify(&self) -> Result<Wholeness, Error> {
        let map = self.store.load(&self.graph, None)?;
        let wanted = usize::from(map.graph().replication_factor);
        let mut found = Wholeness::default();
        for (partition, _) in map.partitions() {
            let answers = map.serving(partition).len();
            found.partitions += 1;
            found.replicas += answers;
            found.whole += usize::from(answers >= wanted);
            found.dark += usize::from(answers == 0);
        }
        Ok(found)
    }

    /// A node is to lose what it holds: it answers reads until others have it. Nothing happens to one that is lost; one that starts has to be
    /// up first.
    pub fn drain(&self, node: &NodeId) -> Result<NodeState, Error> {
        self.set(node, NodeState::Draining, |state| state == NodeState::Up)
    }

    /// A node that was to be emptied holds replicas again.
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

    /// How a node is.
    pub fn node_state(&self, node: &NodeId) -> Result<NodeState, Error> {
        self.state(&*self.store.load(&self.graph, None)?, node)
    }

    /// What nodes say of themselves, and how often they registered.
    pub fn signs(&self) -> Result<Signs, Error> {
        let map = self.store.load(&self.graph, None)?;
        let beats = self.store.beats(&self.graph)?;
        let sign = |(id, node): (&NodeId, &Node)| {
            let said = beats.get(id).map(|beat| (beat.generation, beat.counter));
            (node.state != NodeState::Gone).then(|| (id.clone(), (node.generation, said)))
        };
        Ok(Signs(map.nodes().filter_map(sign).collect()))
    }

    /// Takes nodes for lost that gave no sign of life since `before`; answers which. The caller waited meanwhile, longer than a node that is
    /// there ever pauses. One that is there all the same joins again by itself. If all are silent, none is lost: rather the map does not take what they
    /// say, and with every node lost nobody would answer reads.
    ///
    /// The leader's maintenance does so too, for nodes that are up. This finds the others as well: one that died while it started, and all of them
    /// where nobody is the sequencer.
    pub fn take_for_lost(&self, before: &Signs) -> Result<Vec<NodeId>, Error> {
        let now = self.signs()?;
        let is_silent = |(id, sign): &(&NodeId, &Sign)| before.0.get(*id) == Some(*sign);
        let lost: Vec<NodeId> = now.0.iter().filter(is_silent).map(|(id, _)| id.clone()).collect();
        if lost.len() == now.0.len() {
            if !lost.is_empty() {
                tracing::warn!(nodes = lost.len(), "no node gives a sign of life: none is taken for lost");
            }
            return Ok(Vec::new());
        }
        let gone = |node: &NodeId| Change::SetNode { node: node.clone(), state: NodeState::Gone };
        crate::change_all(&*self.store, &self.graph, &lost.iter().map(gone).collect::<Vec<_>>())?;
        Ok(lost)
    }
}

/// How often a node registered, and its last sign of life.
type Sign = (u64, Option<(u64, u64)>);

/// Signs of life as they were at a moment, of the nodes that are not lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signs(BTreeMap<NodeId, Sign>);

#[cfg(test)]
mod tests;
