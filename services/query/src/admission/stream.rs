//! Answers that are sent while their query runs.
//!
//! Roles: [`Feed`] is the side of the query's thread: it writes rows and hands over parts; [`Parts`] is the side of the
//! protocol, which awaits them; `Pipe` is what both share.
//!
//! Flow: the query's thread writes each batch of rows. A part of [`PART_BYTES`] is handed over; what is left after a
//! batch waits for more rows, at most for [`LINGER`]. So an answer that is made fast leaves in large parts, and one whose
//! rows come slowly leaves as they come. If [`WAITING_PARTS`] wait, the query waits for its client, within its time
//! limit. It keeps its slot for [`PATIENCE`], and then lets another query run: clients that read slowly, or ask for
//! their rows in portions, keep nobody out. A query ends when its [`Parts`] are dropped, or when they are discarded
//! ([`Parts::discard`]), which is no failure of it. The audit log gets its line when the query ends, before the client
//! learns of it. A query of a transaction has the transaction meanwhile, and gives it back ([`Lent`]) before it tells its end.
//!
//! What must never happen: an answer that failed looks like a whole one; a query waits for ever; more of an answer is in
//! memory than the parts above and what the socket holds.

use super::Transaction;
use super::output::{Output, Part};
use super::slots::Slot;
use super::writer::Writer;
use super::{Admission, CancelOnDrop, Error, Written};
use crate::audit::Record;
use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegraph_engine::{Head, Interrupt, RowSink, Stop};
use tidegraph_types::Value;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

/// Bytes of a part, from which on it is handed over.
const PART_BYTES: usize = 64 << 10;
/// Parts that wait for the client.
const WAITING_PARTS: usize = 2;
/// How long rows wait for others that leave with them.
const LINGER: Duration = Duration::from_millis(20);
/// How long a query that waits for its client keeps its slot.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time between two checks of whether a query that waits for its client must end.
const CHECK: Duration = Duration::from_millis(20);
/// Number of queries that wait for their clients without a slot. Others keep theirs.
pub const MOST_PARKED: usize = 256;

/// What both sides share.
#[derive(Default)]
struct Pipe {
    state: Mutex<State>,
    /// Notified when something changes for the protocol's side.
    filled: Notify,
    /// Notified when something changes for the query's side.
    drained: Notify,
}

#[derive(Default)]
struct State {
    head: Option<Head>,
    parts: VecDeque<Part>,
    /// What was written since, unless it is being written to.
    rest: Option<Output>,
    /// Whether the rest waits to be sent.
    lingers: bool,
    end: Option<Result<End, Error>>,
    /// Whether nobody takes parts any more.
    is_abandoned: bool,
    /// Whether the protocol wants the end of the query, but nothing more of its answer.
    is_discarded: bool,
}

