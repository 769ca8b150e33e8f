//! One connection to a node, shared by many callers. Each request has a number; a thread reads the replies and puts
//! them into the callers' mailboxes.

use super::ClientConfig;
use super::mailbox::{Mailbox, Reply};
use crate::frame::{self, Frame, FrameKind, FrameReader, MAGIC, Next};
use crate::link::{Link, LinkReader, SHORTEST_LIMIT};
use crate::outbox::Outbox;
use crate::security::Security;
use crate::{Error, PROTOCOLS, is_commit, places};
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_platform::Clock;
use tidegraph_wire::proto::goodbye::Reason;
use tidegraph_wire::{Message, proto};

pub(crate) struct Connection {
    peer: String,
    outbox: Outbox,
    /// Maximum number of bytes of a request that the node accepts.
    request_bytes: u32,
    /// Maximum number of requests in flight, and how many of them may wait for the log.
    places: (usize, usize),
    /// Number of the node's run.
    run: u64,
    waiting: Mutex<Waiting>,
    /// Signals a free place.
    room: Condvar,
    /// Signals a free place for a request that may wait for the log.
    room_for_commits: Condvar,
    /// Number of requests in flight, read without the lock to find the least busy connection.
    load: AtomicUsize,
    next: AtomicU64,
    /// The node's slow requests: reset by every frame that arrives.
    suspicions: Arc<AtomicU32>,
}

#[derive(Default)]
struct Waiting {
    requests: FxHashMap<u64, Sent>,
    /// How many of the requests may wait for the log.
    commits: usize,
    /// Why the connection is lost.
    gone: Option<Error>,
}

/// Where the reply to a request goes, and whether the request may wait for the log.
struct Sent {
    mailbox: Arc<Mailbox>,
    tag: u32,
    is_commit: bool,
}

/// A request in flight. Dropping it before the reply arrives cancels the request.
pub(crate) struct Ticket {
    /// The connection and the request's number; `None`: the request cannot be cancelled.
    sent: Option<(Arc<Connection>, u64)>,
    run: u64,
}

impl Ticket {
    /// Makes the ticket of a request that cannot be cancelled.
    pub fn fixed(run: u64) -> Self {
        Self { sent: None, run }
    }

    /// Returns the number of the run of the node that was asked.
    pub fn run(&self) -> u64 {
        self.run
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((connection, id)) = &self.sent
            && connection.forget(*id)
        {
            // A lost connection needs no message.
            let _ = connection.outbox.send(frame::empty(FrameKind::Cancel, *id));
        }
    }
}

/// Why a connection was not opened.
enum NotOpened {
    /// The peer does not know the secret.
    Token(Error),
    Other(Error),
}

impl From<Error> for NotOpened {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Connection {
    /// Connects, exchanges hello and welcome, and starts the thread that reads. If the peer refuses the secret, tries
    /// the others that this process then knows: the peer may have learnt of a new one earlier, or not yet.
    pub fn open(
        address: &str,
        config: &ClientConfig,
        security: &Security,
        clock: &Arc<dyn Clock>,
        suspicions: Arc<AtomicU32>,
    ) -> Result<Arc<Self>, Error> {
        let open = |token: &str| Self::open_with(token, address, config, security, clock, suspicions.clone());
        let shown = security.token();
        let mut refusal = match open(&shown) {
            Ok(opened) => return Ok(opened),
            Err(NotOpened::Other(error)) => return Err(error),
            Err(NotOpened::Token(error)) => error,
        };
        for token in security.others(&shown) {
            match open(&token) {
                Ok(opened) => return Ok(opened),
                Err(NotOpened::Other(error)) => return Err(error),
                Err(NotOpened::Token(error)) => refusal = error,
            }
        }
        Err(refusal)
    }

