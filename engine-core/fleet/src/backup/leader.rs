//! Archives the log while this process is the sequencer.
//!
//! As long as there is no backup to follow, the trim of the log stays some time behind: a backup names its cut only when it is
//! written, and the log has to have what comes behind the cut by then.

use super::{Archiver, Error};
use crate::role::ArchivePosition;
use crate::sequencing::Candidate;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::Clock;
use tidegraph_types::Version;

/// Pause between two turns.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(20);

/// How long the log is kept while there is no backup to follow: longer than a backup takes from its cut to its manifest, and
/// this duty from there to its next turn.
const KEPT_FOR_BACKUPS: Duration = Duration::from_secs(180);

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
    /// The newest versions at earlier turns that found no backup to follow. The first one may be as old as what is kept.
    seen: VecDeque<(Duration, Version)>,
    /// The failure that the log of this process told last.
    told: Option<String>,
}

impl LeaderArchive {
    /// Starts a thread that archives, and tells `position` up to where, and for how long records have waited. `stop` is that
    /// of the archiver.
    ///
    /// # Errors
    /// The error of the system, if it gives no thread.
    pub fn start(
        mut archiver: Archiver,
        candidate: Arc<Candidate>,
        position: Arc<ArchivePosition>,
        clock: Arc<dyn Clock>,
        stop: Arc<AtomicBool>,
    ) -> std::io::Result<Self> {
        archiver.tell(position.clone());
        let mut duty = Duty {
            archiver,
            candidate,
            position,
            clock,
            stop: stop.clone(),
            seen: VecDeque::new(),
            told: None,
        };
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
            let pause = match self.candidate.leadership() {
                Some(leading) => self.turn(leading.sequencer().version()),
                None => {
                    self.archiver.reset();
                    self.position.forget();
                    self.seen.clear();
                    PAUSE
                }
            };
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

    /// Runs a turn; `newest` is the newest version before it. Returns the pause after it.
    fn turn(&mut self, newest: Version) -> Duration {
        let turned = self.archiver.turn();
        match (&turned, self.archiver.archived()) {
            (Ok(_), Some(version)) => {
                self.seen.clear();
                self.position.set(version);
            }
            (Err(crate::Error::Backup(Error::NothingToFollow { .. } | Error::NotArchived { .. })), _) => {
                self.keep_for_backups(newest)
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
                    let graph = self.candidate.graph();
                    tracing::warn!(graph, %error, "the log is not archived; this is tried again");
                    self.told = Some(text);
                }
                PAUSE_AFTER_FAILURE
            }
        }
    }

    /// Lets the log be trimmed up to what was its newest version some time ago.
    fn keep_for_backups(&mut self, newest: Version) {
        let now = self.clock.now();
        let is_old = |at: &Duration| now.saturating_sub(*at) >= KEPT_FOR_BACKUPS;
        self.seen.push_back((now, newest));
        while self.seen.get(1).is_some_and(|(at, _)| is_old(at)) {
            self.seen.pop_front();
        }
        if let Some((_, version)) = self.seen.front().filter(|(at, _)| is_old(at)) {
            self.position.set(*version);
        }
    }
}
