//! Something that stands for the network: a simulated world, in which nobody waits on sockets.

use crate::Error;
use bytes::Bytes;
use std::time::Duration;

/// Carries requests to nodes and answers back, and lets callers sleep meanwhile.
///
/// What stands for the network stands for its promises, too: a request reaches the run of the node that it was sent to or
/// none, and of its answer the first counts. Connections, their limits and keep-alives are not in it.
pub trait Network: Send + Sync {
    /// Sends the bytes of a call to the node at an address; its reply, or why there is none, goes to `answer`, perhaps never.
    /// Answers the number of the node's run.
    fn send(&self, address: &str, call: Vec<u8>, answer: Answer) -> Result<u64, Error>;

    /// The caller sleeps until an answer has come to him, but at most so long.
    fn sleep(&self, at_most: Duration);
}

/// Where an answer goes.
pub struct Answer(Box<dyn FnOnce(Result<Bytes, Error>) + Send>);

impl Answer {
    pub(super) fn new(to: impl FnOnce(Result<Bytes, Error>) + Send + 'static) -> Self {
        Self(Box::new(to))
    }

    /// Gives it to who waits for it.
    pub fn give(self, content: Result<Bytes, Error>) {
        (self.0)(content);
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
