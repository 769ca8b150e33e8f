//! Up to where the log is archived, as what trims it has to know, and for how long records have waited.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_types::Version;

/// Up to where the log is archived. At first this is not known.
#[derive(Debug, Default)]
pub struct ArchivePosition {
    version: AtomicU64,
    behind_since: Mutex<Option<Duration>>,
}

impl ArchivePosition {
    /// Notes that records up to a version are archived, or need not be.
    pub fn set(&self, version: Version) {
        self.version.store(version.0, Ordering::Release);
    }

    /// Notes that it is not known up to where the log is archived.
    pub fn forget(&self) {
        self.set(Version(0));
    }

    /// Returns the last version that is archived or need not be; 0 if this is not known.
    pub fn get(&self) -> Version {
        Version(self.version.load(Ordering::Acquire))
    }

    /// Notes that a record was met that is in no archive, or that the log cannot be archived. Only the first call counts,
    /// until [`ArchivePosition::catch_up`].
    pub(crate) fn fall_behind(&self, now: Duration) {
        self.behind_since.lock().get_or_insert(now);
    }

    /// Notes that all records that were read are archived.
    pub(crate) fn catch_up(&self) {
        *self.behind_since.lock() = None;
    }

    /// Returns for how long the oldest record has waited that is in no archive, or for how long the log could not be
    /// archived.
    #[must_use]
    pub fn lag(&self, now: Duration) -> Duration {
        self.behind_since.lock().map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}
