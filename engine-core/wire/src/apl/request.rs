//! Requests: value ↔ message.

use super::column::{numbers_from, numbers_to, wide_to};
use super::{
    cursor_from, cursor_to, guis_from, guis_to, reservoir_from, reservoir_to, same, scan_cursor_from,
    scan_cursor_to, sids_from, tokens_from, tokens_to,
};
use crate::proto::apl_request::Kind;
use crate::proto::property_predicate::Test as TestKind;
use crate::{Error, proto, value};
use tidegraph_apl::{
    At, Cursor, EdgePlace, EdgeRead, EdgeScan, Expand, Projection, PropertyPredicate, Reservoir, Sample,
    ScanCursor, Test, TopEdges, VertexRead, VertexScan,
};
use tidegraph_types::{Direction, Edge, Epoch, Gui, Str, Token, Value, Version};

/// One call of the trait `Apl`.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// `resolve_vertices`: users' ids.
    ResolveVertices(Vec<Str>),
    /// `resolve_edges`: users' or generated ids.
    ResolveEdges(Vec<Str>),
    /// `place`: ids, and the lowest salt to try for each.
    Place(Vec<(Str, u64)>),
    /// `vertices`: what to read, of which.
    Vertices(VertexRead, Vec<Gui>),
    /// `edges`: what to read, of which.
    Edges(EdgeRead, Vec<Edge>),
    /// `expand`: which edges, of which vertices, from where on.
    Expand(Expand, Vec<Gui>, Cursor),
    /// `degrees`: which edges, of which vertices.
    Degrees(Expand, Vec<Gui>),
    /// `scan_vertices`: which, from where on.
    ScanVertices(VertexScan, ScanCursor),
    /// `scan_values`: which, of which keys, from where on.
    ScanValues(VertexScan, Vec<Token>, ScanCursor),
    /// `scan_edges`: which, from where on.
    ScanEdges(EdgeScan, ScanCursor),
    /// `statistics`.
    Statistics,
    /// `count_vertices`: which, from where on.
    CountVertices(VertexScan, ScanCursor),
    /// `sample_vertices`: which, from where on, the sample so far.
    SampleVertices(VertexScan, ScanCursor, Reservoir<Gui>),
    /// `sample_edges`: which edges, how many, of which vertices.
    SampleEdges(Expand, Sample, Vec<Gui>),
    /// `top_edges`: which edges, which of them, of which vertices, from where on.
    TopEdges(Expand, TopEdges, Vec<Gui>, Cursor),
    /// `edge_candidates`: ids of edges.
    EdgeCandidates(Vec<Str>),
    /// `find_edges`: source, SID, and the id that its user chose.
    FindEdges(Vec<EdgePlace>),
    /// `unique_keys`.
    UniqueKeys,
}

