//! The store of one graph: its versions, and the generations that hold its data.
//!
//! Roles: a [`Generation`] holds partitions, indexes and counts from one reset of the graph to the next; all other files
//! here are its parts. [`Store`] finds the generation of a version (`apl` passes requests on to it), begins the next one
//! at a reset, and publishes, pins and reclaims versions.
//!
//! A reset so costs no more for a large graph than for a small one, and readers of earlier versions notice nothing. What
//! it removed is freed as a whole once no version before the reset can be read.
//!
//! What must never happen: a read that one generation begins and another continues; a generation freed while a version
//! of it can be read (STO-1).

mod apl;
mod apply;
#[cfg(feature = "searches")]
mod bottom_up;
mod bulk;
mod by_page;
mod generation;
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

pub(crate) use generation::Generation;

use crate::checkpoint::{LocalCopies, RestoreReads};
use crate::properties::spill::PageMemory;
use crate::versions::{Pin, Versions};
use crate::{Memory, checkpoint};
use arc_swap::{ArcSwap, Guard};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{Error, Statistics};
use tidegraph_platform::{Clock, Objects};
use tidegraph_types::{Gui, GuiHasher, Mutation, PartitionCount, Str, Token, Version};

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
    /// What restores read at the same time. All stores of a process share it.
    pub reads: Arc<RestoreReads>,
    /// Copies of checkpoints' objects on the local disk.
    pub copies: Option<Arc<LocalCopies>>,
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
            reads: Arc::default(),
            copies: None,
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
    versions: Arc<Versions>,
    /// Memory that pages use and may use.
    page_memory: Arc<PageMemory>,
    generations: ArcSwap<Generations>,
    /// The version of the newest batch. Writers hold this lock one after the other.
    applied: Mutex<Version>,
}

/// The generations of which a version can be read.
struct Generations {
    newest: Arc<Generation>,
    /// Those before it, the newest first.
    older: Vec<Arc<Generation>>,
}

/// Resets within the window of readable versions after which the window is given up, so that memory stays bounded.
const MOST_OLDER: usize = 2;

/// A generation that stays while this lives.
pub(crate) struct Held {
    generations: Guard<Arc<Generations>>,
    /// 0 for the newest one.
    place: usize,
}

impl Held {
    /// Returns the generation.
    fn share(&self) -> &Arc<Generation> {
        let Generations { newest, older } = &**self.generations;
        self.place.checked_sub(1).and_then(|place| older.get(place)).unwrap_or(newest)
    }
}

impl Deref for Held {
    type Target = Generation;

    #[inline]
    fn deref(&self) -> &Generation {
        self.share()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("partitions", &self.config.partitions.get())
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
        let page_memory = Arc::new(PageMemory::new(config.memory.clone()));
        let versions = Arc::new(Versions::new(version, config.window, config.clock.now()));
        let newest = Generation::new(config.clone(), version, versions.clone(), page_memory.clone());
        Self {
            config,
            versions,
            page_memory,
            generations: ArcSwap::from_pointee(Generations { newest: Arc::new(newest), older: Vec::new() }),
            applied: Mutex::new(version),
        }
    }

    /// Returns the generation that changes are applied to.
    pub(crate) fn newest(&self) -> Held {
        Held { generations: self.generations.load(), place: 0 }
    }

    /// Returns the generation that a version is read from. If the version is too old for any, every request to that
    /// generation says so.
    #[inline]
    pub(crate) fn of_version(&self, version: Version) -> Held {
        let generations = self.generations.load();
        let place = if version >= generations.newest.since || generations.older.is_empty() {
            0
        } else {
            let begun = generations.older.iter().position(|generation| version >= generation.since);
            1 + begun.unwrap_or(generations.older.len() - 1)
        };
        Held { generations, place }
    }

