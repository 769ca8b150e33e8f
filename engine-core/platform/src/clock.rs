//! Time: a monotonic clock for durations and deadlines, a wall clock for what people read.
//!
//! The wall clock may jump; nothing that must be ordered may rest on it.

use jiff::Timestamp;
use parking_lot::Mutex;
use std::fmt::Debug;
use std::time::Duration;

/// Where time comes from.
pub trait Clock: Send + Sync + Debug {
    /// Time since this clock was made; never goes back.
    fn now(&self) -> Duration;
    /// The time of day, UTC.
    fn wall(&self) -> Timestamp;
    /// Waits on the calling thread.
    fn sleep(&self, duration: Duration);
}

/// The clock of the machine.
#[derive(Debug)]
pub struct RealClock {
    start: std::time::Instant,
}

impl RealClock {
    /// A clock whose `now` begins at zero.
    #[must_use]
    #[allow(clippy::disallowed_methods)] // This is the one place that may.
    pub fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    #[allow(clippy::disallowed_methods)] // This is the one place that may.
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that stands still until it is told to go on. Sleeping moves it forward at once, so that a test of a
/// time-out takes no time.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    passed: Mutex<Duration>,
}

impl ManualClock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self { start, passed: Mutex::new(Duration::ZERO) }
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        let mut passed = self.passed.lock();
        *passed = passed.saturating_add(duration);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::UNIX_EPOCH)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.passed.lock()
    }

    fn wall(&self) -> Timestamp {
        let passed = jiff::SignedDuration::try_from(self.now()).unwrap_or(jiff::SignedDuration::MAX);
        self.start.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_when_told() {
        let clock = ManualClock::default();
        assert_eq!(clock.now(), Duration::ZERO);
        clock.advance(Duration::from_secs(3));
        clock.sleep(Duration::from_millis(500));
        assert_eq!(clock.now(), Duration::from_millis(3500));
        assert_eq!(clock.wall().as_millisecond(), 3500);
    }

    #[test]
    fn real_clock_goes_on() {
        let clock = RealClock::new();
        let before = clock.now();
        clock.sleep(Duration::from_millis(1));
        assert!(clock.now() >= before + Duration::from_millis(1));
    }
}
