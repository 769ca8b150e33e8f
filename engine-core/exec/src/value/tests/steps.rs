//! Functions for Gremlin's steps over strings, lists, numbers and dates.

use super::*;
use tidegraph_plan::{DateUnit, Function as F, GremlinType as T, ListFunction as L, Operator as O};
use tidegraph_types::Big;

fn at(text: &str) -> Value {
    Value::DateTime(text.parse().expect("a point in time"))
}

#[test]
fn strings() {
    let long = "x".repeat(30);
    check(vec![
        (call(F::Concat, [s("a"), null(), s("b")]), Ok("ab".into())),
        (call(F::Concat, [null(), unbound()]), Ok(Value::Null)),
        (call(F::Concat, [s("a"), l(1)]), Err("concat() takes a string, not 1 (long)")),
        (call(F::TextLength, [s("aé😀")]), Ok(Value::Int(3))),
        (call(F::TextLength, [null()]), Ok(Value::Null)),
        (call(F::TextLength, [e(texts(["a"]))]), Err("length() takes a string, not ['a'] (list)")),
        (call(F::TextPart, [s("hello world"), l(1), l(8)]), Ok("ello wo".into())),
        (call(F::TextPart, [s("ripple"), l(-4), l(2)]), Ok("".into())),
        (call(F::TextPart, [s("lop"), l(-4), l(2)]), Ok("lo".into())),
        (call(F::TextPart, [s("lop"), l(i64::MIN), l(i64::MAX)]), Ok("lop".into())),
        (
            call(F::TextPart, [s("lop"), s("1")]),
            Err("substring() takes integers as positions, not '1' (string)"),
        ),
        (call(F::SplitWhole, [null(), s("a")]), Ok(Value::Null)),
        (call(F::SplitWhole, [s("a"), l(1)]), Err("split() takes a string, not 1 (long)")),
        (call(F::ReverseItems, [e(set([1.into(), 2.into()]))]), Ok(values([2.into(), 1.into()]))),
        (call(F::ReverseItems, [e(path([1.into(), "a".into()], &[]))]), Ok(values(["a".into(), 1.into()]))),
        (call(F::ReverseItems, [e(1.5)]), Ok(1.5.into())),
        (call(F::AsText, [e(values([1.into(), Value::Null, "a".into()]))]), Ok("[1, null, a]".into())),
        (call(F::AsText, [e(map([("k", set([true.into()]))]))]), Ok("{k=[true]}".into())),
        (call(F::AsText, [e(path([1.into()], &[]))]), Ok("path[1]".into())),
        (call(F::AsText, [e(entry("k", 1))]), Ok("k=1".into())),
        (call(F::AsText, [unbound()]), Ok(Value::Unbound)),
        (call(F::AsText, [s(&long)]), Ok(long.as_str().into())),
    ]);
}

#[test]
fn lists() {
    let abc = || e(texts(["a", "b", "a"]));
    let list = |function, other: Value| call(F::Lists(function), [abc(), e(other)]);
    check(vec![
        (list(L::Combine, texts(["c"])), Ok(texts(["a", "b", "a", "c"]))),
        (list(L::Combine, Value::Null), Err("combine() takes a list, set or path, not null")),
        (call(F::Lists(L::Combine), [null(), abc()]), Err("combine() takes a list, set or path, not null")),
        (list(L::Difference, texts(["b"])), Ok(set(["a".into()]))),
        (list(L::Disjunct, texts(["b", "c"])), Ok(set(["a".into(), "c".into()]))),
        (list(L::Intersect, set(["a".into()])), Ok(set(["a".into()]))),
        (list(L::Merge, texts(["c", "b"])), Ok(set(["a".into(), "b".into(), "c".into()]))),
        (list(L::Merge, map([])), Err("merge() takes a list, set or path, not a map")),
        (
            call(F::Lists(L::Merge), [e(map([("a", 1.into())])), e(map([("a", 2.into())]))]),
            Ok(map([("a", 2.into())])),
        ),
        (
            call(F::Lists(L::Merge), [e(map([])), abc()]),
            Err("merge() takes a map to merge with a map, not ['a', 'b', 'a'] (list)"),
        ),
        (
            call(F::Lists(L::Product), [e(longs([1, 2])), e(texts(["x"]))]),
            Ok(values([values([1_i64.into(), "x".into()]), values([2_i64.into(), "x".into()])])),
        ),
        (call(F::Lists(L::Items), [s("a")]), Err("conjoin() takes a list, set or path, not 'a' (string)")),
        (call(F::Lists(L::Index), [s("a")]), Ok(values([values(["a".into(), 0.into()])]))),
        (call(F::Lists(L::Index), [null()]), Ok(values([values([Value::Null, 0.into()])]))),
    ]);
}

