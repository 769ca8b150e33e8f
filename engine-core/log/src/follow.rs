//! Reading a log while somebody else writes it.

use crate::{Error, Record};
use std::time::Duration;
use tidegraph_types::{Epoch, Version};

/// Where a reader of the log stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The last version that it has; 0 for none.
    pub version: Version,
    /// Epoch of that version's record, or a lower one.
    pub epoch: Epoch,
}

/// Goes through the records of a shard in order, and on as they come.
pub trait Follower: Send {
    /// The next record, which has the version after the last one; `None` if none came for so long.
    ///
    /// [`Error::Trimmed`] when the log has forgotten it: whoever reads has to begin with a newer checkpoint. Any other
    /// error may pass: the same call may be made again.
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error>;

    /// Whether no more than about so many records are still to come, of those that are in the log now.
    fn is_near_end(&mut self, within: u64) -> Result<bool, Error>;
}
