//! Arithmetic, functions of numbers, conversions, points in time.

use super::*;
use Arithmetic::{Add, Divide, Modulo, Multiply, Power, Subtract};
use tidegraph_plan::Function as F;

fn time(text: &str) -> Value {
    Value::DateTime(text.parse().expect("a timestamp"))
}

#[test]
fn arithmetic_keeps_widths() {
    let long = Value::Long;
    check(vec![
        (math(Add, 1_i64, 2_i64), Ok(long(3))),
        (math(Add, 1_i32, 2_i32), Ok(Value::Int(3))),
        (math(Add, i32::MAX, 1_i32), Ok(long(2_147_483_648))),
        (math(Add, Value::Byte(100), Value::Byte(100)), Ok(Value::Int(200))),
        (math(Add, Value::Short(1), 1_i64), Ok(long(2))),
        (math(Add, 1_i64, 0.5), Ok(1.5.into())),
        (math(Add, Value::Float(1.0), Value::Float(0.5)), Ok(Value::Float(1.5))),
        (math(Add, Value::Float(1.0), 1_i32), Ok(Value::Float(2.0))),
        (math(Add, Value::Float(1.0), 1_i64), Ok(2.0.into())),
        (math(Add, Value::Float(1.0), 0.5), Ok(1.5.into())),
        (math(Subtract, 1_i64, 2_i64), Ok(long(-1))),
        (math(Subtract, i32::MIN, 1_i32), Ok(long(-2_147_483_649))),
        (math(Multiply, 3_i64, 4_i64), Ok(long(12))),
        (math(Multiply, 65_536_i32, 65_536_i32), Ok(long(4_294_967_296))),
        (math(Divide, 7_i64, 2_i64), Ok(long(3))),
        (math(Divide, -7_i64, 2_i64), Ok(long(-3))),
        (math(Divide, 7_i64, 2.0), Ok(3.5.into())),
        (math(Divide, 1.0, 0_i64), Ok(f64::INFINITY.into())),
        (math(Modulo, 7_i64, 3_i64), Ok(long(1))),
        (math(Modulo, -7_i64, 3_i64), Ok(long(-1))),
        (math(Modulo, 7.5, 2_i64), Ok(1.5.into())),
        (math(Modulo, i64::MIN, -1_i64), Ok(long(0))),
        (math(Power, 2_i64, 10_i64), Ok(1024.0.into())),
        (math(Power, 2_i64, -1_i64), Ok(0.5.into())),
        (math(Add, Value::Null, 1_i64), Ok(Value::Null)),
        (math(Add, 1_i64, Value::Unbound), Ok(Value::Null)),
        (math(Divide, 0_i64, Value::Null), Ok(Value::Null)),
    ]);
}

#[test]
fn arithmetic_errors_show_the_operands() {
    check(vec![
        (math(Add, i64::MAX, 1_i64), Err("integer overflow in 9223372036854775807 + 1")),
        (math(Subtract, i64::MIN, 1_i64), Err("integer overflow in -9223372036854775808 - 1")),
        (math(Multiply, i64::MAX, 2_i64), Err("integer overflow in 9223372036854775807 * 2")),
        (math(Divide, i64::MIN, -1_i64), Err("integer overflow in -9223372036854775808 / -1")),
        (math(Divide, 1_i64, 0_i64), Err("division by zero in 1 / 0")),
        (math(Modulo, 1_i32, 0_i64), Err("division by zero in 1 % 0")),
        (math(Subtract, "a", 1_i64), Err("- takes numbers, not 'a' (string)")),
        (math(Add, true, 1_i64), Err("+ takes numbers, strings, lists or times, not true (boolean)")),
        (math(Add, 1_i64, map([])), Err("+ takes numbers, strings, lists or times, not a map")),
        (math(Multiply, 1_i64, longs([1])), Err("* takes numbers, not [1] (list)")),
    ]);
}

