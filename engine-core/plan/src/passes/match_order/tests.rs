//! Tests of the operators that the pass makes from patterns.

use crate::op::ScanTest;
use crate::passes::estimate::Estimate;
use crate::passes::{Instances, Knowledge, optimize};
use crate::{
    Column, Comparison, Expr, Function, Length, Limits, MatchPattern, NamedPath, Op, PatternEdge,
    PatternNode, Plan, Shortest, Slot,
};
use std::ops::Range;
use tidegraph_apl::{Catalog, DegreeStatistics, Error, KeyStatistics, SetKey, SetStatistics, Statistics};
use tidegraph_types::{Direction, Str, Token, Value};

struct Names(&'static [&'static str]);

impl Catalog for Names {
    fn token(&self, name: &str) -> Option<Token> {
        self.0.iter().position(|n| *n == name).map(|i| Token(i as u32))
    }
    fn name(&self, token: Token) -> Str {
        self.0[token.0 as usize].into()
    }
    fn intern(&self, _: &[Str]) -> Result<Vec<Token>, Error> {
        Err(Error::Unavailable("read only".into()))
    }
    fn allocate_sids(&self, _: u64) -> Result<Range<u64>, Error> {
        Err(Error::Unavailable("read only".into()))
    }
}

/// Lowers a pattern for a graph of 1,000 people who know 20 others each, and 10 cities in which they live.
fn lower(pattern: MatchPattern, input: Op) -> String {
    let statistics = Statistics {
        vertices: 1_010,
        edges: 21_000,
        vertices_by_label: vec![(Token(0), 1_000), (Token(1), 10)],
        edges_by_label: vec![(Token(2), 20_000), (Token(3), 1_000)],
        keys: vec![KeyStatistics { label: Token(0), key: Token(4), values: 1_000, distinct: 990 }],
        ..Statistics::default()
    };
    let catalog = Names(&["Person", "City", "KNOWS", "LIVES_IN", "email"]);
    let plan = Plan {
        root: Op::Match { input: Box::new(input), pattern },
        slots: 20,
        columns: vec![Column { name: "x".into(), slot: Slot(0) }],
        timeout: None,
        seed: None,
        references: false,
    };
    optimize(
        plan,
        &Knowledge {
            statistics: &statistics,
            catalog: &catalog,
            instances: None,
            lessons: None,
            limits: &Limits::none(),
            is_far: false,
        },
        |_, _| {},
    )
    .expect("no limit")
    .to_string()
}

fn node(slot: u32, labels: &[&str]) -> PatternNode {
    PatternNode {
        slot: Slot(slot),
        bound: false,
        labels: labels.iter().map(|l| Str::from(*l)).collect(),
        properties: vec![],
    }
}

fn edge(slot: u32, left: usize, right: usize, label: &str) -> PatternEdge {
    PatternEdge {
        slot: Slot(slot),
        bound: false,
        left,
        right,
        direction: Direction::Out,
        labels: vec![label.into()],
        properties: vec![],
        length: None,
        filter: None,
        shortest: None,
        body: None,
    }
}

fn equal(a: Expr, b: Expr) -> Expr {
    Expr::compare(Comparison::Equal, a, b)
}

#[test]
fn starts_where_the_fewest_candidates_are() {
    let pattern = MatchPattern {
        nodes: vec![node(0, &["Person"]), node(1, &["City"])],
        edges: vec![edge(2, 0, 1, "LIVES_IN")],
        ..Default::default()
    };
    assert_eq!(
        lower(pattern, Op::Argument),
        "scan vertices $1 :City\nexpand $1 <-[LIVES_IN]- $0 edge $2 keep []\nfilter $0:Person\nanswer x=$0\n"
    );
}

#[test]
fn an_id_beats_every_label() {
    let predicate = equal(Expr::Call(Function::Id, vec![Expr::Slot(Slot(0))]), Expr::Parameter("id".into()));
    let pattern = MatchPattern {
        nodes: vec![node(0, &["Person"]), node(1, &["City"])],
        edges: vec![edge(2, 0, 1, "LIVES_IN")],
        predicate: Some(predicate),
        ..Default::default()
    };
    let text = lower(pattern, Op::Argument);
    assert!(
        text.starts_with("look up vertices $0 of @id\nfilter $0:Person\nexpand $0 -[LIVES_IN]-> $1"),
        "{text}"
    );
}

