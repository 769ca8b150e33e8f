//! Options of the parsers.

use serde::{Deserialize, Serialize};

/// Options of the parsers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Options {
    /// Whether a quoted empty string (`""`) is a value. Otherwise it is absent, like a blank field.
    pub allow_empty_strings: bool,
    /// openCypher only: whether relationship files have an `:ID` column.
    pub user_provided_edge_ids: bool,
    /// Limit of a record, in bytes of its fields. A longer record is refused without being held in memory.
    pub max_record_bytes: usize,
}

/// Default of [`Options::max_record_bytes`]: 16 MiB.
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
