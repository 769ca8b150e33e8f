//! The steps of an upgrade, which the state machine calls.

use super::{Lineage, Release, Upgrade, UpgradeState, release_of};
use crate::{Error, FleetState, Goal, MapStore, Node, NodeId, NodeState, PartitionMap, SEQUENCER};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A machine of the group, as the group describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The node on it.
    pub node: NodeId,
    /// Whether the group counts it as in service: not while it starts, and not once it is being terminated.
    pub in_service: bool,
    /// Whether it is being terminated.
    pub is_leaving: bool,
}

/// What the state machine does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Wait, for the given reason.
    Wait,
    /// Let the group have one machine more.
    Launch,
    /// Drain the node.
    Drain,
    /// End the node's machine, which holds nothing.
    End,
    /// Nothing: all machines run the release.
    Done,
}

/// The next step of an upgrade.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Next {
    /// What to do.
    pub action: Action,
    /// The node to drain or to end.
    pub node: Option<NodeId>,
    /// Number of machines that the group should have from now on, if one is launched.
    pub capacity: u32,
    /// Whether the machine that ends now is the first one that is replaced. Only one machine runs the release then.
    pub is_canary: bool,
    /// Whether the group has one machine fewer after the end of this one. Otherwise it starts another one, in the zone
    /// that has the fewest: that of the machine that ended.
    pub is_last: bool,
    /// Machines that run the release.
    pub upgraded: usize,
    /// Machines that do not.
    pub left: usize,
    /// Why the step waits, or what it does, for people.
    pub reason: String,
}

/// Who has an upgrade after an attempt to begin it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Began {
    /// The caller.
    Ours(Upgrade),
    /// Another holder, which may be dead.
    Theirs(Upgrade),
}

/// The steps of upgrades of a fleet. The item of one graph excludes a second upgrade; the fleet may serve others too.
#[derive(Clone, Debug)]
pub struct Upgrades {
    store: Arc<dyn MapStore>,
    graph: String,
    /// The other graphs of the fleet.
    others: Vec<String>,
    lineage: Lineage,
}

impl Upgrades {
    /// The steps for a graph, by a process of this release.
    pub fn new(store: Arc<dyn MapStore>, graph: &str) -> Self {
        Self::of(store, graph, Lineage::THIS)
    }

    pub(super) fn of(store: Arc<dyn MapStore>, graph: &str, lineage: Lineage) -> Self {
        Self { store, graph: graph.into(), others: Vec::new(), lineage }
    }

    /// Lets the same nodes serve other graphs. A graph that has no map is passed over: it is not made yet, or it is being
    /// dropped.
    #[must_use]
    pub fn with(self, others: &[String]) -> Self {
        Self { others: others.to_vec(), ..self }
    }

    /// Returns the last upgrade, if there was one.
    ///
    /// # Errors
    /// The same as [`MapStore::upgrade`].
    pub fn last(&self) -> Result<Option<Upgrade>, Error> {
        self.store.upgrade(&self.graph)
    }

    /// Whether an execution works on an upgrade.
    ///
    /// # Errors
    /// The same as [`MapStore::upgrade`].
    pub fn is_running(&self) -> Result<bool, Error> {
        Ok(self.last()?.is_some_and(|upgrade| upgrade.state == UpgradeState::Running))
    }

    /// Begins or resumes the upgrade to `release`. `desired` is the number of machines that the group should have now.
    /// `over` names a holder that is known to be dead.
    ///
    /// # Errors
    /// [`Error::Refused`] for another release than that of the deployed steps, a downgrade, a release that was skipped, and
    /// an unfinished split of any graph; otherwise as [`MapStore::write_upgrade`].
    pub fn begin(
        &self,
        holder: &str,
        release: Release,
        desired: u32,
        over: Option<&str>,
    ) -> Result<Began, Error> {
        let deployed = self.lineage.release;
        if release != deployed {
            let reason = format!(
                "the deployed programs are of release {deployed}: deploy those of {release}, or upgrade to {deployed}"
            );
            return Err(Error::Refused { change: format!("upgrade to {release}"), reason });
        }
        let found = self.last()?;
        if let Some(other) = found.as_ref().filter(|found| found.state == UpgradeState::Running)
            && other.holder != holder
            && over != Some(other.holder.as_str())
        {
            return Ok(Began::Theirs(other.clone()));
        }
        // All graphs first, so that a refusal leaves no upgrade of some of them behind.
        self.check()?;
        let mut others = Vec::new();
        for other in self.each_other() {
            others.extend(if_there_is_one(other.check())?.map(|()| other));
        }
        let ours = self.write(found.as_ref(), holder, desired)?;
        for other in others {
            // Who has the upgrade of the first graph has those of all.
            let before = if_there_is_one(other.last())?.flatten();
            if_there_is_one(other.write(before.as_ref(), holder, desired))?;
        }
        Ok(Began::Ours(ours))
    }

