//! Answers: value ↔ message.

use super::column::{numbers_from, numbers_to, wide_from, wide_to};
use super::values;
use super::{
    cursor_from, cursor_to, guis_from, guis_to, reservoir_from, reservoir_to, same, scan_cursor_from,
    scan_cursor_to, sids_from, sids_to, tokens_from, tokens_to,
};
use crate::proto::apl_answer::Kind;
use crate::{Error, mutation, proto, value};
use tidegraph_apl::{
    CellMeta, Cursor, EdgeCandidates, EdgeRows, EdgeRun, EdgeRuns, Expansion, KeyStatistics, PropertyCell,
    Reservoir, ScanCursor, ScannedValues, Statistics, VertexRows,
};
use tidegraph_apl::{DegreeStatistics, SetKey, SetStatistics};
use tidegraph_types::{Edge, Epoch, Gui, PartitionId, Sid, Str, Token, Value, Version};

/// What one call of the trait `Apl` gave.
#[derive(Debug)]
pub enum Answer {
    /// It failed.
    Failed(tidegraph_apl::Error),
    /// Of `resolve_vertices`.
    ResolveVertices(Vec<Option<Gui>>),
    /// Of `resolve_edges`.
    ResolveEdges(Vec<Option<Edge>>),
    /// Of `place`.
    Place(Vec<(Gui, u64)>),
    /// Of `vertices`.
    Vertices(VertexRows),
    /// Of `edges`.
    Edges(EdgeRows),
    /// Of `expand`, with where to go on.
    Expand(Expansion, Option<Cursor>),
    /// Of `degrees`.
    Degrees(Vec<u64>),
    /// Of `scan_vertices`, with where to go on.
    ScanVertices(Vec<Gui>, Option<ScanCursor>),
    /// Of `scan_values`, with where to go on.
    ScanValues(ScannedValues, Option<ScanCursor>),
    /// Of `scan_edges`, with where to go on.
    ScanEdges(EdgeRuns, Option<ScanCursor>),
    /// Of `statistics`.
    Statistics(Statistics),
    /// Of `count_vertices`, with where to go on.
    CountVertices(u64, Option<ScanCursor>),
    /// Of `sample_vertices`, with where to go on.
    SampleVertices(Reservoir<Gui>, Option<ScanCursor>),
    /// Of `sample_edges`.
    SampleEdges(Expansion),
    /// Of `top_edges`, with where to go on.
    TopEdges(Expansion, Option<Cursor>),
    /// Of `edge_candidates`.
    EdgeCandidates(EdgeCandidates),
    /// Of `find_edges`.
    FindEdges(Vec<Option<Edge>>),
    /// Of `unique_keys`.
    UniqueKeys(Vec<(Token, Token)>),
}

