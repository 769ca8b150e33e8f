//! HTTP/2: the requests of a connection beside each other.
//!
//! Roles: [`serve`] speaks the protocol, with hyper's; [`Requests`] runs each request in a task of its own, which has
//! the deadlines that a connection of HTTP/1.1 has; [`Answer`] gives its bytes in pieces, so that a client that takes
//! none of them holds no more than one.
//!
//! What must never happen: requests that their client resets as fast as it sends them cost more than those that it
//! waits for; an answer that its client does not take keeps its memory for longer than
//! [`Limits::write`](super::Limits::write).

use super::Protocols;
use super::drive::{drive, is_stopped};
use super::progress::{OpenRequest, Progress};
use super::socket::{RequestBody, Watched};
use crate::audit::Source;
use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::watch;

/// Most requests of a connection at once.
const MOST_REQUESTS: u32 = 100;
/// Most bytes of the names and values of a request's head. A longer query is sent with POST.
const MOST_HEAD_BYTES: u32 = 16 << 10;
/// Bytes that a client may send ahead of a request, and of all of its requests.
const WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Most requests that the client has reset before they began (CVE-2023-44487).
const MOST_PENDING_RESETS: usize = 20;
/// Most requests that the server has reset because the client broke the protocol.
const MOST_ERRORS: usize = 100;
/// Bytes of an answer that are handed over at once.
const PIECE_BYTES: usize = 16 << 10;

/// Speaks HTTP/2 until either side ends the connection.
///
/// # Errors
///
/// If the connection breaks, or the client breaks the protocol.
pub(super) async fn serve(
    socket: Watched,
    protocols: Protocols,
    source: Source,
    progress: Arc<Progress>,
    mut stopped: watch::Receiver<bool>,
) -> hyper::Result<()> {
    progress.multiplexes();
    let requests = Requests { begun: Arc::default(), stopped: stopped.clone() };
    let (begun, connection) = (requests.begun.clone(), progress.clone());
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(source);
        let open = connection.begin();
        let progress = open.progress().clone();
        let request = request.map(|body| Body::new(RequestBody::new(body, progress.clone())));
        let router = protocols.http.clone();
        let answer = TowerToHyperService::new(router).call(request);
        // The next future that hyper hands over is this request's.
        *begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
        async move {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Answer::new(body, progress)))
        }
    });
    let driven = http2::Builder::new(requests)
        .max_concurrent_streams(MOST_REQUESTS)
        .max_header_list_size(MOST_HEAD_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_pending_accept_reset_streams(MOST_PENDING_RESETS)
        .max_local_error_reset_streams(MOST_ERRORS)
        .serve_connection(TokioIo::new(socket), service);
    let mut driven = pin!(driven);
    let mut stop = pin!(async move { is_stopped(&mut stopped).await });
    let mut said_goodbye = false;
    poll_fn(|context| {
        if !said_goodbye && (progress.says_goodbye() || stop.as_mut().poll(context).is_ready()) {
            said_goodbye = true;
            driven.as_mut().graceful_shutdown();
        }
        driven.as_mut().poll(context)
    })
    .await
}

/// Runs the requests of a connection.
#[derive(Clone, Debug)]
struct Requests {
    /// The request whose handler was called last, until its future is handed over.
    begun: Arc<Mutex<Option<OpenRequest>>>,
    stopped: watch::Receiver<bool>,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Requests {
    fn execute(&self, future: F) {
        let open = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stopped = self.stopped.clone();
        tokio::spawn(async move {
            match open {
                // A future that is dropped resets its request.
                Some(open) => _ = drive(future, open.progress(), stopped).await,
                None => future.await,
            }
        });
    }
}

/// The body of an answer in pieces. It is asked for the next piece once the client had room for the one before.
#[derive(Debug)]
struct Answer {
    inner: Body,
    rest: Bytes,
    has_ended: bool,
    progress: Arc<Progress>,
}

impl Answer {
    fn new(inner: Body, progress: Arc<Progress>) -> Self {
        Self { inner, rest: Bytes::new(), has_ended: false, progress }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.progress.wrote(true);
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => {
                        self.has_ended = true;
                        return Poll::Ready(Some(Ok(trailers)));
                    }
                },
                ended => {
                    self.has_ended = ended.is_none();
                    return Poll::Ready(ended);
                }
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        self.progress.wrote(false);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.has_ended || self.is_end_stream() {
            self.progress.answered();
        }
    }
}
