//! The steps of a rebalance: answers events with a map and the planner of `tidegraph-cluster`.

use crate::answer::{Answer, Lot, Needed};
use crate::event::{Event, Instance, LaunchTemplate, MOST_LOTS, MOST_MACHINES, MOST_MOVES};
use crate::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tidegraph_cluster::{
    Acquired, Began, Eligibility, FleetState, Goal, GroupSize, HeartbeatSnapshot, Lease, MOST_AT_ONCE,
    Machine, MapStore, Move, NodeId, NodeState, Plan, REBALANCER, Rebalance, Release, ScaleGroup, Scaling,
    UpgradeGroup, Upgrades, Wanted, takeover_wait,
};
use tidegraph_platform::Clock;
use tidegraph_types::Epoch;

/// Longest name of a holder, which is the ARN of an execution.
const MOST_HOLDER_BYTES: usize = 2048;

/// The lifecycle state of a machine that is part of the group.
const IN_SERVICE: &str = "InService";
/// The beginning of those of a machine that is being terminated.
const TERMINATING: &str = "Terminating";

/// Seconds after which a failed execution is started again although nothing changed: its name changes then.
const NAME_SECONDS: i64 = 600;

/// Longest name of a graph that stands in the name of an execution as it is.
const MOST_GRAPH_BYTES: usize = 32;

/// Signs of life of a graph's nodes, and of the execution that moves its replicas.
#[derive(Debug)]
pub(crate) struct Looked {
    beats: HeartbeatSnapshot,
    lease: Option<Lease>,
}

/// What a look at a graph found.
#[derive(Debug)]
pub(crate) struct Detected {
    pub(crate) needed: Needed,
    pub(crate) node: Option<NodeId>,
    pub(crate) lost: Vec<NodeId>,
    pub(crate) name: Name,
}

/// What makes the name of an execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    epoch: Epoch,
    step: i64,
}

impl Name {
    /// Returns the name: at most 80 characters, as Step Functions wants it.
    pub(crate) fn in_words(self, needed: Needed, graph: Option<&str>) -> String {
        let kind = match needed {
            Needed::Nothing => "nothing",
            Needed::Heal => "heal",
            Needed::Drain => "drain",
            Needed::ScaleOut => "scale-out",
        };
        let graph = graph.map_or_else(String::new, |graph| format!("-{}", shortened(graph)));
        format!("{kind}{graph}-{}-{}", self.epoch, self.step)
    }
}

/// Returns a name of at most [`MOST_GRAPH_BYTES`]: a longer one is cut, and a checksum of the whole one follows.
fn shortened(graph: &str) -> String {
    if graph.len() <= MOST_GRAPH_BYTES {
        return graph.to_owned();
    }
    let mut hasher = std::hash::DefaultHasher::new();
    graph.hash(&mut hasher);
    let checksum = hasher.finish() as u32;
    let head: String = graph.chars().take(MOST_GRAPH_BYTES - 9).collect();
    format!("{head}-{checksum:08x}")
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The map cannot be read or changed.
    #[error(transparent)]
    Map(#[from] tidegraph_cluster::Error),
    /// Another execution has the lease, and must do this step.
    #[error("{holder} no longer has the lease or the upgrade: {reason}")]
    NotOurs {
        /// The caller.
        holder: String,
        /// The lease that was found instead, with its holder.
        reason: String,
    },
    /// An event that cannot be parsed.
    #[error("the event cannot be carried out: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// An event that is not allowed.
    #[error("the event cannot be carried out: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The name by which state machines decide what to retry.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Map(error) if error.will_pass() => "Unavailable",
            // Other processes may change the map at any time, so a retry may succeed.
            Self::Map(tidegraph_cluster::Error::Stale { .. } | tidegraph_cluster::Error::Conflict { .. }) => {
                "Unavailable"
            }
            Self::Map(tidegraph_cluster::Error::Refused { .. }) => "Refused",
            Self::Map(_) => "Map",
            Self::NotOurs { .. } => "NotOurs",
            Self::Unreadable(_) | Self::Invalid { .. } => "Invalid",
        }
    }
}

/// Answers events of one graph.
#[derive(Debug)]
pub struct Steps {
    graph: String,
    rebalance: Rebalance,
    upgrades: Upgrades,
    scaling: Scaling,
    store: Arc<dyn MapStore>,
    clock: Arc<dyn Clock>,
    settings: Settings,
}

