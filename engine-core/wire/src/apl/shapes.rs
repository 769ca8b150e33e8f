//! Shapes that several requests and answers share: type ↔ message.

use super::column::{numbers_from, numbers_to, wide_from, wide_to};
use super::values;
use crate::proto::property_predicate::Test as TestKind;
use crate::{Error, mutation, proto, value};
use bytes::Bytes;
use tidegraph_apl::{
    Cursor, Draw, Expand, Expansion, OneOf, Projection, PropertyCell, PropertyPredicate, Reservoir,
    ScanCursor, Test, VertexScan,
};
use tidegraph_types::{Direction, Edge, Gui, Sid, Str, Token, Value};

pub(super) fn guis_to(guis: &[Gui]) -> Bytes {
    wide_to(guis, |gui| gui.0)
}

pub(super) fn guis_from(bytes: &[u8], message: &'static str, field: &'static str) -> Result<Vec<Gui>, Error> {
    wide_from(bytes, message, field, Gui)
}

pub(super) fn sids_to(sids: &[Sid]) -> Bytes {
    wide_to(sids, |sid| sid.0)
}

pub(super) fn sids_from(bytes: &[u8], message: &'static str, field: &'static str) -> Result<Vec<Sid>, Error> {
    wide_from(bytes, message, field, Sid)
}

/// Checks that two columns have one length.
pub(super) fn same(
    message: &'static str,
    field: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Misaligned { message, field }) }
}

/// Checks the ends of rows: none, or one for each row, rising, and the last one is the number of items.
pub(super) fn check_ends(
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

pub(super) fn strings_to(ids: &[Str]) -> Vec<String> {
    ids.iter().map(Str::to_string).collect()
}

pub(super) fn strings_from(ids: Vec<String>) -> Vec<Str> {
    ids.into_iter().map(Str::from).collect()
}

pub(super) fn tokens_to(tokens: &[Token]) -> Vec<u32> {
    tokens.iter().map(|t| t.0).collect()
}

pub(super) fn tokens_from(numbers: Vec<u32>) -> Vec<Token> {
    numbers.into_iter().map(Token).collect()
}

pub(super) fn labels_to(labels: &[Token]) -> proto::Labels {
    proto::Labels { tokens: tokens_to(labels) }
}

fn cursor_to(cursor: Cursor) -> proto::ExpandCursor {
    proto::ExpandCursor { row: cursor.row, offset: cursor.offset }
}

fn cursor_from(cursor: proto::ExpandCursor) -> Cursor {
    Cursor { row: cursor.row, offset: cursor.offset, replica: 0 }
}

pub(super) fn scan_cursor_to(cursor: ScanCursor) -> proto::ScanCursor {
    proto::ScanCursor {
        partition: u32::from(cursor.partition),
        position: cursor.position,
        by_index: cursor.by_index,
        cover: u32::from(cursor.cover),
    }
}

pub(super) fn scan_cursor_from(cursor: proto::ScanCursor) -> Result<ScanCursor, Error> {
    let partition = u16::try_from(cursor.partition)
        .map_err(|_| Error::OutOfRange { field: "partition", value: i128::from(cursor.partition) })?;
    let cover = u16::try_from(cursor.cover)
        .map_err(|_| Error::OutOfRange { field: "cover", value: i128::from(cursor.cover) })?;
    Ok(ScanCursor { partition, position: cursor.position, by_index: cursor.by_index, cover, replica: 0 })
}

/// Returns the cursor at which a scan starts: the beginning if the message has none.
pub(super) fn scan_start(from: Option<proto::ScanCursor>) -> Result<ScanCursor, Error> {
    from.map_or(Ok(ScanCursor::default()), scan_cursor_from)
}

pub(super) fn reservoir_to(sample: &Reservoir<Gui>) -> proto::Reservoir {
    proto::Reservoir {
        count: sample.count,
        guis: sample.items.iter().map(|gui| gui.0).collect(),
        draw: sample.draw.0,
        weight: sample.weight,
        skip: sample.skip,
    }
}

pub(super) fn reservoir_from(sample: Option<proto::Reservoir>) -> Result<Reservoir<Gui>, Error> {
    let sample = sample.ok_or(Error::UnknownKind { message: "Reservoir" })?;
    Ok(Reservoir {
        count: sample.count,
        items: sample.guis.into_iter().map(Gui).collect(),
        draw: Draw(sample.draw),
        weight: sample.weight,
        skip: sample.skip,
    })
}

/// Checks `max_rows`: a request for no rows would never end.
pub(super) fn max_rows(max_rows: u32) -> Result<u32, Error> {
    if max_rows == 0 { Err(Error::OutOfRange { field: "max_rows", value: 0 }) } else { Ok(max_rows) }
}

pub(super) fn scan_to(scan: &VertexScan, from: ScanCursor) -> Result<proto::ScanVerticesRequest, Error> {
    Ok(proto::ScanVerticesRequest {
        labels: scan.labels.iter().map(|group| labels_to(group)).collect(),
        predicates: predicates_to(&scan.predicates)?,
        max_rows: scan.max_rows,
        from: Some(scan_cursor_to(from)),
    })
}

pub(super) fn scan_from(m: proto::ScanVerticesRequest) -> Result<(VertexScan, ScanCursor), Error> {
    let scan = VertexScan {
        labels: m.labels.into_iter().map(|group| tokens_from(group.tokens)).collect(),
        predicates: predicates_from(m.predicates)?,
        max_rows: max_rows(m.max_rows)?,
    };
    Ok((scan, scan_start(m.from)?))
}

pub(super) fn projection_to(projection: &Projection) -> Option<proto::Projection> {
    use proto::projection::Kind;
    let kind = match projection {
        Projection::None => return None,
        Projection::All => Kind::All(proto::AllProperties {}),
        Projection::Keys(keys) => Kind::Keys(proto::PropertyKeys { keys: tokens_to(keys) }),
    };
    Some(proto::Projection { kind: Some(kind) })
}

pub(super) fn projection_from(message: Option<proto::Projection>) -> Result<Projection, Error> {
    use proto::projection::Kind;
    let Some(message) = message else { return Ok(Projection::None) };
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "Projection" })? {
        Kind::All(_) => Projection::All,
        Kind::Keys(m) => Projection::Keys(tokens_from(m.keys)),
    })
}

