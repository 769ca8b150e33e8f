//! `g.io(file).read()`: what a file adds to the graph, what is refused, and which files may be read.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;
use tidegraph_engine::loads::Allowed;
use tidegraph_engine::{
    Answer, Database, Error, InlineLimits, Language, Options, Parameters, Principal, Query, Role, Transaction,
};
use tidegraph_types::{Cardinality, ElementIds, ErrorCode, Value};

/// A database that may read a folder.
struct Fixture {
    home: TempDir,
    database: Arc<Database>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("in")).unwrap();
        let load_from = Allowed::parse([home.path().join("in").display().to_string()]).unwrap();
        let database = Database::open(Options { load_from, ..options }).unwrap();
        Self { home, database }
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join("in").join(name).display().to_string()
    }

    /// Writes a file, and returns its path.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn try_ask(&self, text: &str) -> Result<Answer, Error> {
        self.database.query(&Query::new(Language::Gremlin, text, &Parameters::default()))
    }

    fn ask(&self, text: &str) -> Vec<Value> {
        let answer = self.try_ask(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        answer.rows.into_iter().flatten().collect()
    }

    fn read(&self, path: &str) -> Result<Answer, Error> {
        self.try_ask(&format!("g.io('{path}').read().iterate()"))
    }

    /// Returns the answer as text.
    fn shown(&self, text: &str) -> String {
        self.ask(text).iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

fn shown(value: &Value) -> String {
    let all = |items: &[Value]| items.iter().map(shown).collect::<Vec<_>>().join(", ");
    match value {
        Value::String(text) => text.to_string(),
        Value::List(items) => format!("[{}]", all(items)),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", shown(key), shown(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}

const GRAPHSON: &str = r#"{"id":{"@type":"g:Int32","@value":1},"label":"person","outE":{"knows":[{"id":{"@type":"g:Int32","@value":7},"inV":{"@type":"g:Int32","@value":2},"properties":{"weight":{"@type":"g:Double","@value":0.5}}}]},"properties":{"name":[{"id":{"@type":"g:Int64","@value":0},"value":"marko","properties":{"since":{"@type":"g:Int32","@value":1997}}},{"id":{"@type":"g:Int64","@value":5},"value":"m"},{"id":{"@type":"g:Int64","@value":6},"value":"m","properties":{"since":1999}}]}}
{"id":{"@type":"g:Int32","@value":2},"label":"person::admin","properties":{"age":[{"id":{"@type":"g:Int64","@value":3},"value":{"@type":"g:Int32","@value":27}}]}}
"#;

const GRAPHML: &str = r#"<graphml><key id="labelV" for="node" attr.name="labelV" attr.type="string"/>
<key id="w" for="edge" attr.name="weight" attr.type="double"/><graph edgedefault="directed">
<edge id="7" source="1" target="2"><data key="w">0.5</data></edge>
<node id="1"><data key="labelV">person</data></node><node id="2"/></graph></graphml>"#;

#[test]
fn all_of_a_graphson_file_is_there() {
    let fixture = Fixture::new();
    let answer = fixture.read(&fixture.file("a.json", GRAPHSON)).unwrap();
    assert!(answer.rows.is_empty() && answer.wrote);
    assert_eq!(fixture.shown("g.V('1').values('name')"), "marko m m");
    assert_eq!(
        fixture.shown("g.V('1').properties('name').valueMap()"),
        "{since: Int(1997)} {} {since: Int(1999)}"
    );
    assert_eq!(fixture.shown("g.V('2').hasLabel('admin').hasLabel('person').values('age')"), "Int(27)");
    assert_eq!(fixture.shown("g.E('7').hasLabel('knows').values('weight')"), "Double(0.5)");
    assert_eq!(fixture.shown("g.E('7').outV().out().id()"), "2");
}

#[test]
fn all_of_a_graphml_file_is_there() {
    let fixture = Fixture::new();
    let path = fixture.file("a.data", GRAPHML);
    fixture.ask(&format!("g.io('file://{path}').with(IO.reader, IO.graphml).read()"));
    assert_eq!(fixture.shown("g.V('1').label()"), "person");
    assert_eq!(fixture.shown("g.V('2').label()"), "vertex");
    assert_eq!(fixture.shown("g.E().hasLabel('edge').valueMap()"), "{weight: Double(0.5)}");
    assert_eq!(fixture.shown("g.V('1').out().id()"), "2");
}

#[test]
fn a_variable_names_the_file_and_its_end_the_format() {
    let fixture = Fixture::new();
    let read = |name: &str, content: &str| {
        let url = Value::string(fixture.file(name, content));
        let parameters = Parameters::from_iter([("url".into(), url)]);
        let text = "g.io(url).read(); g.V().count()";
        fixture.database.query(&Query::new(Language::Gremlin, text, &parameters)).map(|answer| answer.rows)
    };
    assert_eq!(read("a.xml", GRAPHML).unwrap(), [[Value::Long(2)]]);
    assert_eq!(read("b.json", "{\"id\":9}").unwrap(), [[Value::Long(3)]]);
    let error = read("c.kryo", "").unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnsupportedOperation, "{error}");
    assert!(error.to_string().contains("Gryo"), "{error}");
    let error = read("d.txt", "").unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    assert!(error.to_string().contains("the name tells no format"), "{error}");
}

#[test]
fn ids_have_the_types_of_the_graph() {
    let options = Options {
        ids: Some(ElementIds::Typed),
        default_cardinality: Some(Cardinality::Single),
        ..Options::default()
    };
    let fixture = Fixture::with(options);
    fixture.read(&fixture.file("a.json", GRAPHSON)).unwrap();
    assert_eq!(fixture.shown("g.V().id().order()"), "Int(1) Int(2)");
    assert_eq!(fixture.shown("g.V('1').count()"), "Long(0)");
    assert_eq!(fixture.shown("g.E(7).id()"), "Int(7)");
    // All values are kept, and a new one replaces one value.
    assert_eq!(fixture.shown("g.V(1).values('name')"), "marko m m");
    assert_eq!(fixture.shown("g.V(2).property('age', 28).values('age')"), "Int(28)");
    // The ids of GraphML are strings.
    fixture.read(&fixture.file("a.xml", GRAPHML.replace("\"7\"", "\"8\""))).unwrap();
    assert_eq!(fixture.shown("g.V('1').out().id()"), "2");
    assert_eq!(fixture.shown("g.V().count()"), "Long(4)");
    let path = fixture.file("b.json", "{\"id\":1.5}");
    let error = fixture.read(&path).unwrap_err();
    assert!(error.to_string().contains("b.json, line 1: "), "{error}");
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
}

#[test]
fn edges_may_end_at_vertices_of_the_graph() {
    let fixture = Fixture::new();
    fixture.ask("g.addV('old').property(id, 'x')");
    fixture.read(&fixture.file("a.json", "{\"id\":1,\"outE\":{\"e\":[{\"inV\":\"x\"}]}}")).unwrap();
    assert_eq!(fixture.shown("g.V('x').in('e').id()"), "1");
    let path = fixture.file("b.json", "{\"id\":2}\n{\"id\":3,\"outE\":{\"e\":[{\"inV\":4}]}}");
    let error = fixture.read(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "io(): file://{path}, line 2: an edge begins or ends at the vertex \"4\", which is neither in the file nor in the graph"
        )
    );
    // Nothing of the file was written.
    assert_eq!(fixture.shown("g.V().count()"), "Long(2)");
}

#[test]
fn elements_that_are_there_already_are_refused_with_their_line() {
    let fixture = Fixture::new();
    let path = fixture.file("a.json", "{\"id\":1,\"outE\":{\"e\":[{\"id\":7,\"inV\":1}]}}\n{\"id\":2}");
    fixture.read(&path).unwrap();
    let error = fixture.read(&path).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConstraintViolation, "{error}");
    assert!(error.to_string().contains("a.json, line 1: a vertex with id \"1\" exists already"), "{error}");
    let twice = fixture.file("b.json", "{\"id\":3}\n\n{\"id\":3}");
    let error = fixture.read(&twice).unwrap_err();
    assert!(error.to_string().contains("b.json, line 3: a vertex with id \"3\" exists already"), "{error}");
    let edge = fixture.file("c.json", "{\"id\":4,\"outE\":{\"e\":[{\"id\":7,\"inV\":4}]}}");
    let error = fixture.read(&edge).unwrap_err();
    assert!(error.to_string().contains("c.json, line 1: an edge with id \"7\" exists already"), "{error}");
    assert_eq!(fixture.shown("g.V().count()"), "Long(2)");
}

#[test]
fn values_that_no_property_holds_are_refused_with_their_line() {
    let fixture = Fixture::new();
    let value = r#"{"@type":"g:Map","@value":["a",1]}"#;
    let path =
        fixture.file("a.json", format!("{{\"id\":1,\"properties\":{{\"k\":[{{\"value\":{value}}}]}}}}"));
    let error = fixture.read(&path).unwrap_err();
    assert!(error.to_string().contains("a.json, line 1: property \"k\" cannot hold a value"), "{error}");
}

#[test]
fn many_elements_are_written_in_batches() {
    let fixture = Fixture::new();
    let mut lines = String::new();
    for id in 0..5_000 {
        let edges: Vec<String> = (1..4).map(|step| format!("{{\"inV\":{}}}", (id + step) % 5_000)).collect();
        let _ = writeln!(lines, "{{\"id\":{id},\"label\":\"n\",\"outE\":{{\"e\":[{}]}}}}", edges.join(","));
    }
    fixture.read(&fixture.file("a.json", lines)).unwrap();
    assert_eq!(fixture.shown("g.V().hasLabel('n').count()"), "Long(5000)");
    assert_eq!(fixture.shown("g.E().count()"), "Long(15000)");
    assert_eq!(fixture.shown("g.V('4999').out('e').id().order()"), "0 1 2");
}

#[test]
fn nothing_is_read_outside_of_what_is_allowed() {
    let fixture = Fixture::new();
    let home = fixture.home.path();
    std::fs::write(home.join("secret.json"), "{\"id\":1}").unwrap();
    symlink(home.join("secret.json"), fixture.path("link.json")).unwrap();
    let (outside, up) = (home.join("secret.json").display().to_string(), fixture.path("../secret.json"));
    for (url, code, reason) in [
        (outside, ErrorCode::AccessDenied, "--load-from"),
        ("/etc/passwd.json".to_owned(), ErrorCode::AccessDenied, "--load-from"),
        ("s3://bucket/x.json".to_owned(), ErrorCode::AccessDenied, "--load-from"),
        (up, ErrorCode::BadRequest, "`..`"),
        (fixture.path("link.json"), ErrorCode::BadRequest, "is a link"),
        (fixture.path("absent.json"), ErrorCode::BadRequest, "there is no file or folder"),
        ("http://127.0.0.1/x.json".to_owned(), ErrorCode::BadRequest, "only file:// and s3://"),
        ("data/x.json".to_owned(), ErrorCode::BadRequest, "it is no address of a file"),
    ] {
        let error = fixture.read(&url).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.code(), code, "{message}");
        assert!(message.starts_with(&format!("io(): source {url}: ")), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn reading_a_file_needs_the_role_of_writers() {
    let fixture = Fixture::new();
    let text = format!("g.io('{}').read()", fixture.file("a.json", GRAPHSON));
    let parameters = Parameters::default();
    for (role, allowed) in [(Role::Read, false), (Role::Write, true)] {
        let principal = Principal::User("ada".into(), [role].into_iter().collect());
        let query = Query { principal: &principal, ..Query::new(Language::Gremlin, &text, &parameters) };
        let refused = fixture.database.query(&query).err().map(|error| error.code());
        assert_eq!(refused, (!allowed).then_some(ErrorCode::AccessDenied));
    }
    let query = Query { read_only: true, ..Query::new(Language::Gremlin, &text, &parameters) };
    assert_eq!(fixture.database.query(&query).unwrap_err().code(), ErrorCode::MethodNotAllowed);
    // Nor does a thread that serves others read files.
    let limits = InlineLimits { time: Duration::from_secs(60), memory_bytes: 1 << 20, rows: 100 };
    let query = Query::new(Language::Gremlin, &text, &parameters);
    assert!(fixture.database.query_inline(&query, limits).is_none());
}

#[test]
fn memory_and_time_hold_while_a_file_is_read() {
    let fixture = Fixture::with(Options { query_memory_bytes: 4 << 20, ..Options::default() });
    // The values of this line take more than the limit, though its text takes less.
    let line = format!("{{\"id\":1,\"properties\":{{\"k\":[{{\"value\":[{}1]}}]}}}}", "1,".repeat(500_000));
    let error = fixture.read(&fixture.file("a.json", line)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::QueryLimitExceeded, "{error}");
    let mut lines = String::new();
    for id in 0..200_000 {
        let _ = writeln!(lines, "{{\"id\":{id}}}");
    }
    let path = fixture.file("b.json", lines);
    let error = fixture.read(&path).unwrap_err();
    assert_eq!(error.code(), ErrorCode::QueryLimitExceeded, "{error}");

    let text = format!("g.io('{path}').read()");
    let parameters = Parameters::default();
    let cancel = Arc::new(AtomicBool::new(true));
    let query = Query { cancel: Some(&cancel), ..Query::new(Language::Gremlin, &text, &parameters) };
    assert_eq!(fixture.database.query(&query).unwrap_err().code(), ErrorCode::Cancelled);
    let timed = format!("g.with('evaluationTimeout', 1).io('{path}').read()");
    let error = fixture.try_ask(&timed).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TimeLimitExceeded, "{error}");
    assert_eq!(fixture.shown("g.V().count()"), "Long(0)");
}

#[test]
fn a_transaction_of_several_requests_sees_what_a_file_added() {
    let fixture = Fixture::new();
    let text = format!("g.io('{}').read()", fixture.file("a.json", GRAPHSON));
    let parameters = Parameters::default();
    let mut transaction = Transaction::new(None, None, false);
    for (text, expected) in [(text.as_str(), None), ("g.E().inV().id()", Some("2"))] {
        let query = Query::new(Language::Gremlin, text, &parameters);
        let answer = fixture.database.query_within(&mut transaction, &query).unwrap();
        assert_eq!(answer.rows.first().and_then(|row| row[0].as_str()), expected);
    }
    assert_eq!(fixture.shown("g.V().count()"), "Long(0)");
    fixture.database.commit_transaction(transaction).unwrap();
    assert_eq!(fixture.shown("g.V().count()"), "Long(2)");
}
