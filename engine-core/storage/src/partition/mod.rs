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
//! | string longer than 12 bytes | length, above 23 bytes 16 more |
//!
//! Roles: this file holds the records and finds them; `write` applies changes, `read` answers at a version,
//! `reclaim` drops what no version needs. The store guards a partition by a lock that readers hold for one batch and
//! the writer for one change or one piece of a load.
//!
//! What must never happen: a change that does not say when it may be forgotten (`touch`).

mod image;
mod read;
mod reclaim;
mod write;

pub(crate) use image::{Progress, content_of, edge_content_of};
pub(crate) use read::{Filter, Place, Want};
pub(crate) use write::{Tally, Writer};

use crate::adjacency::{Links, List};
use crate::properties::{self, Desk, Keeper, Owner, PageTable};
use crate::slab::Slab;
use crate::slot_index::SlotIndex;
use crate::turn::Turn;
use crossbeam_epoch::{Guard, pin};
use reclaim::{Sweep, Touch};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::{Gui, Sid, Version};

/// What a traversal needs of a vertex: one cache line.
#[repr(align(64))]
pub(crate) struct Node {
    pub gui: Gui,
    pub out: List,
    pub inward: List,
    /// Place of the newest row.
    pub row: RowRef,
}

const _: () = assert!(size_of::<Node>() == 64);

/// Where a vertex's row is: nothing, a place and one, or a mark that the node itself is free.
pub(crate) struct RowRef(AtomicU64);

impl RowRef {
    const FREE: u64 = u64::MAX;

    pub fn none() -> Self {
        Self(AtomicU64::new(0))
    }

    fn free() -> Self {
        Self(AtomicU64::new(Self::FREE))
    }

    #[inline]
    pub fn get(&self) -> Option<properties::Place> {
        match self.0.load(Ordering::Acquire) {
            0 | Self::FREE => None,
            place => Some(properties::Place((place - 1) as u32)),
        }
    }

    fn set(&self, place: Option<properties::Place>) {
        self.0.store(place.map_or(0, |place| u64::from(place.0) + 1), Ordering::Release);
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

/// See the module.
#[derive(Default)]
pub(crate) struct Partition {
    turn: Turn,
    by_gui: SlotIndex,
    nodes: Slab<Node>,
    /// Rows of vertices, and of edges that have ids or properties.
    rows: PageTable,
    keeper: Keeper,
    /// Places of the rows of edges.
    by_sid: SlotIndex,
    by_edge_id: SlotIndex,
    edge_ids: Slab<EdgeIdEntry>,
    links: Links,
    touched: VecDeque<(Version, Touch)>,
    sweep: Option<Sweep>,
    /// Version of the newest load and how many notes it left so far; none once a sweep stands for them.
    load_notes: (Version, Option<u32>),
    /// Versions below this one can no longer be read here.
    reclaimed: Version,
}

fn sid_hash(sid: Sid) -> u64 {
    sid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Partition {
    /// Oldest version that can be read.
    pub fn reclaimed(&self) -> Version {
        self.reclaimed
    }

    /// Slot of a vertex, present or not.
    #[inline]
    pub fn slot(&self, gui: Gui) -> Option<u32> {
        self.by_gui.find(gui.0, &pin(), |slot| self.nodes.get(slot).gui == gui)
    }

    /// Asks for the index line of a vertex.
    #[inline]
    pub fn prefetch_index(&self, gui: Gui) {
        self.by_gui.prefetch(gui.0, &pin());
    }

    /// Asks for the node that a vertex probably has.
    #[inline]
    pub fn prefetch_node(&self, gui: Gui) {
        self.by_gui.find(gui.0, &pin(), |slot| {
            self.nodes.prefetch(slot);
            true
        });
    }

    /// Asks for the adjacency of a vertex whose node is there already.
    #[inline]
    pub fn prefetch_adjacency(&self, gui: Gui) {
        if let Some(slot) = self.slot(gui) {
            let node = self.nodes.get(slot);
            self.links.prefetch(&node.out);
            self.links.prefetch(&node.inward);
        }
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

    /// Asks for the index line of an edge record.
    #[inline]
    pub fn prefetch_edge_index(&self, sid: Sid) {
        self.by_sid.prefetch(sid_hash(sid), &pin());
    }

    /// Asks for the row that an edge probably has.
    #[inline]
    pub fn prefetch_edge(&self, sid: Sid, want: properties::Want<'_>, guard: &Guard) {
        self.by_sid.find(sid_hash(sid), guard, |place| {
            self.rows.prefetch(properties::Place(place), want, guard);
            true
        });
    }

    /// The page table and its writer, to change it.
    fn desk<'g>(&'g mut self, guard: &'g Guard) -> (&'g mut Keeper, Desk<'g>) {
        (&mut self.keeper, Desk { table: &self.rows, guard })
    }

    /// Slot of a vertex that is present now, and the place of its row.
    fn present_slot(&self, gui: Gui, guard: &Guard) -> Option<(u32, properties::Place)> {
        let slot = self.slot(gui)?;
        let place = self.nodes.get(slot).row.get()?;
        let desk = Desk { table: &self.rows, guard };
        self.keeper.is_present(desk, place).then_some((slot, place))
    }

    /// Candidates for a user-chosen edge id with this hash.
    pub fn edge_id_candidates(&self, hash: u64, out: &mut Vec<EdgeIdEntry>) {
        self.by_edge_id.find(hash, &pin(), |slot| {
            let entry = self.edge_ids.get(slot);
            if entry.hash == hash {
                out.push(*entry);
            }
            false
        });
    }

    /// Adds up what the partition takes. Walks all of it: for people, not for each request.
    pub fn add_memory(&self, memory: &mut crate::Memory) {
        memory.indexes += self.by_gui.bytes() + self.by_sid.bytes() + self.by_edge_id.bytes();
        memory.edge_ids += self.edge_ids.bytes();
        let guard = pin();
        let rows = self.keeper.bytes(Desk { table: &self.rows, guard: &guard });
        memory.vertices += self.nodes.bytes() + rows.vertices;
        memory.edges += rows.edges;
        memory.properties += rows.properties;
        memory.ids += rows.ids;
        memory.labels += rows.sets;
        memory.adjacency += self.links.bytes();
        memory.versions += self.touched.capacity() * size_of::<(Version, Touch)>() + rows.versions;
    }
}
