//! Answers composed from the answers to more basic requests. A store in this process calls them where it has nothing
//! faster; tests compare the faster answers with them.
//!
//! The basic requests are `resolve_vertices`, `resolve_edges`, `place`, `vertices`, `edges`, `expand`, `degrees`,
//! `scan_vertices`, `scan_edges` and `statistics`.

use crate::groups::Shared;
use crate::{
    Apl, At, Cursor, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, EndCounts, Error,
    Expand, Expansion, ExpansionRow, Grouping, Groups, LookUp, LookedUp, Projection, Reservoir, Sample,
    ScanCursor, ScannedValues, TopEdges, TopVertices, VertexRead, VertexRows, VertexScan, Weight,
};
use tidegraph_types::element::generated_edge_id;
use tidegraph_types::{Edge, Gui, Str, Token, Value};

/// Rows that one basic request asks for.
pub(crate) const AT_ONCE: u32 = 4096;
/// Vertices whose edges one call counts by their ends: few, because each may have many.
const VERTICES_OF_ENDS: u32 = 256;

/// Answers [`Apl::look_up`] by `resolve_vertices`, `place` and `vertices`.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::count_vertices`] by `scan_vertices`.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::group_vertices`] by `scan_vertices` or `scan_values`, `degrees` and `expand`.
///
/// # Errors
///
/// The errors of the requests that it makes.
pub fn group_vertices<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &VertexScan,
    grouping: &Grouping,
    from: ScanCursor,
    out: &mut Groups,
) -> Result<Option<ScanCursor>, Error> {
    let scan = VertexScan { max_rows: AT_ONCE, ..scan.clone() };
    let mut tokens: Vec<Token> =
        grouping.keys.iter().copied().chain(grouping.items.iter().filter_map(|item| item.key())).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let mut found = ScannedValues::default();
    found.begin(tokens.len());
    let next = if tokens.is_empty() {
        apl.scan_vertices(at, &scan, from, &mut found.vertices)?
    } else {
        apl.scan_values(at, &scan, &tokens, from, &mut found)?
    };
    let weights = weights(apl, at, &grouping.weight, &found.vertices)?;
    out.add(grouping, &tokens, &found, &weights);
    Ok(next)
}

/// Returns how many rows each vertex stands for.
fn weights<A: Apl + ?Sized>(apl: &A, at: At, weight: &Weight, vertices: &[Gui]) -> Result<Vec<u64>, Error> {
    let mut weights = vec![1_u64; vertices.len()];
    let mut degrees = Vec::with_capacity(vertices.len());
    for step in &weight.steps {
        degrees.clear();
        apl.degrees(at, step, vertices, &mut degrees)?;
        weights
            .iter_mut()
            .zip(&degrees)
            .for_each(|(weight, degree)| *weight = weight.saturating_mul(*degree));
    }
    let taken_off = match weight.shared() {
        None => return Ok(weights),
        Some(Shared::Edges(edges)) => {
            degrees.clear();
            apl.degrees(at, &edges, vertices, &mut degrees)?;
            degrees
        }
        Some(Shared::Loops(edges)) => {
            // Vertices that stand for no row need not be looked at.
            let rows: Vec<usize> = (0..vertices.len()).filter(|row| weights[*row] > 0).collect();
            let frontier: Vec<Gui> = rows.iter().map(|row| vertices[*row]).collect();
            let mut loops = vec![0; vertices.len()];
            each_end(apl, at, &edges, &frontier, |row, end| {
                loops[rows[row]] += u64::from(end == frontier[row]);
                Ok(())
            })?;
            loops
        }
    };
    weights.iter_mut().zip(taken_off).for_each(|(weight, same)| *weight = weight.saturating_sub(same));
    Ok(weights)
}

