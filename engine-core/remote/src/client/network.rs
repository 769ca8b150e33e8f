//! Replacement for the network: a simulated world without sockets.

use crate::Error;
use bytes::Bytes;
use std::time::Duration;

/// Carries requests to nodes and answers back, and lets callers sleep meanwhile.
///
/// An implementation keeps the promises of the real network: a request reaches the run of the node that it was sent to,
/// or none, and only the first answer counts. It models no connections, limits or keep-alives.
pub trait Network: Send + Sync {
    /// Sends the bytes of a call to the node at an address. Gives the reply, or why there is none, to `answer`, perhaps
    /// never. Returns the number of the node's run.
    ///
    /// # Errors
    ///
    /// [`Error::Unreachable`] if the call was not sent.
    fn send(&self, address: &str, call: Vec<u8>, answer: Answer) -> Result<u64, Error>;

    /// Lets the caller sleep until an answer arrives for it, at most `at_most`.
    fn sleep(&self, at_most: Duration);
}

/// Receives the answer to a call.
pub struct Answer(Box<dyn FnOnce(Result<Bytes, Error>) + Send>);

impl Answer {
    pub(super) fn new(to: impl FnOnce(Result<Bytes, Error>) + Send + 'static) -> Self {
        Self(Box::new(to))
    }

    /// Gives the answer to the caller that waits for it.
    pub fn give(self, content: Result<Bytes, Error>) {
        (self.0)(content);
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
