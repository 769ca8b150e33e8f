//! The version at which each key was last written, from which conflicts are found (TXN-2).
//!
//! Bounded: the oldest entries are forgotten, and the *floor* is the newest forgotten version. A transaction that read
//! before the floor may have a conflict, and is refused.
//!
//! A transaction that runs while others write more keys than are remembered would be refused each time it is tried. So
//! each refusal for a forgotten key doubles the number of keys that are remembered, up to a limit; when no such refusal
//! comes for a while, the number falls back. The next tries then find the keys that were written since they read.
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
    limit: Limit,
    /// Last writes of keys of the schema.
    of_schema: FxHashMap<Key, Version>,
    marks: Marks,
    /// Former entries, for `undo_group`.
    before: Vec<(Key, Option<Version>)>,
    kept: Marks,
}

/// How many keys are remembered.
#[derive(Debug)]
struct Limit {
    now: usize,
    least: usize,
    most: usize,
    /// Refusals for keys forgotten up to this version have no effect: what an earlier sequencer remembered is lost.
    since: Version,
    /// Number of writes since the last refusal for a forgotten key.
    writes_since_refusal: usize,
}

impl Limit {
    /// Remembers more keys, because a transaction was refused for a forgotten one.
    fn raise(&mut self) {
        self.writes_since_refusal = 0;
        let raised = self.now.saturating_mul(2).min(self.most);
        if raised > self.now {
            tracing::info!(keys = raised, "transactions take long: the sequencer remembers more keys");
            self.now = raised;
        }
    }

    /// Notes writes, and falls back to fewer keys after many writes without a refusal.
    fn note_writes(&mut self, writes: usize) {
        self.writes_since_refusal = self.writes_since_refusal.saturating_add(writes);
        if self.now > self.least && self.writes_since_refusal > self.most.saturating_mul(QUIET_WINDOWS) {
            self.writes_since_refusal = 0;
            self.now = (self.now / 2).max(self.least);
        }
    }
}

/// The limit falls after writes of this many times the most keys, if no transaction was refused meanwhile. A transaction
/// that is tried again must find a higher limit, however long it takes.
const QUIET_WINDOWS: usize = 2;

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
    /// Starts with no entries: writes up to `version` are unknown. Remembers at least `least` keys, and up to `most` if
    /// transactions need them.
    pub fn new(least: usize, most: usize, version: Version) -> Self {
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
            limit: Limit {
                now: least,
                least,
                most: most.max(least),
                since: version,
                writes_since_refusal: 0,
            },
            of_schema: FxHashMap::default(),
            marks,
            before: Vec::new(),
            kept: marks,
        }
    }

    /// A version that wrote one of `keys` after `read_version`, or may have.
    pub fn conflict(&mut self, keys: &[Key], read_version: Version) -> Option<Version> {
        if keys.is_empty() {
            return None;
        }
        if self.marks.all > read_version {
            return Some(self.marks.all);
        }
        let written = keys.iter().map(|key| self.written(*key)).find(|written| *written > read_version)?;
        let floor = self.marks.floor;
        if written == floor && floor > self.limit.since && !self.has_conflict_above_floor(keys) {
            self.limit.raise();
        }
        Some(written)
    }

    /// Whether one of the keys was written after the newest forgotten version: more entries would not have helped then.
    fn has_conflict_above_floor(&self, keys: &[Key]) -> bool {
        keys.iter().any(|key| self.written(*key) > self.marks.floor)
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
        self.limit.note_writes(self.before.len());
        self.before.clear();
        if self.of_schema.len() > SCHEMA_KEYS {
            self.forget_half_of_schema();
        }
        while self.last.len() > self.limit.now {
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
        let mut keys = Keys::new(2, 2, v(0));
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
        let mut keys = Keys::new(10, 10, v(0));
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
        let mut keys = Keys::new(2, 2, v(0));
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
        let mut keys = Keys::new(2, 2, v(0));
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
        let mut keys = Keys::new(10, 10, v(5));
        assert_eq!(keys.conflict(&[Key::GRAPH], v(5)), None);
        keys.write(&[Key(1)], v(6), false);
        assert_eq!(keys.conflict(&[Key::GRAPH], v(5)), Some(v(6)));
        assert_eq!(keys.conflict(&[Key(2)], v(5)), None);
        keys.write(&[Key::GRAPH], v(7), false);
        assert_eq!(keys.conflict(&[Key(2)], v(6)), Some(v(7)));
    }

    #[test]
    fn a_transaction_that_takes_long_ends_in_some_tries() {
        let mut keys = Keys::new(100, 1_600, v(0));
        let mut version = 0;
        let mut write = |keys: &mut Keys, count: u64| {
            for _ in 0..count {
                version += 1;
                keys.write(&[Key(1_000 + version)], v(version), false);
                keys.keep_group();
            }
            v(version)
        };
        let mut read_version = write(&mut keys, 500);
        // Each try reads a key that nobody writes, while others write ten times the keys that are remembered.
        let mut tries = 0;
        loop {
            tries += 1;
            let newest = write(&mut keys, 1_000);
            match keys.conflict(&[Key(1)], read_version) {
                None => break,
                Some(_) => read_version = newest,
            }
            assert!(tries < 10, "the limit is {}", keys.limit.now);
        }
        assert_eq!((tries, keys.limit.now), (5, 1_600));
        // One that needs even more is refused, and the limit stays.
        write(&mut keys, 2_000);
        assert!(keys.conflict(&[Key(1)], read_version).is_some());
        assert_eq!(keys.limit.now, 1_600);
        // A true conflict does not raise it.
        let mut others = Keys::new(2, 8, v(0));
        for n in 1..=4 {
            others.write(&[Key(n)], v(n), false);
            others.keep_group();
        }
        assert_eq!(others.conflict(&[Key(1), Key(4)], v(1)), Some(v(2)));
        assert_eq!(others.limit.now, 2);
        // It falls back when nobody needs it.
        write(&mut keys, 20_000);
        assert_eq!((keys.limit.now, keys.last.len()), (100, 100));
    }

    #[test]
    fn what_an_earlier_sequencer_forgot_does_not_raise_the_limit() {
        let mut keys = Keys::new(2, 8, v(100));
        assert_eq!(keys.conflict(&[Key(1)], v(50)), Some(v(100)));
        assert_eq!(keys.limit.now, 2);
    }
}
