//! Decides when to ask a second replica: after the 95th percentile of recent answers to such requests, and for a
//! bounded share of the requests, so that a fleet that is slow as a whole does not receive every request twice.

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of classes of requests, whose answers take different times.
const CLASSES: usize = 5;
/// Stands for the rows of a scan that answers less than rows: it takes long, however short its answer is.
pub(super) const DIGEST: usize = usize::MAX - 1;
/// Number of answers after which the percentile is computed anew.
const WINDOW: u64 = 256;
/// Number of answers after which the percentile is first computed.
const LEAST: u64 = 32;
/// Longest latency that is recorded, in microseconds. Longer ones count as this.
const LONGEST_US: u64 = 60_000_000;
/// Thousandths of a second request that each answer adds to the budget.
const EARNED: u64 = 50;
/// Largest budget, in thousandths of a second request.
const MOST_SAVED: u64 = 20_000;

/// Recent latencies of answers, and the budget for second requests.
#[derive(Debug)]
pub(crate) struct Hedges {
    classes: [Class; CLASSES],
    /// Budget, in thousandths of a second request.
    saved: AtomicU64,
    /// Earliest time at which a request counts as slow.
    least: Duration,
}

#[derive(Debug)]
struct Class {
    /// The 95th percentile in microseconds; 0: unknown.
    slow: AtomicU64,
    lately: Mutex<Histogram<u32>>,
}

impl Hedges {
    pub fn new(least: Duration) -> Self {
        let class = || {
            let lately = Histogram::new_with_bounds(1, LONGEST_US, 2).expect("the bounds are in order");
            Class { slow: AtomicU64::new(0), lately: Mutex::new(lately) }
        };
        Self { classes: std::array::from_fn(|_| class()), saved: AtomicU64::new(MOST_SAVED / 4), least }
    }

    /// Returns the class of a request for `rows` rows.
    pub fn class(rows: usize) -> usize {
        match rows {
            0..=16 => 0,
            17..=256 => 1,
            257..=4096 => 2,
            DIGEST => 4,
            _ => 3,
        }
    }

    /// Returns the time after which a request of a class counts as slow; `None`: unknown.
    pub fn slow_after(&self, class: usize) -> Option<Duration> {
        match self.classes[class].slow.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(Duration::from_micros(micros).max(self.least)),
        }
    }

    /// Records how long an answer took.
    pub fn note(&self, class: usize, took: Duration) {
        self.saved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| {
                Some((saved + EARNED).min(MOST_SAVED))
            })
            .ok();
        let class = &self.classes[class];
        // If the lock is taken, this answer is not recorded: a sample is enough.
        let Some(mut lately) = class.lately.try_lock() else { return };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        lately.saturating_record(micros.clamp(1, LONGEST_US));
        let known = class.slow.load(Ordering::Relaxed) > 0;
        if lately.len() >= WINDOW || (!known && lately.len() >= LEAST) {
            class.slow.store(lately.value_at_quantile(0.95), Ordering::Relaxed);
            if lately.len() >= WINDOW {
                lately.reset();
            }
        }
    }

    /// Takes one second request from the budget. Returns whether there was enough.
    pub fn spend(&self) -> bool {
        let spend = |saved: u64| saved.checked_sub(1000);
        self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_is_what_one_of_twenty_takes() {
        let hedges = Hedges::new(Duration::from_micros(10));
        assert_eq!(hedges.slow_after(0), None);
        for number in 0..WINDOW {
            hedges.note(0, Duration::from_micros(if number % 10 == 0 { 5000 } else { 100 }));
        }
        assert!(hedges.slow_after(0) >= Some(Duration::from_micros(4900)), "one of ten is slow");
        for _ in 0..WINDOW {
            hedges.note(0, Duration::from_micros(100));
        }
        let after = hedges.slow_after(0).unwrap();
        assert!((95..=105).contains(&after.as_micros()), "{after:?}");
        assert_eq!(hedges.slow_after(1), None, "another class");
    }

    #[test]
    fn second_requests_are_a_bounded_share() {
        let hedges = Hedges::new(Duration::ZERO);
        let mut sent = 0;
        for _ in 0..10_000 {
            hedges.note(2, Duration::from_micros(100));
            sent += u64::from(hedges.spend());
        }
        let share = 10_000 * EARNED / 1000;
        assert!((share..=share + MOST_SAVED / 1000).contains(&sent), "{sent} of 10000");
    }
}
