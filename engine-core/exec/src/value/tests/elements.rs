//! Functions of vertices and edges, the number of calls to storage, and materialising.

use super::*;
use crate::value::materialize;
use tidegraph_plan::Function as F;
use tidegraph_types::element::property_id;
use tidegraph_types::{Edge, Gui, PropertyRef, Sid, Symbol};

/// Returns a graph of two people with an edge between them, and a robot with two labels
/// and several values of one key.
fn sample() -> (Graph, Edge) {
    let mut graph = Graph::default();
    graph.vertex(1, "anna", &["Person"], &[("name", "Anna".into()), ("age", 30.into())]);
    graph.vertex(2, "bert", &["Person"], &[("name", "Bert".into())]);
    graph.vertex(
        3,
        "rob",
        &["Robot", "Person"],
        &[("tag", "x".into()), ("tag", "y".into()), ("age", 1.into())],
    );
    let knows = graph.edge((7, "e7"), (1, 2), "knows", &[("since", 2020.into())]);
    (graph, knows)
}

fn v(gui: u64) -> Value {
    Value::Vertex(Gui(gui))
}

fn tokens<const N: usize>(first: [(Symbol, Value); N], rest: Value) -> Value {
    let mut map: Map = first.into_iter().map(|(symbol, value)| (Value::Symbol(symbol), value)).collect();
    if let Value::Map(rest) = rest {
        map.extend(rest.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    Value::map(map)
}

fn statement(owner: Value, key: &str, value: impl Into<Value>) -> Value {
    Value::Property(Arc::new(PropertyRef { owner, key: key.into(), value: value.into(), nth: 0 }))
}

/// Makes the expression of an element; the element; the result.
type Case<'c> = (fn(Expr) -> Expr, Value, Result<Value, &'c str>);

/// Checks every case with the element in a slot (read ahead) and as a value from
/// elsewhere (read during evaluation).
fn check_elements(table: Vec<Case<'_>>) {
    let (graph, _) = sample();
    for (make, element, expected) in table {
        let first = || call(F::Head, [Expr::List(vec![slot(0)])]);
        let missing = call(F::MapGet, [e(map([])), s("no")]);
        let through_coalesce = call(F::Coalesce, [missing, slot(0)]);
        check_in(
            &graph,
            std::slice::from_ref(&element),
            vec![
                (make(slot(0)), expected.clone()),
                (make(first()), expected.clone()),
                (make(through_coalesce), expected.clone()),
                (make(Expr::Literal(element.clone())), expected),
            ],
        );
    }
}

#[test]
fn ids_labels_and_properties() {
    let (_, knows) = sample();
    let edge = || Value::Edge(knows);
    let gone = || v(99);
    check_elements(vec![
        (|x| call(F::Id, [x]), v(1), Ok("anna".into())),
        (|x| call(F::Id, [x]), edge(), Ok("e7".into())),
        (|x| call(F::Id, [x]), gone(), Ok(Value::Null)),
        (|x| call(F::Id, [x]), Value::Null, Ok(Value::Null)),
        (|x| call(F::Id, [x]), 1_i64.into(), Err("id() takes a vertex, edge or property, not 1 (long)")),
        (|x| call(F::Labels, [x]), v(3), Ok(texts(["Robot", "Person"]))),
        (|x| call(F::Labels, [x]), edge(), Err("labels() takes a vertex, not an edge")),
        (|x| call(F::Labels, [x]), gone(), Ok(values([]))),
        (|x| call(F::Type, [x]), edge(), Ok("knows".into())),
        (|x| call(F::Type, [x]), v(1), Err("type() takes an edge, not a vertex")),
        (|x| call(F::Type, [x]), Value::Null, Ok(Value::Null)),
        (|x| call(F::Label, [x]), v(3), Ok("Robot::Person".into())),
        (|x| call(F::Label, [x]), v(1), Ok("Person".into())),
        (|x| call(F::Label, [x]), edge(), Ok("knows".into())),
        (|x| call(F::Keys, [x]), v(3), Ok(texts(["tag", "age"]))),
        (|x| call(F::Keys, [x]), edge(), Ok(texts(["since"]))),
        (|x| call(F::Keys, [x]), map([("k", 1.into())]), Ok(texts(["k"]))),
        (|x| call(F::Keys, [x]), 1_i64.into(), Err("keys() takes a vertex, edge or map, not 1 (long)")),
        (|x| call(F::PropertyMap, [x]), v(3), Ok(map([("tag", texts(["x", "y"])), ("age", 1.into())]))),
        (|x| call(F::PropertyMap, [x]), map([("k", 1.into())]), Ok(map([("k", 1.into())]))),
        (|x| property(x, "age"), v(1), Ok(30.into())),
        (|x| property(x, "tag"), v(3), Ok(texts(["x", "y"]))),
        (|x| property(x, "tag"), v(1), Ok(Value::Null)),
        (|x| property(x, "unheard"), v(1), Ok(Value::Null)),
        (|x| property(x, "since"), edge(), Ok(2020.into())),
        (|x| property(x, "age"), gone(), Ok(Value::Null)),
        (|x| Expr::Index(Box::new(x), Box::new(s("age"))), v(1), Ok(30.into())),
        (|x| Expr::Index(Box::new(x), Box::new(call(F::ToLower, [s("AGE")]))), v(1), Ok(30.into())),
        (|x| Expr::Index(Box::new(x), Box::new(null())), v(1), Ok(Value::Null)),
        (
            |x| Expr::Index(Box::new(x), Box::new(l(0))),
            v(1),
            Err("the index of an element takes a string, not 0 (long)"),
        ),
        (|x| call(F::HasProperty, [x, s("age")]), v(1), Ok(true.into())),
        (|x| call(F::HasProperty, [x, s("tag")]), v(1), Ok(false.into())),
        (|x| call(F::HasProperty, [x, s("tag")]), Value::Null, Ok(false.into())),
        (|x| call(F::HasProperty, [x, s("since")]), edge(), Ok(true.into())),
    ]);
}

#[test]
fn label_tests() {
    let (_, knows) = sample();
    fn all(x: Expr, labels: &[&str]) -> Expr {
        Expr::HasLabels(Box::new(x), labels.iter().map(|l| Str::from(*l)).collect())
    }
    fn any(x: Expr, labels: &[&str]) -> Expr {
        Expr::HasAnyLabel(Box::new(x), labels.iter().map(|l| Str::from(*l)).collect())
    }
    check_elements(vec![
        (|x| all(x, &["Person"]), v(1), Ok(true.into())),
        (|x| all(x, &["Person", "Robot"]), v(1), Ok(false.into())),
        (|x| all(x, &["Person", "Robot"]), v(3), Ok(true.into())),
        (|x| all(x, &["Unheard"]), v(3), Ok(false.into())),
        (|x| all(x, &["knows", "likes"]), Value::Edge(knows), Ok(true.into())),
        (|x| all(x, &["Person"]), Value::Null, Ok(Value::Null)),
        (|x| all(x, &["Person"]), 1_i64.into(), Err("a label test takes a vertex or edge, not 1 (long)")),
        (|x| any(x, &["Unheard", "Robot"]), v(3), Ok(true.into())),
        (|x| any(x, &["Robot"]), v(1), Ok(false.into())),
        (|x| any(x, &["likes"]), Value::Edge(knows), Ok(false.into())),
        (|x| any(x, &["Person"]), 1_i64.into(), Ok(false.into())),
        (|x| any(x, &["Person"]), Value::Null, Ok(false.into())),
        (|x| any(x, &["age"]), statement(v(1), "age", 30), Ok(true.into())),
    ]);
}

#[test]
fn gremlin_maps_of_elements() {
    let (_, knows) = sample();
    let edge = || Value::Edge(knows);
    let end = |id: &str| tokens([(Symbol::Id, id.into()), (Symbol::Label, "Person".into())], Value::Null);
    check_elements(vec![
        (|x| call(F::PropertyValues, [x]), v(3), Ok(values(["x".into(), "y".into(), 1.into()]))),
        (
            |x| call(F::PropertyValues, [x, s("age"), s("tag")]),
            v(3),
            Ok(values([1.into(), "x".into(), "y".into()])),
        ),
        (|x| call(F::PropertyValues, [x, s("age"), s("age")]), v(3), Ok(values([1.into()]))),
        (|x| call(F::PropertyValues, [x, s("nope")]), v(3), Ok(values([]))),
        (|x| call(F::PropertyValues, [x]), Value::Null, Ok(Value::Null)),
        (
            |x| call(F::PropertyValues, [x]),
            1_i64.into(),
            Err("values() takes a vertex or edge, not 1 (long)"),
        ),
        (
            |x| call(F::Properties, [x, s("tag")]),
            v(3),
            Ok(values([statement(v(3), "tag", "x"), statement(v(3), "tag", "y")])),
        ),
        (
            |x| call(F::ValueMap, [x, e(false)]),
            v(3),
            Ok(map([("tag", texts(["x", "y"])), ("age", values([1.into()]))])),
        ),
        (|x| call(F::ValueMap, [x, e(false), s("age")]), v(3), Ok(map([("age", values([1.into()]))]))),
        (
            |x| call(F::ValueMap, [x, e(true), s("name")]),
            v(1),
            Ok(tokens(
                [(Symbol::Id, "anna".into()), (Symbol::Label, "Person".into())],
                map([("name", texts(["Anna"]))]),
            )),
        ),
        (|x| call(F::ValueMap, [x, e(false)]), edge(), Ok(map([("since", 2020.into())]))),
        (
            |x| call(F::ElementMap, [x]),
            v(3),
            Ok(tokens(
                [(Symbol::Id, "rob".into()), (Symbol::Label, "Robot::Person".into())],
                map([("tag", "y".into()), ("age", 1.into())]),
            )),
        ),
        (
            |x| call(F::ElementMap, [x, s("since")]),
            edge(),
            Ok(tokens(
                [
                    (Symbol::Id, "e7".into()),
                    (Symbol::Label, "knows".into()),
                    (Symbol::In, end("bert")),
                    (Symbol::Out, end("anna")),
                ],
                map([("since", 2020.into())]),
            )),
        ),
        (
            |x| call(F::GremlinPropertyMap, [x, s("tag")]),
            v(3),
            Ok(map([("tag", values([statement(v(3), "tag", "x"), statement(v(3), "tag", "y")]))])),
        ),
        (
            |x| call(F::GremlinPropertyMap, [x]),
            edge(),
            Ok(map([("since", statement(edge(), "since", 2020))])),
        ),
    ]);
}

#[test]
fn properties_are_elements_too() {
    let name = || statement(v(1), "name", "Anna");
    // A hash of owner, key and value, the number that answers show.
    let id = property_id("anna", "name", &"Anna".into(), 0);
    check_elements(vec![
        (|x| call(F::Id, [x]), name(), Ok(Value::Int(id))),
        (|x| call(F::Label, [x]), name(), Ok("name".into())),
        (|x| call(F::PropertyKey, [x]), name(), Ok("name".into())),
        (|x| call(F::PropertyValue, [x]), name(), Ok("Anna".into())),
        (|x| call(F::PropertyValues, [x]), name(), Ok(values([]))),
        (|x| call(F::HasProperty, [x, s("a")]), name(), Ok(false.into())),
        (
            |x| call(F::ElementMap, [x]),
            name(),
            Ok(tokens(
                [(Symbol::Id, Value::Int(id)), (Symbol::Key, "name".into()), (Symbol::Value, "Anna".into())],
                Value::Null,
            )),
        ),
    ]);
}

#[test]
fn properties_of_vertices_have_properties() {
    let mut graph = Graph::default();
    for gui in 1..=3 {
        graph.vertex(gui, "anna", &["Person"], &[("place", "ulm".into()), ("place", "bonn".into())]);
        graph.annotate(1, "from", gui as i32);
        graph.annotate(1, "kind", "home");
    }
    let bonn = |gui| statement(v(gui), "place", "bonn");
    let cases = [
        (call(F::PropertyValues, [slot(0)]), values([1.into(), "home".into()])),
        (
            call(F::PropertyValues, [slot(0), s("kind"), s("no"), s("from"), s("kind")]),
            values(["home".into(), 1.into()]),
        ),
        (call(F::HasProperty, [slot(0), s("from")]), true.into()),
        (call(F::HasProperty, [slot(0), s("no")]), false.into()),
        (property(slot(0), "from"), 1.into()),
        (property(slot(0), "no"), Value::Null),
        (call(F::ValueMap, [slot(0), e(false), s("from")]), map([("from", 1.into())])),
        (call(F::PropertyOwner, [slot(0)]), v(1)),
        (call(F::Properties, [slot(0), s("from")]), values([statement(bonn(1), "from", 1)])),
        (call(F::GremlinPropertyMap, [slot(0), s("from")]), map([("from", statement(bonn(1), "from", 1))])),
    ];
    let exprs: Vec<&Expr> = cases.iter().map(|(expr, _)| expr).collect();
    with_context(&graph, |ctx| {
        let batch =
            batch_of(Column::Values(vec![bonn(1), bonn(2), bonn(3), statement(v(1), "place", "ulm")]));
        let prepared = Evaluator::prepare(&exprs, &batch, ctx).expect("prepares");
        for (at, (expr, expected)) in cases.iter().enumerate() {
            assert_eq!(prepared.eval(at, 0).expect("computes"), *expected, "{expr:?}");
            prepared.eval_column(at).expect("computes");
        }
        assert_eq!(prepared.eval(4, 2).expect("computes"), 3.into());
        assert_eq!(prepared.eval(0, 3).expect("computes"), values([]));
    });
    assert_eq!(graph.take_calls(), 1, "the vertices that own the properties are read at once");
    let mut rows = vec![vec![v(2), bonn(3), statement(bonn(1), "from", 1)]];
    with_context(&graph, |ctx| materialize(&mut rows, false, ctx).expect("materialises"));
    let Value::VertexData(data) = &rows[0][0] else { panic!("no vertex data") };
    assert_eq!(data.properties[0].meta, [(1, "from".into(), 2.into()), (1, "kind".into(), "home".into())]);
    assert_eq!(data.properties[0].meta_of(0).count(), 0);
    assert_eq!(graph.take_calls(), 1);
}

/// Returns a batch of many rows with a column in slot 0.
fn batch_of(column: Column) -> Batch {
    let mut batch = Batch::unbound(column.len(), 1);
    batch.set(Slot(0), column);
    batch
}

#[test]
fn storage_is_asked_once_for_a_slot() {
    let (graph, knows) = sample();
    let rows = 100;
    let run = |exprs: &[&Expr], column: Column| {
        with_context(&graph, |ctx| {
            let batch = batch_of(column);
            let prepared = Evaluator::prepare(exprs, &batch, ctx).expect("prepares");
            for expr in 0..exprs.len() {
                prepared.eval_column(expr).expect("computes");
                prepared.eval(expr, 7).expect("computes");
            }
        });
        graph.take_calls()
    };
    let guis = || Column::Vertices((0..rows).map(|row| Gui(row % 3 + 1)).collect());
    let mixed =
        || Column::Values((0..rows).map(|row| if row % 2 == 0 { v(1) } else { Value::Null }).collect());
    let edges = || Column::Edges(vec![knows; rows as usize]);

    assert_eq!(run(&[&property(slot(0), "age")], guis()), 1);
    assert_eq!(
        run(&[&property(slot(0), "age"), &call(F::Id, [slot(0)]), &call(F::Labels, [slot(0)])], guis()),
        1
    );
    assert_eq!(run(&[&slot(0)], guis()), 0, "a handle needs no reading");
    assert_eq!(run(&[&property(slot(0), "age")], mixed()), 1);
    assert_eq!(run(&[&call(F::Type, [slot(0)])], edges()), 0, "the handle carries the label");
    assert_eq!(run(&[&call(F::ElementMap, [slot(0)])], edges()), 2, "the edges and their ends");
    // Elements derived from slots are read with one call as well.
    assert_eq!(run(&[&property(call(F::StartNode, [slot(0)]), "name")], edges()), 1);
    let names = Expr::Comprehension {
        variable: Slot(5),
        list: Box::new(Expr::List(vec![slot(0), slot(0)])),
        filter: None,
        map: Some(Box::new(property(Expr::Slot(Slot(5)), "name"))),
    };
    assert_eq!(run(&[&names], guis()), 1);
}

#[test]
fn equal_neighbours_are_read_once() {
    let (graph, _) = sample();
    let expr = property(slot(0), "age");
    with_context(&graph, |ctx| {
        let batch = batch_of(Column::Vertices(vec![Gui(1), Gui(1), Gui(1), Gui(3), Gui(3), Gui(1)]));
        let prepared = Evaluator::prepare(&[&expr], &batch, ctx).expect("prepares");
        let column = prepared.eval_column(0).expect("computes");
        let ages: Vec<Value> = (0..6).map(|row| column.get(row)).collect();
        assert_eq!(ages, [30, 30, 30, 1, 1, 30].map(Value::Int));
    });
    assert_eq!(graph.elements_asked.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[test]
fn columns_are_shared() {
    let graph = Graph::default();
    with_context(&graph, |ctx| {
        let batch = batch_of(Column::Vertices(vec![Gui(1), Gui(2)]));
        let (plain, constant, absent) = (slot(0), l(5), slot(3));
        let prepared = Evaluator::prepare(&[&plain, &constant, &absent], &batch, ctx).expect("prepares");
        let column = prepared.eval_column(0).expect("computes");
        assert!(Arc::ptr_eq(&column, batch.column(Slot(0)).expect("bound")));
        assert!(matches!(&*prepared.eval_column(1).expect("computes"), Column::Constant(Value::Long(5), 2)));
        assert!(matches!(&*prepared.eval_column(2).expect("computes"), Column::Constant(Value::Unbound, 2)));
    });
}

#[test]
fn filters_keep_rows_that_are_true() {
    let (graph, _) = sample();
    let age = || property(slot(0), "age");
    let older = |limit: i64| cmp(Comparison::Greater, age(), l(limit));
    let named = || cmp(Comparison::Equal, property(slot(0), "name"), s("Anna"));
    let cases: Vec<(Expr, Vec<u32>)> = vec![
        (older(0), vec![0, 2]),
        (older(1), vec![0]),
        (cmp(Comparison::Less, l(1), age()), vec![0]),
        (cmp(Comparison::NotEqual, age(), Expr::Parameter("p".into())), vec![0, 2]),
        (Expr::And(vec![older(0), named()]), vec![0]),
        (Expr::And(vec![named(), cmp(Comparison::Less, age(), l(0))]), vec![]),
        (Expr::And(vec![]), vec![0, 1, 2, 3]),
        (Expr::Or(vec![named(), cmp(Comparison::Equal, age(), l(1))]), vec![0, 2]),
        (Expr::Not(Box::new(older(1))), vec![2]),
        (Expr::IsNull(Box::new(age())), vec![1, 3]),
        (cmp(Comparison::Equal, property(slot(0), "tag"), e(texts(["x", "y"]))), vec![2]),
        (e(true), vec![0, 1, 2, 3]),
        (null(), vec![]),
    ];
    with_context(&graph, |ctx| {
        let batch = batch_of(Column::Values(vec![v(1), v(2), v(3), Value::Null]));
        for (expr, expected) in cases {
            let prepared = Evaluator::prepare(&[&expr], &batch, ctx).expect("prepares");
            assert_eq!(prepared.eval_filter(0).expect("computes"), expected, "{expr:?}");
            let one_by_one: Vec<u32> =
                (0..4).filter(|row| prepared.eval_truth(0, *row as usize).expect("computes")).collect();
            assert_eq!(one_by_one, expected, "{expr:?}");
        }
        let wrong = l(12);
        let prepared = Evaluator::prepare(&[&wrong], &batch, ctx).expect("prepares");
        let error = prepared.eval_filter(0).expect_err("no boolean").to_string();
        assert_eq!(error, "a condition takes a boolean, not 12 (long)");
    });
}

#[test]
fn constants_need_no_batch() {
    with_context(&Graph::default(), |ctx| {
        let sum = math(Arithmetic::Add, 1_i64, 2_i64);
        assert_eq!(Evaluator::constant(&sum, ctx).expect("computes"), Value::Long(3));
        assert_eq!(Evaluator::constant(&Expr::Parameter("p".into()), ctx).expect("given"), Value::Long(7));
    });
}

#[test]
fn handles_become_data_wherever_they_are() {
    let (graph, knows) = sample();
    let edge = Value::Edge(knows);
    let untouched = longs([1, 2]);
    let nested = values([v(1), values([edge.clone()])]);
    let keyed = Value::map([(v(2), v(1))].into_iter().collect());
    let mut rows = vec![
        vec![v(1), edge.clone(), untouched.clone(), Value::Unbound],
        vec![nested, keyed, path([v(1), edge, v(2)], &[]), statement(v(3), "tag", "x")],
        vec![entry(v(1), v(99)), Value::Null, set([v(1)]), v(1)],
    ];
    with_context(&graph, |ctx| materialize(&mut rows, false, ctx).expect("materialises"));
    assert_eq!(graph.take_calls(), 2, "one for vertices, one for edges: the ends are among the vertices");

    let vertex = |value: &Value| match value {
        Value::VertexData(data) => data.id.to_string(),
        other => panic!("no vertex data: {other:?}"),
    };
    let Value::VertexData(anna) = &rows[0][0] else { panic!("no vertex data") };
    assert_eq!(anna.labels, ["Person"]);
    assert_eq!(anna.properties.iter().map(|p| p.key.as_str()).collect::<Vec<_>>(), ["name", "age"]);
    let Value::EdgeData(data) = &rows[0][1] else { panic!("no edge data") };
    assert_eq!((data.id.as_str(), data.label.as_str()), ("e7", "knows"));
    assert_eq!((data.source_id.as_str(), data.target_id.as_str()), ("anna", "bert"));
    assert_eq!(data.source_labels, ["Person"]);
    assert_eq!(data.properties, [(Str::from("since"), Value::Int(2020))]);
    assert!(matches!((&rows[0][2], &untouched), (Value::List(a), Value::List(b)) if Arc::ptr_eq(a, b)));
    assert!(matches!(rows[0][3], Value::Null));
    let list = rows[1][0].as_slice().expect("a list");
    assert_eq!(vertex(&list[0]), "anna");
    assert!(matches!(&list[1].as_slice().expect("a list")[0], Value::EdgeData(_)));
    let Value::Map(map) = &rows[1][1] else { panic!("no map") };
    assert_eq!(
        map.iter().map(|(k, v)| (vertex(k), vertex(v))).collect::<Vec<_>>(),
        [("bert".into(), "anna".into())]
    );
    let Value::Path(path) = &rows[1][2] else { panic!("no path") };
    assert!(matches!(path.objects[1], Value::EdgeData(_)));
    let Value::Property(property) = &rows[1][3] else { panic!("no property") };
    assert_eq!(vertex(&property.owner), "rob");
    let Value::VertexData(rob) = &property.owner else { panic!("no vertex data") };
    assert_eq!(rob.properties[0].values.as_slice(), ["x".into(), "y".into()]);
    let Value::Entry(entry) = &rows[2][0] else { panic!("no entry") };
    let Value::VertexData(gone) = &entry.1 else { panic!("no vertex data") };
    assert_eq!((gone.gui, gone.id.as_str(), gone.labels.len(), gone.properties.len()), (Gui(99), "", 0, 0));
}

#[test]
fn an_edge_alone_reads_its_ends_without_properties() {
    let (graph, knows) = sample();
    let gone = Edge { sid: Sid(255), ..knows };
    let mut rows = vec![vec![Value::Edge(knows), Value::Edge(gone)]];
    with_context(&graph, |ctx| materialize(&mut rows, false, ctx).expect("materialises"));
    assert_eq!(graph.take_calls(), 2);
    let Value::EdgeData(data) = &rows[0][1] else { panic!("no edge data") };
    assert_eq!(data.id, "0000000000000001-ff");
    assert_eq!((data.label.as_str(), data.target_id.as_str()), ("knows", "bert"));
    assert!(data.properties.is_empty());
}
