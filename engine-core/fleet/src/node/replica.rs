//! One replica: the store of one partition, and the version that it has reached.

use super::supervision::panic_text;
use crate::Error;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_engine::StoreApplier;
use tidegraph_log::{Position, Record};
use tidegraph_storage::Store;
use tidegraph_types::{Epoch, ErrorCode, PartitionId, Version};

/// Why a replica can apply no further record.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// The record that cannot be applied; `None`: the log skipped a record.
    pub record: Option<Version>,
    pub reason: String,
}

/// A replica on this node.
#[derive(Debug)]
pub(crate) struct Replica {
    pub partition: PartitionId,
    pub store: Arc<Store>,
    /// Random id of the store, which positions of scans carry (APL-2). Never 0.
    pub store_id: u64,
    applier: StoreApplier,
    applied: AtomicU64,
    /// Epoch of the newest record that was applied, or is being applied.
    epoch: AtomicU64,
    /// Whether it answers reads: it was near the end of the log once, and its indexes are complete.
    ready: AtomicBool,
    /// Whether the node gave it up.
    dropped: AtomicBool,
    /// Why it can apply no further record.
    broken: Mutex<Option<Broken>>,
    /// When the node last asked whether another replica has applied the record at which this one is stuck.
    checked_at: Mutex<Option<Duration>>,
    /// When the node last tried to restore the replica while it was stuck.
    retried_at: Mutex<Option<Duration>>,
    /// Number of readers that wait for a version.
    waiting: Mutex<usize>,
    reached: Condvar,
    /// Version of the newest checkpoint that was written or restored here.
    pub checkpointed: AtomicU64,
    checkpointed_at_nanos: AtomicU64,
    /// Whether a thread fills its indexes or writes its checkpoint.
    pub busy: AtomicBool,
}

impl Replica {
    pub fn new(
        partition: PartitionId,
        applier: StoreApplier,
        store_id: u64,
        at: Position,
        now: Duration,
    ) -> Self {
        Self {
            partition,
            store: applier.store.clone(),
            store_id,
            applier,
            applied: AtomicU64::new(at.version.0),
            epoch: AtomicU64::new(at.epoch.0),
            ready: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            broken: Mutex::default(),
            checked_at: Mutex::default(),
            retried_at: Mutex::default(),
            waiting: Mutex::default(),
            reached: Condvar::new(),
            checkpointed: AtomicU64::new(at.version.0),
            checkpointed_at_nanos: AtomicU64::new(now.as_nanos() as u64),
            busy: AtomicBool::new(false),
        }
    }

    /// When the last checkpoint was written or attempted.
    pub fn checkpointed_at(&self) -> Duration {
        Duration::from_nanos(self.checkpointed_at_nanos.load(Ordering::Relaxed))
    }

    pub fn set_checkpointed_at(&self, now: Duration) {
        self.checkpointed_at_nanos.store(now.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn applied(&self) -> Version {
        Version(self.applied.load(Ordering::Acquire))
    }

    /// Position in the log: the last applied version, and its epoch or that of the record that is being applied.
    pub fn position(&self) -> Position {
        let (epoch, version) = self.with_epoch(|| self.applied());
        Position { version, epoch }
    }

    /// Returns what `read` returns, and an epoch with which a reader of the log may continue after that version: the
    /// epoch of the version, or of the next record. A lower epoch would admit records of a deposed sequencer; a higher
    /// one would exclude records that count.
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

    pub fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.reached.notify_all();
    }

    pub fn broken(&self) -> Option<Broken> {
        self.broken.lock().clone()
    }

    fn set_broken(&self, record: Option<Version>, reason: String) {
        *self.broken.lock() = Some(Broken { record, reason });
        // Readers that wait for a later version ask another replica. They hold this lock while they compare versions.
        drop(self.waiting.lock());
        self.reached.notify_all();
    }

    /// Returns the record that it cannot apply, if it answers reads and cannot apply its next record.
    pub fn stuck_at(&self) -> Option<Version> {
        if self.is_ready() { self.broken.lock().as_ref()?.record } else { None }
    }

    /// Returns true once in each `period`, for a stuck replica.
    pub fn is_check_due(&self, now: Duration, period: Duration) -> bool {
        let mut checked_at = self.checked_at.lock();
        let is_due = checked_at.is_none_or(|checked_at| now.saturating_sub(checked_at) >= period);
        if is_due {
            *checked_at = Some(now);
        }
        is_due
    }

    /// Returns whether a stuck replica has waited for `pause` since [`Replica::postpone_retry`]. The first call
    /// begins the wait.
    pub fn is_retry_due(&self, now: Duration, pause: Duration) -> bool {
        let since = *self.retried_at.lock().get_or_insert(now);
        now.saturating_sub(since) >= pause
    }

    /// Begins to wait for the next attempt to restore a stuck replica.
    pub fn postpone_retry(&self, now: Duration) {
        *self.retried_at.lock() = Some(now);
    }

    /// Applies the record that follows the last one, and ignores records that were applied before. A later record
    /// breaks the replica, so that FLT-1 holds: every record is applied, each once.
    pub fn apply(&self, record: &Record) -> Result<(), Error> {
        if record.version <= self.applied() {
            return Ok(());
        }
        if record.version != self.applied().next() {
            let (partition, applied, next) = (self.partition, self.applied(), record.version);
            let error = Error::Gap { partition, applied, next };
            // The replica could never continue: it has to be restored.
            self.set_broken(None, error.to_string());
            return Err(error);
        }
        // Set before the version becomes visible.
        self.epoch.fetch_max(record.epoch.0, Ordering::AcqRel);
        // A defect that one record shows breaks the replica, which is restored again; the other replicas continue.
        let applied = catch_unwind(AssertUnwindSafe(|| self.applier.try_apply(record)));
        let applied = applied.unwrap_or_else(|panic| {
            let text = format!("a defect: {}", panic_text(&*panic));
            Err(tidegraph_engine::Error::new(ErrorCode::Internal, text))
        });
        if let Err(source) = applied {
            self.set_broken(Some(record.version), source.to_string());
            return Err(Error::Apply { partition: self.partition, version: record.version, source });
        }
        self.applied.store(record.version.0, Ordering::Release);
        // A reader that is about to wait holds this lock while it compares versions.
        if *self.waiting.lock() > 0 {
            self.reached.notify_all();
        }
        Ok(())
    }

    /// Waits until a version is applied, but no longer than `at_most`. Returns whether it is.
    pub fn wait_for(&self, version: Version, at_most: Duration) -> bool {
        if self.applied() >= version {
            return true;
        }
        let mut waiting = self.waiting.lock();
        *waiting += 1;
        let missing =
            |_: &mut usize| self.applied() < version && !self.is_dropped() && self.broken.lock().is_none();
        self.reached.wait_while_for(&mut waiting, missing, at_most);
        *waiting -= 1;
        self.applied() >= version
    }
}
