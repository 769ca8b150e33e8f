//! A clock that a test advances.

use crate::Clock;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::time::Duration;

/// A clock that stands still until [`ManualClock::advance`]. [`Clock::sleep`] advances it and returns at once, so a
/// test of a timeout takes no time.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    passed: Mutex<Duration>,
}

impl ManualClock {
    /// Makes a clock whose time of day is `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self { start, passed: Mutex::new(Duration::ZERO) }
    }

    /// Moves the clock forward by `duration`.
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
}
