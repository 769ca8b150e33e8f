//! Neptune's functions over lists and maps. Items are equal if they are equivalent, so that null equals null.

use super::error::Error;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use tidegraph_types::{Map, Value, order};

fn items<'a>(name: &'static str, value: &'a Value) -> Result<&'a [Value], Error> {
    value.as_slice().ok_or_else(|| Error::of_type(name, "a list", value))
}

fn map<'a>(name: &'static str, value: &'a Value) -> Result<&'a Map, Error> {
    match value {
        Value::Map(map) => Ok(map),
        other => Err(Error::of_type(name, "a map", other)),
    }
}

/// Joins strings with a delimiter between them.
pub(crate) fn join(name: &'static str, list: &Value, delimiter: &Value) -> Result<Value, Error> {
    let text = |value| Value::as_str(value).ok_or_else(|| Error::of_type(name, "strings", value));
    let parts = items(name, list)?.iter().map(text).collect::<Result<Vec<&str>, _>>()?;
    Ok(Value::string(parts.join(text(delimiter)?)))
}

/// Returns a map without a key.
pub(crate) fn remove_key(name: &'static str, from: &Value, key: &Value) -> Result<Value, Error> {
    let from = map(name, from)?;
    // Gremlin's maps have tokens as keys too.
    if !matches!(key, Value::String(_) | Value::Symbol(_)) {
        return Err(Error::of_type(name, "a string as key", key));
    }
    Ok(Value::map(from.iter().filter(|(k, _)| *k != key).map(|(k, v)| (k.clone(), v.clone())).collect()))
}

/// Returns the entries of several maps as one map.
pub(crate) fn merge(name: &'static str, maps: &[Value]) -> Result<Value, Error> {
    let mut all = Map::new();
    for each in maps {
        all.extend(map(name, each)?.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(Value::map(all))
}

/// Returns the distinct items, in their order.
pub(crate) fn distinct(name: &'static str, list: &Value) -> Result<Value, Error> {
    let mut seen = FxHashSet::default();
    Ok(Value::list(items(name, list)?.iter().filter(|item| seen.insert(*item)).cloned().collect()))
}

/// Returns the distinct items of a list that are, or are not, items of another.
pub(crate) fn members(name: &'static str, list: &Value, other: &Value, wanted: bool) -> Result<Value, Error> {
    Ok(Value::list(chosen(items(name, list)?, items(name, other)?, wanted)))
}

/// Returns the distinct items that are, or are not, among others.
pub(crate) fn chosen(items: &[Value], others: &[Value], wanted: bool) -> Vec<Value> {
    let others: FxHashSet<&Value> = others.iter().collect();
    let mut seen = FxHashSet::default();
    items.iter().filter(|item| others.contains(item) == wanted && seen.insert(*item)).cloned().collect()
}

/// Sorts the items of a list by the keys of each. Args list, keys, orders, skip, limit; the sort is stable.
pub(crate) fn sort_by(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let list = items(name, &args[0])?;
    let keys = items(name, &args[1])?.iter().map(|keys| items(name, keys)).collect::<Result<Vec<_>, _>>()?;
    let descending = items(name, &args[2])?
        .iter()
        .map(|order| is_descending(name, order))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sorted: Vec<(&[Value], &Value)> = keys.into_iter().zip(list).collect();
    sorted.sort_by(|(a, _), (b, _)| {
        let compared = a.iter().zip(*b).zip(&descending).map(|((a, b), descending)| {
            let ordering = order::order(a, b);
            if *descending { ordering.reverse() } else { ordering }
        });
        compared.fold(Ordering::Equal, Ordering::then)
    });
    let number = |value: &Value| value.as_i64().ok_or_else(|| Error::of_type(name, "an integer", value));
    let (skip, limit) = (number(&args[3])?, number(&args[4])?);
    if skip < 0 || limit < -1 {
        let wrong = if skip < 0 { &args[3] } else { &args[4] };
        return Err(Error::argument(name, "takes no negative number", wrong));
    }
    let at_most = usize::try_from(limit).unwrap_or(usize::MAX);
    let skipped = usize::try_from(skip).unwrap_or(usize::MAX);
    Ok(Value::list(sorted.into_iter().skip(skipped).take(at_most).map(|(_, item)| item.clone()).collect()))
}

/// Reads the entry `order` of a map; ascending if there is none.
fn is_descending(name: &'static str, order: &Value) -> Result<bool, Error> {
    let found = map(name, order)?.get(&Value::from("order"));
    match found {
        None | Some(Value::Null) => Ok(false),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("asc") => Ok(false),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("desc") => Ok(true),
        Some(other) => Err(Error::argument(name, "takes the order 'asc' or 'desc'", other)),
    }
}
