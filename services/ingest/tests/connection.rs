//! The function's connection to a graph that is dropped, and made again under its name.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{MapStore, MemoryMap};
use tidegraph_engine::loads::Ingest;
use tidegraph_fleet::{Worker, WorkerConfig, WorkerParts};
use tidegraph_ingest::{Connected, Connection, Error};
use tidegraph_platform::{Objects, RealClock, RealRandom};
use tidegraph_remote::Security;

/// Connects as the function does: with a worker that asks nobody while no event is there.
fn connect(map: &MemoryMap) -> Result<Connected, Error> {
    let mut config = WorkerConfig { version_every: Duration::ZERO, ..WorkerConfig::default() };
    config.watch.refresh_every = Duration::from_secs(1 << 20);
    let (clock, random) = (Arc::new(RealClock::new()), Arc::new(RealRandom));
    let parts = WorkerParts {
        graph: "g".into(),
        map_store: Arc::new(map.clone()),
        security: Security::none(),
        clock: clock.clone(),
        random: random.clone(),
    };
    let worker = Worker::start(config, parts).map_err(|error| Error::Unavailable(error.to_string()))?;
    let worker = Arc::new(worker);
    let objects = Arc::new(Objects::memory().unwrap());
    let ingest = Ingest::new(worker.clone(), objects, clock, random, 1 << 20);
    Ok(Connected { worker, ingest })
}

#[test]
fn the_next_graph_of_a_name_gets_a_connection_of_its_own() {
    let map = MemoryMap::default();
    let graph = graph_named("g", 4);
    let (connection, made) = (Connection::default(), Cell::new(0));
    let get = || {
        connection.get(|| {
            let connected = connect(&map)?;
            made.set(made.get() + 1);
            Ok(connected)
        })
    };
    assert!(matches!(get(), Err(Error::Unavailable(_))), "there is no graph yet");
    map.create_graph(&graph).unwrap();
    let first = get().unwrap();
    assert!(Arc::ptr_eq(&first, &get().unwrap()));
    assert_eq!(made.get(), 1);

    // No event came while the graph was dropped and made again.
    map.begin_drop("g").unwrap();
    map.finish_drop("g");
    map.create_graph(&graph).unwrap();
    let next = get().unwrap();
    assert!(!Arc::ptr_eq(&first, &next) && first.worker.is_dropped() && !next.worker.is_dropped());
    assert!(Arc::ptr_eq(&next, &get().unwrap()));
    assert_eq!(made.get(), 2);

    // One came while there was none.
    map.begin_drop("g").unwrap();
    assert!(matches!(get(), Err(Error::Unavailable(_))));
    map.finish_drop("g");
    map.create_graph(&graph).unwrap();
    assert!(!get().unwrap().worker.is_dropped());
    assert_eq!(made.get(), 3);
}
