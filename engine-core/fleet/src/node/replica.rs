//! One replica: a store of one partition, and how far it is.

use crate::Error;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_engine::StoreApplier;
use tidegraph_log::{Position, Record};
use tidegraph_storage::Store;
use tidegraph_types::{Epoch, PartitionId, Version};

/// A replica on this node.
#[derive(Debug)]
pub(crate) struct Replica {
    pub partition: PartitionId,
    pub store: Arc<Store>,
    applier: StoreApplier,
    applied: AtomicU64,
    /// Epoch of the newest record that was applied, or is being applied.
    epoch: AtomicU64,
    /// Whether reads are answered: it has been near the end of the log once, and its indexes are complete.
    ready: AtomicBool,
    /// Whether it was taken from the node.
    dropped: AtomicBool,
    /// Why no further record can be applied.
    broken: Mutex<Option<String>>,
    /// How many wait for a version.
    waiting: Mutex<usize>,
    reached: Condvar,
    /// Version of the newest checkpoint that was written or restored here.
    pub checkpointed: AtomicU64,
    checkpointed_at_nanos: AtomicU64,
    /// Indexes are being filled, or a checkpoint is being written, by a thread.
    pub busy: AtomicBool,
}

impl Replica {
    pub fn new(partition: PartitionId, applier: StoreApplier, at: Position, now: Duration) -> Self {
        Self {
            partition,
            store: applier.store.clone(),
            applier,
            applied: AtomicU64::new(at.version.0),
            epoch: AtomicU64::new(at.epoch.0),
            ready: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            broken: Mutex::default(),
            waiting: Mutex::default(),
            reached: Condvar::new(),
            checkpointed: AtomicU64::new(at.version.0),
            checkpointed_at_nanos: AtomicU64::new(now.as_nanos() as u64),
            busy: AtomicBool::new(false),
        }
    }

    /// When the last checkpoint was written or tried.
    pub fn checkpointed_at(&self) -> Duration {
        Duration::from_nanos(self.checkpointed_at_nanos.load(Ordering::Relaxed))
    }

    pub fn set_checkpointed_at(&self, now: Duration) {
        self.checkpointed_at_nanos.store(now.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn applied(&self) -> Version {
        Version(self.applied.load(Ordering::Acquire))
    }

    /// Where it is in the log: the last version, and its epoch or, while a record is being applied, that one's.
    pub fn position(&self) -> Position {
        let (epoch, version) = self.with_epoch(|| self.applied());
        Position { version, epoch }
    }

    /// A version that `read` finds here, and an epoch with which a reader may go on behind it: the version's, or that of the record
    /// after it. A lower one would let in what a deposed sequencer wrote, a higher one would keep out what counts.
    pub fn with_epoch<T>(&self, mut read: impl FnMut() -> T) -> (Epoch, T) {
        loop {
            let before = self.epoch.load(Ordering::Acquire);
            let version = read();
            if self.epoch.load(Ordering::Acquire) == before {
                return (Epoch(before), version);
            }
        }
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) && !self.is_dropped()
    }

    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub fn drop_it(&self) {
        self.dropped.store(true, Ordering::Release);
        self.reached.notify_all();
    }

    pub fn broken(&self) -> Option<String> {
        self.broken.lock().clone()
    }

    /// Applies the record after the last one. What is applied already is passed over; after a record further on, a fault of
    /// the caller, the replica is broken.
    pub fn apply(&self, record: &Record) -> Result<(), Error> {
        if record.version <= self.applied() {
            return Ok(());
        }
        if record.version != self.applied().next() {
            let (partition, applied, next) = (self.partition, self.applied(), record.version);
            let error = Error::Gap { partition, applied, next };
            // It could only stand still: it is restored anew.
            *self.broken.lock() = Some(error.to_string());
            return Err(error);
        }
        // Before its version can be seen.
        self.epoch.fetch_max(record.epoch.0, Ordering::AcqRel);
        if let Err(error) = self.applier.try_apply(record) {
            *self.broken.lock() = Some(error.to_string());
            return Err(Error::Apply {
                partition: self.partition,
                version: record.version,
                reason: error.to_string(),
            });
        }
        self.applied.store(record.version.0, Ordering::Release);
        // Whoever is about to wait holds the lock while it looks at the version.
        if *self.waiting.lock() > 0 {
            self.reached.notify_all();
        }
        Ok(())
    }

    /// Waits until a version was applied, but at most so long; answers whether it was.
    pub fn wait_for(&self, version: Version, at_most: Duration) -> bool {
        if self.applied() >= version {
            return true;
        }
        let mut waiting = self.waiting.lock();
        *waiting += 1;
        let missing = |_: &mut usize| self.applied() < version && !self.is_dropped();
        self.reached.wait_while_for(&mut waiting, missing, at_most);
        *waiting -= 1;
        self.applied() >= version
    }
}
