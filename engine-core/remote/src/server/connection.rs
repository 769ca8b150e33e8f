//! One connection of a server: the hello, then requests until an end.

use super::Shared;
use super::answer::{self, Cost, Stop};
use crate::frame::{self, Frame, FrameReader, Kind, MAGIC, Next};
use crate::link::{Link, LinkReader};
use crate::outbox::Outbox;
use crate::{Error, PROTOCOL};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_platform::metric;
use tidegraph_wire::proto::goodbye::Reason;
use tidegraph_wire::{Message, proto};

/// Most bytes of a hello.
const HELLO_BYTES: u32 = 16 << 10;

/// What the threads that answer requests of one connection share.
struct Connection {
    shared: Arc<Shared>,
    outbox: Outbox,
    /// Requests that wait for an answer, and whether each was cancelled.
    waiting: Mutex<FxHashMap<u64, Arc<AtomicBool>>>,
    room: Condvar,
}

/// Serves a connection until it ends.
pub(super) fn serve(shared: &Arc<Shared>, number: u64, socket: TcpStream, peer: SocketAddr) {
    if let Err(error) = take(shared, number, socket, peer) {
        shared.counters.refused.fetch_add(1, Ordering::Relaxed);
        metric::refused(metric::Refused::Connection);
        tracing::debug!(%peer, %error, "a connection ended");
    }
    shared.open.lock().remove(&number);
}

fn take(shared: &Arc<Shared>, number: u64, socket: TcpStream, peer: SocketAddr) -> Result<(), Error> {
    let lost = |error: std::io::Error| Error::lost(&peer.to_string(), error);
    let stuck = Duration::from_millis(shared.config.stuck_ms.max(1));
    socket.set_nodelay(true).map_err(lost)?;
    socket.set_read_timeout(Some(stuck)).map_err(lost)?;
    socket.set_write_timeout(Some(stuck)).map_err(lost)?;
    let link = match shared.security.server() {
        Some(tls) => Link::server(socket, tls).map_err(lost)?,
        None => Link::plain(socket),
    };
    let mut reader = FrameReader::new(link.reader(), HELLO_BYTES);
    let welcomed = welcome(shared, &mut reader, &link);
    let full = {
        let mut open = shared.open.lock();
        let full = open.len() >= shared.config.connections;
        if !full {
            open.insert(number, link.clone());
        }
        full
    };
    let answer = match &welcomed {
        Ok(_) if full => goodbye(Reason::Full, "the node has as many connections as it may"),
        Ok(_) if shared.stopping.load(Ordering::Acquire) => {
            goodbye(Reason::Stopping, "the node is going down")
        }
        Ok(welcome) => frame::encode(Kind::Welcome, 0, welcome),
        Err((reason, text)) => goodbye(*reason, text),
    };
    link.write_all(&[&MAGIC, answer.as_slice()].concat()).map_err(lost)?;
    if let Err((_, text)) = welcomed {
        return Err(Error::garbage(text));
    }
    if full || shared.stopping.load(Ordering::Acquire) {
        return Err(Error::Unavailable("no connection is taken".into()));
    }
    shared.counters.connections.fetch_add(1, Ordering::Relaxed);
    reader.set_limit(shared.config.request_bytes);
    link.set_read_timeout(Duration::from_millis(shared.config.silence_ms.max(1))).map_err(lost)?;
    let connection = Arc::new(Connection {
        shared: shared.clone(),
        outbox: Outbox::new(link, peer.to_string(), shared.config.outbox_bytes),
        waiting: Mutex::default(),
        room: Condvar::new(),
    });
    let ended = connection.listen(&mut reader);
    // Nobody hears the answers any more.
    connection.waiting.lock().values().for_each(|cancelled| cancelled.store(true, Ordering::Relaxed));
    if let Err(error) = &ended {
        // A peer that sent garbage may still read why it is cut off.
        let _ = connection.outbox.send(goodbye(Reason::Garbage, &error.to_string()));
    }
    connection.outbox.close("the connection has ended");
    ended
}

fn goodbye(reason: Reason, text: &str) -> Vec<u8> {
    let text = text.to_owned();
    let (oldest, newest) = (PROTOCOL, PROTOCOL);
    frame::encode(Kind::Goodbye, 0, &proto::Goodbye { reason: reason.into(), text, oldest, newest })
}

/// Reads the hello; says whether the client is taken.
fn welcome(
    shared: &Shared,
    reader: &mut FrameReader<LinkReader>,
    link: &Link,
) -> Result<proto::Welcome, (Reason, String)> {
    let garbage = |text: String| (Reason::Garbage, text);
    match reader.expect_magic() {
        Ok(true) => {}
        Ok(false) => return Err(garbage("nothing was sent".into())),
        Err(error) => return Err(garbage(error.to_string())),
    }
    let hello = match reader.next() {
        Ok(Next::Frame(Frame { kind: Kind::Hello, payload, .. })) => payload,
        Ok(Next::Frame(frame)) => return Err(garbage(format!("a {:?} came before the hello", frame.kind))),
        Ok(Next::Idle | Next::End) => {
            link.close();
            return Err(garbage("no hello was sent".into()));
        }
        Err(error) => return Err(garbage(error.to_string())),
    };
    let hello = proto::Hello::decode(hello).map_err(|error| garbage(error.to_string()))?;
    let config = &shared.config;
    if hello.oldest > PROTOCOL || hello.newest < PROTOCOL {
        let text = format!(
            "the client speaks versions {} to {} of the protocol, this node version {PROTOCOL}",
            hello.oldest, hello.newest
        );
        return Err((Reason::Version, text));
    }
    if !shared.security.is_token(&hello.token) {
        return Err((Reason::Token, "the client does not have the token of this fleet".into()));
    }
    if hello.graph != config.graph {
        let text = format!("the client wants graph {:?}, this node serves {:?}", hello.graph, config.graph);
        return Err((Reason::Graph, text));
    }
    tracing::debug!(software = hello.software, "a client is welcome");
    Ok(proto::Welcome {
        version: PROTOCOL,
        node: config.node.clone(),
        request_bytes: config.request_bytes,
        in_flight: config.in_flight,
        run: shared.run,
    })
}