pub(super) fn expand_to(expand: &Expand, frontier: &[Gui], from: Option<Cursor>) -> proto::ExpandRequest {
    let direction = match expand.direction {
        Direction::Out => proto::Direction::Out,
        Direction::In => proto::Direction::In,
        Direction::Both => proto::Direction::Both,
    };
    proto::ExpandRequest {
        direction: direction.into(),
        labels: expand.labels.as_deref().map(labels_to),
        max_rows: expand.max_rows,
        loops_once: expand.loops_once,
        frontier: guis_to(frontier),
        from: from.map(cursor_to),
        neighbours_only: expand.neighbours_only,
    }
}

pub(super) fn expand_from(message: proto::ExpandRequest) -> Result<(Expand, Vec<Gui>, Cursor), Error> {
    let direction = match proto::Direction::try_from(message.direction) {
        Ok(proto::Direction::Out) => Direction::Out,
        Ok(proto::Direction::In) => Direction::In,
        Ok(proto::Direction::Both) => Direction::Both,
        Err(_) => return Err(Error::UnknownKind { message: "Direction" }),
    };
    let expand = Expand {
        direction,
        labels: message.labels.map(|labels| tokens_from(labels.tokens)),
        max_rows: max_rows(message.max_rows)?,
        loops_once: message.loops_once,
        neighbours_only: message.neighbours_only,
    };
    let frontier = guis_from(&message.frontier, "ExpandRequest", "frontier")?;
    Ok((expand, frontier, message.from.map_or(Cursor::default(), cursor_from)))
}

pub(super) fn expansion_to(rows: &Expansion, next: Option<Cursor>) -> proto::Expansion {
    proto::Expansion {
        row: numbers_to(&rows.row, |row| row),
        neighbour: guis_to(&rows.neighbour),
        sid: sids_to(&rows.sid),
        label: numbers_to(&rows.label, |label| label.0),
        outgoing: numbers_to(&rows.outgoing, u32::from),
        next: next.map(cursor_to),
    }
}

