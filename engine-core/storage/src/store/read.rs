//! Answers to APL requests, except scans.
//!
//! Every answer ends with `still_readable`, which refuses it if part of its version was reclaimed in between (STO-1).

use super::Generation;
use super::pipeline::walk;
use super::reading::{GROUP, PIECE};
use crate::partition::{EdgeIdEntry, EdgePosition, ExpandRequest, Filter, Partition};
use crate::properties::{self, Counted, Listed, PlainRow, Row};
use crossbeam_epoch::pin;
use tidegraph_apl::{
    Apl, At, CellMeta, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, EndCounts,
    Error, Expand, Expansion, Grouping, Groups, LookUp, LookedUp, Projection, PropertyCell, Reservoir,
    Sample, ScanCursor, ScannedValues, Statistics, TopEdges, TopVertices, Traffic, VertexRead, VertexRows,
    VertexScan, fallback,
};
use tidegraph_types::element::{generated_edge_id, parse_generated_edge_id};
use tidegraph_types::{Direction, Edge, Gui, Sid, Str, Token};

/// Rows that an expansion appends under one epoch guard.
const PIECE_ROWS: usize = 1 << 16;
/// Most keys of a projection for which the answer's room is made at once.
const FEW_KEYS: usize = 4;
/// Number of salts to try for an exception. With 64-bit hashes the second is never needed in practice.
const MOST_SALTS: u64 = 1024;

/// Appends the meta-properties of a row; `first` is the number of its first cell.
fn push_meta(want: properties::RowRequest<'_>, row: &Row<'_>, first: usize, out: &mut Vec<CellMeta>) {
    row.for_each_meta(want, |cell, key, value| out.push(CellMeta { cell: first as u32 + cell, key, value }));
}

fn push_cells(want: properties::RowRequest<'_>, row: &Row<'_>, out: &mut Vec<PropertyCell>) {
    row.for_each(want, |key, cardinality, value| out.push(PropertyCell { key, cardinality, value }));
}

/// Makes room for a piece of rows, so that the columns of an answer do not grow while it is read.
fn reserve(properties: &Projection, rows: usize, cells: &mut Vec<PropertyCell>, ends: &mut Vec<u32>) {
    match properties {
        Projection::None => return,
        Projection::Keys(keys) => cells.reserve(rows * keys.len().min(FEW_KEYS)),
        Projection::All => {}
    }
    ends.reserve(rows);
}

/// Prefetches the lists that an expansion reads.
#[inline(always)]
pub(super) fn prefetch_lists(partition: &Partition, slot: u32, request: &Expand) {
    let (node, sids) = (partition.node(slot), !request.neighbours_only);
    if request.direction != Direction::In {
        partition.links().prefetch(&node.out, sids);
    }
    if request.direction != Direction::Out {
        partition.links().prefetch(&node.inward, sids);
    }
}

/// Makes the request of an expansion for partitions.
pub(super) fn want<'r>(at: At, request: &'r Expand, limit: usize) -> ExpandRequest<'r> {
    ExpandRequest {
        direction: request.direction,
        filter: Filter::of(request.labels.as_deref()),
        loops_once: request.loops_once,
        at: at.version,
        limit,
        neighbours_only: request.neighbours_only,
    }
}

impl Generation {
    /// Returns the place of an id that collides or has a salt.
    fn place_salted(&self, at: At, id: &Str, least: u64) -> Result<(Gui, u64), Error> {
        let hasher = self.config.hasher;
        let partition = |gui: Gui| &self.partitions[self.number(gui)];
        let mut salt = least;
        // An id on the exception list keeps its salted GUI, or it would not be found again; unless it had not
        // collided yet at this version.
        let exception = self.exceptions.load().get(id).copied();
        if let Some(salted) = exception {
            let plain = hasher.gui(id);
            if least == 0 && partition(plain).slot_with_id(plain, id, at.version, &pin()).is_some() {
                return Ok((plain, 0));
            }
            salt = (salt..salt + MOST_SALTS)
                .find(|&salt| hasher.salted(id, salt) == salted)
                .unwrap_or(salt.max(1));
        }
        loop {
            let gui = hasher.salted(id, salt);
            if partition(gui).is_free_for(gui, id, at.version, &pin()) {
                return Ok((gui, salt));
            }
            salt += 1;
        }
    }
}

