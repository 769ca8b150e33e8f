//! Requests about ids.

use super::super::column::wide_to;
use super::super::shapes::{
    check_ends, guis_from, guis_to, handles_from, handles_to, same, sids_from, sids_to, strings_from,
    strings_to,
};
use super::{Allowance, Request};
use crate::{Error, proto};
use tidegraph_apl::{self as apl, Apl, At, EdgePlace, Error as AplError};
use tidegraph_types::{Edge, Gui, Str};

/// The request of the method `Apl::resolve_vertices`.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolveVertices {
    /// Users' ids.
    pub ids: Vec<Str>,
}

impl Request for ResolveVertices {
    type Message = proto::ResolveRequest;
    type AnswerMessage = proto::VertexHandles;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::ResolveRequest { ids: strings_to(&self.ids) })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        Ok(Self { ids: strings_from(m.ids) })
    }

    fn encode_answer(found: &Vec<Option<Gui>>) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::VertexHandles {
            found: found.iter().map(Option::is_some).collect(),
            guis: wide_to(found, |gui| gui.map_or(0, |g| g.0)),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Vec<Option<Gui>>, Error> {
        let guis = guis_from(&m.guis, "VertexHandles", "guis")?;
        same("VertexHandles", "guis", guis.len(), m.found.len())?;
        Ok(m.found.into_iter().zip(guis).map(|(found, gui)| found.then_some(gui)).collect())
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<Vec<Option<Gui>>, AplError> {
        let mut out = Vec::with_capacity(self.ids.len());
        allowance.in_pieces(&self.ids, |ids| apl.resolve_vertices(at, ids, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.ids.len())
    }
}

/// The request of the method `Apl::resolve_edges`.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolveEdges {
    /// Users' or generated ids.
    pub ids: Vec<Str>,
}

impl Request for ResolveEdges {
    type Message = proto::ResolveRequest;
    type AnswerMessage = proto::EdgeHandles;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::ResolveRequest { ids: strings_to(&self.ids) })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        Ok(Self { ids: strings_from(m.ids) })
    }

    fn encode_answer(found: &Vec<Option<Edge>>) -> Result<Self::AnswerMessage, Error> {
        Ok(handles_to(found))
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Vec<Option<Edge>>, Error> {
        handles_from(m)
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<Vec<Option<Edge>>, AplError> {
        let mut out = Vec::with_capacity(self.ids.len());
        allowance.in_pieces(&self.ids, |ids| apl.resolve_edges(at, ids, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.ids.len())
    }
}

/// The request of the method `Apl::edge_candidates`.
#[derive(Clone, PartialEq, Debug)]
pub struct EdgeCandidates {
    /// Ids of edges that users chose.
    pub ids: Vec<Str>,
}

impl Request for EdgeCandidates {
    type Message = proto::ResolveRequest;
    type AnswerMessage = proto::EdgeCandidates;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::ResolveRequest { ids: strings_to(&self.ids) })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        Ok(Self { ids: strings_from(m.ids) })
    }

    fn encode_answer(found: &apl::EdgeCandidates) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::EdgeCandidates {
            ends: found.ends.clone(),
            sources: guis_to(&found.source),
            sids: sids_to(&found.sid),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<apl::EdgeCandidates, Error> {
        const MESSAGE: &str = "EdgeCandidates";
        let source = guis_from(&m.sources, MESSAGE, "sources")?;
        let sid = sids_from(&m.sids, MESSAGE, "sids")?;
        same(MESSAGE, "sids", sid.len(), source.len())?;
        check_ends(MESSAGE, "ends", &m.ends, m.ends.len(), source.len())?;
        Ok(apl::EdgeCandidates { ends: m.ends, source, sid })
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<apl::EdgeCandidates, AplError> {
        let mut out = apl::EdgeCandidates::default();
        allowance.in_pieces(&self.ids, |ids| apl.edge_candidates(at, ids, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.ids.len())
    }
}

/// The request of the method `Apl::find_edges`.
#[derive(Clone, PartialEq, Debug)]
pub struct FindEdges {
    /// Source, SID and id of each edge.
    pub places: Vec<EdgePlace>,
}

impl Request for FindEdges {
    type Message = proto::FindEdgesRequest;
    type AnswerMessage = proto::EdgeHandles;

    fn encode(&self) -> Result<Self::Message, Error> {
        let places = &self.places;
        Ok(proto::FindEdgesRequest {
            sources: wide_to(places, |place| place.source.0),
            sids: wide_to(places, |place| place.sid.0),
            ids: places.iter().map(|place| place.id.clone().unwrap_or_default().into()).collect(),
            generated: places.iter().map(|place| place.id.is_none()).collect(),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
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
        Ok(Self { places: sources.into_iter().zip(sids).zip(ids).map(place).collect() })
    }

    fn encode_answer(found: &Vec<Option<Edge>>) -> Result<Self::AnswerMessage, Error> {
        Ok(handles_to(found))
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Vec<Option<Edge>>, Error> {
        handles_from(m)
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<Vec<Option<Edge>>, AplError> {
        let mut out = Vec::with_capacity(self.places.len());
        allowance.in_pieces(&self.places, |places| apl.find_edges(at, places, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.ids.len())
    }
}

/// The request of the method `Apl::place`.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Ids of new vertices, each with the lowest salt to try.
    pub ids: Vec<(Str, u64)>,
}

impl Request for Place {
    type Message = proto::PlaceRequest;
    type AnswerMessage = proto::Places;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::PlaceRequest {
            ids: self.ids.iter().map(|(id, _)| id.to_string()).collect(),
            salts: self.ids.iter().map(|(_, salt)| *salt).collect(),
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        same("PlaceRequest", "salts", m.salts.len(), m.ids.len())?;
        Ok(Self { ids: m.ids.into_iter().map(Str::from).zip(m.salts).collect() })
    }

    fn encode_answer(places: &Vec<(Gui, u64)>) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::Places {
            guis: places.iter().map(|(gui, _)| gui.0).collect(),
            salts: places.iter().map(|(_, salt)| *salt).collect(),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Vec<(Gui, u64)>, Error> {
        same("Places", "salts", m.salts.len(), m.guis.len())?;
        Ok(m.guis.into_iter().map(Gui).zip(m.salts).collect())
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<Vec<(Gui, u64)>, AplError> {
        let mut out = Vec::with_capacity(self.ids.len());
        allowance.in_pieces(&self.ids, |ids| apl.place(at, ids, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        Some(m.ids.len())
    }
}
