//! Reading operators, alone and in subplans, on a small graph.

mod support;

use std::sync::atomic::Ordering;
use support::plans::*;
use support::{Graph, rows, sorted, try_run};
use tidegraph_plan::{AggregateKind, ApplyKind, BindKind, Expr, Function, Op, RepeatTest, ScanTest, Slot};
use tidegraph_types::{Direction, Value};

/// Returns a→b→c→d along KNOWS with ages 1 to 4, a→c along LIKES, d→d along LIKES, and x, a Cat without
/// edges.
fn graph() -> Graph {
    let mut g = Graph::new();
    for (id, age) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        g.vertex(id, &["Person"], &[("age", age.into()), ("name", id.into())]);
    }
    g.vertex("x", &["Cat", "Animal"], &[("name", "x".into())]);
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d")] {
        g.edge_with(from, "KNOWS", to, None, &[("since", 7.into())]);
    }
    g.edge_with("a", "LIKES", "c", Some("likes"), &[]);
    g.edge("d", "LIKES", "d");
    g
}

/// Returns a hub with `leaves` leaves, named h and l0, l1, …
fn star(leaves: usize) -> Graph {
    let mut g = Graph::new();
    g.vertex("h", &["Hub"], &[]);
    for i in 0..leaves {
        g.vertex(&format!("l{i}"), &["Leaf"], &[("n", (i as i32).into())]);
        g.edge("h", "TO", &format!("l{i}"));
    }
    g
}

fn numbers(items: &[i32]) -> Op {
    start().unwind(list(items), 0)
}

fn all_ids() -> Op {
    start().look_up(Expr::List(["a", "b", "c", "d", "x"].map(lit).to_vec()), 0)
}

#[test]
fn an_argument_at_the_root_is_one_empty_row() {
    assert_eq!(rows(&graph(), &plan(start(), &[0])), ["null"]);
}

#[test]
fn scans_filter_by_labels_and_properties() {
    let g = graph();
    assert_eq!(sorted(&g, &plan(start().scan(0, &[]), &[0])), ["a", "b", "c", "d", "x"]);
    assert_eq!(sorted(&g, &plan(start().scan(0, &["Cat", "Animal"]), &[0])), ["x"]);
    assert_eq!(rows(&g, &plan(start().scan(0, &["Cat", "Person"]), &[0])).len(), 0);
    assert_eq!(rows(&g, &plan(start().scan(0, &["Nobody"]), &[0])).len(), 0);
    let test = |test| sorted(&g, &plan(start().scan_where(0, &["Person"], "age", test), &[0]));
    assert_eq!(test(ScanTest::Equals(lit(2.0))), ["b"]);
    assert_eq!(test(ScanTest::Within(list(&[1, 4, 9]))), ["a", "d"]);
    assert_eq!(test(ScanTest::Range { low: Some((lit(2), false)), high: None }), ["c", "d"]);
    assert_eq!(test(ScanTest::Exists).len(), 4);
    assert_eq!(test(ScanTest::Equals(lit(Value::Null))).len(), 0);
    assert_eq!(test(ScanTest::Equals(list(&[1]))).len(), 4, "storage cannot tell, a filter above does");
}

#[test]
fn scan_operands_may_use_the_outer_row() {
    let op = start().unwind(list(&[3, 1, 9]), 1).scan_where(0, &["Person"], "age", ScanTest::Equals(s(1)));
    assert_eq!(rows(&graph(), &plan(op, &[1, 0])), ["3 c", "1 a"]);
}

#[test]
fn a_product_of_scans_reads_the_second_once() {
    let g = star(50);
    let plan = plan(start().scan(0, &["Leaf"]).scan(1, &["Leaf"]).count(2), &[2]);
    assert_eq!(rows(&g, &plan), ["2500"]);
    assert_eq!(g.rows_read.load(Ordering::Relaxed), 100);
}

#[test]
fn edges_are_scanned_by_label() {
    let g = graph();
    assert_eq!(sorted(&g, &plan(start().scan_edges(0, &["LIKES"]), &[0])), ["a-LIKES->c", "d-LIKES->d"]);
    assert_eq!(rows(&g, &plan(start().scan_edges(0, &[]), &[0])).len(), 5);
    assert_eq!(rows(&g, &plan(start().scan_edges(0, &["NEVER"]), &[0])).len(), 0);
}

