//! One connection: its messages in, its messages out, and the deadlines that both have.

use crate::admission::{Admission, RequestMemory};
use crate::server::{Limits, Progress};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes, error::CapacityError};

/// Room for bytes that are read at once.
const READ_BYTES: usize = 4 << 10;
/// Messages are collected up to this length before they are sent.
const WRITE_BYTES: usize = 16 << 10;
/// An incomplete message up to this length is not counted: the number of connections limits how many there are.
const SMALL_MESSAGE_BYTES: usize = 16 << 10;
/// Longest message of a client that has not proved itself.
const UNPROVEN_BYTES: usize = 64 << 10;

/// What the server waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    /// The client has not been let in.
    Outside,
    /// The client may ask, or not.
    Idle,
    /// The client has an open transaction.
    Open,
    /// Requests run, and the client may send more.
    Running,
}

/// A message of a client.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    pub(super) is_text: bool,
    /// The memory of the bytes.
    pub(super) memory: RequestMemory,
}

/// Counts the bytes that are read.
struct Counted<S> {
    socket: S,
    read: usize,
    progress: Arc<Progress>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(late) = self.progress.late() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, late)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        self.read += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

pub(super) struct Connection<S> {
    socket: WebSocketStream<Counted<S>>,
    progress: Arc<Progress>,
    limits: Limits,
    /// Memory of the message that is being read.
    memory: RequestMemory,
    is_long: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) async fn new(
        socket: S,
        first: Bytes,
        message_bytes: usize,
        progress: Arc<Progress>,
        limits: Limits,
    ) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(WRITE_BYTES)
            .max_message_size(Some(message_bytes))
            .max_frame_size(Some(message_bytes));
        let socket = Counted { socket, read: first.len(), progress: progress.clone() };
        let socket =
            WebSocketStream::from_partially_read(socket, first.to_vec(), Role::Server, Some(config)).await;
        Self { socket, progress, limits, memory: RequestMemory::default(), is_long: false }
    }

    /// Waits for a message. `None`: the client has ended the connection, or has been told why the service ends it. The
    /// future may be dropped and made again.
    pub(super) async fn receive(
        &mut self,
        waits: Waits,
        admission: &Admission,
    ) -> io::Result<Option<Received>> {
        self.rest(waits);
        loop {
            let next = poll_fn(|context| {
                let polled = self.socket.poll_next_unpin(context);
                match polled {
                    Poll::Ready(message) => Poll::Ready(Next::Message(message)),
                    Poll::Pending => self.began(waits, admission).map_or(Poll::Pending, Poll::Ready),
                }
            });
            let message = match next.await {
                Next::Message(None) => return Ok(None),
                Next::Message(Some(Ok(message))) => message,
                Next::Message(Some(Err(error))) => return self.broken(error).await,
                Next::Refused(code, reason) => {
                    self.end(code, reason).await?;
                    return Ok(None);
                }
            };
            let (bytes, is_text) = match message {
                Message::Text(text) => (Bytes::from(text), true),
                Message::Binary(bytes) => (bytes, false),
                Message::Close(_) => {
                    // The answer to it is sent with this.
                    let _ = self.socket.flush().await;
                    return Ok(None);
                }
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                    self.socket.flush().await.map_err(io::Error::other)?;
                    self.forget();
                    self.rest(waits);
                    continue;
                }
            };
            if waits == Waits::Outside && bytes.len() > UNPROVEN_BYTES {
                self.end(CloseCode::Size, "the first messages of a client are short").await?;
                return Ok(None);
            }
            let mut memory = std::mem::take(&mut self.memory);
            if memory.grow_to(bytes.len(), admission).is_err() {
                self.end(CloseCode::Again, "all queries together leave no memory for the message").await?;
                return Ok(None);
            }
            self.forget();
            self.progress.requested(false);
            return Ok(Some(Received { bytes, is_text, memory }));
        }
    }

    /// Reports what the server waits for.
    fn rest(&self, waits: Waits) {
        match waits {
            Waits::Running => {}
            // A message began while requests ran.
            _ if self.socket.get_ref().read > 0 => self.progress.requested(true),
            // Drivers connect before they have something to ask.
            Waits::Outside => self.progress.rests(self.limits.idle),
            Waits::Idle => self.progress.rests(self.limits.sessions.idle),
            Waits::Open => self.progress.pauses(self.limits.sessions.paused),
        }
    }

    /// Forgets the bytes of a message that is complete. Bytes of the next one may have been read with it: they are
    /// fewer than are read at once, and not counted.
    fn forget(&mut self) {
        self.socket.get_mut().read = 0;
        self.memory = RequestMemory::default();
        self.is_long = false;
    }

    /// Counts the bytes of a message that has begun.
    fn began(&mut self, waits: Waits, admission: &Admission) -> Option<Next> {
        let begun = self.socket.get_ref().read;
        if begun <= SMALL_MESSAGE_BYTES {
            return None;
        }
        if waits == Waits::Outside && begun > UNPROVEN_BYTES {
            return Some(Next::Refused(CloseCode::Size, "the first messages of a client are short"));
        }
        if waits != Waits::Running && !std::mem::replace(&mut self.is_long, true) {
            self.progress.requested(true);
        }
        let refused = self.memory.grow_to(begun, admission).is_err();
        refused.then_some(Next::Refused(
            CloseCode::Again,
            "all queries together leave no memory for the message",
        ))
    }

    async fn broken(&mut self, error: Error) -> io::Result<Option<Received>> {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => Ok(None),
            Error::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                self.end(CloseCode::Size, &format!("messages have at most {max_size} bytes")).await?;
                Ok(None)
            }
            Error::Utf8(_) => {
                self.end(CloseCode::Invalid, "a text message is not valid UTF-8").await?;
                Ok(None)
            }
            Error::Io(error) => Err(error),
            error => {
                let _ = self.end(CloseCode::Protocol, "").await;
                Err(io::Error::other(error))
            }
        }
    }

    /// Sends a message, which may wait in a buffer for others.
    pub(super) async fn send(&mut self, message: Bytes, is_text: bool) -> io::Result<()> {
        let message = if is_text {
            Message::Text(Utf8Bytes::try_from(message).map_err(io::Error::other)?)
        } else {
            Message::Binary(message)
        };
        self.socket.feed(message).await.map_err(io::Error::other)
    }

    /// Sends what waits in the buffer.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().await.map_err(io::Error::other)
    }

    /// Tells the client why the connection ends, and ends it.
    pub(super) async fn end(&mut self, code: CloseCode, reason: &str) -> io::Result<()> {
        let frame = CloseFrame { code, reason: Utf8Bytes::from(reason) };
        // A client that is gone need not be told.
        let _ = self.socket.close(Some(frame)).await;
        Ok(())
    }
}

/// What came, or what must be said.
enum Next {
    Message(Option<Result<Message, Error>>),
    Refused(CloseCode, &'static str),
}
