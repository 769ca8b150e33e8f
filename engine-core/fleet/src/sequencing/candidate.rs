//! A candidate for the role of the sequencer.

use super::GuardedLog;
use super::takeover::{PublishOnly, RecoverySource, TakeoverError, recover};
use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_cluster::{
    Claim, Election, ElectionConfig, ElectionState, Lease, MapStore, SEQUENCER, StuckReplica, Tenure,
};
use tidegraph_platform::Clock;
use tidegraph_txn::{Error, Sequencer, SequencerConfig};
use tidegraph_types::{Epoch, Version};

/// The reaction of the holder of the lease when its time is over and the map cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsure {
    /// Acknowledges nothing more. For logs that would accept records of two writers.
    #[default]
    Stop,
    /// Continues until it knows that another process holds the lease. For logs that refuse a deposed writer.
    GoOn,
}

/// Settings of a candidate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CandidateConfig {
    /// Duration and renewal of the lease.
    pub election: ElectionConfig,
    /// Settings of the sequencer.
    pub sequencer: SequencerConfig,
    /// What to do when the map cannot be reached.
    pub unsure: Unsure,
    /// Number of versions below the newest checkpoint that stay in the log and are read in a take-over: their requests
    /// may be sent again (TXN-4). The default is many seconds of commits, and a fraction of a second of reading.
    pub asked_again: u64,
}

impl Default for CandidateConfig {
    fn default() -> Self {
        Self {
            election: ElectionConfig::default(),
            sequencer: SequencerConfig::default(),
            unsure: Unsure::default(),
            asked_again: 4096,
        }
    }
}

/// The sequencer of a process that holds the lease.
#[derive(Clone, Debug)]
pub struct Leadership {
    sequencer: Arc<Sequencer>,
    tenure: Arc<Tenure>,
    /// The record that no replica can apply.
    halted: Arc<ArcSwapOption<StuckReplica>>,
}

impl Leadership {
    /// Stops commits because no replica of a partition can apply a record, or with `None` lets them go on.
    pub fn halt(&self, record: Option<StuckReplica>) {
        match (&record, &*self.halted.load()) {
            (Some(stuck), None) => tracing::error!(
                partition = %stuck.partition, version = %stuck.version, reason = stuck.reason,
                "no replica can apply a record: writes stop"
            ),
            (None, Some(stuck)) => {
                tracing::warn!(version = %stuck.version, "a record was applied: writes go on")
            }
            _ => {}
        }
        self.halted.store(record.map(Arc::new));
    }

    /// Returns the record that no replica of a partition can apply. Nothing may be committed after it.
    #[must_use]
    pub fn halted(&self) -> Option<Arc<StuckReplica>> {
        self.halted.load_full()
    }

    /// Returns the sequencer. What it acknowledges is in the log.
    #[must_use]
    pub fn sequencer(&self) -> &Arc<Sequencer> {
        &self.sequencer
    }

    /// Returns the epoch of the lease and of the log.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.tenure.epoch()
    }

    /// Whether no other process can hold the lease now, if clocks run at about the same speed.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.tenure.is_sure()
    }

    /// Returns the time of the clock that measures the lease.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.tenure.now()
    }

    /// Returns the newest committed version. While the lease is sure, no other process can have committed a newer one;
    /// otherwise the sequencer proves its role by writing to the log.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the log does not confirm that this process is the sequencer.
    pub fn newest(&self) -> Result<Version, Error> {
        let version = self.sequencer.version();
        // In this order: the lease must be sure after the version was read.
        if self.tenure.is_sure() { Ok(version) } else { self.sequencer.prove() }
    }
}

/// Tries for the sequencer's lease of a graph, and runs the sequencer while it holds the lease.
#[derive(Debug)]
pub struct Candidate {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    graph: String,
    clock: Arc<dyn Clock>,
    takeover: Arc<dyn RecoverySource>,
    config: CandidateConfig,
    /// Whether each take-over has a thread.
    threads: bool,
    leading: ArcSwapOption<Leadership>,
    /// The lease of another process, as last seen.
    lease: ArcSwapOption<Lease>,
    work: Mutex<Work>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

#[derive(Debug)]
struct Work {
    election: Election,
    /// A take-over that runs in parallel to the election, which must not wait for it.
    taking: Option<(Arc<Tenure>, TakeoverRun)>,
}

/// A take-over that runs or is due.
#[derive(Debug)]
enum TakeoverRun {
    /// Runs in a thread.
    Runs(JoinHandle<Result<Arc<Sequencer>, TakeoverError>>),
    /// Runs in the next step of a candidate without threads.
    Due,
}

impl Candidate {
    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &CandidateConfig {
        &self.shared.config
    }

