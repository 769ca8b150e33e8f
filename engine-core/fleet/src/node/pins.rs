//! Pins: versions that this node keeps readable for workers whose queries outlast the window of older versions.
//!
//! A worker names the oldest version that it reads, repeatedly. Each request keeps the version for the duration of a
//! *lease*, so that pins of a worker that dies expire.
//!
//! What must never happen: a version is kept for ever, whatever workers ask.

use super::Shared;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;
use tidegraph_remote::{Error, RequestId};
use tidegraph_storage::Pin;
use tidegraph_types::{PartitionId, Version};

/// Limit of workers that keep a version at the same time.
const MOST_HOLDERS: usize = 256;
/// Longest time that one version is kept, however often a worker asks.
const LONGEST: Duration = Duration::from_secs(3600);

/// The pinned versions, by worker.
#[derive(Debug, Default)]
pub(super) struct Pins(Mutex<FxHashMap<RequestId, PinnedVersion>>);

#[derive(Debug)]
struct PinnedVersion {
    version: Version,
    since: Duration,
    until: Duration,
    pins: FxHashMap<PartitionId, Pin>,
}

impl Pins {
    /// Returns the oldest pinned version.
    pub fn oldest(&self) -> Option<Version> {
        self.0.lock().values().map(|kept| kept.version).min()
    }

    /// Releases pins whose lease has ended.
    pub fn expire(&self, now: Duration) {
        self.0.lock().retain(|_, kept| now < kept.until);
    }

    /// Keeps a version for the duration of a lease, in all replicas that have it; `None` releases it.
    ///
    /// # Errors
    /// [`Error::Limit`] if the version was kept too long already or too many workers keep one; [`Error::NotAllowed`] if
    /// no replica has the version.
    pub fn keep(&self, shared: &Shared, holder: RequestId, version: Option<Version>) -> Result<(), Error> {
        let now = shared.clock.now();
        self.expire(now);
        let mut all = self.0.lock();
        let Some(version) = version else {
            all.remove(&holder);
            return Ok(());
        };
        let known = all.get(&holder).filter(|kept| kept.version == version);
        if known.is_some_and(|kept| now.saturating_sub(kept.since) >= LONGEST) {
            all.remove(&holder);
            return Err(Error::Limit(format!(
                "version {version} was kept for {} s, the longest time",
                LONGEST.as_secs()
            )));
        }
        if known.is_none() && !all.contains_key(&holder) && all.len() >= MOST_HOLDERS {
            return Err(Error::Limit(format!("{MOST_HOLDERS} workers keep versions already, the limit")));
        }
        let until = now + shared.config.pin_lease;
        // The earlier pins are released only after the new ones exist: they may be all that keeps the versions.
        let (mut kept, _before) = match all.remove(&holder) {
            Some(kept) if kept.version == version => (PinnedVersion { until, ..kept }, None),
            other => (PinnedVersion { version, since: now, until, pins: FxHashMap::default() }, other),
        };
        let mut refused = None;
        for replica in shared.all() {
            let Entry::Vacant(place) = kept.pins.entry(replica.partition) else { continue };
            match replica.store.pin(version) {
                Ok(pin) => {
                    place.insert(pin);
                }
                // A replica that has not reached the version is asked again with the next request.
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if kept.pins.is_empty() => Err(Error::NotAllowed(error.to_string())),
            _ => {
                all.insert(holder, kept);
                Ok(())
            }
        }
    }
}
