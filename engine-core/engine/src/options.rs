//! What an embedded database is set to.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Settings of a database. What is fixed when the graph is made is read back from its directory later.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Where it lives; `None`: in memory, gone with the process.
    pub data_dir: Option<PathBuf>,
    /// `None`: a write is answered when the disk has it. Otherwise when the system has it, and the log is synced so many
    /// milliseconds later: a process that dies loses nothing, a power failure may take the writes of that time and of one
    /// sync, newest first. Loads and checkpoints are synced in any case.
    pub sync_log_every_ms: Option<u64>,
    /// Most memory that the graph may take; `None`: whatever it needs. Properties beyond it are moved to a file in
    /// `spill_dir`; vertices, edges and indexes stay in memory, and where they alone are more, writes are refused.
    pub memory_budget_bytes: Option<u64>,
    /// Local directory of the file for properties that do not fit; `None`: in `data_dir`, or with the system's temporary
    /// files.
    pub spill_dir: Option<PathBuf>,
    /// Number of partitions of a new graph: a power of two.
    pub partitions: u16,
    /// Longest time that a query may run.
    pub query_timeout_ms: u64,
    /// Most memory that one query may hold.
    pub query_memory_bytes: u64,
    /// Most rows that one answer may have.
    pub query_rows: u64,
    /// How often a request is run again after a conflict before the client is told.
    pub conflict_retries: u32,
    /// A checkpoint is written after this many bytes of log, or as many as the last one wrote again, if that is more.
    pub checkpoint_log_bytes: u64,
    /// Checkpoints that are kept.
    pub checkpoints_kept: usize,
    /// Plans that are kept for texts seen before.
    pub cached_plans: usize,
    /// Bits of the id hash that are used; 64 unless a test wants collisions.
    pub hash_bits: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data_dir: None,
            sync_log_every_ms: None,
            memory_budget_bytes: None,
            spill_dir: None,
            partitions: 8,
            query_timeout_ms: 120_000,
            query_memory_bytes: 1 << 30,
            query_rows: 10_000_000,
            conflict_retries: 16,
            checkpoint_log_bytes: 256 << 20,
            checkpoints_kept: 2,
            cached_plans: 1_024,
            hash_bits: 64,
        }
    }
}
