//! Upgrades of a fleet: its nodes are replaced by those of the next release, the first one alone, then some at once.
//!
//! Roles: [`Release`] and [`Lineage`] say which releases may be in one fleet. Each node states its release in an item of
//! its own ([`NodeRelease`]), because nodes of earlier releases refuse a node's item with an attribute that they do not
//! know. [`Upgrade`] is the graph's item about its last upgrade: it excludes a second one, and one that was stopped is
//! resumed from it. [`Upgrades`] has the steps (`steps.rs`), and `decide.rs` what comes next.
//!
//! Flow: begin → next, until it says that all machines are upgraded → (workers and functions) → end. `next` decides
//! from the map and the group's machines alone, so another process continues where one was stopped.
//!
//! What must never happen: two upgrades at once, or an upgrade during a split (UPG-1); a node taken away while a partition lacks a replica, or while
//! the node still holds one (UPG-2); a process of a release that cannot read what the fleet writes, or cannot be read by
//! it, in the map ([`check_join`]).

mod decide;
mod release;
mod steps;

pub use release::{Line, Lineage, Release};
pub use steps::{
    Action, Began, GroupSize, MOST_AT_ONCE, Machine, MachineTemplate, Next, UpgradeGroup, Upgrades,
};
pub(crate) use steps::{if_there_is_one, missing};

use crate::{Error, Graph, MapStore, NodeId, NodeState, PartitionMap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The release of a node's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRelease {
    /// Generation of the node: another generation is another process, perhaps of another release.
    pub generation: u64,
    /// The release.
    pub release: Release,
}

/// State of an upgrade.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpgradeState {
    /// Its holder works on it.
    Running,
    /// It was stopped before its end. It may be begun again, or one to a later patch.
    Stopped,
    /// All processes run its release.
    Finished,
}

/// The last upgrade of a graph's fleet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Upgrade {
    /// Grows with each change of this item.
    pub serial: u64,
    /// The release to which the fleet is upgraded.
    pub release: Release,
    /// Its state.
    pub state: UpgradeState,
    /// Name of the execution that works on it, or did last.
    pub holder: String,
    /// Number of machines that the group has between two replacements.
    pub capacity: u32,
    /// Whether the group was told to have more machines than that.
    pub launched: bool,
    /// Why it was stopped; empty otherwise.
    pub reason: String,
    /// The newest release to which an upgrade was finished. No process of an earlier line joins any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Release>,
}

impl fmt::Display for UpgradeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Finished => "finished",
        })
    }
}

impl Upgrade {
    /// Whether an upgrade begins when this item is written in place of `seen`.
    pub(crate) fn begins(&self, seen: Option<&Self>) -> bool {
        let runs = |upgrade: &Self| upgrade.state == UpgradeState::Running;
        runs(self) && !seen.is_some_and(runs)
    }
}

/// Refuses an upgrade to `release` while a split of the graph is unfinished.
pub(crate) fn check_begin(release: Release, graph: &Graph) -> Result<(), Error> {
    if graph.splits.into.is_none() && graph.splits.from.is_none() {
        return Ok(());
    }
    let name = &graph.name;
    let reason = format!(
        "a split of the graph {name} is unfinished: finish it with `tidegraph fleet split --graph {name}` first"
    );
    Err(Error::Refused { change: format!("upgrade to {release}"), reason })
}

/// Releases of all nodes of a graph.
pub type NodeReleases = BTreeMap<NodeId, NodeRelease>;

/// Returns the release of a node's current process; `None` if it states none.
#[must_use]
pub fn release_of(map: &PartitionMap, releases: &NodeReleases, id: &NodeId) -> Option<Release> {
    let generation = map.node(id)?.generation;
    releases.get(id).filter(|found| found.generation == generation).map(|found| found.release)
}

/// Checks that a node may join the fleet, before it registers: its release must be able to work with those of the other
/// nodes, and must not be of a line before the one to which the fleet was upgraded.
///
/// # Errors
/// [`Error::Refused`] with both releases and what to do; otherwise as [`MapStore::load`].
pub fn check_join(store: &dyn MapStore, graph: &str, node: &NodeId, lineage: Lineage) -> Result<(), Error> {
    let (map, releases) = (store.load(graph, None)?, store.releases(graph)?);
    let Lineage { release: ours, .. } = lineage;
    let refused = |reason: String| {
        let change = format!("register node {node} of release {ours}");
        Err(Error::Refused { change, reason })
    };
    if let Some(floor) = store.upgrade(graph)?.and_then(|upgrade| upgrade.floor)
        && ours.line() < floor.line()
    {
        return refused(format!(
            "the fleet was upgraded to {floor}, and a fleet is never downgraded: start release {floor} or a later patch"
        ));
    }
    for (id, other) in map.nodes() {
        if id == node || other.state == NodeState::Gone {
            continue;
        }
        let theirs = release_of(&map, &releases, id);
        // An upgrade may be under way: whether the newer nodes can work with this one, they have checked.
        if theirs.is_some_and(|theirs| theirs > ours) {
            continue;
        }
        if let Err(reason) = lineage.check_from(theirs) {
            return refused(format!("node {id} is in the fleet, and {reason}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
