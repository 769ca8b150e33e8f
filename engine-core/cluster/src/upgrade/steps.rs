//! The steps of an upgrade, which the state machine calls.

use super::decide::{Decision, OfGraph, View};
use super::{Lineage, Release, Upgrade, UpgradeState, check_begin, release_of};
use crate::{
    Change, Error, FleetState, Goal, MapStore, Node, NodeId, NodeState, PartitionMap, SEQUENCER, change_all,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of machines that an upgrade replaces at once. A plan of moves has a lot for each of them
/// (`infra/lib/state-machines/moves.ts`).
pub const MOST_AT_ONCE: u32 = 16;

/// A machine of the group, as the group describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The node on it.
    pub node: NodeId,
    /// Whether the group counts it as in service: not while it starts, and not once it is being terminated.
    pub in_service: bool,
    /// Whether it is being terminated.
    pub is_leaving: bool,
    /// The template that it was started from; `None` if the group does not say it.
    pub template: Option<MachineTemplate>,
}

/// A version of a launch template, which has the image, the type and the settings that a machine starts with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineTemplate {
    /// Id of the launch template.
    pub id: String,
    /// Number of the version, as text.
    pub version: String,
}

/// What the state machine does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Wait, for the given reason.
    Wait,
    /// Let the group have as many machines as [`Next::capacity`] says.
    Launch,
    /// Move the replicas of the node, and of all others that are marked as draining.
    Drain,
    /// End the node's machine, which holds nothing.
    End,
    /// Nothing: all machines run the release, with the settings of the group's template.
    Done,
}

/// The number of machines of a group when an upgrade begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSize {
    /// Number of machines that it should have now.
    pub desired: u32,
    /// Least number that it may have; 0 if unknown.
    pub least: u32,
}

/// The group as it is, and how many of its machines may be replaced at once.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeGroup<'g> {
    /// The machines that it has.
    pub machines: &'g [Machine],
    /// Number of machines that it should have now.
    pub desired: u32,
    /// Maximum number of machines that are replaced at once, from 1 to [`MOST_AT_ONCE`].
    pub at_once: u32,
    /// Whether the caller let the canary serve. Until then, one machine is replaced.
    pub has_served: bool,
    /// The template from which the group starts machines now. Machines of another one are replaced too. `None` if it is
    /// unknown: then the release alone counts.
    pub template: Option<&'g MachineTemplate>,
}

impl UpgradeGroup<'_> {
    /// Whether a machine was started from another template than the group starts machines from now.
    pub(super) fn is_outdated(&self, machine: &Machine) -> bool {
        self.template.is_some_and(|template| machine.template.as_ref() != Some(template))
    }
}

