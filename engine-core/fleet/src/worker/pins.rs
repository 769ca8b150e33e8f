//! Keeps the versions that queries of this worker read.
//!
//! Nodes keep older versions for a limited time. If a query takes longer than a part of that, a thread repeatedly asks
//! all nodes to keep the oldest version that is read here, until no query reads it. A node that keeps a version keeps
//! all later ones, so one version is enough for all queries.

use super::Shared;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_remote::RequestId;
use tidegraph_types::Version;

/// Longest sleep before the thread checks whether the worker stops.
const POLL: Duration = Duration::from_millis(100);
/// Longest wait for a node's answer.
const ANSWER: Duration = Duration::from_secs(2);

/// The versions that are read, each with its number of readers and the time when the first one began.
#[derive(Debug, Default)]
pub(super) struct Readers(Arc<Mutex<BTreeMap<Version, (usize, Duration)>>>);

/// A registered reader; dropping it removes it.
#[derive(Debug)]
struct Reading {
    version: Version,
    readers: Arc<Mutex<BTreeMap<Version, (usize, Duration)>>>,
}

impl Readers {
    /// Registers a reader of a version, until the returned value is dropped.
    pub fn begin(&self, version: Version, now: Duration) -> Box<dyn std::fmt::Debug + Send + Sync> {
        self.0.lock().entry(version).or_insert((0, now)).0 += 1;
        Box::new(Reading { version, readers: self.0.clone() })
    }

    /// Returns the oldest version, if it has been read for at least `after`.
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

/// Asks nodes to keep the oldest read version, until the worker stops.
pub(super) fn run(shared: &Shared) {
    let (mut asked, mut due) = (false, shared.clock.now() + shared.pin_every);
    while !shared.stopping.load(Ordering::Acquire) {
        shared.clock.sleep(shared.pin_every.min(POLL));
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
