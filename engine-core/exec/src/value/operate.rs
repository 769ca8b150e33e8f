//! Gremlin's operators: `fold(seed, operator)` joins all values with one.
//!
//! Integers keep their types as far as these hold the result; one that leaves 64 bits is an error, where TinkerPop wraps around.

use super::error::Error;
use super::{arithmetic, local};
use crate::{Context, Result};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use tidegraph_plan::{Arithmetic, Function, Operator};
use tidegraph_types::{Map, Value};

/// Returns the name of an operator for errors.
fn name(operator: Operator) -> &'static str {
    match operator {
        Operator::Sum => "Operator.sum",
        Operator::SumLong => "Operator.sumLong",
        Operator::Minus => "Operator.minus",
        Operator::Mult => "Operator.mult",
        Operator::Div => "Operator.div",
        Operator::Min => "Operator.min",
        Operator::Max => "Operator.max",
        Operator::Assign => "Operator.assign",
        Operator::And => "Operator.and",
        Operator::Or => "Operator.or",
        Operator::AddAll => "Operator.addAll",
    }
}

/// Joins a value with the next one.
pub(crate) fn call(ctx: &Context<'_>, operator: Operator, value: &Value, next: &Value) -> Result<Value> {
    let name = name(operator);
    Ok(match operator {
        Operator::Assign => next.clone(),
        Operator::Sum => numbers(name, Arithmetic::Add, value, next)?,
        Operator::Minus => numbers(name, Arithmetic::Subtract, value, next)?,
        Operator::Mult => numbers(name, Arithmetic::Multiply, value, next)?,
        Operator::Div => numbers(name, Arithmetic::Divide, value, next)?,
        Operator::SumLong => match numbers(name, Arithmetic::Add, value, next)?.as_i64() {
            Some(sum) => Value::Long(sum),
            None => return Err(Error::of_type(name, "integers", next).into()),
        },
        Operator::Min | Operator::Max => extreme(operator, name, value, next)?,
        Operator::And | Operator::Or => {
            let truth = |value: &Value| match value {
                Value::Bool(truth) => Ok(*truth),
                other => Err(Error::of_type(name, "booleans", other)),
            };
            let (a, b) = (truth(value)?, truth(next)?);
            Value::Bool(if operator == Operator::And { a && b } else { a || b })
        }
        Operator::AddAll => {
            ctx.memory.ensure(super::size::joined_bytes(value, next))?;
            add_all(name, value, next)?
        }
    })
}

/// Computes with two numbers. The result of two integers has the wider one of their types, or the next one that holds it.
pub(crate) fn promoted(operator: Arithmetic, a: &Value, b: &Value) -> Result<Value, Error> {
    let result = arithmetic::apply(operator, a, b)?;
    Ok(match (result.as_i64(), width(a), width(b)) {
        (Some(number), Some(a), Some(b)) => of_width(number, a.max(b)),
        _ => result,
    })
}

/// Returns an integer in its own type or, if that is too narrow for it, in a wider one, as `rows` values make it.
pub(crate) fn times(value: &Value, rows: i64) -> Result<Value, Error> {
    let result = arithmetic::apply(Arithmetic::Multiply, value, &Value::Long(rows))?;
    Ok(match (result.as_i64(), width(value)) {
        (Some(number), Some(width)) => of_width(number, width),
        _ => result,
    })
}

/// Returns the number of bits of an integer's type.
fn width(value: &Value) -> Option<u32> {
    match value {
        Value::Byte(_) => Some(8),
        Value::Short(_) => Some(16),
        Value::Int(_) => Some(32),
        Value::Long(_) => Some(64),
        _ => None,
    }
}

/// Returns an integer in the narrowest type that holds it and has at least `bits` bits.
fn of_width(number: i64, bits: u32) -> Value {
    let byte = || i8::try_from(number).ok().filter(|_| bits <= 8).map(Value::Byte);
    let short = || i16::try_from(number).ok().filter(|_| bits <= 16).map(Value::Short);
    let int = || i32::try_from(number).ok().filter(|_| bits <= 32).map(Value::Int);
    byte().or_else(short).or_else(int).unwrap_or(Value::Long(number))
}

/// A null leaves the first value as it is.
fn numbers(name: &'static str, operator: Arithmetic, a: &Value, b: &Value) -> Result<Value, Error> {
    let is_number = |value: &Value| value.is_null() || value.as_f64().is_some();
    if let Some(wrong) = [a, b].into_iter().find(|value| !is_number(value)) {
        return Err(Error::of_type(name, "numbers", wrong));
    }
    if a.is_null() || b.is_null() { Ok(a.clone()) } else { promoted(operator, a, b) }
}

/// Returns the smaller or larger of two values that compare.
fn extreme(operator: Operator, name: &'static str, a: &Value, b: &Value) -> Result<Value, Error> {
    if a.is_null() || b.is_null() {
        return Ok(if a.is_null() { b.clone() } else { a.clone() });
    }
    if tidegraph_types::order::compare(a, b).is_none() {
        return Err(Error::of_type(name, "values that compare with each other", b));
    }
    let function = if operator == Operator::Min { Function::MinLocal } else { Function::MaxLocal };
    local::reduce(function, name, &Value::list(vec![a.clone(), b.clone()]))
}

fn add_all(name: &'static str, value: &Value, next: &Value) -> Result<Value, Error> {
    if value.is_null() || next.is_null() {
        return Ok(if value.is_null() { next.clone() } else { value.clone() });
    }
    match (value, next) {
        (Value::Map(all), Value::Map(more)) => {
            let mut all = Map::clone(all);
            all.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(Value::map(all))
        }
        (Value::Set(all), Value::List(more) | Value::Set(more)) => {
            let mut seen = FxHashSet::default();
            let items = all.iter().chain(more.iter()).filter(|item| seen.insert(*item));
            Ok(Value::Set(Arc::new(items.cloned().collect())))
        }
        (Value::List(all), Value::List(more) | Value::Set(more)) => {
            Ok(Value::list([all.as_slice(), more.as_slice()].concat()))
        }
        (Value::Map(_) | Value::List(_) | Value::Set(_), other) => {
            Err(Error::of_type(name, "two lists or sets, or two maps", other))
        }
        (other, _) => Err(Error::of_type(name, "two lists or sets, or two maps", other)),
    }
}