/// The next step of an upgrade.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Next {
    /// What to do.
    pub action: Action,
    /// The node to drain or to end. A drain empties all nodes that are marked as draining.
    pub node: Option<NodeId>,
    /// Number of machines that the group should have from now on, if machines are launched; otherwise the number that it
    /// has between two replacements.
    pub capacity: u32,
    /// Whether the canary has to serve before this machine ends: at most one machine is upgraded, or the caller let none
    /// serve yet and replaces several at once.
    pub is_canary: bool,
    /// Whether the group has one machine fewer after the end of this one. Otherwise it starts another one, in the zone
    /// that has the fewest: that of the machine that ended.
    pub is_last: bool,
    /// Machines that run the release and were started from the group's template.
    pub upgraded: usize,
    /// Machines that are to be replaced.
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

    /// Begins or resumes the upgrade to `release` of a group of `size`. `over` names a holder that is known to be dead.
    ///
    /// # Errors
    /// [`Error::Refused`] for another release than that of the deployed steps, a downgrade, a release that was skipped, and
    /// an unfinished split of any graph, also one that begins meanwhile; otherwise as [`MapStore::write_upgrade`].
    pub fn begin(
        &self,
        holder: &str,
        release: Release,
        size: GroupSize,
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
        let ours = self.write(found.as_ref(), holder, size)?;
        for other in others {
            // Who has the upgrade of the first graph has those of all.
            let before = if_there_is_one(other.last())?.flatten();
            let refused = match if_there_is_one(other.write(before.as_ref(), holder, size)) {
                Err(refused @ Error::Refused { .. }) => refused,
                written => {
                    written?;
                    continue;
                }
            };
            // A split of that graph began since the checks. What was begun would keep splits of the others away.
            if let Err(error) = self.end(holder, Some(&refused.to_string())) {
                tracing::warn!(%error, "an upgrade that was refused cannot be stopped: begin it again");
            }
            return Err(refused);
        }
        Ok(Began::Ours(ours))
    }

    fn refused(&self, reason: String) -> Error {
        Error::Refused { change: format!("upgrade to {}", self.lineage.release), reason }
    }

    /// Returns the steps for each of the other graphs alone.
    fn each_other(&self) -> impl Iterator<Item = Self> + '_ {
        self.others.iter().map(|graph| self.alone(graph))
    }

    /// Returns the steps for another graph alone.
    fn alone(&self, graph: &str) -> Self {
        Self { graph: graph.into(), others: Vec::new(), ..self.clone() }
    }

    /// Refuses an upgrade that the state of the graph does not allow.
    fn check(&self) -> Result<(), Error> {
        let floor = self.last()?.and_then(|found| found.floor);
        if floor.is_some() {
            self.lineage.check_from(floor).map_err(|reason| self.refused(reason))?;
        }
        let (map, releases) = (self.store.load(&self.graph, None)?, self.store.releases(&self.graph)?);
        check_begin(self.lineage.release, map.graph())?;
        for (id, _) in map.nodes().filter(|(_, node)| node.state != NodeState::Gone) {
            let theirs = release_of(&map, &releases, id);
            self.lineage.check_from(theirs).map_err(|reason| self.refused(format!("node {id}: {reason}")))?;
        }
        Ok(())
    }

    /// Writes the upgrade to the deployed release in place of the last one.
    fn write(&self, found: Option<&Upgrade>, holder: &str, size: GroupSize) -> Result<Upgrade, Error> {
        let GroupSize { desired, least } = size;
        // One that was stopped may have left the group with more machines than its own.
        let own = found.filter(|one| one.launched).map(|one| one.capacity.max(least));
        let capacity = own.map_or(desired, |own| own.min(desired));
        let next = Upgrade {
            serial: found.map_or(1, |found| found.serial + 1),
            release: self.lineage.release,
            state: UpgradeState::Running,
            holder: holder.into(),
            capacity,
            launched: desired > capacity,
            reason: String::new(),
            floor: found.and_then(|found| found.floor),
        };
        self.store.write_upgrade(&self.graph, found, &next)?;
        Ok(next)
    }

    /// Decides what to do next, given the group, and marks the nodes that are to be drained in the maps of all graphs.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the caller no longer has the upgrade; otherwise as [`MapStore::load`] and
    /// [`MapStore::change`].
    pub fn next(&self, holder: &str, group: UpgradeGroup<'_>) -> Result<Next, Error> {
        let upgrade = self.held(holder)?;
        let first = self.view_of_graph()?;
        let mut others = Vec::new();
        for other in self.each_other() {
            let mut found = if_there_is_one(other.view_of_graph())?;
            // A graph that was added is placed once enough machines know it: those of this upgrade.
            if let Some(graph) = found.as_mut().filter(|graph| is_unplaced(&graph.map)) {
                graph.missing = None;
            }
            others.extend(found);
        }
        let map = &first.map;
        let releases = self.store.releases(&self.graph)?;
        let runs = |id: &NodeId| release_of(map, &releases, id) == Some(upgrade.release);
        let in_service = || group.machines.iter().filter(|machine| machine.in_service);
        let serving: Vec<(&NodeId, &Node)> =
            in_service().filter_map(|machine| Some((&machine.node, map.node(&machine.node)?))).collect();
        let outdated: BTreeSet<&NodeId> = in_service()
            .filter(|machine| group.is_outdated(machine) && runs(&machine.node))
            .map(|machine| &machine.node)
            .collect();
        let is_old = |id: &NodeId| !runs(id) || outdated.contains(id);
        let view = View {
            capacity: upgrade.capacity,
            first: &first,
            others: &others,
            group,
            old: serving.iter().filter(|(id, _)| is_old(id)).copied().collect(),
            outdated: outdated.len(),
            serving: &serving,
        };
        let Decision { action, nodes, capacity, is_last, reason } = view.decide();
        if action == Action::Drain {
            self.mark(&nodes)?;
            others.iter().try_for_each(|other| self.alone(&other.graph).mark(&nodes))?;
        }
        // The group has its own size again when it is seen with it.
        let launched = action == Action::Launch || upgrade.launched && group.desired > upgrade.capacity;
        if launched != upgrade.launched {
            let next = Upgrade { serial: upgrade.serial + 1, launched, ..upgrade.clone() };
            self.store.write_upgrade(&self.graph, Some(&upgrade), &next)?;
        }
        let left = view.old.len();
        let upgraded = serving.len() - left;
        Ok(Next {
            action,
            node: nodes.into_iter().next(),
            capacity,
            is_canary: action == Action::End && (upgraded <= 1 || view.awaits_canary()),
            is_last,
            upgraded,
            left,
            reason,
        })
    }

    /// Marks nodes of the graph as draining, so that one plan covers all of them. They get no more replicas from then on.
    fn mark(&self, nodes: &[NodeId]) -> Result<(), Error> {
        let map = self.store.load(&self.graph, None)?;
        let up = nodes.iter().filter(|id| map.node(id).is_some_and(|node| node.state == NodeState::Up));
        let changes: Vec<Change> =
            up.map(|node| Change::SetNode { node: node.clone(), state: NodeState::Draining }).collect();
        change_all(&*self.store, &self.graph, &changes)
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

/// Whether no partition has a replica.
fn is_unplaced(map: &PartitionMap) -> bool {
    map.partitions().all(|(_, replicas)| replicas.is_empty())
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
