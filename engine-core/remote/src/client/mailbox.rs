//! Where the answers to one caller's requests arrive, whatever connections they come by.

use super::Network;
use crate::Error;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// An answer, or why there is none.
#[derive(Debug)]
pub(crate) struct Letter {
    /// What the caller called the request.
    pub tag: u32,
    pub content: Result<Bytes, Error>,
}

pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    arrived: Condvar,
    /// By which its owner sleeps, where that is not the machine's.
    network: Option<Arc<dyn Network>>,
}

impl Mailbox {
    pub fn new(network: Option<Arc<dyn Network>>) -> Arc<Self> {
        Arc::new(Self { letters: Mutex::default(), arrived: Condvar::new(), network })
    }

    pub fn put(&self, letter: Letter) {
        let mut letters = self.letters.lock();
        letters.push(letter);
        // There is one who waits, at most. Woken without the lock, it need not wait for it.
        drop(letters);
        self.arrived.notify_one();
    }

    /// Moves what has arrived to the end of `out`; waits for it, but at most so long.
    pub fn take(&self, at_most: Duration, out: &mut Vec<Letter>) {
        let mut letters = self.letters.lock();
        if letters.is_empty()
            && let Some(network) = &self.network
        {
            drop(letters);
            network.sleep(at_most);
            letters = self.letters.lock();
        } else if letters.is_empty() {
            // Whether it timed out is seen by who looks at `out`.
            let _ = self.arrived.wait_for(&mut letters, at_most);
        }
        out.append(&mut letters);
    }
}
