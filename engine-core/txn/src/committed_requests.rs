//! Ids of committed requests with their versions, for callers that did not get the answer and ask again (TXN-4).
//!
//! Bounded: the oldest ids are forgotten, and the *floor* is the newest forgotten
//! version. A request that read before the floor may have been committed at or below it.
//! The sequencer cannot tell, so it does not commit such a request again.
//!
//! Ids of a group count at once, so that a request that is in a group twice is committed once.
//! [`CommittedRequests::undo_group`] takes them back if the log refuses the group; [`CommittedRequests::keep_group`]
//! keeps them.

use std::collections::{BTreeMap, VecDeque};
use tidegraph_types::{RequestId, Version};

#[derive(Debug)]
pub(crate) struct CommittedRequests {
    /// Ordered, so that ids of one key are neighbours.
    by_id: BTreeMap<RequestId, Version>,
    /// In order of version.
    order: VecDeque<(Version, RequestId)>,
    limit: usize,
    floor: Version,
    /// Number of entries at the end of `order` that belong to the group being formed.
    pending: usize,
}

/// Whether a request was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestStatus {
    /// It was committed, at this version.
    Committed(Version),
    /// Another request with its key was committed, at this version.
    KeyReused(Version),
    /// It was not committed above this version, the floor.
    NotCommittedAbove(Version),
}

impl CommittedRequests {
    /// Starts with committed requests in order of version; ids of versions up to `floor` are unknown.
    pub fn new(limit: usize, floor: Version, committed: Vec<(Version, RequestId)>) -> Self {
        let mut remembered =
            Self { by_id: BTreeMap::new(), order: VecDeque::new(), limit, floor, pending: 0 };
        for (version, id) in committed {
            remembered.add(id, version);
            remembered.keep_group();
        }
        remembered
    }

    pub fn look_up(&self, id: RequestId) -> RequestStatus {
        self.by_id.get(&id).map_or(RequestStatus::NotCommittedAbove(self.floor), |version| {
            RequestStatus::Committed(*version)
        })
    }

    /// Looks up a request whose id is made from a key of its caller.
    pub fn look_up_key(&self, id: RequestId) -> RequestStatus {
        match self.look_up(id) {
            RequestStatus::NotCommittedAbove(floor) => {
                let other = self.by_id.range(id.of_same_key()).next();
                other.map_or(RequestStatus::NotCommittedAbove(floor), |(_, version)| {
                    RequestStatus::KeyReused(*version)
                })
            }
            known => known,
        }
    }

    pub fn add(&mut self, id: RequestId, version: Version) {
        self.by_id.insert(id, version);
        self.order.push_back((version, id));
        self.pending += 1;
    }

    pub fn undo_group(&mut self) {
        for _ in 0..std::mem::take(&mut self.pending) {
            if let Some((_, id)) = self.order.pop_back() {
                self.by_id.remove(&id);
            }
        }
    }

    pub fn keep_group(&mut self) {
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

    /// Shows TXN-4.
    #[test]
    fn the_oldest_are_forgotten_and_that_is_known() {
        let committed = (3..=7).map(|n| (Version(n), RequestId(u128::from(n)))).collect();
        let mut remembered = CommittedRequests::new(3, Version(2), committed);
        assert_eq!(remembered.look_up(RequestId(5)), RequestStatus::Committed(Version(5)));
        assert_eq!(remembered.look_up(RequestId(4)), RequestStatus::NotCommittedAbove(Version(4)));
        remembered.add(RequestId(100), Version(8));
        remembered.add(RequestId(101), Version(9));
        assert_eq!(remembered.look_up(RequestId(100)), RequestStatus::Committed(Version(8)));
        remembered.undo_group();
        assert_eq!(remembered.look_up(RequestId(100)), RequestStatus::NotCommittedAbove(Version(4)));
        assert_eq!(remembered.look_up(RequestId(7)), RequestStatus::Committed(Version(7)));
        for n in 10..1000 {
            remembered.add(RequestId(n), Version(n as u64));
            remembered.keep_group();
            assert!(remembered.by_id.len() <= 3 && remembered.order.len() <= 3);
        }
    }
}
