//! Aggregates over no rows, nulls and mixed values, with and without DISTINCT.

use super::*;
use crate::value::Accumulator;
use tidegraph_plan::AggregateKind as K;
use tidegraph_types::Temporal;
use tidegraph_types::temporal::Duration;

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

#[test]
fn a_row_with_a_weight_is_as_good_as_equal_rows() {
    let day = || Value::Temporal(Temporal::Duration(Arc::new(Duration::new(0, 1, 0, 0).expect("a day"))));
    let numbers = vec![(Value::Int(4), 3), (Value::Null, 2), (Value::Long(9), 1), (Value::Double(0.5), 4)];
    let kinds = [
        K::CountRows,
        K::Count,
        K::Sum,
        K::Average,
        K::Min,
        K::Max,
        K::Collect,
        K::CollectAll,
        K::CollectSet,
    ];
    let durations = [K::Sum, K::Average].map(|kind| (kind, vec![(day(), 5), (day(), 2)]));
    let all = kinds.into_iter().map(|kind| (kind, numbers.clone())).chain(durations);
    for (kind, inputs) in all {
        with_context(&Graph::default(), |ctx| {
            let mut one_by_one = Accumulator::new(kind, false);
            let mut weighted = Accumulator::new(kind, false).weighted(true);
            for (value, rows) in &inputs {
                for _ in 0..*rows {
                    one_by_one.add(std::slice::from_ref(value), ctx).expect("added");
                }
                weighted.add(&[value.clone(), Value::Long(*rows)], ctx).expect("added");
            }
            let columns: Vec<Arc<Column>> = vec![
                Arc::new(Column::Values(inputs.iter().map(|(value, _)| value.clone()).collect())),
                Arc::new(Column::Values(inputs.iter().map(|(_, rows)| Value::Long(*rows)).collect())),
            ];
            let mut by_column = Accumulator::new(kind, false).weighted(true);
            by_column.add_all(&columns, inputs.len(), ctx).expect("added");
            let expected = one_by_one.finish(ctx);
            assert_eq!(weighted.finish(ctx), expected, "{kind:?}");
            assert_eq!(by_column.finish(ctx), expected, "{kind:?}");
            assert_eq!(ctx.memory.used(), 0, "{kind:?} gives memory back");
        });
    }
}

#[test]
fn weights_deviate_as_equal_rows_and_do_not_overflow() {
    with_context(&Graph::default(), |ctx| {
        let mut one_by_one = Accumulator::new(K::StdDev, false);
        let mut weighted = Accumulator::new(K::StdDev, false).weighted(true);
        for (value, rows) in [(1_i64, 3_i64), (5, 2), (7, 6)] {
            for _ in 0..rows {
                one_by_one.add(&[value.into()], ctx).expect("added");
            }
            weighted.add(&[value.into(), rows.into()], ctx).expect("added");
        }
        let (a, b) = (
            one_by_one.finish(ctx).as_f64().expect("a float"),
            weighted.finish(ctx).as_f64().expect("a float"),
        );
        assert!((a - b).abs() < 1e-12, "{a} and {b}");
        let mut count = Accumulator::new(K::CountRows, false).weighted(true);
        count.add(&[i64::MAX.into()], ctx).expect("added");
        assert!(count.add(&[1_i64.into()], ctx).expect_err("too many").to_string().contains("overflow"));
        assert!(count.add(&[0_i64.into()], ctx).is_err());
    });
}
