//! One partition: its vertices, their out-edges with properties, bare copies of their in-edges, and the index of the
//! edge ids that hash here.
//!
//! Layout, and bytes in memory on a 64-bit machine:
//!
//! | what | bytes |
//! |---|---|
//! | vertex: node, one cache line (GUI, both adjacency lists, label set, state) | 64 |
//! | vertex: body (id, pointer to properties) | 32 |
//! | vertex: entry of the GUI index (8, at a load of 3/8 to 3/4) | 11–21 |
//! | vertex: membership of a label (bitmap) | 0.1–2 a label |
//! | edge: an entry at each end, inline for the first of a list | 0 or 24, twice |
//! | edge with an id or properties: record and index entry | 48 + 11–21 |
//! | edge id that the user chose: index entry | 24 + 11–21 |
//! | property value | 32, and 16 for each element that has any |
//! | string longer than 23 bytes | length + 16 |
//! | entry of a hub (more than 64 edges one way) | 24 + 11–21 |
//!
//! Roles: this file holds the records and finds them; `write` applies changes, `read` answers at a version,
//! `reclaim` drops what no version needs. The store guards a partition by a lock that readers hold for one batch and
//! the writer for one change or one piece of a load.
//!
//! What must never happen: a change that does not say when it may be forgotten (`touch`); a stamp that outlives the
//! settling of its record.

mod image;
mod read;
mod reclaim;
mod write;

pub(crate) use image::{Progress, cells_of, edge_cells_of};
pub(crate) use read::{Filter, Place, Want, pass_all};
pub(crate) use write::{Tally, Writer};

use crate::adjacency::Adjacency;
use crate::content::{self, Content, Histories, Seen};
use crate::labels::{LabelSets, Members};
use crate::scalar::Cell;
use crate::slab::Slab;
use crate::slot_index::SlotIndex;
use crate::stamps::Stamps;
use crate::turn::Turn;
use crossbeam_epoch::pin;
use reclaim::{Sweep, Touch};
use std::collections::VecDeque;
use thin_vec::ThinVec;
use tidegraph_types::{Gui, Sid, Str, Version};

/// What a traversal needs of a vertex: one cache line.
#[repr(align(64))]
pub(crate) struct Node {
    pub gui: Gui,
    pub out: Adjacency,
    pub inward: Adjacency,
    /// Number of the newest label set.
    pub labels: u32,
    /// See [`crate::content`].
    pub state: u32,
}

const _: () = assert!(size_of::<Node>() == 64);

/// The rest of a vertex, under the same slot.
#[derive(Default)]
pub(crate) struct Body {
    pub id: Option<Str>,
    pub cells: ThinVec<Cell>,
}

/// An edge that has an id or properties, or had some.
pub(crate) struct EdgeRecord {
    pub sid: Sid,
    pub state: u32,
    pub id: Option<Str>,
    pub cells: ThinVec<Cell>,
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
    bodies: Slab<Body>,
    histories: Histories,
    label_sets: LabelSets,
    members: Members,
    by_sid: SlotIndex,
    edges: Slab<EdgeRecord>,
    edge_histories: Histories,
    by_edge_id: SlotIndex,
    edge_ids: Slab<EdgeIdEntry>,
    stamps: Stamps,
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
            node.out.prefetch();
            node.inward.prefetch();
        }
    }

    #[inline]
    pub fn node(&self, slot: u32) -> &Node {
        self.nodes.get(slot)
    }

    #[inline]
    pub fn prefetch_body(&self, slot: u32) {
        self.bodies.prefetch(slot);
    }

    #[inline]
    pub fn prefetch_cells(&self, slot: u32) {
        crate::prefetch::address(self.bodies.get(slot).cells.as_ptr());
    }

    /// One more than the highest vertex slot.
    pub fn end(&self) -> u32 {
        self.nodes.end()
    }

    pub fn label_sets(&self) -> &LabelSets {
        &self.label_sets
    }

    pub fn members(&self) -> &Members {
        &self.members
    }

    fn edge_slot(&self, sid: Sid) -> Option<u32> {
        self.by_sid.find(sid_hash(sid), &pin(), |slot| self.edges.get(slot).sid == sid)
    }

    /// Asks for the index line of an edge record.
    #[inline]
    pub fn prefetch_edge_index(&self, sid: Sid) {
        self.by_sid.prefetch(sid_hash(sid), &pin());
    }

    /// Asks for the record that an edge probably has.
    #[inline]
    pub fn prefetch_edge(&self, sid: Sid) {
        self.by_sid.find(sid_hash(sid), &pin(), |slot| {
            self.edges.prefetch(slot);
            true
        });
    }

    fn see_vertex(&self, slot: u32, at: Version) -> Seen {
        let node = self.nodes.get(slot);
        content::see(node.state, slot, &self.histories, &self.stamps, at, || {
            let body = self.bodies.get(slot);
            Content { id: body.id.clone(), cells: body.cells.clone(), labels: node.labels }
        })
    }

    fn see_edge(&self, slot: u32, at: Version) -> Seen {
        let record = self.edges.get(slot);
        content::see(record.state, slot, &self.edge_histories, &self.stamps, at, || Content {
            id: record.id.clone(),
            cells: record.cells.clone(),
            labels: 0,
        })
    }

    /// Whether the newest content of a vertex is present.
    fn present(&self, slot: u32) -> bool {
        content::present(self.nodes.get(slot).state, slot, &self.histories)
    }

    /// Slot of a vertex that is present now.
    fn present_slot(&self, gui: Gui) -> Option<u32> {
        self.slot(gui).filter(|&slot| self.present(slot))
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
        memory.vertices += self.nodes.bytes() + self.bodies.bytes();
        memory.edges += self.edges.bytes();
        memory.edge_ids += self.edge_ids.bytes();
        memory.labels += self.label_sets.bytes() + self.members.bytes();
        for slot in 0..self.nodes.end() {
            let (node, body) = (self.nodes.get(slot), self.bodies.get(slot));
            memory.adjacency += node.out.bytes() + node.inward.bytes();
            memory.properties += content::cells_bytes(&body.cells);
            memory.ids += body.id.as_ref().map_or(0, heap_bytes);
        }
        for slot in 0..self.edges.end() {
            let record = self.edges.get(slot);
            memory.properties += content::cells_bytes(&record.cells);
            memory.ids += record.id.as_ref().map_or(0, heap_bytes);
        }
        memory.versions += self.stamps.bytes()
            + self.touched.capacity() * size_of::<(Version, Touch)>()
            + self
                .histories
                .values()
                .chain(self.edge_histories.values())
                .map(|history| 64 + history.bytes())
                .sum::<usize>();
    }
}

fn heap_bytes(text: &Str) -> usize {
    if text.is_heap_allocated() { text.len() + 16 } else { 0 }
}
