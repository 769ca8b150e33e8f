//! Queries on the "modern" graph with their correct answers, in both languages.

mod support;

use support::{empty, modern, refused, run};

/// Checks rows in any order.
fn check(cases: &[(&str, &[&str])]) {
    let database = modern();
    for (text, expected) in cases {
        let mut rows = run(&database, text);
        let mut expected: Vec<String> = expected.iter().map(|s| (*s).to_owned()).collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{text}");
    }
}

/// Checks rows in this order.
fn check_ordered(cases: &[(&str, &[&str])]) {
    let database = modern();
    for (text, expected) in cases {
        assert_eq!(&run(&database, text)[..], *expected, "{text}");
    }
}

/// A limit that drops rows as they arrive leaves the first rows of the full order, equal ones in the order of their arrival.
#[test]
fn the_first_of_many_sorted_rows_are_those_of_the_full_order() {
    let database = empty();
    let rows = "UNWIND range(0, 9999) AS i WITH i, CASE WHEN i % 11 = 0 THEN null ELSE i * 7919 % 401 END AS a, \
                toString(i * 31 % 17) AS b RETURN i";
    for order in ["a", "a DESC", "a, b DESC", "b, a DESC", "b DESC", "a % 3, b, i DESC", "'x'", "'x', a"] {
        let all = run(&database, &format!("{rows} ORDER BY {order}"));
        for (skip, limit) in [(0, 1), (0, 20), (30, 50), (0, 3_000), (9_990, 20), (5, 0)] {
            let some = run(&database, &format!("{rows} ORDER BY {order} SKIP {skip} LIMIT {limit}"));
            let expected: Vec<_> = all.iter().skip(skip).take(limit).cloned().collect();
            assert_eq!(some, expected, "{order}, {skip}, {limit}");
        }
    }
}

#[test]
fn gremlin_moves_and_filters() {
    check(&[
        ("g.V().count()", &["6"]),
        ("g.E().count()", &["6"]),
        ("g.V('1').out('knows').values('name')", &["vadas", "josh"]),
        ("g.V(1).out().values('name')", &["vadas", "josh", "lop"]),
        ("g.V('nobody').out()", &[]),
        ("g.V('1').outE('created').inV().values('name')", &["lop"]),
        ("g.V('3').in('created').values('name')", &["marko", "josh", "peter"]),
        ("g.V('4').both().values('name')", &["ripple", "lop", "marko"]),
        ("g.V('4').bothE().count()", &["3"]),
        ("g.V('1').outE('knows').otherV().values('name')", &["vadas", "josh"]),
        ("g.V().hasLabel('software').values('name')", &["lop", "ripple"]),
        ("g.V().has('age', gt(30)).values('name')", &["josh", "peter"]),
        ("g.V().has('person', 'name', 'marko').values('age')", &["29"]),
        ("g.V().has('name', within('marko', 'lop')).id()", &["1", "3"]),
        ("g.V().has('name', TextP.startingWith('m')).id()", &["1"]),
        ("g.V().hasNot('age').values('name')", &["lop", "ripple"]),
        ("g.V().hasId('2', '3').values('name')", &["vadas", "lop"]),
        ("g.V().where(out('created').count().is(gte(2))).values('name')", &["josh"]),
        ("g.V().filter(out('knows')).values('name')", &["marko"]),
        ("g.V().not(out()).values('name')", &["vadas", "lop", "ripple"]),
        ("g.V().and(out('knows'), out('created')).id()", &["1"]),
        ("g.V().or(has('age', 27), hasLabel('software')).id()", &["2", "3", "5"]),
        ("g.V().values('age').is(lt(30))", &["29", "27"]),
        (
            "g.V().as('a').out('created').in('created').where(neq('a')).dedup().values('name')",
            &["marko", "josh", "peter"],
        ),
        ("g.E().has('weight', 1.0).count()", &["2"]),
    ]);
}

