//! Rows that a load refuses: the place, the value and the reason.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use std::fmt;
use std::sync::Arc;
use tidegraph_types::Str;

/// Limit of an offending value in a refusal, in bytes; the rest is cut.
pub const MAX_VALUE_BYTES: usize = 200;

/// Kind of a refusal; [`Code::as_str`] is the loader API's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Code {
    /// The row or the header is not what the format asks for.
    Parsing,
    /// A value is not of its column's type. The API reports it as a parsing error but counts it separately.
    Datatype,
    /// An edge names a vertex that is neither in the graph nor in the load.
    MissingVertex,
    /// An edge id is used for two different edges.
    EdgeIdReused,
    /// A single-cardinality property has another value already.
    SingleCardinality,
    /// Two vertices would have one value under a uniqueness constraint.
    NotUnique,
    /// A file could not be read to its end, or is gone.
    File,
    /// The object store refused the credentials.
    AccessDenied,
    /// Anything else.
    Internal,
}

impl Code {
    /// Returns the `errorCode` of an entry in `errorLogs`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parsing | Self::Datatype => "PARSING_ERROR",
            Self::MissingVertex => "FROM_OR_TO_VERTEX_ARE_MISSING",
            Self::EdgeIdReused => "ID_ASSIGNED_TO_MULTIPLE_EDGES",
            Self::SingleCardinality => "SINGLE_CARDINALITY_VIOLATION",
            Self::NotUnique => "UNIQUE_CONSTRAINT_VIOLATION",
            Self::File => "FILE_MODIFICATION_OR_DELETION_ERROR",
            Self::AccessDenied => "S3_ACCESS_DENIED_ERROR",
            Self::Internal => "INTERNAL_ERROR",
        }
    }
}

/// A refused row, or a file that is refused as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// Name of the file, as the source lists it.
    pub file: Arc<str>,
    /// Physical line on which the row begins; the header is line 1. 0 if the refusal is not about a line.
    pub line: u64,
    /// Header of the offending column.
    pub column: Option<Str>,
    /// The offending value, at most [`MAX_VALUE_BYTES`] of it.
    pub value: Option<Str>,
    /// What is wrong.
    pub reason: String,
    /// Kind of the refusal.
    pub code: Code,
}

impl Rejected {
    /// Makes a refusal of the row at `line`.
    pub fn new(file: &Arc<str>, line: u64, code: Code, reason: impl Into<String>) -> Self {
        Self { file: file.clone(), line, column: None, value: None, reason: reason.into(), code }
    }

    /// Adds the column and the value, cut to [`MAX_VALUE_BYTES`].
    #[must_use]
    pub fn at(mut self, column: &str, value: &[u8]) -> Self {
        self.column = Some(column.into());
        let cut = &value[..value.len().min(MAX_VALUE_BYTES)];
        let mut text = String::from_utf8_lossy(cut);
        if value.len() > cut.len() {
            // The cut may be inside a character.
            let whole = text.trim_end_matches('\u{fffd}').to_owned() + "…";
            text = whole.into();
        }
        self.value = Some(text.into());
        self
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        if let Some(value) = &self.value {
            write!(f, ", value \"{value}\"")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Serialises as an entry of the loader API's `errorLogs`, with `column` and `value` beside Neptune's fields.
impl Serialize for Rejected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("errorCode", self.code.as_str())?;
        map.serialize_entry("errorMessage", &self.to_string())?;
        map.serialize_entry("fileName", &*self.file)?;
        map.serialize_entry("recordNum", &self.line)?;
        if let Some(column) = &self.column {
            map.serialize_entry("column", column)?;
        }
        if let Some(value) = &self.value {
            map.serialize_entry("value", value)?;
        }
        map.end()
    }
}
