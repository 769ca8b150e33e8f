//! Asks many partitions at once and waits for all answers: one request to each node, retried at other replicas.
//!
//! Flow: each part without an answer is assigned to its best replica, and the parts of one node are
//! sent together. The caller sleeps until answers arrive. If a node is lost, behind or unable to
//! answer, its parts go to their next replicas at once. If a node does not hold a part, the part waits
//! for a newer map. Once every replica of a part has failed, the part is retried from the first replica
//! after a pause, until the deadline. If a node takes longer than such requests usually do, its parts
//! are also sent to other replicas: the first answer counts, and the other request is cancelled.
//!
//! Must never: answer a part from two replicas mixed, or give up while a replica may answer in time. All parts carry
//! one version (APL-1) and the epoch of one map (APL-2).

use super::hedge::Hedges;
use super::routes::RouteMap;
use super::{FleetApl, Shared, unfitting};
use crate::Error;
use crate::client::{Mailbox, RemoteNode, Ticket, open};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_apl::{At, Error as AplError};
use tidegraph_platform::traces;
use tidegraph_types::{PartitionId, Version};
use tidegraph_wire::Message;
use tidegraph_wire::apl::{AnyAnswer, AnyRequest, Request};
use tidegraph_wire::proto::{self, call, reply};
use tracing::Span;

/// How often a sleeping caller checks whether it was cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(10);
/// How long one attempt to load a newer map may take.
const RELOAD: Duration = Duration::from_millis(500);
/// Maximum number of replicas of a partition that are asked: their numbers are bits of a word.
const MOST_REPLICAS: usize = 32;

/// The part of a request for one partition, and its progress.
struct Part {
    partition: PartitionId,
    request: proto::AplRequest,
    answer: Option<Answered>,
    /// Replicas that were asked since the last pause: one bit for each, by its number in the map.
    tried: u32,
    /// Number of requests in flight.
    pending: u32,
    /// Why the last replica did not answer.
    failure: Option<AplError>,
    hedged: bool,
    /// The only replica that can answer, because the request continues from its cursor (APL-2); `None`: any.
    pin: Option<Pin>,
}

/// A replica during one run of its node, until it is restored again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pin {
    pub address: Arc<str>,
    pub run: u64,
    /// Id of the replica's store; 0: not known yet.
    pub store: u64,
}

impl Pin {
    /// Returns whether both name a replica of the same run of the same node.
    fn is_of_same_run(&self, other: &Self) -> bool {
        self.address == other.address && self.run == other.run
    }
}

/// A request to a partition, and the only replica that can answer it, if there is one.
pub(super) struct Asked {
    pub partition: PartitionId,
    pub request: AnyRequest,
    pub pin: Option<Pin>,
}

/// An answer, and the replica that gave it.
pub(super) struct Answered {
    pub answer: AnyAnswer,
    pub by: Pin,
}

impl Answered {
    /// Returns the answer to a request of this kind.
    pub fn to<R: Request>(self) -> Result<R::Answer, AplError> {
        R::answer_from(self.answer).ok_or_else(unfitting)
    }
}

/// A request to a node that is in flight.
struct NodeRequest {
    parts: Vec<usize>,
    ticket: Option<Ticket>,
    pin: Pin,
    sent: Duration,
    /// Ends with the answer.
    span: Span,
}

pub(super) struct Gather<'q> {
    query: &'q FleetApl,
    shared: &'q Shared,
    map: Arc<RouteMap>,
    parts: Vec<Part>,
    node_requests: Vec<NodeRequest>,
    mailbox: Arc<Mailbox>,
    class: usize,
    /// Number of pauses so far.
    rounds: u32,
    /// Whether a node said that the map is out of date.
    stale: bool,
}

impl<'q> Gather<'q> {
    /// Prepares a request to some partitions, which will answer about `rows` rows.
    pub fn new(
        query: &'q FleetApl,
        map: Arc<RouteMap>,
        at: At,
        rows: usize,
        parts: Vec<Asked>,
    ) -> Result<Self, AplError> {
        let at = At { epoch: map.epoch, ..at };
        let parts = parts.into_iter().map(|Asked { partition, request, pin }| {
            let request = request.encode(at).map_err(|error| AplError::Corrupt(error.to_string()))?;
            let (tried, pending) = (0, 0);
            Ok(Part { partition, request, answer: None, tried, pending, failure: None, hedged: false, pin })
        });
        let parts = parts.collect::<Result<_, AplError>>()?;
        let (shared, class) = (query.shared.as_ref(), Hedges::class(rows));
        let (node_requests, mailbox) = (Vec::new(), Mailbox::new(shared.network.clone()));
        Ok(Self { query, shared, map, parts, node_requests, mailbox, class, rounds: 0, stale: false })
    }

