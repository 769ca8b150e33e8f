//! Arena: blocks of 16-byte granules in one virtual array, found by a 32-bit number.
//!
//! A block is filled by the writer, published by a word that readers load, and *retired* when it is replaced. Readers
//! look at blocks under an epoch guard that they took before they loaded the word; a retired block is filled again
//! only once every guard that was held when it was retired is gone ([`Limbo`]). Free blocks wait in one list for each
//! size class: exact up to 4 KiB, in 32 steps to each doubling beyond. A segment of 2 MiB without a block in use goes back to
//! the machine; to get there, whoever owns the blocks moves them, one by one, into fresh segments.
//!
//! A block of one line of the cache is laid on one line, and a block of several begins with one, so that a reader at
//! random waits for no line more than the block has. The former come in strips, many at a time, since they are the
//! commonest; what is left free before the latter is filled with smaller blocks.
//!
//! What must never happen: a block filled again while somebody may look at it; a block retired twice.

use crate::virtual_array::VirtualArray;
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Granules of a line of the cache.
const LINE: u32 = 4;
/// Blocks of one line that are laid out together.
const STRIP: u32 = 16;
/// Blocks from this many granules begin with a line: what it leaves free is at most a fifth of them.
const LONG: u32 = 16;
/// Words of eight bytes in a granule.
pub(crate) const GRANULE_WORDS: usize = 2;
/// What 32-bit numbers reach: 64 GiB.
const MOST_GRANULES: usize = 1 << 32;
/// Classes up to this many granules hold one size each.
const EXACT: u32 = 256;
/// Size classes for each doubling beyond.
const STEPS_BITS: u32 = 5;
/// Granules of a segment. No block is larger. Under Miri there is room for few, and a test goes through several.
const SEGMENT: u32 = if cfg!(miri) { 1 << 12 } else { 1 << 17 };
/// So much may be free before it is worth to move blocks together.
const WORTH_MOVING: usize = 1 << 20;
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
    ((EXACT + 1 + ((power - EXACT.ilog2()) << STEPS_BITS) + step) as usize, size)
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
    /// The part of the current segment that was not used yet.
    next: u32,
    end: u32,
    /// The part of the last strip that was not used yet. Its segment is the current one, or holds a block of the strip.
    strip: (u32, u32),
    segments: Vec<Segment>,
    free_segments: Vec<u32>,
    /// Granules in blocks that are in use.
    live: usize,
    /// Free blocks by class, with the generation of their segment: they are gone with it.
    free: Vec<Vec<(u32, u32)>>,
    limbo: Limbo<(u32, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Segment {
    /// Granules in blocks that are in use or in the limbo.
    live: u32,
    generation: u32,
}

impl Default for Arena {
    fn default() -> Self {
        let most = if cfg!(miri) { 1 << 16 } else { MOST_GRANULES };
        let book = Book {
            next: 0,
            end: 0,
            strip: (0, 0),
            segments: Vec::new(),
            free_segments: Vec::new(),
            live: 0,
            free: Vec::new(),
            limbo: Limbo::default(),
        };
        Self { words: VirtualArray::new(most * GRANULE_WORDS), book: Mutex::new(book) }
    }
}

impl Book {
    fn current(&self) -> u32 {
        self.end.saturating_sub(1) / SEGMENT
    }

    fn collect(&mut self, words: &VirtualArray<AtomicU64>) {
        while let Some(blocks) = self.limbo.pop() {
            for (block, granules) in blocks {
                let (class, size) = class_of(granules);
                let number = block / SEGMENT;
                let current = self.current();
                let segment = &mut self.segments[number as usize];
                segment.live -= size;
                let generation = segment.generation;
                if segment.live == 0 && number != current {
                    self.release(number, words);
                    continue;
                }
                self.keep(class, block, generation);
            }
        }
    }

    /// Notes a free block.
    fn keep(&mut self, class: usize, block: u32, generation: u32) {
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push((block, generation));
    }

    /// Takes a block of that size from the current segment, or from the one after it.
    fn take(&mut self, size: u32, words: &VirtualArray<AtomicU64>) -> u32 {
        if size != LINE {
            return self.lay(size, words);
        }
        if self.strip.0 == self.strip.1 {
            let first = self.lay(LINE * STRIP, words);
            self.strip = (first, first + LINE * STRIP);
        }
        self.strip.0 += LINE;
        self.strip.0 - LINE
    }

    /// The next granules of the current segment; long blocks begin with a line.
    fn lay(&mut self, size: u32, words: &VirtualArray<AtomicU64>) -> u32 {
        let before = if size < LONG { 0 } else { self.next.next_multiple_of(LINE) - self.next };
        if self.next + before + size > self.end {
            self.begin(words);
        } else if before > 0 {
            let generation = self.segments[self.current() as usize].generation;
            self.keep(before as usize, self.next, generation);
            self.next += before;
        }
        self.next += size;
        self.next - size
    }

    /// Gives back a segment without a block in use.
    fn release(&mut self, number: u32, words: &VirtualArray<AtomicU64>) {
        let segment = &mut self.segments[number as usize];
        segment.generation = segment.generation.wrapping_add(1);
        if self.strip.0 / SEGMENT == number {
            self.strip = (0, 0);
        }
        self.free_segments.push(number);
        let start = number as usize * SEGMENT as usize * GRANULE_WORDS;
        // SAFETY: all blocks of the segment left the limbo, so no reader is left; their next owners fill them anew and
        // rely on nothing in them.
        unsafe { words.release(start..start + SEGMENT as usize * GRANULE_WORDS) };
    }

    /// A free block of a class, in a segment that was not given back.
    fn reuse(&mut self, class: usize) -> Option<u32> {
        let free = self.free.get_mut(class)?;
        while let Some((block, generation)) = free.pop() {
            if self.segments[(block / SEGMENT) as usize].generation == generation {
                return Some(block);
            }
        }
        None
    }

    /// Begins a segment.
    fn begin(&mut self, words: &VirtualArray<AtomicU64>) {
        if self.end > 0 && self.segments[self.current() as usize].live == 0 {
            self.release(self.current(), words);
        }
        let number = self.free_segments.pop().unwrap_or_else(|| {
            self.segments.push(Segment::default());
            self.segments.len() as u32 - 1
        });
        if let Err(error) = words.reserve() {
            panic!("{error}");
        }
        let room = words.capacity() / GRANULE_WORDS;
        let end = (number as usize + 1) * SEGMENT as usize;
        assert!(end <= room && end < u32::MAX as usize, "no room for segment {number} in an arena of {room}");
        // Block 0 is nobody's, so that 0 can stand for none; blocks of four granules begin with a line.
        (self.next, self.end) = (number * SEGMENT + 4, end as u32);
    }

    /// Bytes of segments in use, without what was not used yet of the current one.
    fn used(&self) -> usize {
        let segments = self.segments.len() - self.free_segments.len();
        (segments * SEGMENT as usize).saturating_sub(((self.current() + 1) * SEGMENT - self.next) as usize)
    }
}

impl Arena {
    /// A block of at least so many granules. Its content is whatever was there. `fresh` ones come from segments that
    /// hold nothing else yet.
    ///
    /// Panics when the machine has no address space left or the partition 64 GiB of adjacency: like any allocation.
    pub fn allocate(&self, granules: u32, fresh: bool) -> u32 {
        let (class, size) = class_of(granules);
        assert!(size <= SEGMENT - 4, "a block of {granules} granules");
        let mut book = self.book.lock();
        if book.free.get(class).is_none_or(Vec::is_empty) {
            book.collect(&self.words);
        }
        book.live += size as usize;
        let reused = if fresh { None } else { book.reuse(class) };
        let block = reused.unwrap_or_else(|| book.take(size, &self.words));
        book.segments[(block / SEGMENT) as usize].live += size;
        block
    }

    /// Leaves the rest of the current segment, if much of it is used: so it becomes free when the blocks that are in it
    /// have moved.
    pub fn turn_over(&self) {
        let mut book = self.book.lock();
        if book.end > 0 && book.end - book.next < SEGMENT / 4 * 3 {
            book.next = book.end;
            book.strip = (0, 0);
        }
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

    /// Whether blocks wait for their last readers.
    pub fn waits(&self) -> bool {
        !self.book.lock().limbo.is_empty()
    }

    /// Forgets free blocks of segments that were given back.
    pub fn prune(&self) {
        let mut book = self.book.lock();
        let Book { free, segments, .. } = &mut *book;
        for blocks in free {
            blocks
                .retain(|(block, generation)| segments[(block / SEGMENT) as usize].generation == *generation);
            blocks.shrink_to(2 * blocks.len());
        }
    }

    /// Whether more is free than it is worth: then blocks are to be moved into fresh segments.
    pub fn is_sparse(&self) -> bool {
        let book = self.book.lock();
        let (used, live) = (book.used() * GRANULE_WORDS * 8, book.live * GRANULE_WORDS * 8);
        used > live + live / 4 + WORTH_MOVING
    }

    /// Where a block begins.
    #[inline]
    pub fn address(&self, block: u32) -> *mut u64 {
        self.words.base().cast::<u64>().wrapping_add(block as usize * GRANULE_WORDS)
    }

    /// Bytes of segments, free blocks among them.
    pub fn bytes(&self) -> usize {
        self.book.lock().used() * GRANULE_WORDS * 8
    }

    /// Bytes of blocks in use.
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
        for granules in 1..SEGMENT - 4 {
            let (class, size) = class_of(granules);
            assert!(size >= granules && size - granules <= granules / 32, "{granules} in {size}");
            assert!((class, size) == last || (class == last.0 + 1 && size > last.1), "{granules}");
            assert_eq!(class_of(size), (class, size));
            last = (class, size);
        }
    }

    #[test]
    fn a_block_is_not_used_again_while_a_guard_is_held() {
        let arena = Arena::default();
        let block = arena.allocate(3, false);
        let other = arena.allocate(3, false);
        assert!(other >= block + 3);
        let reader = pin();
        std::thread::scope(|scope| {
            // Another thread, so that the guard of this one counts as somebody else's.
            scope.spawn(|| {
                arena.retire(block, 3, &pin());
                collect(&arena);
                assert_ne!(arena.allocate(3, false), block);
            });
        });
        drop(reader);
        collect_all(&arena);
        assert_eq!(arena.allocate(3, false), block);
        assert_eq!(arena.live_bytes(), 3 * 48);
    }

    #[test]
    fn blocks_lie_in_as_few_lines_as_they_can_and_what_is_left_between_is_used() {
        let arena = Arena::default();
        let (mut blocks, mut granules) = (vec![], 0);
        for round in 0..100 {
            for size in [1, LINE, 1 + round % 3, LONG + round % 8, LINE] {
                blocks.push((arena.allocate(size, false), size));
                granules += size;
            }
        }
        for (block, size) in &blocks {
            if *size == LINE || *size >= LONG {
                assert_eq!(block % LINE, 0, "{size} granules at {block}");
            }
        }
        blocks.sort_unstable();
        assert!(blocks.is_sorted_by(|a, b| a.0 + a.1 <= b.0), "blocks overlap: {blocks:?}");
        let bytes = granules as usize * 16;
        assert_eq!(arena.live_bytes(), bytes);
        assert!(arena.bytes() < bytes + bytes / 10, "{} bytes for {bytes}", arena.bytes());
    }

    #[test]
    #[cfg(not(miri))]
    fn what_was_used_once_is_used_again() {
        let arena = Arena::default();
        let mut bytes = 0;
        for round in 0..5 {
            let blocks: Vec<_> =
                (1..300).map(|granules| (arena.allocate(granules * 17, false), granules * 17)).collect();
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

    #[test]
    #[cfg(not(miri))]
    fn segments_without_blocks_go_back() {
        let arena = Arena::default();
        let blocks: Vec<u32> = (0..100_000).map(|_| arena.allocate(8, false)).collect();
        assert!(!arena.is_sparse());
        // All but every tenth go, then those move.
        for (index, block) in blocks.iter().enumerate() {
            if index % 10 > 0 {
                arena.retire(*block, 8, &pin());
            }
        }
        collect_all(&arena);
        assert!(arena.is_sparse());
        let full = arena.bytes();
        for block in blocks.iter().step_by(10) {
            arena.allocate(8, true);
            arena.retire(*block, 8, &pin());
        }
        collect_all(&arena);
        assert!(arena.bytes() < full / 4, "{} of {full}", arena.bytes());
        assert!(!arena.is_sparse());
        // What was given back is used again, and no free block of before with it.
        let mut seen = std::collections::HashSet::new();
        for _ in 0..90_000 {
            assert!(seen.insert(arena.allocate(8, false)));
        }
        assert!(arena.bytes() <= full + full / 4, "{} of {full}", arena.bytes());
    }
}
