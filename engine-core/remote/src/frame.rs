//! Frames, which divide a connection into messages.
//!
//! A frame is a header of 20 bytes and a protobuf message; `docs/formats/remote.md` has the table. The checksum covers
//! the rest of the header and the message, so that a flipped bit is never read as data.
//!
//! Must never: allocate what a length field claims. A frame above the limit ends the connection before a byte of it is
//! read; below the limit, memory grows with the bytes that arrive.

use crate::Error;
use bytes::Bytes;
use std::io::{ErrorKind, Read};
use tidegraph_wire::Message;

/// First bytes of a connection, in both directions.
pub(crate) const MAGIC: [u8; 8] = *b"TIDEWIRE";
/// Length of a header in bytes.
pub(crate) const HEADER: usize = 20;
/// Size of the read buffer in bytes. Longer messages are read without a copy.
const BUFFER: usize = 32 << 10;
/// Bytes allocated for a message ahead of those that have arrived.
const AHEAD: usize = 256 << 10;

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    /// `Hello`: a client introduces itself.
    Hello = 1,
    /// `Welcome`: a server accepts the client.
    Welcome = 2,
    /// `Goodbye`: a server refuses the client, or ends the connection.
    Goodbye = 3,
    /// `Call`: a request.
    Call = 4,
    /// `Reply`: its answer.
    Reply = 5,
    /// No message: cancels the request of this number.
    Cancel = 6,
    /// No message: asks for a `Pong`.
    Ping = 7,
    /// No message: answers a `Ping`.
    Pong = 8,
}

impl FrameKind {
    fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Goodbye,
            4 => Self::Call,
            5 => Self::Reply,
            6 => Self::Cancel,
            7 => Self::Ping,
            8 => Self::Pong,
            _ => return None,
        })
    }
}

/// A frame that arrived.
#[derive(Debug)]
pub(crate) struct Frame {
    pub kind: FrameKind,
    /// Number of the request that the frame belongs to.
    pub id: u64,
    pub payload: Bytes,
}

/// Returns the bytes of a frame.
pub(crate) fn encode(kind: FrameKind, id: u64, message: &impl Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut out = Vec::with_capacity(HEADER + length);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&[kind as u8, 0, 0, 0]);
    message.encode(&mut out).expect("a vector has room for every message");
    finish(out)
}

/// Returns the bytes of a frame without a message.
pub(crate) fn empty(kind: FrameKind, id: u64) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out[8..16].copy_from_slice(&id.to_le_bytes());
    out[16] = kind as u8;
    finish(out)
}

