//! Conditions that the planner pushes down to storage give the same answers as operators of the
//! executor: with and without indexes, and inside a transaction that changed the graph itself.

mod support;

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::{BTreeMap, BTreeSet};
use support::{ask, empty, run, show};
use tidegraph_engine::{Database, Language, Parameters};
use tidegraph_types::Value;

/// Creates vertices with label A, B, both or none, each with several values, one value or none.
fn fill(databases: &[&Database], random: &mut StdRng) {
    let labels = ["", ":A", ":B", ":A:B"];
    let mut texts = vec![];
    for i in 0..400 {
        let v = match random.random_range(0..6) {
            0 => format!("'t{}'", random.random_range(0..9)),
            1 => "null".to_owned(),
            2 => format!("{}.5", random.random_range(0..20)),
            _ => random.random_range(0..40).to_string(),
        };
        let labels = labels.choose(random).expect("one");
        let w = random.random_range(0..10);
        texts.push(format!("CREATE ({labels} {{`~id`: 'n{i}', i: {i}, v: {v}, w: {w}}})"));
    }
    for _ in 0..40 {
        let (i, v) = (random.random_range(0..400), random.random_range(0..40));
        texts.push(format!("g.V('n{i}').property(set, 'v', {v})"));
    }
    for _ in 0..900 {
        let (a, b, w) =
            (random.random_range(0..20), random.random_range(0..400), random.random_range(0..100));
        let weight = if w < 90 { format!(" {{weight: {w}}}") } else { String::new() };
        let label = ["X", "Y"].choose(random).expect("one");
        texts.push(format!(
            "MATCH (a), (b) WHERE id(a) = 'n{a}' AND id(b) = 'n{b}' CREATE (a)-[:{label}{weight}]->(b)"
        ));
    }
    for database in databases {
        texts.iter().for_each(|text| drop(run(database, text)));
    }
}

fn condition(random: &mut StdRng) -> String {
    let number = random.random_range(0..40);
    let text = random.random_range(0..9);
    match random.random_range(0..16) {
        0 => format!("n.v = {number}"),
        1 => format!("{number}.5 = n.v"),
        2 => format!("n.v = 't{text}'"),
        3 => format!("n.v IN [{number}, 't{text}', null]"),
        4 => "n.v IN $list".to_owned(),
        5 => "n.v = $value".to_owned(),
        6 => "n.v = $list".to_owned(),
        7 => format!("n.v > {number} AND n.v <= {}", number + 5),
        8 => format!("n.v >= 't{text}'"),
        9 => "n.v STARTS WITH $prefix".to_owned(),
        10 => format!("n.v = {number} OR n.v = 't{text}' OR n.v IN [1, 2]"),
        11 => "n.v IS NOT NULL".to_owned(),
        12 => format!("n.v <> {number}"),
        13 => format!("n.v = {number} AND n.w < 5"),
        14 => "n.v = $absent OR n.v = null".to_owned(),
        _ => format!("n.v < {number} AND n.w = 3 AND n.i > 100"),
    }
}

fn parameters(random: &mut StdRng) -> Parameters {
    let number = Value::Long(random.random_range(0..40));
    let list = Value::list(vec![number.clone(), Value::string("t3"), Value::Double(4.5), Value::Null]);
    let mut parameters = Parameters::default();
    parameters.insert("value".into(), number);
    parameters.insert("list".into(), list);
    parameters.insert("prefix".into(), Value::string("t"));
    parameters.insert("absent".into(), Value::Null);
    parameters
}

fn answer(database: &Database, text: &str, parameters: &Parameters) -> Vec<String> {
    match ask(database, text, parameters) {
        Ok(rows) => rows.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join(" | ")).collect(),
        Err(error) => vec![format!("{}: {error}", error.code())],
    }
}

