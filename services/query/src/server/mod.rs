//! Serves connections: accepts them, tells protocols apart, limits their number, and closes those whose client is too
//! slow.
//!
//! Roles: [`serve`] accepts connections; [`Protocols`] is what they may speak; `Connections` counts them and closes one if there is no room for another;
//! `Progress` says what a connection waits for and until when; `Watched`, `RequestBody` and `AnswerBody` tell it what
//! hyper does.
//!
//! The first byte says which protocol a client speaks: no method of HTTP begins with Bolt's.
//!
//! Flow of a connection with HTTP: its client has [`Limits::head`] for the head of a request, then [`Limits::body`] for its body;
//! the handler runs, limited by admission; the client takes bytes of the answer at least every [`Limits::write`]; then
//! the connection may be idle for [`Limits::idle`]. Sessions of Bolt and of WebSocket, which a request of HTTP begins, report the
//! same phases by themselves. All of this happens in one task: a deadline passes in the same poll
//! that drives the protocol, so no lock is held across anything.
//!
//! What must never happen: a client that does nothing holds a descriptor for ever, or keeps another client out.

mod connections;
mod progress;
mod socket;
mod tls;

pub use progress::BodyLate;
pub(crate) use progress::Progress;
pub use tls::{CertificateError, CertificateFiles, Tls};

use crate::audit::Source;
use crate::http::Failure;
use crate::{bolt, session, websocket};
use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use connections::{Connections, Place};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use progress::Overdue;
use rustix::process::{Resource, getrlimit};
use socket::{AnswerBody, RequestBody, Socket, Watched};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegraph_bolt::handshake::MAGIC;
use tidegraph_types::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep_until};

/// Time that a client has for the rest of a body once the service stops.
const BODY_WHILE_STOPPING: Duration = Duration::from_secs(1);

/// Pause after the system refused a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Most bytes of a request that are read and dropped, for its client to see the answer.
const MOST_DISCARDED_BYTES: usize = 64 << 10;

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
    pub sessions: Option<Arc<session::Service>>,
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
        tokio::spawn(connection(socket, protocols.clone(), limits, place, stopped.clone()));
    }
    drop(listener);
    let _ = stopping.send(true);
    connections.all_closed().await;
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
    mut stopped: watch::Receiver<bool>,
) {
    let progress = place.progress().clone();
    let mut driven = pin!(speak(socket, protocols, limits, progress.clone(), stopped.clone()));
    let mut stop = pin!(async move { is_stopped(&mut stopped).await });
    let mut is_stopping = false;
    let mut timer = pin!(sleep_until(progress.next_check()));
    poll_fn(|context| {
        if !is_stopping && stop.as_mut().poll(context).is_ready() {
            is_stopping = true;
            progress.stop(BODY_WHILE_STOPPING);
        }
        loop {
            if driven.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            progress.is_polled_by(context);
            match progress.overdue() {
                Some(Overdue::Close) => return Poll::Ready(()),
                // The handler learns it from the body, and answers.
                Some(Overdue::Body) => continue,
                None => {}
            }
            if !fires(timer.as_mut(), &progress, context) {
                return Poll::Pending;
            }
        }
    })
    .await;
}

