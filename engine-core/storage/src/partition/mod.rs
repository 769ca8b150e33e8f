//! One partition: its vertices, their out-edges with properties, bare copies of their in-edges, and the index of the
//! edge ids that hash here.
//!
//! Layout, and bytes in memory on a 64-bit machine:
//!
//! | what | bytes |
//! |---|---|
//! | vertex: node, one cache line (GUI, both adjacency lists, place of its row) | 64 |
//! | vertex: row (GUI, id of up to 12 bytes) | 24 |
//! | vertex: entry of the GUI index (8, at a load of 3/8 to 3/4) | 11–21 |
//! | edge: an entry at each end, inline for the only one of a list | 0 or 12, twice; 32 until it is settled |
//! | adjacency block (2 to 1,024 edges one way, or a chunk of a hub) | 16 or 24 |
//! | edge with an id or properties: row (SID, and id if it has one) and index entry | 8 or 24, + 11–21 |
//! | edge id that the user chose: index entry | 24 + 11–21 |
//! | property value | 1, 2, 4, 8 or 16 by its type (see [`crate::properties`]); labels and keys: nothing a row |
//! | string longer than 12 bytes | length, above 23 bytes 32 more |
//!
//! Roles: this file holds the records and finds them; `write` applies changes, `read` answers at a version,
//! `reclaim` drops what no version needs, `image` and `restore` turn it into the chunks of a checkpoint and back. Readers use a [`Partition`] as it is; a writer opens it ([`Open`]), which
//! keeps other writers out and no reader: all that readers see are atomics, published when they are whole, and what
//! is replaced is retired through epochs.
//!
//! What must never happen: a change that does not say when it may be forgotten (`touch`); something freed or used anew
//! while a reader of then may still look at it.

mod bottom_up;
mod bulk;
mod columns;
mod degrees;
mod distinct;
mod image;
mod lists;
mod pick;
mod read;
mod reclaim;
mod restore;
mod scan;
mod waits;
mod write;

pub(crate) use bottom_up::{Up, UpWant};
pub(crate) use bulk::Waiting;
pub(crate) use degrees::Degrees;
pub(crate) use distinct::{Distinct, Sketches};
pub(crate) use image::{Image, NodeCounts};
pub(crate) use read::{Filter, Place, Want};
pub(crate) use restore::{Misread, Rebuild, Rebuilt};
pub(crate) use scan::{EdgeAnswer, ScanWant};
pub(crate) use waits::Waits;
pub(crate) use write::{Tally, Writer};

use crate::adjacency::{Links, List};
use crate::properties::spill::Room;
use crate::properties::{self, Desk, Keeper, Owner, PageTable};
use crate::slot_index::SlotIndex;
use crate::slots::{self, FreeSlots, Slots};
use crate::turn::Turn;
use crate::virtual_array::{VirtualArray, ZeroValid};
use crossbeam_epoch::{Guard, pin};
use parking_lot::{Mutex, MutexGuard};
use reclaim::{Sweep, Touch};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tidegraph_types::{Gui, Sid, Version};

/// What a traversal needs of a vertex: one cache line.
#[repr(align(64))]
pub(crate) struct Node {
    gui: AtomicU64,
    pub out: List,
    pub inward: List,
    /// Place of the newest row.
    pub row: RowRef,
}

const _: () = assert!(size_of::<Node>() == 64);

// SAFETY: all of it are atomics of numbers; zeros are a node without a vertex.
unsafe impl ZeroValid for Node {}

impl Node {
    #[inline]
    pub fn gui(&self) -> Gui {
        Gui(self.gui.load(Ordering::Relaxed))
    }
}

/// Where a vertex's row is: nothing, a place and one, or a mark that the node itself is free.
pub(crate) struct RowRef(AtomicU64);

impl RowRef {
    /// Zero, as in slots that were never used or that a checkpoint left out.
    const FREE: u64 = 0;
    const NONE: u64 = u64::MAX;

    /// Marks the node as free.
    fn free(&self) {
        self.0.store(Self::FREE, Ordering::Release);
    }

    #[inline]
    pub fn get(&self) -> Option<properties::Place> {
        match self.0.load(Ordering::Acquire) {
            Self::FREE | Self::NONE => None,
            place => Some(properties::Place((place - 1) as u32)),
        }
    }

    fn set(&self, place: Option<properties::Place>) {
        self.0.store(place.map_or(Self::NONE, |place| u64::from(place.0) + 1), Ordering::Release);
    }

    fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::FREE
    }
}

/// Where the edge of a user-chosen id may be: the record there has the last word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeIdEntry {
    pub hash: u64,
    pub source: Gui,
    pub sid: Sid,
}

