//! Gremlin's steps over a collection and another one: `combine`, `difference`, `disjunct`, `intersect`, `merge`,
//! `product`; and `index`.
//!
//! A collection is a list, a set or a path. Items are equal if they are equivalent, so that null equals null.

use super::collection::chosen;
use super::error::Error;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use tidegraph_plan::ListFunction;
use tidegraph_types::{Map, Value};

fn items<'a>(name: &'static str, value: &'a Value) -> Result<&'a [Value], Error> {
    match value {
        Value::List(items) | Value::Set(items) => Ok(items),
        Value::Path(path) => Ok(&path.objects),
        other => Err(Error::of_type(name, "a list, set or path", other)),
    }
}

/// Calls a function of one collection, or of two.
pub(crate) fn call(
    function: ListFunction,
    name: &'static str,
    value: &Value,
    other: Option<&Value>,
) -> Result<Value, Error> {
    let other = other.unwrap_or(&Value::Null);
    let set = |items: Vec<Value>| Value::Set(Arc::new(items));
    Ok(match function {
        ListFunction::Items => Value::list(items(name, value)?.to_vec()),
        ListFunction::Index | ListFunction::IndexMap => indexed(function, value),
        ListFunction::Merge if matches!(value, Value::Map(_)) => merged(name, value, other)?,
        ListFunction::Combine => Value::list([items(name, value)?, items(name, other)?].concat()),
        ListFunction::Product => {
            let (left, right) = (items(name, value)?, items(name, other)?);
            let pairs =
                left.iter().flat_map(|a| right.iter().map(move |b| Value::list(vec![a.clone(), b.clone()])));
            Value::list(pairs.collect())
        }
        ListFunction::Difference => set(chosen(items(name, value)?, items(name, other)?, false)),
        ListFunction::Intersect => set(chosen(items(name, value)?, items(name, other)?, true)),
        ListFunction::Disjunct => {
            let (left, right) = (items(name, value)?, items(name, other)?);
            let mut only = chosen(left, right, false);
            only.extend(chosen(right, left, false));
            set(only)
        }
        ListFunction::Merge => {
            let mut seen = FxHashSet::default();
            let all = items(name, value)?.iter().chain(items(name, other)?);
            set(all.filter(|item| seen.insert(*item)).cloned().collect())
        }
    })
}

/// Merges two maps; of equal keys, the entry of the second map wins.
fn merged(name: &'static str, value: &Value, other: &Value) -> Result<Value, Error> {
    let (Value::Map(left), Value::Map(right)) = (value, other) else {
        return Err(Error::of_type(name, "a map to merge with a map", other));
    };
    let mut all = Map::clone(left);
    all.extend(right.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(Value::map(all))
}

/// Numbers the items of a collection. Any other value is its only item.
fn indexed(function: ListFunction, value: &Value) -> Value {
    let entries;
    let items = match value {
        Value::List(items) | Value::Set(items) => items.as_slice(),
        Value::Path(path) => path.objects.as_slice(),
        Value::Map(map) => {
            entries = map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone()))));
            &entries.collect::<Vec<_>>()
        }
        other => std::slice::from_ref(other),
    };
    let position = |at: usize| i32::try_from(at).map_or(Value::Long(at as i64), Value::Int);
    let numbered = items.iter().enumerate();
    if function == ListFunction::IndexMap {
        Value::map(numbered.map(|(at, item)| (position(at), item.clone())).collect())
    } else {
        Value::list(numbered.map(|(at, item)| Value::list(vec![item.clone(), position(at)])).collect())
    }
}
