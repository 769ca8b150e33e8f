//! Answers that can be put together from others. They are what [`Apl`] answers where a storage has nothing better, and
//! what the better answers are compared with.

use crate::{
    Apl, At, BottomUp, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, Error, Expand, Expansion,
    ExpansionRow, LookUp, LookedUp, Parents, Projection, Reservoir, Sample, ScanCursor, TopEdges, VertexScan,
};
use tidegraph_types::element::generated_edge_id;
use tidegraph_types::{Edge, Gui, Str, Value};

/// Rows that are asked for at once.
const AT_ONCE: u32 = 4096;

/// See [`Apl::look_up`].
pub fn look_up<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    ids: &[Str],
    wish: &LookUp,
    out: &mut LookedUp,
) -> Result<(), Error> {
    apl.resolve_vertices(at, ids, &mut out.found)?;
    if wish.places {
        let unknown = ids.iter().zip(&out.found).filter(|(_, gui)| gui.is_none());
        let unknown: Vec<(Str, u64)> = unknown.map(|(id, _)| (id.clone(), 0)).collect();
        apl.place(at, &unknown, &mut out.places)?;
    }
    if let Some(read) = &wish.read {
        let found: Vec<Gui> = out.found.iter().flatten().copied().collect();
        apl.vertices(at, read, &found, &mut out.rows)?;
    }
    Ok(())
}

/// See [`Apl::count_vertices`].
pub fn count_vertices<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &VertexScan,
    from: ScanCursor,
    count: &mut u64,
) -> Result<Option<ScanCursor>, Error> {
    let scan = VertexScan { max_rows: AT_ONCE, ..scan.clone() };
    let mut found = Vec::new();
    let next = apl.scan_vertices(at, &scan, from, &mut found)?;
    *count += found.len() as u64;
    Ok(next)
}

/// See [`Apl::sample_vertices`].
pub fn sample_vertices<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &VertexScan,
    from: ScanCursor,
    sample: &mut Reservoir<Gui>,
) -> Result<Option<ScanCursor>, Error> {
    let scan = VertexScan { max_rows: AT_ONCE, ..scan.clone() };
    let mut found = Vec::new();
    let next = apl.scan_vertices(at, &scan, from, &mut found)?;
    sample.offer_run(found.len() as u64, |index| Some(found[index as usize]));
    Ok(next)
}

/// See [`Apl::sample_edges`].
pub fn sample_edges<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    request: &Expand,
    sample: Sample,
    frontier: &[Gui],
    out: &mut Expansion,
) -> Result<(), Error> {
    let mut taken: Vec<Reservoir<ExpansionRow>> =
        (0..frontier.len()).map(|row| Reservoir::new(sample.of_row(row))).collect();
    let request = Expand { max_rows: AT_ONCE, neighbours_only: false, ..request.clone() };
    let (mut cursor, mut found) = (Cursor::default(), Expansion::default());
    loop {
        found.clear();
        let next = apl.expand(at, &request, frontier, cursor, &mut found)?;
        for index in 0..found.len() {
            taken[found.row[index] as usize].offer(|| found.at(index));
        }
        let Some(next) = next else { break };
        cursor = next;
    }
    taken.into_iter().flat_map(|sample| sample.items).for_each(|row| out.append(row));
    Ok(())
}

/// See [`Apl::top_edges`].
pub fn top_edges<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    request: &Expand,
    top: &TopEdges,
    frontier: &[Gui],
    from: Cursor,
    out: &mut Expansion,
) -> Result<Option<Cursor>, Error> {
    let read = EdgeRead { ids: false, properties: Projection::Keys(vec![top.key]) };
    let (mut found, mut rows) = (Expansion::default(), EdgeRows::default());
    let request = Expand { neighbours_only: false, ..request.clone() };
    let next = apl.expand(at, &request, frontier, from, &mut found)?;
    let edges: Vec<Edge> = (0..found.len()).map(|index| found.edge(index, frontier)).collect();
    apl.edges(at, &read, &edges, &mut rows)?;
    let mut best = top.best();
    for index in 0..found.len() {
        let value = rows.cells_of(index).first().map_or(Value::Null, |cell| cell.value.clone());
        best.offer(found.row[index], value, || found.at(index));
    }
    best.finish().into_iter().for_each(|row| out.append(row));
    Ok(next)
}

/// See [`Apl::edge_candidates`].
pub fn edge_candidates<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    ids: &[Str],
    out: &mut EdgeCandidates,
) -> Result<(), Error> {
    let mut found = Vec::new();
    apl.resolve_edges(at, ids, &mut found)?;
    for edge in found {
        if let Some(edge) = edge {
            out.source.push(edge.source);
            out.sid.push(edge.sid);
        }
        out.end_row();
    }
    Ok(())
}

/// See [`Apl::find_edges`].
pub fn find_edges<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    places: &[EdgePlace],
    out: &mut Vec<Option<Edge>>,
) -> Result<(), Error> {
    let id =
        |place: &EdgePlace| place.id.clone().unwrap_or_else(|| generated_edge_id(place.source, place.sid));
    let ids: Vec<Str> = places.iter().map(id).collect();
    let first = out.len();
    apl.resolve_edges(at, &ids, out)?;
    for (found, place) in out[first..].iter_mut().zip(places) {
        *found = found.filter(|edge| edge.source == place.source && edge.sid == place.sid);
    }
    Ok(())
}

/// See [`Apl::bottom_up`].
pub fn bottom_up<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    step: &BottomUp<'_>,
    from: ScanCursor,
    out: &mut Parents,
) -> Result<Option<ScanCursor>, Error> {
    let reached = |gui: Gui| step.set.contains(gui) != step.inverse;
    let scan = VertexScan { max_rows: step.edges.max_rows.min(AT_ONCE), ..VertexScan::default() };
    let mut others = Vec::new();
    let next = apl.scan_vertices(at, &scan, from, &mut others)?;
    others.retain(|gui| !reached(*gui));
    // For each: nothing seen, edges, an edge to one that was reached.
    let mut seen = vec![0_u8; others.len()];
    let request = Expand { max_rows: AT_ONCE, ..step.edges.clone() };
    let (mut cursor, mut found) = (Some(Cursor::default()), Expansion::default());
    while let Some(from) = cursor {
        found.clear();
        cursor = apl.expand(at, &request, &others, from, &mut found)?;
        for index in 0..found.len() {
            let (row, parent) = (found.row[index] as usize, found.neighbour[index]);
            seen[row] = seen[row].max(1);
            if seen[row] == 1 && reached(parent) {
                seen[row] = 2;
                out.vertex.push(others[row]);
                out.parent.push(parent);
                if !request.neighbours_only {
                    out.sid.push(found.sid[index]);
                    out.label.push(found.label[index]);
                    out.outgoing.push(found.outgoing[index]);
                }
            }
        }
    }
    if step.rest {
        let rest = others.into_iter().zip(seen).filter(|(_, seen)| *seen == 1);
        out.rest.extend(rest.map(|(gui, _)| gui));
    }
    Ok(next)
}
