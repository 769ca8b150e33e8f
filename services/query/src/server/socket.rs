//! The socket and the bodies of a connection, which report to its [`Progress`].
//!
//! A socket is plain or has TLS; nothing above it differs. [`spoken`] tells from its first bytes what is spoken on it.

use super::progress::Progress;
use axum::BoxError;
use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tidegraph_bolt::handshake::MAGIC;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A socket of either kind, with the bytes that were read to tell its protocol.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    ahead: Ahead,
}

/// Bytes that were read ahead.
pub(super) type Ahead = SmallVec<[u8; PREFACE.len()]>;

/// What every client of HTTP/2 sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spoken {
    Http1,
    Http2,
    Bolt,
}

/// Reads from a stream until its bytes say what the client speaks, and returns the bytes. `None`: the client is gone.
pub(super) async fn spoken(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<(Spoken, Ahead)>> {
    let mut ahead = Ahead::new();
    loop {
        let mut bytes = [0; PREFACE.len()];
        let room = PREFACE.len() - ahead.len();
        let read = stream.read(&mut bytes[..room]).await?;
        ahead.extend_from_slice(&bytes[..read]);
        let spoken = match ahead.first() {
            None => return Ok(None),
            Some(first) if *first == MAGIC[0] => Spoken::Bolt,
            Some(_) if ahead[..] == PREFACE[..] => Spoken::Http2,
            // No other client of HTTP sends more than three of its bytes.
            Some(_) if read > 0 && PREFACE.starts_with(&ahead) => continue,
            Some(_) => Spoken::Http1,
        };
        return Ok(Some((spoken, ahead)));
    }
}

impl Socket {
    pub(super) fn new(stream: Stream, ahead: Ahead) -> Self {
        Self { stream, ahead }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ahead.is_empty() && buffer.remaining() > 0 {
            let length = this.ahead.len().min(buffer.remaining());
            buffer.put_slice(&this.ahead[..length]);
            this.ahead.drain(..length);
            return Poll::Ready(Ok(()));
        }
        match &mut this.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A socket that reports reads and writes to a [`Progress`].
#[derive(Debug)]
pub(super) struct Watched {
    socket: Socket,
    progress: Arc<Progress>,
}

impl Watched {
    pub(super) fn new(socket: Socket, progress: Arc<Progress>) -> Self {
        Self { socket, progress }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.progress.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.progress.wrote(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.progress.wrote(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        if flushed.is_ready() {
            self.progress.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// The body of a request. Reading fails with [`super::BodyLate`] once the service stops waiting for the rest.
#[derive(Debug)]
pub(super) struct RequestBody {
    inner: Incoming,
    progress: Arc<Progress>,
    whole: WholeBody,
}

/// Whether the body of a request was read to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeBody(Arc<AtomicBool>);

impl WholeBody {
    pub(super) fn was_read(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl RequestBody {
    pub(super) fn new(inner: Incoming, progress: Arc<Progress>) -> Self {
        progress.requested(!inner.is_end_stream());
        let whole = WholeBody(Arc::new(inner.is_end_stream().into()));
        Self { inner, progress, whole }
    }

    /// Returns what tells, also later, whether the body was read to its end.
    pub(super) fn whole(&self) -> WholeBody {
        self.whole.clone()
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(late) = self.progress.late() {
            return Poll::Ready(Some(Err(late.into())));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() || self.inner.is_end_stream() {
            self.whole.0.store(true, Ordering::Relaxed);
            self.progress.received_body();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.progress.received_body();
    }
}

/// The body of an answer, which reports its end to a [`Progress`].
#[derive(Debug)]
pub(super) struct AnswerBody {
    inner: Body,
    progress: Arc<Progress>,
}

impl AnswerBody {
    pub(super) fn new(inner: Body, progress: Arc<Progress>) -> Self {
        Self { inner, progress }
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.progress.answered();
    }
}
