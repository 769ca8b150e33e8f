//! The turn of a bulk load: who begins and ends it, and who lets the commits go on that wait for it. What waits is in
//! `queue.rs`.
//!
//! A turn has a thread, which refuses commits that have waited for too long and ends the turn when its time is over, even
//! if no request comes any more.

use super::{Handover, Sequencer, hand_over};
use crate::Error;
use crate::queue::Queue;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegraph_platform::Clock;
use tidegraph_types::{LoadTurn, RequestId, Version};

impl Sequencer {
    /// Gives a bulk load its turn: until it ends, commits that would conflict with the load wait, and so do commits of
    /// other loads. Returns a version after which no such commit was made; `None` if another load holds the turn.
    ///
    /// The load reads at that version or a later one. The turn ends when the load is committed, with
    /// [`Sequencer::end_turn`], or when its time is over by the clock. It is lost with the sequencer.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the log does not confirm that this is the sequencer.
    pub fn begin_turn(
        &self,
        load: RequestId,
        turn: LoadTurn,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Version>, Error> {
        let number = {
            let mut queue = self.queue.lock();
            let begun = queue.begin_turn(load, turn, clock);
            self.after_turn(queue);
            match begun {
                Some(number) => number,
                None => return Ok(None),
            }
        };
        if !self.config.turn_wait.is_zero() {
            let (me, queue, changed) = (self.me.clone(), self.queue.clone(), self.turn_changed.clone());
            let thread =
                tidegraph_platform::spawn("load-turn", move || watch_turn(&me, &queue, &changed, number));
            if let Err(error) = thread {
                tracing::warn!(%error, "a load gets no turn, because no thread can be started");
                self.end_turn(load);
                return Ok(None);
            }
        }
        // Requests that were queued before the turn began are answered before this one.
        self.prove().map(Some).inspect_err(|_| self.end_turn(load))
    }

    /// Ends the turn of a bulk load, if it holds it. The commits that wait go on.
    pub fn end_turn(&self, load: RequestId) {
        let mut queue = self.queue.lock();
        if queue.is_turn_of(load) {
            queue.end_turn("the load has ended its attempt");
            self.after_turn(queue);
        }
    }

    /// Ends a turn or a wait for a report whose time is over, and lets commits go on that have waited for long enough.
    pub(super) fn advance_turn(&self) {
        let mut queue = self.queue.lock();
        queue.advance();
        self.after_turn(queue);
    }

    /// Returns the number of commits that wait for the turn.
    #[cfg(test)]
    pub(crate) fn set_aside(&self) -> usize {
        self.queue.lock().aside()
    }

    /// Makes somebody lead for the requests that a turn has set aside.
    pub(super) fn after_turn(&self, mut queue: MutexGuard<'_, Queue>) {
        self.turn_changed.notify_all();
        if queue.takes_lead() {
            let next = hand_over(&mut queue);
            drop(queue);
            if next == Handover::NoThread && !self.sends_leader() {
                self.lead_for_those_without();
            }
        }
    }
}

/// Lets commits that wait for a turn go on in time, until the turn is over.
fn watch_turn(me: &Weak<Sequencer>, queue: &Mutex<Queue>, changed: &Condvar, number: u64) {
    loop {
        {
            let mut queue = queue.lock();
            loop {
                match queue.next_due(number) {
                    None => return,
                    Some(Duration::ZERO) => break,
                    Some(left) => {
                        changed.wait_for(&mut queue, left);
                    }
                }
            }
        }
        let Some(sequencer) = me.upgrade() else { return };
        sequencer.advance_turn();
    }
}
