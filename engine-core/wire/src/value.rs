//! Values: engine type ↔ message. Values that no property can have are refused, never written as something else.

use crate::Error;
use crate::proto::{self, value::Kind};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::Arc;
use tidegraph_types::point::Crs;
use tidegraph_types::temporal::{self, Duration, OffsetTime};
use tidegraph_types::{Cardinality, Point, Str, Temporal, Uuid, Value};

/// Returns the message of a value.
///
/// # Errors
///
/// [`Error::NotStorable`] for null, lists of different types, elements and the like.
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
        Value::Temporal(v) => encode_temporal(v),
        Value::Point(v) => {
            Kind::PointValue(proto::Point { srid: v.srid(), coordinates: v.coordinates().to_vec() })
        }
        Value::Uuid(v) => Kind::UuidValue(v.as_bytes().to_vec()),
        Value::List(items) if value.is_storable() => {
            Kind::ListValue(proto::ListValue { values: items.iter().map(encode).collect::<Result<_, _>>()? })
        }
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
        Kind::ListValue(list) => decode_list(list)?,
        Kind::DateValue(days) => {
            let date = temporal::date_of_epoch_days(days);
            Value::Temporal(Temporal::Date(date.ok_or_else(|| out_of_range("date_value", days))?))
        }
        Kind::LocalTimeValue(nanos) => Value::Temporal(Temporal::LocalTime(decode_time(nanos)?)),
        Kind::TimeValue(v) => Value::Temporal(Temporal::Time(OffsetTime {
            time: decode_time(v.nanos)?,
            offset: decode_offset(v.offset_seconds)?,
        })),
        Kind::LocalDatetimeValue(v) => {
            let nanos = i32::try_from(v.nanos).map_err(|_| out_of_range("nanos", v.nanos))?;
            let local = temporal::local_of_epoch_seconds(v.seconds, nanos);
            Value::Temporal(Temporal::LocalDateTime(local.ok_or_else(|| out_of_range("seconds", v.seconds))?))
        }
        Kind::ZonedDatetimeValue(v) => decode_zoned(v)?,
        Kind::DurationValue(v) => {
            let nanos = Some(v.nanos).filter(|nanos| *nanos < 1_000_000_000);
            let nanos = nanos.ok_or_else(|| out_of_range("nanos", v.nanos))?;
            let duration = Duration::new(v.months, v.days, v.seconds, i128::from(nanos));
            let duration = duration.ok_or_else(|| out_of_range("seconds", v.seconds))?;
            Value::Temporal(Temporal::Duration(Arc::new(duration)))
        }
        Kind::UuidValue(bytes) => {
            let uuid = Uuid::from_slice(&bytes);
            Value::Uuid(uuid.map_err(|error| Error::Invalid { message: "Value", reason: error.to_string() })?)
        }
        Kind::PointValue(v) => {
            let crs = Crs::of_srid(i64::from(v.srid)).ok_or_else(|| out_of_range("srid", v.srid))?;
            let point = Point::new(crs, &v.coordinates);
            Value::Point(Arc::new(point.map_err(|reason| Error::Invalid { message: "Point", reason })?))
        }
    })
}

fn out_of_range(field: &'static str, value: impl Into<i128>) -> Error {
    Error::OutOfRange { field, value: value.into() }
}

fn encode_temporal(value: &Temporal) -> Kind {
    let nanos = |time| temporal::nanos_of_day(time).unsigned_abs();
    match value {
        Temporal::Date(date) => Kind::DateValue(temporal::epoch_days(*date)),
        Temporal::LocalTime(time) => Kind::LocalTimeValue(nanos(*time)),
        Temporal::Time(time) => Kind::TimeValue(proto::OffsetTime {
            nanos: nanos(time.time),
            offset_seconds: time.offset.seconds(),
        }),
        Temporal::LocalDateTime(local) => {
            let (seconds, nanos) = temporal::epoch_seconds(*local);
            Kind::LocalDatetimeValue(proto::DateTime { seconds, nanos: nanos.unsigned_abs() })
        }
        Temporal::DateTime(zoned) => Kind::ZonedDatetimeValue(proto::ZonedDateTime {
            at: Some(encode_datetime(zoned.timestamp())),
            zone: Some(match zoned.time_zone().iana_name() {
                Some(name) => proto::zoned_date_time::Zone::Name(name.to_owned()),
                None => proto::zoned_date_time::Zone::OffsetSeconds(zoned.offset().seconds()),
            }),
        }),
        Temporal::Duration(duration) => Kind::DurationValue(proto::Duration {
            months: duration.months(),
            days: duration.days(),
            seconds: duration.seconds(),
            nanos: duration.subsec_nanos().unsigned_abs(),
        }),
    }
}

