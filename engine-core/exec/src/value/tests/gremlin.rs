//! Functions for Gremlin's steps: paths with labels, maps, local scope.

use super::*;
use tidegraph_plan::Function as F;

fn m() -> Value {
    map([("a", 3.into()), ("b", 1.into()), ("c", 2.into())])
}

#[test]
fn paths_grow_and_carry_labels() {
    let ab = || path([1.into(), 2.into()], &[&["a"], &[]]);
    check(vec![
        (call(F::PathAppend, [unbound(), e(1)]), Ok(path([1.into()], &[]))),
        (call(F::PathAppend, [e(path([1.into()], &[])), e(2)]), Ok(path([1.into(), 2.into()], &[]))),
        (call(F::PathAppend, [unbound(), e(1), s("a")]), Ok(path([1.into()], &[&["a"]]))),
        (call(F::PathAppend, [e(path([1.into()], &[&["a"]])), e(2)]), Ok(ab())),
        (
            call(F::PathAppend, [e(path([1.into()], &[])), e(2), s("b"), s("c")]),
            Ok(path([1.into(), 2.into()], &[&[], &["b", "c"]])),
        ),
        (call(F::PathAppend, [unbound(), null()]), Ok(path([Value::Null], &[]))),
        (call(F::PathAppend, [l(1), l(2)]), Err("path() takes a path, not 1 (long)")),
        (call(F::PathLabel, [e(ab()), s("b")]), Ok(path([1.into(), 2.into()], &[&["a"], &["b"]]))),
        (
            call(F::PathLabel, [e(path([1.into(), 2.into()], &[])), s("b"), s("b")]),
            Ok(path([1.into(), 2.into()], &[&[], &["b"]])),
        ),
        (call(F::PathLabel, [unbound(), s("b")]), Ok(Value::Unbound)),
        (call(F::PathIsSimple, [e(ab())]), Ok(true.into())),
        (call(F::PathIsSimple, [e(path([1.into(), 2.into(), 1.into()], &[]))]), Ok(false.into())),
        (call(F::PathIsSimple, [unbound()]), Ok(true.into())),
        (call(F::PathIsSimpleOrCycle, [e(path([1.into(), 2.into(), 1.into()], &[]))]), Ok(true.into())),
        (call(F::PathIsSimpleOrCycle, [e(path([1.into(), 2.into(), 2.into()], &[]))]), Ok(false.into())),
        (call(F::PathIsSimpleOrCycle, [e(path([1.into()], &[]))]), Ok(true.into())),
        (call(F::PathIsSimpleOrCycle, [null()]), Ok(Value::Null)),
        (call(F::PathIsSimple, [null()]), Ok(Value::Null)),
        (call(F::PathSelectAll, [e(ab()), s("a")]), Ok(values([1.into()]))),
        (call(F::PathSelectAll, [e(ab()), s("z")]), Ok(values([]))),
        (call(F::PathSelectAll, [unbound(), s("z")]), Ok(values([]))),
        (
            call(F::PathSelectAll, [e(path([1.into(), 2.into()], &[&["a"], &["b", "a"]])), s("a")]),
            Ok(values([1.into(), 2.into()])),
        ),
    ]);
    let long: Vec<Value> = (0..40).map(Value::Int).collect();
    let path_of = |objects| Value::Path(Arc::new(Path { objects, labels: vec![] }));
    let twice = [long.clone(), vec![7.into()]].concat();
    check(vec![
        (call(F::PathIsSimple, [e(path_of(long))]), Ok(true.into())),
        (call(F::PathIsSimple, [e(path_of(twice))]), Ok(false.into())),
    ]);
}

#[test]
fn appending_leaves_a_shared_path_alone() {
    let shared = path([1.into()], &[&["a"]]);
    let expr = call(F::PathAppend, [e(shared.clone()), e(2)]);
    eval(&expr).expect("a path");
    assert_eq!(format!("{shared:?}"), format!("{:?}", path([1.into()], &[&["a"]])));
}

