//! Groups by a single integer key: a table for small keys, such as years, ages and codes, and a hash table for others.
//!
//! Equal integers of any width are the same key.

use crate::{Batch, Column};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_types::Value;

/// Keys from 0 below this have a place in the table, so that it takes 16 KiB at most.
const TABLE: usize = 4096;

/// Numbers of groups by their key.
#[derive(Default)]
pub(super) struct ByInteger {
    /// The number of the group of each small key, plus one; 0 for a key without a group.
    small: Vec<u32>,
    others: FxHashMap<i64, usize>,
}

impl ByInteger {
    /// Returns the group of a key.
    #[inline]
    pub fn get(&self, key: i64) -> Option<usize> {
        match self.small.get(key as usize) {
            Some(0) => None,
            Some(group) => Some(*group as usize - 1),
            None if self.others.is_empty() => None,
            None => self.others.get(&key).copied(),
        }
    }

    /// Remembers the group of a key that has none.
    pub fn insert(&mut self, key: i64, group: usize) {
        let place = usize::try_from(key).ok().filter(|place| *place < TABLE);
        let number = u32::try_from(group + 1).ok();
        match place.zip(number) {
            Some((place, number)) => {
                if self.small.len() <= place {
                    self.small.resize((place + 1).next_power_of_two(), 0);
                }
                self.small[place] = number;
            }
            None => {
                self.others.insert(key, group);
            }
        }
    }

    pub fn clear(&mut self) {
        self.small.clear();
        self.others.clear();
    }
}

/// The integers of a sole key column.
pub(super) enum IntegerKeys<'c> {
    Integers(&'c [i64]),
    /// Values, some of which may be integers.
    Values(&'c [Value]),
}

impl<'c> IntegerKeys<'c> {
    /// `None` if there are several keys or origins, or if no key is an integer.
    pub fn of(keys: &'c [Arc<Column>], batch: &Batch) -> Option<Self> {
        match (keys, &batch.origin) {
            ([column], None) => match &**column {
                Column::Integers(integers) => Some(Self::Integers(&integers.values)),
                Column::Values(values) => Some(Self::Values(values)),
                _ => None,
            },
            _ => None,
        }
    }

    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Integers(integers) => integers.get(row).copied(),
            Self::Values(values) => values.get(row).and_then(Value::as_i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_size_find_their_groups() {
        let keys = [0, 7, 4095, 4096, -1, i64::MIN, i64::MAX, 1 << 32, (1 << 32) + 7];
        let mut groups = ByInteger::default();
        for (group, key) in keys.into_iter().enumerate() {
            assert_eq!(groups.get(key), None, "{key}");
            groups.insert(key, group);
        }
        for (group, key) in keys.into_iter().enumerate() {
            assert_eq!(groups.get(key), Some(group), "{key}");
        }
        assert_eq!(groups.get(8), None);
        groups.clear();
        assert_eq!(groups.get(7), None);
    }
}