#[test]
fn a_product_is_charged_before_it_is_made() {
    let items = Value::list(vec![Value::Long(1); 2_000]);
    let product = call(F::Lists(L::Product), [e(items.clone()), e(items)]);
    let error = eval(&product).expect_err("more than a megabyte");
    assert!(matches!(error, crate::Error::Memory { .. }), "{error}");
}

#[test]
fn a_text_is_charged_while_it_grows() {
    let text = Value::string("x".repeat(100_000));
    let shared = Value::list(vec![text; 100]);
    let error = eval(&call(F::AsText, [e(shared)])).expect_err("more than a megabyte");
    assert!(matches!(error, crate::Error::Memory { .. }), "{error}");
}

#[test]
fn operators() {
    let operate = |operator, a: Value, b: Value| call(F::Operate(operator), [e(a), e(b)]);
    check(vec![
        (operate(O::Sum, 7.into(), 2.into()), Ok(Value::Int(9))),
        (operate(O::Sum, 1.into(), Value::Null), Ok(Value::Int(1))),
        (operate(O::Sum, Value::Null, 1.into()), Ok(Value::Null)),
        (operate(O::SumLong, 1.into(), 2.into()), Ok(Value::Long(3))),
        (operate(O::SumLong, 1.into(), 2.5.into()), Err("Operator.sumLong takes integers, not 2.5 (double)")),
        (operate(O::Div, 7.into(), 2.into()), Ok(Value::Int(3))),
        (operate(O::Div, 7.into(), 0.into()), Err("division by zero in 7 / 0")),
        (operate(O::Min, Value::Null, 1.into()), Ok(Value::Int(1))),
        (operate(O::Max, 7.into(), 2.0.into()), Ok(Value::Double(7.0))),
        (operate(O::Max, "a".into(), "b".into()), Ok("b".into())),
        (
            operate(O::Max, "a".into(), 1.into()),
            Err("Operator.max takes values that compare with each other, not 1 (int)"),
        ),
        (operate(O::And, true.into(), false.into()), Ok(false.into())),
        (operate(O::Or, 1.into(), true.into()), Err("Operator.or takes booleans, not 1 (int)")),
        (operate(O::Assign, 1.into(), "x".into()), Ok("x".into())),
        (operate(O::AddAll, longs([1]), longs([1])), Ok(longs([1, 1]))),
        (operate(O::AddAll, set([1.into()]), values([1.into(), 2.into()])), Ok(set([1.into(), 2.into()]))),
        (
            operate(O::AddAll, longs([1]), 3.into()),
            Err("Operator.addAll takes two lists or sets, or two maps, not 3 (int)"),
        ),
        (operate(O::Sum, "a".into(), "b".into()), Err("Operator.sum takes numbers, not 'a' (string)")),
    ]);
}

