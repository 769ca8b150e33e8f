//! One partition: its vertices, their out-edges with properties, copies of their in-edges without properties, and the
//! index of the edge ids that hash here.
//!
//! Layout, and bytes in memory on a 64-bit machine:
//!
//! | what | bytes |
//! |---|---|
//! | vertex: node, one cache line (GUI, both adjacency lists, place of its row) | 64 |
//! | vertex: row (GUI, id of up to 12 bytes) | 24 |
//! | vertex: entry of the GUI index (8, at a load of 3/8 to 3/4) | 11–21 |
//! | edge: an entry at each end, inline for the only one of a list | 0 or 12, twice; 32 until it is folded |
//! | adjacency block (2 to 1,024 edges one way, or a chunk of a hub) | 16 or 24 |
//! | edge with an id or properties: row (SID, and id if it has one) and index entry | 8 or 24, + 11–21 |
//! | edge id that the user chose: index entry | 24 + 11–21 |
//! | property value | 1, 2, 4, 8 or 16 by its type (see [`crate::properties`]); labels and keys: nothing a row |
//! | string longer than 12 bytes | length, above 23 bytes 32 more |
//!
//! Roles: this file holds the records and finds them; `write` applies changes, `read` answers at a version, `reclaim`
//! drops what no version needs, `image` and `restore` convert a partition to and from the chunks of a checkpoint.
//! Readers use a [`Partition`] directly. A writer opens it ([`Open`]), which excludes other writers but no reader:
//! everything that readers see is atomic and published when it is complete, and what is replaced is retired through
//! epochs.
//!
//! What must never happen: a change that leaves no note for `reclaim` (`touch`); something freed or reused while a
//! reader may still look at it (STO-1).

#[cfg(feature = "searches")]
mod bottom_up;
mod bulk;
mod columns;
mod common_labels;
mod degrees;
mod distinct;
mod image;
mod lists;
mod pending_links;
mod read;
mod reclaim;
mod restore;
mod sample;
mod scan;
mod write;

#[cfg(feature = "searches")]
pub(crate) use bottom_up::{BottomUpRequest, BottomUpStep};
pub(crate) use bulk::PendingLink;
pub(crate) use degrees::Degrees;
pub(crate) use distinct::{Distinct, Sketches};
pub(crate) use image::{Image, NodeCounts};
pub(crate) use pending_links::PendingLinks;
pub(crate) use read::{EdgePosition, ExpandRequest, Filter};
pub(crate) use restore::{Excerpt, Misread, Rebuild, Rebuilt};
pub(crate) use scan::{EdgeAnswer, EdgeScanRequest};
pub(crate) use write::{Tally, Writer};

use crate::adjacency::{Links, List};
use crate::properties::spill::PageMemory;
use crate::properties::{self, PageTable, PageWriter, RowOwner, RowPlace, TableView};
use crate::slot_index::SlotIndex;
use crate::slots::{self, FreeSlots, Slots};
use crate::virtual_array::{VirtualArray, ZeroValid};
use crate::write_permit::WritePermit;
use common_labels::CommonLabels;
use crossbeam_epoch::{Guard, pin};
use parking_lot::{Mutex, MutexGuard};
use reclaim::{Sweep, Touch};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tidegraph_types::{Gui, Sid, Version};

/// The part of a vertex that a traversal needs: one cache line.
#[repr(align(64))]
pub(crate) struct Node {
    gui: AtomicU64,
    pub out: List,
    pub inward: List,
    /// Place of the newest row.
    pub row: RowRef,
}

const _: () = assert!(size_of::<Node>() == 64);

// SAFETY: all fields are atomic numbers; all zeros are a node without a vertex.
unsafe impl ZeroValid for Node {}

impl Node {
    #[inline]
    pub fn gui(&self) -> Gui {
        Gui(self.gui.load(Ordering::Relaxed))
    }
}

/// Place of a vertex's row: none, a place plus one, or a mark that the node itself is free.
pub(crate) struct RowRef(AtomicU64);

