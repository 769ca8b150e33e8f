//! String functions, openCypher's list functions, and openCypher's paths.

use super::*;
use tidegraph_plan::Function as F;
use tidegraph_types::{Edge, Gui, Sid, Token};

#[test]
fn strings() {
    check(vec![
        (call(F::ToUpper, [s("grüß")]), Ok("GRÜSS".into())),
        (call(F::ToLower, [s("GRÜN")]), Ok("grün".into())),
        (call(F::ToUpper, [l(12)]), Err("toUpper() takes a string, not 12 (long)")),
        (call(F::ToLower, [null()]), Ok(Value::Null)),
        (call(F::Trim, [s("  a b ")]), Ok("a b".into())),
        (call(F::LTrim, [s("  a ")]), Ok("a ".into())),
        (call(F::RTrim, [s("  a ")]), Ok("  a".into())),
        (call(F::Left, [s("grün"), l(3)]), Ok("grü".into())),
        (call(F::Left, [s("a"), l(3)]), Ok("a".into())),
        (call(F::Left, [s("a"), l(0)]), Ok("".into())),
        (call(F::Left, [s("a"), l(-1)]), Err("left() takes no negative number: -1")),
        (call(F::Left, [s("a"), s("b")]), Err("left() takes an integer, not 'b' (string)")),
        (call(F::Left, [null(), l(1)]), Ok(Value::Null)),
        (call(F::Right, [s("grün"), l(2)]), Ok("ün".into())),
        (call(F::Right, [s("a"), l(3)]), Ok("a".into())),
        (call(F::Right, [s("a"), l(0)]), Ok("".into())),
        (call(F::Substring, [s("héllo"), l(1)]), Ok("éllo".into())),
        (call(F::Substring, [s("héllo"), l(1), l(3)]), Ok("éll".into())),
        (call(F::Substring, [s("héllo"), l(9)]), Ok("".into())),
        (call(F::Substring, [s("héllo"), l(3), l(9)]), Ok("lo".into())),
        (call(F::Substring, [s("héllo"), l(0), l(0)]), Ok("".into())),
        (call(F::Substring, [s("héllo"), l(-1)]), Err("substring() takes no negative number: -1")),
        (call(F::Substring, [s("héllo"), null()]), Ok(Value::Null)),
        (call(F::Replace, [s("hello"), s("l"), s("w")]), Ok("hewwo".into())),
        (call(F::Replace, [s("hello"), s("x"), s("w")]), Ok("hello".into())),
        (call(F::Replace, [s("hello"), null(), s("w")]), Ok(Value::Null)),
        (call(F::Replace, [s("hello"), l(1), s("w")]), Err("replace() takes a string, not 1 (long)")),
        (call(F::Split, [s("one,two"), s(",")]), Ok(texts(["one", "two"]))),
        (call(F::Split, [s("one"), s(",")]), Ok(texts(["one"]))),
        (call(F::Split, [s(",one,"), s(",")]), Ok(texts(["", "one", ""]))),
        (call(F::Split, [s("añb"), s("")]), Ok(texts(["a", "ñ", "b"]))),
        (call(F::Split, [s("a"), null()]), Ok(Value::Null)),
        (call(F::Reverse, [s("abc")]), Ok("cba".into())),
        (call(F::Size, [s("grün")]), Ok(4_i64.into())),
    ]);
}

#[test]
fn tests_of_strings() {
    check(vec![
        (call(F::StartsWith, [s("abc"), s("ab")]), Ok(true.into())),
        (call(F::StartsWith, [s("abc"), s("b")]), Ok(false.into())),
        (call(F::StartsWith, [s("abc"), s("")]), Ok(true.into())),
        (call(F::EndsWith, [s("abc"), s("bc")]), Ok(true.into())),
        (call(F::Contains, [s("abc"), s("b")]), Ok(true.into())),
        (call(F::Contains, [s("abc"), s("B")]), Ok(false.into())),
        (call(F::Contains, [l(1), s("1")]), Ok(Value::Null)),
        (call(F::Contains, [s("1"), l(1)]), Ok(Value::Null)),
        (call(F::StartsWith, [null(), s("1")]), Ok(Value::Null)),
        (call(F::Regex, [s("marko"), s("^mar")]), Ok(true.into())),
        (call(F::Regex, [s("marko"), s("r.o")]), Ok(true.into())),
        (call(F::Regex, [s("marko"), s("^ark")]), Ok(false.into())),
        (call(F::MatchesWhole, [s("marko"), s("mar")]), Ok(false.into())),
        (call(F::MatchesWhole, [s("marko"), s("mar.*")]), Ok(true.into())),
        (call(F::MatchesWhole, [s("marko"), s("a|marko")]), Ok(true.into())),
        (call(F::MatchesWhole, [s("MARKO"), s("(?i)marko")]), Ok(true.into())),
        (call(F::MatchesWhole, [l(1), s("1")]), Ok(Value::Null)),
        (call(F::MatchesWhole, [null(), s("1")]), Ok(Value::Null)),
        (call(F::MatchesWhole, [s("a"), s("(")]), Err("=~ takes a regular expression, this is none: '('")),
        (
            call(F::Regex, [s("a"), s("(\\w{100}){100}")]),
            Err("regex() takes no regular expression as large as this: '(\\w{100}){100}'"),
        ),
    ]);
}

