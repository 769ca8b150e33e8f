//! The trait of a place that keeps partition maps and leases.

use crate::{
    Change, Checkpoint, Claim, Error, Graph, Heartbeat, Lease, NodeId, NodeRelease, NodeReleases,
    PartitionMap, Upgrade,
};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tidegraph_types::Epoch;

/// Keeps partition maps and leases. Any thread may call it; a call waits for its answer, for a bounded time.
///
/// # Errors
/// Every call may fail with [`Error::Unavailable`] or [`Error::Throttled`] if the store does not answer, with
/// [`Error::NotFound`] if there is no such graph, and with [`Error::Damaged`] if an item cannot be read. After
/// [`Error::Unavailable`], a write may or may not have happened; every call may safely be made again.
pub trait MapStore: Send + Sync + Debug {
    /// Creates a graph without nodes and replicas, at epoch 1. Does nothing if the same graph exists.
    ///
    /// # Errors
    /// [`Error::Exists`] if a different graph has the name; [`Error::Invalid`] if [`Graph::check`] refuses it.
    fn create_graph(&self, graph: &Graph) -> Result<(), Error>;

    /// Returns the whole map of a graph at one epoch (MAP-1). `known` is a map that was loaded before: only items that
    /// changed since are read, and the same map is returned if there are none.
    ///
    /// # Errors
    /// [`Error::NotFound`] also if the graph of `known` was dropped and another one was made under its name
    /// ([`PartitionMap::incarnation`]); otherwise see [`MapStore`].
    fn load(&self, graph: &str, known: Option<&Arc<PartitionMap>>) -> Result<Arc<PartitionMap>, Error>;

    /// Refreshes the snapshot of a large map, which processes that start read instead of its items. The process that leads
    /// the graph calls it now and then, with the map that it knows. For a small map, or if little changed since the last
    /// snapshot, it sends no request. A store whose loads are cheap has no snapshots.
    ///
    /// # Errors
    /// See [`MapStore`]. After an error, processes that start read more items until the next call.
    fn refresh_snapshot(&self, graph: &str, map: &PartitionMap) -> Result<(), Error>;

    /// Makes all changes or none, and returns the epoch of the map after them. If the map
    /// already has the wanted state, nothing is written and the epoch stays.
    ///
    /// # Errors
    /// [`Error::Stale`] if the map is not at `expected`; [`Error::Refused`] if the map does not allow a change;
    /// [`Error::TooMany`] if the changes touch more than [`MOST_ITEMS`](crate::MOST_ITEMS) items; otherwise see
    /// [`MapStore`].
    fn change(&self, graph: &str, expected: Option<Epoch>, changes: &[Change]) -> Result<Epoch, Error>;

    /// Stores a heartbeat of a node.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the node has registered again since: another process acts for it now.
    fn heartbeat(&self, graph: &str, node: &NodeId, beat: &Heartbeat) -> Result<(), Error>;

    /// The last heartbeat of each node.
    ///
    /// # Errors
    /// See [`MapStore`].
    fn heartbeats(&self, graph: &str) -> Result<BTreeMap<NodeId, Heartbeat>, Error>;

    /// Stores the release of a node's process.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the node has registered again since: another process acts for it now.
    fn note_release(&self, graph: &str, node: &NodeId, release: &NodeRelease) -> Result<(), Error>;

    /// The releases of all nodes that stated one.
    ///
    /// # Errors
    /// See [`MapStore`].
    fn releases(&self, graph: &str) -> Result<NodeReleases, Error>;

    /// The last upgrade of the graph's fleet; `None` if there was none.
    ///
    /// # Errors
    /// See [`MapStore`].
    fn upgrade(&self, graph: &str) -> Result<Option<Upgrade>, Error>;

    /// Stores an upgrade, if the stored one is still as `seen`. One that begins raises the epoch of the map, so that a split
    /// which was checked at an earlier epoch does not begin.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another caller has changed it since; [`Error::Refused`] for an upgrade that begins during a
    /// split of the graph.
    fn write_upgrade(&self, graph: &str, seen: Option<&Upgrade>, next: &Upgrade) -> Result<(), Error>;

    /// Stores a checkpoint of a partition, unless a newer one is stored.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the graph has no such partition, is being dropped, or is another one than the one of this
    /// name that the caller's process uses; otherwise see [`MapStore`].
    fn note_checkpoint(&self, graph: &str, checkpoint: &Checkpoint) -> Result<(), Error>;

    /// The newest checkpoint of each partition that has one, in order of partition.
    ///
    /// # Errors
    /// See [`MapStore`].
    fn checkpoints(&self, graph: &str) -> Result<Vec<Checkpoint>, Error>;

    /// A lease; `None` if it never had a holder.
    ///
    /// # Errors
    /// See [`MapStore`].
    fn lease(&self, graph: &str, name: &str) -> Result<Option<Lease>, Error>;

    /// Takes over a lease that is still as `seen`, under a higher epoch (MAP-3). Whether the time of its holder is over
    /// is decided by [`crate::Election`].
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease has changed since.
    fn take_lease(
        &self,
        graph: &str,
        name: &str,
        seen: Option<&Lease>,
        claim: &Claim,
    ) -> Result<Lease, Error>;

    /// Renews a held lease by raising its counter, whatever the counter is now, because
    /// the answer of the last renewal may have been lost.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease has another holder or epoch.
    fn renew_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<Lease, Error>;

    /// Gives a lease back.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease has another holder or epoch.
    fn release_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<(), Error>;
}

/// Makes any number of changes in batches, each at an epoch of its own.
///
/// # Errors
/// The same as [`MapStore::change`]; earlier batches stay.
pub fn change_all(store: &dyn MapStore, graph: &str, changes: &[Change]) -> Result<(), Error> {
    // A change touches two items at most.
    for batch in changes.chunks(crate::MOST_ITEMS / 2) {
        store.change(graph, None, batch)?;
    }
    Ok(())
}