pub(super) fn expansion_from(m: proto::Expansion) -> Result<(Expansion, Option<Cursor>), Error> {
    const MESSAGE: &str = "Expansion";
    let neighbour = guis_from(&m.neighbour, MESSAGE, "neighbour")?;
    let rows = neighbour.len();
    let row = numbers_from(m.row.as_ref(), rows, MESSAGE, "row", |row| row)?;
    // The answer to a request for neighbours only may lack the other columns.
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

pub(super) fn predicates_to(
    predicates: &[PropertyPredicate],
) -> Result<Vec<proto::PropertyPredicate>, Error> {
    predicates.iter().map(predicate_to).collect()
}

pub(super) fn predicates_from(
    messages: Vec<proto::PropertyPredicate>,
) -> Result<Vec<PropertyPredicate>, Error> {
    messages.into_iter().map(predicate_from).collect()
}

fn predicate_to(predicate: &PropertyPredicate) -> Result<proto::PropertyPredicate, Error> {
    let bound = |bound: &Option<(Value, bool)>| -> Result<Option<proto::Bound>, Error> {
        let Some((value, inclusive)) = bound else { return Ok(None) };
        Ok(Some(proto::Bound { value: Some(value::encode(value)?), inclusive: *inclusive }))
    };
    let test = match &predicate.test {
        Test::Exists => TestKind::Exists(proto::ExistsTest {}),
        Test::Equals(value) => TestKind::Equals(value::encode(value)?),
        Test::Within(values) => TestKind::Within(proto::Values {
            values: values.iter().map(value::encode).collect::<Result<_, _>>()?,
        }),
        Test::Range { low, high } => {
            TestKind::Range(proto::RangeTest { low: bound(low)?, high: bound(high)? })
        }
        Test::StartsWith(prefix) => TestKind::StartsWith(prefix.clone()),
    };
    Ok(proto::PropertyPredicate { key: predicate.key.0, test: Some(test), sole: predicate.sole })
}

fn predicate_from(message: proto::PropertyPredicate) -> Result<PropertyPredicate, Error> {
    let bound = |bound: Option<proto::Bound>| -> Result<Option<(Value, bool)>, Error> {
        let Some(bound) = bound else { return Ok(None) };
        Ok(Some((value::decode_required(bound.value, "Bound")?, bound.inclusive)))
    };
    let test = match message.test.ok_or(Error::UnknownKind { message: "PropertyPredicate" })? {
        TestKind::Exists(_) => Test::Exists,
        TestKind::Equals(v) => Test::Equals(value::decode(v)?),
        TestKind::Within(m) => {
            Test::Within(OneOf::new(m.values.into_iter().map(value::decode).collect::<Result<_, _>>()?))
        }
        TestKind::Range(m) => Test::Range { low: bound(m.low)?, high: bound(m.high)? },
        TestKind::StartsWith(prefix) => Test::StartsWith(prefix),
    };
    Ok(PropertyPredicate { key: Token(message.key), test, sole: message.sole })
}

pub(super) fn handles_to(found: &[Option<Edge>]) -> proto::EdgeHandles {
    proto::EdgeHandles {
        found: found.iter().map(Option::is_some).collect(),
        edges: found.iter().flatten().map(mutation::encode_edge).collect(),
    }
}

pub(super) fn handles_from(m: proto::EdgeHandles) -> Result<Vec<Option<Edge>>, Error> {
    const MESSAGE: &str = "EdgeHandles";
    let found = m.found.iter().filter(|found| **found).count();
    same(MESSAGE, "edges", m.edges.len(), found)?;
    let edges = m.edges.into_iter().map(|edge| mutation::decode_edge(Some(edge), MESSAGE));
    let mut edges = edges.collect::<Result<Vec<Edge>, Error>>()?.into_iter();
    Ok(m.found.into_iter().map(|found| if found { edges.next() } else { None }).collect())
}

pub(super) fn cells_to(cells: &[PropertyCell]) -> Result<Option<proto::PropertyCells>, Error> {
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

pub(super) fn cells_from(message: Option<proto::PropertyCells>) -> Result<Vec<PropertyCell>, Error> {
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