/// The message of an answer; fails on a property value that is not storable.
pub fn encode_answer(answer: &Answer) -> Result<proto::AplAnswer, Error> {
    let kind = match answer {
        Answer::Failed(error) => Kind::Error(error_to(error)),
        Answer::ResolveVertices(found) => Kind::ResolveVertices(proto::VertexHandles {
            found: found.iter().map(Option::is_some).collect(),
            guis: wide_to(found, |gui| gui.map_or(0, |g| g.0)),
        }),
        Answer::ResolveEdges(found) => Kind::ResolveEdges(handles_to(found)),
        Answer::FindEdges(found) => Kind::FindEdges(handles_to(found)),
        Answer::EdgeCandidates(found) => Kind::EdgeCandidates(proto::EdgeCandidates {
            ends: found.ends.clone(),
            sources: guis_to(&found.source),
            sids: sids_to(&found.sid),
        }),
        Answer::UniqueKeys(pairs) => Kind::UniqueKeys(proto::UniqueKeys {
            labels: pairs.iter().map(|(label, _)| label.0).collect(),
            keys: pairs.iter().map(|(_, key)| key.0).collect(),
        }),
        Answer::Place(places) => Kind::Place(proto::Places {
            guis: places.iter().map(|(gui, _)| gui.0).collect(),
            salts: places.iter().map(|(_, salt)| *salt).collect(),
        }),
        Answer::Vertices(rows) => Kind::Vertices(proto::VertexRows {
            present: rows.present.clone(),
            ids: rows.ids.iter().map(Str::to_string).collect(),
            label_ends: rows.label_ends.clone(),
            labels: tokens_to(&rows.labels),
            cell_ends: rows.cell_ends.clone(),
            cells: cells_to(&rows.cells)?,
            meta: rows.meta.iter().map(meta_to).collect::<Result<_, _>>()?,
        }),
        Answer::Edges(rows) => Kind::Edges(proto::EdgeRows {
            present: rows.present.clone(),
            ids: rows.ids.iter().map(Str::to_string).collect(),
            cell_ends: rows.cell_ends.clone(),
            cells: cells_to(&rows.cells)?,
        }),
        Answer::Expand(rows, next) => Kind::Expand(expansion_to(rows, *next)),
        Answer::SampleEdges(rows) => Kind::SampleEdges(expansion_to(rows, None)),
        Answer::TopEdges(rows, next) => Kind::TopEdges(expansion_to(rows, *next)),
        Answer::CountVertices(count, next) => {
            Kind::CountVertices(proto::CountedVertices { count: *count, next: next.map(scan_cursor_to) })
        }
        Answer::SampleVertices(sample, next) => Kind::SampleVertices(proto::SampledVertices {
            sample: Some(reservoir_to(sample)),
            next: next.map(scan_cursor_to),
        }),
        Answer::Degrees(degrees) => Kind::Degrees(proto::Degrees { degrees: degrees.clone() }),
        Answer::ScanVertices(guis, next) => {
            Kind::ScanVertices(proto::ScannedVertices { guis: guis_to(guis), next: next.map(scan_cursor_to) })
        }
        Answer::ScanValues(found, next) => Kind::ScanValues(proto::ScannedValues {
            guis: guis_to(&found.vertices),
            columns: found.columns.iter().map(|column| column_to(column)).collect::<Result<_, _>>()?,
            next: next.map(scan_cursor_to),
        }),
        Answer::ScanEdges(edges, next) => Kind::ScanEdges(proto::ScannedEdges {
            sources: edges.runs.iter().map(|run| run.source.0).collect(),
            labels: edges.runs.iter().map(|run| run.label.0).collect(),
            ends: edges.runs.iter().map(|run| run.end).collect(),
            targets: guis_to(&edges.target),
            sids: sids_to(&edges.sid),
            next: next.map(scan_cursor_to),
        }),
        Answer::Statistics(statistics) => Kind::Statistics(proto::Statistics {
            vertices: statistics.vertices,
            edges: statistics.edges,
            vertices_by_label: counts_to(&statistics.vertices_by_label),
            edges_by_label: counts_to(&statistics.edges_by_label),
            keys: statistics.keys.iter().map(key_to).collect(),
            sets: statistics.sets.iter().map(set_to).collect(),
            distinct: statistics
                .distinct
                .iter()
                .map(|(key, count)| proto::KeyCount { key: key.0, count: *count })
                .collect(),
            degrees: statistics.degrees.iter().map(degrees_to).collect(),
        }),
    };
    Ok(proto::AplAnswer { kind: Some(kind) })
}

