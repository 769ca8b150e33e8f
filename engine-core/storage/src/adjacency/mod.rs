//! Adjacency: the edges of one vertex in one direction, readable at any kept version while one writer changes them.
//!
//! A [`List`] takes 24 bytes inside the vertex's node: nothing, one entry inline (no further cache miss), a block in the
//! partition's arena ([`block`]), or, from some hundreds of entries on, the number of a [`hub`]. A block is settled
//! entries in order of label and SID, and a tail of operations with versions. The settled part is never changed: when
//! the tail is full, or all of it is old enough, the list is taken apart, folded and written anew ([`draft`]), and the
//! old block is retired. What a load has for a list is written at once ([`build`]).
//!
//! Readers take no lock: they hold an epoch guard, load the list's word and read what it names. Half of a change belongs
//! to a version that nobody may read yet.
//!
//! A list that is no hub is always read whole; a hub is read in chunks and can be left between two.
//!
//! What must never happen: the inline words changed while somebody may read them (they are written once); an entry that
//! a readable version sees left out when a list is folded; two live entries with one SID.

mod block;
mod build;
mod draft;
mod glance;
mod hub;
mod hubs;
#[cfg(test)]
mod tests;

pub(crate) use block::{Found, NEVER, Run, Sids};
pub(crate) use glance::{FEW, Few, Glance};

use crate::arena::Arena;
use crate::turn::Turn;
use block::{Block, Op};
use crossbeam_epoch::{Guard, pin};
use draft::Draft;
use hub::Hub;
use hubs::Hubs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegraph_types::{Gui, Sid, Token, Version};

/// Number of entries past which a list becomes a hub.
const HUB_DEGREE: usize = 1024;
/// Most entries of a chunk of a hub.
const CHUNK: usize = 2048;
/// Lists of fewer entries are always settled to their exact size.
const SMALL: usize = 64;
/// Most spare room for operations.
const MOST_SLACK: usize = 256;

/// What a block has room for.
pub(crate) const LARGEST_SID: Sid = Sid(block::SID_MASK);

/// So often the epoch is moved on at most, to get everything free that was retired.
const EPOCHS: usize = 256;

/// Where a list's entries are, in the low bits of its word.
const INLINE: u64 = 1;
const BLOCK: u64 = 2;
const HUB: u64 = 3;
const TAG_BITS: u32 = 2;
/// Of a block, the number takes 32 bits; how many settled entries it has stands above them: enough to ask for all of its
/// lines at once.
const ENTRIES_SHIFT: u32 = TAG_BITS + 32;
/// An inline entry has a SID of 40 bits and a label of 24.
const INLINE_SID_BITS: u32 = 40;

/// One edge seen from one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub neighbour: Gui,
    pub sid: Sid,
    pub label: Token,
}

impl Link {
    /// SID and label in one word, if they fit. Never zero, which stands for none.
    fn packed(&self) -> Option<u64> {
        let fits = self.sid.0 >> INLINE_SID_BITS == 0 && self.label.0 >> 24 == 0 && self.sid.0 > 0;
        fits.then_some(self.sid.0 | u64::from(self.label.0) << INLINE_SID_BITS)
    }
}

/// What became of an entry that was to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// It is kept for older versions and has to be settled later.
    Kept,
    /// Nobody could see it yet.
    Gone,
}

/// Which labels are read.
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

