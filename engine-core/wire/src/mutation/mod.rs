//! Mutations: engine type ↔ message, and ↔ bytes for millions of them ([`bytes`]).

pub mod bytes;

use crate::proto::{self, mutation::Kind};
use crate::{Error, value};
use tidegraph_types::{Edge, Gui, IndexDefinition, Mutation, PropertyWrite, Sid, Str, Token, Value};

/// Returns the message of a mutation.
///
/// # Errors
///
/// [`Error::NotStorable`] for a value that no property can have.
pub fn encode(mutation: &Mutation) -> Result<proto::Mutation, Error> {
    let kind = match mutation {
        Mutation::CreateVertex { gui, id, labels, properties } => Kind::CreateVertex(proto::CreateVertex {
            gui: gui.0,
            id: id.to_string(),
            labels: encode_tokens(labels),
            properties: properties.iter().map(encode_write).collect::<Result<_, _>>()?,
        }),
        Mutation::DeleteVertex { gui, edges_left } => {
            Kind::DeleteVertex(proto::DeleteVertex { gui: gui.0, edges_left: *edges_left })
        }
        Mutation::AddLabels { gui, labels } => {
            Kind::AddLabels(proto::ChangeLabels { gui: gui.0, labels: encode_tokens(labels) })
        }
        Mutation::RemoveLabels { gui, labels } => {
            Kind::RemoveLabels(proto::ChangeLabels { gui: gui.0, labels: encode_tokens(labels) })
        }
        Mutation::SetVertexProperty { gui, write } => Kind::SetVertexProperty(proto::SetVertexProperty {
            gui: gui.0,
            write: Some(encode_write(write)?),
        }),
        Mutation::RemoveVertexProperty { gui, key, value } => {
            Kind::RemoveVertexProperty(proto::RemoveVertexProperty {
                gui: gui.0,
                key: key.0,
                only_value: value.is_some(),
                value: value.as_ref().map(value::encode).transpose()?,
            })
        }
        Mutation::SetMetaProperty { gui, key, of, nth, meta_key, value } => {
            Kind::SetMetaProperty(proto::SetMetaProperty {
                gui: gui.0,
                key: key.0,
                of: Some(value::encode(of)?),
                nth: *nth,
                meta_key: meta_key.0,
                value: value.as_ref().map(value::encode).transpose()?,
            })
        }
        Mutation::CreateEdge { edge, id, properties } => Kind::CreateEdge(proto::CreateEdge {
            edge: Some(encode_edge(edge)),
            id: id.as_ref().map(Str::to_string),
            properties: encode_edge_properties(properties)?,
        }),
        Mutation::DeleteEdge { edge, id } => Kind::DeleteEdge(proto::DeleteEdge {
            edge: Some(encode_edge(edge)),
            id: id.as_ref().map(Str::to_string),
        }),
        Mutation::SetEdgeProperty { edge, key, value } => Kind::SetEdgeProperty(proto::SetEdgeProperty {
            edge: Some(encode_edge(edge)),
            key: key.0,
            value: Some(value::encode(value)?),
        }),
        Mutation::RemoveEdgeProperty { edge, key } => {
            Kind::RemoveEdgeProperty(proto::RemoveEdgeProperty { edge: Some(encode_edge(edge)), key: key.0 })
        }
        Mutation::AddException { id, gui } => {
            Kind::AddException(proto::AddException { id: id.to_string(), gui: gui.0 })
        }
        Mutation::DefineIndex { index } => Kind::DefineIndex(encode_index(index)),
        Mutation::DropIndex { name } => Kind::DropIndex(proto::DropIndex { name: name.to_string() }),
        Mutation::Reset => Kind::Reset(proto::Reset {}),
    };
    Ok(proto::Mutation { kind: Some(kind) })
}

