//! Writes checkpoints of replicas to the object store.
//!
//! One replica of each partition writes them. The serving nodes of a partition are ordered by id, and the partition's
//! number selects one, so that the work is spread over nodes. While the map changes, two nodes may write for one
//! partition; they use different prefixes, and the map notes the newest checkpoint.

use super::replica::Replica;
use super::{Shared, prefix_of, reconciler};
use crate::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_cluster::{Checkpoint, NodeState};
use tidegraph_platform::ObjectInfo;
use tidegraph_storage::{CheckpointMeta, checkpoint};
use tidegraph_types::{PartitionId, Version};

/// Time after which a checkpoint that a node began before it ended, or before it started again, is no longer written.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

impl Shared {
    /// Whether this node writes the checkpoints of a partition.
    fn writes(&self, partition: PartitionId) -> bool {
        let map = self.watch.map();
        let mut serving: Vec<_> = map.serving(partition).into_iter().map(|(id, _)| id).collect();
        serving.sort_unstable();
        let turn = usize::from(partition.0) % serving.len().max(1);
        serving.get(turn).is_some_and(|id| **id == self.id)
    }

    /// Writes a checkpoint of a replica and notes it in the map, unless the map took the replica meanwhile. Returns its
    /// version.
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
        // The objects on which it builds may be gone: those of a former partition are removed once.
        if !self.is_wanted(replica.partition) {
            return Ok(version);
        }
        let noted = Checkpoint { partition: replica.partition, version, prefix: prefix.clone() };
        self.map_store.note_checkpoint(&self.graph.name, &noted)?;
        self.remove_others(replica.partition, &prefix, version)?;
        Ok(version)
    }

    /// Removes older checkpoints of other nodes, once this node has written as many as are kept. What a newer checkpoint
    /// uses stays, and so does what the next one of a living node may build on.
    fn remove_others(&self, partition: PartitionId, own: &str, below: Version) -> Result<(), Error> {
        let all = self.objects.list(&format!("{}/", prefix_of(partition)))?;
        let manifests = |prefix: &str| {
            let of = format!("{prefix}/manifest-");
            all.iter().filter(|object| object.path.starts_with(&of)).count()
        };
        if manifests(own) < self.config.checkpoints_kept {
            return Ok(());
        }
        let long_ago = self.clock.wall().checked_sub(ABANDONED_AFTER);
        let long_ago = long_ago.map_or(i64::MIN, |time| time.as_millisecond());
        for (prefix, modified_ms) in by_prefix(&all, &prefix_of(partition)) {
            if prefix == own {
                continue;
            }
            let is_written = self.is_written(&prefix);
            if is_written || modified_ms < long_ago {
                checkpoint::prune_below(&self.objects, &prefix, below, is_written)?;
            }
        }
        Ok(())
    }

    /// Whether a living node writes its checkpoints under a prefix.
    fn is_written(&self, prefix: &str) -> bool {
        let name = prefix.rsplit('/').next().unwrap_or(prefix);
        let Some((id, generation)) = name.rsplit_once('-') else { return false };
        let map = self.watch.map();
        map.nodes().any(|(node, known)| {
            node.to_string() == id
                && generation.parse() == Ok(known.generation)
                && known.state != NodeState::Gone
        })
    }
}

/// Returns the prefixes of a partition's checkpoints, each with the time at which its newest object was written, in
/// milliseconds since 1970.
fn by_prefix(listed: &[ObjectInfo], partition: &str) -> BTreeMap<String, i64> {
    let mut prefixes = BTreeMap::new();
    for object in listed {
        let rest = object.path.strip_prefix(partition).and_then(|rest| rest.strip_prefix('/'));
        let Some((name, _)) = rest.and_then(|rest| rest.split_once('/')) else { continue };
        let newest: &mut i64 = prefixes.entry(format!("{partition}/{name}")).or_insert(object.modified_ms);
        *newest = object.modified_ms.max(*newest);
    }
    prefixes
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
    let begun = tasks.spawn(shared, format!("checkpoint {}", replica.partition), move || {
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
    fn objects_belong_to_the_prefix_of_the_node_that_wrote_them() {
        let object =
            |path: &str, modified_ms| ObjectInfo { path: path.into(), bytes: 1, modified_ms, etag: None };
        let all = [
            object("checkpoints/p00001/n-1-3/data-00000000000000000150-000000/partition-00000", 7),
            object("checkpoints/p00001/n-1-3/manifest-00000000000000000150-000000", 9),
            object("checkpoints/p00001/n-2-1/manifest-00000000000000000007-000002", 5),
            object("checkpoints/p00001/other", 5),
        ];
        let found = by_prefix(&all, "checkpoints/p00001");
        let expected = [("checkpoints/p00001/n-1-3", 9), ("checkpoints/p00001/n-2-1", 5)];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected.map(|(path, at)| (path.to_owned(), at)));
    }
}