impl RowRef {
    /// Zero, the content of slots that were never used or that a checkpoint skipped.
    const FREE: u64 = 0;
    const NONE: u64 = u64::MAX;

    /// Marks the node as free.
    fn free(&self) {
        self.0.store(Self::FREE, Ordering::Release);
    }

    #[inline]
    pub fn get(&self) -> Option<properties::RowPlace> {
        match self.0.load(Ordering::Acquire) {
            Self::FREE | Self::NONE => None,
            place => Some(properties::RowPlace((place - 1) as u32)),
        }
    }

    fn set(&self, place: Option<properties::RowPlace>) {
        self.0.store(place.map_or(Self::NONE, |place| u64::from(place.0) + 1), Ordering::Release);
    }

    fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::FREE
    }
}

/// Where the edge of a user-chosen id may be. The record there decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeIdEntry {
    pub hash: u64,
    pub source: Gui,
    pub sid: Sid,
}

impl EdgeIdEntry {
    /// Returns whether the slot holds no entry.
    pub fn is_free(&self) -> bool {
        self.sid.0 == EdgeIdSlot::FREE
    }
}

/// An [`EdgeIdEntry`] in memory.
#[derive(Default)]
struct EdgeIdSlot {
    hash: AtomicU64,
    source: AtomicU64,
    sid: AtomicU64,
}

// SAFETY: all fields are atomic numbers.
unsafe impl ZeroValid for EdgeIdSlot {}

impl EdgeIdSlot {
    /// SID of no edge; the content of slots that were never used or that a checkpoint skipped.
    const FREE: u64 = 0;

    fn get(&self) -> EdgeIdEntry {
        let sid = Sid(self.sid.load(Ordering::Acquire));
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        EdgeIdEntry { hash: word(&self.hash), source: Gui(word(&self.source)), sid }
    }

    /// Marks the entry as free.
    fn free(&self) {
        self.sid.store(Self::FREE, Ordering::Release);
    }

    fn set(&self, entry: EdgeIdEntry) {
        self.hash.store(entry.hash, Ordering::Relaxed);
        self.source.store(entry.source.0, Ordering::Relaxed);
        // Stored last: a reader that sees the SID sees the other fields, and that the group was modified.
        self.sid.store(entry.sid.0, Ordering::Release);
    }
}

/// The part of a partition that readers see. They take no lock; they hold an epoch guard and read a version that is
/// not reclaimed meanwhile.
pub(crate) struct Partition {
    by_gui: SlotIndex,
    nodes: Slots<Node>,
    /// Rows of vertices, and of edges that have ids or properties.
    rows: PageTable,
    /// Places of the rows of edges.
    by_sid: SlotIndex,
    by_edge_id: SlotIndex,
    edge_ids: Slots<EdgeIdSlot>,
    /// For each group of edge ids, the number of entries whose edges have ended.
    edge_ids_ended: VirtualArray<AtomicU32>,
    links: Links,
    distinct: Distinct,
    common_labels: CommonLabels,
    /// Versions below this one can no longer be read here.
    reclaimed: AtomicU64,
    state: Mutex<WriterState>,
}

impl Default for Partition {
    fn default() -> Self {
        Self {
            by_gui: SlotIndex::default(),
            nodes: Slots::default(),
            rows: PageTable::default(),
            by_sid: SlotIndex::default(),
            by_edge_id: SlotIndex::default(),
            edge_ids: Slots::default(),
            edge_ids_ended: VirtualArray::new(EDGE_ID_GROUPS),
            links: Links::default(),
            distinct: Distinct::default(),
            common_labels: CommonLabels::default(),
            reclaimed: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }
}

/// State of the writer.
#[derive(Default)]
struct WriterState {
    permit: WritePermit,
    pages: PageWriter,
    free_nodes: FreeSlots,
    free_edge_ids: FreeSlots,
    touched: VecDeque<(Version, Touch)>,
    sweep: Option<Sweep>,
    /// Version of the newest load and the number of its notes so far; `None` once a sweep replaces them.
    load_notes: (Version, Option<u32>),
}

/// A partition that is open for one writer, while readers continue.
pub(crate) struct Open<'p> {
    partition: &'p Partition,
    state: MutexGuard<'p, WriterState>,
}

