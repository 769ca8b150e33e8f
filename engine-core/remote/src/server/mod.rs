//! The server of a node: takes connections, answers requests.
//!
//! Roles: the *door* accepts; each connection has a thread that reads (`connection.rs`) and answers what costs less than
//! waking another thread; `pool.rs` has threads for the rest, few for work and more for what waits; `answer.rs` calls the
//! [`Services`].
//!
//! What bounds memory: the number of connections, the bytes of a request, the requests of a connection that wait for an
//! answer, the bytes of an answer, and the bytes that wait to be sent. A peer that goes on sending is not read from until
//! there is room again.
//!
//! Must never: die of what a peer sends. Whatever the bytes are, that connection ends with a reason and no other one does.

mod answer;
mod connection;
mod pool;

pub use answer::answer_once;

use crate::Error;
use crate::security::Security;
use crate::services::Services;
use parking_lot::Mutex;
use pool::Pool;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::{Clock, Random, metric};

/// Connections beyond those that are taken, while they say hello or hear that there are too many.
const STRANGERS: usize = 64;

/// Settings of a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Where it listens, as `address:port`; port 0: a free one.
    pub listen: String,
    /// Name of the node.
    pub node: String,
    /// Name of the graph; a client who wants another one is refused.
    pub graph: String,
    /// Most connections.
    pub connections: usize,
    /// Requests of one connection that may wait for an answer.
    pub in_flight: u32,
    /// Most bytes of a request.
    pub request_bytes: u32,
    /// Most bytes of an answer; a larger one becomes an error that tells its size.
    pub reply_bytes: u32,
    /// Bytes of answers that may wait to be sent on one connection.
    pub outbox_bytes: usize,
    /// Threads for requests that take a processor; 0: as many as there are processors.
    pub workers: usize,
    /// Threads for requests that wait: commits, and reads of a version that is not there yet.
    pub waiters: usize,
    /// How long a request waits for a version that is not there yet.
    pub behind_ms: u64,
    /// A peer from which nothing came for so long is gone.
    pub silence_ms: u64,
    /// A peer that takes nothing for so long is gone; also how long the handshake may take.
    pub stuck_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".into(),
            node: "node".into(),
            graph: "default".into(),
            connections: 4096,
            in_flight: 256,
            request_bytes: 64 << 20,
            reply_bytes: 64 << 20,
            outbox_bytes: 8 << 20,
            workers: 0,
            waiters: 64,
            behind_ms: 100,
            silence_ms: 30_000,
            stuck_ms: 10_000,
        }
    }
}

/// Numbers of what a server did.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections that were taken.
    pub connections: AtomicU64,
    /// Connections that were refused or ended because of what came.
    pub refused: AtomicU64,
    /// Requests that were answered, failures among them.
    pub requests: AtomicU64,
    /// Those of them that were answered on the thread that read them.
    pub at_once: AtomicU64,
    /// Requests that were cancelled before they were answered.
    pub cancelled: AtomicU64,
}

struct Shared {
    config: ServerConfig,
    security: Security,
    services: Services,
    clock: Arc<dyn Clock>,
    working: Pool,
    waiting: Pool,
    stopping: AtomicBool,
    /// Names this run: what another run answered in cursors means nothing to it.
    run: u64,
    counters: Counters,
    open: Mutex<FxHashMap<u64, crate::link::Link>>,
    /// Threads of connections, of those that have not said hello too.
    threads: AtomicUsize,
}

/// A server that runs until it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    door: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens, and answers from then on.
    #[expect(clippy::disallowed_methods, reason = "the network itself")]
    pub fn start(
        config: ServerConfig,
        security: Security,
        services: Services,
        clock: Arc<dyn Clock>,
        random: &dyn Random,
    ) -> Result<Self, Error> {
        let listen = config.listen.clone();
        let unavailable =
            |error: std::io::Error| Error::Unavailable(format!("cannot listen at {listen}: {error}"));
        let listener = TcpListener::bind(&listen).map_err(unavailable)?;
        let address = listener.local_addr().map_err(unavailable)?;
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if config.workers == 0 { processors() } else { config.workers };
        let shared = Arc::new(Shared {
            working: Pool::new("remote-work", workers),
            waiting: Pool::new("remote-wait", config.waiters),
            config,
            security,
            services,
            clock,
            stopping: AtomicBool::new(false),
            run: random.next_u64(),
            counters: Counters::default(),
            open: Mutex::default(),
            threads: AtomicUsize::new(0),
        });
        let of_door = shared.clone();
        let door = tidegraph_platform::spawn("remote-door", move || accept(&of_door, &listener))
            .map_err(unavailable)?;
        Ok(Self { shared, address, door: Some(door) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it did so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Takes no connections any more and ends those that are open. Requests that are being answered are finished, but
    /// nobody hears of it.
    #[expect(clippy::disallowed_methods, reason = "the network itself")]
    pub fn stop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // Wakes the door.
        drop(TcpStream::connect_timeout(&self.reachable(), Duration::from_secs(1)));
        if let Some(door) = self.door.take() {
            // A panic in it was reported when it happened.
            let _ = door.join();
        }
        for link in self.shared.open.lock().values() {
            link.close();
        }
    }

    /// An address by which this machine reaches itself.
    fn reachable(&self) -> SocketAddr {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let local: std::net::IpAddr = match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(local);
        }
        address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut number = 0;
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most often: too many open files. Others may close some meanwhile.
                tracing::warn!(%error, "a connection could not be accepted");
                shared.clock.sleep(Duration::from_millis(50));
                continue;
            }
        };
        if shared.threads.load(Ordering::Relaxed) >= shared.config.connections + STRANGERS {
            shared.counters.refused.fetch_add(1, Ordering::Relaxed);
            metric::refused(metric::Refused::Connection);
            continue;
        }
        number += 1;
        shared.threads.fetch_add(1, Ordering::Relaxed);
        let of_connection = shared.clone();
        let spawned = tidegraph_platform::spawn("remote-conn", move || {
            connection::serve(&of_connection, number, socket, peer);
            of_connection.threads.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = spawned {
            shared.threads.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%error, "no thread can be made for a connection");
        }
    }
}
