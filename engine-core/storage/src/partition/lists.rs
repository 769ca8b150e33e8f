//! Order of a partition's adjacency lists, in which their blocks are written when all of them are.
//!
//! The lists out of a group of vertices are adjacent, followed by their lists in. A reader of all edges, or of all
//! neighbours in one direction, then reads memory in sequence, which the processor recognizes. Both lists of a vertex
//! are still close together.

use super::{Node, Partition};
use crate::adjacency::List;
use crate::slots::GROUP;

/// Number of vertices whose lists of one direction are adjacent, as a power of two.
const TOGETHER_BITS: u32 = GROUP.ilog2();
const IN_GROUP: u32 = GROUP - 1;
const _: () = assert!(GROUP.is_power_of_two());

/// Number of a list in that order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ListNumber(pub u32);

impl ListNumber {
    pub fn new(slot: u32, inward: bool) -> Self {
        Self((slot >> TOGETHER_BITS << 1 | u32::from(inward)) << TOGETHER_BITS | slot & IN_GROUP)
    }

    /// Returns the slot of the vertex.
    pub fn slot(self) -> u32 {
        self.0 >> (TOGETHER_BITS + 1) << TOGETHER_BITS | self.0 & IN_GROUP
    }

    pub fn is_inward(self) -> bool {
        self.0 >> TOGETHER_BITS & 1 != 0
    }

    /// Returns one more than the last number for `slots` slots. Some numbers below it may belong to slots beyond.
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
    /// Returns a list by its number; `None` if its slot does not exist.
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