#[test]
fn lookups_take_ids_lists_elements_and_numbers() {
    let mut g = graph();
    g.vertex("7", &[], &[]);
    let ids =
        Expr::List(vec![lit("b"), lit("nobody"), lit(7), lit(Value::Null), lit(Value::Vertex(g.gui("a")))]);
    assert_eq!(rows(&g, &plan(start().look_up(ids, 0), &[0])), ["b", "7", "a"]);
    assert_eq!(rows(&g, &plan(start().look_up_edges(lit("likes"), 0), &[0])), ["a-LIKES->c"]);
    let error = try_run(&g, &plan(start().look_up(lit(true), 0), &[0])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "looking up vertices takes an id, a vertex or a list of them, not true (boolean)"
    );
}

#[test]
fn expand_follows_labels_and_directions() {
    let g = graph();
    let step = |direction, labels: &[&str]| {
        sorted(
            &g,
            &plan(start().look_up(lit("c"), 0).expand(0, direction, labels, Some(2), 1, false), &[1, 2]),
        )
    };
    assert_eq!(step(Direction::Out, &[]), ["d c-KNOWS->d"]);
    assert_eq!(step(Direction::In, &[]), ["a a-LIKES->c", "b b-KNOWS->c"]);
    assert_eq!(step(Direction::Both, &["KNOWS"]), ["b b-KNOWS->c", "d c-KNOWS->d"]);
    assert_eq!(step(Direction::Both, &["NEVER"]).len(), 0);
}

#[test]
fn labels_that_edges_imply_are_not_read() {
    let mut g = star(50);
    let asked = |g: &Graph, label: &str| {
        let before = g.elements_asked.load(Ordering::Relaxed);
        let labelled = Expr::HasLabels(Box::new(s(1)), vec![label.into()]);
        let ends = start().scan(0, &["Hub"]).expand(0, Direction::Out, &["TO"], None, 1, false);
        let count = vec![item(2, AggregateKind::CountRows, vec![])];
        let found = rows(g, &plan(ends.filter(labelled).aggregate(vec![], count), &[2]));
        (found[0].clone(), g.elements_asked.load(Ordering::Relaxed) - before)
    };
    assert_eq!(asked(&g, "Leaf"), ("50".into(), 0), "every edge leads to a leaf");
    assert_eq!(asked(&g, "Hub"), ("0".into(), 50));
    g.vertex("x", &["Cat"], &[]);
    g.edge("h", "TO", "x");
    assert_eq!(asked(&g, "Leaf"), ("50".into(), 51), "one edge does not");
}

#[test]
fn a_loop_comes_once_or_twice() {
    let g = graph();
    for (loops_once, times) in [(true, 1), (false, 2)] {
        let mut op = start().look_up(lit("d"), 0).expand(0, Direction::Both, &["LIKES"], None, 1, false);
        if let Op::Expand { loops_once: once, .. } = &mut op {
            *once = loops_once;
        }
        assert_eq!(rows(&g, &plan(op, &[1])).len(), times);
    }
}

#[test]
fn expand_into_checks_the_other_end() {
    let g = graph();
    let op = all_ids().look_up(lit("c"), 1).expand(0, Direction::Out, &[], None, 1, true);
    assert_eq!(rows(&g, &plan(op, &[0])), ["a", "b"]);
}

#[test]
fn expand_of_null_yields_nothing_and_of_a_number_is_an_error() {
    let g = graph();
    assert_eq!(rows(&g, &plan(start().bind_let(0, lit(Value::Null)).out(0, "", 1), &[1])).len(), 0);
    let error = try_run(&g, &plan(numbers(&[3]).out(0, "", 1), &[1])).unwrap_err();
    assert_eq!(error.to_string(), "following an edge takes a vertex, not 3 (int)");
    assert_eq!(error.code(), tidegraph_types::ErrorCode::InvalidArgument);
}

#[test]
fn expand_keeps_only_the_slots_that_are_used() {
    let mut op = start().look_up(lit("a"), 0).bind_let(3, lit(1)).out(0, "KNOWS", 1);
    if let Op::Expand { keep, .. } = &mut op {
        *keep = Some(vec![Slot(0)]);
    }
    assert_eq!(rows(&graph(), &plan(op, &[0, 1, 3])), ["a b null"]);
}

#[test]
fn a_limit_on_a_hub_reads_little() {
    let g = star(5000);
    let op = start().look_up(lit("h"), 0).out(0, "TO", 1).slice(None, Some(1));
    assert_eq!(rows(&g, &plan(op, &[1])), ["l0"]);
    assert_eq!(g.rows_read.load(Ordering::Relaxed), 1);
}

