//! Asks many partitions at once and waits for all of them: one request to each node, and again elsewhere where that
//! failed.
//!
//! Flow: parts without an answer are given to replicas, the best first, and sent, those of one node together. Then the
//! caller sleeps until answers arrive. A part whose node is lost, behind or unable goes to its next replica at once; one
//! whose node does not hold it waits for a newer map; when every replica of a part has failed, it begins again with the
//! first after a pause, until the deadline. A node that takes longer than such requests do is asked no more, but its parts
//! are also asked of others; the first answer counts and the other is cancelled.
//!
//! Must never: answer a part from two replicas mixed, or give up while a replica may answer in time.

use super::hedge::Hedges;
use super::routes::RouteMap;
use super::{FleetApl, Shared, unfitting};
use crate::Error;
use crate::client::{Mailbox, RemoteNode, Ticket, open};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_apl::{At, Error as AplError};
use tidegraph_types::{PartitionId, Version};
use tidegraph_wire::apl::{AnyAnswer, AnyRequest, Request};
use tidegraph_wire::proto::{self, call, reply};

/// How long a caller sleeps before it looks whether it was cancelled.
const GLANCE: Duration = Duration::from_millis(10);
/// How long a newer map is waited for at once.
const RELOAD: Duration = Duration::from_millis(500);
/// Replicas of a partition that are asked: their numbers are bits of a word.
const MOST_REPLICAS: usize = 32;

/// A part of a request, and how far it is.
struct Part {
    partition: PartitionId,
    request: proto::AplRequest,
    answer: Option<Answered>,
    /// Replicas that were asked since the last pause, by their number in the map.
    tried: u32,
    /// Requests under way.
    pending: u32,
    /// Why it has no answer yet.
    failure: Option<AplError>,
    hedged: bool,
    /// The only replica that can answer; `None`: any.
    pin: Option<Pin>,
}

/// A replica, as it is until it is started anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pin {
    pub address: Arc<str>,
    pub run: u64,
}

/// What is asked of a partition, and of which replica if it is a matter of one.
pub(super) struct Asked {
    pub partition: PartitionId,
    pub request: AnyRequest,
    pub pin: Option<Pin>,
}

/// An answer, and whose it is.
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

/// A request to a node that is under way.
struct Errand {
    parts: Vec<usize>,
    ticket: Option<Ticket>,
    pin: Pin,
    sent: Duration,
}

pub(super) struct Gather<'q> {
    query: &'q FleetApl,
    shared: &'q Shared,
    map: Arc<RouteMap>,
    parts: Vec<Part>,
    errands: Vec<Errand>,
    mailbox: Arc<Mailbox>,
    class: usize,
    /// Pauses so far.
    rounds: u32,
    stale: bool,
}

