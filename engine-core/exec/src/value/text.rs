//! Functions over strings. Positions and lengths count characters (Unicode scalar values), never bytes.

use super::error::Error;
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use tidegraph_plan::Function;
use tidegraph_types::temporal::Iso;
use tidegraph_types::{Str, Value};

/// Computes `toString`; `None` for a value that has no text.
pub(crate) fn to_text(value: &Value) -> Option<Str> {
    Some(match value {
        Value::String(text) => text.clone(),
        Value::Bool(v) => Str::new_static(if *v { "true" } else { "false" }),
        Value::Float(v) => Str::from(format!("{v:?}")),
        Value::Double(v) => Str::from(format!("{v:?}")),
        Value::DateTime(v) => Str::from(Iso(*v).to_string()),
        Value::Temporal(v) => Str::from(v.to_string()),
        Value::Point(v) => Str::from(v.to_string()),
        Value::Uuid(v) => Str::from(v.to_string()),
        Value::Big(v) => Str::from(v.to_string()),
        other => Str::from(other.as_i64()?.to_string()),
    })
}

/// Largest number of bytes of the delimiters of one `split`, all of which are compared at each character.
const MAX_DELIMITER_BYTES: usize = 1_000;

fn text<'a>(name: &'static str, value: &'a Value) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| Error::of_type(name, "a string", value))
}

/// Returns a number of characters, which must be an integer of at least 0.
fn count(name: &'static str, value: &Value) -> Result<usize, Error> {
    let Some(number) = value.as_i64() else {
        return Err(Error::of_type(name, "an integer", value));
    };
    usize::try_from(number).map_err(|_| Error::argument(name, "takes no negative number", value))
}