impl EdgeIdEntry {
    /// Whether the slot holds no entry.
    pub fn is_free(&self) -> bool {
        self.sid.0 == EdgeIdSlot::FREE
    }
}

/// An [`EdgeIdEntry`] as it is kept.
#[derive(Default)]
struct EdgeIdSlot {
    hash: AtomicU64,
    source: AtomicU64,
    sid: AtomicU64,
}

// SAFETY: all of it are atomics of numbers.
unsafe impl ZeroValid for EdgeIdSlot {}

impl EdgeIdSlot {
    /// What no edge has; also in slots that were never used or that a checkpoint left out.
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
        // Last: who sees the SID sees the rest, and that the group was modified.
        self.sid.store(entry.sid.0, Ordering::Release);
    }
}

/// What readers see. They take no lock; they hold an epoch guard, and a version that is not forgotten meanwhile.
pub(crate) struct Partition {
    by_gui: SlotIndex,
    nodes: Slots<Node>,
    /// Rows of vertices, and of edges that have ids or properties.
    rows: PageTable,
    /// Places of the rows of edges.
    by_sid: SlotIndex,
    by_edge_id: SlotIndex,
    edge_ids: Slots<EdgeIdSlot>,
    /// For each group of edge ids: entries of edges that have ended.
    edge_ids_ended: VirtualArray<AtomicU32>,
    links: Links,
    distinct: Distinct,
    /// Versions below this one can no longer be read here.
    reclaimed: AtomicU64,
    book: Mutex<Book>,
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
            reclaimed: AtomicU64::new(0),
            book: Mutex::default(),
        }
    }
}

/// What only the writer knows.
#[derive(Default)]
struct Book {
    turn: Turn,
    keeper: Keeper,
    free_nodes: FreeSlots,
    free_edge_ids: FreeSlots,
    touched: VecDeque<(Version, Touch)>,
    sweep: Option<Sweep>,
    /// Version of the newest load and how many notes it left so far; none once a sweep stands for them.
    load_notes: (Version, Option<u32>),
}

/// A partition that is being changed: by one writer at a time, while readers go on.
pub(crate) struct Open<'p> {
    partition: &'p Partition,
    book: MutexGuard<'p, Book>,
}

impl Deref for Open<'_> {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        self.partition
    }
}

/// Groups of edge ids that there can be.
const EDGE_ID_GROUPS: usize = slots::MOST / slots::GROUP as usize;

