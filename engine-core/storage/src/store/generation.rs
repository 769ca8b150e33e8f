//! The graph between two resets: its partitions, indexes and counts.
//!
//! `apply` and `bulk` write, `read` implements APL. This file sets up and reclaims.

use super::statistics::SampledStatistics;
use super::{Counts, StoreConfig};
use crate::index::{Index, Indexes};
use crate::partition::{Partition, Tally};
use crate::properties::spill::PageMemory;
use crate::versions::{Pin, Versions};
use crate::{Memory, checkpoint};
use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tidegraph_apl::{Error, Statistics};
use tidegraph_types::{Gui, Str, Token, Version};

/// What the store holds from one reset to the next, or from its beginning. A reset begins another generation, and the
/// old one answers reads of versions before the reset as long as these can be read.
pub(crate) struct Generation {
    /// The version of the reset with which it began, or that of the checkpoint.
    pub(super) since: Version,
    /// Whether anything was applied to it.
    touched: AtomicBool,
    pub(super) config: StoreConfig,
    pub(super) partitions: Box<[Partition]>,
    /// Ids that do not have the GUI of their plain hash. Short, because it holds collisions only.
    pub(super) exceptions: ArcSwap<FxHashMap<Str, Gui>>,
    pub(super) counts: Mutex<Counts>,
    pub(super) indexes: Indexes,
    /// The versions of the whole store.
    pub(super) versions: Arc<Versions>,
    /// Versions below this one may have been reclaimed.
    forgotten: AtomicU64,
    /// The partition to reclaim next.
    next_to_reclaim: AtomicUsize,
    /// Statistics that are sampled from time to time.
    pub(super) gathered: ArcSwapOption<SampledStatistics>,
    /// The newest checkpoint of this generation, on which the next one builds.
    base: Mutex<Option<Arc<checkpoint::BaseCheckpoint>>>,
    /// Memory that pages of the whole store use and may use.
    pub(super) page_memory: Arc<PageMemory>,
    /// Bytes of everything else, as of the last count.
    pub(super) fixed: AtomicU64,
    /// The partition to evict pages from next.
    pub(super) next_to_evict: AtomicUsize,
}

impl Generation {
    /// Makes an empty generation that begins at a version.
    pub fn new(
        config: StoreConfig,
        since: Version,
        versions: Arc<Versions>,
        page_memory: Arc<PageMemory>,
    ) -> Self {
        let count = config.partitions.get();
        let mut partitions: Vec<Partition> = Vec::new();
        partitions.resize_with(usize::from(count), || Partition::new(page_memory.clone()));
        for partition in &partitions {
            partition.open().reclaim(since, 0);
        }
        Self {
            since,
            touched: AtomicBool::new(false),
            partitions: partitions.into_boxed_slice(),
            exceptions: ArcSwap::default(),
            forgotten: AtomicU64::new(since.0),
            counts: Mutex::default(),
            indexes: Indexes::default(),
            versions,
            next_to_reclaim: AtomicUsize::new(0),
            gathered: ArcSwapOption::empty(),
            base: Mutex::default(),
            fixed: AtomicU64::new(0),
            next_to_evict: AtomicUsize::new(0),
            page_memory,
            config,
        }
    }

    /// Makes the generation that begins with a reset at `since`: empty, with the same indexes and exception list. Its
    /// indexes are complete, because it has nothing that they lack.
    pub fn successor(&self, since: Version) -> Self {
        let next = Self::new(self.config.clone(), since, self.versions.clone(), self.page_memory.clone());
        next.exceptions.store(self.exceptions.load_full());
        for index in self.indexes.list().iter() {
            next.indexes.define(&index.definition, next.partitions.len(), index.defined, since);
        }
        next.indexes.list().iter().for_each(Index::complete);
        next
    }

    /// Notes that something is applied to it.
    pub fn note_changes(&self) {
        self.touched.store(true, Ordering::Release);
    }

    /// Returns whether nothing was ever applied to it.
    pub fn is_pristine(&self) -> bool {
        !self.touched.load(Ordering::Acquire)
    }

    /// Returns the settings of the store.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Keeps a version readable while the pin lives.
    ///
    /// # Errors
    ///
    /// [`Error::Behind`] if the version is not published yet, [`Error::TooOld`] if it may have been reclaimed.
    pub fn pin(&self, version: Version) -> Result<Pin, Error> {
        self.versions.pin(version)
    }

    /// Pins the newest version.
    pub fn pin_published(&self) -> Pin {
        self.versions.pin_published()
    }