/// The answer of a message.
pub fn decode_answer(message: proto::AplAnswer) -> Result<Answer, Error> {
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "AplAnswer" })? {
        Kind::Error(m) => Answer::Failed(error_from(m)?),
        Kind::ResolveVertices(m) => {
            let guis = guis_from(&m.guis, "VertexHandles", "guis")?;
            same("VertexHandles", "guis", guis.len(), m.found.len())?;
            let pairs = m.found.into_iter().zip(guis);
            Answer::ResolveVertices(pairs.map(|(found, gui)| found.then_some(gui)).collect())
        }
        Kind::ResolveEdges(m) => Answer::ResolveEdges(handles_from(m)?),
        Kind::FindEdges(m) => Answer::FindEdges(handles_from(m)?),
        Kind::EdgeCandidates(m) => {
            const MESSAGE: &str = "EdgeCandidates";
            let source = guis_from(&m.sources, MESSAGE, "sources")?;
            let sid = sids_from(&m.sids, MESSAGE, "sids")?;
            same(MESSAGE, "sids", sid.len(), source.len())?;
            ends(MESSAGE, "ends", &m.ends, m.ends.len(), source.len())?;
            Answer::EdgeCandidates(EdgeCandidates { ends: m.ends, source, sid })
        }
        Kind::UniqueKeys(m) => {
            same("UniqueKeys", "keys", m.keys.len(), m.labels.len())?;
            let pairs = m.labels.into_iter().zip(m.keys);
            Answer::UniqueKeys(pairs.map(|(label, key)| (Token(label), Token(key))).collect())
        }
        Kind::Place(m) => {
            same("Places", "salts", m.salts.len(), m.guis.len())?;
            Answer::Place(m.guis.into_iter().map(Gui).zip(m.salts).collect())
        }
        Kind::Vertices(m) => {
            const MESSAGE: &str = "VertexRows";
            let rows = m.present.len();
            let cells = cells_from(m.cells)?;
            if !m.ids.is_empty() {
                same(MESSAGE, "ids", m.ids.len(), rows)?;
            }
            ends(MESSAGE, "label_ends", &m.label_ends, rows, m.labels.len())?;
            ends(MESSAGE, "cell_ends", &m.cell_ends, rows, cells.len())?;
            Answer::Vertices(VertexRows {
                present: m.present,
                ids: m.ids.into_iter().map(Str::from).collect(),
                label_ends: m.label_ends,
                labels: tokens_from(m.labels),
                cell_ends: m.cell_ends,
                meta: meta_from(m.meta, cells.len())?,
                cells,
            })
        }
        Kind::Edges(m) => {
            const MESSAGE: &str = "EdgeRows";
            let rows = m.present.len();
            let cells = cells_from(m.cells)?;
            if !m.ids.is_empty() {
                same(MESSAGE, "ids", m.ids.len(), rows)?;
            }
            ends(MESSAGE, "cell_ends", &m.cell_ends, rows, cells.len())?;
            Answer::Edges(EdgeRows {
                present: m.present,
                ids: m.ids.into_iter().map(Str::from).collect(),
                cell_ends: m.cell_ends,
                cells,
            })
        }
        Kind::Expand(m) => {
            let (rows, next) = expansion_from(m)?;
            Answer::Expand(rows, next)
        }
        Kind::SampleEdges(m) => Answer::SampleEdges(expansion_from(m)?.0),
        Kind::TopEdges(m) => {
            let (rows, next) = expansion_from(m)?;
            Answer::TopEdges(rows, next)
        }
        Kind::CountVertices(m) => Answer::CountVertices(m.count, m.next.map(scan_cursor_from).transpose()?),
        Kind::SampleVertices(m) => {
            Answer::SampleVertices(reservoir_from(m.sample)?, m.next.map(scan_cursor_from).transpose()?)
        }
        Kind::Degrees(m) => Answer::Degrees(m.degrees),
        Kind::ScanVertices(m) => {
            let guis = guis_from(&m.guis, "ScannedVertices", "guis")?;
            Answer::ScanVertices(guis, m.next.map(scan_cursor_from).transpose()?)
        }
        Kind::ScanValues(m) => {
            let vertices = guis_from(&m.guis, "ScannedValues", "guis")?;
            let rows = vertices.len();
            let columns = m.columns.into_iter().map(|column| column_from(column, rows));
            let columns = columns.collect::<Result<_, _>>()?;
            let found = ScannedValues { vertices, columns };
            Answer::ScanValues(found, m.next.map(scan_cursor_from).transpose()?)
        }
        Kind::ScanEdges(m) => {
            let next = m.next.map(scan_cursor_from).transpose()?;
            let targets = guis_from(&m.targets, "ScannedEdges", "targets")?;
            let sids = sids_from(&m.sids, "ScannedEdges", "sids")?;
            Answer::ScanEdges(edge_runs_from(m.sources, m.labels, m.ends, targets, sids)?, next)
        }
        Kind::Statistics(m) => Answer::Statistics(Statistics {
            vertices: m.vertices,
            edges: m.edges,
            vertices_by_label: counts_from(m.vertices_by_label),
            edges_by_label: counts_from(m.edges_by_label),
            keys: m.keys.into_iter().map(key_from).collect(),
            sets: m.sets.into_iter().map(set_from).collect(),
            distinct: m.distinct.into_iter().map(|m| (Token(m.key), m.count)).collect(),
            degrees: m.degrees.into_iter().map(degrees_from).collect(),
        }),
    })
}

