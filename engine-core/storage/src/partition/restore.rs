//! Rebuilds a partition from the records of a checkpoint. Nothing in them is trusted.
//!
//! A partition can also be rebuilt from the checkpoint of a larger one, of whose vertices it has some ([`Excerpt`]).
//! Rows and slots then get new places, so that the partition has no holes.
//!
//! Flow: pages first, then the vertices, which name rows of those pages, then edge ids; each kind in
//! order of its slots. The index of vertices is filled with the vertices, that of edges at the end. No
//! reader uses the partition meanwhile. [`crate::checkpoint::format`] defines the bytes of a checkpoint.
//!
//! What must never happen: a panic, or an invalid address, because of what a checkpoint says.

use super::common_labels::Noted;
use super::{EdgeIdEntry, Open, Tally, sid_hash};
use crate::Scope;
use crate::adjacency::{LARGEST_SID, Link};
use crate::error::Cause;
use crate::properties::{RowOwner, RowPlace};
use crate::store::Generation;
use crossbeam_epoch::{Guard, pin};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::Ordering;
use tidegraph_types::{Gui, Sid, Version};

/// What is wrong with a chunk, and where in it.
#[derive(Debug)]
pub(crate) struct Misread {
    /// Offset in the chunk, in bytes.
    pub at: usize,
    pub reason: Cause,
}

/// Totals of a rebuilt partition.
#[derive(Default)]
pub(crate) struct Rebuilt {
    pub tally: Tally,
    /// Sum of [`mark`] over the out-edges whose other end is in the store too.
    pub left: u64,
    /// The same sum over the in-edges. STO-2: over all partitions both sums are equal.
    pub arrived: u64,
    /// Numbers of vertices and of edges of the larger partition that do not belong here.
    pub left_out: (u64, u64),
}

/// The records that a rebuild takes from the checkpoint of a larger partition.
pub(crate) struct Excerpt {
    /// The larger partition.
    of: Scope,
    /// Edges that begin at vertices of the excerpt: their rows come before the vertices.
    edges: FxHashSet<Sid>,
    /// New places of rows of vertices.
    places: FxHashMap<RowPlace, RowPlace>,
    next_slot: u32,
    next_edge_id: u32,
}

impl Excerpt {
    /// Makes an excerpt of a partition; `edges` are the edges that begin at vertices of the excerpt.
    pub fn new(of: Scope, edges: FxHashSet<Sid>) -> Self {
        Self { of, edges, places: FxHashMap::default(), next_slot: 0, next_edge_id: 0 }
    }
}

/// Fills one empty partition of a store.
pub(crate) struct Rebuild<'p> {
    store: &'p Generation,
    number: usize,
    partition: Open<'p>,
    rebuilt: Rebuilt,
    vertex_rows: usize,
    /// Lists in of the current group, one after the other.
    inward: Vec<Link>,
    /// Slot of each of these lists, and its end.
    inward_ends: Vec<(u32, usize)>,
    noted: Noted,
    /// `None`: the checkpoint is that of the partition itself.
    excerpt: Option<Excerpt>,
}

/// Mixes an edge into a number, for sums that compare two sets of edges.
fn mark(source: Gui, target: Gui, link: &Link) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (source.0 ^ target.0.rotate_left(29)).wrapping_mul(ODD)
        ^ (link.sid.0 ^ u64::from(link.label.0) << 40).wrapping_mul(ODD.rotate_left(17));
    (mixed ^ mixed >> 32).wrapping_mul(ODD)
}

impl<'p> Rebuild<'p> {
    /// Opens partition `number` of an empty store until the rebuild ends.
    pub fn new(store: &'p Generation, number: usize, excerpt: Option<Excerpt>) -> Self {
        Self {
            store,
            number,
            partition: store.partitions()[number].open(),
            rebuilt: Rebuilt::default(),
            vertex_rows: 0,
            inward: Vec::new(),
            inward_ends: Vec::new(),
            noted: Noted::default(),
            excerpt,
        }
    }

    /// Makes room in the indexes. The numbers must not exceed what the chunks can hold.
    pub fn reserve(&mut self, vertices: usize, edge_ids: usize) {
        let Open { partition, state } = &mut self.partition;
        partition.by_gui.reserve(&mut state.permit, vertices);
        partition.by_edge_id.reserve(&mut state.permit, edge_ids);
    }

