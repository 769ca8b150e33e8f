//! The partition map as one process reaches it: a map in memory behind a network that loses requests and answers.

use crate::process::Process;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegraph_cluster::{
    Change, Checkpoint, Claim, Error, Graph, Heartbeat, Lease, MapStore, MemoryMap, NodeId, NodeRelease,
    NodeReleases, PartitionMap, Upgrade,
};
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::Epoch;

/// Faults of the map's service, for all processes.
#[derive(Debug)]
pub(crate) struct MapFaults {
    pub away: AtomicBool,
    /// Share of calls whose request or answer is lost, in thousandths.
    pub wrong: AtomicU64,
    pub random: SeededRandom,
}

/// The map of one process.
#[derive(Clone, Debug)]
pub(crate) struct SimMap {
    pub inner: MemoryMap,
    pub process: Arc<Process>,
    pub faults: Arc<MapFaults>,
}

impl SimMap {
    fn ask<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce(&MemoryMap) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let away = |reason: &'static str| Error::unavailable(operation, reason);
        if !self.process.reaches_map() || self.faults.away.load(Ordering::Relaxed) {
            return Err(away("it cannot be reached"));
        }
        // Within a step of a command: the request may have been sent, and nobody takes its answer.
        if self.process.dies_with_call() {
            self.process.note(format_args!("is killed: {operation}"));
            if self.faults.random.one_in(2) {
                // The world sees what it did in the map.
                let _ = call(&self.inner);
            }
            self.process.alive.store(false, Ordering::Relaxed);
            return Err(away("the process is dead"));
        }
        let wrong = self.faults.wrong.load(Ordering::Relaxed);
        let goes_wrong = wrong > 0 && self.faults.random.below(1000) < wrong;
        if goes_wrong && self.faults.random.one_in(2) {
            return Err(away("the request was lost"));
        }
        let answer = call(&self.inner);
        if goes_wrong {
            self.process.note(format_args!("the map's answer is lost: {operation}"));
            return Err(away("the answer was lost"));
        }
        answer
    }
}

impl MapStore for SimMap {
    fn create_graph(&self, graph: &Graph) -> Result<(), Error> {
        self.ask("make the graph", |map| map.create_graph(graph))
    }

    fn load(&self, graph: &str, known: Option<&Arc<PartitionMap>>) -> Result<Arc<PartitionMap>, Error> {
        self.ask("read the map", |map| map.load(graph, known))
    }

    fn refresh_snapshot(&self, graph: &str, map: &PartitionMap) -> Result<(), Error> {
        self.ask("refresh the snapshot", |inner| inner.refresh_snapshot(graph, map))
    }

    fn change(&self, graph: &str, expected: Option<Epoch>, changes: &[Change]) -> Result<Epoch, Error> {
        let answer = self.ask("change the map", |map| map.change(graph, expected, changes));
        for change in changes {
            match &answer {
                Ok(epoch) => self.process.note(format_args!("{change}: map epoch {epoch}")),
                Err(error) => self.process.note(format_args!("{change}: {error}")),
            }
        }
        answer
    }

    fn heartbeat(&self, graph: &str, node: &NodeId, beat: &Heartbeat) -> Result<(), Error> {
        self.ask("note a sign of life", |map| map.heartbeat(graph, node, beat))
    }

    fn heartbeats(&self, graph: &str) -> Result<BTreeMap<NodeId, Heartbeat>, Error> {
        self.ask("read signs of life", |map| map.heartbeats(graph))
    }

    fn note_release(&self, graph: &str, node: &NodeId, release: &NodeRelease) -> Result<(), Error> {
        self.ask("note a release", |map| map.note_release(graph, node, release))
    }

    fn releases(&self, graph: &str) -> Result<NodeReleases, Error> {
        self.ask("read releases", |map| map.releases(graph))
    }

    fn upgrade(&self, graph: &str) -> Result<Option<Upgrade>, Error> {
        self.ask("read the upgrade", |map| map.upgrade(graph))
    }

    fn write_upgrade(&self, graph: &str, seen: Option<&Upgrade>, next: &Upgrade) -> Result<(), Error> {
        self.ask("write the upgrade", |map| map.write_upgrade(graph, seen, next))
    }

    fn note_checkpoint(&self, graph: &str, checkpoint: &Checkpoint) -> Result<(), Error> {
        let (partition, version) = (checkpoint.partition, checkpoint.version);
        let answer = self.ask("note a checkpoint", |map| map.note_checkpoint(graph, checkpoint));
        self.process
            .note(format_args!("checkpoint of partition {partition} at {version}: {}", said(&answer)));
        answer
    }

    fn checkpoints(&self, graph: &str) -> Result<Vec<Checkpoint>, Error> {
        self.ask("read checkpoints", |map| map.checkpoints(graph))
    }

    fn lease(&self, graph: &str, name: &str) -> Result<Option<Lease>, Error> {
        self.ask("read a lease", |map| map.lease(graph, name))
    }

    fn take_lease(
        &self,
        graph: &str,
        name: &str,
        seen: Option<&Lease>,
        claim: &Claim,
    ) -> Result<Lease, Error> {
        let answer = self.ask("take a lease", |map| map.take_lease(graph, name, seen, claim));
        self.process.note(format_args!("takes the lease: {}", said(&answer)));
        answer
    }

    fn renew_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<Lease, Error> {
        let answer = self.ask("renew a lease", |map| map.renew_lease(graph, name, lease));
        if let Err(error) = &answer {
            self.process.note(format_args!("cannot renew the lease: {error}"));
        }
        answer
    }

    fn release_lease(&self, graph: &str, name: &str, lease: &Lease) -> Result<(), Error> {
        let answer = self.ask("give a lease back", |map| map.release_lease(graph, name, lease));
        self.process.note(format_args!("gives the lease of epoch {} back: {}", lease.epoch, said(&answer)));
        answer
    }
}

fn said<T>(answer: &Result<T, Error>) -> String {
    answer.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned())
}
