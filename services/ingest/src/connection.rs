//! The connection of the function to a graph. It is made by the first event that needs it, and again after the graph was
//! dropped: another graph of the same name has other names, ids and versions.

use crate::Error;
use std::sync::{Arc, Mutex, PoisonError};
use tidegraph_engine::loads::Ingest;
use tidegraph_fleet::Worker;

/// A graph as the function reached it.
#[derive(Debug)]
pub struct Connected {
    /// The access to its fleet.
    pub worker: Arc<Worker>,
    /// The steps of its loads.
    pub ingest: Ingest,
}

/// The connection to a graph, if one was made.
#[derive(Debug, Default)]
pub struct Connection(Mutex<Option<Arc<Connected>>>);

impl Connection {
    /// Returns the connection, at the newest version of the graph. `connect` makes it, if there is none yet or the graph was
    /// dropped.
    ///
    /// # Errors
    /// Those of `connect`. The next call tries again.
    pub fn get(&self, connect: impl FnOnce() -> Result<Connected, Error>) -> Result<Arc<Connected>, Error> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = &*held {
            // The process may have been suspended since the last event, so its versions may be old.
            connected.worker.refresh_version();
            if !connected.worker.is_dropped() {
                return Ok(connected.clone());
            }
            tracing::warn!(graph = connected.worker.graph().name, "the graph was dropped: connecting again");
            connected.worker.stop();
            *held = None;
        }
        let made = Arc::new(connect()?);
        *held = Some(made.clone());
        Ok(made)
    }
}