fn finish(mut out: Vec<u8>) -> Vec<u8> {
    // Callers have compared the length of a message with a limit far below 4 GB.
    let length = (out.len() - HEADER) as u32;
    let sum = crc32c::crc32c(&out[8..]);
    out[..4].copy_from_slice(&length.to_le_bytes());
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The result of reading a frame.
#[derive(Debug)]
pub(crate) enum Next {
    /// A frame.
    Frame(Frame),
    /// Nothing arrived within the source's time-out. The bytes of an incomplete frame are kept.
    Idle,
    /// The peer closed the connection between two frames.
    End,
}

/// Reads frames from a source.
pub(crate) struct FrameReader<R> {
    source: R,
    limit: u32,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    partial: Option<Partial>,
}

/// A message whose header has arrived.
struct Partial {
    header: [u8; HEADER],
    payload: Vec<u8>,
    /// Number of bytes of `payload` that have arrived.
    filled: usize,
    length: usize,
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

impl<R: Read> FrameReader<R> {
    pub fn new(source: R, limit: u32) -> Self {
        Self { source, limit, buffer: vec![0; BUFFER].into(), start: 0, end: 0, partial: None }
    }

    /// Sets the most bytes that a message may have from here on.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Reads [`MAGIC`], the first bytes of a connection. Returns false if the source ends before.
    pub fn expect_magic(&mut self) -> Result<bool, Error> {
        while self.end - self.start < MAGIC.len() {
            match self.fill() {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) => return Err(Error::lost("peer", error)),
            }
        }
        let found = &self.buffer[self.start..self.start + MAGIC.len()];
        if found != MAGIC {
            return Err(Error::garbage(format!("it begins with {:?}", String::from_utf8_lossy(found))));
        }
        self.start += MAGIC.len();
        Ok(true)
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let read = read(&mut self.source, &mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }

    /// Returns the next frame, or that none has arrived yet.
    pub fn next(&mut self) -> Result<Next, Error> {
        if self.partial.is_none() {
            while self.end - self.start < HEADER {
                match self.fill() {
                    Ok(0) if self.end == self.start => return Ok(Next::End),
                    Ok(0) => return Err(Error::garbage("the connection ends inside a frame")),
                    Ok(_) => {}
                    Err(error) if is_idle(&error) => return Ok(Next::Idle),
                    Err(error) => return Err(Error::lost("peer", error)),
                }
            }
            self.begin()?;
        }
        let Some(mut partial) = self.partial.take() else { return Ok(Next::Idle) };
        while partial.filled < partial.length {
            if partial.filled == partial.payload.len() {
                let more = (partial.length - partial.filled).min(AHEAD);
                partial.payload.resize(partial.filled + more, 0);
            }
            match read(&mut self.source, &mut partial.payload[partial.filled..]) {
                Ok(0) => return Err(Error::garbage("the connection ends inside a frame")),
                Ok(count) => partial.filled += count,
                Err(error) if is_idle(&error) => {
                    self.partial = Some(partial);
                    return Ok(Next::Idle);
                }
                Err(error) => return Err(Error::lost("peer", error)),
            }
        }
        let header = &partial.header;
        let sum = crc32c::crc32c_append(crc32c::crc32c(&header[8..]), &partial.payload);
        if sum != word(&header[4..8]) {
            return Err(Error::garbage(format!(
                "a frame has checksum {sum:08x}, not {:08x}",
                word(&header[4..8])
            )));
        }
        let Some(kind) = FrameKind::of(header[16]) else {
            return Err(Error::garbage(format!("a frame has the unknown kind {}", header[16])));
        };
        let id = u64::from(word(&header[8..12])) | u64::from(word(&header[12..16])) << 32;
        Ok(Next::Frame(Frame { kind, id, payload: partial.payload.into() }))
    }

    /// Takes a header, and the bytes of its message that have arrived, out of the buffer.
    fn begin(&mut self) -> Result<(), Error> {
        let mut header = [0; HEADER];
        header.copy_from_slice(&self.buffer[self.start..self.start + HEADER]);
        let length = word(&header[..4]);
        if length > self.limit {
            return Err(Error::TooLarge { bytes: length.into(), limit: self.limit.into() });
        }
        self.start += HEADER;
        let length = length as usize;
        let here = length.min(self.end - self.start);
        let mut payload = Vec::with_capacity(length.min(AHEAD));
        payload.extend_from_slice(&self.buffer[self.start..self.start + here]);
        self.start += here;
        self.partial = Some(Partial { header, filled: here, payload, length });
        Ok(())
    }
}

fn read(source: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match source.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn is_idle(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegraph_wire::proto;

    /// A source that returns `at_once` bytes at a time, and sometimes reports that none have arrived yet.
    struct Drip<'b> {
        bytes: &'b [u8],
        at_once: usize,
        turn: usize,
    }

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.turn += 1;
            if self.turn.is_multiple_of(3) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = self.at_once.min(into.len()).min(self.bytes.len());
            into[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    fn hello(graph: &str) -> proto::Hello {
        proto::Hello { graph: graph.into(), ..Default::default() }
    }

    fn all(bytes: &[u8], at_once: usize, limit: u32) -> Result<Vec<(FrameKind, u64, Bytes)>, Error> {
        let mut reader = FrameReader::new(Drip { bytes, at_once, turn: 0 }, limit);
        let mut frames = Vec::new();
        loop {
            match reader.next()? {
                Next::Frame(frame) => frames.push((frame.kind, frame.id, frame.payload)),
                Next::Idle => {}
                Next::End => return Ok(frames),
            }
        }
    }

    #[test]
    fn frames_come_back_however_they_are_cut() {
        let long = "x".repeat(300_000);
        let mut bytes = encode(FrameKind::Call, 7, &hello("a"));
        bytes.extend(empty(FrameKind::Cancel, u64::MAX));
        bytes.extend(encode(FrameKind::Reply, 1 << 40, &hello(&long)));
        for at_once in [1, 7, 19, 1000, usize::MAX] {
            let frames = all(&bytes, at_once, 1 << 20).unwrap();
            let kinds: Vec<_> = frames.iter().map(|(kind, id, _)| (*kind, *id)).collect();
            assert_eq!(
                kinds,
                [(FrameKind::Call, 7), (FrameKind::Cancel, u64::MAX), (FrameKind::Reply, 1 << 40)]
            );
            assert_eq!(proto::Hello::decode(frames[2].2.clone()).unwrap().graph, long);
        }
    }

    #[test]
    fn cut_flipped_and_huge_frames_are_refused() {
        let bytes = encode(FrameKind::Call, 7, &hello("graph"));
        for end in 1..bytes.len() {
            assert!(matches!(all(&bytes[..end], usize::MAX, 1 << 20), Err(Error::Garbage(_))), "{end}");
        }
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[byte] ^= 1 << bit;
                assert!(all(&flipped, usize::MAX, 1 << 20).is_err(), "bit {bit} of byte {byte}");
            }
        }
        let result = all(&bytes, usize::MAX, 6);
        assert!(matches!(result, Err(Error::TooLarge { bytes: 7, limit: 6 })), "{result:?}");
        let unknown = finish({
            let mut frame = vec![0; HEADER];
            frame[16] = 99;
            frame
        });
        assert!(matches!(all(&unknown, usize::MAX, 1 << 20), Err(Error::Garbage(_))));
    }

    #[test]
    fn a_claim_takes_no_memory() {
        let mut bytes = empty(FrameKind::Call, 1);
        bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut reader = FrameReader::new(bytes.as_slice(), u32::MAX);
        assert!(reader.next().is_err());
        let mut reader = FrameReader::new(bytes.as_slice(), u32::MAX);
        reader.fill().unwrap();
        reader.begin().unwrap();
        assert!(reader.partial.is_some_and(|partial| partial.payload.capacity() <= AHEAD));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at_once in 1_usize..50) {
            let _ = all(&bytes, at_once, 1 << 16);
        }
    }
}
