//! The envelope that the log, segments and checkpoints share: length, checksum, payload.
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | length of the payload, little endian, at least 1 |
//! | 4–7 | CRC-32C of the payload, little endian |
//! | 8– | payload |
//!
//! An empty payload is not allowed: eight zero bytes would be a valid frame, and a crash leaves zeros in a file whose
//! length reached the disk before its data.
//!
//! Must never: trust a length before the bytes were read. The reader's buffer grows with the bytes that arrive.

use crate::Error;
use std::io::Read;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 8;

/// Longest payload that is written, and that a reader accepts by default: 256 MiB.
pub const MAX_PAYLOAD_BYTES: usize = 256 << 20;

/// Bytes by which the buffer of a reader grows ahead of those that have arrived.
const READ_STEP_BYTES: usize = 1 << 20;

/// Appends one frame to `out`.
///
/// # Errors
///
/// [`Error::EmptyFrame`] or [`Error::TooLong`] if the payload is empty or longer than [`MAX_PAYLOAD_BYTES`]. `out` is
/// then unchanged.
pub fn write_frame(out: &mut Vec<u8>, payload: &[u8]) -> Result<(), Error> {
    write_frame_with(out, |out| out.extend_from_slice(payload))
}

/// Appends one frame whose payload `fill` appends to `out`: without the copy that [`write_frame`] makes.
///
/// # Errors
///
/// The same as [`write_frame`].
pub fn write_frame_with(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    fill(out);
    let length = out.len().saturating_sub(start + HEADER_BYTES);
    if length == 0 || length > MAX_PAYLOAD_BYTES {
        out.truncate(start);
        return Err(match length {
            0 => Error::EmptyFrame { offset: 0 },
            _ => Error::TooLong { offset: 0, length: length as u64, max: MAX_PAYLOAD_BYTES as u64 },
        });
    }
    let crc = crc32c::crc32c(&out[start + HEADER_BYTES..]);
    out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    out[start + 4..start + HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Returns length and checksum from the header of a frame.
#[must_use]
pub fn parse_header(header: [u8; HEADER_BYTES]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = header;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

/// Whether a checksum is the expected one. A build for fuzzing takes every checksum: bytes that a fuzzer changed would
/// not get further than here otherwise.
#[must_use]
pub fn is_intact(found: u32, expected: u32) -> bool {
    cfg!(fuzzing) || found == expected
}

/// Reads frames one after the other. Wrap a file in a `BufReader` if its reads are expensive.
#[derive(Debug)]
pub struct FrameReader<R> {
    inner: R,
    buffer: Vec<u8>,
    offset: u64,
    max_payload_bytes: usize,
}

impl<R: Read> FrameReader<R> {
    /// Makes a reader whose offsets count from 0.
    pub fn new(inner: R) -> Self {
        Self::at(inner, 0)
    }

    /// Makes a reader whose first byte is byte `offset` of the file.
    pub fn at(inner: R, offset: u64) -> Self {
        Self { inner, buffer: Vec::new(), offset, max_payload_bytes: MAX_PAYLOAD_BYTES }
    }

    /// Sets the longest payload that the reader accepts.
    #[must_use]
    pub fn max_payload_bytes(mut self, bytes: usize) -> Self {
        self.max_payload_bytes = bytes;
        self
    }

    /// Returns the offset of the next frame; after an error, of the damaged frame.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the payload of the next frame, or `None` if the source ends between two frames.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::BadChecksum`], [`Error::TooLong`] or [`Error::EmptyFrame`] for a damaged frame;
    /// [`Error::Io`] if the source fails. The reader cannot continue after an error, because it is inside a frame.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Error> {
        let offset = self.offset;
        self.buffer.clear();
        let found = self.fill(HEADER_BYTES)?;
        if found == 0 {
            return Ok(None);
        }
        if found < HEADER_BYTES {
            return Err(Error::Truncated { offset, found: found as u64, expected: HEADER_BYTES as u64 });
        }
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&self.buffer);
        let (length, expected) = parse_header(header);
        if length == 0 {
            return Err(Error::EmptyFrame { offset });
        }
        let max = self.max_payload_bytes as u64;
        if u64::from(length) > max {
            return Err(Error::TooLong { offset, length: u64::from(length), max });
        }
        self.buffer.clear();
        let found = self.fill(length as usize)?;
        if found < length as usize {
            return Err(Error::Truncated {
                offset,
                found: (HEADER_BYTES + found) as u64,
                expected: HEADER_BYTES as u64 + u64::from(length),
            });
        }
        let crc = crc32c::crc32c(&self.buffer);
        if !is_intact(crc, expected) {
            return Err(Error::BadChecksum { offset, expected, found: crc });
        }
        self.offset += HEADER_BYTES as u64 + u64::from(length);
        Ok(Some(&self.buffer))
    }

    /// Reads `wanted` bytes into the empty buffer, or fewer at the end of the source.
    fn fill(&mut self, wanted: usize) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < wanted {
            let step = (wanted - filled).min(READ_STEP_BYTES);
            self.buffer.resize(filled + step, 0);
            match self.inner.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { offset: self.offset + filled as u64, source }),
            }
        }
        self.buffer.truncate(filled);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for payload in payloads {
            write_frame(&mut out, payload).unwrap();
        }
        out
    }

    #[test]
    fn bytes_are_as_documented() {
        let mut expected = vec![3, 0, 0, 0];
        expected.extend(crc32c::crc32c(b"abc").to_le_bytes());
        expected.extend(b"abc");
        assert_eq!(frames(&[b"abc"]), expected);
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        let good = frames(&[b"first", b"second"]);
        for cut in 14..good.len() {
            let mut reader = FrameReader::new(&good[..cut]);
            assert_eq!(reader.next_frame().unwrap(), Some(b"first".as_slice()));
            assert!(matches!(reader.next_frame(), Err(Error::Truncated { offset: 13, .. })), "{cut}");
        }
        for byte in 17..good.len() {
            let mut bad = good.clone();
            bad[byte] ^= 0x10;
            let mut reader = FrameReader::new(bad.as_slice());
            reader.next_frame().unwrap();
            assert!(matches!(reader.next_frame(), Err(Error::BadChecksum { offset: 13, .. })), "{byte}");
        }
    }

    #[test]
    fn zeros_are_not_frames() {
        assert!(matches!(
            FrameReader::new([0; 64].as_slice()).next_frame(),
            Err(Error::EmptyFrame { offset: 0 })
        ));
        let mut out = vec![7];
        assert!(matches!(write_frame(&mut out, b""), Err(Error::EmptyFrame { .. })));
        assert_eq!(out, [7]);
    }

    #[test]
    fn a_long_length_is_refused_before_it_is_read() {
        let mut reader = FrameReader::at([0xff; 8].as_slice(), 100).max_payload_bytes(10);
        assert!(matches!(
            reader.next_frame(),
            Err(Error::TooLong { offset: 100, length: 0xffff_ffff, max: 10 })
        ));
        // Within the limit, memory grows with the bytes that arrive.
        let mut header = (200_u32 << 20).to_le_bytes().to_vec();
        header.extend([0; 20]);
        let mut reader = FrameReader::new(header.as_slice());
        assert!(matches!(reader.next_frame(), Err(Error::Truncated { found: 24, .. })));
        assert!(reader.buffer.capacity() <= 2 * READ_STEP_BYTES);
    }

    proptest! {
        #[test]
        fn any_frames_come_back(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..10)) {
            let bytes = frames(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let mut reader = FrameReader::new(bytes.as_slice());
            for payload in &payloads {
                prop_assert_eq!(reader.next_frame().unwrap(), Some(payload.as_slice()));
            }
            prop_assert_eq!(reader.next_frame().unwrap(), None);
            prop_assert_eq!(reader.offset(), bytes.len() as u64);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::new(bytes.as_slice());
            while let Ok(Some(_)) = reader.next_frame() {}
        }
    }
}
