//! Scans over all vertices or edges, partition after partition, a few pages or slots under each epoch guard.
//!
//! A call ends with a cursor when its answer is full, and also after many records: a scan that finds nothing returns
//! to its caller, which may have been cancelled, as often as one that finds much.

use super::Generation;
use super::index::IndexAnswer;
use super::reading::PIECE_OF_FILE;
use crate::partition::{EdgeAnswer, EdgeScanRequest};
use crate::properties::{Listed, PageTable, Project, ROWS, Scan, VertexSink};
use crossbeam_epoch::{Guard, pin};
use tidegraph_apl::{
    Apl, At, EdgeScan, Error, Projection, ScanCursor, ScannedValues, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::Token;

/// Pages to look at under one epoch guard.
const PIECE_PAGES: u32 = 16;
/// Slots to look at under one epoch guard.
const PIECE_SLOTS: u32 = 4096;
/// Edges to look at under one epoch guard.
const PIECE_EDGES: usize = 1 << 16;
/// Pages that one call looks at, plus at most a piece: some milliseconds of work.
const MOST_PAGES: u32 = 64;
/// Edges, and vertices without edges, that one call looks at.
const MOST_EDGES: usize = 1 << 16;

/// The page to scan next.
struct Piece<'s> {
    table: &'s PageTable,
    page: u32,
    /// First row.
    row: usize,
    guard: &'s Guard,
}

