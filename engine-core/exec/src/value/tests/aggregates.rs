//! Aggregates over no rows, nulls and mixed values, with and without DISTINCT.

use super::*;
use crate::value::Accumulator;
use tidegraph_plan::AggregateKind as K;

fn aggregate(kind: K, distinct: bool, inputs: &[Value]) -> Result<String, String> {
    with_context(&Graph::default(), |ctx| {
        let mut by_row = Accumulator::new(kind, distinct);
        let mut result = Ok(());
        for input in inputs {
            result = result.and_then(|()| by_row.add(std::slice::from_ref(input), ctx));
        }
        let mut by_column = Accumulator::new(kind, distinct);
        let column = Arc::new(Column::from_values(inputs.to_vec()));
        let all = by_column.add_all(&[column], inputs.len(), ctx);
        let by_row = outcome(result.map(|()| by_row.finish(ctx)));
        assert_eq!(by_row, outcome(all.map(|()| by_column.finish(ctx))), "{kind:?} by row and by column");
        if by_row.is_ok() {
            assert_eq!(ctx.memory.used(), 0, "{kind:?} gives memory back");
        }
        by_row
    })
}

/// Kind, whether it is distinct, inputs, result.
type Case<'c> = (K, bool, Vec<Value>, Result<Value, &'c str>);

fn check_all(table: Vec<Case<'_>>) {
    for (kind, distinct, inputs, expected) in table {
        let expected = expected.map(|value| format!("{value:?}")).map_err(str::to_owned);
        assert_eq!(
            aggregate(kind, distinct, &inputs),
            expected,
            "{kind:?} distinct {distinct} of {inputs:?}"
        );
    }
}

#[test]
fn of_nothing_and_of_nulls() {
    for inputs in [vec![], vec![Value::Null, Value::Unbound]] {
        check_all(vec![
            (K::CountRows, false, inputs.clone(), Ok(Value::Long(inputs.len() as i64))),
            (K::Count, false, inputs.clone(), Ok(Value::Long(0))),
            (K::Sum, false, inputs.clone(), Ok(Value::Long(0))),
            (K::Average, false, inputs.clone(), Ok(Value::Null)),
            (K::Min, false, inputs.clone(), Ok(Value::Null)),
            (K::Max, false, inputs.clone(), Ok(Value::Null)),
            (K::Collect, false, inputs.clone(), Ok(values([]))),
            (K::CollectSet, false, inputs.clone(), Ok(set([]))),
            (K::StdDev, false, inputs.clone(), Ok(0.0.into())),
            (K::StdDevP, false, inputs, Ok(0.0.into())),
        ]);
    }
}

#[test]
fn counts_sums_and_means() {
    let n = || vec![1_i64.into(), Value::Null, 2_i64.into(), 1_i64.into()];
    check_all(vec![
        (K::Count, false, n(), Ok(Value::Long(3))),
        (K::Count, true, n(), Ok(Value::Long(2))),
        (K::CountRows, false, n(), Ok(Value::Long(4))),
        (K::Sum, false, n(), Ok(Value::Long(4))),
        (K::Sum, true, n(), Ok(Value::Long(3))),
        (K::Sum, false, vec![1.into(), 2.into()], Ok(Value::Long(3))),
        (K::Sum, false, vec![i32::MAX.into(), 1.into()], Ok(Value::Long(2_147_483_648))),
        (K::Sum, false, vec![1_i64.into(), 0.5.into()], Ok(1.5.into())),
        (K::Sum, false, vec![Value::Float(0.5), Value::Float(1.0)], Ok(Value::Float(1.5))),
        (K::Sum, false, vec![Value::Float(0.5), 1.0.into()], Ok(1.5.into())),
        (
            K::Sum,
            false,
            vec![i64::MAX.into(), 1_i64.into()],
            Err("integer overflow in 9223372036854775807 + 1"),
        ),
        (K::Sum, false, vec!["a".into()], Err("sum() takes numbers, not 'a' (string)")),
        (K::Average, false, n(), Ok((4.0 / 3.0).into())),
        (K::Average, true, n(), Ok(1.5.into())),
        (K::Average, false, vec![true.into()], Err("avg() takes numbers, not true (boolean)")),
        (K::StdDev, false, longs_of([2, 4, 4, 4, 5, 5, 7, 9]), Ok((32.0_f64 / 7.0).sqrt().into())),
        (K::StdDevP, false, longs_of([2, 4, 4, 4, 5, 5, 7, 9]), Ok(2.0.into())),
        (K::StdDev, false, longs_of([2]), Ok(0.0.into())),
        (K::StdDev, false, vec!["a".into()], Err("stDev() takes numbers, not 'a' (string)")),
    ]);
}

fn longs_of<const N: usize>(numbers: [i64; N]) -> Vec<Value> {
    numbers.into_iter().map(Value::Long).collect()
}

#[test]
fn extremes_by_the_total_order() {
    let mixed = || vec![1_i64.into(), "a".into(), Value::Null, longs([1, 2]), 0.2.into(), "b".into()];
    check_all(vec![
        (K::Max, false, mixed(), Ok(Value::Long(1))),
        (K::Min, false, mixed(), Ok(longs([1, 2]))),
        (K::Max, true, vec!["a".into(), "B".into()], Ok("a".into())),
        (K::Min, false, vec![1.0.into(), 1.into()], Ok(1.0.into())),
    ]);
}

#[test]
fn collections() {
    check_all(vec![
        (K::Collect, false, longs_of([1, 2, 1]), Ok(longs([1, 2, 1]))),
        (K::Collect, true, longs_of([1, 2, 1]), Ok(longs([1, 2]))),
        (
            K::CollectAll,
            false,
            vec![1.into(), Value::Null, Value::Unbound],
            Ok(values([1.into(), Value::Null])),
        ),
        (K::Collect, true, vec![1.into(), 1.0.into()], Ok(values([1.into()]))),
        (K::CollectSet, false, longs_of([1, 2, 1]), Ok(set([1_i64.into(), 2_i64.into()]))),
    ]);
    with_context(&Graph::default(), |ctx| {
        let mut pairs = Accumulator::new(K::CollectMap, false);
        assert!(pairs.is_empty());
        for (key, value) in [("a", Value::Int(1)), ("b", Value::Unbound), ("c", Value::Null)] {
            pairs.add(&[key.into(), value], ctx).expect("fits");
        }
        assert!(!pairs.is_empty());
        assert!(ctx.memory.used() > 0);
        let expected = map([("a", 1.into()), ("c", Value::Null)]);
        assert_eq!(format!("{:?}", pairs.finish(ctx)), format!("{expected:?}"));
        assert_eq!(ctx.memory.used(), 0);
    });
}

#[test]
fn what_is_kept_is_charged() {
    let limits = Limits { memory_bytes: 1000, ..Limits::default() };
    with_limits(&Graph::default(), limits, |ctx| {
        let mut list = Accumulator::new(K::Collect, false);
        let error = (0..1000_i64).find_map(|n| list.add(&[n.into()], ctx).err()).expect("too much");
        assert!(error.to_string().contains("over its limit of 1000:"), "{error}");
        let _ = list.finish(ctx);
        assert_eq!(ctx.memory.used(), 0);
    });
}
