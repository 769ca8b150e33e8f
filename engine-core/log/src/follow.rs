//! Reading a log that another process writes.

use crate::{Error, Record};
use std::time::Duration;
use tidegraph_types::{Epoch, Version};

/// The last record that a reader of the log has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// Version of that record; 0 for none.
    pub version: Version,
    /// Epoch of that record, or a lower one.
    pub epoch: Epoch,
}

/// Reads the records of a shard in order, and waits for new ones.
pub trait Follower: Send {
    /// Returns the record after the last one, or `None` if none arrives within `at_most`.
    ///
    /// # Errors
    /// [`Error::Trimmed`] if the log no longer has the record: the reader must start from a newer checkpoint.
    /// [`Error::Unsupported`] if the backend cannot be followed. Other errors may pass; the caller may call again.
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error>;

    /// Whether at most about `within` records of those now in the log are still unread.
    ///
    /// # Errors
    /// The same as [`Follower::next`], without [`Error::Trimmed`].
    fn is_near_end(&mut self, within: u64) -> Result<bool, Error>;
}
