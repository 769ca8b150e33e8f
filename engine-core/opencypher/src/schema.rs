//! Commands about indexes and constraints. They are no queries: they have no plan, and the engine carries them out itself.

use std::fmt;
use tidegraph_types::Str;

/// One command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaCommand {
    /// `CREATE INDEX` and `CREATE CONSTRAINT`.
    Create {
        /// The name that was given.
        name: Option<Str>,
        /// Label of the vertices.
        label: Str,
        /// Property key.
        key: Str,
        /// A constraint: no two vertices of the label have one value.
        unique: bool,
        /// `IF NOT EXISTS`: no error when it is there.
        if_not_exists: bool,
    },
    /// `DROP INDEX` and `DROP CONSTRAINT`.
    Drop {
        /// Its name.
        name: Str,
        /// A constraint.
        unique: bool,
        /// `IF EXISTS`: no error when it is not there.
        if_exists: bool,
    },
    /// `SHOW INDEXES`
    ShowIndexes,
    /// `SHOW CONSTRAINTS`
    ShowConstraints,
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
