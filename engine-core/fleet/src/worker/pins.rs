//! Versions that queries of this worker read, and that nodes are to keep.
//!
//! Nodes keep older versions for a while. When a query takes longer than a part of that, a thread asks all nodes to keep the oldest
//! version that is read here, again and again, until nobody reads it any more. What one node keeps of a version it keeps of those
//! after it, so one version is enough for all queries.

use super::Shared;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_remote::RequestId;
use tidegraph_types::Version;

/// How often is looked whether the worker ends.
const LOOK: Duration = Duration::from_millis(100);
/// How long a node may take.
const ANSWER: Duration = Duration::from_secs(2);

/// The versions that are read, with the number of readers and the time when the first began.
#[derive(Debug, Default)]
pub(super) struct Readers(Arc<Mutex<BTreeMap<Version, (usize, Duration)>>>);

/// One reader, for as long as it lives.
#[derive(Debug)]
struct Reading {
    version: Version,
    readers: Arc<Mutex<BTreeMap<Version, (usize, Duration)>>>,
}

impl Readers {
    /// Somebody reads at a version.
    pub fn begin(&self, version: Version, now: Duration) -> Box<dyn std::fmt::Debug + Send + Sync> {
        self.0.lock().entry(version).or_insert((0, now)).0 += 1;
        Box::new(Reading { version, readers: self.0.clone() })
    }

    /// The oldest version that has been read for so long.
    fn oldest(&self, now: Duration, after: Duration) -> Option<Version> {
        let readers = self.0.lock();
        let (version, (_, since)) = readers.first_key_value()?;
        (now.saturating_sub(*since) >= after).then_some(*version)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        if let Some((count, _)) = readers.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.version);
            }
        }
    }
}

/// Asks nodes to keep what is read, until the worker ends.
pub(super) fn run(shared: &Shared) {
    let (mut asked, mut due) = (false, shared.clock.now() + shared.pin_every);
    while !shared.stopping.load(Ordering::Acquire) {
        shared.clock.sleep(shared.pin_every.min(LOOK));
        if shared.clock.now() < due {
            continue;
        }
        due = shared.clock.now() + shared.pin_every;
        let version = shared.readers.oldest(shared.clock.now(), shared.pin_after);
        if version.is_some() || asked {
            ask(shared, version);
        }
        asked = version.is_some();
    }
}

fn ask(shared: &Shared, version: Option<Version>) {
    let map = shared.watch.map();
    let holder: RequestId = shared.holder;
    std::thread::scope(|scope| {
        for (_, node) in map.nodes().filter(|(_, node)| node.answers()) {
            let node = shared.fleet.node(&Arc::from(node.endpoint.as_str()));
            scope.spawn(move || {
                if let Err(error) = node.pin(holder, version, ANSWER) {
                    tracing::debug!(node = node.address(), %error, "a node does not keep a version");
                }
            });
        }
    });
}
