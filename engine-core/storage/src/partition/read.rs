//! Reading one partition at a version. The caller holds the lock and has checked the version.

use super::Partition;
use crate::adjacency::{Adjacency, Entry, Hub, visible};
use crate::properties::{self, Owner, Row};
use crossbeam_epoch::{Guard, pin};
use tidegraph_apl::{Expansion, Projection, PropertyPredicate};
use tidegraph_types::{Direction, Edge, Gui, Sid, Token, Version};

/// Which edge labels are followed.
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

    #[inline]
    pub fn passes(self, label: Token) -> bool {
        match self {
            Self::Any => true,
            Self::One(one) => label == one,
            Self::Several(labels) => labels.contains(&label),
        }
    }

    fn labels(&self) -> Option<&[Token]> {
        match self {
            Self::Any => None,
            Self::One(one) => Some(std::slice::from_ref(one)),
            Self::Several(labels) => Some(labels),
        }
    }
}

/// Where the edges of one vertex go on: a direction, and one more than the sequence number of the last entry handed
/// out of its hub (0: the start).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Place {
    pub inward: bool,
    pub after: u32,
}

impl Place {
    pub fn from_offset(offset: u64) -> Self {
        Self { inward: offset >> 32 != 0, after: offset as u32 }
    }

    pub fn to_offset(self) -> u64 {
        u64::from(self.inward) << 32 | u64::from(self.after)
    }
}

/// What one expansion asks, the same for the whole frontier.
pub(crate) struct Want<'r> {
    pub direction: Direction,
    pub filter: Filter<'r>,
    pub loops_once: bool,
    pub at: Version,
    /// Length of the answer at which a hub stops.
    pub limit: usize,
}

impl Want<'_> {
    /// Whether an in-edge from this vertex to itself was answered as an out-edge already.
    fn skips_loop(&self, owner: Gui, neighbour: Gui) -> bool {
        self.loops_once && self.direction == Direction::Both && owner == neighbour
    }
}

impl Partition {
    /// Appends the edges of a vertex. Stops inside a hub when the answer has reached its limit, and answers where to
    /// go on.
    pub fn expand(
        &self,
        slot: u32,
        row: u32,
        want: &Want<'_>,
        from: Place,
        out: &mut Expansion,
    ) -> Option<Place> {
        let node = self.node(slot);
        if want.direction != Direction::In && !from.inward {
            match &node.out {
                Adjacency::Hub(hub) => {
                    if let Some(after) = self.expand_hub(hub, row, node.gui, true, want, from.after, out) {
                        return Some(Place { inward: false, after });
                    }
                }
                list => self.expand_list(list, row, node.gui, true, want, out),
            }
        }
        if want.direction != Direction::Out {
            match &node.inward {
                Adjacency::Hub(hub) => {
                    let after = if from.inward { from.after } else { 0 };
                    if let Some(after) = self.expand_hub(hub, row, node.gui, false, want, after, out) {
                        return Some(Place { inward: true, after });
                    }
                }
                list => self.expand_list(list, row, node.gui, false, want, out),
            }
        }
        None
    }

    #[inline]
    fn expand_list(
        &self,
        list: &Adjacency,
        row: u32,
        owner: Gui,
        outgoing: bool,
        want: &Want<'_>,
        out: &mut Expansion,
    ) {
        let entries = list.entries();
        // Which entries pass, a bit each: a list that is no hub has at most as many as the word has bits.
        let mut passing = 0_u64;
        for (bit, entry) in entries.iter().enumerate() {
            let passes = want.filter.passes(entry.label())
                && self.stamps.visible(entry.stamp(), want.at)
                && (outgoing || !want.skips_loop(owner, entry.neighbour()));
            passing |= u64::from(passes) << bit;
        }
        if passing.count_ones() as usize == entries.len() {
            // All of them, the common case: column by column.
            out.row.extend(std::iter::repeat_n(row, entries.len()));
            out.neighbour.extend(entries.iter().map(Entry::neighbour));
            out.sid.extend(entries.iter().map(Entry::sid));
            out.label.extend(entries.iter().map(Entry::label));
            out.outgoing.extend(std::iter::repeat_n(outgoing, entries.len()));
            return;
        }
        while passing != 0 {
            let entry = &entries[passing.trailing_zeros() as usize];
            out.push(row, entry.neighbour(), entry.sid(), entry.label(), outgoing);
            passing &= passing - 1;
        }
    }

