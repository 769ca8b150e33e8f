//! Requests that scan a partition.

use super::super::shapes::{
    check_ends, guis_from, guis_to, labels_to, max_rows, predicates_from, predicates_to, reservoir_from,
    reservoir_to, same, scan_cursor_from, scan_cursor_to, scan_from, scan_start, scan_to, sids_from, sids_to,
    tokens_from, tokens_to,
};
use super::super::values;
use super::{Allowance, Request};
use crate::{Error, proto};
use std::sync::Arc;
use tidegraph_apl::{
    Apl, At, EdgeRun, EdgeRuns, EdgeScan, Error as AplError, Reservoir, ScanCursor, ScannedColumn,
    ScannedValues, VertexScan,
};
use tidegraph_types::{Gui, Sid, Token, Value};

/// Work of a scan for a single vertex, in rows.
const ONE_VERTEX: usize = 32;

pub(super) fn next_from(next: Option<proto::ScanCursor>) -> Result<Option<ScanCursor>, Error> {
    next.map(scan_cursor_from).transpose()
}

/// A scan with no more rows than a server allows.
fn bounded(scan: &VertexScan, allowance: &Allowance<'_>) -> VertexScan {
    let mut scan = scan.clone();
    scan.max_rows = scan.max_rows.min(allowance.max_rows);
    scan
}

/// The request of the method `Apl::scan_vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct ScanVertices {
    /// Selects the vertices.
    pub scan: VertexScan,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
}

impl Request for ScanVertices {
    type Message = proto::ScanVerticesRequest;
    type AnswerMessage = proto::ScannedVertices;

    fn encode(&self) -> Result<Self::Message, Error> {
        scan_to(&self.scan, self.from)
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let (scan, from) = scan_from(m)?;
        Ok(Self { scan, from })
    }

    fn encode_answer((guis, next): &(Vec<Gui>, Option<ScanCursor>)) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::ScannedVertices { guis: guis_to(guis), next: next.map(scan_cursor_to) })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(Vec<Gui>, Option<ScanCursor>), Error> {
        Ok((guis_from(&m.guis, "ScannedVertices", "guis")?, next_from(m.next)?))
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(Vec<Gui>, Option<ScanCursor>), AplError> {
        let mut out = Vec::new();
        let next = apl.scan_vertices(at, &bounded(&self.scan, allowance), self.from, &mut out)?;
        Ok((out, next))
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        (m.max_rows == 1).then_some(ONE_VERTEX)
    }
}

/// The request of the method `Apl::scan_values`.
#[derive(Clone, PartialEq, Debug)]
pub struct ScanValues {
    /// Selects the vertices.
    pub scan: VertexScan,
    /// The property keys; at least one.
    pub keys: Vec<Token>,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
}

impl Request for ScanValues {
    type Message = proto::ScanValuesRequest;
    type AnswerMessage = proto::ScannedValues;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::ScanValuesRequest {
            scan: Some(scan_to(&self.scan, self.from)?),
            keys: tokens_to(&self.keys),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let scan = m.scan.ok_or(Error::Missing { message: "ScanValuesRequest", field: "scan" })?;
        if m.keys.is_empty() {
            return Err(Error::Missing { message: "ScanValuesRequest", field: "keys" });
        }
        let (scan, from) = scan_from(scan)?;
        Ok(Self { scan, keys: tokens_from(m.keys), from })
    }

