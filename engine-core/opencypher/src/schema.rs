//! Commands about indexes and constraints. They have no plan; the engine executes them itself.

use std::fmt;
use tidegraph_plan::Plan;
use tidegraph_types::Str;

/// A command about indexes or constraints.
#[derive(Clone, PartialEq, Debug)]
pub enum SchemaCommand {
    /// `CREATE INDEX` and `CREATE CONSTRAINT`.
    Create {
        /// Name of the index or constraint, if the text gives one.
        name: Option<Str>,
        /// Label of the vertices.
        label: Str,
        /// Property key.
        key: Str,
        /// Whether this is a constraint and not an index: no two vertices of the label have the same value.
        unique: bool,
        /// `IF NOT EXISTS`: whether the command succeeds if an index or constraint of the name, or over the same label
        /// and key, already serves the purpose.
        if_not_exists: bool,
    },
    /// `DROP INDEX` and `DROP CONSTRAINT`.
    Drop {
        /// Name of the index or constraint.
        name: Str,
        /// Whether this is a constraint and not an index.
        unique: bool,
        /// `IF EXISTS`: whether the command succeeds if no such index or constraint exists.
        if_exists: bool,
    },
    /// `SHOW …`
    Show {
        /// What is shown.
        what: Show,
        /// `YIELD`, `WHERE` and `RETURN`: a plan over the rows of the command, which the parameter
        /// [`ROWS_PARAMETER`](tidegraph_plan::ROWS_PARAMETER) carries as a list of lists with a value for each column.
        /// `None`: the rows are the answer.
        over_rows: Option<Box<Plan>>,
    },
}

/// What `SHOW` lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum Show {
    Indexes,
    Constraints,
    Procedures,
    Functions,
    Databases,
}

impl Show {
    /// Returns the columns.
    #[must_use]
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Indexes => {
                &["name", "state", "type", "entityType", "labelsOrTypes", "properties", "owningConstraint"]
            }
            Self::Constraints => &["name", "type", "entityType", "labelsOrTypes", "properties", "ownedIndex"],
            Self::Procedures => &["name", "description", "mode", "signature"],
            Self::Functions => &["name", "category", "aggregating", "signature"],
            Self::Databases => &["name", "type", "access", "currentStatus", "default", "home"],
        }
    }
}

impl SchemaCommand {
    /// Returns whether the command changes the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Drop { .. } => true,
            Self::Show { .. } => false,
        }
    }
}

impl fmt::Display for SchemaCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |unique: &bool| if *unique { "CONSTRAINT" } else { "INDEX" };
        match self {
            Self::Create { name, label, key, unique, if_not_exists } => {
                write!(f, "CREATE {}", kind(unique))?;
                if let Some(name) = name {
                    write!(f, " `{name}`")?;
                }
                if *if_not_exists {
                    f.write_str(" IF NOT EXISTS")?;
                }
                match unique {
                    false => write!(f, " FOR (n:`{label}`) ON (n.`{key}`)"),
                    true => write!(f, " FOR (n:`{label}`) REQUIRE n.`{key}` IS UNIQUE"),
                }
            }
            Self::Drop { name, unique, if_exists } => {
                write!(f, "DROP {} `{name}`{}", kind(unique), if *if_exists { " IF EXISTS" } else { "" })
            }
            Self::Show { what, over_rows } => {
                write!(f, "SHOW {}", format!("{what:?}").to_ascii_uppercase())?;
                over_rows.as_ref().map_or(Ok(()), |plan| write!(f, "\n{plan}"))
            }
        }
    }
}
