//! Slots: records of one type, addressed by a 32-bit number, which readers reach without a lock.
//!
//! Roles: readers turn a number from an index into a record. The one writer takes free slots, fills them, and adds
//! them to an index. A slot that was given back is reused only after every reader of that moment has gone, so a
//! reader that still has its number sees the old record or the emptied one, never a half-filled new one.
//!
//! What must never happen: a record that moves; a slot in use twice.

use crate::arena::Limbo;
use crate::virtual_array::{VirtualArray, ZeroValid};
use crossbeam_epoch::Guard;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tidegraph_types::Version;

/// Largest number of records in a partition, for each type.
pub(crate) const MAX_RECORDS: usize = 1 << 28;
/// Number of records that share the version of their newest change: a checkpoint writes or skips them together.
pub(crate) const GROUP: u32 = 128;

/// The records of one type.
pub(crate) struct Slots<T> {
    records: VirtualArray<T>,
    /// Version of the newest change of each group.
    modified: VirtualArray<AtomicU64>,
    end: AtomicU32,
}

/// The free slots, which only the writer knows.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    free: Vec<u32>,
    /// Slots that a checkpoint skipped.
    holes: Vec<Range<u32>>,
    limbo: Limbo<u32>,
}

impl<T: ZeroValid> Default for Slots<T> {
    fn default() -> Self {
        Self {
            records: VirtualArray::new(MAX_RECORDS),
            modified: VirtualArray::new(MAX_RECORDS / GROUP as usize),
            end: AtomicU32::new(0),
        }
    }
}

impl<T: ZeroValid> Slots<T> {
    /// Returns one more than the highest slot ever used.
    #[inline]
    pub fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    /// Returns the bytes of the records, without what they own elsewhere.
    pub fn bytes(&self) -> usize {
        self.end() as usize * size_of::<T>() + self.groups() as usize * size_of::<AtomicU64>()
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> u32 {
        self.end().div_ceil(GROUP)
    }

    /// Notes that a version changes what readers see of a record.
    pub fn modify(&self, slot: u32, version: Version) {
        self.modified.get((slot / GROUP) as usize).store(version.0, Ordering::Release);
    }

    /// Returns the version of the newest change in a group.
    pub fn modified(&self, group: u32) -> Version {
        Version(self.modified.get(group as usize).load(Ordering::Acquire))
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &T {
        self.records.get(slot as usize)
    }

    /// Returns a range of records.
    #[inline]
    pub fn slice(&self, slots: Range<u32>) -> &[T] {
        self.records.slice(slots.start as usize..slots.end as usize)
    }

    /// Prefetches a record.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        self.records.prefetch(slot as usize);
    }

    /// Takes a slot that no reader looks at. Its record is zero, or what was left in it when it was given back.
    ///
    /// # Panics
    ///
    /// If the machine has no memory for more records: the writer cannot refuse what is durable already.
    pub fn take(&self, free: &mut FreeSlots) -> u32 {
        while let Some(slots) = free.limbo.pop() {
            free.free.extend(slots);
        }
        if let Some(slot) = free.free.pop().or_else(|| free.pop_hole()) {
            return slot;
        }
        let reserved = self.records.reserve().and_then(|()| self.modified.reserve());
        reserved.unwrap_or_else(|error| panic!("no record can be made: {error}"));
        let slot = self.end.load(Ordering::Relaxed);
        assert!((slot as usize) < self.records.capacity(), "no room for more than {slot} records");
        self.end.store(slot + 1, Ordering::Release);
        slot
    }

    /// Takes a slot that a checkpoint names, above all slots in use. Returns false if it is not above them, or beyond
    /// the largest number of records.
    pub fn claim(&self, slot: u32, free: &mut FreeSlots) -> bool {
        let end = self.end.load(Ordering::Relaxed);
        let reserved = self.records.reserve().and_then(|()| self.modified.reserve());
        if reserved.is_err() || slot < end || slot as usize >= self.records.capacity() {
            return false;
        }
        if slot > end {
            free.holes.push(end..slot);
        }
        self.end.store(slot + 1, Ordering::Release);
        true
    }

    /// Gives back a slot that no index names any more.
    pub fn give_back(&self, free: &mut FreeSlots, slot: u32, guard: &Guard) {
        free.limbo.push(slot, guard);
    }
}

impl FreeSlots {
    /// Returns the bytes of the lists.
    pub fn bytes(&self) -> usize {
        self.free.capacity() * 4 + self.holes.capacity() * size_of::<Range<u32>>()
    }

    fn pop_hole(&mut self) -> Option<u32> {
        let hole = self.holes.last_mut()?;
        let slot = hole.start;
        hole.start += 1;
        if hole.start == hole.end {
            self.holes.pop();
        }
        Some(slot)
    }

    /// Lets the slots that were given back so far become free once the current readers have gone.
    pub fn seal(&mut self, guard: &Guard) {
        self.limbo.seal(guard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_epoch::pin;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn slots_that_were_left_out_are_used_first() {
        let (slots, mut free) = (Slots::<AtomicU64>::default(), FreeSlots::default());
        assert!(slots.claim(1, &mut free) && slots.claim(4, &mut free) && slots.claim(5, &mut free));
        assert!(
            !slots.claim(5, &mut free) && !slots.claim(2, &mut free) && !slots.claim(u32::MAX, &mut free)
        );
        slots.modify(4, Version(9));
        assert_eq!((slots.groups(), slots.modified(0)), (1, Version(9)));
        let mut taken: Vec<u32> = (0..5).map(|_| slots.take(&mut free)).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 2, 3, 6, 7]);
    }

    #[test]
    fn a_slot_is_free_again_only_when_its_readers_are_gone() {
        let (slots, mut free) = (Slots::<AtomicU64>::default(), FreeSlots::default());
        for n in 0..10 {
            let slot = slots.take(&mut free);
            assert_eq!(slot, n);
            slots.get(slot).store(u64::from(n) + 100, Ordering::Relaxed);
        }
        let address = std::ptr::from_ref(slots.get(3));
        {
            let reader = pin();
            slots.give_back(&mut free, 7, &reader);
            free.seal(&reader);
            for _ in 0..50 {
                pin().flush();
                assert_eq!(slots.take(&mut free), slots.end() - 1, "slot 7 is being read");
            }
        }
        let again = (0..1_000_000).find(|_| {
            pin().flush();
            std::thread::yield_now();
            slots.take(&mut free) == 7
        });
        assert!(again.is_some(), "slot 7 was never free again");
        assert_eq!(slots.get(3).load(Ordering::Relaxed), 103);
        assert_eq!(std::ptr::from_ref(slots.get(3)), address);
    }
}
