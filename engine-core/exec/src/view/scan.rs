//! Scans of a view.
//!
//! A scan sees pending writes as they were when it began. Elements that were pending then come first, from their
//! pending state, and are left out of storage's answers. Elements that become pending later come as storage has them,
//! unless they are deleted. So each element comes once, even if the request writes it while the scan runs.

use super::View;
use crate::Result;
use tidegraph_apl::{
    EdgeScan, EndCounts, Expand, Grouping, Groups, Projection, Reservoir, ScanCursor, ScannedValues,
    TopVertices, VertexRead, VertexRows, VertexScan,
};
use tidegraph_types::{Edge, Gui, Key, Token};

/// The position of a scan. The default is its start.
#[derive(Clone, Copy, Default, Debug)]
pub struct ScanState {
    started: bool,
    cursor: ScanCursor,
    /// Elements with a smaller `seq` were pending when the scan began.
    before: u64,
}

impl ScanState {
    /// Returns the start of a scan of one partition, for a request that does not write.
    pub fn of_partition(partition: u16) -> Self {
        Self { cursor: ScanCursor::of_partition(partition), ..Self::default() }
    }
}

impl View<'_> {
    /// Appends the vertices that pass; returns whether there may be more.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn scan_vertices(
        &self,
        scan: &VertexScan,
        state: &mut ScanState,
        out: &mut Vec<Gui>,
    ) -> Result<bool> {
        if !self.has_computed() {
            return self.scan_written(scan, state, out);
        }
        let computed = self.computed.borrow();
        let (rest, tests) = computed.split(scan);
        let start = out.len();
        let more = self.scan_written(&rest, state, out)?;
        let mut kept = start;
        for index in start..out.len() {
            if computed.passes(out[index], &tests) {
                out[kept] = out[index];
                kept += 1;
            }
        }
        out.truncate(kept);
        Ok(more)
    }

    /// Scans what storage and pending writes have.
    fn scan_written(&self, scan: &VertexScan, state: &mut ScanState, out: &mut Vec<Gui>) -> Result<bool> {
        if !state.started {
            state.started = true;
            self.record_scan(scan);
            state.before = self.pending.borrow().seq;
            if self.is_dirty() {
                self.scan_pending_vertices(scan, out)?;
            }
        }
        let start = out.len();
        let next = self.apl.scan_vertices(self.at, scan, state.cursor, out)?;
        if self.is_dirty() {
            let pending = self.pending.borrow();
            let mut kept = start;
            for index in start..out.len() {
                let gui = out[index];
                if pending.vertices.get(&gui).is_none_or(|v| v.seq >= state.before && v.visible()) {
                    out[kept] = gui;
                    kept += 1;
                }
            }
            out.truncate(kept);
        }
        Ok(self.advance(state, next))
    }

    /// Scans as [`View::scan_vertices`] does and appends the values of these keys; `out` has a column for each key.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn scan_values(
        &self,
        scan: &VertexScan,
        keys: &[Token],
        state: &mut ScanState,
        out: &mut ScannedValues,
    ) -> Result<bool> {
        if !self.is_dirty() && !self.has_computed() && self.keys.is_none() && !keys.is_empty() {
            state.started = true;
            let next = self.apl.scan_values(self.at, scan, keys, state.cursor, out)?;
            return Ok(self.advance(state, next));
        }
        // The read must be recorded, or must see pending writes and computed properties.
        let mut found = Vec::new();
        let more = self.scan_vertices(scan, state, &mut found)?;
        let mut rows = VertexRows::default();
        if !keys.is_empty() {
            let read = VertexRead { properties: Projection::Keys(keys.to_vec()), ..VertexRead::default() };
            self.vertices(&read, &found, &mut rows)?;
        }
        out.append(&found, &rows, keys);
        Ok(more)
    }

    /// Whether storage may answer scans by less than rows. It must be on other machines, because rows cost nothing in one
    /// process. And such an answer shows no pending writes, and what it depends on is not recorded.
    pub(crate) fn may_digest(&self) -> bool {
        self.is_far() && !self.is_dirty() && !self.has_computed() && self.keys.is_none()
    }

    /// Adds vertices that pass to groups; returns where to continue. Only if the view [may](View::may_digest).
    pub(crate) fn group_vertices(
        &self,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>> {
        Ok(self.apl.group_vertices(self.at, scan, grouping, from, out)?)
    }

    /// Adds the ends of the edges of vertices that pass; returns where to continue. Only if the view
    /// [may](View::may_digest).
    pub(crate) fn count_ends(
        &self,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>> {
        Ok(self.apl.count_ends(self.at, scan, expand, from, out)?)
    }

    /// Scans as [`View::scan_values`] does, but needs to return only the vertices that come first. Only if the view
    /// [may](View::may_digest).
    pub(crate) fn top_vertices(
        &self,
        scan: &VertexScan,
        keys: &[Token],
        top: &TopVertices,
        state: &mut ScanState,
        out: &mut ScannedValues,
    ) -> Result<bool> {
        state.started = true;
        let next = self.apl.top_vertices(self.at, scan, keys, top, state.cursor, out)?;
        Ok(self.advance(state, next))
    }

    /// Appends the vertices that such a scan goes on with; returns where to continue.
    pub(crate) fn digested_vertices(
        &self,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>> {
        Ok(self.apl.scan_vertices(self.at, scan, from, out)?)
    }

    fn record_scan(&self, scan: &VertexScan) {
        // Any one label group decides which vertices can pass; the smallest has the fewest keys.
        match scan.labels.iter().min_by_key(|group| group.len()) {
            Some(group) => self.record(group.iter().map(|label| Key::vertex_scan(Some(*label)))),
            None => self.record([Key::vertex_scan(None)]),
        }
    }

    /// Counts the vertices that pass, in one partition (for a request that does not write) or in all. Calls `check` between calls to storage and stops at its error.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer, and the errors of `check`.
    pub fn count_vertices(
        &self,
        scan: &VertexScan,
        partition: Option<u16>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        if self.has_computed() {
            let state = partition.map_or_else(ScanState::default, ScanState::of_partition);
            return self.count_scanned(scan, state, check);
        }
        self.record_scan(scan);
        let start = partition.map_or_else(ScanCursor::default, ScanCursor::of_partition);
        let (mut count, mut cursor) = (0, Some(start));
        while let Some(from) = cursor {
            cursor = self.apl.count_vertices(self.at, scan, from, &mut count)?;
            check()?;
        }
        if self.is_dirty() {
            // Storage counted the pending vertices in their old state.
            let stored: Vec<Gui> = self
                .pending
                .borrow()
                .vertices
                .iter()
                .filter(|(_, v)| v.in_base)
                .map(|(gui, _)| *gui)
                .collect();
            let mut now = vec![];
            self.scan_pending_vertices(scan, &mut now)?;
            count = count.saturating_sub(self.stored_that_pass(scan, &stored)?) + now.len() as u64;
        }
        Ok(count)
    }

    /// Counts vertex by vertex.
    fn count_scanned(
        &self,
        scan: &VertexScan,
        mut state: ScanState,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        let scan = VertexScan { max_rows: 4096, ..scan.clone() };
        let (mut count, mut found) = (0, vec![]);
        loop {
            found.clear();
            let more = self.scan_vertices(&scan, &mut state, &mut found)?;
            count += found.len() as u64;
            check()?;
            if !more {
                return Ok(count);
            }
        }
    }

    /// Offers the vertices that pass to a sample. Calls `check` between calls to storage and stops at its error.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer, and the errors of `check`.
    pub fn sample_vertices(
        &self,
        scan: &VertexScan,
        sample: &mut Reservoir<Gui>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        if self.is_dirty() || self.has_computed() {
            let (mut state, mut found) = (ScanState::default(), vec![]);
            loop {
                found.clear();
                let more = self.scan_vertices(scan, &mut state, &mut found)?;
                sample.offer_run(found.len() as u64, |at| found.get(at as usize).copied());
                check()?;
                if !more {
                    return Ok(());
                }
            }
        }
        self.record_scan(scan);
        let mut cursor = Some(ScanCursor::default());
        while let Some(from) = cursor {
            cursor = self.apl.sample_vertices(self.at, scan, from, sample)?;
            check()?;
        }
        Ok(())
    }

    /// Counts those of the vertices that pass in their stored state.
    fn stored_that_pass(&self, scan: &VertexScan, vertices: &[Gui]) -> Result<u64> {
        let keys = scan.predicates.iter().map(|p| p.key).collect();
        let read = VertexRead { labels: true, properties: Projection::Keys(keys), ..VertexRead::default() };
        let mut rows = VertexRows::default();
        self.apl.vertices(self.at, &read, vertices, &mut rows)?;
        let passes = |row: &usize| {
            rows.present[*row]
                && scan.labels.iter().all(|group| group.iter().any(|l| rows.labels_of(*row).contains(l)))
                && scan.predicates.iter().all(|p| p.passes_among(rows.cells_of(*row)))
        };
        Ok((0..vertices.len()).filter(passes).count() as u64)
    }

    fn advance(&self, state: &mut ScanState, next: Option<ScanCursor>) -> bool {
        state.cursor = next.unwrap_or_default();
        next.is_some()
    }

    fn scan_pending_vertices(&self, scan: &VertexScan, out: &mut Vec<Gui>) -> Result<()> {
        let has_labels = |labels: &[Token]| {
            scan.labels.iter().all(|group| group.iter().any(|label| labels.contains(label)))
        };
        let (mut made, mut stored) = (vec![], vec![]);
        for (gui, vertex) in &self.pending.borrow().vertices {
            if !vertex.visible() || !has_labels(&vertex.labels) {
                continue;
            }
            if vertex.created.is_none() && !scan.predicates.is_empty() {
                stored.push(*gui);
            } else if scan.predicates.iter().all(|p| {
                vertex.cells_of(p.key).is_some_and(|cells| p.passes(cells.iter().map(|c| &c.cell.value)))
            }) {
                made.push((vertex.seq, *gui));
            }
        }
        made.sort_unstable();
        out.extend(made.into_iter().map(|(_, gui)| gui));
        if !stored.is_empty() {
            stored.sort_unstable();
            let keys = scan.predicates.iter().map(|p| p.key).collect();
            let read = VertexRead { properties: Projection::Keys(keys), ..VertexRead::default() };
            let mut rows = VertexRows::default();
            self.vertices_unrecorded(&read, &stored, &mut rows)?;
            out.extend(stored.iter().enumerate().filter_map(|(row, gui)| {
                let passes = scan.predicates.iter().all(|p| p.passes_among(rows.cells_of(row)));
                passes.then_some(*gui)
            }));
        }
        Ok(())
    }

    /// Appends the edges of these labels (`None` for all); returns whether there may be more.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn scan_edges(
        &self,
        labels: Option<&[Token]>,
        max_rows: u32,
        state: &mut ScanState,
        out: &mut Vec<Edge>,
    ) -> Result<bool> {
        if !state.started {
            state.started = true;
            match labels {
                Some(labels) => self.record(labels.iter().map(|label| Key::edge_scan(Some(*label)))),
                None => self.record([Key::edge_scan(None)]),
            }
            let pending = self.pending.borrow();
            state.before = pending.seq;
            let matching = |label: Token| labels.is_none_or(|labels| labels.contains(&label));
            out.extend(
                (pending.created_edges.iter().filter_map(|sid| pending.edges.get(sid)))
                    .filter(|e| !e.deleted && matching(e.edge.label))
                    .map(|e| e.edge),
            );
        }
        let start = out.len();
        let scan = EdgeScan { labels: labels.map(<[Token]>::to_vec), predicates: vec![], max_rows };
        let next = self.apl.scan_edge_rows(self.at, &scan, state.cursor, out)?;
        if self.is_dirty() {
            let pending = self.pending.borrow();
            let mut kept = start;
            for index in start..out.len() {
                let edge = out[index];
                if !pending.is_gone(&edge) {
                    out[kept] = edge;
                    kept += 1;
                }
            }
            out.truncate(kept);
        }
        Ok(self.advance(state, next))
    }
}
