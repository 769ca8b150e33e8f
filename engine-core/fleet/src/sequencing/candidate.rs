//! Who would be the sequencer.

use super::GuardedLog;
use super::takeover::{Publish, Takeover, Unread, recover};
use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_cluster::{Claim, Election, ElectionConfig, Lease, MapStore, SEQUENCER, Standing, Tenure};
use tidegraph_platform::Clock;
use tidegraph_txn::{Error, Sequencer, SequencerConfig};
use tidegraph_types::{Epoch, Version};

/// What the holder of the lease does when the map cannot be reached and his time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsure {
    /// Acknowledges nothing any more. For logs that would take records of two writers.
    #[default]
    Stop,
    /// Goes on until another one is known to have the lease. For logs that refuse whoever was deposed.
    GoOn,
}

/// Settings of a candidate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CandidateConfig {
    /// Times of the lease.
    pub election: ElectionConfig,
    /// Settings of the sequencer.
    pub sequencer: SequencerConfig,
    /// What to do when the map cannot be reached.
    pub unsure: Unsure,
    /// So many versions below the newest checkpoint stay in the log and are read in a take-over: for the requests in them that are
    /// asked again. The default is many seconds of commits, and a fraction of a second of reading.
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

/// A sequencer that has the lease.
#[derive(Clone, Debug)]
pub struct Leading {
    sequencer: Arc<Sequencer>,
    tenure: Arc<Tenure>,
}

impl Leading {
    /// The sequencer. What it acknowledges is in the log.
    #[must_use]
    pub fn sequencer(&self) -> &Arc<Sequencer> {
        &self.sequencer
    }

    /// The epoch of the lease, and of the log.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.tenure.epoch()
    }

    /// Whether nobody else can have the lease now, as far as clocks run alike.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.tenure.is_sure()
    }

    /// The time of the clock that the lease goes by.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.tenure.now()
    }

    /// The newest committed version. While the lease is sure, nobody else can have committed a newer one; when it is not, the
    /// log is asked by writing to it.
    pub fn newest(&self) -> Result<Version, Error> {
        let version = self.sequencer.version();
        // In this order: the lease was sure after the version was read.
        if self.tenure.is_sure() { Ok(version) } else { self.sequencer.prove() }
    }
}

/// Tries for the lease of a graph's sequencer, and is it while it has it.
#[derive(Debug)]
pub struct Candidate {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    takeover: Arc<dyn Takeover>,
    config: CandidateConfig,
    /// Whether take-overs have threads of their own.
    threads: bool,
    leading: ArcSwapOption<Leading>,
    /// The lease as it was seen last, of whoever has it.
    lease: ArcSwapOption<Lease>,
    work: Mutex<Work>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

#[derive(Debug)]
struct Work {
    election: Election,
    /// A take-over that runs beside the election, which must not wait for it.
    taking: Option<(Arc<Tenure>, Taking)>,
}

/// A take-over that runs, or is to run.
#[derive(Debug)]
enum Taking {
    /// In a thread of its own.
    Runs(JoinHandle<Result<Arc<Sequencer>, Failed>>),
    /// In the next step: a candidate without a thread has nobody else to do it.
    Due,
}

/// Why a take-over failed.
#[derive(Debug)]
enum Failed {
    /// Whoever is first tries again, with the next epoch: something may have been written under this one.
    Again(String),
    /// The log is at this epoch or a higher one: the map is older than the log.
    Behind(Epoch),
}

impl Candidate {
    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &CandidateConfig {
        &self.shared.config
    }

    /// Stands as a candidate; a thread of its own sees to the rest. `claim.ttl` is the configuration's.
    pub fn start(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        claim: Claim,
        takeover: Arc<dyn Takeover>,
        config: CandidateConfig,
    ) -> std::io::Result<Self> {
        let candidate = Self::made(store, clock, graph, claim, takeover, config, true);
        let shared = candidate.shared.clone();
        let run = move || {
            while !shared.wait() {
                shared.step();
            }
        };
        *candidate.thread.lock() = Some(std::thread::Builder::new().name("candidate".into()).spawn(run)?);
        Ok(candidate)
    }

    /// Stands as a candidate, and does something only when [`Candidate::step`] is called, all of it on the caller's thread.
    /// A take-over is carried out one step after the lease was taken.
    #[must_use]
    pub fn without_thread(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        claim: Claim,
        takeover: Arc<dyn Takeover>,
        config: CandidateConfig,
    ) -> Self {
        Self::made(store, clock, graph, claim, takeover, config, false)
    }

