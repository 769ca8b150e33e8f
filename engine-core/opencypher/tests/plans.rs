//! Golden plans of queries, a snapshot for each part of the language. Run with `INSTA_UPDATE=always` to rewrite them.

fn plans(queries: &[&str]) -> String {
    let mut text = String::new();
    for query in queries {
        text += query;
        text += "\n----\n";
        match tidegraph_opencypher::compile(query) {
            Ok(plan) => text += &plan.to_string(),
            Err(error) => text += &format!("error: {error}\n"),
        }
        text += "\n";
    }
    text
}

macro_rules! golden {
    ($name:ident, $($query:expr,)*) => {
        #[test]
        fn $name() {
            insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(stringify!($name), plans(&[$($query,)*]));
            });
        }
    };
}

golden!(
    repetitions,
    "MATCH (a:A) ((x)-[r:R]->(y {k: 1})-[s]-(z) WHERE x.k < z.k){1,3} (b) WHERE size(r) > 1 RETURN x, r",
    "MATCH p = ((x)-[:R]->())+ ((y)<-[:S]-())* RETURN p",
    "MATCH p = SHORTEST 2 GROUPS ((a)-[r:R]->+(b) WHERE size(r) > 1) WHERE length(p) < 9 AND a.k = 1 RETURN p",
    "MATCH ACYCLIC (a)-->{2}(b) RETURN a",
    "MATCH ANY SHORTEST (a)-->(b) RETURN 1",
    "MATCH (a) MATCH p = SHORTEST 2 GROUPS ((a)-[r:R]->+(b)((c)-->(d)){1,2}(e) WHERE b.k = 1) WHERE e.k < 3 AND b.k < size(r) RETURN p",
    "MATCH SHORTEST 2 ACYCLIC (p = (a)-[:R]->+(b) WHERE length(p) > 1) RETURN p",
    "MATCH REPEATABLE ELEMENTS SIMPLE (a)-->+(b), (b)-[r:R]->{1,3}(c) RETURN r",
);

golden!(
    matching,
    "MATCH (n)-[:KNOWS]->(m) WHERE id(n) = $id RETURN m.name",
    "MATCH (a:A:B {x: 1, y: $y})-[r:R|S]-(b), (b)<--(c) RETURN *",
    "MATCH (a)-->(a) RETURN a",
    "MATCH (a:A), (a:B {x: 1}) RETURN a",
    "MATCH (a {`~id`: 'v1'})-[e {`~id`: 'e1'}]->(b) RETURN b.`~id`",
    "MATCH (a), (b {x: a.x}) RETURN b",
    "MATCH (a)-[*]->()-[*2]->()-[*2..]->()-[*..3]->()-[*2..3]->(b) RETURN b",
    "MATCH (a)-[r:R* {x: 1, `~id`: 'e'}]->(b {y: 2}) RETURN r",
    "MATCH (a)-[:R*1..2 {x: a.x}]->(b) RETURN b",
    "MATCH p = (a)-->(b)<-[r]-(), q = (c) RETURN p, q",
    "MATCH p = shortestPath((a {x: 1})-[:R*..5]-(b)) RETURN length(p)",
    "MATCH allShortestPaths((a)-[rs*]->(b)) RETURN rs",
    "MATCH (n) MATCH (n)-[r]->(m) MATCH (x)-[r]->(y) RETURN x",
    "MATCH (n) WHERE n:A AND n.x > 1 AND n.y IS NOT NULL RETURN n",
);

golden!(
    load_csv,
    "LOAD CSV FROM 'file:///x.csv' AS row RETURN row[0]",
    "LOAD CSV WITH HEADERS FROM $url AS row FIELDTERMINATOR '\\t' WITH row.a AS a WHERE a > '1' RETURN a, linenumber(), file()",
    "UNWIND $urls AS url LOAD CSV FROM url AS a LOAD CSV FROM a[0] AS b RETURN b, linenumber()",
    "LOAD CSV FROM $url AS row WITH count(*) AS n RETURN n, linenumber()",
    "LOAD CSV FROM $url AS row CALL (row) { WITH 1 AS one CREATE (:A {n: linenumber()}) } RETURN DISTINCT file()",
    "MATCH (a) WHERE EXISTS { LOAD CSV FROM a.url AS row RETURN row } RETURN linenumber()",
);

