//! The registry of procedures: what `CALL` may name. Front ends look names up here, and `exec` runs what they find.

use std::fmt;

/// A procedure. `exec` has a function for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Procedure {
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
    /// `dbms.procedures()`: the procedures of this list.
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

/// What a procedure is called, takes and yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The name, whose case does not matter.
    pub name: &'static str,
    /// Names of the arguments, all of them required.
    pub arguments: &'static [&'static str],
    /// Names of the columns that it yields.
    pub columns: &'static [&'static str],
}

impl Procedure {
    /// All procedures.
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
    pub const fn signature(self) -> Signature {
        let (name, arguments, columns): (_, _, &[_]) = match self {
            Self::PgSchema => ("neptune.graph.pg_schema", &[], &["schema"]),
            Self::Ping => ("db.ping", &[], &["success"]),
            Self::Labels => ("db.labels", &[], &["label"]),
            Self::EdgeLabels => ("db.relationshipTypes", &[], &["relationshipType"]),
            Self::PropertyKeys => ("db.propertyKeys", &[], &["propertyKey"]),
            Self::Components => ("dbms.components", &[], &["name", "versions", "edition"]),
            Self::Procedures => ("dbms.procedures", &[], &["name", "signature", "description", "mode"]),
            Self::Indexes => (
                "db.indexes",
                &[],
                &["name", "state", "uniqueness", "type", "entityType", "labelsOrTypes", "properties"],
            ),
            Self::SchemaGraph => ("db.schema.visualization", &[], &["nodes", "relationships"]),
            Self::NodeTypes => (
                "db.schema.nodeTypeProperties",
                &[],
                &["nodeType", "nodeLabels", "propertyName", "propertyTypes", "mandatory"],
            ),
            Self::EdgeTypes => (
                "db.schema.relTypeProperties",
                &[],
                &["relType", "propertyName", "propertyTypes", "mandatory"],
            ),
        };
        Signature { name, arguments, columns }
    }

    /// Returns what it does, in a sentence.
    #[must_use]
    pub const fn description(self) -> &'static str {
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

    /// Finds a procedure by its name, in upper or lower case.
    ///
    /// ```
    /// use tidegraph_plan::Procedure;
    ///
    /// assert_eq!(Procedure::of("Neptune.Graph.PG_Schema"), Some(Procedure::PgSchema));
    /// assert_eq!(Procedure::of("neptune.algo.bfs"), None);
    /// ```
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|procedure| procedure.signature().name.eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}) :: ({})", self.name, self.arguments.join(", "), self.columns.join(", "))
    }
}
