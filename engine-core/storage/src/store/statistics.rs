//! What the planner asks: counts, characteristic sets, different values, degrees.
//!
//! Counts and sets are kept by the writer and read as they are. What has to be put together from all partitions (sketches
//! of different values, degrees of a sample of the vertices) is put together anew when the graph has changed much.

use super::Store;
use crate::partition::{Degrees, Sketches};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_apl::{DegreeStatistics, SetKey, SetStatistics, Statistics};
use tidegraph_types::Token;

/// Vertices whose degrees are looked at.
const SAMPLE: u32 = 2048;
/// Sets that are told, the largest first.
const MOST_SETS: usize = 1024;

/// What was put together, and for which numbers of vertices and edges.
#[derive(Debug)]
pub(super) struct Gathered {
    of: (u64, u64),
    distinct: Vec<(Token, u64)>,
    degrees: Vec<DegreeStatistics>,
}

/// Whether a count has changed by more than an eighth, or at all while it is small.
fn far(then: u64, now: u64) -> bool {
    let apart = then.abs_diff(now);
    if now <= 64 { apart > 0 } else { apart > now / 8 }
}

impl Store {
    pub(super) fn all_statistics(&self) -> Statistics {
        let counts = self.counts();
        let gathered = self.gathered((counts.vertices, counts.edges));
        Statistics {
            sets: self.sets(),
            distinct: gathered.distinct.clone(),
            degrees: gathered.degrees.clone(),
            ..counts
        }
    }

    fn gathered(&self, now: (u64, u64)) -> Arc<Gathered> {
        if let Some(there) = &*self.gathered.load()
            && !far(there.of.0, now.0)
            && !far(there.of.1, now.1)
        {
            return Arc::clone(there);
        }
        let mut sketches = Sketches::default();
        let mut degrees = Degrees::default();
        let pin = self.pin_published();
        let each = SAMPLE / self.partitions.len() as u32 + 1;
        for partition in self.partitions() {
            partition.distinct().merge_into(&mut sketches);
            partition.sample_degrees(each, pin.version(), &mut degrees);
        }
        let mut distinct: Vec<(Token, u64)> =
            sketches.iter().map(|(key, sketch)| (*key, sketch.estimate())).collect();
        distinct.sort_unstable();
        let gathered = Arc::new(Gathered { of: now, distinct, degrees: degrees.finish() });
        self.gathered.store(Some(Arc::clone(&gathered)));
        gathered
    }

    fn sets(&self) -> Vec<SetStatistics> {
        let mut all: FxHashMap<(Vec<Token>, Vec<Token>), SetStatistics> = FxHashMap::default();
        for partition in self.partitions() {
            for set in partition.rows().sets().filter(|set| set.is_of_vertices() && set.profile.rows() > 0) {
                // The order of writing makes sets of their own, and matters to nobody here.
                let mut labels = set.labels.to_vec();
                labels.sort_unstable();
                let mut keys: Vec<SetKey> = (0..)
                    .zip(&set.columns)
                    .map(|(at, column)| SetKey { key: column.shape.key, bounds: set.profile.bounds(at) })
                    .collect();
                keys.sort_unstable_by_key(|key| key.key);
                let vertices = set.profile.rows();
                let names = keys.iter().map(|key| key.key).collect();
                let new = SetStatistics { labels: labels.clone(), vertices, keys };
                match all.entry((labels, names)) {
                    std::collections::hash_map::Entry::Vacant(entry) => drop(entry.insert(new)),
                    std::collections::hash_map::Entry::Occupied(mut entry) => join(entry.get_mut(), &new),
                }
            }
        }
        let mut sets: Vec<SetStatistics> = all.into_values().collect();
        sets.sort_by_cached_key(|set| {
            let keys: Vec<Token> = set.keys.iter().map(|key| key.key).collect();
            (std::cmp::Reverse(set.vertices), set.labels.clone(), keys)
        });
        sets.truncate(MOST_SETS);
        sets
    }
}

/// Adds the same labels and keys of elsewhere.
fn join(set: &mut SetStatistics, other: &SetStatistics) {
    set.vertices += other.vertices;
    for (key, new) in set.keys.iter_mut().zip(&other.keys) {
        let both = key.bounds.zip(new.bounds);
        key.bounds = both.map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
    }
}
