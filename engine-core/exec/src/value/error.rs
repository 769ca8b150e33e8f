//! Errors of expressions. Each names the function or operator, and the value.

use std::borrow::Cow;
use std::fmt::Write as _;
use tidegraph_types::temporal::Iso;
use tidegraph_types::{ErrorCode, Str, Value};

/// An error of an expression.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Error {
    /// The text names a parameter that the request lacks.
    #[error("parameter ${0} is missing")]
    MissingParameter(Str),
    /// A value is of a type that the operation does not take.
    #[error("{operation} takes {expected}, not {found}")]
    Type {
        /// Function or operator.
        operation: Cow<'static, str>,
        /// The types that it takes.
        expected: &'static str,
        /// The value with its type.
        found: String,
    },
    /// The result does not fit in 64 bits.
    #[error("integer overflow in {0}")]
    Overflow(String),
    /// An integer divided by zero.
    #[error("division by zero in {0}")]
    DivisionByZero(String),
    /// A value has the right type, but the operation does not take it.
    #[error("{operation} {problem}: {found}")]
    Argument {
        /// Function or operator.
        operation: Cow<'static, str>,
        /// The problem.
        problem: &'static str,
        /// The value.
        found: String,
    },
    /// A value has the right type, but the operation does not take it for this reason.
    #[error("{operation} does not take {found}: {reason}")]
    Invalid {
        /// Function.
        operation: &'static str,
        /// The value.
        found: String,
        /// The reason.
        reason: String,
    },
    /// The result of an operator is not a value.
    #[error("{operation}: {reason}")]
    Arithmetic {
        /// Operator and operands.
        operation: String,
        /// The reason.
        reason: String,
    },
    /// A value is null where it must not be; the text says where.
    #[error("{0}")]
    NullValue(Str),
    /// A read of an element that the request deleted.
    #[error("cannot read {what} of a {element} that was deleted in this request")]
    Deleted {
        /// What was read: a property key or a function.
        what: String,
        /// Vertex or edge.
        element: &'static str,
    },
    /// A function was called with too few or too many arguments.
    #[error("{operation} takes {expected}, not {given}")]
    ArgumentCount {
        /// The function.
        operation: &'static str,
        /// The number of arguments that it takes.
        expected: String,
        /// The number that it was given.
        given: usize,
    },
}

impl Error {
    /// Makes the error of a value of a wrong type.
    pub(crate) fn of_type(
        operation: impl Into<Cow<'static, str>>,
        expected: &'static str,
        value: &Value,
    ) -> Self {
        Self::Type { operation: operation.into(), expected, found: describe(value) }
    }

    /// Makes the error of a value that has the right type.
    pub(crate) fn argument(
        operation: impl Into<Cow<'static, str>>,
        problem: &'static str,
        value: &Value,
    ) -> Self {
        Self::Argument { operation: operation.into(), problem, found: plain(value) }
    }

    /// Makes the error of a value that an operation does not take, with the reason.
    pub(crate) fn invalid(operation: &'static str, value: &Value, reason: &str) -> Self {
        Self::Invalid { operation, found: plain(value), reason: reason.to_owned() }
    }

    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::MissingParameter(_) => ErrorCode::MissingParameter,
            _ => ErrorCode::InvalidArgument,
        }
    }
}

/// Maximum number of characters of a value in an error.
const SHOWN_CHARS: usize = 60;

/// Writes a value with its type for an error; long values are cut.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null | Value::Unbound => "null".to_owned(),
        Value::Bool(_)
        | Value::String(_)
        | Value::DateTime(_)
        | Value::Temporal(_)
        | Value::Point(_)
        | Value::Uuid(_)
        | Value::List(_)
        | Value::Set(_) => {
            format!("{} ({})", plain(value), value.type_name())
        }
        _ if value.as_f64().is_some() => format!("{} ({})", plain(value), value.type_name()),
        Value::Edge(_) | Value::EdgeData(_) => "an edge".to_owned(),
        other => format!("a {}", other.type_name()),
    }
}

/// Writes a value without its type for an error.
pub(crate) fn plain(value: &Value) -> String {
    let mut text = String::new();
    write_plain(value, &mut text);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn write_plain(value: &Value, out: &mut String) {
    // Stops early: a list of a million items must not become a text that is then cut.
    if out.len() > 4 * SHOWN_CHARS {
        return;
    }
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Null | Value::Unbound => out.write_str("null"),
        Value::Bool(v) => write!(out, "{v}"),
        Value::Float(v) => write!(out, "{v:?}"),
        Value::Double(v) => write!(out, "{v:?}"),
        Value::String(text) => {
            let shown: String = text.chars().take(SHOWN_CHARS + 1).collect();
            write!(out, "'{shown}'")
        }
        Value::DateTime(v) => write!(out, "{}", Iso(*v)),
        Value::Temporal(v) => write!(out, "{v}"),
        Value::Point(v) => write!(out, "{v}"),
        Value::Uuid(v) => write!(out, "{v}"),
        Value::Big(v) => write!(out, "{v}"),
        Value::Map(map) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate().take(SHOWN_CHARS) {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(key.as_str().unwrap_or("…"));
                out.push_str(": ");
                write_plain(value, out);
            }
            out.write_str("}")
        }
        Value::List(items) | Value::Set(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate().take(SHOWN_CHARS) {
                if index > 0 {
                    out.push_str(", ");
                }
                write_plain(item, out);
            }
            out.write_str("]")
        }
        other => match other.as_i64() {
            Some(int) => write!(out, "{int}"),
            None => write!(out, "{}", other.type_name()),
        },
    };
}