impl Steps {
    /// Makes the steps of one graph over a map. `others`: the other graphs that its upgrade and its size are about.
    pub(crate) fn new(
        graph: &str,
        others: &[String],
        settings: Settings,
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let rebalance = Rebalance::new(store.clone(), graph);
        let upgrades = Upgrades::new(store.clone(), graph).with(others);
        let scaling = Scaling::new(store.clone(), graph, others);
        Self { graph: graph.to_owned(), rebalance, upgrades, scaling, store, clock, settings }
    }

    /// Returns the name of the graph.
    pub(crate) fn graph(&self) -> &str {
        &self.graph
    }

    /// Whether the graph has a map.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        match self.store.load(&self.graph, None) {
            Ok(_) => Ok(true),
            Err(tidegraph_cluster::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers one event.
    ///
    /// # Errors
    /// [`Error::Map`] if the map cannot be read or changed; [`Error::NotOurs`] if the step needs the lease and another
    /// execution has it; [`Error::Invalid`] if the event is not allowed.
    pub fn answer(&self, event: Event) -> Result<Answer, Error> {
        match event {
            Event::Detect {} => {
                let before = self.look()?;
                self.clock.sleep(self.settings.silence);
                let Detected { needed, node, lost, name } = self.detect(&before)?;
                let name = name.in_words(needed, None);
                Ok(Answer::Detected { needed, node, lost, name })
            }
            Event::DetectAll {} | Event::Graphs {} => {
                Err(Error::Invalid { reason: "this step is about all graphs and takes none".into() })
            }
            Event::Silent { instances } => self.silent(instances),
            Event::Acquire { holder, seen } => {
                check(&holder)?;
                let acquired = self.rebalance.acquire(&holder, self.settings.lease, seen.as_ref())?;
                let ours = matches!(acquired, Acquired::Ours(_));
                let (Acquired::Ours(lease) | Acquired::Theirs(lease)) = acquired;
                let wait_seconds = takeover_wait(&lease).as_secs() + 1;
                Ok(Answer::Acquired { ours, lease, wait_seconds })
            }
            Event::Plan { holder, goal, drain } => {
                self.holds(&holder)?;
                if let Some(node) = &drain {
                    self.drain(node)?;
                }
                let plan = self.rebalance.plan(goal)?;
                let next = plan.next(self.settings.moves, self.settings.restores_per_node);
                Ok(Answer::Planned {
                    goal,
                    done: plan.is_empty(),
                    lots: lots(&next),
                    moves: plan.moves.len(),
                    coming: plan.coming.len(),
                    short: plan.short,
                    bytes: plan.bytes(),
                })
            }
            Event::Drain { node } => {
                let state = self.drain(&node)?;
                // A node that drains gets no more replicas, so one that holds none needs no plan.
                let held = self.store.load(&self.graph, None)?.held_by(&node).count();
                Ok(Answer::Drains { state, held: Some(held) })
            }
            Event::Move { holder, moves, looks } => {
                if moves.len() > MOST_MOVES {
                    let reason = format!("{} moves are more than {MOST_MOVES}", moves.len());
                    return Err(Error::Invalid { reason });
                }
                self.holds(&holder)?;
                let advanced = self.rebalance.advance(&moves)?;
                let left: Vec<Move> =
                    advanced.iter().filter(|one| !one.stage.is_over()).map(|one| one.of.clone()).collect();
                let void = advanced
                    .iter()
                    .filter(|one| matches!(one.stage, tidegraph_cluster::Stage::Void { .. }))
                    .inspect(|one| tracing::warn!(partition = %one.of.partition, stage = ?one.stage, "planned anew"));
                Ok(Answer::Moved {
                    void: void.count(),
                    done: left.is_empty(),
                    moves: left,
                    looks: looks.saturating_add(1),
                })
            }
            Event::Verify { goal, drain } => self.verify(goal, drain.as_ref()),
            Event::Release { holder } => {
                check(&holder)?;
                self.rebalance.release(&holder)?;
                Ok(Answer::Released { released: true })
            }
            Event::UpgradeBegin { holder, release, desired, least, at_once, over } => {
                check_at_once(at_once, desired.clamp(1, MOST_AT_ONCE))?;
                self.begin_upgrade(&holder, release, GroupSize { desired, least }, over.as_deref())
            }
            Event::UpgradeNext { holder, desired, instances, template, at_once, served } => {
                check_at_once(at_once, MOST_AT_ONCE)?;
                let (machines, template) = (described(instances)?, template.and_then(LaunchTemplate::named));
                let group = UpgradeGroup {
                    machines: &machines,
                    desired,
                    at_once,
                    has_served: served,
                    template: template.as_ref(),
                };
                self.next_of_upgrade(&holder, group)
            }
            Event::UpgradeEnd { holder, stopped } => {
                check(&holder)?;
                let ended = self.upgrades.end(&holder, stopped.as_deref());
                let state = ended.map_err(|error| not_ours(&holder, error))?.state;
                tracing::info!(%state, stopped, "an upgrade ended");
                Ok(Answer::UpgradeEnded { state })
            }
            Event::ScaleNext { wanted, least, most, desired, ids, states } => {
                let machines = machines(ids, &states)?;
                self.next_of_scaling(wanted, &ScaleGroup { least, most, desired, machines: &machines })
            }
            Event::Keep { node } => Ok(Answer::Drains { state: self.keep(&node)?, held: None }),
        }
    }

    fn begin_upgrade(
        &self,
        holder: &str,
        release: Release,
        size: GroupSize,
        over: Option<&str>,
    ) -> Result<Answer, Error> {
        check(holder)?;
        if size.desired == 0 {
            return Err(Error::Invalid {
                reason: "the group should have no machine: it has nothing to upgrade".into(),
            });
        }
        let began = self.upgrades.begin(holder, release, size, over)?;
        let ours = matches!(began, Began::Ours(_));
        let (Began::Ours(upgrade) | Began::Theirs(upgrade)) = began;
        tracing::info!(ours, holder = upgrade.holder, %release, "an upgrade begins");
        Ok(Answer::UpgradeBegan {
            ours,
            holder: upgrade.holder,
            release: upgrade.release,
            capacity: upgrade.capacity,
        })
    }

    fn next_of_upgrade(&self, holder: &str, group: UpgradeGroup<'_>) -> Result<Answer, Error> {
        check(holder)?;
        let next = self.upgrades.next(holder, group).map_err(|error| not_ours(holder, error))?;
        tracing::info!(action = ?next.action, node = ?next.node, reason = next.reason, "the upgrade goes on");
        Ok(Answer::UpgradeNext {
            action: next.action,
            node: next.node,
            capacity: next.capacity,
            is_canary: next.is_canary,
            is_last: next.is_last,
            upgraded: next.upgraded,
            left: next.left,
            reason: next.reason,
        })
    }

    fn next_of_scaling(&self, wanted: Wanted, group: &ScaleGroup<'_>) -> Result<Answer, Error> {
        if group.least == 0 || group.most < group.least {
            let reason = format!("{} to {} machines are no bounds of a fleet", group.least, group.most);
            return Err(Error::Invalid { reason });
        }
        let next = self.scaling.next(wanted, group)?;
        tracing::info!(?wanted, action = ?next.action, node = ?next.node, reason = next.reason, "the fleet is sized");
        Ok(Answer::ScaleNext {
            action: next.action,
            node: next.node,
            capacity: next.capacity,
            reason: next.reason,
        })
    }

    /// Renews the lease of the caller, who must have it.
    fn holds(&self, holder: &str) -> Result<(), Error> {
        check(holder)?;
        self.rebalance.renew(holder).map_err(|error| not_ours(holder, error))
    }

    /// Ends the draining of a node.
    pub(crate) fn keep(&self, node: &NodeId) -> Result<NodeState, Error> {
        gone_if_unknown(self.rebalance.keep(node))
    }

    /// Drains a node.
    fn drain(&self, node: &NodeId) -> Result<NodeState, Error> {
        gone_if_unknown(self.rebalance.drain(node))
    }

    /// Looks at the signs of life of now, with which [`Self::detect`] compares those of some seconds later.
    pub(crate) fn look(&self) -> Result<Looked, Error> {
        let beats = self.rebalance.heartbeat_snapshot()?;
        Ok(Looked { beats, lease: self.store.lease(&self.graph, REBALANCER)? })
    }

    /// Marks nodes that gave no sign of life since `before` as lost, and finds out what the graph needs.
    pub(crate) fn detect(&self, before: &Looked) -> Result<Detected, Error> {
        let lost = self.rebalance.mark_lost(&before.beats)?;
        lost.iter()
            .for_each(|node| tracing::warn!(graph = self.graph, %node, "no heartbeat: marked as lost"));
        let map = self.store.load(&self.graph, None)?;
        let fleet = FleetState::of(&map, &self.store.heartbeats(&self.graph)?);
        let (needed, node) = match self.needed(&fleet) {
            // Nothing has to move, but the machine of a lost node is to be replaced.
            (Needed::Nothing | Needed::ScaleOut, _) if !lost.is_empty() && !self.is_unplaced(&fleet) => {
                (Needed::Heal, None)
            }
            // The upgrade moves the replicas of the nodes that it replaces to the new ones; shares come at its end.
            (Needed::ScaleOut, _) if self.upgrades.is_running()? => (Needed::Nothing, None),
            // The execution that has the lease moves them. Another one would wait for it, and keep the next one waiting.
            (Needed::Drain | Needed::ScaleOut, _) if self.is_moved(before)? => (Needed::Nothing, None),
            other => other,
        };
        let step = self.clock.wall().as_second() / NAME_SECONDS;
        Ok(Detected { needed, node, lost, name: Name { epoch: map.epoch(), step } })
    }

    /// Whether an execution gave a sign of life since `before`.
    fn is_moved(&self, before: &Looked) -> Result<bool, Error> {
        let now = self.store.lease(&self.graph, REBALANCER)?;
        Ok(now != before.lease && now.is_some_and(|lease| !lease.is_free()))
    }

    /// Returns lost nodes whose machine is in service. Others may have restored their replicas already, so what a node
    /// holds says nothing about its machine. Without machines: lost nodes with replicas; a node that left in order has
    /// none.
    fn silent(&self, instances: Option<Vec<Instance>>) -> Result<Answer, Error> {
        let map = self.store.load(&self.graph, None)?;
        let lost = map.nodes().filter(|(_, node)| node.state == NodeState::Gone).map(|(id, _)| id);
        let nodes = match instances.map(described).transpose()? {
            Some(machines) => {
                let in_service: BTreeSet<NodeId> =
                    machines.into_iter().filter(|one| one.in_service).map(|one| one.node).collect();
                lost.filter(|id| in_service.contains(id)).cloned().collect()
            }
            None => lost.filter(|id| map.held_by(id).next().is_some()).cloned().collect(),
        };
        Ok(Answer::Silent { nodes })
    }

    /// Whether the graph is new, and waits for its nodes.
    fn is_unplaced(&self, fleet: &FleetState) -> bool {
        let takers = fleet.nodes.values().filter(|node| node.eligibility == Eligibility::Takes).count();
        fleet.partitions.iter().all(Vec::is_empty) && takers < self.settings.nodes
    }

    fn needed(&self, fleet: &FleetState) -> (Needed, Option<NodeId>) {
        if self.is_unplaced(fleet) {
            return (Needed::Nothing, None);
        }
        let holds = |node: &NodeId| fleet.partitions.iter().flatten().any(|replica| replica.node == *node);
        let leaves =
            |id: &NodeId| fleet.nodes.get(id).is_some_and(|node| node.eligibility == Eligibility::Leaves);
        let repair = fleet.plan(Goal::Repair);
        // The plan of a drain moves the replicas of all nodes that leave.
        match fleet.nodes.keys().find(|id| leaves(id) && holds(id)) {
            _ if repair.moves.iter().any(|one| !one.from.as_ref().is_some_and(leaves)) => {
                (Needed::Heal, None)
            }
            Some(node) if !repair.moves.is_empty() => (Needed::Drain, Some(node.clone())),
            _ if fleet.plan(Goal::Balance).moves.is_empty() => (Needed::Nothing, None),
            _ => (Needed::ScaleOut, None),
        }
    }

    fn verify(&self, goal: Goal, drain: Option<&NodeId>) -> Result<Answer, Error> {
        let plan = self.rebalance.fleet()?.plan(goal);
        let found = self.rebalance.verify()?;
        let reason = self.wrong(&plan, drain)?;
        Ok(Answer::Verified {
            whole: reason.is_empty(),
            partitions: found.partitions,
            whole_partitions: found.whole,
            dark: found.dark,
            moves: plan.moves.len(),
            reason,
        })
    }

    /// Returns what is missing for the goal, as text for people; empty if nothing is.
    fn wrong(&self, plan: &Plan, drain: Option<&NodeId>) -> Result<String, Error> {
        if let Some(node) = drain {
            let state = self.drain(node)?;
            let held = self.store.load(&self.graph, None)?.held_by(node).count();
            if held > 0 {
                return Ok(format!("node {node} is {state} and still has {held} replicas"));
            }
        }
        Ok(match (plan.moves.len(), plan.coming.len(), plan.short) {
            (0, 0, 0) => String::new(),
            (0, 0, short) => format!("{short} replicas are missing, and there are too few nodes for them"),
            (0, coming, _) => format!("{coming} replicas are on their way"),
            (moves, ..) => format!("{moves} moves are left"),
        })
    }
}

/// The state of a node. A machine that was removed before its node registered holds nothing and is unknown.
fn gone_if_unknown(state: Result<NodeState, tidegraph_cluster::Error>) -> Result<NodeState, Error> {
    match state {
        Err(tidegraph_cluster::Error::NotFound { .. }) => Ok(NodeState::Gone),
        other => Ok(other?),
    }
}

/// Returns the error of a step whose caller no longer has the lease or the upgrade.
fn not_ours(holder: &str, error: tidegraph_cluster::Error) -> Error {
    match error {
        tidegraph_cluster::Error::Conflict { found, .. } => {
            Error::NotOurs { holder: holder.to_owned(), reason: found }
        }
        error => Error::Map(error),
    }
}

fn check(holder: &str) -> Result<(), Error> {
    if holder.is_empty() || holder.len() > MOST_HOLDER_BYTES {
        let reason = format!("a holder has 1 to {MOST_HOLDER_BYTES} bytes, not {}", holder.len());
        return Err(Error::Invalid { reason });
    }
    Ok(())
}

/// Checks how many machines an upgrade replaces at once.
fn check_at_once(at_once: u32, most: u32) -> Result<(), Error> {
    if (1..=most).contains(&at_once) {
        return Ok(());
    }
    let reason = format!("atOnce is {at_once}, and has to be from 1 to {most}");
    Err(Error::Invalid { reason })
}

/// Returns the machines of a group, from two lists of the same length.
fn machines(ids: Vec<NodeId>, states: &[String]) -> Result<Vec<Machine>, Error> {
    if ids.len() != states.len() || ids.len() > MOST_MACHINES {
        let reason = format!(
            "{} machines and {} states of machines: each has one, and there are at most {MOST_MACHINES}",
            ids.len(),
            states.len()
        );
        return Err(Error::Invalid { reason });
    }
    Ok(ids.into_iter().zip(states).map(|(node, state)| machine(node, state)).collect())
}

/// Returns the machines of a group, from their descriptions.
fn described(instances: Vec<Instance>) -> Result<Vec<Machine>, Error> {
    if instances.len() > MOST_MACHINES {
        let reason = format!("{} machines: there are at most {MOST_MACHINES}", instances.len());
        return Err(Error::Invalid { reason });
    }
    let described = |one: Instance| Machine {
        template: one.launch_template.and_then(LaunchTemplate::named),
        ..machine(one.instance_id, &one.lifecycle_state)
    };
    Ok(instances.into_iter().map(described).collect())
}

/// Returns a machine in a lifecycle state of its group.
fn machine(node: NodeId, state: &str) -> Machine {
    let (in_service, is_leaving) = (state == IN_SERVICE, state.starts_with(TERMINATING));
    Machine { node, in_service, is_leaving, template: None }
}

/// Groups moves by the node that restores: the first moves come first, and groups above [`MOST_LOTS`] wait for the next
/// plan.
fn lots(moves: &[&Move]) -> Vec<Lot> {
    let mut by_node: BTreeMap<Option<&NodeId>, Vec<Move>> = BTreeMap::new();
    for one in moves {
        let node = one.to.as_ref();
        if by_node.len() < MOST_LOTS || by_node.contains_key(&node) {
            by_node.entry(node).or_default().push((*one).clone());
        }
    }
    by_node.into_values().map(|moves| Lot { moves }).collect()
}

#[cfg(test)]
mod tests;
