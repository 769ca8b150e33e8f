//! Reads query parameters from JSON. Integers become 64-bit integers, other numbers become doubles.

use indexmap::IndexMap;
use tidegraph_types::{Str, Value};

/// Why parameters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An integer that does not fit into 64 bits.
    #[error("{0} is outside the range of a 64-bit integer")]
    OutOfRange(serde_json::Number),
    /// A parameter whose value cannot be read.
    #[error("parameter {name:?}: {source}")]
    Parameter {
        /// Name of the parameter.
        name: String,
        /// Why its value cannot be read.
        source: Box<Self>,
    },
    /// JSON that is not an object.
    #[error("parameters must be a JSON object, not {0}")]
    NotAnObject(serde_json::Value),
    /// Text that is not JSON.
    #[error("parameters are not valid JSON: {0}")]
    Syntax(#[source] serde_json::Error),
}

/// Converts a JSON value.
///
/// # Errors
///
/// If an integer does not fit into 64 bits.
pub fn value(json: &serde_json::Value) -> Result<Value, Error> {
    Ok(match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(v) => Value::Bool(*v),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Value::Long(int),
            (None, Some(float)) if !number.is_u64() => Value::Double(float),
            _ => return Err(Error::OutOfRange(number.clone())),
        },
        serde_json::Value::String(text) => Value::string(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(value).collect::<Result<_, _>>()?),
        serde_json::Value::Object(entries) => Value::map(
            entries
                .iter()
                .map(|(k, v)| Ok((Value::string(k.as_str()), value(v)?)))
                .collect::<Result<_, Error>>()?,
        ),
    })
}

/// Converts a JSON object, or a string that holds one, into parameters.
///
/// # Errors
///
/// If the value is not an object, or a member cannot be converted.
pub fn parameters(json: &serde_json::Value) -> Result<IndexMap<Str, Value>, Error> {
    match json {
        serde_json::Value::Null => Ok(IndexMap::new()),
        serde_json::Value::Object(entries) => entries
            .iter()
            .map(|(k, v)| {
                let value =
                    value(v).map_err(|source| Error::Parameter { name: k.clone(), source: source.into() })?;
                Ok((Str::from(k.as_str()), value))
            })
            .collect(),
        // Neptune's SDK sends the object as a string.
        serde_json::Value::String(text) if text.trim().is_empty() => Ok(IndexMap::new()),
        serde_json::Value::String(text) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(inner @ (serde_json::Value::Object(_) | serde_json::Value::Null)) => parameters(&inner),
            Ok(other) => Err(Error::NotAnObject(other)),
            Err(error) => Err(Error::Syntax(error)),
        },
        other => Err(Error::NotAnObject(other.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_or_its_text_gives_the_same_parameters() {
        let object = parameters(&json!({"a": 1, "b": [1.5, "x", null]})).expect("valid");
        let text = parameters(&json!(r#"{"a": 1, "b": [1.5, "x", null]}"#)).expect("valid");
        assert_eq!(object, text);
        assert!(matches!(object["a"], Value::Long(1)));
        assert_eq!(object["b"].as_slice().map(<[Value]>::len), Some(3));
    }

    #[test]
    fn an_error_names_what_is_not_an_object() {
        let error = |json| parameters(&json).unwrap_err().to_string();
        assert_eq!(error(json!([1])), "parameters must be a JSON object, not [1]");
        assert!(error(json!("{")).starts_with("parameters are not valid JSON"));
        assert_eq!(
            error(json!({"n": 18_446_744_073_709_551_615_u64})),
            "parameter \"n\": 18446744073709551615 is outside the range of a 64-bit integer"
        );
    }

    #[test]
    fn floats_are_read_exactly() {
        // Each of the first three lies between the double and a neighbour for a parser that rounds more than once.
        let known =
            [1.263_541_865_238_126_4e305, 1e-305, 0.1 + 0.2, f64::MAX, f64::MIN_POSITIVE, 5e-324, -0.0];
        let drawn = (1..10_000_u64).map(|n| f64::from_bits(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for float in known.into_iter().chain(drawn.filter(|float| float.is_finite())) {
            let read =
                parameters(&serde_json::Value::String(format!("{{\"f\": {float:e}}}"))).expect("valid");
            let Value::Double(found) = read["f"] else { panic!("{read:?} is not a double") };
            assert_eq!(found.to_bits(), float.to_bits(), "{found:e} instead of {float:e}");
        }
    }
}