    /// Evicts pages if they exceed the budget.
    pub fn make_room(&mut self) {
        self.store.make_room_after_recount_in(&mut self.partition);
    }

    /// Takes over a page of properties.
    pub fn page(&mut self, number: u32, bytes: &[u8]) -> Result<(), Misread> {
        if self.excerpt.is_some() {
            return self.page_of_larger(number, bytes);
        }
        let guard = pin();
        let (pages, view) = self.partition.pages(&guard);
        let adopted = pages.adopt(view, number, bytes);
        let adopted = adopted.map_err(|error| Misread { at: error.offset(), reason: error.into() })?;
        if adopted.vertices {
            self.vertex_rows += adopted.rows;
            for label in adopted.labels {
                *self.rebuilt.tally.vertices_by_label.entry(*label).or_default() += adopted.rows as i64;
            }
            let rows = adopted.rows as u64;
            let partition = self.partition.partition;
            partition.distinct.adopt(&partition.rows, number, rows, &guard);
        }
        Ok(())
    }

    /// Takes the rows of a page that belong to the excerpt.
    fn page_of_larger(&mut self, number: u32, bytes: &[u8]) -> Result<(), Misread> {
        let Some(Excerpt { edges, places, .. }) = &mut self.excerpt else { return Ok(()) };
        let guard = pin();
        let (tally, rows, store) = (&mut self.rebuilt.tally, &mut self.vertex_rows, self.store);
        let partition = self.partition.partition;
        let distinct = &partition.distinct;
        let takes = |owner| match owner {
            RowOwner::Vertex(gui) => store.holds(gui),
            RowOwner::Edge(sid) => edges.contains(&sid),
        };
        let (pages, view) = self.partition.pages(&guard);
        let adopted = pages.adopt_some(view, bytes, takes, |taken| {
            if let RowOwner::Vertex(_) = taken.owner {
                *rows += 1;
                places.insert(RowPlace::new(number, taken.row), taken.place);
                for label in taken.labels {
                    *tally.vertices_by_label.entry(*label).or_default() += 1;
                }
                let values = taken.single_values();
                distinct.note(values.iter().map(|(key, value)| (*key, value)));
            }
        });
        adopted.map_err(|error| Misread { at: error.offset(), reason: error.into() })
    }

    /// Prefetches the index line of a vertex that will be added.
    pub fn prefetch(&self, gui: Gui, guard: &Guard) {
        self.partition.prefetch_index(gui, guard);
    }

    /// Adds a vertex without edges. Returns its slot, or `None` if it does not belong to the excerpt. Fails if there can
    /// be no such vertex.
    pub fn vertex(
        &mut self,
        slot: u32,
        gui: Gui,
        place: RowPlace,
        guard: &Guard,
    ) -> Result<Option<u32>, String> {
        let (slot, place) = match &mut self.excerpt {
            Some(excerpt) if excerpt.of.holds(gui) && !self.store.holds(gui) => {
                self.rebuilt.left_out.0 += 1;
                return Ok(None);
            }
            Some(excerpt) => {
                let Some(place) = excerpt.places.get(&place) else {
                    return Err(format!("the row of {gui} is not at its place"));
                };
                excerpt.next_slot += 1;
                (excerpt.next_slot - 1, *place)
            }
            None => (slot, place),
        };
        if !self.belongs_here(gui) {
            return Err(format!("{gui} belongs to another partition"));
        }
        if !self.partition.rows.holds(RowOwner::Vertex(gui), place, guard) {
            return Err(format!("the row of {gui} is not at its place"));
        }
        if self.partition.partition.slot(gui, guard).is_some() {
            return Err(format!("vertex {gui} occurs twice"));
        }
        let Open { partition, state } = &mut self.partition;
        if !partition.nodes.claim(slot, &mut state.free_nodes) {
            return Err(format!("there is no room for slot {slot}"));
        }
        let node = partition.nodes.get(slot);
        node.gui.store(gui.0, Ordering::Relaxed);
        node.row.set(Some(place));
        partition.by_gui.insert(&mut state.permit, gui.0, slot);
        self.rebuilt.tally.vertices += 1;
        Ok(Some(slot))
    }

    /// Leaves out the out-edges of a vertex that does not belong to the excerpt.
    pub fn leave_out(&mut self, out_edges: usize) {
        self.rebuilt.left_out.1 += out_edges as u64;
    }