#[test]
fn a_hub_is_read_in_pieces_to_its_end() {
    let g = star(5000);
    let op = start().look_up(lit("h"), 0).expand(0, Direction::Out, &["TO"], Some(2), 1, false).count(3);
    assert_eq!(rows(&g, &plan(op, &[3])), ["5000"]);
    let leaves = start().look_up(lit("h"), 0).out(0, "TO", 1).filter(lt(prop(1, "n"), lit(3)));
    assert_eq!(rows(&g, &plan(leaves, &[1])), ["l0", "l1", "l2"]);
}

#[test]
fn rows_are_filtered_bound_kept_and_unwound() {
    let g = graph();
    let op = numbers(&[1, 2, 3]).filter(lt(s(0), lit(3)));
    assert_eq!(rows(&g, &plan(op, &[0])), ["1", "2"]);
    let bindings = vec![(Slot(1), add(s(0), lit(1))), (Slot(2), add(s(1), lit(1))), (Slot(1), lit(9))];
    let op = Op::Let { input: Box::new(numbers(&[1])), bindings };
    assert_eq!(rows(&g, &plan(op, &[0, 1, 2])), ["1 9 3"]);
    assert_eq!(rows(&g, &plan(numbers(&[1]).bind_let(1, lit(2)).keep(&[1]), &[0, 1])), ["null 2"]);
    assert_eq!(rows(&g, &plan(start().unwind(lit(5), 0), &[0])), ["5"]);
    assert_eq!(rows(&g, &plan(start().unwind(lit(Value::Null), 0), &[0])).len(), 0);
    let long: Vec<i32> = (0..3000).collect();
    assert_eq!(rows(&g, &plan(start().unwind(list(&long), 0), &[0])).len(), 3000);
}

#[test]
fn aggregates_group_by_keys() {
    let g = graph();
    let keys =
        vec![(1, Expr::Arithmetic(tidegraph_plan::Arithmetic::Modulo, Box::new(s(0)), Box::new(lit(2))))];
    let items = vec![
        item(2, AggregateKind::CountRows, vec![]),
        item(3, AggregateKind::Sum, vec![s(0)]),
        item(4, AggregateKind::Collect, vec![s(0)]),
    ];
    let op = numbers(&[1, 2, 3, 5]).aggregate(keys, items);
    assert_eq!(rows(&g, &plan(op, &[1, 2, 3, 4, 0])), ["1 3 9 [1, 3, 5] null", "0 1 2 [2] null"]);
}

#[test]
fn an_aggregate_of_nothing_is_one_row_or_none() {
    let g = graph();
    let items = || vec![item(1, AggregateKind::CountRows, vec![]), item(2, AggregateKind::Sum, vec![s(0)])];
    assert_eq!(rows(&g, &plan(numbers(&[]).aggregate(vec![], items()), &[1, 2])), ["0 0"]);
    assert_eq!(rows(&g, &plan(numbers(&[]).aggregate(vec![(3, s(0))], items()), &[1])).len(), 0);
    let mut gremlin = items();
    gremlin[1].empty_is_unbound = true;
    assert_eq!(rows(&g, &plan(numbers(&[]).aggregate(vec![], gremlin.clone()), &[1])).len(), 0);
    assert_eq!(rows(&g, &plan(numbers(&[4]).aggregate(vec![], gremlin), &[1, 2])), ["1 4"]);
}

#[test]
fn distinct_keeps_the_first_of_equivalent_rows() {
    let g = graph();
    let values = vec![1.into(), Value::Double(1.0), Value::Null, Value::Null, "1".into()];
    let op = start().unwind(lit(Value::list(values)), 0).distinct(vec![s(0)]);
    assert_eq!(rows(&g, &plan(op, &[0])), ["1", "null", "1"]);
    let op = all_ids().expand(0, Direction::Both, &[], None, 1, false).distinct(vec![s(1)]);
    assert_eq!(sorted(&g, &plan(op, &[1])), ["a", "b", "c", "d"]);
}

#[test]
fn sort_is_stable_and_total() {
    let g = graph();
    let op = start().unwind(lit(Value::list(vec![2.into(), Value::Null, "z".into(), 1.into()])), 0);
    assert_eq!(rows(&g, &plan(op.clone().sort(s(0), false), &[0])), ["z", "1", "2", "null"]);
    assert_eq!(rows(&g, &plan(op.clone().sort(s(0), true), &[0])), ["null", "2", "1", "z"]);
    assert_eq!(rows(&g, &plan(op.sort(lit(1), true), &[0])), ["2", "null", "z", "1"]);
}