/// Degrees by vertex id.
struct Degrees(&'static [(&'static str, u64)]);

impl Instances for Degrees {
    fn degree(&self, id: &Str, _: Direction, labels: Option<&[Token]>) -> Option<u64> {
        assert_eq!(labels, Some(&[Token(2)][..]));
        Some(self.0.iter().find(|(name, _)| *id == *name).map_or(0, |(_, degree)| *degree))
    }
}

#[test]
fn ids_from_earlier_rows_are_looked_up() {
    let id_of = |slot| Expr::Call(Function::Id, vec![Expr::Slot(Slot(slot))]);
    let rows =
        || Op::Unwind { input: Box::new(Op::Argument), list: Expr::Parameter("rows".into()), out: Slot(5) };
    let lower_where = |predicate: Expr| {
        let pattern = MatchPattern {
            nodes: vec![node(0, &["Person"]), node(1, &["City"])],
            edges: vec![edge(2, 0, 1, "LIVES_IN")],
            predicate: Some(predicate),
            ..Default::default()
        };
        lower(pattern, rows())
    };
    let row = || Expr::Slot(Slot(5));
    for operand in [row(), Expr::Property(Box::new(row()), "id".into())] {
        let text = lower_where(equal(id_of(0), operand.clone()));
        let expected = format!(
            "unwind $5 of @rows\nlook up vertices $0 of IdTexts({operand})\n\
             filter ($0:Person and Id($0) = {operand})\nexpand $0 -[LIVES_IN]-> $1"
        );
        assert!(text.starts_with(&expected), "{text}");
    }
    // The look-up of a list replaces the condition.
    let text = lower_where(Expr::In(Box::new(id_of(0)), Box::new(row())));
    let expected = "unwind $5 of @rows\nlook up vertices $0 of IdTexts($5)\nfilter $0:Person\nexpand";
    assert!(text.starts_with(expected), "{text}");
    // A value that the pattern itself binds is not available for the look-up.
    let text = lower_where(equal(id_of(1), Expr::Property(Box::new(Expr::Slot(Slot(0))), "x".into())));
    assert!(text.starts_with("unwind $5 of @rows\nscan vertices"), "{text}");
    let text = lower_where(equal(id_of(0), Expr::Call(Function::Rand, vec![])));
    assert!(!text.contains("look up"), "{text}");
}

#[test]
fn of_two_named_ends_the_one_with_fewer_edges_is_expanded() {
    let lower = |degrees: &'static [(&'static str, u64)]| {
        let named = |slot, id: &str| {
            equal(Expr::Call(Function::Id, vec![Expr::Slot(Slot(slot))]), Expr::literal(Value::string(id)))
        };
        let pattern = MatchPattern {
            nodes: vec![node(0, &[]), node(1, &[])],
            edges: vec![edge(2, 0, 1, "KNOWS")],
            predicate: Some(Expr::And(vec![named(0, "a"), named(1, "b")])),
            ..Default::default()
        };
        let root = Op::Match { input: Box::new(Op::Argument), pattern };
        let plan = Plan {
            root,
            slots: 20,
            columns: vec![Column { name: "x".into(), slot: Slot(0) }],
            timeout: None,
            seed: None,
            references: false,
        };
        let (statistics, catalog) = (Statistics::default(), Names(&["Person", "City", "KNOWS"]));
        let instances = Degrees(degrees);
        let knowledge = Knowledge {
            statistics: &statistics,
            catalog: &catalog,
            instances: Some(&instances),
            lessons: None,
            limits: &Limits::none(),
            is_far: false,
        };
        optimize(plan, &knowledge, |_, _| {}).expect("no limit").to_string()
    };
    let from_left = lower(&[("a", 3), ("b", 1_000_000)]);
    assert!(from_left.contains("expand $0 -[KNOWS]-> into $1"), "{from_left}");
    let from_right = lower(&[("a", 1_000_000), ("b", 3)]);
    assert!(from_right.contains("expand $1 <-[KNOWS]- into $0"), "{from_right}");
    assert!(from_right.starts_with("look up vertices $0 of 'a'\nlook up vertices $1 of 'b'"), "{from_right}");
}