/// Returns the byte offset of a character; the end of the text if it has fewer.
fn offset(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

/// Calls a string function whose arguments are not null. `name` is its name for errors.
pub(crate) fn call(function: Function, name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let subject = text(name, &args[0])?;
    let result: String = match function {
        Function::Trim | Function::LTrim | Function::RTrim => {
            let trimmed = match args.get(1) {
                None => trim(function, subject, char::is_whitespace),
                Some(given) => {
                    let given: std::collections::BTreeSet<char> = text(name, given)?.chars().collect();
                    trim(function, subject, |c| given.contains(&c))
                }
            };
            trimmed.to_owned()
        }
        Function::ToLower => subject.to_lowercase(),
        Function::ToUpper => subject.to_uppercase(),
        Function::Left => subject[..offset(subject, count(name, &args[1])?)].to_owned(),
        Function::Right => {
            let wanted = count(name, &args[1])?;
            let skipped = subject.chars().count().saturating_sub(wanted);
            subject[offset(subject, skipped)..].to_owned()
        }
        Function::Substring => {
            let rest = &subject[offset(subject, count(name, &args[1])?)..];
            match args.get(2) {
                Some(length) => rest[..offset(rest, count(name, length)?)].to_owned(),
                None => rest.to_owned(),
            }
        }
        Function::Replace => subject.replace(text(name, &args[1])?, text(name, &args[2])?),
        _ => {
            if let Some(delimiters) = args[1].as_slice() {
                return split_at_any(name, subject, delimiters);
            }
            let delimiter = text(name, &args[1])?;
            // A text that is the delimiter has an empty part on each side of it, as in Neo4j.
            let parts = if delimiter.is_empty() && !subject.is_empty() {
                subject.chars().map(|c| Value::string(c.to_string())).collect()
            } else {
                subject.split(delimiter).map(Value::from).collect()
            };
            return Ok(Value::list(parts));
        }
    };
    Ok(Value::string(result))
}

fn trim(function: Function, subject: &str, removed: impl Fn(char) -> bool) -> &str {
    let start = if function == Function::RTrim { subject } else { subject.trim_start_matches(&removed) };
    if function == Function::LTrim { start } else { start.trim_end_matches(removed) }
}

/// Splits a text at each occurrence of one of the delimiters; at the same place the first of them wins.
fn split_at_any(name: &'static str, subject: &str, delimiters: &[Value]) -> Result<Value, Error> {
    let delimiters = delimiters.iter().map(|one| text(name, one)).collect::<Result<Vec<_>, _>>()?;
    let bytes: usize = delimiters.iter().map(|one| one.len() + 1).sum();
    if bytes > MAX_DELIMITER_BYTES {
        let bytes = Value::Long(bytes as i64);
        return Err(Error::argument(name, "takes a list of delimiters of at most 1,000 bytes", &bytes));
    }
    if delimiters.iter().any(|one| one.is_empty()) {
        if subject.is_empty() {
            return Ok(Value::list(vec![Value::from(""), Value::from("")]));
        }
        return Ok(Value::list(subject.chars().map(|c| Value::string(c.to_string())).collect()));
    }
    let mut parts = vec![];
    let (mut start, mut at) = (0, 0);
    while at < subject.len() {
        match delimiters.iter().find(|one| subject[at..].starts_with(**one)) {
            Some(found) => {
                parts.push(Value::from(&subject[start..at]));
                at += found.len();
                start = at;
            }
            None => at += subject[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    parts.push(Value::from(&subject[start..]));
    Ok(Value::list(parts))
}

/// Returns a text in a Unicode normal form.
pub(crate) fn normalize(name: &'static str, value: &Value, form: &Value) -> Result<Value, Error> {
    let subject = text(name, value)?;
    let normal = match text(name, form)? {
        "NFC" => ComposingNormalizer::new_nfc().normalize(subject),
        "NFD" => DecomposingNormalizer::new_nfd().normalize(subject),
        "NFKC" => ComposingNormalizer::new_nfkc().normalize(subject),
        "NFKD" => DecomposingNormalizer::new_nfkd().normalize(subject),
        _ => return Err(Error::argument(name, "takes NFC, NFD, NFKC or NFKD", form)),
    };
    Ok(Value::string(&*normal))
}

/// Whether a text is in a Unicode normal form; null if the value is no text.
pub(crate) fn is_normalized(name: &'static str, value: &Value, form: &Value) -> Result<Value, Error> {
    let Some(subject) = value.as_str() else { return Ok(Value::Null) };
    Ok(Value::Bool(match text(name, form)? {
        "NFC" => ComposingNormalizer::new_nfc().is_normalized(subject),
        "NFD" => DecomposingNormalizer::new_nfd().is_normalized(subject),
        "NFKC" => ComposingNormalizer::new_nfkc().is_normalized(subject),
        "NFKD" => DecomposingNormalizer::new_nfkd().is_normalized(subject),
        _ => return Err(Error::argument(name, "takes NFC, NFD, NFKC or NFKD", form)),
    }))
}

/// Returns the position of a part of a text, or -1. Args text, part, from and to (-1: the end of the text).
pub(crate) fn index_of(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let (subject, part) = (text(name, &args[0])?, text(name, &args[1])?);
    let from = count(name, &args[2])?;
    let start = offset(subject, from);
    let end =
        if args[3].as_i64() == Some(-1) { subject.len() } else { offset(subject, count(name, &args[3])?) };
    let range = subject.get(start..end).unwrap_or_default();
    // A start beyond the end of the text has no place for an empty part either.
    let is_inside = start < subject.len() || from <= subject.chars().count();
    let found = range.find(part).filter(|_| is_inside && start <= end);
    Ok(Value::Long(found.map_or(-1, |at| (from + range[..at].chars().count()) as i64)))
}

/// Computes STARTS WITH, ENDS WITH or CONTAINS; null if one of the values is no string.
pub(crate) fn test(function: Function, a: &Value, b: &Value) -> Value {
    let (Some(text), Some(part)) = (a.as_str(), b.as_str()) else { return Value::Null };
    Value::Bool(match function {
        Function::StartsWith => text.starts_with(part),
        Function::EndsWith => text.ends_with(part),
        _ => text.contains(part),
    })
}