/// Returns the mutation of a message.
///
/// # Errors
///
/// [`Error::UnknownKind`] or [`Error::Missing`] for a message that is not complete for this version; those of values.
pub fn decode(message: proto::Mutation) -> Result<Mutation, Error> {
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "Mutation" })? {
        Kind::CreateVertex(m) => Mutation::CreateVertex {
            gui: Gui(m.gui),
            id: Str::from(m.id),
            labels: decode_tokens(m.labels),
            properties: m.properties.into_iter().map(decode_write).collect::<Result<_, _>>()?,
        },
        Kind::DeleteVertex(m) => Mutation::DeleteVertex { gui: Gui(m.gui), edges_left: m.edges_left },
        Kind::AddLabels(m) => Mutation::AddLabels { gui: Gui(m.gui), labels: decode_tokens(m.labels) },
        Kind::RemoveLabels(m) => Mutation::RemoveLabels { gui: Gui(m.gui), labels: decode_tokens(m.labels) },
        Kind::SetVertexProperty(m) => Mutation::SetVertexProperty {
            gui: Gui(m.gui),
            write: decode_write(
                m.write.ok_or(Error::Missing { message: "SetVertexProperty", field: "write" })?,
            )?,
        },
        Kind::RemoveVertexProperty(m) => Mutation::RemoveVertexProperty {
            gui: Gui(m.gui),
            key: Token(m.key),
            value: match (m.only_value, m.value) {
                (true, value) => Some(value::decode_required(value, "RemoveVertexProperty")?),
                (false, _) => None,
            },
        },
        Kind::SetMetaProperty(m) => Mutation::SetMetaProperty {
            gui: Gui(m.gui),
            key: Token(m.key),
            of: value::decode(m.of.ok_or(Error::Missing { message: "SetMetaProperty", field: "of" })?)?,
            nth: m.nth,
            meta_key: Token(m.meta_key),
            value: m.value.map(value::decode).transpose()?,
        },
        Kind::CreateEdge(m) => Mutation::CreateEdge {
            edge: decode_edge(m.edge, "CreateEdge")?,
            id: m.id.map(Str::from),
            properties: decode_edge_properties(m.properties)?,
        },
        Kind::DeleteEdge(m) => {
            Mutation::DeleteEdge { edge: decode_edge(m.edge, "DeleteEdge")?, id: m.id.map(Str::from) }
        }
        Kind::SetEdgeProperty(m) => Mutation::SetEdgeProperty {
            edge: decode_edge(m.edge, "SetEdgeProperty")?,
            key: Token(m.key),
            value: value::decode_required(m.value, "SetEdgeProperty")?,
        },
        Kind::RemoveEdgeProperty(m) => Mutation::RemoveEdgeProperty {
            edge: decode_edge(m.edge, "RemoveEdgeProperty")?,
            key: Token(m.key),
        },
        Kind::AddException(m) => Mutation::AddException { id: Str::from(m.id), gui: Gui(m.gui) },
        Kind::DefineIndex(m) => Mutation::DefineIndex { index: decode_index(m) },
        Kind::DropIndex(m) => Mutation::DropIndex { name: Str::from(m.name) },
        Kind::Reset(_) => Mutation::Reset,
    })
}

/// Returns the message of an index.
#[must_use]
pub fn encode_index(index: &IndexDefinition) -> proto::IndexDefinition {
    proto::IndexDefinition {
        name: index.name.to_string(),
        label: index.label.0,
        key: index.key.0,
        unique: index.unique,
        unchecked: index.unchecked,
    }
}

/// Returns the index of a message.
#[must_use]
pub fn decode_index(message: proto::IndexDefinition) -> IndexDefinition {
    IndexDefinition {
        name: Str::from(message.name),
        label: Token(message.label),
        key: Token(message.key),
        unique: message.unique,
        unchecked: message.unchecked,
    }
}

/// Returns the messages of several mutations.
///
/// # Errors
///
/// The same as [`encode`].
pub fn encode_all(mutations: &[Mutation]) -> Result<Vec<proto::Mutation>, Error> {
    mutations.iter().map(encode).collect()
}

/// Returns the mutations of several messages.
///
/// # Errors
///
/// The same as [`decode`].
pub fn decode_all(messages: Vec<proto::Mutation>) -> Result<Vec<Mutation>, Error> {
    messages.into_iter().map(decode).collect()
}