    fn expand_hub(
        &self,
        hub: &Hub,
        row: u32,
        owner: Gui,
        outgoing: bool,
        want: &Want<'_>,
        after: u32,
        out: &mut Expansion,
    ) -> Option<u32> {
        let (first, mut start) = hub.after(after)?;
        let groups = match want.filter {
            // One label: straight to its group.
            Filter::One(label) if after == 0 => {
                let index = hub.groups().binary_search_by_key(&label, |group| group.label).ok()?;
                &hub.groups()[index..=index]
            }
            _ => &hub.groups()[first..],
        };
        for group in groups {
            let entries = group.tail(std::mem::take(&mut start));
            if !want.filter.passes(group.label) {
                continue;
            }
            for entry in entries {
                if !visible(entry.stamp, want.at, &self.stamps)
                    || (!outgoing && want.skips_loop(owner, entry.neighbour))
                {
                    continue;
                }
                out.push(row, entry.neighbour, entry.sid, group.label, outgoing);
                if out.len() >= want.limit {
                    return Some(entry.sequence + 1);
                }
            }
        }
        None
    }

    /// Number of edges that `expand` would append.
    pub fn degree(&self, slot: u32, want: &Want<'_>) -> u64 {
        let node = self.node(slot);
        let mut count = 0;
        let side = |list: &Adjacency, outgoing: bool| match list {
            Adjacency::Hub(hub) => {
                let mut count = hub.degree(want.at, want.filter.labels());
                if !outgoing && want.loops_once && want.direction == Direction::Both {
                    // Every loop stands in both lists; the ones to take off are found in the shorter.
                    count -= self.loops(slot, want);
                }
                count
            }
            list => list
                .entries()
                .iter()
                .map(Entry::link)
                .filter(|link| {
                    want.filter.passes(link.label)
                        && self.stamps.visible(link.stamp, want.at)
                        && (outgoing || !want.skips_loop(node.gui, link.neighbour))
                })
                .count() as u64,
        };
        if want.direction != Direction::In {
            count += side(&node.out, true);
        }
        if want.direction != Direction::Out {
            count += side(&node.inward, false);
        }
        count
    }

    fn loops(&self, slot: u32, want: &Want<'_>) -> u64 {
        let node = self.node(slot);
        let list = if matches!(node.out, Adjacency::Hub(_)) { &node.inward } else { &node.out };
        let mut loops = 0;
        list.for_each_visible(want.at, &self.stamps, |link| {
            loops += u64::from(link.neighbour == node.gui && want.filter.passes(link.label));
        });
        loops
    }

