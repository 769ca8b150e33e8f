//! Gremlin's steps over strings where they differ from openCypher's functions. Positions and lengths count characters.

use super::error::Error;
use std::sync::Arc;
use tidegraph_types::Value;

fn text<'a>(name: &'static str, value: &'a Value) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| Error::of_type(name, "a string", value))
}

/// `concat()`: joins strings; skips nulls, and is null if there is nothing else.
pub(crate) fn concat(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let mut joined: Option<String> = None;
    for arg in args.iter().filter(|arg| !arg.is_null()) {
        joined.get_or_insert_default().push_str(text(name, arg)?);
    }
    Ok(joined.map_or(Value::Null, Value::string))
}

/// `length()`
pub(crate) fn length(name: &'static str, value: &Value) -> Result<Value, Error> {
    let chars = text(name, value)?.chars().count();
    Ok(i32::try_from(chars).map_or(Value::Long(chars as i64), Value::Int))
}

/// `substring(start, end)`: a negative position counts from the end; an end before the start is an empty text.
pub(crate) fn part(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let subject = text(name, &args[0])?;
    let chars = subject.chars().count();
    let position = |value: &Value| -> Result<usize, Error> {
        let at = value.as_i64().ok_or_else(|| Error::of_type(name, "integers as positions", value))?;
        let from_start = if at < 0 { at.saturating_add(chars as i64).max(0) } else { at };
        Ok(usize::try_from(from_start).unwrap_or(usize::MAX).min(chars))
    };
    let start = position(&args[1])?;
    let end = args.get(2).map_or(Ok(chars), position)?;
    Ok(Value::string(subject.chars().skip(start).take(end.saturating_sub(start)).collect::<String>()))
}

/// `split(separator)`, as TinkerPop does it: separators that follow each other count as one, and so does one at the
/// start; a text that ends with a separator has an empty last part.
pub(crate) fn split(name: &'static str, value: &Value, separator: &Value) -> Result<Value, Error> {
    if value.is_null() {
        return Ok(value.clone());
    }
    let subject = text(name, value)?;
    if separator.is_null() {
        return Ok(Value::list(subject.split_whitespace().map(Value::from).collect()));
    }
    let separator = text(name, separator)?;
    if separator.is_empty() {
        return Ok(Value::list(subject.chars().map(|c| Value::string(c.to_string())).collect()));
    }
    let mut parts = vec![];
    let mut rest = subject;
    while let Some((part, after)) = rest.split_once(separator) {
        if !part.is_empty() {
            parts.push(Value::from(part));
        }
        rest = after;
    }
    if !subject.is_empty() {
        parts.push(Value::from(rest));
    }
    Ok(Value::list(parts))
}

/// `reverse()`: the characters of a string, the items of a list, set or path. Other values stay as they are.
pub(crate) fn reversed(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::string(text.chars().rev().collect::<String>()),
        Value::List(items) | Value::Set(items) => {
            Value::List(Arc::new(items.iter().rev().cloned().collect()))
        }
        Value::Path(path) => Value::list(path.objects.iter().rev().cloned().collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, separator: Option<&str>) -> Vec<String> {
        let separator = separator.map_or(Value::Null, Value::from);
        let all = split("split()", &Value::from(text), &separator).unwrap();
        all.as_slice().unwrap().iter().map(|part| part.as_str().unwrap().to_owned()).collect()
    }

    /// The results are those of `StringUtils.splitByWholeSeparator` of commons-lang 3.17, which TinkerPop calls.
    #[test]
    fn texts_are_split_as_tinkerpop_does() {
        for (text, separator, expected) in [
            ("that", Some("t"), &["ha", ""][..]),
            ("ah", Some("h"), &["a", ""]),
            ("hh", Some("h"), &[""]),
            ("", Some("x"), &[]),
            ("  a  b ", None, &["a", "b"]),
            ("xaxxbx", Some("x"), &["a", "b", ""]),
            ("aüb", Some(""), &["a", "ü", "b"]),
        ] {
            assert_eq!(parts(text, separator), expected, "{text:?} {separator:?}");
        }
    }
}
