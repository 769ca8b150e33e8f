//! Events of a state machine. `contracts/schemas/rebalance-event.schema.json` is their schema.

use serde::Deserialize;
use serde_json::Value;
use tidegraph_cluster::{Goal, Lease, MachineTemplate, Move, NodeId, Release, Wanted};

/// Maximum number of groups of moves in one plan. The history of an execution has room for this many
/// (`infra/lib/state-machines/moves.ts`).
pub const MOST_LOTS: usize = 32;

/// Maximum number of moves in one event.
pub const MOST_MOVES: usize = 256;

/// Maximum number of machines in one event.
pub const MOST_MACHINES: usize = 1000;

/// A machine as Auto Scaling describes it, with further fields.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Instance {
    /// Its id, which is the name of its node.
    pub instance_id: NodeId,
    /// Its state in the group.
    pub lifecycle_state: String,
    /// What it was started from.
    #[serde(default)]
    pub launch_template: Option<LaunchTemplate>,
}

/// A launch template as Auto Scaling names it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LaunchTemplate {
    /// Its id.
    pub launch_template_id: String,
    /// A version: a number, or `$Latest` and `$Default`.
    pub version: String,
}

impl LaunchTemplate {
    /// Returns the version that this names; `None` if it is not a certain one.
    pub(crate) fn named(self) -> Option<MachineTemplate> {
        let Self { launch_template_id: id, version } = self;
        (!version.starts_with('$')).then_some(MachineTemplate { id, version })
    }
}

/// A request of a state machine: an event of one graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The graph; `None` for the first one.
    pub graph: Option<String>,
    /// What is to be done.
    pub event: Event,
}

impl Request {
    /// Reads a request, whose field `graph` stands beside those of its event.
    ///
    /// # Errors
    /// If it is not in the form of the contract.
    pub fn read(mut request: Value) -> Result<Self, serde_json::Error> {
        let graph = request.as_object_mut().and_then(|fields| fields.remove("graph"));
        let graph = graph.map(String::deserialize).transpose()?;
        Ok(Self { graph, event: Event::deserialize(request)? })
    }
}

/// An event. An unknown field is refused: it is probably misspelt.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    /// Finds out whether anything must be done, and marks silent nodes as lost.
    Detect {},
    /// Does the same for all graphs.
    DetectAll {},
    /// Lists the graphs that exist.
    Graphs {},
    /// Finds the lost nodes that have not come back, and whose machine is to be replaced.
    Silent {
        /// The group's machines. Lost nodes on others are left out; without this, those that hold no replica.
        #[serde(default)]
        instances: Option<Vec<Instance>>,
    },
    /// Takes the lease, or returns its holder.
    Acquire {
        /// Name of the execution.
        holder: String,
        /// The lease of the last answer, if the execution has waited since as long as that answer said.
        #[serde(default)]
        seen: Option<Lease>,
    },
    /// Marks a node as draining. Needs no lease: its holder drains the node too.
    Drain {
        /// The node.
        node: NodeId,
    },
    /// Plans moves.
    Plan {
        /// Name of the execution, which must have the lease.
        holder: String,
        /// The goal.
        goal: Goal,
        /// A node to drain.
        #[serde(default)]
        drain: Option<NodeId>,
    },
    /// Makes the next change of some moves.
    Move {
        /// Name of the execution, which must have the lease.
        holder: String,
        /// The moves.
        moves: Vec<Move>,
        /// Number of earlier calls for these moves.
        #[serde(default)]
        looks: u32,
    },
    /// Checks whether the goal is reached.
    Verify {
        /// The goal.
        goal: Goal,
        /// A node that was to be drained.
        #[serde(default)]
        drain: Option<NodeId>,
    },
    /// Gives the lease back.
    Release {
        /// Name of the execution.
        holder: String,
    },
    /// Begins or resumes an upgrade, or returns who has it.
    UpgradeBegin {
        /// Name of the execution.
        holder: String,
        /// The release to which the fleet is upgraded.
        release: Release,
        /// Number of machines that the group should have.
        desired: u32,
        /// Least number of machines that the group may have.
        #[serde(default)]
        least: u32,
        /// Maximum number of machines that are replaced at once.
        #[serde(default = "one")]
        at_once: u32,
        /// An execution that had the upgrade and has ended.
        #[serde(default)]
        over: Option<String>,
    },
    /// Decides what an upgrade does next.
    UpgradeNext {
        /// Name of the execution, which must have the upgrade.
        holder: String,
        /// Number of machines that the group should have.
        desired: u32,
        /// The group's machines.
        instances: Vec<Instance>,
        /// What the group starts machines from; without it, machines are not compared with it.
        #[serde(default)]
        template: Option<LaunchTemplate>,
        /// Maximum number of machines that are replaced at once.
        #[serde(default = "one")]
        at_once: u32,
        /// Whether the execution let an upgraded machine serve, and no alarm went off.
        #[serde(default)]
        served: bool,
    },
    /// Ends an upgrade.
    UpgradeEnd {
        /// Name of the execution, which must have the upgrade.
        holder: String,
        /// Why it was stopped; absent if it is finished.
        #[serde(default)]
        stopped: Option<String>,
    },
    /// Decides whether a fleet whose load asks for it gets a node more, or one fewer.
    ScaleNext {
        /// What the load asks for.
        wanted: Wanted,
        /// Least number of machines.
        least: u32,
        /// Largest number of machines.
        most: u32,
        /// Number of machines that the group should have.
        desired: u32,
        /// Ids of the group's machines.
        ids: Vec<NodeId>,
        /// Their lifecycle states in the group, in the same order.
        states: Vec<String>,
    },
    /// Ends the draining of a node, which then holds replicas again.
    Keep {
        /// The node.
        node: NodeId,
    },
}

/// Machines that are replaced at once where an event does not say it.
fn one() -> u32 {
    1
}
