//! The map in memory, for one process, for tests and for simulations.

use crate::change::{Touched, no_partition};
use crate::upgrade::check_begin;
use crate::{
    Change, Checkpoint, Claim, Error, Graph, Heartbeat, Incarnation, Lease, MapStore, NodeId, NodeRelease,
    NodeReleases, PartitionMap, Upgrade,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegraph_types::{Epoch, PartitionId};

/// Partition maps in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryMap(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    graphs: Mutex<BTreeMap<String, Kept>>,
    away: AtomicBool,
    /// Number of graphs that were made.
    made: AtomicU64,
    #[cfg(any(feature = "testing", test))]
    meanwhile: Mutex<Option<Meanwhile>>,
}

/// What another process does while a caller is between two of its calls.
#[cfg(any(feature = "testing", test))]
struct Meanwhile {
    operation: &'static str,
    /// Number of calls of the operation before which it does nothing.
    passed: usize,
    act: Box<dyn FnOnce() + Send>,
}

#[cfg(any(feature = "testing", test))]
impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meanwhile").field("operation", &self.operation).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Kept {
    map: Arc<PartitionMap>,
    /// Whether the graph is being dropped: for callers of its map it is gone.
    dropping: bool,
    beats: BTreeMap<NodeId, Heartbeat>,
    releases: NodeReleases,
    upgrade: Option<Upgrade>,
    checkpoints: BTreeMap<PartitionId, Checkpoint>,
    leases: BTreeMap<String, Lease>,
}

impl MemoryMap {
    /// Makes the store stop answering, or answer again, as a service that cannot be reached.
    #[cfg(any(feature = "testing", test))]
    pub fn set_away(&self, away: bool) {
        self.0.away.store(away, Ordering::Release);
    }

    /// Marks a graph as being dropped. Its processes learn of it by their next look.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no graph of this name.
    #[cfg(any(feature = "testing", test))]
    pub fn begin_drop(&self, graph: &str) -> Result<(), Error> {
        self.with("mark the graph as being dropped", graph, |kept| {
            kept.dropping = true;
            Ok(())
        })
    }

    /// Removes a graph. Its name is free then.
    #[cfg(any(feature = "testing", test))]
    pub fn finish_drop(&self, graph: &str) {
        self.0.graphs.lock().remove(graph);
    }

    /// Runs `act` once, at the beginning of the call of an operation after `passed` calls of it: what another process does
    /// between two calls of a caller. The operation is named as in errors. The call waits for `act`.
    #[cfg(any(feature = "testing", test))]
    pub fn meanwhile(&self, operation: &'static str, passed: usize, act: impl FnOnce() + Send + 'static) {
        *self.0.meanwhile.lock() = Some(Meanwhile { operation, passed, act: Box::new(act) });
    }

    #[cfg(any(feature = "testing", test))]
    fn run_meanwhile(&self, operation: &str) {
        let mut slot = self.0.meanwhile.lock();
        match slot.as_mut().filter(|meanwhile| meanwhile.operation == operation) {
            Some(meanwhile) if meanwhile.passed > 0 => meanwhile.passed -= 1,
            Some(_) => {
                let meanwhile = slot.take();
                drop(slot);
                meanwhile.into_iter().for_each(|meanwhile| (meanwhile.act)());
            }
            None => {}
        }
    }

    fn with<T>(
        &self,
        operation: &'static str,
        graph: &str,
        act: impl FnOnce(&mut Kept) -> Result<T, Error>,
    ) -> Result<T, Error> {
        #[cfg(any(feature = "testing", test))]
        self.run_meanwhile(operation);
        if self.0.away.load(Ordering::Acquire) {
            return Err(Error::unavailable(operation, "the map is away"));
        }
        match self.0.graphs.lock().get_mut(graph) {
            Some(kept) => act(kept),
            None => Err(Error::NotFound { what: format!("graph {graph}") }),
        }
    }

    /// Like [`MemoryMap::with`], for calls that a graph which is being dropped refuses.
    fn with_map<T>(
        &self,
        operation: &'static str,
        graph: &str,
        act: impl FnOnce(&mut Kept) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with(operation, graph, |kept| match kept.dropping {
            true => Err(Error::NotFound { what: format!("graph {graph}: it is being dropped") }),
            false => act(kept),
        })
    }

