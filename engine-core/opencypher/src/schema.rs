//! Commands about indexes and constraints. They have no plan; the engine executes them itself.

use std::fmt;
use tidegraph_types::Str;

/// A command about indexes or constraints.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// `SHOW INDEXES`
    ShowIndexes,
    /// `SHOW CONSTRAINTS`
    ShowConstraints,
}

impl SchemaCommand {
    /// Returns whether the command changes the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Drop { .. } => true,
            Self::ShowIndexes | Self::ShowConstraints => false,
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
            Self::ShowIndexes => f.write_str("SHOW INDEXES"),
            Self::ShowConstraints => f.write_str("SHOW CONSTRAINTS"),
        }
    }
}