/// Takes what is read.
pub(crate) trait Sink {
    /// Some visible entries of one label.
    fn take(&mut self, run: Run<'_>);
    /// Rows so far.
    fn len(&self) -> usize;
    /// Whether a hub may stop.
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

/// The list. See the module.
#[derive(Debug, Default)]
pub(crate) struct List {
    word: AtomicU64,
    neighbour: AtomicU64,
    sid_label: AtomicU64,
}

const _: () = assert!(size_of::<List>() == 24);

#[derive(Clone, Copy)]
enum Place {
    Empty,
    /// One entry, begun at a version.
    Inline(Version),
    Block(u32),
    Hub(u32),
}

impl List {
    #[inline]
    fn place(&self) -> Place {
        let word = self.word.load(Ordering::Acquire);
        let rest = word >> TAG_BITS;
        match word & ((1 << TAG_BITS) - 1) {
            INLINE => Place::Inline(Version(rest)),
            BLOCK => Place::Block(rest as u32),
            HUB => Place::Hub(rest as u32),
            _ => Place::Empty,
        }
    }

    fn set(&self, tag: u64, rest: u64) {
        self.word.store(rest << TAG_BITS | tag, Ordering::Release);
    }

    fn set_block(&self, number: u32, entries: usize) {
        self.set(BLOCK, (entries as u64) << (ENTRIES_SHIFT - TAG_BITS) | u64::from(number));
    }

    /// Makes the list of a new vertex out of one that nobody looks at.
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

    /// Puts the only entry inline; false if it does not fit, or if another one was ever there: a reader might just be
    /// looking at it.
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

/// What the lists of a partition lie in.
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
        // SAFETY: a block is filled before a list names it and retired after the list was changed; the guard was
        // there before the list's word was loaded, so that the block outlives it.
        unsafe { Block::at(self.arena.address(number)) }
    }

    /// Hands out what is visible at a version and has one of the labels. In a hub: from behind a chunk on (0: from the
    /// start); answers the number of the chunk behind which it stopped because the sink is full.
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
        match list.place() {
            Place::Empty => {}
            Place::Inline(begin) => {
                let link = list.inline();
                if begin <= at && labels.pass(link.label) {
                    sink.take(Run {
                        label: link.label,
                        neighbours: &[link.neighbour.0],
                        sids: Sids::Wide(&[link.sid.0]),
                    });
                }
            }
            Place::Block(number) => {
                self.block(number, guard).read(at, |label| labels.pass(label), |run| sink.take(run));
            }
            Place::Hub(number) => {
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

    /// Number of entries that are visible at a version and have one of the labels.
    pub fn degree(&self, list: &List, at: Version, labels: Labels<'_>, guard: &Guard) -> u64 {
        let mut count = 0;
        self.read(list, at, labels, 0, guard, &mut Each(|run: Run<'_>| count += run.neighbours.len() as u64));
        count
    }

    pub fn is_hub(&self, list: &List) -> bool {
        matches!(list.place(), Place::Hub(_))
    }

    /// The entry of an edge, ended or not. The label makes it faster if it is known.
    pub fn find(&self, list: &List, sid: Sid, label: Option<Token>, guard: &Guard) -> Option<Found> {
        match list.place() {
            Place::Empty => None,
            Place::Inline(begin) => {
                let link = list.inline();
                (link.sid == sid).then_some(Found { link, begin, end: NEVER, place: 0 })
            }
            Place::Block(number) => self.block(number, guard).find(sid),
            Place::Hub(number) => self.hubs.get(number, guard).find(&self.arena, sid, label, guard),
        }
    }

    /// Takes a list that is no hub apart.
    fn draft(&self, list: &List, guard: &Guard) -> Draft {
        let mut draft = Draft::default();
        match list.place() {
            Place::Inline(begin) => {
                draft.settled.push(list.inline());
                draft.begin = begin;
            }
            Place::Block(number) => draft.take(&self.block(number, guard)),
            Place::Empty | Place::Hub(_) => {}
        }
        draft
    }

    /// Puts a draft in the place of a list that is no hub, with room for more operations.
    fn put(&self, list: &List, mut draft: Draft, more: usize, guard: &Guard) {
        let old = match list.place() {
            Place::Block(number) => Some((number, self.block(number, guard).shape.granules())),
            _ => None,
        };
        let settled = draft.adds.is_empty() && draft.ends.is_empty();
        if draft.len() == 0 {
            list.word.store(0, Ordering::Release);
        } else if draft.len() > self.hub_degree {
            let hub = self.hubs.insert(Hub::new(self, draft));
            list.set(HUB, u64::from(hub));
        } else if !(settled
            && more == 0
            && draft.len() == 1
            && list.set_inline(draft.settled[0], draft.begin))
        {
            let block = draft.write(&self.arena, more, self.compacting());
            list.set_block(block, draft.settled.len());
        }
        if let Some((number, granules)) = old {
            self.arena.retire(number, granules, guard);
        }
    }

    /// Adds an entry at a version; `oldest` is the oldest that can be read.
    pub fn push(&self, _: &mut Turn, list: &List, link: Link, version: Version, oldest: Version) {
        let guard = &pin();
        match list.place() {
            Place::Hub(number) => {
                return self.hubs.get(number, guard).push(self, link, version, oldest, guard);
            }
            Place::Empty if list.set_inline(link, version) => return,
            Place::Block(number) => {
                let tail = self.block(number, guard).tail;
                if tail.is_some_and(|tail| tail.push(Op::add(link, version))) {
                    return;
                }
            }
            Place::Empty | Place::Inline(_) => {}
        }
        let mut draft = self.draft(list, guard);
        let more = if draft.len() == 0 { 0 } else { slack(draft.len()) };
        draft.adds.push((link, version));
        draft.fold(oldest);
        self.put(list, draft, more, guard);
    }

    /// Ends the entry of an edge at a version; `None` if there is no live one.
    pub fn end(
        &self,
        _: &mut Turn,
        list: &List,
        sid: Sid,
        label: Token,
        version: Version,
        oldest: Version,
    ) -> Option<Ended> {
        let guard = &pin();
        if let Place::Hub(number) = list.place() {
            return self.hubs.get(number, guard).end(self, sid, label, version, oldest, guard);
        }
        let found = self.find(list, sid, Some(label), guard).filter(Found::live)?;
        let ended = if found.begin == version { Ended::Gone } else { Ended::Kept };
        if let Place::Block(number) = list.place() {
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

    /// Settles what no version below `oldest` is needed for any more. `exact` leaves no spare room.
    pub fn settle(&self, _: &mut Turn, list: &List, oldest: Version, exact: bool) {
        let guard = &pin();
        match list.place() {
            Place::Empty | Place::Inline(_) => {}
            Place::Block(number) => {
                let block = self.block(number, guard);
                let mut draft = Draft::default();
                if self.to_be_settled(&block, oldest, exact, &mut draft) {
                    let ops = draft.adds.len() + draft.ends.len();
                    let more = if ops == 0 { 0 } else { slack(draft.len()) };
                    self.put(list, draft, more, guard);
                } else if exact && self.compacting() {
                    self.move_block(number, guard, |new, entries| list.set_block(new, entries));
                }
            }
            Place::Hub(number) => {
                let hub = self.hubs.get(number, guard);
                if hub.settle(self, oldest, exact, guard) {
                    list.word.store(0, Ordering::Release);
                    hub.retire_chunks(self, guard);
                    self.hubs.retire(number, guard);
                }
            }
        }
    }

    /// Whether a block is worth to be written anew; then the draft holds it, folded.
    fn to_be_settled(&self, block: &Block<'_>, oldest: Version, exact: bool, draft: &mut Draft) -> bool {
        let Some(tail) = block.tail else {
            // On the way into a fresh segment, a load's version can be left behind.
            let leaner = exact && self.compacting() && block.shape.begin && block.begin <= oldest;
            if leaner {
                draft.take(block);
                draft.fold(oldest);
            }
            return leaner || block.neighbours.is_empty();
        };
        let ops = tail.ops();
        let old = ops.iter().filter(|op| op.version <= oldest.0).count();
        // Something that is written to all the time pays for it once for half a tail.
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
    pub fn relocate(&self, _: &mut Turn, list: &List) {
        let guard = &pin();
        match list.place() {
            Place::Empty | Place::Inline(_) => {}
            Place::Block(number) => {
                self.move_block(number, guard, |new, entries| list.set_block(new, entries));
            }
            Place::Hub(number) => self.hubs.get(number, guard).relocate(self, guard),
        }
    }

    /// Copies a block into a fresh segment, has the copy named in its place (with the number of its settled entries), and
    /// retires it.
    fn move_block(&self, number: u32, guard: &Guard, name: impl FnOnce(u32, usize)) {
        let entries = self.block(number, guard).neighbours.len();
        let (new, granules) = self.copy_block(number, guard);
        name(new, entries);
        self.arena.retire(number, granules, guard);
    }

    /// Copies a block into a fresh segment; answers the copy and the size of both. The caller names the copy and then
    /// retires the block.
    fn copy_block(&self, number: u32, guard: &Guard) -> (u32, u32) {
        let granules = self.block(number, guard).shape.granules();
        let new = self.arena.allocate(granules, true);
        // SAFETY: both blocks have this size, the new one is the caller's alone, and in the old one nothing changes
        // meanwhile: the only writer is here.
        unsafe {
            let words = granules as usize * crate::arena::GRANULE_WORDS;
            std::ptr::copy_nonoverlapping(self.arena.address(number), self.arena.address(new), words);
        }
        (new, granules)
    }

    /// Whether blocks are being moved together.
    pub fn compacting(&self) -> bool {
        self.compacting.load(Ordering::Relaxed)
    }

    /// Whether much is free between the blocks, so that it is time to settle all lists exactly.
    pub fn is_sparse(&self) -> bool {
        self.arena.is_sparse()
    }

    /// Says that all lists are settled exactly from now on, or that they were: blocks move together meanwhile.
    pub fn set_compacting(&self, compacting: bool) {
        self.compacting.store(compacting, Ordering::Relaxed);
        if compacting {
            self.arena.turn_over();
        } else {
            // Whoever waits last holds a segment each: let the epoch pass, if no reader holds it.
            for _ in 0..EPOCHS {
                if !self.waits() {
                    break;
                }
                self.collect();
            }
            self.arena.prune();
        }
    }

    /// Whether something waits for its last readers.
    pub fn waits(&self) -> bool {
        self.arena.waits() || self.hubs.waits()
    }

    /// Lets go of blocks that nobody looks at any more.
    pub fn collect(&self) {
        let guard = &pin();
        self.arena.collect(guard);
        self.hubs.collect(guard);
        guard.flush();
    }

    /// Bytes of blocks alone, free ones among them. Cheap, unlike [`Self::bytes`].
    pub fn block_bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// Bytes of segments that no block in use takes.
    pub fn free_bytes(&self) -> usize {
        self.arena.bytes().saturating_sub(self.arena.live_bytes())
    }

    /// Bytes that were ever needed, free blocks among them.
    pub fn bytes(&self) -> usize {
        self.arena.bytes() + self.hubs.bytes(&pin())
    }

    /// Bytes in use.
    #[cfg(test)]
    fn live_bytes(&self) -> usize {
        self.arena.live_bytes() + self.hubs.bytes(&pin())
    }
}

/// Room for operations in a list that grows: a part of its length, so that appending takes constant time.
fn slack(entries: usize) -> usize {
    (entries / 4).clamp(2, MOST_SLACK)
}
