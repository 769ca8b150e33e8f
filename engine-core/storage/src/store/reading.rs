//! An epoch guard together with the partitions: what one piece of a frontier is read through.

use super::Generation;
use crate::partition::Partition;
use crate::properties::spill::last_page::LastPageScope;
use crossbeam_epoch::{Guard, pin};
use tidegraph_apl::{At, Error};
use tidegraph_types::{Gui, PartitionCount};

/// Rows of a frontier that are answered under one epoch guard. Between two pieces, what writers replaced can be
/// freed.
pub(super) const PIECE: usize = 1024;
/// The same while pages are spilled.
pub(super) const PIECE_OF_FILE: usize = 16;
/// Rows that are looked up together, so that their cache misses overlap.
pub(super) const GROUP: usize = 16;

/// Access to the partitions under one epoch guard. No thread waits for it; while it exists, replaced memory is not
/// freed.
pub(super) struct Reading<'s> {
    partitions: &'s [Partition],
    count: PartitionCount,
    /// Dropped before the guard.
    _last_page: LastPageScope,
    pub epoch: Guard,
}

impl Generation {
    /// Returns how many rows to answer under one epoch guard. Fewer while pages are spilled, because evicted pages
    /// are freed only after the guard.
    pub(super) fn piece(&self) -> usize {
        if self.page_memory.spilled() > 0 { PIECE_OF_FILE } else { PIECE }
    }

    /// Starts to read. [`Self::still_readable`] ends it.
    pub(super) fn reading(&self) -> Reading<'_> {
        let epoch = pin();
        Reading {
            partitions: &self.partitions,
            count: self.config.partitions,
            _last_page: LastPageScope::new(),
            epoch,
        }
    }

    /// STO-1: checks that nothing of the version was reclaimed while it was read. A reader without a pin may be
    /// overtaken; its answer is then discarded.
    ///
    /// # Errors
    ///
    /// [`Error::TooOld`] if the version may have been reclaimed; [`Error::Unavailable`] or [`Error::Corrupt`] if a
    /// spilled page could not be read back.
    pub(super) fn still_readable(&self, at: At) -> Result<(), Error> {
        self.check_lost()?;
        let oldest = self.forgotten();
        if at.version < oldest {
            return Err(Error::TooOld { oldest, asked: at.version });
        }
        Ok(())
    }
}

impl<'s> Reading<'s> {
    /// Returns the partition of a GUI.
    #[inline]
    pub fn of(&self, gui: Gui) -> &'s Partition {
        &self.partitions[usize::from(self.count.of(gui).0)]
    }
}
