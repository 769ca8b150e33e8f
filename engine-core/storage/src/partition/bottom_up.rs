//! A bottom-up step of a search in one partition: for each vertex that was not reached, finds a neighbour that was.
//!
//! Vertices are taken in order of their slots, so nodes and lists are read mostly forwards. Slots that an earlier
//! step has explored are skipped, a word of bits at a time. The others pass two stages in groups: first a check of
//! the node (was the vertex reached, does it have edges?), then a read of its lists up to the first hit. Meanwhile
//! the first lines of the next lists and the next nodes are prefetched.
//!
//! Bits belong to slots and outlive an epoch guard. That is safe because a vertex with an edge at some version keeps
//! its slot while that version can be read: another vertex in the same slot has no edge at that version.
//!
//! What must never happen: a vertex skipped at a version that sees an edge from it to a reached vertex.

use super::Partition;
use super::read::{EdgePosition, Filter};
use crate::adjacency::{FastRead, Labels, Link, List, Run, Sids, Sink};
use crossbeam_epoch::Guard;
use tidegraph_apl::searches::{BottomUp, Parents, VertexSet};
use tidegraph_types::{Direction, Gui, Sid, Version};

/// Number of slots in a group: those of a few words of bits.
const GROUP: usize = 256;
const BITS: u32 = u64::BITS;
/// Distance, in vertices, at which the first lines of lists are prefetched.
const AHEAD: usize = 12;
/// Number of lines of a list to prefetch.
const LINES: usize = 2;
/// Number of nodes of the next group to prefetch with each vertex of this one.
const NODES: usize = 2;

/// The request of a step, the same for all partitions.
pub(crate) struct BottomUpRequest<'r> {
    filter: Filter<'r>,
    /// Whether out-edges and in-edges are followed.
    sides: [bool; 2],
    neighbours_only: bool,
    set: &'r VertexSet,
    follows: bool,
    rest: bool,
    at: Version,
    /// Length of the answer at which to stop.
    limit: usize,
}

impl<'r> BottomUpRequest<'r> {
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

/// Looks for a reached neighbour: one inside the set or, with `INVERSE`, one outside it.
struct FirstHit<'s, const INVERSE: bool> {
    set: &'s VertexSet,
    labels: Labels<'s>,
    /// Whether the SID is wanted, which is on another cache line.
    sids: bool,
    /// Number of entries looked at, and the number after which to leave a hub.
    looked: usize,
    most: usize,
    found: Option<Link>,
}

impl<const INVERSE: bool> FirstHit<'_, INVERSE> {
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

impl<const INVERSE: bool> Sink for FirstHit<'_, INVERSE> {
    #[inline]
    fn take(&mut self, run: Run<'_>) {
        if self.found.is_none() {
            self.look(run);
        }
    }

    /// A hub may stop behind a chunk in which the version sees something.
    fn len(&self) -> usize {
        self.looked
    }

    fn full(&self) -> bool {
        self.found.is_some() || self.looked >= self.most
    }
}

/// A step in one partition, with the answer that it fills.
pub(crate) struct BottomUpStep<'p, 'r, const INVERSE: bool> {
    pub partition: &'p Partition,
    pub want: &'r BottomUpRequest<'r>,
    /// Bits of the slots that need no look.
    pub explored: &'r mut Vec<u64>,
    /// Number of entries and vertices that may still be looked at.
    pub left: usize,
    pub out: &'r mut Parents,
}

impl<'p, const INVERSE: bool> BottomUpStep<'p, '_, INVERSE> {
    /// Processes the slots up to `end`, beginning with a slot and a position in its lists. Stops when the answer has
    /// reached its limit or `left` is used up. Returns where to continue.
    pub fn run(&mut self, from: (u32, EdgePosition), end: u32, guard: &Guard) -> (u32, EdgePosition) {
        let words = end.div_ceil(BITS) as usize;
        if self.explored.len() < words {
            self.explored.resize(words, 0);
        }
        let (mut here, mut ahead) = ([0_u32; GROUP], [0_u32; GROUP]);
        let (mut count, mut slot) = self.gather(&mut here, from.0, end);
        here[..count].iter().for_each(|slot| self.partition.nodes.prefetch(*slot));
        // If the vertex where the last call stopped is not the first open one now, it is done.
        let mut place = if here[..count].first() == Some(&from.0) { from.1 } else { EdgePosition::default() };
        while count > 0 || slot < end {
            let (next, behind) = self.gather(&mut ahead, slot, end);
            if let Some(stopped) = self.group(&here[..count], &ahead[..next], place, guard) {
                return stopped;
            }
            (here, count, slot, place) = (ahead, next, behind, EdgePosition::default());
        }
        (end, EdgePosition::default())
    }

    /// Collects unexplored slots; returns their number and the first slot that was not considered.
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
        // Only the last word can reach past the end.
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
            // The list in is often not read if there are out-edges.
            self.partition.links.prefetch_lines(&node.inward, if outward { 1 } else { LINES });
        }
    }

    /// Looks at some slots, the first of them from a position on. Returns where it stopped before their end.
    fn group(
        &mut self,
        slots: &[u32],
        ahead: &[u32],
        place: EdgePosition,
        guard: &Guard,
    ) -> Option<(u32, EdgePosition)> {
        // Selects the vertices that were not reached and have edges, without branches that could be mispredicted.
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
        let mut place = if some.first() == slots.first() { place } else { EdgePosition::default() };
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

    /// Looks at the lists of one vertex. Returns the position in a hub where it stopped.
    #[inline(always)]
    fn vertex(&mut self, slot: u32, from: EdgePosition, guard: &Guard) -> Option<EdgePosition> {
        let node = self.partition.node(slot);
        let mut first = FirstHit::<INVERSE> {
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
            // The vertex counts as reached in the next step.
            self.set_explored(slot, true);
            return None;
        }
        if let Some(after) = stopped {
            return Some(EdgePosition { inward: !outgoing, after });
        }
        if first.looked == 0 && from == EdgePosition::default() {
            // The version sees nothing there that the request asks for.
            self.set_explored(slot, true);
        } else if self.want.rest {
            self.out.rest.push(node.gui());
        }
        None
    }

    /// Looks at one list, in a hub from behind a chunk on. Returns the chunk behind which it stopped.
    #[inline(always)]
    fn list(
        &self,
        list: &'p List,
        after: u32,
        first: &mut FirstHit<'_, INVERSE>,
        guard: &Guard,
    ) -> Option<u32> {
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
        first: &mut FirstHit<'_, INVERSE>,
        guard: &Guard,
    ) -> Option<u32> {
        // Most lists are one run of one label that every version sees.
        let run = match self.partition.links.fast_read::<SIDS>(list, self.want.at, guard) {
            FastRead::Nothing => return None,
            FastRead::Run(run) => run,
            FastRead::Few(few) => {
                let sids = Sids::Wide(&few.sids[..few.count]);
                let run = Run { label: few.label, neighbours: &few.neighbours[..few.count], sids };
                if first.labels.pass(run.label) {
                    first.look(run);
                }
                return None;
            }
            FastRead::One(_) | FastRead::More => {
                return self.partition.links.read(list, self.want.at, first.labels, after, guard, first);
            }
        };
        if first.labels.pass(run.label) {
            first.look(run);
        }
        None
    }
}
