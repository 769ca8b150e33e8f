//! A step of a search upwards over one partition: for each vertex that was not reached, a neighbour that was.
//!
//! Vertices are taken in order of their slots, so that nodes and lists are read mostly forwards. Slots that an earlier
//! step has explored are passed over a word of bits at a time. The others go through two stages, in groups: a look at the
//! node (was the vertex reached, does it have edges?), and the reading of its lists up to the first hit, while the first
//! lines of the lists and the nodes that come are fetched.
//!
//! Bits are by slot, and live longer than a guard. That is safe because a vertex of which a version sees an edge keeps its
//! slot for as long as that version can be read: another vertex of the same slot has no edge that the version sees.
//!
//! What must never happen: a vertex passed over at a version that sees an edge of it to one that was reached.

use super::Partition;
use super::read::{Filter, Place};
use crate::adjacency::{Glance, Labels, Link, List, Run, Sids, Sink};
use crossbeam_epoch::Guard;
use tidegraph_apl::{BottomUp, Parents, VertexSet};
use tidegraph_types::{Direction, Gui, Sid, Version};

/// Slots that are looked at together: those of some words of bits.
const GROUP: usize = 256;
const BITS: u32 = u64::BITS;
/// So many vertices ahead of one the first lines of its lists are asked for.
const AHEAD: usize = 12;
/// Lines of a list that are asked for.
const LINES: usize = 2;
/// Nodes of the next group that are asked for with each vertex of this one.
const NODES: usize = 2;

/// What a step asks, the same for all partitions.
pub(crate) struct UpWant<'r> {
    filter: Filter<'r>,
    /// Whether edges out and edges in are followed.
    sides: [bool; 2],
    neighbours_only: bool,
    set: &'r VertexSet,
    follows: bool,
    rest: bool,
    at: Version,
    /// Length of the answer at which it stops.
    limit: usize,
}

impl<'r> UpWant<'r> {
    pub fn new(step: &BottomUp<'r>, at: Version, limit: usize) -> Self {
        let edges = step.edges;
        Self {
            filter: Filter::of(edges.labels.as_deref()),
            sides: [edges.direction != Direction::In, edges.direction != Direction::Out],
            neighbours_only: edges.neighbours_only,
            set: step.set,
            follows: step.follows,
            rest: step.rest,
            at,
            limit,
        }
    }
}

/// Looks for a neighbour that was reached: one of the set, or with `INVERSE` one that is not in it.
struct First<'s, const INVERSE: bool> {
    set: &'s VertexSet,
    labels: Labels<'s>,
    /// Whether the SID is wanted, which stands in another line.
    sids: bool,
    /// Entries that were looked at, and how many may be before a hub is left.
    looked: usize,
    most: usize,
    found: Option<Link>,
}

impl<const INVERSE: bool> First<'_, INVERSE> {
    #[inline(always)]
    fn look(&mut self, run: Run<'_>) {
        let place = if INVERSE {
            self.set.any_outside(run.neighbours)
        } else {
            self.set.first_inside(run.neighbours)
        };
        self.looked += place.map_or(run.neighbours.len(), |place| place + 1);
        self.found = place.map(|place| Link {
            neighbour: Gui(run.neighbours[place]),
            sid: if self.sids { run.sids.get(place) } else { Sid(0) },
            label: run.label,
        });
    }
}

impl<const INVERSE: bool> Sink for First<'_, INVERSE> {
    #[inline]
    fn take(&mut self, run: Run<'_>) {
        if self.found.is_none() {
            self.look(run);
        }
    }

    /// A hub may stop behind a chunk of which the version sees something.
    fn len(&self) -> usize {
        self.looked
    }

    fn full(&self) -> bool {
        self.found.is_some() || self.looked >= self.most
    }
}

/// A step in one partition: what it fills while it goes on.
pub(crate) struct Up<'p, 'r, const INVERSE: bool> {
    pub partition: &'p Partition,
    pub want: &'r UpWant<'r>,
    /// Bits of the slots that need not be looked at.
    pub explored: &'r mut Vec<u64>,
    /// What may still be looked at: entries, and vertices.
    pub left: usize,
    pub out: &'r mut Parents,
}

