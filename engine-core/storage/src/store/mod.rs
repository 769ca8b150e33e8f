//! The store of one graph: its partitions, exception list, counts and versions.
//!
//! `apply` and `bulk` write, `read` implements APL. This file sets up, publishes, pins and reclaims.

mod apply;
#[cfg(feature = "searches")]
mod bottom_up;
mod bulk;
mod by_page;
mod index;
mod memory;
mod partial_expand;
mod pipeline;
mod read;
mod reading;
mod scan;
mod scope;
mod statistics;

pub use bulk::{BulkLoad, LoadOutcome};
pub use index::{Duplicate, IndexState};
pub use memory::{MemoryBudget, MemoryUse};
pub use scope::Scope;

use crate::index::{Index, Indexes};
use crate::partition::{Partition, Tally};
use crate::properties::spill::PageMemory;
use crate::versions::{Pin, Versions};
use crate::{Memory, checkpoint};
use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_apl::{Error, Statistics};
use tidegraph_platform::{Clock, Objects};
use tidegraph_types::{Gui, GuiHasher, PartitionCount, Str, Token, Version};

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Number of partitions, fixed when the graph is created.
    pub partitions: PartitionCount,
    /// The one partition of a larger graph that the store holds; `None` if it holds the whole graph.
    pub scope: Option<Scope>,
    /// Computes GUIs. Tests use short hashes to provoke collisions.
    pub hasher: GuiHasher,
    /// How long a version stays readable after a newer one superseded it.
    pub window: Duration,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Limit of the memory that the store uses; `None` for no limit.
    pub memory: Option<MemoryBudget>,
}

impl StoreConfig {
    /// Returns settings with eight partitions, 64-bit hashes, a window of 60 seconds and no memory limit.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let partitions = PartitionCount::new(8).unwrap_or(PartitionCount::ONE);
        Self {
            partitions,
            scope: None,
            hasher: GuiHasher::default(),
            window: Duration::from_secs(60),
            clock,
            memory: None,
        }
    }
}

impl StoreConfig {
    /// Returns these settings for a store of one partition of a graph.
    #[must_use]
    pub fn of_partition(self, scope: Scope) -> Self {
        Self { partitions: PartitionCount::ONE, scope: Some(scope), ..self }
    }
}

/// Exact counts of what was applied, published or not.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    pub vertices: i64,
    pub edges: i64,
    pub vertices_by_label: FxHashMap<Token, i64>,
    pub edges_by_label: FxHashMap<Token, i64>,
}

