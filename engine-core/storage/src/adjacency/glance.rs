//! Reading a list at a glance: what most lists are, nothing, one entry, or a block of one run of one label that all may
//! see, is told apart with few branches, and short lists are loaded without asking how long they are. How long a list is
//! nobody can foretell, and a branch that is guessed wrong costs as much as copying several entries.
//!
//! What must never happen: something else than such a list answered as one; a word loaded behind the end of its block.

use super::block::{BEGIN, RUNS, Run, SID_BITS, SID_MASK, Sids, TAIL, WIDE};
use super::{BLOCK, ENTRIES_SHIFT, Link, Links, List, Place, TAG_BITS};
use crate::prefetch::LINE;
use crossbeam_epoch::Guard;
use std::sync::atomic::Ordering;
use tidegraph_types::{Token, Version};

/// Entries that are loaded without asking how many there are.
pub(crate) const FEW: usize = 4;

/// What is seen of a list at first glance.
pub(crate) enum Glance<'b> {
    Nothing,
    One(Link),
    /// All entries of a block of two to four.
    Few(Few),
    Run(Run<'b>),
    /// Look closer.
    More,
}

/// Two to four entries of one label, and behind them whatever stands there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Few {
    pub label: Token,
    pub count: usize,
    pub neighbours: [u64; FEW],
    /// Only if they were asked for.
    pub sids: [u64; FEW],
}

/// The entries of a block to which there is no more than one run of them, begun by a version: what most blocks are.
///
/// # Safety
///
/// As [`super::block::Block::at`].
#[inline(always)]
unsafe fn of_block<'b, const SIDS: bool>(words: *const u64, at: Version) -> Glance<'b> {
    // SAFETY: the caller's promise; without runs and tail the entries follow the two or three words of the head.
    unsafe {
        let (first, second) = (*words, *words.add(1));
        let (entries, flags) = (first as u32 as usize, second >> SID_BITS);
        let (label, least) = (Token((first >> 32) as u32), second & SID_MASK);
        if flags == 0 && (2..=FEW).contains(&entries) {
            // A block of two such entries takes six words, of three or four eight: there are always four neighbours to
            // load, and four SIDs of half a word. What is no entry is part of this block all the same, and a number.
            let neighbours = words.add(2);
            let above: [u32; FEW] =
                if SIDS { neighbours.add(entries).cast::<[u32; FEW]>().read() } else { [0; FEW] };
            let sids = above.map(|above| least + u64::from(above));
            return Glance::Few(Few {
                label,
                count: entries,
                neighbours: neighbours.cast::<[u64; FEW]>().read(),
                sids,
            });
        }
        let begins = usize::from(flags & BEGIN != 0);
        if flags & (RUNS | TAIL) != 0 || (begins != 0 && *words.add(2) > at.0) {
            return Glance::More;
        }
        let neighbours = words.add(2 + begins);
        let sids = neighbours.add(entries);
        let sids = if flags & WIDE != 0 {
            Sids::Wide(std::slice::from_raw_parts(sids, entries))
        } else {
            Sids::Narrow { least, above: std::slice::from_raw_parts(sids.cast(), entries) }
        };
        Glance::Run(Run { label, neighbours: std::slice::from_raw_parts(neighbours, entries), sids })
    }
}

impl Links {
    /// What a list holds if that is seen at a glance, as it is of most: nothing, one entry, or a block of nothing but one
    /// run, begun by the version. `SIDS`: those of few entries are wanted too.
    #[inline(always)]
    pub fn glance<'g, const SIDS: bool>(&'g self, list: &List, at: Version, _: &'g Guard) -> Glance<'g> {
        match list.place() {
            Place::Empty => Glance::Nothing,
            Place::Inline(begin) if begin <= at => Glance::One(list.inline()),
            Place::Inline(_) => Glance::Nothing,
            // SAFETY: as in `Links::block`.
            Place::Block(number) => unsafe { of_block::<SIDS>(self.arena.address(number), at) },
            Place::Hub(_) => Glance::More,
        }
    }

    /// Asks for all lines of a list that is a block, at least for its first ones. The node is there already.
    #[inline(always)]
    pub fn prefetch(&self, list: &List, sids: bool) {
        /// Beyond, the machine sees by itself that the reading is sequential.
        const MOST: usize = 16;
        let word = list.word.load(Ordering::Relaxed);
        if word & ((1 << TAG_BITS) - 1) != BLOCK {
            return;
        }
        let first: *const u8 = self.arena.address((word >> TAG_BITS) as u32).cast_const().cast();
        let bytes = 16 + (word >> ENTRIES_SHIFT) as usize * if sids { 12 } else { 8 };
        crate::prefetch::address(first);
        // Of most lists this is the last line as well.
        crate::prefetch::address(first.wrapping_add(bytes.min(LINE + 1) - 1));
        for line in 2..MOST.min(bytes.div_ceil(LINE) + 1) {
            crate::prefetch::address(first.wrapping_add((line * LINE).min(bytes - 1)));
        }
    }

    /// Asks for the first lines of a list, whatever it is, without a branch that could be guessed wrong.
    #[inline(always)]
    pub fn prefetch_lines(&self, list: &List, lines: usize) {
        let first = self.arena.address((list.word.load(Ordering::Relaxed) >> TAG_BITS) as u32);
        for line in 0..lines {
            crate::prefetch::address(first.wrapping_add(line * LINE / 8));
        }
    }
}
