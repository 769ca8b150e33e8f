//! How many different values each property key of the vertices has: a sketch for each (HyperLogLog++), fed by every write.
//!
//! Of a checkpoint only some pages are looked at, so that restoring stays as fast as its disk. What is removed still counts
//! as different.

use crate::properties::PageTable;
use cardinality_estimator::CardinalityEstimator;
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use tidegraph_types::{Token, Value};

/// Keys of a partition that have a sketch, of up to 4 KiB each.
const MOST_KEYS: usize = 1024;
/// Of so many pages of a checkpoint one is looked at.
const PAGES_A_LOOK: u32 = 8;

/// What is known of the values of one key.
#[derive(Default)]
pub(crate) struct Sketch {
    estimator: CardinalityEstimator<u64>,
    /// Values that were looked at, and all of them.
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

    /// Different values, about.
    pub fn estimate(&self) -> u64 {
        let seen = (self.estimator.estimate() as u64).min(self.looked_at);
        // Values that hardly ever come twice go on like that among those that were not looked at.
        if seen > self.looked_at / 2 {
            (seen as f64 * self.values as f64 / self.looked_at.max(1) as f64) as u64
        } else {
            seen
        }
    }
}

/// Sketches by key.
pub(crate) type Sketches = FxHashMap<Token, Sketch>;

/// See the module. The writer and whoever plans take turns; readers of the graph do not look here.
#[derive(Default)]
pub(crate) struct Distinct(Mutex<Sketches>);

/// The sketch of a key, unless there are too many.
fn sketch(sketches: &mut Sketches, key: Token) -> Option<&mut Sketch> {
    let room = sketches.len() < MOST_KEYS;
    if room { Some(sketches.entry(key).or_default()) } else { sketches.get_mut(&key) }
}

impl Distinct {
    /// Values were written.
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

    /// A page of a checkpoint was taken over, with so many rows of vertices.
    pub fn adopt(&self, table: &PageTable, number: u32, rows: u64, guard: &Guard) {
        let mut sketches = self.0.lock();
        if number.is_multiple_of(PAGES_A_LOOK) {
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

    /// Adds these sketches to those of other partitions.
    pub fn merge_into(&self, all: &mut Sketches) {
        for (key, sketch) in self.0.lock().iter() {
            let sum = all.entry(*key).or_default();
            sum.estimator.merge(&sketch.estimator);
            sum.looked_at += sketch.looked_at;
            sum.values += sketch.values;
        }
    }

    /// Bytes in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.0.lock().values().map(|sketch| sketch.estimator.size_of() + size_of::<Sketch>()).sum()
    }
}
