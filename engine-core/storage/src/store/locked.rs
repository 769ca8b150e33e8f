//! The partitions of one piece of a frontier, locked for reading.

use super::Store;
use crate::partition::Partition;
use crossbeam_epoch::{Guard, pin};
use parking_lot::RwLockReadGuard;
use smallvec::{SmallVec, smallvec};
use tidegraph_apl::{At, Error};
use tidegraph_types::{Gui, PartitionCount};

/// Rows of a frontier that are answered under one taking of locks, so that a writer gets in between.
pub(super) const PIECE: usize = 1024;
/// Rows that are looked up together, so that their cache misses overlap.
pub(super) const GROUP: usize = 16;

pub(super) struct Locked<'s> {
    guards: SmallVec<[Option<RwLockReadGuard<'s, Partition>>; 16]>,
    count: PartitionCount,
    /// What the partitions retire is kept for as long as this lives.
    pub epoch: Guard,
}

impl Store {
    /// Locks the partitions of some GUIs, in order of their numbers (which rules out a deadlock), and checks that each
    /// can still answer at the version.
    pub(super) fn lock(&self, at: At, guis: impl Iterator<Item = Gui>) -> Result<Locked<'_>, Error> {
        let count = self.config.partitions;
        let total = usize::from(count.get());
        let mut wanted: SmallVec<[bool; 64]> = smallvec![false; total];
        let mut missing = total;
        for gui in guis {
            let wanted = &mut wanted[usize::from(count.of(gui).0)];
            missing -= usize::from(!std::mem::replace(wanted, true));
            if missing == 0 {
                break;
            }
        }
        let mut guards = SmallVec::with_capacity(total);
        for (partition, wanted) in self.partitions.iter().zip(wanted) {
            guards.push(if wanted { Some(read_at(partition.read(), at)?) } else { None });
        }
        Ok(Locked { guards, count, epoch: pin() })
    }

    /// Locks one partition.
    pub(super) fn lock_one(&self, at: At, number: usize) -> Result<RwLockReadGuard<'_, Partition>, Error> {
        read_at(self.partitions[number].read(), at)
    }
}

fn read_at(guard: RwLockReadGuard<'_, Partition>, at: At) -> Result<RwLockReadGuard<'_, Partition>, Error> {
    let oldest = guard.reclaimed();
    if at.version < oldest {
        return Err(Error::TooOld { oldest, asked: at.version });
    }
    Ok(guard)
}

impl Locked<'_> {
    /// The partition of a GUI, which was among those that the locks were taken for.
    #[inline]
    pub fn of(&self, gui: Gui) -> &Partition {
        self.guards[usize::from(self.count.of(gui).0)]
            .as_deref()
            .expect("the partition of every row of the piece is locked")
    }
}
