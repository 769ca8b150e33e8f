//! Values: engine type ↔ message. Values that no property can have are refused, never written as something else.

use crate::Error;
use crate::proto::{self, value::Kind};
use jiff::Timestamp;
use tidegraph_types::{Cardinality, Str, Value};

/// Returns the message of a value.
///
/// # Errors
///
/// [`Error::NotStorable`] for null, lists, elements and the like.
pub fn encode(value: &Value) -> Result<proto::Value, Error> {
    let kind = match value {
        Value::Bool(v) => Kind::BoolValue(*v),
        Value::Byte(v) => Kind::ByteValue(i32::from(*v)),
        Value::Short(v) => Kind::ShortValue(i32::from(*v)),
        Value::Int(v) => Kind::IntValue(*v),
        Value::Long(v) => Kind::LongValue(*v),
        Value::Float(v) => Kind::FloatValue(*v),
        Value::Double(v) => Kind::DoubleValue(*v),
        Value::String(v) => Kind::StringValue(v.to_string()),
        Value::DateTime(v) => Kind::DatetimeValue(encode_datetime(*v)),
        other => return Err(Error::NotStorable { type_name: other.type_name() }),
    };
    Ok(proto::Value { kind: Some(kind) })
}

/// Returns the value of a message.
///
/// # Errors
///
/// [`Error::UnknownKind`] for a kind of a newer version; [`Error::OutOfRange`] for a number outside its type.
pub fn decode(message: proto::Value) -> Result<Value, Error> {
    Ok(match message.kind.ok_or(Error::UnknownKind { message: "Value" })? {
        Kind::BoolValue(v) => Value::Bool(v),
        Kind::ByteValue(v) => Value::Byte(narrow("byte_value", v)?),
        Kind::ShortValue(v) => Value::Short(narrow("short_value", v)?),
        Kind::IntValue(v) => Value::Int(v),
        Kind::LongValue(v) => Value::Long(v),
        Kind::FloatValue(v) => Value::Float(v),
        Kind::DoubleValue(v) => Value::Double(v),
        Kind::StringValue(v) => Value::String(Str::from(v)),
        Kind::DatetimeValue(v) => Value::DateTime(decode_datetime(&v)?),
    })
}

/// Returns the value of a required field.
pub(crate) fn decode_required(value: Option<proto::Value>, message: &'static str) -> Result<Value, Error> {
    decode(value.ok_or(Error::Missing { message, field: "value" })?)
}

fn narrow<T: TryFrom<i32>>(field: &'static str, v: i32) -> Result<T, Error> {
    T::try_from(v).map_err(|_| Error::OutOfRange { field, value: i128::from(v) })
}

fn encode_datetime(at: Timestamp) -> proto::DateTime {
    // jiff gives seconds and nanoseconds of one sign; the message rounds seconds down.
    let (seconds, nanos) = (at.as_second(), at.subsec_nanosecond());
    if nanos < 0 {
        proto::DateTime { seconds: seconds - 1, nanos: (nanos + 1_000_000_000).unsigned_abs() }
    } else {
        proto::DateTime { seconds, nanos: nanos.unsigned_abs() }
    }
}

fn decode_datetime(message: &proto::DateTime) -> Result<Timestamp, Error> {
    let nanos = i32::try_from(message.nanos)
        .ok()
        .filter(|n| *n < 1_000_000_000)
        .ok_or(Error::OutOfRange { field: "nanos", value: i128::from(message.nanos) })?;
    Timestamp::new(message.seconds, nanos)
        .map_err(|_| Error::OutOfRange { field: "seconds", value: i128::from(message.seconds) })
}

/// Returns the message of a cardinality.
#[must_use]
pub fn encode_cardinality(cardinality: Cardinality) -> proto::Cardinality {
    match cardinality {
        Cardinality::Single => proto::Cardinality::Single,
        Cardinality::Set => proto::Cardinality::Set,
        Cardinality::List => proto::Cardinality::List,
    }
}

