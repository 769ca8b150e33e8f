//! Reads query parameters from JSON. Integers become 64-bit integers, other numbers become doubles.

use indexmap::IndexMap;
use tidegraph_types::{Str, Value};

/// Converts a JSON value.
///
/// # Errors
///
/// If an integer does not fit into 64 bits.
pub fn value(json: &serde_json::Value) -> Result<Value, String> {
    Ok(match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(v) => Value::Bool(*v),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Value::Long(int),
            (None, Some(float)) if !number.is_u64() => Value::Double(float),
            _ => return Err(format!("{number} is outside the range of a 64-bit integer")),
        },
        serde_json::Value::String(text) => Value::string(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(value).collect::<Result<_, _>>()?),
        serde_json::Value::Object(entries) => Value::map(
            entries
                .iter()
                .map(|(k, v)| Ok((Value::string(k.as_str()), value(v)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}

/// Converts a JSON object, or a string that holds one, into parameters.
///
/// # Errors
///
/// If the value is not an object, or a member cannot be converted.
pub fn parameters(json: &serde_json::Value) -> Result<IndexMap<Str, Value>, String> {
    match json {
        serde_json::Value::Null => Ok(IndexMap::new()),
        serde_json::Value::Object(entries) => entries
            .iter()
            .map(|(k, v)| Ok((Str::from(k.as_str()), value(v).map_err(|e| format!("parameter {k:?}: {e}"))?)))
            .collect(),
        // Neptune's SDK sends the object as a string.
        serde_json::Value::String(text) if text.trim().is_empty() => Ok(IndexMap::new()),
        serde_json::Value::String(text) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(inner @ (serde_json::Value::Object(_) | serde_json::Value::Null)) => parameters(&inner),
            Ok(other) => Err(format!("parameters must be a JSON object, not {other}")),
            Err(e) => Err(format!("parameters are not valid JSON: {e}")),
        },
        other => Err(format!("parameters must be a JSON object, not {other}")),
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
        assert_eq!(parameters(&json!([1])), Err("parameters must be a JSON object, not [1]".into()));
        assert!(parameters(&json!("{")).expect_err("cut").starts_with("parameters are not valid JSON"));
        assert_eq!(
            parameters(&json!({"n": 18_446_744_073_709_551_615_u64})),
            Err("parameter \"n\": 18446744073709551615 is outside the range of a 64-bit integer".into())
        );
    }
}