    fn refused(&self, reason: String) -> Error {
        Error::Refused { change: format!("upgrade to {}", self.lineage.release), reason }
    }

    /// Returns the steps for each of the other graphs alone.
    fn each_other(&self) -> impl Iterator<Item = Self> + '_ {
        let of = |graph: &String| Self { graph: graph.clone(), others: Vec::new(), ..self.clone() };
        self.others.iter().map(of)
    }

    /// Refuses an upgrade that the state of the graph does not allow.
    fn check(&self) -> Result<(), Error> {
        let floor = self.last()?.and_then(|found| found.floor);
        if floor.is_some() {
            self.lineage.check_from(floor).map_err(|reason| self.refused(reason))?;
        }
        let (map, releases) = (self.store.load(&self.graph, None)?, self.store.releases(&self.graph)?);
        if map.graph().splits.into.is_some() || map.graph().splits.from.is_some() {
            let graph = &self.graph;
            let reason = format!(
                "a split of the graph {graph} is unfinished: finish it with `tidegraph fleet split --graph {graph}` first"
            );
            return Err(self.refused(reason));
        }
        for (id, _) in map.nodes().filter(|(_, node)| node.state != NodeState::Gone) {
            let theirs = release_of(&map, &releases, id);
            self.lineage.check_from(theirs).map_err(|reason| self.refused(format!("node {id}: {reason}")))?;
        }
        Ok(())
    }

    /// Writes the upgrade to the deployed release in place of the last one.
    fn write(&self, found: Option<&Upgrade>, holder: &str, desired: u32) -> Result<Upgrade, Error> {
        // One that was stopped may have left the group with a machine more.
        let launched = found.is_some_and(|one| one.launched && desired > one.capacity);
        let next = Upgrade {
            serial: found.map_or(1, |found| found.serial + 1),
            release: self.lineage.release,
            state: UpgradeState::Running,
            holder: holder.into(),
            capacity: desired - u32::from(launched),
            launched,
            reason: String::new(),
            floor: found.and_then(|found| found.floor),
        };
        self.store.write_upgrade(&self.graph, found, &next)?;
        Ok(next)
    }

    /// Decides what to do next, given the machines of the group and the number that it should have now.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the caller no longer has the upgrade; otherwise as [`MapStore::load`].
    pub fn next(&self, holder: &str, machines: &[Machine], desired: u32) -> Result<Next, Error> {
        let upgrade = self.held(holder)?;
        let first = self.view_of_graph()?;
        let mut others = Vec::new();
        for other in self.each_other() {
            others.extend(if_there_is_one(other.view_of_graph())?);
        }
        let map = &first.map;
        let releases = self.store.releases(&self.graph)?;
        let is_new = |id: &NodeId| release_of(map, &releases, id) == Some(upgrade.release);
        let serving: Vec<(&NodeId, &Node)> = machines
            .iter()
            .filter(|machine| machine.in_service)
            .filter_map(|machine| Some((&machine.node, map.node(&machine.node)?)))
            .collect();
        let left = serving.iter().filter(|(id, _)| !is_new(id)).count();
        let view = View {
            upgrade: &upgrade,
            first: &first,
            others: &others,
            machines,
            desired,
            serving: &serving,
            old: serving.iter().filter(|(id, _)| !is_new(id)).copied().collect(),
        };
        let (action, node, reason) = view.decide();
        let is_last = action == Action::End && node.as_ref().is_some_and(|node| view.is_last(node));
        let launched = action == Action::Launch || upgrade.launched && !is_last;
        if launched != upgrade.launched {
            let next = Upgrade { serial: upgrade.serial + 1, launched, ..upgrade.clone() };
            self.store.write_upgrade(&self.graph, Some(&upgrade), &next)?;
        }
        let upgraded = serving.len() - left;
        Ok(Next {
            action,
            node,
            capacity: upgrade.capacity + u32::from(action == Action::Launch),
            is_canary: action == Action::End && upgraded <= 1,
            is_last,
            upgraded,
            left,
            reason,
        })
    }

    /// Ends an upgrade: it is finished, or stopped for a reason.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the caller no longer has the upgrade.
    pub fn end(&self, holder: &str, stopped: Option<&str>) -> Result<Upgrade, Error> {
        self.held(holder)?;
        for other in self.each_other() {
            match if_there_is_one(other.end_one(holder, stopped)) {
                // A graph that was made after the beginning.
                Err(Error::Conflict { .. }) => {}
                ended => drop(ended?),
            }
        }
        self.end_one(holder, stopped)
    }

    fn end_one(&self, holder: &str, stopped: Option<&str>) -> Result<Upgrade, Error> {
        let upgrade = self.held(holder)?;
        let state = if stopped.is_some() { UpgradeState::Stopped } else { UpgradeState::Finished };
        if upgrade.state == state {
            return Ok(upgrade);
        }
        let next = Upgrade {
            serial: upgrade.serial + 1,
            state,
            reason: stopped.unwrap_or_default().into(),
            floor: if stopped.is_some() { upgrade.floor } else { Some(upgrade.release) },
            ..upgrade.clone()
        };
        self.store.write_upgrade(&self.graph, Some(&upgrade), &next)?;
        Ok(next)
    }

    fn view_of_graph(&self) -> Result<OfGraph, Error> {
        let map = self.store.load(&self.graph, None)?;
        let fleet = FleetState::of(&map, &self.store.heartbeats(&self.graph)?);
        let lease = self.store.lease(&self.graph, SEQUENCER)?;
        Ok(OfGraph {
            graph: self.graph.clone(),
            map,
            sequencer: lease.map(|lease| lease.endpoint).unwrap_or_default(),
            missing: missing(&fleet),
        })
    }

    fn held(&self, holder: &str) -> Result<Upgrade, Error> {
        let conflict = |found: String| Error::Conflict { item: "the upgrade".into(), found };
        match self.last()? {
            Some(upgrade) if upgrade.holder == holder => Ok(upgrade),
            Some(upgrade) => Err(conflict(format!("{} has it", upgrade.holder))),
            None => Err(conflict("none was begun".into())),
        }
    }
}

