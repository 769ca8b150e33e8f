//! One graph of the daemon: its storage node, and its candidate for the sequencer with the duties of the leader.
//!
//! Flow of a supervised graph: wait until it has a map → start → run until the daemon stops, a thread of the graph's node
//! fails, or the graph is dropped → end the connections of its clients → start again after a pause.
//!
//! What must never happen: a defect, a missing map or a log that does not answer of one graph stops another one.

use super::{Daemon, RoleArg};
use crate::connect::objects_of;
use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tidegraph_cluster::{Claim, Graph, MapStore, NodeId, Registration, Role, WatchConfig};
use tidegraph_fleet::backup::LeaderArchive;
use tidegraph_fleet::role::{
    ArchivePosition, CheckpointRecovery, LeaderMaintenance, MaintenanceConfig, SequencerService,
};
use tidegraph_fleet::sequencing::{Candidate, CandidateConfig, Unsure};
use tidegraph_fleet::{NodeConfig, NodeParts, NodeService, StorageNode};
use tidegraph_platform::RealDisk;
use tidegraph_types::Epoch;

/// How often a supervised graph looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Pause before a graph is started again, in steps of [`LOOK_EVERY`].
const PAUSE_LOOKS: u32 = 20;

/// The part of a graph in what all graphs of the daemon share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Bytes of memory for the replicas of the graph; `None`: no limit.
    pub memory_bytes: Option<u64>,
    /// Replicas of the graph that are restored at the same time.
    pub restores_at_once: usize,
}

/// A graph that this daemon serves.
pub struct Member {
    graph: String,
    node: StorageNode,
    leading: Option<Leading>,
}

/// The candidate of a graph, and the duties of its leader.
struct Leading {
    candidate: Arc<Candidate>,
    maintenance: LeaderMaintenance,
    archive: Option<LeaderArchive>,
}

impl Member {
    /// Starts the node of a graph and its candidate. Clients of the graph are answered from then on.
    pub fn start(daemon: &Daemon, graph: &str, quota: Quota) -> anyhow::Result<Self> {
        let serve = &daemon.serve;
        // A store of its own, so that what it remembers of the graph ends with the graph.
        let map_store: Arc<dyn MapStore> = serve.table.open(&daemon.clock)?;
        let made =
            map_store.load(graph, None).context("the graph's map cannot be loaded; `init` creates it")?;
        daemon.take_root(made.graph())?;
        let objects = objects_of(&daemon.objects, made.graph())?;
        let log = serve.log.location(graph)?.backend(made.graph().sharding()?)?;
        let (service, commits) = (NodeService::default(), SequencerService::default());
        commits.tell_changes_of(log.clone(), daemon.clock.clone());
        let is_candidate = serve.is(RoleArg::Sequencer);
        daemon.graphs.set(graph, service.services(is_candidate.then(|| Arc::new(commits.clone()) as _)));
        let parts = NodeParts {
            graph: graph.into(),
            registration: daemon.registration(quota)?,
            map_store: map_store.clone(),
            log: log.clone(),
            objects: objects.clone(),
            clock: daemon.clock.clone(),
            random: daemon.random.clone(),
            disk: Arc::new(RealDisk),
            reads: daemon.reads.clone(),
            copies: daemon.copies.as_ref().and_then(|copies| copies.of(graph, serve.least_free_bytes)),
        };
        let node = StorageNode::start(serve.node_config(quota), parts, &service)?;
        let mut member = Self { graph: graph.into(), node, leading: None };
        if is_candidate {
            let takeover = CheckpointRecovery { graph: graph.into(), map_store, objects, log };
            member.leading = Some(lead(daemon, made.graph(), takeover, &commits)?);
        }
        Ok(member)
    }

    /// Returns why the node of the graph ended by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        self.node.failure()
    }

    /// Ends everything of the graph, with the connections of its clients.
    pub fn stop(self, daemon: &Daemon) {
        if let Some(Leading { candidate, mut maintenance, archive }) = self.leading {
            // Its end archives what it read.
            drop(archive);
            maintenance.stop();
            candidate.close();
        }
        self.node.stop();
        daemon.graphs.remove(&self.graph);
        daemon.end_stale_connections();
    }
}

