//! Decides whether a fleet gets one node more or one fewer, when its load asks for it.
//!
//! Roles: [`Scaling::next`] decides from the maps of all graphs and the group's machines alone, which of
//! [`ScaleAction`] a state machine carries out. It keeps nothing, so a decision may be asked for again at any time.
//!
//! A node goes in three steps, each decided anew: it is drained, then it holds nothing, then exactly its machine ends.
//!
//! What must never happen: a node taken away while a partition lacks a replica or the node still holds one, or while
//! replicas move, or an upgrade or a split runs; fewer nodes than replicas of a partition, or fewer zones than they need
//! (SCALE-1).

use crate::upgrade::{Machine, Upgrades, if_there_is_one, missing};
use crate::{
    Error, FleetState, Goal, Heartbeats, MapStore, Node, NodeId, NodeState, PartitionMap, SEQUENCER,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the load asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// One node more.
    More,
    /// One node fewer.
    Fewer,
}

/// What the state machine does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleAction {
    /// Nothing, for the given reason.
    Nothing,
    /// Let the group have one machine more.
    Launch,
    /// Drain the node.
    Drain,
    /// End the node's machine, which holds nothing, and let the group have one machine fewer.
    End,
}

/// A decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScaleStep {
    /// What to do.
    pub action: ScaleAction,
    /// The node to drain or to end.
    pub node: Option<NodeId>,
    /// Number of machines that the group should have afterwards.
    pub capacity: u32,
    /// Why, for people.
    pub reason: String,
}

/// Bounds of a fleet, and its group as it is.
#[derive(Clone, Copy, Debug)]
pub struct ScaleGroup<'g> {
    /// Least number of machines.
    pub least: u32,
    /// Largest number of machines.
    pub most: u32,
    /// Number of machines that the group should have now.
    pub desired: u32,
    /// The machines that it has.
    pub machines: &'g [Machine],
}

/// Decisions about a fleet, which may serve several graphs.
#[derive(Clone, Debug)]
pub struct Scaling {
    store: Arc<dyn MapStore>,
    /// The first one has the upgrades of the fleet.
    graphs: Vec<String>,
}

impl Scaling {
    /// Decisions for a fleet that serves a graph and, perhaps, others. A graph that has no map is passed over: it is not
    /// made yet, or it is being dropped.
    pub fn new(store: Arc<dyn MapStore>, graph: &str, others: &[String]) -> Self {
        let graphs = std::iter::once(graph.to_owned()).chain(others.iter().cloned()).collect();
        Self { store, graphs }
    }

    /// Decides what to do next.
    ///
    /// # Errors
    /// The same as [`MapStore::load`].
    pub fn next(&self, wanted: Wanted, group: &ScaleGroup<'_>) -> Result<ScaleStep, Error> {
        let (action, node, reason) = self.decide(wanted, group)?;
        let capacity = match action {
            ScaleAction::Launch => group.desired + 1,
            ScaleAction::End => group.desired - 1,
            ScaleAction::Nothing | ScaleAction::Drain => group.desired,
        };
        Ok(ScaleStep { action, node, capacity, reason })
    }

    fn decide(&self, wanted: Wanted, group: &ScaleGroup<'_>) -> Result<Decision, Error> {
        let mut graphs = Vec::new();
        for graph in &self.graphs {
            let is_upgraded = || Upgrades::new(self.store.clone(), graph).is_running();
            if if_there_is_one(is_upgraded())?.unwrap_or(false) {
                return Ok(nothing("an upgrade runs".into()));
            }
            graphs.extend(if_there_is_one(self.view_of(graph))?);
        }
        let Some(first) = graphs.first() else {
            return Ok(nothing("no graph exists yet".into()));
        };
        let view = View { group, first, graphs: &graphs };
        Ok(match view.busy() {
            Some(reason) => nothing(reason),
            None => match wanted {
                Wanted::More => view.more(),
                Wanted::Fewer => view.fewer(),
            },
        })
    }

