//! Hash index from a 64-bit hash to slot numbers: open addressing, eight bytes an entry.
//!
//! Why not a general hash map: a look-up here touches exactly one cache line of the table whose address is known from
//! the hash alone, so that a whole frontier can be prefetched; growing needs no access to the indexed records, so it
//! is one sequential pass. Several slots may stand under one hash; the caller compares the record itself.
//!
//! It must never be asked to hold more than 2³¹ entries (a partition stays far below).

/// Open-addressing table. An entry is `low 32 bits of the hash << 32 | slot + 1`; zero is empty.
#[derive(Default)]
pub(crate) struct SlotIndex {
    entries: Vec<u64>,
    len: usize,
}

const SMALLEST: usize = 16;

impl SlotIndex {
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * 8
    }

    /// Asks the processor to fetch the line where the hash is.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(entry) = self.entries.get(hash as u32 as usize & self.mask()) {
            crate::prefetch::line(entry);
        }
    }

    /// The first slot under the hash that the caller accepts.
    #[inline]
    pub fn find(&self, hash: u64, mut accept: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let (mask, tag) = (self.mask(), hash as u32);
        let mut at = tag as usize & mask;
        loop {
            let entry = self.entries[at];
            if entry == 0 {
                return None;
            }
            if (entry >> 32) as u32 == tag {
                let slot = entry as u32 - 1;
                if accept(slot) {
                    return Some(slot);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry; does not look whether it is there already.
    pub fn insert(&mut self, hash: u64, slot: u32) {
        if (self.len + 1) * 4 > self.entries.len() * 3 {
            self.resize((self.entries.len() * 2).max(SMALLEST));
        }
        self.place((hash << 32) | (u64::from(slot) + 1));
        self.len += 1;
    }

    /// Makes room for this many more entries.
    pub fn reserve(&mut self, more: usize) {
        let wanted = ((self.len + more) * 4 / 3 + 1).next_power_of_two();
        if wanted > self.entries.len() {
            self.resize(wanted.max(SMALLEST));
        }
    }

    /// Removes the entry of a slot; false if it is not there.
    pub fn remove(&mut self, hash: u64, slot: u32) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let mask = self.mask();
        let wanted = (hash << 32) | (u64::from(slot) + 1);
        let mut at = hash as u32 as usize & mask;
        while self.entries[at] != wanted {
            if self.entries[at] == 0 {
                return false;
            }
            at = (at + 1) & mask;
        }
        // Backward shift: no tombstones, so that look-ups stay short after any number of removals.
        let mut hole = at;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry == 0 {
                break;
            }
            let home = (entry >> 32) as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = 0;
        self.len -= 1;
        true
    }

    fn place(&mut self, entry: u64) {
        let mask = self.mask();
        let mut at = (entry >> 32) as usize & mask;
        while self.entries[at] != 0 {
            at = (at + 1) & mask;
        }
        self.entries[at] = entry;
    }

    fn resize(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.entries, vec![0; size]);
        crate::prefetch::huge_pages(&self.entries);
        for entry in old {
            if entry != 0 {
                self.place(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn behaves_like_a_map_under_inserts_and_removals() {
        let mut index = SlotIndex::default();
        let mut model: HashMap<u32, u64> = HashMap::new();
        let mut state = 1_u64;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few different hashes in the high part of the run, so that runs of collisions form.
            let hash = (state >> 33) % 700;
            if state >> 62 != 0 || model.is_empty() {
                index.insert(hash, step);
                model.insert(step, hash);
            } else {
                let (&slot, &hash) = model.iter().next().unwrap();
                assert!(index.remove(hash, slot));
                assert!(!index.remove(hash, slot));
                model.remove(&slot);
            }
            if step % 500 == 0 {
                for (&slot, &hash) in &model {
                    assert_eq!(index.find(hash, |s| s == slot), Some(slot));
                }
            }
        }
        assert_eq!(index.len, model.len());
        assert_eq!(index.find(5_000, |_| true), None);
    }

    #[test]
    fn empty_index_finds_nothing() {
        let mut index = SlotIndex::default();
        assert_eq!(index.find(1, |_| true), None);
        assert!(!index.remove(1, 1));
        index.prefetch(1);
        index.reserve(100);
        assert_eq!(index.entries.len(), 256);
    }
}
