//! The client of a node.
//!
//! [`RemoteNode`] opens a few connections on demand, and after a failure tries again only after a pause that grows. A
//! request uses the connection with the fewest requests in flight. A thread of its own probes a node that is silent or
//! unreachable, so that no caller waits for it while other replicas exist.

mod commits;
mod connection;
mod mailbox;
mod network;

pub use commits::RemoteCommits;
pub(crate) use connection::Ticket;
pub(crate) use mailbox::Mailbox;
pub use network::{Answer, Network};

use crate::link::SHORTEST_LIMIT;
use crate::security::Security;
use crate::{Error, call_name};
use connection::Connection;
use mailbox::Reply;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegraph_platform::{Clock, Random, traces};
use tidegraph_types::{RequestId, Version};
use tidegraph_wire::{Message, proto};

/// Number of slow requests in a row after which other replicas are asked first.
const SUSPICIONS: u32 = 3;

/// Settings of clients.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// Name of the graph.
    pub graph: String,
    /// Incarnation of the graph: a node that serves another graph of the name refuses the connection. Empty if the graph has
    /// none.
    pub incarnation: String,
    /// Maximum number of connections to one node.
    pub connections: usize,
    /// How long connecting may take, and likewise the hello.
    pub connect_limit: Duration,
    /// Silence after which the client pings the node.
    pub ping_after: Duration,
    /// Silence after which the connection counts as lost.
    pub dead_after: Duration,
    /// Maximum number of bytes of an answer.
    pub reply_bytes: u32,
    /// Bytes of requests that may wait to be sent on one connection.
    pub outbox_bytes: usize,
    /// First pause after a failure to connect.
    pub first_pause: Duration,
    /// Longest pause after failures to connect.
    pub longest_pause: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            graph: "default".into(),
            incarnation: String::new(),
            connections: 2,
            connect_limit: Duration::from_secs(1),
            ping_after: Duration::from_secs(1),
            dead_after: Duration::from_secs(3),
            reply_bytes: 128 << 20,
            outbox_bytes: 8 << 20,
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_secs(1),
        }
    }
}

/// Age up to which the applied version of a node is used: an older one is too far behind.
const APPLIED_AGE: Duration = Duration::from_millis(20);

/// The client of the node at an address. Any number of threads may use it at the same time.
pub struct RemoteNode {
    address: String,
    config: ClientConfig,
    security: Security,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    places: Box<[Mutex<Option<Arc<Connection>>>]>,
    pause: Mutex<Pause>,
    /// Number of slow requests since the node last sent anything.
    suspicions: Arc<AtomicU32>,
    /// Newest version that a partition of the node reported as applied.
    applied: AtomicU64,
    /// When the node reported it, in milliseconds of the clock.
    applied_at: AtomicU64,
    /// Whether a thread probes the node.
    probing: AtomicBool,
    /// Replaces the network; `None`: sockets.
    network: Option<Arc<dyn Network>>,
    me: Weak<Self>,
}

/// Backoff of failed attempts to connect.
#[derive(Default)]
struct Pause {
    failures: u32,
    /// Time before which no attempt is made.
    until: Duration,
    reason: String,
}