#[test]
fn gremlin_maps_and_reduces() {
    check(&[
        ("g.V('1').valueMap('name')", &["{name: [marko]}"]),
        ("g.V('1').elementMap('name')", &["{ID: 1, LABEL: person, name: marko}"]),
        ("g.V().hasLabel('person').values('age').sum()", &["123"]),
        ("g.V().values('age').mean()", &["30.75"]),
        ("g.V().values('age').max()", &["35"]),
        ("g.V().values('age').min()", &["27"]),
        ("g.V().values('nothing').sum()", &[]),
        ("g.V().values('nothing').count()", &["0"]),
        ("g.V().values('nothing').fold()", &["[]"]),
        ("g.V().groupCount().by(label)", &["{person: 4, software: 2}"]),
        ("g.V().group().by(label).by(count())", &["{person: 4, software: 2}"]),
        (
            "g.V().hasLabel('person').group().by('name').by(out('created').count())",
            &["{josh: 2, marko: 1, peter: 1, vadas: 0}"],
        ),
        ("g.V('1').project('name', 'out').by('name').by(out().count())", &["{name: marko, out: 3}"]),
        (
            "g.V().as('a').out('knows').as('b').select('a', 'b').by('name')",
            &["{a: marko, b: vadas}", "{a: marko, b: josh}"],
        ),
        ("g.V('1').out().path().by('name')", &["<marko, vadas>", "<marko, josh>", "<marko, lop>"]),
        ("g.V('1').union(out('knows'), out('created')).values('name')", &["vadas", "josh", "lop"]),
        ("g.V('1', '2').coalesce(out('created'), constant('none'))", &["v[3]", "none"]),
        (
            "g.V().choose(hasLabel('person'), values('age'), values('lang')).dedup()",
            &["29", "27", "32", "35", "java"],
        ),
        ("g.V('1', '2').optional(out('created')).values('name')", &["lop", "vadas"]),
        ("g.V('1').repeat(out()).times(2).values('name')", &["ripple", "lop"]),
        ("g.V('1').repeat(out()).emit().values('name')", &["vadas", "josh", "lop", "ripple", "lop"]),
        ("g.V('1').repeat(out()).until(hasLabel('software')).values('name')", &["lop", "ripple", "lop"]),
        ("g.V('1').repeat(both().simplePath()).times(2).values('name')", &["ripple", "lop", "josh", "peter"]),
        ("g.inject(1, 2, 3).fold().unfold().sum()", &["6"]),
        ("g.V().local(outE().limit(1)).count()", &["3"]),
        ("g.V('1').out('knows').fold().count(local)", &["2"]),
    ]);
}

#[test]
fn gremlin_orders() {
    check_ordered(&[
        ("g.V().values('name').order()", &["josh", "lop", "marko", "peter", "ripple", "vadas"]),
        (
            "g.V().hasLabel('person').order().by('age', desc).values('name')",
            &["peter", "josh", "marko", "vadas"],
        ),
        (
            "g.V().hasLabel('person').order().by(out().count(), desc).by('name').values('name').limit(2)",
            &["marko", "josh"],
        ),
        ("g.V().values('name').order().range(1, 3)", &["lop", "marko"]),
        ("g.V().values('name').order().tail(2)", &["ripple", "vadas"]),
        ("g.V().values('name').order().skip(4)", &["ripple", "vadas"]),
    ]);
}

