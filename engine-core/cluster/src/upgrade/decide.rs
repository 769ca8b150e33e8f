//! The decision of what an upgrade does next: a pure function of the maps of all graphs, the group and the size that the
//! group has between two replacements.
//!
//! Flow of a decision, the first that applies: end a machine that was drained; go on with nodes that are draining; wait
//! for machines that end or start; start as many machines more as may be replaced at once; drain as many nodes as there
//! are machines more.
//!
//! The nodes of a batch are draining together, so that one plan moves the replicas of all of them, and each ends when it
//! holds nothing. With the ends, the group falls to the size that the next batch needs, and starts the other machines
//! by itself.

use super::steps::{Action, Machine, UpgradeGroup};
use crate::{Node, NodeId, NodeState, PartitionMap};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is done next, and why.
pub(super) struct Decision {
    pub(super) action: Action,
    /// The nodes to drain, or the one to end.
    pub(super) nodes: Vec<NodeId>,
    /// Number of machines that the group should have.
    pub(super) capacity: u32,
    /// Whether the group has one machine fewer afterwards.
    pub(super) is_last: bool,
    pub(super) reason: String,
}

/// What a decision is made from, of one graph.
pub(super) struct OfGraph {
    pub(super) graph: String,
    pub(super) map: Arc<PartitionMap>,
    /// Endpoint of the sequencer; empty if there is none.
    pub(super) sequencer: String,
    /// Why the graph cannot spare a node now.
    pub(super) missing: Option<String>,
}

/// What a decision is made from.
pub(super) struct View<'v> {
    /// Number of machines between two replacements.
    pub(super) capacity: u32,
    /// The graph that has the upgrade. Its map tells the releases and zones of nodes.
    pub(super) first: &'v OfGraph,
    pub(super) others: &'v [OfGraph],
    pub(super) group: UpgradeGroup<'v>,
    /// Nodes on machines that are in service.
    pub(super) serving: &'v [(&'v NodeId, &'v Node)],
    /// Those of them that are to be replaced.
    pub(super) old: Vec<(&'v NodeId, &'v Node)>,
    /// How many of these run the release, and were started from another template than the group's.
    pub(super) outdated: usize,
}