#[test]
fn plus_joins_strings_and_lists() {
    check(vec![
        (math(Add, "a", "b"), Ok("ab".into())),
        (math(Add, "a", 1_i64), Ok("a1".into())),
        (math(Add, 1.5, "a"), Ok("1.5a".into())),
        (math(Add, "a", true), Err("+ takes numbers, strings, lists or times, not true (boolean)")),
        (math(Add, "a", Value::Null), Ok(Value::Null)),
        (math(Add, longs([1]), longs([2])), Ok(longs([1, 2]))),
        (math(Add, longs([1]), 2_i64), Ok(longs([1, 2]))),
        (math(Add, 1_i64, longs([2])), Ok(longs([1, 2]))),
        (math(Add, longs([1]), "a"), Ok(values([1_i64.into(), "a".into()]))),
        (math(Add, "a", longs([1])), Ok(values(["a".into(), 1_i64.into()]))),
        (math(Add, longs([1]), values([longs([2])])), Ok(values([1_i64.into(), longs([2])]))),
        (math(Add, longs([1]), Value::Null), Ok(Value::Null)),
    ]);
}

#[test]
fn negation() {
    let negate = |value: Value| Expr::Negate(Box::new(e(value)));
    check(vec![
        (negate(1_i64.into()), Ok(Value::Long(-1))),
        (negate(1_i32.into()), Ok(Value::Int(-1))),
        (negate(Value::Byte(-128)), Ok(Value::Int(128))),
        (negate(i32::MIN.into()), Ok(Value::Long(2_147_483_648))),
        (negate(i64::MIN.into()), Err("integer overflow in -(-9223372036854775808)")),
        (negate(0.0.into()), Ok((-0.0).into())),
        (negate(Value::Float(1.5)), Ok(Value::Float(-1.5))),
        (negate(Value::Null), Ok(Value::Null)),
        (negate("a".into()), Err("- takes a number, not 'a' (string)")),
    ]);
}

#[test]
fn rounding() {
    let one = |f, x: f64, y: f64| (call(f, [e(x)]), Ok(Value::Double(y)));
    let round = |x: f64, places: i64, y: f64| (call(F::Round, [e(x), l(places)]), Ok(Value::Double(y)));
    check(vec![
        one(F::Round, 1.5, 2.0),
        one(F::Round, 2.5, 3.0),
        one(F::Round, -1.5, -1.0),
        one(F::Round, -2.5, -2.0),
        one(F::Round, -1.6, -2.0),
        one(F::Round, 0.499_999_999_999_999_94, 0.0),
        one(F::Round, 1e300, 1e300),
        round(1.249, 1, 1.2),
        round(1.25, 1, 1.3),
        round(-1.25, 1, -1.3),
        round(1.005, 2, 1.01),
        round(3.7, 0, 4.0),
        round(1e300, 5, 1e300),
        one(F::Ceil, 1.1, 2.0),
        one(F::Ceil, -1.1, -1.0),
        one(F::Floor, 1.9, 1.0),
        one(F::Floor, -1.1, -2.0),
        (call(F::Ceil, [l(3)]), Ok(3.0.into())),
        (call(F::Round, [e(1.5), l(-1)]), Err("round() takes a precision from 0 to 255: -1")),
        (call(F::Round, [e(1.5), s("a")]), Err("round() takes an integer precision, not 'a' (string)")),
        (call(F::Round, [s("a")]), Err("round() takes a number, not 'a' (string)")),
    ]);
}

