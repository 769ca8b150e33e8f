//! Free blocks of the spill file: neighbours are joined, and the smallest sufficient run is taken first.

use std::collections::{BTreeMap, BTreeSet};

/// Number of free blocks at the end of the file from which it is truncated.
const WORTH_CUTTING: u64 = 1 << 12;

/// Allocates blocks of the file.
#[derive(Default)]
pub(crate) struct Extents {
    /// Length of the file in blocks.
    end: u64,
    /// Length of each free run, by its first block.
    by_place: BTreeMap<u64, u64>,
    /// The same runs by length.
    by_length: BTreeSet<(u64, u64)>,
}

impl Extents {
    /// Takes `blocks` free blocks and returns the first.
    pub fn take(&mut self, blocks: u64) -> u64 {
        let Some(&(length, first)) = self.by_length.range((blocks, 0)..).next() else {
            let first = self.end;
            self.end += blocks;
            return first;
        };
        self.remove(first, length);
        if length > blocks {
            self.add(first + blocks, length - blocks);
        }
        first
    }

    /// Gives blocks back.
    pub fn give_back(&mut self, mut first: u64, mut blocks: u64) {
        if let Some((&before, &length)) = self.by_place.range(..first).next_back()
            && before + length == first
        {
            self.remove(before, length);
            (first, blocks) = (before, blocks + length);
        }
        if let Some(&length) = self.by_place.get(&(first + blocks)) {
            self.remove(first + blocks, length);
            blocks += length;
        }
        self.add(first, blocks);
    }

    /// Returns the length in blocks to truncate the file to, if that pays.
    pub fn cut(&mut self) -> Option<u64> {
        let (&first, &length) = self.by_place.last_key_value()?;
        if first + length < self.end || length < WORTH_CUTTING {
            return None;
        }
        self.remove(first, length);
        self.end = first;
        Some(first)
    }

    fn add(&mut self, first: u64, length: u64) {
        self.by_place.insert(first, length);
        self.by_length.insert((length, first));
    }

    fn remove(&mut self, first: u64, length: u64) {
        self.by_place.remove(&first);
        self.by_length.remove(&(length, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    #[test]
    fn no_block_is_given_out_twice_and_all_come_together_again() {
        let mut random = StdRng::seed_from_u64(1);
        let (mut extents, mut taken) = (Extents::default(), Vec::<(u64, u64)>::new());
        let mut used = BTreeSet::new();
        for _ in 0..5000 {
            if taken.is_empty() || random.random_bool(0.55) {
                let blocks = random.random_range(1..20);
                let first = extents.take(blocks);
                assert!((first..first + blocks).all(|block| used.insert(block)), "{first} is taken");
                taken.push((first, blocks));
            } else {
                let (first, blocks) = taken.swap_remove(random.random_range(0..taken.len()));
                (first..first + blocks).for_each(|block| assert!(used.remove(&block)));
                extents.give_back(first, blocks);
            }
        }
        let (end, in_use) = (extents.end, used.len() as u64);
        assert!(end < 2 * in_use, "{end} blocks for {in_use}");
        for (first, blocks) in taken {
            extents.give_back(first, blocks);
        }
        assert_eq!(extents.by_place, std::iter::once((0, end)).collect());
        assert_eq!(extents.by_length.len(), 1);
    }

    #[test]
    fn the_free_end_is_cut_off_when_it_is_long() {
        let mut extents = Extents::default();
        let (first, last) = (extents.take(10), extents.take(WORTH_CUTTING));
        assert_eq!((first, last), (0, 10));
        extents.give_back(0, 10);
        assert_eq!(extents.cut(), None);
        extents.give_back(10, WORTH_CUTTING);
        assert_eq!(extents.cut(), Some(0));
        assert_eq!(extents.take(3), 0);
    }
}
