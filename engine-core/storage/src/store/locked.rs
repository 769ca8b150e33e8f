//! The partitions as one piece of a frontier reads them.

use super::Store;
use crate::partition::Partition;
use crate::properties::spill::passing::Passing;
use crossbeam_epoch::{Guard, pin};
use tidegraph_apl::{At, Error};
use tidegraph_types::{Gui, PartitionCount};

/// Rows of a frontier that are answered under one epoch guard, so that what writers replaced can be freed in between.
pub(super) const PIECE: usize = 1024;
/// The same while there are pages in the file.
pub(super) const PIECE_OF_FILE: usize = 16;
/// Rows that are looked up together, so that their cache misses overlap.
pub(super) const GROUP: usize = 16;

/// A look at the partitions. Nobody waits for it: only the freeing of memory is put off while it lives.
pub(super) struct Reading<'s> {
    partitions: &'s [Partition],
    count: PartitionCount,
    /// Goes before the guard.
    _passing: Passing,
    pub epoch: Guard,
}

impl Store {
    /// Rows that are answered under one epoch guard now: few where pages come from a file, because what goes to make room
    /// for them is not free before the guard is gone.
    pub(super) fn piece(&self) -> usize {
        if self.room.spilled() > 0 { PIECE_OF_FILE } else { PIECE }
    }

    /// Begins to read. See [`Self::still_readable`] for the end.
    pub(super) fn reading(&self) -> Reading<'_> {
        let epoch = pin();
        Reading {
            partitions: &self.partitions,
            count: self.config.partitions,
            _passing: Passing::new(),
            epoch,
        }
    }

    /// Whether everything that was read so far was as it was at a version: nothing of it was forgotten meanwhile.
    /// A reader without a pin may be overtaken; what it read is thrown away then.
    ///
    /// The same goes for one that met a page which could not be read.
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
    /// The partition of a GUI.
    #[inline]
    pub fn of(&self, gui: Gui) -> &'s Partition {
        &self.partitions[usize::from(self.count.of(gui).0)]
    }
}