    /// Returns one answer for each part, or the first error that no other replica can remedy.
    pub fn run(mut self) -> Result<Vec<Answered>, AplError> {
        let mut replies = Vec::new();
        self.send_missing()?;
        while self.parts.iter().any(|part| part.answer.is_none()) {
            self.check()?;
            if self.parts.iter().any(|part| part.answer.is_none() && part.pending == 0) {
                self.next_round()?;
                continue;
            }
            self.mailbox.take(self.sleep_time(), &mut replies);
            if replies.is_empty() {
                self.hedge()?;
            }
            for reply in replies.drain(..) {
                self.accept(reply.tag as usize, reply.content)?;
            }
            self.send_missing()?;
        }
        Ok(self.parts.into_iter().filter_map(|part| part.answer).collect())
    }

    /// Returns how long to sleep: until a request counts as slow, or until the next check for cancellation.
    fn sleep_time(&self) -> Duration {
        let now = self.shared.clock.now();
        let mut time = self.query.remaining(CANCEL_CHECK);
        if let Some(slow) = self.shared.hedges.slow_after(self.class) {
            for request in self.node_requests.iter().filter(|request| self.may_hedge(request)) {
                time = time.min((request.sent + slow).saturating_sub(now));
            }
        }
        time.max(Duration::from_micros(1))
    }

    fn may_hedge(&self, request: &NodeRequest) -> bool {
        request.ticket.is_some() && request.parts.iter().any(|part| self.may_hedge_part(*part))
    }

    fn may_hedge_part(&self, part: usize) -> bool {
        let part = &self.parts[part];
        part.answer.is_none()
            && part.pin.is_none()
            && !part.hedged
            && (self.map.of(part.partition).len() as u32) > part.tried.count_ones()
    }

