//! Gremlin's types: `asNumber()`, `asBool()` and `P.typeOf()`.

use super::error::Error;
use tidegraph_plan::GremlinType;
use tidegraph_types::{Big, Temporal, Value};

/// Whether a value has a type.
pub(crate) fn has_type(kind: GremlinType, value: &Value) -> bool {
    use GremlinType as T;
    match kind {
        T::BigDecimal => matches!(value, Value::Big(big) if matches!(**big, Big::Decimal(_))),
        T::BigInt => matches!(value, Value::Big(big) if matches!(**big, Big::Integer(_))),
        T::Binary | T::Char => false,
        T::Uuid => matches!(value, Value::Uuid(_)),
        T::Boolean => matches!(value, Value::Bool(_)),
        T::Byte => matches!(value, Value::Byte(_)),
        T::Short => matches!(value, Value::Short(_)),
        T::Int => matches!(value, Value::Int(_)),
        T::Long => matches!(value, Value::Long(_)),
        T::Float => matches!(value, Value::Float(_)),
        T::Double => matches!(value, Value::Double(_)),
        T::Number => value.as_f64().is_some(),
        T::DateTime => matches!(value, Value::DateTime(_) | Value::Temporal(Temporal::DateTime(_))),
        T::Duration => matches!(value, Value::Temporal(Temporal::Duration(_))),
        T::String => matches!(value, Value::String(_)),
        T::List => matches!(value, Value::List(_)),
        T::Set => matches!(value, Value::Set(_)),
        T::Collection => value.as_slice().is_some(),
        // A tree of TinkerPop is a map.
        T::Map => matches!(value, Value::Map(_) | Value::Tree(_)),
        T::Tree => matches!(value, Value::Tree(_)),
        T::Graph => matches!(value, Value::Graph(_)),
        T::Null => value.is_null(),
        T::Path => matches!(value, Value::Path(_)),
        T::Vertex => value.as_vertex().is_some(),
        T::Edge => value.as_edge().is_some(),
        T::Property => matches!(value, Value::Property(_)),
        T::VertexProperty => matches!(value, Value::Property(property) if property.is_of_vertex()),
        T::Element => {
            matches!(value, Value::Property(_)) || value.as_vertex().is_some() || value.as_edge().is_some()
        }
    }
}

/// `asBool()`: NaN and zero are false.
pub(crate) fn to_bool(name: &'static str, value: &Value) -> Result<Value, Error> {
    let expected = "a boolean, a number, or 'true' or 'false'";
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Ok(Value::Bool(true)),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Ok(Value::Bool(false)),
        other => match other.as_f64() {
            Some(number) => Ok(Value::Bool(number != 0.0 && !number.is_nan())),
            None => Err(Error::of_type(name, expected, value)),
        },
    }
}

/// `asNumber()`: parses a text, or takes the milliseconds since 1970 of a date; converts to a type, which must hold the
/// number. A fraction is cut off.
pub(crate) fn to_number(
    kind: Option<GremlinType>,
    name: &'static str,
    value: &Value,
) -> Result<Value, Error> {
    let parsed;
    let number = match value {
        Value::String(text) => {
            parsed = parse(name, text, value)?;
            &parsed
        }
        Value::DateTime(_) | Value::Temporal(Temporal::DateTime(_)) => {
            parsed = super::temporal::component(value, "epochMillis")?;
            &parsed
        }
        other if other.as_f64().is_some() => other,
        other => return Err(Error::of_type(name, "a number, a string or a date", other)),
    };
    match kind {
        None => Ok(number.clone()),
        Some(kind) => convert(kind, number).ok_or_else(|| {
            Error::argument(name, "cannot convert a number to a type that does not hold it", number)
        }),
    }
}

/// Converts a number; `None` if the type does not hold it.
fn convert(kind: GremlinType, number: &Value) -> Option<Value> {
    let float = number.as_f64()?;
    let whole = || match number.as_i64() {
        Some(whole) => Some(whole),
        None => i64::try_from(Big::whole_of(number)?).ok(),
    };
    match kind {
        GremlinType::Byte => i8::try_from(whole()?).ok().map(Value::Byte),
        GremlinType::Short => i16::try_from(whole()?).ok().map(Value::Short),
        GremlinType::Int => i32::try_from(whole()?).ok().map(Value::Int),
        GremlinType::Long => whole().map(Value::Long),
        GremlinType::BigInt => Big::integer(Big::whole_of(number)?),
        GremlinType::BigDecimal => Big::decimal(Big::decimal_of(number)?),
        GremlinType::Float => {
            let narrow = float as f32;
            (narrow.is_finite() || !float.is_finite()).then_some(Value::Float(narrow))
        }
        GremlinType::Double => {
            let wide = match number {
                // The double with the same decimal text, not the one with the same bits.
                Value::Float(narrow) => narrow.to_string().parse().unwrap_or(float),
                _ => float,
            };
            (wide.is_finite() || !matches!(number, Value::Big(_))).then_some(Value::Double(wide))
        }
        _ => None,
    }
}

/// Parses a number as TinkerPop does: the narrowest of int, long and an integer of any size for a whole number, a double
/// for any other.
fn parse(name: &'static str, text: &str, value: &Value) -> Result<Value, Error> {
    let text = text.trim();
    let unparsable = || Error::argument(name, "cannot read a number from the string", value);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let whole = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Some(i64::from_str_radix(&format!("{sign}{digits}"), 16).map_err(|_| unparsable())?)
        }
        Some(_) => return Err(unparsable()),
        None => text.parse::<i64>().ok(),
    };
    if let Some(whole) = whole {
        return Ok(i32::try_from(whole).map_or(Value::Long(whole), Value::Int));
    }
    if !text.contains(['.', 'e', 'E']) {
        // Either no number, or one of more than 64 bits.
        return Big::parse_integer(text).ok_or_else(unparsable);
    }
    let float = super::convert::parse_float(text).filter(|float| float.is_finite());
    float.map(Value::Double).ok_or_else(unparsable)
}
