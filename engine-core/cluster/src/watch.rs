//! The map as a worker or a node sees it: loaded, kept, and looked at again.
//!
//! Readers take the newest map without a lock. One thread looks for a newer one, at times that are spread so that a
//! fleet does not ask all at once, and at once when somebody noticed that a map is stale; who notices while it looks shares
//! the next look with all others. When the store does not answer, the map that is known stays.

use crate::{Error, MapStore, PartitionMap};
use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::Random;
use tidegraph_types::Epoch;

/// How often the map is looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WatchConfig {
    /// Time between two looks, on average; each is drawn between half and one and a half of it.
    pub poll_ms: u64,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self { poll_ms: 5000 }
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
    /// Somebody wants a look, or the end.
    wanted: Condvar,
    /// A look is over.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Looks {
    /// Looks that have begun.
    begun: u64,
    /// Looks that are over.
    over: u64,
    /// A look that begins after the first `wanted` ones was asked for.
    wanted: u64,
    stopped: bool,
    error: Option<Error>,
}

impl MapWatch {
    /// Loads the map and goes on looking at it in a thread.
    pub fn start(
        store: Arc<dyn MapStore>,
        graph: &str,
        random: Arc<dyn Random>,
        config: WatchConfig,
    ) -> Result<Self, Error> {
        let watch = Self::without_thread(store, graph)?;
        let shared = watch.shared.clone();
        let run = move || {
            while shared.wait(jitter(&*random, config.poll_ms)) {
                shared.look();
            }
        };
        let thread = tidegraph_platform::spawn("map", run)
            .map_err(|error| Error::Unavailable { operation: "watch the map", reason: error.to_string() })?;
        *watch.thread.lock() = Some(thread);
        Ok(watch)
    }

    /// Loads the map; looks at it again only when [`MapWatch::look`] is called or somebody finds it stale, on his thread: for
    /// simulations.
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

    /// The newest map that is known.
    #[must_use]
    pub fn map(&self) -> Arc<PartitionMap> {
        self.shared.newest.load_full()
    }

    /// Somebody found the map of this epoch stale: asks for a look, and waits for it for at most `patience`. Does nothing
    /// when a newer one is known. Answers the newest map, which may still be the same one.
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

    /// Looks now, on this thread.
    pub fn look(&self) {
        self.shared.look();
    }

    /// Why the last look failed; `None` when it did not.
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
            // It ends after the look that it may be in; a panic there was reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Asks for a look that begins from now on; answers its number.
    fn ask(&self) -> u64 {
        let mut looks = self.looks.lock();
        // A look that is under way may have read before the change.
        let look = looks.begun + 1;
        looks.wanted = looks.wanted.max(look);
        self.wanted.notify_all();
        look
    }

    /// Waits until it is time for a look; false at the end.
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

/// Between half and one and a half of a time.
pub(crate) fn jitter(random: &dyn Random, millis: u64) -> Duration {
    Duration::from_millis(millis / 2 + random.below(millis + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryMap;
    use crate::suite::made;
    use tidegraph_platform::SeededRandom;

    #[test]
    fn all_who_ask_before_a_look_begins_share_it() {
        let store = MemoryMap::default();
        let graph = made(&store, 1);
        let watch = MapWatch::without_thread(Arc::new(store), &graph).unwrap();
        let shared = &watch.shared;
        let asked = |times: usize| (0..times).map(|_| shared.ask()).collect::<Vec<_>>();
        assert_eq!(asked(50), [1; 50]);
        assert!(shared.wait(Duration::MAX));
        // As a look does: these come while it is under way, and get the next one.
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
        let times: Vec<_> = (0..1000).map(|_| jitter(&random, 1000).as_millis()).collect();
        assert!(times.iter().all(|time| (500..=1500).contains(time)));
        assert!(times.iter().max() > Some(&1400) && times.iter().min() < Some(&600));
    }
}