/// The message of a request; fails on a predicate whose value is no scalar.
pub fn encode_request(at: At, request: &Request) -> Result<proto::AplRequest, Error> {
    let strings = |ids: &[Str]| ids.iter().map(Str::to_string).collect();
    let kind = match request {
        Request::ResolveVertices(ids) => Kind::ResolveVertices(proto::ResolveRequest { ids: strings(ids) }),
        Request::ResolveEdges(ids) => Kind::ResolveEdges(proto::ResolveRequest { ids: strings(ids) }),
        Request::Place(ids) => Kind::Place(proto::PlaceRequest {
            ids: ids.iter().map(|(id, _)| id.to_string()).collect(),
            salts: ids.iter().map(|(_, salt)| *salt).collect(),
        }),
        Request::Vertices(read, frontier) => Kind::Vertices(proto::ReadVerticesRequest {
            ids: read.ids,
            labels: read.labels,
            properties: projection_to(&read.properties),
            frontier: guis_to(frontier),
            meta: read.meta,
        }),
        Request::Edges(read, frontier) => Kind::Edges(proto::ReadEdgesRequest {
            ids: read.ids,
            properties: projection_to(&read.properties),
            sids: wide_to(frontier, |edge| edge.sid.0),
            sources: wide_to(frontier, |edge| edge.source.0),
            targets: wide_to(frontier, |edge| edge.target.0),
            labels: numbers_to(frontier, |edge| edge.label.0),
        }),
        Request::Expand(expand, frontier, from) => Kind::Expand(expand_to(expand, frontier, Some(*from))),
        Request::Degrees(expand, frontier) => Kind::Degrees(expand_to(expand, frontier, None)),
        Request::ScanVertices(scan, from) => Kind::ScanVertices(scan_to(scan, *from)?),
        Request::ScanValues(scan, keys, from) => Kind::ScanValues(proto::ScanValuesRequest {
            scan: Some(scan_to(scan, *from)?),
            keys: tokens_to(keys),
        }),
        Request::CountVertices(scan, from) => Kind::CountVertices(scan_to(scan, *from)?),
        Request::SampleVertices(scan, from, sample) => Kind::SampleVertices(proto::SampleVerticesRequest {
            scan: Some(scan_to(scan, *from)?),
            sample: Some(reservoir_to(sample)),
        }),
        Request::SampleEdges(expand, sample, frontier) => Kind::SampleEdges(proto::SampleEdgesRequest {
            expand: Some(expand_to(expand, frontier, None)),
            count: sample.count,
            seed: sample.seed,
        }),
        Request::TopEdges(expand, top, frontier, from) => Kind::TopEdges(proto::TopEdgesRequest {
            expand: Some(expand_to(expand, frontier, Some(*from))),
            key: top.key.0,
            descending: top.descending,
            count: top.count,
            each: top.each,
        }),
        Request::ScanEdges(scan, from) => Kind::ScanEdges(proto::ScanEdgesRequest {
            labels: scan.labels.as_deref().map(labels_to),
            predicates: scan.predicates.iter().map(predicate_to).collect::<Result<_, _>>()?,
            max_rows: scan.max_rows,
            from: Some(scan_cursor_to(*from)),
        }),
        Request::Statistics => Kind::Statistics(proto::StatisticsRequest {}),
        Request::EdgeCandidates(ids) => Kind::EdgeCandidates(proto::ResolveRequest { ids: strings(ids) }),
        Request::FindEdges(places) => Kind::FindEdges(proto::FindEdgesRequest {
            sources: wide_to(places, |place| place.source.0),
            sids: wide_to(places, |place| place.sid.0),
            ids: places.iter().map(|place| place.id.clone().unwrap_or_default().into()).collect(),
            generated: places.iter().map(|place| place.id.is_none()).collect(),
        }),
        Request::UniqueKeys => Kind::UniqueKeys(proto::UniqueKeysRequest {}),
    };
    Ok(proto::AplRequest { version: at.version.0, epoch: at.epoch.0, kind: Some(kind) })
}

