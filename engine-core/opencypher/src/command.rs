//! Commands: those about indexes and constraints, lists, and those about transactions. They have no plan; the engine
//! executes them itself.

use std::fmt;
use tidegraph_plan::Plan;
use tidegraph_types::Str;

/// A command.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
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
    /// Several of `SHOW TRANSACTIONS …` and `TERMINATE TRANSACTIONS …`, each run for every row of the one before.
    Composed(Vec<TransactionCommand>),
    /// `TERMINATE TRANSACTIONS …`
    Terminate {
        /// A plan over one row without columns, whose values are ids or lists of ids.
        ids: Box<Plan>,
        /// As that of `Show`.
        over_rows: Option<Box<Plan>>,
    },
}

/// A command about transactions among several.
#[derive(Clone, PartialEq, Debug)]
pub struct TransactionCommand {
    /// Whether it ends the transactions; otherwise it shows them.
    pub terminates: bool,
    /// A plan over one row with the columns of the commands before, whose values are ids or lists of ids. `None`: all
    /// transactions are shown.
    pub ids: Option<Box<Plan>>,
    /// `YIELD`: positions in the command's own columns.
    pub yields: Vec<usize>,
    /// A plan over rows, as that of `Show`: the columns of the commands before, then the yielded ones. Its columns are those
    /// of the next command's rows, or of the answer.
    pub over_rows: Box<Plan>,
}

/// Columns of `TERMINATE TRANSACTIONS`.
pub const TERMINATED_COLUMNS: &[&str] = &["transactionId", "username", "message"];

/// What `SHOW` lists.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum Show {
    Indexes,
    Constraints,
    Procedures,
    Functions,
    Databases,
    /// All transactions, or those whose ids a plan yields, as for `TERMINATE`.
    Transactions(Option<Box<Plan>>),
}

impl Show {
    /// Returns the columns that `YIELD` may name.
    #[must_use]
    pub fn columns(&self) -> &'static [&'static str] {
        match self {
            Self::Indexes => {
                &["name", "state", "type", "entityType", "labelsOrTypes", "properties", "owningConstraint"]
            }
            Self::Constraints => &["name", "type", "entityType", "labelsOrTypes", "properties", "ownedIndex"],
            Self::Procedures => &["name", "description", "mode", "signature"],
            Self::Functions => &["name", "category", "aggregating", "signature"],
            Self::Databases => &["name", "type", "access", "currentStatus", "default", "home"],
            Self::Transactions(_) => &[
                "database",
                "transactionId",
                "currentQueryId",
                "clientAddress",
                "username",
                "currentQuery",
                "startTime",
                "status",
                "elapsedTime",
                "protocol",
                "currentQueryStartTime",
                "currentQueryElapsedTime",
            ],
        }
    }

    /// Returns the columns of a command without `YIELD`: the first ones.
    #[must_use]
    pub fn brief_columns(&self) -> &'static [&'static str] {
        match self {
            Self::Transactions(_) => &self.columns()[..9],
            _ => self.columns(),
        }
    }
}

impl Command {
    /// Returns whether the command changes the indexes and constraints of the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Drop { .. } => true,
            Self::Show { .. } | Self::Terminate { .. } | Self::Composed(_) => false,
        }
    }
}

impl fmt::Display for Command {
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
                let name = match what {
                    Show::Indexes => "INDEXES",
                    Show::Constraints => "CONSTRAINTS",
                    Show::Procedures => "PROCEDURES",
                    Show::Functions => "FUNCTIONS",
                    Show::Databases => "DATABASES",
                    Show::Transactions(_) => "TRANSACTIONS",
                };
                write!(f, "SHOW {name}")?;
                if let Show::Transactions(Some(ids)) = what {
                    write!(f, "\n{ids}")?;
                }
                over_rows.as_ref().map_or(Ok(()), |plan| write!(f, "\n{plan}"))
            }
            Self::Composed(parts) => {
                for (at, TransactionCommand { terminates, ids, over_rows, .. }) in parts.iter().enumerate() {
                    let verb = if *terminates { "TERMINATE" } else { "SHOW" };
                    write!(f, "{}{verb} TRANSACTIONS", if at > 0 { "\n" } else { "" })?;
                    ids.as_ref().map_or(Ok(()), |ids| write!(f, "\n{ids}"))?;
                    write!(f, "\n{over_rows}")?;
                }
                Ok(())
            }
            Self::Terminate { ids, over_rows } => {
                write!(f, "TERMINATE TRANSACTIONS\n{ids}")?;
                over_rows.as_ref().map_or(Ok(()), |plan| write!(f, "\n{plan}"))
            }
        }
    }
}
