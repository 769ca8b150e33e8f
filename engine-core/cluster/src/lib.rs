//! The partition map of a graph, and the leases of its roles: who holds what in a fleet.
//!
//! Roles: [`MapStore`] is the seam to where both are kept, `dynamodb::DynamoMap` (feature `dynamodb`) the one of a fleet,
//! [`MemoryMap`] the one of tests and of one process; one suite (`suite.rs`) runs against both. [`PartitionMap`] is the whole
//! at one epoch, [`MapWatch`] keeps the newest, [`Change`] is what may be done to it (`change.rs` says what is allowed, and
//! has no backend in it), [`Election`] gets and keeps a lease, [`FleetState::plan`] says which replicas have to move,
//! [`Rebalance`] has the steps in which they do.
//!
//! Flow of a change: read the items that it touches → ask `change.rs` what comes out → write it together with the next
//! epoch, under the condition that the epoch and the items are as they were read.
//!
//! What must never happen: a map that was put together from items of different epochs; a change without a new epoch; the last
//! replica that answers reads dropped; two holders of one lease under one epoch. Signs of life and versions of replicas are
//! no changes of the map: they are written all the time, and nobody reloads for them.

mod beat;
mod change;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
mod lease;
mod map;
mod memory;
mod model;
mod planner;
mod rebalance;
mod store;
#[cfg(test)]
mod suite;
mod watch;

pub use beat::{Applied, Beat};
pub use change::{Change, MOST_ITEMS};
pub use error::Error;
pub use lease::{Claim, Election, ElectionConfig, Lease, SEQUENCER, Standing, Tenure};
pub use map::PartitionMap;
pub use memory::MemoryMap;
pub use model::{Checkpoint, Graph, Node, NodeId, NodeState, Registration, Replica, ReplicaState, Role};
pub use planner::{Candidate, Duty, FleetNode, FleetState, Goal, Move, Plan, place};
pub use rebalance::{Acquired, Advanced, REBALANCER, Rebalance, Signs, Stage, Wholeness, patience};
pub use store::{MapStore, change_all};
pub use watch::{MapWatch, WatchConfig};
