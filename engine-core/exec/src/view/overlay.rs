//! Applies pending writes to the columns of storage's answers.
//!
//! Expand and cursors: the added edges of a vertex come in the call in which its row begins, after storage's edges of
//! that row. A row has begun if the cursor is beyond offset 0 of it.

use super::pending::{Pending, PendingAdjacency, PendingCell, PendingVertex};
use super::wants;
use tidegraph_apl::{
    CellMeta, Cursor, EdgeRead, EdgeRows, Expand, Expansion, Projection, PropertyCell, VertexRead, VertexRows,
};
use tidegraph_types::{Cardinality, Direction, Edge, Gui, Str, Token};

pub(super) fn vertices(
    pending: &Pending,
    read: &VertexRead,
    frontier: &[Gui],
    base: &VertexRows,
    out: &mut VertexRows,
) {
    for (row, gui) in frontier.iter().enumerate() {
        let state = pending.vertices.get(gui);
        let present = state.map_or(base.present[row], PendingVertex::visible);
        out.present.push(present);
        if read.ids {
            out.ids.push(match state {
                _ if !present => Str::default(),
                Some(v) if v.created.is_some() => v.id.clone(),
                _ => base.ids[row].clone(),
            });
        }
        if read.labels {
            if present {
                out.labels.extend_from_slice(state.map_or(base.labels_of(row), |v| v.labels.as_slice()));
            }
            out.label_ends.push(out.labels.len() as u32);
        }
        if read.properties != Projection::None {
            if present {
                match state {
                    None => base_cells(base, row, |_| true, out),
                    Some(v) => vertex_cells(v, read, base, row, out),
                }
            }
            out.cell_ends.push(out.cells.len() as u32);
        }
    }
}

/// Appends the cells of a row of storage's answer whose keys pass, with their meta-properties.
pub(super) fn base_cells(
    base: &VertexRows,
    row: usize,
    passes: impl Fn(Token) -> bool,
    out: &mut VertexRows,
) {
    let first = base.first_cell_of(row);
    for (number, cell) in (first..).zip(base.cells_of(row)).filter(|(_, cell)| passes(cell.key)) {
        if !base.meta.is_empty() {
            let at = out.cells.len() as u32;
            let meta = base.meta_of(number..number + 1).iter();
            out.meta.extend(meta.map(|meta| CellMeta { cell: at, ..meta.clone() }));
        }
        out.cells.push(cell.clone());
    }
}

fn vertex_cells(v: &PendingVertex, read: &VertexRead, base: &VertexRows, row: usize, out: &mut VertexRows) {
    if v.created.is_none() {
        base_cells(base, row, |key| v.cells_of(key).is_none(), out);
    }
    for (_, cells) in v.cells.iter().filter(|(key, _)| wants(&read.properties, *key)) {
        for PendingCell { cell, meta } in cells {
            if read.meta {
                let cell = out.cells.len() as u32;
                let meta = meta.iter().map(|(key, value)| CellMeta { cell, key: *key, value: value.clone() });
                out.meta.extend(meta);
            }
            out.cells.push(cell.clone());
        }
    }
}

pub(super) fn edges(
    pending: &Pending,
    read: &EdgeRead,
    frontier: &[Edge],
    base: &EdgeRows,
    out: &mut EdgeRows,
) {
    for (row, edge) in frontier.iter().enumerate() {
        let state = pending.edges.get(&edge.sid);
        let created = state.is_some_and(|e| e.created);
        let present = !pending.is_gone(edge) && (created || base.present[row]);
        out.present.push(present);
        if read.ids {
            out.ids.push(match state {
                _ if !present => Str::default(),
                Some(e) if created => e.id(),
                _ => base.ids[row].clone(),
            });
        }
        if read.properties != Projection::None {
            if present {
                let untouched = |cell: &&PropertyCell| {
                    state.is_none_or(|e| !e.cells.iter().any(|(key, _)| *key == cell.key))
                };
                if !created {
                    out.cells.extend(base.cells_of(row).iter().filter(untouched).cloned());
                }
                for (key, value) in state.iter().flat_map(|e| &e.cells) {
                    if let Some(value) = value
                        && wants(&read.properties, *key)
                    {
                        let value = value.clone();
                        out.cells.push(PropertyCell { key: *key, cardinality: Cardinality::Single, value });
                    }
                }
            }
            out.cell_ends.push(out.cells.len() as u32);
        }
    }
}

fn label_matches(request: &Expand, label: Token) -> bool {
    request.labels.as_ref().is_none_or(|labels| labels.contains(&label))
}

fn added<'a>(adjacency: &'a PendingAdjacency, request: &'a Expand) -> impl Iterator<Item = (&'a Edge, bool)> {
    sides(&adjacency.added_out, &adjacency.added_in, request)
}

/// Returns the edges of both lists that match a request, and whether each is outgoing.
fn sides<'a>(
    outgoing: &'a [Edge],
    incoming: &'a [Edge],
    request: &'a Expand,
) -> impl Iterator<Item = (&'a Edge, bool)> {
    let outgoing = if request.direction == Direction::In { &[] } else { outgoing };
    let incoming = if request.direction == Direction::Out { &[] } else { incoming };
    let once = request.loops_once && request.direction == Direction::Both;
    (outgoing.iter().map(|e| (e, true)))
        .chain(incoming.iter().filter(move |e| !(once && e.source == e.target)).map(|e| (e, false)))
        .filter(|(e, _)| label_matches(request, e.label))
}

pub(super) fn expand(
    pending: &Pending,
    request: &Expand,
    frontier: &[Gui],
    from: Cursor,
    next: Option<Cursor>,
    base: &Expansion,
    out: &mut Expansion,
) {
    // The rows of this call end here.
    let end = match next {
        None => frontier.len() as u32,
        Some(next) if next.offset == 0 => next.row,
        Some(next) => next.row + 1,
    };
    let mut index = 0;
    for row in from.row..end {
        let gui = frontier[row as usize];
        let delta = pending.adjacency.get(&gui);
        let check = !pending.detached.is_empty()
            || delta.is_some_and(|d| !d.deleted_out.is_empty() || !d.deleted_in.is_empty());
        while index < base.len() && base.row[index] == row {
            let sid = base.sid[index];
            if !check || !pending.is_gone(&base.edge(index, frontier)) {
                out.push(row, base.neighbour[index], sid, base.label[index], base.outgoing[index]);
            }
            index += 1;
        }
        if let Some(delta) = delta
            && (row > from.row || from.offset == 0)
        {
            for (edge, outgoing) in added(delta, request) {
                let neighbour = if outgoing { edge.target } else { edge.source };
                out.push(row, neighbour, edge.sid, edge.label, outgoing);
            }
        }
    }
}

pub(super) fn degrees(pending: &Pending, request: &Expand, frontier: &[Gui], degrees: &mut [u64]) {
    for (gui, degree) in frontier.iter().zip(degrees) {
        if let Some(delta) = pending.adjacency.get(gui) {
            let gone = sides(&delta.deleted_out, &delta.deleted_in, request).count() as u64;
            *degree = (*degree + added(delta, request).count() as u64).saturating_sub(gone);
        }
    }
}