    /// Sends the parts of slow requests to other replicas too.
    fn hedge(&mut self) -> Result<(), AplError> {
        let Some(slow) = self.shared.hedges.slow_after(self.class) else { return Ok(()) };
        let now = self.shared.clock.now();
        let mut again: Vec<usize> = Vec::new();
        for request in &self.node_requests {
            if now < request.sent + slow || !self.may_hedge(request) {
                continue;
            }
            let parts: Vec<usize> =
                request.parts.iter().copied().filter(|part| self.may_hedge_part(*part)).collect();
            self.shared.node(&request.pin.address).suspect();
            let may = self.shared.hedges.spend();
            for part in parts {
                // Once for each part, even if the budget does not allow it now: the first request keeps waiting.
                self.parts[part].hedged = true;
                again.extend(may.then_some(part));
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        self.shared.counters.hedged.fetch_add(1, Ordering::Relaxed);
        self.send(&again)
    }

    /// Sends the parts that have neither an answer nor a request in flight.
    fn send_missing(&mut self) -> Result<(), AplError> {
        loop {
            let of_replicas = |part: &Part| self.map.of(part.partition).len().min(MOST_REPLICAS) as u32;
            let is_missing = |part: &Part| {
                let untried = match part.pin {
                    Some(_) => part.tried == 0,
                    None => part.tried.count_ones() < of_replicas(part),
                };
                part.answer.is_none() && part.pending == 0 && untried
            };
            let missing: Vec<usize> =
                (0..self.parts.len()).filter(|part| is_missing(&self.parts[*part])).collect();
            if missing.is_empty() || self.stale {
                return Ok(());
            }
            self.send(&missing)?;
        }
    }

    /// Assigns parts to replicas that were not asked yet, and sends the parts of one node together.
    fn send(&mut self, parts: &[usize]) -> Result<(), AplError> {
        let mut nodes: Vec<(Arc<RemoteNode>, Vec<usize>)> = Vec::new();
        for &number in parts {
            let part = &mut self.parts[number];
            if let Some(pin) = &part.pin {
                part.tried = u32::MAX;
                match nodes.iter_mut().find(|(node, _)| node.address() == &*pin.address) {
                    Some((_, parts)) => parts.push(number),
                    None => nodes.push((self.shared.node(&pin.address), vec![number])),
                }
                continue;
            }
            let replicas = self.map.of(part.partition);
            // A replica that is unreachable or silent comes last.
            let untried = |replica: &usize| part.tried & (1 << replica) == 0;
            let all = (0..replicas.len().min(MOST_REPLICAS)).filter(untried);
            let Some(replica) =
                all.clone().find(|r| self.shared.node(&replicas[*r]).is_healthy()).or(all.min())
            else {
                continue;
            };
            part.tried |= 1 << replica;
            let address = &replicas[replica];
            match nodes.iter_mut().find(|(node, _)| node.address() == &**address) {
                Some((_, parts)) => parts.push(number),
                None => nodes.push((self.shared.node(address), vec![number])),
            }
        }
        for (node, parts) in nodes {
            self.send_to(node, parts)?;
        }
        Ok(())
    }

    /// Returns the span of a message to a node, for the first messages of a query.
    fn span(&self, node: &RemoteNode, partitions: usize) -> Span {
        let query = &self.query.span;
        if query.is_none() || self.query.requests.load(Ordering::Relaxed) >= traces::MOST_MESSAGES {
            return Span::none();
        }
        tracing::debug_span!(parent: query, "message", otel.kind = "client", peer = node.address(), call = "apl", partitions = partitions as i64)
    }

    fn send_to(&mut self, node: Arc<RemoteNode>, parts: Vec<usize>) -> Result<(), AplError> {
        let calls = parts.iter().map(|number| {
            let part = &self.parts[*number];
            let store = part.pin.as_ref().map_or(0, |pin| pin.store);
            let request = Some(part.request.clone());
            proto::PartitionCall { partition: part.partition.0.into(), request, store }
        });
        let kind = call::Kind::Apl(proto::PartitionsCall { parts: calls.collect() });
        let span = self.span(&node, parts.len());
        let call = proto::Call {
            remaining_us: self.query.remaining_us(),
            traceparent: traces::context(&span),
            kind: Some(kind),
        };
        let tag = self.node_requests.len() as u32;
        let timeout = self.query.remaining(Duration::from_secs(1));
        let sent = self.shared.clock.now();
        match node.start(&call, &self.mailbox, tag, timeout) {
            Ok(ticket) => {
                self.query.requests.fetch_add(1, Ordering::Relaxed);
                self.query.bytes.fetch_add(call.encoded_len() as u64, Ordering::Relaxed);
                let pin = Pin { address: node.address().into(), run: ticket.run(), store: 0 };
                let is_other = |part: &usize| {
                    self.parts[*part].pin.as_ref().is_some_and(|wanted| !wanted.is_of_same_run(&pin))
                };
                if parts.iter().any(is_other) {
                    return Err(cursor_lost(&node));
                }
                for part in &parts {
                    self.parts[*part].pending += 1;
                }
                self.node_requests.push(NodeRequest { parts, ticket: Some(ticket), pin, sent, span });
                Ok(())
            }
            Err(error) => self.failed(&parts, &error),
        }
    }

    /// Processes the answer to a request.
    fn accept(&mut self, number: usize, content: Result<bytes::Bytes, Error>) -> Result<(), AplError> {
        let now = self.shared.clock.now();
        let Some(request) = self.node_requests.get_mut(number) else { return Ok(()) };
        (request.ticket, request.span) = (None, Span::none());
        let answered_bytes = content.as_ref().map_or(0, bytes::Bytes::len);
        self.query.bytes.fetch_add(answered_bytes as u64, Ordering::Relaxed);
        let (parts, took) = (std::mem::take(&mut request.parts), now.saturating_sub(request.sent));
        let by = request.pin.clone();
        for part in &parts {
            self.parts[*part].pending -= 1;
        }
        match content.and_then(open) {
            Ok(reply::Kind::Apl(reply)) if reply.answers.len() == parts.len() => {
                self.shared.hedges.note(self.class, took);
                self.shared.node(&by.address).note_applied(Version(reply.applied), now);
                // A node of an earlier release gives no ids.
                let stores = reply.stores.into_iter().chain(std::iter::repeat(0));
                for ((part, answer), store) in parts.into_iter().zip(reply.answers).zip(stores) {
                    match AnyAnswer::decode(answer) {
                        Ok(answer) => self.answered(part, answer, Pin { store, ..by.clone() })?,
                        Err(error) => self.failed(&[part], &Error::garbage(error))?,
                    }
                }
            }
            Ok(_) => {
                self.failed(&parts, &Error::garbage("the answer is of another kind than the request"))?
            }
            Err(error) => {
                tracing::debug!(node = &*by.address, %error, "a node did not answer");
                self.failed(&parts, &error)?;
            }
        }
        self.cancel_answered();
        Ok(())
    }

    /// Cancels requests whose parts are all answered.
    fn cancel_answered(&mut self) {
        for request in &mut self.node_requests {
            if request.ticket.is_some() && request.parts.iter().all(|part| self.parts[*part].answer.is_some())
            {
                (request.ticket, request.span) = (None, Span::none());
            }
        }
    }

    fn answered(&mut self, number: usize, answer: AnyAnswer, by: Pin) -> Result<(), AplError> {
        let part = &mut self.parts[number];
        if part.answer.is_some() {
            return Ok(());
        }
        match answer {
            AnyAnswer::Failed(error) => match error {
                AplError::NotHere { .. } | AplError::WrongEpoch { .. } => {
                    self.stale = true;
                    part.failure = Some(error);
                    Ok(())
                }
                AplError::Behind { .. }
                | AplError::Unavailable(_)
                | AplError::NotServed(_)
                | AplError::Corrupt(_)
                | AplError::TooOld { .. } => {
                    part.failure = Some(error);
                    Ok(())
                }
                // The node gave up at the deadline, which by its clock may be a little earlier.
                AplError::Overdue | AplError::Cancelled | AplError::TooLarge { .. } => Err(error),
            },
            answer => {
                part.answer = Some(Answered { answer, by });
                Ok(())
            }
        }
    }

    fn failed(&mut self, parts: &[usize], error: &Error) -> Result<(), AplError> {
        if !error.is_of_node() {
            return Err(error.clone().into());
        }
        self.shared.counters.failed_over.fetch_add(1, Ordering::Relaxed);
        for part in parts {
            self.parts[*part].failure = Some(error.clone().into());
        }
        Ok(())
    }

    /// Starts the next round after all replicas of some part failed: loads the map
    /// or pauses, and resets the replicas asked.
    fn next_round(&mut self) -> Result<(), AplError> {
        let missing = || self.parts.iter().filter(|part| part.answer.is_none() && part.pending == 0);
        if missing().any(|part| part.pin.is_some()) {
            // No other replica can continue from the cursor (APL-2); the whole query can be run again.
            return Err(self.failure());
        }
        if let Some(AplError::TooOld { .. } | AplError::Corrupt(_)) =
            missing().find_map(|part| part.failure.as_ref())
            && !self.stale
        {
            return Err(self.failure());
        }
        // Replicas that are only behind are retried until the deadline: a bulk load takes a while to apply.
        let is_behind = |part: &Part| matches!(part.failure, Some(AplError::Behind { .. }));
        if self.rounds >= self.shared.config.rounds && !missing().all(is_behind) {
            return Err(self.failure());
        }
        let homeless = |part: &Part| self.map.of(part.partition).is_empty();
        // A newer map does not help replicas that are only behind.
        let lost = |part: &Part| !matches!(part.failure, Some(AplError::Behind { .. }));
        if self.stale || missing().any(|part| homeless(part) || (self.rounds > 0 && lost(part))) {
            self.shared.counters.reloaded.fetch_add(1, Ordering::Relaxed);
            self.shared.routes.stale(self.map.epoch, self.query.remaining(RELOAD));
        }
        let newer = self.shared.routes.current();
        let is_gone = |part: &Part| part.answer.is_none() && !newer.has(part.partition);
        if let Some(part) = self.parts.iter().find(|part| is_gone(part)) {
            let message = format!("the graph was split, and partition {} is gone", part.partition);
            return Err(AplError::Unavailable(message));
        }
        if newer.epoch == self.map.epoch {
            let pause = Duration::from_millis(2 << self.rounds.min(5));
            self.shared.clock.sleep(self.query.remaining(pause));
        } else {
            self.shared.prune();
        }
        self.rounds += 1;
        self.stale = false;
        self.map = newer;
        for part in &mut self.parts {
            if part.answer.is_none() && part.pending == 0 {
                (part.tried, part.hedged) = (0, false);
                part.request.epoch = self.map.epoch.0;
            }
        }
        self.check()?;
        self.send_missing()
    }

    /// Fails if the query was cancelled or its deadline passed. If the deadline passed because replicas were behind,
    /// returns that error.
    fn check(&mut self) -> Result<(), AplError> {
        match self.query.check() {
            Err(AplError::Overdue) => {
                let behind = self.parts.iter_mut().find_map(|part| match part.failure {
                    Some(AplError::Behind { .. }) if part.answer.is_none() => part.failure.take(),
                    _ => None,
                });
                Err(behind.unwrap_or(AplError::Overdue))
            }
            other => other,
        }
    }

    /// Returns why a part has no answer.
    fn failure(&mut self) -> AplError {
        let missing = self.parts.iter_mut().filter(|part| part.answer.is_none());
        let mut failures = missing.filter_map(|part| part.failure.take());
        failures.next().unwrap_or_else(|| AplError::Unavailable("no node holds the partition".into()))
    }
}

/// The error for a cursor whose replica restarted, so that the cursor means nothing to it (APL-2).
fn cursor_lost(node: &RemoteNode) -> AplError {
    AplError::Unavailable(format!("{} restarted during a scan, which cannot continue", node.address()))
}
