//! The progress of a connection: its phase, and the deadlines of the phase.
//!
//! With HTTP/2, requests of a connection run beside each other, and each has a progress of its own. The connection is
//! `Running` while it has requests; it may be closed to make room if none of them runs and the bodies of all arrive.

use super::Limits;
use super::connections::Room;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// Time to the next check of a connection that has no deadline.
const NO_DEADLINE: Duration = Duration::from_secs(3_600);

/// Time in which a client of HTTP/2 must answer that it knows that the connection ends.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a connection that was answered stays before those that have asked for nothing yet. So a flood of connections
/// does not close the one that is in use.
const IN_USE: Duration = Duration::from_secs(1);

/// How many more requests of a connection than those that were answered may be reset by its client.
const MOST_RESETS: u32 = 200;

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

/// Why the service closes a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// The head of a request did not arrive in time.
    Head,
    /// It was idle for too long.
    Idle,
    /// Its client did not go on with an answer or a transaction in time.
    Paused,
    /// Its client took no bytes of an answer in time.
    Unread,
    /// Another connection needed its place.
    Room,
    /// Its client reset too many requests.
    Resets,
    /// The service stops.
    Stopping,
}

impl Reason {
    /// Returns the name of the reason in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::Unread => "unread",
            Self::Room => "room",
            Self::Resets => "resets",
            Self::Stopping => "stopping",
        }
    }
}

/// The action for a connection whose deadline has passed, or whose place is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overdue {
    /// Close it.
    Close(Reason),
    /// Tell the client of HTTP/2 that the connection ends.
    Goodbye,
    /// Tell the handler that the body is late.
    Body,
}

/// The order in which connections are closed to make room. Of one kind, the one that has waited longest is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Order {
    /// It has been idle for at least [`IN_USE`].
    Idle(Instant),
    /// It has not asked for anything yet.
    Unasked(Instant),
    /// It was answered a moment ago.
    InUse(Instant),
    /// A request of it arrives.
    Arriving(Instant),
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
    /// Whether a request of it was answered.
    was_answered: bool,
    /// When the phase must be over.
    until: Option<Instant>,
    /// When the client must have taken some bytes. `None` while nothing waits to be written.
    write_until: Option<Instant>,
    late: Option<BodyLate>,
    is_stopping: bool,
    /// Whether the connection has to make room for another one.
    is_unwanted: bool,
    /// What HTTP/2 needs; `None` for all other protocols.
    requests: Option<Requests>,
    waker: Option<Waker>,
}

/// The requests of a connection of HTTP/2.
#[derive(Debug, Default)]
struct Requests {
    next_id: u64,
    open: BTreeMap<u64, Arc<Progress>>,
    /// How many requests the client has reset, less those that were answered.
    resets: u32,
    /// Whether the client was told that the connection ends.
    said_goodbye: bool,
}

/// One request of a connection of HTTP/2. Dropping it ends the request.
#[derive(Debug)]
pub(super) struct OpenRequest {
    id: u64,
    progress: Arc<Progress>,
    connection: Arc<Progress>,
}

