//! Reads one partition at a version. The caller checks the version before and after, and holds an epoch guard.

use super::Partition;
use super::columns::{append_few, append_one, append_rows};
use crate::adjacency::{Each, FastRead, Labels, Run, Sink};
use crate::properties::{self, PlainRow, Row, RowOwner};
use crossbeam_epoch::{Guard, pin};
use tidegraph_apl::Expansion;
use tidegraph_types::{Cardinality, Direction, Edge, Gui, Sid, Token, Value, Version};

/// Number of times that a row may have moved during a look-up. Once or twice happens; more happens only to a reader
/// whose version was reclaimed.
const MOST_RETRIES: usize = 100;

/// The edge labels to follow.
#[derive(Clone, Copy)]
pub(crate) enum Filter<'r> {
    Any,
    One(Token),
    Several(&'r [Token]),
}

impl<'r> Filter<'r> {
    pub fn of(labels: Option<&'r [Token]>) -> Self {
        match labels {
            None => Self::Any,
            Some([one]) => Self::One(*one),
            Some(several) => Self::Several(several),
        }
    }

    pub(super) fn labels(&self) -> Labels<'_> {
        match self {
            Self::Any => Labels::All,
            Self::One(one) => Labels::These(std::slice::from_ref(one)),
            Self::Several(labels) => Labels::These(labels),
        }
    }
}

/// Where to continue with the edges of a vertex: the direction, and the number of the last chunk read of its hub (0:
/// the start).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct EdgePosition {
    pub inward: bool,
    pub after: u32,
}

impl EdgePosition {
    pub fn from_offset(offset: u64) -> Self {
        Self { inward: offset >> 32 != 0, after: offset as u32 }
    }

    pub fn to_offset(self) -> u64 {
        u64::from(self.inward) << 32 | u64::from(self.after)
    }
}

/// The request of an expansion, the same for the whole frontier.
pub(crate) struct ExpandRequest<'r> {
    pub direction: Direction,
    pub filter: Filter<'r>,
    pub loops_once: bool,
    pub at: Version,
    /// Length of the answer at which a hub stops.
    pub limit: usize,
    /// Whether the columns of the edges themselves stay empty.
    pub neighbours_only: bool,
}

impl ExpandRequest<'_> {
    /// Returns the neighbour whose edges are skipped in the list in because the list out already answered them: the
    /// vertex itself.
    pub(super) fn skipped(&self, owner: Gui) -> Option<u64> {
        (self.loops_once && self.direction == Direction::Both).then_some(owner.0)
    }

    /// Returns whether out-edges and in-edges are requested.
    pub(super) fn sides(&self) -> (bool, bool) {
        (self.direction != Direction::In, self.direction != Direction::Out)
    }
}

/// Appends entries to the columns of an expansion: all columns, or those of neighbours only.
struct Rows<'o, const ALL: bool> {
    out: &'o mut Expansion,
    row: u32,
    outgoing: bool,
    skipped: Option<u64>,
    limit: usize,
}

impl<const ALL: bool> Sink for Rows<'_, ALL> {
    #[inline]
    fn take(&mut self, run: Run<'_>) {
        let out = &mut *self.out;
        if let Some(skipped) = self.skipped {
            for link in run.links().filter(|link| link.neighbour.0 != skipped) {
                out.row.push(self.row);
                out.neighbour.push(link.neighbour);
                if ALL {
                    out.sid.push(link.sid);
                    out.label.push(link.label);
                    out.outgoing.push(self.outgoing);
                }
            }
            return;
        }
        append_rows::<ALL>(out, run, self.row, self.outgoing);
    }

    fn len(&self) -> usize {
        self.out.len()
    }

    fn full(&self) -> bool {
        self.out.len() >= self.limit
    }
}

