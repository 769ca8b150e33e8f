//! Decides whether a fleet gets one node more or one fewer, when its load asks for it.
//!
//! Roles: [`Scaling::next`] decides from the map and the group's machines alone, which of [`ScaleAction`] a state machine
//! carries out. It keeps nothing, so a decision may be asked for again at any time.
//!
//! A node goes in three steps, each decided anew: it is drained, then it holds nothing, then exactly its machine ends.
//!
//! What must never happen: a node taken away while a partition lacks a replica or the node still holds one, or while
//! replicas move or an upgrade runs; fewer nodes than replicas of a partition, or fewer zones than they need (SCALE-1).

use crate::upgrade::{Machine, Upgrades, missing};
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

/// Decisions about one graph's fleet.
#[derive(Clone, Debug)]
pub struct Scaling {
    store: Arc<dyn MapStore>,
    graph: String,
}

impl Scaling {
    /// Decisions for a graph.
    pub fn new(store: Arc<dyn MapStore>, graph: &str) -> Self {
        Self { store, graph: graph.into() }
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
        if Upgrades::new(self.store.clone(), &self.graph).is_running()? {
            return Ok(nothing("an upgrade runs".into()));
        }
        let map = self.store.load(&self.graph, None)?;
        let beats = self.store.heartbeats(&self.graph)?;
        let sequencer = self.store.lease(&self.graph, SEQUENCER)?.map(|lease| lease.endpoint);
        let view = View {
            group,
            map: &map,
            fleet: FleetState::of(&map, &beats),
            beats: &beats,
            sequencer: sequencer.unwrap_or_default(),
        };
        Ok(match view.busy() {
            Some(reason) => nothing(reason),
            None => match wanted {
                Wanted::More => view.more(),
                Wanted::Fewer => view.fewer(),
            },
        })
    }
}

type Decision = (ScaleAction, Option<NodeId>, String);

fn nothing(reason: String) -> Decision {
    (ScaleAction::Nothing, None, reason)
}

/// What a decision is made from.
struct View<'v> {
    group: &'v ScaleGroup<'v>,
    map: &'v PartitionMap,
    fleet: FleetState,
    beats: &'v Heartbeats,
    /// Endpoint of the sequencer.
    sequencer: String,
}

impl View<'_> {
    /// Returns what has to end before the fleet changes its size; `None` if nothing is under way.
    fn busy(&self) -> Option<String> {
        let machines = self.group.machines;
        if let Some(leaving) = machines.iter().find(|machine| machine.is_leaving) {
            return Some(format!("machine {} is being terminated", leaving.node));
        }
        let is_in = |id: &NodeId| {
            self.map.node(id).is_some_and(|node| matches!(node.state, NodeState::Up | NodeState::Draining))
        };
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
        let draining = self.serving().find(|(_, node)| node.state == NodeState::Draining).map(|(id, _)| id);
        if let Some(id) = draining.filter(|id| self.map.held_by(id).next().is_some()) {
            return (ScaleAction::Drain, Some(id.clone()), format!("node {id} still holds replicas"));
        }
        if let Some(reason) = self.moving() {
            return nothing(reason);
        }
        if let Some(id) = draining {
            return (ScaleAction::End, Some(id.clone()), format!("node {id} holds nothing"));
        }
        match self.candidate() {
            Ok(id) => {
                let reason = format!("{desired} nodes are idle: node {id} leaves");
                (ScaleAction::Drain, Some(id), reason)
            }
            Err(reason) => nothing(reason),
        }
    }

    /// Returns which replicas are missing or move; `None` if none does.
    fn moving(&self) -> Option<String> {
        missing(&self.fleet).or_else(|| {
            let moves = self.fleet.plan(Goal::Balance).moves.len();
            (moves > 0).then(|| format!("{moves} replicas move to the nodes whose share they are"))
        })
    }

    fn least(&self) -> u32 {
        self.group.least.max(u32::from(self.fleet.replication))
    }

    /// Nodes on machines of the group.
    fn serving(&self) -> impl Iterator<Item = (&NodeId, &Node)> {
        self.group.machines.iter().filter_map(|one| Some((&one.node, self.map.node(&one.node)?)))
    }

    /// Returns the node to take away: in the zone that has the most machines, and there the one with the fewest replicas;
    /// the sequencer comes last.
    fn candidate(&self) -> Result<NodeId, String> {
        let mut zones = BTreeMap::<&str, usize>::new();
        for (_, node) in self.serving() {
            *zones.entry(node.zone.as_str()).or_default() += 1;
        }
        let here = |node: &Node| zones.get(node.zone.as_str()).copied().unwrap_or_default();
        let (id, node) = self
            .serving()
            .min_by_key(|(id, node)| {
                let is_sequencer = node.endpoint == self.sequencer;
                (Reverse(here(node)), is_sequencer, self.map.held_by(id).count(), *id)
            })
            .ok_or_else(|| "there is no node".to_owned())?;
        if here(node) <= 1 && zones.len() <= usize::from(self.fleet.replication) {
            return Err(format!(
                "node {id} is the last one of zone {}, where replicas have to be",
                node.zone
            ));
        }
        let short = self.fleet.planned(Goal::Repair, Some(id)).short;
        if short > 0 {
            return Err(format!("without node {id}, no node can take {short} of its replicas"));
        }
        self.has_room(id)?;
        Ok(id.clone())
    }

    /// Checks that the memory of the other nodes takes what all nodes hold, if their capacities are known.
    fn has_room(&self, leaving: &NodeId) -> Result<(), String> {
        let used: u64 =
            self.serving().filter_map(|(id, _)| self.beats.get(id)).map(|beat| beat.used_bytes).sum();
        let others = || self.serving().filter(|(id, _)| *id != leaving).map(|(_, node)| node.capacity_bytes);
        let room: u64 = others().sum();
        if used > room && others().all(|bytes| bytes > 0) {
            return Err(format!(
                "without node {leaving}, {used} bytes of replicas have memory of {room} bytes"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
