//! Comparisons of the languages over long values: as those of `types::order`, but they stop when the request must.

use crate::{Context, Result};
use std::cmp::Ordering;
use tidegraph_plan::Comparison;
use tidegraph_types::{Value, order};

/// Compares two values, three-valued. A comparison with NaN is false; one of types without an order is unknown.
pub(crate) fn compare(
    ctx: &Context<'_>,
    comparison: Comparison,
    a: &Value,
    b: &Value,
) -> Result<Option<bool>> {
    match comparison {
        Comparison::Equal => return equals(ctx, a, b),
        Comparison::NotEqual => return Ok(equals(ctx, a, b)?.map(|equal| !equal)),
        _ => {}
    }
    let Some(ordering) = ordering(ctx, a, b)? else {
        return Ok((order::is_number(a) && order::is_number(b)).then_some(false));
    };
    Ok(Some(holds(comparison, ordering)))
}

/// Whether a comparison is true of two values in this order.
#[inline]
pub(crate) fn holds(comparison: Comparison, ordering: Ordering) -> bool {
    match comparison {
        Comparison::Equal => ordering == Ordering::Equal,
        Comparison::NotEqual => ordering != Ordering::Equal,
        Comparison::Less => ordering == Ordering::Less,
        Comparison::LessOrEqual => ordering != Ordering::Greater,
        Comparison::Greater => ordering == Ordering::Greater,
        Comparison::GreaterOrEqual => ordering != Ordering::Less,
    }
}

/// Evaluates `a = b` in three-valued logic; `None` is unknown.
pub(crate) fn equals(ctx: &Context<'_>, a: &Value, b: &Value) -> Result<Option<bool>> {
    match (a, b) {
        (Value::List(x), Value::List(y)) => {
            if x.len() != y.len() {
                return Ok(Some(false));
            }
            all_equal(ctx, x.iter().zip(y.iter()))
        }
        (Value::Map(x), Value::Map(y)) => {
            ctx.spend(x.len().min(y.len()))?;
            if x.len() != y.len() || x.keys().any(|key| !y.contains_key(key)) {
                return Ok(Some(false));
            }
            all_equal(ctx, x.iter().map(|(key, value)| (value, &y[key])))
        }
        _ => {
            spend(ctx, a, b)?;
            Ok(order::equals(a, b))
        }
    }
}

fn all_equal<'v>(
    ctx: &Context<'_>,
    pairs: impl Iterator<Item = (&'v Value, &'v Value)>,
) -> Result<Option<bool>> {
    let mut known = Some(true);
    for (x, y) in pairs {
        ctx.spend(1)?;
        match equals(ctx, x, y)? {
            Some(false) => return Ok(Some(false)),
            Some(true) => {}
            None => known = None,
        }
    }
    Ok(known)
}

fn ordering(ctx: &Context<'_>, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    let (Value::List(x), Value::List(y)) = (a, b) else {
        spend(ctx, a, b)?;
        return Ok(order::compare(a, b));
    };
    for (i, j) in x.iter().zip(y.iter()) {
        ctx.spend(1)?;
        match ordering(ctx, i, j)? {
            Some(Ordering::Equal) => {}
            other => return Ok(other),
        }
    }
    Ok(Some(x.len().cmp(&y.len())))
}

/// Counts the work of a comparison of two values that are not taken apart here.
fn spend(ctx: &Context<'_>, a: &Value, b: &Value) -> Result<()> {
    let steps = |value: &Value| match value {
        Value::String(text) => text.len() / 64,
        Value::Set(items) => items.len(),
        Value::Path(path) => path.objects.len(),
        _ => 0,
    };
    match steps(a).min(steps(b)) {
        0 => Ok(()),
        steps => ctx.spend(steps),
    }
}
