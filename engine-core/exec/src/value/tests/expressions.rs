//! Every kind of expression: logic, comparison, lists, maps, CASE, comprehensions, parameters.

use super::*;
use tidegraph_plan::{Function as F, Quantifier};

const T: Option<bool> = Some(true);
const N: Option<bool> = Some(false);

fn bool3(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

#[test]
fn logic_is_three_valued() {
    let all = [T, N, None];
    for a in all {
        for b in all {
            let (x, y) = (e(bool3(a)), e(bool3(b)));
            let and = match (a, b) {
                (Some(false), _) | (_, Some(false)) => N,
                (Some(true), Some(true)) => T,
                _ => None,
            };
            let or = match (a, b) {
                (Some(true), _) | (_, Some(true)) => T,
                (Some(false), Some(false)) => N,
                _ => None,
            };
            let xor = a.zip(b).map(|(a, b)| a != b);
            check(vec![
                (Expr::And(vec![x.clone(), y.clone()]), Ok(bool3(and))),
                (Expr::Or(vec![x.clone(), y.clone()]), Ok(bool3(or))),
                (Expr::Xor(Box::new(x.clone()), Box::new(y)), Ok(bool3(xor))),
                (Expr::Not(Box::new(x)), Ok(bool3(a.map(|a| !a)))),
            ]);
        }
    }
    check(vec![
        (Expr::And(vec![]), Ok(true.into())),
        (Expr::Or(vec![]), Ok(false.into())),
        (Expr::And(vec![e(true), l(12)]), Err("AND takes a boolean, not 12 (long)")),
        // The first operand decides, so the invalid one is not evaluated.
        (Expr::And(vec![e(false), l(12)]), Ok(false.into())),
        (Expr::Or(vec![s("x")]), Err("OR takes a boolean, not 'x' (string)")),
        (Expr::Not(Box::new(s("x"))), Err("NOT takes a boolean, not 'x' (string)")),
        (Expr::Xor(Box::new(l(1)), Box::new(e(true))), Err("XOR takes a boolean, not 1 (long)")),
        (Expr::IsNull(Box::new(null())), Ok(true.into())),
        (Expr::IsNull(Box::new(unbound())), Ok(true.into())),
        (Expr::IsNull(Box::new(l(0))), Ok(false.into())),
    ]);
}

#[test]
fn comparisons_follow_the_types() {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let nan = || e(f64::NAN);
    let case = |c, a: Expr, b: Expr, expected| (cmp(c, a, b), Ok(bool3(expected)));
    check(vec![
        case(Equal, l(1), e(1.0), T),
        case(Equal, l(1), e(1_i32), T),
        case(Equal, l(1), s("1"), N),
        case(NotEqual, l(1), s("1"), T),
        case(Equal, null(), null(), None),
        case(NotEqual, null(), l(1), None),
        case(Equal, nan(), nan(), N),
        case(NotEqual, nan(), nan(), T),
        case(Less, l(1), l(2), T),
        case(LessOrEqual, l(2), l(2), T),
        case(Greater, l(2), e(1.5), T),
        case(GreaterOrEqual, l(1), e(1.5), N),
        case(Less, l(1), s("a"), None),
        case(Less, l(1), null(), None),
        case(Greater, nan(), l(1), N),
        case(GreaterOrEqual, nan(), e(1.0), N),
        case(Less, nan(), nan(), N),
        case(LessOrEqual, nan(), s("a"), None),
        case(Less, s("a"), s("b"), T),
        case(Less, e(false), e(true), T),
        case(Less, e(map([])), e(map([])), None),
        case(GreaterOrEqual, e(longs([1, 0])), e(longs([1])), T),
        case(GreaterOrEqual, e(values([1.into(), Value::Null])), e(longs([1])), T),
        case(GreaterOrEqual, e(longs([1, 2])), e(values([1.into(), Value::Null])), None),
        case(GreaterOrEqual, e(longs([1, 2])), e(values([3.into(), Value::Null])), N),
        case(Equal, e(longs([1, 2])), e(longs([1, 2])), T),
        case(Equal, e(values([Value::Null])), e(values([Value::Null])), None),
        case(Equal, e(map([("a", 1.into())])), e(map([("a", 1.into())])), T),
        case(Equal, e(map([("a", 1.into())])), e(map([("b", 1.into())])), N),
        case(Equal, e(map([("a", Value::Null)])), e(map([("a", 1.into())])), None),
    ]);
}

#[test]
fn membership() {
    let within = |item: Expr, list: Expr| Expr::In(Box::new(item), Box::new(list));
    check(vec![
        (within(l(1), e(longs([1, 2]))), Ok(true.into())),
        (within(l(3), e(longs([1, 2]))), Ok(false.into())),
        (within(l(3), e(values([Value::Null, 1.into()]))), Ok(Value::Null)),
        (within(l(1), e(values([Value::Null, 1.into()]))), Ok(true.into())),
        (within(null(), e(longs([1]))), Ok(Value::Null)),
        (within(null(), e(longs([]))), Ok(false.into())),
        (within(l(1), null()), Ok(Value::Null)),
        (within(l(1), s("1")), Err("IN takes a list, not '1' (string)")),
        (within(e(longs([1])), e(values([longs([1])]))), Ok(true.into())),
        (within(l(1), e(set([1.into()]))), Ok(true.into())),
    ]);
}

/// Rows that share a long list are answered by a set; the answers are those of a comparison with each item.
#[test]
fn membership_of_many_rows_in_one_list() {
    let items = |extra: Value| Value::list((0..40).map(|n| Value::Long(n * 2)).chain([extra]).collect());
    let asked: Vec<Value> = vec![
        Value::Long(4),
        Value::Int(4),
        Value::Double(4.0),
        Value::Long(5),
        "4".into(),
        Value::Null,
        Value::Long(78),
        Value::Byte(78),
        "x".into(),
        Value::Long(80),
    ];
    for extra in ["x".into(), Value::Null, Value::Double(5.0), longs([1])] {
        with_context(&Graph::default(), |ctx| {
            let mut batch = Batch::unbound(asked.len(), 2);
            batch.set(Slot(0), Column::from_values(asked.clone()));
            batch.set(Slot(1), Column::Constant(items(extra.clone()), asked.len()));
            let within = Expr::In(Box::new(slot(0)), Box::new(slot(1)));
            let prepared = Evaluator::prepare(&[&within], &batch, ctx).unwrap();
            let column = prepared.eval_column(0).unwrap();
            for (row, item) in asked.iter().enumerate() {
                let alone = Expr::In(Box::new(e(item.clone())), Box::new(e(items(extra.clone()))));
                let alone = Evaluator::prepare(&[&alone], &one_row(&[]), ctx).unwrap().eval(0, 0).unwrap();
                assert_eq!(column.get(row), alone, "{item:?} in a list with {extra:?}");
            }
            drop(prepared);
            assert_eq!(ctx.memory.used(), 0, "memory is given back");
        });
    }
}

#[test]
fn index_and_slice() {
    let list = || e(longs([1, 2, 3, 4, 5]));
    let at = |base: Expr, index: Expr| Expr::Index(Box::new(base), Box::new(index));
    let slice = |base: Expr, from: Option<Expr>, to: Option<Expr>| {
        Expr::Slice(Box::new(base), from.map(Box::new), to.map(Box::new))
    };
    check(vec![
        (at(list(), l(0)), Ok(1_i64.into())),
        (at(list(), l(-1)), Ok(5_i64.into())),
        (at(list(), l(5)), Ok(Value::Null)),
        (at(list(), l(-6)), Ok(Value::Null)),
        (at(list(), l(i64::MIN)), Ok(Value::Null)),
        (at(list(), l(i64::MAX)), Ok(Value::Null)),
        (at(list(), null()), Ok(Value::Null)),
        (at(null(), l(0)), Ok(Value::Null)),
        (at(list(), s("a")), Err("a list index takes an integer, not 'a' (string)")),
        (at(list(), e(1.0)), Err("a list index takes an integer, not 1.0 (double)")),
        (at(e(map([("a", 7.into())])), s("a")), Ok(7.into())),
        (at(e(map([("a", 7.into())])), s("b")), Ok(Value::Null)),
        (at(e(map([("a", 7.into())])), l(0)), Err("a map index takes a string, not 0 (long)")),
        (at(l(3), l(0)), Err("[index] takes a list, map, vertex or edge, not 3 (long)")),
        (slice(list(), Some(l(1)), Some(l(3))), Ok(longs([2, 3]))),
        (slice(list(), Some(l(-3)), Some(l(-1))), Ok(longs([3, 4]))),
        (slice(list(), None, Some(l(2))), Ok(longs([1, 2]))),
        (slice(list(), Some(l(3)), None), Ok(longs([4, 5]))),
        (slice(list(), Some(l(3)), Some(l(1))), Ok(longs([]))),
        (slice(list(), Some(l(-99)), Some(l(99))), Ok(longs([1, 2, 3, 4, 5]))),
        (slice(list(), Some(null()), None), Ok(Value::Null)),
        (slice(list(), None, Some(null())), Ok(Value::Null)),
        (slice(null(), None, Some(l(1))), Ok(Value::Null)),
        (slice(s("abc"), None, Some(l(1))), Err("[from..to] takes a list, not 'abc' (string)")),
        (slice(list(), Some(e(1.5)), None), Err("a list index takes an integer, not 1.5 (double)")),
    ]);
}

#[test]
fn properties_of_what_is_no_element() {
    let a = || e(map([("a", 7.into())]));
    check(vec![
        (property(a(), "a"), Ok(7.into())),
        (property(a(), "b"), Ok(Value::Null)),
        (property(null(), "a"), Ok(Value::Null)),
        (property(unbound(), "a"), Ok(Value::Null)),
        (property(l(12), "a"), Err(".a takes a vertex, edge, map, point or temporal value, not 12 (long)")),
        (
            property(e(longs([])), "a"),
            Err(".a takes a vertex, edge, map, point or temporal value, not [] (list)"),
        ),
    ]);
}

#[test]
fn lists_maps_cases_parameters_and_slots() {
    let case = |branches: Vec<(Expr, Expr)>, otherwise: Expr| Expr::Case {
        branches,
        otherwise: Box::new(otherwise),
    };
    check_in(
        &Graph::default(),
        &[5_i64.into(), Value::Null],
        vec![
            (Expr::List(vec![l(1), null()]), Ok(values([1_i64.into(), Value::Null]))),
            (
                Expr::Map(vec![("a".into(), l(1)), ("b".into(), null())]),
                Ok(map([("a", 1_i64.into()), ("b", Value::Null)])),
            ),
            (case(vec![(e(false), l(1)), (null(), l(2)), (e(true), l(3))], l(4)), Ok(3_i64.into())),
            (case(vec![(e(false), l(1))], l(4)), Ok(4_i64.into())),
            (case(vec![(l(1), l(1))], l(4)), Err("a condition takes a boolean, not 1 (long)")),
            // Only the chosen branch is evaluated.
            (case(vec![(e(true), l(1))], math(Arithmetic::Divide, 1_i64, 0_i64)), Ok(1_i64.into())),
            (Expr::Parameter("p".into()), Ok(7_i64.into())),
            (Expr::Parameter("q".into()), Err("parameter $q is missing")),
            (slot(0), Ok(5_i64.into())),
            (slot(1), Ok(Value::Null)),
            (slot(9), Ok(Value::Unbound)),
            (Expr::IsBound(Slot(0)), Ok(true.into())),
            (Expr::IsBound(Slot(1)), Ok(true.into())),
            (Expr::IsBound(Slot(9)), Ok(false.into())),
            (
                call(F::Coalesce, [slot(1), slot(9), slot(0), math(Arithmetic::Divide, 1_i64, 0_i64)]),
                Ok(5_i64.into()),
            ),
            (call(F::Coalesce, [null(), unbound()]), Ok(Value::Null)),
            (call(F::RequireNotNull, [slot(0), s("no null here")]), Ok(5_i64.into())),
            (call(F::RequireNotNull, [slot(1), s("no null here")]), Err("no null here")),
        ],
    );
    assert_eq!(
        eval(&Expr::Parameter("q".into())).expect_err("missing").code(),
        tidegraph_types::ErrorCode::MissingParameter
    );
}

/// The current item of a comprehension.
const X: Slot = Slot(10);
/// The accumulator of a reduction.
const ACC: Slot = Slot(11);

fn comprehension(list: Expr, filter: Option<Expr>, map: Option<Expr>) -> Expr {
    Expr::Comprehension {
        variable: X,
        list: Box::new(list),
        filter: filter.map(Box::new),
        map: map.map(Box::new),
    }
}

fn greater_than(limit: i64) -> Expr {
    cmp(Comparison::Greater, Expr::Slot(X), l(limit))
}

fn times(a: Expr, b: Expr) -> Expr {
    Expr::Arithmetic(Arithmetic::Multiply, Box::new(a), Box::new(b))
}

#[test]
fn comprehensions() {
    let list = || e(longs([1, 2, 3]));
    let nested = comprehension(
        list(),
        None,
        Some(Expr::Comprehension {
            variable: Slot(12),
            list: Box::new(list()),
            filter: None,
            map: Some(Box::new(times(Expr::Slot(X), Expr::Slot(Slot(12))))),
        }),
    );
    check(vec![
        (comprehension(list(), None, None), Ok(longs([1, 2, 3]))),
        (comprehension(list(), Some(greater_than(1)), None), Ok(longs([2, 3]))),
        (comprehension(list(), None, Some(times(Expr::Slot(X), l(2)))), Ok(longs([2, 4, 6]))),
        (comprehension(list(), Some(greater_than(2)), Some(times(Expr::Slot(X), l(2)))), Ok(longs([6]))),
        (comprehension(null(), None, None), Ok(Value::Null)),
        (comprehension(list(), Some(null()), None), Ok(longs([]))),
        (comprehension(l(1), None, None), Err("a list comprehension takes a list, not 1 (long)")),
        (nested, Ok(values([longs([1, 2, 3]), longs([2, 4, 6]), longs([3, 6, 9])]))),
    ]);
}

#[test]
fn a_local_variable_hides_a_slot() {
    let inner = Expr::Comprehension {
        variable: Slot(0),
        list: Box::new(e(longs([1, 2]))),
        filter: None,
        map: Some(Box::new(times(slot(0), l(10)))),
    };
    check_in(&Graph::default(), &[5_i64.into()], vec![(inner, Ok(longs([10, 20])))]);
}

#[test]
fn quantifiers() {
    use Quantifier::{All, Any, None as Not, Single};
    let quantified = |quantifier, list: Value| Expr::Quantified {
        quantifier,
        variable: X,
        list: Box::new(e(list)),
        predicate: Box::new(greater_than(1)),
    };
    let with_null = |n: i64| values([n.into(), Value::Null]);
    let cases = [
        (All, longs([]), T),
        (All, longs([2, 3]), T),
        (All, longs([1, 2]), N),
        (All, with_null(2), None),
        (All, with_null(1), N),
        (Any, longs([]), N),
        (Any, longs([1, 2]), T),
        (Any, longs([1]), N),
        (Any, with_null(1), None),
        (Any, with_null(2), T),
        (Not, longs([]), T),
        (Not, longs([1]), T),
        (Not, longs([2]), N),
        (Not, with_null(1), None),
        (Not, with_null(2), N),
        (Single, longs([]), N),
        (Single, longs([1, 2]), T),
        (Single, longs([2, 3]), N),
        (Single, with_null(2), None),
        (Single, values([2_i64.into(), 3_i64.into(), Value::Null]), N),
        (All, Value::Null, None),
    ];
    check(cases.into_iter().map(|(q, list, t)| (quantified(q, list), Ok(bool3(t)))).collect());
}

#[test]
fn reductions() {
    let reduce = |start: Expr, list: Expr, step: Expr| Expr::Reduce {
        accumulator: ACC,
        start: Box::new(start),
        variable: X,
        list: Box::new(list),
        step: Box::new(step),
    };
    let sum = || Expr::Arithmetic(Arithmetic::Add, Box::new(Expr::Slot(ACC)), Box::new(Expr::Slot(X)));
    check(vec![
        (reduce(l(0), e(longs([1, 2, 3])), sum()), Ok(6_i64.into())),
        (reduce(s(""), e(texts(["a", "b"])), sum()), Ok("ab".into())),
        (reduce(l(5), e(longs([])), sum()), Ok(5_i64.into())),
        (reduce(l(5), null(), sum()), Ok(Value::Null)),
        (reduce(l(5), e(values([Value::Null])), sum()), Ok(Value::Null)),
        (reduce(l(5), s("x"), sum()), Err("reduce() takes a list, not 'x' (string)")),
        // A list that grows: values of earlier steps do not count against the limit.
        (call(F::Size, [reduce(e(longs([])), call(F::Range, [l(1), l(2000)]), sum())]), Ok(2000_i64.into())),
    ]);
}

#[test]
fn memory_is_asked_for() {
    let doubling = Expr::Reduce {
        accumulator: ACC,
        start: Box::new(s("0123456789")),
        variable: X,
        list: Box::new(call(F::Range, [l(1), l(40)])),
        step: Box::new(Expr::Arithmetic(
            Arithmetic::Add,
            Box::new(Expr::Slot(ACC)),
            Box::new(Expr::Slot(ACC)),
        )),
    };
    let long = "ab".repeat(2000);
    let large = [
        call(F::Range, [l(1), l(1_000_000_000_000)]),
        call(F::Range, [l(i64::MIN), l(i64::MAX)]),
        call(F::Replace, [s(&long), s("a"), s(&long)]),
        doubling,
    ];
    for expr in large {
        let error = eval(&expr).expect_err("too large");
        assert!(matches!(error, crate::Error::Memory { limit_bytes: 1_048_576, .. }), "{expr:?}: {error}");
    }
}

#[test]
fn calls_with_a_wrong_number_of_arguments_are_refused() {
    check(vec![
        (call(F::Size, []), Err("size() takes one argument, not 0")),
        (call(F::Substring, [s("a")]), Err("substring() takes 2 to 3 arguments, not 1")),
        (call(F::PathAppend, []), Err("path() takes at least 2 argument(s), not 0")),
    ]);
}

#[test]
fn deep_expressions_fit_the_stack() {
    let deep = (0..1000).fold(l(1), |inner, _| Expr::Negate(Box::new(inner)));
    let sum =
        (0..1000).fold(l(0), |inner, _| Expr::Arithmetic(Arithmetic::Add, Box::new(inner), Box::new(l(1))));
    check(vec![(deep, Ok(1_i64.into())), (sum, Ok(1000_i64.into()))]);
}