#[test]
fn types_and_numbers() {
    let number = |kind, value: Value| call(F::AsNumber(kind), [e(value)]);
    let holds = "asNumber() cannot convert a number to a type that does not hold it";
    let overflow = format!("{holds}: 300");
    let not_a_number = format!("{holds}: NaN");
    check(vec![
        (number(None, "5".into()), Ok(Value::Int(5))),
        (number(None, "-0x10".into()), Ok(Value::Int(-16))),
        (number(None, "9223372036854775807".into()), Ok(Value::Long(i64::MAX))),
        (number(None, ".5".into()), Ok(Value::Double(0.5))),
        (number(None, "9223372036854775808".into()), Ok(Big::parse_integer("9223372036854775808").unwrap())),
        (number(None, "0x".into()), Err("asNumber() cannot read a number from the string: '0x'")),
        (number(None, "1e999".into()), Err("asNumber() cannot read a number from the string: '1e999'")),
        (number(None, true.into()), Err("asNumber() takes a number, a string or a date, not true (boolean)")),
        (number(Some(T::Byte), 300.into()), Err(&overflow)),
        (number(Some(T::Long), f64::NAN.into()), Err(&not_a_number)),
        (number(Some(T::Long), 9.3e18.into()), Err(&format!("{holds}: 9.3e18"))),
        (number(Some(T::Float), 1e300.into()), Err(&format!("{holds}: 1e300"))),
        (number(Some(T::Int), (-5.9).into()), Ok(Value::Int(-5))),
        (number(Some(T::Double), Value::Float(0.1)), Ok(Value::Double(0.1))),
        (number(None, at("1970-01-01T00:00:01.5Z")), Ok(Value::Long(1_500))),
        (call(F::AsBool, [e(f64::NAN)]), Ok(false.into())),
        (call(F::AsBool, [s(" True ")]), Ok(true.into())),
        (
            call(F::AsBool, [null()]),
            Err("asBool() takes a boolean, a number, or 'true' or 'false', not null"),
        ),
        (call(F::TypeOf(T::Null), [null()]), Ok(true.into())),
        (call(F::TypeOf(T::Collection), [e(set([]))]), Ok(true.into())),
        (call(F::TypeOf(T::List), [e(set([]))]), Ok(false.into())),
        (call(F::TypeOf(T::Number), [s("1")]), Ok(false.into())),
        (call(F::MathOperand, [l(2)]), Ok(2.0.into())),
        (call(F::MathOperand, [s("2")]), Err("math() takes a number, not '2' (string)")),
        (call(F::MathDivisor, [e(-0.0)]), Err("division by zero in math()")),
    ]);
}

#[test]
fn dates() {
    let add = |value: Value, count: i64| call(F::DateAdd(DateUnit::Day), [e(value), l(count)]);
    check(vec![
        (call(F::AsDate, [s("2023-08-02T00:00:00Z")]), Ok(at("2023-08-02T00:00:00Z"))),
        (call(F::AsDate, [s("2023-08-02")]), Ok(at("2023-08-02T00:00:00Z"))),
        (call(F::AsDate, [l(1_694_017_707_000)]), Ok(at("2023-09-06T16:28:27Z"))),
        (
            call(F::AsDate, [e(1.5)]),
            Err("asDate() takes an ISO 8601 string, whole milliseconds or a date, not 1.5 (double)"),
        ),
        (
            call(F::AsDate, [s("yesterday")]),
            Err("asDate() cannot read an ISO 8601 date from the string: 'yesterday'"),
        ),
        (add(at("2024-02-28T00:00:00Z"), 1), Ok(at("2024-02-29T00:00:00Z"))),
        (
            add(at("2024-02-28T00:00:00Z"), i64::MAX),
            Err(
                "dateAdd() leaves the range of dates (years -9999 to 9999) with the number: 9223372036854775807",
            ),
        ),
        (add("x".into(), 1), Err("dateAdd() takes a date, not 'x' (string)")),
        (
            call(F::DateDiff, [e(at("1970-01-02T00:00:00Z")), e(at("1970-01-01T23:59:58.5Z"))]),
            Ok(1_500_i64.into()),
        ),
        (call(F::DateDiff, [e(at("1970-01-02T00:00:00Z")), null()]), Ok(86_400_000_i64.into())),
    ]);
}