    fn open_with(
        token: &str,
        address: &str,
        config: &ClientConfig,
        security: &Security,
        clock: &Arc<dyn Clock>,
        suspicions: Arc<AtomicU32>,
    ) -> Result<Arc<Self>, NotOpened> {
        let unreachable =
            |error: std::io::Error| Error::Unreachable { peer: address.into(), reason: error.to_string() };
        let socket = connect(address, config).map_err(unreachable)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        let timeout = config.connect_limit.max(SHORTEST_LIMIT);
        socket.set_read_timeout(Some(timeout)).map_err(unreachable)?;
        socket.set_write_timeout(Some(timeout)).map_err(unreachable)?;
        let link = match security.client(address) {
            Some((tls, name)) => Link::client(socket, tls, &name).map_err(unreachable)?,
            None => Link::plain(socket),
        };
        let hello = proto::Hello {
            oldest: PROTOCOLS.oldest,
            newest: PROTOCOLS.newest,
            graph: config.graph.clone(),
            token: token.to_owned(),
            software: concat!("tidegraph ", env!("CARGO_PKG_VERSION")).into(),
            incarnation: config.incarnation.clone(),
        };
        let hello = frame::encode(FrameKind::Hello, 0, &hello);
        link.write_all(&[&MAGIC, hello.as_slice()].concat()).map_err(unreachable)?;
        let mut reader = FrameReader::new(link.reader(), config.reply_bytes);
        let welcome = welcome(&mut reader, address)?;
        link.set_read_timeout(config.ping_after.max(SHORTEST_LIMIT)).map_err(unreachable)?;
        let connection = Arc::new(Self {
            peer: address.to_owned(),
            outbox: Outbox::new(link, address.to_owned(), config.outbox_bytes),
            request_bytes: welcome.request_bytes,
            places: places(welcome.in_flight),
            run: welcome.run,
            waiting: Mutex::default(),
            room: Condvar::new(),
            room_for_commits: Condvar::new(),
            load: AtomicUsize::new(0),
            next: AtomicU64::new(1),
            suspicions,
        });
        let (reading, clock) = (connection.clone(), clock.clone());
        let dead = config.dead_after;
        tidegraph_platform::spawn("remote-read", move || reading.read(reader, clock.as_ref(), dead))
            .map_err(unreachable)?;
        Ok(connection)
    }

    /// Returns the number of requests in flight.
    pub fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Returns whether requests can still be sent.
    pub fn is_open(&self) -> bool {
        self.waiting.lock().gone.is_none()
    }