impl<'q> Gather<'q> {
    /// A request to some partitions, which is to answer about so many rows.
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
        let (errands, mailbox) = (Vec::new(), Mailbox::new(shared.network.clone()));
        Ok(Self { query, shared, map, parts, errands, mailbox, class, rounds: 0, stale: false })
    }

    /// The answers, one for each part. An error that no other replica can help with is the answer of all.
    pub fn run(mut self) -> Result<Vec<Answered>, AplError> {
        let mut letters = Vec::new();
        self.send_missing()?;
        while self.parts.iter().any(|part| part.answer.is_none()) {
            self.check()?;
            if self.parts.iter().any(|part| part.answer.is_none() && part.pending == 0) {
                self.again()?;
                continue;
            }
            self.mailbox.take(self.patience(), &mut letters);
            if letters.is_empty() {
                self.hedge()?;
            }
            for letter in letters.drain(..) {
                self.accept(letter.tag as usize, letter.content)?;
            }
            self.send_missing()?;
        }
        Ok(self.parts.into_iter().filter_map(|part| part.answer).collect())
    }

    /// How long to sleep: until an errand is slow, or it is time to look up.
    fn patience(&self) -> Duration {
        let now = self.shared.clock.now();
        let mut patience = self.query.remaining(GLANCE);
        if let Some(slow) = self.shared.hedges.slow_after(self.class) {
            for errand in self.errands.iter().filter(|errand| self.may_hedge(errand)) {
                patience = patience.min((errand.sent + slow).saturating_sub(now));
            }
        }
        patience.max(Duration::from_micros(1))
    }

    fn may_hedge(&self, errand: &Errand) -> bool {
        errand.ticket.is_some() && errand.parts.iter().any(|part| self.may_hedge_part(*part))
    }

    fn may_hedge_part(&self, part: usize) -> bool {
        let part = &self.parts[part];
        part.answer.is_none()
            && part.pin.is_none()
            && !part.hedged
            && (self.map.of(part.partition).len() as u32) > part.tried.count_ones()
    }

    /// Asks others for what is slow.
    fn hedge(&mut self) -> Result<(), AplError> {
        let Some(slow) = self.shared.hedges.slow_after(self.class) else { return Ok(()) };
        let now = self.shared.clock.now();
        let mut again: Vec<usize> = Vec::new();
        for errand in &self.errands {
            if now < errand.sent + slow || !self.may_hedge(errand) {
                continue;
            }
            let parts: Vec<usize> =
                errand.parts.iter().copied().filter(|part| self.may_hedge_part(*part)).collect();
            self.shared.node(&errand.pin.address).doubt();
            let may = self.shared.hedges.spend();
            for part in parts {
                // Once for each part, also when it may not be now: this request goes on waiting.
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

    /// Sends the parts that nobody is asked for.
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

    /// Gives parts to replicas that were not asked yet and sends them, those of one node together.
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
            // One that was lost a moment ago, or is silent, comes last.
            let untried = |replica: &usize| part.tried & (1 << replica) == 0;
            let all = (0..replicas.len().min(MOST_REPLICAS)).filter(untried);
            let Some(replica) = all.clone().find(|r| self.shared.node(&replicas[*r]).is_well()).or(all.min())
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
            self.errand(node, parts)?;
        }
        Ok(())
    }

    fn errand(&mut self, node: Arc<RemoteNode>, parts: Vec<usize>) -> Result<(), AplError> {
        let calls = parts.iter().map(|number| {
            let part = &self.parts[*number];
            proto::PartitionCall { partition: part.partition.0.into(), request: Some(part.request.clone()) }
        });
        let kind = call::Kind::Apl(proto::PartitionsCall { parts: calls.collect() });
        let call = proto::Call { remaining_us: self.query.remaining_us(), kind: Some(kind) };
        let tag = self.errands.len() as u32;
        let patience = self.query.remaining(Duration::from_secs(1));
        let sent = self.shared.clock.now();
        match node.start(&call, &self.mailbox, tag, patience) {
            Ok(ticket) => {
                let pin = Pin { address: node.address().into(), run: ticket.run() };
                let is_other =
                    |part: &usize| self.parts[*part].pin.as_ref().is_some_and(|wanted| *wanted != pin);
                if parts.iter().any(is_other) {
                    return Err(cannot_go_on(&node));
                }
                for part in &parts {
                    self.parts[*part].pending += 1;
                }
                self.errands.push(Errand { parts, ticket: Some(ticket), pin, sent });
                Ok(())
            }
            Err(error) => self.failed(&parts, &error),
        }
    }

    /// Takes the answer of an errand.
    fn accept(&mut self, errand: usize, content: Result<bytes::Bytes, Error>) -> Result<(), AplError> {
        let now = self.shared.clock.now();
        let Some(errand) = self.errands.get_mut(errand) else { return Ok(()) };
        errand.ticket = None;
        let (parts, took) = (std::mem::take(&mut errand.parts), now.saturating_sub(errand.sent));
        let by = errand.pin.clone();
        for part in &parts {
            self.parts[*part].pending -= 1;
        }
        match content.and_then(open) {
            Ok(reply::Kind::Apl(reply)) if reply.answers.len() == parts.len() => {
                self.shared.hedges.note(self.class, took);
                self.shared.node(&by.address).note_applied(Version(reply.applied), now);
                for (part, answer) in parts.into_iter().zip(reply.answers) {
                    match AnyAnswer::decode(answer) {
                        Ok(answer) => self.answered(part, answer, &by)?,
                        Err(error) => self.failed(&[part], &Error::garbage(error))?,
                    }
                }
            }
            Ok(_) => self.failed(&parts, &Error::garbage("an answer of another kind than the request"))?,
            Err(error) => {
                tracing::debug!(node = &*by.address, %error, "a node did not answer");
                self.failed(&parts, &error)?;
            }
        }
        self.drop_needless();
        Ok(())
    }

    /// Cancels what nobody needs any more.
    fn drop_needless(&mut self) {
        for errand in &mut self.errands {
            if errand.ticket.is_some() && errand.parts.iter().all(|part| self.parts[*part].answer.is_some()) {
                errand.ticket = None;
            }
        }
    }

    fn answered(&mut self, number: usize, answer: AnyAnswer, by: &Pin) -> Result<(), AplError> {
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
                | AplError::Corrupt(_)
                | AplError::TooOld { .. } => {
                    part.failure = Some(error);
                    Ok(())
                }
                // The node gave up at the deadline, which by its clock may be a little earlier.
                AplError::Overdue | AplError::Cancelled | AplError::TooLarge { .. } => Err(error),
            },
            answer => {
                part.answer = Some(Answered { answer, by: by.clone() });
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

    /// Every replica of some part has failed: loads the map or waits a little, and begins again with the first.
    fn again(&mut self) -> Result<(), AplError> {
        let missing = || self.parts.iter().filter(|part| part.answer.is_none() && part.pending == 0);
        if missing().any(|part| part.pin.is_some()) {
            // Only that one could go on; the query as a whole can be asked again.
            return Err(self.failure());
        }
        if let Some(AplError::TooOld { .. } | AplError::Corrupt(_)) =
            missing().find_map(|part| part.failure.as_ref())
            && !self.stale
        {
            return Err(self.failure());
        }
        // A version that is on its way is waited for, as long as there is time: a bulk load takes a while to apply.
        let is_behind = |part: &Part| matches!(part.failure, Some(AplError::Behind { .. }));
        if self.rounds >= self.shared.config.rounds && !missing().all(is_behind) {
            return Err(self.failure());
        }
        let homeless = |part: &Part| self.map.of(part.partition).is_empty();
        // Replicas that are only behind would be so by a newer map, too.
        let lost = |part: &Part| !matches!(part.failure, Some(AplError::Behind { .. }));
        if self.stale || missing().any(|part| homeless(part) || (self.rounds > 0 && lost(part))) {
            self.shared.counters.reloaded.fetch_add(1, Ordering::Relaxed);
            self.shared.routes.stale(self.map.epoch, self.query.remaining(RELOAD));
        }
        let newer = self.shared.routes.current();
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

    /// Whether there is still a reason to go on. Where time ran out because of a version that did not come, that is the reason.
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

    /// Why a part has no answer.
    fn failure(&mut self) -> AplError {
        let missing = self.parts.iter_mut().filter(|part| part.answer.is_none());
        let mut failures = missing.filter_map(|part| part.failure.take());
        failures.next().unwrap_or_else(|| AplError::Unavailable("no node holds the partition".into()))
    }
}

/// Where a position in the data of one run of a node is asked of another.
fn cannot_go_on(node: &RemoteNode) -> AplError {
    AplError::Unavailable(format!("{} was started anew while a scan of it went on", node.address()))
}
