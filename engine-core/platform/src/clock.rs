//! Time: a monotonic clock for durations and deadlines, a wall clock for people.
//!
//! The wall clock may jump. Never order anything by it.

use jiff::Timestamp;
use std::fmt::Debug;
use std::time::Duration;

/// A source of time.
pub trait Clock: Send + Sync + Debug {
    /// Returns the time since the clock was created. It never decreases.
    fn now(&self) -> Duration;
    /// Returns the time of day in UTC.
    fn wall(&self) -> Timestamp;
    /// Blocks the calling thread.
    fn sleep(&self, duration: Duration);
}

/// The clock of the machine.
#[derive(Debug)]
pub struct RealClock {
    start: std::time::Instant,
}

impl RealClock {
    /// Makes a clock whose `now` starts at zero.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
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

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the time of day")]
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_clock_goes_on() {
        let clock = RealClock::new();
        let before = clock.now();
        clock.sleep(Duration::from_millis(1));
        assert!(clock.now() >= before + Duration::from_millis(1));
    }
}