/// Returns `None` if there is no such graph.
pub(crate) fn if_there_is_one<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(Error::NotFound { .. }) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns why the fleet cannot spare a node now; `None` if each partition has all of its replicas.
pub(crate) fn missing(fleet: &FleetState) -> Option<String> {
    let plan = fleet.plan(Goal::Repair);
    match (plan.moves.len(), plan.coming.len(), plan.short) {
        (0, 0, 0) => None,
        (0, 0, short) => Some(format!("{short} replicas are missing, and there are too few nodes for them")),
        (0, coming, _) => Some(format!("{coming} replicas are on their way")),
        (moves, ..) => Some(format!("{moves} moves are left")),
    }
}

/// What a decision is made from, of one graph.
struct OfGraph {
    graph: String,
    map: Arc<PartitionMap>,
    /// Endpoint of the sequencer; empty if there is none.
    sequencer: String,
    /// Why the graph cannot spare a node now.
    missing: Option<String>,
}

/// What a decision is made from.
struct View<'v> {
    upgrade: &'v Upgrade,
    /// The graph that has the upgrade. Its map tells the releases and zones of nodes.
    first: &'v OfGraph,
    others: &'v [OfGraph],
    machines: &'v [Machine],
    desired: u32,
    /// Nodes on machines that are in service.
    serving: &'v [(&'v NodeId, &'v Node)],
    /// Those of them that do not run the release.
    old: Vec<(&'v NodeId, &'v Node)>,
}