fn handles_to(found: &[Option<Edge>]) -> proto::EdgeHandles {
    proto::EdgeHandles {
        found: found.iter().map(Option::is_some).collect(),
        edges: found.iter().flatten().map(mutation::encode_edge).collect(),
    }
}

fn handles_from(m: proto::EdgeHandles) -> Result<Vec<Option<Edge>>, Error> {
    let found = m.found.iter().filter(|found| **found).count();
    same("EdgeHandles", "edges", m.edges.len(), found)?;
    let mut edges = edges_from(m.edges, "EdgeHandles")?.into_iter();
    Ok(m.found.into_iter().map(|found| if found { edges.next() } else { None }).collect())
}

fn expansion_to(rows: &Expansion, next: Option<Cursor>) -> proto::Expansion {
    proto::Expansion {
        row: numbers_to(&rows.row, |row| row),
        neighbour: guis_to(&rows.neighbour),
        sid: sids_to(&rows.sid),
        label: numbers_to(&rows.label, |label| label.0),
        outgoing: numbers_to(&rows.outgoing, u32::from),
        next: next.map(cursor_to),
    }
}

fn expansion_from(m: proto::Expansion) -> Result<(Expansion, Option<Cursor>), Error> {
    const MESSAGE: &str = "Expansion";
    let neighbour = guis_from(&m.neighbour, MESSAGE, "neighbour")?;
    let rows = neighbour.len();
    let row = numbers_from(m.row.as_ref(), rows, MESSAGE, "row", |row| row)?;
    // Who asked for neighbours only may get no more.
    let neighbours_only = m.sid.is_empty() && m.label.is_none() && m.outgoing.is_none();
    let others = if neighbours_only { 0 } else { rows };
    let expansion = Expansion {
        row,
        neighbour,
        sid: wide_from(&m.sid, MESSAGE, "sid", Sid)?,
        label: numbers_from(m.label.as_ref(), others, MESSAGE, "label", Token)?,
        outgoing: numbers_from(m.outgoing.as_ref(), others, MESSAGE, "outgoing", |n| n != 0)?,
    };
    same(MESSAGE, "sid", expansion.sid.len(), others)?;
    Ok((expansion, m.next.map(cursor_from)))
}

fn edge_runs_from(
    sources: Vec<u64>,
    labels: Vec<u32>,
    run_ends: Vec<u32>,
    target: Vec<Gui>,
    sid: Vec<Sid>,
) -> Result<EdgeRuns, Error> {
    const MESSAGE: &str = "ScannedEdges";
    same(MESSAGE, "labels", labels.len(), sources.len())?;
    same(MESSAGE, "sids", sid.len(), target.len())?;
    ends(MESSAGE, "ends", &run_ends, sources.len(), target.len())?;
    let starts = std::iter::once(0).chain(run_ends.iter().copied());
    if run_ends.len() != sources.len() || starts.zip(&run_ends).any(|(start, end)| start == *end) {
        return Err(Error::Misaligned { message: MESSAGE, field: "ends" });
    }
    let runs = sources.into_iter().zip(labels).zip(run_ends);
    Ok(EdgeRuns {
        runs: runs
            .map(|((source, label), end)| EdgeRun { source: Gui(source), label: Token(label), end })
            .collect(),
        target,
        sid,
    })
}

fn key_to(key: &KeyStatistics) -> proto::KeyStatistics {
    proto::KeyStatistics { label: key.label.0, key: key.key.0, values: key.values, distinct: key.distinct }
}

fn set_to(set: &SetStatistics) -> proto::SetStatistics {
    let key = |key: &SetKey| proto::SetKey {
        key: key.key.0,
        bounds: key.bounds.map(|(least, greatest)| proto::NumberBounds { least, greatest }),
    };
    proto::SetStatistics {
        labels: tokens_to(&set.labels),
        vertices: set.vertices,
        keys: set.keys.iter().map(key).collect(),
    }
}

fn set_from(m: proto::SetStatistics) -> SetStatistics {
    let key = |m: proto::SetKey| SetKey {
        key: Token(m.key),
        bounds: m.bounds.map(|bounds| (bounds.least, bounds.greatest)),
    };
    SetStatistics {
        labels: tokens_from(m.labels),
        vertices: m.vertices,
        keys: m.keys.into_iter().map(key).collect(),
    }
}

