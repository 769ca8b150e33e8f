//! Removes the checkpoints of partitions before a split from the object store.
//!
//! They are needless once the log no longer has the records behind them: nothing can be restored from them then. Before
//! that, replicas of the new partitions may be restored from them. A number of partitions never comes back, so a process
//! that acts on an old map removes nothing that is needed. Backups copy objects, and choose others when some are gone.
//!
//! What must never happen: a checkpoint is removed from which, with the log, a partition can still be restored and of
//! which no newer one is noted.

use crate::Error;
use crate::node::prefix_of;
use std::collections::VecDeque;
use tidegraph_cluster::{Checkpoint, Graph};
use tidegraph_platform::Objects;
use tidegraph_types::{PartitionCount, PartitionId, Version};

/// Largest number of objects that one round removes: it delays the other work of the leader.
const AT_ONCE: usize = 32;

/// The partitions whose checkpoints a leader removes.
#[derive(Debug, Default)]
pub(super) struct FormerCheckpoints {
    /// The number of partitions for which the list was made.
    of: Option<PartitionCount>,
    waiting: VecDeque<PartitionId>,
}

/// Returns the partitions before splits whose checkpoints nobody needs, where the log was trimmed up to `trimmed`.
fn needless(graph: &Graph, noted: &[Checkpoint], trimmed: Version) -> Option<VecDeque<PartitionId>> {
    let layout = graph.layout();
    if graph.splits.into.is_some() || graph.splits.from.is_some() {
        return None;
    }
    // Partitions of a split that was taken back have higher numbers, and may come again.
    let is_former = |noted: &&Checkpoint| layout.all().next().is_some_and(|first| noted.partition < first);
    let restorable = graph.restorable(noted)?;
    let is_behind = noted.iter().filter(is_former).all(|noted| noted.version <= trimmed);
    (is_behind && !restorable.iter().any(is_former))
        .then(|| noted.iter().filter(is_former).map(|noted| noted.partition).collect())
}

impl FormerCheckpoints {
    /// Notes what may be removed, after the log was trimmed up to a version.
    pub fn note(&mut self, graph: &Graph, noted: &[Checkpoint], trimmed: Version) {
        if self.of == Some(graph.partitions) {
            return;
        }
        if let Some(waiting) = needless(graph, noted, trimmed) {
            (self.of, self.waiting) = (Some(graph.partitions), waiting);
        }
    }

    /// Removes some objects of one partition.
    ///
    /// # Errors
    /// [`Error::Object`] if the object store fails. The next call goes on.
    pub fn remove_some(&mut self, objects: &Objects) -> Result<(), Error> {
        let Some(partition) = self.waiting.front() else { return Ok(()) };
        let found = objects.list(&format!("{}/", prefix_of(*partition)))?;
        // Manifests come last by name, and go first: what they name is there as long as they are.
        for object in found.iter().rev().take(AT_ONCE) {
            objects.delete(&object.path)?;
        }
        if found.len() <= AT_ONCE {
            tracing::info!(%partition, "removed the checkpoints of a partition before a split");
            self.waiting.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_cluster::Splits;
    use tidegraph_cluster::testing::graph_named;

    fn count(count: u16) -> PartitionCount {
        PartitionCount::new(count).unwrap()
    }

    fn noted(all: &[(u16, u64)]) -> Vec<Checkpoint> {
        let one = |&(partition, version): &(u16, u64)| Checkpoint {
            partition: PartitionId(partition),
            version: Version(version),
            prefix: String::new(),
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn checkpoints_stay_until_the_log_has_nothing_behind_them() {
        let splits = Splits { created_with: Some(count(2)), into: None, from: None };
        let split = Graph { partitions: count(4), splits, ..graph_named("g", 4) };
        let all = noted(&[(0, 10), (1, 12), (4, 20), (5, 20), (6, 20), (7, 20), (8, 5)]);
        let of = |graph: &Graph, noted: &[Checkpoint], trimmed| {
            needless(graph, noted, Version(trimmed))
                .map(|found| found.iter().map(|of| of.0).collect::<Vec<_>>())
        };
        // 8 is of a split that was taken back.
        assert_eq!(of(&split, &all, 12), Some(vec![0, 1]));
        assert_eq!(of(&split, &all, 11), None);
        // One partition lacks a checkpoint of its own, or has an older one.
        assert_eq!(of(&split, &all[..5], 12), None);
        assert_eq!(of(&split, &noted(&[(0, 10), (1, 12), (4, 20), (5, 20), (6, 20), (7, 11)]), 12), None);
        // Nodes hold others.
        for splits in [Splits { into: Some(count(8)), ..splits }, Splits { from: Some(count(2)), ..splits }] {
            assert_eq!(of(&Graph { splits, ..split.clone() }, &all, 12), None);
        }
        let never = Graph { partitions: count(2), splits: Splits::default(), ..split };
        assert_eq!(of(&never, &all, 100), Some(vec![]));
    }
}