impl<'p, const INVERSE: bool> Up<'p, '_, INVERSE> {
    /// Goes through the slots up to `end`, beginning with one and a place in its lists. Stops when the answer has reached
    /// its limit, or when nothing is left; answers where to go on.
    pub fn run(&mut self, from: (u32, Place), end: u32, guard: &Guard) -> (u32, Place) {
        let words = end.div_ceil(BITS) as usize;
        if self.explored.len() < words {
            self.explored.resize(words, 0);
        }
        let (mut here, mut ahead) = ([0_u32; GROUP], [0_u32; GROUP]);
        let (mut count, mut slot) = self.gather(&mut here, from.0, end);
        here[..count].iter().for_each(|slot| self.partition.nodes.prefetch(*slot));
        // If the vertex in which it stopped is not the first that is open now, it is done.
        let mut place = if here[..count].first() == Some(&from.0) { from.1 } else { Place::default() };
        while count > 0 || slot < end {
            let (next, behind) = self.gather(&mut ahead, slot, end);
            if let Some(stopped) = self.group(&here[..count], &ahead[..next], place, guard) {
                return stopped;
            }
            (here, count, slot, place) = (ahead, next, behind, Place::default());
        }
        (end, Place::default())
    }

    /// Slots from one on that are not explored; answers how many, and the first slot that was not considered.
    fn gather(&self, slots: &mut [u32; GROUP], from: u32, end: u32) -> (usize, u32) {
        let (mut count, mut first) = (0, from);
        while first < end && count + BITS as usize <= GROUP {
            let word = first / BITS;
            let mut open = !self.explored[word as usize] & (u64::MAX << (first % BITS));
            while open != 0 {
                slots[count] = word * BITS + open.trailing_zeros();
                count += 1;
                open &= open - 1;
            }
            first = (word + 1) * BITS;
        }
        // Only the last word reaches past the end.
        while count > 0 && slots[count - 1] >= end {
            count -= 1;
        }
        (count, first.min(end))
    }

    #[inline(always)]
    fn set_explored(&mut self, slot: u32, whether: bool) {
        self.explored[(slot / BITS) as usize] |= u64::from(whether) << (slot % BITS);
    }

    #[inline(always)]
    fn prefetch(&self, slot: u32) {
        let node = self.partition.node(slot);
        let [outward, inward] = self.want.sides;
        if outward {
            self.partition.links.prefetch_lines(&node.out, LINES);
        }
        if inward {
            // Where there are edges out as well, this one is often not read at all.
            self.partition.links.prefetch_lines(&node.inward, if outward { 1 } else { LINES });
        }
    }

    /// Looks at some slots, the first of them from a place on. Answers where it stopped before their end.
    fn group(&mut self, slots: &[u32], ahead: &[u32], place: Place, guard: &Guard) -> Option<(u32, Place)> {
        // Those that were not reached and have edges, found without a branch that could be guessed wrong.
        let (mut some, mut count) = ([0_u32; GROUP], 0);
        let [outward, inward] = self.want.sides;
        for &slot in slots {
            let node = self.partition.node(slot);
            let edges = (outward & !node.out.is_empty()) | (inward & !node.inward.is_empty());
            let open = edges && (self.want.follows || self.want.set.contains(node.gui()) == INVERSE);
            some[count] = slot;
            count += usize::from(open);
            self.set_explored(slot, !open);
        }
        let some = &some[..count];
        let mut place = if some.first() == slots.first() { place } else { Place::default() };
        self.left = self.left.saturating_sub(slots.len() - count);
        some.iter().take(AHEAD).for_each(|slot| self.prefetch(*slot));
        for (index, &slot) in some.iter().enumerate() {
            if self.out.len() + self.out.rest.len() >= self.want.limit || self.left == 0 {
                return Some((slot, place));
            }
            let nodes = ahead.iter().skip(index * NODES).take(NODES);
            nodes.for_each(|slot| self.partition.nodes.prefetch(*slot));
            if let Some(slot) = some.get(index + AHEAD) {
                self.prefetch(*slot);
            }
            if let Some(place) = self.vertex(slot, std::mem::take(&mut place), guard) {
                return Some((slot, place));
            }
        }
        let nodes = ahead.iter().skip(count * NODES);
        nodes.for_each(|slot| self.partition.nodes.prefetch(*slot));
        None
    }

    /// Looks at the lists of one vertex. Answers a place in a hub where it stopped.
    #[inline(always)]
    fn vertex(&mut self, slot: u32, from: Place, guard: &Guard) -> Option<Place> {
        let node = self.partition.node(slot);
        let mut first = First::<INVERSE> {
            set: self.want.set,
            labels: self.want.filter.labels(),
            sids: !self.want.neighbours_only,
            looked: 0,
            most: self.left,
            found: None,
        };
        let mut outgoing = true;
        let mut stopped = None;
        if self.want.sides[0] && !from.inward {
            stopped = self.list(&node.out, from.after, &mut first, guard);
        }
        if self.want.sides[1] && first.found.is_none() && stopped.is_none() {
            outgoing = false;
            let after = if from.inward { from.after } else { 0 };
            stopped = self.list(&node.inward, after, &mut first, guard);
        }
        self.left = self.left.saturating_sub(1 + first.looked);
        if let Some(link) = first.found {
            self.out.vertex.push(node.gui());
            self.out.parent.push(link.neighbour);
            if !self.want.neighbours_only {
                self.out.sid.push(link.sid);
                self.out.label.push(link.label);
                self.out.outgoing.push(outgoing);
            }
            // It counts as reached in the next step.
            self.set_explored(slot, true);
            return None;
        }
        if let Some(after) = stopped {
            return Some(Place { inward: !outgoing, after });
        }
        if first.looked == 0 && from == Place::default() {
            // Nothing that the version sees and the request asks for.
            self.set_explored(slot, true);
        } else if self.want.rest {
            self.out.rest.push(node.gui());
        }
        None
    }

    /// Looks at one list, of a hub from behind a chunk on. Answers the chunk of a hub behind which it stopped.
    #[inline(always)]
    fn list(&self, list: &'p List, after: u32, first: &mut First<'_, INVERSE>, guard: &Guard) -> Option<u32> {
        if first.sids {
            self.list_of::<true>(list, after, first, guard)
        } else {
            self.list_of::<false>(list, after, first, guard)
        }
    }

    #[inline(always)]
    fn list_of<const SIDS: bool>(
        &self,
        list: &'p List,
        after: u32,
        first: &mut First<'_, INVERSE>,
        guard: &Guard,
    ) -> Option<u32> {
        // Most lists are one run of one label, all of it old.
        let run = match self.partition.links.glance::<SIDS>(list, self.want.at, guard) {
            Glance::Nothing => return None,
            Glance::Run(run) => run,
            Glance::Few(few) => {
                let sids = Sids::Wide(&few.sids[..few.count]);
                let run = Run { label: few.label, neighbours: &few.neighbours[..few.count], sids };
                if first.labels.pass(run.label) {
                    first.look(run);
                }
                return None;
            }
            Glance::One(_) | Glance::More => {
                return self.partition.links.read(list, self.want.at, first.labels, after, guard, first);
            }
        };
        if first.labels.pass(run.label) {
            first.look(run);
        }
        None
    }
}