impl std::fmt::Debug for RemoteNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteNode").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RemoteNode {
    /// Makes a client that connects on its first request.
    #[must_use]
    pub fn new(
        address: &str,
        config: ClientConfig,
        security: Security,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        Self::over(None, address, config, security, clock, random)
    }

    /// Makes a client that reaches the node through `network` instead of sockets.
    pub(crate) fn over(
        network: Option<Arc<dyn Network>>,
        address: &str,
        config: ClientConfig,
        security: Security,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let places = (0..config.connections.max(1)).map(|_| Mutex::default()).collect();
        Arc::new_cyclic(|me| Self {
            address: address.into(),
            config,
            security,
            clock,
            random,
            places,
            pause: Mutex::default(),
            suspicions: Arc::default(),
            applied: AtomicU64::new(0),
            applied_at: AtomicU64::new(0),
            probing: AtomicBool::new(false),
            network,
            me: me.clone(),
        })
    }

    /// Returns the address of the node.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns whether connecting failed and the pause is not over.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        let pause = self.pause.lock();
        pause.failures > 0 && self.clock.now() < pause.until
    }

    /// Returns whether the node is neither known to be unreachable nor silent. If it is
    /// not, callers ask other replicas first.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.suspicions.load(Ordering::Relaxed) < SUSPICIONS && !self.is_paused()
    }

    /// Records the version that a partition of the node has applied.
    pub(crate) fn note_applied(&self, version: Version, now: Duration) {
        if version.0 > 0 {
            self.applied.fetch_max(version.0, Ordering::Relaxed);
            self.applied_at.store(now.as_millis() as u64, Ordering::Relaxed);
        }
    }

    /// Returns the newest version that a partition of the node reported as applied, if the report is recent.
    pub(crate) fn applied(&self, now: Duration) -> Option<Version> {
        let at = Duration::from_millis(self.applied_at.load(Ordering::Relaxed));
        let version = Version(self.applied.load(Ordering::Relaxed));
        Some(version).filter(|version| version.0 > 0 && now.saturating_sub(at) < APPLIED_AGE)
    }

    /// Records that a request to the node is slow. The next message from the node clears the record.
    pub(crate) fn suspect(&self) {
        if self.suspicions.fetch_add(1, Ordering::Relaxed) + 1 >= SUSPICIONS {
            self.probe();
        }
    }

    /// Asks the node for its status at intervals, on a thread of its own, until it answers.
    fn probe(&self) {
        // A simulated network has no threads: the next answer clears the suspicions.
        if self.network.is_some() || self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (me, clock) = (self.me.clone(), self.clock.clone());
        let pause = self.config.longest_pause.max(SHORTEST_LIMIT);
        let spawned = tidegraph_platform::spawn("remote-probe", move || {
            loop {
                clock.sleep(pause);
                let Some(node) = me.upgrade() else { return };
                // Any answer shows that the node is alive, and clears the suspicions.
                let _ = node.status(node.config.connect_limit.max(SHORTEST_LIMIT));
                if node.suspicions.load(Ordering::Relaxed) < SUSPICIONS {
                    node.probing.store(false, Ordering::Release);
                    return;
                }
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "cannot start a thread to probe a node");
            self.probing.store(false, Ordering::Release);
        }
    }

    /// Sends a request. Its reply arrives in the mailbox under the tag.
    pub(crate) fn start(
        &self,
        call: &proto::Call,
        mailbox: &Arc<Mailbox>,
        tag: u32,
        timeout: Duration,
    ) -> Result<Ticket, Error> {
        let Some(network) = &self.network else {
            return self.connection()?.start(call, mailbox, tag, timeout);
        };
        let (to, suspicions) = (mailbox.clone(), self.suspicions.clone());
        let answer = Answer::new(move |content| {
            if content.is_ok() {
                suspicions.store(0, Ordering::Relaxed);
            }
            to.put(Reply { tag, content });
        });
        network.send(&self.address, call.encode_to_vec(), answer).map(Ticket::fixed)
    }

    /// Sends a request and waits for the answer, at most `at_most`.
    ///
    /// # Errors
    ///
    /// [`Error::Overdue`] after that time; [`Error::Unreachable`] or [`Error::Lost`] if the connection fails; and the
    /// error that the node answered.
    pub fn ask(&self, call: proto::call::Kind, at_most: Duration) -> Result<proto::reply::Kind, Error> {
        let remaining_us = u64::try_from(at_most.as_micros()).unwrap_or(u64::MAX).max(1);
        // Only for somebody's request: what the process asks by itself belongs to no trace.
        let span = match traces::current() {
            of if of.is_none() => of,
            of => {
                tracing::debug_span!(parent: of, "message", otel.kind = "client", peer = self.address, call = call_name(&call))
            }
        };
        let call = proto::Call { remaining_us, traceparent: traces::context(&span), kind: Some(call) };
        let mailbox = Mailbox::new(self.network.clone());
        let _ticket = self.start(&call, &mailbox, 0, at_most)?;
        let (deadline, mut replies) = (self.clock.now() + at_most, Vec::new());
        loop {
            mailbox.take(deadline.saturating_sub(self.clock.now()), &mut replies);
            if let Some(reply) = replies.pop() {
                return open(reply.content?);
            }
            if self.clock.now() >= deadline {
                return Err(Error::Overdue);
            }
        }
    }

    /// Returns the health of the node, as JSON.
    ///
    /// # Errors
    ///
    /// See [`Self::ask`].
    pub fn status(&self, at_most: Duration) -> Result<String, Error> {
        status_in(self.ask(proto::call::Kind::Status(proto::StatusCall {}), at_most)?)
    }

    /// Sends a request for the node's health. [`status_of`] decodes the reply.
    pub(crate) fn start_status(
        &self,
        mailbox: &Arc<Mailbox>,
        tag: u32,
        at_most: Duration,
    ) -> Result<Ticket, Error> {
        let remaining_us = u64::try_from(at_most.as_micros()).unwrap_or(u64::MAX).max(1);
        let kind = Some(proto::call::Kind::Status(proto::StatusCall {}));
        let call = proto::Call { remaining_us, traceparent: String::new(), kind };
        self.start(&call, mailbox, tag, at_most)
    }

    /// Asks the node to keep a version readable for a while, or with `None` to release it.
    ///
    /// # Errors
    ///
    /// See [`Self::ask`].
    pub fn pin(&self, holder: RequestId, version: Option<Version>, at_most: Duration) -> Result<(), Error> {
        let version = version.map_or(0, |version| version.0);
        let call = proto::PinCall { holder: holder.0.to_le_bytes().to_vec(), version };
        match self.ask(proto::call::Kind::Pin(call), at_most)? {
            proto::reply::Kind::Noted(_) => Ok(()),
            _ => Err(Error::garbage("the answer is of another kind than the request")),
        }
    }

    /// Returns the connection with the fewest requests in flight, and opens one if all are busy.
    fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut best: Option<Arc<Connection>> = None;
        let mut empty = None;
        for (number, place) in self.places.iter().enumerate() {
            // Locked: another thread is connecting.
            let Some(place) = place.try_lock() else { continue };
            match &*place {
                Some(open) if open.is_open() => {
                    if open.load() == 0 {
                        return Ok(open.clone());
                    }
                    if best.as_ref().is_none_or(|best| best.load() > open.load()) {
                        best = Some(open.clone());
                    }
                }
                _ => empty = empty.or(Some(number)),
            }
        }
        if let Some(open) = &best
            && (empty.is_none() || self.is_paused())
        {
            return Ok(open.clone());
        }
        let opened = self.open(empty.unwrap_or(0));
        match best {
            Some(best) => Ok(opened.unwrap_or(best)),
            None => opened,
        }
    }

    /// Connects, unless another thread has connected meanwhile.
    fn open(&self, place: usize) -> Result<Arc<Connection>, Error> {
        let mut place = self.places[place].lock();
        if let Some(open) = place.as_ref().filter(|open| open.is_open()) {
            return Ok(open.clone());
        }
        {
            let pause = self.pause.lock();
            if pause.failures > 0 && self.clock.now() < pause.until {
                return Err(Error::Unreachable { peer: self.address.clone(), reason: pause.reason.clone() });
            }
        }
        match Connection::open(
            &self.address,
            &self.config,
            &self.security,
            &self.clock,
            self.suspicions.clone(),
        ) {
            Ok(open) => {
                *self.pause.lock() = Pause::default();
                self.suspicions.store(0, Ordering::Relaxed);
                *place = Some(open.clone());
                Ok(open)
            }
            Err(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }

    fn failed(&self, error: &Error) {
        let mut pause = self.pause.lock();
        let longest = self.config.longest_pause.max(SHORTEST_LIMIT);
        let first = self.config.first_pause.max(SHORTEST_LIMIT);
        let length = first.saturating_mul(1 << pause.failures.min(16)).min(longest);
        // Between half of the pause and all of it, so that clients do not all return at once.
        let half_us = length.as_micros() as u64 / 2;
        let length = Duration::from_micros(half_us + self.random.below(half_us + 1));
        pause.failures = pause.failures.saturating_add(1);
        pause.until = self.clock.now() + length;
        pause.reason = match error {
            Error::Unreachable { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        tracing::debug!(node = self.address, %error, ?length, "cannot connect to a node");
        drop(pause);
        self.suspicions.store(SUSPICIONS, Ordering::Relaxed);
        self.probe();
    }
}

impl Drop for RemoteNode {
    fn drop(&mut self) {
        for place in &self.places {
            if let Some(open) = place.lock().take() {
                open.close();
            }
        }
    }
}

/// Decodes the reply to a request for a node's health.
pub(crate) fn status_of(bytes: bytes::Bytes) -> Result<String, Error> {
    status_in(open(bytes)?)
}

fn status_in(reply: proto::reply::Kind) -> Result<String, Error> {
    match reply {
        proto::reply::Kind::Status(status) => Ok(status.json),
        _ => Err(Error::garbage("the answer is of another kind than the request")),
    }
}

/// Decodes a reply; a failure that the node answered becomes an error.
pub(crate) fn open(bytes: bytes::Bytes) -> Result<proto::reply::Kind, Error> {
    let reply = proto::Reply::decode(bytes).map_err(Error::garbage)?;
    match reply.kind {
        Some(proto::reply::Kind::Failure(failure)) => Err(Error::from_failure(failure)),
        Some(kind) => Ok(kind),
        None => Err(Error::garbage("the answer has a kind that this version does not know")),
    }
}
