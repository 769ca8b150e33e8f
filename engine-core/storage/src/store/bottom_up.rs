//! One bottom-up step of a search over all partitions, some slots under each epoch
//! guard. With the feature `searches` only.
//!
//! As in scans, a call ends with a cursor when its answer is full or when it has looked at many records.

use super::Generation;
use crate::partition::{BottomUpRequest, BottomUpStep, EdgePosition};
use crossbeam_epoch::pin;
use tidegraph_apl::searches::{BottomUp, Explored, Parents, Searches};
use tidegraph_apl::{At, Error, ScanCursor};

/// Entries and vertices to look at under one epoch guard.
const PIECE: usize = 1 << 16;
/// Entries and vertices that one call looks at: some milliseconds of work.
const MOST: usize = 1 << 20;
/// The position of a cursor is a slot, followed by a position in the lists of its vertex in this many bits.
const PLACE_BITS: u32 = 33;

impl Searches for Generation {
    fn bottom_up(
        &self,
        at: At,
        step: &BottomUp<'_>,
        explored: &mut Explored,
        from: ScanCursor,
        out: &mut Parents,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        explored.partitions.resize_with(self.partitions.len(), Vec::new);
        let limit = (out.len() + out.rest.len()).saturating_add(step.edges.max_rows.max(1) as usize);
        let want = BottomUpRequest::new(step, at.version, limit);
        let next = if step.inverse {
            self.some_slots::<true>(&want, limit, explored, from, out)
        } else {
            self.some_slots::<false>(&want, limit, explored, from, out)
        };
        self.still_readable(at)?;
        Ok(next)
    }
}

impl Generation {
    fn some_slots<const INVERSE: bool>(
        &self,
        want: &BottomUpRequest<'_>,
        limit: usize,
        explored: &mut Explored,
        from: ScanCursor,
        out: &mut Parents,
    ) -> Option<ScanCursor> {
        let mut slot = (from.position >> PLACE_BITS) as u32;
        let mut place = EdgePosition::from_offset(from.position & ((1 << PLACE_BITS) - 1));
        let mut visited = 0;
        for number in usize::from(from.partition)..self.partitions.len() {
            let partition = &self.partitions[number];
            // Vertices that are added later belong to versions that no caller can ask for yet.
            let end = partition.end();
            while slot < end {
                if out.len() + out.rest.len() >= limit || visited >= MOST {
                    let position = u64::from(slot) << PLACE_BITS | place.to_offset();
                    return Some(ScanCursor { partition: number as u16, position, ..ScanCursor::default() });
                }
                let guard = &pin();
                let explored = &mut explored.partitions[number];
                let mut up = BottomUpStep::<INVERSE> { partition, want, explored, left: PIECE, out };
                (slot, place) = up.run((slot, place), end, guard);
                visited += PIECE - up.left;
            }
            (slot, place) = (0, EdgePosition::default());
        }
        None
    }
}