#[test]
fn sort_with_a_slice_above_keeps_only_the_top() {
    let g = graph();
    let many: Vec<i32> = (0..20_000).map(|i| (i * 7919) % 20_011).collect();
    let mut expected = many.clone();
    expected.sort_unstable();
    let op = numbers(&many).sort(s(0), false).slice(Some(2), Some(3));
    let expected: Vec<String> = expected[2..5].iter().map(i32::to_string).collect();
    assert_eq!(rows(&g, &plan(op, &[0])), expected);
}

#[test]
fn slices_and_tails() {
    let g = graph();
    let of = |op: Op| rows(&g, &plan(op, &[0])).join(" ");
    let n = || numbers(&[1, 2, 3, 4, 5]);
    assert_eq!(of(n().slice(Some(1), Some(2))), "2 3");
    assert_eq!(of(n().slice(Some(4), None)), "5");
    assert_eq!(of(n().slice(None, Some(0))), "");
    assert_eq!(of(n().tail(2)), "4 5");
    assert_eq!(of(n().tail(0)), "");
    let error = try_run(&g, &plan(n().slice(None, Some(-1)), &[0])).unwrap_err();
    assert_eq!(error.to_string(), "limit takes an integer that is not negative, not -1 (int)");
}

#[test]
fn eager_hands_on_what_it_read() {
    assert_eq!(rows(&graph(), &plan(numbers(&[1, 2]).eager(), &[0])), ["1", "2"]);
}

#[test]
fn apply_crosses_and_keeps_the_outer_order() {
    let g = graph();
    let op = all_ids().apply(start().out(0, "", 1), ApplyKind::Cross);
    assert_eq!(rows(&g, &plan(op, &[0, 1])), ["a b", "a c", "b c", "c d", "d d"]);
}

#[test]
fn optional_apply_keeps_rows_without_a_match_in_their_place() {
    let g = graph();
    let op = start().look_up(Expr::List(["x", "a", "x", "b", "x"].map(lit).to_vec()), 0);
    let op = op.optional(start().out(0, "KNOWS", 1), &[1]);
    assert_eq!(rows(&g, &plan(op, &[0, 1])), ["x null", "a b", "x null", "b c", "x null"]);
    let walks = all_ids().optional(start().var(0, Direction::Out, 2, Some(2), 2, 1), &[1, 2]);
    assert_eq!(sorted(&g, &plan(walks, &[0, 1])), ["a c", "a d", "b d", "c d", "d null", "x null"]);
}

#[test]
fn semi_anti_and_discard() {
    let g = graph();
    let likes = || start().out(0, "LIKES", 1);
    assert_eq!(rows(&g, &plan(all_ids().apply(likes(), ApplyKind::Semi), &[0])), ["a", "d"]);
    assert_eq!(rows(&g, &plan(all_ids().apply(likes(), ApplyKind::Anti), &[0])), ["b", "c", "x"]);
    assert_eq!(rows(&g, &plan(all_ids().apply(likes(), ApplyKind::Discard), &[0])).len(), 5);
}

#[test]
fn a_test_for_existence_leaves_a_hub_early() {
    let g = star(5000);
    let op = start().scan(0, &["Hub"]).apply(start().out(0, "TO", 1), ApplyKind::Semi);
    assert_eq!(rows(&g, &plan(op, &[0])), ["h"]);
    assert!(g.rows_read.load(Ordering::Relaxed) < 100);
}

#[test]
fn bind_tests_takes_collects_and_counts() {
    let g = graph();
    let of = |kind| rows(&g, &plan(all_ids().bind(start().out(0, "", 1), 2, kind), &[0, 2]));
    assert_eq!(of(BindKind::Exists), ["a true", "b true", "c true", "d true", "x false"]);
    assert_eq!(of(BindKind::First(Slot(1))), ["a b", "b c", "c d", "d d", "x null"]);
    assert_eq!(of(BindKind::Collect(Slot(1))), ["a [b, c]", "b [c]", "c [d]", "d [d]", "x []"]);
    assert_eq!(of(BindKind::Count), ["a 2", "b 1", "c 1", "d 1", "x 0"]);
    let filtered = start().out(0, "", 1).filter(lt(prop(1, "age"), lit(3)));
    let counted = all_ids().bind(filtered, 2, BindKind::Count);
    assert_eq!(rows(&g, &plan(counted, &[0, 2])), ["a 1", "b 0", "c 0", "d 0", "x 0"]);
}