/// The request of a message, and where in time it reads.
pub fn decode_request(message: proto::AplRequest) -> Result<(At, Request), Error> {
    let at = At { version: Version(message.version), epoch: Epoch(message.epoch) };
    let strings = |ids: Vec<String>| ids.into_iter().map(Str::from).collect();
    let request = match message.kind.ok_or(Error::UnknownKind { message: "AplRequest" })? {
        Kind::ResolveVertices(m) => Request::ResolveVertices(strings(m.ids)),
        Kind::ResolveEdges(m) => Request::ResolveEdges(strings(m.ids)),
        Kind::Place(m) => {
            if m.salts.len() != m.ids.len() {
                return Err(Error::Misaligned { message: "PlaceRequest", field: "salts" });
            }
            Request::Place(m.ids.into_iter().map(Str::from).zip(m.salts).collect())
        }
        Kind::Vertices(m) => {
            let properties = projection_from(m.properties)?;
            let read = VertexRead { ids: m.ids, labels: m.labels, properties, meta: m.meta };
            Request::Vertices(read, guis_from(&m.frontier, "ReadVerticesRequest", "frontier")?)
        }
        Kind::Edges(m) => {
            let read = EdgeRead { ids: m.ids, properties: projection_from(m.properties.clone())? };
            Request::Edges(read, edges_from(&m)?)
        }
        Kind::Expand(m) => {
            let (expand, frontier, from) = expand_from(m)?;
            Request::Expand(expand, frontier, from)
        }
        Kind::Degrees(m) => {
            let (expand, frontier, _) = expand_from(m)?;
            Request::Degrees(expand, frontier)
        }
        Kind::ScanVertices(m) => {
            let (scan, from) = scan_from(m)?;
            Request::ScanVertices(scan, from)
        }
        Kind::ScanValues(m) => {
            let scan = m.scan.ok_or(Error::Missing { message: "ScanValuesRequest", field: "scan" })?;
            if m.keys.is_empty() {
                return Err(Error::Missing { message: "ScanValuesRequest", field: "keys" });
            }
            let (scan, from) = scan_from(scan)?;
            Request::ScanValues(scan, tokens_from(m.keys), from)
        }
        Kind::CountVertices(m) => {
            let (scan, from) = scan_from(m)?;
            Request::CountVertices(scan, from)
        }
        Kind::SampleVertices(m) => {
            let scan = m.scan.ok_or(Error::UnknownKind { message: "SampleVerticesRequest" })?;
            let (scan, from) = scan_from(scan)?;
            Request::SampleVertices(scan, from, reservoir_from(m.sample)?)
        }
        Kind::SampleEdges(m) => {
            let expand = m.expand.ok_or(Error::UnknownKind { message: "SampleEdgesRequest" })?;
            let (expand, frontier, _) = expand_from(expand)?;
            Request::SampleEdges(expand, Sample { count: m.count, seed: m.seed }, frontier)
        }
        Kind::TopEdges(m) => {
            let expand = m.expand.ok_or(Error::UnknownKind { message: "TopEdgesRequest" })?;
            let (expand, frontier, from) = expand_from(expand)?;
            let top = TopEdges { key: Token(m.key), descending: m.descending, count: m.count, each: m.each };
            Request::TopEdges(expand, top, frontier, from)
        }
        Kind::ScanEdges(m) => {
            let scan = EdgeScan {
                labels: m.labels.map(|labels| tokens_from(labels.tokens)),
                predicates: m.predicates.into_iter().map(predicate_from).collect::<Result<_, _>>()?,
                max_rows: rows(m.max_rows)?,
            };
            Request::ScanEdges(scan, m.from.map_or(Ok(ScanCursor::default()), scan_cursor_from)?)
        }
        Kind::Statistics(_) => Request::Statistics,
        Kind::EdgeCandidates(m) => Request::EdgeCandidates(strings(m.ids)),
        Kind::FindEdges(m) => Request::FindEdges(places_from(m)?),
        Kind::UniqueKeys(_) => Request::UniqueKeys,
    };
    Ok((at, request))
}

fn edges_from(m: &proto::ReadEdgesRequest) -> Result<Vec<Edge>, Error> {
    const MESSAGE: &str = "ReadEdgesRequest";
    let sids = sids_from(&m.sids, MESSAGE, "sids")?;
    let sources = guis_from(&m.sources, MESSAGE, "sources")?;
    let targets = guis_from(&m.targets, MESSAGE, "targets")?;
    let labels = numbers_from(m.labels.as_ref(), sids.len(), MESSAGE, "labels", Token)?;
    same(MESSAGE, "sources", sources.len(), sids.len())?;
    same(MESSAGE, "targets", targets.len(), sids.len())?;
    let ends = sources.into_iter().zip(targets).zip(labels);
    let edge = |(sid, ((source, target), label))| Edge { sid, source, target, label };
    Ok(sids.into_iter().zip(ends).map(edge).collect())
}

