//! Requests about a partition as a whole: its counts for the planner, and its unique keys.

use super::super::shapes::{same, tokens_from, tokens_to};
use super::{Allowance, Request};
use crate::{Error, proto};
use tidegraph_apl::{
    self as apl, Apl, At, DegreeStatistics, Error as AplError, KeyStatistics, SetKey, SetStatistics,
};
use tidegraph_types::Token;

/// The request of the method `Apl::statistics`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistics;

impl Request for Statistics {
    type Message = proto::StatisticsRequest;
    type AnswerMessage = proto::Statistics;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::StatisticsRequest {})
    }

    fn decode(_: Self::Message) -> Result<Self, Error> {
        Ok(Self)
    }

    fn encode_answer(statistics: &apl::Statistics) -> Result<Self::AnswerMessage, Error> {
        let key_count = |(key, count): &(Token, u64)| proto::KeyCount { key: key.0, count: *count };
        Ok(proto::Statistics {
            vertices: statistics.vertices,
            edges: statistics.edges,
            vertices_by_label: counts_to(&statistics.vertices_by_label),
            edges_by_label: counts_to(&statistics.edges_by_label),
            keys: statistics.keys.iter().map(key_to).collect(),
            sets: statistics.sets.iter().map(set_to).collect(),
            edge_sets: statistics.edge_sets.iter().map(set_to).collect(),
            distinct: statistics.distinct.iter().map(key_count).collect(),
            degrees: statistics.degrees.iter().map(degrees_to).collect(),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<apl::Statistics, Error> {
        Ok(apl::Statistics {
            vertices: m.vertices,
            edges: m.edges,
            vertices_by_label: counts_from(m.vertices_by_label),
            edges_by_label: counts_from(m.edges_by_label),
            keys: m.keys.into_iter().map(key_from).collect(),
            sets: m.sets.into_iter().map(set_from).collect(),
            edge_sets: m.edge_sets.into_iter().map(set_from).collect(),
            distinct: m.distinct.into_iter().map(|m| (Token(m.key), m.count)).collect(),
            degrees: m.degrees.into_iter().map(degrees_from).collect(),
        })
    }

    fn call(&self, apl: &dyn Apl, _: At, _: &Allowance<'_>) -> Result<apl::Statistics, AplError> {
        Ok(apl.statistics())
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

/// The request of the method `Apl::unique_keys`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniqueKeys;

impl Request for UniqueKeys {
    type Message = proto::UniqueKeysRequest;
    type AnswerMessage = proto::UniqueKeys;

    fn encode(&self) -> Result<Self::Message, Error> {
        Ok(proto::UniqueKeysRequest {})
    }

    fn decode(_: Self::Message) -> Result<Self, Error> {
        Ok(Self)
    }

    fn encode_answer(pairs: &Vec<(Token, Token)>) -> Result<Self::AnswerMessage, Error> {
        Ok(proto::UniqueKeys {
            labels: pairs.iter().map(|(label, _)| label.0).collect(),
            keys: pairs.iter().map(|(_, key)| key.0).collect(),
        })
    }

    fn decode_answer(m: Self::AnswerMessage) -> Result<Vec<(Token, Token)>, Error> {
        same("UniqueKeys", "keys", m.keys.len(), m.labels.len())?;
        Ok(m.labels.into_iter().zip(m.keys).map(|(label, key)| (Token(label), Token(key))).collect())
    }

    fn call(&self, apl: &dyn Apl, at: At, _: &Allowance<'_>) -> Result<Vec<(Token, Token)>, AplError> {
        apl.unique_keys(at)
    }

    fn rows(_: &Self::Message) -> Option<usize> {
        None
    }
}

fn counts_to(counts: &[(Token, u64)]) -> Vec<proto::LabelCount> {
    counts.iter().map(|(label, count)| proto::LabelCount { label: label.0, count: *count }).collect()
}

fn counts_from(messages: Vec<proto::LabelCount>) -> Vec<(Token, u64)> {
    messages.into_iter().map(|m| (Token(m.label), m.count)).collect()
}

fn key_to(key: &KeyStatistics) -> proto::KeyStatistics {
    proto::KeyStatistics { label: key.label.0, key: key.key.0, values: key.values, distinct: key.distinct }
}

fn key_from(m: proto::KeyStatistics) -> KeyStatistics {
    KeyStatistics { label: Token(m.label), key: Token(m.key), values: m.values, distinct: m.distinct }
}

fn set_to(set: &SetStatistics) -> proto::SetStatistics {
    let key = |key: &SetKey| proto::SetKey {
        key: key.key.0,
        bounds: key.bounds.map(|(least, greatest)| proto::NumberBounds { least, greatest }),
    };
    proto::SetStatistics {
        labels: tokens_to(&set.labels),
        elements: set.elements,
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
        elements: m.elements,
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