fn degrees_to(of: &DegreeStatistics) -> proto::DegreeStatistics {
    proto::DegreeStatistics {
        vertex_label: of.vertex_label.map(|label| label.0),
        edge_label: of.edge_label.0,
        outgoing: of.outgoing,
        vertices: of.vertices,
        edges: of.edges,
        histogram: of.histogram.clone(),
    }
}

fn degrees_from(m: proto::DegreeStatistics) -> DegreeStatistics {
    DegreeStatistics {
        vertex_label: m.vertex_label.map(Token),
        edge_label: Token(m.edge_label),
        outgoing: m.outgoing,
        vertices: m.vertices,
        edges: m.edges,
        histogram: m.histogram,
    }
}

fn key_from(m: proto::KeyStatistics) -> KeyStatistics {
    KeyStatistics { label: Token(m.label), key: Token(m.key), values: m.values, distinct: m.distinct }
}

/// Ends of rows: none, or one a row, rising, the last one being the number of items.
fn ends(
    message: &'static str,
    field: &'static str,
    ends: &[u32],
    rows: usize,
    items: usize,
) -> Result<(), Error> {
    if !ends.is_empty() {
        same(message, field, ends.len(), rows)?;
    }
    if !ends.is_sorted() {
        return Err(Error::Misaligned { message, field });
    }
    same(message, field, ends.last().map_or(0, |end| *end as usize), items)
}

fn edges_from(messages: Vec<proto::Edge>, message: &'static str) -> Result<Vec<Edge>, Error> {
    messages.into_iter().map(|edge| mutation::decode_edge(Some(edge), message)).collect()
}

fn cells_to(cells: &[PropertyCell]) -> Result<Option<proto::PropertyCells>, Error> {
    if cells.is_empty() {
        return Ok(None);
    }
    let mut values = values::Writer::default();
    cells.iter().try_for_each(|cell| values.push(&cell.value))?;
    let (values, kinds, numbers) = values.finish();
    Ok(Some(proto::PropertyCells {
        keys: cells.iter().map(|cell| cell.key.0).collect(),
        cardinalities: cells.iter().map(|cell| value::encode_cardinality(cell.cardinality).into()).collect(),
        values,
        kinds,
        numbers,
    }))
}

fn cells_from(message: Option<proto::PropertyCells>) -> Result<Vec<PropertyCell>, Error> {
    const MESSAGE: &str = "PropertyCells";
    let Some(m) = message else { return Ok(Vec::new()) };
    let values = values::read(MESSAGE, m.values, &m.kinds, &m.numbers)?;
    same(MESSAGE, "cardinalities", m.cardinalities.len(), m.keys.len())?;
    same(MESSAGE, "values", values.len(), m.keys.len())?;
    let cells = m.keys.into_iter().zip(m.cardinalities).zip(values);
    let cell = |((key, cardinality), value)| {
        let cardinality = value::decode_cardinality(cardinality)?;
        Ok(PropertyCell { key: Token(key), cardinality, value })
    };
    cells.map(cell).collect()
}

fn meta_to(meta: &CellMeta) -> Result<proto::CellMeta, Error> {
    Ok(proto::CellMeta { cell: meta.cell, key: meta.key.0, value: Some(value::encode(&meta.value)?) })
}

/// Meta-properties, in order of the cells that they are of.
fn meta_from(messages: Vec<proto::CellMeta>, cells: usize) -> Result<Vec<CellMeta>, Error> {
    let fits = messages.last().is_none_or(|last| (last.cell as usize) < cells);
    if !fits || !messages.is_sorted_by_key(|meta| meta.cell) {
        return Err(Error::Misaligned { message: "VertexRows", field: "meta" });
    }
    let meta = |m: proto::CellMeta| {
        let value = value::decode_required(m.value, "CellMeta")?;
        Ok(CellMeta { cell: m.cell, key: Token(m.key), value })
    };
    messages.into_iter().map(meta).collect()
}

