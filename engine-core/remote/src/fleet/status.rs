//! The health of several nodes, asked at the same time by one thread.

use super::FleetClient;
use crate::Error;
use crate::client::{Mailbox, status_of};
use std::sync::Arc;
use std::time::Duration;

impl FleetClient {
    /// Asks nodes for their health, as JSON, all at the same time. Waits at most `at_most` for their answers, and returns
    /// one for each address, in this order.
    ///
    /// An answer is an error if its node cannot be reached, does not answer in time, or answers with an error.
    #[must_use]
    pub fn statuses(&self, addresses: &[Arc<str>], at_most: Duration) -> Vec<Result<String, Error>> {
        let (clock, mailbox) = (&self.0.clock, Mailbox::new(self.0.network.clone()));
        let deadline = clock.now() + at_most;
        let left = || deadline.saturating_sub(clock.now());
        let mut answers: Vec<Result<String, Error>> = Vec::with_capacity(addresses.len());
        // A request whose ticket is dropped is cancelled.
        let mut tickets = Vec::with_capacity(addresses.len());
        for (tag, address) in (0..).zip(addresses) {
            let sent = self.node(address).start_status(&mailbox, tag, left());
            answers.push(Err(sent.as_ref().err().cloned().unwrap_or(Error::Overdue)));
            tickets.extend(sent.ok());
        }
        let (mut missing, mut replies) = (tickets.len(), Vec::new());
        while missing > 0 {
            mailbox.take(left(), &mut replies);
            if replies.is_empty() && clock.now() >= deadline {
                break;
            }
            for reply in replies.drain(..) {
                missing -= 1;
                if let Some(answer) = answers.get_mut(reply.tag as usize) {
                    *answer = reply.content.and_then(status_of);
                }
            }
        }
        answers
    }
}
