//! How files are read.

use serde::{Deserialize, Serialize};

/// Which of the two CSV dialects a file is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `~id,~label,name:String`: the loader API's `csv`.
    #[serde(rename = "csv", alias = "gremlin-csv")]
    Gremlin,
    /// `:ID,:LABEL,name:String`: the loader API's `opencypher`.
    #[serde(alias = "opencypher-csv")]
    OpenCypher,
}

impl Dialect {
    /// The loader API's name of it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gremlin => "csv",
            Self::OpenCypher => "opencypher",
        }
    }
}

/// Options of the parsers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Options {
    /// Whether a quoted empty string (`""`) is a value; otherwise it is absent, like a blank field.
    pub allow_empty_strings: bool,
    /// openCypher only: whether relationship files have an `:ID` column.
    pub user_provided_edge_ids: bool,
    /// Longest record, in bytes of its fields; a longer one is rejected without being held in memory.
    pub max_record_bytes: usize,
}

/// Longest record unless the options say otherwise: 16 MiB, a few times what a transaction may carry in one value.
pub const DEFAULT_MAX_RECORD_BYTES: usize = 16 << 20;

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_empty_strings: false,
            user_provided_edge_ids: true,
            max_record_bytes: DEFAULT_MAX_RECORD_BYTES,
        }
    }
}
