//! Makes the replicas on this node match the partition map.
//!
//! Roles: [`ReplicaReconciler`] restores replicas that the map adds, gives up those that it removes
//! or that broke, and starts the upkeep of the others (indexes, checkpoints, old versions).
//! [`Tasks`] runs long work. Failed work is retried, so every replica serves in the end (FLT-4); [`Retries`] knows when.

use super::Shared;
use super::bring_up::{BringUp, Progress};
use super::replica::Replica;
use super::retries::Retries;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_cluster::ReplicaState;
use tidegraph_types::PartitionId;

/// Pause between two comparisons with the map.
const STEP: Duration = Duration::from_millis(100);
/// Pause between two attempts to restore a stuck replica. The stuck one answers reads meanwhile.
const STUCK_RETRY_AFTER: Duration = Duration::from_secs(30);
/// Records examined per step when old versions are freed: a few milliseconds of work.
const RECLAIMED_AT_ONCE: usize = 50_000;

/// Brings the replicas of a node in line with the map.
pub(super) struct ReplicaReconciler {
    tasks: Tasks,
    retries: Retries,
}

impl ReplicaReconciler {
    /// A reconciler that starts a thread for each long task.
    pub fn with_threads() -> Self {
        Self { tasks: Tasks::Threads(Vec::new()), retries: Retries::default() }
    }

    /// A reconciler that does all work in [`ReplicaReconciler::step`], on the caller's thread.
    pub fn without_threads() -> Self {
        Self { tasks: Tasks::Inline(Vec::new()), retries: Retries::default() }
    }

    /// Runs until the node stops.
    pub fn run(mut self, shared: &Arc<Shared>) {
        while !shared.is_stopping() {
            self.step(shared);
            shared.clock.sleep(STEP);
        }
        let Tasks::Threads(threads) = self.tasks else { return };
        threads.into_iter().for_each(|thread| {
            if thread.join().is_err() {
                tracing::error!("a thread of the node panicked");
            }
        });
    }

    /// Does one comparison, and everything that is due.
    pub fn step(&mut self, shared: &Arc<Shared>) {
        let tasks = &mut self.tasks;
        reconcile(shared, tasks, &self.retries);
        shared.pins.expire(shared.clock.now());
        for replica in shared.all().into_iter().filter(|replica| replica.broken().is_none()) {
            replica.store.reclaim(RECLAIMED_AT_ONCE);
            fill_indexes(shared, &replica, tasks);
            super::checkpoints::write_if_due(shared, &replica, tasks);
        }
        super::copies::keep_if_due(shared, tasks);
        tasks.advance(shared, &self.retries);
    }
}

/// Runs long tasks.
pub(super) enum Tasks {
    /// Each task has a thread.
    Threads(Vec<std::thread::JoinHandle<()>>),
    /// The caller's thread does each task at once, but brings replicas up one step at a time.
    Inline(Vec<BringUp>),
}

impl Tasks {
    /// Runs a task, or starts a thread for it. Returns false if the system gives no thread.
    pub fn spawn(
        &mut self,
        shared: &Arc<Shared>,
        name: String,
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Self::Threads(threads) = self else {
            work();
            return true;
        };
        let (of, thread) = (shared.clone(), name.clone());
        match tidegraph_platform::spawn(name, move || of.supervise(&thread, work)) {
            Ok(thread) => {
                threads.push(thread);
                true
            }
            Err(error) => {
                tracing::error!(%error, "cannot start a thread");
                false
            }
        }
    }

    /// Begins to bring a replica up.
    fn begin_bring_up(&mut self, shared: &Arc<Shared>, partition: PartitionId, retries: &Retries) {
        if let Self::Inline(started) = self {
            started.push(BringUp::new(partition, shared.clock.now()));
            return;
        }
        let (of, retries) = (shared.clone(), retries.clone());
        let begun = self.spawn(shared, format!("restore {partition}"), move || {
            // Queries of the replicas that serve go first.
            tidegraph_platform::lower_priority();
            bring_up_ended(&of, partition, of.bring_up(partition), &retries);
        });
        if !begun {
            shared.bringing_up.lock().remove(&partition);
        }
    }

    /// Forgets threads that ended, or takes each replica one step further.
    fn advance(&mut self, shared: &Arc<Shared>, retries: &Retries) {
        match self {
            Self::Threads(threads) => threads.retain(|thread| !thread.is_finished()),
            Self::Inline(started) => started.retain_mut(|one| match shared.advance(one) {
                Ok(Progress::Pending) => true,
                ended => {
                    bring_up_ended(shared, one.partition, ended, retries);
                    false
                }
            }),
        }
    }
}

