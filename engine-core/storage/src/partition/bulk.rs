//! Loads: rows one after the other, links of many edges list by list.
//!
//! Links wait as [`Waiting`] until there are many; then they are sorted by vertex, direction, label and SID, and each
//! list is written once. Until then nobody sees them: their version is not published.

use super::reclaim::Touch;
use super::write::{Writer, distinct};
use super::{Open, sid_hash};
use crate::adjacency::Link;
use crate::properties::Owner;
use crossbeam_epoch::{Guard, pin};
use smallvec::SmallVec;
use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Sid, Str, Token, Value};

/// A link that waits for the others of its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Slot of the vertex, whether it is the target, and the label.
    place: u64,
    sid: Sid,
    neighbour: Gui,
}

const INWARD: u64 = 1 << 32;

impl Waiting {
    /// The copy at an edge's source, which has this slot.
    #[inline]
    pub fn out(slot: u32, edge: &Edge) -> Self {
        Self { place: u64::from(slot) << 33 | u64::from(edge.label.0), sid: edge.sid, neighbour: edge.target }
    }

    /// The copy at an edge's target, which has this slot.
    #[inline]
    pub fn inward(slot: u32, edge: &Edge) -> Self {
        let place = u64::from(slot) << 33 | INWARD | u64::from(edge.label.0);
        Self { place, sid: edge.sid, neighbour: edge.source }
    }

    /// Number of the list.
    fn list(&self) -> u32 {
        (self.place >> 32) as u32
    }

    fn link(&self) -> Link {
        Link { neighbour: self.neighbour, sid: self.sid, label: Token(self.place as u32) }
    }
}

impl Open<'_> {
    /// Slot of a vertex that is present now.
    #[inline]
    pub fn present(&self, gui: Gui, guard: &Guard) -> Option<u32> {
        self.present_slot(gui, guard).map(|(slot, _)| slot)
    }

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
    pub fn load_links(&mut self, w: &Writer<'_>, waiting: &mut Vec<Waiting>) {
        waiting.sort_unstable_by_key(|waiting| (waiting.place, waiting.sid));
        let mut links: Vec<Link> = Vec::new();
        for some in waiting.chunk_by(|a, b| a.list() == b.list()) {
            let list = some[0].list();
            let slot = list >> 1;
            let node = self.partition.nodes.get(slot);
            let list = if list & 1 == 0 { &node.out } else { &node.inward };
            links.clear();
            links.extend(some.iter().map(Waiting::link));
            let oldest = self.partition.reclaimed();
            self.partition.links.build(&mut self.book.turn, list, &links, w.version, oldest);
            self.touch(w, Touch::Node(slot));
        }
        waiting.clear();
    }

    /// Bytes of the blocks of adjacency.
    pub fn adjacency_bytes(&self) -> usize {
        self.partition.links.block_bytes()
    }
}
