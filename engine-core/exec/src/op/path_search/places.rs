//! The places in a pattern that a search tells apart: the part, and the number of its repetitions as far as it matters.

use tidegraph_plan::{Length, PathPart};

struct Place {
    part: usize,
    /// Whether a walk may go on to the next part.
    leaves: bool,
    /// The place after another repetition, if there may be one.
    next: Option<u32>,
}

/// The places of a pattern. Beyond a least number of repetitions without a largest one, all numbers are one place.
pub(super) struct Places {
    all: Vec<Place>,
    /// The first place of each part, and then the place behind the last part.
    entries: Vec<u32>,
}

impl Places {
    pub fn of(parts: &[PathPart]) -> Self {
        let (mut all, mut entries) = (vec![], vec![]);
        for (part, PathPart { length, .. }) in parts.iter().enumerate() {
            let Length { min, max } = length.unwrap_or(Length { min: 1, max: Some(1) });
            let first = all.len() as u32;
            entries.push(first);
            let most = max.unwrap_or(min);
            for count in 0..=most {
                let next = if count < most { Some(first + count + 1) } else { None };
                let next = next.or(max.is_none().then_some(first + count));
                all.push(Place { part, leaves: count >= min, next });
            }
        }
        entries.push(all.len() as u32);
        Self { all, entries }
    }

    /// Returns the place where a part begins; behind the last part, the place of ends.
    pub fn entry(&self, part: usize) -> u32 {
        self.entries[part]
    }

    /// Returns the place of ends.
    pub fn last(&self) -> u32 {
        self.all.len() as u32
    }

    /// Returns the part of a place that is not that of ends.
    pub fn part(&self, place: u32) -> usize {
        self.all[place as usize].part
    }

    /// Whether a walk may go on from a place of a part to the next part.
    pub fn leaves(&self, place: u32, part: usize) -> bool {
        self.all.get(place as usize).is_some_and(|place| place.part == part && place.leaves)
    }

    /// Returns the place after another repetition, if the place is of a part and there may be one.
    pub fn next(&self, place: u32, part: usize) -> Option<u32> {
        self.all.get(place as usize).filter(|place| place.part == part).and_then(|place| place.next)
    }
}
