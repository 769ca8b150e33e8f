//! Builds lists at once: what a load or a checkpoint has for a vertex is written once, at its exact size.
//!
//! An empty list becomes one block without a tail, an inline entry, or a hub of full chunks. All of its entries begin
//! at one version, which the block stores once. A list with entries is merged with the new ones, with the same result
//! as adding them one by one.

use super::block::{self, Shape};
use super::draft::Draft;
use super::hub::Hub;
use super::{HUB, Link, Links, List, ListForm};
use crate::write_permit::WritePermit;
use crossbeam_epoch::{Guard, pin};
use tidegraph_types::Version;

impl Links {
    /// Adds entries that begin at a version, in order of label and SID, each SID once. `oldest` is the oldest version
    /// that can be read.
    pub fn build(
        &self,
        permit: &mut WritePermit,
        list: &List,
        links: &[Link],
        begin: Version,
        oldest: Version,
    ) {
        debug_assert!(links.is_sorted_by(|a, b| a.key() < b.key()), "in order of label and SID");
        if links.is_empty() {
            return;
        }
        let guard = &pin();
        if !matches!(list.form(), ListForm::Empty) {
            return self.join(permit, list, links, begin, oldest, guard);
        }
        let begin = if begin <= oldest { Version(0) } else { begin };
        if let [one] = links
            && list.set_inline(*one, begin)
        {
            return;
        }
        if links.len() > self.hub_degree {
            let draft = Draft { base: links.to_vec(), begin, ..Draft::default() };
            let hub = self.hubs.insert(Hub::new(self, draft));
            return list.set(HUB, u64::from(hub));
        }
        list.set_block(self.write_block(links, begin), links.len());
    }

    /// Writes a block that has only a base.
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
        // SAFETY: the arena has just allocated the block with this size, and nobody else knows it.
        unsafe { block::write(self.arena.address(block), shape, least, begin, links, &[]) };
        block
    }

    /// Adds entries, in order, to a list that has some.
    fn join(
        &self,
        permit: &mut WritePermit,
        list: &List,
        new: &[Link],
        version: Version,
        oldest: Version,
        guard: &Guard,
    ) {
        /// Below this number the directory of a hub is not copied.
        const FEW: usize = 8;
        let one_by_one = match list.form() {
            // The whole list moves into fresh segments.
            _ if self.compacting() => false,
            ListForm::Hub(_) => new.len() < FEW,
            ListForm::Block(number) => {
                let tail = self.block(number, guard).tail;
                tail.is_some_and(|tail| tail.room - tail.ops().len() >= new.len())
            }
            ListForm::Empty | ListForm::Inline(_) => false,
        };
        if one_by_one {
            for link in new {
                self.push(permit, list, *link, version, oldest);
            }
            return;
        }
        if let ListForm::Hub(number) = list.form() {
            return self.hubs.get(number, guard).push_all(self, new, version, oldest, guard);
        }
        let mut draft = self.draft(list, guard);
        draft.adds.extend(new.iter().map(|link| (*link, version)));
        draft.fold(oldest);
        self.put(list, draft, 0, guard);
    }

    /// Adds entries at a version, in any order. Sorts them.
    #[cfg(test)]
    pub fn push_all(
        &self,
        permit: &mut WritePermit,
        list: &List,
        new: &mut [Link],
        version: Version,
        oldest: Version,
    ) {
        new.sort_unstable_by_key(Link::key);
        self.build(permit, list, new, version, oldest);
    }
}
