//! Indexes over the values of one property key of the vertices with one label.
//!
//! For each partition, an index has an ordered map of (key of the value, GUI). It is a superset over versions: an
//! entry exists from before the version that wrote the value can be read until no version with the value can be read
//! any more. So a look-up finds candidates, and the reader checks each of them at its version (STO-3).
//!
//! Flow: for each change the writer reports what a vertex had before and has after ([`Indexes::change`]). A value
//! that is gone keeps its entry, marked with the version, until [`Indexes::reclaim`]. An index over existing data is
//! filled from a readable version ([`Index::add`]) while writes continue. The writer also adds what a vertex had
//! *before* a change, so nothing is missing from the index's first version on. Then it is [`Index::complete`].
//!
//! Readers take no lock: the maps are skip lists that free their nodes through epochs.
//!
//! What must never happen: an entry removed that a readable version needs; a look-up at a version from before the
//! index was created; use of an index that is not complete.

mod key;

pub(crate) use key::{Span, ValueKey};

use arc_swap::ArcSwap;
use cardinality_estimator::CardinalityEstimator;
use crossbeam_skiplist::SkipMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tidegraph_apl::{KeyStatistics, ScanCursor};
use tidegraph_types::{Gui, IndexDefinition, Token, Version};

/// Bytes of an entry besides a long key: key, mark and links of its node.
const ENTRY_BYTES: usize = 80;
/// `usable_from` of an index that is not complete.
const NEVER: u64 = u64::MAX;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    key: ValueKey,
    gui: Gui,
}

/// The entries of an index, whatever its name.
struct Content {
    /// Entries by partition, each with the version that removed the value, or 0 while the value exists.
    maps: Box<[SkipMap<Entry, AtomicU64>]>,
    /// The oldest version of which it has everything once it is filled.
    since: Version,
    /// The oldest version that the index can answer.
    usable_from: AtomicU64,
    /// Whether the index was defined again: it is complete elsewhere, and writers rely on it.
    confirmed: AtomicBool,
    entries: AtomicUsize,
    /// Estimates of the number of distinct keys ever added, by partition.
    sketches: Box<[Mutex<CardinalityEstimator<ValueKey>>]>,
    heap_bytes: AtomicUsize,
}

/// An index.
#[derive(Clone)]
pub(crate) struct Index {
    pub definition: IndexDefinition,
    /// The version that defined it; that of the checkpoint if the store was restored from one.
    pub defined: Version,
    content: Arc<Content>,
}

/// Indexed values: position of the index in the list, and the key.
pub(crate) type IndexedValues = SmallVec<[(usize, ValueKey); 4]>;

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl Index {
    fn new(definition: IndexDefinition, partitions: usize, defined: Version, since: Version) -> Self {
        let mut maps = Vec::new();
        maps.resize_with(partitions, SkipMap::new);
        let mut sketches = Vec::new();
        sketches.resize_with(partitions, Mutex::default);
        let content = Content {
            maps: maps.into_boxed_slice(),
            sketches: sketches.into_boxed_slice(),
            since,
            usable_from: AtomicU64::new(NEVER),
            confirmed: AtomicBool::new(false),
            entries: AtomicUsize::new(0),
            heap_bytes: AtomicUsize::new(0),
        };
        Self { definition, defined, content: Arc::new(content) }
    }

    /// Returns whether look-ups find everything at some version.
    pub fn is_complete(&self) -> bool {
        self.content.usable_from.load(Ordering::Acquire) != NEVER
    }

    /// Returns whether writers rely on its constraint while look-ups here do not find everything yet.
    pub fn is_late(&self) -> bool {
        self.definition.unique && !self.is_complete() && self.content.confirmed.load(Ordering::Acquire)
    }

    /// STO-3: returns whether a look-up finds everything at this version.
    pub fn answers(&self, at: Version) -> bool {
        self.content.usable_from.load(Ordering::Acquire) <= at.0
    }

    /// Declares the index complete: everything that a version since its creation sees has been added.
    pub fn complete(&self) {
        self.content.usable_from.store(self.content.since.0, Ordering::Release);
    }

    /// Returns the number of entries, including values that are gone but still needed.
    pub fn len(&self) -> usize {
        self.content.entries.load(Ordering::Relaxed)
    }

    /// Returns counts for the planner. Removed values count as distinct until the index is created again.
    pub fn statistics(&self) -> KeyStatistics {
        let mut all = CardinalityEstimator::<ValueKey>::new();
        self.content.sketches.iter().for_each(|sketch| all.merge(&sketch.lock()));
        let IndexDefinition { label, key, .. } = self.definition;
        let values = self.len() as u64;
        KeyStatistics { label, key, values, distinct: values.min(all.estimate() as u64) }
    }

    /// Returns the approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        self.len() * ENTRY_BYTES + self.content.heap_bytes.load(Ordering::Relaxed)
    }

    /// Adds a value that a vertex has at a pinned version, while the index is filled.
    pub fn add(&self, partition: usize, key: ValueKey, gui: Gui) {
        self.content.insert(partition, Entry { key, gui });
    }

    /// Appends the vertices of a partition that may have a value in a range at a version. Returns false if there are
    /// more than `most`; some of them are then appended.
    pub fn candidates(
        &self,
        partition: usize,
        span: &Span,
        at: Version,
        most: usize,
        out: &mut Vec<Gui>,
    ) -> bool {
        let low = Entry { key: span.low.clone(), gui: Gui(0) };
        for entry in self.content.maps[partition].range((Bound::Included(low), Bound::Unbounded)) {
            if !span.holds(&entry.key().key) {
                break;
            }
            let gone = entry.value().load(Ordering::Acquire);
            if gone != 0 && gone <= at.0 {
                continue;
            }
            if out.len() >= most {
                return false;
            }
            out.push(entry.key().gui);
        }
        true
    }

    /// Calls `each` with the vertices of every key that several vertices have, until it returns false. Includes
    /// entries of values that are gone.
    pub fn shared_keys(&self, mut each: impl FnMut(&[Gui]) -> bool) {
        let mut entries: Vec<_> = self.content.maps.iter().map(|map| map.iter().peekable()).collect();
        let mut guis = Vec::new();
        loop {
            let least = entries.iter_mut().filter_map(|map| map.peek().map(|e| e.key().key.clone())).min();
            let Some(least) = least else { return };
            guis.clear();
            for map in &mut entries {
                while let Some(entry) = map.next_if(|entry| entry.key().key == least) {
                    guis.push(entry.key().gui);
                }
            }
            if guis.len() > 1 && !each(&guis) {
                return;
            }
        }
    }
}