/// Calls `take` with the row and the other end of each edge of a frontier.
fn each_end<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    expand: &Expand,
    frontier: &[Gui],
    mut take: impl FnMut(usize, Gui) -> Result<(), Error>,
) -> Result<(), Error> {
    let expand = Expand { max_rows: AT_ONCE, neighbours_only: true, ..expand.clone() };
    let (mut cursor, mut found) = (Some(Cursor::default()), Expansion::default());
    while let Some(from) = cursor.filter(|_| !frontier.is_empty()) {
        found.clear();
        cursor = apl.expand(at, &expand, frontier, from, &mut found)?;
        for (row, end) in found.row.iter().zip(&found.neighbour) {
            take(*row as usize, *end)?;
        }
    }
    Ok(())
}

/// Answers [`Apl::top_vertices`] by `scan_values`.
///
/// # Errors
///
/// The errors of the request that it makes.
pub fn top_vertices<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &VertexScan,
    keys: &[Token],
    top: &TopVertices,
    from: ScanCursor,
    out: &mut ScannedValues,
) -> Result<Option<ScanCursor>, Error> {
    let scan = VertexScan { max_rows: AT_ONCE, ..scan.clone() };
    let mut found = ScannedValues::default();
    found.begin(keys.len());
    let next = apl.scan_values(at, &scan, keys, from, &mut found)?;
    top.select(keys, &mut found);
    out.extend(found);
    Ok(next)
}

/// Answers [`Apl::count_ends`] by `scan_vertices` and `expand`.
///
/// # Errors
///
/// The errors of the requests that it makes; [`Error::TooLarge`] if there are too many ends.
pub fn count_ends<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &VertexScan,
    expand: &Expand,
    from: ScanCursor,
    out: &mut EndCounts,
) -> Result<Option<ScanCursor>, Error> {
    let scan = VertexScan { max_rows: VERTICES_OF_ENDS, ..scan.clone() };
    let mut vertices = Vec::new();
    let next = apl.scan_vertices(at, &scan, from, &mut vertices)?;
    each_end(apl, at, expand, &vertices, |row, end| {
        if out.len() >= EndCounts::MOST {
            let bytes = |ends: usize| (ends * EndCounts::BYTES) as u64;
            return Err(Error::TooLarge { bytes: bytes(out.len() + 1), limit: bytes(EndCounts::MOST) });
        }
        out.add(end, 1, u64::from(end == vertices[row]));
        Ok(())
    })?;
    Ok(next)
}

/// Answers [`Apl::sample_vertices`] by `scan_vertices`.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::sample_edges`] by `expand`: reads every edge.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::top_edges`] by `expand` and `edges`.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::edge_candidates`] by `resolve_edges`: a candidate is an edge that exists at the version.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::find_edges`] by `resolve_edges`.
///
/// # Errors
///
/// The errors of the requests that it makes.
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

/// Answers [`Apl::scan_values`] by `scan_vertices` and `vertices`.
///
/// # Errors
///
/// The errors of the requests that it makes.
pub fn scan_values<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &VertexScan,
    keys: &[Token],
    from: ScanCursor,
    out: &mut ScannedValues,
) -> Result<Option<ScanCursor>, Error> {
    let mut found = Vec::new();
    let next = apl.scan_vertices(at, scan, from, &mut found)?;
    let read = VertexRead { properties: Projection::Keys(keys.to_vec()), ..VertexRead::default() };
    let mut rows = VertexRows::default();
    apl.vertices(at, &read, &found, &mut rows)?;
    out.append(&found, &rows, keys);
    Ok(next)
}

/// Answers [`Apl::scan_edge_rows`] by `scan_edges`.
///
/// # Errors
///
/// The errors of the request that it makes.
pub fn scan_edge_rows<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    scan: &EdgeScan,
    from: ScanCursor,
    out: &mut Vec<Edge>,
) -> Result<Option<ScanCursor>, Error> {
    let mut runs = EdgeRuns::default();
    let next = apl.scan_edges(at, scan, from, &mut runs)?;
    runs.append_to(out);
    Ok(next)
}