    /// Gives a vertex that was just added its out-edges, in order of label and SID.
    pub fn out_edges(&mut self, slot: u32, gui: Gui, links: &[Link]) {
        for link in links.iter().filter(|link| self.store.holds(link.neighbour)) {
            self.rebuilt.left = self.rebuilt.left.wrapping_add(mark(gui, link.neighbour, link));
        }
        for run in links.chunk_by(|a, b| a.label == b.label) {
            *self.rebuilt.tally.edges_by_label.entry(run[0].label).or_default() += run.len() as i64;
            self.partition.note_side(slot, (run[0].label, true), &mut self.noted);
        }
        self.rebuilt.tally.edges += links.len() as i64;
        let Open { partition, state } = &mut self.partition;
        let (list, oldest) = (&partition.nodes.get(slot).out, partition.reclaimed());
        partition.links.build(&mut state.permit, list, links, Version(0), oldest);
    }

    /// Collects the in-edges of a vertex, in order of label and SID; [`Self::end_of_nodes`] writes them.
    pub fn in_edges(&mut self, slot: u32, gui: Gui, links: &[Link]) {
        for link in links.iter().filter(|link| self.store.holds(link.neighbour)) {
            self.rebuilt.arrived = self.rebuilt.arrived.wrapping_add(mark(link.neighbour, gui, link));
        }
        for run in links.chunk_by(|a, b| a.label == b.label) {
            self.partition.note_side(slot, (run[0].label, false), &mut self.noted);
        }
        self.inward.extend_from_slice(links);
        self.inward_ends.push((slot, self.inward.len()));
    }

    /// Writes the lists in of a group behind its lists out, in the order of [`super::lists`].
    pub fn end_of_nodes(&mut self) {
        let Open { partition, state } = &mut self.partition;
        let (oldest, mut start) = (partition.reclaimed(), 0);
        for (slot, end) in self.inward_ends.drain(..) {
            let list = &partition.nodes.get(slot).inward;
            partition.links.build(&mut state.permit, list, &self.inward[start..end], Version(0), oldest);
            start = end;
        }
        self.inward.clear();
    }

    /// Adds an edge id, or returns why there can be no such id.
    pub fn edge_id(&mut self, slot: u32, entry: EdgeIdEntry) -> Result<(), String> {
        let EdgeIdEntry { hash, sid, .. } = entry;
        let slot = match &mut self.excerpt {
            Some(excerpt) if excerpt.of.holds(Gui(hash)) && !self.store.holds(Gui(hash)) => return Ok(()),
            Some(excerpt) => {
                excerpt.next_edge_id += 1;
                excerpt.next_edge_id - 1
            }
            None => slot,
        };
        if !self.belongs_here(Gui(hash)) || sid == Sid(0) || sid > LARGEST_SID {
            return Err(format!(
                "the edge id of {sid} belongs to another partition, or its SID is out of range"
            ));
        }
        let Open { partition, state } = &mut self.partition;
        if !partition.edge_ids.claim(slot, &mut state.free_edge_ids) {
            return Err(format!("there is no room for slot {slot}"));
        }
        partition.edge_ids.get(slot).set(entry);
        partition.by_edge_id.insert(&mut state.permit, hash, slot);
        Ok(())
    }

    fn belongs_here(&self, hash: Gui) -> bool {
        usize::from(self.store.config().partitions.of(hash).0) == self.number && self.store.holds(hash)
    }

    /// Fills the index of edges and returns the totals, or says that rows and vertices differ in number.
    pub fn finish(self) -> Result<Rebuilt, String> {
        let vertices = self.rebuilt.tally.vertices;
        if self.vertex_rows as i64 != vertices {
            return Err(format!("there are {} rows for {vertices} vertices", self.vertex_rows));
        }
        let guard = pin();
        let Open { partition, mut state } = self.partition;
        let mut edges = 0;
        partition.rows.for_each_edge(&guard, |_, _| edges += 1);
        partition.by_sid.reserve(&mut state.permit, edges);
        partition.rows.for_each_edge(&guard, |sid, place| {
            partition.by_sid.insert(&mut state.permit, sid_hash(Sid(sid)), place.0);
        });
        Ok(self.rebuilt)
    }
}
