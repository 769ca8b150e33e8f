//! Makes the node hold what the map says, and tells the map how it is.

use super::Shared;
use super::bring_up::{Progress, Rising};
use super::replica::Replica;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_cluster::{Applied, Beat, NodeState, ReplicaState};
use tidegraph_platform::metric;
use tidegraph_types::PartitionId;

/// How often the map is compared with what is here.
const STEP: Duration = Duration::from_millis(100);
/// How long a replica that could not be brought up waits for the next attempt.
const REST: Duration = Duration::from_secs(1);
/// Records looked at in one go when older versions are forgotten: a few milliseconds.
const RECLAIMED_AT_ONCE: usize = 50_000;

/// Runs until the node stops.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut crew = Crew::Threads(Vec::new());
    while !shared.is_stopping() {
        step(shared, &mut crew);
        shared.clock.sleep(STEP);
    }
    let Crew::Threads(threads) = crew else { return };
    threads.into_iter().for_each(|thread| {
        if thread.join().is_err() {
            tracing::error!("a thread of the node ended by a defect");
        }
    });
}

/// Does what is to be done now.
pub(super) fn step(shared: &Arc<Shared>, crew: &mut Crew) {
    hold(shared, crew);
    shared.pins.expire(shared.clock.now());
    for replica in shared.all() {
        replica.store.reclaim(RECLAIMED_AT_ONCE);
        fill(shared, &replica, crew);
        super::checkpoints::write_if_due(shared, &replica, crew);
    }
    crew.go_on(shared);
}

/// Who does what takes long.
pub(super) enum Crew {
    /// Threads of their own.
    Threads(Vec<std::thread::JoinHandle<()>>),
    /// The caller, who brings replicas up a step at a time.
    Caller(Vec<Rising>),
}