fn places_from(m: proto::FindEdgesRequest) -> Result<Vec<EdgePlace>, Error> {
    const MESSAGE: &str = "FindEdgesRequest";
    let sources = guis_from(&m.sources, MESSAGE, "sources")?;
    let sids = sids_from(&m.sids, MESSAGE, "sids")?;
    same(MESSAGE, "sids", sids.len(), sources.len())?;
    same(MESSAGE, "ids", m.ids.len(), sources.len())?;
    same(MESSAGE, "generated", m.generated.len(), sources.len())?;
    let ids = m.ids.into_iter().zip(m.generated);
    let place = |((source, sid), (id, generated)): ((Gui, _), (String, bool))| {
        let id = (!generated).then(|| Str::from(id));
        EdgePlace { source, sid, id }
    };
    Ok(sources.into_iter().zip(sids).zip(ids).map(place).collect())
}

fn scan_to(scan: &VertexScan, from: ScanCursor) -> Result<proto::ScanVerticesRequest, Error> {
    Ok(proto::ScanVerticesRequest {
        labels: scan.labels.iter().map(|group| labels_to(group)).collect(),
        predicates: scan.predicates.iter().map(predicate_to).collect::<Result<_, _>>()?,
        max_rows: scan.max_rows,
        from: Some(scan_cursor_to(from)),
    })
}

fn scan_from(m: proto::ScanVerticesRequest) -> Result<(VertexScan, ScanCursor), Error> {
    let scan = VertexScan {
        labels: m.labels.into_iter().map(|group| tokens_from(group.tokens)).collect(),
        predicates: m.predicates.into_iter().map(predicate_from).collect::<Result<_, _>>()?,
        max_rows: rows(m.max_rows)?,
    };
    Ok((scan, m.from.map_or(Ok(ScanCursor::default()), scan_cursor_from)?))
}

/// A request for no rows would never come to an end.
fn rows(max_rows: u32) -> Result<u32, Error> {
    if max_rows == 0 { Err(Error::OutOfRange { field: "max_rows", value: 0 }) } else { Ok(max_rows) }
}

fn projection_to(projection: &Projection) -> Option<proto::Projection> {
    use proto::projection::Kind;
    let kind = match projection {
        Projection::None => return None,
        Projection::All => Kind::All(proto::AllProperties {}),
        Projection::Keys(keys) => Kind::Keys(proto::PropertyKeys { keys: tokens_to(keys) }),
    };
    Some(proto::Projection { kind: Some(kind) })
}

fn projection_from(message: Option<proto::Projection>) -> Result<Projection, Error> {
    use proto::projection::Kind;
    let Some(message) = message else { return Ok(Projection::None) };
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "Projection" })? {
        Kind::All(_) => Projection::All,
        Kind::Keys(m) => Projection::Keys(tokens_from(m.keys)),
    })
}

fn labels_to(labels: &[Token]) -> proto::Labels {
    proto::Labels { tokens: tokens_to(labels) }
}

fn expand_to(expand: &Expand, frontier: &[Gui], from: Option<Cursor>) -> proto::ExpandRequest {
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

fn expand_from(message: proto::ExpandRequest) -> Result<(Expand, Vec<Gui>, Cursor), Error> {
    let direction = match proto::Direction::try_from(message.direction) {
        Ok(proto::Direction::Out) => Direction::Out,
        Ok(proto::Direction::In) => Direction::In,
        Ok(proto::Direction::Both) => Direction::Both,
        Err(_) => return Err(Error::UnknownKind { message: "Direction" }),
    };
    let expand = Expand {
        direction,
        labels: message.labels.map(|labels| tokens_from(labels.tokens)),
        max_rows: rows(message.max_rows)?,
        loops_once: message.loops_once,
        neighbours_only: message.neighbours_only,
    };
    let frontier = guis_from(&message.frontier, "ExpandRequest", "frontier")?;
    Ok((expand, frontier, message.from.map_or(Cursor::default(), cursor_from)))
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
            Test::Within(m.values.into_iter().map(value::decode).collect::<Result<_, _>>()?)
        }
        TestKind::Range(m) => Test::Range { low: bound(m.low)?, high: bound(m.high)? },
        TestKind::StartsWith(prefix) => Test::StartsWith(prefix),
    };
    Ok(PropertyPredicate { key: Token(message.key), test, sole: message.sole })
}