#[test]
fn lists() {
    check(vec![
        (call(F::Size, [e(longs([1, 2]))]), Ok(2_i64.into())),
        (call(F::Size, [e(map([("a", 1.into())]))]), Ok(1_i64.into())),
        (call(F::Size, [null()]), Ok(Value::Null)),
        (call(F::Size, [l(1)]), Err("size() takes a list, string or map, not 1 (long)")),
        (call(F::Head, [e(longs([1, 2]))]), Ok(1_i64.into())),
        (call(F::Head, [e(longs([]))]), Ok(Value::Null)),
        (call(F::Head, [s("a")]), Err("head() takes a list, not 'a' (string)")),
        (call(F::Last, [e(longs([1, 2]))]), Ok(2_i64.into())),
        (call(F::Last, [e(longs([]))]), Ok(Value::Null)),
        (call(F::ListTail, [e(longs([1, 2, 3]))]), Ok(longs([2, 3]))),
        (call(F::ListTail, [e(longs([]))]), Ok(longs([]))),
        (call(F::Reverse, [e(longs([1, 2, 3]))]), Ok(longs([3, 2, 1]))),
        (call(F::Reverse, [l(1)]), Err("reverse() takes a list or string, not 1 (long)")),
        (call(F::Range, [l(0), l(3)]), Ok(longs([0, 1, 2, 3]))),
        (call(F::Range, [l(0), l(10), l(4)]), Ok(longs([0, 4, 8]))),
        (call(F::Range, [l(3), l(0), l(-1)]), Ok(longs([3, 2, 1, 0]))),
        (call(F::Range, [l(3), l(0)]), Ok(longs([]))),
        (call(F::Range, [l(0), l(3), l(-1)]), Ok(longs([]))),
        (call(F::Range, [l(5), l(5)]), Ok(longs([5]))),
        (call(F::Range, [l(i64::MAX - 1), l(i64::MAX)]), Ok(longs([i64::MAX - 1, i64::MAX]))),
        (call(F::Range, [l(i64::MIN), l(i64::MAX), l(i64::MAX)]), Ok(longs([i64::MIN, -1, i64::MAX - 1]))),
        (call(F::Range, [l(0), l(3), l(0)]), Err("range() takes no step of zero: 0")),
        (call(F::Range, [l(0), s("a")]), Err("range() takes integers, not 'a' (string)")),
        (call(F::Range, [l(0), null()]), Ok(Value::Null)),
    ]);
}

#[test]
fn errors_show_no_more_than_the_start_of_a_value() {
    let long = e(Value::list(vec![Value::string("x".repeat(100)); 1000]));
    let error = eval(&call(F::ToUpper, [long])).expect_err("a list").to_string();
    assert_eq!(error, format!("toUpper() takes a string, not ['{}… (list)", "x".repeat(58)));
}

fn v(gui: u64) -> Value {
    Value::Vertex(Gui(gui))
}

fn edge(sid: u64, source: u64, target: u64) -> Value {
    Value::Edge(Edge { sid: Sid(sid), source: Gui(source), target: Gui(target), label: Token(0) })
}

#[test]
fn ends_of_edges() {
    let ab = || e(edge(1, 10, 20));
    check(vec![
        (call(F::StartNode, [ab()]), Ok(v(10))),
        (call(F::EndNode, [ab()]), Ok(v(20))),
        (call(F::OtherNode, [ab(), e(v(10))]), Ok(v(20))),
        (call(F::OtherNode, [ab(), e(v(20))]), Ok(v(10))),
        (call(F::OtherNode, [e(edge(1, 10, 10)), e(v(10))]), Ok(v(10))),
        (call(F::OtherNode, [ab(), null()]), Ok(Value::Null)),
        (call(F::StartNode, [null()]), Ok(Value::Null)),
        (call(F::StartNode, [e(v(1))]), Err("startNode() takes an edge, not a vertex")),
        (
            call(F::OtherNode, [ab(), l(1)]),
            Err("otherV() takes a vertex that the edge was reached from, not 1 (long)"),
        ),
    ]);
}

#[test]
fn paths() {
    // 10 → 20 → 30, then 40 → 30 walked backwards.
    let (ab, bc, dc) = (edge(1, 10, 20), edge(2, 20, 30), edge(3, 40, 30));
    let whole = || path([v(10), ab.clone(), v(20), bc.clone(), v(30), dc.clone(), v(40)], &[]);
    let listed = || e(values([bc.clone(), dc.clone()]));
    check(vec![
        (call(F::MakePath, [e(v(10)), e(ab.clone()), e(v(20)), listed(), e(v(40))]), Ok(whole())),
        (call(F::MakePath, [e(v(10))]), Ok(path([v(10)], &[]))),
        (call(F::MakePath, [e(v(10)), e(values([])), e(v(10))]), Ok(path([v(10)], &[]))),
        (call(F::MakePath, [e(v(10)), null(), e(v(10))]), Ok(Value::Null)),
        (
            call(F::MakePath, [e(v(10)), listed(), e(v(40))]),
            Err("a path takes edges that follow each other, not an edge"),
        ),
        (call(F::Nodes, [e(whole())]), Ok(values([v(10), v(20), v(30), v(40)]))),
        (call(F::Relationships, [e(whole())]), Ok(values([ab.clone(), bc.clone(), dc.clone()]))),
        (call(F::Length, [e(whole())]), Ok(3_i64.into())),
        (call(F::Length, [e(path([v(10)], &[]))]), Ok(0_i64.into())),
        (call(F::Length, [null()]), Ok(Value::Null)),
        (call(F::Length, [s("abc")]), Err("length() takes a path, not 'abc' (string)")),
        (call(F::Nodes, [e(v(1))]), Err("nodes() takes a path, not a vertex")),
    ]);
}
