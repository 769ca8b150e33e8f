//! Statistics for the planner: counts, characteristic sets, distinct values, degrees.
//!
//! The writer keeps counts and sets current. Sketches of distinct values and degrees of sampled vertices, which are
//! gathered from all partitions, are gathered again when the graph has changed much.

use super::Generation;
use crate::partition::{Degrees, Sketches};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tidegraph_apl::{DegreeStatistics, SetKey, SetStatistics, Statistics};
use tidegraph_types::Token;

/// Number of vertices whose degrees are sampled.
const SAMPLE: u32 = 2048;
/// Number of sampled vertices of a label, or all that it has; fewer get a sample of their own...
const LEAST_OF_LABEL: u64 = 128;
/// ...for at most this many labels, the most frequent ones.
const MOST_LABELS: usize = 256;
/// Number of sets that are reported, the largest first.
const MOST_SETS: usize = 1024;

/// Gathered statistics, with the numbers of vertices and edges at that time.
#[derive(Debug)]
pub(super) struct SampledStatistics {
    of: (u64, u64),
    distinct: Vec<(Token, u64)>,
    degrees: Vec<DegreeStatistics>,
}

/// Returns whether a count has changed by more than an eighth, or at all while it is small.
fn far(then: u64, now: u64) -> bool {
    let apart = then.abs_diff(now);
    if now <= 64 { apart > 0 } else { apart > now / 8 }
}

impl Generation {
    /// Returns the statistics for the planner.
    pub(super) fn all_statistics(&self) -> Statistics {
        let counts = self.counts();
        let gathered = self.gathered(&counts);
        Statistics {
            sets: self.sets(true),
            edge_sets: self.sets(false),
            distinct: gathered.distinct.clone(),
            degrees: gathered.degrees.clone(),
            ..counts
        }
    }

    fn gathered(&self, counts: &Statistics) -> Arc<SampledStatistics> {
        let now = (counts.vertices, counts.edges);
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
        let rare = rare_labels(counts, &degrees);
        if !rare.is_empty() {
            degrees.forget(&rare);
            let each = LEAST_OF_LABEL as u32 / self.partitions.len() as u32 + 1;
            for partition in self.partitions() {
                partition.sample_degrees_of(&rare, each, pin.version(), &mut degrees);
            }
        }
        let mut distinct: Vec<(Token, u64)> =
            sketches.iter().map(|(key, sketch)| (*key, sketch.estimate())).collect();
        distinct.sort_unstable();
        let gathered = Arc::new(SampledStatistics { of: now, distinct, degrees: degrees.finish() });
        self.gathered.store(Some(Arc::clone(&gathered)));
        gathered
    }

    fn sets(&self, of_vertices: bool) -> Vec<SetStatistics> {
        let mut all: FxHashMap<(Vec<Token>, Vec<Token>), SetStatistics> = FxHashMap::default();
        for partition in self.partitions() {
            for set in partition.rows().sets() {
                if set.is_of_vertices() != of_vertices || set.profile.rows() == 0 {
                    continue;
                }
                // The order of first writing distinguishes sets, but not for the planner.
                let mut labels = set.labels.to_vec();
                labels.sort_unstable();
                let mut keys: Vec<SetKey> = (0..)
                    .zip(&set.columns)
                    .map(|(at, column)| SetKey { key: column.shape.key, bounds: set.profile.bounds(at) })
                    .collect();
                keys.sort_unstable_by_key(|key| key.key);
                let elements = set.profile.rows();
                let names = keys.iter().map(|key| key.key).collect();
                let new = SetStatistics { labels: labels.clone(), elements, keys };
                match all.entry((labels, names)) {
                    std::collections::hash_map::Entry::Vacant(entry) => drop(entry.insert(new)),
                    std::collections::hash_map::Entry::Occupied(mut entry) => join(entry.get_mut(), &new),
                }
            }
        }
        let mut sets: Vec<SetStatistics> = all.into_values().collect();
        sets.sort_by_cached_key(|set| {
            let keys: Vec<Token> = set.keys.iter().map(|key| key.key).collect();
            (std::cmp::Reverse(set.elements), set.labels.clone(), keys)
        });
        sets.truncate(MOST_SETS);
        sets
    }
}

/// Returns labels of which the even sample has too few vertices.
fn rare_labels(counts: &Statistics, degrees: &Degrees) -> FxHashSet<Token> {
    let is_rare = |(label, count): &&(Token, u64)| degrees.vertices_of(*label) < LEAST_OF_LABEL.min(*count);
    let mut rare: Vec<_> = counts.vertices_by_label.iter().filter(is_rare).collect();
    rare.sort_by_key(|(label, count)| (std::cmp::Reverse(*count), *label));
    rare.into_iter().take(MOST_LABELS).map(|(label, _)| *label).collect()
}

/// Adds the statistics of the same labels and keys in another partition.
fn join(set: &mut SetStatistics, other: &SetStatistics) {
    set.elements += other.elements;
    for (key, new) in set.keys.iter_mut().zip(&other.keys) {
        let both = key.bounds.zip(new.bounds);
        key.bounds = both.map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
    }
}