impl Content {
    /// Adds an entry if it does not exist. Only the writer and the filler call it.
    fn insert(&self, partition: usize, entry: Entry) -> crossbeam_skiplist::map::Entry<'_, Entry, AtomicU64> {
        let mut made = false;
        let heap_bytes = entry.key.heap_bytes();
        let key = entry.key.clone();
        let found = self.maps[partition].get_or_insert_with(entry, || {
            made = true;
            AtomicU64::new(0)
        });
        if made {
            self.entries.fetch_add(1, Ordering::Relaxed);
            self.heap_bytes.fetch_add(heap_bytes, Ordering::Relaxed);
            self.sketches[partition].lock().insert(&key);
        }
        found
    }

    fn remove(&self, partition: usize, entry: &Entry) {
        if self.maps[partition].remove(entry).is_some() {
            self.entries.fetch_sub(1, Ordering::Relaxed);
            self.heap_bytes.fetch_sub(entry.key.heap_bytes(), Ordering::Relaxed);
        }
    }
}

/// A value that a version removed.
struct RemovedValue {
    version: Version,
    content: Arc<Content>,
    partition: usize,
    entry: Entry,
}

/// All indexes of a graph.
#[derive(Default)]
pub(crate) struct Indexes {
    list: ArcSwap<Vec<Index>>,
    /// Removed values in order of version.
    gone: Mutex<VecDeque<RemovedValue>>,
    /// Versions below this one are no longer found.
    reclaimed: AtomicU64,
    /// Dropped indexes, to be freed when the writer does not wait for it.
    dropped: Mutex<Vec<Index>>,
    /// Sets of labels by which scans were divided. They are kept because a cursor may name one; there are no more
    /// than sets of indexes over one key.
    covers: ArcSwap<Vec<Arc<[Token]>>>,
}

impl Indexes {
    /// Returns the current indexes.
    pub fn list(&self) -> Arc<Vec<Index>> {
        self.list.load_full()
    }

    /// Returns the number that names a set of labels from now on; 0 is the empty set. Returns `None` if there are too
    /// many.
    pub fn number_of_cover(&self, labels: &[Token]) -> Option<u16> {
        if labels.is_empty() {
            return Some(0);
        }
        let place = |covers: &[Arc<[Token]>]| covers.iter().position(|cover| **cover == *labels);
        if place(&self.covers.load()).is_none() {
            self.covers.rcu(|covers| {
                let mut covers = Vec::clone(covers);
                if place(&covers).is_none() && covers.len() + 1 < usize::from(ScanCursor::ONE_PARTITION) {
                    covers.push(Arc::from(labels));
                }
                covers
            });
        }
        place(&self.covers.load()).map(|place| place as u16 + 1)
    }

