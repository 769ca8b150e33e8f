//! The sessions of a connection, and the transaction that each may have open.

use super::codes::Failure;
use crate::admission::{self, Admission, Lent, Output, Transaction, Writer, Written};
use crate::audit::Source;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegraph_engine::{Answer, Principal};
use tidegraph_platform::metric::{Ended, OpenTransaction, Protocol};
use tidegraph_types::{ErrorCode, Str};
use tokio::sync::{Notify, OwnedMutexGuard};

/// Most sessions of a connection.
const MOST_SESSIONS: usize = 64;

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Commit,
    Rollback,
}

/// The sessions of a connection by their names. The requests of one run one after the other, in the order in which they
/// came.
#[derive(Default)]
pub(super) struct Sessions {
    all: Mutex<BTreeMap<Str, Named>>,
    /// How many transactions are open.
    open: Arc<AtomicUsize>,
}

/// A session that is found by its name.
#[derive(Clone, Default)]
struct Named {
    session: Arc<tokio::sync::Mutex<Session>>,
    rollbacks: Arc<Rollbacks>,
}

#[derive(Default)]
struct Session {
    state: State,
}

/// Tells the running request of a session that a rollback waits for it.
#[derive(Default)]
struct Rollbacks {
    /// How many were asked for.
    asked: AtomicUsize,
    changed: Notify,
    /// Whether steps were sent in the transaction. Closing the session rolls it back then.
    by_steps: AtomicBool,
}

impl Rollbacks {
    fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until one is asked for after `earlier` others.
    async fn after(&self, earlier: usize) -> Failure {
        loop {
            let changed = self.changed.notified();
            if self.asked() != earlier {
                return Failure::new(ErrorCode::Cancelled, "the transaction of the request was rolled back");
            }
            changed.await;
        }
    }
}

#[derive(Default)]
enum State {
    /// No transaction is open.
    #[default]
    Clean,
    Open(Box<Open>),
    /// A request of the transaction failed, and the transaction with it.
    Failed,
}

struct Open {
    transaction: Transaction,
    about: About,
}

/// What is known of a transaction while a request of it runs, too.
struct About {
    /// When it must have ended.
    until: jiff::Timestamp,
    /// Whether only scripts were sent. Closing the session commits it then, as Neptune does; drivers that send steps end
    /// their transactions themselves.
    by_script: bool,
    metric: OpenTransaction,
    /// Who asked for it first, and from where.
    asker: (Principal, Source),
    _counted: Counted,
}

