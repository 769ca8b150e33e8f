//! Loads: rows one after the other, links of many edges list by list.
//!
//! Links wait as [`Waiting`] until there are many; then they are sorted by vertex, direction, label and SID, and each
//! list is written once. Until then nobody sees them: their version is not published.

use super::lists::ListNumber;
use super::reclaim::Touch;
use super::write::{Writer, distinct};
use super::{Open, Partition, Waits, sid_hash};
use crate::adjacency::Link;
use crate::properties::Owner;
use crossbeam_epoch::{Guard, pin};
use smallvec::SmallVec;
use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Sid, Str, Token, Value};

/// A link that waits for the others of its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Number of the list, and the label.
    place: u64,
    sid: Sid,
    neighbour: Gui,
}

/// Bytes that an entry takes in a list, at least.
const ENTRY_BYTES: usize = 12;
/// Lists are all written anew if those that wait add this part of what all take.
const ANEW_PART: usize = 16;
/// After so many lists what was replaced is let go.
const WRITTEN_AT_ONCE: usize = 512;

impl Waiting {
    /// The copy at an edge's source, which has this slot.
    #[inline]
    pub fn out(slot: u32, edge: &Edge) -> Self {
        Self { place: Self::place(slot, false, edge.label), sid: edge.sid, neighbour: edge.target }
    }

    /// The copy at an edge's target, which has this slot.
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
    /// Slot of a vertex that is present in the newest version. For who writes, and knows that nobody deletes meanwhile.
    #[inline]
    pub fn present(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        let slot = self.slot(gui, guard)?;
        let place = self.nodes.get(slot).row.get()?;
        self.rows.has_now(place, guard).then_some(slot)
    }
}

impl Open<'_> {
    /// Makes a vertex or merges into the one that is there, as `create_vertex` does; true if it was made.
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
        let (keeper, desk) = self.desk(&guard);
        let place = keeper.load(desk, w.version, Owner::Vertex(gui), Some(id), &labels, writes);
        self.insert_node(gui, place, w.version);
        self.touch_row(w, place);
        w.tally.vertices += 1;
        w.vertex_labels(&labels, 1);
        true
    }

    /// Adds what a new edge holds, if it holds anything.
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
        let (keeper, desk) = self.desk(guard);
        let place = keeper.load(desk, w.version, Owner::Edge(sid), id, &[], writes);
        self.partition.by_sid.insert(&mut self.book.turn, sid_hash(sid), place.0);
        self.touch_row(w, place);
    }

    /// Whether an edge has a row of its own, present or not.
    pub fn has_edge_row(&self, sid: Sid, guard: &Guard) -> bool {
        self.edge_place(sid, guard).is_some()
    }

    /// Writes the lists that links wait for, each once, and forgets the links.
    ///
    /// Where they are a good part of all there will be, nearly every list is written anew. Then all lists go into fresh
    /// segments in order of their numbers, and the old segments, which are in that order too, become free on the way. So
    /// a load of many rounds leaves no holes.
    pub fn load_links(&mut self, w: &Writer<'_>, waits: &mut Waits) {
        let waiting = waits.as_mut_slice();
        waiting.sort_unstable_by_key(|waiting| (waiting.place, waiting.sid));
        let links = &self.partition.links;
        let most = waiting.len() * ENTRY_BYTES > links.block_bytes() / ANEW_PART;
        let all_anew = (most || links.is_sparse()) && !links.compacting();
        if all_anew {
            links.set_compacting(true);
        }
        let mut some_links: Vec<Link> = Vec::new();
        let (mut next, mut written) = (0, 0);
        for some in waiting.chunk_by(|a, b| a.list() == b.list()) {
            let number = some[0].list();
            if all_anew {
                (next..number.0).for_each(|between| self.relocate_list(between, &mut written));
                next = number.0 + 1;
            }
            some_links.clear();
            some_links.extend(some.iter().map(Waiting::link));
            let oldest = self.partition.reclaimed();
            let list = self.partition.nodes.get(number.slot()).list(number.is_inward());
            links.build(&mut self.book.turn, list, &some_links, w.version, oldest);
            self.touch(w, Touch::Node(number.slot()));
            self.count_written(&mut written);
        }
        if all_anew {
            let end = ListNumber::end(self.partition.nodes.end());
            (next..end).for_each(|between| self.relocate_list(between, &mut written));
            links.set_compacting(false);
        }
        waits.clear();
    }

    /// Moves all lists together if rounds that wrote few of them left holes.
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
            self.partition.links.relocate(&mut self.book.turn, list);
            self.count_written(written);
        }
    }

    /// Lets go of old blocks from time to time.
    fn count_written(&self, written: &mut usize) {
        *written += 1;
        if written.is_multiple_of(WRITTEN_AT_ONCE) {
            self.partition.links.collect();
        }
    }

    /// Bytes of the blocks of adjacency.
    pub fn adjacency_bytes(&self) -> usize {
        self.partition.links.block_bytes()
    }
}
