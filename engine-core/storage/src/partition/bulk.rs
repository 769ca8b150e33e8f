//! Loads: rows one after the other, links of many edges list by list.
//!
//! Links are collected as [`PendingLink`], then sorted by vertex, direction, label and SID, and each list is written
//! once. Until then no reader misses them, because their version is not published.

use super::common_labels::Noted;
use super::lists::ListNumber;
use super::reclaim::Touch;
use super::write::{Writer, distinct};
use super::{Open, Partition, PendingLinks, sid_hash};
use crate::adjacency::Link;
use crate::properties::RowOwner;
use crossbeam_epoch::{Guard, pin};
use smallvec::SmallVec;
use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Sid, Str, Token, Value};

/// A link that waits for the other links of its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingLink {
    /// Number of the list in the high half, label in the low half.
    place: u64,
    sid: Sid,
    neighbour: Gui,
}

/// Bytes that an entry takes in a list, at least.
const ENTRY_BYTES: usize = 12;
/// All lists are rewritten if the pending links add at least this fraction of all adjacency.
const REWRITE_FRACTION: usize = 16;
/// Number of lists after which replaced blocks are freed.
const WRITTEN_AT_ONCE: usize = 512;

impl PendingLink {
    /// Makes the link at an edge's source, whose slot is given.
    #[inline]
    pub fn out(slot: u32, edge: &Edge) -> Self {
        Self { place: Self::place(slot, false, edge.label), sid: edge.sid, neighbour: edge.target }
    }

    /// Makes the link at an edge's target, whose slot is given.
    #[inline]
    pub fn inward(slot: u32, edge: &Edge) -> Self {
        Self { place: Self::place(slot, true, edge.label), sid: edge.sid, neighbour: edge.source }
    }

    #[inline]
    fn place(slot: u32, inward: bool, label: Token) -> u64 {
        u64::from(ListNumber::new(slot, inward).0) << 32 | u64::from(label.0)
    }

    fn list(&self) -> ListNumber {
        ListNumber((self.place >> 32) as u32)
    }

    pub(super) fn link(&self) -> Link {
        Link { neighbour: self.neighbour, sid: self.sid, label: Token(self.place as u32) }
    }
}

impl Partition {
    /// Returns the slot of a vertex that exists in the newest version. For the writer, while no vertices are deleted.
    #[inline]
    pub fn present(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        let slot = self.slot(gui, guard)?;
        let place = self.nodes.get(slot).row.get()?;
        self.rows.has_now(place, guard).then_some(slot)
    }
}

impl Open<'_> {
    /// Creates a vertex or merges into an existing one, as `create_vertex` does. Returns true if it was created.
    pub fn load_vertex(
        &mut self,
        w: &mut Writer<'_>,
        gui: Gui,
        id: &Str,
        labels: &[Token],
        properties: &[PropertyWrite],
    ) -> bool {
        if self.slot(gui).is_some() {
            return self.create_vertex(w, gui, id, labels, properties);
        }
        let labels: SmallVec<[Token; 4]> = distinct(&[], labels);
        let writes = properties.iter().map(|write| (write.key, write.cardinality, &write.value));
        self.partition.distinct.note(properties.iter().map(|write| (write.key, &write.value)));
        let guard = pin();
        let (pages, view) = self.pages(&guard);
        let place = pages.load(view, w.version, RowOwner::Vertex(gui), Some(id), &labels, writes);
        self.insert_node(gui, place, w.version);
        self.touch_row(w, place);
        w.tally.vertices += 1;
        w.vertex_labels(&labels, 1);
        true
    }

    /// Adds the row of a new edge, if it has an id or properties.
    pub fn load_edge(
        &mut self,
        w: &mut Writer<'_>,
        sid: Sid,
        id: Option<&Str>,
        properties: &[(Token, Value)],
        guard: &Guard,
    ) {
        if id.is_none() && properties.is_empty() {
            return;
        }
        let writes = properties.iter().map(|(key, value)| (*key, Cardinality::Single, value));
        let (pages, view) = self.pages(guard);
        let place = pages.load(view, w.version, RowOwner::Edge(sid), id, &[], writes);
        self.partition.by_sid.insert(&mut self.state.permit, sid_hash(sid), place.0);
        self.touch_row(w, place);
    }

    /// Returns whether an edge has a row, present or not.
    pub fn has_edge_row(&self, sid: Sid, guard: &Guard) -> bool {
        self.edge_place(sid, guard).is_some()
    }

    /// Writes the lists of the pending links, each once, and clears the links.
    ///
    /// If the links are a large share of the adjacency, nearly every list is rewritten. Then all lists move into
    /// fresh segments in order of their numbers. The old segments have the same order and become free on the way, so
    /// a load of many rounds leaves no holes.
    pub fn load_links(&mut self, w: &Writer<'_>, pending: &mut PendingLinks) {
        let waiting = pending.as_mut_slice();
        waiting.sort_unstable_by_key(|waiting| (waiting.place, waiting.sid));
        let links = &self.partition.links;
        let most = waiting.len() * ENTRY_BYTES > links.block_bytes() / REWRITE_FRACTION;
        let rewrite_all = (most || links.is_sparse()) && !links.compacting();
        if rewrite_all {
            links.set_compacting(true);
        }
        let mut some_links: Vec<Link> = Vec::new();
        let (mut next, mut written, mut noted) = (0, 0, Noted::default());
        for some in waiting.chunk_by(|a, b| a.list() == b.list()) {
            let number = some[0].list();
            if rewrite_all {
                (next..number.0).for_each(|between| self.relocate_list(between, &mut written));
                next = number.0 + 1;
            }
            some_links.clear();
            some_links.extend(some.iter().map(PendingLink::link));
            for run in some_links.chunk_by(|a, b| a.label == b.label) {
                self.partition.note_side(number.slot(), (run[0].label, !number.is_inward()), &mut noted);
            }
            let oldest = self.partition.reclaimed();
            let list = self.partition.nodes.get(number.slot()).list(number.is_inward());
            links.build(&mut self.state.permit, list, &some_links, w.version, oldest);
            self.touch(w, Touch::Node(number.slot()));
            self.count_written(&mut written);
        }
        if rewrite_all {
            let end = ListNumber::end(self.partition.nodes.end());
            (next..end).for_each(|between| self.relocate_list(between, &mut written));
            links.set_compacting(false);
        }
        pending.clear();
    }

    /// Moves all lists together if rounds that wrote few lists left holes.
    pub fn close_holes(&mut self) {
        let links = &self.partition.links;
        if links.is_sparse() && !links.compacting() {
            links.set_compacting(true);
            let mut written = 0;
            let end = ListNumber::end(self.partition.nodes.end());
            (0..end).for_each(|list| self.relocate_list(list, &mut written));
            links.set_compacting(false);
        }
    }

    fn relocate_list(&mut self, number: u32, written: &mut usize) {
        if let Some(list) = self.partition.list(ListNumber(number))
            && !list.is_empty()
        {
            self.partition.links.relocate(&mut self.state.permit, list);
            self.count_written(written);
        }
    }

    /// Frees replaced blocks from time to time.
    fn count_written(&self, written: &mut usize) {
        *written += 1;
        if written.is_multiple_of(WRITTEN_AT_ONCE) {
            self.partition.links.collect();
        }
    }

    /// Returns the bytes of adjacency blocks.
    pub fn adjacency_bytes(&self) -> usize {
        self.partition.links.block_bytes()
    }
}
