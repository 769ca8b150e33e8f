//! Hash index from a 64-bit hash to slot numbers: open addressing, 8 bytes an entry, one writer, readers that never
//! wait.
//!
//! Why not a general hash map: a look-up here touches one cache line of the table, whose address follows from the
//! hash alone, so a whole frontier can be prefetched. Growing does not touch the indexed records, so it is one
//! sequential pass. Several slots may have the same hash; the caller compares the record itself.
//!
//! Roles: the writer changes entries in place with single stores, and replaces the table when entries and tombstones
//! fill it. Readers hold an epoch guard, so the table that they look at outlives their look-up.
//!
//! Guarantee to readers: an entry that existed when their guard was pinned, and that the writer does not remove, is
//! found. Entries of versions that a reader may not read can appear or not; the reader decides by the record.
//!
//! What must never happen: an entry moved inside a live table (a reader could miss it); a table freed under a reader;
//! more than 2³¹ entries.

use crate::write_permit::WritePermit;
use crossbeam_epoch::{Atomic, Guard, Shared};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// An entry is `low 32 bits of the hash << 32 | slot + 1`.
const EMPTY: u64 = 0;
/// Tombstone of a removed entry: look-ups continue behind it. No entry has slot `u32::MAX`.
const TOMBSTONE: u64 = u32::MAX as u64;
const SMALLEST: usize = 16;
const LINE: usize = 8;

/// An open-addressing hash table.
pub(crate) struct SlotIndex {
    /// The first line of the table. Its tag is the number of lines, as a power of two.
    table: Atomic<Line>,
    /// Number of entries. Only the writer changes this field and the next two.
    len: AtomicUsize,
    /// Number of places that are not `EMPTY`.
    filled: AtomicUsize,
    size: AtomicUsize,
}

/// Entries of one cache line.
#[derive(Default)]
#[repr(align(64))]
struct Line {
    _entries: [AtomicU64; LINE],
}

/// A table that is alive during `'g`; its size is a power of two.
#[derive(Clone, Copy)]
struct Table<'g> {
    entries: *const AtomicU64,
    mask: usize,
    life: PhantomData<&'g Line>,
}

impl<'g> Table<'g> {
    /// Allocates a table that is not published.
    fn with_size(size: usize) -> Self {
        let mut lines: Vec<Line> = Vec::with_capacity(size / LINE);
        crate::hints::huge_pages(&lines);
        lines.resize_with(size / LINE, Line::default);
        let entries = Box::into_raw(lines.into_boxed_slice()).cast_const().cast();
        Self { entries, mask: size - 1, life: PhantomData }
    }

    /// Returns the pointer to publish.
    fn shared(self) -> Shared<'g, Line> {
        Shared::from(self.entries.cast::<Line>()).with_tag((self.len() / LINE).ilog2() as usize)
    }

    /// Returns the table of a published pointer, `None` if it is null.
    ///
    /// # Safety
    ///
    /// The table is not freed during `'g`.
    #[inline(always)]
    unsafe fn of(shared: Shared<'g, Line>) -> Option<Self> {
        let mask = (LINE << shared.tag()) - 1;
        (!shared.is_null()).then(|| Self { entries: shared.as_raw().cast(), mask, life: PhantomData })
    }

    /// # Safety
    ///
    /// No thread looks at the table any more.
    unsafe fn free(self) {
        let lines = self.entries.cast_mut().cast::<Line>();
        // SAFETY: `with_size` allocated a box of this many lines, and the caller is the last that has it.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(lines, self.len() / LINE)) });
    }

    fn len(self) -> usize {
        self.mask + 1
    }

    /// Returns the entry at a place, modulo the size.
    #[inline(always)]
    fn at(self, place: usize) -> &'g AtomicU64 {
        // SAFETY: the mask keeps the place inside of the table, which lives for `'g`.
        unsafe { &*self.entries.add(place & self.mask) }
    }

    /// Writes an entry to the first free place, and returns whether that was a tombstone.
    fn place(self, entry: u64, order: Ordering) -> bool {
        let mut at = (entry >> 32) as usize;
        loop {
            let there = self.at(at).load(Ordering::Relaxed);
            if there == EMPTY || there == TOMBSTONE {
                self.at(at).store(entry, order);
                return there == TOMBSTONE;
            }
            at += 1;
        }
    }
}

impl Default for SlotIndex {
    fn default() -> Self {
        Self {
            table: Atomic::null(),
            len: AtomicUsize::new(0),
            filled: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
        }
    }
}

impl Drop for SlotIndex {
    fn drop(&mut self) {
        // SAFETY: `&mut self` proves that no reader is left, and only this index owns the table.
        unsafe {
            if let Some(table) = Table::of(self.table.load(Ordering::Relaxed, crossbeam_epoch::unprotected()))
            {
                table.free();
            }
        }
    }
}

