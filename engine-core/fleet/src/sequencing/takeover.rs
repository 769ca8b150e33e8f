//! Recovery of a new sequencer: from the newest checkpoint and the log.

use crate::Error;
use std::fmt::Debug;
use tidegraph_log::{LogStore, Record};
use tidegraph_txn::{Applier, Recovered};
use tidegraph_types::{Epoch, Sid, Str, Token, Version};

/// The data that a sequencer takes from the newest checkpoint. The default is a graph without checkpoints.
#[derive(Clone, PartialEq, Debug)]
pub struct RecoveryBase {
    /// Version of the checkpoint; the log is read from the next one.
    pub version: Version,
    /// The epoch of that version.
    pub epoch: Epoch,
    /// The lowest SID that was neither handed out nor reserved (IDS-1).
    pub next_sid: Sid,
    /// The dictionary.
    pub tokens: Vec<(Token, Str)>,
}

impl Default for RecoveryBase {
    fn default() -> Self {
        Self { version: Version(0), epoch: Epoch(0), next_sid: Sid(1), tokens: Vec::new() }
    }
}

/// The checkpoints and the log of a graph. Each take-over reads them again, on one thread at a time.
pub trait RecoverySource: Send + Sync + Debug {
    /// Returns the recovery data of the newest checkpoint. All partitions must have a
    /// checkpoint of this version or a later one, because the log may be trimmed below it.
    ///
    /// # Errors
    /// Any kind, if the checkpoint cannot be found or read: the take-over fails, and the next candidate tries.
    fn base(&self) -> Result<RecoveryBase, Error>;

    /// Opens the log to write, under the epoch of the lease. A sequencer that does not know yet that it was deposed may
    /// have it open elsewhere.
    ///
    /// # Errors
    /// [`tidegraph_log::Error::Behind`] if the log is at this epoch or a higher one;
    /// other kinds if it cannot be opened.
    fn open_log(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error>;
}

/// Why a take-over failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum TakeoverError {
    /// The log is at this epoch or a higher one: the map is older than the log.
    #[error("the log is at epoch {0}, which is not below the lease's")]
    Behind(Epoch),
    /// The next candidate tries again with the next epoch: something may have been written under this one.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<tidegraph_log::Error> for TakeoverError {
    fn from(error: tidegraph_log::Error) -> Self {
        match error {
            tidegraph_log::Error::Behind { found, .. } => Self::Behind(found),
            error => Self::Failed(error.into()),
        }
    }
}

/// Reads the log up to its end, from `asked_again` versions below the checkpoint if the log still has them.
pub(super) fn recover(
    source: &dyn RecoverySource,
    epoch: Epoch,
    asked_again: u64,
) -> Result<(Box<dyn LogStore>, Recovered), TakeoverError> {
    let base = source.base()?;
    let mut log = source.open_log(epoch)?;
    let next = base.version.next();
    let first =
        log.first().map_or(next, |first| first.max(Version(next.0.saturating_sub(asked_again))).min(next));
    let mut recovered = Recovered {
        version: base.version,
        epoch: base.epoch,
        next_sid: base.next_sid,
        tokens: base.tokens,
        forgotten: Version(first.0.saturating_sub(1)),
        ..Recovered::default()
    };
    for record in log.read_from(first)? {
        recovered.note(&record?);
    }
    // The log of a restored graph may be empty.
    recovered.version = recovered.version.max(base.version);
    Ok((log, recovered))
}

/// Applies nothing, because storage nodes follow the log by themselves. A version is
/// published when its record is in the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishOnly;

impl Applier for PublishOnly {
    fn apply(&mut self, _record: &Record) {}
}