    fn view_of(&self, graph: &str) -> Result<OfGraph, Error> {
        let map = self.store.load(graph, None)?;
        let beats = self.store.heartbeats(graph)?;
        let sequencer = self.store.lease(graph, SEQUENCER)?.map(|lease| lease.endpoint);
        let fleet = FleetState::of(&map, &beats);
        Ok(OfGraph { graph: graph.into(), map, fleet, beats, sequencer: sequencer.unwrap_or_default() })
    }
}

type Decision = (ScaleAction, Option<NodeId>, String);

fn nothing(reason: String) -> Decision {
    (ScaleAction::Nothing, None, reason)
}

/// What a decision is made from, of one graph.
struct OfGraph {
    graph: String,
    map: Arc<PartitionMap>,
    fleet: FleetState,
    beats: Heartbeats,
    /// Endpoint of the sequencer; empty if there is none.
    sequencer: String,
}

impl OfGraph {
    fn is_in(&self, id: &NodeId) -> bool {
        self.map.node(id).is_some_and(|node| matches!(node.state, NodeState::Up | NodeState::Draining))
    }

    fn is_draining(&self, id: &NodeId) -> bool {
        self.map.node(id).is_some_and(|node| node.state == NodeState::Draining)
    }

    /// Returns which replicas are missing; `None` if none is.
    fn missing(&self) -> Option<String> {
        Some(format!("graph {}: {}", self.graph, missing(&self.fleet)?))
    }

    /// Returns which replicas are missing or move; `None` if none does.
    fn moving(&self) -> Option<String> {
        self.missing().or_else(|| {
            let (graph, moves) = (&self.graph, self.fleet.plan(Goal::Balance).moves.len());
            (moves > 0)
                .then(|| format!("graph {graph}: {moves} replicas move to the nodes whose share they are"))
        })
    }
}

/// What a decision is made from.
struct View<'v> {
    group: &'v ScaleGroup<'v>,
    /// The graph whose map tells the zones of nodes.
    first: &'v OfGraph,
    /// All graphs, the first one included.
    graphs: &'v [OfGraph],
}

