//! The map as a worker or a node sees it: loaded, kept and refreshed.
//!
//! Readers get the newest map without a lock. One thread refreshes it: at intervals that
//! are spread so that the processes of a fleet do not ask at the same time, and immediately
//! when a reader finds its map stale. Readers that find it stale during a refresh share the
//! next one. While the store does not answer, the last known map stays in use.

use crate::{Error, MapStore, PartitionMap};
use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::Random;
use tidegraph_types::Epoch;

/// How often the map is refreshed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WatchConfig {
    /// Average time between two refreshes. Each is drawn between half of it and one and a half times
    /// it.
    pub refresh_every: Duration,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self { refresh_every: Duration::from_secs(5) }
    }
}

/// Keeps the newest map of a graph.
#[derive(Debug)]
pub struct MapWatch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn MapStore>,
    graph: String,
    newest: ArcSwap<PartitionMap>,
    looks: Mutex<Looks>,
    /// Notified when a refresh is wanted, or the end.
    wanted: Condvar,
    /// Notified when a refresh is over.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Looks {
    /// Refreshes that have begun.
    begun: u64,
    /// Refreshes that are over.
    over: u64,
    /// Number of the last refresh that was asked for.
    wanted: u64,
    stopped: bool,
    error: Option<Error>,
}

impl MapWatch {
    /// Loads the map and refreshes it from a thread.
    ///
    /// # Errors
    /// The same as [`MapStore::load`]; [`Error::Unavailable`] if the thread cannot be started.
    pub fn start(
        store: Arc<dyn MapStore>,
        graph: &str,
        random: Arc<dyn Random>,
        config: WatchConfig,
    ) -> Result<Self, Error> {
        let watch = Self::without_thread(store, graph)?;
        let shared = watch.shared.clone();
        let run = move || {
            while shared.wait(jitter(&*random, config.refresh_every)) {
                shared.look();
            }
        };
        let thread = tidegraph_platform::spawn("map", run)
            .map_err(|error| Error::unavailable("watch the map", error))?;
        *watch.thread.lock() = Some(thread);
        Ok(watch)
    }

    /// Loads the map. It is refreshed only by [`MapWatch::look`] and [`MapWatch::stale`], on the caller's thread: for
    /// simulations.
    ///
    /// # Errors
    /// The same as [`MapStore::load`].
    pub fn without_thread(store: Arc<dyn MapStore>, graph: &str) -> Result<Self, Error> {
        let newest = ArcSwap::new(store.load(graph, None)?);
        let shared = Shared {
            store,
            graph: graph.into(),
            newest,
            looks: Mutex::default(),
            wanted: Condvar::new(),
            done: Condvar::new(),
        };
        Ok(Self { shared: Arc::new(shared), thread: Mutex::new(None) })
    }

    /// The newest known map.
    #[must_use]
    pub fn map(&self) -> Arc<PartitionMap> {
        self.shared.newest.load_full()
    }

    /// Called by a reader that found the map of `epoch` stale: asks for a refresh and waits for it, at most `patience`.
    /// Does nothing if a newer map is known. Returns the newest map, which may still be the same one.
    pub fn stale(&self, epoch: Epoch, patience: Duration) -> Arc<PartitionMap> {
        let shared = &self.shared;
        if self.map().epoch() > epoch {
            return self.map();
        }
        if self.thread.lock().is_none() {
            self.look();
            return self.map();
        }
        let look = shared.ask();
        let waits = |looks: &mut Looks| looks.over < look && !looks.stopped;
        shared.done.wait_while_for(&mut shared.looks.lock(), waits, patience);
        self.map()
    }

    /// Refreshes the map now, on this thread.
    pub fn look(&self) {
        self.shared.look();
    }

    /// Returns why the last refresh failed; `None` if it did not.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.shared.looks.lock().error.clone()
    }
}

impl Drop for MapWatch {
    fn drop(&mut self) {
        self.shared.looks.lock().stopped = true;
        self.shared.wanted.notify_all();
        self.shared.done.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // The thread ends after its current refresh. A panic there was reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Asks for a refresh that begins after this call; returns its number.
    fn ask(&self) -> u64 {
        let mut looks = self.looks.lock();
        // A running refresh may have read the store before the change.
        let look = looks.begun + 1;
        looks.wanted = looks.wanted.max(look);
        self.wanted.notify_all();
        look
    }

    /// Waits until the next refresh is due; returns false at the end.
    fn wait(&self, most: Duration) -> bool {
        let mut looks = self.looks.lock();
        let waits = |looks: &mut Looks| looks.wanted <= looks.begun && !looks.stopped;
        self.wanted.wait_while_for(&mut looks, waits, most);
        !looks.stopped
    }

    fn look(&self) {
        self.looks.lock().begun += 1;
        let known = self.newest.load_full();
        let loaded = self.store.load(&self.graph, Some(&known));
        let error = match loaded {
            Ok(map) => {
                self.newest.rcu(|now| if map.epoch() > now.epoch() { map.clone() } else { now.clone() });
                None
            }
            Err(error) => Some(error),
        };
        let mut looks = self.looks.lock();
        if let (Some(error), None) = (&error, &looks.error) {
            tracing::warn!(graph = self.graph, %error, "the map cannot be read; the one that is known stays");
        }
        looks.error = error;
        looks.over += 1;
        self.done.notify_all();
    }
}

/// Draws a time between half of `average` and one and a half times it, in whole milliseconds.
pub(crate) fn jitter(random: &dyn Random, average: Duration) -> Duration {
    let millis = u64::try_from(average.as_millis()).unwrap_or(u64::MAX / 2);
    Duration::from_millis(millis / 2 + random.below(millis + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryMap;
    use crate::testing::new_graph;
    use tidegraph_platform::SeededRandom;

    #[test]
    fn all_who_ask_before_a_look_begins_share_it() {
        let store = MemoryMap::default();
        let graph = new_graph(&store, 1);
        let watch = MapWatch::without_thread(Arc::new(store), &graph).unwrap();
        let shared = &watch.shared;
        let asked = |times: usize| (0..times).map(|_| shared.ask()).collect::<Vec<_>>();
        assert_eq!(asked(50), [1; 50]);
        assert!(shared.wait(Duration::MAX));
        // As during a refresh: these readers arrive while it runs, and get the next one.
        shared.looks.lock().begun += 1;
        assert_eq!(asked(50), [2; 50]);
        shared.looks.lock().over += 1;
        assert!(shared.wait(Duration::MAX));
        watch.look();
        let looks = shared.looks.lock();
        assert_eq!((looks.begun, looks.over, looks.wanted), (2, 2, 2));
    }

    #[test]
    fn looks_are_spread() {
        let random = SeededRandom::new(7);
        let times: Vec<_> = (0..1000).map(|_| jitter(&random, Duration::from_secs(1)).as_millis()).collect();
        assert!(times.iter().all(|time| (500..=1500).contains(time)));
        assert!(times.iter().max() > Some(&1400) && times.iter().min() < Some(&600));
    }
}