    /// What is wanted of a vertex; `None` if it is not there at the version.
    #[inline]
    pub fn read_vertex<'g>(
        &self,
        slot: u32,
        at: Version,
        want: properties::Want<'_>,
        guard: &'g Guard,
    ) -> Option<Row<'g>> {
        let node = self.node(slot);
        loop {
            let place = node.row.get()?;
            if let Ok(row) = self.rows.read(Owner::Vertex(node.gui), place, at, want, guard) {
                return row;
            }
        }
    }

    /// Slot of a vertex that has this id at the version.
    pub fn slot_with_id(&self, gui: Gui, id: &str, at: Version, guard: &Guard) -> Option<u32> {
        let slot = self.slot(gui)?;
        self.read_vertex(slot, at, properties::Want::ID, guard).filter(|row| row.has_id(id)).map(|_| slot)
    }

    /// Whether a GUI is free for an id: no vertex there at the version, or that id's.
    pub fn is_free_for(&self, gui: Gui, id: &str, at: Version, guard: &Guard) -> bool {
        let Some(slot) = self.slot(gui) else { return true };
        self.read_vertex(slot, at, properties::Want::ID, guard).is_none_or(|row| row.has_id(id))
    }

    /// What is wanted of an edge; `None` if it is not there at the version, `Some(None)` if it is there with neither
    /// id nor properties.
    pub fn read_edge<'g>(
        &self,
        edge: &Edge,
        at: Version,
        want: properties::Want<'_>,
        guard: &'g Guard,
    ) -> Option<Option<Row<'g>>> {
        while let Some(place) = self.edge_place(edge.sid, guard) {
            match self.rows.read(Owner::Edge(edge.sid), place, at, want, guard) {
                Ok(Some(row)) => return Some(Some(row)),
                Ok(None) => break,
                Err(properties::Stale) => {}
            }
        }
        // Only the adjacency knows it then.
        self.find_edge(edge.source, edge.sid, at).map(|_| None)
    }

    /// The edge of a SID at its source, if it is there at the version.
    pub fn find_edge(&self, source: Gui, sid: Sid, at: Version) -> Option<Edge> {
        let link = self.node(self.slot(source)?).out.find(sid)?;
        self.stamps.visible(link.stamp, at).then_some(Edge {
            sid,
            source,
            target: link.neighbour,
            label: link.label,
        })
    }

    /// The edge of a user-chosen or generated id, given where it would be.
    pub fn find_edge_with_id(&self, source: Gui, sid: Sid, id: Option<&str>, at: Version) -> Option<Edge> {
        let edge = self.find_edge(source, sid, at)?;
        let guard = pin();
        let row = self.read_edge(&edge, at, properties::Want::ID, &guard)?;
        let same = match id {
            Some(id) => row.is_some_and(|row| row.has_id(id)),
            None => row.and_then(|row| row.id()).is_none(),
        };
        same.then_some(edge)
    }

    /// Appends the out-edges of a vertex that pass, from a place in its hub on. Answers where to go on when the
    /// answer has reached `limit` inside a hub.
    pub fn scan_out_edges(
        &self,
        slot: u32,
        filter: Filter<'_>,
        predicates: &[PropertyPredicate],
        at: Version,
        after: u32,
        limit: usize,
        out: &mut Vec<Edge>,
    ) -> Option<u32> {
        let node = self.node(slot);
        let guard = pin();
        let keys = Projection::Keys(predicates.iter().map(|predicate| predicate.key).collect());
        let wanted = properties::Want { id: false, properties: &keys };
        let passes = |edge: &Edge| {
            predicates.is_empty()
                || self
                    .read_edge(edge, at, wanted, &guard)
                    .flatten()
                    .is_some_and(|row| row.passes(predicates))
        };
        match &node.out {
            Adjacency::Hub(hub) => {
                let (first, mut start) = hub.after(after)?;
                for group in &hub.groups()[first..] {
                    let entries = group.tail(std::mem::take(&mut start));
                    if !filter.passes(group.label) {
                        continue;
                    }
                    for entry in entries {
                        let (sid, target) = (entry.sid, entry.neighbour);
                        let edge = Edge { sid, source: node.gui, target, label: group.label };
                        if visible(entry.stamp, at, &self.stamps) && passes(&edge) {
                            out.push(edge);
                            if out.len() >= limit {
                                return Some(entry.sequence + 1);
                            }
                        }
                    }
                }
            }
            list => {
                for entry in list.entries() {
                    let link = entry.link();
                    if !filter.passes(link.label) || !self.stamps.visible(link.stamp, at) {
                        continue;
                    }
                    let edge =
                        Edge { sid: link.sid, source: node.gui, target: link.neighbour, label: link.label };
                    if passes(&edge) {
                        out.push(edge);
                    }
                }
            }
        }
        None
    }
}