impl Apl for Generation {
    fn is_far(&self) -> bool {
        false
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn resolve_vertices(&self, at: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        if let Some(answered) = self.resolve_by_page(at, ids, out) {
            return answered;
        }
        self.versions.check(at.version)?;
        for piece in ids.chunks(self.piece()) {
            let plain: Vec<Gui> = piece.iter().map(|id| self.config.hasher.gui(id)).collect();
            // The exception list is checked first, and then the plain hash, which the id may have had before it
            // collided.
            let exceptions = self.exceptions.load();
            let salted: Vec<Option<Gui>> = if exceptions.is_empty() {
                Vec::new()
            } else {
                piece.iter().map(|id| exceptions.get(id).copied()).collect()
            };
            drop(exceptions);
            let reading = self.reading();
            let guard = &reading.epoch;
            let want = properties::RowRequest::ID;
            let prefetch = |partition: &Partition, slot| partition.prefetch_row(slot, want, guard);
            walk(&reading, &plain, prefetch, |row, partition, slot| {
                let id = &piece[row];
                let is_there =
                    |gui: &Gui| reading.of(*gui).slot_with_id(*gui, id, at.version, guard).is_some();
                let found = salted.get(row).copied().flatten().filter(is_there).or_else(|| {
                    let has_id = |slot| partition.has_id(slot, id, at.version, guard);
                    slot.is_some_and(has_id).then_some(plain[row])
                });
                out.push(found);
                true
            });
            drop(reading);
            self.make_room();
        }
        self.still_readable(at)
    }

    // In one process, three calls cost no more than one.
    fn look_up(&self, at: At, ids: &[Str], wish: &LookUp, out: &mut LookedUp) -> Result<(), Error> {
        fallback::look_up(self, at, ids, wish, out)
    }

    fn resolve_edges(&self, at: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.versions.check(at.version)?;
        for piece in ids.chunks(self.piece()) {
            // Candidates are the id's entries in the index of chosen ids, and the place that a generated id contains.
            let mut found: Vec<EdgeIdEntry> = Vec::new();
            let mut candidates: Vec<(usize, Gui, Sid, bool)> = Vec::new();
            let hashes: Vec<Gui> = piece.iter().map(|id| self.config.hasher.edge_id(id)).collect();
            let reading = self.reading();
            for (row, (id, &hash)) in piece.iter().zip(&hashes).enumerate() {
                reading.of(hash).edge_id_candidates(hash.0, &mut found);
                candidates.extend(found.drain(..).map(|entry| (row, entry.source, entry.sid, true)));
                if let Some((source, sid)) = parse_generated_edge_id(id)
                    // Only the canonical spelling is an id.
                    && generated_edge_id(source, sid) == *id
                {
                    candidates.push((row, source, sid, false));
                }
            }
            drop(reading);
            let first = out.len();
            out.resize(first + piece.len(), None);
            if candidates.is_empty() {
                continue;
            }
            let reading = self.reading();
            for (row, source, sid, chosen) in candidates {
                let answer = &mut out[first + row];
                // A chosen id takes precedence over a generated one of the same text.
                if answer.is_none() {
                    let id = chosen.then_some(piece[row].as_str());
                    *answer = reading.of(source).find_edge_with_id(source, sid, id, at.version);
                }
            }
            drop(reading);
            self.make_room();
        }
        self.still_readable(at)
    }

    fn edge_candidates(&self, at: At, ids: &[Str], out: &mut EdgeCandidates) -> Result<(), Error> {
        self.versions.check(at.version)?;
        let mut found: Vec<EdgeIdEntry> = Vec::new();
        for piece in ids.chunks(self.piece()) {
            let reading = self.reading();
            for id in piece {
                let hash = self.config.hasher.edge_id(id);
                reading.of(hash).edge_id_candidates(hash.0, &mut found);
                for (number, entry) in found.iter().enumerate() {
                    // After a restore the log may have brought an entry that was in the checkpoint already.
                    if found[..number].iter().all(|before| before.sid != entry.sid) {
                        out.source.push(entry.source);
                        out.sid.push(entry.sid);
                    }
                }
                found.clear();
                out.end_row();
            }
        }
        self.still_readable(at)
    }

    fn find_edges(&self, at: At, places: &[EdgePlace], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        self.versions.check(at.version)?;
        for piece in places.chunks(self.piece()) {
            let reading = self.reading();
            out.extend(piece.iter().map(|EdgePlace { source, sid, id }| {
                reading.of(*source).find_edge_with_id(*source, *sid, id.as_deref(), at.version)
            }));
            drop(reading);
            self.make_room();
        }
        self.still_readable(at)
    }

    fn place(&self, at: At, ids: &[(Str, u64)], out: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        if let Some(answered) = self.place_by_page(at, ids, out) {
            return answered;
        }
        self.versions.check(at.version)?;
        for piece in ids.chunks(self.piece()) {
            let plain: Vec<Gui> = piece.iter().map(|(id, _)| self.config.hasher.gui(id)).collect();
            // Almost all ids have, or would get, the GUI of their plain hash.
            let known: Vec<bool> = {
                let exceptions = self.exceptions.load();
                piece.iter().map(|(id, salt)| *salt > 0 || exceptions.contains_key(id)).collect()
            };
            let first = out.len();
            let reading = self.reading();
            let guard = &reading.epoch;
            let want = properties::RowRequest::ID;
            let prefetch = |partition: &Partition, slot| partition.prefetch_row(slot, want, guard);
            walk(&reading, &plain, prefetch, |row, partition, _| {
                let (gui, id) = (plain[row], &piece[row].0);
                let free = !known[row] && partition.is_free_for(gui, id, at.version, guard);
                // Rows with this salt are handled below.
                out.push((gui, if free { 0 } else { u64::MAX }));
                true
            });
            drop(reading);
            self.make_room();
            for (answer, (id, least)) in out[first..].iter_mut().zip(piece) {
                if answer.1 == u64::MAX {
                    *answer = self.place_salted(at, id, *least)?;
                }
            }
        }
        self.still_readable(at)
    }

    fn vertices(
        &self,
        at: At,
        read: &VertexRead,
        frontier: &[Gui],
        out: &mut VertexRows,
    ) -> Result<(), Error> {
        if let Some(answered) = self.vertices_by_page(at, read, frontier, out) {
            return answered;
        }
        self.versions.check(at.version)?;
        let want = properties::RowRequest { id: read.ids, properties: &read.properties };
        for piece in frontier.chunks(self.piece()) {
            let reading = self.reading();
            let guard = &reading.epoch;
            let prefetch = |partition: &Partition, slot| partition.prefetch_row(slot, want, guard);
            reserve(&read.properties, piece.len(), &mut out.cells, &mut out.cell_ends);
            walk(&reading, piece, prefetch, |_, partition, slot| {
                let first = out.cells.len();
                let plain = slot.filter(|_| !read.meta).and_then(|slot| {
                    let push =
                        |key, cardinality, value| out.cells.push(PropertyCell { key, cardinality, value });
                    partition.read_plain_vertex(slot, at.version, want, guard, push)
                });
                let row = match &plain {
                    Some(_) => None,
                    None => slot.and_then(|slot| partition.read_vertex(slot, at.version, want, guard)),
                };
                out.present.push(plain.is_some() || row.is_some());
                if read.ids {
                    let id = plain.as_ref().map_or_else(|| row.as_ref().and_then(Row::id), PlainRow::id);
                    out.ids.push(id.unwrap_or_default());
                }
                if let Some(row) = &row {
                    push_cells(want, row, &mut out.cells);
                    if read.meta {
                        push_meta(want, row, first, &mut out.meta);
                    }
                }
                if read.labels {
                    let of_row = || row.as_ref().map_or(&[][..], Row::labels);
                    out.labels.extend_from_slice(plain.as_ref().map_or_else(of_row, PlainRow::labels));
                    out.label_ends.push(out.labels.len() as u32);
                }
                if read.properties != Projection::None {
                    out.cell_ends.push(out.cells.len() as u32);
                }
                true
            });
            drop(reading);
            self.make_room();
        }
        self.still_readable(at)
    }

    fn edges(&self, at: At, read: &EdgeRead, frontier: &[Edge], out: &mut EdgeRows) -> Result<(), Error> {
        if let Some(answered) = self.edges_by_page(at, read, frontier, out) {
            return answered;
        }
        self.versions.check(at.version)?;
        let want = properties::RowRequest { id: read.ids, properties: &read.properties };
        for piece in frontier.chunks(self.piece()) {
            let reading = self.reading();
            reserve(&read.properties, piece.len(), &mut out.cells, &mut out.cell_ends);
            for group in piece.chunks(GROUP) {
                if group.len() > 1 {
                    for edge in group {
                        reading.of(edge.source).prefetch_edge_index(edge.sid, &reading.epoch);
                    }
                    for edge in group {
                        reading.of(edge.source).prefetch_edge(edge.sid, want, &reading.epoch);
                    }
                }
                for edge in group {
                    let partition = reading.of(edge.source);
                    let push =
                        |key, cardinality, value| out.cells.push(PropertyCell { key, cardinality, value });
                    let plain = partition.read_plain_edge(edge.sid, at.version, want, &reading.epoch, push);
                    let row = match &plain {
                        Some(_) => None,
                        None => partition.read_edge(edge, at.version, want, &reading.epoch),
                    };
                    out.present.push(plain.is_some() || row.is_some());
                    if read.ids {
                        let is_there = plain.is_some() || row.is_some();
                        let stored = || row.as_ref().and_then(Option::as_ref).and_then(Row::id);
                        let id = plain.as_ref().map_or_else(stored, PlainRow::id);
                        let generated = || {
                            if is_there { generated_edge_id(edge.source, edge.sid) } else { Str::default() }
                        };
                        out.ids.push(id.unwrap_or_else(generated));
                    }
                    if let Some(row) = row.flatten() {
                        push_cells(want, &row, &mut out.cells);
                    }
                    if read.properties != Projection::None {
                        out.cell_ends.push(out.cells.len() as u32);
                    }
                }
            }
            drop(reading);
            self.make_room();
        }
        self.still_readable(at)
    }

    fn expand(
        &self,
        at: At,
        request: &Expand,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        self.versions.check(at.version)?;
        let limit = out.len().saturating_add(request.max_rows.max(1) as usize);
        let mut row = from.row as usize;
        let mut place = EdgePosition::from_offset(from.offset);
        while row < frontier.len() {
            let piece = &frontier[row..frontier.len().min(row + PIECE)];
            let reading = self.reading();
            let guard = &reading.epoch;
            let want = want(at, request, limit.min(out.len() + PIECE_ROWS));
            walk(
                &reading,
                piece,
                |partition, slot| prefetch_lists(partition, slot, request),
                |_, partition, slot| {
                    let next =
                        slot.and_then(|slot| partition.expand(slot, row as u32, &want, place, guard, out));
                    place = next.unwrap_or_default();
                    row += usize::from(next.is_none());
                    // Stops if the answer is full, or to unpin the epoch.
                    out.len() < want.limit
                },
            );
            if out.len() >= limit && row < frontier.len() {
                self.still_readable(at)?;
                return Ok(Some(Cursor { row: row as u32, offset: place.to_offset(), replica: 0 }));
            }
        }
        self.still_readable(at)?;
        Ok(None)
    }

    fn degrees(&self, at: At, request: &Expand, frontier: &[Gui], out: &mut Vec<u64>) -> Result<(), Error> {
        self.versions.check(at.version)?;
        let want = want(at, request, usize::MAX);
        for piece in frontier.chunks(PIECE) {
            let reading = self.reading();
            let guard = &reading.epoch;
            walk(
                &reading,
                piece,
                |partition, slot| prefetch_lists(partition, slot, request),
                |_, partition, slot| {
                    out.push(slot.map_or(0, |slot| partition.degree(slot, &want, guard)));
                    true
                },
            );
        }
        self.still_readable(at)
    }

    fn edges_imply_labels(
        &self,
        _: At,
        edge_labels: &[Token],
        direction: Direction,
        labels: &[Token],
    ) -> bool {
        let ends = match direction {
            Direction::Out => &[true][..],
            Direction::In => &[false],
            Direction::Both => &[true, false],
        };
        // A store of one partition does not know the vertices of the others.
        self.config.scope.is_none()
            && !edge_labels.is_empty()
            && self.partitions().iter().all(|partition| {
                let have = |label, out| partition.common_labels().have(label, out, labels);
                edge_labels.iter().all(|label| ends.iter().all(|out| have(*label, *out)))
            })
    }

    fn scan_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        out: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        let limit = out.len().saturating_add(scan.max_rows.max(1) as usize);
        self.find_vertices(at, scan, from, &mut Listed { out, limit })
    }