    /// Returns the set of labels of a number.
    pub fn cover(&self, number: u16) -> Arc<[Token]> {
        let covers = self.covers.load();
        let place = usize::from(number).checked_sub(1);
        place.and_then(|place| covers.get(place)).map_or_else(|| Arc::from([]), Arc::clone)
    }

    /// Returns whether there are no indexes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.load().is_empty()
    }

    /// Creates an index, empty and incomplete, that a version defined. It will have everything that the versions from
    /// `since` on see. An index of the same name over the same values keeps its entries, and its versions.
    pub fn define(&self, definition: &IndexDefinition, partitions: usize, defined: Version, since: Version) {
        let mut list = Vec::clone(&self.list.load());
        let same = |d: &IndexDefinition| (d.label, d.key) == (definition.label, definition.key);
        match list.iter_mut().find(|index| index.definition.name == definition.name) {
            Some(index) if same(&index.definition) => {
                index.definition = definition.clone();
                index.content.confirmed.store(true, Ordering::Release);
            }
            Some(index) => {
                let new = Index::new(definition.clone(), partitions, defined, since);
                self.dropped.lock().push(std::mem::replace(index, new));
            }
            None => list.push(Index::new(definition.clone(), partitions, defined, since)),
        }
        self.list.store(Arc::new(list));
    }

    /// Drops the index of a name.
    pub fn drop_index(&self, name: &str) {
        let list = self.list.load();
        let (gone, kept): (Vec<Index>, Vec<Index>) =
            list.iter().cloned().partition(|index| index.definition.name == name);
        self.list.store(Arc::new(kept));
        self.dropped.lock().extend(gone);
    }

    /// STO-3: applies a version's change of a vertex's values. Only the writer calls it, before the version is
    /// published.
    pub fn change(
        &self,
        list: &[Index],
        partition: usize,
        gui: Gui,
        version: Version,
        before: IndexedValues,
        after: &[(usize, ValueKey)],
    ) {
        if before.is_empty() && after.is_empty() {
            return;
        }
        // IndexedValues throughout, so that `reclaim` does not remove an entry whose mark is about to be cleared.
        let mut queue = self.gone.lock();
        for (index, key) in after {
            let entry = Entry { key: key.clone(), gui };
            list[*index].content.insert(partition, entry).value().store(0, Ordering::Release);
        }
        for held in before {
            if after.contains(&held) {
                continue;
            }
            let (index, key) = held;
            let content = list[index].content.clone();
            let entry = Entry { key, gui };
            // The entry may be missing while the index is filled, and older versions need it.
            content.insert(partition, entry.clone()).value().store(version.0, Ordering::Release);
            queue.push_back(RemovedValue { version, content, partition, entry });
        }
    }

    /// Returns the oldest version that finds everything.
    pub fn reclaimed(&self) -> Version {
        Version(self.reclaimed.load(Ordering::Acquire))
    }

    /// Removes entries that no version from `oldest` on needs, at most `budget` of them. Returns how many it looked
    /// at.
    pub fn reclaim(&self, oldest: Version, budget: usize) -> usize {
        self.reclaimed.fetch_max(oldest.0, Ordering::AcqRel);
        let mut queue = self.gone.lock();
        let mut done = 0;
        while done < budget
            && let Some(gone) = queue.pop_front_if(|gone| gone.version <= oldest)
        {
            // With another mark, the value came back or was removed again later.
            let map = &gone.content.maps[gone.partition];
            let marked = map
                .get(&gone.entry)
                .is_some_and(|found| found.value().load(Ordering::Acquire) == gone.version.0);
            if marked {
                gone.content.remove(gone.partition, &gone.entry);
            }
            done += 1;
        }
        if queue.is_empty() && queue.capacity() > 1024 {
            queue.shrink_to(256);
        }
        done
    }

    /// Frees dropped indexes, which may take long.
    pub fn free_dropped(&self) {
        let dropped = std::mem::take(&mut *self.dropped.lock());
        drop(dropped);
    }

    /// Returns the approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        let held: usize = self.list.load().iter().map(Index::bytes).sum();
        held + self.gone.lock().capacity() * size_of::<RemovedValue>()
    }
}

/// Returns the indexes that a change of these labels and keys concerns; `None` if there are none.
pub(crate) fn concerned(
    list: &[Index],
    labels: &[Token],
    keys: impl Fn(Token) -> bool,
) -> Option<Vec<usize>> {
    let concerned: Vec<usize> = (0..list.len())
        .filter(|&i| labels.contains(&list[i].definition.label) || keys(list[i].definition.key))
        .collect();
    (!concerned.is_empty()).then_some(concerned)
}
