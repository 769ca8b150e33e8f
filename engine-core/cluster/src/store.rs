//! The seam between the fleet and where its map is kept.

use crate::{Beat, Change, Checkpoint, Claim, Error, Graph, Lease, NodeId, PartitionMap};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tidegraph_types::Epoch;

/// Where partition maps and leases are kept. Calls wait for the answer, for a bounded time; they may be made by
/// any thread.
///
/// [`Error::Unavailable`] of a call that writes leaves open whether it wrote; asking again is safe for all of them.
pub trait MapStore: Send + Sync + Debug {
    /// Makes a graph without nodes and replicas, at epoch 1. Nothing happens if it is there and made in the same way.
    fn create_graph(&self, graph: &Graph) -> Result<(), Error>;

    /// The map of a graph, whole, as it was at one epoch. `known` is a map that was loaded before: only what was changed
    /// since is read, and the same map is answered if nothing was.
    fn load(&self, graph: &str, known: Option<&Arc<PartitionMap>>) -> Result<Arc<PartitionMap>, Error>;

    /// Carries out all of some changes or none of them; answers the map's epoch after them. If all is so already, nothing
    /// is written and the epoch stays. With `expected`, the changes are only made at that epoch: [`Error::Stale`].
    fn change(&self, graph: &str, expected: Option<Epoch>, changes: &[Change]) -> Result<Epoch, Error>;

    /// Notes a sign of life. [`Error::Conflict`] when the node registered again since: another process speaks for it.
    fn beat(&self, graph: &str, node: &NodeId, beat: &Beat) -> Result<(), Error>;

    /// The last sign of life of each node.
    fn beats(&self, graph: &str) -> Result<BTreeMap<NodeId, Beat>, Error>;

    /// Notes a checkpoint of a partition, unless a newer one is noted.
    fn note_checkpoint(&self, graph: &str, checkpoint: &Checkpoint) -> Result<(), Error>;

    /// The newest checkpoint of each partition that has one, in order.
    fn checkpoints(&self, graph: &str) -> Result<Vec<Checkpoint>, Error>;

    /// A lease; `None` if nobody ever had it.
    fn lease(&self, graph: &str, name: &str) -> Result<Option<Lease>, Error>;

    /// Takes a lease over if it still is as it was seen; its epoch grows. [`Error::Conflict`] if it is not. Whether the
    /// time of its holder is over is for [`crate::Election`] to say.
    fn take_lease(
        &self,
        graph: &str,
        name: &str,
        seen: Option<&Lease>,
        claim: &Claim,
    ) -> Result<Lease, Error>;

    /// Raises the counter of a lease that is still held, whatever it is now: a renewal of which the answer was lost must not
    /// make the next one invisible. [`Error::Conflict`] if the lease is not held any more.
    fn renew_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<Lease, Error>;

    /// Gives a lease back. [`Error::Conflict`] if it is not held any more.
    fn release_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<(), Error>;
}

/// Carries out as many changes as there are, some at a time, each lot at an epoch of its own.
pub fn change_all(store: &dyn MapStore, graph: &str, changes: &[Change]) -> Result<(), Error> {
    // A change touches two items at most.
    for lot in changes.chunks(crate::MOST_ITEMS / 2) {
        store.change(graph, None, lot)?;
    }
    Ok(())
}
