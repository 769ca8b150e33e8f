//! A process: its clock, and the services that it can reach.

use crate::trace::Trace;
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_platform::Clock;

/// The true time of a world, in microseconds. Processes see only their own clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::Relaxed);
    }
}

/// One life of a process. Objects of an earlier life no longer reach any service.
#[derive(Debug)]
pub(crate) struct Process {
    pub name: String,
    pub alive: AtomicBool,
    /// Whether it is cut off from the map.
    pub no_map: AtomicBool,
    pub no_log: AtomicBool,
    /// Whether the next read of the log panics, and the next append to it.
    pub read_panics: AtomicBool,
    pub append_panics: AtomicBool,
    /// Number of calls of the map with the last of which the process dies.
    pub map_calls: AtomicU64,
    pub clock: Arc<SkewedClock>,
    pub trace: Arc<Trace>,
}

impl Process {
    pub fn new(name: &str, clock: Arc<SkewedClock>, trace: Arc<Trace>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            alive: AtomicBool::new(true),
            no_map: AtomicBool::new(false),
            no_log: AtomicBool::new(false),
            read_panics: AtomicBool::new(false),
            append_panics: AtomicBool::new(false),
            map_calls: AtomicU64::new(u64::MAX),
            clock,
            trace,
        })
    }

    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// Counts a call of the map. Returns whether the process dies with it.
    pub fn dies_with_call(&self) -> bool {
        let left = self.map_calls.load(Ordering::Relaxed);
        if left == u64::MAX {
            return false;
        }
        self.map_calls.store(left.saturating_sub(1), Ordering::Relaxed);
        left <= 1
    }

    pub fn reaches_map(&self) -> bool {
        self.is_alive() && !self.no_map.load(Ordering::Relaxed)
    }

    pub fn reaches_log(&self) -> bool {
        self.is_alive() && !self.no_log.load(Ordering::Relaxed)
    }

    /// Panics if the flag is set, and clears it. The panic has no message on the terminal.
    pub fn panic_if(&self, flag: &AtomicBool) {
        if flag.swap(false, Ordering::Relaxed) {
            self.note(format_args!("panics"));
            std::panic::resume_unwind(Box::new("a simulated panic"));
        }
    }

    pub fn note(&self, what: fmt::Arguments<'_>) {
        // Actions of a killed process while it is dropped are not traced.
        if self.is_alive() {
            self.trace.note(self.clock.time.micros(), &self.name, what);
        }
    }
}

/// Largest difference of the time of day between two processes, in microseconds.
const WALL_CLOCKS_DIFFER: u64 = 2_000_000;

/// A clock with its own offset and speed. While its process is busy, the clock is ahead of the world, and the world
/// delivers no event to the process until it has caught up.
#[derive(Debug)]
pub(crate) struct SkewedClock {
    time: Time,
    offset: Duration,
    /// Speed, in thousandths of the true one.
    speed: u64,
    busy_until: AtomicU64,
}

impl SkewedClock {
    pub fn new(time: Time, offset: Duration, speed: u64) -> Arc<Self> {
        Arc::new(Self { time, offset, speed, busy_until: AtomicU64::new(0) })
    }

    /// Returns the true time at which the process has finished its current work.
    pub fn busy_until(&self) -> u64 {
        self.busy_until.load(Ordering::Relaxed).max(self.time.micros())
    }

    /// Returns the true time, for the history of transactions.
    pub fn world_micros(&self) -> u64 {
        self.time.micros()
    }

    /// Converts a duration of this clock to true time. Both are in microseconds.
    pub fn true_micros(&self, micros: u64) -> u64 {
        micros.saturating_mul(1000) / self.speed.max(1)
    }

    /// Keeps the process busy for some true time.
    pub fn spend(&self, micros: u64) {
        self.busy_until.store(self.busy_until() + micros, Ordering::Relaxed);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Duration {
        self.offset + Duration::from_micros(self.busy_until() * self.speed / 1000)
    }

    /// The time of day of processes differs little: a protocol sets it.
    fn wall(&self) -> Timestamp {
        let off = Duration::from_micros(self.offset.as_micros() as u64 % WALL_CLOCKS_DIFFER);
        let since = Duration::from_micros(self.busy_until()) + off;
        let since = SignedDuration::try_from(since).unwrap_or(SignedDuration::MAX);
        Timestamp::UNIX_EPOCH.saturating_add(since).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) {
        self.spend(self.true_micros(duration.as_micros() as u64));
    }
}
