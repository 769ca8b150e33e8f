//! Compares variable-length and shortest paths with brute force on small random graphs.

mod support;

use proptest::prelude::*;
use support::Graph;
use support::plans::*;
use support::sorted;
use tidegraph_plan::passes::{counts, cycles, keep};
use tidegraph_plan::{AggregateKind, Expr, Op, Shortest, Slot};
use tidegraph_types::Direction;

const IDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn graph(edges: &[(usize, usize)]) -> Graph {
    let mut g = Graph::new();
    for id in IDS {
        g.vertex(id, &["V"], &[]);
    }
    for (index, (from, to)) in edges.iter().enumerate() {
        g.edge_with(IDS[*from], "E", IDS[*to], None, &[("n", (index as i32).into())]);
    }
    g
}

/// Returns all walks without a repeated edge, as indices of edges.
fn walks(
    edges: &[(usize, usize)],
    from: usize,
    direction: Direction,
    max: usize,
) -> Vec<(Vec<usize>, usize)> {
    let mut all = vec![(vec![], from)];
    let mut start = 0;
    for _ in 0..max {
        let end = all.len();
        for at in start..end {
            let (walk, vertex): (Vec<usize>, usize) = all[at].clone();
            for (index, (source, target)) in edges.iter().enumerate() {
                if walk.contains(&index) {
                    continue;
                }
                let mut go = |to| all.push(([walk.clone(), vec![index]].concat(), to));
                let out = direction != Direction::In && *source == vertex;
                if out {
                    go(*target);
                }
                if direction != Direction::Out && *target == vertex && !(out && source == target) {
                    go(*source);
                }
            }
        }
        start = end;
    }
    all
}

fn written(edges: &[(usize, usize)], walk: &[usize]) -> String {
    let names: Vec<String> =
        walk.iter().map(|e| format!("{}-E->{}", IDS[edges[*e].0], IDS[edges[*e].1])).collect();
    format!("[{}]", names.join(", "))
}