impl Deref for Open<'_> {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        self.partition
    }
}

/// Largest number of groups of edge ids.
const EDGE_ID_GROUPS: usize = slots::MAX_RECORDS / slots::GROUP as usize;

fn sid_hash(sid: Sid) -> u64 {
    sid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Partition {
    /// Makes an empty partition whose pages count towards a memory budget.
    pub fn new(memory: Arc<PageMemory>) -> Self {
        Self { rows: PageTable::new(memory), ..Self::default() }
    }

    /// Opens the partition if no writer has it, for work that can wait.
    pub fn try_open(&self) -> Option<Open<'_>> {
        Some(Open { partition: self, state: self.state.try_lock()? })
    }

    /// Returns the bytes that always stay in memory: everything but pages and versions.
    pub fn fixed_bytes(&self) -> usize {
        let indexes = self.by_gui.bytes() + self.by_sid.bytes() + self.by_edge_id.bytes();
        indexes + self.edge_ids.bytes() + self.nodes.bytes() + self.links.bytes() + self.rows.bytes()
    }

    /// Opens the partition for changes. Waits for another writer, never for readers.
    pub fn open(&self) -> Open<'_> {
        Open { partition: self, state: self.state.lock() }
    }

    /// Returns the oldest version that can be read.
    pub fn reclaimed(&self) -> Version {
        Version(self.reclaimed.load(Ordering::Acquire))
    }

    /// Returns the slot of a vertex, present or not.
    #[inline]
    pub fn slot(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        self.by_gui.find(gui.0, guard, |slot| self.nodes.get(slot).gui() == gui)
    }

    /// Prefetches the index line of a vertex.
    #[inline]
    pub fn prefetch_index(&self, gui: Gui, guard: &Guard) {
        self.by_gui.prefetch(gui.0, guard);
    }

    /// Prefetches the node that a vertex probably has, and returns its slot. The caller must compare the node's GUI.
    #[inline(always)]
    pub fn prefetch_node(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        let slot = self.by_gui.probable(gui.0, guard)?;
        self.nodes.prefetch(slot);
        Some(slot)
    }

    /// Returns the estimates of distinct values.
    pub fn distinct(&self) -> &Distinct {
        &self.distinct
    }

    pub fn links(&self) -> &Links {
        &self.links
    }

    #[inline]
    pub fn node(&self, slot: u32) -> &Node {
        self.nodes.get(slot)
    }

    /// Prefetches the requested parts of a vertex's row.
    #[inline]
    pub fn prefetch_row(&self, slot: u32, want: properties::RowRequest<'_>, guard: &Guard) {
        if let Some(place) = self.nodes.get(slot).row.get() {
            self.rows.prefetch(place, want, guard);
        }
    }

    /// Returns one more than the highest vertex slot.
    pub fn end(&self) -> u32 {
        self.nodes.end()
    }

    pub fn rows(&self) -> &PageTable {
        &self.rows
    }

    fn edge_place(&self, sid: Sid, guard: &Guard) -> Option<properties::RowPlace> {
        let is_of = |place| self.rows.is_of(RowOwner::Edge(sid), properties::RowPlace(place), guard);
        self.by_sid.find(sid_hash(sid), guard, is_of).map(properties::RowPlace)
    }

    /// Returns the place of an edge's row, which is wrong if SIDs collide in the index.
    pub fn probable_edge_place(&self, sid: Sid, guard: &Guard) -> Option<properties::RowPlace> {
        self.by_sid.find(sid_hash(sid), guard, |_| true).map(properties::RowPlace)
    }

    /// Prefetches the index line of an edge's row.
    #[inline]
    pub fn prefetch_edge_index(&self, sid: Sid, guard: &Guard) {
        self.by_sid.prefetch(sid_hash(sid), guard);
    }

    /// Prefetches the row that an edge probably has.
    #[inline]
    pub fn prefetch_edge(&self, sid: Sid, want: properties::RowRequest<'_>, guard: &Guard) {
        self.by_sid.find(sid_hash(sid), guard, |place| {
            self.rows.prefetch(properties::RowPlace(place), want, guard);
            true
        });
    }

    /// Prefetches the index line of a user-chosen edge id.
    #[inline]
    pub fn prefetch_edge_id(&self, hash: u64, guard: &Guard) {
        self.by_edge_id.prefetch(hash, guard);
    }

    /// Returns whether an edge may exist whose user-chosen id has this hash.
    #[inline]
    pub fn has_edge_id(&self, hash: u64, guard: &Guard) -> bool {
        self.by_edge_id.find(hash, guard, |slot| self.edge_ids.get(slot).get().hash == hash).is_some()
    }

    /// Appends the candidates for a user-chosen edge id with this hash.
    pub fn edge_id_candidates(&self, hash: u64, out: &mut Vec<EdgeIdEntry>) {
        self.by_edge_id.find(hash, &pin(), |slot| {
            let entry = self.edge_ids.get(slot).get();
            if entry.hash == hash {
                out.push(entry);
            }
            false
        });
    }

    /// Adds the memory of the partition. Walks all of it, so it is not for every request.
    pub fn add_memory(&self, memory: &mut crate::Memory) {
        let state = self.state.lock();
        memory.indexes += self.by_gui.bytes() + self.by_sid.bytes() + self.by_edge_id.bytes();
        memory.edge_ids += self.edge_ids.bytes() + state.free_edge_ids.bytes();
        let guard = pin();
        let rows = state.pages.bytes(TableView { table: &self.rows, guard: &guard });
        memory.vertices += self.nodes.bytes() + state.free_nodes.bytes() + rows.vertices;
        memory.edges += rows.edges;
        memory.properties += rows.properties;
        memory.ids += rows.ids;
        memory.labels += rows.sets;
        memory.adjacency += self.links.bytes();
        memory.adjacency_free += self.links.free_bytes();
        memory.indexes += self.distinct.bytes();
        memory.versions += state.touched.capacity() * size_of::<(Version, Touch)>() + rows.versions;
    }
}

