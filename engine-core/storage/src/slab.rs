//! Slab: records addressed by a 32-bit slot number, in chunks that never move.
//!
//! Growing allocates one more chunk and copies nothing, so that no writer ever holds the lock for a copy of the whole
//! table. Whether a slot is free is the record's own business: the slab only hands slots out and takes them back.

/// 131,072 records: large enough that a chunk holds whole huge pages.
const CHUNK_BITS: u32 = 17;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Records of one kind.
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    len: u32,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0, free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// One more than the highest slot ever used.
    pub fn end(&self) -> u32 {
        self.len
    }

    /// Slots in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.len as usize - self.free.len()
    }

    /// Bytes of the chunks themselves (what records hold elsewhere is not in it).
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<T>()).sum::<usize>()
            + self.free.capacity() * 4
    }

    /// Puts a record into a free slot.
    pub fn insert(&mut self, record: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = record;
            return slot;
        }
        let slot = self.len;
        if slot as usize >> CHUNK_BITS == self.chunks.len() {
            // A small graph has many partitions: let the first chunk grow, and take whole ones from then on.
            let chunk = if self.chunks.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK) };
            crate::prefetch::huge_pages(&chunk);
            self.chunks.push(chunk);
        }
        self.chunks[slot as usize >> CHUNK_BITS].push(record);
        self.len += 1;
        slot
    }

    /// Gives a slot back, leaving `record` in it.
    pub fn release(&mut self, slot: u32, record: T) {
        *self.get_mut(slot) = record;
        self.free.push(slot);
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &T {
        &self.chunks[slot as usize >> CHUNK_BITS][slot as usize & (CHUNK - 1)]
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.chunks[slot as usize >> CHUNK_BITS][slot as usize & (CHUNK - 1)]
    }

    /// Asks the processor to fetch a record.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        crate::prefetch::line(self.get(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_chunks_do_not_move() {
        let mut slab = Slab::default();
        for i in 0..300_000_u32 {
            assert_eq!(slab.insert(i), i);
        }
        let address = std::ptr::from_ref(slab.get(140_000));
        slab.release(7, 0);
        assert_eq!(slab.used(), 299_999);
        assert_eq!(slab.insert(1_000_000), 7);
        assert_eq!(*slab.get(7), 1_000_000);
        assert_eq!(*slab.get(299_999), 299_999);
        assert_eq!(std::ptr::from_ref(slab.get(140_000)), address);
        assert_eq!(slab.end(), 300_000);
    }
}