fn edges() -> impl Strategy<Value = Vec<(usize, usize)>> {
    proptest::collection::vec((0..6_usize, 0..6_usize), 0..9)
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Out), Just(Direction::In), Just(Direction::Both)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn variable_length_finds_all_walks(
        edges in edges(), direction in direction(), min in 0..3_u32, more in 0..3_u32, bounded: bool,
    ) {
        let g = graph(&edges);
        let max = min + more;
        let most = if bounded { max as usize } else { edges.len() };
        let op = start().scan(0, &["V"]).var(0, direction, min, bounded.then_some(max), 1, 2);
        let mut expected = vec![];
        for (at, id) in IDS.iter().enumerate() {
            for (walk, end) in walks(&edges, at, direction, most) {
                if walk.len() >= min as usize {
                    expected.push(format!("{id} {} {}", written(&edges, &walk), IDS[end]));
                }
            }
        }
        expected.sort();
        prop_assert_eq!(sorted(&g, &plan(op, &[0, 1, 2])), expected);
    }

    #[test]
    fn the_ends_of_all_walks_are_reached_once(
        edges in edges(), direction in direction(), min in 0..2_u32, more in 0..4_u32, bounded: bool, into: bool,
        without in proptest::option::of(0..9_usize),
    ) {
        let g = graph(&edges);
        let max = min + more;
        let without = without.filter(|index| *index < edges.len());
        let most = if bounded { max as usize } else { edges.len() };
        let mut op = start().scan(0, &["V"]);
        if into {
            op = op.scan(2, &["V"]);
        }
        if let Some(index) = without {
            op = op.scan_edges(5, &[]).filter(eq(prop(5, "n"), lit(index as i32)));
        }
        let mut op = op.var(0, direction, min, bounded.then_some(max), 1, 2);
        let Op::VarExpand { edges: slot, ends_only, into: is_into, exclude, .. } = &mut op else { panic!() };
        (*slot, *ends_only, *is_into) = (None, true, into);
        if without.is_some() {
            *exclude = vec![Slot(5)];
        }
        let mut expected = vec![];
        for (at, id) in IDS.iter().enumerate() {
            for (walk, end) in walks(&edges, at, direction, most) {
                if walk.len() >= min as usize && without.is_none_or(|index| !walk.contains(&index)) {
                    expected.push(format!("{id} {}", IDS[end]));
                }
            }
        }
        expected.sort();
        expected.dedup();
        prop_assert_eq!(sorted(&g, &plan(op, &[0, 2])), expected);
    }

    #[test]
    fn edges_between_bound_vertices_are_those_of_the_graph(edges in edges(), direction in direction(), named: bool) {
        let g = graph(&edges);
        let edge = named.then_some(1);
        let op = start().scan(0, &["V"]).scan(2, &["V"]).expand(0, direction, &["E"], edge, 2, true);
        let mut expected = vec![];
        for (at, id) in IDS.iter().enumerate() {
            for (walk, end) in walks(&edges, at, direction, 1) {
                if let [edge] = walk[..] {
                    let walk = if named { written(&edges, &[edge]).replace(['[', ']'], "") } else { "null".to_owned() };
                    expected.push(format!("{id} {walk} {}", IDS[end]));
                }
            }
        }
        expected.sort();
        prop_assert_eq!(sorted(&g, &plan(op, &[0, 1, 2])), expected);
    }

    #[test]
    fn edges_that_meet_are_those_found_step_by_step(
        edges in edges(), directions in proptest::array::uniform4(direction()), arms in 2..4_u32, apart: bool,
        named: bool,
    ) {
        let g = graph(&edges);
        let edge = |slot: u32| (named || apart).then_some(slot);
        let [first, second, third, fourth] = directions;
        let unused = |op: Op, slot: u32, others: &[u32]| match apart {
            true => op.filter(Expr::Unused(Slot(slot), others.iter().map(|slot| Slot(*slot)).collect())),
            false => op,
        };
        let mut op = start().scan(0, &["V"]);
        if arms == 3 {
            op = op.scan(6, &["V"]);
        }
        let op = op.expand(0, first, &["E"], edge(1), 2, false);
        let op = unused(op.expand(2, second, &["E"], edge(3), 4, false), 3, &[1]);
        let mut op = unused(op.expand(4, third, &["E"], edge(5), 0, true), 5, &[3, 1]);
        if arms == 3 {
            op = unused(op.expand(6, fourth, &["E"], edge(7), 4, true), 7, &[1, 5, 3]);
        }
        let answer: &[u32] = if named { &[0, 1, 2, 3, 4, 5, 6, 7] } else { &[0, 2, 4, 6] };
        let counted = |op: Op| op.aggregate(vec![(9, s(2))], vec![item(8, AggregateKind::CountRows, vec![])]);
        for (op, answer, found) in [(op.clone(), answer, "intersect $4"), (counted(op), &[9, 8], "count vertices")] {
            let one_by_one = plan(op, answer);
            let mut together = one_by_one.clone();
            cycles::run(&mut together);
            counts::run(&mut together);
            keep::run(&mut together);
            prop_assert!(together.to_string().contains(found), "{}", together);
            prop_assert_eq!(sorted(&g, &together), sorted(&g, &one_by_one), "{}", together);
        }
    }

    #[test]
    fn shortest_paths_are_the_shortest_walks(
        edges in edges(), direction in direction(), min in 0..3_u32, max in proptest::option::of(1..4_u32), all: bool,
    ) {
        let g = graph(&edges);
        let which = if all { Shortest::All } else { Shortest::One };
        let op = start().scan(0, &["V"]).scan(1, &["V"]).shortest(0, 1, direction, min, max, which, 2);
        let most = max.map_or(edges.len(), |max| max as usize);
        let (mut expected, mut lengths) = (vec![], vec![]);
        for (from, id) in IDS.iter().enumerate() {
            let walks = walks(&edges, from, direction, most);
            for (to, end_id) in IDS.iter().enumerate() {
                let ending = walks.iter().filter(|(w, end)| *end == to && w.len() >= min as usize);
                let Some(shortest) = ending.clone().map(|(w, _)| w.len()).min() else { continue };
                lengths.push(format!("{id} {end_id} {shortest}"));
                for (walk, _) in ending.filter(|(w, _)| w.len() == shortest) {
                    expected.push(format!("{id} {end_id} {}", written(&edges, walk)));
                }
            }
        }
        expected.sort();
        lengths.sort();
        let found = sorted(&g, &plan(op.clone(), &[0, 1, 2]));
        if all {
            prop_assert_eq!(found, expected);
        } else {
            for walk in &found {
                prop_assert!(expected.contains(walk), "{} is not among {:?}", walk, expected);
            }
            let size = tidegraph_plan::Expr::Call(tidegraph_plan::Function::Size, vec![s(2)]);
            prop_assert_eq!(sorted(&g, &plan(op.bind_let(3, size), &[0, 1, 3])), lengths);
        }
    }
}