#[test]
fn maps() {
    let none: Value = values([]);
    check(vec![
        (call(F::MapGet, [e(m()), s("a")]), Ok(3.into())),
        (call(F::MapGet, [e(m()), s("z")]), Ok(Value::Unbound)),
        (call(F::MapGet, [l(1), s("z")]), Ok(Value::Unbound)),
        (call(F::MapGet, [e(map([("a", Value::Null)])), s("a")]), Ok(Value::Null)),
        (call(F::MapKeys, [e(m())]), Ok(texts(["a", "b", "c"]))),
        (call(F::MapKeys, [e(entry("k", 1))]), Ok("k".into())),
        (call(F::MapKeys, [e(map([]))]), Ok(none)),
        (call(F::MapKeys, [l(1)]), Err("select(keys) takes a map, map entry or path, not 1 (long)")),
        (call(F::MapValues, [e(m())]), Ok(values([3.into(), 1.into(), 2.into()]))),
        (call(F::MapValues, [e(entry("k", 1))]), Ok(1.into())),
        (
            call(F::MapKeys, [e(path([1.into(), 2.into()], &[&["a"], &[]]))]),
            Ok(values([set(["a".into()]), set([])])),
        ),
        (call(F::MakeMap, [s("a"), l(1), s("b"), unbound()]), Ok(map([("a", 1_i64.into())]))),
        (call(F::MakeMap, [s("a"), null()]), Ok(map([("a", Value::Null)]))),
        (call(F::MakeMap, []), Ok(map([]))),
        (call(F::PropertyKey, [e(entry("k", 1))]), Ok("k".into())),
        (call(F::PropertyValue, [e(entry("k", 1))]), Ok(1.into())),
        (call(F::PropertyKey, [l(1)]), Err("key() takes a property, not 1 (long)")),
    ]);
}

#[test]
fn unfold() {
    check(vec![
        (call(F::Unfold, [e(longs([1, 2]))]), Ok(longs([1, 2]))),
        (call(F::Unfold, [e(set([1.into()]))]), Ok(values([1.into()]))),
        (
            call(F::Unfold, [e(map([("a", 1.into()), ("b", 2.into())]))]),
            Ok(values([entry("a", 1), entry("b", 2)])),
        ),
        (call(F::Unfold, [e(path([1.into(), 2.into()], &[]))]), Ok(values([1.into(), 2.into()]))),
        (call(F::Unfold, [l(1)]), Ok(longs([1]))),
        (call(F::Unfold, [e(entry("a", 1))]), Ok(values([entry("a", 1)]))),
        (call(F::Unfold, [unbound()]), Ok(Value::Unbound)),
        (call(F::PropertyValues, [unbound()]), Ok(Value::Unbound)),
        (call(F::ToUpper, [unbound()]), Ok(Value::Unbound)),
        (call(F::Unfold, [null()]), Ok(values([Value::Null]))),
    ]);
}

