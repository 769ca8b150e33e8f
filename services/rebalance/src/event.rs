//! What a state machine asks for. `contracts/schemas/rebalance-event.schema.json` says the same.

use serde::Deserialize;
use tidegraph_cluster::{Goal, Lease, Move, NodeId};

/// Most moves in one event.
pub const MOST_MOVES: usize = 256;

/// An event. A field that is not known is refused: it is a known one misspelt.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    /// Looks whether anything has to be done, and takes nodes for lost that say nothing.
    Detect {},
    /// Takes the lease, or says who has it.
    Acquire {
        /// Who asks: the execution.
        holder: String,
        /// What was answered the last time, if the execution waited since as long as the answer said.
        #[serde(default)]
        seen: Option<Lease>,
    },
    /// Says of a node that it is to be emptied. Needs no lease: whoever has it empties the node too.
    Drain {
        /// Which.
        node: NodeId,
    },
    /// Says what has to be moved.
    Plan {
        /// Who asks; he has to have the lease.
        holder: String,
        /// What for.
        goal: Goal,
        /// A node that is to be emptied.
        #[serde(default)]
        drain: Option<NodeId>,
    },
    /// Does what is next of some moves.
    Move {
        /// Who asks; he has to have the lease.
        holder: String,
        /// Which.
        moves: Vec<Move>,
        /// How often they were looked at before.
        #[serde(default)]
        looks: u32,
    },
    /// Looks whether the graph is as it should be.
    Verify {
        /// For which goal.
        goal: Goal,
        /// A node that was to be emptied.
        #[serde(default)]
        drain: Option<NodeId>,
    },
    /// Gives the lease back.
    Release {
        /// Who asks.
        holder: String,
    },
}
