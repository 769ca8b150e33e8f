//! Every text gives a plan or an error, never a panic. The position of an error is inside the text.

use proptest::prelude::*;
use tidegraph_plan::FrontEndError;

fn check(text: &str) {
    let Err(error) = tidegraph_opencypher::compile(text) else { return };
    let (FrontEndError::Syntax { line, column, .. } | FrontEndError::Unsupported { line, column, .. }) =
        error
    else {
        panic!("{text:?} {error}");
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let in_line = lines.get(line as usize - 1).map(|l| l.chars().count());
    assert!(in_line.is_some_and(|n| column as usize <= n + 1), "{text:?} {line}:{column}");
}

const PIECES: &[&str] = &[
    "MATCH",
    "OPTIONAL",
    "WHERE",
    "WITH",
    "RETURN",
    "UNWIND",
    "CREATE",
    "MERGE",
    "ON",
    "SET",
    "REMOVE",
    "DELETE",
    "DETACH",
    "UNION",
    "ALL",
    "ORDER",
    "BY",
    "SKIP",
    "LIMIT",
    "AS",
    "DISTINCT",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AND",
    "OR",
    "NOT",
    "XOR",
    "IN",
    "IS",
    "NULL",
    "EXISTS",
    "count(*)",
    "count(",
    "shortestPath(",
    "reduce(",
    "any(",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "(a)",
    "(b:B)",
    "-[r]->",
    "-->",
    "--",
    "<-",
    "-",
    ">",
    "<",
    "*",
    "..",
    "|",
    ":",
    ",",
    ".",
    "$p",
    "a",
    "b",
    "n",
    "x",
    "1",
    "2.5",
    "'s'",
    "`q`",
    "=",
    "+",
    "+=",
    "<>",
    "=~",
    "a.x",
    "a:A",
    "[1, 2]",
    "{k: 1}",
    "FOREACH (",
    "\n",
    "//",
    "/*",
    "*/",
    "\\",
    "é",
    "\u{10ffff}",
    ";",
    "RETURN a",
    "MATCH (a)-[r*1..2]->(b)",
];

const QUERIES: &[&str] = &[
    "MATCH p = (a:A {x: 1})-[r:R*1..3]->(b) WHERE NOT (a)-->(b) AND a.x IN [1, 2] RETURN a.x AS x, count(*) ORDER BY x",
    "UNWIND $rows AS row MERGE (n:P {`~id`: row.id}) ON CREATE SET n.a = row.a RETURN [x IN nodes(p) WHERE x.y | x.z]",
    "MATCH (a) WITH DISTINCT a.x AS x, collect(a)[0..2] AS l WHERE x > 'é' RETURN CASE x WHEN 1 THEN {a: l} END UNION RETURN 2",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_bytes_made_text(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn pieces_of_the_language(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)) {
        check(&pieces.join(" "));
        check(&pieces.concat());
    }

    #[test]
    fn damaged_queries(
        query in proptest::sample::select(QUERIES),
        cut in any::<proptest::sample::Index>(),
        piece in proptest::sample::select(PIECES),
        length in 0usize..6,
    ) {
        let chars: Vec<char> = query.chars().collect();
        let at = cut.index(chars.len());
        let head: String = chars[..at].iter().collect();
        let tail: String = chars[(at + length).min(chars.len())..].iter().collect();
        check(&head);
        check(&format!("{head}{tail}"));
        check(&format!("{head}{piece}{tail}"));
        check(&format!("{head} {piece} {tail}"));
    }
}