/// Starts the candidate of a graph and the duties of its leader.
fn lead(
    daemon: &Daemon,
    made: &Graph,
    takeover: CheckpointRecovery,
    commits: &SequencerService,
) -> anyhow::Result<Leading> {
    let CheckpointRecovery { graph, map_store, objects, log } = &takeover;
    let (graph, map_store, objects) = (graph.clone(), map_store.clone(), objects.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let (of_log, of_objects, clock) = (log.clone(), objects.clone(), daemon.clock.clone());
    let archiver = daemon.serve.archive.archiver(made, of_log, of_objects, clock, stop.clone())?;
    let claim = Claim {
        // No other process has or had this name (MAP-3).
        holder: format!("{}-{:016x}", daemon.serve.node, daemon.random.next_u64()),
        endpoint: daemon.endpoint.clone(),
        ttl: Duration::ZERO,
        above: Epoch(0),
    };
    // The log in Kafka refuses a deposed sequencer (LOG-1), so writes go on while the map does not answer.
    let config = CandidateConfig { unsure: Unsure::GoOn, ..CandidateConfig::default() };
    let clock = daemon.clock.clone();
    let candidate =
        Candidate::start(map_store.clone(), clock.clone(), &graph, claim, Arc::new(takeover), config)?;
    let candidate = Arc::new(candidate);
    commits.attach(&candidate);
    let config = MaintenanceConfig {
        lost_after: Duration::from_millis(daemon.serve.lost_after_ms),
        ..MaintenanceConfig::default()
    };
    let maintenance =
        LeaderMaintenance::start(&graph, map_store, objects, candidate.clone(), clock.clone(), config)?;
    let archive = match archiver {
        None => None,
        Some(archiver) => {
            let position = Arc::<ArchivePosition>::default();
            maintenance.wait_for(position.clone());
            Some(LeaderArchive::start(archiver, candidate.clone(), position, clock, stop)?)
        }
    };
    Ok(Leading { candidate, maintenance, archive })
}

/// Serves a graph until the daemon stops, whatever happens to it.
pub fn supervise(daemon: &Daemon, graph: &str, quota: Quota) {
    let mut told = None;
    while !daemon.is_stopping() {
        match Member::start(daemon, graph, quota) {
            Ok(member) => {
                told = None;
                tracing::info!(graph, "serves the graph");
                let mut is_dropped = false;
                let reason = loop {
                    daemon.clock.sleep(LOOK_EVERY);
                    if daemon.is_stopping() {
                        break None;
                    }
                    is_dropped = member.node.is_dropped();
                    if is_dropped {
                        break Some("it was dropped".to_owned());
                    }
                    if let failure @ Some(_) = member.failure() {
                        break failure;
                    }
                };
                if let Some(reason) = reason {
                    tracing::warn!(graph, reason, "the daemon stops to serve the graph; the others go on");
                }
                member.stop(daemon);
                if let Some(copies) = daemon.copies.as_ref().filter(|_| is_dropped) {
                    copies.remove(graph);
                }
            }
            Err(error) => {
                daemon.graphs.remove(graph);
                daemon.end_stale_connections();
                let error = tidegraph_platform::chain(error.as_ref()).to_string();
                if told.as_ref() != Some(&error) {
                    tracing::warn!(graph, error, "the graph cannot be served; it is tried again");
                    told = Some(error);
                }
            }
        }
        for _ in 0..PAUSE_LOOKS {
            if daemon.is_stopping() {
                return;
            }
            daemon.clock.sleep(LOOK_EVERY);
        }
    }
}

impl Daemon {
    /// Returns how the daemon describes itself in the map of a graph.
    fn registration(&self, quota: Quota) -> anyhow::Result<Registration> {
        let serve = &self.serve;
        let mut roles = std::collections::BTreeSet::new();
        roles.extend(serve.is(RoleArg::Storage).then_some(Role::Storage));
        roles.extend(serve.is(RoleArg::Sequencer).then_some(Role::Sequencer));
        Ok(Registration {
            id: NodeId::new(&serve.node)?,
            zone: serve.zone.clone(),
            endpoint: self.endpoint.clone(),
            capacity_bytes: quota.memory_bytes.unwrap_or_default(),
            roles,
        })
    }
}

impl super::Serve {
    fn node_config(&self, quota: Quota) -> NodeConfig {
        NodeConfig {
            memory_budget_bytes: quota.memory_bytes,
            restores_at_once: quota.restores_at_once,
            spill_dir: self.spill_dir.clone(),
            least_free_bytes: self.least_free_bytes,
            checkpoint_versions: self.checkpoint_versions,
            checkpoint_after: Duration::from_millis(self.checkpoint_after_ms),
            watch: WatchConfig { refresh_every: Duration::from_millis(self.map_poll_ms) },
            ..NodeConfig::default()
        }
    }
}
