//! Writes: which of its own writes a request sees, what it commits, and the keys of typical transactions.

mod support;

use support::plans::*;
use support::{Graph, rows, run_and_apply, text, try_run};
use tidegraph_exec::Error;
use tidegraph_plan::{AggregateKind, BindKind, Expr, Function, Op, Plan, PropertyAssignment, ScanTest, Slot};
use tidegraph_types::{Cardinality, Direction, ErrorCode, Gui, GuiHasher, Key, Mutation, Value};

fn pair() -> Graph {
    let mut g = Graph::new();
    g.vertex("a", &["P"], &[("n", 1.into())]);
    g.vertex("b", &["P"], &[("n", 2.into())]);
    g.edge_with("a", "X", "b", None, &[("w", 1.into())]);
    g
}

fn look(id: &str) -> Op {
    start().look_up(lit(id), 0)
}

fn commit_of(g: &Graph, plan: &Plan) -> tidegraph_types::CommitRequest {
    try_run(g, plan).unwrap_or_else(|e| panic!("{e}")).1.commit.expect("something to commit")
}

/// A list that no property holds.
fn mixed() -> Expr {
    Expr::Literal(Value::list(vec![1.into(), "x".into()]))
}

#[test]
fn a_new_vertex_is_seen_and_committed_whole() {
    let mut g = pair();
    let op = start()
        .create(
            0,
            Some(lit("c")),
            &["P", "Q", "P"],
            vec![assign("n", lit(3)), assign("none", lit(Value::Null))],
        )
        .set(0, vec![assign("m", add(prop(0, "n"), lit(1)))])
        .set_labels(0, &["R"], &["Q"])
        .eager()
        .scan_where(1, &["R"], "m", ScanTest::Equals(lit(4)));
    let plan = plan(op, &[1]);
    let commit = commit_of(&g, &plan);
    assert_eq!(commit.mutations.len(), 1, "{:?}", commit.mutations);
    let (rows, outcome) = run_and_apply(&mut g, &plan);
    assert_eq!(rows, ["c"]);
    assert_eq!(outcome.counters.vertices_created, 1);
    assert_eq!(g.labels("c"), ["P", "R"]);
    assert_eq!((g.property("c", "n"), g.property("c", "m")), (vec![3.into()], vec![4.into()]));
}

#[test]
fn ids_are_made_or_given_and_must_be_new() {
    let mut g = pair();
    let made = |id| {
        plan(start().create(0, id, &["V"], vec![]).bind_let(1, Expr::Call(Function::Id, vec![s(0)])), &[1])
    };
    let (first, _) = run_and_apply(&mut g, &made(None));
    assert_eq!(first[0].len(), 36);
    assert_eq!(run_and_apply(&mut g, &made(Some(lit(12)))).0, ["12"]);
    let error = try_run(&g, &made(Some(lit("a")))).unwrap_err();
    assert_eq!(error.to_string(), "a vertex with id \"a\" exists already");
    assert_eq!(error.code(), ErrorCode::ConstraintViolation);
    let twice = plan(start().unwind(list(&[1, 2]), 1).create(0, Some(lit("z")), &["V"], vec![]), &[]);
    assert!(matches!(try_run(&g, &twice), Err(Error::VertexExists(id)) if id == "z"));
    let wrong = plan(start().create(0, Some(lit(true)), &[], vec![]), &[]);
    assert_eq!(
        try_run(&g, &wrong).unwrap_err().to_string(),
        "creating a vertex takes a string as id, not true (boolean)"
    );
}

