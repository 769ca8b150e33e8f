//! Exact error messages: what was found, what was expected, and where.

use tidegraph_opencypher::compile_within;
use tidegraph_plan::{FrontEndError, Limits, Procedures, Stopped};

fn error(query: &str) -> String {
    match tidegraph_opencypher::compile(query) {
        Ok(plan) => panic!("{query}\n{plan}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages() {
    let compiled: Vec<&&str> =
        QUERIES.iter().filter(|query| tidegraph_opencypher::compile(query).is_ok()).collect();
    assert!(compiled.is_empty(), "{compiled:#?}");
    let mut text = String::new();
    for query in QUERIES {
        text += &format!("{query}\n    {}\n", error(query));
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("errors", text);
    });
}

#[test]
fn codes() {
    let code = |query| tidegraph_opencypher::compile(query).unwrap_err().code().as_str();
    assert_eq!(code("RETURN ("), "MalformedQueryException");
    assert_eq!(code("RETURN foo(1)"), "MalformedQueryException");
    assert_eq!(code("CALL apoc.help()"), "UnsupportedOperationException");
}

#[test]
fn examples() {
    assert_eq!(error("RETURN 1 + ) "), "unexpected ')', expected an expression at 1:12");
    assert_eq!(error("MATCH (n)\nRETURN m"), "variable `m` is not defined at 2:8");
    assert_eq!(error("RETURN 'é' + x"), "variable `x` is not defined at 1:14");
    assert_eq!(error("RETURN foo(1)"), "unknown function: foo at 1:8");
    assert_eq!(error("RETURN vector()"), "not supported yet: vector() at 1:8");
}

#[test]
fn deep_and_long_input_is_an_error() {
    let deep = "query is nested too deeply, expected at most 200 levels";
    let long = "expression is too long, expected at most 300 operators in a row";
    for (query, expected) in [
        (format!("RETURN {}1{}", "(".repeat(100_000), ")".repeat(100_000)), deep),
        (format!("RETURN {}", "(".repeat(100_000)), deep),
        (format!("RETURN {}1", "[".repeat(100_000)), deep),
        (format!("RETURN {}1", "{a:".repeat(100_000)), deep),
        (format!("RETURN {}true", "NOT ".repeat(100_000)), deep),
        (format!("WITH 1 AS x RETURN {}x", "-".repeat(100_001)), deep),
        (format!("RETURN {}", "EXISTS { MATCH (a) WHERE ".repeat(100_000)), deep),
        (format!("MATCH {}", "(".repeat(100_000)), deep),
        (format!("MATCH (n) {}", "FOREACH (x IN [1] | ".repeat(100_000)), deep),
        (format!("RETURN {}", "CASE WHEN ".repeat(100_000)), deep),
        (format!("RETURN 1{}", " + 1".repeat(100_000)), long),
        (format!("RETURN x{}", ".y".repeat(100_000)), long),
        (format!("RETURN x{}", "[0]".repeat(100_000)), long),
        (format!("RETURN x{}", " IS NULL".repeat(100_000)), long),
        (
            format!("MATCH (n) {} RETURN n", "MATCH (n) ".repeat(100_000)),
            "query is too long, expected at most 5000 operators",
        ),
        (
            format!("MATCH (a){} RETURN a", "-->()".repeat(2_000)),
            "query is too long, expected at most 5000 operators at 1:6258",
        ),
        (format!("RETURN rand(){}", " < rand()".repeat(50_000)), long),
    ] {
        let error = error(&query);
        assert!(error.starts_with(expected), "{}: {error}", &query[..40]);
    }
}

#[test]
fn long_flat_input_is_fine() {
    for query in [
        format!("MATCH (n) WHERE n.x = 0{} RETURN n", " OR n.x = 1".repeat(20_000)),
        format!("MATCH (n) WHERE n.x = 0{} RETURN n", " AND n.x = 1".repeat(20_000)),
        format!("RETURN [0{}]", ", 1".repeat(100_000)),
        format!("WITH 1 AS x RETURN 0{}", " < x".repeat(20_000)),
        format!("WITH 1 AS x RETURN CASE {} END", "WHEN x = 1 THEN 2 ".repeat(20_000)),
        format!("MATCH (a){} RETURN a", "-->()".repeat(1_000)),
        format!("MATCH (n) SET n.x = 0{}", (0..5_000).map(|i| format!(", n.p{i} = {i}")).collect::<String>()),
    ] {
        tidegraph_opencypher::compile(&query).unwrap();
    }
}

/// A text of exactly the maximum depth must not exhaust the stack later, when it is lowered, printed or dropped.
#[test]
fn nearly_too_deep_is_fine() {
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("WITH $x AS x RETURN {}{inner}{} AS y", open.repeat(depth), close.repeat(depth))
    };
    for query in [
        nested("(", "x", ")", 190),
        nested("[", "x", "]", 190),
        nested("{a: ", "x", "}", 190),
        nested("NOT ", "x = 1", "", 190),
        nested("head([x IN ", "[x]", "])", 90),
        nested("CASE WHEN x = 1 THEN ", "x", " END", 190),
        nested("EXISTS { MATCH (a) WHERE ", "x = 1", " }", 60),
        nested("COUNT { MATCH (a) WHERE 1 = ", "x", " }", 40),
        nested("", "x", " + 1", 290),
        nested("", "x", "[0]", 290),
    ] {
        match tidegraph_opencypher::compile(&query) {
            Ok(plan) => assert!(plan.clone() == plan && !plan.to_string().is_empty()),
            Err(error) => panic!("{}: {error}", &query[..40]),
        }
    }
}

