//! The pass over small plans, as text.

use super::super::testing;
use super::*;
use crate::Column;

fn scan(filter: ScanFilter, columns: &[(&str, u32)]) -> Op {
    let column =
        |(key, slot): &(&str, u32)| ScanColumn { key: (*key).into(), slot: Slot(*slot), each: false };
    let columns = columns.iter().map(column).collect();
    Op::ScanVertices { input: Box::new(Op::Argument), out: Slot(0), filter, columns }
}

fn labelled() -> ScanFilter {
    ScanFilter { labels: vec![vec!["A".into()]], ..ScanFilter::default() }
}

fn step(direction: Direction) -> CountStep {
    let labels = vec!["X".into()];
    CountStep { direction, labels, loops_once: true, condition: None, then: vec![], optional: false }
}

fn count(input: Op, from: u32, step: CountStep, except: &[u32]) -> Op {
    let except = except.iter().copied().map(Slot).collect();
    let (from, except_ends, out) = (Slot(from), vec![], Slot(10));
    Op::CountEdges { input: Box::new(input), from, step, except, except_ends, out }
}

fn aggregate(input: Op, keys: &[Expr], kind: AggregateKind, args: Vec<Expr>) -> String {
    let one =
        AggregateItem { out: Slot(9), kind, args, distinct: false, empty_is_unbound: false, weighted: false };
    let keys = keys.iter().map(|key| (Slot(8), key.clone())).collect();
    let root = Op::Aggregate { input: Box::new(input), keys, items: vec![one] };
    let columns = vec![Column { name: "n".into(), slot: Slot(9) }];
    let mut plan = Plan { root, slots: 20, columns, timeout: None, seed: None, references: false };
    run(&mut plan);
    plan.to_string()
}

fn sum_of_counter(input: Op) -> String {
    aggregate(input, &[], AggregateKind::Sum, vec![Expr::Slot(Slot(10))])
}

fn property(slot: u32, key: &str) -> Expr {
    Expr::Property(Box::new(Expr::Slot(Slot(slot))), key.into())
}