golden!(
    optional_match,
    "MATCH (a) OPTIONAL MATCH (a)-[r]->(b:B) WHERE b.x > a.x RETURN a, r, b",
    "OPTIONAL MATCH (a) RETURN a",
    "MATCH (a) OPTIONAL MATCH p = (a)-->(b) MATCH (b)-->(c) RETURN p, c",
    "MATCH (a) OPTIONAL MATCH (a)-->(b) WHERE NOT (b)-->() RETURN count(b)",
);

golden!(
    subqueries,
    "MATCH (a) WHERE (a)-[:R]->(:B) AND NOT (a)<-[:S]-() AND a.x = 1 RETURN a",
    "MATCH (a) WHERE (a)-->() OR a.x = 1 RETURN a",
    "MATCH (a) WHERE exists((a)-->()) XOR exists(a.x) RETURN a",
    "MATCH (a) WHERE EXISTS { (a)-->(b:B) WHERE b.x = a.x } RETURN a",
    "MATCH (a) WHERE NOT EXISTS { MATCH (a)-->(b) WITH b, count(*) AS c WHERE c > 1 RETURN b } RETURN a",
    "MATCH (a) RETURN COUNT { (a)-->() } AS degree, [(a)-[r]->(b) WHERE b.x > 1 | b.name] AS names",
    "MATCH (a), (b) RETURN shortestPath((a)-[*]-(b)) AS p, allShortestPaths((a)-[:R*]->(b)) AS ps",
    "MATCH (a) WHERE [x IN a.list WHERE (a)-->() | x] = [] RETURN a",
);

golden!(
    projections,
    "MATCH (n) RETURN n.name, n.age + 1 AS next, n",
    "MATCH (n) WITH n AS m, n.x AS x WHERE x > 1 AND n.y = 2 RETURN m.z, x",
    "MATCH (n) WITH *, n.x AS x RETURN *",
    "MATCH (n) RETURN DISTINCT n.x AS x ORDER BY x DESC, n.x + 1 SKIP 1 LIMIT $n",
    "MATCH (n) RETURN n.x AS x ORDER BY n.y, x LIMIT 10",
    "MATCH (n) WITH n.x AS n ORDER BY n RETURN n",
    "MATCH (n) WITH DISTINCT n.x AS x WHERE n.x > 1 RETURN x",
    "UNWIND [1, 2, 3] AS x WITH x ORDER BY x DESC LIMIT 2 RETURN collect(x)",
    "RETURN 1 AS a, 'b', [1, 2.5, null], {k: 'v', l: [true]}, 1 + 2",
    "UNWIND $rows AS row UNWIND row.items AS item RETURN item.name",
);

golden!(
    aggregation,
    "MATCH (n) RETURN count(*)",
    "MATCH (n) RETURN n.x, count(n) + 1 AS c, collect(DISTINCT n.y)[0], {a: count(*)}",
    "MATCH (n) RETURN n, n.x + count(*)",
    "MATCH (n) RETURN n AS a, n AS b, sum(n.x), avg(n.x), min(n.x), max(n.x), stDev(n.x), stDevP(n.x)",
    "MATCH (n) WITH n.x AS x, count(*) AS c ORDER BY count(*) DESC, n.x LIMIT 3 WHERE c > 1 RETURN x",
    "MATCH (n) RETURN DISTINCT count(n.x) AS c ORDER BY c",
    "MATCH (a)-->(b) WITH a, collect(b) AS bs, count(*) AS c RETURN a, size(bs), c",
    "MATCH (a) RETURN a, sum(CASE WHEN (a)-->() THEN 1 ELSE 0 END)",
);

golden!(
    expressions,
    "RETURN 1 + 2 * 3 ^ 2 % 4 - -5 AS x",
    "WITH 1 AS a RETURN NOT a = 1 AND a < 2 OR a >= 3 XOR a <> 4 AS x",
    "WITH 1 AS a RETURN 1 < a <= 2, 1 < a * 2 < 3 = true",
    "WITH 'x' AS a RETURN a STARTS WITH 'b', a ENDS WITH 'c', a CONTAINS 'd', a =~ 'e.*', a IN ['x'] AS i",
    "WITH [1] AS a RETURN a[0], a[1..], a[..-1], a[1..2], a IS NULL",
    "WITH 1 AS a RETURN CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END, CASE WHEN a > 1 THEN 2 ELSE 3 END",
    "WITH 1 AS a RETURN CASE a + 1 WHEN 2 THEN 'x' ELSE 'y' END",
    "WITH [1] AS l RETURN [x IN l], [x IN l WHERE x > 1], [x IN l | x + 1], [x IN l WHERE x > 1 | [y IN l | x + y]]",
    "WITH [1] AS l RETURN all(x IN l WHERE x > 1), any(x IN l WHERE x > 1), none(x IN l WHERE x > 1), single(x IN l WHERE x > 1), reduce(a = 0, x IN l | a + x)",
    "MATCH (n) RETURN exists(n.x), elementId(n), n['x'], n:A:B, toUpper(n.x), coalesce(n.x, 1), cot(1.0), datetime('2020-01-01')",
);

