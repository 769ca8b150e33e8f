//! The store of one graph: its partitions, the exception list, the counts, the versions.
//!
//! `apply` and `bulk` write, `read` implements APL; this file sets up, publishes, pins and forgets.

mod apply;
mod bottom_up;
mod bulk;
mod by_page;
mod index;
mod locked;
mod pick;
mod pipeline;
mod read;
mod room;
mod scan;
mod scope;
mod side_by_side;
mod statistics;

pub use bulk::{BulkLoad, LoadOutcome};
pub use index::{Duplicate, IndexState};
pub use room::{MemoryBudget, MemoryUse};
pub use scope::Scope;

use crate::index::{Index, Indexes};
use crate::partition::{Partition, Tally};
use crate::properties::spill::Room;
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

/// What a store has to be told.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// How many partitions the store has; fixed when the graph is made.
    pub partitions: PartitionCount,
    /// `None`: they are all of the graph. Else the store has one, and it is this one of the graph's.
    pub scope: Option<Scope>,
    /// Computes GUIs; tests cut it down.
    pub hasher: GuiHasher,
    /// How long a version stays readable after a newer one took its place.
    pub window: Duration,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What the store may take in memory; `None`: whatever it needs.
    pub memory: Option<MemoryBudget>,
}

impl StoreConfig {
    /// Eight partitions, whole hashes, a window of 60 seconds, no limit of memory.
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
    /// The same for a store of one partition of a graph.
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
pub struct Store {
    config: StoreConfig,
    partitions: Box<[Partition]>,
    /// Ids that do not live under their plain hash. Small: collisions only.
    exceptions: ArcSwap<FxHashMap<Str, Gui>>,
    counts: Mutex<Counts>,
    indexes: Indexes,
    versions: Arc<Versions>,
    /// The version of the newest batch; the lock makes writers take turns.
    applied: Mutex<Version>,
    /// Versions below this one may have been forgotten.
    forgotten: AtomicU64,
    /// The partition that forgets next.
    turn: AtomicUsize,
    /// Statistics that are put together now and then.
    gathered: ArcSwapOption<statistics::Gathered>,
    /// The newest checkpoint, for the next one to build upon.
    base: Mutex<Option<Arc<checkpoint::Base>>>,
    /// What pages take and may take.
    room: Arc<Room>,
    /// Bytes of all else, as they were counted last.
    fixed: AtomicU64,
    /// The partition whose pages are moved out next.
    evicting: AtomicUsize,
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
    /// An empty graph at version 0.
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        Self::at(config, Version(0))
    }

    /// An empty graph at a version, to be filled from a checkpoint.
    pub(crate) fn at(config: StoreConfig, version: Version) -> Self {
        let count = config.partitions.get();
        let now = config.clock.now();
        let mut partitions: Vec<Partition> = Vec::new();
        let room = Arc::new(Room::new(config.memory.clone()));
        partitions.resize_with(usize::from(count), || Partition::new(room.clone()));
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
            turn: AtomicUsize::new(0),
            gathered: ArcSwapOption::empty(),
            base: Mutex::default(),
            fixed: AtomicU64::new(0),
            evicting: AtomicUsize::new(0),
            room,
            config,
        }
    }

    /// What the store was made with.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Makes everything applied up to a version visible. Call it in order of versions, after `apply`.
    ///
    /// A version that could not be applied whole ([`Self::check_applied`] says so) is not made visible.
    pub fn publish(&self, version: Version) {
        if self.room.broken().is_some() {
            return;
        }
        self.versions.publish(version, self.config.clock.now());
    }

    /// The newest version that can be read.
    #[must_use]
    pub fn published(&self) -> Version {
        self.versions.published()
    }

    /// The oldest version that can be read.
    #[must_use]
    pub fn oldest(&self) -> Version {
        self.versions.oldest()
    }

    /// Keeps a version readable for as long as the pin lives.
    pub fn pin(&self, version: Version) -> Result<Pin, Error> {
        self.versions.pin(version)
    }

    /// Pins the newest version.
    #[must_use]
    pub fn pin_published(&self) -> Pin {
        self.versions.pin_published()
    }

    /// Forgets versions that nobody can read any more: looks at about `budget` records at most, and answers at how
    /// many it looked. Writing does this along the way; an idle graph needs a call now and then.
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

    /// Lets the partition whose turn it is forget, in pieces so that readers get in.
    fn reclaim_one(&self, oldest: Version, budget: usize) -> usize {
        const PIECE: usize = 4096;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.partitions.len();
        let partition = &self.partitions[turn];
        // Readers look at this after they have read: it moves before anything is forgotten.
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

    /// Vertices and edges, exactly as many as were applied.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let counts = self.counts.lock();
        (counts.vertices.unsigned_abs(), counts.edges.unsigned_abs())
    }

    /// Exact counts of what was applied.
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

    /// What the store takes in memory. Walks all of it.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for partition in &self.partitions {
            partition.add_memory(&mut memory);
        }
        memory.indexes += self.indexes.bytes();
        memory
    }

    /// The exception list, in no particular order.
    #[must_use]
    pub fn exceptions(&self) -> Vec<(Str, Gui)> {
        self.exceptions.load().iter().map(|(id, gui)| (id.clone(), *gui)).collect()
    }

    pub(crate) fn add_exceptions(&self, exceptions: &[(Str, Gui)]) {
        // The whole list anew: it is short, and readers go on with the one that they have.
        self.exceptions.rcu(|old| {
            let mut new = FxHashMap::clone(old);
            new.extend(exceptions.iter().cloned());
            new
        });
    }

    /// Versions below this one may have been forgotten somewhere.
    pub(crate) fn forgotten(&self) -> Version {
        Version(self.forgotten.load(Ordering::Acquire))
    }

    pub(crate) fn base(&self) -> Option<Arc<checkpoint::Base>> {
        self.base.lock().clone()
    }

    pub(crate) fn set_base(&self, base: Arc<checkpoint::Base>) {
        *self.base.lock() = Some(base);
    }

    /// Bytes that the newest checkpoint wrote although the one before it had them, in an older state: what it cost beyond
    /// what is new. 0 after a start.
    #[must_use]
    pub fn rewritten_bytes(&self) -> u64 {
        self.base.lock().as_ref().map_or(0, |base| base.rewritten_bytes())
    }

    /// Writes an image of a version into object storage while reads and writes go on: what changed since the last one, if
    /// that is there. See [`checkpoint`].
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