impl Partition {
    /// Appends the edges of a vertex. Stops inside a hub, behind a chunk, when the answer has reached its limit.
    /// Returns where to continue.
    #[inline]
    pub fn expand(
        &self,
        slot: u32,
        row: u32,
        want: &ExpandRequest<'_>,
        from: EdgePosition,
        guard: &Guard,
        out: &mut Expansion,
    ) -> Option<EdgePosition> {
        if want.neighbours_only {
            self.expand_columns::<false>(slot, row, want, from, guard, out)
        } else {
            self.expand_columns::<true>(slot, row, want, from, guard, out)
        }
    }

    #[inline]
    fn expand_columns<const ALL: bool>(
        &self,
        slot: u32,
        row: u32,
        want: &ExpandRequest<'_>,
        from: EdgePosition,
        guard: &Guard,
        out: &mut Expansion,
    ) -> Option<EdgePosition> {
        let node = self.node(slot);
        let labels = want.filter.labels();
        if want.direction != Direction::In && !from.inward {
            // Most lists are one run of one label that every version sees.
            match self.links.fast_read::<ALL>(&node.out, want.at, guard) {
                FastRead::Nothing => {}
                FastRead::One(link) => {
                    if labels.pass(link.label) {
                        append_one::<ALL>(out, link, row, true);
                    }
                }
                FastRead::Few(few) => {
                    if labels.pass(few.label) {
                        append_few::<ALL>(out, &few, row, true);
                    }
                }
                FastRead::Run(run) => {
                    if labels.pass(run.label) {
                        append_rows::<ALL>(out, run, row, true);
                    }
                }
                FastRead::More => {
                    let mut rows = Rows::<ALL> { out, row, outgoing: true, skipped: None, limit: want.limit };
                    let read = self.links.read(&node.out, want.at, labels, from.after, guard, &mut rows);
                    if let Some(after) = read {
                        return Some(EdgePosition { inward: false, after });
                    }
                }
            }
        }
        if want.direction != Direction::Out {
            let after = if from.inward { from.after } else { 0 };
            let skipped = want.skipped(node.gui());
            let mut rows = Rows::<ALL> { out, row, outgoing: false, skipped, limit: want.limit };
            if let Some(after) = self.links.read(&node.inward, want.at, labels, after, guard, &mut rows) {
                return Some(EdgePosition { inward: true, after });
            }
        }
        None
    }

