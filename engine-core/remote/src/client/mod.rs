//! A node seen from outside.
//!
//! [`RemoteNode`] holds a few connections, makes them when they are needed, and after a failure tries again only after a
//! pause that grows. A request goes by the connection with the fewest that wait. A node that is silent or cannot be reached is
//! looked for by a thread of its own, so that no caller waits for it while there are others.

mod commits;
mod connection;
mod mailbox;
mod network;

pub use commits::RemoteCommits;
pub(crate) use connection::Ticket;
pub(crate) use mailbox::Mailbox;
pub use network::{Answer, Network};

use crate::Error;
use crate::security::Security;
use crate::services::RequestId;
use connection::Connection;
use mailbox::Letter;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegraph_platform::{Clock, Random};
use tidegraph_types::Version;
use tidegraph_wire::{Message, proto};

/// Doubts after which others are asked first.
const DOUBTS: u32 = 3;

/// Settings of clients.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// Name of the graph.
    pub graph: String,
    /// Most connections to one node.
    pub connections: usize,
    /// How long connecting may take, and the hello.
    pub connect_ms: u64,
    /// After so long without a word the node is asked whether it is there.
    pub ping_ms: u64,
    /// After so long without a word it is not.
    pub dead_ms: u64,
    /// Most bytes of an answer.
    pub reply_bytes: u32,
    /// Bytes of requests that may wait to be sent on one connection.
    pub outbox_bytes: usize,
    /// The first pause after a failure to connect.
    pub pause_ms: u64,
    /// The longest one.
    pub longest_pause_ms: u64,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            graph: "default".into(),
            connections: 2,
            connect_ms: 1000,
            ping_ms: 1000,
            dead_ms: 3000,
            reply_bytes: 128 << 20,
            outbox_bytes: 8 << 20,
            pause_ms: 20,
            longest_pause_ms: 1000,
        }
    }
}

/// How long what a node has applied is worth knowing: later it has applied more.
const APPLIED_AGE: Duration = Duration::from_millis(20);

/// A node at an address. Any number of threads ask it at the same time.
pub struct RemoteNode {
    address: String,
    config: ClientConfig,
    security: Security,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    places: Box<[Mutex<Option<Arc<Connection>>>]>,
    pause: Mutex<Pause>,
    /// How often somebody waited for it too long since anything came from it.
    doubts: Arc<AtomicU32>,
    /// The newest version that a partition there was heard to have applied.
    applied: AtomicU64,
    /// When something was heard of that, in milliseconds of the clock.
    applied_at: AtomicU64,
    /// Whether a thread looks whether it is there again.
    probing: AtomicBool,
    /// What stands for the network; `None`: sockets.
    network: Option<Arc<dyn Network>>,
    me: Weak<Self>,
}

/// When to connect again.
#[derive(Default)]
struct Pause {
    failures: u32,
    /// Not before.
    until: Duration,
    reason: String,
}

