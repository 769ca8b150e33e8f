//! The turn of a load that lost against transactions several times: until it has committed, commits that would conflict
//! with it wait.

use crate::backend::Backend;
use std::time::Duration;
use tidegraph_types::{Footprint, Key, LoadTurn, Version};

/// Number of attempts, each of which ended with a conflict, after which a load asks for a turn.
pub(super) const LOST_BEFORE_TURN: u32 = 3;
/// Time of a turn beyond what the attempts before took.
const SLACK: Duration = Duration::from_secs(10);

/// Makes the request for a turn, of a load whose longest attempt took this time.
pub(super) fn turn_after(footprint: Footprint, read_keys: &[Key], longest: Duration) -> LoadTurn {
    LoadTurn { footprint, read_keys: read_keys.to_vec(), limit: 2 * longest + SLACK }
}

/// Asks for a turn. Returns the version at which the load must read at least; `None` if it has to go on without a turn.
pub(super) fn begin(backend: &dyn Backend, load_id: &str, turn: LoadTurn) -> Option<Version> {
    match backend.begin_turn(load_id, turn) {
        Ok(Some(version)) => {
            tracing::info!(load = load_id, "a load has its turn after conflicts with transactions");
            Some(version)
        }
        Ok(None) => {
            tracing::info!(load = load_id, "a load gets no turn now, because another load has it");
            None
        }
        Err(error) => {
            tracing::warn!(load = load_id, %error, "a load gets no turn and goes on without one");
            None
        }
    }
}

/// A turn that ends when this is dropped.
pub(super) struct Turn<'b> {
    backend: &'b dyn Backend,
    load_id: &'b str,
    /// The version at which the load must read at least.
    pub since: Version,
}

impl<'b> Turn<'b> {
    pub fn begin(backend: &'b dyn Backend, load_id: &'b str, turn: LoadTurn) -> Option<Self> {
        begin(backend, load_id, turn).map(|since| Self { backend, load_id, since })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.backend.end_turn(self.load_id);
    }
}