#[test]
fn properties_of_the_scan_are_grouped_and_combined() {
    let by_city = || [Expr::Slot(Slot(5))];
    let of = |kind, args| aggregate(scan(labelled(), &[("city", 5), ("x", 6)]), &by_city(), kind, args);
    let rows = "    argument\n    scan vertices $0 :A with $5 = $0.city, $6 = $0.x\n";
    assert_eq!(
        of(AggregateKind::CountRows, vec![]),
        format!(
            "group vertices in storage :A by [$20 = city] to [$21 = rows]\n  or vertex by vertex:\n{rows}    \
             let $20 = $5, $21 = 1\naggregate by [$8 = $20] to [$9 = Sum($21)]\nanswer n=$9\n"
        )
    );
    let x = || vec![Expr::Slot(Slot(6))];
    let mean = of(AggregateKind::Average, x());
    assert!(mean.contains("[$21 = sum of x, $22 = values of x]"), "{mean}");
    assert!(mean.contains("AverageOfSums($21, $22)"), "{mean}");
    // Others take each group as often as it has rows.
    let twice = Expr::Arithmetic(Arithmetic::Add, Box::new(x()[0].clone()), Box::new(x()[0].clone()));
    for (kind, arg, expected) in [
        (AggregateKind::Collect, x()[0].clone(), "Collect($21) times $22"),
        (AggregateKind::StdDev, x()[0].clone(), "StdDev($21) times $22"),
        (AggregateKind::Sum, twice.clone(), "Sum(($21 + $21)) times $22"),
        (AggregateKind::Max, twice, "Max(($21 + $21))"),
    ] {
        let text = of(kind, vec![arg]);
        assert!(text.contains("in storage :A by [$20 = city, $21 = x] to [$22 = rows]"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    // What groups do not know, or what differs each time.
    for arg in [Expr::Slot(Slot(0)), Expr::Call(crate::Function::Rand, vec![])] {
        let text = of(AggregateKind::Collect, vec![arg]);
        assert!(!text.contains("in storage"), "{text}");
    }
    // Storage counts the vertices of a scan already.
    let counted = aggregate(scan(labelled(), &[]), &[], AggregateKind::CountRows, vec![]);
    assert!(!counted.contains("group vertices"), "{counted}");
}

#[test]
fn distinct_rows_are_groups() {
    let distinct = |bindings: Vec<(Slot, Expr)>, by: &[u32], used: &[u32], limit: bool| {
        let input = scan(labelled(), &[("city", 5), ("x", 6)]);
        let input = Op::Keep { input: Box::new(input), slots: vec![Slot(5), Slot(6)] };
        let input = Op::Let { input: Box::new(input), bindings };
        let by = by.iter().map(|slot| Expr::Slot(Slot(*slot))).collect();
        let mut root = Op::Distinct { input: Box::new(input), by };
        if limit {
            root = Op::Slice { input: Box::new(root), skip: None, limit: Some(Expr::literal(3_i64)) };
        }
        let column = |slot: &u32| Column { name: "c".into(), slot: Slot(*slot) };
        let mut plan = Plan {
            root,
            slots: 20,
            columns: used.iter().map(column).collect(),
            timeout: None,
            seed: None,
            references: false,
        };
        run(&mut plan);
        plan.to_string()
    };
    let twice =
        || Expr::Arithmetic(Arithmetic::Add, Box::new(Expr::Slot(Slot(6))), Box::new(Expr::Slot(Slot(6))));
    let bindings = || vec![(Slot(7), Expr::Slot(Slot(5))), (Slot(8), twice())];
    let text = distinct(bindings(), &[7, 8], &[7, 8], false);
    assert!(
        text.starts_with("group vertices in storage :A by [$20 = city, $21 = x] to [$22 = rows]"),
        "{text}"
    );
    assert!(text.contains("let $7 = $20, $8 = ($21 + $21)\ndistinct [$7, $8]"), "{text}");
    // Another slot is used later, or few rows are.
    assert!(!distinct(bindings(), &[7], &[7, 8], false).contains("in storage"));
    assert!(!distinct(bindings(), &[7, 8], &[7, 8], true).contains("in storage"));
}

#[test]
fn two_steps_of_a_vertex_between_are_counted_there() {
    let from_start =
        |filter| count(testing::expand(scan(filter, &[]), 0, 1, 2, false), 2, step(Direction::Out), &[1]);
    let text = sum_of_counter(from_start(ScanFilter::default()));
    let expected = "group vertices in storage with <-[X]-, -[X]-> (distinct edges) by [] to [$20 = rows]\n";
    assert!(text.starts_with(expected), "{text}");
    let text = sum_of_counter(from_start(labelled()));
    let expected = "count ends in storage :A -[X]-> $2 to [$20 = edges, $21 = loops]\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("count edges $10 of $2 -[X]->\n") && text.contains("$20 * $10"), "{text}");
    assert!(text.contains("- $21"), "{text}");
    // The other way round, each edge is among those of the second step.
    let back = count(testing::expand(scan(labelled(), &[]), 0, 1, 2, false), 2, step(Direction::In), &[1]);
    let text = sum_of_counter(back);
    assert!(text.contains("- $20"), "{text}");
    // A label of the last vertex is that of the first, if both are one.
    let to_label = |label: &str| {
        let test = Expr::HasLabels(Box::new(Expr::Slot(Slot(12))), vec![label.into()]);
        let tested = CountStep { condition: Some((Slot(12), Box::new(test))), ..step(Direction::Out) };
        let input = testing::expand(scan(labelled(), &[]), 0, 1, 2, false);
        sum_of_counter(count(input, 2, tested, &[1]))
    };
    let text = to_label("A");
    assert!(text.contains("count edges $10 of $2 -[X]-> ($12:A)\n") && text.contains("- $21"), "{text}");
    assert!(!to_label("B").contains("in storage"));
    // Which of the edges of an undirected step come back is not known.
    let both = count(testing::expand(scan(labelled(), &[]), 0, 1, 2, false), 2, step(Direction::Both), &[1]);
    assert!(!sum_of_counter(both).contains("in storage"));
}

#[test]
fn a_tree_of_steps_begins_with_ends() {
    let then = vec![step(Direction::Out), step(Direction::In)];
    let test = Expr::HasLabels(Box::new(Expr::Slot(Slot(12))), vec!["B".into()]);
    let condition = Some((Slot(12), Box::new(test)));
    let tree = CountStep { condition, then, ..step(Direction::Out) };
    let text = sum_of_counter(count(scan(labelled(), &[]), 0, tree.clone(), &[]));
    assert!(text.starts_with("count ends in storage :A -[X]-> $12 to ["), "{text}");
    assert!(
        text.contains("filter $12:B\ncount edges $20 of $12 -[X]->\ncount edges $21 of $12 <-[X]-"),
        "{text}"
    );
    // Any vertex may be the start, so that the vertex between knows all.
    let text = sum_of_counter(count(scan(ScanFilter::default(), &[]), 0, tree, &[]));
    let expected = "group vertices in storage :B with <-[X]-, -[X]->, <-[X]- by [] to [$20 = rows]\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn ends_are_grouped_by_what_they_are() {
    let rows = || testing::expand(scan(labelled(), &[]), 0, 1, 2, false);
    let by_age = [property(2, "age")];
    let text = aggregate(rows(), &by_age, AggregateKind::CountRows, vec![]);
    assert!(text.starts_with("count ends in storage :A -[X]-> $2 to [$20 = edges"), "{text}");
    assert!(text.contains("aggregate by [$8 = $2.age] to [$9 = Sum($20)]"), "{text}");
    // Other aggregates take the value of an end as often as edges lead there.
    for kind in [AggregateKind::Sum, AggregateKind::Average, AggregateKind::Collect, AggregateKind::StdDev] {
        let text = aggregate(rows(), &by_age, kind, vec![property(2, "x")]);
        assert!(text.contains("count ends in storage") && text.contains("($2.x) times $20]"), "{text}");
    }
    for arg in [property(0, "x"), Expr::Call(crate::Function::Rand, vec![])] {
        let text = aggregate(rows(), &by_age, AggregateKind::Sum, vec![arg]);
        assert!(!text.contains("count ends in storage"), "{text}");
    }
    // A key of the start needs its rows, and so does an edge.
    for key in [property(0, "age"), property(1, "age")] {
        let keys = [property(2, "age"), key];
        assert!(!aggregate(rows(), &keys, AggregateKind::CountRows, vec![]).contains("in storage"));
    }
    // From the other end.
    let test = Expr::HasLabels(Box::new(Expr::Slot(Slot(12))), vec!["B".into()]);
    let tested = CountStep { condition: Some((Slot(12), Box::new(test))), ..step(Direction::In) };
    let input = count(scan(ScanFilter::default(), &[("age", 5)]), 0, tested, &[]);
    let text = aggregate(input, &[Expr::Slot(Slot(5))], AggregateKind::Sum, vec![Expr::Slot(Slot(10))]);
    assert!(text.starts_with("count ends in storage :B -[X]-> $0 to ["), "{text}");
    assert!(text.contains("let $5 = $0.age\n"), "{text}");
}

#[test]
fn one_edge_is_as_good_as_its_number() {
    let joined = |plan, kind| {
        let input = Box::new(scan(labelled(), &[]));
        let root = Op::Apply { input, plan: Box::new(plan), kind };
        let mut plan =
            Plan { root, slots: 20, columns: vec![], timeout: None, seed: None, references: false };
        run(&mut plan);
        plan.to_string()
    };
    let step = || testing::expand(Op::Argument, 0, 1, 2, false);
    let text = joined(step(), ApplyKind::Semi);
    assert_eq!(text, "scan vertices $0 :A\ncount edges $20 of $0 -[X]->\n");
    let text = joined(step(), ApplyKind::Anti);
    assert!(text.contains("$20 = 0") && !text.contains("apply anti"), "{text}");
    assert!(joined(testing::unused(step(), 1, &[3]), ApplyKind::Anti).contains("apply anti"));
    assert!(joined(testing::unused(step(), 1, &[3]), ApplyKind::Semi).contains("apply semi"));
    assert!(joined(testing::expand(Op::Argument, 0, 1, 2, true), ApplyKind::Semi).contains("apply semi"));
}
