//! Golden syntax trees: precedence and the forms of the grammar.

use tidegraph_opencypher::ast::ClauseKind;

/// Returns the tree of an expression.
fn tree(expression: &str) -> String {
    let query = tidegraph_opencypher::parse(&format!("RETURN {expression}")).expect(expression);
    match &query.parts[0].clauses[0].kind {
        ClauseKind::Return(projection) => format!("{:?}", projection.items[0].expr),
        other => panic!("{other:?}"),
    }
}

#[test]
fn precedence() {
    for (expression, grouped) in [
        ("a OR b XOR c AND NOT d = e", "a OR (b XOR (c AND (NOT (d = e))))"),
        ("a + b * c ^ d", "a + (b * (c ^ d))"),
        ("a - b - c", "(a - b) - c"),
        ("a ^ b ^ c", "(a ^ b) ^ c"),
        ("-a ^ b", "(-a) ^ b"),
        ("a + b IN c", "(a + b) IN c"),
        ("a = b IN c", "a = (b IN c)"),
        ("a STARTS WITH b + c = d", "(a STARTS WITH (b + c)) = d"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a.b[c].d", "((a.b)[c]).d"),
        ("-a.b", "-(a.b)"),
        ("NOT NOT a", "NOT (NOT a)"),
        ("a = b IS NULL", "a = (b IS NULL)"),
        ("1 - -2", "1 - (-2)"),
        ("a--b", "a - (-b)"),
        ("(a)--b", "a - (-b)"),
        ("a<-b", "a < (-b)"),
    ] {
        assert_eq!(tree(expression), tree(grouped), "{expression}");
    }
}

#[test]
fn forms() {
    let forms = [
        "1",
        "-1",
        "- 9223372036854775808",
        "0x1F",
        "0o17",
        ".5",
        "1e3",
        "1.5E-3",
        "'it''s'",
        r#""a\"b\n\u0041""#,
        "$x",
        "$1",
        "$`a b`",
        "`a b`.`c``d`",
        "[]",
        "[1, [2]]",
        "{}",
        "{a: 1, match: 2, `b c`: 3}",
        "a < b <= c",
        "count(*)",
        "COUNT(DISTINCT a)",
        "a.b.c(1)",
        "x.foo",
        "[x IN a]",
        "[x IN a WHERE x | y]",
        "[(a)-->(b) | b]",
        "[p = (a)-[:R*]->(b) WHERE b.x | p]",
        "[a = (b)]",
        "exists((a)-->())",
        "(a:A)",
        "(a)-[:R]->(b)",
        "(a) - [1]",
        "EXISTS { MATCH (a) }",
        "EXISTS { (a)-->(b) WHERE a.x }",
        "COUNT { (a) }",
        "shortestPath((a)-[*]-(b))",
        "CASE a WHEN 1 THEN 2 ELSE 3 END",
        "any(x IN a WHERE x)",
        "reduce(a = 0, x IN b | a + x)",
        "end",
        "a.end",
        "count",
        "all(x IN a WHERE x)",
        "none",
        "a IS NOT NULL",
        "x[1..]",
        "x[..1]",
        "x[..]",
        "+1",
        "a /* c */ + // d\n b",
    ];
    let mut text = String::new();
    for form in forms {
        let outcome = tidegraph_opencypher::parse(&format!("RETURN {form}"));
        text += &match outcome {
            Ok(_) => format!("{form}\n    {}\n", tree(form)),
            Err(error) => format!("{form}\n    error: {error}\n"),
        };
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("forms", text);
    });
}

#[test]
fn clauses() {
    let query = "\
MATCH p = (a:A {x: 1})<-[r:R|S*2..3]-(b), shortestPath((a)-[*]-(b)) WHERE a.x
OPTIONAL MATCH (c) UNWIND [1] AS i WITH DISTINCT *, i AS j ORDER BY i DESC, j ASC SKIP 1 LIMIT 2 WHERE i
CREATE (d $props) MERGE (e) ON MATCH SET e.x = 1 ON CREATE SET e:E SET d = {a: 1}, d += $m
REMOVE d.x, d:D DETACH DELETE d FOREACH (x IN [1] | DELETE x) RETURN a AS b, count( * )
UNION ALL RETURN 1;";
    let tree = format!("{:#?}", tidegraph_opencypher::parse(query).unwrap());
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("clauses", tree);
    });
}
