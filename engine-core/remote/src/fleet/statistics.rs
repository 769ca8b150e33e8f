//! Counts for the planner: merged over all partitions, and kept for some seconds.

use super::FleetApl;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_apl::{At, DegreeStatistics, Error, KeyStatistics, SetKey, SetStatistics, Statistics};
use tidegraph_types::Token;
use tidegraph_wire::apl::request;

impl FleetApl {
    /// Returns the counts for the planner, as [`tidegraph_apl::Apl::statistics`] without a copy. They may be some
    /// seconds old; if new ones cannot be read, the old ones are returned.
    #[must_use]
    pub fn counts(&self) -> Arc<Statistics> {
        let now = self.shared.clock.now();
        {
            let mut kept = self.shared.statistics.lock();
            if let Some((since, statistics)) = &mut *kept {
                let fresh = self.shared.config.statistics_age;
                if now.saturating_sub(*since) < fresh {
                    return statistics.clone();
                }
                // Other callers use the old counts while this one reads new ones.
                *since = now;
            }
        }
        match self.ask_all(At::default(), request::Statistics) {
            Ok(parts) => {
                let merged = Arc::new(merge(parts.into_iter()));
                *self.shared.statistics.lock() = Some((now, merged.clone()));
                merged
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read new counts for the planner");
                self.shared.statistics.lock().as_ref().map(|(_, kept)| kept.clone()).unwrap_or_default()
            }
        }
    }
}

impl FleetApl {
    /// Reads the counts as they are at a version, or later.
    ///
    /// # Errors
    ///
    /// Those of a read.
    pub fn counts_at(&self, at: At) -> Result<Arc<Statistics>, Error> {
        Ok(Arc::new(merge(self.ask_all(at, request::Statistics)?.into_iter())))
    }
}

/// Characteristic sets by their labels and keys.
type Sets = FxHashMap<(Vec<Token>, Vec<Token>), SetStatistics>;

/// Merges the counts of partitions. Numbers of different values are estimated by their sum or their maximum: a rare
/// value is in one partition, a common one in all.
fn merge(parts: impl Iterator<Item = Statistics>) -> Statistics {
    let mut all = Statistics::default();
    let mut vertices_by_label: FxHashMap<Token, u64> = FxHashMap::default();
    let mut edges_by_label: FxHashMap<Token, u64> = FxHashMap::default();
    let mut distinct: FxHashMap<Token, (u64, u64)> = FxHashMap::default();
    let mut keys: FxHashMap<(Token, Token), (u64, u64, u64)> = FxHashMap::default();
    let (mut sets, mut edge_sets) = (Sets::default(), Sets::default());
    let mut degrees: FxHashMap<(Option<Token>, Token, bool), DegreeStatistics> = FxHashMap::default();
    for part in parts {
        all.vertices += part.vertices;
        all.edges += part.edges;
        part.vertices_by_label.iter().for_each(|(l, n)| *vertices_by_label.entry(*l).or_default() += n);
        part.edges_by_label.iter().for_each(|(l, n)| *edges_by_label.entry(*l).or_default() += n);
        for (key, count) in part.distinct {
            let (most, sum) = distinct.entry(key).or_default();
            (*most, *sum) = ((*most).max(count), *sum + count);
        }
        for key in part.keys {
            let (values, most, sum) = keys.entry((key.label, key.key)).or_default();
            (*values, *most, *sum) = (*values + key.values, (*most).max(key.distinct), *sum + key.distinct);
        }
        for set in part.sets {
            merge_set(&mut sets, set);
        }
        for set in part.edge_sets {
            merge_set(&mut edge_sets, set);
        }
        for degree in part.degrees {
            let id = (degree.vertex_label, degree.edge_label, degree.outgoing);
            let empty = || DegreeStatistics {
                vertex_label: degree.vertex_label,
                edge_label: degree.edge_label,
                outgoing: degree.outgoing,
                ..Default::default()
            };
            let sum = degrees.entry(id).or_insert_with(empty);
            sum.vertices += degree.vertices;
            sum.edges += degree.edges;
            sum.histogram.resize(sum.histogram.len().max(degree.histogram.len()), 0);
            sum.histogram.iter_mut().zip(&degree.histogram).for_each(|(sum, count)| *sum += count);
        }
    }
    // If one partition has many different values, those of the other partitions are mostly others.
    let together = |most: u64, sum: u64| if most > 1000 { sum } else { most };
    all.vertices_by_label = sorted(vertices_by_label);
    all.edges_by_label = sorted(edges_by_label);
    all.distinct =
        sorted(distinct).into_iter().map(|(key, (most, sum))| (key, together(most, sum))).collect();
    all.keys = sorted(keys)
        .into_iter()
        .map(|((label, key), (values, most, sum))| {
            let distinct = together(most, sum).min(values);
            KeyStatistics { label, key, values, distinct }
        })
        .collect();
    all.edge_sets = sorted(edge_sets).into_iter().map(|(_, set)| set).collect();
    all.sets = sorted(sets).into_iter().map(|(_, set)| set).collect();
    all.degrees = sorted(degrees).into_iter().map(|(_, degree)| degree).collect();
    all
}

fn merge_set(sets: &mut Sets, mut set: SetStatistics) {
    set.labels.sort_unstable();
    set.keys.sort_unstable_by_key(|key| key.key);
    let id = (set.labels.clone(), set.keys.iter().map(|key| key.key).collect());
    match sets.entry(id) {
        std::collections::hash_map::Entry::Vacant(entry) => {
            entry.insert(set);
        }
        std::collections::hash_map::Entry::Occupied(mut entry) => {
            let sum = entry.get_mut();
            sum.elements += set.elements;
            for (key, more) in sum.keys.iter_mut().zip(set.keys) {
                *key = wider(*key, more);
            }
        }
    }
}

/// Returns the key with bounds that enclose both; without bounds if one has none.
fn wider(key: SetKey, more: SetKey) -> SetKey {
    let bounds = key.bounds.zip(more.bounds).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
    SetKey { key: key.key, bounds }
}

fn sorted<K: Ord, V>(map: FxHashMap<K, V>) -> Vec<(K, V)> {
    let mut list: Vec<(K, V)> = map.into_iter().collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}
