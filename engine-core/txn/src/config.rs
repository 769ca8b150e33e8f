//! Settings of the sequencer.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of the sequencer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequencerConfig {
    /// A group takes no further request once its records have about this many bytes.
    pub group_bytes: usize,
    /// Number of recently written keys to remember. With fewer, long transactions are refused more often.
    pub remembered_keys: usize,
    /// Maximum number of recently written keys to remember, while transactions were refused because a key was forgotten. A
    /// key takes about 60 bytes.
    pub most_remembered_keys: usize,
    /// Number of request ids to remember, for callers that ask again. An id takes about 70 bytes.
    pub remembered_requests: usize,
    /// Number of SIDs to reserve in the log at a time for other processes. A take-over loses those that were not used.
    pub sids_ahead: u64,
    /// Maximum number of mutations in one transaction.
    pub transaction_mutations: usize,
    /// Maximum number of bytes of one transaction, about as many as it takes in the log.
    pub transaction_bytes: usize,
    /// How long a commit waits for the turn of a bulk load. Zero: it is refused at once.
    pub turn_wait: Duration,
    /// Maximum number of commits that wait for the turn of a bulk load; further ones are refused at once. Each may take
    /// a thread of its caller.
    pub turn_waiting: usize,
}

impl Default for SequencerConfig {
    fn default() -> Self {
        Self {
            group_bytes: 8 << 20,
            remembered_keys: 1_000_000,
            most_remembered_keys: 8_000_000,
            remembered_requests: 100_000,
            sids_ahead: 1 << 16,
            transaction_mutations: 1_000_000,
            transaction_bytes: 64 << 20,
            turn_wait: Duration::from_secs(3),
            turn_waiting: 32,
        }
    }
}
