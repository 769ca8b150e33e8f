//! The progress of a connection: its phase, and the deadlines of the phase.

use super::Limits;
use super::connections::Room;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// Time to the next check of a connection that has no deadline.
const NO_DEADLINE: Duration = Duration::from_secs(3_600);

/// Why the service does not wait for the rest of a request body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyLate {
    /// The client took too long.
    #[error("the request body did not arrive within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// The service stops.
    #[error("the service is stopping, and the request body has not arrived")]
    Stopping,
}

/// The phase of a connection. In all phases but `Running` and `Answered` it waits for its client. HTTP has no `Paused`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The head of a request arrives.
    Head,
    /// The body of a request arrives.
    Body,
    /// A handler works.
    Running,
    /// An answer is complete, and its last bytes are on their way.
    Answered,
    /// The last answer was sent.
    Idle,
    /// A part of an answer was sent, and the client has not asked for more; or it has not ended its transaction.
    Paused,
}

/// The action for a connection whose deadline has passed, or whose place is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overdue {
    /// Close it.
    Close,
    /// Tell the handler that the body is late.
    Body,
}

/// The progress of one connection.
#[derive(Debug)]
pub(crate) struct Progress {
    limits: Limits,
    room: Arc<Room>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// When the phase must be over.
    until: Option<Instant>,
    /// When the client must have taken some bytes. `None` while nothing waits to be written.
    write_until: Option<Instant>,
    late: Option<BodyLate>,
    is_stopping: bool,
    /// Whether the connection has to make room for another one.
    is_unwanted: bool,
    waker: Option<Waker>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the HTTP edge: deadlines of connections, on the clock of the runtime"
)]
fn now() -> Instant {
    Instant::now()
}

impl Progress {
    pub(super) fn new(limits: Limits, room: Arc<Room>) -> Self {
        let since = now();
        let state = State {
            phase: Phase::Head,
            since,
            until: Some(since + limits.head),
            write_until: None,
            late: None,
            is_stopping: false,
            is_unwanted: false,
            waker: None,
        };
        Self { limits, room, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that some bytes of a request arrived.
    pub(super) fn received(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Idle | Phase::Paused) {
            state.enter(Phase::Head, Some(self.limits.head));
        }
    }

    /// Reports that the head of a request is complete.
    pub(crate) fn requested(&self, has_body: bool) {
        let mut state = self.state();
        state.late = None;
        if has_body {
            let limit = if state.is_stopping { Duration::ZERO } else { self.limits.body };
            state.enter(Phase::Body, Some(limit));
            drop(state);
            self.room.may_be_free();
        } else {
            state.enter(Phase::Running, None);
        }
    }

    /// Reports that the body of a request is complete, or that nobody reads it any more.
    pub(super) fn received_body(&self) {
        let mut state = self.state();
        if state.phase == Phase::Body {
            state.enter(Phase::Running, None);
        }
    }

    /// Reports that all bytes of an answer were handed over to be written.
    pub(super) fn answered(&self) {
        self.state().enter(Phase::Answered, None);
    }

    /// Reports that the client took bytes (`has_taken`), or that it takes none at the moment.
    pub(super) fn wrote(&self, has_taken: bool) {
        let mut state = self.state();
        match (has_taken, state.write_until) {
            (true, Some(_)) => state.write_until = None,
            (false, None) => state.write_until = Some(now() + self.limits.write),
            _ => {}
        }
    }

    /// Reports that no byte waits to be written.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        state.write_until = None;
        if state.phase == Phase::Answered {
            state.enter(Phase::Idle, Some(self.limits.idle));
            drop(state);
            self.room.may_be_free();
        }
    }

    /// Reports that nothing is left to do for the client, which may take `limit` to ask again.
    pub(crate) fn rests(&self, limit: Duration) {
        self.state().enter(Phase::Idle, Some(limit));
        self.room.may_be_free();
    }

    /// Reports that the client may take `limit` to go on with what it has begun.
    pub(crate) fn pauses(&self, limit: Duration) {
        self.state().enter(Phase::Paused, Some(limit));
    }

    /// Returns why the service does not wait for the rest of the body; `None` if it waits.
    pub(crate) fn late(&self) -> Option<BodyLate> {
        self.state().late
    }

    /// Shortens the deadlines, because the service stops. `for_body` is the time for the rest of a body.
    pub(super) fn stop(&self, for_body: Duration) {
        let mut state = self.state();
        state.is_stopping = true;
        if state.phase == Phase::Body {
            let until = now() + for_body;
            state.until = state.until.map(|set| set.min(until));
        }
    }

    /// Remembers which task to wake when the place of the connection is needed.
    pub(super) fn is_polled_by(&self, context: &Context<'_>) {
        let mut state = self.state();
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
    }

    /// Returns the action that is due now.
    pub(super) fn overdue(&self) -> Option<Overdue> {
        let mut state = self.state();
        let now = now();
        let is_late = state.until.is_some_and(|until| until <= now);
        if state.write_until.is_some_and(|until| until <= now) {
            return Some(Overdue::Close);
        }
        match state.phase {
            Phase::Head | Phase::Idle => {
                (is_late || state.is_stopping || state.is_unwanted).then_some(Overdue::Close)
            }
            Phase::Body if state.is_unwanted => Some(Overdue::Close),
            Phase::Body if is_late => {
                state.late = Some(if state.is_stopping {
                    BodyLate::Stopping
                } else {
                    BodyLate::Deadline(self.limits.body)
                });
                state.enter(Phase::Running, None);
                Some(Overdue::Body)
            }
            Phase::Body => None,
            Phase::Paused if is_late => Some(Overdue::Close),
            Phase::Running | Phase::Answered | Phase::Paused => {
                // A request arrived before the connection could be closed, so another one must be closed instead.
                if std::mem::take(&mut state.is_unwanted) {
                    self.room.may_be_free();
                }
                None
            }
        }
    }

    /// Returns when [`Progress::overdue`] must be asked again.
    pub(super) fn next_check(&self) -> Instant {
        let state = self.state();
        state.until.into_iter().chain(state.write_until).min().unwrap_or_else(|| now() + NO_DEADLINE)
    }

    /// Returns the order in which connections are closed to make room: idle ones first, then those whose request
    /// arrives, each the oldest first. `None` if the connection must not be closed.
    pub(super) fn order(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        match state.phase {
            Phase::Idle => Some((false, state.since)),
            Phase::Head | Phase::Body => Some((true, state.since)),
            Phase::Running | Phase::Answered | Phase::Paused => None,
        }
    }

    /// Whether the connection was asked to close and has not done so yet.
    pub(super) fn is_unwanted(&self) -> bool {
        self.state().is_unwanted
    }

    /// Asks the connection to close, unless a request arrives before it does.
    pub(super) fn make_room(&self) {
        let mut state = self.state();
        state.is_unwanted = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl State {
    fn enter(&mut self, phase: Phase, limit: Option<Duration>) {
        self.phase = phase;
        self.since = now();
        self.until = limit.map(|limit| self.since + limit);
    }
}
