//! The procedures that every database has.

use super::Signature;
use crate::{TypeTest, ValueType};

/// A procedure of the engine. `exec` has a function for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Builtin {
    /// `neptune.graph.pg_schema()`: the labels, properties and connections of the graph, as one map.
    PgSchema,
    /// `db.ping()`: succeeds.
    Ping,
    /// `db.labels()`: the labels that some vertex has.
    Labels,
    /// `db.relationshipTypes()`: the labels that some edge has.
    EdgeLabels,
    /// `db.propertyKeys()`: the property keys that some element has.
    PropertyKeys,
    /// `dbms.components()`: what answers, and its version.
    Components,
    /// `dbms.procedures()`: the procedures of the registry.
    Procedures,
    /// `db.indexes()`: the indexes, also those of constraints.
    Indexes,
    /// `db.schema.visualization()`: a node for each label, and a relationship for each pair of labels that a type connects.
    SchemaGraph,
    /// `db.schema.nodeTypeProperties()`: the property keys of the nodes with each label, and the types of their values.
    NodeTypes,
    /// `db.schema.relTypeProperties()`: the same for relationships.
    EdgeTypes,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::PgSchema,
        Self::Ping,
        Self::Labels,
        Self::EdgeLabels,
        Self::PropertyKeys,
        Self::Components,
        Self::Procedures,
        Self::Indexes,
        Self::SchemaGraph,
        Self::NodeTypes,
        Self::EdgeTypes,
    ];

    /// Returns the name, the arguments and the columns.
    #[must_use]
    pub fn signature(self) -> Signature {
        use ValueType::{Boolean, Map, Node, Relationship, String};
        let list = |of: ValueType| ValueType::List(Box::new(TypeTest::or_null(of)));
        let (name, columns): (_, Vec<(&'static str, ValueType)>) = match self {
            Self::PgSchema => ("neptune.graph.pg_schema", vec![("schema", Map)]),
            Self::Ping => ("db.ping", vec![("success", Boolean)]),
            Self::Labels => ("db.labels", vec![("label", String)]),
            Self::EdgeLabels => ("db.relationshipTypes", vec![("relationshipType", String)]),
            Self::PropertyKeys => ("db.propertyKeys", vec![("propertyKey", String)]),
            Self::Components => {
                ("dbms.components", vec![("name", String), ("versions", list(String)), ("edition", String)])
            }
            Self::Procedures => {
                let columns = ["name", "signature", "description", "mode"];
                ("dbms.procedures", columns.map(|column| (column, String)).into())
            }
            Self::Indexes => {
                let columns = ["name", "state", "uniqueness", "type", "entityType"];
                let mut columns: Vec<_> = columns.map(|column| (column, String)).into();
                columns.extend([("labelsOrTypes", list(String)), ("properties", list(String))]);
                ("db.indexes", columns)
            }
            Self::SchemaGraph => (
                "db.schema.visualization",
                vec![("nodes", list(Node)), ("relationships", list(Relationship))],
            ),
            Self::NodeTypes => (
                "db.schema.nodeTypeProperties",
                vec![
                    ("nodeType", String),
                    ("nodeLabels", list(String)),
                    ("propertyName", String),
                    ("propertyTypes", list(String)),
                    ("mandatory", Boolean),
                ],
            ),
            Self::EdgeTypes => (
                "db.schema.relTypeProperties",
                vec![
                    ("relType", String),
                    ("propertyName", String),
                    ("propertyTypes", list(String)),
                    ("mandatory", Boolean),
                ],
            ),
        };
        let signature = Signature::new(name).describe(self.description());
        columns
            .into_iter()
            .fold(signature, |signature, (column, kind)| signature.column(column, TypeTest::or_null(kind)))
    }

    const fn description(self) -> &'static str {
        match self {
            Self::PgSchema => "Returns labels, properties and connections of the graph as one map.",
            Self::Ping => "Succeeds.",
            Self::Labels => "Lists the labels of nodes.",
            Self::EdgeLabels => "Lists the types of relationships.",
            Self::PropertyKeys => "Lists the property keys.",
            Self::Components => "Names the database and its version.",
            Self::Procedures => "Lists the procedures.",
            Self::Indexes => "Lists the indexes.",
            Self::SchemaGraph => "Returns labels as nodes, and types between them as relationships.",
            Self::NodeTypes => "Lists the properties of nodes by label, with their types.",
            Self::EdgeTypes => "Lists the properties of relationships by type, with their types.",
        }
    }
}
