//! Parses the text of a field as a value of the column's type.
//!
//! The accepted forms are those of Neptune's loader, fewer than those of Rust's parsers (no `inf`, no hexadecimal), so
//! that a file that loads here loads there.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use std::sync::Arc;
use tidegraph_types::temporal::{self, Malformed};
use tidegraph_types::{Temporal, Value};

/// Type of a property column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// True if the text is `true` in any case; everything else is false.
    Bool,
    /// 8-bit integer.
    Byte,
    /// 16-bit integer.
    Short,
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    Long,
    /// 32-bit float.
    Float,
    /// 64-bit float.
    Double,
    /// Text.
    String,
    /// Point in time.
    DateTime,
    /// Date.
    Date,
    /// Time of day.
    LocalTime,
    /// Time of day with an offset.
    Time,
    /// Date and time without a zone.
    LocalDateTime,
    /// Point in time with its zone.
    ZonedDateTime,
    /// Length of time.
    Duration,
}

impl Type {
    /// Returns its name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
            Self::DateTime => "datetime",
            Self::Date => "date",
            Self::LocalTime => "localtime",
            Self::Time => "time",
            Self::LocalDateTime => "localdatetime",
            Self::ZonedDateTime => "zoneddatetime",
            Self::Duration => "duration",
        }
    }

    /// Returns its name in the headers of generated files.
    pub(crate) fn column_name(self) -> &'static str {
        match self {
            Self::DateTime => "DateTime",
            other => other.as_str(),
        }
    }
}

/// Parses one value. The error says what is wrong with the text.
pub(crate) fn parse(kind: Type, text: &str) -> Result<Value, String> {
    Ok(match kind {
        Type::String => Value::string(text),
        // Documented: every other value is false.
        Type::Bool => Value::Bool(text.eq_ignore_ascii_case("true")),
        Type::Byte => Value::Byte(integer(text, kind)?),
        Type::Short => Value::Short(integer(text, kind)?),
        Type::Int => Value::Int(integer(text, kind)?),
        Type::Long => Value::Long(integer(text, kind)?),
        Type::Float => Value::Float(float(text, kind)?),
        Type::Double => Value::Double(float(text, kind)?),
        Type::DateTime => Value::DateTime(timestamp(text)?),
        Type::ZonedDateTime => {
            let read = temporal::parse_zoned(text).and_then(|text| text.resolve(&TimeZone::UTC));
            temporal::zoned(read.map_err(|reason| not_a(kind, &reason))?)
        }
        Type::Date => of(kind, temporal::parse_date(text).map(Temporal::Date))?,
        Type::LocalTime => of(kind, temporal::parse_local_time(text).map(Temporal::LocalTime))?,
        Type::Time => of(kind, temporal::parse_time(text).map(Temporal::Time))?,
        Type::LocalDateTime => of(kind, temporal::parse_local_date_time(text).map(Temporal::LocalDateTime))?,
        Type::Duration => {
            of(kind, temporal::Duration::parse(text).map(|read| Temporal::Duration(Arc::new(read))))?
        }
    })
}

fn of(kind: Type, read: Result<Temporal, Malformed>) -> Result<Value, String> {
    read.map(Value::Temporal).map_err(|reason| not_a(kind, &reason))
}

fn not_a(kind: Type, reason: &Malformed) -> String {
    format!("not a {}: {reason}", kind.as_str())
}

fn integer<T>(text: &str, kind: Type) -> Result<T, String>
where
    T: std::str::FromStr<Err = std::num::ParseIntError>,
{
    text.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => out_of_range(kind),
        _ => format!("not a whole number, as {} asks for", kind.as_str()),
    })
}

fn out_of_range(kind: Type) -> String {
    format!("the number is out of the range of {}", kind.as_str())
}

fn float<T: std::str::FromStr + Into<f64> + Copy>(text: &str, kind: Type) -> Result<T, String> {
    let wrong = || format!("not a number, as {} asks for", kind.as_str());
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Rust also reads "inf" and "nan" in any case; the formats know these two spellings only.
    let named = digits == "Infinity" || text == "NaN";
    if !named && digits.bytes().any(|b| b.is_ascii_alphabetic() && !b.eq_ignore_ascii_case(&b'e')) {
        return Err(wrong());
    }
    let number: T = text.parse().map_err(|_| wrong())?;
    // Rust reads a number beyond the largest one as infinity.
    if !named && number.into().is_infinite() { Err(out_of_range(kind)) } else { Ok(number) }
}

const DATE_FORMS: &str = "not a date of the form yyyy-MM-dd or yyyy-MM-ddTHH:mm[:ss[.fraction]][Z|±hh:mm]";

