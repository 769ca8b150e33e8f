//! Adjacency: the edges of one vertex in one direction, readable at any kept version while one writer changes them.
//!
//! A [`List`] takes 24 bytes inside the vertex's node. It holds nothing, one entry inline (no further cache miss), a
//! block in the partition's arena ([`block`]), or, for large degrees, the number of a [`hub`]. A block has a *base*,
//! entries in order of label and SID, and a *tail* of operations with versions. The base never changes. When the tail
//! is full, or old enough, the list is *folded*: its operations are merged into a new base ([`draft`]), and the old
//! block is retired. A load writes each list at once ([`build`]).
//!
//! Readers take no lock: they hold an epoch guard, load the list's word and read what it names. A half-finished
//! change belongs to a version that no reader may read yet.
//!
//! A list that is no hub is always read whole. A hub is read in chunks, and a reader can stop between two.
//!
//! What must never happen: inline words changed while a reader may look at them (they are written once); a fold that
//! drops an entry which a readable version sees (STO-1); two live entries with one SID.

mod block;
mod build;
mod draft;
mod fast_read;
mod hub;
mod hubs;
#[cfg(test)]
mod tests;

pub(crate) use block::{FoundEntry, NEVER, Run, Sids};
pub(crate) use fast_read::{FEW, FastRead, FewEntries};

use crate::arena::Arena;
use crate::write_permit::WritePermit;
use block::{Block, Op};
use crossbeam_epoch::{Guard, pin};
use draft::Draft;
use hub::Hub;
use hubs::Hubs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegraph_types::{Gui, Sid, Token, Version};

/// Number of entries above which a list becomes a hub.
const HUB_DEGREE: usize = 1024;
/// Largest number of entries in a chunk of a hub.
const CHUNK: usize = 2048;
/// Lists with fewer entries are always folded to their exact size.
const SMALL: usize = 64;
/// Largest spare room, in operations.
const MOST_SLACK: usize = 256;

/// Largest SID that a block can hold.
pub(crate) const LARGEST_SID: Sid = Sid(block::SID_MASK);

/// Largest number of epochs to advance, to free what was retired.
const EPOCHS: usize = 256;

/// Kind of a list, in the low bits of its word.
const INLINE: u64 = 1;
const BLOCK: u64 = 2;
const HUB: u64 = 3;
const TAG_BITS: u32 = 2;
/// In the word of a block, its number takes 32 bits. The number of base entries stands above it: enough to prefetch
/// all of its lines.
const ENTRIES_SHIFT: u32 = TAG_BITS + 32;
/// An inline entry has a SID of 40 bits and a label of 24.
const INLINE_SID_BITS: u32 = 40;

/// An edge seen from one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub neighbour: Gui,
    pub sid: Sid,
    pub label: Token,
}

impl Link {
    /// Returns SID and label in one word, if they fit. The word is never zero, which stands for none.
    fn packed(&self) -> Option<u64> {
        let fits = self.sid.0 >> INLINE_SID_BITS == 0 && self.label.0 >> 24 == 0 && self.sid.0 > 0;
        fits.then_some(self.sid.0 | u64::from(self.label.0) << INLINE_SID_BITS)
    }
}

/// What happened to an entry that was ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// It is kept for older versions until the list is folded.
    Kept,
    /// No version could see it yet.
    Gone,
}

/// The labels to read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Labels<'r> {
    All,
    These(&'r [Token]),
}

impl Labels<'_> {
    #[inline]
    pub fn pass(self, label: Token) -> bool {
        match self {
            Self::All => true,
            Self::These([one]) => *one == label,
            Self::These(several) => several.contains(&label),
        }
    }
}

