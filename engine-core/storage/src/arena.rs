//! Arena: blocks of 16-byte granules in one virtual array, found by a 32-bit number.
//!
//! The writer fills a block and publishes it with a word that readers load. A block that was replaced is *retired*.
//! Readers pin an epoch before they load the word; a retired block is filled again only after every guard of the time
//! of its retirement has gone ([`Limbo`]). Free blocks wait in one list for each size class: exact sizes up to 4 KiB,
//! 32 classes for each doubling beyond. A segment of 2 MiB without a block in use goes back to the kernel. To get
//! there, the owner of the blocks moves them into fresh segments, one by one.
//!
//! A block of one cache line lies on one line, and a longer block begins on a line, so that a random read touches no
//! more lines than necessary. Blocks of one line, the most frequent ones, are laid out in strips. Space that is left
//! before a longer block goes to smaller blocks.
//!
//! What must never happen: a block filled again while a reader may look at it; a block retired twice.

use crate::virtual_array::VirtualArray;
use crossbeam_epoch::Guard;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Granules of a cache line.
const LINE: u32 = 4;
/// Number of one-line blocks that are laid out together.
const STRIP: u32 = 16;
/// Blocks of at least this many granules begin on a cache line. The space left before them is at most a fifth of
/// their size.
const LONG: u32 = 16;
/// 8-byte words of a granule.
pub(crate) const GRANULE_WORDS: usize = 2;
/// Number of granules that 32 bits can address: 64 GiB.
const MOST_GRANULES: usize = 1 << 32;
/// Sizes up to this many granules have a class each.
const EXACT: u32 = 256;
/// Size classes for each doubling beyond `EXACT`, as a power of two.
const STEPS_BITS: u32 = 5;
/// Granules of a segment, which is also the limit of a block. Smaller under Miri, so that a test uses several
/// segments.
const SEGMENT: u32 = if cfg!(miri) { 1 << 12 } else { 1 << 17 };
/// Free bytes up to which it does not pay to move blocks together.
const WORTH_MOVING: usize = 1 << 20;
/// Number of retired items that share one deferred epoch callback.
const BATCH: usize = 128;

/// Returns the size class of a request, and the size of its blocks in granules.
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

/// Items that new readers cannot find, waiting until earlier readers have gone.
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
    /// Takes an item that only readers which found it before can still reach.
    pub fn push(&mut self, thing: T, guard: &Guard) {
        self.fresh.push(thing);
        if self.fresh.len() >= BATCH {
            self.seal(guard);
        }
    }

    /// Makes the items so far wait for the guards of this moment.
    pub fn seal(&mut self, guard: &Guard) {
        if self.fresh.is_empty() {
            return;
        }
        let gone = Arc::new(AtomicBool::new(false));
        self.batches.push_back((gone.clone(), std::mem::take(&mut self.fresh)));
        // Runs after every guard of this moment has gone. Release here and Acquire in `pop` order it after what those
        // readers did.
        guard.defer(move || gone.store(true, Ordering::Release));
    }

    /// Returns a batch of items that no reader looks at any more.
    pub fn pop(&mut self) -> Option<Vec<T>> {
        let (gone, _) = self.batches.front()?;
        gone.load(Ordering::Acquire).then(|| self.batches.pop_front().map(|(_, things)| things)).flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.batches.is_empty()
    }
}

/// Allocates and reclaims blocks.
pub(crate) struct Arena {
    words: VirtualArray<AtomicU64>,
    state: Mutex<ArenaState>,
}