impl Open<'_> {
    /// Returns the slot of a vertex, present or not.
    fn slot(&self, gui: Gui) -> Option<u32> {
        self.partition.slot(gui, &pin())
    }

    /// Evicts pages until `bytes` are freed or no more can be. Returns the bytes freed.
    pub fn evict(&mut self, bytes: u64) -> u64 {
        let guard = pin();
        let (pages, view) = self.pages(&guard);
        pages.evict(view, bytes).bytes
    }

    /// Brings the page of a row into memory, to change the row; it stays while the partition is open. Returns false
    /// if it cannot be read; the store then refuses further changes.
    fn bring(&self, place: properties::RowPlace, guard: &Guard) -> bool {
        self.rows.bring_to_write(place.page(), guard).is_some()
    }

    /// Returns the page writer and the table that it changes.
    fn pages<'g>(&'g mut self, guard: &'g Guard) -> (&'g mut PageWriter, TableView<'g>) {
        (&mut self.state.pages, TableView { table: &self.partition.rows, guard })
    }

    /// Returns the slot of a vertex that exists now, and the place of its row.
    fn present_slot(&self, gui: Gui, guard: &Guard) -> Option<(u32, properties::RowPlace)> {
        let slot = self.partition.slot(gui, guard)?;
        let place = self.nodes.get(slot).row.get()?;
        let view = TableView { table: &self.rows, guard };
        self.state.pages.is_present(view, place).then_some((slot, place))
    }
}
