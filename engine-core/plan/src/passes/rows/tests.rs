//! Tests of the estimates of vertices whose labels the query does not name.

use super::*;
use crate::passes::implied;
use crate::{AggregateItem, Limits};
use std::ops::Range;
use tidegraph_apl::{Catalog, DegreeStatistics, Error, Statistics};
use tidegraph_types::Token;

const NAMES: [&str; 5] = ["Person", "Forum", "Post", "KNOWS", "HAS_MEMBER"];

struct Names;

impl Catalog for Names {
    fn token(&self, name: &str) -> Option<Token> {
        NAMES.iter().position(|known| *known == name).map(|at| Token(at as u32))
    }
    fn name(&self, token: Token) -> Str {
        NAMES[token.0 as usize].into()
    }
    fn intern(&self, _: &[Str]) -> Result<Vec<Token>, Error> {
        Err(Error::Unavailable("read only".into()))
    }
    fn allocate_sids(&self, _: u64) -> Result<Range<u64>, Error> {
        Err(Error::Unavailable("read only".into()))
    }
}

/// 100 people, each of whom knows 10 others and is a member of 50 of 1,000 forums, beside 98,900 posts.
fn statistics() -> Statistics {
    let degrees = |vertex, edge, outgoing, vertices, edges| DegreeStatistics {
        vertex_label: Some(Token(vertex)),
        edge_label: Token(edge),
        outgoing,
        vertices,
        edges,
        histogram: vec![vertices],
    };
    Statistics {
        vertices: 100_000,
        edges: 6_000,
        vertices_by_label: vec![(Token(0), 100), (Token(1), 1_000), (Token(2), 98_900)],
        edges_by_label: vec![(Token(3), 1_000), (Token(4), 5_000)],
        degrees: vec![
            degrees(0, 3, false, 100, 1_000),
            degrees(0, 3, true, 100, 1_000),
            degrees(0, 4, false, 100, 5_000),
            degrees(1, 4, true, 1_000, 5_000),
        ],
        ..Statistics::default()
    }
}

fn with_knowledge<R>(test: impl FnOnce(&Knowledge<'_>) -> R) -> R {
    let (statistics, limits) = (statistics(), Limits::none());
    test(&Knowledge {
        statistics: &statistics,
        catalog: &Names,
        instances: None,
        lessons: None,
        limits: &limits,
        is_far: false,
    })
}

fn expand(input: Op, from: u32, label: &str, direction: Direction, to: u32) -> Op {
    Op::Expand {
        input: Box::new(input),
        from: Slot(from),
        direction,
        labels: vec![label.into()],
        edge: None,
        to: Some(Slot(to)),
        into: false,
        loops_once: true,
        keep: None,
    }
}

/// The friends of a person, and the friends of these.
fn friends() -> Op {
    let filter = ScanFilter { labels: vec![vec!["Person".into()]], ..ScanFilter::default() };
    let person = Op::ScanVertices { input: Box::new(Op::Argument), out: Slot(0), filter, columns: vec![] };
    let one = Op::Slice { input: Box::new(person), skip: None, limit: Some(Expr::literal(1_i64)) };
    Op::VarExpand {
        input: Box::new(one),
        from: Slot(0),
        direction: Direction::Both,
        labels: vec!["KNOWS".into()],
        length: Length { min: 1, max: Some(2) },
        edges: None,
        to: Slot(1),
        into: false,
        edge_filter: None,
        exclude: vec![],
        ends_only: true,
    }
}

/// The friends as a list in `$2`, unwound to `$3`.
fn listed() -> Op {
    let item = AggregateItem {
        out: Slot(2),
        kind: AggregateKind::Collect,
        args: vec![Expr::Slot(Slot(1))],
        distinct: true,
        empty_is_unbound: false,
        weighted: false,
    };
    let keys = vec![(Slot(0), Expr::Slot(Slot(0)))];
    let list = Op::Aggregate { input: Box::new(friends()), keys, items: vec![item] };
    Op::Unwind { input: Box::new(list), list: Expr::Slot(Slot(2)), out: Slot(3) }
}

fn estimated(root: Op) -> f64 {
    let plan = Plan { root, slots: 9, columns: vec![], timeout: None, seed: None, references: false };
    with_knowledge(|knowledge| EstimatedRows::of(&plan, knowledge).get(&plan.root).unwrap())
}

#[test]
fn edges_tell_the_labels_of_their_ends() {
    // No more ends than there are people, though there are more walks.
    assert!((estimated(friends()) - 100.0).abs() < 1.0);
    let forums = estimated(expand(friends(), 1, "HAS_MEMBER", Direction::In, 4));
    assert!((forums - 5_000.0).abs() < 50.0, "{forums}");
    let through_a_list = estimated(expand(listed(), 3, "HAS_MEMBER", Direction::In, 4));
    assert!((through_a_list - 5_000.0).abs() < 50.0, "{through_a_list}");
}

#[test]
fn groups_are_no_more_than_the_rows_that_bound_their_key() {
    let one =
        Op::Let { input: Box::new(Op::Argument), bindings: vec![(Slot(6), Expr::Parameter("x".into()))] };
    let list = Expr::Call(Function::Range, vec![Expr::literal(1_i64), Expr::literal(500_i64)]);
    let rows = Op::Unwind { input: Box::new(one), list, out: Slot(7) };
    let keys = vec![(Slot(6), Expr::Slot(Slot(6)))];
    assert!((estimated(rows.clone()) - 500.0).abs() < 1.0);
    assert!((estimated(Op::Aggregate { input: Box::new(rows), keys, items: vec![] }) - 1.0).abs() < 0.1);
}

#[test]
fn a_slot_that_branches_bind_has_the_values_of_all_of_them() {
    let numbers = |last: i64| {
        let list = Expr::Call(Function::Range, vec![Expr::literal(1_i64), Expr::literal(last)]);
        Op::Unwind { input: Box::new(Op::Argument), list, out: Slot(7) }
    };
    let union = Op::Union { input: Box::new(Op::Argument), branches: vec![numbers(500), numbers(10)] };
    let grouped = |input| Op::Aggregate {
        input: Box::new(input),
        keys: vec![(Slot(7), Expr::Slot(Slot(7)))],
        items: vec![],
    };
    assert!((estimated(union.clone()) - 510.0).abs() < 1.0);
    assert!(estimated(grouped(union)) > estimated(grouped(numbers(10))));
}

#[test]
fn labels_are_found_below_lists_and_copies() {
    let labels = |op: &Op, slot| with_knowledge(|k| implied::labels(op, Slot(slot), &Estimate::new(k)));
    assert_eq!(labels(&friends(), 0), ["Person"]);
    assert_eq!(labels(&friends(), 1), ["Person"]);
    assert_eq!(labels(&listed(), 3), ["Person"]);
    let copied = Op::Let { input: Box::new(listed()), bindings: vec![(Slot(5), Expr::Slot(Slot(3)))] };
    assert_eq!(labels(&copied, 5), ["Person"]);
    let forums = expand(friends(), 1, "HAS_MEMBER", Direction::In, 4);
    assert_eq!(labels(&forums, 4), ["Forum"]);
    let predicate = Expr::HasLabels(Box::new(Expr::Slot(Slot(4))), vec!["Post".into()]);
    let named = Op::Filter { input: Box::new(forums), predicate };
    assert_eq!(labels(&named, 4), ["Post"], "what a condition says comes first");
    assert!(labels(&named, 8).is_empty());
    let bound = Op::Let { input: Box::new(friends()), bindings: vec![(Slot(1), Expr::literal(1_i64))] };
    assert!(labels(&bound, 1).is_empty());
}
