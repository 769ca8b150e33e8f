//! The open connections of a service, and the choice of the one to close for a new one.

use super::Limits;
use super::progress::{Progress, now};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Wakes the task that accepts connections when there may be room again.
#[derive(Debug, Default)]
pub(super) struct Room {
    is_wanted: AtomicBool,
    changed: Notify,
}

impl Room {
    /// Reports that a connection began to wait for its client, or ended.
    pub(super) fn may_be_free(&self) {
        if self.is_wanted.load(Ordering::SeqCst) {
            self.changed.notify_one();
        }
    }
}

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    room: Arc<Room>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next_id: u64,
    connections: BTreeMap<u64, Arc<Progress>>,
}

/// The place of one connection. Dropping it makes room for another.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    progress: Arc<Progress>,
    connections: Arc<Connections>,
}

impl Place {
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.state().connections.remove(&self.id);
        self.connections.room.may_be_free();
    }
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, room: Arc::default(), open: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place.
    pub(super) fn open(self: &Arc<Self>) -> Place {
        let progress = Arc::new(Progress::new(self.limits, self.room.clone()));
        let mut open = self.state();
        let id = open.next_id;
        open.next_id += 1;
        open.connections.insert(id, progress.clone());
        Place { id, progress, connections: self.clone() }
    }

    /// Waits until there is room for one more connection, and closes the oldest idle one if there is none.
    pub(super) async fn room(&self) {
        self.at_most(self.limits.connections.saturating_sub(1), true).await;
    }

    /// Waits until all connections are closed.
    pub(super) async fn all_closed(&self) {
        self.at_most(0, false).await;
    }

    async fn at_most(&self, connections: usize, closes: bool) {
        self.room.is_wanted.store(true, Ordering::SeqCst);
        while self.state().connections.len() > connections {
            if closes {
                self.close_oldest();
            }
            self.room.changed.notified().await;
        }
        self.room.is_wanted.store(false, Ordering::SeqCst);
    }

    /// Asks one connection to close, the first one in the order of [`Order`](super::progress::Order). Never closes a connection with a running query. Does nothing while a connection that was
    /// asked before is still open.
    pub(super) fn close_oldest(&self) {
        self.close_oldest_at(now());
    }

    fn close_oldest_at(&self, now: Instant) {
        let open = self.state();
        if open.connections.values().any(|progress| progress.is_unwanted()) {
            return;
        }
        let waiting =
            open.connections.values().filter_map(|progress| Some((progress.order(now)?, progress.clone())));
        let oldest = waiting.min_by_key(|(order, _)| *order);
        drop(open);
        if let Some((_, progress)) = oldest {
            progress.make_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(1_000);

    fn connections() -> Arc<Connections> {
        let sessions = crate::session::Limits { idle: LONG, paused: LONG };
        Connections::new(Limits { connections: 4, head: LONG, body: LONG, idle: LONG, write: LONG, sessions })
    }

    fn asked_to_close<'a>(places: &'a [(&'static str, Place)]) -> Vec<&'a str> {
        places.iter().filter(|(_, place)| place.progress.is_unwanted()).map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_flood_of_connections_leaves_those_in_use() {
        let connections = connections();
        let in_use = connections.open();
        in_use.progress.requested(false);
        let (first, second) = (connections.open(), connections.open());
        let before = now();
        in_use.progress.rests(LONG);
        let mut places = vec![("in use", in_use), ("first", first), ("second", second)];
        for expected in ["first", "second", "in use"] {
            connections.close_oldest_at(before);
            assert_eq!(asked_to_close(&places), [expected]);
            places.retain(|(name, _)| *name != expected);
        }
    }

    #[test]
    fn idle_connections_make_room_before_new_ones() {
        let connections = connections();
        let arriving = connections.open();
        arriving.progress.requested(true);
        let idle = connections.open();
        idle.progress.rests(LONG);
        let unasked = connections.open();
        let later = now() + Duration::from_secs(1);
        let mut places = vec![("arriving", arriving), ("idle", idle), ("unasked", unasked)];
        for expected in ["idle", "unasked", "arriving"] {
            connections.close_oldest_at(later);
            assert_eq!(asked_to_close(&places), [expected]);
            places.retain(|(name, _)| *name != expected);
        }
    }
}
