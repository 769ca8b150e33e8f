//! Arithmetic with numbers of any size. An integer and a decimal give a decimal, and so does a float with either.

use super::arithmetic::shown;
use super::error::Error;
use std::cmp::Ordering;
use tidegraph_plan::Arithmetic;
use tidegraph_types::{Big, BigDecimal, BigInt, Value, order};

/// Least number of places behind the point of a quotient that does not end before.
const PLACES: i64 = 10;

/// Computes `a operator b`; `None` if neither is a number of any size, or if one is not finite, for which there are
/// doubles.
pub(super) fn apply(operator: Arithmetic, a: &Value, b: &Value) -> Option<Result<Value, Error>> {
    let is_big = |value: &Value| matches!(value, Value::Big(_));
    if !(is_big(a) || is_big(b)) || operator == Arithmetic::Power {
        return None;
    }
    let is_whole = |value: &Value| match value {
        Value::Big(big) => matches!(**big, Big::Integer(_)),
        other => other.as_i64().is_some(),
    };
    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::Modulo);
    if divides && order::equals(b, &Value::Int(0)) == Some(true) {
        return Some(Err(Error::DivisionByZero(shown(operator, a, b))));
    }
    let result = if is_whole(a) && is_whole(b) {
        let (x, y) = (Big::whole_of(a)?, Big::whole_of(b)?);
        Big::integer(match operator {
            Arithmetic::Add => x + y,
            Arithmetic::Subtract => x - y,
            Arithmetic::Multiply => x * y,
            Arithmetic::Divide => x / y,
            Arithmetic::Modulo | Arithmetic::Power => x % y,
        })
    } else {
        let (x, y) = (Big::decimal_of(a)?, Big::decimal_of(b)?);
        Big::decimal(match operator {
            Arithmetic::Add => x + y,
            Arithmetic::Subtract => x - y,
            Arithmetic::Multiply => x * y,
            Arithmetic::Divide => quotient(&x, &y),
            Arithmetic::Modulo | Arithmetic::Power => x % y,
        })
    };
    Some(result.ok_or_else(|| Error::Overflow(shown(operator, a, b))))
}

/// Divides, and rounds a half away from zero at the places of the operands, at least ten.
fn quotient(a: &BigDecimal, b: &BigDecimal) -> BigDecimal {
    let ((x, x_places), (y, y_places)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
    let places = x_places.max(y_places).max(PLACES);
    let ten_to = |power: i64| BigInt::from(10).pow(u32::try_from(power.max(0)).unwrap_or(u32::MAX));
    let shift = places - x_places + y_places;
    let (x, y) = (x.as_ref() * ten_to(shift), y.as_ref() * ten_to(-shift));
    let twice_rest = (&x % &y) * BigInt::from(2);
    let mut digits = &x / &y;
    if twice_rest.magnitude() >= y.magnitude() {
        digits += if x.sign() == y.sign() { 1 } else { -1 };
    }
    let exact = BigDecimal::new(digits, places).normalized();
    // Zeros before the point stay digits.
    if exact.fractional_digit_count() < 0 { exact.with_scale(0) } else { exact }
}

/// Computes `-x`.
pub(super) fn negate(big: &Big) -> Value {
    // It has as many digits.
    match big {
        Big::Integer(number) => Big::integer(-number),
        Big::Decimal(number) => Big::decimal(-number),
    }
    .unwrap_or_default()
}

/// Returns a number as one of any size, if the other number is one: a decimal unless both are whole.
pub(super) fn widened(value: &Value, other: &Value) -> Option<Value> {
    let kind = |value: &Value| match value {
        Value::Big(big) if matches!(**big, Big::Integer(_)) => Ordering::Equal,
        Value::Big(_) | Value::Float(_) | Value::Double(_) => Ordering::Greater,
        _ => Ordering::Less,
    };
    match kind(value).max(kind(other)) {
        Ordering::Greater => Big::decimal(Big::decimal_of(value)?),
        _ => Big::integer(Big::whole_of(value)?),
    }
}