impl View<'_> {
    /// Returns what has to end before the fleet changes its size; `None` if nothing is under way.
    fn busy(&self) -> Option<String> {
        let machines = self.group.machines;
        let is_split = |of: &&OfGraph| {
            let splits = &of.map.graph().splits;
            splits.into.is_some() || splits.from.is_some()
        };
        if let Some(OfGraph { graph, .. }) = self.graphs.iter().find(is_split) {
            return Some(format!("a split of the graph {graph} is unfinished"));
        }
        if let Some(leaving) = machines.iter().find(|machine| machine.is_leaving) {
            return Some(format!("machine {} is being terminated", leaving.node));
        }
        let is_in = |id: &NodeId| self.graphs.iter().all(|graph| graph.is_in(id));
        if let Some(away) = machines.iter().find(|machine| !machine.in_service || !is_in(&machine.node)) {
            return Some(format!("machine {} is not up", away.node));
        }
        if machines.len() != self.group.desired as usize {
            return Some(format!(
                "the group has {} machines, and wants {}",
                machines.len(),
                self.group.desired
            ));
        }
        None
    }

    fn more(&self) -> Decision {
        if self.group.desired >= self.group.most {
            return nothing(format!(
                "the group has {} nodes, and nodes.most is {}",
                self.group.desired, self.group.most
            ));
        }
        match self.moving() {
            Some(reason) => nothing(reason),
            None => (ScaleAction::Launch, None, format!("{} nodes are busy", self.group.desired)),
        }
    }

    fn fewer(&self) -> Decision {
        let (desired, least) = (self.group.desired, self.least());
        if desired <= least {
            return nothing(format!("the group has {desired} nodes, and at least {least} stay"));
        }
        let is_draining = |id: &&NodeId| self.graphs.iter().any(|graph| graph.is_draining(id));
        let draining = self.serving().map(|(id, _)| id).find(is_draining);
        if let Some(id) = draining.filter(|id| self.held(id) > 0) {
            return (ScaleAction::Drain, Some(id.clone()), format!("node {id} still holds replicas"));
        }
        if let Some(id) = draining {
            // Replicas that still move to their shares do not need this node.
            return match self.graphs.iter().find_map(OfGraph::missing) {
                Some(reason) => nothing(reason),
                None => (ScaleAction::End, Some(id.clone()), format!("node {id} holds nothing")),
            };
        }
        if let Some(reason) = self.moving() {
            return nothing(reason);
        }
        match self.candidate() {
            Ok(id) => {
                let reason = format!("{desired} nodes are idle: node {id} leaves");
                (ScaleAction::Drain, Some(id), reason)
            }
            Err(reason) => nothing(reason),
        }
    }

    fn moving(&self) -> Option<String> {
        self.graphs.iter().find_map(OfGraph::moving)
    }

    /// Replicas of a partition, of the graph that has the most.
    fn replication(&self) -> u16 {
        self.graphs.iter().map(|graph| graph.fleet.replication).max().unwrap_or_default()
    }

    fn least(&self) -> u32 {
        self.group.least.max(u32::from(self.replication()))
    }

    /// Number of replicas of all graphs on a node.
    fn held(&self, id: &NodeId) -> usize {
        self.graphs.iter().map(|graph| graph.map.held_by(id).count()).sum()
    }

    /// Nodes on machines of the group.
    fn serving(&self) -> impl Iterator<Item = (&NodeId, &Node)> {
        self.group.machines.iter().filter_map(|one| Some((&one.node, self.first.map.node(&one.node)?)))
    }

    /// Returns the node to take away: in the zone that has the most machines, and there the one with the fewest replicas;
    /// a sequencer comes last.
    fn candidate(&self) -> Result<NodeId, String> {
        let mut zones = BTreeMap::<&str, usize>::new();
        for (_, node) in self.serving() {
            *zones.entry(node.zone.as_str()).or_default() += 1;
        }
        let here = |node: &Node| zones.get(node.zone.as_str()).copied().unwrap_or_default();
        let (id, node) = self
            .serving()
            .min_by_key(|(id, node)| {
                let is_sequencer = self.graphs.iter().any(|graph| graph.sequencer == node.endpoint);
                (Reverse(here(node)), is_sequencer, self.held(id), *id)
            })
            .ok_or_else(|| "there is no node".to_owned())?;
        if here(node) <= 1 && zones.len() <= usize::from(self.replication()) {
            return Err(format!(
                "node {id} is the last one of zone {}, where replicas have to be",
                node.zone
            ));
        }
        for graph in self.graphs {
            let short = graph.fleet.planned(Goal::Repair, Some(id)).short;
            if short > 0 {
                let graph = &graph.graph;
                return Err(format!(
                    "graph {graph}: without node {id}, no node can take {short} of its replicas"
                ));
            }
            self.has_room(graph, id)?;
        }
        Ok(id.clone())
    }

    /// Checks that the memory of the other nodes takes what all nodes hold of a graph, if their capacities are known.
    fn has_room(&self, of: &OfGraph, leaving: &NodeId) -> Result<(), String> {
        let machines = self.group.machines.iter().map(|machine| &machine.node);
        let used: u64 = machines.clone().filter_map(|id| of.beats.get(id)).map(|beat| beat.used_bytes).sum();
        let others: Vec<u64> = machines
            .filter(|id| *id != leaving)
            .filter_map(|id| of.map.node(id))
            .map(|node| node.capacity_bytes)
            .collect();
        let room: u64 = others.iter().sum();
        if used > room && others.iter().all(|bytes| *bytes > 0) {
            let graph = &of.graph;
            return Err(format!(
                "graph {graph}: without node {leaving}, {used} bytes of replicas have memory of {room} bytes"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
