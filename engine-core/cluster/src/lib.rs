//! The partition map of a graph and the leases of its roles: which process of a fleet holds what.
//!
//! Roles: [`MapStore`] is the trait of a place that keeps both: `dynamodb::DynamoMap` (feature `dynamodb`) for a fleet,
//! [`MemoryMap`] for one process and for tests. The suite in `testing` (feature `testing`) runs against both.
//! [`PartitionMap`] is the whole map at one epoch and [`MapWatch`] keeps the newest one. [`Change`] is a change of the
//! map; `change.rs` decides what is allowed, without a backend. [`Election`] gets and keeps a lease.
//! [`FleetState::plan`] finds the replicas that have to move, and [`Rebalance`] has the steps that move them.
//! [`Upgrades`] has the steps that replace the nodes of one release by those of the next.
//!
//! Flow of a change: read the items that it touches → `change.rs` computes the new items → write them together with
//! the next epoch, on condition that the epoch and the items are as they were read.
//!
//! Invariants (named in `ARCHITECTURE.md`):
//! * MAP-1: a map is of one epoch as a whole, never a mix of items of different epochs. Every change has a new epoch.
//! * MAP-2: the last replica of a partition that answers reads is never dropped. A plan drops none while fewer others
//!   answer than there should be.
//! * MAP-3: a lease has one holder under one epoch, and the holder's time is over before another's begins.
//!
//! Heartbeats and the versions of replicas are not part of the map: they change all the
//! time, and no process reloads the map for them.
//!
//! A map in memory:
//!
//! ```
//! use tidegraph_cluster::{Change, Graph, MapStore, MemoryMap, NodeId, Registration, Role};
//! use tidegraph_types::{Epoch, PartitionCount};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryMap::default();
//! let graph = Graph {
//!     name: "g".into(),
//!     partitions: PartitionCount::new(4)?,
//!     shards: 1,
//!     hash_bits: 64,
//!     replication_factor: 1,
//!     gremlin: Default::default(),
//!     splits: Default::default(),
//!     shares_objects: false,
//! };
//! store.create_graph(&graph)?;
//! let node = Registration {
//!     id: NodeId::new("node-1")?,
//!     zone: "a".into(),
//!     endpoint: "10.0.0.1:7000".into(),
//!     capacity_bytes: 1 << 30,
//!     roles: [Role::Storage].into(),
//! };
//! let epoch = store.change("g", None, &[Change::Register(node)])?;
//! let map = store.load("g", None)?;
//! assert_eq!((map.epoch(), epoch), (Epoch(2), Epoch(2)));
//! assert_eq!(map.nodes().count(), 1);
//! # Ok(())
//! # }
//! ```

mod change;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
mod heartbeat;
mod lease;
mod map;
mod memory;
mod model;
mod planner;
mod rebalance;
mod scaling;
mod split;
mod store;
#[cfg(any(feature = "testing", test))]
pub mod testing;
mod upgrade;
mod watch;

pub use change::{Change, MOST_ITEMS};
pub use error::{Cause, Error};
pub use heartbeat::{
    AppliedVersions, Heartbeat, Heartbeats, StuckReplica, is_applied_elsewhere, record_that_none_applies,
};
pub use lease::{Claim, Election, ElectionConfig, ElectionState, Lease, SEQUENCER, Tenure};
pub use map::PartitionMap;
pub use memory::MemoryMap;
pub use model::{
    Checkpoint, Graph, Incarnation, Node, NodeId, NodeState, Registration, Replica, ReplicaState, Role,
    Splits, check_graph_name,
};
pub use planner::{Candidate, Eligibility, FleetNode, FleetState, Goal, Move, Plan, place};
pub use rebalance::{
    Acquired, Advanced, Coverage, HeartbeatSnapshot, REBALANCER, Rebalance, Stage, takeover_wait,
};
pub use scaling::{ScaleAction, ScaleGroup, ScaleStep, Scaling, Wanted};
pub use split::{SplitProgress, SplitRun, SplitStage};
pub use store::{MapStore, change_all};
pub use upgrade::{
    Action, Began, GroupSize, Line, Lineage, MOST_AT_ONCE, Machine, MachineTemplate, Next, NodeRelease,
    NodeReleases, Release, Upgrade, UpgradeGroup, UpgradeState, Upgrades, check_join, release_of,
};
pub use watch::{MapWatch, WatchConfig};
