//! Versions that workers keep readable here, for queries that take longer than older versions are kept.
//!
//! A worker names the oldest version that it reads, again and again. Each time it is kept for a *lease*; when the worker dies, or does
//! not need it any more, the lease ends by itself.
//!
//! What must never happen: a version that is kept for ever, whoever asks.

use super::Shared;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;
use tidegraph_remote::{Error, RequestId};
use tidegraph_storage::Pin;
use tidegraph_types::{PartitionId, Version};

/// Workers that may keep a version at the same time.
const MOST_HOLDERS: usize = 256;
/// How long a version is kept, however often somebody asks.
const LONGEST: Duration = Duration::from_secs(3600);

/// What is kept, and for whom.
#[derive(Debug, Default)]
pub(super) struct Pins(Mutex<FxHashMap<RequestId, Kept>>);

#[derive(Debug)]
struct Kept {
    version: Version,
    since: Duration,
    until: Duration,
    pins: FxHashMap<PartitionId, Pin>,
}

impl Pins {
    /// The oldest version that is kept.
    pub fn oldest(&self) -> Option<Version> {
        self.0.lock().values().map(|kept| kept.version).min()
    }

    /// Lets go of what nobody asked for again.
    pub fn expire(&self, now: Duration) {
        self.0.lock().retain(|_, kept| now < kept.until);
    }

    /// Keeps a version for a lease, in all replicas that have it; `None`: lets go.
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
            return Err(Error::Limit(format!("version {version} was kept for {} s", LONGEST.as_secs())));
        }
        if known.is_none() && !all.contains_key(&holder) && all.len() >= MOST_HOLDERS {
            return Err(Error::Limit(format!("{MOST_HOLDERS} versions are kept already")));
        }
        let until = now + shared.config.pin_lease;
        // The one before goes only when this one is kept: it may be all that keeps it.
        let (mut kept, _before) = match all.remove(&holder) {
            Some(kept) if kept.version == version => (Kept { until, ..kept }, None),
            other => (Kept { version, since: now, until, pins: FxHashMap::default() }, other),
        };
        let mut refused = None;
        for replica in shared.all() {
            let Entry::Vacant(place) = kept.pins.entry(replica.partition) else { continue };
            match replica.store.pin(version) {
                Ok(pin) => {
                    place.insert(pin);
                }
                // One that is not there yet is asked for the next time.
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