impl Generation {
    /// Finds the vertices that pass a scan, in indexes, rows or both.
    pub(super) fn find_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        mut from: ScanCursor,
        found: &mut impl VertexSink,
    ) -> Result<Option<ScanCursor>, Error> {
        if from.by_index || from == ScanCursor::default() {
            match self.look_up(at, scan, from, found)? {
                IndexAnswer::Not => {}
                IndexAnswer::To(cursor) => {
                    self.still_readable(at)?;
                    return Ok(Some(cursor));
                }
                IndexAnswer::All(0) => {
                    self.still_readable(at)?;
                    return Ok(None);
                }
                IndexAnswer::All(cover) => {
                    from = ScanCursor { cover, ..ScanCursor::default() };
                    if found.full() {
                        self.still_readable(at)?;
                        return Ok(Some(from));
                    }
                }
            }
        }
        self.scan_rows(at, scan, from, self.end_of(from), found)
    }

    /// Returns the partition before which a scan ends.
    fn end_of(&self, from: ScanCursor) -> usize {
        match from.cover {
            ScanCursor::ONE_PARTITION => self.partitions.len().min(usize::from(from.partition) + 1),
            _ => self.partitions.len(),
        }
    }

    /// Scans rows of the partitions from the cursor's up to `last`, exclusive.
    pub(super) fn scan_rows(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        last: usize,
        found: &mut impl VertexSink,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let next = self.some_pages(scan, &[], from, last, |pages, Piece { table, page, row, guard }| {
            pages.page(table, page, row, at.version, guard, found)
        });
        self.still_readable(at)?;
        Ok(next)
    }

    /// Like `find_vertices`, with the values of some keys.
    pub(super) fn find_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        if !from.by_index && from != ScanCursor::default() {
            return self.scan_row_values(at, scan, keys, from, out);
        }
        let mut found = Vec::new();
        let mut listed = Listed { out: &mut found, limit: scan.max_rows.max(1) as usize };
        let next = match self.look_up(at, scan, from, &mut listed)? {
            IndexAnswer::Not => return self.scan_row_values(at, scan, keys, from, out),
            IndexAnswer::To(cursor) => Some(cursor),
            IndexAnswer::All(0) => None,
            IndexAnswer::All(cover) => Some(ScanCursor { cover, ..ScanCursor::default() }),
        };
        let read = VertexRead { properties: Projection::Keys(keys.to_vec()), ..VertexRead::default() };
        let mut rows = VertexRows::default();
        self.vertices(at, &read, &found, &mut rows)?;
        self.still_readable(at)?;
        out.append(&found, &rows, keys);
        Ok(next)
    }

    /// Like `scan_rows` over all partitions, with the values of some keys.
    fn scan_row_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        let limit = out.vertices.len().saturating_add(scan.max_rows.max(1) as usize);
        self.versions.check(at.version)?;
        let mut project = Project::new(keys);
        let last = self.end_of(from);
        let next = self.some_pages(scan, keys, from, last, |pages, Piece { table, page, row, guard }| {
            project.page(pages, table, page, row, at.version, guard, limit, out)
        });
        self.still_readable(at)?;
        Ok(next)
    }

    /// Calls `take` with page after page until it returns the row where it stopped, or enough pages were looked at.
    /// `keys` are those whose values `take` reads.
    fn some_pages(
        &self,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        last: usize,
        mut take: impl FnMut(&mut Scan<'_>, Piece<'_>) -> Option<usize>,
    ) -> Option<ScanCursor> {
        let cursor = |number: usize, page: u32, row: usize| {
            let position = u64::from(page) * ROWS as u64 + row as u64;
            Some(ScanCursor { partition: number as u16, position, by_index: false, ..from })
        };
        let without = self.indexes.cover(from.cover);
        let mut visited = 0;
        let (mut page, mut row) =
            ((from.position / ROWS as u64) as u32, (from.position % ROWS as u64) as usize);
        for number in usize::from(from.partition)..last {
            // Set numbers differ between partitions.
            let mut pages = Scan::new(&scan.labels, &without, &scan.predicates).reads(keys);
            loop {
                let guard = pin();
                let table = self.partitions[number].rows();
                let end = page.saturating_add(PIECE_PAGES).min(table.end());
                while page < end {
                    pages.prefetch(table, page + 1, &guard);
                    if let Some(next) = take(&mut pages, Piece { table, page, row, guard: &guard }) {
                        return cursor(number, page, next);
                    }
                    (page, row) = (page + 1, 0);
                    visited += 1;
                }
                if page >= table.end() {
                    break;
                }
                if visited >= MOST_PAGES {
                    return cursor(number, page, 0);
                }
            }
            (page, row) = (0, 0);
            if visited >= MOST_PAGES && number + 1 < last {
                return cursor(number + 1, 0, 0);
            }
        }
        None
    }

    /// Finds the edges that pass a scan.
    pub(super) fn scan_all_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut impl EdgeAnswer,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let next = self.some_edges(at, scan, from, out);
        self.still_readable(at)?;
        Ok(next)
    }

    fn some_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut impl EdgeAnswer,
    ) -> Option<ScanCursor> {
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        let want = EdgeScanRequest::new(scan, at.version, limit);
        // The slot is in the high half, the number of the last chunk read of its hub in the low half.
        let cursor = |number: usize, slot: u32, after: u32| {
            let position = u64::from(slot) << 32 | u64::from(after);
            Some(ScanCursor { partition: number as u16, position, ..ScanCursor::default() })
        };
        let mut visited = 0;
        let (mut slot, mut after) = ((from.position >> 32) as u32, from.position as u32);
        for number in usize::from(from.partition)..self.partitions.len() {
            let partition = &self.partitions[number];
            loop {
                let guard = &pin();
                let end = slot.saturating_add(PIECE_SLOTS).min(partition.end());
                let most =
                    PIECE_EDGES.min(if self.page_memory.spilled() > 0 { PIECE_OF_FILE } else { usize::MAX });
                let mut left = most;
                (slot, after) = partition.scan_out_edges((slot, after), end, &want, &mut left, guard, out);
                self.make_room();
                visited += most - left;
                if slot >= partition.end() && out.len() < limit {
                    break;
                }
                if out.len() >= limit || visited >= MOST_EDGES {
                    return cursor(number, slot, after);
                }
            }
            (slot, after) = (0, 0);
            if visited >= MOST_EDGES && number + 1 < self.partitions.len() {
                return cursor(number + 1, 0, 0);
            }
        }
        None
    }
}
