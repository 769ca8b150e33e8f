//! Forgetting versions that nobody can read, a little at a time.
//!
//! Every change leaves a note of what it touched. Once all readers are at or past a version, the notes up to it are
//! worked off in order: undo steps are dropped, ended entries removed, stamps cleared, empty slots freed. A load that
//! touches a good part of the partition leaves one note for all of it, which is worked off by a sweep over the slots.
//! Stamps go when the notes of their version are done.

use super::Partition;
use crate::content::{ABSENT, FREE, HISTORY};
use crate::stamps::SETTLED;
use tidegraph_types::Version;

/// What a change touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touch {
    /// A vertex or its adjacency.
    Node(u32),
    /// An edge record.
    Edge(u32),
    /// An entry of the edge id index, whose edge ended.
    EdgeId(u32),
    /// Anything: look at all.
    Sweep,
}

/// How far a sweep has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    node: u32,
    edge: u32,
}

impl Partition {
    /// Whether there are notes up to a version.
    pub fn has_to_reclaim(&self, oldest: Version) -> bool {
        self.reclaimed < oldest || self.touched.front().is_some_and(|(version, _)| *version <= oldest)
    }

    /// Works off notes of versions up to `oldest`, below which nobody reads, about `budget` records at most.
    /// Answers how many records it looked at.
    pub fn reclaim(&mut self, oldest: Version, budget: usize) -> usize {
        self.reclaimed = self.reclaimed.max(oldest);
        let oldest = self.reclaimed;
        let mut done = 0;
        while done < budget {
            let Some(&(version, touch)) = self.touched.front() else { break };
            if version > oldest {
                break;
            }
            match touch {
                Touch::Node(slot) => self.settle_node(slot, oldest),
                Touch::Edge(slot) => self.settle_edge(slot, oldest),
                Touch::EdgeId(slot) => self.free_edge_id(slot),
                Touch::Sweep => {
                    let (looked, finished) = self.sweep_some(oldest, budget - done);
                    done += looked;
                    if !finished {
                        break;
                    }
                    self.sweep = None;
                }
            }
            done += 1;
            self.touched.pop_front();
        }
        let settled = match self.touched.front() {
            Some(&(version, _)) if version <= oldest => Version(version.0.saturating_sub(1)),
            _ => oldest,
        };
        self.stamps.drop_through(settled);
        if self.touched.is_empty() && self.touched.capacity() > 1024 {
            self.touched.shrink_to(256);
        }
        done
    }

    fn sweep_some(&mut self, oldest: Version, budget: usize) -> (usize, bool) {
        let mut sweep = self.sweep.unwrap_or(Sweep { node: 0, edge: 0 });
        let mut looked = 0;
        while looked < budget && sweep.node < self.nodes.end() {
            self.settle_node(sweep.node, oldest);
            sweep.node += 1;
            looked += 1;
        }
        while looked < budget && sweep.node >= self.nodes.end() && sweep.edge < self.edges.end() {
            self.settle_edge(sweep.edge, oldest);
            sweep.edge += 1;
            looked += 1;
        }
        self.sweep = Some(sweep);
        (looked, sweep.node >= self.nodes.end() && sweep.edge >= self.edges.end())
    }

    fn settle_node(&mut self, slot: u32, oldest: Version) {
        let node = self.nodes.get_mut(slot);
        node.out.settle(oldest, &self.stamps);
        node.inward.settle(oldest, &self.stamps);
        match node.state {
            SETTLED | FREE | ABSENT => {}
            HISTORY => {
                let Some(history) = self.histories.get_mut(&slot) else { return };
                if history.forget(oldest)
                    && let Some(history) = self.histories.remove(&slot)
                {
                    let now = if history.present { self.label_sets.get(node.labels) } else { &[] };
                    for label in history.stale_labels {
                        if !now.contains(&label) {
                            self.members.remove(label, slot);
                        }
                    }
                    node.state = if history.present { SETTLED } else { ABSENT };
                }
            }
            stamp => {
                if self.stamps.get(stamp).begin <= oldest {
                    node.state = SETTLED;
                }
            }
        }
        if node.state == ABSENT && node.out.is_empty() && node.inward.is_empty() {
            self.free_node(slot);
        }
    }

    fn settle_edge(&mut self, slot: u32, oldest: Version) {
        let record = self.edges.get_mut(slot);
        match record.state {
            SETTLED | FREE | ABSENT => {}
            HISTORY => {
                let Some(history) = self.edge_histories.get_mut(&slot) else { return };
                if history.forget(oldest)
                    && let Some(history) = self.edge_histories.remove(&slot)
                {
                    record.state = SETTLED;
                    if !history.present {
                        self.free_edge(slot);
                    }
                }
            }
            stamp => {
                if self.stamps.get(stamp).begin <= oldest {
                    record.state = SETTLED;
                }
            }
        }
    }
}
