//! Chunks: a message is a sequence of chunks with a length of two bytes each; an empty chunk ends it.

use bytes::{Buf, Bytes, BytesMut};
use std::io;

/// Length of a chunk's header.
const HEADER_BYTES: usize = 2;
/// Longest chunk.
const CHUNK_BYTES: usize = u16::MAX as usize;

/// A message as it arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Its bytes.
    Whole(Bytes),
    /// It was longer than the limit, or [`Messages::skip`] gave it up. Its bytes were dropped.
    Skipped,
}

/// Takes messages out of the bytes of a connection.
#[derive(Debug, Default)]
pub struct Messages {
    /// Bytes that have arrived and are not yet part of a message.
    pub buffer: BytesMut,
    /// The message whose chunks arrive.
    begun: BytesMut,
    is_skipping: bool,
}

impl Messages {
    /// Returns the next message that has arrived whole; `None` if more bytes must arrive. A message of more than `limit`
    /// bytes is dropped as it arrives.
    pub fn next(&mut self, limit: usize) -> Option<Message> {
        loop {
            let header = self.buffer.first_chunk::<HEADER_BYTES>()?;
            let length = usize::from(u16::from_be_bytes(*header));
            if self.buffer.len() < HEADER_BYTES + length {
                return None;
            }
            self.buffer.advance(HEADER_BYTES);
            if length > 0 {
                self.take(length, limit);
                continue;
            }
            if std::mem::take(&mut self.is_skipping) {
                return Some(Message::Skipped);
            }
            // An empty message only keeps the connection alive.
            if !self.begun.is_empty() {
                return Some(Message::Whole(std::mem::take(&mut self.begun).freeze()));
            }
        }
    }

    fn take(&mut self, length: usize, limit: usize) {
        let chunk = self.buffer.split_to(length);
        if self.begun.len() + length > limit {
            self.skip();
        } else if !self.is_skipping && self.begun.is_empty() {
            self.begun = chunk;
        } else if !self.is_skipping {
            self.begun.extend_from_slice(&chunk);
        }
    }

    /// Drops the message whose chunks arrive, and the rest of it when it arrives.
    pub fn skip(&mut self) {
        self.begun = BytesMut::new();
        self.is_skipping = true;
    }

    /// Whether the message whose chunks arrive is being dropped.
    #[must_use]
    pub fn is_skipping(&self) -> bool {
        self.is_skipping
    }

    /// Returns how many bytes of an incomplete message have arrived and are kept.
    #[must_use]
    pub fn begun_bytes(&self) -> usize {
        self.begun.len() + self.buffer.len()
    }

    /// Whether a whole message of one chunk with these bytes has arrived, behind others perhaps.
    #[must_use]
    pub fn holds(&self, message: &[u8]) -> bool {
        let mut rest = &self.buffer[..];
        let mut is_first = self.begun.is_empty();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let length = usize::from(u16::from_be_bytes(*header));
            let Some((chunk, after)) = after.split_at_checked(length) else { return false };
            if is_first && chunk == message && after.starts_with(&[0, 0]) {
                return true;
            }
            (is_first, rest) = (length == 0, after);
        }
        false
    }
}

/// Writes a message in chunks.
///
/// # Errors
///
/// If the output refuses the bytes.
pub fn write_chunks(message: &[u8], output: &mut impl io::Write) -> io::Result<()> {
    for chunk in message.chunks(CHUNK_BYTES) {
        output.write_all(&(chunk.len() as u16).to_be_bytes())?;
        output.write_all(chunk)?;
    }
    output.write_all(&[0, 0])
}

/// Returns how many of `most` messages `bytes` begin with, and how long they are together. The bytes must be whole
/// messages, as [`write_chunks`] makes them.
#[must_use]
pub fn end_of_messages(bytes: &[u8], most: u64) -> (u64, usize) {
    let (mut messages, mut end) = (0, 0);
    while messages < most
        && let Some(header) = bytes.get(end..).and_then(<[u8]>::first_chunk::<HEADER_BYTES>)
    {
        let length = usize::from(u16::from_be_bytes(*header));
        end += HEADER_BYTES + length;
        messages += u64::from(length == 0);
    }
    (messages, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(messages: &mut Messages, limit: usize) -> Vec<Message> {
        std::iter::from_fn(|| messages.next(limit)).collect()
    }

    fn chunks(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        write_chunks(message, &mut bytes).expect("a vector takes all bytes");
        bytes
    }

    proptest! {
        #[test]
        fn messages_arrive_whole_however_their_bytes_are_cut(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200_000), 1..4),
            piece in 1_usize..70_000,
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(|message| chunks(message)).collect();
            let mut messages = Messages::default();
            let mut received = vec![];
            for piece in bytes.chunks(piece) {
                messages.buffer.extend_from_slice(piece);
                received.extend(all(&mut messages, usize::MAX));
            }
            let expected: Vec<_> = sent.iter().map(|message| Message::Whole(message.clone().into())).collect();
            prop_assert_eq!(received, expected);
            prop_assert_eq!(messages.begun_bytes(), 0);
            let (count, end) = end_of_messages(&bytes, u64::MAX);
            prop_assert_eq!((count, end), (sent.len() as u64, bytes.len()));
            let (_, first) = end_of_messages(&bytes, 1);
            prop_assert_eq!(&bytes[..first], &chunks(&sent[0])[..]);
        }
    }

    #[test]
    fn a_long_message_is_skipped_and_the_next_one_is_read() {
        let mut messages = Messages::default();
        for _ in 0..10 {
            messages.buffer.extend_from_slice(&[0, 100]);
            messages.buffer.extend_from_slice(&[7; 100]);
            assert_eq!(messages.next(250), None);
            assert!(messages.begun_bytes() <= 250);
        }
        messages.buffer.extend_from_slice(&[0, 0]);
        messages.buffer.extend_from_slice(&chunks(&[1, 2]));
        assert_eq!(all(&mut messages, 250), [Message::Skipped, Message::Whole(Bytes::from_static(&[1, 2]))]);
    }

    #[test]
    fn empty_messages_only_keep_the_connection_alive() {
        let mut messages = Messages::default();
        messages.buffer.extend_from_slice(&[0, 0, 0, 0, 0, 1, 9, 0, 0, 0, 0]);
        assert_eq!(all(&mut messages, 10), [Message::Whole(Bytes::from_static(&[9]))]);
    }

    #[test]
    fn a_message_behind_others_is_found() {
        let mut messages = Messages::default();
        messages.buffer.extend_from_slice(&chunks(&[0xB0, 0x0E]));
        // The bytes of the message inside of another one.
        messages.buffer.extend_from_slice(&chunks(&[0, 2, 0xB0, 0x0F, 0, 0]));
        messages.buffer.extend_from_slice(&[0, 1, 5, 0, 2, 0xB0, 0x0F, 0, 0]);
        assert!(!messages.holds(&[0xB0, 0x0F]));
        messages.buffer.extend_from_slice(&[0, 2, 0xB0]);
        assert!(!messages.holds(&[0xB0, 0x0F]));
        messages.buffer.extend_from_slice(&[0x0F, 0, 0]);
        assert!(messages.holds(&[0xB0, 0x0F]));
    }
}