    fn top_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        top: &TopVertices,
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::top_vertices(self, at, scan, keys, top, from, out)
    }

    fn count_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        count: &mut u64,
    ) -> Result<Option<ScanCursor>, Error> {
        let mut counted = Counted(0);
        let next = self.find_vertices(at, scan, from, &mut counted)?;
        *count += counted.0;
        Ok(next)
    }

    fn sample_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        from: ScanCursor,
        sample: &mut Reservoir<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.find_vertices(at, scan, from, sample)
    }

    fn sample_edges(
        &self,
        at: At,
        request: &Expand,
        sample: Sample,
        frontier: &[Gui],
        out: &mut Expansion,
    ) -> Result<(), Error> {
        self.sampled_edges(at, request, sample, frontier, out)
    }

    fn top_edges(
        &self,
        at: At,
        request: &Expand,
        top: &TopEdges,
        frontier: &[Gui],
        from: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        self.edges_on_top(at, request, top, frontier, from, out)
    }

    fn scan_values(
        &self,
        at: At,
        scan: &VertexScan,
        keys: &[Token],
        from: ScanCursor,
        out: &mut ScannedValues,
    ) -> Result<Option<ScanCursor>, Error> {
        self.find_values(at, scan, keys, from, out)
    }

    fn group_vertices(
        &self,
        at: At,
        scan: &VertexScan,
        grouping: &Grouping,
        from: ScanCursor,
        out: &mut Groups,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::group_vertices(self, at, scan, grouping, from, out)
    }

    fn count_ends(
        &self,
        at: At,
        scan: &VertexScan,
        expand: &Expand,
        from: ScanCursor,
        out: &mut EndCounts,
    ) -> Result<Option<ScanCursor>, Error> {
        fallback::count_ends(self, at, scan, expand, from, out)
    }

    fn scan_edges(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        self.scan_all_edges(at, scan, from, out)
    }

    fn scan_edge_rows(
        &self,
        at: At,
        scan: &EdgeScan,
        from: ScanCursor,
        out: &mut Vec<Edge>,
    ) -> Result<Option<ScanCursor>, Error> {
        self.scan_all_edges(at, scan, from, out)
    }

    fn unique_keys(&self, at: At) -> Result<Vec<(Token, Token)>, Error> {
        Self::unique_keys(self, at.version)
    }

    fn statistics(&self) -> Statistics {
        self.all_statistics()
    }
}