fn column_to(column: &[Value]) -> Result<proto::ValueColumn, Error> {
    let (mut values, mut ends) = (values::Writer::default(), Vec::with_capacity(column.len()));
    for row in column {
        match row {
            Value::Null => {}
            Value::List(several) => several.iter().try_for_each(|one| values.push(one))?,
            one => values.push(one)?,
        }
        ends.push(values.len() as u32);
    }
    let (values, kinds, numbers) = values.finish();
    Ok(proto::ValueColumn { ends, values, kinds, numbers })
}

fn column_from(m: proto::ValueColumn, rows: usize) -> Result<Vec<Value>, Error> {
    const MESSAGE: &str = "ValueColumn";
    let values = values::read(MESSAGE, m.values, &m.kinds, &m.numbers)?;
    same(MESSAGE, "ends", m.ends.len(), rows)?;
    ends(MESSAGE, "ends", &m.ends, rows, values.len())?;
    let (mut values, mut start) = (values.into_iter(), 0);
    let row = |end: u32| {
        let count = (end - std::mem::replace(&mut start, end)) as usize;
        match count {
            0 => Value::Null,
            1 => values.next().unwrap_or(Value::Null),
            _ => Value::list(values.by_ref().take(count).collect::<Vec<_>>()),
        }
    };
    Ok(m.ends.into_iter().map(row).collect())
}

fn counts_to(counts: &[(Token, u64)]) -> Vec<proto::LabelCount> {
    counts.iter().map(|(label, count)| proto::LabelCount { label: label.0, count: *count }).collect()
}

fn counts_from(messages: Vec<proto::LabelCount>) -> Vec<(Token, u64)> {
    messages.into_iter().map(|m| (Token(m.label), m.count)).collect()
}

fn error_to(error: &tidegraph_apl::Error) -> proto::AplError {
    use proto::apl_error::Kind;
    use tidegraph_apl::Error as Apl;
    let kind = match error {
        Apl::Behind { applied, asked } => {
            Kind::Behind(proto::BehindError { applied: applied.0, asked: asked.0 })
        }
        Apl::TooOld { oldest, asked } => {
            Kind::TooOld(proto::TooOldError { oldest: oldest.0, asked: asked.0 })
        }
        Apl::Unavailable(reason) => Kind::Unavailable(reason.clone()),
        Apl::Corrupt(reason) => Kind::Corrupt(reason.clone()),
        Apl::NotHere { partition, epoch } => {
            Kind::NotHere(proto::NotHereError { partition: u32::from(partition.0), epoch: epoch.0 })
        }
        Apl::WrongEpoch { held, asked } => {
            Kind::WrongEpoch(proto::WrongEpochError { held: held.0, asked: asked.0 })
        }
        Apl::Cancelled => Kind::Cancelled(proto::CancelledError {}),
        Apl::Overdue => Kind::Overdue(proto::OverdueError {}),
        Apl::TooLarge { bytes, limit } => {
            Kind::TooLarge(proto::TooLargeError { bytes: *bytes, limit: *limit })
        }
    };
    proto::AplError { kind: Some(kind) }
}

fn error_from(message: proto::AplError) -> Result<tidegraph_apl::Error, Error> {
    use proto::apl_error::Kind;
    use tidegraph_apl::Error as Apl;
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "AplError" })? {
        Kind::Behind(m) => Apl::Behind { applied: Version(m.applied), asked: Version(m.asked) },
        Kind::TooOld(m) => Apl::TooOld { oldest: Version(m.oldest), asked: Version(m.asked) },
        Kind::Unavailable(reason) => Apl::Unavailable(reason),
        Kind::Corrupt(reason) => Apl::Corrupt(reason),
        Kind::NotHere(m) => {
            let partition = u16::try_from(m.partition)
                .map_err(|_| Error::OutOfRange { field: "partition", value: i128::from(m.partition) })?;
            Apl::NotHere { partition: PartitionId(partition), epoch: Epoch(m.epoch) }
        }
        Kind::WrongEpoch(m) => Apl::WrongEpoch { held: Epoch(m.held), asked: Epoch(m.asked) },
        Kind::Cancelled(_) => Apl::Cancelled,
        Kind::Overdue(_) => Apl::Overdue,
        Kind::TooLarge(m) => Apl::TooLarge { bytes: m.bytes, limit: m.limit },
    })
}
