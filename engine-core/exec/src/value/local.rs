//! Gremlin's local scope, and its maps: functions over the contents of one value.
//!
//! As in TinkerPop, a value that is no collection counts as a collection of one. An empty collection has no sum,
//! minimum, maximum or mean (the result is unbound), and a range of one item of a list is the item itself.

use super::error::Error;
use super::{big, operate, sorted_rows};
use crate::Context;
use crate::java_random::JavaRandom;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use tidegraph_plan::{Arithmetic, Function};
use tidegraph_types::{Map, Value, order};

/// Returns the items of a list, set or path, the values of a map or entry, or the value itself.
fn items(value: &Value) -> Cow<'_, [Value]> {
    match value {
        Value::List(items) | Value::Set(items) => Cow::Borrowed(items),
        Value::Path(path) => Cow::Borrowed(&path.objects),
        Value::Map(map) | Value::Tree(map) => Cow::Owned(map.values().cloned().collect()),
        Value::Entry(entry) => Cow::Borrowed(std::slice::from_ref(&entry.1)),
        other => Cow::Borrowed(std::slice::from_ref(other)),
    }
}

/// Returns the number of items.
pub(crate) fn count(value: &Value) -> Value {
    let count = match value {
        Value::List(items) | Value::Set(items) => items.len(),
        Value::Path(path) => path.objects.len(),
        Value::Map(map) | Value::Tree(map) => map.len(),
        _ => 1,
    };
    Value::Long(count as i64)
}

/// Computes `sum(local)`, `min(local)`, `max(local)` or `mean(local)`. Nulls are skipped; of nulls alone it is null.
pub(crate) fn reduce(function: Function, name: &'static str, value: &Value) -> Result<Value, Error> {
    let items = items(value);
    if items.is_empty() {
        return Ok(Value::Unbound);
    }
    let mut result = Value::Null;
    let mut counted = 0_i64;
    for item in items.iter().filter(|item| !item.is_null()) {
        counted += 1;
        let extreme = match function {
            Function::MinLocal => Some(Ordering::Less),
            Function::MaxLocal => Some(Ordering::Greater),
            _ => None,
        };
        if let Some(wanted) = extreme {
            let better = counted == 1 || order::order(item, &result) == wanted;
            let (wider, narrower) = if better { (item, &result) } else { (&result, item) };
            result = widened(wider, narrower);
            continue;
        }
        if item.as_f64().is_none() {
            return Err(Error::of_type(name, "numbers", item));
        }
        result = if counted == 1 { item.clone() } else { operate::promoted(Arithmetic::Add, &result, item)? };
    }
    if function == Function::MeanLocal
        && let Some(sum) = result.as_f64()
    {
        return Ok(Value::Double(sum / counted as f64));
    }
    Ok(result)
}

/// Converts a number to the type that holds numbers of both types, as TinkerPop does to compare them.
fn widened(value: &Value, other: &Value) -> Value {
    if (matches!(value, Value::Big(_)) || matches!(other, Value::Big(_)))
        && let Some(wide) = big::widened(value, other)
    {
        return wide;
    }
    let bits = |value: &Value| match value {
        Value::Byte(_) => 8,
        Value::Short(_) => 16,
        Value::Int(_) | Value::Float(_) => 32,
        Value::Long(_) | Value::Double(_) => 64,
        _ => 0,
    };
    if bits(value) == 0 || bits(other) == 0 || value.type_name() == other.type_name() {
        return value.clone();
    }
    let most = bits(value).max(bits(other));
    let float = |value: &Value| matches!(value, Value::Float(_) | Value::Double(_));
    if float(value) || float(other) {
        let number = value.as_f64().unwrap_or(f64::NAN);
        return if most > 32 { Value::Double(number) } else { Value::Float(number as f32) };
    }
    let number = value.as_i64().unwrap_or_default();
    match most {
        16 => i16::try_from(number).map_or(Value::Long(number), Value::Short),
        32 => i32::try_from(number).map_or(Value::Long(number), Value::Int),
        _ => Value::Long(number),
    }
}

/// Returns the distinct items, in order.
pub(crate) fn dedup(value: &Value) -> Value {
    let mut seen = FxHashSet::default();
    let distinct = items(value).iter().filter(|item| seen.insert((*item).clone())).cloned().collect();
    Value::Set(Arc::new(distinct))
}

/// Returns the ids that a value names: a string, or the distinct strings of a list.
pub(crate) fn id_texts(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::List(all) | Value::Set(all) => {
            let mut seen = FxHashSet::default();
            let ids = all.iter().filter(|item| item.as_str().is_some() && seen.insert((*item).clone()));
            Value::List(Arc::new(ids.cloned().collect()))
        }
        _ => Value::Null,
    }
}