/// One graph in memory. Any number of threads read, one writes at a time.
///
/// ```
/// use std::sync::Arc;
/// use tidegraph_apl::{Apl, At};
/// use tidegraph_platform::ManualClock;
/// use tidegraph_storage::{Store, StoreConfig};
/// use tidegraph_types::{Epoch, Mutation, Version};
///
/// let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
/// let gui = store.config().hasher.gui("ada");
/// let ada = Mutation::CreateVertex { gui, id: "ada".into(), labels: vec![], properties: vec![] };
/// store.apply(Version(1), &[ada]);
/// store.publish(Version(1));
///
/// let pin = store.pin_published();
/// let at = At { version: pin.version(), epoch: Epoch::default() };
/// let mut found = Vec::new();
/// store.resolve_vertices(at, &["ada".into(), "bob".into()], &mut found)?;
/// assert_eq!(found, [Some(gui), None]);
/// # Ok::<(), tidegraph_apl::Error>(())
/// ```
pub struct Store {
    config: StoreConfig,
    partitions: Box<[Partition]>,
    /// Ids that do not have the GUI of their plain hash. Short, because it holds collisions only.
    exceptions: ArcSwap<FxHashMap<Str, Gui>>,
    counts: Mutex<Counts>,
    indexes: Indexes,
    versions: Arc<Versions>,
    /// The version of the newest batch. Writers hold this lock one after the other.
    applied: Mutex<Version>,
    /// Versions below this one may have been reclaimed.
    forgotten: AtomicU64,
    /// The partition to reclaim next.
    next_to_reclaim: AtomicUsize,
    /// Statistics that are sampled from time to time.
    gathered: ArcSwapOption<statistics::SampledStatistics>,
    /// The newest checkpoint, on which the next one builds.
    base: Mutex<Option<Arc<checkpoint::BaseCheckpoint>>>,
    /// Memory that pages use and may use.
    page_memory: Arc<PageMemory>,
    /// Bytes of everything else, as of the last count.
    fixed: AtomicU64,
    /// The partition to evict pages from next.
    next_to_evict: AtomicUsize,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("partitions", &self.partitions.len())
            .field("versions", &self.versions)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Makes an empty graph at version 0.
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        Self::at(config, Version(0))
    }

    /// Makes an empty graph at a version, to be filled from a checkpoint.
    pub(crate) fn at(config: StoreConfig, version: Version) -> Self {
        let count = config.partitions.get();
        let now = config.clock.now();
        let mut partitions: Vec<Partition> = Vec::new();
        let page_memory = Arc::new(PageMemory::new(config.memory.clone()));
        partitions.resize_with(usize::from(count), || Partition::new(page_memory.clone()));
        for partition in &partitions {
            partition.open().reclaim(version, 0);
        }
        Self {
            partitions: partitions.into_boxed_slice(),
            exceptions: ArcSwap::default(),
            forgotten: AtomicU64::new(version.0),
            counts: Mutex::default(),
            indexes: Indexes::default(),
            versions: Arc::new(Versions::new(version, config.window, now)),
            applied: Mutex::new(version),
            next_to_reclaim: AtomicUsize::new(0),
            gathered: ArcSwapOption::empty(),
            base: Mutex::default(),
            fixed: AtomicU64::new(0),
            next_to_evict: AtomicUsize::new(0),
            page_memory,
            config,
        }
    }

    /// Returns the settings of the store.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Makes everything visible that was applied up to a version. Call it after `apply`, in order of versions.
    ///
    /// A version that was not applied completely is not published; [`Self::check_applied`] reports the reason.
    pub fn publish(&self, version: Version) {
        if self.page_memory.broken().is_some() {
            return;
        }
        self.versions.publish(version, self.config.clock.now());
    }

    /// Returns the newest version that can be read.
    #[must_use]
    pub fn published(&self) -> Version {
        self.versions.published()
    }

    /// Returns the oldest version that can be read.
    #[must_use]
    pub fn oldest(&self) -> Version {
        self.versions.oldest()
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
    #[must_use]
    pub fn pin_published(&self) -> Pin {
        self.versions.pin_published()
    }

    /// Reclaims versions that cannot be read any more. Looks at about `budget` records and returns how many it
    /// looked at. Writes reclaim along the way, so only an idle graph needs calls.
    pub fn reclaim(&self, budget: usize) -> usize {
        let oldest = self.versions.move_on(self.config.clock.now());
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
    fn reclaim_one(&self, oldest: Version, budget: usize) -> usize {
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
    pub(crate) fn count(&self, tally: Tally) {
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
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let counts = self.counts.lock();
        (counts.vertices.unsigned_abs(), counts.edges.unsigned_abs())
    }

    /// Returns exact counts of what was applied.
    #[must_use]
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

    /// Returns the memory that the store uses. Walks all of it.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for partition in &self.partitions {
            partition.add_memory(&mut memory);
        }
        memory.indexes += self.indexes.bytes();
        memory
    }

    /// Returns the exception list, in no particular order.
    #[must_use]
    pub fn exceptions(&self) -> Vec<(Str, Gui)> {
        self.exceptions.load().iter().map(|(id, gui)| (id.clone(), *gui)).collect()
    }

    /// Adds ids to the exception list.
    pub(crate) fn add_exceptions(&self, exceptions: &[(Str, Gui)]) {
        // Copies the whole list: it is short, and readers keep the one that they have.
        self.exceptions.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            new.extend(exceptions.iter().cloned());
            new
        });
    }

    /// Returns the version below which something may have been reclaimed.
    pub(crate) fn forgotten(&self) -> Version {
        Version(self.forgotten.load(Ordering::Acquire))
    }

    /// Returns the newest checkpoint, if there is one.
    pub(crate) fn base(&self) -> Option<Arc<checkpoint::BaseCheckpoint>> {
        self.base.lock().clone()
    }

    /// Sets the checkpoint on which the next one builds.
    pub(crate) fn set_base(&self, base: Arc<checkpoint::BaseCheckpoint>) {
        *self.base.lock() = Some(base);
    }

    /// Returns the bytes of chunks in the newest checkpoint that the checkpoint before it had in an older state: its
    /// cost beyond what is new. 0 after a start.
    #[must_use]
    pub fn rewritten_bytes(&self) -> u64 {
        self.base.lock().as_ref().map_or(0, |base| base.rewritten_bytes())
    }

    /// Writes an image of a version to object storage while reads and writes continue. Writes only what changed since
    /// the last checkpoint if that is still there. See [`checkpoint`].
    ///
    /// # Errors
    ///
    /// [`crate::Error::Apl`] if the version cannot be read; [`crate::Error::Object`] and [`crate::Error::Upload`] if
    /// the object store fails; [`crate::Error::Encode`] if a value does not fit the format.
    pub fn checkpoint(
        &self,
        version: Version,
        objects: &Objects,
        prefix: &str,
        meta: checkpoint::CheckpointMeta,
    ) -> Result<checkpoint::Manifest, crate::Error> {
        checkpoint::write(self, version, objects, prefix, meta)
    }

    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }
}
