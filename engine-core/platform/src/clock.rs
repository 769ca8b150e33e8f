//! Time: a monotonic clock for durations and deadlines, a wall clock for people.
//!
//! The wall clock may jump. Never order anything by it.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
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
///
/// It goes on while the machine is suspended, unlike `std::time::Instant`: a process that wakes up must know that its
/// leases have run out.
#[derive(Debug)]
pub struct RealClock {
    start: Duration,
}

/// The clock that counts the time of suspension too.
#[cfg(any(target_os = "linux", target_os = "android"))]
const WITH_SUSPENSION: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const WITH_SUSPENSION: ClockId = ClockId::Monotonic;

/// Returns the time since a moment that stays the same while the machine runs.
fn since_boot() -> Duration {
    let time = clock_gettime(WITH_SUSPENSION);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

impl RealClock {
    /// Makes a clock whose `now` starts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self { start: since_boot() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        since_boot().saturating_sub(self.start)
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

    /// The kernel's time since boot contains the time of suspension.
    #[cfg(target_os = "linux")]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
    fn suspension_counts() {
        let uptime = || -> f64 {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            text.split(' ').next().unwrap().parse().unwrap()
        };
        let before = uptime();
        let between = since_boot().as_secs_f64();
        let after = uptime();
        // The file has hundredths of a second.
        assert!(before - 0.011 <= between && between <= after + 0.011, "{before} {between} {after}");
    }
}