/// One of the open transactions of a connection.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(open.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    /// Whether a transaction is open.
    pub(super) fn are_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    fn get(&self, name: &Str) -> Result<Named, Failure> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = all.get(name) {
            return Ok(session.clone());
        }
        if all.len() >= MOST_SESSIONS {
            let message = format!("the connection has {MOST_SESSIONS} sessions: close one");
            return Err(Failure::new(ErrorCode::TooManyRequests, message));
        }
        Ok(all.entry(name.clone()).or_default().clone())
    }

    /// Runs a request of a session up to the begin of its answer. `commits`: the request is a transaction of its own.
    pub(super) async fn run(
        &self,
        name: &Str,
        commits: bool,
        by_steps: bool,
        mut request: admission::Request,
        writer: impl Writer,
        admission: &Arc<Admission>,
    ) -> Result<(Written, Option<Busy>), Failure> {
        // The next request of the session waits for the end of this one.
        let Named { session, rollbacks } = self.get(name)?;
        let mut session = session.lock_owned().await;
        let earlier = rollbacks.asked();
        let now = admission.now();
        let was_by_steps = matches!(&session.state, State::Open(open) if !open.about.by_script);
        rollbacks.by_steps.store(by_steps && !commits || was_by_steps, Ordering::Relaxed);
        let Open { transaction, mut about } = match std::mem::take(&mut session.state) {
            State::Clean if commits => {
                let written = admission.stream(request, writer).await;
                let written = written.map_err(|error| Failure::from(&error))?;
                let rollbacks = (rollbacks, earlier);
                let busy = written.more.is_some().then_some(Busy { session, rollbacks, open: None });
                return Ok((written, busy));
            }
            State::Clean => Open {
                transaction: admission
                    .begin(&request.principal, request.source, None, false)
                    .map_err(|error| Failure::new(error.code(), error.to_string()))?,
                about: About {
                    until: now
                        + jiff::SignedDuration::try_from(admission.limits().query_timeout)
                            .unwrap_or_default(),
                    by_script: true,
                    metric: OpenTransaction::new(Protocol::WebSocket),
                    asker: (request.principal.clone(), request.source),
                    _counted: Counted::new(&self.open),
                },
            },
            State::Open(open) => *open,
            State::Failed => {
                session.state = State::Failed;
                return Err(failed());
            }
        };
        // Until the request has succeeded: also if it is given up in between.
        session.state = State::Failed;
        let Ok(left) = Duration::try_from(about.until.duration_since(now)) else {
            return Err(late());
        };
        request.timeout = Some(request.timeout.map_or(left, |asked| asked.min(left)));
        about.by_script &= !by_steps;
        if commits {
            // Whole: it may be answered only after the commit.
            let write = move |_: &admission::Request, answer: &Answer, output: &mut Output| {
                writer.whole(answer, output)
            };
            let ran = admission.run_within(transaction, request, write).await;
            let (written, transaction) = ran.map_err(|error| Failure::from(&error))?;
            session.state = State::Open(Box::new(Open { transaction, about }));
            self.conclude(&mut session, Outcome::Commit, admission).await?;
            return Ok((written, None));
        }
        let streamed = tokio::select! {
            streamed = admission.stream_within(transaction, request, writer) => streamed,
            failure = rollbacks.after(earlier) => return Err(failure),
        };
        let (written, lent) = streamed.map_err(|error| Failure::from(&error))?;
        let busy = Busy { session, rollbacks: (rollbacks, earlier), open: Some((lent, about)) };
        if written.more.is_some() {
            return Ok((written, Some(busy)));
        }
        busy.end().await;
        Ok((written, None))
    }

    /// Ends the transaction of a session, if one is open.
    pub(super) async fn end(
        &self,
        name: &Str,
        outcome: Outcome,
        admission: &Arc<Admission>,
    ) -> Result<(), Failure> {
        let Named { session, rollbacks } = self.get(name)?;
        if outcome == Outcome::Rollback {
            rollbacks.ask();
        }
        let mut session = session.lock().await;
        self.conclude(&mut session, outcome, admission).await
    }

    async fn conclude(
        &self,
        session: &mut Session,
        outcome: Outcome,
        admission: &Arc<Admission>,
    ) -> Result<(), Failure> {
        match (std::mem::take(&mut session.state), outcome) {
            (State::Clean, _) | (State::Failed, Outcome::Rollback) => Ok(()),
            (State::Open(open), Outcome::Rollback) => {
                open.about.metric.end(Ended::RolledBack);
                Ok(())
            }
            (State::Failed, Outcome::Commit) => {
                session.state = State::Failed;
                Err(failed())
            }
            (State::Open(open), Outcome::Commit) => {
                if open.about.until < admission.now() {
                    return Err(late());
                }
                let (principal, source) = &open.about.asker;
                let committed = admission.commit_transaction(open.transaction, principal, *source).await;
                committed.map_err(|error| Failure::from(&error))?;
                open.about.metric.end(Ended::Committed);
                Ok(())
            }
        }
    }

    /// Closes a session. A transaction of scripts is committed, after the request of it that still runs. Any other is rolled
    /// back, and a running request of it ends.
    pub(super) async fn close(&self, name: &Str, admission: &Arc<Admission>) -> Result<(), Failure> {
        let Some(session) = self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(name) else {
            return Ok(());
        };
        if session.rollbacks.by_steps.load(Ordering::Relaxed) {
            session.rollbacks.ask();
        }
        let mut session = session.session.lock().await;
        let outcome = match &session.state {
            State::Open(open) if open.about.by_script => Outcome::Commit,
            _ => Outcome::Rollback,
        };
        self.conclude(&mut session, outcome, admission).await
    }
}

/// A session whose request runs while its answer is sent. Dropping it fails the transaction.
pub(super) struct Busy {
    session: OwnedMutexGuard<Session>,
    /// Rollbacks, and how many there were when the request began.
    rollbacks: (Arc<Rollbacks>, usize),
    /// The transaction; `None` if the request is one of its own.
    open: Option<(Lent, About)>,
}

impl Busy {
    /// Waits until a rollback is asked for.
    pub(super) async fn rolled_back(&self) -> Failure {
        let (rollbacks, earlier) = &self.rollbacks;
        rollbacks.after(*earlier).await
    }

    /// Lets the next request of the session run. The last part of the answer was taken.
    pub(super) async fn end(mut self) {
        if let Some((lent, about)) = self.open.take()
            && let Some(transaction) = lent.back().await
        {
            self.session.state = State::Open(Box::new(Open { transaction, about }));
        }
    }
}

fn failed() -> Failure {
    let message = "a request of the transaction has failed, and the transaction with it: roll it back";
    Failure::new(ErrorCode::BadRequest, message)
}

fn late() -> Failure {
    let message = "the transaction took longer than its limit, and is not committed";
    Failure::new(ErrorCode::TimeLimitExceeded, message)
}