    /// Waits for other writers and begins to apply a version.
    fn begin_to_apply(&self, version: Version) -> MutexGuard<'_, Version> {
        let mut applied = self.applied.lock();
        debug_assert!(version >= *applied, "version {version} comes after {applied}");
        *applied = version;
        applied
    }

    /// Applies the mutations of one committed transaction. Versions must not decrease from call to call. Nothing is
    /// visible before [`Store::publish`]. A mutation of something that does not exist has no effect, nor has an edge
    /// without one of its ends.
    pub fn apply(&self, version: Version, mutations: &[Mutation]) {
        let applying = self.begin_to_apply(version);
        let mut rest = mutations;
        while let Some(reset) = rest.iter().position(|mutation| matches!(mutation, Mutation::Reset)) {
            let (before, after) = rest.split_at(reset);
            self.newest().apply(version, before);
            self.begin_generation(version, &applying);
            rest = &after[1..];
        }
        self.newest().apply(version, rest);
    }

    /// Begins an empty generation. Versions before `since` are still read from the one before.
    fn begin_generation(&self, since: Version, applying: &MutexGuard<'_, Version>) {
        let newest = self.newest();
        if newest.is_pristine() {
            return;
        }
        let mut older = vec![newest.share().clone()];
        older.extend(newest.generations.older.iter().cloned());
        let generations = Generations { newest: Arc::new(newest.successor(since)), older };
        let many = generations.older.len() > MOST_OLDER;
        drop(newest);
        self.generations.store(Arc::new(generations));
        if many {
            self.versions.forget_window();
            drop(self.forget_generations(applying));
        }
    }

    /// Gives up the generations of which no version can be read, and returns those that are left together with them.
    /// The caller drops them, which frees their memory.
    fn forget_generations(&self, _applying: &MutexGuard<'_, Version>) -> Option<Arc<Generations>> {
        let generations = self.generations.load();
        let oldest = self.versions.oldest();
        // A generation is read up to the version before the next one begins.
        let next = std::iter::once(&generations.newest).chain(&generations.older);
        let kept = next.take_while(|next| next.since > oldest).count().min(generations.older.len());
        if kept == generations.older.len() {
            return None;
        }
        let (newest, older) = (generations.newest.clone(), generations.older[..kept].to_vec());
        drop(generations);
        Some(self.generations.swap(Arc::new(Generations { newest, older })))
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
    /// looked at. Writes reclaim along the way, so only an idle graph needs calls, and one that was reset.
    pub fn reclaim(&self, budget: usize) -> usize {
        let has_older = !self.generations.load().older.is_empty();
        // What a reset removed counts towards the memory budget, and cannot be evicted.
        let oldest = if has_older && self.page_memory.is_bounded() {
            self.versions.forget_window()
        } else {
            self.versions.move_on(self.config.clock.now())
        };
        if has_older && let Some(applying) = self.applied.try_lock() {
            let gone = self.forget_generations(&applying);
            // Writers do not wait until the memory is free.
            drop(applying);
            drop(gone);
        }
        self.newest().reclaim(oldest, budget)
    }

    /// Returns the exact numbers of vertices and edges that were applied.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        self.of_version(self.published()).totals()
    }

    /// Returns exact counts of what was applied.
    #[must_use]
    pub fn counts(&self) -> Statistics {
        self.of_version(self.published()).counts()
    }

    /// Returns the memory that the store uses. Walks all of it.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        let generations = self.generations.load();
        let all = std::iter::once(&generations.newest).chain(&generations.older);
        all.for_each(|generation| generation.add_memory(&mut memory));
        memory
    }

    /// Returns the exception list, in no particular order.
    #[must_use]
    pub fn exceptions(&self) -> Vec<(Str, Gui)> {
        self.newest().exceptions()
    }

    /// Returns the bytes of chunks in the newest checkpoint that the checkpoint before it had in an older state: its
    /// cost beyond what is new. 0 after a start, and after a reset.
    #[must_use]
    pub fn rewritten_bytes(&self) -> u64 {
        self.newest().rewritten_bytes()
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
        checkpoint::write(&self.of_version(version), version, objects, prefix, meta)
    }
}