/// Reads `yyyy-MM-dd`, `yyyy-MM-ddTHH:mm`, `yyyy-MM-ddTHH:mm:ss[.fraction]`, the latter two with `Z`, `±hhmm` or
/// `±hh:mm` behind. Without an offset the time is UTC.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    let bad = || DATE_FORMS.to_owned();
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i16> {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0_i16, |n, b| b.is_ascii_digit().then(|| n * 10 + i16::from(b - b'0')))
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return Err(bad());
    };
    if !is(4, b'-') || !is(7, b'-') {
        return Err(bad());
    }
    let (mut hour, mut minute, mut second, mut nanos, mut at) = (0, 0, 0, 0_i32, 10);
    if bytes.len() > 10 {
        let (Some(h), Some(m)) = (number(11, 13), number(14, 16)) else { return Err(bad()) };
        if !is(10, b'T') || !is(13, b':') {
            return Err(bad());
        }
        (hour, minute, at) = (h, m, 16);
        if is(16, b':') {
            second = number(17, 19).ok_or_else(bad)?;
            at = 19;
            if is(19, b'.') {
                let digits = bytes[20..].iter().take_while(|b| b.is_ascii_digit()).count();
                if digits == 0 || digits > 9 {
                    return Err(bad());
                }
                for index in 0..9 {
                    nanos = nanos * 10 + if index < digits { i32::from(bytes[20 + index] - b'0') } else { 0 };
                }
                at = 20 + digits;
            }
        }
    }
    let out_of_range = |_: jiff::Error| "there is no such date".to_owned();
    let field = |n: i16| i8::try_from(n).unwrap_or(i8::MAX);
    let civil =
        DateTime::new(year, field(month), field(day), field(hour), field(minute), field(second), nanos)
            .map_err(out_of_range)?;
    let offset = match &bytes[at..] {
        [] | [b'Z'] => Offset::UTC,
        [sign @ (b'+' | b'-'), rest @ ..] if bytes.len() > 10 && matches!(rest.len(), 4 | 5) => {
            if rest.len() == 5 && rest[2] != b':' {
                return Err(bad());
            }
            let end = bytes.len();
            let (Some(h), Some(m)) = (number(at + 1, at + 3), number(end - 2, end)) else {
                return Err(bad());
            };
            if h > 23 || m > 59 {
                return Err(bad());
            }
            let seconds = (i32::from(h) * 60 + i32::from(m)) * 60;
            Offset::from_seconds(if *sign == b'-' { -seconds } else { seconds }).map_err(out_of_range)?
        }
        _ => return Err(bad()),
    };
    offset.to_timestamp(civil).map_err(out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (text, expected) in [
            ("2024-02-29", "2024-02-29T00:00:00Z"),
            ("2024-02-29T12:30", "2024-02-29T12:30:00Z"),
            ("2024-02-29T12:30:15", "2024-02-29T12:30:15Z"),
            ("2024-02-29T12:30:15Z", "2024-02-29T12:30:15Z"),
            ("2024-02-29T12:30:15.25Z", "2024-02-29T12:30:15.25Z"),
            ("2024-02-29T12:30:15+0130", "2024-02-29T11:00:15Z"),
            ("2024-02-29T12:30:15.5-01:30", "2024-02-29T14:00:15.5Z"),
        ] {
            assert_eq!(timestamp(text).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "",
            "2024",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-1-1",
            "20240229",
            "2024-02-29 12:30",
            "2024-02-29T25:00",
            "2024-02-29T12:60",
            "2024-02-29T12:30:15X",
            "2024-02-29T12:30:15+1",
            "29.02.2024",
            "2024-02-29T12:30:15.",
            "2024-02-29T12:30:15+25:00",
            "2024-02-29T",
            "é024-02-29",
            "2024-02-29+01:00",
        ] {
            assert!(timestamp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(parse(Type::Byte, "-128"), Ok(Value::Byte(-128)));
        assert_eq!(parse(Type::Byte, "128"), Err("the number is out of the range of byte".into()));
        assert_eq!(parse(Type::Int, "2147483648"), Err("the number is out of the range of int".into()));
        assert_eq!(parse(Type::Long, "+7"), Ok(Value::Long(7)));
        for bad in ["", "1.0", "0x10", "1e3", " 1", "1_000", "-"] {
            assert!(parse(Type::Long, bad).is_err(), "{bad}");
        }
        assert_eq!(parse(Type::Double, "1e-3"), Ok(Value::Double(0.001)));
        assert_eq!(parse(Type::Double, "-Infinity"), Ok(Value::Double(f64::NEG_INFINITY)));
        assert!(matches!(parse(Type::Float, "NaN"), Ok(Value::Float(f)) if f.is_nan()));
        for bad in ["", "INF", "inf", "nan", "infinity", "1,5", "0x1p3", "e"] {
            assert!(parse(Type::Double, bad).is_err(), "{bad}");
        }
        assert_eq!(parse(Type::Bool, "TRUE"), Ok(Value::Bool(true)));
        assert_eq!(parse(Type::Bool, "yes"), Ok(Value::Bool(false)));
    }

    #[test]
    fn a_number_that_its_type_cannot_hold_is_refused() {
        let refused = |kind: Type| Err(format!("the number is out of the range of {}", kind.as_str()));
        for text in ["1e400", "-1e400", "1.8e308", "9e99999999999999999999"] {
            assert_eq!(parse(Type::Double, text), refused(Type::Double), "{text}");
        }
        for text in ["1e39", "-3.5e38"] {
            assert_eq!(parse(Type::Float, text), refused(Type::Float), "{text}");
            assert!(matches!(parse(Type::Double, text), Ok(Value::Double(n)) if n.is_finite()), "{text}");
        }
        assert_eq!(parse(Type::Float, "Infinity"), Ok(Value::Float(f32::INFINITY)));
    }
}
