//! Changes of the change stream: engine type ↔ message.

use crate::proto::{self, change::Kind};
use crate::{Error, value};
use tidegraph_types::{Change, Changed, Changes, Str, Token, Value};

/// Returns the message of what a transaction changed.
///
/// # Errors
///
/// [`Error::NotStorable`] for a value that no property can have.
pub fn encode(changes: &Changes) -> Result<proto::Changes, Error> {
    let mut before: Option<&Str> = None;
    let list = changes.list.iter().map(|change| {
        let id = (before != Some(&change.id)).then(|| change.id.to_string());
        before = Some(&change.id);
        encode_one(change, id)
    });
    Ok(proto::Changes { taken_ms: changes.taken_ms, list: list.collect::<Result<_, _>>()? })
}

fn encode_one(change: &Change, id: Option<String>) -> Result<proto::Change, Error> {
    let property = |key: &Token, v: &Value| -> Result<_, Error> {
        Ok(proto::ChangedProperty { key: key.0, value: Some(value::encode(v)?) })
    };
    let kind = match &change.what {
        Changed::VertexLabel(label) => {
            Kind::VertexLabel(proto::ChangedLabel { label: label.map(|token| token.0) })
        }
        Changed::VertexProperty(key, value) => Kind::VertexProperty(property(key, value)?),
        Changed::Edge { label, from, to } => {
            Kind::Edge(proto::ChangedEdge { label: label.0, from: from.to_string(), to: to.to_string() })
        }
        Changed::EdgeProperty(key, value) => Kind::EdgeProperty(property(key, value)?),
    };
    Ok(proto::Change { removed: change.removed, id, kind: Some(kind) })
}

/// Returns what a message says that a transaction changed.
///
/// # Errors
///
/// [`Error::UnknownKind`] for a change or a value of a newer version; [`Error::Missing`] for a message without a
/// required field.
pub fn decode(message: proto::Changes) -> Result<Changes, Error> {
    let mut list = Vec::with_capacity(message.list.len());
    let mut before: Option<Str> = None;
    for proto::Change { removed, id, kind } in message.list {
        let id = match (id, &before) {
            (Some(id), _) => Str::from(id),
            (None, Some(before)) => before.clone(),
            (None, None) => return Err(Error::Missing { message: "Change", field: "id" }),
        };
        before = Some(id.clone());
        let property = |property: proto::ChangedProperty| -> Result<_, Error> {
            Ok((Token(property.key), value::decode_required(property.value, "ChangedProperty")?))
        };
        let what = match kind.ok_or(Error::UnknownKind { message: "Change" })? {
            Kind::VertexLabel(m) => Changed::VertexLabel(m.label.map(Token)),
            Kind::VertexProperty(m) => {
                let (key, value) = property(m)?;
                Changed::VertexProperty(key, value)
            }
            Kind::Edge(m) => Changed::Edge { label: Token(m.label), from: m.from.into(), to: m.to.into() },
            Kind::EdgeProperty(m) => {
                let (key, value) = property(m)?;
                Changed::EdgeProperty(key, value)
            }
        };
        list.push(Change { removed, id, what });
    }
    Ok(Changes { taken_ms: message.taken_ms, list })
}