    fn with_lease<T>(
        &self,
        operation: &'static str,
        graph: &str,
        name: &str,
        act: impl FnOnce(Option<&Lease>) -> Result<(Lease, T), String>,
    ) -> Result<T, Error> {
        self.with(operation, graph, |kept| {
            let (lease, answer) = act(kept.leases.get(name))
                .map_err(|found| Error::Conflict { item: format!("lease {name}"), found })?;
            kept.leases.insert(name.into(), lease);
            Ok(answer)
        })
    }
}

/// The error of a caller that knows another graph than the one that has its name now.
pub(crate) fn made_again(graph: &str) -> Error {
    Error::NotFound { what: format!("graph {graph} any more: it was dropped, or made again under its name") }
}

/// Describes a lease for an error.
pub(crate) fn describe(found: Option<&Lease>) -> String {
    match found {
        None => "nobody has it".into(),
        Some(lease) if lease.is_free() => format!("epoch {}, given back", lease.epoch),
        Some(lease) => format!("epoch {} of {}", lease.epoch, lease.holder),
    }
}

/// Describes an upgrade for an error.
pub(crate) fn describe_upgrade(found: &Upgrade) -> String {
    format!("the upgrade to {} of {} is {}", found.release, found.holder, found.state)
}

/// Whether a stored lease is still the held one.
pub(crate) fn is_held(found: &Lease, held: &Lease) -> bool {
    found.holder == held.holder && found.epoch == held.epoch
}

impl MapStore for MemoryMap {
    fn create_graph(&self, graph: &Graph) -> Result<(), Error> {
        graph.check()?;
        if self.0.away.load(Ordering::Acquire) {
            return Err(Error::unavailable("make the graph", "the map is away"));
        }
        let mut graphs = self.0.graphs.lock();
        match graphs.get(&graph.name) {
            Some(kept) if kept.dropping => {
                Err(Error::NotFound { what: format!("graph {}: it is being dropped", graph.name) })
            }
            Some(kept) if kept.map.graph().unsplit() == graph.unsplit() => Ok(()),
            Some(_) => Err(Error::Exists { graph: graph.name.clone() }),
            None => {
                let incarnation = Incarnation::of(self.0.made.fetch_add(1, Ordering::Relaxed));
                let map = PartitionMap::new(graph.clone(), Epoch(1), 0).of_incarnation(Some(incarnation));
                let kept = Kept {
                    map: Arc::new(map),
                    dropping: false,
                    beats: BTreeMap::new(),
                    releases: BTreeMap::new(),
                    upgrade: None,
                    checkpoints: BTreeMap::new(),
                    leases: BTreeMap::new(),
                };
                graphs.insert(graph.name.clone(), kept);
                Ok(())
            }
        }
    }

    fn load(&self, graph: &str, known: Option<&Arc<PartitionMap>>) -> Result<Arc<PartitionMap>, Error> {
        self.with_map("read the map", graph, |kept| match known {
            Some(known) if !kept.map.is_of_graph_of(known) => Err(made_again(graph)),
            _ => Ok(kept.map.clone()),
        })
    }

    /// Does nothing: every load is cheap.
    fn refresh_snapshot(&self, graph: &str, _map: &PartitionMap) -> Result<(), Error> {
        self.with_map("refresh the snapshot", graph, |_| Ok(()))
    }

