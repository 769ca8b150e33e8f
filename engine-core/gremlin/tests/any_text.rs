//! No text causes a panic in the front end.

use proptest::prelude::*;
use tidegraph_gremlin::{compile, parse};

/// Pieces of random texts, chosen so that many texts are nearly valid.
const PIECES: &[&str] = &[
    "g",
    ".",
    "V",
    "E",
    "()",
    "(",
    ")",
    "out(",
    "in()",
    "both('a')",
    "outE()",
    "inV()",
    "otherV()",
    "has('a', ",
    "gt(1)",
    "P.within(",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "'x'",
    "\"y\"",
    "1",
    "-2.5f",
    "0x1F",
    "1..3",
    "__",
    "as('a')",
    "select('a')",
    "by(",
    "by('k')",
    "order()",
    "group()",
    "repeat(",
    "times(2)",
    "until(",
    "emit()",
    "path()",
    "union(",
    "choose(",
    "option(",
    "coalesce(",
    "local(",
    "fold()",
    "unfold()",
    "count()",
    "is(",
    "not(",
    "and()",
    "or()",
    "where(",
    "T.id",
    "label",
    "local",
    "keys",
    "addV('a')",
    "addE('b')",
    "property(",
    "from(",
    "to('a')",
    "drop()",
    "mergeV(",
    "mergeE(",
    "x",
    "null",
    "NaN",
    "datetime('2020-01-01')",
    "//",
    "\n",
    ";",
    " ",
    "\\",
    "'",
    "toList()",
    "next(",
    "limit(",
    "dedup(",
    "valueMap(",
    "project('a')",
    "sideEffect(",
    "inject(",
    "optional(",
    "tail(local, 1)",
    ".out()",
    ".values('k')",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn of_any_characters(text in "\\PC*") {
        let _ = compile(&text);
    }

    #[test]
    fn of_pieces(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24)) {
        let text = format!("g.V(){}", pieces.concat());
        let _ = compile(&text);
        let _ = parse(&pieces.concat());
    }

    #[test]
    fn of_chained_pieces(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..16)) {
        let text = format!("g.V().{}", pieces.join("."));
        let _ = compile(&text);
    }

    #[test]
    fn of_cut_traversals(cut in 0usize..200) {
        let text = "g.V('ü').repeat(out('a').simplePath()).until(has('x', P.gt(1).or(lt(2.5d)))).emit().path().by('k')\
            .group().by(T.label).by(out().order().by('n', desc).limit(2).fold())\
            .choose(values('a')).option('b', __.in()).option(none, constant([a: 1, (T.id): '\\u00e9']))";
        if let Some(text) = text.get(..cut) {
            let _ = compile(text);
        }
    }
}
