//! What a step answers.

use serde::Serialize;
use tidegraph_cluster::{Goal, Lease, Move, NodeId, NodeState};

/// What is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needed {
    /// Nothing, or nothing yet.
    Nothing,
    /// Replicas are missing.
    Heal,
    /// A node is to be emptied, and is not empty.
    Drain,
    /// Nodes hold more or less than their share.
    ScaleOut,
}

/// Moves that one branch of a state machine carries out: those to one node, or those that only take away.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Lot {
    /// Which moves.
    pub moves: Vec<Move>,
}

/// The answer to an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Answer {
    /// To `detect`.
    Detected {
        /// What has to be done.
        needed: Needed,
        /// The node to drain.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// Nodes that were taken for lost just now.
        lost: Vec<NodeId>,
        /// A name that stays the same for some minutes as long as nothing changes: for executions.
        name: String,
    },
    /// To `acquire`.
    Acquired {
        /// Whether the lease is the asker's.
        ours: bool,
        /// The lease, to be shown when asked again.
        lease: Lease,
        /// How long it has to stand still before it may be taken.
        wait_seconds: u64,
    },
    /// To `drain`.
    Drains {
        /// How the node is now.
        state: NodeState,
    },
    /// To `plan`.
    Planned {
        /// What for.
        goal: Goal,
        /// Whether nothing is left to do.
        done: bool,
        /// What is to be done now, at most as much as may run at once.
        lots: Vec<Lot>,
        /// All moves that are left.
        moves: usize,
        /// Replicas that come up by themselves.
        coming: usize,
        /// Replicas that nobody can take.
        short: usize,
        /// Bytes that have to be restored, about.
        bytes: u64,
    },
    /// To `move`.
    Moved {
        /// Whether all of them are over.
        done: bool,
        /// Those that are not.
        moves: Vec<Move>,
        /// How many became impossible, and are planned anew.
        void: usize,
        /// How often they were looked at.
        looks: u32,
    },
    /// To `verify`.
    Verified {
        /// Whether all is as it should be.
        whole: bool,
        /// Partitions.
        partitions: usize,
        /// Partitions that have as many replicas that answer as they should.
        whole_partitions: usize,
        /// Partitions of which nothing answers.
        dark: usize,
        /// Moves that are left.
        moves: usize,
        /// What is wrong, for people.
        reason: String,
    },
    /// To `release`.
    Released {
        /// Always true.
        released: bool,
    },
}
