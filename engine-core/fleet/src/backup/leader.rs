//! Archives the log while this process is the sequencer.

use super::{Archiver, Error};
use crate::role::ArchivePosition;
use crate::sequencing::Candidate;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::{Clock, metric};
use tidegraph_types::Version;

/// Pause between two turns.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(20);

/// How often a pause looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Archives the log of a graph while its candidate holds the lease.
#[derive(Debug)]
pub struct LeaderArchive {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Duty {
    archiver: Archiver,
    candidate: Arc<Candidate>,
    position: Arc<ArchivePosition>,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
    /// The failure that the log of this process told last.
    told: Option<String>,
}

impl LeaderArchive {
    /// Starts a thread that archives, and tells `position` up to where. `stop` is that of the archiver.
    ///
    /// # Errors
    /// The error of the system, if it gives no thread.
    pub fn start(
        archiver: Archiver,
        candidate: Arc<Candidate>,
        position: Arc<ArchivePosition>,
        clock: Arc<dyn Clock>,
        stop: Arc<AtomicBool>,
    ) -> std::io::Result<Self> {
        let mut duty = Duty { archiver, candidate, position, clock, stop: stop.clone(), told: None };
        let thread = tidegraph_platform::spawn("archive", move || duty.run())?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops the thread, once it has archived what it read.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that archives the log panicked");
        }
    }
}

impl Drop for LeaderArchive {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Duty {
    fn run(&mut self) {
        while !self.is_stopped() {
            let pause = if self.candidate.leadership().is_some() {
                self.turn()
            } else {
                self.archiver.reset();
                self.position.forget();
                PAUSE
            };
            metric::archive_lag(self.candidate.graph(), self.archiver.lag());
            let end = self.clock.now() + pause;
            while !self.is_stopped() && self.clock.now() < end {
                self.clock.sleep(LOOK_EVERY);
            }
        }
        if let Err(error) = self.archiver.cut() {
            tracing::warn!(%error, "the end of the log that was read is not archived; the next sequencer archives it");
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Runs a turn. Returns the pause after it.
    fn turn(&mut self) -> Duration {
        let graph = self.candidate.graph();
        let turned = self.archiver.turn();
        match (&turned, self.archiver.archived()) {
            (Ok(_), Some(version)) => self.position.set(version),
            // There is nothing to wait for until somebody makes a backup.
            (Err(crate::Error::Backup(Error::NothingToFollow { .. } | Error::NotArchived { .. })), _) => {
                self.position.set(Version(u64::MAX))
            }
            _ => {}
        }
        match turned {
            Ok(_) => {
                self.told = None;
                PAUSE
            }
            Err(error) => {
                let text = error.to_string();
                if self.told.as_ref() != Some(&text) {
                    tracing::warn!(graph, %error, "the log is not archived; this is tried again");
                    self.told = Some(text);
                }
                PAUSE_AFTER_FAILURE
            }
        }
    }
}
