//! A sort with a limit reads of most rows only their first key, and yields what it yields without that.

mod support;

use std::sync::atomic::Ordering;
use support::plans::*;
use support::{Graph, rows, try_run};
use tidegraph_plan::{Arithmetic, Comparison, Expr, Op, SortKey, TotalOrder};
use tidegraph_types::Value;

/// Values of the first key: many ties, nulls, and types that are ordered one after the other.
fn key(i: usize) -> Value {
    match i * 7919 % 23 {
        0 => Value::Null,
        1 => "text".into(),
        2 => Value::Double(4.5),
        3 => Value::string("x".repeat(300)),
        n => Value::Long(n as i64),
    }
}

/// Returns a hub h with leaves l0, l1, …, half of them of the label Even, with the properties `k` (if it is not null),
/// `t`, a number without ties, and `n`, a number.
fn star(leaves: usize, key: impl Fn(usize) -> Value) -> Graph {
    let mut g = Graph::new();
    g.vertex("h", &["Hub"], &[]);
    for i in 0..leaves {
        let (id, labels) = (format!("l{i}"), if i % 2 == 0 { &["Leaf", "Even"][..] } else { &["Leaf"] });
        let number = Value::Long((i * 31 % 1_009) as i64);
        let properties = [("k", key(i)), ("t", Value::Long((i * 7_919 % 10_007) as i64)), ("n", number)];
        let properties: Vec<_> = properties.into_iter().filter(|(_, value)| !value.is_null()).collect();
        g.vertex(&id, labels, &properties);
        g.edge("h", "TO", &id);
    }
    g
}

fn leaves() -> Op {
    start().look_up(lit("h"), 0).out(0, "TO", 1)
}

fn at_most(expr: Expr, most: i64) -> Expr {
    Expr::Compare(Comparison::LessOrEqual, Box::new(expr), Box::new(lit(Value::Long(most))))
}

fn has_label(slot: u32, label: &str) -> Expr {
    Expr::HasLabels(Box::new(s(slot)), vec![label.into()])
}

fn sort(input: Op, keys: Vec<(Expr, bool)>, order: TotalOrder) -> Op {
    let keys = keys.into_iter().map(|(expr, descending)| SortKey { expr, order, descending }).collect();
    Op::Sort { input: Box::new(input), keys }
}

/// Compares a sort with limits of all sizes with the same sort without one.
fn check(g: &Graph, sorted: &Op, answer: &[u32]) {
    let all = rows(g, &plan(sorted.clone(), answer));
    for (skip, limit) in [(0, 0), (0, 1), (0, 20), (7, 20), (100, 3), (0, 900), (0, 100_000)] {
        let sliced = sorted.clone().slice(Some(skip), Some(limit));
        let (from, to) = ((skip as usize).min(all.len()), ((skip + limit) as usize).min(all.len()));
        assert_eq!(rows(g, &plan(sliced, answer)), all[from..to], "skip {skip} limit {limit}");
    }
}

#[test]
fn the_first_rows_are_those_of_the_whole_sort() {
    let g = star(3_000, key);
    let passing = Expr::And(vec![has_label(1, "Even"), at_most(prop(1, "n"), 800)]);
    let inputs = [
        leaves(),
        leaves().filter(at_most(prop(1, "n"), 800)),
        leaves().filter(passing),
        leaves().filter(has_label(1, "Even")),
        leaves().filter(Expr::Not(Box::new(has_label(1, "Even")))),
        leaves().filter(eq(prop(1, "k"), lit(Value::Long(7)))),
    ];
    for input in inputs {
        for order in [TotalOrder::OpenCypher, TotalOrder::Gremlin] {
            for descending in [false, true] {
                let keys = vec![(s(3), descending), (s(2), !descending)];
                let bound = input.clone().bind_let(2, prop(1, "t")).bind_let(3, prop(1, "k"));
                check(&g, &sort(bound, keys.clone(), order), &[2, 3]);
                let bindings =
                    vec![(tidegraph_plan::Slot(2), prop(1, "t")), (tidegraph_plan::Slot(3), prop(1, "k"))];
                let bound = Op::Let { input: Box::new(input.clone()), bindings };
                check(&g, &sort(bound, keys, order), &[2, 3]);
                let keys = vec![(prop(1, "k"), descending), (prop(1, "t"), false)];
                check(&g, &sort(input.clone(), keys, order), &[1]);
            }
        }
    }
}

#[test]
fn rows_of_several_origins_keep_their_own_first_rows() {
    let g = star(500, key);
    let inner = sort(
        leaves().filter(at_most(prop(1, "n"), 800)),
        vec![(prop(1, "k"), true), (prop(1, "t"), true)],
        TotalOrder::OpenCypher,
    );
    let all = rows(&g, &plan(inner.clone(), &[1]));
    let each = start()
        .unwind(list(&[1, 2, 3]), 5)
        .apply(inner.slice(None, Some(4)), tidegraph_plan::ApplyKind::Cross);
    let expected: Vec<String> =
        (1..=3).flat_map(|i| all[..4].iter().map(move |row| format!("{i} {row}"))).collect();
    assert_eq!(rows(&g, &plan(each, &[5, 1])), expected);
}

#[test]
fn most_rows_are_visited_once() {
    let leaves_of = 5_000;
    let g = star(leaves_of, |i| Value::Long((i * 7_919 % 10_007) as i64));
    let asked = |op: Op| {
        let before = g.elements_asked.load(Ordering::Relaxed);
        let found = rows(&g, &plan(op, &[3]));
        assert_eq!(found.len(), 20);
        g.elements_asked.load(Ordering::Relaxed) - before
    };
    let bindings = vec![(tidegraph_plan::Slot(2), prop(1, "t")), (tidegraph_plan::Slot(3), prop(1, "k"))];
    let input = leaves().filter(Expr::And(vec![has_label(1, "Leaf"), at_most(prop(1, "k"), 9_000)]));
    let bound = Op::Let { input: Box::new(input), bindings };
    let sorted = sort(bound, vec![(s(3), true), (s(2), false)], TotalOrder::OpenCypher);
    let few = asked(sorted.clone().slice(None, Some(20)));
    assert!(few < leaves_of as u64 + 500, "{few} vertices were read");
    let error = try_run(&g, &plan(sorted.slice(None, Some(-1)), &[3])).unwrap_err();
    assert!(error.to_string().starts_with("limit takes"), "{error}");
}

#[test]
fn an_error_of_a_row_that_is_not_among_the_first_is_an_error() {
    let g = star(3_000, |i| Value::Long(i as i64));
    let divided = Expr::Arithmetic(Arithmetic::Divide, Box::new(lit(Value::Long(1))), Box::new(prop(1, "n")));
    let bound = leaves().bind_let(2, divided.clone());
    let sorted = sort(bound, vec![(prop(1, "k"), true)], TotalOrder::OpenCypher);
    try_run(&g, &plan(sorted.clone(), &[2])).unwrap_err();
    try_run(&g, &plan(sorted.slice(None, Some(1)), &[2])).unwrap_err();
    let sorted = sort(leaves(), vec![(prop(1, "k"), true), (divided, false)], TotalOrder::OpenCypher);
    try_run(&g, &plan(sorted.slice(None, Some(1)), &[1])).unwrap_err();
}
