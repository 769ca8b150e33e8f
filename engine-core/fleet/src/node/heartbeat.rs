//! Heartbeats: a node reports to the map that it is alive, joins again if it was marked
//! as lost (FLT-4), and leaves if its disk is full. When its graph is being dropped, it
//! reports until it writes nothing any more.

use super::Shared;
use super::replica::Replica;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_cluster::{
    AppliedVersions, Error, Heartbeat, Lineage, NodeRelease, NodeState, Release, StuckReplica, check_join,
};
use tidegraph_platform::metric;

/// Maximum number of stuck replicas that a heartbeat reports. One is enough to stop writes.
const MAX_STUCK: usize = 16;
/// Number of refusals after which a node that was lost gives up to join again. One may pass: another node registers a moment
/// before it states its release.
const MOST_REFUSALS: u32 = 5;
/// Maximum number of characters of the reason of a stuck replica.
const MAX_REASON_CHARS: usize = 500;

/// Returns the report of a replica that answers reads and cannot apply its next record.
fn stuck_report(replica: &Replica) -> Option<StuckReplica> {
    let version = replica.stuck_at()?;
    let reason = replica.broken()?.reason.chars().take(MAX_REASON_CHARS).collect();
    Some(StuckReplica { partition: replica.partition, version, reason })
}

/// Returns the bytes of a replica. Pages can be in memory and in the local file, so the two are not added.
fn size(replica: &Replica) -> u64 {
    let memory = replica.store.memory_use();
    memory.in_memory.max(memory.fixed + memory.spilled)
}

/// Sends heartbeats until the node stops; if its graph is being dropped, until all other threads of the node have ended.
pub(super) fn run(shared: &Arc<Shared>) {
    while !shared.finished.load(Ordering::Acquire) {
        if !shared.is_stopping() || shared.is_dropped() {
            send(shared);
        }
        shared.clock.sleep(shared.config.beat);
    }
}

/// Sends one heartbeat.
pub(super) fn send(shared: &Shared) {
    check_disk(shared);
    let replicas = shared.all();
    let applied = replicas.iter().map(|replica| (replica.partition, replica.applied())).collect();
    let beat = Heartbeat {
        generation: shared.generation.load(Ordering::Relaxed),
        counter: shared.beats.fetch_add(1, Ordering::Relaxed) + 1,
        disk_full: shared.disk_full.load(Ordering::Relaxed),
        used_bytes: replicas.iter().map(|replica| replica.store.memory_use().in_memory).sum(),
        applied: AppliedVersions(applied),
        stuck: replicas.iter().filter_map(|replica| stuck_report(replica)).take(MAX_STUCK).collect(),
    };
    let spilled = replicas.iter().map(|replica| replica.store.memory_use().spilled).sum();
    metric::memory_use(&shared.graph.name, beat.used_bytes, spilled);
    let largest = replicas.iter().map(|replica| size(replica)).max();
    metric::largest_replica(&shared.graph.name, largest.unwrap_or_default());
    if let Some(budget) = shared.config.memory_budget_bytes {
        metric::memory_ratio(&shared.graph.name, beat.used_bytes, budget);
    }
    for replica in &replicas {
        let (partition, applied) = (replica.partition.0, replica.applied().0);
        metric::replica(&shared.graph.name, partition, applied, replica.stuck_at().is_some());
    }
    match shared.map_store.heartbeat(&shared.graph.name, &shared.id, &beat) {
        Ok(()) => rejoin_if_gone(shared),
        Err(error) if error.will_pass() => tracing::warn!(%error, "cannot send a heartbeat"),
        Err(error) => {
            tracing::error!(%error, "another process speaks for this node, or this one under another generation");
            rejoin_if_gone(shared);
        }
    }
}

/// Joins again if this node was marked as lost, and finishes a join that was interrupted.
fn rejoin_if_gone(shared: &Shared) {
    let map = shared.watch.map();
    let Some(node) = map.node(&shared.id) else { return };
    if shared.is_stopping() || shared.disk_full.load(Ordering::Relaxed) {
        return;
    }
    let ours = shared.generation.load(Ordering::Relaxed);
    // A registration whose answer was lost is ours too: no other process listens at this process's endpoint.
    let in_doubt = shared.rejoining.load(Ordering::Relaxed)
        && node.generation > ours
        && node.endpoint == shared.registration.endpoint;
    if node.generation != ours && !in_doubt {
        return;
    }
    let is_gone = match node.state {
        NodeState::Gone => true,
        NodeState::Joining => false,
        NodeState::Up | NodeState::Draining => return,
    };
    // The fleet may have been upgraded since this node was lost, or the graph dropped.
    match may_rejoin(shared) {
        Ok(()) => shared.refusals.store(0, Ordering::Relaxed),
        Err(refused @ Error::Refused { .. }) => {
            if shared.refusals.fetch_add(1, Ordering::Relaxed) + 1 < MOST_REFUSALS {
                tracing::warn!(%refused, "this node may not join again; asking again soon");
            } else {
                shared.fail(format!("others took this node for lost, and it may not join again: {refused}"));
            }
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot learn whether this node may join again; trying again soon");
            return;
        }
    }
    tracing::warn!("others took this node for lost; it joins again");
    shared.rejoining.store(true, Ordering::Relaxed);
    if let Err(error) = rejoin(shared, is_gone) {
        tracing::warn!(%error, "cannot join again; trying again soon");
    }
}

fn may_rejoin(shared: &Shared) -> Result<(), Error> {
    let graph = &shared.graph.name;
    // Fails for another graph of the same name.
    shared.map_store.load(graph, Some(&shared.watch.map()))?;
    check_join(&*shared.map_store, graph, &shared.id, Lineage::THIS)
}

fn rejoin(shared: &Shared, is_gone: bool) -> Result<(), crate::Error> {
    let graph = &shared.graph.name;
    if is_gone {
        let register = tidegraph_cluster::Change::Register(shared.registration.clone());
        shared.map_store.change(graph, None, &[register])?;
    }
    let map = shared.map_store.load(graph, None)?;
    let generation = map.node(&shared.id).map_or(0, |node| node.generation);
    shared.generation.store(generation, Ordering::Relaxed);
    let stated = NodeRelease { generation, release: Release::THIS };
    shared.map_store.note_release(graph, &shared.id, &stated)?;
    shared.set_node(NodeState::Up)?;
    shared.rejoining.store(false, Ordering::Relaxed);
    Ok(())
}

/// Leaves the map when the local disk is full: the replicas could soon apply no more records.
fn check_disk(shared: &Shared) {
    let Some(dir) = &shared.config.spill_dir else { return };
    let free = match shared.disk.free_bytes(dir) {
        Ok(free) => free,
        Err(error) => {
            tracing::warn!(%error, "cannot read the free bytes of the local disk");
            return;
        }
    };
    let is_full = free < shared.config.least_free_bytes;
    if is_full != shared.disk_full.swap(is_full, Ordering::Relaxed) && is_full {
        tracing::error!(
            free,
            least = shared.config.least_free_bytes,
            "the local disk is full: the node leaves the map"
        );
        if let Err(error) = shared.set_node(NodeState::Gone) {
            shared.disk_full.store(false, Ordering::Relaxed);
            tracing::warn!(%error, "cannot tell the map that the disk is full; trying again soon");
        }
    }
}
