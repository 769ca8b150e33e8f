//! Requests for the data of vertices and edges.

use super::super::column::{numbers_from, numbers_to, wide_to};
use super::super::shapes::{
    cells_from, cells_to, check_ends, guis_from, guis_to, projection_from, projection_to, same, sids_from,
    strings_from, strings_to, tokens_from, tokens_to,
};
use super::{Allowance, Request};
use crate::{Error, proto, value};
use tidegraph_apl::{Apl, At, CellMeta, EdgeRead, EdgeRows, Error as AplError, VertexRead, VertexRows};
use tidegraph_types::{Edge, Gui, Token};

/// The request of the method `Apl::vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct Vertices {
    /// Selects the data of each element.
    pub read: VertexRead,
    /// The vertices.
    pub frontier: Vec<Gui>,
}

impl Request for Vertices {
    type Message = proto::ReadVerticesRequest;
    type AnswerMessage = proto::VertexRows;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::ReadVerticesRequest {
            ids: self.read.ids,
            labels: self.read.labels,
            properties: projection_to(&self.read.properties),
            frontier: guis_to(&self.frontier),
            meta: self.read.meta,
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let properties = projection_from(m.properties)?;
        let read = VertexRead { ids: m.ids, labels: m.labels, properties, meta: m.meta };
        Ok(Self { read, frontier: guis_from(&m.frontier, "ReadVerticesRequest", "frontier")? })
    }

    fn encode_answer(rows: &VertexRows) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::VertexRows {
            present: rows.present.clone(),
            ids: strings_to(&rows.ids),
            label_ends: rows.label_ends.clone(),
            labels: tokens_to(&rows.labels),
            cell_ends: rows.cell_ends.clone(),
            cells: cells_to(&rows.cells)?,
            meta: rows.meta.iter().map(meta_to).collect::<Result<_, _>>()?,
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<VertexRows, Error> {
        const MESSAGE: &str = "VertexRows";
        let rows = m.present.len();
        let cells = cells_from(m.cells)?;
        if !m.ids.is_empty() {
            same(MESSAGE, "ids", m.ids.len(), rows)?;
        }
        check_ends(MESSAGE, "label_ends", &m.label_ends, rows, m.labels.len())?;
        check_ends(MESSAGE, "cell_ends", &m.cell_ends, rows, cells.len())?;
        Ok(VertexRows {
            present: m.present,
            ids: strings_from(m.ids),
            label_ends: m.label_ends,
            labels: tokens_from(m.labels),
            cell_ends: m.cell_ends,
            meta: meta_from(m.meta, cells.len())?,
            cells,
        })
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<VertexRows, AplError> {
        let mut out = VertexRows::default();
        allowance.in_pieces(&self.frontier, |piece| apl.vertices(at, &self.read, piece, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.frontier.len() / 8)
    }
}

/// The request of the method `Apl::edges`.
#[derive(Clone, PartialEq, Debug)]
pub struct Edges {
    /// Selects the data of each element.
    pub read: EdgeRead,
    /// The edges.
    pub frontier: Vec<Edge>,
}

impl Request for Edges {
    type Message = proto::ReadEdgesRequest;
    type AnswerMessage = proto::EdgeRows;

    fn encode(&self) -> Result<Self::Message, Error> {
        let frontier = &self.frontier;
        Ok(proto::ReadEdgesRequest {
            ids: self.read.ids,
            properties: projection_to(&self.read.properties),
            sids: wide_to(frontier, |edge| edge.sid.0),
            sources: wide_to(frontier, |edge| edge.source.0),
            targets: wide_to(frontier, |edge| edge.target.0),
            labels: numbers_to(frontier, |edge| edge.label.0),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        const MESSAGE: &str = "ReadEdgesRequest";
        let read = EdgeRead { ids: m.ids, properties: projection_from(m.properties)? };
        let sids = sids_from(&m.sids, MESSAGE, "sids")?;
        let sources = guis_from(&m.sources, MESSAGE, "sources")?;
        let targets = guis_from(&m.targets, MESSAGE, "targets")?;
        let labels = numbers_from(m.labels.as_ref(), sids.len(), MESSAGE, "labels", Token)?;
        same(MESSAGE, "sources", sources.len(), sids.len())?;
        same(MESSAGE, "targets", targets.len(), sids.len())?;
        let ends = sources.into_iter().zip(targets).zip(labels);
        let edge = |(sid, ((source, target), label))| Edge { sid, source, target, label };
        Ok(Self { read, frontier: sids.into_iter().zip(ends).map(edge).collect() })
    }

    fn encode_answer(rows: &EdgeRows) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::EdgeRows {
            present: rows.present.clone(),
            ids: strings_to(&rows.ids),
            cell_ends: rows.cell_ends.clone(),
            cells: cells_to(&rows.cells)?,
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<EdgeRows, Error> {
        const MESSAGE: &str = "EdgeRows";
        let rows = m.present.len();
        let cells = cells_from(m.cells)?;
        if !m.ids.is_empty() {
            same(MESSAGE, "ids", m.ids.len(), rows)?;
        }
        check_ends(MESSAGE, "cell_ends", &m.cell_ends, rows, cells.len())?;
        Ok(EdgeRows { present: m.present, ids: strings_from(m.ids), cell_ends: m.cell_ends, cells })
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<EdgeRows, AplError> {
        let mut out = EdgeRows::default();
        allowance.in_pieces(&self.frontier, |piece| apl.edges(at, &self.read, piece, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.sids.len() / 8)
    }
}

fn meta_to(meta: &CellMeta) -> Result<proto::CellMeta, Error> {
    Ok(proto::CellMeta { cell: meta.cell, key: meta.key.0, value: Some(value::encode(&meta.value)?) })
}

/// Decodes meta-properties, which must be in order of their cells.
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
