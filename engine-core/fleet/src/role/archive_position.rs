//! Up to where the log is archived, as what trims it has to know.

use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::Version;

/// Up to where the log is archived. At first this is not known.
#[derive(Debug, Default)]
pub struct ArchivePosition(AtomicU64);

impl ArchivePosition {
    /// Notes that records up to a version are archived, or need not be.
    pub fn set(&self, version: Version) {
        self.0.store(version.0, Ordering::Release);
    }

    /// Notes that it is not known up to where the log is archived.
    pub fn forget(&self) {
        self.set(Version(0));
    }

    /// Returns the last version that is archived or need not be; 0 if this is not known.
    pub fn get(&self) -> Version {
        Version(self.0.load(Ordering::Acquire))
    }
}