/// Receives the entries that are read.
pub(crate) trait Sink {
    /// Takes visible entries of one label.
    fn take(&mut self, run: Run<'_>);
    /// Returns the number of rows so far.
    fn len(&self) -> usize;
    /// Returns whether a hub may stop.
    fn full(&self) -> bool;
}

/// A sink that never stops.
pub(crate) struct Each<F>(pub F);

impl<F: FnMut(Run<'_>)> Sink for Each<F> {
    #[inline]
    fn take(&mut self, run: Run<'_>) {
        (self.0)(run);
    }

    fn len(&self) -> usize {
        0
    }

    fn full(&self) -> bool {
        false
    }
}

/// The edges of a vertex in one direction.
#[derive(Debug, Default)]
pub(crate) struct List {
    word: AtomicU64,
    neighbour: AtomicU64,
    sid_label: AtomicU64,
}

const _: () = assert!(size_of::<List>() == 24);

#[derive(Clone, Copy)]
enum ListForm {
    Empty,
    /// One entry, which begins at a version.
    Inline(Version),
    Block(u32),
    Hub(u32),
}

impl List {
    #[inline]
    fn form(&self) -> ListForm {
        let word = self.word.load(Ordering::Acquire);
        let rest = word >> TAG_BITS;
        match word & ((1 << TAG_BITS) - 1) {
            INLINE => ListForm::Inline(Version(rest)),
            BLOCK => ListForm::Block(rest as u32),
            HUB => ListForm::Hub(rest as u32),
            _ => ListForm::Empty,
        }
    }

    fn set(&self, tag: u64, rest: u64) {
        self.word.store(rest << TAG_BITS | tag, Ordering::Release);
    }

    fn set_block(&self, number: u32, entries: usize) {
        self.set(BLOCK, (entries as u64) << (ENTRIES_SHIFT - TAG_BITS) | u64::from(number));
    }

    /// Empties a list that no reader uses, for a new vertex.
    pub fn clear(&self) {
        self.neighbour.store(0, Ordering::Relaxed);
        self.sid_label.store(0, Ordering::Relaxed);
        self.word.store(0, Ordering::Release);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.word.load(Ordering::Acquire) == 0
    }

    #[inline]
    fn inline(&self) -> Link {
        let packed = self.sid_label.load(Ordering::Relaxed);
        Link {
            neighbour: Gui(self.neighbour.load(Ordering::Relaxed)),
            sid: Sid(packed & ((1 << INLINE_SID_BITS) - 1)),
            label: Token((packed >> INLINE_SID_BITS) as u32),
        }
    }

    /// Stores the only entry inline. Returns false if it does not fit, or if the list ever held another one inline,
    /// which a reader may be looking at.
    fn set_inline(&self, link: Link, begin: Version) -> bool {
        let Some(packed) = link.packed() else { return false };
        let there = self.sid_label.load(Ordering::Relaxed);
        if there != 0 && (there != packed || self.neighbour.load(Ordering::Relaxed) != link.neighbour.0) {
            return false;
        }
        self.neighbour.store(link.neighbour.0, Ordering::Relaxed);
        self.sid_label.store(packed, Ordering::Relaxed);
        self.set(INLINE, begin.0);
        true
    }
}

/// Storage of all lists of a partition.
pub(crate) struct Links {
    arena: Arena,
    hubs: Hubs,
    hub_degree: usize,
    chunk: usize,
    /// Whether blocks are being moved together.
    compacting: AtomicBool,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            arena: Arena::default(),
            hubs: Hubs::default(),
            hub_degree: HUB_DEGREE,
            chunk: CHUNK,
            compacting: AtomicBool::new(false),
        }
    }
}

impl Links {
    #[inline]
    fn block<'g>(&'g self, number: u32, _: &'g Guard) -> Block<'g> {
        // SAFETY: a block is filled before a list names it and retired after the list was changed. The guard was
        // pinned before the list's word was loaded, so the block outlives it.
        unsafe { Block::at(self.arena.address(number)) }
    }