fn bound(name: &'static str, value: &Value) -> Result<i64, Error> {
    value.as_i64().ok_or_else(|| Error::of_type(name, "integers", value))
}

/// Whether a part of one item is a list, and not the item itself.
fn keeps_lists(arg: Option<&Value>) -> bool {
    matches!(arg, Some(Value::Bool(true)))
}

/// Computes `range(local, low, high)`; a high of -1 is no end.
pub(crate) fn range(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let (low, high) = (bound(name, &args[1])?, bound(name, &args[2])?);
    if low != -1 && high != -1 && low > high {
        return Err(Error::argument(name, "takes no low above high", &args[1]));
    }
    let high = if high < 0 { i64::MAX } else { high };
    let single = high.saturating_sub(low) == 1 && !keeps_lists(args.get(3));
    Ok(cut(&args[0], low.max(0), high, single))
}

/// `tail(local, n)`.
pub(crate) fn tail(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let wanted = bound(name, &args[1])?;
    if wanted < 0 {
        return Err(Error::argument(name, "takes no negative number", &args[1]));
    }
    let Value::Long(len) = count(&args[0]) else { return Ok(args[0].clone()) };
    let single = wanted == 1 && !keeps_lists(args.get(2));
    Ok(cut(&args[0], len.saturating_sub(wanted).max(0), len, single))
}

/// Returns the items from `low` to before `high`. With `single`, returns the one item itself, unbound if there is none.
fn cut(value: &Value, low: i64, high: i64, single: bool) -> Value {
    let within = |len: usize| {
        let at = |bound: i64| usize::try_from(bound).unwrap_or(0).min(len);
        (at(low), at(high).max(at(low)))
    };
    let part = |items: &[Value]| {
        let (from, to) = within(items.len());
        items[from..to].to_vec()
    };
    match value {
        Value::List(items) | Value::Set(items) if single => {
            part(items).into_iter().next().unwrap_or(Value::Unbound)
        }
        Value::Path(path) if single => part(&path.objects).into_iter().next().unwrap_or(Value::Unbound),
        Value::List(items) => Value::list(part(items)),
        Value::Set(items) => Value::Set(Arc::new(part(items))),
        Value::Path(path) => Value::list(part(&path.objects)),
        Value::Map(map) => {
            let (from, to) = within(map.len());
            Value::map(map.iter().skip(from).take(to - from).map(|(k, v)| (k.clone(), v.clone())).collect())
        }
        other => other.clone(),
    }
}