#[test]
fn functions_of_numbers() {
    use std::f64::consts::{E, PI};
    let one = |f, x: f64, y: f64| (call(f, [e(x)]), Ok(Value::Double(y)));
    check(vec![
        one(F::Abs, -1.5, 1.5),
        (call(F::Abs, [l(-3)]), Ok(Value::Long(3))),
        (call(F::Abs, [e(-3_i32)]), Ok(Value::Int(3))),
        (call(F::Abs, [e(Value::Byte(-128))]), Ok(Value::Int(128))),
        (call(F::Abs, [l(i64::MIN)]), Err("integer overflow in abs(-9223372036854775808)")),
        (call(F::Sign, [l(-3)]), Ok(Value::Long(-1))),
        (call(F::Sign, [e(0.0)]), Ok(Value::Long(0))),
        (call(F::Sign, [e(0.5)]), Ok(Value::Long(1))),
        one(F::Sqrt, 4.0, 2.0),
        one(F::Sqrt, -1.0, f64::NAN),
        one(F::Exp, 0.0, 1.0),
        one(F::Log, 1.0, 0.0),
        one(F::Log, 0.0, f64::NEG_INFINITY),
        one(F::Log10, 100.0, 2.0),
        one(F::Sin, 0.0, 0.0),
        one(F::Cos, 0.0, 1.0),
        one(F::Tan, 0.0, 0.0),
        one(F::Asin, 1.0, PI / 2.0),
        one(F::Acos, 1.0, 0.0),
        one(F::Acos, 2.0, f64::NAN),
        one(F::Atan, 1.0, PI / 4.0),
        (call(F::Atan2, [e(1.0), e(1.0)]), Ok(Value::Double(PI / 4.0))),
        one(F::Degrees, PI, 180.0),
        one(F::Radians, 180.0, PI),
        (call(F::Pi, []), Ok(PI.into())),
        (call(F::Euler, []), Ok(E.into())),
        (call(F::Rand, []), Ok(0.5.into())),
        (call(F::Sin, [null()]), Ok(Value::Null)),
        (call(F::Atan2, [e(1.0), null()]), Ok(Value::Null)),
        (call(F::Sqrt, [e(true)]), Err("sqrt() takes a number, not true (boolean)")),
    ]);
}

#[test]
fn to_integer() {
    let case =
        |value: Value, expected: Result<Value, &'static str>| (call(F::ToInteger, [e(value)]), expected);
    check(vec![
        case(82.9.into(), Ok(Value::Long(82))),
        case((-82.9).into(), Ok(Value::Long(-82))),
        case(3_i32.into(), Ok(Value::Long(3))),
        case("42".into(), Ok(Value::Long(42))),
        case(" -42 ".into(), Ok(Value::Long(-42))),
        case("2.9".into(), Ok(Value::Long(2))),
        case("1e3".into(), Ok(Value::Long(1000))),
        case("foo".into(), Ok(Value::Null)),
        case("".into(), Ok(Value::Null)),
        case("inf".into(), Ok(Value::Null)),
        case("99999999999999999999".into(), Ok(Value::Null)),
        case(1e30.into(), Ok(Value::Null)),
        case(f64::NAN.into(), Ok(Value::Null)),
        case(true.into(), Ok(Value::Long(1))),
        case(Value::Null, Ok(Value::Null)),
        case(longs([]), Err("toInteger() takes a number, string or boolean, not [] (list)")),
        case(map([]), Err("toInteger() takes a number, string or boolean, not a map")),
    ]);
}

