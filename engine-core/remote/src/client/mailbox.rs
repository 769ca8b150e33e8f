//! Mailbox of one caller: receives the replies to its requests, from all connections.

use super::Network;
use crate::Error;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// The reply to a request, or why there is none.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The caller's number for the request.
    pub tag: u32,
    pub content: Result<Bytes, Error>,
}

pub(crate) struct Mailbox {
    replies: Mutex<Vec<Reply>>,
    arrived: Condvar,
    /// The network whose clock the caller sleeps by; `None`: the machine's.
    network: Option<Arc<dyn Network>>,
}

impl Mailbox {
    pub fn new(network: Option<Arc<dyn Network>>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::default(), arrived: Condvar::new(), network })
    }

    pub fn put(&self, reply: Reply) {
        let mut replies = self.replies.lock();
        replies.push(reply);
        // At most one thread waits. It is woken after the lock is released, so that it need not wait for the lock.
        drop(replies);
        self.arrived.notify_one();
    }

    /// Moves all replies to the end of `out`. Waits for the first one, at most `at_most`.
    pub fn take(&self, at_most: Duration, out: &mut Vec<Reply>) {
        let mut replies = self.replies.lock();
        if replies.is_empty()
            && let Some(network) = &self.network
        {
            drop(replies);
            network.sleep(at_most);
            replies = self.replies.lock();
        } else if replies.is_empty() {
            // After a time-out, `out` stays as it is.
            let _ = self.arrived.wait_for(&mut replies, at_most);
        }
        out.append(&mut replies);
    }
}