#[test]
fn colliding_hashes_get_salted_places() {
    let mut g = Graph::with_bits(1);
    let ids: Vec<String> = (0..20).map(|i| format!("v{i}")).collect();
    let list = Expr::List(ids.iter().map(|id| lit(id.as_str())).collect());
    let (_, outcome) =
        run_and_apply(&mut g, &plan(start().unwind(list, 1).create(0, Some(s(1)), &["V"], vec![]), &[]));
    assert_eq!(g.vertices.len(), 20);
    let commit = outcome.commit.unwrap();
    let exceptions = commit.mutations.iter().filter(|m| matches!(m, Mutation::AddException { .. })).count();
    assert_eq!(exceptions, 18, "two plain places");
    let again =
        plan(start().create(0, Some(lit("v20")), &["V"], vec![]).eager().look_up(lit("v20"), 1), &[1]);
    assert_eq!(run_and_apply(&mut g, &again).0, ["v20"]);
}

#[test]
fn new_edges_are_expanded_counted_and_scanned() {
    let mut g = pair();
    let op = start()
        .look_up(lit("a"), 0)
        .look_up(lit("b"), 1)
        .create_edge(2, "X", 0, 1, Some(lit("mine")))
        .create_edge(2, "Y", 0, 0, None)
        .eager()
        .bind(start().expand(0, Direction::Both, &[], None, 3, false), 4, BindKind::Count)
        .bind(start().expand(0, Direction::Out, &["X"], Some(5), 3, false), 6, BindKind::Collect(Slot(5)))
        .look_up_edges(lit("mine"), 7)
        .bind(start().scan_edges(8, &["X"]), 9, BindKind::Count);
    let (rows, outcome) = run_and_apply(&mut g, &plan(op, &[4, 6, 7, 9]));
    assert_eq!(rows, ["3 [a-X->b, a-X->b] a-X->b 2"]);
    assert_eq!(outcome.counters.edges_created, 2);
    assert_eq!(g.edges.len(), 3);
    let again = look("a").create_edge(2, "X", 0, 0, Some(lit("mine")));
    assert!(matches!(try_run(&g, &plan(again, &[])), Err(Error::EdgeExists(id)) if id == "mine"));
    let null = start().bind_let(0, lit(Value::Null)).create_edge(2, "X", 0, 0, None);
    assert_eq!(
        try_run(&g, &plan(null, &[])).unwrap_err().to_string(),
        "creating an edge takes a vertex at both ends, not null"
    );
}