async fn is_stopped(stopped: &mut watch::Receiver<bool>) {
    // The sender is dropped only after it has sent, so the result does not matter.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Speaks the protocol that the client chose with its first byte, with TLS around it or without.
async fn speak(
    mut socket: TcpStream,
    protocols: Protocols,
    limits: Limits,
    progress: Arc<Progress>,
    stopped: watch::Receiver<bool>,
) {
    let mut first = [0];
    match socket.peek(&mut first).await {
        Ok(1..) => {}
        Ok(0) => return,
        Err(error) => return tracing::debug!(%error, "a connection ended"),
    }
    let address = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let source = Source { address: socket.peer_addr().ok(), ..Source::default() };
    let socket = match &protocols.tls {
        None => Socket::Plain(socket),
        Some(tls) if first[0] == tls::FIRST_BYTE => {
            let stream = async {
                let mut stream = tls.accept(socket).await?;
                // What is inside says the next protocol.
                stream.read_exact(&mut first).await?;
                io::Result::Ok(stream)
            };
            match stream.await {
                Ok(stream) => Socket::Tls { stream: Box::new(stream), first: Some(first[0]) },
                Err(error) => return tracing::debug!(%error, "a connection ended"),
            }
        }
        Some(_) => {
            if let Err(error) = refuse_plain(&mut socket, first[0]).await {
                tracing::debug!(%error, "a connection ended");
            }
            return;
        }
    };
    let is_bolt = first[0] == MAGIC[0];
    let socket = Watched::new(socket, progress.clone());
    let ended: Result<(), axum::BoxError> = match protocols.sessions {
        Some(service) if is_bolt => {
            let ended = bolt::serve(socket, &service, progress, limits.sessions, &address, source).await;
            ended.map_err(Into::into)
        }
        None if is_bolt => return,
        sessions => speak_http(socket, protocols.http, sessions, source, limits, progress, stopped).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Tells a client without TLS that the port wants it, as far as its protocol has words for that.
async fn refuse_plain(socket: &mut TcpStream, first: u8) -> io::Result<()> {
    if first == MAGIC[0] {
        return Ok(());
    }
    let failure = Failure::new(ErrorCode::BadRequest, "this port speaks TLS: use https://");
    let body = failure.into_response().into_body();
    let body = axum::body::to_bytes(body, MOST_DISCARDED_BYTES).await.map_err(io::Error::other)?;
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(&body).await?;
    socket.shutdown().await?;
    // A client that still sends would find the connection broken, and not see the answer.
    let mut rest = socket.take(MOST_DISCARDED_BYTES as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

/// Speaks HTTP, and then WebSocket if the client asks for that.
async fn speak_http(
    socket: Watched,
    router: Router,
    sessions: Option<Arc<session::Service>>,
    source: Source,
    limits: Limits,
    progress: Arc<Progress>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), axum::BoxError> {
    let router = TowerToHyperService::new(router);
    let handover = sessions.is_some().then(websocket::Handover::default);
    let (of_connection, taken) = (progress.clone(), handover.clone());
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(source);
        if let Some(handover) = &handover {
            request.extensions_mut().insert(handover.clone());
        }
        let request = request.map(|body| Body::new(RequestBody::new(body, progress.clone())));
        let (answer, progress) = (router.call(request), progress.clone());
        async move {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, progress)))
        }
    });
    let mut driven =
        pin!(http1::Builder::new().serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        biased;
        () = is_stopped(&mut stopped) => driven.as_mut().graceful_shutdown(),
        ended = driven.as_mut() => {
            ended?;
            let upgrade = taken.as_ref().and_then(websocket::Handover::take);
            return match (upgrade, sessions) {
                (Some((upgrade, client)), Some(service)) => {
                    let upgraded = upgrade.await?.downcast::<TokioIo<Watched>>();
                    let parts = upgraded.map_err(|_| "the connection is not the one that was upgraded")?;
                    let (socket, first) = (parts.io.into_inner(), parts.read_buf);
                    Ok(websocket::serve(socket, first, service, client, source, of_connection, limits).await?)
                }
                _ => Ok(()),
            };
        }
    }
    Ok(driven.await?)
}

/// Sets the timer to the next deadline, and returns whether that has come already.
fn fires(mut timer: Pin<&mut Sleep>, progress: &Progress, context: &mut Context<'_>) -> bool {
    let next = progress.next_check();
    // A timer that is too early costs one poll later; setting it at each step would cost more.
    if next < timer.deadline() || timer.is_elapsed() {
        timer.as_mut().reset(next);
    }
    timer.poll(context).is_ready()
}
