//! Exact error messages: what was found, what was expected, and where.

use tidegraph_gremlin::{FrontEndError, MAX_DEPTH, MAX_STEPS, Version, compile, compile_within};
use tidegraph_plan::{Limits, Procedures, Stopped};
use tidegraph_types::ErrorCode;

fn error(text: &str) -> String {
    match compile(text) {
        Ok(plan) => panic!("{text} compiles to\n{plan}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn syntax() {
    let cases = [
        ("", r#"expected "g", found the end of the text at 1:1"#),
        ("V()", r#"expected "g", found "V" at 1:1"#),
        ("g.V(", "expected an argument, found the end of the text at 1:5"),
        ("g.V().out('a'", r#"expected "," or ")", found the end of the text at 1:14"#),
        ("g.V().out('a' 'b')", r#"expected "," or ")", found string 'b' at 1:15"#),
        ("g.V()\n  .foo()", "unknown step foo() at 2:4"),
        ("g.V().out", r#"expected "(" after out, found the end of the text at 1:10"#),
        ("g.V().has('a', gt)", r#"expected "(" after gt, found ")" at 1:18"#),
        ("g.V().where(out)", r#"expected "(" after out, found ")" at 1:16"#),
        ("g.V().out(1)", "expected a string, found number 1 at 1:11"),
        ("g.V().limit('x')", "expected an integer, found string 'x' at 1:13"),
        ("g.out()", "out() cannot follow g at 1:3"),
        ("g.V('a", "string is not closed at 1:5"),
        (r"g.V('\q')", r#"invalid escape sequence "\\q" in a string at 1:6"#),
        ("g.V(1x)", r#"invalid number "1x" at 1:5"#),
        ("g.V(300b)", "number 300b does not fit the type of its suffix at 1:5"),
        ("g.V() out()", r#"expected "." or the end of the text, found "out" at 1:7"#),
        ("g.V().by('x')", "by() modulates no step here at 1:7"),
        ("g.V().coin('a')", "coin() does not take string 'a' at 1:7"),
        ("g.V().sample(-1)", "sample() takes a number that is not negative at 1:14"),
        ("g.V().sample(1).by('a').by('b')", "sample() takes one by() at 1:25"),
        ("g.V().times(2)", "times() without repeat() at 1:7"),
        (
            "g.V().repeat(out().count()).times(2)",
            "count() cannot stand in a repeat(), because it reduces at 1:20",
        ),
        ("g.V().loops()", "loops() outside of a repeat() that it could count at 1:7"),
        ("g.V().has('a', between(1))", "between() takes 2 arguments, not 1 at 1:16"),
        ("g.V().has('a', P.foo(1))", "unknown predicate foo at 1:18"),
        ("g.V().has('a', P.startingWith(1))", "expected a string, found number 1 at 1:31"),
        ("g.V().order().by(Order.up)", "Order has no constant up at 1:18"),
        ("g.V().has('d', gt(datetime('yesterday')))", "invalid date 'yesterday' at 1:28"),
        ("g.V().range(5, 2)", "not a legal range: [5, 2] at 1:7"),
        ("g.V().property(id, 'x')", "the id of an element cannot be changed at 1:7"),
        ("g.V().property('a', 1, 'b')", "property() does not take string 'a', number 1, string 'b' at 1:7"),
        ("g.addV().property(id, 'x', 'b', 1)", "the id of an element has no properties at 1:19"),
        (
            "g.addE('a').from(V('1')).to(V('2')).property('w', 1, 'b', 1)",
            "properties of an edge have no properties themselves at 1:3",
        ),
        ("g.addE('a').from(V('1'))", "addE() without to() at 1:3"),
        ("g.V().addE('a').to('b')", "no step has the label 'b' at 1:20"),
        ("g.V()#", "unexpected character '#' at 1:6"),
        ("g.V().toList().out()", "out() follows the end of the traversal at 1:16"),
        ("g.V('ü').é()", "unknown step é() at 1:10"),
        ("g.V().values('a').length(1)", "length() does not take number 1 at 1:19"),
        ("g.V().values('a').trim(local, 'x')", "trim() does not take string 'x' at 1:19"),
        ("g.V().values('a').substring('x')", "expected an integer, found string 'x' at 1:29"),
        ("g.V().fold().combine(2)", "combine() does not take number 2 at 1:14"),
        ("g.V().fold().merge(null)", "merge() does not take null at 1:14"),
        ("g.V().fold().all(3)", "all() does not take number 3 at 1:14"),
        ("g.V().fold(0, local)", "fold() does not take number 0, constant local at 1:7"),
        ("g.V().asNumber(GType.STRING)", "asNumber() does not take a type at 1:7"),
        ("g.V().has('a', typeOf('Foo'))", "Foo is not the name of a type at 1:23"),
        ("g.V().has('a', typeOf(GType.FOO))", "GType has no constant FOO at 1:23"),
        ("g.V().values('d').dateAdd('day', 1)", "dateAdd() does not take string 'day', number 1 at 1:19"),
        (
            "g.V().values('a').index().with(WithOptions.indexer, 1)",
            "with() does not take constant indexer, number 1 at 1:27",
        ),
        ("g.call('db.nothing')", "no service is named 'db.nothing' at 1:3"),
        ("g.V().call('tinker.search')", "the service tinker.search starts a traversal at 1:7"),
        ("g.call(1)", "call() does not take number 1 at 1:3"),
        ("g.call('--list', 1)", "call() does not take string '--list', number 1 at 1:3"),
        ("g.call().with(1, 2)", "with() does not take number 1, number 2 at 1:10"),
        ("g.mergeV(['~id':'1'])", "a key or label of mergeV() cannot begin with '~' at 1:11"),
    ];
    for (text, message) in cases {
        assert_eq!(error(text), message, "{text}");
        assert_eq!(compile(text).map_err(|e| e.code()), Err(ErrorCode::MalformedQuery), "{text}");
    }
}

#[test]
fn formulas() {
    let cases = [
        ("", "expected a number, a variable or a function, found the end at position 1"),
        ("_ +", "expected a number, a variable or a function, found the end at position 4"),
        ("(_", "expected ')', found the end at position 3"),
        ("_)", "expected an operator, found ')' at position 2"),
        ("[_)", "expected ']', found ')' at position 3"),
        ("2_", "expected an operator, found '_' at position 2"),
        ("1.5.2", "1.5.2 is not a number at position 1"),
        ("_ $ 1", "expected an operator, found '$' at position 3"),
        ("pow(2)", "pow() takes 2 operand(s), not 1, at position 1"),
        ("1 + sin(1, 2)", "sin() takes 1 operand(s), not 2, at position 5"),
        ("sin", "expected a number, a variable or a function, found the end at position 4"),
        ("ü", "expected a number, a variable or a function, found 'ü' at position 1"),
    ];
    for (formula, problem) in cases {
        let message = format!("math(): {problem} of '{formula}' at 1:24");
        assert_eq!(error(&format!("g.V().values('a').math('{formula}')")), message, "{formula}");
    }
    for part in ["(", "-", "sin ", "sin("] {
        let message = error(&format!("g.V().math('{}1')", part.repeat(100_000)));
        assert!(message.starts_with("math(): nested deeper than 64 levels at position"), "{message}");
    }
    let message = error(&format!("g.V().math('1{}')", " + 1".repeat(100_000)));
    assert!(message.starts_with("math(): more than 128 operators and operands at position"), "{message}");
    assert!(compile(&format!("g.V().math('_{}')", " + 1".repeat(63))).is_ok());
}

#[test]
fn not_supported_yet() {
    let cases = [
        ("g.V().outE().shortestPath()", "shortestPath() of what may be no vertex", 14),
        ("g.withSideEffect('x', 1).V().tree('x')", "tree() into withSideEffect()", 30),
        ("g.V().match(__.as('a').out().as('b')).path()", "match() with a step that reads paths", 7),
        (
            "g.V().select('x').group('x').by('a').by(out().count())",
            "reading the side effect 'x' before the group() that makes it",
            7,
        ),
        ("g.withSack([1], addAll, sum).V()", "withSack() with an operator that splits", 3),
        ("g.withSack(1, sum).V().barrier(10)", "barrier(size) that merges sacks or bulks", 24),
        ("g.withStrategies(new ReadOnlyStrategy(a: 1)).V()", "a of ReadOnlyStrategy", 42),
        ("g.withStrategies(X).V()", "the strategy X", 18),
        (
            "g.withStrategies(new SubgraphStrategy(vertices: __.has('a'))).V().shortestPath()",
            "shortestPath() with this strategy",
            67,
        ),
        ("g.with('x', 1).V()", "with('x')", 3),
        ("g.tx().commit()", "tx()", 3),
        ("g", "g without a step", 2),
        ("g.V().toString()", "toString()", 7),
        ("g.V().out().with('a', 1)", "with() after this step", 13),
        ("g.call('--list').with('verbose', true)", "call() with the parameter verbose", 3),
        ("g.V().values('a').pageRank()", "pageRank() of what may be no vertex", 19),
        ("g.V().local(pageRank())", "pageRank() inside another step", 13),
        ("g.V().peerPressure().property('a', 1)", "peerPressure() beside steps that write", 7),
        (
            "g.V().connectedComponent(); g.V()",
            "connectedComponent() before the last traversal of a request",
            7,
        ),
        (
            "g.withStrategies(new SubgraphStrategy(vertices: __.has('a'))).V().pageRank()",
            "pageRank() with this strategy",
            67,
        ),
        ("g.io('a.kryo').read()", "the format gryo, which only Java reads", 6),
        ("g.io('a.xml').with(IO.reader, IO.gryo).read()", "the format gryo, which only Java reads", 31),
        ("g.io('a.xml').with(IO.registry, 'x').read()", "IO.registry, whose values are classes of Java", 20),
        (
            "g.io('a.xml').with(IO.reader, 'org.x.Reader').read()",
            "the reader 'org.x.Reader', expected graphson or graphml",
            31,
        ),
        ("g.io('a.xml').write()", "write() of io()", 15),
        (
            "g.withStrategies(new SubgraphStrategy(vertices: __.has('a'))).io('a.xml').read()",
            "io() with this strategy",
            63,
        ),
        (
            "g.withStrategies(ReferenceElementStrategy).E().subgraph('a').cap('a')",
            "subgraph() with ReferenceElementStrategy",
            48,
        ),
        ("g.V().property('a', 1, id, 2)", "id of a property", 24),
        ("g.V().has('a', 1e1301m)", "decimal number of more than 1,200 digits (1e1301m)", 16),
    ];
    for (text, name, column) in cases {
        let expected = FrontEndError::Unsupported { name: name.into(), line: 1, column };
        assert_eq!(compile(text), Err(expected), "{text}");
    }
}

#[test]
fn message_names_the_step_and_its_place() {
    assert_eq!(error("g.V()\n .out()\n .toString()"), "not supported yet: toString() at 3:3");
}

#[test]
fn nesting_is_limited() {
    let message = format!("nested deeper than {MAX_DEPTH} levels at 1:");
    for (open, close) in [("out().where(", ")"), ("not(", ")"), ("union(", ")"), ("repeat(", ")")] {
        let deep = format!("g.V().{}{}", open.repeat(100_000), close.repeat(100_000));
        assert!(error(&deep).starts_with(&message), "{open}");
    }
    for open in ["[", "{", "[a:", "[(", "Vertex(", "P.not("] {
        let deep = format!("g.V({}", open.repeat(100_000));
        assert!(error(&deep).starts_with(&message), "{open}");
    }
    let deep = format!("g.V().has('a', eq(1){})", ".and(eq(1))".repeat(100_000));
    assert!(error(&deep).starts_with(&message));
    let most = format!("g.V().{}out(){}", "where(".repeat(MAX_DEPTH - 1), ")".repeat(MAX_DEPTH - 1));
    assert!(compile(&most).is_ok());
}

#[test]
fn the_number_of_steps_is_limited() {
    assert!(compile(&format!("g.V(){}", ".out()".repeat(MAX_STEPS - 1))).is_ok());
    let message = error(&format!("g.V(){}", ".out()".repeat(100_000)));
    assert!(message.starts_with(&format!("more than {MAX_STEPS} steps at 1:")), "{message}");
    let keys: String = (0..65).map(|key| format!(".aggregate('{key}')")).collect();
    let message = error(&format!("g.V(){keys}"));
    assert!(message.starts_with("65 side effects; at most 64 are allowed"), "{message}");
}

#[test]
fn parsing_ends_when_the_caller_wants_it_and_at_the_memory_limit() {
    let text = format!("g.inject(0{}", ", 1".repeat(100_000));
    let stopped =
        compile_within(&text, Version::default(), Procedures::builtin(), &Limits::new(u64::MAX, &|| false));
    assert_eq!(stopped, Err(FrontEndError::Stopped(Stopped::Interrupted)));
    let limit_bytes = 1 << 20;
    let stopped =
        compile_within(&text, Version::default(), Procedures::builtin(), &Limits::new(limit_bytes, &|| true));
    assert_eq!(stopped, Err(FrontEndError::Stopped(Stopped::Memory { limit_bytes })));
    assert!(matches!(compile(&text), Err(FrontEndError::Syntax { .. })));
}