    fn encode_answer(
        (found, next): &(ScannedValues, Option<ScanCursor>),
    ) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::ScannedValues {
            guis: guis_to(&found.vertices),
            columns: found
                .columns
                .iter()
                .map(|column| column_to(&column.values()))
                .collect::<Result<_, _>>()?,
            next: next.map(scan_cursor_to),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(ScannedValues, Option<ScanCursor>), Error> {
        let vertices = guis_from(&m.guis, "ScannedValues", "guis")?;
        let rows = vertices.len();
        let columns = m.columns.into_iter().map(|column| column_from(column, rows).map(ScannedColumn::from));
        let columns = columns.collect::<Result<_, _>>()?;
        Ok((ScannedValues { vertices, columns }, next_from(m.next)?))
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(ScannedValues, Option<ScanCursor>), AplError> {
        let mut out = ScannedValues::default();
        out.begin(self.keys.len());
        let scan = bounded(&self.scan, allowance);
        let next = apl.scan_values(at, &scan, &self.keys, self.from, &mut out)?;
        Ok((out, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

/// The request of the method `Apl::scan_edges`.
#[derive(Clone, PartialEq, Debug)]
pub struct ScanEdges {
    /// Selects the edges.
    pub scan: EdgeScan,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
}

impl Request for ScanEdges {
    type Message = proto::ScanEdgesRequest;
    type AnswerMessage = proto::ScannedEdges;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::ScanEdgesRequest {
            labels: self.scan.labels.as_deref().map(labels_to),
            predicates: predicates_to(&self.scan.predicates)?,
            max_rows: self.scan.max_rows,
            from: Some(scan_cursor_to(self.from)),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let scan = EdgeScan {
            labels: m.labels.map(|labels| tokens_from(labels.tokens)),
            predicates: predicates_from(m.predicates)?,
            max_rows: max_rows(m.max_rows)?,
        };
        Ok(Self { scan, from: scan_start(m.from)? })
    }

    fn encode_answer((edges, next): &(EdgeRuns, Option<ScanCursor>)) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::ScannedEdges {
            sources: edges.runs.iter().map(|run| run.source.0).collect(),
            labels: edges.runs.iter().map(|run| run.label.0).collect(),
            ends: edges.runs.iter().map(|run| run.end).collect(),
            targets: guis_to(&edges.target),
            sids: sids_to(&edges.sid),
            next: next.map(scan_cursor_to),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(EdgeRuns, Option<ScanCursor>), Error> {
        let next = next_from(m.next)?;
        let target = guis_from(&m.targets, "ScannedEdges", "targets")?;
        let sid = sids_from(&m.sids, "ScannedEdges", "sids")?;
        Ok((edge_runs_from(m.sources, m.labels, m.ends, target, sid)?, next))
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(EdgeRuns, Option<ScanCursor>), AplError> {
        let mut out = EdgeRuns::default();
        let mut scan = self.scan.clone();
        scan.max_rows = scan.max_rows.min(allowance.max_rows);
        let next = apl.scan_edges(at, &scan, self.from, &mut out)?;
        Ok((out, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

/// The request of the method `Apl::count_vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct CountVertices {
    /// Selects the vertices.
    pub scan: VertexScan,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
}

impl Request for CountVertices {
    type Message = proto::ScanVerticesRequest;
    type AnswerMessage = proto::CountedVertices;

    fn encode(&self) -> Result<Self::Message, Error> {
        scan_to(&self.scan, self.from)
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let (scan, from) = scan_from(m)?;
        Ok(Self { scan, from })
    }

    fn encode_answer((count, next): &(u64, Option<ScanCursor>)) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::CountedVertices { count: *count, next: next.map(scan_cursor_to) })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(u64, Option<ScanCursor>), Error> {
        Ok((m.count, next_from(m.next)?))
    }

    fn call(&self, apl: &dyn Apl, at: At, _: &Allowance<'_>) -> Result<(u64, Option<ScanCursor>), AplError> {
        let mut count = 0;
        let next = apl.count_vertices(at, &self.scan, self.from, &mut count)?;
        Ok((count, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

/// The request of the method `Apl::sample_vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleVertices {
    /// Selects the vertices.
    pub scan: VertexScan,
    /// Cursor at which the answer starts.
    pub from: ScanCursor,
    /// The sample so far.
    pub sample: Reservoir<Gui>,
}

impl Request for SampleVertices {
    type Message = proto::SampleVerticesRequest;
    type AnswerMessage = proto::SampledVertices;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::SampleVerticesRequest {
            scan: Some(scan_to(&self.scan, self.from)?),
            sample: Some(reservoir_to(&self.sample)),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let scan = m.scan.ok_or(Error::UnknownKind { message: "SampleVerticesRequest" })?;
        let (scan, from) = scan_from(scan)?;
        Ok(Self { scan, from, sample: reservoir_from(m.sample)? })
    }

    fn encode_answer(
        (sample, next): &(Reservoir<Gui>, Option<ScanCursor>),
    ) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::SampledVertices { sample: Some(reservoir_to(sample)), next: next.map(scan_cursor_to) })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(Reservoir<Gui>, Option<ScanCursor>), Error> {
        Ok((reservoir_from(m.sample)?, next_from(m.next)?))
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        _: &Allowance<'_>,
    ) -> Result<(Reservoir<Gui>, Option<ScanCursor>), AplError> {
        let mut sample = self.sample.clone();
        let next = apl.sample_vertices(at, &self.scan, self.from, &mut sample)?;
        Ok((sample, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

fn edge_runs_from(
    sources: Vec<u64>,
    labels: Vec<u32>,
    ends: Vec<u32>,
    target: Vec<Gui>,
    sid: Vec<Sid>,
) -> Result<EdgeRuns, Error> {
    const MESSAGE: &str = "ScannedEdges";
    same(MESSAGE, "labels", labels.len(), sources.len())?;
    same(MESSAGE, "sids", sid.len(), target.len())?;
    check_ends(MESSAGE, "ends", &ends, sources.len(), target.len())?;
    let starts = std::iter::once(0).chain(ends.iter().copied());
    if ends.len() != sources.len() || starts.zip(&ends).any(|(start, end)| start == *end) {
        return Err(Error::Misaligned { message: MESSAGE, field: "ends" });
    }
    let run = |((source, label), end)| EdgeRun { source: Gui(source), label: Token(label), end };
    Ok(EdgeRuns { runs: sources.into_iter().zip(labels).zip(ends).map(run).collect(), target, sid })
}

pub(super) fn column_to(column: &[Value]) -> Result<proto::ValueColumn, Error> {
    let (mut values, mut ends) = (values::Writer::default(), Vec::with_capacity(column.len()));
    for row in column {
        match row {
            Value::Null => {}
            Value::Set(several) => several.iter().try_for_each(|one| values.push(one))?,
            one => values.push(one)?,
        }
        ends.push(values.len() as u32);
    }
    let (values, kinds, numbers) = values.finish();
    Ok(proto::ValueColumn { ends, values, kinds, numbers })
}

pub(super) fn column_from(m: proto::ValueColumn, rows: usize) -> Result<Vec<Value>, Error> {
    const MESSAGE: &str = "ValueColumn";
    let values = values::read(MESSAGE, m.values, &m.kinds, &m.numbers)?;
    same(MESSAGE, "ends", m.ends.len(), rows)?;
    check_ends(MESSAGE, "ends", &m.ends, rows, values.len())?;
    let (mut values, mut start) = (values.into_iter(), 0);
    let row = |end: u32| {
        let count = (end - std::mem::replace(&mut start, end)) as usize;
        match count {
            0 => Value::Null,
            1 => values.next().unwrap_or(Value::Null),
            _ => Value::Set(Arc::new(values.by_ref().take(count).collect::<Vec<_>>())),
        }
    };
    Ok(m.ends.into_iter().map(row).collect())
}
