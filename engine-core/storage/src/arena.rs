//! Arena: blocks of 16-byte granules in one virtual array, found by a 32-bit number.
//!
//! A block is filled by the writer, published by a word that readers load, and *retired* when it is replaced. Readers
//! look at blocks under an epoch guard that they took before they loaded the word; a retired block is filled again
//! only once every guard that was held when it was retired is gone ([`Limbo`]). Free blocks wait in one list for each
//! size class: exact up to 1 KiB, in steps of a sixteenth beyond. Large ones give their pages back to the machine.
//!
//! What must never happen: a block filled again while somebody may look at it; a block retired twice.

use crate::virtual_array::VirtualArray;
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Words of eight bytes in a granule.
pub(crate) const GRANULE_WORDS: usize = 2;
/// What 32-bit numbers reach: 64 GiB.
const MOST_GRANULES: usize = 1 << 32;
/// Classes up to this many granules hold one size each.
const EXACT: u32 = 64;
/// Size classes for each doubling beyond.
const STEPS_BITS: u32 = 4;
/// Free blocks of this many granules give their pages back.
const GIVE_BACK: u32 = 64 * 1024 / 16;
/// Retired things that share one note to the epoch.
const BATCH: usize = 128;

/// Class and size in granules of a request.
fn class_of(granules: u32) -> (usize, u32) {
    if granules <= EXACT {
        return (granules as usize, granules);
    }
    let power = 31 - (granules - 1).leading_zeros();
    let shift = power - STEPS_BITS;
    let size = granules.next_multiple_of(1 << shift);
    let step = ((size - 1) >> shift) - (1 << STEPS_BITS);
    ((EXACT + 1 + ((power - 6) << STEPS_BITS) + step) as usize, size)
}

/// Things that were taken out of sight of new readers and wait for the old ones to go.
#[derive(Debug)]
pub(crate) struct Limbo<T> {
    fresh: Vec<T>,
    batches: VecDeque<(Arc<AtomicBool>, Vec<T>)>,
}

impl<T> Default for Limbo<T> {
    fn default() -> Self {
        Self { fresh: Vec::new(), batches: VecDeque::new() }
    }
}

impl<T> Limbo<T> {
    /// Takes a thing that no reader can reach any more but by what it has read already.
    pub fn push(&mut self, thing: T, guard: &Guard) {
        self.fresh.push(thing);
        if self.fresh.len() >= BATCH {
            self.seal(guard);
        }
    }

    /// Makes what came so far wait for the guards of now.
    pub fn seal(&mut self, guard: &Guard) {
        if self.fresh.is_empty() {
            return;
        }
        let gone = Arc::new(AtomicBool::new(false));
        self.batches.push_back((gone.clone(), std::mem::take(&mut self.fresh)));
        // Runs once every guard of now is gone. Acquire and Release make all that those readers did come before.
        guard.defer(move || gone.store(true, Ordering::Release));
    }

    /// A batch of things that nobody looks at any more.
    pub fn pop(&mut self) -> Option<Vec<T>> {
        let (gone, _) = self.batches.front()?;
        gone.load(Ordering::Acquire).then(|| self.batches.pop_front().map(|(_, things)| things)).flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.batches.is_empty()
    }
}

/// See the module.
pub(crate) struct Arena {
    words: VirtualArray<AtomicU64>,
    book: Mutex<Book>,
}

struct Book {
    /// First granule that was never used.
    next: u32,
    /// Granules in blocks that are in use.
    live: usize,
    free: Vec<Vec<u32>>,
    limbo: Limbo<(u32, u32)>,
}

impl Default for Arena {
    fn default() -> Self {
        let most = if cfg!(miri) { 1 << 15 } else { MOST_GRANULES };
        Self {
            words: VirtualArray::new(most * GRANULE_WORDS),
            // Block 0 is nobody's, so that 0 can stand for none.
            book: Mutex::new(Book { next: 4, live: 0, free: Vec::new(), limbo: Limbo::default() }),
        }
    }
}

impl Book {
    fn collect(&mut self, words: &VirtualArray<AtomicU64>) {
        while let Some(blocks) = self.limbo.pop() {
            for (block, granules) in blocks {
                let (class, size) = class_of(granules);
                if size >= GIVE_BACK {
                    let start = block as usize * GRANULE_WORDS;
                    // SAFETY: the block left the limbo, so no reader is left; the next owner fills it anew and relies
                    // on nothing in it.
                    unsafe { words.release(start..start + size as usize * GRANULE_WORDS) };
                }
                if self.free.len() <= class {
                    self.free.resize_with(class + 1, Vec::new);
                }
                self.free[class].push(block);
            }
        }
    }
}

