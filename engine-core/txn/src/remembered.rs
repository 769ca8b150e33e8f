//! Ids of requests that were committed, with their versions: so that one who did not hear the answer can ask again.
//!
//! Bounded: the oldest ids are forgotten, and the *floor* is the newest version that was forgotten. A request that read before
//! the floor may have been committed below it: nobody can tell any more, and it is not committed again.
//!
//! Ids of a group count at once, so that a request that stands in it twice is committed once; [`Remembered::undo`] takes them
//! back when the log refuses the group, [`Remembered::settle`] makes them stay.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tidegraph_types::{RequestId, Version};

#[derive(Debug)]
pub(crate) struct Remembered {
    by_id: FxHashMap<RequestId, Version>,
    /// In order of version.
    order: VecDeque<(Version, RequestId)>,
    limit: usize,
    floor: Version,
    /// How many at the end of `order` are of the group that is being formed.
    pending: usize,
}

/// What is known of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// It was committed.
    Committed(Version),
    /// It was not, unless it read before the version that is named.
    NotAbove(Version),
}

impl Remembered {
    /// Remembers what was committed, in order of version; nothing is known of versions up to `floor`.
    pub fn new(limit: usize, floor: Version, committed: Vec<(Version, RequestId)>) -> Self {
        let mut remembered =
            Self { by_id: FxHashMap::default(), order: VecDeque::new(), limit, floor, pending: 0 };
        for (version, id) in committed {
            remembered.add(id, version);
            remembered.settle();
        }
        remembered
    }

    pub fn look_up(&self, id: RequestId) -> Known {
        self.by_id.get(&id).map_or(Known::NotAbove(self.floor), |version| Known::Committed(*version))
    }

    pub fn add(&mut self, id: RequestId, version: Version) {
        self.by_id.insert(id, version);
        self.order.push_back((version, id));
        self.pending += 1;
    }

    pub fn undo(&mut self) {
        for _ in 0..std::mem::take(&mut self.pending) {
            if let Some((_, id)) = self.order.pop_back() {
                self.by_id.remove(&id);
            }
        }
    }

    pub fn settle(&mut self) {
        self.pending = 0;
        while self.order.len() > self.limit {
            let Some((version, id)) = self.order.pop_front() else { break };
            self.floor = self.floor.max(version);
            if self.by_id.get(&id) == Some(&version) {
                self.by_id.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_that_is_known() {
        let committed = (3..=7).map(|n| (Version(n), RequestId(u128::from(n)))).collect();
        let mut remembered = Remembered::new(3, Version(2), committed);
        assert_eq!(remembered.look_up(RequestId(5)), Known::Committed(Version(5)));
        assert_eq!(remembered.look_up(RequestId(4)), Known::NotAbove(Version(4)));
        remembered.add(RequestId(100), Version(8));
        remembered.add(RequestId(101), Version(9));
        assert_eq!(remembered.look_up(RequestId(100)), Known::Committed(Version(8)));
        remembered.undo();
        assert_eq!(remembered.look_up(RequestId(100)), Known::NotAbove(Version(4)));
        assert_eq!(remembered.look_up(RequestId(7)), Known::Committed(Version(7)));
        for n in 10..1000 {
            remembered.add(RequestId(n), Version(n as u64));
            remembered.settle();
            assert!(remembered.by_id.len() <= 3 && remembered.order.len() <= 3);
        }
    }
}
