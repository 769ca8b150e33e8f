//! Finds the sequencer and sends it requests.
//!
//! The lease names the process that is the sequencer. If that process does not answer, or is no longer the sequencer,
//! the lease is read again, until a sequencer answers or a time limit ends the attempts. All attempts of a commit have
//! the same id, so that it is carried out once (TXN-4).

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{Lease, MapStore, SEQUENCER};
use tidegraph_platform::Clock;
use tidegraph_remote::{
    CommitOutcome, Commits, Committed, Earlier, Error, FleetClient, RemoteCommits, RequestId,
};
use tidegraph_types::CommitRequest;

/// Pause before the lease is read again.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct RemoteSequencer {
    map_store: Arc<dyn MapStore>,
    graph: String,
    fleet: FleetClient,
    clock: Arc<dyn Clock>,
    /// Longest wait for one answer.
    answer: Duration,
    /// Longest time of all attempts together.
    patience: Duration,
    known: Mutex<Option<Arc<RemoteCommits>>>,
}

impl RemoteSequencer {
    pub fn new(
        map_store: Arc<dyn MapStore>,
        graph: String,
        fleet: FleetClient,
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
        let lease = lease.map_err(|error| {
            Error::Unavailable(format!("cannot read the lease of the sequencer: {error}"))
        })?;
        let found = lease.and_then(|lease| self.adopt(&lease));
        found.ok_or_else(|| Error::Unavailable("the graph has no sequencer now".into()))
    }

    /// Uses the holder of a lease as the sequencer. Returns `None` if the lease is free.
    pub fn adopt(&self, lease: &Lease) -> Option<Arc<RemoteCommits>> {
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

    /// Sends one attempt, for requests that are repeated soon anyway.
    pub fn call_once<T>(&self, ask: impl FnOnce(&RemoteCommits) -> Result<T, Error>) -> Result<T, Error> {
        let sequencer = self.find()?;
        ask(&sequencer).inspect_err(|error| {
            if is_retryable(error) {
                self.forget(&sequencer);
            }
        })
    }

    /// Commits a transaction once, with as many attempts as it takes (TXN-4).
    ///
    /// # Errors
    /// [`Error::Conflict`] if it is not committed; [`Error::InDoubt`] if that is unknown; other kinds as
    /// [`RemoteSequencer::call`].
    pub fn commit(&self, id: RequestId, request: &CommitRequest) -> Result<Committed, Error> {
        let asked_before = Cell::new(false);
        let committed = self.call(|sequencer| match sequencer.commit(id, request.clone()) {
            // A sequencer that took over in between may not know the earlier attempt.
            Err(error @ (Error::Conflict { .. } | Error::Halted(_))) if asked_before.get() => {
                match sequencer.outcome(id, request.first_asked.unwrap_or(request.read_version))? {
                    // The outcome does not say when the schema changed, so the commit counts as a change. Under a key of
                    // the client it may be the commit of another process.
                    CommitOutcome::Committed(version) => Ok(Ok(Committed {
                        version,
                        schema: version,
                        newest_token: None,
                        earlier: request.by_key.then_some(Earlier::Same),
                    })),
                    CommitOutcome::Refused | CommitOutcome::OtherRequest(_) => Err(error),
                    CommitOutcome::Unknown => {
                        Ok(Err(Error::InDoubt("it was first sent too long ago".into())))
                    }
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

    /// Sends attempts until one gets an answer that another attempt would not change, or the time limit ends.
    ///
    /// # Errors
    /// The error that ended the attempts; or the first [`Error::InDoubt`], if the
    /// last error says nothing of earlier attempts.
    pub fn call<T>(&self, ask: impl Fn(&RemoteCommits) -> Result<T, Error>) -> Result<T, Error> {
        let end = self.clock.now() + self.patience;
        let mut doubt = None;
        loop {
            let error = match self.call_once(&ask) {
                Err(error) if is_retryable(&error) => error,
                Err(error) => {
                    return Err(doubt.filter(|_| says_nothing_of_earlier_attempts(&error)).unwrap_or(error));
                }
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

/// Whether the same request may succeed at another process, or later.
pub(super) fn is_retryable(error: &Error) -> bool {
    error.is_of_node() || matches!(error, Error::NotSequencer(_) | Error::InDoubt(_) | Error::Overdue)
}

/// Whether an error says nothing of earlier attempts. A sequencer that knows the id of a commit answers with its
/// outcome, so an error of the commit itself covers this attempt and the earlier ones.
fn says_nothing_of_earlier_attempts(error: &Error) -> bool {
    matches!(error, Error::Cancelled)
}

impl std::fmt::Debug for RemoteSequencer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSequencer").field("graph", &self.graph).finish_non_exhaustive()
    }
}
