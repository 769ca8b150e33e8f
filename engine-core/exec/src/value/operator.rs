//! Gremlin's operators, which make one value of two: those of `sack()`, `fold()` and `withSideEffect()`.
//!
//! A null is no value: the result is the other one. `assign` takes a null too.

use super::arithmetic;
use super::error::Error;
use std::cmp::Ordering;
use tidegraph_plan::{Arithmetic, Operator};
use tidegraph_types::{Value, order};

/// Returns the name of an operator for errors.
pub(crate) fn name(operator: Operator) -> &'static str {
    match operator {
        Operator::AddAll => "the operator addAll",
        Operator::And => "the operator and",
        Operator::Assign => "the operator assign",
        Operator::Div => "the operator div",
        Operator::Max => "the operator max",
        Operator::Min => "the operator min",
        Operator::Minus => "the operator minus",
        Operator::Mult => "the operator mult",
        Operator::Or => "the operator or",
        Operator::Sum => "the operator sum",
        Operator::SumLong => "the operator sumLong",
    }
}

/// Applies an operator to the value so far and another one.
pub(crate) fn operate(operator: Operator, before: &Value, other: &Value) -> Result<Value, Error> {
    if operator == Operator::Assign || before.is_null() {
        return Ok(if other.is_null() { Value::Null } else { other.clone() });
    }
    if other.is_null() {
        return Ok(before.clone());
    }
    let arithmetic = |operation| {
        [before, other].into_iter().try_for_each(|value| number(operator, value))?;
        arithmetic::apply(operation, before, other)
    };
    match operator {
        Operator::Sum => arithmetic(Arithmetic::Add),
        Operator::Minus => arithmetic(Arithmetic::Subtract),
        Operator::Mult => arithmetic(Arithmetic::Multiply),
        Operator::Div => arithmetic(Arithmetic::Divide),
        Operator::SumLong => {
            let whole = |value: &Value| match value.as_i64() {
                Some(whole) => Ok(Value::Long(whole)),
                None => Err(Error::of_type(name(operator), "integers", value)),
            };
            arithmetic::apply(Arithmetic::Add, &whole(before)?, &whole(other)?)
        }
        Operator::Max => extreme(operator, Ordering::Greater, before, other),
        Operator::Min => extreme(operator, Ordering::Less, before, other),
        Operator::And => Ok(Value::Bool(boolean(operator, before)? && boolean(operator, other)?)),
        Operator::Or => Ok(Value::Bool(boolean(operator, before)? || boolean(operator, other)?)),
        Operator::AddAll => add_all(before, other),
        Operator::Assign => Ok(other.clone()),
    }
}

fn number(operator: Operator, value: &Value) -> Result<(), Error> {
    match value.as_f64() {
        Some(_) => Ok(()),
        None => Err(Error::of_type(name(operator), "numbers", value)),
    }
}

fn boolean(operator: Operator, value: &Value) -> Result<bool, Error> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(Error::of_type(name(operator), "booleans", other)),
    }
}

fn extreme(operator: Operator, wanted: Ordering, before: &Value, other: &Value) -> Result<Value, Error> {
    let both_numbers = before.as_f64().is_some() && other.as_f64().is_some();
    if !both_numbers && before.type_name() != other.type_name() {
        return Err(Error::of_type(name(operator), "values of one type", other));
    }
    Ok(if order::order(other, before) == wanted { other.clone() } else { before.clone() })
}

fn add_all(before: &Value, other: &Value) -> Result<Value, Error> {
    let name = name(Operator::AddAll);
    match (before, other) {
        (Value::Map(map), Value::Map(more)) => {
            let all = map.iter().chain(more.iter()).map(|(key, value)| (key.clone(), value.clone()));
            Ok(Value::map(all.collect()))
        }
        (Value::List(_) | Value::Set(_), _) => {
            let more = other.as_slice().ok_or_else(|| Error::of_type(name, "lists, sets or maps", other))?;
            let all = before.as_slice().unwrap_or_default().iter().chain(more).cloned();
            Ok(match before {
                Value::Set(_) => {
                    let distinct: indexmap::IndexSet<Value> = all.collect();
                    Value::Set(std::sync::Arc::new(distinct.into_iter().collect()))
                }
                _ => Value::list(all.collect()),
            })
        }
        (Value::Map(_), _) => Err(Error::of_type(name, "lists, sets or maps", other)),
        _ => Err(Error::of_type(name, "lists, sets or maps", before)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operator: Operator, before: impl Into<Value>, other: impl Into<Value>) -> Result<Value, String> {
        operate(operator, &before.into(), &other.into()).map_err(|error| error.to_string())
    }

    fn list(items: &[i64]) -> Value {
        Value::list(items.iter().map(|item| Value::Long(*item)).collect())
    }

    #[test]
    fn numbers_are_added_and_compared() {
        assert_eq!(of(Operator::Sum, 2_i64, 0.5), Ok(Value::Double(2.5)));
        assert_eq!(of(Operator::Minus, 2_i64, 5_i64), Ok(Value::Long(-3)));
        assert_eq!(of(Operator::Mult, 2_i64, 5_i64), Ok(Value::Long(10)));
        assert_eq!(of(Operator::Div, 7_i64, 2_i64), Ok(Value::Long(3)));
        assert_eq!(of(Operator::Max, 7_i64, 7.5), Ok(Value::Double(7.5)));
        assert_eq!(of(Operator::Min, "b", "a"), Ok("a".into()));
        assert_eq!(of(Operator::SumLong, 1_i64, Value::Int(2)), Ok(Value::Long(3)));
        assert_eq!(of(Operator::And, true, false), Ok(Value::Bool(false)));
        assert_eq!(of(Operator::Or, true, false), Ok(Value::Bool(true)));
        assert_eq!(of(Operator::Assign, 1_i64, "x"), Ok("x".into()));
    }

    #[test]
    fn collections_are_joined() {
        assert_eq!(of(Operator::AddAll, list(&[1]), list(&[1, 2])), Ok(list(&[1, 1, 2])));
        let set = Value::Set(std::sync::Arc::new(vec![1_i64.into()]));
        let both = Value::Set(std::sync::Arc::new(vec![1_i64.into(), 2_i64.into()]));
        assert_eq!(of(Operator::AddAll, set, list(&[1, 2])), Ok(both));
    }

    #[test]
    fn a_null_is_no_value() {
        assert_eq!(of(Operator::Sum, Value::Null, 1_i64), Ok(Value::Long(1)));
        assert_eq!(of(Operator::Sum, 1_i64, Value::Null), Ok(Value::Long(1)));
        assert_eq!(of(Operator::Assign, 1_i64, Value::Null), Ok(Value::Null));
    }

    #[test]
    fn wrong_types_are_named() {
        for (operator, before, other, part) in [
            (Operator::Sum, Value::Long(1), "x".into(), "the operator sum takes numbers, not 'x'"),
            (Operator::Mult, list(&[1]), Value::Long(1), "the operator mult takes numbers"),
            (Operator::Max, Value::Long(1), "x".into(), "the operator max takes values of one type"),
            (Operator::And, Value::Long(1), true.into(), "the operator and takes booleans"),
            (Operator::AddAll, Value::Long(1), list(&[]), "the operator addAll takes lists, sets or maps"),
            (Operator::SumLong, Value::Long(1), 0.5.into(), "the operator sumLong takes integers"),
            (Operator::Sum, Value::Long(i64::MAX), Value::Long(1), "overflow"),
            (Operator::Div, Value::Long(1), Value::Long(0), "division by zero"),
        ] {
            let error = of(operator, before, other).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
    }
}
