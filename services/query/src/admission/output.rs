//! The bytes of an answer, or of a part of it, up to a limit.

use super::held::{Held, until_sent};
use bytes::Bytes;
use std::io::{self, Write};
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
    /// Up to where the bytes may be sent without those that follow.
    cut: usize,
    /// Where each message ends, in a protocol whose answers are several.
    ends: Vec<usize>,
}

impl Output {
    /// Makes an output for at most `limit` bytes.
    pub(super) fn up_to(limit: usize, memory: Arc<Reservation>) -> Self {
        Self { bytes: Vec::new(), limit, memory, is_committed: false, cut: 0, ends: vec![] }
    }

    /// Makes an output without a limit of its own. The answer to a write that is committed takes the memory that it
    /// needs: refusing it now would say that nothing was written.
    pub(super) fn of(memory: Arc<Reservation>, is_committed: bool) -> Self {
        Self { bytes: Vec::new(), limit: usize::MAX, memory, is_committed, cut: 0, ends: vec![] }
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

    /// Allows that the bytes so far are sent without those that follow.
    pub fn cut(&mut self) {
        self.cut = self.bytes.len();
    }

    /// Ends a message, and allows to send it.
    pub fn end_message(&mut self) {
        self.cut();
        self.ends.push(self.cut);
    }

    /// Returns the number of bytes since the last [`Output::cut`].
    #[must_use]
    pub fn begun(&self) -> usize {
        self.bytes.len() - self.cut
    }

    /// Replaces bytes that were written after the last [`Output::cut`], from `at` bytes after it on.
    pub fn correct(&mut self, at: usize, bytes: &[u8]) {
        let at = self.cut + at;
        if let Some(old) = self.bytes.get_mut(at..at + bytes.len()) {
            old.copy_from_slice(bytes);
        }
    }

    /// Returns the memory that the bytes take.
    pub(super) fn memory(&self) -> &Reservation {
        &self.memory
    }

    /// Returns the number of bytes that may be sent.
    pub(super) fn ready(&self) -> usize {
        self.cut
    }

    /// Returns the bytes that may be sent, and keeps the rest. `memory` is for the rest.
    ///
    /// # Errors
    ///
    /// If the rest finds no room in it.
    pub(super) fn split(&mut self, memory: Arc<Reservation>) -> io::Result<Part> {
        let mut rest = Self::of(memory, self.is_committed);
        rest.write_all(self.bytes.get(self.cut..).unwrap_or_default())?;
        let mut ready = std::mem::replace(self, rest);
        ready.bytes.truncate(ready.cut);
        Ok(ready.into_part(Held::default()))
    }

    pub(super) fn into_part(self, held: Held) -> Part {
        Part { bytes: until_sent(self.bytes, self.memory, held), ends: self.ends }
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

/// Bytes of an answer. They hold their memory, and their slot if they have one, until they are dropped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// The bytes that the protocol's writer produced.
    pub bytes: Bytes,
    /// Where each message ends, in a protocol whose answers are several.
    pub ends: Vec<usize>,
}

/// Returns the reason if a write failed because the memory of all queries is used up.
pub(super) fn exhausted(error: &io::Error) -> Option<PoolExhausted> {
    error.get_ref()?.downcast_ref::<PoolExhausted>().copied()
}

impl Write for Output {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_engine::MemoryPool;

    #[test]
    fn a_part_ends_at_a_cut_and_the_rest_goes_on() {
        let pool = MemoryPool::new(1 << 20);
        let mut output = Output::of(pool.reserve(), false);
        output.write_all(b"first.").unwrap();
        output.end_message();
        output.write_all(b"sec?nd").unwrap();
        assert_eq!((output.ready(), output.begun()), (6, 6));
        let part = output.split(pool.reserve()).unwrap();
        assert_eq!((&part.bytes[..], &part.ends[..]), (&b"first."[..], &[6][..]));
        drop(part);
        output.correct(3, b"o");
        output.end_message();
        let part = output.split(pool.reserve()).unwrap();
        assert_eq!((&part.bytes[..], &part.ends[..]), (&b"second"[..], &[6][..]));
        assert_eq!(output.len(), 0);
        assert!(pool.used_bytes() > 0);
        drop((part, output));
        assert_eq!(pool.used_bytes(), 0);
    }
}