impl OpenRequest {
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let is_answered = self.progress.state().phase == Phase::Answered;
        self.connection.ended(self.id, is_answered);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the HTTP edge: deadlines of connections, on the clock of the runtime"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

impl Progress {
    pub(super) fn new(limits: Limits, room: Arc<Room>) -> Self {
        let since = now();
        let state = State {
            phase: Phase::Head,
            since,
            was_answered: false,
            until: Some(since + limits.head),
            write_until: None,
            late: None,
            is_stopping: false,
            is_unwanted: false,
            requests: None,
            waker: None,
        };
        Self { limits, room, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that the client speaks HTTP/2.
    pub(super) fn multiplexes(&self) {
        self.state().requests = Some(Requests::default());
    }

    /// Begins a request of HTTP/2. Its progress has the limits of the connection.
    pub(super) fn begin(self: &Arc<Self>) -> OpenRequest {
        let progress = Arc::new(Self::new(self.limits, self.room.clone()));
        let mut state = self.state();
        progress.state().is_stopping = state.is_stopping;
        state.enter(Phase::Running, None);
        let requests = state.requests.get_or_insert_default();
        let id = requests.next_id;
        requests.next_id += 1;
        requests.open.insert(id, progress.clone());
        OpenRequest { id, progress, connection: self.clone() }
    }

    /// Reports that a request of HTTP/2 has ended, with its answer or without.
    fn ended(&self, id: u64, is_answered: bool) {
        let mut state = self.state();
        let Some(requests) = &mut state.requests else { return };
        requests.open.remove(&id);
        requests.resets =
            if is_answered { requests.resets.saturating_sub(1) } else { requests.resets.saturating_add(1) };
        if requests.open.is_empty() {
            // The last bytes of the answer are sent, and flushed, when the connection is polled next.
            state.enter(Phase::Answered, None);
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Whether the client of HTTP/2 has to be told that the connection ends.
    pub(super) fn says_goodbye(&self) -> bool {
        self.state().requests.as_ref().is_some_and(|requests| requests.said_goodbye)
    }

    /// Reports that some bytes of a request arrived.
    pub(super) fn received(&self) {
        let mut state = self.state();
        // HTTP/2 has frames that belong to no request.
        if state.requests.is_none() && matches!(state.phase, Phase::Idle | Phase::Paused) {
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
            let says_goodbye = state.requests.as_ref().is_some_and(|requests| requests.said_goodbye);
            state.enter(Phase::Idle, Some(if says_goodbye { GOODBYE } else { self.limits.idle }));
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
            return Some(Overdue::Close(Reason::Unread));
        }
        if state.requests.as_ref().is_some_and(|requests| requests.resets > MOST_RESETS) {
            return Some(Overdue::Close(Reason::Resets));
        }
        match state.phase {
            Phase::Head | Phase::Idle => {
                let reason = match state.phase {
                    _ if state.is_unwanted => Reason::Room,
                    Phase::Head if is_late => Reason::Head,
                    _ if is_late => Reason::Idle,
                    _ if state.is_stopping => Reason::Stopping,
                    _ => return None,
                };
                state.close(reason, now, is_late)
            }
            Phase::Body if state.is_unwanted => Some(Overdue::Close(Reason::Room)),
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
            Phase::Paused if is_late => Some(Overdue::Close(Reason::Paused)),
            Phase::Running if state.is_unwanted && state.order(now).is_some() => {
                Some(Overdue::Close(Reason::Room))
            }
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

    /// Returns the place of the connection in the order in which connections are closed to make room. `None` if it must
    /// not be closed.
    pub(super) fn order(&self, now: Instant) -> Option<Order> {
        self.state().order(now)
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
        self.was_answered |= phase == Phase::Idle;
        self.phase = phase;
        self.since = now();
        self.until = limit.map(|limit| self.since + limit);
    }

    fn order(&self, now: Instant) -> Option<Order> {
        match self.phase {
            Phase::Idle if self.since + IN_USE > now => Some(Order::InUse(self.since)),
            Phase::Idle => Some(Order::Idle(self.since)),
            Phase::Head if !self.was_answered => Some(Order::Unasked(self.since)),
            Phase::Head | Phase::Body => Some(Order::Arriving(self.since)),
            Phase::Running => {
                let mut requests = self.requests.as_ref()?.open.values();
                let first = requests.next()?.order(now)?;
                requests.try_fold(first, |oldest, request| Some(oldest.min(request.order(now)?)))
            }
            Phase::Answered | Phase::Paused => None,
        }
    }

    /// Ends a connection that waits for a request. A client of HTTP/2 is told first, and has some time to answer, so
    /// that it does not lose a request that it sends meanwhile.
    fn close(&mut self, reason: Reason, now: Instant, is_late: bool) -> Option<Overdue> {
        match &mut self.requests {
            Some(requests) if !requests.said_goodbye => {
                requests.said_goodbye = true;
                self.until = Some(now + GOODBYE);
                Some(Overdue::Goodbye)
            }
            Some(_) if !is_late && reason == Reason::Stopping => None,
            _ => Some(Overdue::Close(reason)),
        }
    }
}
