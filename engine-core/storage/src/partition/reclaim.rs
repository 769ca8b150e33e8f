//! Reclaims versions that cannot be read any more, a little at a time.
//!
//! Every change leaves a note of what it touched. Once all readers are at or past a version, the notes up to it are
//! processed in order: undo records are dropped, ended entries removed, empty slots freed. A load that touches a
//! large part of the partition leaves one note for all of it, which a sweep over the slots processes.
//!
//! What must never happen: dropping data that the oldest readable version, or a later one, sees (STO-1).

use super::Open;
use super::lists::ListNumber;
use crate::properties::{Freed, RowOwner, RowPlace};
use crossbeam_epoch::pin;
use std::sync::atomic::Ordering;
use tidegraph_types::Version;

/// What a change touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touch {
    /// The adjacency of a vertex.
    Node(u32),
    /// A row of properties.
    Row(RowPlace),
    /// All rows of a page.
    Page(u32),
    /// An entry of the edge id index, whose edge ended.
    EdgeId(u32),
    /// The adjacency of any vertex.
    Sweep,
}

/// Progress of a sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    /// Number of the next list.
    list: u32,
}

/// Cost of reclaiming a page, in records: most of its rows have nothing to reclaim.
const PAGE_COST: usize = 64;

impl Open<'_> {
    /// Returns whether there are notes up to a version.
    pub fn has_to_reclaim(&self, oldest: Version) -> bool {
        self.partition.reclaimed() < oldest
            || self.partition.links.waits()
            || self.state.touched.front().is_some_and(|(version, _)| *version <= oldest)
    }

    /// Processes notes of versions up to `oldest`, below which there are no readers, and about `budget` records.
    /// Returns how many records it looked at.
    pub fn reclaim(&mut self, oldest: Version, budget: usize) -> usize {
        self.partition.reclaimed.fetch_max(oldest.0, Ordering::AcqRel);
        let oldest = self.partition.reclaimed();
        let mut done = 0;
        while done < budget {
            let Some(&(version, touch)) = self.state.touched.front() else { break };
            if version > oldest {
                break;
            }
            match touch {
                Touch::Node(slot) => self.fold_node(slot, oldest),
                Touch::Row(place) => self.reclaim_row(place, oldest),
                Touch::Page(number) => {
                    self.reclaim_page(number, oldest);
                    done += PAGE_COST;
                }
                Touch::EdgeId(slot) => self.free_edge_id(slot),
                Touch::Sweep => {
                    let (looked, finished) = self.sweep_some(oldest, budget - done);
                    done += looked;
                    if !finished {
                        break;
                    }
                    self.state.sweep = None;
                }
            }
            done += 1;
            self.state.touched.pop_front();
        }
        self.partition.links.collect();
        if done > 0 {
            let guard = pin();
            self.state.free_nodes.seal(&guard);
            self.state.free_edge_ids.seal(&guard);
        }
        if self.state.touched.is_empty() && !self.partition.links.waits() && self.partition.links.is_sparse()
        {
            self.state.touched.push_back((oldest, Touch::Sweep));
        }
        if self.state.touched.is_empty() && self.state.touched.capacity() > 1024 {
            self.state.touched.shrink_to(256);
        }
        done
    }

    fn sweep_some(&mut self, oldest: Version, budget: usize) -> (usize, bool) {
        let mut sweep = self.state.sweep.unwrap_or(Sweep { list: 0 });
        if sweep.list == 0 {
            // A sweep folds all lists to their exact size, so it can move them together as well.
            self.partition.links.set_compacting(true);
        }
        let mut looked = 0;
        while looked < budget && sweep.list < ListNumber::end(self.partition.nodes.end()) {
            let number = ListNumber(sweep.list);
            if let Some(list) = self.partition.list(number) {
                self.partition.links.fold(&mut self.state.permit, list, oldest, true);
                if number.is_inward() {
                    self.free_if_empty(number.slot());
                }
            }
            sweep.list += 1;
            looked += 1;
        }
        self.state.sweep = Some(sweep);
        let finished = sweep.list >= ListNumber::end(self.partition.nodes.end());
        if finished {
            self.partition.links.set_compacting(false);
        }
        (looked, finished)
    }

    /// Folds the adjacency of a vertex, and frees its node if it is empty.
    fn fold_node(&mut self, slot: u32, oldest: Version) {
        let node = self.partition.nodes.get(slot);
        self.partition.links.fold(&mut self.state.permit, &node.out, oldest, false);
        self.partition.links.fold(&mut self.state.permit, &node.inward, oldest, false);
        self.free_if_empty(slot);
    }

    fn free_if_empty(&mut self, slot: u32) {
        let node = self.partition.nodes.get(slot);
        if !node.row.is_free() && node.row.get().is_none() && node.out.is_empty() && node.inward.is_empty() {
            self.free_node(slot);
        }
    }

    fn reclaim_row(&mut self, place: RowPlace, oldest: Version) {
        let guard = pin();
        let (pages, view) = self.pages(&guard);
        if let Some(freed) = pages.reclaim_row(view, place, oldest) {
            self.forget_row(freed);
        }
    }

    fn reclaim_page(&mut self, number: u32, oldest: Version) {
        let guard = pin();
        let mut freed = Vec::new();
        let (pages, view) = self.pages(&guard);
        pages.reclaim_page(view, number, oldest, &mut freed);
        freed.into_iter().for_each(|freed| self.forget_row(freed));
    }

    /// Removes the last reference to a row that no version sees. If the owner's row has moved, the reference is to
    /// another row.
    fn forget_row(&mut self, Freed { owner, place }: Freed) {
        match owner {
            RowOwner::Vertex(gui) => {
                let Some(slot) = self.slot(gui) else { return };
                let row = &self.partition.nodes.get(slot).row;
                if row.get() == Some(place) {
                    row.set(None);
                    self.free_if_empty(slot);
                }
            }
            RowOwner::Edge(sid) => {
                self.partition.by_sid.remove(&mut self.state.permit, super::sid_hash(sid), place.0);
            }
        }
    }
}