/// Returns the message of an edge.
#[must_use]
pub fn encode_edge(edge: &Edge) -> proto::Edge {
    proto::Edge { sid: edge.sid.0, source: edge.source.0, target: edge.target.0, label: edge.label.0 }
}

/// Returns the edge of a required field of the message named `message`.
///
/// # Errors
///
/// [`Error::Missing`] if the field is absent.
pub fn decode_edge(edge: Option<proto::Edge>, message: &'static str) -> Result<Edge, Error> {
    let edge = edge.ok_or(Error::Missing { message, field: "edge" })?;
    Ok(Edge {
        sid: Sid(edge.sid),
        source: Gui(edge.source),
        target: Gui(edge.target),
        label: Token(edge.label),
    })
}

/// Returns the messages of an edge's properties.
///
/// # Errors
///
/// [`Error::NotStorable`] for a value that no property can have.
pub fn encode_edge_properties(properties: &[(Token, Value)]) -> Result<Vec<proto::EdgeProperty>, Error> {
    properties
        .iter()
        .map(|(key, value)| Ok(proto::EdgeProperty { key: key.0, value: Some(value::encode(value)?) }))
        .collect()
}

/// Returns an edge's properties of messages.
///
/// # Errors
///
/// The errors of decoding a value.
pub fn decode_edge_properties(messages: Vec<proto::EdgeProperty>) -> Result<Vec<(Token, Value)>, Error> {
    messages
        .into_iter()
        .map(|m| Ok((Token(m.key), value::decode_required(m.value, "EdgeProperty")?)))
        .collect()
}

fn encode_write(write: &PropertyWrite) -> Result<proto::PropertyWrite, Error> {
    Ok(proto::PropertyWrite {
        key: write.key.0,
        cardinality: value::encode_cardinality(write.cardinality).into(),
        value: Some(value::encode(&write.value)?),
    })
}

fn decode_write(message: proto::PropertyWrite) -> Result<PropertyWrite, Error> {
    Ok(PropertyWrite {
        key: Token(message.key),
        cardinality: value::decode_cardinality(message.cardinality)?,
        value: value::decode_required(message.value, "PropertyWrite")?,
    })
}

fn encode_tokens(tokens: &[Token]) -> Vec<u32> {
    tokens.iter().map(|t| t.0).collect()
}