fn sid_hash(sid: Sid) -> u64 {
    sid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Partition {
    /// An empty partition whose pages count for a room.
    pub fn new(room: Arc<Room>) -> Self {
        Self { rows: PageTable::new(room), ..Self::default() }
    }

    /// Opens the partition if no writer has it, for chores that can wait.
    pub fn try_open(&self) -> Option<Open<'_>> {
        Some(Open { partition: self, book: self.book.try_lock()? })
    }

    /// Bytes of what stays in memory whatever happens: all but pages and versions.
    pub fn fixed_bytes(&self) -> usize {
        let indexes = self.by_gui.bytes() + self.by_sid.bytes() + self.by_edge_id.bytes();
        indexes + self.edge_ids.bytes() + self.nodes.bytes() + self.links.bytes() + self.rows.bytes()
    }

    /// Opens the partition for changes; waits for another writer, never for readers.
    pub fn open(&self) -> Open<'_> {
        Open { partition: self, book: self.book.lock() }
    }

    /// Oldest version that can be read.
    pub fn reclaimed(&self) -> Version {
        Version(self.reclaimed.load(Ordering::Acquire))
    }

    /// Slot of a vertex, present or not.
    #[inline]
    pub fn slot(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        self.by_gui.find(gui.0, guard, |slot| self.nodes.get(slot).gui() == gui)
    }

    /// Asks for the index line of a vertex.
    #[inline]
    pub fn prefetch_index(&self, gui: Gui, guard: &Guard) {
        self.by_gui.prefetch(gui.0, guard);
    }

    /// Asks for the node that a vertex probably has, and answers its slot; the node has the last word.
    #[inline(always)]
    pub fn prefetch_node(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        let slot = self.by_gui.probable(gui.0, guard)?;
        self.nodes.prefetch(slot);
        Some(slot)
    }

    /// How many different values property keys have.
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

    /// Asks for what is read of a vertex.
    #[inline]
    pub fn prefetch_row(&self, slot: u32, want: properties::Want<'_>, guard: &Guard) {
        if let Some(place) = self.nodes.get(slot).row.get() {
            self.rows.prefetch(place, want, guard);
        }
    }

    /// One more than the highest vertex slot.
    pub fn end(&self) -> u32 {
        self.nodes.end()
    }

    pub fn rows(&self) -> &PageTable {
        &self.rows
    }

    fn edge_place(&self, sid: Sid, guard: &Guard) -> Option<properties::Place> {
        let is_of = |place| self.rows.is_of(Owner::Edge(sid), properties::Place(place), guard);
        self.by_sid.find(sid_hash(sid), guard, is_of).map(properties::Place)
    }

    /// Where the row of an edge is, unless hashes collide.
    pub fn probable_edge_place(&self, sid: Sid, guard: &Guard) -> Option<properties::Place> {
        self.by_sid.find(sid_hash(sid), guard, |_| true).map(properties::Place)
    }

    /// Asks for the index line of an edge record.
    #[inline]
    pub fn prefetch_edge_index(&self, sid: Sid, guard: &Guard) {
        self.by_sid.prefetch(sid_hash(sid), guard);
    }

    /// Asks for the row that an edge probably has.
    #[inline]
    pub fn prefetch_edge(&self, sid: Sid, want: properties::Want<'_>, guard: &Guard) {
        self.by_sid.find(sid_hash(sid), guard, |place| {
            self.rows.prefetch(properties::Place(place), want, guard);
            true
        });
    }

    /// Asks for the index line of a user-chosen edge id.
    #[inline]
    pub fn prefetch_edge_id(&self, hash: u64, guard: &Guard) {
        self.by_edge_id.prefetch(hash, guard);
    }

    /// Whether there may be an edge whose user-chosen id has this hash.
    #[inline]
    pub fn has_edge_id(&self, hash: u64, guard: &Guard) -> bool {
        self.by_edge_id.find(hash, guard, |slot| self.edge_ids.get(slot).get().hash == hash).is_some()
    }

    /// Candidates for a user-chosen edge id with this hash.
    pub fn edge_id_candidates(&self, hash: u64, out: &mut Vec<EdgeIdEntry>) {
        self.by_edge_id.find(hash, &pin(), |slot| {
            let entry = self.edge_ids.get(slot).get();
            if entry.hash == hash {
                out.push(entry);
            }
            false
        });
    }

    /// Adds up what the partition takes. Walks all of it: for people, not for each request.
    pub fn add_memory(&self, memory: &mut crate::Memory) {
        let book = self.book.lock();
        memory.indexes += self.by_gui.bytes() + self.by_sid.bytes() + self.by_edge_id.bytes();
        memory.edge_ids += self.edge_ids.bytes() + book.free_edge_ids.bytes();
        let guard = pin();
        let rows = book.keeper.bytes(Desk { table: &self.rows, guard: &guard });
        memory.vertices += self.nodes.bytes() + book.free_nodes.bytes() + rows.vertices;
        memory.edges += rows.edges;
        memory.properties += rows.properties;
        memory.ids += rows.ids;
        memory.labels += rows.sets;
        memory.adjacency += self.links.bytes();
        memory.adjacency_free += self.links.free_bytes();
        memory.indexes += self.distinct.bytes();
        memory.versions += book.touched.capacity() * size_of::<(Version, Touch)>() + rows.versions;
    }
}

impl Open<'_> {
    /// Slot of a vertex, present or not.
    fn slot(&self, gui: Gui) -> Option<u32> {
        self.partition.slot(gui, &pin())
    }

    /// Moves pages out of memory until so many bytes went, if as many can. Answers how many did.
    pub fn evict(&mut self, bytes: u64) -> u64 {
        let guard = pin();
        let (keeper, desk) = self.desk(&guard);
        keeper.evict(desk, bytes).bytes
    }

    /// Brings the page of a row into memory, to change the row; it stays while the partition is open. False if it cannot
    /// be read: then the store takes no more changes.
    fn bring(&self, place: properties::Place, guard: &Guard) -> bool {
        self.rows.bring_to_write(place.page(), guard).is_some()
    }

    /// The page table and its writer, to change it.
    fn desk<'g>(&'g mut self, guard: &'g Guard) -> (&'g mut Keeper, Desk<'g>) {
        (&mut self.book.keeper, Desk { table: &self.partition.rows, guard })
    }

    /// Slot of a vertex that is present now, and the place of its row.
    fn present_slot(&self, gui: Gui, guard: &Guard) -> Option<(u32, properties::Place)> {
        let slot = self.partition.slot(gui, guard)?;
        let place = self.nodes.get(slot).row.get()?;
        let desk = Desk { table: &self.rows, guard };
        self.book.keeper.is_present(desk, place).then_some((slot, place))
    }
}