    fn made(
        store: Arc<dyn MapStore>,
        clock: Arc<dyn Clock>,
        graph: &str,
        claim: Claim,
        takeover: Arc<dyn Takeover>,
        config: CandidateConfig,
        threads: bool,
    ) -> Self {
        let election = Election::new(store, clock.clone(), graph, SEQUENCER, claim, config.election.clone());
        let shared = Shared {
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

    /// The sequencer, if this process is it. It may have been deposed a moment ago; then the log refuses what it writes.
    #[must_use]
    pub fn leading(&self) -> Option<Arc<Leading>> {
        self.shared.leading.load_full()
    }

    /// The time by which it goes.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    /// The lease as it was seen last when another one had it: where the sequencer answers.
    #[must_use]
    pub fn seen(&self) -> Option<Arc<Lease>> {
        self.shared.lease.load_full()
    }

    /// Does what is to be done now: for simulations, and tests without threads.
    pub fn step(&self) {
        self.shared.step();
    }

    /// Carries out the take-over that is due, if one is: for simulations, and tests without threads.
    pub fn finish_takeover(&self) {
        let mut work = self.shared.work.lock();
        if let Some((taken, taking)) = work.taking.take() {
            self.shared.finish(&mut work, &taken.clone(), taken, taking);
        }
    }

    /// Gives the role up, if it has it, and stands for it no more. What was asked before is finished.
    pub fn close(&self) {
        *self.shared.stopped.lock() = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // A panic there was reported; what follows ends the lease all the same.
            let _ = thread.join();
        }
        let mut work = self.shared.work.lock();
        if let Some((_, Taking::Runs(thread))) = work.taking.take() {
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
    /// Waits until the next step; true at the end.
    fn wait(&self) -> bool {
        let pause = Duration::from_millis(self.config.election.step_ms);
        let mut stopped = self.stopped.lock();
        self.stop.wait_while_for(&mut stopped, |stopped| !*stopped, pause);
        *stopped
    }

    fn step(&self) {
        let mut work = self.work.lock();
        match work.election.step() {
            Ok(Standing::Holds(tenure)) => {
                self.lease.store(None);
                self.hold(&mut work, tenure);
            }
            Ok(Standing::Waits(lease)) => {
                if let Some(lease) = lease {
                    self.lease.store(Some(Arc::new(lease)));
                }
                self.resign("another one has the lease");
            }
            // Things stay as they are; what must not outlast the lease looks at its tenure.
            Err(error) => tracing::warn!(%error, "the lease cannot be looked at"),
        }
    }

    /// It has the lease: takes over, or sees whether all is well.
    fn hold(&self, work: &mut Work, tenure: Arc<Tenure>) {
        if let Some(leading) = self.leading.load_full() {
            if leading.epoch() != tenure.epoch() {
                self.resign("the lease has another epoch");
            } else if let Some(reason) = leading.sequencer.stopped() {
                // What it sent may still arrive: nothing more may be written under its epoch.
                self.resign(&reason);
                work.election.give_back();
                return;
            } else {
                return;
            }
        }
        match work.taking.take() {
            Some((taken, Taking::Runs(thread))) if !thread.is_finished() => {
                work.taking = Some((taken, Taking::Runs(thread)));
            }
            Some((taken, taking)) => self.finish(work, &tenure, taken, taking),
            None if !self.threads => work.taking = Some((tenure, Taking::Due)),
            None => {
                let (takeover, config, mine) = (self.takeover.clone(), self.config.clone(), tenure.clone());
                let run = move || take_over(&*takeover, config, mine);
                match std::thread::Builder::new().name("take-over".into()).spawn(run) {
                    Ok(thread) => work.taking = Some((tenure, Taking::Runs(thread))),
                    Err(error) => tracing::error!(%error, "no thread for the take-over"),
                }
            }
        }
    }

    /// A take-over is over, or is carried out now; `now` is what is held at this moment.
    fn finish(&self, work: &mut Work, now: &Arc<Tenure>, taken: Arc<Tenure>, taking: Taking) {
        let epoch = taken.epoch();
        let ended = match taking {
            Taking::Runs(thread) => thread.join(),
            Taking::Due => Ok(take_over(&*self.takeover, self.config.clone(), taken.clone())),
        };
        match ended {
            Ok(Ok(sequencer)) if epoch == now.epoch() => {
                tracing::info!(%epoch, version = %sequencer.version(), "took over as the sequencer");
                self.leading.store(Some(Arc::new(Leading { sequencer, tenure: taken })));
            }
            Ok(Ok(_)) => {}
            Ok(Err(Failed::Again(reason))) => {
                // Perhaps only this process does not reach the log, or a checkpoint: another one may have a turn.
                tracing::warn!(%epoch, reason, "the take-over has to be tried again, by whoever is first");
                work.election.give_back();
            }
            Ok(Err(Failed::Behind(found))) => {
                tracing::warn!(%epoch, %found, "the log is ahead of the lease");
                work.election.stay_above(found);
                work.election.give_back();
            }
            Err(_) => {
                tracing::error!(%epoch, "a defect ended the take-over");
                work.election.give_back();
            }
        }
    }

    /// It is the sequencer no more.
    fn resign(&self, reason: &str) {
        if let Some(leading) = self.leading.swap(None) {
            tracing::warn!(epoch = %leading.epoch(), reason, "gave up as the sequencer");
            leading.tenure.end();
            leading.sequencer.shutdown();
        }
    }
}

/// Reads up to the end of the log and writes the first record of the epoch.
fn take_over(
    takeover: &dyn Takeover,
    config: CandidateConfig,
    tenure: Arc<Tenure>,
) -> Result<Arc<Sequencer>, Failed> {
    let epoch = tenure.epoch();
    let (log, recovered) = recover(takeover, epoch, config.asked_again).map_err(|unread| match unread {
        Unread::Behind(found) => Failed::Behind(found),
        Unread::Failed(reason) => Failed::Again(reason),
    })?;
    if recovered.epoch >= epoch {
        return Err(Failed::Behind(recovered.epoch));
    }
    let log = Box::new(GuardedLog::new(log, tenure, config.unsure));
    let sequencer = Sequencer::start_in(epoch, config.sequencer, log, recovered, Box::new(Publish));
    sequencer.prove().map_err(|error| Failed::Again(error.to_string()))?;
    Ok(sequencer)
}