#[test]
fn opencypher_matches() {
    check(&[
        ("MATCH (n) RETURN count(*)", &["6"]),
        ("MATCH (a:person)-[:knows]->(b) RETURN a.name, b.name", &["marko | vadas", "marko | josh"]),
        ("MATCH (n {name: 'marko'}) RETURN n.age, id(n), labels(n)", &["29 | 1 | [person]"]),
        ("MATCH (n) WHERE id(n) = '4' RETURN n.name", &["josh"]),
        ("MATCH (n) WHERE id(n) IN ['1', 'x', '3'] RETURN n.name", &["marko", "lop"]),
        ("MATCH (n:person) WHERE n.age > 28 AND n.age < 33 RETURN n.name", &["marko", "josh"]),
        (
            "MATCH (a)-[r:created|knows]->(b) WHERE a.name = 'marko' RETURN type(r), b.name",
            &["knows | vadas", "knows | josh", "created | lop"],
        ),
        ("MATCH (a {name: 'marko'})--(b)--(c) RETURN DISTINCT c.name", &["lop", "ripple", "josh", "peter"]),
        ("MATCH (a {name: 'marko'})-[*1..2]->(b) RETURN b.name", &["vadas", "josh", "lop", "ripple", "lop"]),
        ("MATCH (a {name: 'marko'})-[*0..1]->(b) RETURN b.name", &["marko", "vadas", "josh", "lop"]),
        (
            "MATCH p = (a {name: 'marko'})-[:knows]->()-[:created]->(b) RETURN length(p), [n IN nodes(p) | n.name]",
            &["2 | [marko, josh, ripple]", "2 | [marko, josh, lop]"],
        ),
        (
            "MATCH (a:person) OPTIONAL MATCH (a)-[:knows]->(b) RETURN a.name, b.name",
            &["marko | vadas", "marko | josh", "vadas | null", "josh | null", "peter | null"],
        ),
        ("MATCH (n:person) WHERE (n)-[:created]->() RETURN n.name", &["marko", "josh", "peter"]),
        ("MATCH (n:person) WHERE NOT (n)-->() RETURN n.name", &["vadas"]),
        (
            "MATCH (n) WHERE EXISTS { MATCH (n)-[:created]->(m) WHERE m.name = 'ripple' } RETURN n.name",
            &["josh"],
        ),
        (
            "MATCH (a {name: 'vadas'}), (b {name: 'ripple'}) MATCH p = shortestPath((a)-[*]-(b)) RETURN [n IN nodes(p) | n.name]",
            &["[vadas, marko, josh, ripple]"],
        ),
        (
            "MATCH (a)-[:created]->(x)<-[:created]-(b) WHERE a.name < b.name RETURN a.name, b.name",
            &["josh | marko", "josh | peter", "marko | peter"],
        ),
        ("MATCH (n) WHERE n:software RETURN n.name", &["lop", "ripple"]),
        ("MATCH ()-[r]->() WHERE r.weight >= 1.0 RETURN count(r)", &["2"]),
        ("MATCH (n:nothing) RETURN n", &[]),
    ]);
}

#[test]
fn opencypher_computes() {
    check_ordered(&[
        ("RETURN 1 + 2 * 3 AS x, 7 / 2, 7.0 / 2, 7 % 4, 2 ^ 3", &["7 | 3 | 3.5 | 3 | 8.0"]),
        ("RETURN [1, 2, 3][1], [1, 2, 3][-1], [1, 2, 3][0..2], {a: 1}.a", &["2 | 3 | [1, 2] | 1"]),
        ("RETURN null = null, null IS NULL, NOT null, 1 IN [2, null]", &["null | true | null | null"]),
        ("UNWIND [3, 1, 2] AS x RETURN x ORDER BY x DESC", &["3", "2", "1"]),
        (
            "UNWIND range(1, 10) AS x WITH x WHERE x % 2 = 0 RETURN sum(x), avg(x), min(x), max(x), count(*), collect(x)",
            &["30 | 6.0 | 2 | 10 | 5 | [2, 4, 6, 8, 10]"],
        ),
        ("MATCH (n:person) RETURN n.name ORDER BY n.age SKIP 1 LIMIT 2", &["marko", "josh"]),
        (
            "MATCH (n) RETURN labels(n)[0] AS label, count(*) AS n ORDER BY label",
            &["person | 4", "software | 2"],
        ),
        (
            "MATCH (n:person) RETURN CASE WHEN n.age > 30 THEN 'old' ELSE 'young' END AS c, count(*) ORDER BY c",
            &["old | 2", "young | 2"],
        ),
        (
            "MATCH (n:person) WITH n.name AS name ORDER BY name RETURN collect(name)",
            &["[josh, marko, peter, vadas]"],
        ),
        ("RETURN [x IN range(1, 5) WHERE x > 2 | x * 10]", &["[30, 40, 50]"]),
        (
            "RETURN all(x IN [1, 2] WHERE x > 0), any(x IN [] WHERE true), reduce(s = 0, x IN [1, 2, 3] | s + x)",
            &["true | false | 6"],
        ),
        (
            "RETURN toUpper('a') + 'b', substring('hello', 1, 3), split('a,b', ','), size('abc')",
            &["Ab | ell | [a, b] | 3"],
        ),
        ("UNWIND range(5, 1, -2) AS x RETURN x", &["5", "3", "1"]),
        ("UNWIND range(3, 1) AS x RETURN x", &[]),
        ("UNWIND [2, 0, 1] AS n UNWIND range(1, n) AS x RETURN n, x", &["2 | 1", "2 | 2", "1 | 1"]),
        (
            "UNWIND range(9223372036854775806, 9223372036854775807) AS x RETURN x",
            &["9223372036854775806", "9223372036854775807"],
        ),
        ("UNWIND range(1, 1000000000) AS x UNWIND range(1, 1000000000) AS y RETURN y LIMIT 1", &["1"]),
        ("RETURN 1 AS x UNION RETURN 1 AS x", &["1"]),
        ("RETURN 1 AS x UNION ALL RETURN 1 AS x", &["1", "1"]),
        ("MATCH (n:nothing) RETURN count(n), sum(n.x), collect(n.x)", &["0 | 0 | []"]),
        ("MATCH (n:person) RETURN DISTINCT n.age > 30 AS o ORDER BY o", &["false", "true"]),
    ]);
}

