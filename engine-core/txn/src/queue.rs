//! The requests that wait for the committer, and the commits that wait for the turn of a bulk load.
//!
//! A load that conflicted with transactions again and again gets a *turn* before its next attempt. While it holds the
//! turn, a commit that concerns it is set aside: one that changes what the load has met, or writes a key that it has
//! read, and the commit of another load. Everything else is queued as always.
//!
//! Flow of a commit that is set aside:
//! 1. The turn ends: the load is committed or has given up, its time is over, or the sequencer stops. The commit is
//!    queued, and the committer checks it for conflicts as any other.
//! 2. If the turn does not end within [`SequencerConfig::turn_wait`], the commit is queued as well, but it *yields*: the
//!    committer answers if it knows the request's id, and refuses it otherwise ([`Error::LoadTurn`](crate::Error)).
//!
//! So each request is answered by the committer, in the order in which it was queued. A question for the outcome of a
//! request that is set aside makes that request yield first, so that the answer stays true (TXN-4).
//!
//! A load of another process compares itself with the last changes before it is committed: it is *asked*, and *reports*.
//! Until then, or until its time is over, no request is served; what arrives waits in the queue. No lock is held.
//!
//! Must never: set aside more than [`SequencerConfig::turn_waiting`] requests; queue requests after a shutdown anywhere
//! but in `waiting`.

use crate::SequencerConfig;
use crate::created::{ReportLimit, load_changes};
use crate::request::{LoadCommit, LoadProgress, Reply, Request};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, metric};
use tidegraph_types::{Epoch, Footprint, Key, LoadTurn, RequestId, Version};

/// Bits for the questions of one epoch in the number of a question.
const QUESTIONS_BITS: u32 = 32;
/// Longest time of a turn.
const LONGEST_TURN: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub(crate) struct Queue {
    /// Requests in order of arrival.
    pub waiting: VecDeque<Request>,
    /// Whether a caller leads. The leader passes the role on, or gives it up when the queue is empty.
    pub has_leader: bool,
    turn: Option<HeldTurn>,
    /// Number of turns that were given.
    turns: u64,
    /// The load whose report is waited for.
    asked: Option<Asked>,
    /// Number of the last question to a load. Those of one epoch follow each other, and no two epochs have the same.
    asks: u64,
    closed: bool,
    turn_wait: Duration,
    most_aside: usize,
    most_aside_bytes: usize,
}

/// What the holder of a turn depends on.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Number of the turn.
    pub number: u64,
    load: RequestId,
    footprint: Footprint,
    read_keys: FxHashSet<Key>,
}

#[derive(Debug)]
struct HeldTurn {
    claim: Arc<Claim>,
    clock: Arc<dyn Clock>,
    ends: Duration,
    /// In order of arrival.
    aside: VecDeque<Aside>,
    bytes: usize,
    /// Number of all requests that were set aside.
    met: u64,
}

/// A load that was asked to compare itself with the last changes.
#[derive(Debug)]
struct Asked {
    number: u64,
    id: RequestId,
    load: LoadCommit,
    clock: Arc<dyn Clock>,
    /// When its time is over.
    until: Duration,
}

#[derive(Debug)]
struct Aside {
    request: Request,
    /// When it yields.
    until: Duration,
}

impl Claim {
    /// Whether a request would conflict with the load, or may.
    pub fn meets(&self, request: &Request) -> bool {
        match request {
            Request::Commit { request, .. } => {
                let is_read = |key: &Key| *key == Key::GRAPH || self.read_keys.contains(key);
                request.write_keys.iter().any(is_read)
                    || load_changes(&request.mutations).any(|change| self.footprint.may_meet(change))
            }
            Request::Load { load, .. } => RequestId::of_text(&load.load_id) != self.load,
            _ => false,
        }
    }
}

impl Queue {
    /// Makes the queue of the sequencer of an epoch.
    pub fn new(config: &SequencerConfig, epoch: Epoch) -> Self {
        Self {
            waiting: VecDeque::new(),
            has_leader: false,
            turn: None,
            turns: 0,
            asked: None,
            asks: epoch.0 << QUESTIONS_BITS,
            closed: false,
            turn_wait: config.turn_wait,
            most_aside: config.turn_waiting,
            most_aside_bytes: config.transaction_bytes,
        }
    }

    /// Makes the caller lead if requests can be served and nobody leads.
    pub fn takes_lead(&mut self) -> bool {
        !self.is_asking() && !self.waiting.is_empty() && !std::mem::replace(&mut self.has_leader, true)
    }

    /// Whether the report of a load is waited for, so that nobody may lead.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Waits for the report of a load from now on. Returns the number of the question; `None` after a shutdown.
    pub fn ask(&mut self, load: LoadCommit, limit: ReportLimit) -> Option<u64> {
        if self.closed {
            return None;
        }
        self.asks += 1;
        let ReportLimit { clock, within } = limit;
        let (id, until) = (RequestId::of_text(&load.load_id), clock.now().saturating_add(within));
        self.asked = Some(Asked { number: self.asks, id, load, clock, until });
        Some(self.asks)
    }

    /// Ends the wait for a load's report on a question. Without a collision the load's commit is the next request, and
    /// `reply` gets its answer. Returns whether the report was waited for.
    pub fn report(
        &mut self,
        id: RequestId,
        number: Option<u64>,
        collision: Option<Version>,
        reply: Reply<LoadProgress>,
    ) -> bool {
        self.advance();
        let is_it = |asked: &mut Asked| asked.id == id && number.is_none_or(|number| number == asked.number);
        let Some(Asked { load, .. }) = self.asked.take_if(is_it) else { return false };
        if collision.is_none() {
            self.waiting.push_front(Request::Load { load, yields: false, reply });
        }
        true
    }

