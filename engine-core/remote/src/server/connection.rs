//! One connection of a server: the hello, then requests until it ends.

use super::answer::{self, Cost, RequestContext};
use super::graphs::{Pools, Served};
use super::{OpenLink, Shared};
use crate::frame::{self, Frame, FrameKind, FrameReader, MAGIC, Next};
use crate::link::{Link, LinkReader, SHORTEST_LIMIT};
use crate::outbox::Outbox;
use crate::{Error, PROTOCOLS, places};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_platform::metric;
use tidegraph_types::Formats;
use tidegraph_wire::proto::goodbye::Reason;
use tidegraph_wire::{Message, proto};

/// Maximum number of bytes of a hello.
const HELLO_BYTES: u32 = 16 << 10;

/// State shared by the threads that answer requests of one connection.
struct Connection {
    shared: Arc<Shared>,
    /// The graph that the client asks for.
    served: Arc<Served>,
    outbox: Outbox,
    waiting: Mutex<Waiting>,
    /// Signals that a request was answered.
    room: Condvar,
}

/// The unanswered requests of a connection.
#[derive(Default)]
struct Waiting {
    /// Whether each was cancelled.
    requests: FxHashMap<u64, Arc<AtomicBool>>,
    /// How many of them may wait for the log.
    commits: usize,
}

/// Serves a connection until it ends.
pub(super) fn serve(shared: &Arc<Shared>, number: u64, socket: TcpStream, peer: SocketAddr) {
    if let Err(error) = accept(shared, number, socket, peer) {
        shared.counters.refused.fetch_add(1, Ordering::Relaxed);
        metric::refused(metric::Refused::Connection);
        tracing::debug!(%peer, %error, "a connection ended");
    }
    shared.open.lock().remove(&number);
}

fn accept(shared: &Arc<Shared>, number: u64, socket: TcpStream, peer: SocketAddr) -> Result<(), Error> {
    let lost = |error: std::io::Error| Error::lost(&peer.to_string(), error);
    let stuck = shared.config.stuck_limit.max(SHORTEST_LIMIT);
    socket.set_nodelay(true).map_err(lost)?;
    socket.set_read_timeout(Some(stuck)).map_err(lost)?;
    socket.set_write_timeout(Some(stuck)).map_err(lost)?;
    let link = match shared.security.server(&socket).map_err(lost)? {
        Some(tls) => Link::server(socket, tls).map_err(lost)?,
        None => Link::plain(socket),
    };
    let mut reader = FrameReader::new(link.reader(), HELLO_BYTES);
    let welcomed = welcome(shared, &mut reader, &link);
    let served = welcomed.as_ref().ok().map(|(_, served)| served.clone());
    let full = {
        let mut open = shared.open.lock();
        let full = open.len() >= shared.config.connections;
        if !full {
            open.insert(number, OpenLink { link: link.clone(), served: served.clone() });
        }
        full
    };
    // It may have been removed before it was noted above, where its end would look.
    let is_stale = served.as_ref().is_some_and(|served| !shared.graphs.is_current(served));
    let answer = match &welcomed {
        Ok(_) if full => goodbye(Reason::Full, "the node has reached its limit of connections"),
        Ok(_) if shared.stopping.load(Ordering::Acquire) => goodbye(Reason::Stopping, "the node is stopping"),
        Ok(_) if is_stale => goodbye(Reason::Stopping, "the node stops to serve the graph"),
        Ok((welcome, _)) => frame::encode(FrameKind::Welcome, 0, welcome),
        Err((reason, text)) => goodbye(*reason, text),
    };
    link.write_all(&[&MAGIC, answer.as_slice()].concat()).map_err(lost)?;
    let served = match welcomed {
        Ok((_, served)) => served,
        Err((_, text)) => return Err(Error::garbage(text)),
    };
    if full || is_stale || shared.stopping.load(Ordering::Acquire) {
        return Err(Error::Unavailable("the node accepts no connection".into()));
    }
    shared.counters.connections.fetch_add(1, Ordering::Relaxed);
    reader.set_limit(shared.config.request_bytes);
    link.set_read_timeout(shared.config.silence_limit.max(SHORTEST_LIMIT)).map_err(lost)?;
    let connection = Arc::new(Connection {
        shared: shared.clone(),
        served,
        outbox: Outbox::new(link, peer.to_string(), shared.config.outbox_bytes),
        waiting: Mutex::default(),
        room: Condvar::new(),
    });
    let ended = connection.listen(&mut reader);
    // The answers to unanswered requests have no receiver any more.
    connection
        .waiting
        .lock()
        .requests
        .values()
        .for_each(|cancelled| cancelled.store(true, Ordering::Relaxed));
    if let Err(error) = &ended {
        // A peer that broke the protocol may still read why the connection ends.
        let _ = connection.outbox.send(goodbye(Reason::Garbage, &error.to_string()));
    }
    connection.outbox.close("the connection has ended");
    ended
}

