//! Forgetting versions that nobody can read, a little at a time.
//!
//! Every change leaves a note of what it touched. Once all readers are at or past a version, the notes up to it are
//! worked off in order: undo steps are dropped, ended entries removed, empty slots freed. A load that
//! touches a good part of the partition leaves one note for all of it, which is worked off by a sweep over the slots.

use super::Open;
use super::lists::ListNumber;
use crate::properties::{Freed, Owner, Place};
use crossbeam_epoch::pin;
use std::sync::atomic::Ordering;
use tidegraph_types::Version;

/// What a change touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touch {
    /// The adjacency of a vertex.
    Node(u32),
    /// A row of properties.
    Row(Place),
    /// All rows of a page.
    Page(u32),
    /// An entry of the edge id index, whose edge ended.
    EdgeId(u32),
    /// The adjacency of any vertex: look at all.
    Sweep,
}

/// How far a sweep has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    /// Number of the next list.
    list: u32,
}

/// What settling a page counts for: most of its rows have nothing to settle.
const PAGE_COST: usize = 64;

impl Open<'_> {
    /// Whether there are notes up to a version.
    pub fn has_to_reclaim(&self, oldest: Version) -> bool {
        self.partition.reclaimed() < oldest
            || self.partition.links.waits()
            || self.book.touched.front().is_some_and(|(version, _)| *version <= oldest)
    }

    /// Works off notes of versions up to `oldest`, below which nobody reads, about `budget` records at most.
    /// Answers how many records it looked at.
    pub fn reclaim(&mut self, oldest: Version, budget: usize) -> usize {
        self.partition.reclaimed.fetch_max(oldest.0, Ordering::AcqRel);
        let oldest = self.partition.reclaimed();
        let mut done = 0;
        while done < budget {
            let Some(&(version, touch)) = self.book.touched.front() else { break };
            if version > oldest {
                break;
            }
            match touch {
                Touch::Node(slot) => self.settle_node(slot, oldest),
                Touch::Row(place) => self.settle_row(place, oldest),
                Touch::Page(number) => {
                    self.settle_page(number, oldest);
                    done += PAGE_COST;
                }
                Touch::EdgeId(slot) => self.free_edge_id(slot),
                Touch::Sweep => {
                    let (looked, finished) = self.sweep_some(oldest, budget - done);
                    done += looked;
                    if !finished {
                        break;
                    }
                    self.book.sweep = None;
                }
            }
            done += 1;
            self.book.touched.pop_front();
        }
        self.partition.links.collect();
        if done > 0 {
            let guard = pin();
            self.book.free_nodes.seal(&guard);
            self.book.free_edge_ids.seal(&guard);
        }
        if self.book.touched.is_empty() && !self.partition.links.waits() && self.partition.links.is_sparse() {
            self.book.touched.push_back((oldest, Touch::Sweep));
        }
        if self.book.touched.is_empty() && self.book.touched.capacity() > 1024 {
            self.book.touched.shrink_to(256);
        }
        done
    }

    fn sweep_some(&mut self, oldest: Version, budget: usize) -> (usize, bool) {
        let mut sweep = self.book.sweep.unwrap_or(Sweep { list: 0 });
        if sweep.list == 0 {
            // All lists are settled exactly: an occasion to move them together.
            self.partition.links.set_compacting(true);
        }
        let mut looked = 0;
        while looked < budget && sweep.list < ListNumber::end(self.partition.nodes.end()) {
            let number = ListNumber(sweep.list);
            if let Some(list) = self.partition.list(number) {
                self.partition.links.settle(&mut self.book.turn, list, oldest, true);
                if number.is_inward() {
                    self.free_if_empty(number.slot());
                }
            }
            sweep.list += 1;
            looked += 1;
        }
        self.book.sweep = Some(sweep);
        let finished = sweep.list >= ListNumber::end(self.partition.nodes.end());
        if finished {
            self.partition.links.set_compacting(false);
        }
        (looked, finished)
    }

    /// Settles the adjacency of a vertex.
    fn settle_node(&mut self, slot: u32, oldest: Version) {
        let node = self.partition.nodes.get(slot);
        self.partition.links.settle(&mut self.book.turn, &node.out, oldest, false);
        self.partition.links.settle(&mut self.book.turn, &node.inward, oldest, false);
        self.free_if_empty(slot);
    }

    fn free_if_empty(&mut self, slot: u32) {
        let node = self.partition.nodes.get(slot);
        if !node.row.is_free() && node.row.get().is_none() && node.out.is_empty() && node.inward.is_empty() {
            self.free_node(slot);
        }
    }

    fn settle_row(&mut self, place: Place, oldest: Version) {
        let guard = pin();
        let (keeper, desk) = self.desk(&guard);
        if let Some(freed) = keeper.settle(desk, place, oldest) {
            self.forget_row(freed);
        }
    }

    fn settle_page(&mut self, number: u32, oldest: Version) {
        let guard = pin();
        let mut freed = Vec::new();
        let (keeper, desk) = self.desk(&guard);
        keeper.settle_page(desk, number, oldest, &mut freed);
        freed.into_iter().for_each(|freed| self.forget_row(freed));
    }

    /// Lets go of a row that no version sees any more. If the owner moved, it has another one.
    fn forget_row(&mut self, Freed { owner, place }: Freed) {
        match owner {
            Owner::Vertex(gui) => {
                let Some(slot) = self.slot(gui) else { return };
                let row = &self.partition.nodes.get(slot).row;
                if row.get() == Some(place) {
                    row.set(None);
                    self.free_if_empty(slot);
                }
            }
            Owner::Edge(sid) => {
                self.partition.by_sid.remove(&mut self.book.turn, super::sid_hash(sid), place.0);
            }
        }
    }
}
