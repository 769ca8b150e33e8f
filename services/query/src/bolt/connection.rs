//! One connection: its messages in, its replies out, and the deadlines that both have.

use crate::admission::{Admission, RequestMemory};
use crate::server::Progress;
use crate::session::Limits;
use bytes::{Buf, Bytes, BytesMut};
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use tidegraph_bolt::handshake::{Answer, Choice, GREETING_BYTES, answer, choice};
use tidegraph_bolt::{Message, Messages, Reply, Request, Version};
use tidegraph_engine::PoolExhausted;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Room for bytes that are read at once, at first. It doubles while a client sends more.
const READ_BYTES: usize = 4 << 10;
/// Most room for bytes that are read at once.
const MOST_READ_BYTES: usize = 64 << 10;
/// Bytes that a client may send ahead while a query runs.
const AHEAD_BYTES: usize = 64 << 10;
/// An incomplete message up to this length is not counted: the number of connections limits how many there are.
const SMALL_MESSAGE_BYTES: usize = 16 << 10;
/// Replies are collected up to this length, and copied up to it.
const OUTPUT_BYTES: usize = 16 << 10;

/// What the server waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    /// The client has not been let in.
    Outside,
    /// The client may begin something, or not.
    Idle,
    /// The client has an open answer or an open transaction.
    Open,
}

/// What came.
#[derive(Debug)]
pub(super) enum Received {
    /// A message, with the memory that it takes.
    Message(Bytes),
    /// A message over the limit of its length, which was dropped.
    TooLong,
    /// A message for which there was no memory, and which was dropped.
    NoMemory(PoolExhausted),
    /// The client closed the connection.
    Closed,
}

/// What ends a query early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interruption {
    /// The client sent RESET.
    Reset,
    /// The client is gone.
    Closed,
}

pub(super) struct Connection<S> {
    socket: S,
    progress: Arc<Progress>,
    limits: Limits,
    messages: Messages,
    output: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn new(socket: S, progress: Arc<Progress>, limits: Limits) -> Self {
        Self { socket, progress, limits, messages: Messages::default(), output: vec![] }
    }

    /// Agrees on a version; `None` if there is none in common.
    pub(super) async fn handshake(&mut self) -> io::Result<Option<Version>> {
        let mut greeting = [0; GREETING_BYTES];
        self.socket.read_exact(&mut greeting).await?;
        match answer(greeting) {
            Answer::Chosen(version, bytes) => {
                self.socket.write_all(&bytes).await?;
                self.socket.flush().await?;
                Ok(Some(version))
            }
            Answer::Manifest(bytes) => {
                self.socket.write_all(&bytes).await?;
                self.socket.flush().await?;
                loop {
                    match choice(&self.messages.buffer) {
                        Choice::Chosen(version, taken) => {
                            self.messages.buffer.advance(taken);
                            return Ok(Some(version));
                        }
                        Choice::Wrong => return Err(io::ErrorKind::InvalidData.into()),
                        Choice::Incomplete if self.read().await? == 0 => return Ok(None),
                        Choice::Incomplete => {}
                    }
                }
            }
            Answer::NoVersion(bytes) => {
                self.socket.write_all(&bytes).await?;
                self.socket.shutdown().await?;
                Ok(None)
            }
            Answer::NotBolt => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Waits for a message of at most `limit` bytes. Sends all replies before it waits.
    pub(super) async fn receive(
        &mut self,
        limit: usize,
        waits: Waits,
        admission: &Admission,
        memory: &mut RequestMemory,
    ) -> io::Result<Received> {
        let mut refused = None;
        let mut is_long = false;
        loop {
            match (self.messages.next(limit), refused) {
                (Some(message), _) if waits == Waits::Outside => return Ok(received(message, refused)),
                (Some(message), _) => {
                    self.progress.requested(false);
                    return Ok(received(message, refused));
                }
                (None, None) => {}
                (None, Some(_)) => self.messages.skip(),
            }
            self.flush().await?;
            let begun = self.messages.begun_bytes();
            let is_skipping = self.messages.is_skipping();
            if begun == 0 && !is_skipping {
                match waits {
                    Waits::Outside => {}
                    Waits::Idle => self.progress.rests(self.limits.idle),
                    Waits::Open => self.progress.pauses(self.limits.paused),
                }
            } else if (begun > SMALL_MESSAGE_BYTES || is_skipping) && waits != Waits::Outside {
                if !std::mem::replace(&mut is_long, true) {
                    self.progress.requested(true);
                }
                refused = refused.or(memory.grow_to(begun, admission).err());
            }
            if self.read().await? == 0 {
                return Ok(Received::Closed);
            }
        }
    }

    /// Reads some bytes, and returns how many.
    async fn read(&mut self) -> io::Result<usize> {
        let buffer = &mut self.messages.buffer;
        if buffer.is_empty() {
            // What a long message left is given back: most connections wait, and many at once.
            *buffer = BytesMut::with_capacity(READ_BYTES);
        } else if buffer.capacity() == buffer.len() {
            buffer.reserve(buffer.len().clamp(READ_BYTES, MOST_READ_BYTES));
        }
        let mut read = pin!(self.socket.read_buf(buffer));
        poll_fn(|context| match self.progress.late() {
            Some(late) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, late))),
            None => Pin::new(&mut read).poll(context),
        })
        .await
    }

    /// Waits, while a query runs, for what ends it early.
    pub(super) async fn interrupted(&mut self) -> Interruption {
        loop {
            if self.messages.holds(&Request::RESET) {
                return Interruption::Reset;
            }
            if self.messages.begun_bytes() > AHEAD_BYTES {
                // A client that sends so much ahead learns of its RESET once the query ends.
                pending::<()>().await;
            }
            if !matches!(self.read().await, Ok(1..)) {
                return Interruption::Closed;
            }
        }
    }

    /// Adds a reply. It is sent before the server waits for the next message.
    pub(super) fn reply(&mut self, reply: &Reply) {
        reply.write(&mut self.output);
    }

    /// Sends whole messages that were written before.
    pub(super) async fn send(&mut self, messages: Bytes) -> io::Result<()> {
        if self.output.len() + messages.len() <= OUTPUT_BYTES {
            self.output.extend_from_slice(&messages);
            return Ok(());
        }
        self.write_output().await?;
        self.socket.write_all(&messages).await
    }

    async fn write_output(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.output).await?;
        self.output.clear();
        self.output.shrink_to(OUTPUT_BYTES);
        Ok(())
    }

    /// Sends all replies.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            self.write_output().await?;
        }
        self.socket.flush().await
    }

    /// Sends all replies and closes the connection.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.socket.shutdown().await
    }
}

fn received(message: Message, refused: Option<PoolExhausted>) -> Received {
    match (message, refused) {
        (Message::Whole(bytes), _) => Received::Message(bytes),
        (Message::Skipped, Some(refused)) => Received::NoMemory(refused),
        (Message::Skipped, None) => Received::TooLong,
    }
}