impl View<'_> {
    fn decide(&self) -> (Action, Option<NodeId>, String) {
        let wait = |reason: String| (Action::Wait, None, reason);
        if let Some(leaving) = self.machines.iter().find(|machine| machine.is_leaving) {
            return wait(format!("machine {} is being terminated", leaving.node));
        }
        // A machine that was drained before, by this upgrade or another hand, ends before the next one is touched.
        let draining = || self.serving.iter().filter(|(_, node)| node.state == NodeState::Draining);
        if let Some((id, _)) = draining().find(|(id, _)| !self.holds(id)) {
            let reason = format!("node {id} holds nothing");
            return (Action::End, Some((*id).clone()), reason);
        }
        if let Some((id, _)) = draining().next() {
            return (Action::Drain, Some((*id).clone()), format!("node {id} still holds replicas"));
        }
        if let Some(away) = self.machines.iter().find(|machine| !self.is_up(&machine.node)) {
            return wait(format!("machine {} is not up", away.node));
        }
        let capacity = self.upgrade.capacity as usize;
        let spare = self.serving.len() > capacity;
        if self.old.is_empty() && self.serving.len() == capacity && self.desired as usize <= capacity {
            return (Action::Done, None, "all machines run the release".into());
        }
        if let Some(missing) = self.missing() {
            return wait(missing);
        }
        if spare {
            let Some(node) = self.next_node() else { return wait("there is no node to drain".into()) };
            let reason = format!("a machine more than {capacity} is up: node {node} is replaced");
            return (Action::Drain, Some(node), reason);
        }
        match self.serving.len() == capacity && self.desired as usize <= capacity {
            true => (Action::Launch, None, format!("{} machines are left", self.old.len())),
            false => wait(format!("{} of {} machines are in service", self.serving.len(), self.desired)),
        }
    }

    fn graphs(&self) -> impl Iterator<Item = &OfGraph> {
        std::iter::once(self.first).chain(self.others)
    }

    fn is_up(&self, id: &NodeId) -> bool {
        let is_up = |map: &PartitionMap| map.node(id).is_some_and(|node| node.state == NodeState::Up);
        self.graphs().all(|graph| is_up(&graph.map))
    }

    /// Whether a node has a replica of any graph.
    fn holds(&self, id: &NodeId) -> bool {
        self.graphs().any(|graph| graph.map.held_by(id).next().is_some())
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

    /// Whether the group has a machine too many once `id` is to end: no other one is left to replace, and its zone has
    /// the most machines, so that the zones stay even.
    fn is_last(&self, id: &NodeId) -> bool {
        let zones = self.zones();
        let here = self.first.map.node(id).and_then(|node| zones.get(node.zone.as_str()));
        let others_are_new = self.old.iter().all(|(old, _)| *old == id);
        others_are_new && here == zones.values().max() && self.serving.len() > self.upgrade.capacity as usize
    }

    /// Returns the node to replace. It is in the zone that has the most machines, where the group started the new one,
    /// so that replicas stay in their zone; else in a zone that is upgraded in part. In each zone the sequencer comes
    /// last. If all run the release, one machine is too many.
    fn next_node(&self) -> Option<NodeId> {
        let (zones, mut olds) = (self.zones(), BTreeMap::<&str, usize>::new());
        for (_, node) in &self.old {
            *olds.entry(node.zone.as_str()).or_default() += 1;
        }
        let some = if self.old.is_empty() { self.serving } else { self.old.as_slice() };
        some.iter()
            .min_by_key(|(id, node)| {
                let zone = node.zone.as_str();
                let count = |of: &BTreeMap<&str, usize>| of.get(zone).copied().unwrap_or_default();
                let upgraded = count(&zones).saturating_sub(count(&olds));
                let is_sequencer = self.graphs().any(|graph| graph.sequencer == node.endpoint);
                (Reverse(count(&zones)), Reverse(upgraded), zone, is_sequencer, *id)
            })
            .map(|(id, _)| (*id).clone())
    }
}
