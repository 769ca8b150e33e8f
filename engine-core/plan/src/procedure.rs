//! The registry of procedures: what `CALL` may name. Front ends look names up here, and `exec` runs what they find.

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
    pub const ALL: [Self; 6] =
        [Self::PgSchema, Self::Ping, Self::Labels, Self::EdgeLabels, Self::PropertyKeys, Self::Components];

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
        };
        Signature { name, arguments, columns }
    }

    /// Finds a procedure by its name.
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