impl View<'_> {
    pub(super) fn decide(&self) -> Decision {
        let draining = || self.serving.iter().filter(|(_, node)| node.state == NodeState::Draining);
        // What was drained before, by this upgrade or another hand, ends before more is touched.
        if let Some(id) = self.next_end(draining().map(|(id, _)| *id)) {
            let reason = format!("node {id} holds nothing");
            let is_last = self.is_last(id);
            return Decision { is_last, ..self.decision(Action::End, vec![id.clone()], reason) };
        }
        let held: Vec<NodeId> = draining().map(|(id, _)| (*id).clone()).collect();
        if !held.is_empty() {
            let (what, verb) = named(&held);
            return self.decision(Action::Drain, held, format!("{what} still {verb} replicas"));
        }
        match self.unsettled() {
            Some(reason) => self.wait(reason),
            None => self.replace(),
        }
    }

    /// Starts machines, or drains nodes, if the fleet can spare some.
    fn replace(&self) -> Decision {
        let (own, desired, in_service) = (self.capacity, self.group.desired, self.serving.len() as u32);
        if self.old.is_empty() && in_service == own && desired <= own {
            let reason = "all machines run the release, with the settings of the deployment";
            return self.decision(Action::Done, vec![], reason.into());
        }
        if let Some(missing) = self.missing() {
            return self.wait(missing);
        }
        // The group could not start all that an earlier execution wanted, and this one wants fewer.
        let enough = (own + self.group.at_once).max(self.group.machines.len() as u32);
        if desired > enough {
            return self.launch(
                enough,
                format!("the group should have {desired} machines, and {enough} are enough"),
            );
        }
        if in_service < desired {
            return self.wait(format!("{in_service} of {desired} machines are in service"));
        }
        let wanted = own + self.more(self.batch());
        if desired < wanted {
            return self.launch(wanted, self.left());
        }
        let nodes = self.next_nodes(in_service.saturating_sub(own).min(self.batch()) as usize);
        match nodes.is_empty() {
            true => self.wait("there is no node to drain".into()),
            false => {
                let reason = match in_service - own {
                    1 => format!("a machine more than {own} is up"),
                    spare => format!("{spare} machines more than {own} are up"),
                };
                let (what, _) = named(&nodes);
                let verb = if nodes.len() == 1 { "is" } else { "are" };
                self.decision(Action::Drain, nodes, format!("{reason}: {what} {verb} replaced"))
            }
        }
    }

    fn decision(&self, action: Action, nodes: Vec<NodeId>, reason: String) -> Decision {
        Decision { action, nodes, capacity: self.capacity, is_last: false, reason }
    }

    fn wait(&self, reason: String) -> Decision {
        self.decision(Action::Wait, vec![], reason)
    }

    fn launch(&self, capacity: u32, reason: String) -> Decision {
        Decision { capacity, ..self.decision(Action::Launch, vec![], reason) }
    }

    /// Names what is left to replace, and why.
    fn left(&self) -> String {
        let left = format!("{} machines are left", self.old.len());
        match self.outdated {
            0 => left,
            some => format!("{left}, {some} of them of this release with another launch template"),
        }
    }

    /// Returns which machine has to end or to come up before the next ones are touched.
    fn unsettled(&self) -> Option<String> {
        let machines = self.group.machines;
        if let Some(leaving) = machines.iter().find(|machine| machine.is_leaving) {
            return Some(format!("machine {} is being terminated", leaving.node));
        }
        let away = machines.iter().find(|machine| !self.is_up(machine));
        away.map(|away| format!("machine {} is not up", away.node))
    }

    /// Whether several machines may be replaced at once, and the canary has to serve before.
    pub(super) fn awaits_canary(&self) -> bool {
        self.group.at_once > 1 && !self.group.has_served
    }

    /// Number of machines that are replaced at once now.
    fn batch(&self) -> u32 {
        if self.awaits_canary() { 1 } else { self.group.at_once }
    }

    /// Number of machines that the group needs beyond its own size, to replace `at_once` of those that are left.
    fn more(&self, at_once: u32) -> u32 {
        let left = self.old.iter().filter(|(_, node)| node.state != NodeState::Draining).count();
        at_once.min(left as u32)
    }

    fn graphs(&self) -> impl Iterator<Item = &OfGraph> {
        std::iter::once(self.first).chain(self.others)
    }

    /// Whether the machine's node is up in all graphs. One that was started before a graph was added does not know it.
    fn is_up(&self, machine: &Machine) -> bool {
        let is_up = |map: &PartitionMap, unknown: bool| {
            map.node(&machine.node).map_or(unknown, |node| node.state == NodeState::Up)
        };
        let is_outdated = self.group.is_outdated(machine);
        is_up(&self.first.map, false) && self.others.iter().all(|graph| is_up(&graph.map, is_outdated))
    }

    /// Whether a node has a replica of any graph.
    fn holds(&self, id: &NodeId) -> bool {
        self.graphs().any(|graph| graph.map.held_by(id).next().is_some())
    }

    fn is_sequencer(&self, node: &Node) -> bool {
        self.graphs().any(|graph| graph.sequencer == node.endpoint)
    }

    /// Returns why a graph cannot spare a node now.
    fn missing(&self) -> Option<String> {
        let of_others = || {
            let named = |of: &OfGraph| Some(format!("graph {}: {}", of.graph, of.missing.as_ref()?));
            self.others.iter().find_map(named)
        };
        self.first.missing.clone().or_else(of_others)
    }

    /// Number of machines in service by zone.
    fn zones(&self) -> BTreeMap<&str, usize> {
        let mut zones = BTreeMap::new();
        for (_, node) in self.serving {
            *zones.entry(node.zone.as_str()).or_default() += 1;
        }
        zones
    }

    /// Returns the draining node whose machine ends next: one that holds nothing, in the zone that has the most machines,
    /// so that the group may fall to the size that it needs. The sequencer comes last: another draining node could become
    /// the sequencer in its place.
    fn next_end<'n>(&self, draining: impl Iterator<Item = &'n NodeId>) -> Option<&'n NodeId> {
        let zones = self.zones();
        draining.filter(|id| !self.holds(id)).min_by_key(|id| {
            let node = self.first.map.node(id);
            let here = node.and_then(|node| zones.get(node.zone.as_str())).copied().unwrap_or_default();
            (node.is_some_and(|node| self.is_sequencer(node)), Reverse(here), *id)
        })
    }

    /// Whether the group has a machine too many once `id` is to end: it has more than the next batch needs, and the zone
    /// of `id` has the most machines, so that the zones stay even.
    fn is_last(&self, id: &NodeId) -> bool {
        let zones = self.zones();
        let here = self.first.map.node(id).and_then(|node| zones.get(node.zone.as_str()));
        self.group.desired > self.capacity + self.more(self.group.at_once) && here == zones.values().max()
    }

    /// Returns up to `count` nodes to replace. Each is in the zone that has the most machines without those before it,
    /// where the group started new ones, so that replicas stay in their zone; else in a zone that is upgraded in part. In
    /// each zone the sequencer comes last. If none is old, there are machines too many.
    fn next_nodes(&self, count: usize) -> Vec<NodeId> {
        let (mut zones, mut olds) = (self.zones(), BTreeMap::<&str, usize>::new());
        for (_, node) in &self.old {
            *olds.entry(node.zone.as_str()).or_default() += 1;
        }
        let mut some = if self.old.is_empty() { self.serving.to_vec() } else { self.old.clone() };
        let mut found = Vec::new();
        while found.len() < count {
            let best = some.iter().enumerate().min_by_key(|(_, (id, node))| {
                let zone = node.zone.as_str();
                let of = |counts: &BTreeMap<&str, usize>| counts.get(zone).copied().unwrap_or_default();
                let upgraded = of(&zones).saturating_sub(of(&olds));
                (Reverse(of(&zones)), Reverse(upgraded), zone, self.is_sequencer(node), *id)
            });
            let Some((at, _)) = best else { break };
            let (id, node) = some.swap_remove(at);
            for counts in [&mut zones, &mut olds] {
                if let Some(count) = counts.get_mut(node.zone.as_str()) {
                    *count = count.saturating_sub(1);
                }
            }
            found.push(id.clone());
        }
        found
    }
}

/// Names nodes, with the verb that they need.
fn named(nodes: &[NodeId]) -> (String, &'static str) {
    let names: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
    match names.as_slice() {
        [one] => (format!("node {one}"), "holds"),
        all => (format!("nodes {}", all.join(", ")), "hold"),
    }
}