#[test]
fn state_in_a_subplan_is_per_outer_row() {
    let g = graph();
    let of = |sub: Op| rows(&g, &plan(all_ids().apply(sub, ApplyKind::Cross), &[0, 1]));
    let step = || start().expand(0, Direction::Both, &[], None, 1, false);
    assert_eq!(of(step().slice(None, Some(1))).len(), 4);
    assert_eq!(of(step().tail(1)).len(), 4);
    assert_eq!(
        of(step().distinct(vec![s(1)])),
        ["a b", "a c", "b a", "b c", "c b", "c d", "c a", "d c", "d d"]
    );
    assert_eq!(of(step().sort(prop(1, "age"), true).slice(None, Some(1))), ["a c", "b c", "c d", "d d"]);
    let counted = all_ids().bind(step().count(3), 4, BindKind::First(Slot(3)));
    assert_eq!(rows(&g, &plan(counted, &[0, 4])), ["a 2", "b 2", "c 3", "d 2", "x 0"]);
    let grouped =
        step().aggregate(vec![(5, prop(1, "age"))], vec![item(3, AggregateKind::CountRows, vec![])]);
    let op = all_ids().bind(grouped, 4, BindKind::Count);
    assert_eq!(rows(&g, &plan(op, &[0, 4])), ["a 2", "b 2", "c 3", "d 2", "x 0"]);
}

#[test]
fn subplans_nest() {
    let g = graph();
    let inner = start().out(1, "", 2).slice(None, Some(1));
    let outer = start().out(0, "", 1).apply(inner, ApplyKind::Cross).slice(None, Some(1));
    let op = all_ids().apply(outer, ApplyKind::Cross);
    assert_eq!(rows(&g, &plan(op, &[0, 1, 2])), ["a b c", "b c d", "c d d", "d d d"]);
}

#[test]
fn union_yields_for_each_row_in_branch_order() {
    let g = graph();
    let op = start().look_up(Expr::List(vec![lit("b"), lit("c")]), 0).union(vec![
        start().out(0, "", 1),
        start().expand(0, Direction::In, &[], None, 1, false),
        start().bind_let(1, s(0)),
    ]);
    assert_eq!(rows(&g, &plan(op, &[0, 1])), ["b c", "b a", "b b", "c d", "c b", "c a", "c c"]);
    let single = start().look_up(lit("b"), 0).union(vec![start(), start()]);
    assert_eq!(rows(&g, &plan(single, &[0])), ["b", "b"]);
}

#[test]
fn coalesce_takes_the_first_branch_with_rows() {
    let g = graph();
    let op = all_ids().coalesce(vec![
        start().out(0, "LIKES", 1),
        start().out(0, "KNOWS", 1),
        start().bind_let(1, lit("none")),
    ]);
    assert_eq!(rows(&g, &plan(op, &[0, 1])), ["a c", "b c", "c d", "d d", "x none"]);
}

#[test]
fn choose_takes_the_first_branch_that_holds() {
    let g = graph();
    let age = |n| eq(prop(0, "age"), lit(n));
    let branches = || vec![(age(2), start().bind_let(1, lit("two"))), (lit(true), start().out(0, "", 1))];
    let op = all_ids().choose(branches(), None);
    assert_eq!(rows(&g, &plan(op, &[0, 1])), ["a b", "a c", "b two", "c d", "d d"]);
    let mut some = branches();
    some.truncate(1);
    assert_eq!(rows(&g, &plan(all_ids().choose(some.clone(), None), &[0])), ["b"]);
    let op = all_ids().choose(some, Some(start()));
    assert_eq!(rows(&g, &plan(op, &[0, 1])), ["a null", "b two", "c null", "d null", "x null"]);
}

#[test]
fn a_condition_of_a_later_branch_is_not_computed_for_rows_that_are_taken() {
    let zero = Expr::Arithmetic(tidegraph_plan::Arithmetic::Divide, Box::new(lit(1)), Box::new(s(0)));
    let op = numbers(&[0, 1]).choose(
        vec![(eq(s(0), lit(0)), start().bind_let(1, lit("zero"))), (eq(zero, lit(1)), start())],
        None,
    );
    assert_eq!(rows(&graph(), &plan(op, &[0, 1])), ["0 zero", "1 null"]);
}

struct Loop {
    until: Option<RepeatTest>,
    emit: Option<RepeatTest>,
    times: Option<i32>,
    times_before: bool,
}

