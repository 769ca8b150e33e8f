//! From what a new sequencer goes on.

use std::fmt::Debug;
use tidegraph_log::{LogStore, Record};
use tidegraph_txn::{Applier, Recovered};
use tidegraph_types::{Epoch, Sid, Str, Token, Version};

/// What the newest checkpoint says that a sequencer has to know; the default is a graph without checkpoints.
#[derive(Clone, PartialEq, Debug)]
pub struct Base {
    /// Its version; the log is read from the next one on.
    pub version: Version,
    /// The epoch of that version.
    pub epoch: Epoch,
    /// The lowest SID that was not handed out, nor reserved.
    pub next_sid: Sid,
    /// The dictionary.
    pub tokens: Vec<(Token, Str)>,
}

impl Default for Base {
    fn default() -> Self {
        Self { version: Version(0), epoch: Epoch(0), next_sid: Sid(1), tokens: Vec::new() }
    }
}

/// Where checkpoints and the log of a graph are. Asked anew at each take-over, by one thread at a time.
pub trait Takeover: Send + Sync + Debug {
    /// What the newest checkpoint says. All partitions must have one of this version or a later one, since the log may be trimmed
    /// below it.
    fn base(&self) -> Result<Base, String>;

    /// Opens the log to write to it, under the epoch of the lease. It may be open elsewhere, by a sequencer that does not know yet that
    /// it was deposed. [`tidegraph_log::Error::Behind`] says that the log is at that epoch already, or a higher one.
    fn open_log(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error>;
}

/// Why the log could not be read up to its end.
#[derive(Debug)]
pub(super) enum Unread {
    /// The log is at this epoch or a higher one.
    Behind(Epoch),
    /// Anything else.
    Failed(String),
}

impl From<tidegraph_log::Error> for Unread {
    fn from(error: tidegraph_log::Error) -> Self {
        match error {
            tidegraph_log::Error::Behind { found, .. } => Self::Behind(found),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Reads up to the end of the log, beginning `asked_again` versions below the checkpoint if they are still there.
pub(super) fn recover(
    takeover: &dyn Takeover,
    epoch: Epoch,
    asked_again: u64,
) -> Result<(Box<dyn LogStore>, Recovered), Unread> {
    let base = takeover.base().map_err(Unread::Failed)?;
    let mut log = takeover.open_log(epoch)?;
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
    // An empty log of a graph that was restored.
    recovered.version = recovered.version.max(base.version);
    Ok((log, recovered))
}

/// Applies nothing: storage nodes follow the log by themselves. A version is published when it is in the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publish;

impl Applier for Publish {
    fn apply(&mut self, _record: &Record) {}
}
