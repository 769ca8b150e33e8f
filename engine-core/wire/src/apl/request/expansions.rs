//! Requests for the edges of a frontier.

use super::super::shapes::{expand_from, expand_to, expansion_from, expansion_to};
use super::{Allowance, Request};
use crate::{Error, proto};
use tidegraph_apl::{self as apl, Apl, At, Cursor, Error as AplError, Expansion, Sample};
use tidegraph_types::{Gui, Token};

/// The request of the method `Apl::expand`.
#[derive(Clone, PartialEq, Debug)]
pub struct Expand {
    /// Selects the edges and what the answer holds of them.
    pub expand: apl::Expand,
    /// The vertices whose edges are requested.
    pub frontier: Vec<Gui>,
    /// Cursor at which the answer starts.
    pub from: Cursor,
}

impl Request for Expand {
    type Message = proto::ExpandRequest;
    type AnswerMessage = proto::Expansion;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(expand_to(&self.expand, &self.frontier, Some(self.from)))
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let (expand, frontier, from) = expand_from(m)?;
        Ok(Self { expand, frontier, from })
    }

    fn encode_answer((rows, next): &(Expansion, Option<Cursor>)) -> Result<Self::AnswerMessage, Error> {
        Ok(expansion_to(rows, *next))
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(Expansion, Option<Cursor>), Error> {
        expansion_from(m)
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        allowance: &Allowance<'_>,
    ) -> Result<(Expansion, Option<Cursor>), AplError> {
        let mut out = Expansion::default();
        let mut expand = self.expand.clone();
        expand.max_rows = expand.max_rows.min(allowance.max_rows);
        let next = apl.expand(at, &expand, &self.frontier, self.from, &mut out)?;
        Ok((out, next))
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        // The answer is long, unless `max_rows` is small.
        Some(m.frontier.len() / 8 + m.max_rows as usize / 64)
    }
}

/// The request of the method `Apl::degrees`.
#[derive(Clone, PartialEq, Debug)]
pub struct Degrees {
    /// Selects the edges and what the answer holds of them.
    pub expand: apl::Expand,
    /// The vertices whose edges are requested.
    pub frontier: Vec<Gui>,
}

impl Request for Degrees {
    type Message = proto::ExpandRequest;
    type AnswerMessage = proto::Degrees;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(expand_to(&self.expand, &self.frontier, None))
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let (expand, frontier, _) = expand_from(m)?;
        Ok(Self { expand, frontier })
    }

    fn encode_answer(degrees: &Vec<u64>) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::Degrees { degrees: degrees.clone() })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Vec<u64>, Error> {
        Ok(m.degrees)
    }

    fn call(&self, apl: &dyn Apl, at: At, allowance: &Allowance<'_>) -> Result<Vec<u64>, AplError> {
        let mut out = Vec::with_capacity(self.frontier.len());
        allowance.in_pieces(&self.frontier, |piece| apl.degrees(at, &self.expand, piece, &mut out))?;
        Ok(out)
    }

    fn rows(m: &Self::Message) -> Option<usize> {
        // Twice the vertices: to count the edges of a hub, storage reads its blocks.
        Some(m.frontier.len() / 4)
    }
}

/// The request of the method `Apl::sample_edges`.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleEdges {
    /// Selects the edges and what the answer holds of them.
    pub expand: apl::Expand,
    /// Number of edges to sample at each vertex, and the seed.
    pub sample: Sample,
    /// The vertices whose edges are requested.
    pub frontier: Vec<Gui>,
}

impl Request for SampleEdges {
    type Message = proto::SampleEdgesRequest;
    type AnswerMessage = proto::Expansion;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::SampleEdgesRequest {
            expand: Some(expand_to(&self.expand, &self.frontier, None)),
            count: self.sample.count,
            seed: self.sample.seed,
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let expand = m.expand.ok_or(Error::UnknownKind { message: "SampleEdgesRequest" })?;
        let (expand, frontier, _) = expand_from(expand)?;
        Ok(Self { expand, sample: Sample { count: m.count, seed: m.seed }, frontier })
    }

    fn encode_answer(rows: &Expansion) -> Result<Self::AnswerMessage, Error> {
        Ok(expansion_to(rows, None))
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Expansion, Error> {
        Ok(expansion_from(m)?.0)
    }

    fn call(&self, apl: &dyn Apl, at: At, _: &Allowance<'_>) -> Result<Expansion, AplError> {
        let mut out = Expansion::default();
        apl.sample_edges(at, &self.expand, self.sample, &self.frontier, &mut out)?;
        Ok(out)
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

/// The request of the method `Apl::top_edges`.
#[derive(Clone, PartialEq, Debug)]
pub struct TopEdges {
    /// Selects the edges and what the answer holds of them.
    pub expand: apl::Expand,
    /// Selects the first edges of each vertex by a sort key.
    pub top: apl::TopEdges,
    /// The vertices whose edges are requested.
    pub frontier: Vec<Gui>,
    /// Cursor at which the answer starts.
    pub from: Cursor,
}

impl Request for TopEdges {
    type Message = proto::TopEdgesRequest;
    type AnswerMessage = proto::Expansion;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::TopEdgesRequest {
            expand: Some(expand_to(&self.expand, &self.frontier, Some(self.from))),
            key: self.top.key.0,
            descending: self.top.descending,
            count: self.top.count,
            each: self.top.each,
        })
    }

    fn decode(m: Self::Message) -> Result<Self, Error> {
        let expand = m.expand.ok_or(Error::UnknownKind { message: "TopEdgesRequest" })?;
        let (expand, frontier, from) = expand_from(expand)?;
        let top = apl::TopEdges { key: Token(m.key), descending: m.descending, count: m.count, each: m.each };
        Ok(Self { expand, top, frontier, from })
    }

    fn encode_answer((rows, next): &(Expansion, Option<Cursor>)) -> Result<Self::AnswerMessage, Error> {
        Ok(expansion_to(rows, *next))
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<(Expansion, Option<Cursor>), Error> {
        expansion_from(m)
    }

    fn call(
        &self,
        apl: &dyn Apl,
        at: At,
        _: &Allowance<'_>,
    ) -> Result<(Expansion, Option<Cursor>), AplError> {
        let mut out = Expansion::default();
        let next = apl.top_edges(at, &self.expand, &self.top, &self.frontier, self.from, &mut out)?;
        Ok((out, next))
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}
