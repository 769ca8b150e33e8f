//! Keeps copies of the newest checkpoints of this node's replicas on its disk, from which it restores them when it
//! starts again.
//!
//! Flow: several times in the time of a checkpoint, while the process restores nothing, the node reads which checkpoints
//! the map notes → copies what it lacks of those of its replicas that answer reads → removes the other copies of these
//! partitions, and all copies of partitions that it no longer holds. At each step of the node, also during restores, the
//! copies make room for property pages.
//!
//! What must never happen: copies take bandwidth from restores, or room from property pages ([`LocalCopies`] leaves half);
//! the node leaves the map because copies fill its disk.

use super::{Shared, reconciler};
use crate::Error;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_cluster::Checkpoint;
use tidegraph_platform::metric;
use tidegraph_storage::Manifest;
use tidegraph_storage::checkpoint::{Kept, LocalCopies};
use tidegraph_types::PartitionId;

/// Comparisons with the checkpoints in the map in the time after which a checkpoint is due.
const LOOKS: u32 = 5;

/// The copies of a node, and what is known of them.
pub(super) struct CopyKeeper {
    copies: Arc<LocalCopies>,
    held: Mutex<BTreeMap<PartitionId, HeldCopies>>,
    look_every: Duration,
    next_look: Mutex<Duration>,
    is_working: AtomicBool,
}

/// The copies of one partition.
struct HeldCopies {
    /// The checkpoint whose objects were all copied.
    whole: Option<Checkpoint>,
    /// The objects of the checkpoint that was copied last, whole or in part.
    objects: FxHashSet<String>,
}

impl HeldCopies {
    /// Whether all objects of a checkpoint were copied, and none of the copies had to make room since.
    fn is_whole(&self, newest: &Checkpoint, copies: &LocalCopies) -> bool {
        self.whole.as_ref() == Some(newest) && copies.has_all(&self.objects)
    }
}

impl CopyKeeper {
    pub fn new(copies: Arc<LocalCopies>, checkpoint_after: Duration) -> Self {
        Self {
            copies,
            look_every: checkpoint_after / LOOKS,
            held: Mutex::default(),
            next_look: Mutex::new(Duration::ZERO),
            is_working: AtomicBool::new(false),
        }
    }

    /// The copies that a restore may read.
    pub fn copies(&self) -> Arc<LocalCopies> {
        self.copies.clone()
    }

    /// Whether a look is due, which then begins.
    fn begin(&self, now: Duration) -> bool {
        *self.next_look.lock() <= now && !self.is_working.swap(true, Ordering::AcqRel)
    }

    fn end(&self, now: Duration) {
        *self.next_look.lock() = now + self.look_every;
        self.is_working.store(false, Ordering::Release);
    }
}

/// Removes copies if the disk runs full, and starts to copy checkpoints if it is due.
pub(super) fn keep_if_due(shared: &Arc<Shared>, tasks: &mut reconciler::Tasks) {
    let Some(keeper) = &shared.copies else { return };
    if keeper.copies.make_room() {
        metric::copies(&shared.graph.name, keeper.copies.bytes());
    }
    if shared.restores() || !keeper.begin(shared.clock.now()) {
        return;
    }
    let (of, working) = (shared.clone(), keeper.clone());
    let begun = tasks.spawn(shared, "copies".into(), move || {
        if let Err(error) = of.keep_copies(&working) {
            tracing::warn!(error = %tidegraph_platform::chain(&error), "cannot copy checkpoints; trying again soon");
        }
        working.end(of.clock.now());
    });
    if !begun {
        keeper.end(shared.clock.now());
    }
}

impl Shared {
    /// Whether a replica is being restored, of this graph or of another one of the process.
    fn restores(&self) -> bool {
        !self.bringing_up.lock().is_empty() || self.reads.are_in_use()
    }

    fn keep_copies(&self, keeper: &CopyKeeper) -> Result<(), Error> {
        let noted = self.map_store.checkpoints(&self.graph.name)?;
        let wanted: BTreeSet<PartitionId> =
            self.watch.map().held_by(&self.id).map(|(partition, _)| partition).collect();
        let mut held = keeper.held.lock();
        held.retain(|partition, _| wanted.contains(partition));
        for replica in self.all().into_iter().filter(|replica| replica.is_ready()) {
            let partition = replica.partition;
            let Some(newest) = noted.iter().find(|noted| noted.partition == partition) else { continue };
            if held.get(&partition).is_some_and(|held| held.is_whole(newest, &keeper.copies)) {
                continue;
            }
            match self.keep_copies_of(keeper, newest) {
                Ok(None) => {}
                Ok(Some((kept, copied))) => {
                    held.insert(partition, copied);
                    if kept != Kept::All {
                        break;
                    }
                }
                // It may have been replaced by a newer one, which the map notes.
                Err(error) => {
                    tracing::warn!(%partition, %error, "cannot copy a checkpoint; trying again soon")
                }
            }
        }
        // Of a partition that is still to be restored or copied, everything may be of use.
        keeper.copies.retain(|object| match partition_of(object) {
            Some(partition) => match held.get(&partition) {
                Some(held) => held.objects.contains(object),
                None => wanted.contains(&partition),
            },
            None => false,
        });
        metric::copies(&self.graph.name, keeper.copies.bytes());
        Ok(())
    }

    /// Copies a checkpoint; `None` if it is gone.
    fn keep_copies_of(
        &self,
        keeper: &CopyKeeper,
        newest: &Checkpoint,
    ) -> Result<Option<(Kept, HeldCopies)>, Error> {
        let Some(manifest) = Manifest::latest(&self.objects, &newest.prefix)? else { return Ok(None) };
        let stop = || self.is_stopping() || self.restores();
        let kept = keeper.copies.keep(&manifest, &self.objects, &self.reads, &stop)?;
        let objects = manifest.objects().map(|object| object.path.clone()).collect();
        let whole = (kept == Kept::All).then(|| newest.clone());
        Ok(Some((kept, HeldCopies { whole, objects })))
    }
}

/// Returns the partition that an object of a checkpoint belongs to ([`super::prefix_of`]).
fn partition_of(object: &str) -> Option<PartitionId> {
    let number = object.strip_prefix("checkpoints/p")?.split('/').next()?;
    number.parse().ok().map(PartitionId)
}

#[cfg(test)]
mod tests {
    use super::super::prefix_of;
    use super::*;

    #[test]
    fn objects_of_checkpoints_name_their_partition() {
        for number in [0, 7, 4_095, u16::MAX] {
            let object = format!("{}/n-1-3/data-1-0/partition-00000", prefix_of(PartitionId(number)));
            assert_eq!(partition_of(&object), Some(PartitionId(number)));
        }
        assert_eq!(["checkpoints/q1/a", "segments/p1", "checkpoints/p70000/a"].map(partition_of), [None; 3]);
    }
}