/// Returns a query, and an equivalent query of which nothing can be pushed down.
fn questions(random: &mut StdRng) -> (String, String) {
    let condition = condition(random);
    let labels = *["", ":A", ":B", ":A:B"].choose(random).expect("one");
    let write = match random.random_range(0..8) {
        0 => "MATCH (x:A) WHERE x.i < 30 SET x.v = 7 WITH count(*) AS done ",
        1 => "CREATE (:A {i: 1000, v: 5}), (:B:A {i: 1001, v: 't1', w: 3}) WITH count(*) AS done ",
        2 => "MATCH (x) WHERE x.i % 50 = 1 DETACH DELETE x WITH count(*) AS done ",
        3 => "MATCH (x) WHERE x.i % 50 = 2 SET x:B REMOVE x:A WITH count(*) AS done ",
        _ => "",
    };
    let both = |with: String, without: String| (format!("{write}{with}"), format!("{write}{without}"));
    match random.random_range(0..5) {
        0 => both(
            format!("MATCH (n{labels}) WHERE {condition} RETURN count(*)"),
            format!(
                "MATCH (n{labels}) WHERE NOT NOT ({condition}) WITH collect(n) AS found RETURN size(found)"
            ),
        ),
        1 => both(
            format!("MATCH (n{labels}) WHERE {condition} RETURN count(n), count(*)"),
            format!(
                "MATCH (n{labels}) WHERE NOT NOT ({condition}) WITH collect(n) AS found RETURN size(found), size(found) AS again"
            ),
        ),
        2 => both(
            format!(
                "UNWIND [3, 't2', 8, null, 3] AS x MATCH (n{labels}) WHERE n.v = x RETURN x, n.i ORDER BY x, n.i"
            ),
            format!(
                "UNWIND [3, 't2', 8, null, 3] AS x MATCH (n{labels}) WHERE NOT NOT (n.v = x) RETURN x, n.i ORDER BY x, n.i"
            ),
        ),
        3 => both(
            format!(
                "MATCH (m:A) WHERE m.i < 60 MATCH (n{labels} {{v: m.v}}) WHERE {condition} RETURN m.i, n.i ORDER BY m.i, n.i"
            ),
            format!(
                "MATCH (m:A) WHERE m.i < 60 MATCH (n{labels}) WHERE NOT NOT (n.v = m.v AND ({condition})) RETURN m.i, n.i ORDER BY m.i, n.i"
            ),
        ),
        _ => both(
            format!("MATCH (n{labels}) WHERE {condition} RETURN n.i ORDER BY n.i"),
            format!("MATCH (n{labels}) WHERE NOT NOT ({condition}) RETURN n.i ORDER BY n.i"),
        ),
    }
}

#[test]
fn conditions_of_scans_are_those_of_filters() {
    for seed in 0..3 {
        let random = &mut StdRng::seed_from_u64(seed);
        let (pushed, plain) = (empty(), empty());
        fill(&[&pushed, &plain], random);
        for round in 0..240 {
            match round {
                80 => drop(run(&pushed, "CREATE INDEX a FOR (n:A) ON (n.v)")),
                160 => drop(run(&pushed, "CREATE INDEX b FOR (n:B) ON (n.v)")),
                _ => {}
            }
            let (with, without) = questions(random);
            let parameters = parameters(random);
            let place = format!("seed {seed}, round {round}: {with}");
            assert_eq!(answer(&pushed, &with, &parameters), answer(&plain, &without, &parameters), "{place}");
        }
    }
}

#[test]
fn vertices_that_rows_name_are_those_of_a_filter() {
    let database = empty();
    fill(&[&database], &mut StdRng::seed_from_u64(4));
    run(&database, "CREATE ({`~id`: '7', i: 1000}), ({`~id`: 'true', i: 1001})");
    let one = "['n1', 'n2', 'n1', 'none', '7', null, 7, 7.0, true, ['n3', 'n3', 4], {a: 'n4'}, '']";
    let many = "[['n1', 'n2', 'n1'], [], [null, 'n5'], [7, 'n1', '7'], [['n2'], 'n3'], null]";
    let ids = Value::List(std::sync::Arc::new(["n4", "n9", "n4", "7"].map(Value::string).to_vec()));
    let parameters: Parameters = [("ids".into(), ids)].into_iter().collect();
    for (list, condition) in [
        (one, "id(n) = x"),
        (one, "x = n.`~id`"),
        (one, "id(n) = x AND n.i < 400"),
        (many, "id(n) IN x"),
        (many, "id(n) IN [x[0], 'n8', x[0]]"),
        ("[0, 1]", "id(n) IN $ids"),
        ("[0, 3]", "id(n) = $ids[x]"),
        ("[{id: 'n2'}, {id: 7}, {}]", "id(n) = x.id"),
    ] {
        for clause in ["MATCH", "OPTIONAL MATCH"] {
            let asked = |condition: &str| {
                let text = format!(
                    "UNWIND {list} AS x {clause} (n)-[:X|Y*0..1]->(m) WHERE {condition} RETURN n.i, m.i ORDER BY n.i, m.i"
                );
                answer(&database, &text, &parameters)
            };
            let found = asked(condition);
            assert!(found.len() > 2, "{condition} finds nothing");
            assert_eq!(found, asked(&format!("NOT NOT ({condition})")), "{clause} {condition} of {list}");
        }
    }
    // A query can change and merge vertices that its rows name.
    let rows = "[{id: 'n1', v: 'a'}, {id: 'new', v: 'b'}, {id: 'new', v: 'c'}]";
    run(&database, &format!("UNWIND {rows} AS row MERGE (n {{`~id`: row.id}}) SET n.seen = row.v"));
    let seen = "MATCH (n) WHERE n.seen IS NOT NULL RETURN id(n), n.seen ORDER BY id(n)";
    assert_eq!(run(&database, seen), ["n1 | a", "new | c"]);
}