/// Gives the place of a restore back, and notes how it ended.
fn bring_up_ended(
    shared: &Shared,
    partition: PartitionId,
    ended: Result<Progress, crate::Error>,
    retries: &Retries,
) {
    let now = shared.clock.now();
    match ended {
        Ok(Progress::GivenUp) => {
            retries.note_failure(partition, now);
        }
        Ok(Progress::Finished | Progress::Pending) => retries.note_success(partition),
        Err(error) => {
            let pause_s = retries.note_failure(partition, now).as_secs();
            tracing::error!(%partition, %error, pause_s, "cannot bring a replica up; trying again after a pause");
            if let Some(stuck) = shared.get(partition) {
                stuck.postpone_retry(now);
            }
        }
    }
    shared.bringing_up.lock().remove(&partition);
}

/// Starts to bring up replicas that the map adds, and gives up those that it removes and those that broke.
fn reconcile(shared: &Arc<Shared>, tasks: &mut Tasks, retries: &Retries) {
    // Taken before the map: a replica that has left this set has set its state in the map, and reloaded it.
    let bringing_up = shared.bringing_up.lock().clone();
    let map = shared.watch.map();
    let wanted: Vec<PartitionId> = map.held_by(&shared.id).map(|(partition, _)| partition).collect();
    for replica in shared.all() {
        if !wanted.contains(&replica.partition) {
            tracing::info!(partition = %replica.partition, "the map takes a replica from this node");
            shared.give_up(&replica);
        } else if let Some(broken) = replica.broken() {
            // What brings a replica up decides whether it serves although it is broken.
            let is_coming_up = !replica.is_ready() && bringing_up.contains(&replica.partition);
            if is_coming_up || stays_stuck(shared, &replica) {
                continue;
            }
            let reason = broken.reason;
            tracing::error!(partition = %replica.partition, reason, "a replica broke and is restored again");
            if let Err(error) = shared.set_state(replica.partition, ReplicaState::Restoring) {
                tracing::warn!(%error, "cannot tell the map that a replica is restored again");
            }
            shared.give_up(&replica);
        } else if replica.is_ready() && !bringing_up.contains(&replica.partition) {
            let held = map.replicas(replica.partition).iter().find(|held| held.node == shared.id);
            if held.is_some_and(|held| !held.state.answers())
                && let Err(error) = serve_again(shared, replica.partition)
            {
                tracing::warn!(partition = %replica.partition, %error, "cannot tell the map that a replica serves");
            }
        }
    }
    retries.retain(&wanted);
    for partition in retries.due(wanted, shared.clock.now()) {
        let mut bringing_up = shared.bringing_up.lock();
        let held = shared.get(partition);
        let is_new = held.is_none_or(|held| {
            held.stuck_at().is_some() && held.is_retry_due(shared.clock.now(), STUCK_RETRY_AFTER)
        }) && !bringing_up.contains(&partition);
        if !is_new || bringing_up.len() >= shared.config.restores_at_once.max(1) {
            continue;
        }
        bringing_up.insert(partition);
        drop(bringing_up);
        tasks.begin_bring_up(shared, partition, retries);
    }
}

/// Whether a broken replica goes on to answer reads at its last version: as long as no other replica that answers reads
/// has applied the record. If none can, writes stop, and these are the newest reads that are left.
fn stays_stuck(shared: &Shared, replica: &Replica) -> bool {
    let Some(version) = replica.stuck_at() else { return false };
    if !replica.is_check_due(shared.clock.now(), shared.config.beat) {
        return true;
    }
    match shared.is_applied_elsewhere(replica.partition, version) {
        Ok(is_applied) => !is_applied,
        Err(error) => {
            tracing::warn!(partition = %replica.partition, %error, "cannot read heartbeats; a stuck replica stays");
            true
        }
    }
}

/// Serves a replica that the map removed and added again between two comparisons. It
/// was fed all the time, so it is complete.
fn serve_again(shared: &Shared, partition: PartitionId) -> Result<(), crate::Error> {
    tracing::info!(%partition, "the map removed a replica and added it again: it serves");
    shared.set_state(partition, ReplicaState::CatchingUp)?;
    shared.set_state(partition, ReplicaState::Serving)
}

/// Fills indexes that were defined after the replica came up.
fn fill_indexes(shared: &Arc<Shared>, replica: &Arc<Replica>, tasks: &mut Tasks) {
    let is_due = replica.store.indexes().iter().any(|index| !index.complete);
    if !is_due || !replica.is_ready() || replica.busy.swap(true, Ordering::AcqRel) {
        return;
    }
    let (of, replica) = (shared.clone(), replica.clone());
    let busy = replica.clone();
    let begun = tasks.spawn(shared, format!("index {}", replica.partition), move || {
        if let Err(error) = replica.store.fill_indexes(&|| of.is_stopping() || replica.is_dropped()) {
            tracing::warn!(partition = %replica.partition, %error, "cannot fill an index; trying again soon");
        }
        replica.busy.store(false, Ordering::Release);
    });
    if !begun {
        busy.busy.store(false, Ordering::Release);
    }
}