    /// Returns the number of edges that `expand` would append.
    pub fn degree(&self, slot: u32, want: &ExpandRequest<'_>, guard: &Guard) -> u64 {
        let node = self.node(slot);
        let labels = want.filter.labels();
        let mut count = 0;
        if want.direction != Direction::In {
            count += self.links.degree(&node.out, want.at, labels, guard);
        }
        if want.direction != Direction::Out {
            count += self.links.degree(&node.inward, want.at, labels, guard);
        }
        if let Some(itself) = want.skipped(node.gui()) {
            // Every loop is in both lists. Count them in the one that is not a hub, if there is one.
            let list = if self.links.is_hub(&node.out) { &node.inward } else { &node.out };
            let mut loops = 0;
            let mut look = Each(|run: Run<'_>| {
                loops += run.neighbours.iter().filter(|neighbour| **neighbour == itself).count() as u64;
            });
            self.links.read(list, want.at, labels, 0, guard, &mut look);
            count -= loops;
        }
        count
    }

    /// Reads the requested parts of a vertex; returns `None` if it does not exist at the version.
    #[inline]
    pub fn read_vertex<'g>(
        &self,
        slot: u32,
        at: Version,
        want: properties::RowRequest<'_>,
        guard: &'g Guard,
    ) -> Option<Row<'g>> {
        let node = self.node(slot);
        for _ in 0..MOST_RETRIES {
            let place = node.row.get()?;
            if let Ok(row) = self.rows.read(RowOwner::Vertex(node.gui()), place, at, want, guard) {
                return row;
            }
        }
        // STO-1: the reader's version was reclaimed meanwhile, so its answer is discarded.
        None
    }

    /// Reads a vertex as [`Self::read_vertex`] does, if its row [needs no closer look](properties::PageTable::read_plain).
    #[inline]
    pub fn read_plain_vertex<'g>(
        &self,
        slot: u32,
        at: Version,
        want: properties::RowRequest<'_>,
        guard: &'g Guard,
        each: impl FnMut(Token, Cardinality, Value),
    ) -> Option<PlainRow<'g>> {
        let node = self.node(slot);
        let place = node.row.get()?;
        self.rows.read_plain(RowOwner::Vertex(node.gui()), place, at, want, guard, each)
    }

    /// Returns whether the vertex of a slot has this id at the version.
    #[inline]
    pub fn has_id(&self, slot: u32, id: &str, at: Version, guard: &Guard) -> bool {
        self.read_vertex(slot, at, properties::RowRequest::ID, guard).is_some_and(|row| row.has_id(id))
    }

    /// Returns the slot of a vertex that has this id at the version.
    pub fn slot_with_id(&self, gui: Gui, id: &str, at: Version, guard: &Guard) -> Option<u32> {
        let slot = self.slot(gui, guard)?;
        self.has_id(slot, id, at, guard).then_some(slot)
    }

    /// Returns whether a GUI is free for an id: at the version no vertex has it, or the vertex with that id.
    pub fn is_free_for(&self, gui: Gui, id: &str, at: Version, guard: &Guard) -> bool {
        let Some(slot) = self.slot(gui, guard) else { return true };
        self.read_vertex(slot, at, properties::RowRequest::ID, guard).is_none_or(|row| row.has_id(id))
    }

    /// Reads an edge as [`Self::read_edge`] does, if its row [needs no closer look](properties::PageTable::read_plain).
    #[inline]
    pub fn read_plain_edge<'g>(
        &self,
        sid: Sid,
        at: Version,
        want: properties::RowRequest<'_>,
        guard: &'g Guard,
        each: impl FnMut(Token, Cardinality, Value),
    ) -> Option<PlainRow<'g>> {
        let place = self.edge_place(sid, guard)?;
        self.rows.read_plain(RowOwner::Edge(sid), place, at, want, guard, each)
    }

    /// Reads the requested parts of an edge. Returns `None` if it does not exist at the version, `Some(None)` if it
    /// has neither id nor properties.
    pub fn read_edge<'g>(
        &self,
        edge: &Edge,
        at: Version,
        want: properties::RowRequest<'_>,
        guard: &'g Guard,
    ) -> Option<Option<Row<'g>>> {
        for _ in 0..MOST_RETRIES {
            let Some(place) = self.edge_place(edge.sid, guard) else { break };
            match self.rows.read(RowOwner::Edge(edge.sid), place, at, want, guard) {
                Ok(Some(row)) => return Some(Some(row)),
                Ok(None) => break,
                Err(properties::Stale) => {}
            }
        }
        // Then only the adjacency knows the edge.
        self.find_edge(edge.source, edge.sid, at, guard).map(|_| None)
    }

    /// Finds an edge by its SID at its source, if it exists at the version.
    pub fn find_edge(&self, source: Gui, sid: Sid, at: Version, guard: &Guard) -> Option<Edge> {
        let list = &self.node(self.slot(source, guard)?).out;
        let found = self.links.find(list, sid, None, guard).filter(|found| found.visible(at))?;
        Some(Edge { sid, source, target: found.link.neighbour, label: found.link.label })
    }

    /// Finds the edge of a user-chosen or generated id, given where it would be.
    pub fn find_edge_with_id(&self, source: Gui, sid: Sid, id: Option<&str>, at: Version) -> Option<Edge> {
        let guard = pin();
        let edge = self.find_edge(source, sid, at, &guard)?;
        let row = self.read_edge(&edge, at, properties::RowRequest::ID, &guard)?;
        let same = match id {
            Some(id) => row.is_some_and(|row| row.has_id(id)),
            None => row.and_then(|row| row.id()).is_none(),
        };
        same.then_some(edge)
    }
}
