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
            transaction_mutations: 1_000_000,
            transaction_bytes: 64 << 20,
        }
    }
}