/// Returns a list of scalars. A list in a list is refused before it is read, so a message cannot be deep.
fn decode_list(list: proto::ListValue) -> Result<Value, Error> {
    let mut values = Vec::with_capacity(list.values.len());
    for value in list.values {
        if matches!(value.kind, Some(Kind::ListValue(_))) {
            return Err(Error::Invalid { message: "ListValue", reason: "a list in a list".to_owned() });
        }
        values.push(decode(value)?);
    }
    let list = Value::list(values);
    if list.is_storable() {
        Ok(list)
    } else {
        let reason = "its values are not of one type".to_owned();
        Err(Error::Invalid { message: "ListValue", reason })
    }
}

fn decode_time(nanos: u64) -> Result<jiff::civil::Time, Error> {
    let day = temporal::SECONDS_OF_DAY.unsigned_abs() * temporal::NANOS_OF_SECOND.unsigned_abs();
    if nanos < day {
        Ok(temporal::time_of_nanos(i128::from(nanos)))
    } else {
        Err(out_of_range("nanos", nanos))
    }
}

fn decode_offset(seconds: i32) -> Result<jiff::tz::Offset, Error> {
    temporal::offset_of_seconds(i64::from(seconds)).map_err(|_| out_of_range("offset_seconds", seconds))
}

fn decode_zoned(v: proto::ZonedDateTime) -> Result<Value, Error> {
    let at = decode_datetime(&v.at.ok_or(Error::Missing { message: "ZonedDateTime", field: "at" })?)?;
    let zone = match v.zone.ok_or(Error::Missing { message: "ZonedDateTime", field: "zone" })? {
        proto::zoned_date_time::Zone::OffsetSeconds(seconds) => TimeZone::fixed(decode_offset(seconds)?),
        proto::zoned_date_time::Zone::Name(name) => temporal::parse_zone(&name)
            .map_err(|error| Error::Invalid { message: "ZonedDateTime", reason: error.to_string() })?,
    };
    Ok(temporal::zoned(at.to_zoned(zone)))
}

/// Returns the value of a required field.
pub(crate) fn decode_required(value: Option<proto::Value>, message: &'static str) -> Result<Value, Error> {
    decode(value.ok_or(Error::Missing { message, field: "value" })?)
}

fn narrow<T: TryFrom<i32>>(field: &'static str, v: i32) -> Result<T, Error> {
    T::try_from(v).map_err(|_| Error::OutOfRange { field, value: i128::from(v) })
}

fn encode_datetime(at: Timestamp) -> proto::DateTime {
    let (seconds, nanos) = temporal::seconds_and_nanos(at);
    proto::DateTime { seconds, nanos: nanos.unsigned_abs() }
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
            any::<[u8; 16]>().prop_map(|bytes| Value::Uuid(Uuid::from_bytes(bytes))),
            (Timestamp::MIN.as_second()..=Timestamp::MAX.as_second(), 0..1_000_000_000_i32)
                .prop_map(|(s, n)| Value::DateTime(Timestamp::new(s, n).unwrap_or(Timestamp::MAX))),
            any_temporal(),
            (any_temporal(), any_temporal()).prop_map(|(a, b)| {
                let list = Value::list(vec![a.clone(), b]);
                if list.is_storable() { list } else { Value::list(vec![a]) }
            }),
            proptest::collection::vec(any::<i64>().prop_map(Value::Long), 0..4).prop_map(Value::list),
            (-1e9..1e9_f64, -90.0..90.0_f64)
                .prop_map(|(x, y)| { Value::Point(Arc::new(Point::new(Crs::Wgs84, &[x, y]).unwrap())) }),
        ]
    }

    fn any_temporal() -> impl Strategy<Value = Value> {
        let day = -4_371_587..2_932_897_i64;
        let nanos = 0..86_400_000_000_000_i64;
        let zones = ["Europe/Stockholm", "America/New_York", "+05:30", "-00:53:28", "Z"];
        (day, nanos, any::<[i64; 3]>(), 0..zones.len(), 0..6).prop_map(
            move |(day, nanos, parts, zone, kind)| {
                let date = temporal::date_of_epoch_days(day).unwrap();
                let time = temporal::time_of_nanos(i128::from(nanos));
                let zone = temporal::parse_zone(zones[zone]).unwrap();
                let offset = zone.to_offset(Timestamp::UNIX_EPOCH);
                Value::Temporal(match kind {
                    0 => Temporal::Date(date),
                    1 => Temporal::LocalTime(time),
                    2 => Temporal::Time(OffsetTime { time, offset }),
                    3 => Temporal::LocalDateTime(date.to_datetime(time)),
                    4 => {
                        let [months, days, seconds] = parts;
                        let duration = Duration::new(months, days, seconds / 2, i128::from(nanos));
                        Temporal::Duration(Arc::new(duration.unwrap()))
                    }
                    _ => match date.to_datetime(time).to_zoned(zone) {
                        Ok(zoned) => return temporal::zoned(zoned),
                        Err(_) => Temporal::Date(date),
                    },
                })
            },
        )
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
        for value in [
            Value::Null,
            Value::Unbound,
            Value::list(vec![Value::Null]),
            Value::Vertex(tidegraph_types::Gui(1)),
        ] {
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