/// How an answer ends.
pub(super) enum End {
    /// With what was handed over.
    Handed,
    /// It was written whole.
    Whole(Box<Written>),
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The query's side of an answer.
pub(super) struct Feed<W> {
    pipe: Arc<Pipe>,
    writer: W,
    admission: Arc<Admission>,
    /// `None` while the query waits for its client.
    slot: Option<Slot>,
    runtime: Handle,
    /// Why the query was stopped from here.
    failed: Option<Error>,
    /// Number of rows that were taken.
    rows: u64,
    /// Its record in the audit log, until it ends.
    record: Option<Record>,
    has_ended: bool,
}

/// The parts of an answer that are still to come. Dropping them ends the query.
pub struct Parts {
    pipe: Arc<Pipe>,
    /// Whether the last part was taken.
    is_over: bool,
    cancel: CancelOnDrop,
}

/// A transaction that a query of it has.
#[derive(Debug)]
pub struct Lent(oneshot::Receiver<Transaction>);

impl Lent {
    /// Returns the transaction of a query whose last part was taken; `None` if the query failed.
    pub async fn back(self) -> Option<Transaction> {
        self.0.await.ok()
    }
}

/// The query's side of a transaction that it has.
pub(super) struct Borrowed {
    pub(super) transaction: Transaction,
    owner: oneshot::Sender<Transaction>,
}

impl Borrowed {
    /// Gives the transaction back.
    pub(super) fn give_back(self) {
        // An owner that is gone has rolled it back.
        drop(self.owner.send(self.transaction));
    }
}

/// Lends a transaction to a query of it.
pub(super) fn lend(transaction: Transaction) -> (Borrowed, Lent) {
    let (owner, lent) = oneshot::channel();
    (Borrowed { transaction, owner }, Lent(lent))
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// Returns both sides of an answer. To be called in a runtime.
pub(super) fn pipe<W: Writer>(
    writer: W,
    admission: Arc<Admission>,
    slot: Slot,
    cancel: CancelOnDrop,
    record: Option<Record>,
) -> (Feed<W>, Parts) {
    let pipe = Arc::<Pipe>::default();
    let runtime = Handle::current();
    let feed = Feed {
        pipe: pipe.clone(),
        writer,
        admission,
        slot: Some(slot),
        runtime,
        failed: None,
        rows: 0,
        record,
        has_ended: false,
    };
    (feed, Parts { pipe, is_over: false, cancel })
}

impl<W: Writer> RowSink for Feed<W> {
    fn take(&mut self, head: &Head, rows: Vec<Vec<Value>>, interrupt: &dyn Interrupt) -> Result<(), Stop> {
        let rest = {
            let mut state = self.pipe.state();
            if state.is_unwanted() {
                return Err(Stop::Cancelled);
            }
            state.head.get_or_insert_with(|| head.clone());
            state.rest.take()
        };
        let mut out = match rest {
            Some(out) => out,
            None => {
                let mut out = self.empty();
                let begun = self.writer.begin(&head.columns, &mut out);
                self.written(begun)?;
                out
            }
        };
        for row in &rows {
            let written = self.writer.row(row, &mut out);
            self.written(written)?;
            self.rows += 1;
            if out.ready() >= PART_BYTES {
                let part = out.split(self.admission.memory.reserve());
                let part = self.written(part)?;
                self.hand_over(part, interrupt)?;
            }
        }
        self.leave(out);
        Ok(())
    }
}

impl<W: Writer> Feed<W> {
    fn empty(&self) -> Output {
        Output::of(self.admission.memory.reserve(), false)
    }

    /// Stops the query if its writer failed.
    fn written<T>(&mut self, written: io::Result<T>) -> Result<T, Stop> {
        written.map_err(|error| {
            self.failed = Some(Error::of_writer(error));
            Stop::Cancelled
        })
    }

    /// Hands over a part, once there is room for it.
    fn hand_over(&mut self, part: Part, interrupt: &dyn Interrupt) -> Result<(), Stop> {
        let mut waited = Duration::ZERO;
        loop {
            {
                let mut state = self.pipe.state();
                if state.is_unwanted() {
                    return Err(Stop::Cancelled);
                }
                if state.parts.len() < WAITING_PARTS {
                    state.parts.push_back(part);
                    state.lingers = false;
                    break;
                }
            }
            let drained = self.pipe.drained.notified();
            if self.runtime.block_on(timeout(CHECK, drained)).is_err() {
                waited += CHECK;
            }
            interrupt.check()?;
            if waited >= PATIENCE {
                self.wait_without_slot(interrupt)?;
                waited = Duration::ZERO;
            }
        }
        self.pipe.filled.notify_one();
        Ok(())
    }

    /// Waits for room, and lets another query run meanwhile.
    fn wait_without_slot(&mut self, interrupt: &dyn Interrupt) -> Result<(), Stop> {
        // Its thread is one more than there are slots.
        let Ok(_parked) = self.admission.parked.clone().try_acquire_owned() else { return Ok(()) };
        let Some(caller) = self.slot.take().map(|slot| slot.caller().clone()) else { return Ok(()) };
        loop {
            {
                let state = self.pipe.state();
                if state.is_unwanted() || state.parts.len() < WAITING_PARTS {
                    break;
                }
            }
            let _ = self.runtime.block_on(timeout(CHECK, self.pipe.drained.notified()));
            interrupt.check()?;
        }
        let slots = self.admission.slots.clone();
        let slot = self.runtime.block_on(async {
            let mut slot = pin!(slots.acquire_again(caller));
            loop {
                if let Ok(slot) = timeout(CHECK, slot.as_mut()).await {
                    return Ok(slot);
                }
                interrupt.check()?;
            }
        });
        self.slot = slot?;
        Ok(())
    }

    /// Leaves what was written for the next batch, or to be sent if that takes long.
    fn leave(&self, out: Output) {
        let mut state = self.pipe.state();
        if state.is_unwanted() {
            return;
        }
        let is_new = out.ready() > 0 && !state.lingers;
        state.lingers |= is_new;
        state.rest = Some(out);
        drop(state);
        if is_new {
            self.pipe.filled.notify_one();
        }
    }

    /// Takes the slot, which the answer holds from now on.
    pub(super) fn take_slot(&mut self) -> Option<Slot> {
        self.slot.take()
    }

    /// Returns why the query was stopped from here, if it was.
    pub(super) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    pub(super) fn writer(&self) -> &W {
        &self.writer
    }

    /// Whether rows were taken.
    pub(super) fn has_begun(&self) -> bool {
        self.pipe.state().head.is_some()
    }

    /// Whether the query was stopped because its client wants no more rows.
    pub(super) fn is_discarded(&self) -> bool {
        self.pipe.state().is_discarded
    }

    /// Writes the end of an answer whose rows were taken.
    ///
    /// # Errors
    ///
    /// If the writer fails.
    pub(super) fn end(&mut self) -> Result<End, Error> {
        if self.is_discarded() {
            return Ok(End::Handed);
        }
        let rest = self.pipe.state().rest.take();
        let mut out = rest.unwrap_or_else(|| self.empty());
        self.writer.end(&mut out).map_err(Error::of_writer)?;
        out.cut();
        let mut state = self.pipe.state();
        if !state.is_unwanted() {
            state.rest = Some(out);
        }
        Ok(End::Handed)
    }

    /// Tells the protocol's side how the answer ends.
    pub(super) fn finish(mut self, end: Result<End, Error>) {
        self.has_ended = true;
        self.slot = None;
        self.tell(end);
    }
}

impl<W> Feed<W> {
    /// Records the end, and then tells it.
    fn tell(&mut self, end: Result<End, Error>) {
        let (is_abandoned, wrote) = {
            let state = self.pipe.state();
            (state.is_abandoned, state.head.as_ref().is_some_and(|head| head.wrote))
        };
        // The record says by itself that the caller has gone.
        if let Some(record) = self.record.take().filter(|_| !is_abandoned) {
            record.end_query(match &end {
                Ok(End::Handed) => Ok((self.rows, wrote)),
                Ok(End::Whole(written)) => Ok((written.rows, written.wrote)),
                Err(error) => Err(error.code()),
            });
        }
        self.pipe.state().end = Some(end);
        self.pipe.filled.notify_one();
    }
}

impl<W> Drop for Feed<W> {
    fn drop(&mut self) {
        if !self.has_ended {
            // It panicked.
            self.tell(Err(Error::defect("its thread ended without an answer")));
        }
    }
}

/// What there is for the protocol's side.
enum Found {
    Part(Part),
    End(Result<End, Error>),
    /// Nothing yet; whether rows wait to be sent.
    Nothing {
        lingers: bool,
    },
}

impl Parts {
    /// Waits for the begin of the answer: all of it, if it ends soon.
    ///
    /// # Errors
    ///
    /// If the query failed, as long as nothing of its answer was sent.
    pub(super) async fn begin(self) -> Result<Written, Error> {
        let (part, is_all) = loop {
            let found = {
                let mut state = self.pipe.state();
                match state.end.take() {
                    Some(Err(error)) => return Err(error),
                    Some(Ok(End::Whole(written))) => return Ok(*written),
                    handed => state.end = handed,
                }
                let found = state.found();
                (found, state.is_empty())
            };
            match found {
                (Found::Part(part), is_all) => break (part, is_all),
                (Found::End(_), _) => break (Part::default(), true),
                (Found::Nothing { lingers }, _) => {
                    if let Some(part) = self.wait(lingers).await {
                        break (part?, false);
                    }
                }
            }
        };
        self.pipe.drained.notify_one();
        let head = self.pipe.state().head.clone();
        let head = head.ok_or_else(|| Error::defect("an answer has no head"))?;
        Ok(Written::of_parts(head, part, (!is_all).then_some(self)))
    }

    /// Waits for the next part; `None` after the last.
    ///
    /// # Errors
    ///
    /// If the query failed; there is nothing more then.
    pub async fn next(&mut self) -> Option<Result<Part, Error>> {
        while !self.is_over {
            let found = self.pipe.state().found();
            match found {
                Found::Part(part) => {
                    self.pipe.drained.notify_one();
                    return Some(Ok(part));
                }
                Found::End(end) => {
                    self.is_over = true;
                    return end.err().map(Err);
                }
                Found::Nothing { lingers } => {
                    if let Some(part) = self.wait(lingers).await {
                        self.is_over = part.is_err();
                        return Some(part);
                    }
                }
            }
        }
        None
    }

    /// Gives up the rows that were not taken. The query is stopped, and what [`Parts::next`] returns from now on is its end
    /// or its failure: that it was stopped is none.
    pub fn discard(&mut self) {
        let mut state = self.pipe.state();
        state.is_discarded = true;
        state.lingers = false;
        let dropped = (std::mem::take(&mut state.parts), state.rest.take());
        drop(state);
        drop(dropped);
        self.cancel.0.store(true, Ordering::Relaxed);
        self.pipe.drained.notify_one();
    }

    /// Waits until something changes, or until rows have lingered long enough: then it returns them.
    async fn wait(&self, lingers: bool) -> Option<Result<Part, Error>> {
        if !lingers {
            self.pipe.filled.notified().await;
            return None;
        }
        if timeout(LINGER, self.pipe.filled.notified()).await.is_ok() {
            return None;
        }
        let mut state = self.pipe.state();
        if !state.parts.is_empty() {
            return None;
        }
        let part = state.take_rest()?;
        Some(part.map_err(Error::of_writer))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let mut state = self.pipe.state();
        state.is_abandoned = true;
        let (parts, rest) = (std::mem::take(&mut state.parts), state.rest.take());
        drop(state);
        drop((parts, rest));
        self.pipe.drained.notify_one();
    }
}

impl State {
    /// Whether nobody wants more of the answer.
    fn is_unwanted(&self) -> bool {
        self.is_abandoned || self.is_discarded
    }

    fn found(&mut self) -> Found {
        if let Some(part) = self.parts.pop_front() {
            return Found::Part(part);
        }
        match self.end.take() {
            None => Found::Nothing { lingers: self.lingers },
            Some(Ok(end)) => {
                let last = self.rest.take().filter(|rest| rest.ready() > 0);
                match last {
                    None => Found::End(Ok(end)),
                    Some(rest) => {
                        self.end = Some(Ok(end));
                        Found::Part(rest.into_part(super::Held::default()))
                    }
                }
            }
            Some(Err(error)) => Found::End(Err(error)),
        }
    }

    /// Whether the answer has ended, and nothing of it is left.
    fn is_empty(&self) -> bool {
        matches!(self.end, Some(Ok(_))) && self.parts.is_empty() && self.rest.is_none()
    }

    /// Takes what may be sent of the rest, unless it is being written to.
    fn take_rest(&mut self) -> Option<io::Result<Part>> {
        let rest = self.rest.as_mut()?;
        self.lingers = false;
        let memory = rest.memory().sibling();
        Some(rest.split(memory))
    }
}
