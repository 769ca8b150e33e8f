//! The version at which each key was last written, from which conflicts are found (TXN-2).
//!
//! Bounded: the oldest entries are forgotten, and the *floor* is the newest forgotten version. A transaction that read
//! before the floor may have a conflict, and is refused.
//!
//! Keys of the schema ([`Key::is_of_schema`]) have their own entries and their own floor. A bulk load reads no other
//! keys, so it does not meet a conflict because transactions wrote many keys that it never read.
//!
//! Writes of a group count at once, so that later requests of the group see them. [`Keys::undo_group`] takes them back
//! if the log refuses the group; [`Keys::keep_group`] keeps them. Nothing is forgotten in between.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tidegraph_types::{Key, Version};

#[derive(Debug)]
pub(crate) struct Keys {
    last: FxHashMap<Key, Version>,
    /// Writes in order of version. Entries that `last` no longer has are stale.
    order: VecDeque<(Version, Key)>,
    limit: usize,
    /// Last writes of keys of the schema.
    of_schema: FxHashMap<Key, Version>,
    marks: Marks,
    /// Former entries, for `undo_group`.
    before: Vec<(Key, Option<Version>)>,
    kept: Marks,
}

/// Versions at which many keys count as written.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// Newest forgotten version.
    floor: Version,
    /// Newest forgotten version of the keys of the schema.
    schema_floor: Version,
    /// Newest write of anything: what [`Key::GRAPH`] conflicts with.
    any: Version,
    /// Newest write of unknown keys: a load, or [`Key::GRAPH`].
    all: Version,
    /// Newest change of data that a bulk load checks its input against.
    checked_by_loads: Version,
}

/// Maximum number of keys of the schema that are remembered; a constraint has one.
const SCHEMA_KEYS: usize = 1 << 16;

impl Keys {
    /// Starts with no entries: writes up to `version` are unknown.
    pub fn new(limit: usize, version: Version) -> Self {
        let marks = Marks {
            floor: version,
            schema_floor: version,
            any: version,
            all: version,
            checked_by_loads: version,
        };
        Self {
            last: FxHashMap::default(),
            order: VecDeque::new(),
            limit,
            of_schema: FxHashMap::default(),
            marks,
            before: Vec::new(),
            kept: marks,
        }
    }

    /// A version that wrote one of `keys` after `read_version`, or may have.
    pub fn conflict(&self, keys: &[Key], read_version: Version) -> Option<Version> {
        if keys.is_empty() {
            return None;
        }
        if self.marks.all > read_version {
            return Some(self.marks.all);
        }
        keys.iter().map(|key| self.written(*key)).find(|written| *written > read_version)
    }

    /// Returns a version after which a key was not written.
    fn written(&self, key: Key) -> Version {
        let (entries, floor) = match key {
            Key::GRAPH => return self.marks.any,
            key if key.is_of_schema() => (&self.of_schema, self.marks.schema_floor),
            _ => (&self.last, self.marks.floor),
        };
        entries.get(&key).map_or(floor, |written| floor.max(*written))
    }

    /// Returns a version after `read_version` that changed data which a bulk load checked its input against.
    pub fn load_conflict(&self, read_version: Version) -> Option<Version> {
        Some(self.marks.checked_by_loads).filter(|written| *written > read_version)
    }

    /// Notes that a transaction writes `keys` at `version`.
    pub fn write(&mut self, keys: &[Key], version: Version, checked_by_loads: bool) {
        self.marks.any = version;
        if checked_by_loads {
            self.marks.checked_by_loads = version;
        }
        for key in keys {
            if *key == Key::GRAPH {
                self.marks.all = version;
                continue;
            }
            if key.is_of_schema() {
                let before = self.of_schema.insert(*key, version);
                self.before.push((*key, before));
                continue;
            }
            let before = self.last.insert(*key, version);
            if before != Some(version) {
                self.before.push((*key, before));
                self.order.push_back((version, *key));
            }
        }
    }

    /// Notes that a load writes at `version`.
    pub fn write_all(&mut self, version: Version) {
        self.marks.any = version;
        self.marks.all = version;
        // A load creates vertices and edges, so a load that checked its input before must check again.
        self.marks.checked_by_loads = version;
    }

    /// Takes back every write since the last `keep_group`.
    pub fn undo_group(&mut self) {
        self.marks = self.kept;
        while let Some((key, before)) = self.before.pop() {
            let of_schema = key.is_of_schema();
            let entries = if of_schema { &mut self.of_schema } else { &mut self.last };
            match before {
                Some(version) => entries.insert(key, version),
                None => entries.remove(&key),
            };
            if !of_schema {
                // Each write put one entry at the end.
                self.order.pop_back();
            }
        }
    }