impl Connection {
    /// Reads requests until the peer is gone.
    fn listen(self: &Arc<Self>, reader: &mut FrameReader<LinkReader>) -> Result<(), Error> {
        loop {
            let frame = match reader.next()? {
                Next::Frame(frame) => frame,
                Next::Idle => return Err(Error::Unavailable("the peer was silent for too long".into())),
                Next::End => return Ok(()),
            };
            match frame.kind {
                Kind::Call => self.call(frame.id, frame.payload)?,
                Kind::Cancel => {
                    if let Some(cancelled) = self.waiting.lock().get(&frame.id) {
                        cancelled.store(true, Ordering::Relaxed);
                        self.shared.counters.cancelled.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Kind::Ping => self.outbox.send(frame::empty(Kind::Pong, frame.id))?,
                Kind::Pong => {}
                other => return Err(Error::garbage(format!("a {other:?} came from a client"))),
            }
        }
    }

    fn call(self: &Arc<Self>, id: u64, payload: Bytes) -> Result<(), Error> {
        let call = proto::Call::decode(payload.clone()).map_err(Error::garbage)?;
        let cancelled = Arc::new(AtomicBool::new(false));
        {
            let mut waiting = self.waiting.lock();
            // A client keeps to what the welcome said; one that does not is not read from.
            while waiting.len() >= self.shared.config.in_flight.max(1) as usize {
                self.room.wait(&mut waiting);
            }
            if waiting.insert(id, cancelled.clone()).is_some() {
                return Err(Error::garbage(format!("request {id} was sent twice")));
            }
        }
        let deadline = match call.remaining_us {
            0 => None,
            remaining => Some(self.shared.clock.now().saturating_add(Duration::from_micros(remaining))),
        };
        let request = Request { connection: self.clone(), id, payload, deadline, cancelled };
        let cost = answer::cost(&call);
        match cost {
            Cost::Small => {
                self.shared.counters.at_once.fetch_add(1, Ordering::Relaxed);
                if let Some(waits) = request.run(call, None) {
                    self.shared.waiting.run(move || waits.wait());
                }
            }
            Cost::Large => self.shared.working.run(move || {
                if let Some(waits) = request.run(call, None) {
                    let shared = waits.connection.shared.clone();
                    shared.waiting.run(move || waits.wait());
                }
            }),
            Cost::Waits => self.shared.waiting.run(move || request.finish(call, None)),
        }
        Ok(())
    }
}

/// A request that is to be answered.
struct Request {
    connection: Arc<Connection>,
    id: u64,
    /// The request again, should it have to be asked a second time.
    payload: Bytes,
    deadline: Option<Duration>,
    cancelled: Arc<AtomicBool>,
}

impl Request {
    /// Answers; gives itself back when a version is not there yet and waiting is not allowed.
    fn run(self, call: proto::Call, wait: Option<Duration>) -> Option<Self> {
        let shared = &self.connection.shared;
        let clock = shared.clock.as_ref();
        let stop = Stop { clock, deadline: self.deadline, cancelled: &self.cancelled };
        let answered = catch_unwind(AssertUnwindSafe(|| answer::answer(&shared.services, call, &stop, wait)));
        let reply = match answered {
            Ok(Some(reply)) => reply,
            Ok(None) => return Some(self),
            Err(_) => {
                tracing::error!(request = self.id, "a request met a defect");
                failure(&Error::Unavailable("a defect of the node; its log says more".into()))
            }
        };
        self.send(&reply);
        None
    }

    /// Answers, whatever that takes.
    fn finish(self, call: proto::Call, wait: Option<Duration>) {
        let wait = wait.unwrap_or(Duration::from_millis(self.connection.shared.config.behind_ms));
        // With leave to wait it never comes back.
        drop(self.run(call, Some(wait)));
    }

    /// Asks once more, and waits for the version.
    fn wait(self) {
        match proto::Call::decode(self.payload.clone()) {
            Ok(call) => self.finish(call, None),
            Err(error) => self.send(&failure(&Error::garbage(error))),
        }
    }

    fn send(&self, reply: &proto::Reply) {
        let limit = u64::from(self.connection.shared.config.reply_bytes);
        let bytes = reply.encoded_len() as u64;
        let frame = if bytes > limit {
            frame::encode(Kind::Reply, self.id, &failure(&Error::TooLarge { bytes, limit }))
        } else {
            frame::encode(Kind::Reply, self.id, reply)
        };
        self.connection.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        metric::call();
        self.connection.waiting.lock().remove(&self.id);
        self.connection.room.notify_one();
        // The connection may be gone: then nobody waits for this.
        let _ = self.connection.outbox.send(frame);
    }
}

fn failure(error: &Error) -> proto::Reply {
    proto::Reply { kind: Some(proto::reply::Kind::Failure(error.to_failure())) }
}
