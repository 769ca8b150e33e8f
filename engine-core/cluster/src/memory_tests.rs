//! The suite on the map in memory, and tests that need a store that stops answering.

use super::*;
use crate::testing::{id, map_test_suite, new_graph, register};
use crate::{Election, ElectionConfig, ElectionState, MapWatch, SEQUENCER, WatchConfig};
use std::time::Duration;
use tidegraph_platform::{Clock, ManualClock, SeededRandom};

#[test]
fn behaves_as_a_map() {
    let store: Arc<dyn MapStore> = Arc::new(MemoryMap::default());
    map_test_suite(&store);
}

fn election(store: &MemoryMap, clock: &Arc<ManualClock>, graph: &str) -> Election {
    let claim = Claim { holder: "a".into(), endpoint: "a:1".into(), ttl: Duration::ZERO, above: Epoch(0) };
    let clock: Arc<dyn Clock> = clock.clone();
    let config = ElectionConfig {
        ttl: Duration::from_secs(1),
        renew_every: Duration::from_millis(100),
        margin_percent: 20,
    };
    Election::new(Arc::new(store.clone()), clock, graph, SEQUENCER, claim, config)
}

/// Shows MAP-3.
#[test]
fn a_store_that_is_away_ends_no_tenure_but_makes_it_unsure() {
    let store = MemoryMap::default();
    let graph = &new_graph(&store, 1);
    let clock = Arc::new(ManualClock::default());
    let mut election = election(&store, &clock, graph);
    let ElectionState::Held(tenure) = election.step().unwrap() else { panic!("nobody else is there") };
    store.set_away(true);
    clock.advance(Duration::from_millis(999));
    assert!(election.step().is_err());
    assert!(tenure.is_sure());
    clock.advance(Duration::from_millis(1));
    assert!(election.step().is_err());
    assert!(!tenure.is_sure() && !tenure.has_ended());
    store.set_away(false);
    assert!(matches!(election.step().unwrap(), ElectionState::Held(again) if again.is_sure()));
    assert!(tenure.is_sure());
}

#[test]
fn a_watch_learns_of_changes() {
    let store = MemoryMap::default();
    let graph = &new_graph(&store, 4);
    let shared: Arc<dyn MapStore> = Arc::new(store.clone());
    // The watch refreshes by itself only about once an hour.
    let config = WatchConfig { refresh_every: Duration::from_secs(3600) };
    let watch = MapWatch::start(shared, graph, Arc::new(SeededRandom::new(1)), config).unwrap();
    let patience = Duration::from_secs(60);
    assert_eq!(watch.map().epoch(), Epoch(1));
    store.change(graph, None, &[register(1)]).unwrap();
    // No reader has asked yet.
    assert_eq!(watch.map().epoch(), Epoch(1));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(watch.stale(Epoch(1), patience).epoch(), Epoch(2)));
        }
    });
    assert!(watch.map().node(&id(1)).is_some());
    // A newer known map is returned without a refresh.
    store.set_away(true);
    assert_eq!(watch.stale(Epoch(1), patience).epoch(), Epoch(2));
    assert!(watch.error().is_none());
    assert_eq!(watch.stale(Epoch(2), patience).epoch(), Epoch(2));
    assert!(watch.error().is_some());
    store.set_away(false);
    watch.look();
    assert!(watch.error().is_none());
}