impl SlotIndex {
    /// Returns the bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.size.load(Ordering::Relaxed) * 8
    }

    #[inline(always)]
    fn table<'g>(&self, guard: &'g Guard) -> Option<Table<'g>> {
        // SAFETY: a table is published whole and retired through the epoch, so the guard keeps it alive.
        unsafe { Table::of(self.table.load(Ordering::Acquire, guard)) }
    }

    /// Prefetches the cache line of a hash.
    #[inline]
    pub fn prefetch(&self, hash: u64, guard: &Guard) {
        if let Some(table) = self.table(guard) {
            crate::hints::prefetch_line(table.at(hash as u32 as usize));
        }
    }

    /// Returns the slot that a hash probably has: the first entry with the same low half. Most such entries are among
    /// the first three from their place on; one of these is chosen without a branch that could be mispredicted.
    #[inline(always)]
    pub fn probable(&self, hash: u64, guard: &Guard) -> Option<u32> {
        let table = self.table(guard)?;
        let (tag, place) = (hash as u32, hash as u32 as usize);
        // Not beyond the line that was prefetched.
        let last = place | (LINE - 1);
        let [first, second, third] = [place, (place + 1).min(last), (place + 2).min(last)]
            .map(|place| table.at(place).load(Ordering::Acquire));
        let is_of = |entry: u64| (entry >> 32) as u32 == tag;
        let later = std::hint::select_unpredictable(is_of(second), second, third);
        let entry = std::hint::select_unpredictable(is_of(first), first, later);
        let slot = (entry as u32).wrapping_sub(1);
        // Neither `EMPTY` nor `TOMBSTONE`, whose tag is 0.
        if is_of(entry) && slot < u32::MAX - 1 { Some(slot) } else { self.find(hash, guard, |_| true) }
    }

    /// Returns the first slot with this hash that the caller accepts.
    #[inline]
    pub fn find(&self, hash: u64, guard: &Guard, mut accept: impl FnMut(u32) -> bool) -> Option<u32> {
        let table = self.table(guard)?;
        let tag = hash as u32;
        let mut at = tag as usize;
        loop {
            // Acquire: a reader that sees the entry sees the record, which was written before it.
            let entry = table.at(at).load(Ordering::Acquire);
            if entry == EMPTY {
                return None;
            }
            if (entry >> 32) as u32 == tag && entry != TOMBSTONE {
                let slot = (entry as u32).wrapping_sub(1);
                if accept(slot) {
                    return Some(slot);
                }
            }
            at += 1;
        }
    }

    /// Adds an entry without checking for duplicates. The record must be readable already.
    pub fn insert(&self, permit: &mut WritePermit, hash: u64, slot: u32) {
        debug_assert!(slot < u32::MAX - 1, "slot {slot} cannot be indexed");
        let (len, filled) = (self.len.load(Ordering::Relaxed), self.filled.load(Ordering::Relaxed));
        if (filled + 1) * 4 > self.size.load(Ordering::Relaxed) * 3 {
            // If most places are tombstones, the size stays the same.
            self.resize(permit, ((len + 1) * 2).next_power_of_two().max(SMALLEST));
        }
        let guard = crossbeam_epoch::pin();
        if let Some(table) = self.table(&guard)
            && !table.place((hash << 32) | (u64::from(slot) + 1), Ordering::Release)
        {
            self.filled.fetch_add(1, Ordering::Relaxed);
        }
        self.len.store(len + 1, Ordering::Relaxed);
    }

    /// Makes room for `more` entries.
    pub fn reserve(&self, permit: &mut WritePermit, more: usize) {
        let wanted = ((self.len.load(Ordering::Relaxed) + more) * 4 / 3 + 1).next_power_of_two();
        if wanted > self.size.load(Ordering::Relaxed) {
            self.resize(permit, wanted.max(SMALLEST));
        }
    }

    /// Removes the entry of a slot; returns false if there is none.
    pub fn remove(&self, _permit: &mut WritePermit, hash: u64, slot: u32) -> bool {
        let guard = crossbeam_epoch::pin();
        let Some(table) = self.table(&guard) else { return false };
        let wanted = (hash << 32) | (u64::from(slot) + 1);
        let load = |at: usize| table.at(at).load(Ordering::Relaxed);
        let mut at = hash as u32 as usize;
        while load(at) != wanted {
            if load(at) == EMPTY {
                return false;
            }
            at += 1;
        }
        self.len.fetch_sub(1, Ordering::Relaxed);
        if load(at + 1) == EMPTY {
            // Nothing follows, so look-ups need not pass this place and the tombstones before it.
            while load(at) == wanted || load(at) == TOMBSTONE {
                table.at(at).store(EMPTY, Ordering::Release);
                self.filled.fetch_sub(1, Ordering::Relaxed);
                at = at.wrapping_sub(1);
            }
        } else {
            table.at(at).store(TOMBSTONE, Ordering::Release);
        }
        true
    }

    fn resize(&self, _permit: &mut WritePermit, size: usize) {
        let guard = crossbeam_epoch::pin();
        let table = Table::with_size(size);
        let old = self.table(&guard);
        if let Some(old) = old {
            for entry in (0..old.len()).map(|at| old.at(at).load(Ordering::Relaxed)) {
                if entry != EMPTY && entry != TOMBSTONE {
                    table.place(entry, Ordering::Relaxed);
                }
            }
        }
        self.table.store(table.shared(), Ordering::Release);
        if let Some(old) = old {
            let old = Table { life: PhantomData, ..old };
            // SAFETY: the old table was just replaced, so no new reader can find it; only the permit's holder retires
            // tables, each once.
            unsafe { guard.defer_unchecked(move || old.free()) };
        }
        self.filled.store(self.len.load(Ordering::Relaxed), Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_epoch::pin;
    use std::collections::BTreeMap;

    const STEPS: u32 = if cfg!(miri) { 600 } else { 20_000 };

    #[test]
    fn behaves_like_a_map_under_inserts_and_removals() {
        let (index, mut permit) = (SlotIndex::default(), WritePermit::new());
        let mut model: BTreeMap<u32, u64> = BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..STEPS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few different hashes in the high bits, so that runs of collisions form.
            let hash = (state >> 33) % 700;
            if state >> 62 != 0 || model.is_empty() {
                index.insert(&mut permit, hash, step);
                model.insert(step, hash);
            } else {
                let (&slot, &hash) = model.iter().next().unwrap();
                assert!(index.remove(&mut permit, hash, slot));
                assert!(!index.remove(&mut permit, hash, slot));
                model.remove(&slot);
            }
            if step % 500 == 0 {
                for (&slot, &hash) in &model {
                    assert_eq!(index.find(hash, &pin(), |s| s == slot), Some(slot));
                    let probable = index.probable(hash, &pin()).expect("there is one");
                    assert_eq!(model[&probable], hash);
                }
                assert_eq!(index.probable(5_000, &pin()), None);
                let none_has_zero = !model.values().any(|hash| *hash == 0);
                assert_eq!(index.probable(0, &pin()).is_none(), none_has_zero);
            }
        }
        assert_eq!(index.len.load(Ordering::Relaxed), model.len());
        assert_eq!(index.find(5_000, &pin(), |_| true), None);
    }

    #[test]
    fn empty_index_finds_nothing() {
        let (index, mut permit) = (SlotIndex::default(), WritePermit::new());
        assert_eq!(index.find(1, &pin(), |_| true), None);
        assert!(!index.remove(&mut permit, 1, 1));
        index.prefetch(1, &pin());
        index.reserve(&mut permit, 100);
        assert_eq!(index.bytes(), 256 * 8);
    }

    #[test]
    fn a_table_that_is_only_emptied_and_filled_does_not_grow() {
        let (index, mut permit) = (SlotIndex::default(), WritePermit::new());
        for round in 0..STEPS {
            let hash = u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            index.insert(&mut permit, hash, round);
            if round >= 8 {
                let gone = round - 8;
                assert!(index.remove(&mut permit, u64::from(gone).wrapping_mul(0x9e37_79b9_7f4a_7c15), gone));
            }
        }
        assert!(index.bytes() <= 64 * 8, "{} bytes for 8 entries", index.bytes());
    }

    /// Readers find every entry that stays while the writer adds, removes and grows.
    #[test]
    fn readers_find_what_stays_while_the_writer_works() {
        use std::sync::atomic::AtomicBool;
        let (stays, more, rounds) = if cfg!(miri) { (20, 40, 2) } else { (1_000, 5_000, 40) };
        let hash = |n: u32| u64::from(n % 97) * 3 + u64::from(n);
        let (index, mut permit, done) = (SlotIndex::default(), WritePermit::new(), AtomicBool::new(false));
        (0..stays).for_each(|n| index.insert(&mut permit, hash(n), n));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        for n in 0..stays {
                            assert_eq!(index.find(hash(n), &pin(), |s| s == n), Some(n));
                        }
                    }
                });
            }
            for _ in 0..rounds {
                (stays..stays + more).for_each(|n| index.insert(&mut permit, hash(n), n));
                (stays..stays + more).for_each(|n| assert!(index.remove(&mut permit, hash(n), n)));
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