#[test]
fn edges_that_come_first_are_those_of_a_sort() {
    let random = &mut StdRng::seed_from_u64(9);
    let database = empty();
    fill(&[&database], random);
    for round in 0..60 {
        let (skip, limit) = (random.random_range(0..3), random.random_range(0..12));
        let order = *["", " DESC"].choose(random).expect("one");
        let arrow = *["-[r]->", "<-[r]-", "-[r:X]->"].choose(random).expect("one");
        let from = random.random_range(0..20);
        let start = *["WHERE id(a) = 'n1'", "WHERE a.i < 15", "WHERE a.i < 0"].choose(random).expect("one");
        let write = if round % 4 == 0 {
            format!("MATCH (x)-[y]->() WHERE x.i = {from} SET y.weight = 1 WITH count(*) AS done ")
        } else {
            String::new()
        };
        let slice = format!("SKIP {skip} LIMIT {limit}");
        let pushed = format!(
            "{write}MATCH (a){arrow}(b) {start} RETURN a.i, r.weight, b.i ORDER BY r.weight{order} {slice}"
        );
        let plain = format!(
            "{write}MATCH (a){arrow}(b) {start} WITH a, r, b, coalesce(r.weight, null) AS w RETURN a.i, w, b.i ORDER BY w{order} {slice}"
        );
        assert_eq!(run(&database, &pushed), run(&database, &plain), "round {round}: {pushed}");
    }
}

#[test]
fn what_cannot_be_computed_is_an_error_only_where_there_is_a_vertex() {
    let database = empty();
    let mut parameters = Parameters::default();
    parameters.insert("list".into(), Value::list(vec![Value::Long(1)]));
    let text = "UNWIND $list AS x MATCH (n:T) WHERE n.v = x.y RETURN n";
    assert_eq!(answer(&database, text, &parameters), Vec::<String>::new());
    run(&database, "CREATE (:T {v: 1})");
    assert!(ask(&database, text, &parameters).is_err());
}

#[test]
fn plans_name_what_storage_does() {
    let database = empty();
    let plan = |text: &str| {
        let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
        database.explain(language, text).expect("a plan")
    };
    for (text, expected) in [
        ("MATCH (n:A {v: 1}) RETURN count(*)", "counted in storage"),
        ("MATCH (n:A)-[:X]->(m) RETURN count(m)", "counted in storage"),
        ("g.V().hasLabel('A').has('v', 1).count()", "counted in storage"),
        ("MATCH (n:A) WHERE n.v > 1 AND n.v < 5 RETURN n", "v > 1 v < 5"),
        ("MATCH (n) WHERE n.v = 1 OR n.v IN [2, 3] RETURN n", "v in [1, 2, 3]"),
        (
            "MATCH (a:A)-[r:X]->(b) RETURN b ORDER BY r.weight DESC LIMIT 3",
            "first edges $1 by weight in storage",
        ),
        ("UNWIND $ids AS id MATCH (p:A {v: id}) RETURN p", "v = $"),
    ] {
        let text = plan(text);
        assert!(text.contains(expected), "{expected} in:\n{text}");
        assert!(!text.contains("filter"), "{text}");
    }
    let plain = plan("MATCH (n:A) WHERE n.v <> 1 RETURN count(*)");
    assert!(plain.contains("filter") && !plain.contains("counted"), "{plain}");
}

#[test]
fn a_sample_of_a_scan_is_drawn_from_all_that_passes() {
    let database = empty();
    fill(&[&database], &mut StdRng::seed_from_u64(5));
    let passing = "g.V().hasLabel('A').has('w', 3)";
    let all: BTreeSet<String> = run(&database, &format!("{passing}.id()")).into_iter().collect();
    assert!((10..40).contains(&all.len()), "{all:?}");
    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..1000 {
        let some: BTreeSet<String> =
            run(&database, &format!("{passing}.sample(2).id()")).into_iter().collect();
        assert!(some.len() == 2 && some.is_subset(&all), "{some:?} of {all:?}");
        some.into_iter().for_each(|id| *drawn.entry(id).or_default() += 1);
    }
    // The limit is half of the mean, more than six standard deviations below it.
    let fewest = 1000 / all.len();
    assert!(all.iter().all(|id| drawn.get(id).is_some_and(|count| *count > fewest)), "{drawn:?}");
    let every: BTreeSet<String> =
        run(&database, &format!("{passing}.sample(1000).id()")).into_iter().collect();
    assert_eq!(every, all);
    let ages = run(&database, &format!("{passing}.sample(1000).values('i')"));
    assert_eq!(ages.len(), all.len(), "with what is used of them later");
}