const LOOP: Loop = Loop { until: None, emit: None, times: None, times_before: false };

fn test(before: bool, plan: Op) -> Option<RepeatTest> {
    Some(RepeatTest { before, plan: Box::new(plan) })
}

/// Repeats a step along KNOWS from a; the step updates slot 0.
fn repeat(of: Loop, body: Op) -> Op {
    Op::Repeat {
        input: Box::new(start().look_up(lit("a"), 0)),
        body: Box::new(body),
        until: of.until,
        emit: of.emit,
        times: of.times.map(lit),
        times_before: of.times_before,
        loops: Slot(9),
    }
}

fn step() -> Op {
    start().out(0, "KNOWS", 1).bind_let(0, s(1))
}

#[test]
fn repeat_times_and_until() {
    let g = graph();
    let of = |l: Loop| rows(&g, &plan(repeat(l, step()), &[0, 9])).join(", ");
    assert_eq!(of(Loop { times: Some(2), ..LOOP }), "c 2");
    assert_eq!(of(Loop { times: Some(0), ..LOOP }), "b 1");
    assert_eq!(of(Loop { times: Some(0), times_before: true, ..LOOP }), "a 0");
    assert_eq!(of(Loop { times: Some(9), ..LOOP }), "");
    let is = |name: &str| start().filter(eq(prop(0, "name"), lit(name)));
    assert_eq!(of(Loop { until: test(false, is("c")), ..LOOP }), "c 2");
    assert_eq!(of(Loop { until: test(true, is("a")), ..LOOP }), "a 0");
    assert_eq!(of(Loop { until: test(false, is("a")), ..LOOP }), "");
    let deep = start().filter(eq(s(9), lit(3)));
    assert_eq!(of(Loop { until: test(false, deep), ..LOOP }), "d 3");
}

#[test]
fn repeat_emits_before_and_after() {
    let g = graph();
    let of = |l: Loop| rows(&g, &plan(repeat(l, step()), &[0])).join(" ");
    assert_eq!(of(Loop { emit: test(false, start()), ..LOOP }), "b c d");
    assert_eq!(of(Loop { emit: test(true, start()), ..LOOP }), "a b c d");
    assert_eq!(of(Loop { emit: test(false, start()), times: Some(2), ..LOOP }), "b c");
    assert_eq!(of(Loop { emit: test(true, start()), times: Some(2), ..LOOP }), "a b c");
    let odd = start().filter(eq(prop(0, "age"), lit(3)));
    assert_eq!(of(Loop { emit: test(false, odd), ..LOOP }), "c");
}

#[test]
fn state_in_a_repeat_body_lasts_over_rounds() {
    let g = graph();
    let both = start().expand(0, Direction::Both, &[], None, 1, false).bind_let(0, s(1));
    let l = Loop { emit: test(true, start()), ..LOOP };
    let op = repeat(l, both.distinct(vec![s(0)]));
    // The operator remembers earlier rounds; otherwise this would never end. It reaches the start once more.
    assert_eq!(sorted(&g, &plan(op, &[0])), ["a", "a", "b", "c", "d"]);
}

#[test]
fn repeat_in_a_subplan_is_per_outer_row() {
    let g = graph();
    let body = start().expand(0, Direction::Both, &[], None, 1, false).bind_let(0, s(1)).distinct(vec![s(0)]);
    let op = repeat(Loop { emit: test(false, start()), ..LOOP }, body);
    let Op::Repeat { body, until, emit, times, times_before, loops, .. } = op else { panic!() };
    let sub = Op::Repeat { input: Box::new(start()), body, until, emit, times, times_before, loops };
    let op = all_ids().bind(sub, 5, BindKind::Count);
    assert_eq!(rows(&g, &plan(op, &[0, 5])), ["a 4", "b 4", "c 4", "d 4", "x 0"]);
}

#[test]
fn answers_hold_data_and_unbound_is_null() {
    let g = graph();
    let op = start().look_up(lit("x"), 0).bind_let(1, Expr::Call(Function::Labels, vec![s(0)]));
    let (rows, outcome) = try_run(&g, &plan(op, &[0, 1, 7])).unwrap();
    assert!(matches!(&rows[0][0], Value::VertexData(v) if v.id == "x" && v.properties.len() == 1));
    assert_eq!(rows[0][1], Value::list(vec!["Cat".into(), "Animal".into()]));
    assert!(matches!(rows[0][2], Value::Null));
    assert!(outcome.commit.is_none());
}
