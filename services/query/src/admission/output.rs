//! The bytes of an answer, up to a limit.

use std::io;

/// A buffer that a protocol writes an answer to. Writing beyond its limit fails with `FileTooLarge`.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    limit: usize,
}

impl Output {
    pub(super) fn up_to(limit: usize) -> Self {
        Self { bytes: Vec::with_capacity(1_024), limit }
    }

    pub(super) fn unlimited() -> Self {
        Self::up_to(usize::MAX)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