#[test]
fn few_vertices_of_one_value_beat_a_small_label() {
    let person = |key: &str| {
        let mut person = node(0, &["Person"]);
        person.properties = vec![(key.into(), Expr::Parameter("value".into()))];
        let edges = vec![edge(2, 0, 1, "LIVES_IN")];
        lower(
            MatchPattern { nodes: vec![person, node(1, &["City"])], edges, ..Default::default() },
            Op::Argument,
        )
    };
    assert!(person("email").starts_with("scan vertices $0 :Person"), "{}", person("email"));
    // The graph has no statistics of this key.
    assert!(person("name").starts_with("scan vertices $1 :City"), "{}", person("name"));
}

#[test]
fn conditions_are_checked_as_soon_as_their_slots_are_bound() {
    let age = |slot| Expr::Property(Box::new(Expr::Slot(Slot(slot))), "age".into());
    let predicate = Expr::And(vec![
        Expr::compare(Comparison::Less, age(0), age(1)),
        Expr::compare(Comparison::Greater, age(0), Expr::literal(30)),
    ]);
    let pattern = MatchPattern {
        nodes: vec![node(0, &["Person"]), node(1, &["Person"])],
        edges: vec![edge(2, 0, 1, "KNOWS")],
        predicate: Some(predicate),
        ..Default::default()
    };
    assert_eq!(
        lower(pattern, Op::Argument),
        "scan vertices $0 :Person age > 30i\nexpand $0 -[KNOWS]-> $1 edge $2 keep [$0]\n\
         filter ($1:Person and $0.age < $1.age)\nanswer x=$0\n"
    );
}

#[test]
fn two_edges_of_one_pattern_are_never_the_same() {
    let pattern = MatchPattern {
        nodes: vec![node(0, &["City"]), node(1, &[]), node(3, &[])],
        edges: vec![edge(2, 1, 0, "LIVES_IN"), edge(4, 1, 2, "KNOWS"), edge(5, 2, 1, "KNOWS")],
        ..Default::default()
    };
    let text = lower(pattern, Op::Argument);
    assert!(text.contains("expand $3 -[KNOWS]-> into $1 edge $5"), "{text}");
    assert!(text.contains("not $5 = $4"), "{text}");
    assert!(!text.contains("$4 = $2"), "different labels need no check: {text}");
}

#[test]
fn a_pattern_in_parts_is_a_product() {
    let pattern =
        MatchPattern { nodes: vec![node(0, &["Person"]), node(1, &["City"])], ..Default::default() };
    assert_eq!(
        lower(pattern, Op::Argument),
        "scan vertices $1 :City\nscan vertices $0 :Person\nanswer x=$0\n"
    );
}

#[test]
fn a_walk_from_the_right_end_is_turned_around() {
    let mut walk = edge(2, 0, 1, "KNOWS");
    walk.length = Some(Length { min: 1, max: Some(2) });
    let pattern = MatchPattern {
        nodes: vec![node(0, &[]), node(1, &["City"])],
        edges: vec![walk],
        paths: vec![NamedPath { slot: Slot(9), start: 0, edges: vec![(0, true)] }],
        ..Default::default()
    };
    let text = lower(pattern, Op::Argument);
    assert!(text.contains("walk $1 <-[KNOWS*1..2]- $0 edges $2\nlet $2 = Reverse($2)\n"), "{text}");
    assert!(text.contains("let $9 = MakePath($0, $2, $1)"), "{text}");
}

#[test]
fn a_shortest_path_waits_for_both_ends() {
    let mut walk = edge(2, 0, 1, "KNOWS");
    walk.length = Some(Length { min: 1, max: None });
    walk.shortest = Some(Shortest::One);
    let pattern = MatchPattern {
        nodes: vec![node(0, &["City"]), node(1, &["City"])],
        edges: vec![walk],
        ..Default::default()
    };
    let text = lower(pattern, Op::Argument);
    assert!(text.contains("shortest $0 -[KNOWS*1..]-> $1 edges $2"), "{text}");
    assert_eq!(text.matches("scan vertices").count(), 2, "{text}");
}

