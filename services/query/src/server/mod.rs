//! Serves connections: accepts them, tells protocols apart, limits their number, and closes those whose client is too
//! slow.
//!
//! Roles: [`serve`] accepts connections; [`Protocols`] is what they may speak, and `speak` and `http2` speak it;
//! `Connections` counts them and closes one if there is no room for another; `drive` runs one to its end or its
//! deadline; `Progress` says what a connection waits for and until when; `Watched`, `RequestBody` and `AnswerBody`
//! tell it what hyper does.
//!
//! The first bytes say which protocol a client speaks: no method of HTTP begins with Bolt's first byte, and none is the
//! preface of HTTP/2.
//!
//! Flow of a connection with HTTP/1.1: its client has [`Limits::head`] for the head of a request, then
//! [`Limits::body`] for its body; the handler runs, limited by admission; the client takes bytes of the answer at
//! least every [`Limits::write`]; then the connection may be idle for [`Limits::idle`]. Sessions of Bolt and of
//! WebSocket, which a request of HTTP begins, report the same phases by themselves. All of this happens in one task:
//! a deadline passes in the same poll that drives the protocol, so no lock is held across anything. Requests of
//! HTTP/2 have tasks and deadlines of their own; the connection is idle while it has none.
//!
//! What must never happen: a client that does nothing holds a descriptor for ever, or keeps another client out.

mod connections;
mod drive;
mod http2;
mod progress;
mod socket;
mod speak;
mod tls;

pub use progress::BodyLate;
pub(crate) use progress::Progress;
pub use tls::{CertificateError, CertificateFiles, Tls};

use crate::session;
use axum::Router;
use connections::{Connections, Place};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use rustix::process::{Resource, getrlimit};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::metric;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Pause after the system refused a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Idle time after which the system asks a client whether it is there, time between two questions, and number of questions
/// without an answer after which the connection is lost.
const ASKED_AFTER: Duration = Duration::from_secs(120);
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(30);
const ASKED_TIMES: u32 = 4;

/// Largest number of connections if neither a flag nor the limit of descriptors says less.
const MOST_CONNECTIONS: usize = 10_000;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Number of open connections. For another one, the connection that has been idle longest is closed.
    pub connections: usize,
    /// Time to receive the head of a request, from the connection or from its first byte.
    pub head: Duration,
    /// Time to receive the body of a request.
    pub body: Duration,
    /// Time between an answer and the next request.
    pub idle: Duration,
    /// Time in which a client must take some bytes of an answer.
    pub write: Duration,
    /// Limits of protocols whose connections are sessions.
    pub sessions: session::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: connections_for(descriptors()),
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            // Longer than the 60 s after which AWS's load balancers close: the service must not close first.
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            sessions: session::Limits {
                // Drivers keep connections for an hour, and take it badly if one is closed before.
                idle: Duration::from_secs(4_000),
                paused: Duration::from_secs(120),
            },
        }
    }
}

/// Returns how many descriptors the process may have open.
#[must_use]
pub fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns how many connections fit into a limit of descriptors. A quarter, at least 32, is kept for files.
#[must_use]
pub fn connections_for(descriptors: u64) -> usize {
    let for_files = (descriptors / 4).max(32);
    let left = usize::try_from(descriptors.saturating_sub(for_files)).unwrap_or(usize::MAX);
    left.clamp(1, MOST_CONNECTIONS)
}

/// The protocols of a port.
#[derive(Clone)]
pub struct Protocols {
    /// HTTP.
    pub http: Router,
    /// Bolt, and Gremlin Server's protocol over WebSocket. `None`: neither is spoken.
    pub sessions: Option<session::Sessions>,
    /// TLS around all of them. `None`: they are spoken without.
    pub tls: Option<Tls>,
}

impl From<Router> for Protocols {
    fn from(http: Router) -> Self {
        Self { http, sessions: None, tls: None }
    }
}

/// Serves connections until `stop` completes. Then it closes idle ones, and returns once all others have ended.
pub async fn serve(
    listener: TcpListener,
    protocols: impl Into<Protocols>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let protocols = protocols.into();
    let connections = Connections::new(limits);
    let (stopping, stopped) = watch::channel(false);
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = next(&listener, &connections) => accepted,
        };
        let (socket, place) = accepted;
        // Answers are small: waiting for more bytes would only delay them.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "the socket option TCP_NODELAY could not be set");
        }
        if let Err(error) = keep_alive(&socket) {
            tracing::debug!(%error, "keepalive of a socket could not be set");
        }
        tokio::spawn(connection(socket, protocols.clone(), limits, place, stopped.clone()));
    }
    drop(listener);
    let _ = stopping.send(true);
    connections.all_closed().await;
}

/// Lets the system ask idle clients whether they are there. A balancer then sees a connection that is in use (AWS's cuts
/// one after 350 s, without a word to either side), and a client that has vanished loses its place.
fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    set_socket_keepalive(socket, true)?;
    set_tcp_keepidle(socket, ASKED_AFTER)?;
    set_tcp_keepintvl(socket, ASKED_AGAIN_AFTER)?;
    set_tcp_keepcnt(socket, ASKED_TIMES)?;
    Ok(())
}

/// Waits for a connection and for room for it.
#[expect(clippy::disallowed_methods, reason = "the HTTP edge: a pause before the system is asked again")]
async fn next(listener: &TcpListener, connections: &Arc<Connections>) -> (TcpStream, Place) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                connections.room().await;
                return (socket, connections.open());
            }
            Err(error) if is_of_the_client(error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted: an idle one is closed");
                connections.close_oldest();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_the_client(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

/// Serves one connection to its end.
async fn connection(
    socket: TcpStream,
    protocols: Protocols,
    limits: Limits,
    place: Place,
    stopped: watch::Receiver<bool>,
) {
    let progress = place.progress();
    let spoken = speak::speak(socket, protocols, limits, progress.clone(), stopped.clone());
    if let Some(reason) = drive::drive(spoken, progress, stopped).await {
        tracing::debug!(reason = reason.name(), "a connection was closed");
        metric::connection_closed(reason.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl};

    #[expect(clippy::disallowed_methods, reason = "the test has a port and its client")]
    #[tokio::test]
    async fn the_system_asks_idle_clients_before_a_balancer_cuts_them() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let connections = Connections::new(Limits::default());
        let (socket, _place) = next(&listener, &connections).await;
        assert!(!socket_keepalive(&socket).unwrap());
        keep_alive(&socket).unwrap();
        assert!(socket_keepalive(&socket).unwrap());
        assert!(tcp_keepidle(&socket).unwrap() < Duration::from_secs(350));
        assert_eq!(tcp_keepintvl(&socket).unwrap(), ASKED_AGAIN_AFTER);
        assert_eq!(tcp_keepcnt(&socket).unwrap(), ASKED_TIMES);
    }
}
