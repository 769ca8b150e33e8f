//! Writes checkpoints of replicas to the object store.
//!
//! One replica of each partition writes them. The serving nodes of a partition are ordered by id, and the partition's
//! number selects one, so that the work is spread over nodes. While the map changes, two nodes may write for one
//! partition; they use different prefixes, and the map notes the newest checkpoint.

use super::replica::Replica;
use super::{Shared, prefix_of, reconciler};
use crate::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_cluster::Checkpoint;
use tidegraph_storage::{CheckpointMeta, checkpoint};
use tidegraph_types::{PartitionId, Version};

impl Shared {
    /// Whether this node writes the checkpoints of a partition.
    fn writes(&self, partition: PartitionId) -> bool {
        let map = self.watch.map();
        let mut serving: Vec<_> = map.serving(partition).into_iter().map(|(id, _)| id).collect();
        serving.sort_unstable();
        let turn = usize::from(partition.0) % serving.len().max(1);
        serving.get(turn).is_some_and(|id| **id == self.id)
    }

    /// Writes a checkpoint of a replica and notes it in the map. Returns its version.
    fn write_checkpoint(&self, replica: &Replica) -> Result<Version, Error> {
        let (epoch, pin) = replica.with_epoch(|| replica.store.pin_published());
        let meta = {
            let meta = self.meta.lock();
            CheckpointMeta {
                graph: self.graph.name.clone(),
                epoch,
                next_sid: meta.next_sid.max(1),
                tokens: meta.tokens.iter().map(|(token, name)| (*token, name.clone())).collect(),
            }
        };
        let version = pin.version();
        let generation = self.generation.load(Ordering::Relaxed);
        let prefix = format!("{}/{}-{generation}", prefix_of(replica.partition), self.id);
        replica.store.checkpoint(version, &self.objects, &prefix, meta)?;
        drop(pin);
        checkpoint::prune(&self.objects, &prefix, self.config.checkpoints_kept)?;
        let noted = Checkpoint { partition: replica.partition, version, prefix: prefix.clone() };
        self.map_store.note_checkpoint(&self.graph.name, &noted)?;
        self.remove_others(replica.partition, &prefix, version)?;
        Ok(version)
    }

    /// Removes older checkpoints of other nodes, once this node has written as many as are kept.
    fn remove_others(&self, partition: PartitionId, own: &str, below: Version) -> Result<(), Error> {
        let all = self.objects.list(&format!("{}/", prefix_of(partition)))?;
        let manifests = |prefix: &str| {
            let of = format!("{prefix}/manifest-");
            all.iter().filter(|object| object.path.starts_with(&of)).count()
        };
        if manifests(own) < self.config.checkpoints_kept {
            return Ok(());
        }
        for object in all.iter().filter(|object| !object.path.starts_with(&format!("{own}/"))) {
            // A node that still writes uses newer versions in its names.
            let Some(version) = version_in(&object.path) else { continue };
            if version < below {
                self.objects.delete(&object.path)?;
            }
        }
        Ok(())
    }
}

/// Parses the version in the name of a manifest or of a data directory.
fn version_in(path: &str) -> Option<Version> {
    let part = path.split('/').find(|part| part.starts_with("manifest-") || part.starts_with("data-"))?;
    Some(Version(part.split('-').nth(1)?.parse().ok()?))
}

/// Starts to write a replica's checkpoint if it is due and this node writes it.
pub(super) fn write_if_due(shared: &Arc<Shared>, replica: &Arc<Replica>, tasks: &mut reconciler::Tasks) {
    let now = shared.clock.now();
    let since = replica.applied().0.saturating_sub(replica.checkpointed.load(Ordering::Relaxed));
    let waited = now.saturating_sub(replica.checkpointed_at());
    let is_due =
        since >= shared.config.checkpoint_versions || since > 0 && waited >= shared.config.checkpoint_after;
    if !is_due || !replica.is_ready() || !shared.writes(replica.partition) {
        return;
    }
    if replica.busy.swap(true, Ordering::AcqRel) {
        return;
    }
    let (of, replica) = (shared.clone(), replica.clone());
    let busy = replica.clone();
    let begun = tasks.spawn(format!("checkpoint {}", replica.partition), move || {
        match of.write_checkpoint(&replica) {
            Ok(version) => {
                replica.checkpointed.store(version.0, Ordering::Relaxed);
                tracing::info!(partition = %replica.partition, %version, "wrote a checkpoint");
            }
            Err(error) => {
                tracing::error!(partition = %replica.partition, %error, "cannot write a checkpoint; the log is not trimmed");
            }
        }
        // Failed attempts count too, so that the next one waits.
        replica.set_checkpointed_at(of.clock.now());
        replica.busy.store(false, Ordering::Release);
    });
    if !begun {
        busy.busy.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_names() {
        let path = "checkpoints/p00001/n-1-3/data-00000000000000000150-000000/partition-00000";
        assert_eq!(version_in(path), Some(Version(150)));
        let path = "checkpoints/p00001/n-1-3/manifest-00000000000000000007-000002";
        assert_eq!(version_in(path), Some(Version(7)));
        assert_eq!(version_in("checkpoints/p00001/other"), None);
    }
}