#[test]
fn a_bound_edge_gives_its_ends_without_a_search() {
    let mut bound = edge(2, 0, 1, "KNOWS");
    bound.bound = true;
    let pattern = MatchPattern {
        nodes: vec![node(0, &[]), node(1, &["Person"])],
        edges: vec![bound],
        ..Default::default()
    };
    let text = lower(pattern, Op::Argument);
    assert!(text.contains("let $0 = StartNode($2)\nlet $1 = EndNode($2)\nfilter $1:Person"), "{text}");
    assert!(!text.contains("scan"), "{text}");
}

#[test]
fn a_bound_vertex_must_not_be_null() {
    let mut bound = node(0, &["Person"]);
    bound.bound = true;
    let pattern = MatchPattern { nodes: vec![bound], ..Default::default() };
    assert_eq!(lower(pattern, Op::Argument), "filter (not $0 is null and $0:Person)\nanswer x=$0\n");
}

#[test]
fn estimates_follow_sets_values_and_degrees() {
    // 1,000 people of 50 ages from 0 to 100, who live in 100 cities.
    let degrees = |vertex_label, outgoing, vertices, edges| DegreeStatistics {
        vertex_label,
        edge_label: Token(3),
        outgoing,
        vertices,
        edges,
        histogram: vec![vertices],
    };
    let people = SetStatistics {
        labels: vec![Token(0)],
        elements: 1_000,
        keys: vec![SetKey { key: Token(4), bounds: Some((0.0, 100.0)) }],
    };
    let statistics = Statistics {
        vertices: 1_100,
        edges: 1_000,
        vertices_by_label: vec![(Token(0), 1_000), (Token(1), 100)],
        edges_by_label: vec![(Token(3), 1_000)],
        sets: vec![people],
        distinct: vec![(Token(4), 50)],
        degrees: vec![
            degrees(None, true, 1_100, 1_000),
            degrees(Some(Token(0)), true, 1_000, 1_000),
            degrees(None, false, 1_100, 1_000),
            degrees(Some(Token(1)), false, 100, 1_000),
        ],
        ..Statistics::default()
    };
    let catalog = Names(&["Person", "City", "KNOWS", "LIVES_IN", "age"]);
    let knowledge = Knowledge {
        statistics: &statistics,
        catalog: &catalog,
        instances: None,
        lessons: None,
        limits: &Limits::none(),
        is_far: false,
    };
    let estimate = Estimate::new(&knowledge);
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01, "{found}, {expected}");
    let labels = [vec!["Person".into()], vec!["City".into()]];
    near(estimate.fan_out(&edge(2, 0, 1, "LIVES_IN"), true, &labels, None), 1.0);
    near(estimate.fan_out(&edge(2, 0, 1, "LIVES_IN"), false, &labels, None), 10.0);
    // All edges are those of people and of cities.
    let implied = |direction, label: &str| estimate.implied(direction, &[label.into()]);
    assert_eq!(implied(Direction::Out, "LIVES_IN").as_deref(), Some("Person"));
    assert_eq!(implied(Direction::In, "LIVES_IN").as_deref(), Some("City"));
    assert_eq!(implied(Direction::Both, "LIVES_IN"), None);
    assert_eq!((implied(Direction::In, "KNOWS"), implied(Direction::In, "age")), (None, None));
    assert_eq!(estimate.implied(Direction::In, &[]), None);
    let share = |label: &str, test: ScanTest| estimate.share(&[label.into()], &"age".into(), &test).0;
    near(share("Person", ScanTest::Equals(Expr::Parameter("age".into()))), 1.0 / 50.0);
    near(share("Person", ScanTest::Range { low: Some((Expr::literal(90), true)), high: None }), 0.1);
    near(share("Person", ScanTest::Exists), 1.0);
    assert!(share("Person", ScanTest::Equals(Expr::literal(500))) < 0.001);
    assert!(share("City", ScanTest::Exists) < 0.001);
}
