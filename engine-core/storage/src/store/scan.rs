//! Scans over all vertices or edges, partition after partition, a few pages or slots under each epoch guard.
//!
//! A call ends with a cursor when its answer is full, and also when it has looked at many records: a scan that finds
//! nothing comes back to its caller, who may have been told to stop, as often as one that finds much.

use super::Store;
use super::index::LookedUp;
use super::locked::PIECE_OF_FILE;
use crate::partition::{EdgeAnswer, ScanWant};
use crate::properties::{Found, Listed, PageTable, Project, ROWS, Scan};
use crossbeam_epoch::{Guard, pin};
use tidegraph_apl::{
    Apl, At, EdgeScan, Error, Projection, ScanCursor, ScannedValues, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::Token;

/// Pages that are looked at under one epoch guard.
const PIECE_PAGES: u32 = 16;
/// Slots that are looked at under one epoch guard.
const PIECE_SLOTS: u32 = 4096;
/// Edges that are looked at under one epoch guard.
const PIECE_EDGES: usize = 1 << 16;
/// Pages that one call looks at, give or take a piece: some milliseconds of work.
const MOST_PAGES: u32 = 64;
/// Edges, and vertices without any, that one call looks at.
const MOST_EDGES: usize = 1 << 16;

/// What is scanned next.
struct Piece<'s> {
    table: &'s PageTable,
    page: u32,
    /// First row.
    row: usize,
    guard: &'s Guard,
}

impl Store {
    /// Finds the vertices that pass a scan, in indexes or rows or both.
    pub(super) fn find_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        mut from: ScanCursor,
        found: &mut impl Found,
    ) -> Result<Option<ScanCursor>, Error> {
        if from.by_index || from == ScanCursor::default() {
            match self.look_up(at, scan, from, found)? {
                LookedUp::Not => {}
                LookedUp::To(cursor) => {
                    self.still_readable(at)?;
                    return Ok(Some(cursor));
                }
                LookedUp::All(0) => {
                    self.still_readable(at)?;
                    return Ok(None);
                }
                LookedUp::All(cover) => {
                    from = ScanCursor { cover, ..ScanCursor::default() };
                    if found.full() {
                        self.still_readable(at)?;
                        return Ok(Some(from));
                    }
                }
            }
        }
        self.scan_rows(at, scan, from, self.partitions.len(), found)
    }

    /// Scans rows of the partitions from the cursor's up to `last`.
    pub(super) fn scan_rows(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        last: usize,
        found: &mut impl Found,
    ) -> Result<Option<ScanCursor>, Error> {
        self.versions.check(at.version)?;
        let next = self.some_pages(scan, &[], from, last, |pages, Piece { table, page, row, guard }| {
            pages.page(table, page, row, at.version, guard, found)
        });
        self.still_readable(at)?;
        Ok(next)
    }

    /// As `find_vertices`, with the values of some keys.
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
            LookedUp::Not => return self.scan_row_values(at, scan, keys, from, out),
            LookedUp::To(cursor) => Some(cursor),
            LookedUp::All(0) => None,
            LookedUp::All(cover) => Some(ScanCursor { cover, ..ScanCursor::default() }),
        };
        let read = VertexRead { properties: Projection::Keys(keys.to_vec()), ..VertexRead::default() };
        let mut rows = VertexRows::default();
        self.vertices(at, &read, &found, &mut rows)?;
        self.still_readable(at)?;
        out.append(&found, &rows, keys);
        Ok(next)
    }

    /// As `scan_rows` over all partitions, with the values of some keys.
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
        let last = self.partitions.len();
        let next = self.some_pages(scan, keys, from, last, |pages, Piece { table, page, row, guard }| {
            project.page(pages, table, page, row, at.version, guard, limit, out)
        });
        self.still_readable(at)?;
        Ok(next)
    }

    /// Calls `take` with page after page, of which it reads values of some keys, until it says where in a page it stopped, or enough were looked at.
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
            // Sets have other numbers in each partition.
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
        let want = ScanWant::new(scan, at.version, limit);
        // Slot in the high half, the chunk of its hub that was read last in the low one.
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
                let most = PIECE_EDGES.min(if self.room.spilled() > 0 { PIECE_OF_FILE } else { usize::MAX });
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