#[test]
fn a_long_list_beside_a_short_one_is_not_read() {
    let mut g = Graph::new();
    for id in ["a", "b", "hub"] {
        g.vertex(id, &["V"], &[]);
    }
    g.edge("a", "E", "hub");
    g.edge("a", "E", "b");
    for n in 0..6_000 {
        let id = format!("n{n}");
        g.vertex(&id, &["N"], &[]);
        g.edge("hub", "E", &id);
        if n % 2_000 == 0 {
            g.edge("b", "E", &id);
            g.edge("b", "E", &id);
        }
    }
    let op = start().look_up(lit("b"), 0).look_up(lit("hub"), 1).out(0, "E", 2);
    let op = op.expand(2, Direction::In, &["E"], None, 1, true);
    let mut together = plan(op.clone(), &[2]);
    cycles::run(&mut together);
    assert!(together.to_string().contains("intersect $2 of $0 -[E]->, $1 -[E]->"), "{together}");
    let expected = ["n0", "n0", "n2000", "n2000", "n4000", "n4000"];
    assert_eq!(sorted(&g, &together), expected);
    let mut counted = plan(op.count(5), &[5]);
    cycles::run(&mut counted);
    counts::run(&mut counted);
    assert_eq!(sorted(&g, &counted), ["6"]);
    // The other way round, the long list is the one that the steps follow.
    let op = start().look_up(lit("b"), 0).look_up(lit("hub"), 1).out(1, "E", 2);
    let mut together = plan(op.expand(2, Direction::In, &["E"], None, 0, true), &[2]);
    cycles::run(&mut together);
    assert_eq!(sorted(&g, &together), expected);
}

#[test]
fn walks_end_where_they_must_and_leave_edges_out() {
    let g = graph(&[(0, 1), (1, 2), (0, 2), (2, 3)]);
    let mut op = start().look_up(lit("a"), 0).look_up(lit("d"), 2).var(0, Direction::Out, 1, None, 1, 2);
    let Op::VarExpand { into, .. } = &mut op else { panic!() };
    *into = true;
    assert_eq!(sorted(&g, &plan(op.clone(), &[1])), ["[a-E->b, b-E->c, c-E->d]", "[a-E->c, c-E->d]"]);
    let Op::VarExpand { input, exclude, .. } = &mut op else { panic!() };
    let with_edge = std::mem::replace(&mut **input, Op::Argument);
    **input = with_edge.scan_edges(5, &[]).filter(eq(prop(5, "n"), lit(1)));
    *exclude = vec![Slot(5)];
    assert_eq!(sorted(&g, &plan(op, &[1])), ["[a-E->c, c-E->d]"]);
}

#[test]
fn a_condition_on_edges_prunes_walks() {
    let g = graph(&[(0, 1), (1, 2), (0, 2), (2, 3)]);
    let not_the_third = || Some((Slot(8), Box::new(lt(prop(8, "n"), s(7)))));
    let start_at_a = || start().look_up(lit("a"), 0).look_up(lit("c"), 2).bind_let(7, lit(2));
    let mut op = start_at_a().var(0, Direction::Out, 1, None, 1, 3);
    let Op::VarExpand { edge_filter, .. } = &mut op else { panic!() };
    *edge_filter = not_the_third();
    assert_eq!(sorted(&g, &plan(op, &[3])), ["b", "c"]);
    let mut op = start_at_a().shortest(0, 2, Direction::Out, 1, None, Shortest::One, 1);
    let Op::ShortestPath { edge_filter, .. } = &mut op else { panic!() };
    *edge_filter = not_the_third();
    assert_eq!(sorted(&g, &plan(op, &[1])), ["[a-E->b, b-E->c]"]);
}

/// A clique of two dozen vertices, and a vertex attached to it by one edge: there are
/// very many walks and no way back.
#[test]
fn a_walk_back_that_does_not_exist_is_not_searched_walk_by_walk() {
    let mut g = Graph::new();
    let ids: Vec<String> = (0..24).map(|i| format!("k{i}")).collect();
    g.vertex("a", &["V"], &[]);
    for id in &ids {
        g.vertex(id, &["V"], &[]);
    }
    g.edge("a", "E", "k0");
    for (at, from) in ids.iter().enumerate() {
        for to in &ids[at + 1..] {
            g.edge(from, "E", to);
        }
    }
    for which in [Shortest::One, Shortest::All] {
        let op = start().look_up(lit("a"), 0).shortest(0, 0, Direction::Both, 1, None, which, 1);
        assert!(sorted(&g, &plan(op, &[1])).is_empty());
    }
    // Each of the two searches reads each edge at most once from each of its ends.
    let edges = 1 + 24 * 23 / 2;
    assert!(g.rows_read.load(std::sync::atomic::Ordering::Relaxed) <= 2 * 2 * edges);
}
