//! Numbers that 64 bits do not hold: integers of any size, and decimals that are exact.
//!
//! Only Gremlin has them. Their size is bounded, because digits are what a client can make grow: a product has as many
//! as both of its factors.

use crate::Value;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// Most bits of the digits, about 1,233 decimal ones.
const MOST_BITS: u64 = 4096;
/// Most digits behind the point, and most zeros before it that are not written.
const MOST_SCALE: u64 = 1_300;
/// Longest text of a number, with sign, point and exponent.
const MOST_CHARS: usize = 1_400;

/// An integer or a decimal. Equal numbers are equal, whatever their types and scales.
#[derive(Clone, Debug)]
pub enum Big {
    /// Java's `BigInteger`.
    Integer(BigInt),
    /// Java's `BigDecimal`.
    Decimal(BigDecimal),
}

impl Big {
    /// Returns the value of an integer; `None` if it has more than about 1,200 digits.
    #[must_use]
    pub fn integer(number: BigInt) -> Option<Value> {
        (number.bits() <= MOST_BITS).then(|| Value::Big(Arc::new(Self::Integer(number))))
    }

    /// Returns the value of a decimal; `None` if it has more than about 1,200 digits.
    #[must_use]
    pub fn decimal(number: BigDecimal) -> Option<Value> {
        let (digits, scale) = number.as_bigint_and_scale();
        let fits = digits.bits() <= MOST_BITS && scale.unsigned_abs() <= MOST_SCALE;
        fits.then(|| Value::Big(Arc::new(Self::Decimal(number))))
    }

    /// Reads an integer: decimal digits with or without a sign.
    #[must_use]
    pub fn parse_integer(text: &str) -> Option<Value> {
        if text.len() > MOST_CHARS {
            return None;
        }
        Self::integer(BigInt::from_str(text).ok()?)
    }

    /// Reads a decimal such as `-1.50` or `2e-7`. The number of digits behind the point is kept.
    #[must_use]
    pub fn parse_decimal(text: &str) -> Option<Value> {
        if text.len() > MOST_CHARS {
            return None;
        }
        Self::decimal(BigDecimal::from_str(text).ok()?)
    }

    /// Returns the integer of a whole number of any type: what stands behind its point is cut off. `None` for what is no
    /// number, not finite, or too long.
    #[must_use]
    pub fn whole_of(value: &Value) -> Option<BigInt> {
        match value {
            Value::Big(big) => match &**big {
                Self::Integer(number) => Some(number.clone()),
                Self::Decimal(number) => {
                    Some(number.with_scale_round(0, RoundingMode::Down).into_bigint_and_scale().0)
                }
            },
            other => match other.as_i64() {
                Some(whole) => Some(whole.into()),
                None => Some(Self::of_float(other.as_f64()?.trunc())?.into_bigint_and_scale().0),
            },
        }
    }

    /// Returns a number of any type as a decimal: a float as its shortest text, as Java's `BigDecimal.valueOf` does.
    /// `None` for what is no number or not finite.
    #[must_use]
    pub fn decimal_of(value: &Value) -> Option<BigDecimal> {
        match value {
            Value::Big(big) => Some(big.to_decimal()),
            Value::Float(float) if float.is_finite() => BigDecimal::from_str(&float.to_string()).ok(),
            Value::Double(double) if double.is_finite() => BigDecimal::from_str(&double.to_string()).ok(),
            other => other.as_i64().map(BigDecimal::from),
        }
    }

    fn to_decimal(&self) -> BigDecimal {
        match self {
            Self::Integer(number) => BigDecimal::from(number.clone()),
            Self::Decimal(number) => number.clone(),
        }
    }

    /// Returns the number if it is whole and 64 bits hold it.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => number.to_i64(),
            Self::Decimal(number) if number.is_integer() => number.to_i64(),
            Self::Decimal(_) => None,
        }
    }

    /// Returns the nearest double, which may be infinite.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        // The texts are short, and parsing rounds correctly.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Compares with a number of any type; `None` if that is NaN or no number.
    #[must_use]
    pub(crate) fn order(&self, other: &Value) -> Option<Ordering> {
        let other = match other {
            Value::Big(other) => match (self, &**other) {
                (Self::Integer(a), Self::Integer(b)) => return Some(a.cmp(b)),
                (_, other) => other.to_decimal(),
            },
            other => match (other.as_i64(), other.as_f64()) {
                (Some(whole), _) => BigDecimal::from(whole),
                (None, Some(float)) if float == f64::INFINITY => return Some(Ordering::Less),
                (None, Some(float)) if float == f64::NEG_INFINITY => return Some(Ordering::Greater),
                (None, float) => Self::of_float(float?)?,
            },
        };
        Some(self.to_decimal().cmp(&other))
    }

    /// Returns the decimal that a double stands for; `None` if it is not finite. A whole number is exact. Another one has
    /// its shortest text, so that `0.1` is the decimal 0.1; no whole number lies between it and its text, so that the
    /// order of numbers of three types stays transitive.
    fn of_float(float: f64) -> Option<BigDecimal> {
        if float.fract() == 0.0 {
            BigDecimal::try_from(float).ok()
        } else {
            BigDecimal::from_str(&float.to_string()).ok()
        }
    }

    /// Estimates the memory in bytes.
    #[must_use]
    pub(crate) fn heap_bytes(&self) -> usize {
        let bits = match self {
            Self::Integer(number) => number.bits(),
            Self::Decimal(number) => number.as_bigint_and_scale().0.bits(),
        };
        size_of::<Self>() + 16 + usize::try_from(bits / 8).unwrap_or(0)
    }

    /// Hashes the number as [`Value`] hashes equal numbers of other types, if there can be one, and otherwise by its
    /// digits without zeros at the end.
    pub(crate) fn hash_into<H: Hasher>(&self, state: &mut H) {
        if let Some(whole) = self.as_i64() {
            return whole.hash(state);
        }
        let decimal = self.to_decimal();
        let float = self.to_f64();
        if Self::of_float(float).as_ref() == Some(&decimal) {
            return float.to_bits().hash(state);
        }
        let (digits, scale) = decimal.normalized().into_bigint_and_scale();
        digits.hash(state);
        scale.hash(state);
    }
}

impl fmt::Display for Big {
    /// Writes all digits; a decimal without an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Decimal(number) => f.write_str(&number.to_plain_string()),
        }
    }
}

/// With its type, since `1` is both.
impl Serialize for Big {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (matches!(self, Self::Decimal(_)), self.to_string()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Big {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (is_decimal, text) = <(bool, String)>::deserialize(deserializer)?;
        let wrong = |problem: String| serde::de::Error::custom(problem);
        if is_decimal {
            BigDecimal::from_str(&text).map(Self::Decimal).map_err(|error| wrong(error.to_string()))
        } else {
            BigInt::from_str(&text).map(Self::Integer).map_err(|error| wrong(error.to_string()))
        }
    }
}