#[test]
fn properties_are_set_removed_and_added_to() {
    let mut g = pair();
    let op = look("a").set(
        0,
        vec![
            assign("n", lit(Value::Null)),
            assign_as("s", lit(1), Cardinality::Set),
            assign_as("s", lit(1), Cardinality::Set),
            assign_as("s", lit(2), Cardinality::Set),
            assign_as("l", lit(1), Cardinality::List),
            assign_as("l", lit(1), Cardinality::List),
        ],
    );
    let op = op.eager().bind_let(1, Expr::List(vec![prop(0, "n"), prop(0, "s"), prop(0, "l")]));
    assert_eq!(run_and_apply(&mut g, &plan(op, &[1])).0, ["[null, [1, 2], [1, 1]]"]);
    assert_eq!(g.property("a", "s"), [1.into(), 2.into()]);
    let more = look("a")
        .set(0, vec![assign_as("s", lit(2), Cardinality::Set), assign_as("s", lit(3), Cardinality::Set)]);
    let op = more.eager().bind_let(1, prop(0, "s"));
    assert_eq!(run_and_apply(&mut g, &plan(op, &[1])).0, ["[1, 2, 3]"]);
    assert_eq!(g.property("a", "s"), [1.into(), 2.into(), 3.into()]);
    let error = try_run(&g, &plan(look("a").set(0, vec![assign("p", mixed())]), &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "property \"p\" cannot hold a value of type list, only scalars and lists of scalars of one type are stored"
    );
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
}

#[test]
fn edge_properties_are_set_and_removed() {
    let mut g = pair();
    let op = start()
        .scan_edges(0, &["X"])
        .eager()
        .set(0, vec![assign("w", lit(Value::Null)), assign("v", lit(2))]);
    let op = op.eager().bind_let(1, Expr::List(vec![prop(0, "w"), prop(0, "v")]));
    assert_eq!(run_and_apply(&mut g, &plan(op, &[1])).0, ["[null, 2]"]);
    assert_eq!(g.edges.values().next().unwrap().properties, [(g.tok("v"), 2.into())]);
}

#[test]
fn each_row_of_a_set_sees_the_rows_before_it() {
    let mut g = pair();
    let op = start().unwind(list(&[1, 2, 3]), 1).look_up(lit("a"), 0);
    let op = op.eager().set(0, vec![assign("n", add(prop(0, "n"), s(1)))]);
    run_and_apply(&mut g, &plan(op, &[]));
    assert_eq!(g.property("a", "n"), [7.into()]);
    let chain = look("a").set(0, vec![assign("n", lit(1)), assign("m", add(prop(0, "n"), lit(1)))]);
    run_and_apply(&mut g, &plan(chain, &[]));
    assert_eq!(g.property("a", "m"), [2.into()], "a later assignment sees an earlier one");
}

#[test]
fn maps_add_and_replace() {
    let mut g = pair();
    let map = || Expr::Map(vec![("m".into(), lit(5)), ("k".into(), lit(Value::Null))]);
    run_and_apply(&mut g, &plan(look("a").set_map(0, map(), false), &[]));
    assert_eq!((g.property("a", "n"), g.property("a", "m")), (vec![1.into()], vec![5.into()]));
    run_and_apply(&mut g, &plan(look("a").set_map(0, map(), true), &[]));
    assert_eq!((g.property("a", "n").len(), g.property("a", "m")), (0, vec![5.into()]));
    let copy = look("b").look_up(lit("a"), 1).set_map(0, s(1), true);
    run_and_apply(&mut g, &plan(copy, &[]));
    assert_eq!((g.property("b", "n").len(), g.property("b", "m")), (0, vec![5.into()]));
    let error = try_run(&g, &plan(look("a").set_map(0, lit(3), false), &[])).unwrap_err();
    assert_eq!(error.to_string(), "setting properties takes a map, not 3 (int)");
}

#[test]
fn deleted_elements_are_not_seen() {
    let mut g = pair();
    let op = look("b").delete(&[0], true).eager();
    let op = op.bind(start().scan(1, &[]), 2, BindKind::Count).look_up(lit("a"), 3);
    let op = op.bind(start().out(3, "", 1), 4, BindKind::Count).bind(
        start().scan_edges(1, &[]),
        5,
        BindKind::Count,
    );
    let op = op.bind(start().look_up(lit("b"), 6), 7, BindKind::Exists);
    let (rows, outcome) = run_and_apply(&mut g, &plan(op, &[2, 4, 5, 7]));
    assert_eq!(rows, ["1 0 0 false"]);
    assert_eq!((outcome.counters.vertices_deleted, outcome.counters.edges_deleted), (1, 1));
    assert_eq!((g.vertices.len(), g.edges.len()), (1, 0));
}

#[test]
fn a_vertex_with_edges_at_the_end_cannot_be_deleted() {
    let mut g = pair();
    let error = try_run(&g, &plan(look("a").delete(&[0], false), &[])).unwrap_err();
    assert_eq!(error.to_string(), "vertex \"a\" cannot be deleted, it still has 1 edge(s)");
    assert_eq!(error.code(), ErrorCode::ConstraintViolation);
    let both = look("a").expand(0, Direction::Out, &[], Some(1), 2, false).eager().delete(&[0, 1], false);
    run_and_apply(&mut g, &plan(both, &[]));
    assert_eq!((g.vertices.len(), g.edges.len()), (1, 0));
}

#[test]
fn a_large_neighbourhood_is_detached() {
    let mut g = Graph::new();
    g.vertex("h", &[], &[]);
    for i in 0..5000 {
        g.vertex(&format!("l{i}"), &[], &[]);
    }
    let hub = g.gui("h");
    let leaves: Vec<Gui> = g.vertices.keys().copied().filter(|gui| *gui != hub).collect();
    let label = g.tok("X");
    for (sid, leaf) in (1_000..).zip(leaves) {
        let sid = tidegraph_types::Sid(sid);
        let edge = tidegraph_types::Edge { sid, source: leaf, target: hub, label };
        g.edges.insert(sid, tidegraph_apl::testing::StoredEdge { edge, id: None, properties: vec![] });
    }
    run_and_apply(&mut g, &plan(look("h").delete(&[0], true), &[]));
    assert_eq!((g.vertices.len(), g.edges.len()), (5000, 0));
}

#[test]
fn what_is_made_and_deleted_leaves_nothing() {
    let g = pair();
    let op = look("a").create(1, None, &["T"], vec![assign("k", lit(1))]).create_edge(2, "X", 0, 1, None);
    let op = op.set(2, vec![assign("w", lit(2))]).delete(&[1], true);
    let (_, outcome) = try_run(&g, &plan(op, &[])).unwrap();
    assert!(outcome.commit.is_none());
    let changed = look("b").set(0, vec![assign("n", lit(9))]).delete(&[0], true);
    let commit = commit_of(&g, &plan(changed, &[]));
    assert!(matches!(commit.mutations[..], [Mutation::DeleteEdge { .. }, Mutation::DeleteVertex { .. }]));
}

#[test]
fn a_deleted_vertex_can_be_made_again() {
    let mut g = pair();
    let op = look("a").delete(&[0], true).create(1, Some(lit("a")), &["New"], vec![assign("k", lit(1))]);
    let op = op.eager().scan(2, &["New"]);
    assert_eq!(run_and_apply(&mut g, &plan(op, &[2])).0, ["a"]);
    assert_eq!(g.labels("a"), ["New"]);
    assert_eq!(g.property("a", "n").len(), 0);
}

#[test]
fn writing_to_what_was_deleted_is_an_error() {
    let g = pair();
    let op = look("a").delete(&[0], true).set(0, vec![assign("n", lit(1))]);
    let error = try_run(&g, &plan(op, &[])).unwrap_err();
    assert_eq!(error.to_string(), "setting a property: the vertex was deleted or does not exist");
    let op = look("a").delete(&[0], true).create_edge(1, "X", 0, 0, None);
    assert!(matches!(try_run(&g, &plan(op, &[])), Err(Error::Gone { .. })));
}

#[test]
fn properties_can_be_deleted_one_by_one() {
    let mut g = pair();
    run_and_apply(&mut g, &plan(look("a").set(0, vec![assign_as("n", lit(5), Cardinality::List)]), &[]));
    let op = look("a").unwind(Expr::Call(Function::Properties, vec![s(0), lit("n")]), 1);
    let op =
        op.filter(eq(Expr::Call(Function::PropertyValue, vec![s(1)]), lit(1))).eager().delete(&[1], true);
    run_and_apply(&mut g, &plan(op, &[]));
    assert_eq!(g.property("a", "n"), [5.into()]);
}

#[test]
fn a_null_target_is_passed_over() {
    let g = pair();
    let null = || start().bind_let(0, lit(Value::Null));
    for op in [
        null().set(0, vec![assign("n", lit(1))]),
        null().delete(&[0], true),
        null().set_labels(0, &["L"], &[]),
    ] {
        assert!(try_run(&g, &plan(op, &[])).unwrap().1.commit.is_none());
    }
}

fn merge_on(key: u32) -> Op {
    let matching = start().scan_where(1, &["M"], "k", ScanTest::Equals(s(key)));
    let create = start().create(1, None, &["M"], vec![assign("k", s(key))]);
    start().unwind(list(&[1, 2, 1, 3, 2, 1]), key).merge(matching, create)
}

#[test]
fn merge_sees_what_earlier_rows_made() {
    let mut g = pair();
    let keys = vec![(2, prop(1, "k"))];
    let op = merge_on(0).aggregate(keys, vec![item(3, AggregateKind::CountRows, vec![])]);
    assert_eq!(run_and_apply(&mut g, &plan(op, &[2, 3])).0, ["1 3", "2 2", "3 1"]);
    let (_, outcome) = run_and_apply(&mut g, &plan(merge_on(0), &[]));
    assert!(outcome.commit.is_none(), "the second time all are there");
}

#[test]
fn merge_of_an_edge_sees_the_new_edge() {
    let mut g = pair();
    let op = start().unwind(list(&[1, 2, 3]), 9).look_up(lit("b"), 0).look_up(lit("a"), 1);
    let matching = start().expand(0, Direction::Out, &["Z"], Some(2), 1, true);
    let op = op.merge(matching, start().create_edge(2, "Z", 0, 1, None));
    let (_, outcome) = run_and_apply(&mut g, &plan(op, &[]));
    assert_eq!(outcome.counters.edges_created, 1);
}

#[test]
fn a_scan_that_is_written_to_yields_each_vertex_once() {
    let g = {
        let mut g = Graph::new();
        (0..300).for_each(|i| {
            g.vertex(&format!("v{i}"), &["P"], &[]);
        });
        g
    };
    let op =
        start().scan(0, &["P"]).set(0, vec![assign("seen", lit(1))]).create(1, None, &["P"], vec![]).count(2);
    assert_eq!(rows(&g, &plan(op, &[2])), ["300"]);
}

#[test]
fn writes_below_a_limit_all_happen() {
    let mut g = Graph::new();
    let many: Vec<i32> = (0..3000).collect();
    let op = start().unwind(list(&many), 0).create(1, Some(s(0)), &["V"], vec![]).slice(None, Some(1));
    let (rows, _) = run_and_apply(&mut g, &plan(op, &[1]));
    assert_eq!((rows.len(), g.vertices.len()), (1, 3000));
}

#[test]
fn answers_show_elements_as_all_writes_left_them() {
    let g = pair();
    let op = start().unwind(list(&[5, 6]), 1).look_up(lit("a"), 0).set(0, vec![assign("n", s(1))]);
    let (rows, _) = try_run(&g, &plan(op, &[0])).unwrap();
    for row in rows {
        let Value::VertexData(data) = &row[0] else { panic!("{row:?}") };
        assert_eq!(text(&data.properties[0].values[0]), "6");
    }
}

// ---- keys

fn has(keys: &[Key], key: Key) -> bool {
    keys.contains(&key)
}

#[test]
fn appending_edges_to_a_hub_reads_only_that_its_ends_exist() {
    let g = pair();
    let op = start().look_up(lit("a"), 0).look_up(lit("b"), 1).create_edge(2, "X", 0, 1, None);
    let commit = commit_of(&g, &plan(op, &[]));
    let (a, b, x) = (g.gui("a"), g.gui("b"), g.tok("X"));
    let mut expected = vec![Key::existence(a), Key::existence(b)];
    expected.sort_unstable();
    assert_eq!(commit.read_keys, expected);
    for label in [None, Some(x)] {
        assert!(has(&commit.write_keys, Key::adjacency(a, true, label)));
        assert!(has(&commit.write_keys, Key::adjacency(b, false, label)));
        assert!(has(&commit.write_keys, Key::edge_scan(label)));
    }
    assert!(!has(&commit.write_keys, Key::content(a)) && !has(&commit.write_keys, Key::existence(a)));
}

#[test]
fn creators_of_one_id_conflict() {
    let g = Graph::new();
    let commit = commit_of(&g, &plan(start().create(0, Some(lit("q")), &["L"], vec![]), &[]));
    let gui = GuiHasher::default().gui("q");
    assert!(has(&commit.read_keys, Key::existence(gui)) && has(&commit.write_keys, Key::existence(gui)));
    let label = Some(g.tok("L"));
    assert!(
        has(&commit.write_keys, Key::vertex_scan(label)) && has(&commit.write_keys, Key::vertex_scan(None))
    );
}

#[test]
fn merges_of_one_pattern_conflict_even_on_a_new_label() {
    let g = Graph::new();
    let matching = || start().scan_where(1, &["M"], "k", ScanTest::Equals(lit(1)));
    let op = || start().merge(matching(), start().create(1, None, &["M"], vec![assign("k", lit(1))]));
    let first = commit_of(&g, &plan(op(), &[]));
    assert!(first.write_keys.iter().any(|key| has(&first.read_keys, *key)), "label unknown to both");
    let second = commit_of(&g, &plan(op(), &[]));
    assert!(first.write_keys.iter().any(|key| has(&second.read_keys, *key)), "label known to one");
}

#[test]
fn a_change_reads_and_writes_the_content_and_the_scans_of_all_labels() {
    let g = pair();
    let op = look("a").set(0, vec![assign("n", lit(5))]).set_labels(0, &["New"], &["P"]);
    let commit = commit_of(&g, &plan(op, &[]));
    let a = g.gui("a");
    assert!(has(&commit.read_keys, Key::content(a)) && has(&commit.write_keys, Key::content(a)));
    assert!(!has(&commit.write_keys, Key::existence(a)));
    for label in [None, Some(g.tok("P")), Some(g.tok("New"))] {
        assert!(has(&commit.write_keys, Key::vertex_scan(label)));
    }
}

#[test]
fn a_deletion_reads_all_edges_and_writes_their_keys() {
    let g = pair();
    let commit = commit_of(&g, &plan(look("b").delete(&[0], true), &[]));
    let (a, b) = (g.gui("a"), g.gui("b"));
    assert!(has(&commit.read_keys, Key::adjacency(b, true, None)));
    assert!(has(&commit.read_keys, Key::adjacency(b, false, None)));
    assert!(has(&commit.write_keys, Key::existence(b)) && has(&commit.write_keys, Key::content(b)));
    assert!(has(&commit.write_keys, Key::adjacency(a, true, Some(g.tok("X")))));
    assert!(has(&commit.write_keys, Key::edge(tidegraph_types::Sid(0))));
}

#[test]
fn a_read_of_edges_conflicts_with_a_new_edge_of_its_label_only() {
    let g = pair();
    let reader = look("a").out(0, "X", 1).set(1, vec![assign("n", lit(1))]);
    let reader = commit_of(&g, &plan(reader, &[]));
    let writer = |label: &str| {
        let op = start().look_up(lit("a"), 0).look_up(lit("b"), 1).create_edge(2, label, 0, 1, None);
        commit_of(&g, &plan(op, &[]))
    };
    let clash = |w: tidegraph_types::CommitRequest| w.write_keys.iter().any(|k| has(&reader.read_keys, *k));
    assert!(clash(writer("X")));
    assert!(!clash(writer("Y")));
}

/// Returns an assignment that gives the value of `a.n` two meta-properties.
fn annotated() -> PropertyAssignment {
    let meta = vec![(lit("acl"), lit("x")), (lit("none"), lit(Value::Null)), (lit("since"), lit(7))];
    PropertyAssignment { meta, ..assign_as("n", lit(5), Cardinality::List) }
}

fn meta_of(value: Expr, key: &str) -> Expr {
    Expr::Call(Function::PropertyValues, vec![value, lit(key)])
}

#[test]
fn meta_properties_are_seen_committed_and_checked() {
    let mut g = pair();
    let properties = || Expr::Call(Function::Properties, vec![s(0), lit("n")]);
    let set = look("a").set(0, vec![annotated(), annotated()]);
    let value = Expr::Call(Function::PropertyValue, vec![s(1)]);
    let read = set.eager().unwind(properties(), 1).bind_let(2, meta_of(s(1), "since")).bind_let(3, value);
    let plan_of = plan(read, &[3, 2]);
    let commit = commit_of(&g, &plan_of);
    let shown: Vec<String> = commit.mutations.iter().map(|m| format!("{m:?}")).collect();
    assert_eq!(shown.len(), 6, "{shown:?}");
    assert!(shown[0].starts_with("SetVertexProperty") && shown[3].starts_with("SetVertexProperty"));
    assert!(shown[1].contains("nth: 0") && shown[5].contains("nth: 1"), "{shown:?}");
    let gui = g.gui("a");
    assert!(commit.read_keys.contains(&Key::content(gui)) && commit.write_keys.contains(&Key::content(gui)));
    let (rows, _) = run_and_apply(&mut g, &plan_of);
    assert_eq!(rows, ["1 []", "5 [7]", "5 [7]"]);

    // Reads meta-properties from storage with a pending write on top.
    let more = look("a").unwind(properties(), 1).set(1, vec![assign("acl", lit("y"))]);
    let read = more.eager().unwind(properties(), 1).bind_let(2, meta_of(s(1), "acl"));
    let rows = run_and_apply(&mut g, &plan(read, &[2])).0;
    assert!(
        rows.len() == 9 && rows.iter().all(|row| row == "[y]"),
        "each of three for each of three: {rows:?}"
    );
    assert_eq!(g.vertices[&gui].meta.len(), 5);
}

#[test]
fn equal_values_that_differ_in_meta_properties_are_told_apart() {
    let mut g = pair();
    let five = || assign_as("n", lit(5), Cardinality::List);
    run_and_apply(&mut g, &plan(look("a").set(0, vec![five(), annotated(), five(), five()]), &[]));
    let properties = || Expr::Call(Function::Properties, vec![s(0), lit("n")]);
    let has = Expr::Call(Function::HasProperty, vec![s(1), lit("acl")]);
    let drop = look("a").unwind(properties(), 1).filter(has.clone()).delete(&[1], true);
    let commit = commit_of(&g, &plan(drop.clone(), &[]));
    assert_eq!(commit.mutations.len(), 5, "the key is written anew: {:?}", commit.mutations);
    run_and_apply(&mut g, &plan(drop, &[]));
    assert_eq!(g.property("a", "n"), [1, 5, 5, 5].map(Value::Int));
    assert!(g.vertices[&g.gui("a")].meta.is_empty());

    // Deletes several values at once and keeps others.
    run_and_apply(&mut g, &plan(look("a").set(0, vec![annotated(), five()]), &[]));
    let without = look("a").unwind(properties(), 1).filter(Expr::Not(Box::new(has))).delete(&[1], true);
    run_and_apply(&mut g, &plan(without, &[]));
    assert_eq!(g.property("a", "n"), [Value::Int(5)]);
    assert_eq!(g.vertices[&g.gui("a")].meta.len(), 2);
}

#[test]
fn what_has_no_meta_properties_says_so() {
    let g = pair();
    let refused = |op: Op| try_run(&g, &plan(op, &[])).unwrap_err();
    let properties = |of: u32| Expr::Call(Function::Properties, vec![s(of)]);
    let edge = || look("a").expand(0, Direction::Out, &[], Some(1), 2, false);
    for op in [
        edge().set(1, vec![annotated()]),
        edge().unwind(properties(1), 3).set(3, vec![assign("x", lit(1))]),
        look("a").unwind(properties(0), 3).set(3, vec![annotated()]),
        look("a")
            .set(0, vec![annotated()])
            .eager()
            .unwind(properties(0), 3)
            .unwind(properties(3), 4)
            .set(4, vec![assign("x", lit(1))]),
    ] {
        let error = refused(op);
        assert!(matches!(error, Error::NoMetaProperties { .. }), "{error}");
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
    }
    // An earlier row has already removed the value.
    let gone = look("a").unwind(properties(0), 3).delete(&[3], true).set(3, vec![assign("x", lit(1))]);
    assert!(matches!(refused(gone), Error::Gone { .. }));
    let list = PropertyAssignment { meta: vec![(lit("x"), mixed())], ..assign("n", lit(1)) };
    assert!(matches!(refused(look("a").set(0, vec![list])), Error::NotStorable { .. }));
}