/// Returns the cardinality of a message's field.
///
/// # Errors
///
/// [`Error::UnknownKind`] for a number that this version does not know.
pub fn decode_cardinality(number: i32) -> Result<Cardinality, Error> {
    Ok(match proto::Cardinality::try_from(number) {
        Ok(proto::Cardinality::Single) => Cardinality::Single,
        Ok(proto::Cardinality::Set) => Cardinality::Set,
        Ok(proto::Cardinality::List) => Cardinality::List,
        Err(_) => return Err(Error::UnknownKind { message: "Cardinality" }),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::Message;

    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::Byte),
            any::<i16>().prop_map(Value::Short),
            any::<i32>().prop_map(Value::Int),
            any::<i64>().prop_map(Value::Long),
            any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
            any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
            any::<String>().prop_map(Value::string),
            (Timestamp::MIN.as_second()..=Timestamp::MAX.as_second(), 0..1_000_000_000_i32)
                .prop_map(|(s, n)| Value::DateTime(Timestamp::new(s, n).unwrap_or(Timestamp::MAX))),
        ]
    }

    fn round_trip(value: &Value) -> Value {
        let bytes = encode(value).unwrap().encode_to_vec();
        decode(proto::Value::decode(bytes.as_slice()).unwrap()).unwrap()
    }

    /// Equality of values is equivalence (1 is 1.0); this tells types and bits apart.
    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Float(x), Value::Float(y)) => x.to_bits() == y.to_bits(),
            (Value::Double(x), Value::Double(y)) => x.to_bits() == y.to_bits(),
            _ => format!("{a:?}") == format!("{b:?}"),
        }
    }

    #[test]
    fn ends_of_every_range_are_unchanged_by_encoding() {
        for value in [
            Value::Byte(i8::MIN),
            Value::Short(i16::MIN),
            Value::Int(i32::MIN),
            Value::Long(i64::MIN),
            Value::Double(-0.0),
            Value::Float(f32::NAN),
            Value::string(""),
            Value::DateTime(Timestamp::MIN),
            Value::DateTime(Timestamp::MAX),
            Value::DateTime(Timestamp::new(-1, -1).unwrap()),
        ] {
            assert!(same(&value, &round_trip(&value)), "{value:?}");
        }
    }

    #[test]
    fn values_that_cannot_be_stored_are_refused() {
        for value in
            [Value::Null, Value::Unbound, Value::list(vec![]), Value::Vertex(tidegraph_types::Gui(1))]
        {
            assert!(matches!(encode(&value), Err(Error::NotStorable { .. })), "{value:?}");
        }
    }

    #[test]
    fn a_kind_of_a_newer_version_is_an_error() {
        // Field 99, varint 1: nothing that this version knows.
        let message = proto::Value::decode([0x98, 0x06, 0x01].as_slice()).unwrap();
        let error = decode(message).unwrap_err();
        assert!(error.to_string().contains("newer version"), "{error}");
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        let bad = |kind| decode(proto::Value { kind: Some(kind) });
        assert!(matches!(bad(Kind::ByteValue(128)), Err(Error::OutOfRange { value: 128, .. })));
        assert!(matches!(bad(Kind::ShortValue(-32_769)), Err(Error::OutOfRange { .. })));
        let at = |seconds, nanos| bad(Kind::DatetimeValue(proto::DateTime { seconds, nanos }));
        assert!(matches!(at(0, 1_000_000_000), Err(Error::OutOfRange { field: "nanos", .. })));
        assert!(matches!(at(i64::MAX, 0), Err(Error::OutOfRange { field: "seconds", .. })));
    }

    proptest! {
        #[test]
        fn any_value_comes_back(value in any_value()) {
            let back = round_trip(&value);
            prop_assert!(same(&value, &back), "{:?} {:?}", value, back);
        }

        #[test]
        fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(message) = proto::Value::decode(bytes.as_slice()) {
                let _ = decode(message);
            }
        }
    }
}
