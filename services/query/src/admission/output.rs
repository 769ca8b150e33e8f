//! The bytes of an answer, up to a limit.

use super::held::{Held, until_sent};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use tidegraph_engine::{PoolExhausted, Reservation};

/// A buffer that a protocol writes an answer to. Writing beyond its limit fails with `FileTooLarge`; writing beyond the
/// memory of all queries fails with an error of [`PoolExhausted`].
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    limit: usize,
    memory: Arc<Reservation>,
    is_committed: bool,
}

impl Output {
    /// Makes an output for at most `limit` bytes.
    pub(super) fn up_to(limit: usize, memory: Arc<Reservation>) -> Self {
        Self { bytes: Vec::new(), limit, memory, is_committed: false }
    }

    /// Makes an output without a limit of its own. The answer to a write that is committed takes the memory that it
    /// needs: refusing it now would say that nothing was written.
    pub(super) fn of(memory: Arc<Reservation>, is_committed: bool) -> Self {
        Self { bytes: Vec::new(), limit: usize::MAX, memory, is_committed }
    }

    /// Returns the number of bytes that were written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn into_bytes(self, held: Held) -> Bytes {
        until_sent(self.bytes, self.memory, held)
    }

    /// Makes room for more bytes, and charges all of the buffer before it grows.
    fn grow(&mut self, more: usize) -> io::Result<()> {
        let needed = self.bytes.len() + more;
        let capacity = needed.max(2 * self.bytes.capacity()).max(1_024);
        if self.is_committed {
            self.memory.force_to(capacity as u64);
        } else {
            self.memory.grow_to(capacity as u64).map_err(io::Error::other)?;
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }
}

/// Returns the reason if a write failed because the memory of all queries is used up.
pub(super) fn exhausted(error: &io::Error) -> Option<PoolExhausted> {
    error.get_ref()?.downcast_ref::<PoolExhausted>().copied()
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
        if bytes.len() > self.bytes.capacity() - self.bytes.len() {
            self.grow(bytes.len())?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
