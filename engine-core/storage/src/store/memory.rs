//! Keeps to the memory budget.
//!
//! Topology, indexes and page tables always stay in memory. The rest of the budget is for property pages. Code that
//! brings pages in (a reader of a spilled page, a load, a transaction) evicts other pages ([`Generation::make_room`]):
//! it opens partitions in turn and skips those that a writer holds, so that a reader never waits.
//!
//! Pages with versions cannot be evicted. If they are too many, versions that no reader has pinned are reclaimed
//! before their window ends ([`Generation::keep_to_budget`]).

use super::{Generation, Store};
use crate::partition::Open;
use crate::properties::spill::lost;
use crossbeam_epoch::pin;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_apl::Error;
use tidegraph_platform::Disk;

/// Eviction goes below the limit by this fraction, so that not every page that comes in waits for one that leaves.
const SLACK: u64 = 64;
const LEAST_SLACK: u64 = 16 << 10;
/// Share of the memory beside topology that pages always get.
const LEAST: u64 = 4;
/// Share of the budget that is left for short-lived memory: evicted pages that wait for their last readers, blocks of
/// a load.
const PASSING: u64 = 10;
/// Records to reclaim at once when memory is short.
const FORGOTTEN_AT_ONCE: usize = 1 << 16;

/// Memory limit of a store, and where pages beyond it go.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    /// Bytes of everything: topology, indexes, pages.
    pub bytes: u64,
    /// The disk of the spill file.
    pub disk: Arc<dyn Disk>,
    /// The directory of the spill file: local, fast, and with room for all properties.
    pub dir: PathBuf,
    /// Measures the memory of the whole process, if that should stay within the budget. Answers, loads and the
    /// allocator's reserves then leave less for pages.
    pub process_bytes: Option<fn() -> Option<u64>>,
}

/// Memory that a store uses, as counted without walking over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// The limit; `None` if there is none.
    pub budget: Option<u64>,
    /// Bytes in memory: topology, indexes, pages with their texts. Older versions are not counted.
    pub in_memory: u64,
    /// Bytes that always stay in memory: the same without the pages.
    pub fixed: u64,
    /// Bytes of the spill file in use, including those of pages that are in memory too.
    pub spilled: u64,
}

impl Store {
    /// Returns the memory that the store uses.
    #[must_use]
    pub fn memory_use(&self) -> MemoryUse {
        let generations = self.generations.load();
        let all = std::iter::once(&generations.newest).chain(&generations.older);
        let fixed: u64 = all.map(|generation| generation.count_fixed()).sum();
        MemoryUse {
            budget: self.page_memory.budget(),
            in_memory: fixed + self.page_memory.resident(),
            fixed,
            spilled: self.page_memory.spilled(),
        }
    }