#[test]
fn local_counts_and_reductions() {
    let mixed = || e(values([3.into(), Value::Null, 1.5.into()]));
    check(vec![
        (call(F::CountLocal, [e(longs([1, 2]))]), Ok(2_i64.into())),
        (call(F::CountLocal, [e(m())]), Ok(3_i64.into())),
        (call(F::CountLocal, [e(path([1.into()], &[]))]), Ok(1_i64.into())),
        (call(F::CountLocal, [s("abc")]), Ok(1_i64.into())),
        (call(F::SumLocal, [e(values([1.into(), 2.into()]))]), Ok(Value::Int(3))),
        (call(F::SumLocal, [e(longs([1, 2]))]), Ok(Value::Long(3))),
        (call(F::SumLocal, [mixed()]), Ok(Value::Double(4.5))),
        (call(F::SumLocal, [e(m())]), Ok(Value::Int(6))),
        (call(F::SumLocal, [l(5)]), Ok(Value::Long(5))),
        (call(F::SumLocal, [e(longs([]))]), Ok(Value::Unbound)),
        (call(F::SumLocal, [e(values([Value::Null]))]), Ok(Value::Null)),
        (call(F::SumLocal, [e(longs([i64::MAX, 1]))]), Err("integer overflow in 9223372036854775807 + 1")),
        (call(F::SumLocal, [e(texts(["a"]))]), Err("sum(local) takes numbers, not 'a' (string)")),
        (call(F::MinLocal, [mixed()]), Ok(Value::Double(1.5))),
        (call(F::MaxLocal, [mixed()]), Ok(Value::Double(3.0))),
        (call(F::MaxLocal, [e(texts(["a", "b"]))]), Ok("b".into())),
        (call(F::MinLocal, [e(longs([]))]), Ok(Value::Unbound)),
        (call(F::MeanLocal, [e(longs([1, 2]))]), Ok(1.5.into())),
        (call(F::MeanLocal, [mixed()]), Ok(2.25.into())),
        (call(F::MeanLocal, [e(longs([]))]), Ok(Value::Unbound)),
        (call(F::MeanLocal, [e(texts(["a"]))]), Err("mean(local) takes numbers, not 'a' (string)")),
        (call(F::MaxLocal, [unbound()]), Ok(Value::Unbound)),
    ]);
}

#[test]
fn local_ranges_sorts_and_dedups() {
    let range = |value: Value, low: i64, high: i64| call(F::RangeLocal, [e(value), l(low), l(high)]);
    let tail = |value: Value, n: i64| call(F::TailLocal, [e(value), l(n)]);
    let order = |value: Value, descending: bool| call(F::OrderLocal, [e(value), e(descending)]);
    let abc = || longs([1, 2, 3]);
    check(vec![
        (call(F::DedupLocal, [e(longs([1, 2, 1]))]), Ok(set([1_i64.into(), 2_i64.into()]))),
        (range(abc(), 0, 2), Ok(longs([1, 2]))),
        (range(abc(), 1, -1), Ok(longs([2, 3]))),
        (range(abc(), 5, 9), Ok(longs([]))),
        (range(abc(), 0, 0), Ok(longs([]))),
        // A single item is returned without a list.
        (range(abc(), 0, 1), Ok(1_i64.into())),
        (range(abc(), 7, 8), Ok(Value::Unbound)),
        (range(m(), 0, 1), Ok(map([("a", 3.into())]))),
        (range(m(), 1, -1), Ok(map([("b", 1.into()), ("c", 2.into())]))),
        (range(set([1.into(), 2.into(), 3.into()]), 1, 3), Ok(set([2.into(), 3.into()]))),
        (range("abc".into(), 0, 1), Ok("abc".into())),
        (range(abc(), 3, 1), Err("range(local) takes no low above high: 3")),
        (tail(abc(), 2), Ok(longs([2, 3]))),
        (tail(abc(), 9), Ok(longs([1, 2, 3]))),
        (tail(abc(), 1), Ok(3_i64.into())),
        (tail(longs([]), 1), Ok(Value::Unbound)),
        (tail(abc(), 0), Ok(longs([]))),
        (tail(m(), 1), Ok(map([("c", 2.into())]))),
        (tail(abc(), -1), Err("tail(local) takes no negative number: -1")),
        (order(longs([2, 3, 1]), false), Ok(longs([1, 2, 3]))),
        (order(longs([2, 3, 1]), true), Ok(longs([3, 2, 1]))),
        (order(m(), false), Ok(map([("b", 1.into()), ("c", 2.into()), ("a", 3.into())]))),
        (order(m(), true), Ok(map([("a", 3.into()), ("c", 2.into()), ("b", 1.into())]))),
        (order(l_value(), true), Ok(l_value())),
    ]);
}

fn l_value() -> Value {
    Value::Long(5)
}
