//! openCypher's lists: index, slice, membership, and functions.

use super::compare::equals;
use super::error::Error;
use crate::Context;
use std::sync::Arc;
use tidegraph_types::Value;

/// Computes `base[index]` of a list or map; the caller handles elements.
pub(crate) fn index(base: &Value, index: &Value) -> Result<Value, Error> {
    if base.is_null() || index.is_null() {
        return Ok(Value::Null);
    }
    match base {
        Value::List(items) | Value::Set(items) => {
            let Some(at) = index.as_i64() else {
                return Err(Error::of_type("a list index", "an integer", index));
            };
            let at = if at < 0 { at.checked_add(items.len() as i64) } else { Some(at) };
            let item = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| items.get(at));
            Ok(item.cloned().unwrap_or(Value::Null))
        }
        Value::Map(map) => match index {
            Value::String(_) | Value::Symbol(_) => Ok(map.get(index).cloned().unwrap_or(Value::Null)),
            _ => Err(Error::of_type("a map index", "a string", index)),
        },
        other => Err(Error::of_type("[index]", "a list, map, vertex or edge", other)),
    }
}

/// Returns the items of `base[from..to]`; a missing bound is that end of the list. `None`: the result is null.
pub(crate) fn slice<'b>(
    base: &'b Value,
    from: Option<&Value>,
    to: Option<&Value>,
) -> Result<Option<&'b [Value]>, Error> {
    let null = |bound: Option<&Value>| bound.is_some_and(Value::is_null);
    if base.is_null() || null(from) || null(to) {
        return Ok(None);
    }
    let Some(items) = base.as_slice() else {
        return Err(Error::of_type("[from..to]", "a list", base));
    };
    let position = |bound: &Value| -> Result<usize, Error> {
        let Some(at) = bound.as_i64() else {
            return Err(Error::of_type("a list index", "an integer", bound));
        };
        let len = items.len() as i64;
        Ok((if at < 0 { at.saturating_add(len) } else { at }).clamp(0, len) as usize)
    };
    let from = from.map_or(Ok(0), position)?;
    let to = to.map_or(Ok(items.len()), position)?;
    Ok(Some(items.get(from..to).unwrap_or_default()))
}

/// `item IN list`, three-valued.
pub(crate) fn contains(ctx: &Context<'_>, item: &Value, list: &Value) -> crate::Result<Option<bool>> {
    if list.is_null() {
        return Ok(None);
    }
    let Some(items) = list.as_slice() else {
        return Err(Error::of_type("IN", "a list", list).into());
    };
    let mut unknown = false;
    for other in items {
        ctx.spend(1)?;
        match equals(ctx, item, other)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

fn items<'a>(name: &'static str, value: &'a Value) -> Result<&'a [Value], Error> {
    value.as_slice().ok_or_else(|| Error::of_type(name, "a list", value))
}

/// `head`.
pub(crate) fn head(name: &'static str, value: &Value) -> Result<Value, Error> {
    Ok(items(name, value)?.first().cloned().unwrap_or(Value::Null))
}

/// `last`.
pub(crate) fn last(name: &'static str, value: &Value) -> Result<Value, Error> {
    Ok(items(name, value)?.last().cloned().unwrap_or(Value::Null))
}

/// `tail`: all but the first.
pub(crate) fn tail(name: &'static str, value: &Value) -> Result<Value, Error> {
    Ok(Value::list(items(name, value)?.get(1..).unwrap_or_default().to_vec()))
}

/// `size` of a list, of a string in characters, of a map in entries.
pub(crate) fn size(name: &'static str, value: &Value) -> Result<Value, Error> {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Map(map) => map.len(),
        other => other.as_slice().ok_or_else(|| Error::of_type(name, "a list, string or map", value))?.len(),
    };
    Ok(Value::Long(size as i64))
}

/// `reverse` of a list or string.
pub(crate) fn reverse(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::String(text) => Ok(Value::string(text.chars().rev().collect::<String>())),
        other => match other.as_slice() {
            Some(items) => Ok(Value::List(Arc::new(items.iter().rev().cloned().collect()))),
            None => Err(Error::of_type(name, "a list or string", value)),
        },
    }
}

/// Returns the first number, the step and the count of a `range`.
pub(crate) fn range(name: &'static str, args: &[Value]) -> Result<(i64, i64, u64), Error> {
    let int = |value: &Value| value.as_i64().ok_or_else(|| Error::of_type(name, "integers", value));
    let (start, end) = (int(&args[0])?, int(&args[1])?);
    let step = args.get(2).map_or(Ok(1), int)?;
    if step == 0 {
        return Err(Error::argument(name, "takes no step of zero", &Value::Long(step)));
    }
    let (start_wide, end_wide) = (i128::from(start), i128::from(end));
    let steps = (end_wide - start_wide) / i128::from(step);
    let empty = (step > 0 && start > end) || (step < 0 && start < end);
    let count = if empty { 0 } else { u64::try_from(steps).unwrap_or(u64::MAX).saturating_add(1) };
    Ok((start, step, count))
}

/// `isEmpty`: whether a list, a map or a string has nothing in it.
pub(crate) fn is_empty(name: &'static str, value: &Value) -> Result<Value, Error> {
    Ok(Value::Bool(match value {
        Value::String(text) => text.is_empty(),
        Value::Map(map) => map.is_empty(),
        other => {
            let items = other.as_slice();
            items.ok_or_else(|| Error::of_type(name, "a list, map or string", value))?.is_empty()
        }
    }))
}