    /// Passes the entries that are visible at a version and have one of the labels to `sink`. In a hub it starts
    /// behind chunk `after` (0: at the start), and returns the number of the chunk behind which it stopped because
    /// the sink is full.
    #[inline]
    pub fn read(
        &self,
        list: &List,
        at: Version,
        labels: Labels<'_>,
        after: u32,
        guard: &Guard,
        sink: &mut impl Sink,
    ) -> Option<u32> {
        match list.form() {
            ListForm::Empty => {}
            ListForm::Inline(begin) => {
                let link = list.inline();
                if begin <= at && labels.pass(link.label) {
                    sink.take(Run {
                        label: link.label,
                        neighbours: &[link.neighbour.0],
                        sids: Sids::Wide(&[link.sid.0]),
                    });
                }
            }
            ListForm::Block(number) => {
                self.block(number, guard).read(at, |label| labels.pass(label), |run| sink.take(run));
            }
            ListForm::Hub(number) => {
                return self.hubs.get(number, guard).read(&self.arena, at, labels, after, guard, sink);
            }
        }
        None
    }

    /// Calls `visit` for every entry that is visible at a version.
    pub fn for_each_visible(&self, list: &List, at: Version, guard: &Guard, mut visit: impl FnMut(Link)) {
        self.read(
            list,
            at,
            Labels::All,
            0,
            guard,
            &mut Each(|run: Run<'_>| run.links().for_each(&mut visit)),
        );
    }

    /// Returns the number of entries that are visible at a version and have one of the labels.
    pub fn degree(&self, list: &List, at: Version, labels: Labels<'_>, guard: &Guard) -> u64 {
        let mut count = 0;
        self.read(list, at, labels, 0, guard, &mut Each(|run: Run<'_>| count += run.neighbours.len() as u64));
        count
    }

    pub fn is_hub(&self, list: &List) -> bool {
        matches!(list.form(), ListForm::Hub(_))
    }

    /// Finds the entry of an edge, ended or not. Knowing the label makes it faster.
    pub fn find(&self, list: &List, sid: Sid, label: Option<Token>, guard: &Guard) -> Option<FoundEntry> {
        match list.form() {
            ListForm::Empty => None,
            ListForm::Inline(begin) => {
                let link = list.inline();
                (link.sid == sid).then_some(FoundEntry { link, begin, end: NEVER, place: 0 })
            }
            ListForm::Block(number) => self.block(number, guard).find(sid),
            ListForm::Hub(number) => self.hubs.get(number, guard).find(&self.arena, sid, label, guard),
        }
    }

    /// Decomposes a list that is no hub.
    fn draft(&self, list: &List, guard: &Guard) -> Draft {
        let mut draft = Draft::default();
        match list.form() {
            ListForm::Inline(begin) => {
                draft.base.push(list.inline());
                draft.begin = begin;
            }
            ListForm::Block(number) => draft.take(&self.block(number, guard)),
            ListForm::Empty | ListForm::Hub(_) => {}
        }
        draft
    }

    /// Replaces a list that is no hub by a draft, with room for `more` operations.
    fn put(&self, list: &List, mut draft: Draft, more: usize, guard: &Guard) {
        let old = match list.form() {
            ListForm::Block(number) => Some((number, self.block(number, guard).shape.granules())),
            _ => None,
        };
        let no_ops = draft.adds.is_empty() && draft.ends.is_empty();
        if draft.len() == 0 {
            list.word.store(0, Ordering::Release);
        } else if draft.len() > self.hub_degree {
            let hub = self.hubs.insert(Hub::new(self, draft));
            list.set(HUB, u64::from(hub));
        } else if !(no_ops && more == 0 && draft.len() == 1 && list.set_inline(draft.base[0], draft.begin)) {
            let block = draft.write(&self.arena, more, self.compacting());
            list.set_block(block, draft.base.len());
        }
        if let Some((number, granules)) = old {
            self.arena.retire(number, granules, guard);
        }
    }

    /// Adds an entry at a version. `oldest` is the oldest version that can be read.
    pub fn push(&self, _: &mut WritePermit, list: &List, link: Link, version: Version, oldest: Version) {
        let guard = &pin();
        match list.form() {
            ListForm::Hub(number) => {
                return self.hubs.get(number, guard).push(self, link, version, oldest, guard);
            }
            ListForm::Empty if list.set_inline(link, version) => return,
            ListForm::Block(number) => {
                let tail = self.block(number, guard).tail;
                if tail.is_some_and(|tail| tail.push(Op::add(link, version))) {
                    return;
                }
            }
            ListForm::Empty | ListForm::Inline(_) => {}
        }
        let mut draft = self.draft(list, guard);
        let more = if draft.len() == 0 { 0 } else { slack(draft.len()) };
        draft.adds.push((link, version));
        draft.fold(oldest);
        self.put(list, draft, more, guard);
    }

    /// Ends the entry of an edge at a version; returns `None` if there is no live one.
    pub fn end(
        &self,
        _: &mut WritePermit,
        list: &List,
        sid: Sid,
        label: Token,
        version: Version,
        oldest: Version,
    ) -> Option<Ended> {
        let guard = &pin();
        if let ListForm::Hub(number) = list.form() {
            return self.hubs.get(number, guard).end(self, sid, label, version, oldest, guard);
        }
        let found = self.find(list, sid, Some(label), guard).filter(FoundEntry::live)?;
        let ended = if found.begin == version { Ended::Gone } else { Ended::Kept };
        if let ListForm::Block(number) = list.form() {
            let tail = self.block(number, guard).tail;
            let op = Op::end(found.place, found.link.label, sid, version);
            if tail.is_some_and(|tail| tail.push(op)) {
                return Some(ended);
            }
        }
        let mut draft = self.draft(list, guard);
        draft.ends.push((found.link.key(), version));
        draft.fold(oldest);
        let ops = draft.adds.len() + draft.ends.len();
        let more = if ops == 0 { 0 } else { ops };
        self.put(list, draft, more, guard);
        Some(ended)
    }

    /// Merges operations into the base where only versions below `oldest` could tell the difference. `exact` leaves no
    /// spare room.
    pub fn fold(&self, _: &mut WritePermit, list: &List, oldest: Version, exact: bool) {
        let guard = &pin();
        match list.form() {
            ListForm::Empty | ListForm::Inline(_) => {}
            ListForm::Block(number) => {
                let block = self.block(number, guard);
                let mut draft = Draft::default();
                if self.is_due_to_fold(&block, oldest, exact, &mut draft) {
                    let ops = draft.adds.len() + draft.ends.len();
                    let more = if ops == 0 { 0 } else { slack(draft.len()) };
                    self.put(list, draft, more, guard);
                } else if exact && self.compacting() {
                    self.move_block(number, guard, |new, entries| list.set_block(new, entries));
                }
            }
            ListForm::Hub(number) => {
                let hub = self.hubs.get(number, guard);
                if hub.fold(self, oldest, exact, guard) {
                    list.word.store(0, Ordering::Release);
                    hub.retire_chunks(self, guard);
                    self.hubs.retire(number, guard);
                }
            }
        }
    }

    /// Returns whether a block should be rewritten; if so, `draft` holds it, folded.
    fn is_due_to_fold(&self, block: &Block<'_>, oldest: Version, exact: bool, draft: &mut Draft) -> bool {
        let Some(tail) = block.tail else {
            // On the way into a fresh segment, the version of a load can be dropped.
            let leaner = exact && self.compacting() && block.shape.begin && block.begin <= oldest;
            if leaner {
                draft.take(block);
                draft.fold(oldest);
            }
            return leaner || block.neighbours.is_empty();
        };
        let ops = tail.ops();
        let old = ops.iter().filter(|op| op.version <= oldest.0).count();
        // A list that changes constantly pays for folding once for half a tail.
        if old * 2 < ops.len() {
            return false;
        }
        let more_to_come = !exact
            && (SMALL..self.chunk.saturating_sub(ops.len())).contains(&block.neighbours.len())
            && ops.len() * 2 < tail.room
            && !ops.iter().any(Op::ends);
        if more_to_come {
            return false;
        }
        draft.take(block);
        draft.fold(oldest);
        true
    }

    /// Moves the blocks of a list into fresh segments.
    pub fn relocate(&self, _: &mut WritePermit, list: &List) {
        let guard = &pin();
        match list.form() {
            ListForm::Empty | ListForm::Inline(_) => {}
            ListForm::Block(number) => {
                self.move_block(number, guard, |new, entries| list.set_block(new, entries));
            }
            ListForm::Hub(number) => self.hubs.get(number, guard).relocate(self, guard),
        }
    }

    /// Copies a block into a fresh segment, calls `name` with the copy and the number of its base entries to replace
    /// the reference, and retires the block.
    fn move_block(&self, number: u32, guard: &Guard, name: impl FnOnce(u32, usize)) {
        let entries = self.block(number, guard).neighbours.len();
        let (new, granules) = self.copy_block(number, guard);
        name(new, entries);
        self.arena.retire(number, granules, guard);
    }

    /// Copies a block into a fresh segment. Returns the copy and the size of both in granules. The caller replaces
    /// the reference and then retires the block.
    fn copy_block(&self, number: u32, guard: &Guard) -> (u32, u32) {
        let granules = self.block(number, guard).shape.granules();
        let new = self.arena.allocate(granules, true);
        // SAFETY: both blocks have this size. The new one belongs to the caller alone, and the old one does not
        // change, because the only writer is here.
        unsafe {
            let words = granules as usize * crate::arena::GRANULE_WORDS;
            std::ptr::copy_nonoverlapping(self.arena.address(number), self.arena.address(new), words);
        }
        (new, granules)
    }

    /// Returns whether blocks are being moved together.
    pub fn compacting(&self) -> bool {
        self.compacting.load(Ordering::Relaxed)
    }

    /// Returns whether so much is free between the blocks that all lists should be folded exactly.
    pub fn is_sparse(&self) -> bool {
        self.arena.is_sparse()
    }

    /// Starts or ends a pass that folds all lists exactly. Meanwhile blocks move together.
    pub fn set_compacting(&self, compacting: bool) {
        self.compacting.store(compacting, Ordering::Relaxed);
        if compacting {
            self.arena.turn_over();
        } else {
            // Each retired block keeps its segment, so advance the epoch, if no reader holds it.
            for _ in 0..EPOCHS {
                if !self.waits() {
                    break;
                }
                self.collect();
            }
            self.arena.prune();
        }
    }

    /// Returns whether something waits for its last readers.
    pub fn waits(&self) -> bool {
        self.arena.waits() || self.hubs.waits()
    }

    /// Frees blocks that no reader uses any more.
    pub fn collect(&self) {
        let guard = &pin();
        self.arena.collect(guard);
        self.hubs.collect(guard);
        guard.flush();
    }

    /// Returns the bytes of blocks, free ones included. Cheap, unlike [`Self::bytes`].
    pub fn block_bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// Returns the bytes of segments that no block in use occupies.
    pub fn free_bytes(&self) -> usize {
        self.arena.bytes().saturating_sub(self.arena.live_bytes())
    }

    /// Returns all bytes, free blocks included.
    pub fn bytes(&self) -> usize {
        self.arena.bytes() + self.hubs.bytes(&pin())
    }

    /// Returns the bytes in use.
    #[cfg(test)]
    fn live_bytes(&self) -> usize {
        self.arena.live_bytes() + self.hubs.bytes(&pin())
    }
}

/// Returns the spare room, in operations, of a growing list: a fraction of its length, so that appending takes
/// amortized constant time.
fn slack(entries: usize) -> usize {
    (entries / 4).clamp(2, MOST_SLACK)
}
