//! Labels that all vertices with edges of a label have in common.
//!
//! In most graphs the label of an edge says which labels its ends have: `:LIKES` leads from a `Person` to a `Message`. A
//! partition notes this of its vertices, so that a query which came to a vertex by such an edge need not read its labels,
//! which are elsewhere in memory.
//!
//! STO-4: the labels in common only become fewer, until the partition is read from a checkpoint again. So what a reader finds
//! holds at every version that is published when it looks.
//!
//! What must never happen: a vertex gets an edge, or loses a label, and its version is published before it is noted here.

use super::{Open, Partition, RowPlace};
use crate::adjacency::{Each, Labels, Run};
use crossbeam_epoch::{Guard, pin};
use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tidegraph_types::{Token, Version};

/// The label of an edge, and whether the vertex is its source.
type Side = (Token, bool);

/// For each label of edges and each of their ends, the labels that all vertices there have.
#[derive(Default)]
pub(crate) struct CommonLabels(RwLock<FxHashMap<Side, SmallVec<[Token; 4]>>>);

impl CommonLabels {
    /// Notes that a vertex with exactly these labels has an edge.
    fn note(&self, side: Side, labels: &[Token]) {
        let holds = |common: &[Token]| common.iter().all(|label| labels.contains(label));
        if self.0.read().get(&side).is_some_and(|common| holds(common)) {
            return;
        }
        let mut sides = self.0.write();
        sides.entry(side).or_insert_with(|| labels.into()).retain(|label| labels.contains(label));
    }

    /// Returns whether all vertices at this end of edges of a label have these labels.
    pub fn have(&self, edge_label: Token, is_source: bool, labels: &[Token]) -> bool {
        let sides = self.0.read();
        let common = sides.get(&(edge_label, is_source));
        common.is_none_or(|common| labels.iter().all(|label| common.contains(label)))
    }
}

/// What one writer has noted already, for many lists of vertices of few characteristic sets.
#[derive(Default)]
pub(super) struct Noted(FxHashSet<(Side, u32)>);

impl Partition {
    pub fn common_labels(&self) -> &CommonLabels {
        &self.common_labels
    }

    /// Notes that the vertex of a slot has edges of a label, unless a vertex of its characteristic set was noted.
    pub(super) fn note_side(&self, slot: u32, side: Side, noted: &mut Noted) {
        let place = self.nodes.get(slot).row.get();
        let set = place.and_then(|place| self.rows.set(place.page()));
        if set.is_none_or(|set| noted.0.insert((side, set.number))) {
            self.common_labels.note(side, set.map_or(&[], |set| &set.labels));
        }
    }

    /// Notes that the vertex with a row has an edge of a label.
    pub(super) fn note_edge(&self, place: RowPlace, edge_label: Token, is_source: bool) {
        let labels = self.rows.set(place.page()).map_or(&[][..], |set| &set.labels);
        self.common_labels.note((edge_label, is_source), labels);
    }
}

impl Open<'_> {
    /// Notes that a vertex, which has edges, keeps only these labels.
    pub(super) fn note_fewer_labels(&self, slot: u32, kept: &[Token]) {
        let (node, guard) = (self.partition.node(slot), &pin() as &Guard);
        // Above every version, so that it sees what has not ended.
        let newest = Version(u64::MAX - 1);
        for (list, is_source) in [(&node.out, true), (&node.inward, false)] {
            let mut each = Each(|run: Run<'_>| {
                self.partition.common_labels.note((run.label, is_source), kept);
            });
            self.partition.links.read(list, newest, Labels::All, 0, guard, &mut each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_in_common_become_fewer() {
        let [knows, likes, person, student, robot] = [1, 2, 3, 4, 5].map(Token);
        let common = CommonLabels::default();
        assert!(common.have(knows, true, &[person]), "there is no such edge");
        common.note((knows, true), &[person, student]);
        assert!(common.have(knows, true, &[person, student]) && !common.have(knows, true, &[robot]));
        common.note((knows, true), &[robot, person]);
        assert!(common.have(knows, true, &[person]) && !common.have(knows, true, &[student]));
        common.note((knows, true), &[person, student]);
        assert!(!common.have(knows, true, &[student]), "one vertex does not have it");
        common.note((knows, true), &[]);
        assert!(!common.have(knows, true, &[person]) && common.have(knows, true, &[]));
        assert!(common.have(knows, false, &[person]) && common.have(likes, true, &[person]));
    }
}
