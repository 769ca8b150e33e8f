//! The lists of a partition in the order in which their blocks are written when all of them are.
//!
//! The lists out of some vertices lie together, and then those in: who reads all edges, or all neighbours one way, goes
//! through memory that it wants, and the machine sees that it goes straight on. Both lists of one vertex are still near
//! each other.

use super::{Node, Partition};
use crate::adjacency::List;
use crate::slots::GROUP;

/// Vertices whose lists of one direction lie together, as a power of two.
const TOGETHER_BITS: u32 = GROUP.ilog2();
const IN_GROUP: u32 = GROUP - 1;
const _: () = assert!(GROUP.is_power_of_two());

/// Number of a list, in that order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ListNumber(pub u32);

impl ListNumber {
    pub fn new(slot: u32, inward: bool) -> Self {
        Self((slot >> TOGETHER_BITS << 1 | u32::from(inward)) << TOGETHER_BITS | slot & IN_GROUP)
    }

    /// Slot of the vertex.
    pub fn slot(self) -> u32 {
        self.0 >> (TOGETHER_BITS + 1) << TOGETHER_BITS | self.0 & IN_GROUP
    }

    pub fn is_inward(self) -> bool {
        self.0 >> TOGETHER_BITS & 1 != 0
    }

    /// One more than the last of all, for so many slots. Some of them may be of slots beyond.
    pub fn end(slots: u32) -> u32 {
        slots.div_ceil(GROUP) << (TOGETHER_BITS + 1)
    }
}

impl Node {
    pub(super) fn list(&self, inward: bool) -> &List {
        if inward { &self.inward } else { &self.out }
    }
}

impl Partition {
    /// A list by its number; none if there is no such slot yet.
    pub(super) fn list(&self, number: ListNumber) -> Option<&List> {
        let slot = number.slot();
        (slot < self.nodes.end()).then(|| self.nodes.get(slot).list(number.is_inward()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_one_direction_lie_together() {
        let numbers: Vec<ListNumber> = (0..ListNumber::end(300)).map(ListNumber).collect();
        assert_eq!(numbers.len(), 3 * 2 * GROUP as usize);
        for number in &numbers {
            assert_eq!(ListNumber::new(number.slot(), number.is_inward()), *number);
        }
        let (out, inward) = numbers[..2 * GROUP as usize].split_at(GROUP as usize);
        assert!(out.iter().all(|number| !number.is_inward()) && inward.iter().all(|n| n.is_inward()));
        assert!(out.iter().zip(0..).all(|(number, slot)| number.slot() == slot));
        assert!(inward.iter().zip(0..).all(|(number, slot)| number.slot() == slot));
    }
}
