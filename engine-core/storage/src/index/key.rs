//! Keys of an index: bytes whose order is the order of the values.
//!
//! The first byte is the class of the value; values of different classes never compare. Numbers of all widths form
//! one class, ordered by value, so `1`, `1.0` and a byte of 1 share a key. Long strings are cut: an index finds
//! candidates, and the caller checks each.

use smallvec::SmallVec;
use tidegraph_apl::Test;
use tidegraph_types::order::is_number;
use tidegraph_types::temporal::{NANOS_OF_SECOND, epoch_days, epoch_seconds, nanos_of_day};
use tidegraph_types::{Temporal, Value};

/// Bytes of the longest key; longer strings are cut.
const LONGEST: usize = 64;

const BOOL: u8 = 1;
const NUMBER: u8 = 2;
const STRING: u8 = 3;
const DATE_TIME: u8 = 4;
const DATE: u8 = 5;
const LOCAL_DATE_TIME: u8 = 6;
const LOCAL_TIME: u8 = 7;
const TIME: u8 = 8;
/// Classes of values that have no order, or no order of bytes: an index finds equal ones only.
const DURATION: u8 = 9;
const POINT: u8 = 10;
const LIST: u8 = 11;
/// In the order of their bytes, as values of this type are.
const UUID: u8 = 12;

/// Bytes of a value, in order of values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ValueKey(SmallVec<[u8; 16]>);

impl ValueKey {
    /// Returns the key of a value; `None` for values that no index holds: NaN and types that no property has.
    pub fn of(value: &Value) -> Option<Self> {
        let mut bytes = SmallVec::new();
        match value {
            Value::Bool(truth) => bytes.extend([BOOL, u8::from(*truth)]),
            Value::String(text) => {
                bytes.push(STRING);
                bytes.extend_from_slice(cut(text.as_bytes()));
            }
            Value::DateTime(at) => extend_signed(DATE_TIME, at.as_nanosecond(), &mut bytes),
            Value::Temporal(temporal) => of_temporal(temporal, &mut bytes),
            Value::Point(point) => {
                bytes.push(POINT);
                bytes.extend_from_slice(&point.srid().to_be_bytes());
                for coordinate in point.coordinates() {
                    bytes.extend_from_slice(&coordinate.to_be_bytes());
                }
            }
            Value::Uuid(uuid) => {
                bytes.push(UUID);
                bytes.extend_from_slice(uuid.as_bytes());
            }
            Value::List(items) => {
                bytes.push(LIST);
                let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
                for item in items.iter() {
                    hasher.update(&Self::of(item)?.0);
                }
                bytes.extend_from_slice(&hasher.digest128().to_be_bytes());
            }
            value if is_number(value) => {
                let (float, rest) = match value.as_i64() {
                    Some(whole) => split(whole),
                    None => (value.as_f64().filter(|float| !float.is_nan())?, 0),
                };
                bytes.push(NUMBER);
                bytes.extend_from_slice(&ordered(float).to_be_bytes());
                bytes.extend_from_slice(&rest.to_be_bytes());
            }
            _ => return None,
        }
        Some(Self(bytes))
    }

    fn class(class: u8) -> Self {
        Self(SmallVec::from_slice(&[class]))
    }

    fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// Whether keys of the class are in the order of their values.
    fn is_ordered(&self) -> bool {
        !matches!(self.0[0], DURATION | POINT | LIST)
    }

    /// Returns the bytes outside the key itself.
    pub fn heap_bytes(&self) -> usize {
        if self.0.spilled() { self.0.capacity() } else { 0 }
    }
}

fn extend_signed(class: u8, number: i128, bytes: &mut SmallVec<[u8; 16]>) {
    bytes.push(class);
    bytes.extend_from_slice(&((number as u128) ^ (1 << 127)).to_be_bytes());
}

/// Adds the key of a temporal value. Values of one instant in several zones share a key.
fn of_temporal(temporal: &Temporal, bytes: &mut SmallVec<[u8; 16]>) {
    let second = i128::from(NANOS_OF_SECOND);
    match temporal {
        Temporal::DateTime(zoned) => extend_signed(DATE_TIME, zoned.timestamp().as_nanosecond(), bytes),
        Temporal::Date(date) => extend_signed(DATE, i128::from(epoch_days(*date)), bytes),
        Temporal::LocalDateTime(local) => {
            let (seconds, nanos) = epoch_seconds(*local);
            extend_signed(LOCAL_DATE_TIME, i128::from(seconds) * second + i128::from(nanos), bytes);
        }
        Temporal::LocalTime(time) => extend_signed(LOCAL_TIME, i128::from(nanos_of_day(*time)), bytes),
        Temporal::Time(time) => extend_signed(TIME, i128::from(time.utc_nanos()), bytes),
        Temporal::Duration(duration) => {
            bytes.push(DURATION);
            for part in [duration.months(), duration.days(), duration.seconds()] {
                bytes.extend_from_slice(&part.to_be_bytes());
            }
            bytes.extend_from_slice(&duration.subsec_nanos().to_be_bytes());
        }
    }
}

fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(LONGEST - 1)]
}

/// Returns the greatest double that is not above an integer, and the difference.
fn split(whole: i64) -> (f64, u16) {
    let near = whole as f64;
    let float = if near as i128 > i128::from(whole) { near.next_down() } else { near };
    // Doubles in the range of i64 are at most 1,024 apart.
    (float, (i128::from(whole) - float as i128) as u16)
}

/// Returns the bits of a double such that they sort like it; both zeros are equal.
fn ordered(float: f64) -> u64 {
    let bits = (float + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// A range of keys, from `low` (included) to an end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub low: ValueKey,
    end: End,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    /// This key is the last one.
    Through(ValueKey),
    /// Keys that begin with this one.
    Prefix(ValueKey),
}

impl Span {
    fn one(key: ValueKey) -> Self {
        Self { low: key.clone(), end: End::Through(key) }
    }

    /// Returns whether a key that is not below `low` is inside.
    pub fn holds(&self, key: &ValueKey) -> bool {
        match &self.end {
            End::Through(last) => key <= last,
            End::Prefix(prefix) => key.starts_with(prefix),
        }
    }

    /// Returns the ranges that contain every value which passes a test; `None` if no index holds some of these
    /// values.
    pub fn of(test: &Test) -> Option<Vec<Self>> {
        match test {
            Test::Exists => None,
            Test::Equals(value) => equal(value).map(|one| one.into_iter().collect()),
            Test::Within(values) => {
                let mut spans = Vec::with_capacity(values.len());
                for value in values.iter() {
                    spans.extend(equal(value)?);
                }
                spans.sort_unstable_by(|a, b| a.low.cmp(&b.low));
                spans.dedup();
                Some(spans)
            }
            Test::Range { low, high } => {
                let bound = |bound: &Option<(Value, bool)>| match bound {
                    None => Some(None),
                    Some((value, _)) if is_number(value) => Some(Some(ValueKey::of(value))),
                    Some((value, _)) => {
                        ValueKey::of(value).filter(ValueKey::is_ordered).map(|key| Some(Some(key)))
                    }
                };
                // The inner `None` is a number that compares with nothing.
                Some(match (bound(low)?, bound(high)?) {
                    (Some(None), _) | (_, Some(None)) => Vec::new(),
                    (None, None) => return None,
                    (Some(Some(low)), None) => {
                        let end = End::Prefix(ValueKey::class(low.0[0]));
                        vec![Self { low, end }]
                    }
                    (None, Some(Some(high))) => {
                        vec![Self { low: ValueKey::class(high.0[0]), end: End::Through(high) }]
                    }
                    (Some(Some(low)), Some(Some(high))) => {
                        if low.0[0] == high.0[0] && low <= high {
                            vec![Self { low, end: End::Through(high) }]
                        } else {
                            Vec::new()
                        }
                    }
                })
            }
            Test::StartsWith(prefix) => {
                let mut key = ValueKey::class(STRING);
                key.0.extend_from_slice(cut(prefix.as_bytes()));
                Some(vec![Self { low: key.clone(), end: End::Prefix(key) }])
            }
        }
    }
}

/// Returns where values equal to this one are: nowhere for NaN; `None` if no index holds them.
fn equal(value: &Value) -> Option<Option<Span>> {
    match ValueKey::of(value) {
        Some(key) => Some(Some(Span::one(key))),
        None if is_number(value) => Some(None),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;
    use std::sync::Arc;
    use tidegraph_apl::OneOf;
    use tidegraph_types::Point;
    use tidegraph_types::order::{compare, equals};
    use tidegraph_types::point::Crs;
    use tidegraph_types::temporal::{
        self, Duration, parse_date, parse_local_date_time, parse_local_time, parse_time, parse_zoned,
    };

    fn duration(text: &str) -> Value {
        Value::Temporal(Temporal::Duration(Arc::new(Duration::parse(text).unwrap())))
    }

    fn zoned(text: &str) -> Value {
        temporal::zoned(parse_zoned(text).unwrap().resolve(&jiff::tz::TimeZone::UTC).unwrap())
    }

    fn values() -> Vec<Value> {
        let mut values = vec![
            Value::Bool(false),
            Value::Bool(true),
            Value::Byte(1),
            Value::Short(-3),
            Value::Int(7),
            Value::Float(0.1),
            Value::Float(f32::INFINITY),
            Value::Double(f64::NAN),
            Value::Double(-0.0),
            Value::Double(0.1),
            Value::Double(9_223_372_036_854_775_808.0),
            Value::Double(-9_223_372_036_854_775_808.0),
            Value::Double(f64::NEG_INFINITY),
            Value::string(""),
            Value::string("a"),
            Value::string("a\0"),
            Value::string("ab"),
            Value::string("ü"),
            Value::string("x".repeat(100)),
            Value::string("x".repeat(101)),
            Value::DateTime("1969-12-31T23:59:59.5Z".parse().unwrap()),
            Value::DateTime("1970-01-01T00:00:00Z".parse().unwrap()),
            Value::DateTime("2026-11-21T12:00:00.000000001Z".parse().unwrap()),
            zoned("2026-11-21T13:00+01:00"),
            zoned("2026-11-21T13:00[Europe/Stockholm]"),
            Value::Temporal(Temporal::Date(parse_date("-0044-03-15").unwrap())),
            Value::Temporal(Temporal::Date(parse_date("2026-11-21").unwrap())),
            Value::Temporal(Temporal::LocalDateTime(parse_local_date_time("1969-12-31T23:59:59.5").unwrap())),
            Value::Temporal(Temporal::LocalDateTime(parse_local_date_time("2026-11-21T13:00").unwrap())),
            Value::Temporal(Temporal::LocalTime(parse_local_time("13:00").unwrap())),
            Value::Temporal(Temporal::Time(parse_time("13:00+01:00").unwrap())),
            Value::Temporal(Temporal::Time(parse_time("12:00Z").unwrap())),
            Value::Temporal(Temporal::Time(parse_time("12:00:00.000000001Z").unwrap())),
            duration("P1M"),
            duration("P30D"),
            Value::Point(Arc::new(Point::new(Crs::Cartesian, &[1.0, 2.0]).unwrap())),
            Value::Point(Arc::new(Point::new(Crs::Cartesian, &[1.0, 3.0]).unwrap())),
            Value::list(vec![]),
            Value::list(vec![Value::Long(1)]),
            Value::list(vec![Value::Double(1.0)]),
            Value::list(vec![Value::Long(1), Value::Long(2)]),
            Value::list(vec![Value::Double(f64::NAN)]),
        ];
        for near in [0, 1, -1, i64::MAX, i64::MIN, 1 << 53, -(1 << 53), 1 << 62] {
            for off in -3..=3_i64 {
                let Some(whole) = near.checked_add(off) else { continue };
                values.push(Value::Long(whole));
                values.push(Value::Double(whole as f64));
                values.push(Value::Double(whole as f64 + 0.5));
            }
        }
        values
    }

    #[test]
    fn keys_sort_as_values_compare() {
        let values = values();
        for a in &values {
            for b in &values {
                let (Some(x), Some(y)) = (ValueKey::of(a), ValueKey::of(b)) else { continue };
                match compare(a, b).filter(|_| x.is_ordered()) {
                    Some(Ordering::Less) => assert!(x <= y, "{a:?} {b:?}"),
                    Some(Ordering::Greater) => assert!(x >= y, "{a:?} {b:?}"),
                    Some(Ordering::Equal) => assert_eq!(x, y, "{a:?} {b:?}"),
                    None => assert!(x.0[0] != y.0[0] || !x.is_ordered(), "{a:?} {b:?}"),
                }
                let short = a.as_str().is_none_or(|text| text.len() < LONGEST);
                // One instant in several zones has one key.
                let instant = |value: &Value| match value {
                    Value::Temporal(Temporal::Time(time)) => Some(i128::from(time.utc_nanos())),
                    _ => temporal::as_zoned(value).map(|zoned| zoned.timestamp().as_nanosecond()),
                };
                let at_once = instant(a).is_some() && instant(a) == instant(b);
                if short && !at_once && equals(a, b) == Some(false) {
                    assert_ne!(x, y, "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn what_passes_is_inside() {
        let values = values();
        let mut tests: Vec<Test> = values.iter().cloned().map(Test::Equals).collect();
        tests.push(Test::Within(values.iter().filter(|v| ValueKey::of(v).is_some()).cloned().collect()));
        tests.extend(["", "a", "ab", "x", &"x".repeat(99)].map(|p| Test::StartsWith(p.to_owned())));
        for low in &values {
            tests.push(Test::Range { low: Some((low.clone(), true)), high: None });
            tests.push(Test::Range { low: None, high: Some((low.clone(), false)) });
            for high in &values {
                let (low, high) = (Some((low.clone(), false)), Some((high.clone(), true)));
                tests.push(Test::Range { low, high });
            }
        }
        let mut found = 0;
        for test in &tests {
            let Some(spans) = Span::of(test) else { continue };
            for value in &values {
                let inside = ValueKey::of(value)
                    .is_some_and(|key| spans.iter().any(|span| key >= span.low && span.holds(&key)));
                assert!(inside || !test.passes(value), "{value:?} passes {test:?} and is not in {spans:?}");
                found += usize::from(inside);
            }
        }
        assert!(found > 1_000);
    }

    #[test]
    fn what_no_index_holds_is_left_to_a_scan() {
        let list = Value::list(vec![Value::Null]);
        assert_eq!(Span::of(&Test::Exists), None);
        assert_eq!(Span::of(&Test::Equals(list.clone())), None);
        assert_eq!(Span::of(&Test::Within(OneOf::new(vec![Value::Long(1), list.clone()]))), None);
        assert_eq!(Span::of(&Test::Range { low: Some((list, true)), high: None }), None);
        assert_eq!(Span::of(&Test::Equals(Value::Double(f64::NAN))), Some(vec![]));
    }
}