/// Nested operators with shared operands must not grow exponentially.
#[test]
fn nesting_does_not_multiply() {
    let mut case = String::from("x");
    let mut chain = String::from("x");
    for _ in 0..60 {
        case = format!("CASE {case} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 4 END");
        chain = format!("1 < ({chain}) < 3");
    }
    for expression in [case, chain] {
        let plan = tidegraph_opencypher::compile(&format!("WITH 1 AS x RETURN {expression} AS y")).unwrap();
        assert!(plan.to_string().len() < 20_000);
    }
}

const QUERIES: &[&str] = &[
    // Syntax.
    "",
    "   // nothing\n",
    "RETURN",
    "RETURN (1",
    "RETURN [1, 2",
    "RETURN {a: 1",
    "RETURN {1: 2}",
    "RETURN 1 2",
    "RETURN 1 +",
    "RETURN a.",
    "RETURN 'abc",
    "RETURN `abc",
    "RETURN /* abc",
    "RETURN 1 ~ 2",
    "RETURN # 1",
    "RETURN 12abc",
    "RETURN 0x",
    "RETURN 017",
    "RETURN 9223372036854775808",
    "RETURN -9223372036854775809",
    "RETURN 1e999",
    "RETURN '\\q'",
    "RETURN $",
    "RETURN $ x",
    "MATCH n RETURN n",
    "MATCH (n RETURN n",
    "MATCH (n:) RETURN n",
    "MATCH (a)-[r]>(b) RETURN a",
    "MATCH (a)-[r:]-(b) RETURN a",
    "MATCH (a)-[*1..2..3]-(b) RETURN a",
    "MATCH (a)-[*99999999999]-(b) RETURN a",
    "MATCH (a)->(b) RETURN a",
    "MATCH (match) RETURN 1",
    "MATCH (n) WHERE RETURN n",
    "MATCH (n) RETURN n ORDER n.x",
    "MATCH (n) RETURN n LIMIT",
    "MATCH (n) RETURN n.x AS",
    "OPTIONAL (n) RETURN n",
    "UNWIND [1] RETURN 1",
    "UNWIND [1] AS x.y RETURN 1",
    "MERGE (n) ON DELETE SET n.x = 1",
    "MATCH (n) SET n",
    "MATCH (n) SET n.x",
    "MATCH (n) SET 1 = 2",
    "MATCH (n) REMOVE n",
    "MATCH (n) DETACH n",
    "RETURN CASE 1 END",
    "RETURN CASE WHEN 1 = 1 THEN 2",
    "RETURN CASE WHEN 1 = 1 2",
    "RETURN any(x IN [1])",
    "RETURN reduce(a = 0, x IN [1])",
    "RETURN [x IN [1] WHERE x > 1 ; x]",
    "RETURN 1 IS 2",
    "RETURN 'a' STARTS 'b'",
    "RETURN 1; RETURN 2",
    "RETURN 1 UNION",
    "RETURN EXISTS { }",
    "FOO (n)",
    // Names.
    "RETURN x",
    "MATCH (n) RETURN m.x",
    "MATCH (n) WITH n.x AS x RETURN n",
    "MATCH (n) RETURN n.x AS x, n.y AS x",
    "MATCH (a)-[r]->(b)-[r]->(c) RETURN a",
    "MATCH (a) UNWIND [1] AS a RETURN a",
    "MATCH p = (a) MATCH p = (b) RETURN p",
    "MATCH (a)-[a]->(b) RETURN a",
    "MATCH (a)-[r]->(b) MATCH (r) RETURN r",
    "MATCH p = (a) MATCH (p) RETURN p",
    "WITH 1 AS n MATCH (n) RETURN n",
    "MATCH (a) WHERE (a)-->(b) RETURN a",
    "MATCH (a) WHERE (a)-[r]->() RETURN a",
    "MATCH (a) CREATE (a)",
    "MATCH (a) CREATE (a:B)-[:R]->()",
    "MATCH (a)-[r:R]->(b) CREATE (a)-[r:R]->(b)",
    "MATCH (a) MERGE (a)",
    "MATCH (a) MERGE (a)-[:R]->(b)-[:S]->(a:B)",
    "MERGE (a)-[:R]->(a:B)",
    "RETURN *",
    "MATCH (n) RETURN DISTINCT n.x ORDER BY n.y",
    "MATCH (n) RETURN n.x LIMIT n.y",
    // Clauses.
    "MATCH (n)",
    "UNWIND [1] AS x",
    "MATCH (n) WITH n",
    "RETURN 1 MATCH (n) RETURN n",
    "CREATE (n) MATCH (m) RETURN m",
    "MATCH (n) WITH n.x RETURN 1",
    "MATCH (n) WITH n, count(*) RETURN 1",
    "RETURN 1 AS a UNION RETURN 2 AS b",
    "RETURN 1 AS a UNION RETURN 1 AS a, 2 AS b",
    "RETURN 1 AS a UNION RETURN 2 AS a UNION ALL RETURN 3 AS a",
    "CREATE (a) UNION CREATE (b)",
    "MATCH (n) WHERE EXISTS { CREATE (m) } RETURN n",
    "FOREACH (x IN [1] | MATCH (n))",
    "FOREACH (x IN [1] | )",
    // Types.
    "RETURN 1 AND true",
    "RETURN NOT 'a'",
    "MATCH (n) WHERE 'a' RETURN n",
    "MATCH (n) WHERE n RETURN n",
    "RETURN 1 IN 2",
    "WITH 1 AS x RETURN x.y",
    "RETURN -'a'",
    "RETURN 'a' - 1",
    "MATCH (n) RETURN type(n)",
    "MATCH ()-[r]->() RETURN labels(r)",
    "MATCH (n) RETURN length(n)",
    "MATCH p = (n) RETURN size(p)",
    "MATCH (n) RETURN (n)-->()",
    "MATCH (n) RETURN size((n)-->())",
    "MATCH (n) RETURN n[1..2]",
    "MATCH (n) RETURN n LIMIT -1",
    "MATCH (n) RETURN n SKIP 1.5",
    "MATCH (n) RETURN n LIMIT 'a'",
    "MATCH (n) DELETE 1",
    "MATCH (n) DELETE n:A",
    "MATCH (n) DELETE n.x",
    "WITH 1 AS x SET x.y = 2",
    "MATCH (n) SET n = 1",
    "MATCH ()-[r]->() SET r:A",
    "MATCH (n) SET n.`~id` = 'x'",
    "MATCH (n) SET (n.x + 1):A",
    // Aggregation.
    "MATCH (n) WHERE count(n) > 1 RETURN n",
    "MATCH (n) RETURN count(count(n))",
    "RETURN count(rand())",
    "MATCH (n) RETURN n.x ORDER BY count(n)",
    "MATCH (n) RETURN n.x + count(*)",
    "MATCH (n) RETURN n.x + n.y, n.x + n.y + count(*)",
    "MATCH (n) RETURN [x IN [1] | count(x)]",
    "MATCH (n) RETURN count(n) AS c ORDER BY n.x",
    "MATCH (n) SET n.x = count(n)",
    "RETURN sum()",
    "RETURN sum(1, 2)",
    // Functions.
    "RETURN foo(1)",
    "RETURN foo.bar(1)",
    "RETURN id()",
    "RETURN substring('a')",
    "RETURN pi(1)",
    "RETURN coalesce()",
    "RETURN toUpper(DISTINCT 'a')",
    "RETURN exists(1)",
    // Writing.
    "CREATE (a)-[r]->(b)",
    "CREATE (a)-[:R|S]->(b)",
    "CREATE (a)-[:R]-(b)",
    "CREATE (a)-[:R*2]->(b)",
    "CREATE shortestPath((a)-[:R]->(b))",
    "MERGE (a)-[r]->(b)",
    "MERGE (a {x: null})",
    "MERGE (a $props)",
    "MATCH (a $props) RETURN a",
    "MATCH p = shortestPath((a)) RETURN p",
    "MATCH p = shortestPath((a)-->(b)-->(c)) RETURN p",
    "MATCH p = shortestPath((a)-[*2..]->(b)) RETURN p",
    // Not supported yet.
    "CALL apoc.help() YIELD name RETURN name",
    "CALL nonsense() YIELD x RETURN x",
    "CALL neptune.algo.bfs(1) YIELD node RETURN node",
    "CALL neptune.graph.pg_schema(1, 2) YIELD schema RETURN schema",
    "CALL neptune.graph.pg_schema() YIELD x RETURN x",
    "MATCH (n) CALL neptune.graph.pg_schema() YIELD * RETURN n",
    "MATCH (n) CALL neptune.graph.pg_schema() YIELD schema",
    "CALL neptune.graph.pg_schema( YIELD schema",
    "CALL neptune. YIELD schema",
    "RETURN join([1])",
    "RETURN collSortMulti()",
    // LOAD CSV.
    "LOAD 'x' AS row RETURN row",
    "LOAD CSV 'x' AS row RETURN row",
    "LOAD CSV WITH FROM 'x' AS row RETURN row",
    "LOAD CSV WITH HEADERS 'x' AS row RETURN row",
    "LOAD CSV FROM 'x' RETURN row",
    "LOAD CSV FROM 'x' AS 1 RETURN row",
    "LOAD CSV FROM 1 AS row RETURN row",
    "LOAD CSV FROM 'x' AS row",
    "LOAD CSV FROM y AS row RETURN row",
    "UNWIND [1] AS row LOAD CSV FROM 'x' AS row RETURN row",
    "CREATE (a) LOAD CSV FROM 'x' AS row RETURN row",
    "FOREACH (i IN [1] | LOAD CSV FROM 'x' AS row)",
    "LOAD CSV FROM 'x' AS row FIELDTERMINATOR RETURN row",
    "LOAD CSV FROM 'x' AS row FIELDTERMINATOR $t RETURN row",
    "LOAD CSV FROM 'x' AS row FIELDTERMINATOR '' RETURN row",
    "LOAD CSV FROM 'x' AS row FIELDTERMINATOR ';;' RETURN row",
    "LOAD CSV FROM 'x' AS row FIELDTERMINATOR '\"' RETURN row",
    "LOAD CSV FROM 'x' AS row FIELDTERMINATOR '\\n' RETURN row",
    "RETURN linenumber(1)",
    "RETURN file('x')",
    // Not supported yet, either.
    "CREATE INDEX foo FOR (n:A) ON (n.x)",
    "EXPLAIN RETURN 1",
    "MATCH ((a)-->(b)) (c) RETURN a",
    "MATCH (((a)-->(b))+ (c)-->(d)){2} RETURN 1",
    "MATCH ((a)-[*1..2]->(b))+ RETURN 1",
    "MATCH ((a)-->+(b)){2} RETURN 1",
    "MATCH (a) ((a)-->(b))+ RETURN 1",
    "MATCH ((a)-->(b))+ (b) RETURN 1",
    "MATCH ((a)-->(b)){3,1} RETURN 1",
    "MATCH ((a)-->(b)){0} RETURN 1",
    "MATCH ((a))+ RETURN 1",
    "MATCH (z) ((a)-->(b) WHERE a.n < z.n)+ RETURN 1",
    "MATCH ((a)-->(b))+ RETURN a.n",
    "MATCH (p = (a)-->(p))+ RETURN 1",
    "MATCH q = (p = (a)-->(b)) RETURN 1",
    "MATCH ((a)-->(b))+-->(c) RETURN 1",
    "MATCH (((a)-->(b) WHERE true) WHERE true) RETURN 1",
    "MATCH p = shortestPath(((a)-->(b))+) RETURN 1",
    "MATCH p = SHORTEST 2 (a)-[*]->(b)-->(c) RETURN 1",
    "MATCH p = SHORTEST 2 (a)-->+(b)-->(c), (d) RETURN 1",
    "MATCH REPEATABLE ELEMENTS SHORTEST 2 (a)-->{1,2}(b)-->(c), (d) RETURN 1",
    "MATCH REPEATABLE ELEMENTS ANY SHORTEST (a)-->+(b)-->(c) RETURN 1",
    "MATCH p = SHORTEST 0 (a)-->+(b) RETURN 1",
    "MATCH p = SHORTEST 2 (a)-->+(b), (c) RETURN 1",
    "MATCH p = SHORTEST 2 ((a)-->+(b) WHERE length(p) > 1) RETURN 1",
    "MATCH SHORTEST 2 ((a)-->+(b) WHERE EXISTS { (a)-->(b) }) RETURN 1",
    "MATCH REPEATABLE ELEMENTS (a)-->+(b) RETURN 1",
    "MATCH REPEATABLE ELEMENTS p = shortestPath((a)-[*]->(b)) RETURN 1",
    "MATCH REPEATABLE NODES (a)-->{2}(b) RETURN 1",
    "MATCH DIFFERENT NODES (a)-->{2}(b) RETURN 1",
    "MATCH ACYCLIC paths2 (a)-->+(b) RETURN 1",
    "CREATE ACYCLIC (a)-[:T]->(b)",
    "CREATE SHORTEST 2 (a)-[:T]->+(b)",
    "CREATE ((a)-[:T]->(b)){2}",
    "CREATE ((a)-[:T]->(b) WHERE true)",
    "MATCH (n) RETURN n {.name, }",
    "MATCH (n) RETURN n {.name .age}",
    "MATCH (n) RETURN n {*}",
    "MATCH (n) RETURN n {name: }",
    "MATCH (n) RETURN n {m}",
    "RETURN 1 AS n ORDER BY n {.a}",
    "RETURN duration.between(1, 2)",
    "RETURN date.yesterday()",
    "RETURN duration()",
];

/// Returns a long text with an error at its end.
fn long_and_wrong() -> String {
    format!("RETURN [0{}", ", 1".repeat(100_000))
}

#[test]
fn parsing_and_lowering_end_when_the_caller_wants_it() {
    for text in [long_and_wrong(), format!("RETURN x{}", ", x AS x".repeat(100_000))] {
        // Stops at the first check, and at the second.
        for checks in [0_u32, 1] {
            let left = std::cell::Cell::new(checks);
            let go_on = || left.replace(left.get().saturating_sub(1)) > 0;
            let result = compile_within(&text, Procedures::builtin(), &Limits::new(u64::MAX, &go_on));
            assert_eq!(result, Err(FrontEndError::Stopped(Stopped::Interrupted)), "{checks}");
        }
        assert!(matches!(tidegraph_opencypher::compile(&text), Err(FrontEndError::Syntax { .. })));
    }
}

#[test]
fn parsing_ends_at_the_memory_limit() {
    let limit_bytes = 2 << 20;
    let result =
        compile_within(&long_and_wrong(), Procedures::builtin(), &Limits::new(limit_bytes, &|| true));
    assert_eq!(result, Err(FrontEndError::Stopped(Stopped::Memory { limit_bytes })));
}
