//! Scans over all vertices or edges, partition after partition, a few pages or slots under each epoch guard.

use super::Store;
use crate::partition::Filter;
use crate::properties::{ROWS, Scan};
use crossbeam_epoch::pin;
use tidegraph_apl::{At, EdgeScan, Error, ScanCursor, VertexScan};
use tidegraph_types::{Edge, Gui};

/// Pages that are looked at under one epoch guard.
const PIECE_PAGES: u32 = 16;
/// Slots that are looked at under one epoch guard.
const PIECE_SLOTS: u32 = 4096;
/// Edges that are answered under one epoch guard.
const PIECE_EDGES: usize = 1 << 16;

impl Store {
    /// Scans rows of the partitions from the cursor's up to `last`.
    pub(super) fn scan_rows(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        last: usize,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        // Page and row.
        let (mut page, mut row) =
            ((from.position / ROWS as u64) as u32, (from.position % ROWS as u64) as usize);
        for number in usize::from(from.partition)..last {
            // Sets have other numbers in each partition.
            let mut pages = Scan::new(&scan.labels, &scan.predicates);
            loop {
                let partition = &self.partitions[number];
                let guard = pin();
                let table = partition.rows();
                let end = page.saturating_add(PIECE_PAGES).min(table.end());
                while page < end {
                    pages.prefetch(table, page + 1, &guard);
                    if let Some(next) = pages.page(table, page, row, at.version, &guard, limit, out) {
                        let position = u64::from(page) * ROWS as u64 + next as u64;
                        self.still_readable(at)?;
                        return Ok(Some(ScanCursor { partition: number as u16, position, by_index: false }));
                    }
                    (page, row) = (page + 1, 0);
                }
                if page >= table.end() {
                    break;
                }
            }
            (page, row) = (0, 0);
        }
        self.still_readable(at)?;
        Ok(None)
    }

    pub(super) fn scan_all_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        let filter = Filter::of(scan.labels.as_deref());
        // Slot in the high half, the chunk of its hub that was read last in the low one.
        let (mut slot, mut after) = ((from.position >> 32) as u32, from.position as u32);
        for number in usize::from(from.partition)..self.partitions.len() {
            loop {
                let partition = &self.partitions[number];
                let guard = &crossbeam_epoch::pin();
                let pause = limit.min(out.len().saturating_add(PIECE_EDGES));
                let end = slot.saturating_add(PIECE_SLOTS).min(partition.end());
                while slot < end && out.len() < pause {
                    let place = partition.scan_out_edges(
                        slot,
                        filter,
                        &scan.predicates,
                        at.version,
                        after,
                        pause,
                        guard,
                        out,
                    );
                    after = place.unwrap_or(0);
                    slot += u32::from(place.is_none());
                }
                if out.len() >= limit {
                    let position = u64::from(slot) << 32 | u64::from(after);
                    self.still_readable(at)?;
                    return Ok(Some(ScanCursor { partition: number as u16, position, by_index: false }));
                }
                if slot >= partition.end() {
                    break;
                }
            }
            (slot, after) = (0, 0);
        }
        self.still_readable(at)?;
        Ok(None)
    }
}