#[test]
fn to_float_to_boolean_to_string() {
    let now = time("2026-11-21T12:00:00Z");
    check(vec![
        (call(F::ToFloat, [l(3)]), Ok(3.0.into())),
        (call(F::ToFloat, [e(3.4)]), Ok(3.4.into())),
        (call(F::ToFloat, [s("5")]), Ok(5.0.into())),
        (call(F::ToFloat, [s(" 1.5e2 ")]), Ok(150.0.into())),
        (call(F::ToFloat, [s("foo")]), Ok(Value::Null)),
        (call(F::ToFloat, [s("nan")]), Ok(Value::Null)),
        (call(F::ToFloat, [s("")]), Ok(Value::Null)),
        (call(F::ToFloat, [e(true)]), Err("toFloat() takes a number or string, not true (boolean)")),
        (call(F::ToBoolean, [e(true)]), Ok(true.into())),
        (call(F::ToBoolean, [s("true")]), Ok(true.into())),
        (call(F::ToBoolean, [s(" FALSE ")]), Ok(false.into())),
        (call(F::ToBoolean, [s(" tru ")]), Ok(Value::Null)),
        (call(F::ToBoolean, [s("f alse")]), Ok(Value::Null)),
        (call(F::ToBoolean, [s("")]), Ok(Value::Null)),
        (call(F::ToBoolean, [l(0)]), Ok(false.into())),
        (
            call(F::ToBoolean, [e(1.0)]),
            Err("toBoolean() takes a boolean, string or integer, not 1.0 (double)"),
        ),
        (call(F::ToText, [l(42)]), Ok("42".into())),
        (call(F::ToText, [e(2.3)]), Ok("2.3".into())),
        (call(F::ToText, [e(2.0)]), Ok("2.0".into())),
        (call(F::ToText, [e(true)]), Ok("true".into())),
        (call(F::ToText, [s("apa")]), Ok("apa".into())),
        (call(F::ToText, [e(now)]), Ok("2026-11-21T12:00Z".into())),
        (call(F::ToText, [null()]), Ok(Value::Null)),
        (
            call(F::ToText, [e(longs([1]))]),
            Err("toString() takes a number, boolean, string, point or temporal value, not [1] (list)"),
        ),
    ]);
}

#[test]
fn points_in_time() {
    use tidegraph_plan::TemporalType as T;
    let datetime = |value: Value| call(F::Temporal(T::DateTime), [e(value)]);
    let case = |value: Value, text: &str| (datetime(value), Ok(time(text)));
    let wrong = |value: Value, problem| (datetime(value), Err(problem));
    check(vec![
        (call(F::Now(T::DateTime), []), Ok(time("2026-11-21T12:00:00Z"))),
        (call(F::Timestamp, []), Ok(Value::Long(NOW_SECOND * 1000))),
        case("2015-07-21T21:40:32.142Z".into(), "2015-07-21T21:40:32.142Z"),
        case("2015-07-21T21:40:32".into(), "2015-07-21T21:40:32Z"),
        case("2015-07-21T21:40".into(), "2015-07-21T21:40:00Z"),
        case("20150721T2140Z".into(), "2015-07-21T21:40:00Z"),
        case("2015-07-21".into(), "2015-07-21T00:00:00Z"),
        case("2015-07".into(), "2015-07-01T00:00:00Z"),
        case("2015".into(), "2015-01-01T00:00:00Z"),
        case(1_000_i64.into(), "1970-01-01T00:00:01Z"),
        case(Value::Int(-1), "1969-12-31T23:59:59.999Z"),
        case(map([("epochMillis", 1_000_i64.into())]), "1970-01-01T00:00:01Z"),
        case(map([("epochSeconds", 1_i64.into())]), "1970-01-01T00:00:01Z"),
        case(map([("year", 2020_i64.into()), ("month", 2_i64.into())]), "2020-02-01T00:00:00Z"),
        wrong("soon".into(), "datetime() does not take 'soon': the year needs 4 digits, found \"soon\""),
        wrong(true.into(), "datetime() takes a string, a map or a temporal value, not true (boolean)"),
        wrong(
            map([("century", 1_i64.into())]),
            "datetime() does not take {century: 1}: there is no component \"century\"",
        ),
        wrong(
            map([("year", 2020_i64.into()), ("week", 1_i64.into()), ("day", 1_i64.into())]),
            "datetime() does not take {year: 2020, week: 1, day: 1}: a date is given by month and day, by week, by \
             quarter, or by the day of its year; not by two of these",
        ),
        wrong(
            map([("year", 2020_i64.into()), ("hour", 1_i64.into()), ("second", 1_i64.into())]),
            "datetime() does not take {year: 2020, hour: 1, second: 1}: a second needs the larger parts of its time",
        ),
        wrong(
            map([("year", 1.5.into())]),
            "datetime() does not take {year: 1.5}: year is a double, not an integer",
        ),
        (datetime(Value::Null), Ok(Value::Null)),
        (datetime(map([("year", Value::Null)])), Ok(Value::Null)),
    ]);
}
