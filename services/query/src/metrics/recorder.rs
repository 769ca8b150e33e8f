//! Keeps the selected metrics between two events of the log.
//!
//! Counters add up since the start, and an event has what was added since the one before. A histogram starts anew with
//! each event. It counts values in buckets whose bounds grow by a constant factor, so its size does not depend on the
//! number of requests.

use super::selection;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_util::registry::{Registry, Storage};
use std::array;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of buckets of a histogram: the most values that CloudWatch takes of a metric in an event.
pub(super) const BUCKETS: usize = 100;
/// The value of the first bucket, in seconds: a query on the thread that read it.
const LEAST: f64 = 0.000_01;
/// The value of the last bucket, in seconds: a query that reaches its time limit.
const MOST: f64 = 120.0;

/// A recorder of the selected metrics. Clones share them.
#[derive(Clone)]
pub(super) struct LogRecorder(Arc<Registry<Key, Kept>>);

/// What the selected metrics are kept in.
struct Kept;

impl Storage<Key> for Kept {
    type Counter = Arc<AtomicU64>;
    type Gauge = Arc<AtomicU64>;
    type Histogram = Arc<Buckets>;

    fn counter(&self, _: &Key) -> Self::Counter {
        Arc::default()
    }

    fn gauge(&self, _: &Key) -> Self::Gauge {
        Arc::default()
    }

    fn histogram(&self, _: &Key) -> Self::Histogram {
        Arc::default()
    }
}

/// The counts of a histogram's buckets.
pub(super) struct Buckets([AtomicU64; BUCKETS]);

impl Default for Buckets {
    fn default() -> Self {
        Self(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Buckets {
    /// Returns the bucket whose value is nearest, on the logarithmic scale.
    fn index(value: f64) -> usize {
        let position = (value / LEAST).ln() / (MOST / LEAST).ln() * (BUCKETS - 1) as f64;
        // A value below all buckets is in the first one, and so is NaN.
        (position.round().max(0.0) as usize).min(BUCKETS - 1)
    }

    /// Returns the value that stands for those in a bucket, with three digits.
    fn value(index: usize) -> f64 {
        let value = LEAST * (MOST / LEAST).powf(index as f64 / (BUCKETS - 1) as f64);
        format!("{value:.2e}").parse().unwrap_or(value)
    }

    /// Returns the values with their counts, and starts anew.
    fn take(&self) -> Distribution {
        let counts = self.0.iter().map(|count| count.swap(0, Ordering::Relaxed)).enumerate();
        let counted = counts.filter(|(_, count)| *count > 0);
        counted.map(|(index, count)| (Self::value(index), count)).unzip()
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        self.0[Self::index(value)].fetch_add(1, Ordering::Relaxed);
    }
}

/// Values, and how often each of them, or one near it, occurred.
pub(super) type Distribution = (Vec<f64>, Vec<u64>);

/// What an event says of a metric.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Measure {
    /// The growth of a counter.
    Growth(u64),
    /// The value of a gauge.
    Value(f64),
    /// The values of a histogram.
    Values(Distribution),
}

/// The series that are written, with what happened since the last time.
pub(super) type Snapshot = BTreeMap<Key, Measure>;

/// The values of counters in the event before.
#[derive(Default)]
pub(super) struct Before(BTreeMap<Key, u64>);

impl LogRecorder {
    pub(super) fn new() -> Self {
        Self(Arc::new(Registry::new(Kept)))
    }

    /// Returns the series that were recorded since the start. A histogram without values since the last call is missing.
    pub(super) fn take(&self, before: &mut Before) -> Snapshot {
        let mut snapshot = Snapshot::new();
        self.0.visit_counters(|key, counter| {
            let now = counter.load(Ordering::Relaxed);
            let last = before.0.insert(key.clone(), now).unwrap_or(0);
            snapshot.insert(key.clone(), Measure::Growth(now.saturating_sub(last)));
        });
        self.0.visit_gauges(|key, gauge| {
            let value = f64::from_bits(gauge.load(Ordering::Relaxed));
            // JSON has no other numbers.
            if value.is_finite() {
                snapshot.insert(key.clone(), Measure::Value(value));
            }
        });
        self.0.visit_histograms(|key, histogram| {
            let values = histogram.take();
            if !values.0.is_empty() {
                snapshot.insert(key.clone(), Measure::Values(values));
            }
        });
        snapshot
    }
}

impl Recorder for LogRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let series = selection::series(key);
        series.map_or_else(Counter::noop, |key| {
            self.0.get_or_create_counter(&key, |counter| Counter::from_arc(counter.clone()))
        })
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let series = selection::series(key);
        series.map_or_else(Gauge::noop, |key| {
            self.0.get_or_create_gauge(&key, |gauge| Gauge::from_arc(gauge.clone()))
        })
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let series = selection::series(key);
        series.map_or_else(Histogram::noop, |key| {
            self.0.get_or_create_histogram(&key, |histogram| Histogram::from_arc(histogram.clone()))
        })
    }
}