fn goodbye(reason: Reason, text: &str) -> Vec<u8> {
    let text = text.to_owned();
    let Formats { oldest, newest } = PROTOCOLS;
    frame::encode(FrameKind::Goodbye, 0, &proto::Goodbye { reason: reason.into(), text, oldest, newest })
}

/// Reads the hello, and decides whether to accept the client.
fn welcome(
    shared: &Shared,
    reader: &mut FrameReader<LinkReader>,
    link: &Link,
) -> Result<(proto::Welcome, Arc<Served>), (Reason, String)> {
    let garbage = |text: String| (Reason::Garbage, text);
    match reader.expect_magic() {
        Ok(true) => {}
        Ok(false) => return Err(garbage("nothing was sent".into())),
        Err(error) => return Err(garbage(error.to_string())),
    }
    let hello = match reader.next() {
        Ok(Next::Frame(Frame { kind: FrameKind::Hello, payload, .. })) => payload,
        Ok(Next::Frame(frame)) => {
            return Err(garbage(format!("a {:?} frame came before the hello", frame.kind)));
        }
        Ok(Next::Idle | Next::End) => {
            link.close();
            return Err(garbage("no hello was sent".into()));
        }
        Err(error) => return Err(garbage(error.to_string())),
    };
    let hello = proto::Hello::decode(hello).map_err(|error| garbage(error.to_string()))?;
    let config = &shared.config;
    let theirs = Formats::new(hello.oldest, hello.newest);
    let Some(version) = PROTOCOLS.common(theirs) else {
        let text = format!(
            "the client speaks protocol {theirs}, this node (tidegraph {}) protocol {PROTOCOLS}: the releases of a fleet \
             may differ by one; upgrade the older side first",
            env!("CARGO_PKG_VERSION")
        );
        return Err((Reason::Version, text));
    };
    if !shared.security.is_token(&hello.token) {
        return Err((Reason::Token, "the client does not have the token of this fleet".into()));
    }
    let Some(served) = shared.graphs.find(&hello.graph) else {
        let served = shared.graphs.names();
        let text = format!("the client wants graph {:?}, this node serves {served:?}", hello.graph);
        return Err((Reason::Graph, text));
    };
    // Its names, ids and versions are those of a graph that was dropped.
    if served.services.incarnation != hello.incarnation {
        let text = format!(
            "the client knows graph {:?} as it was before it was dropped and made again ({:?}, now {:?})",
            hello.graph, hello.incarnation, served.services.incarnation
        );
        return Err((Reason::Graph, text));
    }
    tracing::debug!(software = hello.software, version, "a client is accepted");
    let welcome = proto::Welcome {
        version,
        node: config.node.clone(),
        request_bytes: config.request_bytes,
        in_flight: config.in_flight,
        run: shared.run,
    };
    Ok((welcome, served))
}

impl Connection {
    /// Returns the threads of the client's graph.
    fn pools(&self) -> &Pools {
        let config = &self.shared.config;
        self.served.pools(config.waiters, config.committers)
    }

    /// Reads requests until the connection ends.
    fn listen(self: &Arc<Self>, reader: &mut FrameReader<LinkReader>) -> Result<(), Error> {
        loop {
            let frame = match reader.next()? {
                Next::Frame(frame) => frame,
                Next::Idle => return Err(Error::Unavailable("the peer was silent for too long".into())),
                Next::End => return Ok(()),
            };
            match frame.kind {
                FrameKind::Call => self.call(frame.id, frame.payload)?,
                FrameKind::Cancel => {
                    if let Some(cancelled) = self.waiting.lock().requests.get(&frame.id) {
                        cancelled.store(true, Ordering::Relaxed);
                        self.shared.counters.cancelled.fetch_add(1, Ordering::Relaxed);
                    }
                }
                FrameKind::Ping => self.outbox.send(frame::empty(FrameKind::Pong, frame.id))?,
                FrameKind::Pong => {}
                other => return Err(Error::garbage(format!("a client sent a {other:?} frame"))),
            }
        }
    }