    /// Returns the time left for the report on a question, or on any; `None` if it is not waited for.
    pub fn report_due(&self, number: Option<u64>) -> Option<Duration> {
        let is_it = |asked: &&Asked| number.is_none_or(|number| number == asked.number);
        let asked = self.asked.as_ref().filter(is_it)?;
        Some(asked.until.saturating_sub(asked.clock.now()))
    }

    /// Gives the turn to a load and returns the number of the turn. What waits for an earlier turn of the same load waits
    /// for this one. `None` if another load holds the turn, or after a shutdown.
    pub fn begin_turn(&mut self, load: RequestId, turn: LoadTurn, clock: &Arc<dyn Clock>) -> Option<u64> {
        self.advance();
        if self.closed || self.turn.as_ref().is_some_and(|held| held.claim.load != load) {
            return None;
        }
        self.turns += 1;
        let limit = turn.limit.min(LONGEST_TURN);
        tracing::info!(%load, limit_ms = limit.as_millis() as u64, "a bulk load gets its turn: commits that concern it wait");
        let read_keys = turn.read_keys.into_iter().collect();
        let claim = Claim { number: self.turns, load, footprint: turn.footprint, read_keys };
        let (aside, bytes, met) =
            self.turn.take().map_or_else(Default::default, |held| (held.aside, held.bytes, held.met));
        self.turn = Some(HeldTurn {
            claim: Arc::new(claim),
            clock: clock.clone(),
            ends: clock.now().saturating_add(limit),
            aside,
            bytes,
            met,
        });
        Some(self.turns)
    }

    /// Returns the claim of the load that holds the turn.
    pub fn claim(&self) -> Option<&Arc<Claim>> {
        self.turn.as_ref().map(|turn| &turn.claim)
    }

    /// Whether this load holds the turn.
    pub fn is_turn_of(&self, load: RequestId) -> bool {
        self.claim().is_some_and(|claim| claim.load == load)
    }

    /// Ends the turn, if there is one, and queues what was set aside.
    pub fn end_turn(&mut self, reason: &str) {
        let Some(turn) = self.turn.take() else { return };
        let (load, set_aside) = (turn.claim.load, turn.met);
        tracing::info!(%load, set_aside, reason, "the turn of a bulk load ends");
        self.waiting.extend(turn.aside.into_iter().map(|aside| aside.request));
        metric::commits_waiting(0);
    }

    /// Ends the turn; no other one begins.
    pub fn close(&mut self) {
        self.closed = true;
        self.asked = None;
        self.end_turn("the sequencer goes down");
    }

    /// Refuses a load that did not report in time. Ends the turn if its time is over, and queues requests that have
    /// waited for long enough.
    pub fn advance(&mut self) {
        if let Some(late) = self.asked.take_if(|asked| asked.until <= asked.clock.now()) {
            tracing::debug!(
                load = late.load.load_id,
                "a load did not report in time and is not committed now"
            );
        }
        let Some(turn) = &mut self.turn else { return };
        let now = turn.clock.now();
        if turn.ends <= now {
            return self.end_turn("its time is over");
        }
        let overdue = turn.aside.iter().take_while(|aside| aside.until <= now).count();
        if overdue > 0 {
            self.yield_aside(|number, _| number < overdue);
        }
    }

    /// Returns the time until [`Queue::advance`] has something to do; `None` if the turn is over.
    pub fn next_due(&self, number: u64) -> Option<Duration> {
        let turn = self.turn.as_ref().filter(|turn| turn.claim.number == number)?;
        let due = turn.aside.front().map_or(turn.ends, |aside| aside.until.min(turn.ends));
        Some(due.saturating_sub(turn.clock.now()))
    }

    /// Queues requests that were set aside and match, so that they are answered without being committed now.
    fn yield_aside(&mut self, matches: impl Fn(usize, &Request) -> bool) {
        let Some(turn) = &mut self.turn else { return };
        let aside = std::mem::take(&mut turn.aside);
        for (number, mut aside) in aside.into_iter().enumerate() {
            if matches(number, &aside.request) {
                turn.bytes -= aside.request.bytes();
                aside.request.yield_to_load();
                self.waiting.push_back(aside.request);
            } else {
                turn.aside.push_back(aside);
            }
        }
        metric::commits_waiting(turn.aside.len());
    }

    /// Adds a request, which [meets](Claim::meets) the claim or not. Returns whether it was set aside.
    pub fn place(&mut self, mut request: Request, meets: bool) -> bool {
        if let Request::Outcome { id, by_key, .. } = &request
            && self.turn.is_some()
        {
            let (same_key, id) = (by_key.then(|| id.of_same_key()), *id);
            let is_asked =
                |other: RequestId| other == id || same_key.as_ref().is_some_and(|ids| ids.contains(&other));
            self.yield_aside(|_, aside| aside.id().is_some_and(is_asked));
        }
        if let Some(turn) = self.turn.as_mut().filter(|_| meets) {
            let bytes = turn.bytes + request.bytes();
            if !self.turn_wait.is_zero()
                && turn.aside.len() < self.most_aside
                && bytes <= self.most_aside_bytes
            {
                (turn.bytes, turn.met) = (bytes, turn.met + 1);
                let until = turn.clock.now().saturating_add(self.turn_wait);
                turn.aside.push_back(Aside { request, until });
                metric::commits_waiting(turn.aside.len());
                return true;
            }
            request.yield_to_load();
        }
        self.waiting.push_back(request);
        false
    }

    /// Returns the number of requests that are set aside.
    #[cfg(test)]
    pub fn aside(&self) -> usize {
        self.turn.as_ref().map_or(0, |turn| turn.aside.len())
    }
}