    /// Starts a candidate with a thread of its own. `claim.ttl` is taken from the configuration.
    ///
    /// # Errors
    /// The error of the system, if it gives no thread.
    pub fn start(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        claim: Claim,
        takeover: Arc<dyn RecoverySource>,
        config: CandidateConfig,
    ) -> std::io::Result<Self> {
        let candidate = Self::build(store, clock, graph, claim, takeover, config, true);
        let shared = candidate.shared.clone();
        let run = move || {
            while !shared.wait() {
                shared.step();
            }
        };
        *candidate.thread.lock() = Some(tidegraph_platform::spawn("candidate", run)?);
        Ok(candidate)
    }

    /// Creates a candidate that works only inside of [`Candidate::step`], on the caller's thread. It takes over one
    /// step after it took the lease.
    #[must_use]
    pub fn without_thread(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        claim: Claim,
        takeover: Arc<dyn RecoverySource>,
        config: CandidateConfig,
    ) -> Self {
        Self::build(store, clock, graph, claim, takeover, config, false)
    }

    fn build(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        claim: Claim,
        takeover: Arc<dyn RecoverySource>,
        config: CandidateConfig,
        threads: bool,
    ) -> Self {
        let election = Election::new(store, clock.clone(), graph, SEQUENCER, claim, config.election.clone());
        let shared = Shared {
            graph: graph.into(),
            clock,
            takeover,
            config,
            threads,
            leading: ArcSwapOption::empty(),
            lease: ArcSwapOption::empty(),
            work: Mutex::new(Work { election, taking: None }),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Returns the sequencer, if this process is it. It may have been deposed a
    /// moment ago; then the log refuses its records.
    #[must_use]
    pub fn leadership(&self) -> Option<Arc<Leadership>> {
        self.shared.leading.load_full()
    }

    /// Returns the name of the graph.
    #[must_use]
    pub fn graph(&self) -> &str {
        &self.shared.graph
    }

    /// Returns the clock that measures the lease.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Whether it works in threads of its own.
    pub(crate) fn has_threads(&self) -> bool {
        self.shared.threads
    }

    /// Returns the lease of another process, as last seen: it has the endpoint of the sequencer.
    #[must_use]
    pub fn seen(&self) -> Option<Arc<Lease>> {
        self.shared.lease.load_full()
    }

    /// Renews or tries for the lease, and starts a take-over that is due. For simulations, and tests without threads.
    pub fn step(&self) {
        self.shared.step();
    }

    /// Runs the take-over that is due, if any. For simulations, and tests without threads.
    pub fn finish_takeover(&self) {
        let mut work = self.shared.work.lock();
        if let Some((taken, taking)) = work.taking.take() {
            self.shared.finish(&mut work, &taken.clone(), taken, taking);
        }
    }

    /// Stops, and gives up the role and the lease. Requests that arrived before are finished.
    pub fn close(&self) {
        *self.shared.stopped.lock() = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // A panic was reported already; the lease has to be released anyway.
            let _ = thread.join();
        }
        let mut work = self.shared.work.lock();
        if let Some((_, TakeoverRun::Runs(thread))) = work.taking.take() {
            let _ = thread.join();
        }
        if let Some(leading) = self.shared.leading.swap(None) {
            leading.sequencer.shutdown();
        }
        work.election.give_back();
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Waits until the next step. Returns true if the candidate was closed.
    fn wait(&self) -> bool {
        let pause = self.config.election.renew_every;
        let mut stopped = self.stopped.lock();
        self.stop.wait_while_for(&mut stopped, |stopped| !*stopped, pause);
        *stopped
    }

    fn step(&self) {
        let mut work = self.work.lock();
        match work.election.step() {
            Ok(ElectionState::Held(tenure)) => {
                self.lease.store(None);
                self.hold(&mut work, tenure);
            }
            Ok(ElectionState::Waiting(lease)) => {
                if let Some(lease) = lease {
                    self.lease.store(Some(Arc::new(lease)));
                }
                self.resign("another process holds the lease");
            }
            // Nothing changes here; whatever must not outlast the lease checks its tenure.
            Err(error) => tracing::warn!(%error, "cannot read or renew the lease"),
        }
    }

    /// The lease is held: takes over, or checks the sequencer.
    fn hold(&self, work: &mut Work, tenure: Arc<Tenure>) {
        if let Some(leading) = self.leading.load_full() {
            if leading.epoch() != tenure.epoch() {
                self.resign("the lease has another epoch");
            } else if let Some(reason) = leading.sequencer.stopped() {
                // Its last records may still arrive: nothing more may be written under its epoch.
                self.resign(&reason);
                work.election.give_back();
                return;
            } else {
                return;
            }
        }
        match work.taking.take() {
            Some((taken, TakeoverRun::Runs(thread))) if !thread.is_finished() => {
                work.taking = Some((taken, TakeoverRun::Runs(thread)));
            }
            Some((taken, taking)) => self.finish(work, &tenure, taken, taking),
            None if !self.threads => work.taking = Some((tenure, TakeoverRun::Due)),
            None => {
                let (takeover, config, mine) = (self.takeover.clone(), self.config.clone(), tenure.clone());
                let run = move || take_over(&*takeover, config, mine);
                match tidegraph_platform::spawn("take-over", run) {
                    Ok(thread) => work.taking = Some((tenure, TakeoverRun::Runs(thread))),
                    Err(error) => tracing::error!(%error, "cannot start a thread for the take-over"),
                }
            }
        }
    }

    /// Finishes a take-over, which ran or runs now. `now` is the tenure at this moment.
    fn finish(&self, work: &mut Work, now: &Arc<Tenure>, taken: Arc<Tenure>, taking: TakeoverRun) {
        let epoch = taken.epoch();
        let ended = match taking {
            TakeoverRun::Runs(thread) => thread.join(),
            TakeoverRun::Due => Ok(take_over(&*self.takeover, self.config.clone(), taken.clone())),
        };
        match ended {
            Ok(Ok(sequencer)) if epoch == now.epoch() => {
                tracing::info!(%epoch, version = %sequencer.version(), "took over as the sequencer");
                self.leading.store(Some(Arc::new(Leadership {
                    sequencer,
                    tenure: taken,
                    halted: Arc::default(),
                })));
            }
            Ok(Ok(_)) => {}
            Ok(Err(TakeoverError::Failed(error))) => {
                // FLT-4: perhaps only this process cannot reach the log or a
                // checkpoint, so another candidate gets a turn.
                tracing::warn!(%epoch, %error, "a take-over failed; the next candidate tries");
                work.election.give_back();
            }
            Ok(Err(TakeoverError::Behind(found))) => {
                tracing::warn!(%epoch, %found, "the epoch of the log is ahead of the lease's");
                work.election.stay_above(found);
                work.election.give_back();
            }
            Err(_) => {
                tracing::error!(%epoch, "the take-over panicked");
                work.election.give_back();
            }
        }
    }

    /// Stops being the sequencer.
    fn resign(&self, reason: &str) {
        if let Some(leading) = self.leading.swap(None) {
            tracing::warn!(epoch = %leading.epoch(), reason, "stopped being the sequencer");
            leading.tenure.end();
            leading.sequencer.shutdown();
        }
    }
}

/// Reads the log up to its end and writes the first record of the epoch.
fn take_over(
    source: &dyn RecoverySource,
    config: CandidateConfig,
    tenure: Arc<Tenure>,
) -> Result<Arc<Sequencer>, TakeoverError> {
    let epoch = tenure.epoch();
    let (log, recovered) = recover(source, epoch, config.asked_again)?;
    if recovered.epoch >= epoch {
        return Err(TakeoverError::Behind(recovered.epoch));
    }
    let log = Box::new(GuardedLog::new(log, tenure, config.unsure));
    let sequencer = Sequencer::start_in(epoch, config.sequencer, log, recovered, Box::new(PublishOnly));
    sequencer.prove().map_err(crate::Error::from)?;
    Ok(sequencer)
}