#[test]
fn opencypher_writes() {
    let db = modern();
    assert_eq!(run(&db, "CREATE (n:city {name: 'Oslo'}) RETURN n.name, labels(n)"), ["Oslo | [city]"]);
    assert_eq!(
        run(&db, "MATCH (n:city) SET n.size = 7, n:big RETURN n.size, labels(n)"),
        ["7 | [city, big]"]
    );
    assert_eq!(run(&db, "MATCH (n:city) REMOVE n.size, n:big RETURN n.size, labels(n)"), ["null | [city]"]);
    assert_eq!(run(&db, "MATCH (n:city) SET n += {a: 1, b: 2} RETURN n.a + n.b, n.name"), ["3 | Oslo"]);
    assert_eq!(run(&db, "MATCH (n:city) SET n = {c: 3} RETURN n.a, n.c, n.name"), ["null | 3 | null"]);
    let merge = "MERGE (n:city {name: 'Rome'}) ON CREATE SET n.made = 1 ON MATCH SET n.made = n.made + 1 RETURN n.made";
    assert_eq!(run(&db, merge), ["1"]);
    assert_eq!(run(&db, merge), ["2"]);
    assert_eq!(run(&db, "UNWIND [1, 1, 2] AS x MERGE (n:once {x: x}) RETURN count(*)"), ["3"]);
    assert_eq!(run(&db, "MATCH (n:once) RETURN count(n)"), ["2"]);
    run(&db, "MATCH (a {name: 'marko'}), (b {name: 'peter'}) MERGE (a)-[:knows]->(b)");
    run(&db, "MATCH (a {name: 'marko'}), (b {name: 'peter'}) MERGE (a)-[:knows]->(b)");
    assert_eq!(run(&db, "MATCH ({name: 'marko'})-[:knows]->(b) RETURN count(b)"), ["3"]);
    assert!(refused(&db, "MATCH (n {name: 'marko'}) DELETE n").starts_with("ConstraintViolationException"));
    run(&db, "MATCH (n {name: 'marko'}) DETACH DELETE n");
    assert_eq!(run(&db, "MATCH (n {name: 'lop'})<--(m) RETURN m.name ORDER BY m.name"), ["josh", "peter"]);
    assert_eq!(run(&db, "MATCH ()-[r]->() RETURN count(r)"), ["3"]);
    run(&db, "MATCH ()-[r:created]->() DELETE r");
    assert_eq!(run(&db, "MATCH ()-[r]->() RETURN count(r)"), ["0"]);
    // A clause sees the graph as the clause before it left it.
    run(&db, "MATCH (n) CREATE (:copy)");
    assert_eq!(
        run(&db, "MATCH (n:copy) RETURN count(n)"),
        run(&db, "MATCH (n) WHERE NOT n:copy RETURN count(n)")
    );
}

