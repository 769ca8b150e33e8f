//! When to ask a second replica: after the time that nineteen of twenty answers of such requests took lately, and for a
//! bounded share of the requests, so that a fleet that is slow as a whole is not asked twice for everything.

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Classes of requests, whose answers take differently long.
const CLASSES: usize = 4;
/// Answers of which the quantile is known anew.
const WINDOW: u64 = 256;
/// Answers without which nothing is known.
const LEAST: u64 = 32;
/// Longest time that is told apart from longer ones, in microseconds.
const LONGEST_US: u64 = 60_000_000;
/// A request earns so much of a second one, in thousandths.
const EARNED: u64 = 50;
/// Second requests that may be saved up, in thousandths.
const MOST_SAVED: u64 = 20_000;

/// What is known of how long answers take.
#[derive(Debug)]
pub(crate) struct Hedges {
    classes: [Class; CLASSES],
    /// Second requests that may be sent, in thousandths.
    saved: AtomicU64,
    /// Never sooner than this.
    least: Duration,
}

#[derive(Debug)]
struct Class {
    /// In microseconds; 0: not known yet.
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

    /// The class of a request that asks for so many rows.
    pub fn class(rows: usize) -> usize {
        match rows {
            0..=16 => 0,
            17..=256 => 1,
            257..=4096 => 2,
            _ => 3,
        }
    }

    /// After how long a request of a class is slow; `None`: nobody knows.
    pub fn slow_after(&self, class: usize) -> Option<Duration> {
        match self.classes[class].slow.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(Duration::from_micros(micros).max(self.least)),
        }
    }

    /// Notes how long an answer took.
    pub fn note(&self, class: usize, took: Duration) {
        self.saved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| {
                Some((saved + EARNED).min(MOST_SAVED))
            })
            .ok();
        let class = &self.classes[class];
        // Who does not get the lock leaves this answer out: others are noted.
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

    /// Whether a second request may be sent; if so, it is counted.
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
