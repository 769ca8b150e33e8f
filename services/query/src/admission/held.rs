//! What an answer holds until it is sent.

use super::slots::Slot;
use bytes::Bytes;
use std::sync::Arc;
use tidegraph_engine::Reservation;

/// The slot of an answer. Dropping it lets the next query run.
#[derive(Debug, Default)]
pub(super) struct Held {
    _slot: Option<Slot>,
}

impl Held {
    pub(super) fn of(slot: Slot) -> Self {
        Self { _slot: Some(slot) }
    }
}

/// The bytes of an answer with what they hold.
struct HeldBytes {
    bytes: Vec<u8>,
    _memory: Arc<Reservation>,
    _held: Held,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns bytes that keep memory and slot until the last reference to them is dropped. The HTTP server drops it when
/// the socket has taken the last byte, or when the connection is closed.
pub(super) fn until_sent(bytes: Vec<u8>, memory: Arc<Reservation>, held: Held) -> Bytes {
    Bytes::from_owner(HeldBytes { bytes, _memory: memory, _held: held })
}