impl std::fmt::Debug for RemoteNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteNode").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RemoteNode {
    /// A node that is connected to when it is asked first.
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

    /// A node that is reached by something else than sockets.
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
            doubts: Arc::default(),
            applied: AtomicU64::new(0),
            applied_at: AtomicU64::new(0),
            probing: AtomicBool::new(false),
            network,
            me: me.clone(),
        })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether connecting failed, and it is too early to try again.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        let pause = self.pause.lock();
        pause.failures > 0 && self.clock.now() < pause.until
    }

    /// Whether there is no reason to ask another one first: it is not known to be unreachable, and not silent.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.doubts.load(Ordering::Relaxed) < DOUBTS && !self.is_paused()
    }

    /// Notes what a partition there has applied now.
    pub(crate) fn note_applied(&self, version: Version, now: Duration) {
        if version.0 > 0 {
            self.applied.fetch_max(version.0, Ordering::Relaxed);
            self.applied_at.store(now.as_millis() as u64, Ordering::Relaxed);
        }
    }

    /// The newest version that a partition there was heard to have applied, if that was a moment ago.
    pub(crate) fn applied(&self, now: Duration) -> Option<Version> {
        let at = Duration::from_millis(self.applied_at.load(Ordering::Relaxed));
        let version = Version(self.applied.load(Ordering::Relaxed));
        Some(version).filter(|version| version.0 > 0 && now.saturating_sub(at) < APPLIED_AGE)
    }

    /// Notes that somebody waits for it too long. Whatever comes from it next takes that back.
    pub(crate) fn doubt(&self) {
        if self.doubts.fetch_add(1, Ordering::Relaxed) + 1 >= DOUBTS {
            self.probe();
        }
    }

    /// Asks it now and then, on a thread of its own, until something comes: callers ask others meanwhile.
    fn probe(&self) {
        // Who stands for the network has no threads: the next answer takes doubts back.
        if self.network.is_some() || self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (me, clock) = (self.me.clone(), self.clock.clone());
        let pause = Duration::from_millis(self.config.longest_pause_ms.max(1));
        let spawned = tidegraph_platform::spawn("remote-probe", move || {
            loop {
                clock.sleep(pause);
                let Some(node) = me.upgrade() else { return };
                // Whatever it answers, it is there; and then the doubts are gone.
                let _ = node.status(Duration::from_millis(node.config.connect_ms.max(1)));
                if node.doubts.load(Ordering::Relaxed) < DOUBTS {
                    node.probing.store(false, Ordering::Release);
                    return;
                }
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread can be made to look for a node");
            self.probing.store(false, Ordering::Release);
        }
    }

    /// Sends a request, whose answer will be in the mailbox under the tag.
    pub(crate) fn start(
        &self,
        call: &proto::Call,
        mailbox: &Arc<Mailbox>,
        tag: u32,
        patience: Duration,
    ) -> Result<Ticket, Error> {
        let Some(network) = &self.network else {
            return self.connection()?.start(call, mailbox, tag, patience);
        };
        let (to, doubts) = (mailbox.clone(), self.doubts.clone());
        let answer = Answer::new(move |content| {
            if content.is_ok() {
                doubts.store(0, Ordering::Relaxed);
            }
            to.put(Letter { tag, content });
        });
        network.send(&self.address, call.encode_to_vec(), answer).map(Ticket::fixed)
    }

    /// Asks, and waits for the answer, but at most so long.
    pub fn ask(&self, call: proto::call::Kind, at_most: Duration) -> Result<proto::reply::Kind, Error> {
        let remaining_us = u64::try_from(at_most.as_micros()).unwrap_or(u64::MAX).max(1);
        let call = proto::Call { remaining_us, kind: Some(call) };
        let mailbox = Mailbox::new(self.network.clone());
        let _ticket = self.start(&call, &mailbox, 0, at_most)?;
        let (deadline, mut letters) = (self.clock.now() + at_most, Vec::new());
        loop {
            mailbox.take(deadline.saturating_sub(self.clock.now()), &mut letters);
            if let Some(letter) = letters.pop() {
                return open(letter.content?);
            }
            if self.clock.now() >= deadline {
                return Err(Error::Overdue);
            }
        }
    }

    /// How the node is, as JSON.
    pub fn status(&self, at_most: Duration) -> Result<String, Error> {
        match self.ask(proto::call::Kind::Status(proto::StatusCall {}), at_most)? {
            proto::reply::Kind::Status(status) => Ok(status.json),
            _ => Err(Error::garbage("an answer of another kind than the request")),
        }
    }

    /// Asks it to keep a version readable for a while, or to let go.
    pub fn pin(&self, holder: RequestId, version: Option<Version>, at_most: Duration) -> Result<(), Error> {
        let version = version.map_or(0, |version| version.0);
        let call = proto::PinCall { holder: holder.0.to_vec(), version };
        match self.ask(proto::call::Kind::Pin(call), at_most)? {
            proto::reply::Kind::Noted(_) => Ok(()),
            _ => Err(Error::garbage("an answer of another kind than the request")),
        }
    }

    /// The connection with the least to do. One that does nothing is as good as a new one.
    fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut best: Option<Arc<Connection>> = None;
        let mut empty = None;
        for (number, place) in self.places.iter().enumerate() {
            // Locked: another thread is connecting just now.
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

    /// Connects, unless another thread did meanwhile.
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
        match Connection::open(&self.address, &self.config, &self.security, &self.clock, self.doubts.clone())
        {
            Ok(open) => {
                *self.pause.lock() = Pause::default();
                self.doubts.store(0, Ordering::Relaxed);
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
        let longest = self.config.longest_pause_ms.max(1);
        let length = (self.config.pause_ms.max(1) << pause.failures.min(16)).min(longest);
        // Between half of it and all, so that many clients do not come back at once.
        let length = length / 2 + self.random.below(length / 2 + 1);
        pause.failures = pause.failures.saturating_add(1);
        pause.until = self.clock.now() + Duration::from_millis(length);
        pause.reason = match error {
            Error::Unreachable { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        tracing::debug!(node = self.address, %error, length, "a node cannot be connected to");
        drop(pause);
        self.doubts.store(DOUBTS, Ordering::Relaxed);
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

/// The content of a reply.
pub(crate) fn open(bytes: bytes::Bytes) -> Result<proto::reply::Kind, Error> {
    let reply = proto::Reply::decode(bytes).map_err(Error::garbage)?;
    match reply.kind {
        Some(proto::reply::Kind::Failure(failure)) => Err(Error::from_failure(failure)),
        Some(kind) => Ok(kind),
        None => Err(Error::garbage("an answer of a kind that this version does not know")),
    }
}
