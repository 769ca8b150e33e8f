//! Answers of the steps.

use serde::Serialize;
use tidegraph_cluster::{Action, Goal, Lease, Move, NodeId, NodeState, Release, ScaleAction, UpgradeState};

/// The state machine that should run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needed {
    /// Nothing, or nothing yet.
    Nothing,
    /// Heal: replicas are missing.
    Heal,
    /// Drain: a draining node still holds replicas.
    Drain,
    /// Scale out: nodes hold more or less than their share.
    ScaleOut,
}

/// Moves that one branch of a state machine carries out: those to one node, or those that only drop replicas.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Lot {
    /// The moves.
    pub moves: Vec<Move>,
}

/// What a graph needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfGraph {
    /// The graph.
    pub graph: String,
    /// The state machine that should run.
    pub needed: Needed,
    /// The node to drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Nodes that this step marked as lost.
    pub lost: Vec<NodeId>,
    /// Name for the execution to start; empty if none is needed.
    pub name: String,
    /// Why it is not known what the graph needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer to an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Answer {
    /// To `detect`.
    Detected {
        /// The state machine that should run.
        needed: Needed,
        /// The node to drain.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// Nodes that this step marked as lost.
        lost: Vec<NodeId>,
        /// Name for the execution to start. It stays the same for up to ten minutes while nothing changes.
        name: String,
    },
    /// To `detect-all`.
    DetectedAll {
        /// What each graph needs.
        graphs: Vec<OfGraph>,
    },
    /// To `graphs`.
    Graphs {
        /// Names of the graphs that exist.
        graphs: Vec<String>,
    },
    /// To `silent`.
    Silent {
        /// Lost nodes whose machine is in service in the group. If the event had no machines: lost nodes that the map still
        /// gives replicas to.
        nodes: Vec<NodeId>,
    },
    /// To `acquire`.
    Acquired {
        /// Whether the caller has the lease.
        ours: bool,
        /// The lease, to be passed with the next call.
        lease: Lease,
        /// Seconds that the lease must stay unchanged before it may be taken.
        wait_seconds: u64,
    },
    /// To `drain` and to `keep`.
    Drains {
        /// The state of the node.
        state: NodeState,
        /// Number of replicas that it still holds; not of a node that is kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        held: Option<usize>,
    },
    /// To `plan`.
    Planned {
        /// The goal.
        goal: Goal,
        /// Whether nothing is left to do.
        done: bool,
        /// The moves to make now, at most as many as may run at once.
        lots: Vec<Lot>,
        /// Number of all moves that are left.
        moves: usize,
        /// Number of replicas that come up by themselves.
        coming: usize,
        /// Number of replicas that no node can take.
        short: usize,
        /// Approximate bytes to restore.
        bytes: u64,
    },
    /// To `move`.
    Moved {
        /// Whether all moves are over.
        done: bool,
        /// The moves that are not over.
        moves: Vec<Move>,
        /// Number of moves that became impossible and must be planned again.
        void: usize,
        /// Number of calls for these moves.
        looks: u32,
    },
    /// To `verify`.
    Verified {
        /// Whether the goal is reached.
        whole: bool,
        /// Number of partitions.
        partitions: usize,
        /// Partitions with as many answering replicas as they should have.
        whole_partitions: usize,
        /// Partitions without an answering replica.
        dark: usize,
        /// Number of moves that are left.
        moves: usize,
        /// What is missing, for people; empty if nothing is.
        reason: String,
    },
    /// To `release`.
    Released {
        /// Always true.
        released: bool,
    },
    /// To `upgrade-begin`.
    UpgradeBegan {
        /// Whether the caller has the upgrade.
        ours: bool,
        /// Name of the execution that has it.
        holder: String,
        /// The release to which the fleet is upgraded.
        release: Release,
        /// Number of machines between two replacements.
        capacity: u32,
    },
    /// To `upgrade-next`.
    UpgradeNext {
        /// What to do.
        action: Action,
        /// The node to drain or to end. Others may be draining too, and are drained with it.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// Number of machines that the group should have meanwhile.
        capacity: u32,
        /// Whether the canary has to serve before the machine ends.
        is_canary: bool,
        /// Whether the group has one machine fewer after the end of this one, instead of starting another one.
        is_last: bool,
        /// Machines that run the release, with the settings of the group.
        upgraded: usize,
        /// Machines that do not.
        left: usize,
        /// Why it waits, or what it does, for people.
        reason: String,
    },
    /// To `upgrade-end`.
    UpgradeEnded {
        /// State of the upgrade.
        state: UpgradeState,
    },
    /// To `scale-next`.
    ScaleNext {
        /// What to do.
        action: ScaleAction,
        /// The node to drain or to end.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// Number of machines that the group should have afterwards.
        capacity: u32,
        /// Why, for people.
        reason: String,
    },
}