#[test]
fn gremlin_writes() {
    let db = modern();
    assert_eq!(
        run(&db, "g.addV('city').property(id, 'c1').property('name', 'Oslo').values('name')"),
        ["Oslo"]
    );
    assert_eq!(
        run(&db, "g.V('c1').property('name', 'Bergen').values('name')").len(),
        2,
        "the default cardinality is set"
    );
    assert_eq!(run(&db, "g.V('c1').property(single, 'name', 'Bergen').values('name')"), ["Bergen"]);
    assert_eq!(
        run(&db, "g.V('1').addE('visits').to(__.V('c1')).property('year', 2020).values('year')"),
        ["2020"]
    );
    assert_eq!(run(&db, "g.V('c1').in('visits').id()"), ["1"]);
    assert_eq!(run(&db, "g.V('2').as('a').V('c1').addE('visits').from('a').outV().id()"), ["2"]);
    run(&db, "g.V('1').outE('visits').drop()");
    assert_eq!(run(&db, "g.V('c1').in('visits').id()"), ["2"]);
    run(&db, "g.V('c1').properties('name').drop()");
    assert_eq!(run(&db, "g.V('c1').values('name').count()"), ["0"]);
    run(&db, "g.V('c1').drop()");
    assert_eq!(run(&db, "g.V('2').out('visits').count()"), ["0"]);
    assert!(refused(&db, "g.addV('person').property(id, '1')").starts_with("ConstraintViolationException"));
    run(&db, "g.V().sideEffect(property(single, 'seen', true)).count()");
    assert_eq!(run(&db, "g.V().has('seen', true).count()"), ["6"]);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let db = modern();
    for (text, expected) in [
        ("MATCH (n RETURN n", "MalformedQueryException"),
        ("MATCH (n) RETURN m", "MalformedQueryException"),
        ("g.V().out(", "MalformedQueryException"),
        ("g.V().nonsense()", "MalformedQueryException"),
        ("CALL neptune.algo.pageRank()", "UnsupportedOperationException"),
        ("RETURN 1 + {a: 1}", "InvalidArgumentException"),
        ("RETURN 9223372036854775807 + 1", "InvalidArgumentException"),
        ("RETURN $missing", "MissingParameterException"),
        ("CREATE (n {x: [1, 'a']})", "InvalidArgumentException"),
    ] {
        let error = refused(&db, text);
        assert!(error.starts_with(expected), "{text}: {error}");
        if expected.starts_with("Malformed") || expected.starts_with("Unsupported") {
            let place = error.rsplit(" at ").next().unwrap_or_default();
            assert!(place.split(':').all(|n| n.parse::<u32>().is_ok()), "no line:column in {error}");
        }
    }
}

#[test]
fn a_writing_clause_is_complete_before_the_next() {
    let cases = [
        // Two rows have the same node.
        ("UNWIND [1, 2] AS i MATCH (n:N) SET n.b = n.a SET n.a = 3 RETURN DISTINCT n.a, n.b", "3 | 1"),
        ("UNWIND [1, 2] AS i MATCH (n:N) SET n.b = n.a SET n.a = null RETURN DISTINCT n.a, n.b", "null | 1"),
        // A node is `x` of one row and `y` of another.
        ("MATCH (x), (y) WHERE id(x) <> id(y) SET x.c = 1 SET y.c = 2 RETURN DISTINCT x.c", "2"),
        ("MATCH (x), (y) WHERE id(x) <> id(y) REMOVE x:N DETACH DELETE y RETURN count(*)", "2"),
        ("MATCH (x), (y) WHERE id(x) <> id(y) SET x:P REMOVE y:P RETURN DISTINCT x:P", "false"),
    ];
    for (text, expected) in cases {
        let database = empty();
        run(&database, "CREATE (:N {a: 1})-[:R]->(:M {a: 1})");
        assert_eq!(run(&database, text), [expected], "{text}");
    }
}

#[test]
fn gremlin_filters_follow_connectives_inside_where() {
    check(&[
        ("g.V().where(__.not(out('knows')).has('age', 27)).values('name')", &["vadas"]),
        ("g.V().where(__.and(out('knows'), out('created')).has('age', gt(28))).values('name')", &["marko"]),
        (
            "g.V().where(__.or(out('knows'), in('knows')).hasLabel('person').hasId('4')).values('name')",
            &["josh"],
        ),
    ]);
}

#[test]
fn gremlin_branches_that_count_need_a_traverser() {
    check(&[
        ("g.V().hasLabel('nothing').union(count(), out().count())", &[]),
        ("g.V().hasLabel('nothing').choose(has('age'), count(), identity())", &[]),
        ("g.V().hasLabel('person').union(count(), out('created').count())", &["4", "4"]),
    ]);
}
