//! Why a request could not be run to its end. Each error names the value and the place (operator or function).

use crate::Stop;
use tidegraph_types::{ErrorCode, Str, Value};

/// An error of a running request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Storage did not answer.
    #[error(transparent)]
    Storage(#[from] tidegraph_apl::Error),
    /// An expression could not be computed.
    #[error(transparent)]
    Value(#[from] crate::value::Error),
    /// The caller stopped the request.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// A limit of the request was reached.
    #[error("the query needs more than its limit of {allowed} {what}")]
    Limit {
        /// What there is too much of, with its unit.
        what: &'static str,
        /// The limit.
        allowed: u64,
    },
    /// An operator was given a value of a type that it does not take.
    #[error("{place} takes {expected}, not {found}")]
    Type {
        /// Operator or clause.
        place: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What it was given, with its type.
        found: String,
    },
    /// A second vertex of one id.
    #[error("a vertex with id {0:?} exists already")]
    VertexExists(Str),
    /// A second edge of one id.
    #[error("an edge with id {0:?} exists already")]
    EdgeExists(Str),
    /// A vertex was deleted that has edges at the end of the request.
    #[error("vertex {id:?} cannot be deleted, it still has {edges} edge(s)")]
    VertexHasEdges {
        /// The user's id.
        id: Str,
        /// How many edges.
        edges: u64,
    },
    /// Two vertices would have one value where it must be unique.
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
    /// A write to an element that is gone.
    #[error("{place}: {element} was deleted or does not exist")]
    Gone {
        /// Operator or clause.
        place: &'static str,
        /// The element.
        element: String,
    },
    /// A property cannot hold the value.
    #[error("property {key:?} cannot hold a value of type {type_name}, only scalars are stored")]
    NotStorable {
        /// Property key.
        key: Str,
        /// Type of the value.
        type_name: &'static str,
    },
    /// Only a property of a vertex has properties itself.
    #[error("{key:?} is {of}, which cannot have properties itself")]
    NoMetaProperties {
        /// Key of the property that was to get one.
        key: Str,
        /// What it is.
        of: &'static str,
    },
    /// The plan is one that the executor does not run: a defect of ours.
    #[error("the plan cannot be run: {0}")]
    Plan(String),
}

impl Error {
    /// A type error that shows the value, cut when it is long.
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

    /// The code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Storage(e) => e.code(),
            Self::Value(e) => e.code(),
            Self::Stopped(Stop::Cancelled) => ErrorCode::Cancelled,
            Self::Stopped(Stop::TimedOut { .. }) => ErrorCode::TimeLimitExceeded,
            Self::Limit { .. } => ErrorCode::QueryLimitExceeded,
            Self::Type { .. }
            | Self::NotStorable { .. }
            | Self::Gone { .. }
            | Self::NoMetaProperties { .. } => ErrorCode::InvalidArgument,
            Self::VertexExists(_) | Self::EdgeExists(_) | Self::VertexHasEdges { .. } => {
                ErrorCode::ConstraintViolation
            }
            Self::NotUnique { .. } => ErrorCode::UniqueViolation,
            Self::Plan(_) => ErrorCode::Internal,
        }
    }
}
