//! The sequencer, wherever it is.
//!
//! Its lease says where. When it does not answer, or is not the sequencer any more, the lease is looked at again, until
//! there is one or patience ends. A commit is asked for under one name however often, so that it happens once.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{Lease, MapStore, SEQUENCER};
use tidegraph_platform::Clock;
use tidegraph_remote::{Commits, Committed, Error, Fleet, Outcome, RemoteCommits, RequestId};
use tidegraph_types::CommitRequest;

/// How long is waited before the lease is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct RemoteSequencer {
    map_store: Arc<dyn MapStore>,
    graph: String,
    fleet: Fleet,
    clock: Arc<dyn Clock>,
    /// Longest time for one answer.
    answer: Duration,
    /// Longest time for all attempts.
    patience: Duration,
    known: Mutex<Option<Arc<RemoteCommits>>>,
}

impl RemoteSequencer {
    pub fn new(
        map_store: Arc<dyn MapStore>,
        graph: String,
        fleet: Fleet,
        clock: Arc<dyn Clock>,
        answer: Duration,
        patience: Duration,
    ) -> Self {
        Self { map_store, graph, fleet, clock, answer, patience, known: Mutex::default() }
    }

    fn find(&self) -> Result<Arc<RemoteCommits>, Error> {
        if let Some(known) = &*self.known.lock() {
            return Ok(known.clone());
        }
        let lease = self.map_store.lease(&self.graph, SEQUENCER);
        let lease =
            lease.map_err(|error| Error::Unavailable(format!("the sequencer cannot be found: {error}")))?;
        let found = lease.and_then(|lease| self.meet(&lease));
        found.ok_or_else(|| Error::Unavailable("the graph has no sequencer now".into()))
    }

    /// Takes whoever has a lease for the sequencer; nobody when it was given back.
    pub fn meet(&self, lease: &Lease) -> Option<Arc<RemoteCommits>> {
        if lease.is_free() {
            return None;
        }
        let node = self.fleet.node(&Arc::from(lease.endpoint.as_str()));
        let found = Arc::new(RemoteCommits::new(node, self.answer));
        *self.known.lock() = Some(found.clone());
        Some(found)
    }

    fn forget(&self, gone: &Arc<RemoteCommits>) {
        let mut known = self.known.lock();
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, gone)) {
            *known = None;
        }
    }

    /// Asks once: for what is asked again soon anyway.
    pub fn ask_once<T>(&self, ask: impl FnOnce(&RemoteCommits) -> Result<T, Error>) -> Result<T, Error> {
        let sequencer = self.find()?;
        ask(&sequencer).inspect_err(|error| {
            if another_may(error) {
                self.forget(&sequencer);
            }
        })
    }

    /// Commits a transaction once, however often it has to be asked for. [`Error::Conflict`] says that it was not committed.
    pub fn commit(&self, id: RequestId, request: &CommitRequest) -> Result<Committed, Error> {
        let asked_before = Cell::new(false);
        let committed = self.ask(|sequencer| match sequencer.commit(id, request.clone()) {
            // A sequencer that took over since may not know of the earlier attempt.
            Err(error @ Error::Conflict { .. }) if asked_before.get() => {
                match sequencer.outcome(id, request.read_version)? {
                    // What became of the schema meanwhile it does not say.
                    Outcome::Committed(version) => Ok(Ok(Committed { version, schema: version })),
                    Outcome::Refused => Err(error),
                    Outcome::Unknown => Ok(Err(Error::InDoubt("it was asked for too long ago".into()))),
                }
            }
            Err(error) => {
                asked_before.set(asked_before.get() || matches!(error, Error::InDoubt(_)));
                Err(error)
            }
            Ok(committed) => Ok(Ok(committed)),
        });
        committed?
    }

    /// Asks until there is an answer that another attempt would not change, or patience ends: then the last error, or
    /// the first that left it open what happened.
    pub fn ask<T>(&self, ask: impl Fn(&RemoteCommits) -> Result<T, Error>) -> Result<T, Error> {
        let end = self.clock.now() + self.patience;
        let mut doubt = None;
        loop {
            let error = match self.ask_once(&ask) {
                Err(error) if another_may(&error) => error,
                Err(error) => return Err(doubt.filter(|_| leaves_open(&error)).unwrap_or(error)),
                done => return done,
            };
            if matches!(error, Error::InDoubt(_)) {
                doubt.get_or_insert(error.clone());
            }
            if self.clock.now() >= end {
                return Err(doubt.unwrap_or(error));
            }
            self.clock.sleep(PAUSE);
        }
    }
}

/// Whether the same may succeed elsewhere, or later.
pub(super) fn another_may(error: &Error) -> bool {
    error.is_of_node() || matches!(error, Error::NotSequencer(_) | Error::InDoubt(_) | Error::Overdue)
}

/// Whether an answer says nothing of an earlier attempt: a sequencer that knows the name of a commit answers what became
/// of it, so an error of the commit itself is about this attempt and the earlier ones.
fn leaves_open(error: &Error) -> bool {
    matches!(error, Error::Cancelled)
}

impl std::fmt::Debug for RemoteSequencer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSequencer").field("graph", &self.graph).finish_non_exhaustive()
    }
}
