//! Building lists in one go: what a load or a checkpoint has for a vertex is written once, at its exact size.
//!
//! A list that was empty becomes a single block without a tail, an inline entry, or a hub of full chunks; all of its
//! entries begin at one version, which the block holds once. A list that has entries is joined with the new ones, as
//! adding them one by one would do.

use super::block::{self, Shape};
use super::draft::Draft;
use super::hub::Hub;
use super::{HUB, Link, Links, List, Place};
use crate::turn::Turn;
use crossbeam_epoch::{Guard, pin};
use tidegraph_types::Version;

impl Links {
    /// Adds entries that begin at a version, in order of label and SID, each SID once; `oldest` is the oldest version
    /// that can be read.
    pub fn build(&self, turn: &mut Turn, list: &List, links: &[Link], begin: Version, oldest: Version) {
        debug_assert!(links.is_sorted_by(|a, b| a.key() < b.key()), "in order of label and SID");
        if links.is_empty() {
            return;
        }
        let guard = &pin();
        if !matches!(list.place(), Place::Empty) {
            return self.join(turn, list, links, begin, oldest, guard);
        }
        let begin = if begin <= oldest { Version(0) } else { begin };
        if let [one] = links
            && list.set_inline(*one, begin)
        {
            return;
        }
        if links.len() > self.hub_degree {
            let draft = Draft { settled: links.to_vec(), begin, ..Draft::default() };
            let hub = self.hubs.insert(Hub::new(self, draft));
            return list.set(HUB, u64::from(hub));
        }
        list.set_block(self.write_block(links, begin), links.len());
    }

    /// A block of settled entries alone.
    fn write_block(&self, links: &[Link], begin: Version) -> u32 {
        let (mut least, mut most, mut runs) = (u64::MAX, 0, 1);
        let mut label = links.first().map(|link| link.label);
        for link in links {
            (least, most) = (least.min(link.sid.0), most.max(link.sid.0));
            if label != Some(link.label) {
                (label, runs) = (Some(link.label), runs + 1);
            }
        }
        let shape = Shape {
            entries: links.len(),
            runs,
            wide: most - least > u64::from(u32::MAX),
            begin: begin > Version(0),
            tail: 0,
        };
        let block = self.arena.allocate(shape.granules(), self.compacting());
        // SAFETY: the arena has just handed out the block, of this size, and nobody else knows it.
        unsafe { block::write(self.arena.address(block), shape, least, begin, links, &[]) };
        block
    }

    /// Adds entries, in order, to a list that has some.
    fn join(
        &self,
        turn: &mut Turn,
        list: &List,
        new: &[Link],
        version: Version,
        oldest: Version,
        guard: &Guard,
    ) {
        /// A hub's directory is not copied for fewer.
        const FEW: usize = 8;
        let one_by_one = match list.place() {
            // All of the list goes into fresh segments.
            _ if self.compacting() => false,
            Place::Hub(_) => new.len() < FEW,
            Place::Block(number) => {
                let tail = self.block(number, guard).tail;
                tail.is_some_and(|tail| tail.room - tail.ops().len() >= new.len())
            }
            Place::Empty | Place::Inline(_) => false,
        };
        if one_by_one {
            for link in new {
                self.push(turn, list, *link, version, oldest);
            }
            return;
        }
        if let Place::Hub(number) = list.place() {
            return self.hubs.get(number, guard).push_all(self, new, version, oldest, guard);
        }
        let mut draft = self.draft(list, guard);
        draft.adds.extend(new.iter().map(|link| (*link, version)));
        draft.fold(oldest);
        self.put(list, draft, 0, guard);
    }

    /// Adds many entries at a version, in any order. Sorts them.
    #[cfg(test)]
    pub fn push_all(
        &self,
        turn: &mut Turn,
        list: &List,
        new: &mut [Link],
        version: Version,
        oldest: Version,
    ) {
        new.sort_unstable_by_key(Link::key);
        self.build(turn, list, new, version, oldest);
    }
}