    /// Returns the newest version that can be read.
    pub fn published(&self) -> Version {
        self.versions.published()
    }

    /// Reclaims what no version from `oldest` on sees. Looks at about `budget` records and returns how many it looked
    /// at.
    pub fn reclaim(&self, oldest: Version, budget: usize) -> usize {
        self.indexes.free_dropped();
        let mut done = self.indexes.reclaim(oldest, budget);
        for _ in 0..self.partitions.len() {
            done += self.reclaim_one(oldest, budget.saturating_sub(done));
            if done >= budget {
                break;
            }
        }
        self.keep_to_budget();
        done
    }

    /// Reclaims in the next partition, in pieces so that writers get in.
    pub(super) fn reclaim_one(&self, oldest: Version, budget: usize) -> usize {
        const PIECE: usize = 4096;
        let number = self.next_to_reclaim.fetch_add(1, Ordering::Relaxed) % self.partitions.len();
        let partition = &self.partitions[number];
        // STO-1: readers check this after they have read, so it moves before anything is reclaimed.
        self.forgotten.fetch_max(oldest.0, Ordering::AcqRel);
        if !partition.open().has_to_reclaim(oldest) {
            return 0;
        }
        let mut done = 0;
        while done < budget {
            let piece = (budget - done).min(PIECE);
            let now = partition.open().reclaim(oldest, piece);
            done += now;
            if now < piece {
                break;
            }
        }
        done
    }

    /// Adds the counts of a batch.
    pub fn count(&self, tally: Tally) {
        let mut counts = self.counts.lock();
        counts.vertices += tally.vertices;
        counts.edges += tally.edges;
        for (label, by) in tally.vertices_by_label {
            *counts.vertices_by_label.entry(label).or_default() += by;
        }
        for (label, by) in tally.edges_by_label {
            *counts.edges_by_label.entry(label).or_default() += by;
        }
    }

    /// Returns the exact numbers of vertices and edges that were applied.
    pub fn totals(&self) -> (u64, u64) {
        let counts = self.counts.lock();
        (counts.vertices.unsigned_abs(), counts.edges.unsigned_abs())
    }

    /// Returns exact counts of what was applied.
    pub fn counts(&self) -> Statistics {
        let keys = self.indexes.list().iter().map(Index::statistics).collect();
        let counts = self.counts.lock();
        let list = |by_label: &FxHashMap<Token, i64>| {
            let mut list: Vec<_> = by_label
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(&label, &count)| (label, count.unsigned_abs()))
                .collect();
            list.sort_unstable();
            list
        };
        Statistics {
            vertices: counts.vertices.unsigned_abs(),
            edges: counts.edges.unsigned_abs(),
            vertices_by_label: list(&counts.vertices_by_label),
            edges_by_label: list(&counts.edges_by_label),
            keys,
            ..Statistics::default()
        }
    }

    /// Adds the memory that the generation uses. Walks all of it.
    pub fn add_memory(&self, memory: &mut Memory) {
        for partition in &self.partitions {
            partition.add_memory(memory);
        }
        memory.indexes += self.indexes.bytes();
    }

    /// Returns the exception list, in no particular order.
    pub fn exceptions(&self) -> Vec<(Str, Gui)> {
        self.exceptions.load().iter().map(|(id, gui)| (id.clone(), *gui)).collect()
    }

    /// Adds ids to the exception list.
    pub fn add_exceptions(&self, exceptions: &[(Str, Gui)]) {
        // Copies the whole list: it is short, and readers keep the one that they have.
        self.exceptions.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            new.extend(exceptions.iter().cloned());
            new
        });
    }

    /// Returns the version below which something may have been reclaimed.
    pub fn forgotten(&self) -> Version {
        Version(self.forgotten.load(Ordering::Acquire))
    }

    /// Returns the newest checkpoint, if there is one.
    pub fn base(&self) -> Option<Arc<checkpoint::BaseCheckpoint>> {
        self.base.lock().clone()
    }

    /// Sets the checkpoint on which the next one builds.
    pub fn set_base(&self, base: Arc<checkpoint::BaseCheckpoint>) {
        *self.base.lock() = Some(base);
    }

    /// Returns the bytes of chunks in the newest checkpoint that the checkpoint before it had in an older state: its
    /// cost beyond what is new. 0 after a start.
    pub fn rewritten_bytes(&self) -> u64 {
        self.base.lock().as_ref().map_or(0, |base| base.rewritten_bytes())
    }

    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }
}
