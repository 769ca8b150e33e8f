//! The server of a node: accepts connections and answers requests.
//!
//! Roles: the acceptor thread accepts; each connection has a thread that reads (`connection.rs`) and answers requests
//! that cost less than waking another thread; `pool.rs` has threads for the others, few for work and more for requests
//! that wait and for commits; `answer.rs` calls the [`Services`]; [`Graphs`] has those of each graph, which a client names
//! in its hello.
//!
//! Memory is bounded by the number of connections, the bytes of a request, the unanswered
//! requests of a connection, the bytes of an answer, and the bytes that wait to be sent.
//! If a peer sends more, the server stops reading from it until there is room. Commits have a share of these places;
//! beyond it, a commit is refused at once.
//!
//! Must never: crash on what a peer sends. Whatever the bytes are, only that connection ends, with a reason. And the
//! reader of a connection must never wait for a commit: the log may not answer for long, and reads and pings go on.

mod answer;
mod connection;
mod graphs;
mod pool;

pub use answer::answer_once;
pub use graphs::Graphs;

use crate::Error;
use crate::security::Security;
#[cfg(doc)]
use crate::services::Services;
use graphs::Served;
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

/// Maximum number of connections beyond the configured number, which exchange hellos or are being refused.
const PENDING_CONNECTIONS: usize = 64;

/// Settings of a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address to listen at, as `address:port`; port 0: any free port.
    pub listen: String,
    /// Name of the node.
    pub node: String,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of unanswered requests of one connection.
    pub in_flight: u32,
    /// Maximum number of bytes of a request.
    pub request_bytes: u32,
    /// Maximum number of bytes of an answer. A larger one becomes an error with its size.
    pub reply_bytes: u32,
    /// Maximum number of bytes of answers that wait to be sent on one connection.
    pub outbox_bytes: usize,
    /// Threads for requests that use a processor; 0: one for each processor.
    pub workers: usize,
    /// Threads of each graph for requests that wait: reads of a version that is not applied yet, and questions to the
    /// sequencer.
    pub waiters: usize,
    /// Threads of each graph for commits and other requests that wait for the log. Four times as many wait for a thread;
    /// further ones are refused, and the caller sends them again.
    pub committers: usize,
    /// How long a request waits for a version that is not applied yet.
    pub version_wait: Duration,
    /// Silence after which a peer counts as lost.
    pub silence_limit: Duration,
    /// Time after which a peer that reads nothing counts as lost; also the limit for the handshake.
    pub stuck_limit: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".into(),
            node: "node".into(),
            connections: 4096,
            in_flight: 256,
            request_bytes: 64 << 20,
            reply_bytes: 64 << 20,
            outbox_bytes: 8 << 20,
            workers: 0,
            waiters: 64,
            committers: 64,
            version_wait: Duration::from_millis(100),
            silence_limit: Duration::from_secs(30),
            stuck_limit: Duration::from_secs(10),
        }
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Connections refused, or ended because of what the peer sent.
    pub refused: AtomicU64,
    /// Requests answered, including failures.
    pub requests: AtomicU64,
    /// Requests answered on the thread that read them.
    pub at_once: AtomicU64,
    /// Requests cancelled before they were answered.
    pub cancelled: AtomicU64,
}

struct Shared {
    config: ServerConfig,
    security: Security,
    graphs: Graphs,
    clock: Arc<dyn Clock>,
    working: Pool,
    stopping: AtomicBool,
    /// Number of this run. Cursors of another run are not valid (APL-2).
    run: u64,
    counters: Counters,
    open: Mutex<FxHashMap<u64, OpenLink>>,
    /// Number of threads of connections, including those that have not sent a hello.
    threads: AtomicUsize,
}

/// An open connection.
struct OpenLink {
    link: crate::link::Link,
    /// What its client asks for; `None`: it has sent no valid hello.
    served: Option<Arc<Served>>,
}

/// A server that runs until it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens, and answers requests for these graphs from then on.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if it cannot listen at the address or start a thread.
    #[expect(clippy::disallowed_methods, reason = "the network itself")]
    pub fn start(
        config: ServerConfig,
        security: Security,
        graphs: &Graphs,
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
            config,
            security,
            graphs: graphs.clone(),
            clock,
            stopping: AtomicBool::new(false),
            run: random.next_u64(),
            counters: Counters::default(),
            open: Mutex::default(),
            threads: AtomicUsize::new(0),
        });
        let of_acceptor = shared.clone();
        let acceptor = tidegraph_platform::spawn("remote-accept", move || accept(&of_acceptor, &listener))
            .map_err(unavailable)?;
        Ok(Self { shared, address, acceptor: Some(acceptor) })
    }

    /// Returns the address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Ends the connections of clients whose graph was removed from the server's [`Graphs`] or has other services since.
    pub fn end_stale_connections(&self) {
        for open in self.shared.open.lock().values() {
            if open.served.as_ref().is_some_and(|served| !self.shared.graphs.is_current(served)) {
                open.link.close();
            }
        }
    }

    /// Stops accepting and ends the open connections. Requests in progress are finished, but their answers are lost.
    #[expect(clippy::disallowed_methods, reason = "the network itself")]
    pub fn stop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // Wakes the acceptor.
        drop(TcpStream::connect_timeout(&self.reachable(), Duration::from_secs(1)));
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the thread was reported when it happened.
            let _ = acceptor.join();
        }
        for open in self.shared.open.lock().values() {
            open.link.close();
        }
    }

    /// Returns an address at which this process reaches itself.
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
                // Mostly too many open files, of which others may be closed meanwhile.
                tracing::warn!(%error, "cannot accept a connection");
                shared.clock.sleep(Duration::from_millis(50));
                continue;
            }
        };
        if shared.threads.load(Ordering::Relaxed) >= shared.config.connections + PENDING_CONNECTIONS {
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
            tracing::warn!(%error, "cannot start a thread for a connection");
        }
    }
}