    /// Sends a request. Its reply arrives in the mailbox under the tag. Waits up to `timeout` if too many are in
    /// flight; commits have a share of the places, so a read never waits for them.
    pub fn start(
        self: &Arc<Self>,
        call: &proto::Call,
        mailbox: &Arc<Mailbox>,
        tag: u32,
        timeout: Duration,
    ) -> Result<Ticket, Error> {
        let (bytes, limit) = (call.encoded_len() as u64, u64::from(self.request_bytes));
        if bytes > limit {
            return Err(Error::TooLarge { bytes, limit });
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = frame::encode(FrameKind::Call, id, call);
        let is_commit = call.kind.as_ref().is_some_and(is_commit);
        {
            let (places, of_commits) = self.places;
            let room = if is_commit { &self.room_for_commits } else { &self.room };
            let mut waiting = self.waiting.lock();
            while waiting.gone.is_none()
                && (waiting.requests.len() >= places || is_commit && waiting.commits >= of_commits)
            {
                if room.wait_for(&mut waiting, timeout).timed_out() {
                    return Err(Error::Unavailable(format!("{} has too many requests in flight", self.peer)));
                }
            }
            if let Some(error) = &waiting.gone {
                return Err(error.clone());
            }
            waiting.requests.insert(id, Sent { mailbox: mailbox.clone(), tag, is_commit });
            waiting.commits += usize::from(is_commit);
            self.load.store(waiting.requests.len(), Ordering::Relaxed);
        }
        let ticket = Ticket { sent: Some((self.clone(), id)), run: self.run };
        self.outbox.send(frame)?;
        Ok(ticket)
    }

    /// Discards the future reply to a request. Returns false if it has arrived already.
    fn forget(&self, id: u64) -> bool {
        self.take(id).is_some()
    }

    fn take(&self, id: u64) -> Option<Sent> {
        let mut waiting = self.waiting.lock();
        let taken = waiting.requests.remove(&id)?;
        waiting.commits -= usize::from(taken.is_commit);
        self.load.store(waiting.requests.len(), Ordering::Relaxed);
        self.room.notify_one();
        if waiting.commits < self.places.1 {
            self.room_for_commits.notify_one();
        }
        Some(taken)
    }

    fn read(&self, mut reader: FrameReader<LinkReader>, clock: &dyn Clock, dead: Duration) {
        let mut heard = clock.now();
        let error = loop {
            match reader.next() {
                Ok(Next::Frame(frame)) => {
                    heard = clock.now();
                    self.suspicions.store(0, Ordering::Relaxed);
                    if let Err(error) = self.accept(frame) {
                        break error;
                    }
                }
                Ok(Next::Idle) => {
                    if clock.now().saturating_sub(heard) > dead {
                        break Error::lost(&self.peer, "nothing was heard for too long");
                    }
                    if let Err(error) = self.outbox.send(frame::empty(FrameKind::Ping, 0)) {
                        break error;
                    }
                }
                Ok(Next::End) => break Error::lost(&self.peer, "the peer closed it"),
                Err(error) => break Error::lost(&self.peer, error),
            }
        };
        self.outbox.close(&error.to_string());
        let lost = {
            let mut waiting = self.waiting.lock();
            waiting.gone = Some(error.clone());
            waiting.commits = 0;
            self.load.store(0, Ordering::Relaxed);
            std::mem::take(&mut waiting.requests)
        };
        self.room.notify_all();
        self.room_for_commits.notify_all();
        for Sent { mailbox, tag, .. } in lost.into_values() {
            mailbox.put(Reply { tag, content: Err(error.clone()) });
        }
    }

    fn accept(&self, frame: Frame) -> Result<(), Error> {
        match frame.kind {
            FrameKind::Reply => {
                // The request may have been cancelled meanwhile.
                if let Some(Sent { mailbox, tag, .. }) = self.take(frame.id) {
                    mailbox.put(Reply { tag, content: Ok(frame.payload) });
                }
                Ok(())
            }
            FrameKind::Pong => Ok(()),
            FrameKind::Goodbye => {
                let goodbye = proto::Goodbye::decode(frame.payload).map_err(Error::garbage)?;
                Err(refusal(&self.peer, goodbye))
            }
            other => Err(Error::garbage(format!("a server sent a {other:?} frame"))),
        }
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.outbox.close("it is no longer needed");
    }
}

#[expect(clippy::disallowed_methods, reason = "the network itself, behind Network")]
fn connect(address: &str, config: &ClientConfig) -> std::io::Result<TcpStream> {
    let timeout = config.connect_limit.max(SHORTEST_LIMIT);
    let mut last = std::io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn welcome(reader: &mut FrameReader<LinkReader>, peer: &str) -> Result<proto::Welcome, NotOpened> {
    let ended = || Error::lost(peer, "it ended before the hello was answered");
    if !reader.expect_magic()? {
        return Err(ended().into());
    }
    match reader.next()? {
        Next::Frame(frame) if frame.kind == FrameKind::Welcome => {
            let welcome = proto::Welcome::decode(frame.payload).map_err(Error::garbage)?;
            if PROTOCOLS.reads(welcome.version) {
                return Ok(welcome);
            }
            let reason = format!(
                "it chose protocol {}, this process (tidegraph {}) speaks protocol {PROTOCOLS}: the releases of a fleet \
                 may differ by one; upgrade the older side first",
                welcome.version,
                env!("CARGO_PKG_VERSION")
            );
            Err(Error::Refused { peer: peer.to_owned(), reason }.into())
        }
        Next::Frame(frame) if frame.kind == FrameKind::Goodbye => {
            let goodbye = proto::Goodbye::decode(frame.payload).map_err(Error::garbage)?;
            let reason = goodbye.reason();
            let error = refusal(peer, goodbye);
            Err(if reason == Reason::Token { NotOpened::Token(error) } else { NotOpened::Other(error) })
        }
        Next::Frame(frame) => {
            Err(Error::garbage(format!("a {:?} frame came instead of a welcome", frame.kind)).into())
        }
        Next::Idle | Next::End => Err(ended().into()),
    }
}

/// Returns the error that a goodbye represents.
fn refusal(peer: &str, goodbye: proto::Goodbye) -> Error {
    match goodbye.reason() {
        Reason::Stopping | Reason::Full => Error::lost(peer, goodbye.text),
        _ => Error::Refused { peer: peer.to_owned(), reason: goodbye.text },
    }
}