impl Crew {
    /// Does some work, or lets it be done; false if nobody can.
    pub fn spawn(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> bool {
        let Self::Threads(threads) = self else {
            work();
            return true;
        };
        match std::thread::Builder::new().name(name).spawn(work) {
            Ok(thread) => {
                threads.push(thread);
                true
            }
            Err(error) => {
                tracing::error!(%error, "no thread");
                false
            }
        }
    }

    /// Begins to bring a replica up.
    fn raise(&mut self, shared: &Arc<Shared>, partition: PartitionId) {
        if let Self::Caller(rising) = self {
            rising.push(Rising::new(partition, shared.clock.now()));
            return;
        }
        let of = shared.clone();
        let begun = self.spawn(format!("restore {partition}"), move || {
            if let Err(error) = of.bring_up(partition) {
                failed(&of, partition, &error);
                of.clock.sleep(REST);
            }
            of.coming.lock().remove(&partition);
        });
        if !begun {
            shared.coming.lock().remove(&partition);
        }
    }

    /// Goes on with what was begun.
    fn go_on(&mut self, shared: &Arc<Shared>) {
        match self {
            Self::Threads(threads) => threads.retain(|thread| !thread.is_finished()),
            Self::Caller(rising) => rising.retain_mut(|one| {
                let partition = one.partition;
                match shared.raise(one) {
                    Ok(Progress::Waits) => return true,
                    Ok(Progress::Over) => {}
                    Err(error) => failed(shared, partition, &error),
                }
                shared.coming.lock().remove(&partition);
                false
            }),
        }
    }
}

/// A replica could not be brought up.
fn failed(shared: &Shared, partition: PartitionId, error: &crate::Error) {
    tracing::error!(%partition, %error, "could not be brought up; again in a moment");
    if let Some(replica) = shared.get(partition) {
        shared.give_up(&replica);
    }
}

/// Begins to bring up what the map gives us, and lets go of what it took.
fn hold(shared: &Arc<Shared>, crew: &mut Crew) {
    // Before the map: whatever was brought up by now has told it, and looked.
    let rising = shared.coming.lock().clone();
    let map = shared.watch.map();
    let wanted: Vec<PartitionId> = map.held_by(&shared.id).map(|(partition, _)| partition).collect();
    for replica in shared.all() {
        if !wanted.contains(&replica.partition) {
            tracing::info!(partition = %replica.partition, "is taken from this node");
            shared.give_up(&replica);
        } else if let Some(reason) = replica.broken() {
            tracing::error!(partition = %replica.partition, reason, "is restored anew");
            if let Err(error) = shared.set_state(replica.partition, ReplicaState::Restoring) {
                tracing::warn!(%error, "the map was not told that a replica is restored anew");
            }
            shared.give_up(&replica);
        } else if replica.is_ready() && !rising.contains(&replica.partition) {
            let held = map.replicas(replica.partition).iter().find(|held| held.node == shared.id);
            if held.is_some_and(|held| !held.state.answers())
                && let Err(error) = serve_again(shared, replica.partition)
            {
                tracing::warn!(partition = %replica.partition, %error, "the map was not told that a replica serves");
            }
        }
    }
    for partition in wanted {
        let mut coming = shared.coming.lock();
        let is_new = shared.get(partition).is_none() && !coming.contains(&partition);
        if !is_new || coming.len() >= shared.config.restores_at_once.max(1) {
            continue;
        }
        coming.insert(partition);
        drop(coming);
        crew.raise(shared, partition);
    }
}

/// The map took a replica and gave it back before we looked. It was fed all the time, so it has everything.
fn serve_again(shared: &Shared, partition: PartitionId) -> Result<(), crate::Error> {
    tracing::info!(%partition, "was taken and given back: it serves");
    shared.set_state(partition, ReplicaState::CatchingUp)?;
    shared.set_state(partition, ReplicaState::Serving)
}

/// Fills indexes that were defined since.
fn fill(shared: &Arc<Shared>, replica: &Arc<Replica>, crew: &mut Crew) {
    let is_due = replica.store.indexes().iter().any(|index| !index.complete);
    if !is_due || !replica.is_ready() || replica.busy.swap(true, Ordering::AcqRel) {
        return;
    }
    let (of, replica) = (shared.clone(), replica.clone());
    let busy = replica.clone();
    let begun = crew.spawn(format!("index {}", replica.partition), move || {
        if let Err(error) = replica.store.fill_indexes(&|| of.is_stopping() || replica.is_dropped()) {
            tracing::warn!(partition = %replica.partition, %error, "an index was not filled; again in a moment");
        }
        replica.busy.store(false, Ordering::Release);
    });
    if !begun {
        busy.busy.store(false, Ordering::Release);
    }
}

/// Says again and again that the node is there.
pub(super) fn beat(shared: &Arc<Shared>) {
    while !shared.is_stopping() {
        beat_once(shared);
        shared.clock.sleep(shared.config.beat);
    }
}

/// Says once that the node is there.
pub(super) fn beat_once(shared: &Shared) {
    look_at_disk(shared);
    let replicas = shared.all();
    let applied = replicas.iter().map(|replica| (replica.partition, replica.applied())).collect();
    let beat = Beat {
        generation: shared.generation.load(Ordering::Relaxed),
        counter: shared.beats.fetch_add(1, Ordering::Relaxed) + 1,
        disk_full: shared.disk_full.load(Ordering::Relaxed),
        used_bytes: replicas.iter().map(|replica| replica.store.memory_use().in_memory).sum(),
        applied: Applied(applied),
    };
    let spilled = replicas.iter().map(|replica| replica.store.memory_use().spilled).sum();
    metric::memory_use(beat.used_bytes, spilled);
    for replica in &replicas {
        metric::replica(replica.partition.0, replica.applied().0);
    }
    match shared.map_store.beat(&shared.graph.name, &shared.id, &beat) {
        Ok(()) => stay(shared),
        Err(error) if error.will_pass() => tracing::warn!(%error, "no sign of life could be given"),
        Err(error) => {
            tracing::error!(%error, "another process speaks for this node, or this one under another generation");
            stay(shared);
        }
    }
}

/// A node that others took for lost and that is there joins again, and goes on with a joining that was cut short.
fn stay(shared: &Shared) {
    let map = shared.watch.map();
    let Some(node) = map.node(&shared.id) else { return };
    if shared.is_stopping() || shared.disk_full.load(Ordering::Relaxed) {
        return;
    }
    let ours = shared.generation.load(Ordering::Relaxed);
    // A registration of which the answer was lost is ours too: nobody else listens where this process does.
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
    tracing::warn!("this node was taken for lost, and joins again");
    shared.rejoining.store(true, Ordering::Relaxed);
    if let Err(error) = join_again(shared, is_gone) {
        tracing::warn!(%error, "the node could not join again; again in a moment");
    }
}

fn join_again(shared: &Shared, is_gone: bool) -> Result<(), crate::Error> {
    let graph = &shared.graph.name;
    if is_gone {
        let register = tidegraph_cluster::Change::Register(shared.registration.clone());
        shared.map_store.change(graph, None, &[register])?;
    }
    let map = shared.map_store.load(graph, None)?;
    shared.generation.store(map.node(&shared.id).map_or(0, |node| node.generation), Ordering::Relaxed);
    shared.set_node(NodeState::Up)?;
    shared.rejoining.store(false, Ordering::Relaxed);
    Ok(())
}

/// A node whose local disk is full leaves the map by itself: what it holds would soon not be true any more.
fn look_at_disk(shared: &Shared) {
    let Some(dir) = &shared.config.spill_dir else { return };
    let free = match shared.disk.free_bytes(dir) {
        Ok(free) => free,
        Err(error) => {
            tracing::warn!(%error, "the free bytes of the local disk cannot be told");
            return;
        }
    };
    let is_full = free < shared.config.least_free_bytes;
    if is_full != shared.disk_full.swap(is_full, Ordering::Relaxed) && is_full {
        tracing::error!(
            free,
            least = shared.config.least_free_bytes,
            "the local disk is full: the node leaves"
        );
        if let Err(error) = shared.set_node(NodeState::Gone) {
            shared.disk_full.store(false, Ordering::Relaxed);
            tracing::warn!(%error, "the map was not told that the disk is full; again in a moment");
        }
    }
}