    fn change(&self, graph: &str, expected: Option<Epoch>, changes: &[Change]) -> Result<Epoch, Error> {
        let touched = Touched::by(changes)?;
        self.with_map("change the map", graph, |kept| {
            let found = kept.map.epoch();
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                return Err(Error::Stale { expected, found });
            }
            let before = touched.of(&kept.map);
            let mut after = before.clone();
            after.apply(changes)?;
            if after == before {
                return Ok(found);
            }
            let map = Arc::make_mut(&mut kept.map);
            let epoch = Epoch(found.0 + 1);
            let mut changed = 0;
            for (id, node) in after.nodes {
                if let Some(node) = node.filter(|node| before.nodes[&id].as_ref() != Some(node)) {
                    let mark = map.node_mark(&id).next(epoch);
                    map.put_node(id, node, mark);
                    changed += 1;
                }
            }
            for (partition, replicas) in after.partitions {
                if before.partitions[&partition] != replicas {
                    let mark = map.partition_mark(partition).next(epoch);
                    map.put_partition(partition, replicas, mark);
                    changed += 1;
                }
            }
            map.set_graph(after.graph);
            map.set_epoch(epoch, map.changes() + changed);
            Ok(epoch)
        })
    }

    fn heartbeat(&self, graph: &str, node: &NodeId, beat: &Heartbeat) -> Result<(), Error> {
        self.with("store a heartbeat", graph, |kept| {
            if let Some(found) = kept.beats.get(node).filter(|found| found.generation > beat.generation) {
                let found = format!("generation {}", found.generation);
                return Err(Error::Conflict { item: format!("heartbeat of node {node}"), found });
            }
            kept.beats.insert(node.clone(), beat.clone());
            Ok(())
        })
    }

    fn heartbeats(&self, graph: &str) -> Result<BTreeMap<NodeId, Heartbeat>, Error> {
        self.with("read heartbeats", graph, |kept| Ok(kept.beats.clone()))
    }

    fn note_release(&self, graph: &str, node: &NodeId, release: &NodeRelease) -> Result<(), Error> {
        self.with("note a release", graph, |kept| {
            if let Some(found) = kept.releases.get(node).filter(|found| found.generation > release.generation)
            {
                let found = format!("generation {}", found.generation);
                return Err(Error::Conflict { item: format!("release of node {node}"), found });
            }
            kept.releases.insert(node.clone(), *release);
            Ok(())
        })
    }

    fn releases(&self, graph: &str) -> Result<NodeReleases, Error> {
        self.with("read releases", graph, |kept| Ok(kept.releases.clone()))
    }

    fn upgrade(&self, graph: &str) -> Result<Option<Upgrade>, Error> {
        self.with("read the upgrade", graph, |kept| Ok(kept.upgrade.clone()))
    }

    fn write_upgrade(&self, graph: &str, seen: Option<&Upgrade>, next: &Upgrade) -> Result<(), Error> {
        self.with("write the upgrade", graph, |kept| {
            // An earlier attempt of this call wrote it.
            if kept.upgrade.as_ref() == Some(next) {
                return Ok(());
            }
            if kept.upgrade.as_ref() != seen {
                let found = kept.upgrade.as_ref().map_or_else(String::new, describe_upgrade);
                return Err(Error::Conflict { item: "the upgrade".into(), found });
            }
            if next.begins(seen) {
                check_begin(next.release, kept.map.graph())?;
                let map = Arc::make_mut(&mut kept.map);
                map.set_epoch(Epoch(map.epoch().0 + 1), map.changes());
            }
            kept.upgrade = Some(next.clone());
            Ok(())
        })
    }

    fn note_checkpoint(&self, graph: &str, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.with_map("note a checkpoint", graph, |kept| {
            if !kept.map.graph().may_have(checkpoint.partition) {
                return Err(no_partition(kept.map.graph(), checkpoint.partition));
            }
            let newest = kept.checkpoints.entry(checkpoint.partition).or_insert_with(|| checkpoint.clone());
            if newest.version < checkpoint.version {
                *newest = checkpoint.clone();
            }
            Ok(())
        })
    }

    fn checkpoints(&self, graph: &str) -> Result<Vec<Checkpoint>, Error> {
        self.with("read checkpoints", graph, |kept| Ok(kept.checkpoints.values().cloned().collect()))
    }

    fn lease(&self, graph: &str, name: &str) -> Result<Option<Lease>, Error> {
        self.with("read a lease", graph, |kept| Ok(kept.leases.get(name).cloned()))
    }

    fn take_lease(
        &self,
        graph: &str,
        name: &str,
        seen: Option<&Lease>,
        claim: &Claim,
    ) -> Result<Lease, Error> {
        self.with_lease("take a lease", graph, name, |found| match found == seen {
            true => Ok((Lease::next(seen, claim), Lease::next(seen, claim))),
            false => Err(describe(found)),
        })
    }

    fn renew_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<Lease, Error> {
        self.with_lease("renew a lease", graph, name, |found| match found {
            Some(found) if is_held(found, lease) => {
                let next = Lease { counter: found.counter + 1, ..lease.clone() };
                Ok((next.clone(), next))
            }
            found => Err(describe(found)),
        })
    }

    fn release_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<(), Error> {
        let free = Lease { holder: String::new(), endpoint: String::new(), ..lease.clone() };
        self.with_lease("give a lease back", graph, name, |found| match found {
            Some(found) if is_held(found, lease) => Ok((free, ())),
            found => Err(describe(found)),
        })
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