golden!(
    updates,
    "CREATE (a:A {x: 1, `~id`: 'a'})-[:R {y: 2}]->(b $props)<-[e:S]-(:C) RETURN b",
    "MATCH (a) CREATE p = (a)-[:R]->(b {x: a.x}) RETURN p",
    "CREATE (a), (b) CREATE (a)-[:R]->(b)",
    "MATCH (n) SET n.x = 1, n.y = $y, n.z = n.x + 1, n:A:B, n += {k: 1} SET n = $map",
    "UNWIND $rows AS row MATCH (n {`~id`: row.id}) SET n.a = row.a, n.b = row.b",
    "MATCH (n) REMOVE n.x, n.y, n:A",
    "MATCH (a)-[r]->(b) DELETE r DETACH DELETE a, b RETURN count(*)",
    "MERGE (n:P {name: 'x'}) ON CREATE SET n.c = 1 ON MATCH SET n.m = 2, n.c = 3 RETURN n",
    "UNWIND $rows AS row MERGE (n:P {`~id`: row.`~id`, k: row.k}) SET n += row.props",
    "MATCH (a), (b) MERGE p = (a)-[r:R {w: a.w}]-(b) RETURN p",
    "MERGE (a {x: 1})-[:R]->(b {y: 2})<-[:S]-(a)",
    "MATCH (n) FOREACH (x IN [1, 2] | CREATE (:A {x: x})-[:R]->(n) SET n.x = x)",
);

golden!(
    unions,
    "RETURN 1 AS a, 2 AS b UNION RETURN 3 AS b, 4 AS a",
    "MATCH (n:A) RETURN n UNION ALL MATCH (n:B) RETURN n UNION ALL MATCH (m:C) RETURN m AS n",
);

#[test]
fn long_create_does_not_nest_without_end() {
    let nodes: Vec<String> = (0..5000).map(|i| format!("(n{i}:A {{x: {i}}})")).collect();
    let plan =
        tidegraph_opencypher::compile(&format!("CREATE {} RETURN n0, n4999", nodes.join(", "))).unwrap();
    let mut depth = 0;
    let mut op = Some(&plan.root);
    while let Some(current) = op {
        depth += 1;
        op = current.input();
    }
    assert!(depth < 200, "{depth}");
    let text = plan.to_string();
    assert_eq!(text.matches("create vertex").count(), 5000);
    assert!(text.ends_with("answer n0=$0, n4999=$4999\n"), "{}", &text[text.len() - 100..]);
}

golden!(
    maps_and_procedures,
    "MATCH (n) RETURN n{.*}",
    "MATCH (n) RETURN n {.name, age: n.age + 1, .*, n}",
    "WITH {a: 1} AS m RETURN m{}, m{b: null}",
    "MATCH (n) RETURN n{.name, friends: [(n)-->(m) | m{.name}]} AS person",
    "CALL neptune.graph.pg_schema()",
    "CALL neptune.graph.pg_schema YIELD *",
    "MATCH (n) CALL neptune.graph.pg_schema() YIELD schema AS s WHERE s.nodeLabels[0] = n.x RETURN s",
    "RETURN collSort([2, 1], {order: 'desc'}), textIndexOf('ab', 'b')",
    "MATCH (n) WITH collect(n) AS found RETURN collSortMulti(found, [{key: 'a'}], 2)",
);

golden!(
    long_creates,
    "MATCH (n) CREATE (n)-[:R]->(), (n)-[r:S]->(:A)-[:T]->(n), p = (n)-[:U]->(n) RETURN r, p",
);

/// Returns the depth to which the lines of a plan are indented.
fn depth(plan: &str) -> usize {
    plan.lines().map(|line| line.len() - line.trim_start().len()).max().unwrap_or(0)
}

#[test]
fn the_plan_of_a_long_create_is_wide_and_not_deep() {
    let text = |patterns: usize| format!("CREATE {}", vec!["(:A)"; patterns].join(", "));
    let [short, long] = [1_000, 100_000].map(|patterns| depth(&plans(&[&text(patterns)])));
    assert!(short > 0 && long <= short + 2 * 8, "{short} and {long}");
}
