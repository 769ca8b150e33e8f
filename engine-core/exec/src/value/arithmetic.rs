//! Arithmetic of both languages, and `+` for strings and lists.
//!
//! Widths: two integers of at most 32 bits give a 32-bit integer if the result fits, else 64 bits; a float and
//! integers of at most 32 bits give a float; everything else gives a double. An integer that does not fit in 64 bits
//! is an error, never a wrapped or rounded number.

use super::error::{Error, plain};
use super::text::to_text;
use super::{big, temporal};
use std::sync::Arc;
use tidegraph_plan::Arithmetic;
use tidegraph_types::Value;

/// Computes `a operator b`; null if one of them is null.
pub(crate) fn apply(operator: Arithmetic, a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Value::Long(x), Value::Long(y)) = (a, b)
        && let Some(result) = match operator {
            Arithmetic::Add => x.checked_add(*y),
            Arithmetic::Subtract => x.checked_sub(*y),
            Arithmetic::Multiply => x.checked_mul(*y),
            _ => None,
        }
    {
        return Ok(Value::Long(result));
    }
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    if let Some(result) = temporal::apply(operator, a, b).or_else(|| big::apply(operator, a, b)) {
        return result;
    }
    if operator == Arithmetic::Add
        && let Some(joined) = join(a, b)
    {
        return Ok(joined);
    }
    numbers(operator, a, b)
}

/// Computes `-x`; null for null.
pub(crate) fn negate(value: &Value) -> Result<Value, Error> {
    match value {
        Value::Float(v) => Ok(Value::Float(-v)),
        Value::Double(v) => Ok(Value::Double(-v)),
        Value::Long(v) => {
            v.checked_neg().map(Value::Long).ok_or_else(|| Error::Overflow(format!("-({})", plain(value))))
        }
        Value::Big(v) => Ok(big::negate(v)),
        other if other.is_null() => Ok(Value::Null),
        other => match other.as_i64() {
            Some(v) => Ok(integer(-v, true)),
            None => Err(Error::of_type("-", "a number", value)),
        },
    }
}

/// Makes an integer: of 32 bits if `narrow` and if it fits, of 64 bits otherwise.
fn integer(value: i64, narrow: bool) -> Value {
    match i32::try_from(value) {
        Ok(small) if narrow => Value::Int(small),
        _ => Value::Long(value),
    }
}

/// Concatenates strings and lists; `None` if neither value is one.
fn join(a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::List(x) | Value::Set(x), Value::List(y) | Value::Set(y)) => {
            let mut all = Vec::with_capacity(x.len() + y.len());
            all.extend(x.iter().cloned());
            all.extend(y.iter().cloned());
            Some(Value::list(all))
        }
        (Value::List(x), item) => {
            let mut all = Vec::with_capacity(x.len() + 1);
            all.extend(x.iter().cloned());
            all.push(item.clone());
            Some(Value::list(all))
        }
        (item, Value::List(y)) => {
            let mut all = Vec::with_capacity(y.len() + 1);
            all.push(item.clone());
            all.extend(y.iter().cloned());
            Some(Value::List(Arc::new(all)))
        }
        (Value::String(_), Value::String(_)) | (Value::String(_), _) | (_, Value::String(_)) => {
            let text = |v: &Value| match v {
                Value::String(_) => to_text(v),
                v if v.as_f64().is_some() => to_text(v),
                _ => None,
            };
            let (x, y) = (text(a)?, text(b)?);
            let mut all = String::with_capacity(x.len() + y.len());
            all.push_str(&x);
            all.push_str(&y);
            Some(Value::string(all))
        }
        _ => None,
    }
}

fn symbol(operator: Arithmetic) -> &'static str {
    match operator {
        Arithmetic::Add => "+",
        Arithmetic::Subtract => "-",
        Arithmetic::Multiply => "*",
        Arithmetic::Divide => "/",
        Arithmetic::Modulo => "%",
        Arithmetic::Power => "^",
    }
}

/// Writes `a + b` for an error message.
pub(super) fn shown(operator: Arithmetic, a: &Value, b: &Value) -> String {
    format!("{} {} {}", plain(a), symbol(operator), plain(b))
}

fn numbers(operator: Arithmetic, a: &Value, b: &Value) -> Result<Value, Error> {
    let (Some(x), Some(y)) = (a.as_f64(), b.as_f64()) else {
        let fits = |v: &Value| v.as_f64().is_some() || (operator == Arithmetic::Add && v.as_str().is_some());
        let wrong = if fits(a) { b } else { a };
        let expected =
            if operator == Arithmetic::Add { "numbers, strings, lists or times" } else { "numbers" };
        return Err(Error::of_type(symbol(operator), expected, wrong));
    };
    if operator == Arithmetic::Power {
        return Ok(Value::Double(x.powf(y)));
    }
    if let (Some(i), Some(j)) = (a.as_i64(), b.as_i64()) {
        let narrow = !matches!(a, Value::Long(_)) && !matches!(b, Value::Long(_));
        if j == 0 && matches!(operator, Arithmetic::Divide | Arithmetic::Modulo) {
            return Err(Error::DivisionByZero(shown(operator, a, b)));
        }
        let result = match operator {
            Arithmetic::Add => i.checked_add(j),
            Arithmetic::Subtract => i.checked_sub(j),
            Arithmetic::Multiply => i.checked_mul(j),
            Arithmetic::Divide => i.checked_div(j),
            // The only overflow is MIN % -1, whose mathematical result is 0.
            Arithmetic::Modulo => Some(i.wrapping_rem(j)),
            Arithmetic::Power => None,
        };
        return result
            .map(|result| integer(result, narrow))
            .ok_or_else(|| Error::Overflow(shown(operator, a, b)));
    }
    let wide = |v: &Value| matches!(v, Value::Double(_) | Value::Long(_));
    if wide(a) || wide(b) {
        Ok(Value::Double(floats(operator, x, y)))
    } else {
        Ok(Value::Float(floats(operator, x, y) as f32))
    }
}

fn floats(operator: Arithmetic, x: f64, y: f64) -> f64 {
    match operator {
        Arithmetic::Add => x + y,
        Arithmetic::Subtract => x - y,
        Arithmetic::Multiply => x * y,
        Arithmetic::Divide => x / y,
        Arithmetic::Modulo => x % y,
        Arithmetic::Power => x.powf(y),
    }
}
