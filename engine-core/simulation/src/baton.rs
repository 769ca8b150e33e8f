//! One at a time: the world, or the thread of a worker.
//!
//! A worker's code waits: for answers, and for time to pass. So it has a thread, and a baton that says whose turn it is. Whoever
//! does not have it does nothing, so that a world with such threads is replayed as exactly as one without.
//!
//! What must never happen here: both running. A thread that waited for anything but the baton would keep the world for ever.

use crate::process::{Process, SkewedClock};
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_platform::Clock;

/// What a worker wants when it gives the baton back.
#[derive(Debug)]
pub(crate) enum Wish {
    /// To go on after so many microseconds of true time, or when an answer has come if `answers`.
    Sleep { micros: u64, answers: bool },
    /// To be told what to do.
    Rest,
    /// Nothing any more; by a panic if there is a text.
    End(Option<String>),
}

#[derive(Debug, Default)]
struct State {
    /// Whether the worker's thread has it.
    away: bool,
    wish: Option<Wish>,
}

#[derive(Debug, Default)]
pub(crate) struct Baton {
    state: Mutex<State>,
    passed: Condvar,
}

impl Baton {
    /// Of the world: the worker goes on until it wants something.
    pub fn pass(&self) -> Wish {
        let mut state = self.state.lock();
        state.away = true;
        self.passed.notify_all();
        loop {
            self.passed.wait_while(&mut state, |state| state.away);
            if let Some(wish) = state.wish.take() {
                return wish;
            }
        }
    }

    /// Of the worker: the first thing that its thread does.
    pub fn wait(&self) {
        self.passed.wait_while(&mut self.state.lock(), |state| !state.away);
    }

    /// Of the worker: the world goes on, and then the worker.
    pub fn give_back(&self, wish: Wish) {
        let is_end = matches!(wish, Wish::End(_));
        let mut state = self.state.lock();
        state.away = false;
        state.wish = Some(wish);
        self.passed.notify_all();
        if !is_end {
            self.passed.wait_while(&mut state, |state| !state.away);
        }
    }
}

/// The time after which nobody waits for anything: what is left of a killed process comes to its end by it.
const AFTER_ALL: Duration = Duration::from_secs(1 << 20);

/// The clock of a worker, by which it sleeps.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    pub clock: Arc<SkewedClock>,
    pub baton: Arc<Baton>,
    pub process: Arc<Process>,
    /// Microseconds that the worker slept after it was killed.
    slept: AtomicU64,
}

impl WorkerClock {
    pub fn new(clock: Arc<SkewedClock>, baton: Arc<Baton>, process: Arc<Process>) -> Arc<Self> {
        Arc::new(Self { clock, baton, process, slept: AtomicU64::new(0) })
    }

    /// The worker does nothing for so long, or until there is an answer.
    pub fn rest(&self, duration: Duration, answers: bool) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(1 << 40);
        if self.process.is_alive() {
            self.baton.give_back(Wish::Sleep { micros: self.clock.true_micros(micros), answers });
        } else {
            self.slept.fetch_add(micros, Ordering::Relaxed);
        }
    }
}

impl Clock for WorkerClock {
    fn now(&self) -> Duration {
        let after = if self.process.is_alive() { Duration::ZERO } else { AFTER_ALL };
        self.clock.now() + after + Duration::from_micros(self.slept.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.now()).unwrap_or(SignedDuration::MAX);
        Timestamp::UNIX_EPOCH.saturating_add(since).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) {
        self.rest(duration, false);
    }
}