struct ArenaState {
    /// Unused part of the current segment.
    next: u32,
    end: u32,
    /// Unused part of the last strip. Its segment is the current one, or holds a block of the strip.
    strip: (u32, u32),
    segments: Vec<Segment>,
    free_segments: Vec<u32>,
    /// Granules of blocks in use.
    live: usize,
    /// Free blocks by class. Each has the generation of its segment and disappears with it.
    free: Vec<Vec<(u32, u32)>>,
    limbo: Limbo<(u32, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Segment {
    /// Granules of blocks in use or in limbo.
    live: u32,
    generation: u32,
}

impl Default for Arena {
    fn default() -> Self {
        let most = if cfg!(miri) { 1 << 16 } else { MOST_GRANULES };
        let state = ArenaState {
            next: 0,
            end: 0,
            strip: (0, 0),
            segments: Vec::new(),
            free_segments: Vec::new(),
            live: 0,
            free: Vec::new(),
            limbo: Limbo::default(),
        };
        Self { words: VirtualArray::new(most * GRANULE_WORDS), state: Mutex::new(state) }
    }
}

impl ArenaState {
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

    /// Adds a block to the free list of its class.
    fn keep(&mut self, class: usize, block: u32, generation: u32) {
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push((block, generation));
    }

    /// Cuts a block from the current segment, or from the next one.
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

    /// Cuts granules from the current segment. Long blocks begin on a cache line.
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

    /// Gives back a segment that holds no block in use.
    fn release(&mut self, number: u32, words: &VirtualArray<AtomicU64>) {
        let segment = &mut self.segments[number as usize];
        segment.generation = segment.generation.wrapping_add(1);
        if self.strip.0 / SEGMENT == number {
            self.strip = (0, 0);
        }
        self.free_segments.push(number);
        let start = number as usize * SEGMENT as usize * GRANULE_WORDS;
        // SAFETY: all blocks of the segment have left limbo, so no reader is left. Blocks that are cut from it later
        // are filled before they are read.
        unsafe { words.release(start..start + SEGMENT as usize * GRANULE_WORDS) };
    }

    /// Takes a free block of a class whose segment was not given back since.
    fn reuse(&mut self, class: usize) -> Option<u32> {
        let free = self.free.get_mut(class)?;
        while let Some((block, generation)) = free.pop() {
            if self.segments[(block / SEGMENT) as usize].generation == generation {
                return Some(block);
            }
        }
        None
    }

    /// Starts a segment.
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
        // Block 0 stays unused, so that 0 can mean none, and blocks of four granules begin on a cache line.
        (self.next, self.end) = (number * SEGMENT + 4, end as u32);
    }

    /// Returns the granules of segments in use, without the unused rest of the current one.
    fn used(&self) -> usize {
        let segments = self.segments.len() - self.free_segments.len();
        (segments * SEGMENT as usize).saturating_sub(((self.current() + 1) * SEGMENT - self.next) as usize)
    }
}

impl Arena {
    /// Allocates a block of at least `granules` granules. Its content is undefined. A `fresh` block is
    /// never reused: it is cut from the current segment or a new one.
    ///
    /// # Panics
    ///
    /// If no address space is left, or the adjacency of the partition exceeds 64 GiB.
    pub fn allocate(&self, granules: u32, fresh: bool) -> u32 {
        let (class, size) = class_of(granules);
        assert!(size <= SEGMENT - 4, "a block of {granules} granules");
        let mut state = self.state.lock();
        if state.free.get(class).is_none_or(Vec::is_empty) {
            state.collect(&self.words);
        }
        state.live += size as usize;
        let reused = if fresh { None } else { state.reuse(class) };
        let block = reused.unwrap_or_else(|| state.take(size, &self.words));
        state.segments[(block / SEGMENT) as usize].live += size;
        block
    }

    /// Leaves the current segment if much of it is used, so that it becomes free once its blocks have moved.
    pub fn turn_over(&self) {
        let mut state = self.state.lock();
        if state.end > 0 && state.end - state.next < SEGMENT / 4 * 3 {
            state.next = state.end;
            state.strip = (0, 0);
        }
    }

    /// Takes back a block that new readers cannot find. `granules` is the size that was requested.
    pub fn retire(&self, block: u32, granules: u32, guard: &Guard) {
        let mut state = self.state.lock();
        state.live -= class_of(granules).1 as usize;
        state.limbo.push((block, granules), guard);
    }

    /// Frees the blocks that no reader looks at any more.
    pub fn collect(&self, guard: &Guard) {
        let mut state = self.state.lock();
        if !state.limbo.is_empty() {
            state.limbo.seal(guard);
            state.collect(&self.words);
        }
    }

    /// Returns whether blocks wait for their last readers.
    pub fn waits(&self) -> bool {
        !self.state.lock().limbo.is_empty()
    }

    /// Removes free blocks of segments that were given back from the lists.
    pub fn prune(&self) {
        let mut state = self.state.lock();
        let ArenaState { free, segments, .. } = &mut *state;
        for blocks in free {
            blocks
                .retain(|(block, generation)| segments[(block / SEGMENT) as usize].generation == *generation);
            blocks.shrink_to(2 * blocks.len());
        }
    }

    /// Returns whether so much is free that blocks should move into fresh segments.
    pub fn is_sparse(&self) -> bool {
        let state = self.state.lock();
        let (used, live) = (state.used() * GRANULE_WORDS * 8, state.live * GRANULE_WORDS * 8);
        used > live + live / 4 + WORTH_MOVING
    }

    /// Returns the address of a block.
    #[inline]
    pub fn address(&self, block: u32) -> *mut u64 {
        self.words.base().cast::<u64>().wrapping_add(block as usize * GRANULE_WORDS)
    }

    /// Returns the bytes of segments in use, free blocks included.
    pub fn bytes(&self) -> usize {
        self.state.lock().used() * GRANULE_WORDS * 8
    }

    /// Returns the bytes of blocks in use.
    pub fn live_bytes(&self) -> usize {
        self.state.lock().live * GRANULE_WORDS * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_epoch::pin;

    /// Advances the epoch a little. Other tests hold guards of the same collector for short times.
    fn collect(arena: &Arena) {
        for _ in 0..8 {
            let guard = pin();
            arena.collect(&guard);
            guard.flush();
        }
    }

    fn collect_all(arena: &Arena) {
        while !arena.state.lock().limbo.is_empty() {
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
            // On another thread, so that this thread's guard counts as that of a reader.
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
        // Frees nine of ten blocks, then moves the rest.
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
        // Freed space is reused, without the free blocks that it contained before.
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..90_000 {
            assert!(seen.insert(arena.allocate(8, false)));
        }
        assert!(arena.bytes() <= full + full / 4, "{} of {full}", arena.bytes());
    }
}