fn decode_tokens(numbers: Vec<u32>) -> Vec<Token> {
    numbers.into_iter().map(Token).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::value::tests::any_value;
    use proptest::option;
    use proptest::prelude::*;
    use prost::Message;
    use tidegraph_types::Cardinality;

    pub(crate) fn any_gui() -> impl Strategy<Value = Gui> {
        any::<u64>().prop_map(Gui)
    }

    pub(crate) fn any_token() -> impl Strategy<Value = Token> {
        any::<u32>().prop_map(Token)
    }

    pub(crate) fn any_str() -> impl Strategy<Value = Str> {
        any::<String>().prop_map(Str::from)
    }

    pub(crate) fn any_tokens() -> impl Strategy<Value = Vec<Token>> {
        prop::collection::vec(any_token(), 0..4)
    }

    pub(crate) fn any_edge() -> impl Strategy<Value = Edge> {
        (any::<u64>(), any_gui(), any_gui(), any_token()).prop_map(|(sid, source, target, label)| Edge {
            sid: Sid(sid),
            source,
            target,
            label,
        })
    }

    fn any_write() -> impl Strategy<Value = PropertyWrite> {
        let cardinality =
            prop_oneof![Just(Cardinality::Single), Just(Cardinality::Set), Just(Cardinality::List)];
        (any_token(), cardinality, any_value()).prop_map(|(key, cardinality, value)| PropertyWrite {
            key,
            cardinality,
            value,
        })
    }

    pub(crate) fn any_mutation() -> impl Strategy<Value = Mutation> {
        let edge_properties = || prop::collection::vec((any_token(), any_value()), 0..3);
        prop_oneof![
            (any_gui(), any_str(), any_tokens(), prop::collection::vec(any_write(), 0..4)).prop_map(
                |(gui, id, labels, properties)| Mutation::CreateVertex { gui, id, labels, properties }
            ),
            (any_gui(), any::<bool>())
                .prop_map(|(gui, edges_left)| Mutation::DeleteVertex { gui, edges_left }),
            (any_gui(), any_tokens()).prop_map(|(gui, labels)| Mutation::AddLabels { gui, labels }),
            (any_gui(), any_tokens()).prop_map(|(gui, labels)| Mutation::RemoveLabels { gui, labels }),
            (any_gui(), any_write()).prop_map(|(gui, write)| Mutation::SetVertexProperty { gui, write }),
            (any_gui(), any_token(), option::of(any_value()))
                .prop_map(|(gui, key, value)| Mutation::RemoveVertexProperty { gui, key, value }),
            (any_gui(), any_token(), any_value(), any::<u32>(), any_token(), option::of(any_value()))
                .prop_map(|(gui, key, of, nth, meta_key, value)| Mutation::SetMetaProperty {
                    gui,
                    key,
                    of,
                    nth,
                    meta_key,
                    value
                }),
            (any_edge(), option::of(any_str()), edge_properties())
                .prop_map(|(edge, id, properties)| Mutation::CreateEdge { edge, id, properties }),
            (any_edge(), option::of(any_str())).prop_map(|(edge, id)| Mutation::DeleteEdge { edge, id }),
            (any_edge(), any_token(), any_value()).prop_map(|(edge, key, value)| Mutation::SetEdgeProperty {
                edge,
                key,
                value
            }),
            (any_edge(), any_token()).prop_map(|(edge, key)| Mutation::RemoveEdgeProperty { edge, key }),
            (any_str(), any_gui()).prop_map(|(id, gui)| Mutation::AddException { id, gui }),
            (any_str(), any_token(), any_token(), any::<bool>(), any::<bool>()).prop_map(
                |(name, label, key, unique, unchecked)| Mutation::DefineIndex {
                    index: IndexDefinition { name, label, key, unique, unchecked }
                }
            ),
            any_str().prop_map(|name| Mutation::DropIndex { name }),
            Just(Mutation::Reset),
        ]
    }

    #[test]
    fn an_empty_message_is_of_an_unknown_kind() {
        assert!(matches!(
            decode(proto::Mutation::default()),
            Err(Error::UnknownKind { message: "Mutation" })
        ));
    }

    #[test]
    fn a_value_that_cannot_be_stored_is_refused() {
        let write = PropertyWrite { key: Token(1), cardinality: Cardinality::Single, value: Value::Null };
        let mutation = Mutation::SetVertexProperty { gui: Gui(1), write };
        assert!(matches!(encode(&mutation), Err(Error::NotStorable { type_name: "null" })));
    }

    #[test]
    fn a_value_of_a_newer_version_is_not_taken_for_all_values() {
        // Removing one value of an unknown kind must not become removing every value.
        let kind = proto::RemoveVertexProperty { gui: 1, key: 2, only_value: true, value: None };
        let message = proto::Mutation { kind: Some(Kind::RemoveVertexProperty(kind)) };
        assert!(matches!(decode(message), Err(Error::Missing { .. })));
        // Nor writing one as a meta-property become removing it.
        let value = Some(proto::Value::default());
        let of = Some(value::encode(&Value::Int(1)).unwrap());
        let kind = proto::SetMetaProperty { gui: 1, key: 2, of, nth: 0, meta_key: 3, value };
        let message = proto::Mutation { kind: Some(Kind::SetMetaProperty(kind)) };
        assert!(matches!(decode(message), Err(Error::UnknownKind { message: "Value" })));
    }

    proptest! {
        #[test]
        fn any_mutation_comes_back(mutation in any_mutation()) {
            let bytes = encode(&mutation).unwrap().encode_to_vec();
            let back = decode(proto::Mutation::decode(bytes.as_slice()).unwrap()).unwrap();
            // Debug text, because values of different width are equal.
            prop_assert_eq!(format!("{back:?}"), format!("{mutation:?}"));
        }

        #[test]
        fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(message) = proto::Mutation::decode(bytes.as_slice()) {
                let _ = decode(message);
            }
        }
    }
}
