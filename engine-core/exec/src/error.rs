//! Errors of requests. Each names the value and the place: an operator, clause or function.

use crate::Stop;
use tidegraph_types::{ErrorCode, Str, Value};

/// An error of a running request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Storage did not answer.
    #[error(transparent)]
    Storage(#[from] tidegraph_apl::Error),
    /// An expression failed.
    #[error(transparent)]
    Value(#[from] crate::value::Error),
    /// The caller stopped the request.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The request would hold more memory than its limit, with what its operators buffer and the rows of its answer.
    #[error(
        "the query holds {held_bytes} bytes of memory and needs {asked_bytes} more, over its limit of {limit_bytes}: \
         filter or aggregate earlier, return less, or raise the limit"
    )]
    Memory {
        /// The limit.
        limit_bytes: u64,
        /// Bytes that the request held.
        held_bytes: u64,
        /// Bytes that it needed in addition.
        asked_bytes: u64,
    },
    /// All requests of the process together would hold more memory than their limit.
    #[error(transparent)]
    AllMemory(#[from] crate::PoolExhausted),
    /// The answer would have more rows than the limit.
    #[error(
        "the answer has more than {limit} rows, its limit: filter or aggregate, limit the rows, or raise the limit"
    )]
    Rows {
        /// The limit.
        limit: u64,
    },
    /// The graph has a change stream, and the request changes more than one record of the log can tell.
    #[error(
        "the request changes more than {limit_bytes} bytes, the limit of a transaction of a graph with a change stream: \
         change less at a time"
    )]
    TooManyChanges {
        /// The limit.
        limit_bytes: usize,
    },
    /// An operator got a value of a type that it does not take.
    #[error("{place} takes {expected}, not {found}")]
    Type {
        /// Operator or clause.
        place: &'static str,
        /// The types that it takes.
        expected: &'static str,
        /// The value with its type.
        found: String,
    },
    /// The request creates a vertex with an id that another vertex has.
    #[error("a vertex with id {0:?} exists already")]
    VertexExists(Str),
    /// The request creates an edge with an id that another edge has.
    #[error("an edge with id {0:?} exists already")]
    EdgeExists(Str),
    /// The request deletes a vertex that still has edges at the end of the request.
    #[error("vertex {id:?} cannot be deleted, it still has {edges} edge(s)")]
    VertexHasEdges {
        /// The user's id.
        id: Str,
        /// Number of its edges.
        edges: u64,
    },
    /// Two vertices would have the same value under a unique constraint.
    #[error("vertices {ids:?} of label `{label}` would both have {value} for `{key}`, which is unique")]
    NotUnique {
        /// The label.
        label: Str,
        /// The property key.
        key: Str,
        /// The value, as text.
        value: String,
        /// The vertices.
        ids: [Str; 2],
    },
    /// The request writes to an element that does not exist.
    #[error("{place}: {element} was deleted or does not exist")]
    Gone {
        /// Operator or clause.
        place: &'static str,
        /// The element.
        element: String,
    },
    /// A property cannot hold the value.
    #[error(
        "property {key:?} cannot hold a value of type {type_name}, only scalars and lists of scalars of one type are stored"
    )]
    NotStorable {
        /// Property key.
        key: Str,
        /// Type of the value.
        type_name: &'static str,
    },
    /// The request sets a meta-property of something other than a property of a vertex.
    #[error("{key:?} is {of}, which cannot have properties itself")]
    NoMetaProperties {
        /// Key of the property.
        key: Str,
        /// What the property is.
        of: &'static str,
    },
    /// A CSV file cannot be read.
    #[error("LOAD CSV: {0}")]
    Csv(#[from] crate::FileError),
    /// A file that holds a graph cannot be read, or has an element that cannot be written.
    #[error("io(): {0}")]
    GraphFile(#[source] crate::FileError),
    /// Rows cannot be written to a temporary file, or read back.
    #[error(transparent)]
    Spill(#[from] crate::SpillError),
    /// A call of a procedure failed.
    #[error("{name}(): {reason}")]
    Call {
        /// The name of the procedure.
        name: Str,
        /// What is wrong.
        reason: String,
    },
    /// A procedure of the program that embeds the engine yields a row that does not fit its signature.
    #[error("{name}() yields a wrong row: {reason}")]
    CallRow {
        /// The name of the procedure.
        name: Str,
        /// What is wrong.
        reason: String,
    },
    /// The executor does not support the plan: a defect of the engine.
    #[error("the plan cannot be run: {0}")]
    Plan(String),
}

impl Error {
    /// Makes a type error that shows the value; long values are cut.
    pub(crate) fn of_type(place: &'static str, expected: &'static str, value: &Value) -> Self {
        let found = match value {
            Value::Null | Value::Unbound => "null".to_owned(),
            Value::String(text) if text.chars().count() > 60 => {
                format!("{:?}… (string)", text.chars().take(60).collect::<String>())
            }
            Value::String(text) => format!("{text:?} (string)"),
            Value::Bool(v) => format!("{v} (boolean)"),
            other => match (other.as_i64(), other.as_f64()) {
                (Some(int), _) => format!("{int} ({})", other.type_name()),
                (None, Some(float)) => format!("{float} ({})", other.type_name()),
                (None, None) => format!("a {}", other.type_name()),
            },
        };
        Self::Type { place, expected, found }
    }

    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Storage(e) => e.code(),
            Self::Value(e) => e.code(),
            Self::Csv(e) | Self::GraphFile(e) => e.code(),
            Self::Spill(e) => e.code(),
            Self::Stopped(Stop::Cancelled) => ErrorCode::Cancelled,
            Self::Stopped(Stop::TimedOut { .. }) => ErrorCode::TimeLimitExceeded,
            Self::AllMemory(error) => error.code(),
            Self::Memory { .. } | Self::Rows { .. } | Self::TooManyChanges { .. } => {
                ErrorCode::QueryLimitExceeded
            }
            Self::Type { .. }
            | Self::Call { .. }
            | Self::NotStorable { .. }
            | Self::Gone { .. }
            | Self::NoMetaProperties { .. } => ErrorCode::InvalidArgument,
            Self::VertexExists(_) | Self::EdgeExists(_) | Self::VertexHasEdges { .. } => {
                ErrorCode::ConstraintViolation
            }
            Self::NotUnique { .. } => ErrorCode::UniqueViolation,
            Self::Plan(_) | Self::CallRow { .. } => ErrorCode::Internal,
        }
    }
}
