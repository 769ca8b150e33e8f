//! The run token: at any time either the world runs, or the thread of one worker.
//!
//! The code of a worker blocks: it waits for answers and sleeps. So each worker has a
//! thread, and a token says whose turn it is. A thread without the token does nothing, so
//! a world with such threads replays as exactly as one without them.
//!
//! What must never happen here: the world and a worker run at the same time. A thread
//! that waited for anything but the token would stop the world for ever.

use crate::process::{Process, SkewedClock};
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_platform::Clock;

/// What a worker waits for when it yields.
#[derive(Debug)]
pub(crate) enum Yield {
    /// Sleeps for `micros` of true time, or until an answer arrives if `answers`.
    Sleep { micros: u64, answers: bool },
    /// Waits for its next transaction.
    Idle,
    /// The thread ends. The text is the message of its panic, if it panicked.
    Exit(Option<String>),
}

#[derive(Debug, Default)]
struct State {
    /// Whether the worker's thread has the token.
    away: bool,
    yielded: Option<Yield>,
}

#[derive(Debug, Default)]
pub(crate) struct RunToken {
    state: Mutex<State>,
    passed: Condvar,
}

impl RunToken {
    /// Called by the world: runs the worker until it yields.
    pub fn run_worker(&self) -> Yield {
        let mut state = self.state.lock();
        state.away = true;
        self.passed.notify_all();
        loop {
            self.passed.wait_while(&mut state, |state| state.away);
            if let Some(yielded) = state.yielded.take() {
                return yielded;
            }
        }
    }

    /// Called first by the thread of a worker: waits for its turn.
    pub fn wait_for_turn(&self) {
        self.passed.wait_while(&mut self.state.lock(), |state| !state.away);
    }

    /// Called by the worker: lets the world run, and returns at the next turn.
    pub fn yield_turn(&self, yielded: Yield) {
        let is_end = matches!(yielded, Yield::Exit(_));
        let mut state = self.state.lock();
        state.away = false;
        state.yielded = Some(yielded);
        self.passed.notify_all();
        if !is_end {
            self.passed.wait_while(&mut state, |state| !state.away);
        }
    }
}

/// Added to the clock of a killed process, so that all of its deadlines have passed and its thread ends.
const AFTER_ALL: Duration = Duration::from_secs(1 << 20);

/// Longest sleep of the thread of a killed process, in microseconds. Deadlines of the code are much shorter.
const LONGEST_AFTER_ALL: u64 = 300_000_000;

/// Ends the thread of a killed process. It is thrown without the message of a panic.
#[derive(Debug)]
pub(crate) struct Killed;

/// The clock of a worker; sleeping yields to the world.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    pub clock: Arc<SkewedClock>,
    pub token: Arc<RunToken>,
    pub process: Arc<Process>,
    /// Microseconds that the worker slept after its process was killed.
    slept: AtomicU64,
}

impl WorkerClock {
    pub fn new(clock: Arc<SkewedClock>, token: Arc<RunToken>, process: Arc<Process>) -> Arc<Self> {
        Arc::new(Self { clock, token, process, slept: AtomicU64::new(0) })
    }

    /// Sleeps for a duration, or until an answer arrives if `answers`.
    pub fn rest(&self, duration: Duration, answers: bool) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(1 << 40);
        if self.process.is_alive() {
            self.token.yield_turn(Yield::Sleep { micros: self.clock.true_micros(micros), answers });
        } else {
            let slept = self.slept.fetch_add(micros, Ordering::Relaxed);
            // Code that has no deadline would go on for ever. Drops that sleep while the thread unwinds may not panic again.
            if slept > LONGEST_AFTER_ALL && !std::thread::panicking() {
                std::panic::resume_unwind(Box::new(Killed));
            }
        }
    }
}

impl Clock for WorkerClock {
    fn now(&self) -> Duration {
        let after = if self.process.is_alive() { Duration::ZERO } else { AFTER_ALL };
        self.clock.now() + after + Duration::from_micros(self.slept.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        let after = if self.process.is_alive() { Duration::ZERO } else { AFTER_ALL };
        let after = after + Duration::from_micros(self.slept.load(Ordering::Relaxed));
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        self.clock.wall().saturating_add(after).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) {
        self.rest(duration, false);
    }
}
