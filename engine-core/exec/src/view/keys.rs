//! The keys of what a transaction read.

use rustc_hash::FxHashSet;
use tidegraph_types::Key;

/// Maximum number of read keys. Beyond this the transaction counts as one that read the whole graph: the keys cost
/// memory in the sequencer, and such a transaction is hardly free of conflicts anyway.
const MOST_KEYS: usize = 65_536;

/// A set of read keys that collapses to [`Key::GRAPH`] when it grows too large.
#[derive(Default)]
pub(super) struct ReadKeys {
    keys: FxHashSet<Key>,
    all: bool,
}

impl ReadKeys {
    pub(super) fn extend(&mut self, keys: impl IntoIterator<Item = Key>) {
        if self.all {
            return;
        }
        for key in keys {
            self.keys.insert(key);
            if self.keys.len() > MOST_KEYS || key == Key::GRAPH {
                self.keys = FxHashSet::from_iter([Key::GRAPH]);
                self.all = true;
                return;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.len() * 16
    }

    /// Returns the keys sorted, so that equal transactions make equal requests.
    pub(super) fn sorted(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.keys.iter().copied().collect();
        keys.sort_unstable();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_keys_become_the_graph() {
        let mut keys = ReadKeys::default();
        keys.extend((1..=MOST_KEYS as u64).map(Key));
        assert_eq!(keys.sorted().len(), MOST_KEYS);
        keys.extend([Key(u64::MAX), Key(5)]);
        assert_eq!(keys.sorted(), vec![Key::GRAPH]);
    }
}
