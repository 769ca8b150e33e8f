//! Settings of the sequencer.

use serde::{Deserialize, Serialize};

/// Settings of the sequencer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequencerConfig {
    /// A group takes no further request when its records have about this many bytes.
    pub group_bytes: usize,
    /// How many recently written keys are remembered. With fewer, transactions that run long are refused more often.
    pub remembered_keys: usize,
    /// How many ids of requests are remembered, for those who ask again. An id takes about 70 bytes.
    pub remembered_requests: usize,
    /// How many SIDs are reserved in the log at a time for other processes. What is not used of them at a take-over is lost.
    pub sids_ahead: u64,
    /// Most mutations in one transaction.
    pub transaction_mutations: usize,
    /// Most bytes of one transaction, roughly as the log has them.
    pub transaction_bytes: usize,
}

impl Default for SequencerConfig {
    fn default() -> Self {
        Self {
            group_bytes: 8 << 20,
            remembered_keys: 1_000_000,
            remembered_requests: 100_000,
            sids_ahead: 1 << 16,
            transaction_mutations: 1_000_000,
            transaction_bytes: 64 << 20,
        }
    }
}
