//! Keeping to a memory budget.
//!
//! Topology, indexes and the page tables are in memory whatever happens; what they leave of the budget is for pages of
//! properties. Who makes pages come (a reader that meets one in the file, a load, a transaction) sees to it that others
//! go ([`Store::make_room`]): it opens partitions in turn, passing over those that a writer has just opened, so that a reader
//! never waits.
//!
//! Pages with versions stay. Where they are too many, versions that no reader has pinned are forgotten before their
//! window is over ([`Store::keep_to_budget`]).

use super::Store;
use crate::partition::Open;
use crate::properties::spill::lost;
use crossbeam_epoch::pin;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_apl::Error;
use tidegraph_platform::Disk;

/// Pages are moved out until they take this part of what they may less, so that not every page that comes waits for one
/// that goes.
const SLACK: u64 = 64;
const LEAST_SLACK: u64 = 16 << 10;
/// The part of what topology leaves that pages get in any case.
const LEAST: u64 = 4;
/// The part of the budget that is left for what passes between two looks at the process: pages that were moved out and wait
/// for their last readers, blocks of a load.
const PASSING: u64 = 10;
/// Records that are looked at for forgetting when memory is short.
const FORGOTTEN_AT_ONCE: usize = 1 << 16;

/// What a store may take in memory, and where the rest goes.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    /// Bytes of everything: topology, indexes, pages.
    pub bytes: u64,
    /// The disk of the file for pages that do not fit.
    pub disk: Arc<dyn Disk>,
    /// Its directory: a local one, fast, and large enough for all properties.
    pub dir: PathBuf,
    /// What the whole process takes, if that is to stay inside the budget: then answers, loads and what the allocator
    /// keeps for itself leave less for pages.
    pub process_bytes: Option<fn() -> Option<u64>>,
}

/// What a store takes, counted without a walk over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// What it may take; `None`: whatever it needs.
    pub budget: Option<u64>,
    /// Bytes in memory: topology, indexes, pages with their texts. Older versions are not in it.
    pub in_memory: u64,
    /// Bytes that are in memory whatever happens: all of that without the pages.
    pub fixed: u64,
    /// Bytes of the file for pages that are in use: pages that are in memory too are among them.
    pub spilled: u64,
}

impl Store {
    /// What the store takes.
    #[must_use]
    pub fn memory_use(&self) -> MemoryUse {
        let fixed = self.count_fixed();
        MemoryUse {
            budget: self.room.budget(),
            in_memory: fixed + self.room.resident(),
            fixed,
            spilled: self.room.spilled(),
        }
    }

    /// Whether more can be written: an error if an earlier change could not be made, if what has to be in memory is
    /// larger than the budget, or if pages cannot be moved out and there is no room for more.
    pub fn check_room(&self) -> Result<(), Error> {
        self.check_applied()?;
        let Some(budget) = self.room.budget() else { return Ok(()) };
        let fixed = self.fixed.load(Ordering::Relaxed);
        if fixed > budget {
            return Err(Error::Unavailable(format!(
                "vertices, edges and indexes take {fixed} bytes of memory, the memory budget is {budget}; properties \
                 can be moved to disk, these cannot"
            )));
        }
        match self.room.stuck() {
            Some(error) if !self.room.keeps() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Whether all that was applied was applied whole: an error if a page that had to be changed could not be read back.
    pub fn check_applied(&self) -> Result<(), Error> {
        self.room.broken().map_or(Ok(()), |error| Err(error.clone().into()))
    }

    /// Whether properties have been moved out of memory, so that a read may wait for the disk.
    #[must_use]
    pub fn is_spilling(&self) -> bool {
        self.room.spilled() > 0
    }

    /// An error if a page that this thread asked for could not be read.
    #[inline]
    pub(crate) fn check_lost(&self) -> Result<(), Error> {
        lost::take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// After a change: whether it met a page that could not be read. Then nothing more is made visible.
    pub(super) fn note_lost(&self) {
        if let Some(error) = lost::take() {
            self.room.fail(error);
        }
    }

    /// Counts anew what pages may take: what all else leaves of the budget, but a part of it in any case, so that what
    /// passes (a large answer, memory that the allocator has yet to give back) does not empty the pages.
    fn allow_anew(&self, budget: &MemoryBudget) {
        let left = budget.bytes.saturating_sub(self.count_fixed());
        let others = budget.process_bytes.and_then(|process_bytes| process_bytes());
        let others = others.map_or(0, |bytes| bytes.saturating_sub(self.room.resident()));
        let passing = if others > 0 { budget.bytes / PASSING } else { 0 };
        self.room.allow(left.min(budget.bytes.saturating_sub(others + passing)).max(left / LEAST));
    }

    fn count_fixed(&self) -> u64 {
        let partitions: usize = self.partitions.iter().map(|partition| partition.fixed_bytes()).sum();
        let fixed = (partitions + self.indexes.bytes()) as u64;
        self.fixed.store(fixed, Ordering::Relaxed);
        fixed
    }

    /// Moves pages out if they take more than they may; answers whether they did. Waits for nobody.
    #[inline]
    pub(crate) fn make_room(&self) -> bool {
        let short = self.room.is_short();
        if short {
            self.evict();
        }
        short
    }

    /// What [`Self::make_room`] does, after counting anew what pages may take.
    pub(super) fn make_room_anew(&self) {
        if let Some(budget) = &self.config.memory {
            self.allow_anew(budget);
            self.room.found(true, 0);
            self.make_room();
        }
    }

    /// What [`Self::make_room`] does, for one that has a partition open for long.
    pub(crate) fn make_room_in(&self, partition: &mut Open<'_>) -> bool {
        let short = self.room.is_short();
        if short {
            partition.evict(self.room.excess());
            self.room.tidy();
            self.room.found(self.room.excess() == 0, self.slack());
        }
        short
    }

    /// What [`Self::make_room_anew`] does, for one that has a partition open for long.
    pub(crate) fn make_room_anew_in(&self, partition: &mut Open<'_>) {
        if let Some(budget) = &self.config.memory {
            self.allow_anew(budget);
            self.make_room_in(partition);
        }
    }

    fn slack(&self) -> u64 {
        (self.room.allowed() / SLACK).max(LEAST_SLACK)
    }

    #[cold]
    fn evict(&self) {
        if let Some(budget) = &self.config.memory {
            self.allow_anew(budget);
        }
        let slack = self.slack();
        for _ in 0..self.partitions.len() {
            let excess = self.room.excess();
            if excess == 0 {
                break;
            }
            let turn = self.evicting.fetch_add(1, Ordering::Relaxed) % self.partitions.len();
            // Whoever has it open makes room afterwards.
            if let Some(mut partition) = self.partitions[turn].try_open() {
                partition.evict(excess + slack);
            }
        }
        self.room.found(self.room.excess() == 0, slack);
        self.room.tidy();
        // What went is free when no reader of then is left: now, if there is none.
        pin().flush();
    }

    /// Moves out what is too much; if that is not enough because of older versions, forgets those that nobody has
    /// pinned. Waits for writers.
    pub(super) fn keep_to_budget(&self) {
        self.make_room_anew();
        if !self.room.is_bounded() || self.room.keeps() {
            return;
        }
        let oldest = self.versions.forget_window();
        self.indexes.reclaim(oldest, FORGOTTEN_AT_ONCE);
        for _ in 0..self.partitions.len() {
            self.reclaim_one(oldest, FORGOTTEN_AT_ONCE);
        }
        self.room.found(true, 0);
        self.make_room();
    }
}
