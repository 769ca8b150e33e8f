//! The fast path of reading a list. Most lists are empty, have one entry, or are a block with one run of one label
//! that every version sees. They are recognized with few branches, and short lists are loaded without testing their
//! length. Lengths are unpredictable, and a mispredicted branch costs as much as copying several entries.
//!
//! What must never happen: another kind of list answered as one of these; a word loaded beyond the end of its block.

use super::block::{BEGIN, RUNS, Run, SID_BITS, SID_MASK, Sids, TAIL, WIDE};
use super::{BLOCK, ENTRIES_SHIFT, Link, Links, List, ListForm, TAG_BITS};
use crate::hints::CACHE_LINE;
use crossbeam_epoch::Guard;
use std::sync::atomic::Ordering;
use tidegraph_types::{Token, Version};

/// Number of entries that are loaded without testing how many there are.
pub(crate) const FEW: usize = 4;

/// Result of the fast path.
pub(crate) enum FastRead<'b> {
    Nothing,
    One(Link),
    /// All entries of a block of two to four.
    Few(FewEntries),
    Run(Run<'b>),
    /// The fast path does not apply.
    More,
}

/// Two to four entries of one label; the places behind them have arbitrary content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FewEntries {
    pub label: Token,
    pub count: usize,
    pub neighbours: [u64; FEW],
    /// Filled only on request.
    pub sids: [u64; FEW],
}

/// Reads a block of one run without a tail, which most blocks are.
///
/// # Safety
///
/// As for [`super::block::Block::at`].
#[inline(always)]
unsafe fn of_block<'b, const SIDS: bool>(words: *const u64, at: Version) -> FastRead<'b> {
    // SAFETY: the caller's promise; without runs and tail the entries follow the two or three words of the head.
    unsafe {
        let (first, second) = (*words, *words.add(1));
        let (entries, flags) = (first as u32 as usize, second >> SID_BITS);
        let (label, least) = (Token((first >> 32) as u32), second & SID_MASK);
        if flags == 0 && (2..=FEW).contains(&entries) {
            // A block of two such entries takes six words, of three or four eight, so there are always four
            // neighbours and four 32-bit SIDs to load. Loaded words beyond the entries are part of this block, and
            // numbers.
            let neighbours = words.add(2);
            let above: [u32; FEW] =
                if SIDS { neighbours.add(entries).cast::<[u32; FEW]>().read() } else { [0; FEW] };
            let sids = above.map(|above| least + u64::from(above));
            return FastRead::Few(FewEntries {
                label,
                count: entries,
                neighbours: neighbours.cast::<[u64; FEW]>().read(),
                sids,
            });
        }
        let begins = usize::from(flags & BEGIN != 0);
        if flags & (RUNS | TAIL) != 0 || (begins != 0 && *words.add(2) > at.0) {
            return FastRead::More;
        }
        let neighbours = words.add(2 + begins);
        let sids = neighbours.add(entries);
        let sids = if flags & WIDE != 0 {
            Sids::Wide(std::slice::from_raw_parts(sids, entries))
        } else {
            Sids::Narrow { least, above: std::slice::from_raw_parts(sids.cast(), entries) }
        };
        FastRead::Run(Run { label, neighbours: std::slice::from_raw_parts(neighbours, entries), sids })
    }
}

impl Links {
    /// Reads a list if it is empty, has one entry, or is a block of one run that the version sees. `SIDS` requests
    /// the SIDs of few entries.
    #[inline(always)]
    pub fn fast_read<'g, const SIDS: bool>(&'g self, list: &List, at: Version, _: &'g Guard) -> FastRead<'g> {
        match list.form() {
            ListForm::Empty => FastRead::Nothing,
            ListForm::Inline(begin) if begin <= at => FastRead::One(list.inline()),
            ListForm::Inline(_) => FastRead::Nothing,
            // SAFETY: as in `Links::block`.
            ListForm::Block(number) => unsafe { of_block::<SIDS>(self.arena.address(number), at) },
            ListForm::Hub(_) => FastRead::More,
        }
    }

    /// Prefetches the lines of a list that is a block, up to a limit. The node must be in the cache.
    #[inline(always)]
    pub fn prefetch(&self, list: &List, sids: bool) {
        /// Beyond this, the processor recognizes the sequence.
        const MOST: usize = 16;
        let word = list.word.load(Ordering::Relaxed);
        if word & ((1 << TAG_BITS) - 1) != BLOCK {
            return;
        }
        let first: *const u8 = self.arena.address((word >> TAG_BITS) as u32).cast_const().cast();
        let bytes = 16 + (word >> ENTRIES_SHIFT) as usize * if sids { 12 } else { 8 };
        crate::hints::prefetch_address(first);
        // In most lists this is the last line as well.
        crate::hints::prefetch_address(first.wrapping_add(bytes.min(CACHE_LINE + 1) - 1));
        for line in 2..MOST.min(bytes.div_ceil(CACHE_LINE) + 1) {
            crate::hints::prefetch_address(first.wrapping_add((line * CACHE_LINE).min(bytes - 1)));
        }
    }

    /// Prefetches the first lines of a list of any kind, without branches that could be mispredicted.
    #[inline(always)]
    pub fn prefetch_lines(&self, list: &List, lines: usize) {
        let first = self.arena.address((list.word.load(Ordering::Relaxed) >> TAG_BITS) as u32);
        for line in 0..lines {
            crate::hints::prefetch_address(first.wrapping_add(line * CACHE_LINE / 8));
        }
    }
}