    /// Keeps the writes of the group, and forgets the oldest entries beyond the limit.
    pub fn keep_group(&mut self) {
        self.before.clear();
        if self.of_schema.len() > SCHEMA_KEYS {
            self.forget_half_of_schema();
        }
        while self.last.len() > self.limit {
            let Some((version, key)) = self.order.pop_front() else { break };
            if self.last.get(&key) == Some(&version) {
                self.last.remove(&key);
                self.marks.floor = self.marks.floor.max(version);
            }
        }
        if self.order.len() > 2 * self.last.len() + 1024 {
            self.order.retain(|(version, key)| self.last.get(key) == Some(version));
        }
        self.kept = self.marks;
    }

    /// Forgets the older half of the keys of the schema.
    fn forget_half_of_schema(&mut self) {
        let mut versions: Vec<Version> = self.of_schema.values().copied().collect();
        let (_, median, _) = versions.select_nth_unstable(SCHEMA_KEYS / 2);
        let floor = *median;
        self.of_schema.retain(|_, version| *version > floor);
        self.marks.schema_floor = self.marks.schema_floor.max(floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::Token;

    const fn v(n: u64) -> Version {
        Version(n)
    }

    #[test]
    fn what_is_forgotten_counts_as_written() {
        let mut keys = Keys::new(2, v(0));
        for n in 1..=4 {
            keys.write(&[Key(n)], v(n), false);
            keys.keep_group();
        }
        assert_eq!(keys.last.len(), 2);
        assert_eq!(keys.conflict(&[Key(99)], v(1)), Some(v(2)));
        assert_eq!(keys.conflict(&[Key(99)], v(2)), None);
        assert_eq!(keys.conflict(&[Key(3)], v(2)), Some(v(3)));
        assert_eq!(keys.conflict(&[], v(0)), None);
    }

    #[test]
    fn a_key_written_again_and_again_takes_no_room() {
        let mut keys = Keys::new(10, v(0));
        for n in 1..=100_000 {
            keys.write(&[Key(1), Key(1 + n % 3)], v(n), false);
            keys.keep_group();
        }
        assert!(keys.order.len() < 2000);
        assert_eq!(keys.marks.floor, v(0));
        assert_eq!(keys.conflict(&[Key(1)], v(99_999)), Some(v(100_000)));
    }

    #[test]
    fn keys_of_the_schema_are_remembered_for_longer() {
        let mut keys = Keys::new(2, v(0));
        let (read, written) = (Key::constraints(), Key::any_unique(Token(1), Token(2)));
        keys.write(&[written], v(1), false);
        for n in 2..=9 {
            keys.write(&[Key(n)], v(n), false);
            keys.keep_group();
        }
        assert_eq!(keys.conflict(&[read, Key(99)], v(1)), Some(v(7)));
        assert_eq!(keys.conflict(&[read, written], v(1)), None);
        assert_eq!(keys.conflict(&[read, written], v(0)), Some(v(1)));
        keys.write(&[written, written, read], v(10), false);
        assert_eq!(keys.conflict(&[read], v(9)), Some(v(10)));
        keys.undo_group();
        assert_eq!(keys.conflict(&[read, written], v(1)), None);
        assert_eq!(keys.conflict(&[written], v(0)), Some(v(1)));
        // They are bounded too. Some of so many keys are equal.
        let last = 100 + SCHEMA_KEYS as u64;
        for n in 10..=last {
            keys.write(&[Key::any_unique(Token(3), Token(n as u32))], v(n), false);
            keys.keep_group();
        }
        assert!(keys.of_schema.len() <= SCHEMA_KEYS);
        assert!(keys.conflict(&[read], v(9)).is_some());
        assert_eq!(keys.conflict(&[read], v(last)), None);
    }

    #[test]
    fn undo_leaves_no_trace() {
        let mut keys = Keys::new(2, v(0));
        keys.write(&[Key(1), Key(2)], v(1), false);
        keys.keep_group();
        keys.write(&[Key(1), Key(3), Key(3), Key(4)], v(2), true);
        keys.write(&[Key(1), Key::GRAPH], v(3), false);
        keys.write_all(v(4));
        assert_eq!(keys.conflict(&[Key(9)], v(3)), Some(v(4)));
        keys.undo_group();
        assert_eq!(keys.order.len(), 2);
        assert_eq!(keys.conflict(&[Key(1), Key(3), Key::GRAPH], v(1)), None);
        assert_eq!(keys.conflict(&[Key(1)], v(0)), Some(v(1)));
        assert_eq!(keys.load_conflict(v(0)), None);
    }

    #[test]
    fn the_whole_graph_as_a_key() {
        let mut keys = Keys::new(10, v(5));
        assert_eq!(keys.conflict(&[Key::GRAPH], v(5)), None);
        keys.write(&[Key(1)], v(6), false);
        assert_eq!(keys.conflict(&[Key::GRAPH], v(5)), Some(v(6)));
        assert_eq!(keys.conflict(&[Key(2)], v(5)), None);
        keys.write(&[Key::GRAPH], v(7), false);
        assert_eq!(keys.conflict(&[Key(2)], v(6)), Some(v(7)));
    }
}