impl Arena {
    /// A block of at least so many granules. Its content is whatever was there.
    ///
    /// Panics when the machine has no address space left or the partition 64 GiB of adjacency: like any allocation.
    pub fn allocate(&self, granules: u32) -> u32 {
        let (class, size) = class_of(granules);
        let mut book = self.book.lock();
        if book.free.get(class).is_none_or(Vec::is_empty) {
            book.collect(&self.words);
        }
        book.live += size as usize;
        if let Some(block) = book.free.get_mut(class).and_then(Vec::pop) {
            return block;
        }
        if let Err(error) = self.words.reserve() {
            panic!("{error}");
        }
        let (block, end) = (book.next, book.next as usize + size as usize);
        let room = self.words.capacity() / GRANULE_WORDS;
        assert!(end < room.min(u32::MAX as usize), "no room for {size} granules in an arena of {room}");
        book.next = end as u32;
        block
    }

    /// Takes back a block that no new reader can find, given the size that was asked for.
    pub fn retire(&self, block: u32, granules: u32, guard: &Guard) {
        let mut book = self.book.lock();
        book.live -= class_of(granules).1 as usize;
        book.limbo.push((block, granules), guard);
    }

    /// Lets go of what nobody looks at any more.
    pub fn collect(&self, guard: &Guard) {
        let mut book = self.book.lock();
        if !book.limbo.is_empty() {
            book.limbo.seal(guard);
            book.collect(&self.words);
        }
    }

    /// Where a block begins.
    #[inline]
    pub fn address(&self, block: u32) -> *mut u64 {
        self.words.base().cast::<u64>().wrapping_add(block as usize * GRANULE_WORDS)
    }

    /// Bytes that blocks were ever made of, free ones among them.
    pub fn bytes(&self) -> usize {
        (self.book.lock().next as usize - 4) * GRANULE_WORDS * 8
    }

    /// Bytes of blocks in use.
    #[cfg(test)]
    pub fn live_bytes(&self) -> usize {
        self.book.lock().live * GRANULE_WORDS * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_epoch::pin;

    /// Lets epochs move on a little. Other tests hold guards of the same collector, for a short time each.
    fn collect(arena: &Arena) {
        for _ in 0..8 {
            let guard = pin();
            arena.collect(&guard);
            guard.flush();
        }
    }

    fn collect_all(arena: &Arena) {
        while !arena.book.lock().limbo.is_empty() {
            collect(arena);
            std::thread::yield_now();
        }
    }

    #[test]
    fn classes_are_dense_and_waste_little() {
        let mut last = (0, 0);
        for granules in 1..100_000 {
            let (class, size) = class_of(granules);
            assert!(size >= granules && size - granules <= granules / 16, "{granules} in {size}");
            assert!((class, size) == last || (class == last.0 + 1 && size > last.1), "{granules}");
            assert_eq!(class_of(size), (class, size));
            last = (class, size);
        }
    }

    #[test]
    fn a_block_is_not_used_again_while_a_guard_is_held() {
        let arena = Arena::default();
        let block = arena.allocate(3);
        let other = arena.allocate(3);
        assert!(other >= block + 3);
        let reader = pin();
        std::thread::scope(|scope| {
            // Another thread, so that the guard of this one counts as somebody else's.
            scope.spawn(|| {
                arena.retire(block, 3, &pin());
                collect(&arena);
                assert_ne!(arena.allocate(3), block);
            });
        });
        drop(reader);
        collect_all(&arena);
        assert_eq!(arena.allocate(3), block);
        assert_eq!(arena.live_bytes(), 3 * 48);
    }

    #[test]
    #[cfg(not(miri))]
    fn what_was_used_once_is_used_again() {
        let arena = Arena::default();
        let mut bytes = 0;
        for round in 0..5 {
            let blocks: Vec<_> =
                (1..300).map(|granules| (arena.allocate(granules * 17), granules * 17)).collect();
            for (block, granules) in blocks {
                arena.retire(block, granules, &pin());
            }
            collect_all(&arena);
            if round == 0 {
                bytes = arena.bytes();
            }
        }
        assert_eq!((arena.bytes(), arena.live_bytes()), (bytes, 0));
    }
}