    /// Checks that more can be written.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if resident data alone exceeds the budget, or if pages cannot be evicted and exceed
    /// their share. The errors of [`Self::check_applied`].
    pub fn check_room(&self) -> Result<(), Error> {
        self.check_applied()?;
        let Some(budget) = self.page_memory.budget() else { return Ok(()) };
        let fixed = self.newest().fixed.load(Ordering::Relaxed);
        if fixed > budget {
            return Err(Error::Unavailable(format!(
                "vertices, edges and indexes take {fixed} bytes of memory, the memory budget is {budget}; they cannot \
                 move to disk, so raise the budget"
            )));
        }
        match self.page_memory.stuck() {
            Some(error) if !self.page_memory.keeps_pages() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Checks that every change so far was applied completely.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] or [`Error::Corrupt`] if a page that had to be changed could not be read back.
    pub fn check_applied(&self) -> Result<(), Error> {
        self.page_memory.broken().map_or(Ok(()), |error| Err(error.clone().into()))
    }

    /// Returns whether properties have been moved out of memory, so that a read may wait for the disk.
    #[must_use]
    pub fn is_spilling(&self) -> bool {
        self.page_memory.spilled() > 0
    }
}

impl Generation {
    /// Reports a page that this thread asked for and that could not be read.
    #[inline]
    pub(crate) fn check_lost(&self) -> Result<(), Error> {
        lost::take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Marks the store as broken if a change met a page that could not be read. Nothing more is then published.
    pub(super) fn note_lost(&self) {
        if let Some(error) = lost::take() {
            self.page_memory.fail(error);
        }
    }

    /// Recomputes the share of pages: what everything else leaves of the budget, but at least a part of it, so that
    /// short-lived memory (a large answer, memory that the allocator has not returned yet) does not evict all pages.
    fn update_share(&self, budget: &MemoryBudget) {
        let left = budget.bytes.saturating_sub(self.count_fixed());
        let others = budget.process_bytes.and_then(|process_bytes| process_bytes());
        let others = others.map_or(0, |bytes| bytes.saturating_sub(self.page_memory.resident()));
        let passing = if others > 0 { budget.bytes / PASSING } else { 0 };
        self.page_memory.allow(left.min(budget.bytes.saturating_sub(others + passing)).max(left / LEAST));
    }

    fn count_fixed(&self) -> u64 {
        let partitions: usize = self.partitions.iter().map(|partition| partition.fixed_bytes()).sum();
        let fixed = (partitions + self.indexes.bytes()) as u64;
        self.fixed.store(fixed, Ordering::Relaxed);
        fixed
    }

    /// Evicts pages if they exceed their share, and returns whether they did. Never waits.
    #[inline]
    pub(crate) fn make_room(&self) -> bool {
        let short = self.page_memory.is_short();
        if short {
            self.evict();
        }
        short
    }

    /// Like [`Self::make_room`], after recomputing the share.
    pub(super) fn make_room_after_recount(&self) {
        if let Some(budget) = &self.config.memory {
            self.update_share(budget);
            self.page_memory.note_round(true, 0);
            self.make_room();
        }
    }

    /// Like [`Self::make_room`], for a caller that keeps a partition open.
    pub(crate) fn make_room_in(&self, partition: &mut Open<'_>) -> bool {
        let short = self.page_memory.is_short();
        if short {
            partition.evict(self.page_memory.excess());
            self.page_memory.tidy();
            self.page_memory.note_round(self.page_memory.excess() == 0, self.slack());
        }
        short
    }

    /// Like [`Self::make_room_after_recount`], for a caller that keeps a partition open.
    pub(crate) fn make_room_after_recount_in(&self, partition: &mut Open<'_>) {
        if let Some(budget) = &self.config.memory {
            self.update_share(budget);
            self.make_room_in(partition);
        }
    }

    fn slack(&self) -> u64 {
        (self.page_memory.allowed() / SLACK).max(LEAST_SLACK)
    }

    #[cold]
    fn evict(&self) {
        if let Some(budget) = &self.config.memory {
            self.update_share(budget);
        }
        let slack = self.slack();
        for _ in 0..self.partitions.len() {
            let excess = self.page_memory.excess();
            if excess == 0 {
                break;
            }
            let number = self.next_to_evict.fetch_add(1, Ordering::Relaxed) % self.partitions.len();
            // A writer that has the partition open makes room afterwards.
            if let Some(mut partition) = self.partitions[number].try_open() {
                partition.evict(excess + slack);
            }
        }
        self.page_memory.note_round(self.page_memory.excess() == 0, slack);
        self.page_memory.tidy();
        // Evicted pages are free once their readers have gone: at once, if there are none.
        pin().flush();
    }

    /// Evicts pages beyond the share. If versions prevent it, reclaims those that are not pinned. Waits for
    /// writers.
    pub(super) fn keep_to_budget(&self) {
        self.make_room_after_recount();
        if !self.page_memory.is_bounded() || self.page_memory.keeps_pages() {
            return;
        }
        let oldest = self.versions.forget_window();
        self.indexes.reclaim(oldest, FORGOTTEN_AT_ONCE);
        for _ in 0..self.partitions.len() {
            self.reclaim_one(oldest, FORGOTTEN_AT_ONCE);
        }
        self.page_memory.note_round(true, 0);
        self.make_room();
    }
}