    fn call(self: &Arc<Self>, id: u64, payload: Bytes) -> Result<(), Error> {
        let call = proto::Call::decode(payload.clone()).map_err(Error::garbage)?;
        let cost = answer::cost(&call);
        let is_commit = cost == Cost::Commits;
        let cancelled = Arc::new(AtomicBool::new(false));
        {
            let (places, of_commits) = places(self.shared.config.in_flight);
            let mut waiting = self.waiting.lock();
            // A client does not count a commit that it gave up, which may wait here still.
            if is_commit && waiting.commits >= of_commits {
                drop(waiting);
                return self.refuse(id, &format!("{of_commits} commits of the connection wait for the log"));
            }
            // A client that exceeds the limit of the welcome is not read from. Some of these requests are no commits,
            // so this does not last as long as the log does not answer.
            while waiting.requests.len() >= places {
                self.room.wait(&mut waiting);
            }
            if waiting.requests.insert(id, cancelled.clone()).is_some() {
                return Err(Error::garbage(format!("request {id} was sent twice")));
            }
            waiting.commits += usize::from(is_commit);
        }
        let deadline = match call.remaining_us {
            0 => None,
            remaining => Some(self.shared.clock.now().saturating_add(Duration::from_micros(remaining))),
        };
        let request = Request { connection: self.clone(), id, payload, deadline, cancelled, is_commit };
        match cost {
            Cost::Small => {
                self.shared.counters.at_once.fetch_add(1, Ordering::Relaxed);
                if let Some(waits) = request.run(call, None) {
                    self.pools().waiting.run(move || waits.wait());
                }
            }
            Cost::Large => self.shared.working.run(move || {
                if let Some(waits) = request.run(call, None) {
                    let connection = waits.connection.clone();
                    connection.pools().waiting.run(move || waits.wait());
                }
            }),
            Cost::Waits => self.pools().waiting.run(move || request.finish(call, None)),
            Cost::Commits => {
                let pool = &self.pools().committing;
                if let Err(request) = pool.try_run(request, move |request| request.finish(call, None)) {
                    let text = format!("{} commits of all connections wait for the log", pool.capacity());
                    request.send(&failure(&Error::Unavailable(text)));
                }
            }
        }
        Ok(())
    }

    /// Refuses a request that was not counted, since too many wait. The caller sends it again.
    fn refuse(&self, id: u64, reason: &str) -> Result<(), Error> {
        let refusal = failure(&Error::Unavailable(reason.to_owned()));
        self.outbox.send(frame::encode(FrameKind::Reply, id, &refusal))
    }
}

/// A request to be answered.
struct Request {
    connection: Arc<Connection>,
    id: u64,
    /// The encoded call, in case it must be made a second time.
    payload: Bytes,
    deadline: Option<Duration>,
    cancelled: Arc<AtomicBool>,
    is_commit: bool,
}

impl Request {
    /// Answers the request. Returns the request if a version is not applied yet and `wait` is not given.
    fn run(self, call: proto::Call, wait: Option<Duration>) -> Option<Self> {
        let shared = &self.connection.shared;
        let clock = shared.clock.as_ref();
        let context = RequestContext { clock, deadline: self.deadline, cancelled: &self.cancelled };
        let answered = catch_unwind(AssertUnwindSafe(|| {
            answer::answer(&self.connection.served.services, call, &context, wait)
        }));
        let reply = match answered {
            Ok(Some(reply)) => reply,
            Ok(None) => return Some(self),
            Err(_) => {
                tracing::error!(request = self.id, "a request hit a defect");
                failure(&Error::Unavailable("a defect of the node; its log says more".into()))
            }
        };
        self.send(&reply);
        None
    }

    /// Answers the request, and waits for a version if needed.
    fn finish(self, call: proto::Call, wait: Option<Duration>) {
        let wait = wait.unwrap_or(self.connection.shared.config.version_wait);
        // With `wait` given, `run` always answers.
        drop(self.run(call, Some(wait)));
    }

    /// Makes the call again, and waits for the version.
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
            frame::encode(FrameKind::Reply, self.id, &failure(&Error::TooLarge { bytes, limit }))
        } else {
            frame::encode(FrameKind::Reply, self.id, reply)
        };
        self.connection.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        metric::call();
        {
            let mut waiting = self.connection.waiting.lock();
            waiting.requests.remove(&self.id);
            waiting.commits -= usize::from(self.is_commit);
        }
        self.connection.room.notify_one();
        // If the connection is lost, the answer has no receiver.
        let _ = self.connection.outbox.send(frame);
    }
}

fn failure(error: &Error) -> proto::Reply {
    proto::Reply { kind: Some(proto::reply::Kind::Failure(error.to_failure())) }
}