/// Computes `order(local)`: sorts a list, or a map by its values; stable.
pub(crate) fn sort(ctx: &Context<'_>, name: &'static str, args: &[Value]) -> crate::Result<Value> {
    let descending = match &args[1] {
        Value::Bool(descending) => *descending,
        other => return Err(Error::of_type(name, "a boolean for descending", other).into()),
    };
    let positions = |values: &[&Value]| {
        let value_bytes = values.iter().map(|value| value.heap_bytes()).max().unwrap_or(0);
        sorted_rows(ctx, values.len(), value_bytes, |a, b| {
            let ordering = order::gremlin_order(values[a as usize], values[b as usize]);
            if descending { ordering.reverse() } else { ordering }
        })
    };
    Ok(match &args[0] {
        Value::List(items) | Value::Set(items) => {
            let positions = positions(&items.iter().collect::<Vec<_>>())?;
            Value::list(positions.into_iter().map(|at| items[at as usize].clone()).collect())
        }
        Value::Map(map) => {
            let positions = positions(&map.values().collect::<Vec<_>>())?;
            let entries = positions.into_iter().filter_map(|at| map.get_index(at as usize));
            Value::map(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        other => other.clone(),
    })
}

/// Returns a map's value of a key; unbound if there is none or the value is no map.
pub(crate) fn map_get(value: &Value, key: &Value) -> Value {
    match value {
        Value::Map(map) | Value::Tree(map) => map.get(key).cloned().unwrap_or(Value::Unbound),
        _ => Value::Unbound,
    }
}

/// Chooses a number of items of a collection at random and keeps their order; returns any other value as it is.
pub(crate) fn sample(
    name: &'static str,
    args: &[Value],
    mut unit: impl FnMut() -> f64,
) -> Result<Value, Error> {
    let wanted = match args[1].as_i64().map(usize::try_from) {
        Some(Ok(wanted)) => wanted,
        _ => return Err(Error::of_type(name, "an integer that is not negative", &args[1])),
    };
    // Knuth's algorithm S: takes each item with the probability missing items / remaining items.
    let chosen = |items: usize| {
        let (mut left, mut wanted) = (items, wanted);
        move || {
            let take = unit() * (left as f64) < wanted as f64;
            left -= 1;
            wanted -= usize::from(take);
            take
        }
    };
    Ok(match &args[0] {
        Value::List(items) | Value::Set(items) if items.len() > wanted => {
            let mut take = chosen(items.len());
            let items = Arc::new(items.iter().filter(|_| take()).cloned().collect());
            if matches!(args[0], Value::Set(_)) { Value::Set(items) } else { Value::List(items) }
        }
        Value::Map(map) if map.len() > wanted => {
            let mut take = chosen(map.len());
            Value::map(map.iter().filter(|_| take()).map(|(k, v)| (k.clone(), v.clone())).collect())
        }
        other => other.clone(),
    })
}

/// Chooses a number of items of a collection as TinkerPop does with a seed: each pick is removed from those that are left.
/// Calls `step` with steps of work.
pub(crate) fn seeded_sample(
    name: &'static str,
    args: &[Value],
    random: &mut JavaRandom,
    step: &dyn Fn(usize) -> crate::Result<()>,
) -> crate::Result<Value> {
    let wanted = match args[1].as_i64().map(usize::try_from) {
        Some(Ok(wanted)) => wanted,
        _ => return Err(Error::of_type(name, "an integer that is not negative", &args[1]).into()),
    };
    let mut picks = |items: usize| -> crate::Result<Vec<usize>> {
        let mut left: Vec<usize> = (0..items).collect();
        let mut picks = Vec::with_capacity(wanted);
        while picks.len() < wanted {
            // A removal moves the items behind it.
            step(1 + left.len() / 16)?;
            let at = random.below(u32::try_from(left.len()).unwrap_or(i32::MAX as u32).min(i32::MAX as u32));
            picks.push(left.remove(at as usize));
        }
        Ok(picks)
    };
    Ok(match &args[0] {
        Value::List(items) | Value::Set(items) if items.len() > wanted => {
            let items = Arc::new(picks(items.len())?.into_iter().map(|at| items[at].clone()).collect());
            if matches!(args[0], Value::Set(_)) { Value::Set(items) } else { Value::List(items) }
        }
        Value::Map(map) if map.len() > wanted => {
            let entries = picks(map.len())?.into_iter().filter_map(|at| map.get_index(at));
            Value::map(entries.map(|(k, v)| (k.clone(), v.clone())).collect())
        }
        other => other.clone(),
    })
}

/// `select(keys)`.
pub(crate) fn keys(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::Map(map) | Value::Tree(map) => Ok(Value::list(map.keys().cloned().collect())),
        Value::Entry(entry) => Ok(entry.0.clone()),
        Value::Path(path) => {
            let labels = |index: usize| path.labels.get(index).map_or(&[][..], Vec::as_slice);
            let sets = (0..path.objects.len()).map(|index| {
                Value::Set(Arc::new(labels(index).iter().cloned().map(Value::String).collect()))
            });
            Ok(Value::list(sets.collect()))
        }
        other => Err(Error::of_type(name, "a map, map entry or path", other)),
    }
}

/// `select(values)`.
pub(crate) fn values(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::Map(map) | Value::Tree(map) => Ok(Value::list(map.values().cloned().collect())),
        Value::Entry(entry) => Ok(entry.1.clone()),
        Value::Path(path) => Ok(Value::list(path.objects.clone())),
        other => Err(Error::of_type(name, "a map, map entry or path", other)),
    }
}

/// Makes a map from alternating keys and values; leaves out pairs of which one is unbound.
pub(crate) fn make_map(args: Vec<Value>) -> Value {
    let mut map = Map::with_capacity(args.len() / 2);
    let mut args = args.into_iter();
    while let (Some(key), Some(value)) = (args.next(), args.next()) {
        if !matches!(key, Value::Unbound) && !matches!(value, Value::Unbound) {
            map.insert(key, value);
        }
    }
    Value::map(map)
}

/// Computes the items of `unfold()`.
pub(crate) fn unfold(value: Value) -> Value {
    match value {
        Value::List(_) => value,
        Value::Set(items) => Value::List(items),
        Value::Map(map) | Value::Tree(map) => {
            let entry = |(k, v): (&Value, &Value)| Value::Entry(Arc::new((k.clone(), v.clone())));
            Value::list(map.iter().map(entry).collect())
        }
        Value::Path(path) => Value::list(path.objects.clone()),
        other => Value::list(vec![other]),
    }
}
