//! Estimates the number of distinct values of each property key of vertices, with a sketch (HyperLogLog++) that every
//! write feeds.
//!
//! Restoring a checkpoint reads only some pages for it, so that it stays as fast as the disk. Removed values still
//! count.

use crate::properties::PageTable;
use cardinality_estimator::CardinalityEstimator;
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use tidegraph_types::{Token, Value};

/// Number of keys of a partition that have a sketch; a sketch takes up to 4 KiB.
const MOST_KEYS: usize = 1024;
/// One of this many pages of a checkpoint is read.
const PAGES_PER_LOOK: u32 = 8;

/// Distinct values of one key.
#[derive(Default)]
pub(crate) struct Sketch {
    estimator: CardinalityEstimator<u64>,
    /// Number of values that the estimator has seen, and of all values.
    looked_at: u64,
    values: u64,
}

impl Sketch {
    fn note(&mut self, value: &Value) {
        let mut hasher = FxHasher::default();
        value.hash(&mut hasher);
        self.estimator.insert(&hasher.finish());
        self.looked_at += 1;
        self.values += 1;
    }

    /// Estimates the number of distinct values.
    pub fn estimate(&self) -> u64 {
        let seen = (self.estimator.estimate() as u64).min(self.looked_at);
        // Values that rarely repeat are assumed to do so among the values that were not seen.
        if seen > self.looked_at / 2 {
            (seen as f64 * self.values as f64 / self.looked_at.max(1) as f64) as u64
        } else {
            seen
        }
    }
}

/// Sketches by key.
pub(crate) type Sketches = FxHashMap<Token, Sketch>;

/// Sketches of a partition. The writer and the planner lock them; readers of the graph do not.
#[derive(Default)]
pub(crate) struct Distinct(Mutex<Sketches>);

/// Returns the sketch of a key; `None` if the key has none and there are too many.
fn sketch(sketches: &mut Sketches, key: Token) -> Option<&mut Sketch> {
    let room = sketches.len() < MOST_KEYS;
    if room { Some(sketches.entry(key).or_default()) } else { sketches.get_mut(&key) }
}

impl Distinct {
    /// Adds written values.
    pub fn note<'v>(&self, values: impl ExactSizeIterator<Item = (Token, &'v Value)>) {
        if values.len() == 0 {
            return;
        }
        let mut sketches = self.0.lock();
        for (key, value) in values {
            if let Some(sketch) = sketch(&mut sketches, key) {
                sketch.note(value);
            }
        }
    }

    /// Adds a page of a checkpoint with `rows` rows of vertices.
    pub fn adopt(&self, table: &PageTable, number: u32, rows: u64, guard: &Guard) {
        let mut sketches = self.0.lock();
        if number.is_multiple_of(PAGES_PER_LOOK) {
            table.for_each_value(number, guard, |key, value| {
                if let Some(sketch) = sketch(&mut sketches, key) {
                    sketch.note(value);
                }
            });
        } else {
            for key in table.keys(number, guard) {
                if let Some(sketch) = sketch(&mut sketches, key) {
                    sketch.values += rows;
                }
            }
        }
    }

    /// Merges these sketches into those of other partitions.
    pub fn merge_into(&self, all: &mut Sketches) {
        for (key, sketch) in self.0.lock().iter() {
            let sum = all.entry(*key).or_default();
            sum.estimator.merge(&sketch.estimator);
            sum.looked_at += sketch.looked_at;
            sum.values += sketch.values;
        }
    }

    /// Returns the approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0.lock().values().map(|sketch| sketch.estimator.size_of() + size_of::<Sketch>()).sum()
    }
}
