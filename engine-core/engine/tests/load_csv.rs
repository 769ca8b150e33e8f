//! `LOAD CSV`: what rows a file gives, what a query does with them, and which files it may read.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tidegraph_engine::loads::Allowed;
use tidegraph_engine::{
    Answer, Database, Error, Head, InlineLimits, Interrupt, Language, Options, Parameters, Principal, Query,
    Role, RowSink, Stop, Transaction,
};
use tidegraph_types::{ErrorCode, Value};

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

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("in").join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    /// Writes a file, and returns its address.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.url(name)
    }

    /// Runs a query; `$url` is the address.
    fn try_ask(&self, url: &str, text: &str) -> Result<Answer, Error> {
        let parameters = Parameters::from_iter([("url".into(), Value::string(url))]);
        self.database.query(&Query::new(Language::OpenCypher, text, &parameters))
    }

    fn ask(&self, url: &str, text: &str) -> Vec<Vec<Value>> {
        self.try_ask(url, text).unwrap_or_else(|error| panic!("{text}: {error}")).rows
    }

    /// Returns the rows of a file, as JSON-like text.
    fn rows(&self, content: impl AsRef<[u8]>, clause: &str) -> String {
        let url = self.file("rows.csv", content);
        let rows = self.ask(&url, &format!("{clause} RETURN row"));
        let mut text = String::new();
        for row in rows {
            let _ = writeln!(text, "{}", shown(&row[0]));
        }
        text
    }

    fn refused(&self, url: &str) -> Error {
        self.try_ask(url, "LOAD CSV FROM $url AS row RETURN row").map(|answer| answer.rows).unwrap_err()
    }

    fn count(&self, label: &str) -> i64 {
        self.ask("", &format!("MATCH (n:{label}) RETURN count(n)"))[0][0].as_i64().unwrap()
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => format!("{:?}", &**text),
        Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", shown(key), shown(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn texts(values: &[&str]) -> Vec<Vec<Value>> {
    values.iter().map(|value| vec![Value::string(*value)]).collect()
}

fn numbers(values: &[i64]) -> Vec<Vec<Value>> {
    values.iter().map(|value| vec![Value::Long(*value)]).collect()
}

const LIST: &str = "LOAD CSV FROM $url AS row";
const MAP: &str = "LOAD CSV WITH HEADERS FROM $url AS row";

#[test]
fn a_row_is_a_list_or_with_headers_a_map() {
    let fixture = Fixture::new();
    let file = "name,born\nAda,1815\n\"Grace\",\n";
    assert_eq!(fixture.rows(file, LIST), "[\"name\", \"born\"]\n[\"Ada\", \"1815\"]\n[\"Grace\", null]\n");
    assert_eq!(
        fixture.rows(file, MAP),
        "{\"name\": \"Ada\", \"born\": \"1815\"}\n{\"name\": \"Grace\", \"born\": null}\n"
    );
}

#[test]
fn fields_that_are_missing_are_null_and_too_many_are_left_out() {
    let fixture = Fixture::new();
    let file = "a,b\n1\n1,2,3\n\"\",\n";
    assert_eq!(
        fixture.rows(file, MAP),
        "{\"a\": \"1\", \"b\": null}\n{\"a\": \"1\", \"b\": \"2\"}\n{\"a\": \"\", \"b\": null}\n"
    );
    assert_eq!(fixture.rows(file, LIST), "[\"a\", \"b\"]\n[\"1\"]\n[\"1\", \"2\", \"3\"]\n[\"\", null]\n");
    // A column without a name has the name '', and of two columns of one name the last counts.
    assert_eq!(fixture.rows(",a,a\n1,2,3\n", MAP), "{\"\": \"1\", \"a\": \"3\"}\n");
}

#[test]
fn quotes_line_ends_marks_and_terminators() {
    let fixture = Fixture::new();
    let record = "[\"a\\nb\", \"say \\\"x\\\"\", \"C:\\\\t\"]\n";
    for file in [
        "\"a\nb\",\"say \"\"x\"\"\",C:\\t\n",
        "\"a\nb\",\"say \\\"x\\\"\",\"C:\\t\"\r\n",
        "\u{feff}\"a\nb\",\"say \"\"x\"\"\",\"C:\\\\t\"",
        "\r\n\n\"a\nb\",\"say \"\"x\"\"\",C:\\t\r\r\n",
    ] {
        assert_eq!(fixture.rows(file, LIST), record, "{file:?}");
    }
    for (terminator, character) in [(";", ";"), ("\\t", "\t"), ("|", "|"), ("→", "→"), ("\\u00a6", "¦")]
    {
        let file = format!("a,b{character}\"c{character}\"\n");
        let clause = format!("{LIST} FIELDTERMINATOR '{terminator}'");
        let expected = format!("[\"a,b\", {:?}]\n", format!("c{character}"));
        assert_eq!(fixture.rows(file, &clause), expected, "{terminator}");
    }
}

#[test]
fn a_file_without_records_gives_no_rows() {
    let fixture = Fixture::new();
    for file in ["", "\n\r\n", "\u{feff}"] {
        assert_eq!(fixture.rows(file, LIST), "");
        assert_eq!(fixture.rows(file, MAP), "");
    }
    assert_eq!(fixture.rows("a,b\n", MAP), "");
    let url = fixture.file("empty.csv", "");
    assert_eq!(fixture.ask(&url, "LOAD CSV FROM $url AS row RETURN count(row)"), numbers(&[0]));
    assert_eq!(
        fixture.ask(
            &url,
            "OPTIONAL CALL { LOAD CSV FROM 'file:///' + $url AS row RETURN row } RETURN 1 LIMIT 0"
        ),
        Vec::<Vec<Value>>::new()
    );
}

#[test]
fn compressed_files_are_decompressed_by_their_name() {
    const GZIP: &[u8] = &[
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 211, 41, 225, 50, 212, 73, 228, 50, 210, 73, 226, 2, 0, 213,
        96, 181, 72, 12, 0, 0, 0,
    ];
    const BZIP2: &[u8] = &[
        66, 90, 104, 57, 49, 65, 89, 38, 83, 89, 41, 73, 190, 57, 0, 0, 5, 89, 128, 0, 16, 0, 4, 48, 0, 48,
        1, 4, 0, 32, 0, 33, 166, 140, 33, 12, 8, 174, 57, 96, 160, 159, 23, 114, 69, 56, 80, 144, 41, 73,
        190, 57,
    ];
    let fixture = Fixture::new();
    for (name, content) in [("x.csv.gz", GZIP), ("x.csv.bz2", BZIP2)] {
        let url = fixture.file(name, content);
        let text = "LOAD CSV WITH HEADERS FROM $url AS row RETURN row.t";
        assert_eq!(fixture.ask(&url, text), texts(&["a", "b"]), "{name}");
    }
    let error = fixture.refused(&fixture.file("cut.csv.gz", &GZIP[..20]));
    assert_eq!(error.code(), ErrorCode::BadRequest);
    assert!(error.to_string().contains("cut short"), "{error}");
    let error = fixture.refused(&fixture.file("plain.csv.gz", "a,b\n"));
    assert!(error.to_string().contains("not in the format gzip"), "{error}");
}

#[test]
fn rows_are_written_and_matched() {
    let fixture = Fixture::new();
    let people = fixture.file("people.csv", "id,name,born\n1,Ada,1815\n2,Grace,1906\n3,Barbara,\n");
    let knows = fixture.file("knows.csv", "1;2\n2;3\n1;9\n");
    let create = "LOAD CSV WITH HEADERS FROM $url AS row \
                  CREATE (p:Person {name: row.name, born: toInteger(row.born)}) SET p.id = row.id RETURN count(*)";
    assert_eq!(fixture.ask(&people, create), numbers(&[3]));
    // The same file changes nothing when it is merged.
    let merge = "LOAD CSV WITH HEADERS FROM $url AS row MERGE (p:Person {id: row.id}) \
                 ON CREATE SET p.fresh = true RETURN count(p.fresh)";
    assert_eq!(fixture.ask(&people, merge), numbers(&[0]));
    assert_eq!(fixture.count("Person"), 3);
    let edges = "LOAD CSV FROM $url AS row FIELDTERMINATOR ';' \
                 MATCH (a:Person {id: row[0]}), (b:Person {id: row[1]}) CREATE (a)-[:KNOWS]->(b)";
    let answer = fixture.try_ask(&knows, edges).unwrap();
    assert_eq!(answer.counters.edges_created, 2);
    // After a MATCH, each of its rows reads the file.
    let joined = "MATCH (a:Person)-[:KNOWS]->(b) LOAD CSV WITH HEADERS FROM $url AS row \
                  WITH a, b, row WHERE row.id = b.id RETURN a.name + '-' + row.name AS pair ORDER BY pair";
    assert_eq!(fixture.ask(&people, joined), texts(&["Ada-Grace", "Grace-Barbara"]));
    let absent = "MATCH (p:Person) WHERE p.born IS NULL RETURN p.name";
    assert_eq!(fixture.ask("", absent), texts(&["Barbara"]));
    let found = "LOAD CSV WITH HEADERS FROM $url AS row \
                 WITH row WHERE EXISTS { MATCH (:Person {id: row.id})-[:KNOWS]->() } RETURN row.name";
    assert_eq!(fixture.ask(&people, found), texts(&["Ada", "Grace"]));
}

#[test]
fn the_address_is_computed_for_each_row() {
    let fixture = Fixture::new();
    fixture.file("1.csv", "a\nb\n");
    fixture.file("2.csv", "");
    fixture.file("3.csv", "c\n");
    let url = fixture.url("");
    let each = "UNWIND range(1, 3) AS i LOAD CSV FROM $url + i + '.csv' AS row RETURN row[0]";
    assert_eq!(fixture.ask(&url, each), texts(&["a", "b", "c"]));
    let twice = "LOAD CSV FROM $url + '1.csv' AS x LOAD CSV FROM $url + '3.csv' AS y RETURN x[0] + y[0]";
    assert_eq!(fixture.ask(&url, twice), texts(&["ac", "bc"]));
    let inside = "UNWIND [3, 1] AS i CALL (i) { LOAD CSV FROM $url + i + '.csv' AS row RETURN collect(row[0]) AS all } \
                  RETURN i + reduce(t = '', x IN all | t + x)";
    assert_eq!(fixture.ask(&url, inside), texts(&["3c", "1ab"]));
    let union = "LOAD CSV FROM $url + '3.csv' AS row RETURN row[0] AS x UNION ALL \
                 LOAD CSV FROM $url + '1.csv' AS row RETURN row[0] AS x";
    assert_eq!(fixture.ask(&url, union), texts(&["c", "a", "b"]));
    let counted = "RETURN COUNT { LOAD CSV FROM $url + '1.csv' AS row RETURN row } AS n";
    assert_eq!(fixture.ask(&url, counted), numbers(&[2]));
    for value in ["1", "[$url]", "null", "toInteger('1')"] {
        let text = format!("WITH {value} AS value LOAD CSV FROM coalesce(value, null) AS row RETURN row");
        let error = fixture.try_ask(&url, &text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
        assert!(error.to_string().contains("LOAD CSV takes a string, the address of a file, not"), "{error}");
    }
}

#[test]
fn line_numbers_count_records_and_file_is_the_path() {
    let fixture = Fixture::new();
    let url = fixture.file("x.csv", "h\n\n\"a\nb\"\nc\n");
    let path = fixture.path("x.csv").display().to_string();
    let list = "LOAD CSV FROM $url AS row RETURN linenumber()";
    assert_eq!(fixture.ask(&url, list), numbers(&[1, 2, 3]));
    // The headers are the first record.
    let map = "LOAD CSV WITH HEADERS FROM $url AS row RETURN linenumber()";
    assert_eq!(fixture.ask(&url, map), numbers(&[2, 3]));
    assert_eq!(fixture.ask(&url, "LOAD CSV FROM $url AS row RETURN DISTINCT file()"), texts(&[&path]));
    // They outlive a projection that does not name them, also in a subquery, and end with an aggregation.
    let kept = "LOAD CSV FROM $url AS row WITH row[0] AS x WHERE x <> 'h' \
                CALL (x) { WITH 1 AS one RETURN linenumber() AS inner } \
                RETURN inner * 10 + linenumber() ORDER BY linenumber() DESC";
    assert_eq!(fixture.ask(&url, kept), numbers(&[33, 22]));
    let counted =
        "LOAD CSV FROM $url AS row WITH count(*) AS n RETURN linenumber() IS NULL AND file() IS NULL";
    assert_eq!(fixture.ask(&url, counted), [[Value::from(true)]]);
    let grouped = "LOAD CSV FROM $url AS row RETURN linenumber() / 2 AS half, count(*) AS n ORDER BY half";
    assert_eq!(fixture.ask(&url, grouped).len(), 2);
    assert_eq!(fixture.ask(&url, "RETURN linenumber() IS NULL"), [[Value::from(true)]]);
    // Of two files the later one counts.
    let later = fixture.file("y.csv", "1\n");
    let nested =
        format!("LOAD CSV FROM $url AS row LOAD CSV FROM '{later}' AS y RETURN DISTINCT linenumber()");
    assert_eq!(fixture.ask(&url, &nested), numbers(&[1]));
    // Each level of subqueries has its own.
    let levels = format!(
        "LOAD CSV FROM $url AS row WITH row WHERE row[0] = 'c' CALL {{ \
         LOAD CSV FROM '{later}' AS y CALL {{ WITH 1 AS one RETURN one + linenumber() AS inner }} \
         WITH inner, linenumber() AS middle WITH max(inner) AS inner, max(middle) AS middle \
         RETURN inner * 100 + middle * 10 + linenumber() AS n }} RETURN n * 10 + linenumber()"
    );
    assert_eq!(fixture.ask(&url, &levels), numbers(&[2_133]));
    let batched = "LOAD CSV FROM $url AS row CALL (row) { CREATE (:Line {n: linenumber()}) } IN TRANSACTIONS OF 2 ROWS \
                   RETURN max(linenumber())";
    assert_eq!(fixture.ask(&url, batched), numbers(&[3]));
    assert_eq!(fixture.ask("", "MATCH (n:Line) RETURN n.n ORDER BY n.n"), numbers(&[1, 2, 3]));
    let functions = "SHOW FUNCTIONS YIELD name, category WHERE category = 'Load CSV' RETURN name";
    assert_eq!(fixture.ask("", functions), texts(&["file", "linenumber"]));
}

#[test]
fn rows_go_into_transactions() {
    let fixture = Fixture::new();
    let mut file = "n\n".to_owned();
    (1..=2_500).for_each(|n| writeln!(file, "{n}").unwrap());
    let url = fixture.file("many.csv", &file);
    fixture.ask("", "CREATE (n:Item {n: 0}) DELETE n");
    let before = fixture.database.status().version;
    let text = "LOAD CSV WITH HEADERS FROM $url AS row CALL (row) { CREATE (:Item {n: toInteger(row.n)}) } \
                IN TRANSACTIONS OF 400 ROWS";
    let answer = fixture.try_ask(&url, text).unwrap();
    assert_eq!((answer.counters.vertices_created, answer.wrote), (2_500, true));
    assert_eq!(fixture.database.status().version, before + 7);
    assert_eq!(fixture.ask("", "MATCH (n:Item) RETURN sum(n.n)"), numbers(&[2_500 * 2_501 / 2]));

    // A file that is wrong later keeps the batches before.
    let wrong = fixture.file("wrong.csv", file + "\"open\n");
    let text =
        "LOAD CSV WITH HEADERS FROM $url AS row CALL (row) { CREATE (:Other) } IN TRANSACTIONS OF 1000 ROWS";
    let error = fixture.try_ask(&wrong, text).unwrap_err();
    assert!(error.to_string().contains("line 2502: the file ends inside a quoted field"), "{error}");
    assert_eq!(fixture.count("Other"), 2_000);

    // So does a batch that fails; the error is the batch's own.
    let text = "LOAD CSV WITH HEADERS FROM $url AS row \
                CALL (row) { CREATE (:Third {n: 1 / (toInteger(row.n) - 1500)}) } IN TRANSACTIONS OF 1000 ROWS";
    let error = fixture.try_ask(&url, text).unwrap_err();
    assert!(error.to_string().contains("division by zero"), "{error}");
    assert_eq!(fixture.count("Third"), 1_000);
    let text = format!(
        "{text} ON ERROR CONTINUE REPORT STATUS AS s RETURN s.committed AS c, count(*) AS n ORDER BY c"
    );
    let committed = fixture.ask(&url, &text);
    assert_eq!(
        committed,
        [[false.into(), Value::Long(1_000)], [true.into(), Value::Long(1_500)]] as [[Value; 2]; 2]
    );
    // Files may be read inside of the batches.
    let text = "UNWIND [$url, $url] AS url CALL (url) { LOAD CSV WITH HEADERS FROM url AS row CREATE (:Fourth) } \
                IN TRANSACTIONS OF 1 ROWS";
    fixture.ask(&url, text);
    assert_eq!(fixture.count("Fourth"), 5_000);
}

#[test]
fn nothing_is_read_outside_of_what_is_allowed() {
    let fixture = Fixture::new();
    let home = fixture.home.path();
    std::fs::write(home.join("secret.csv"), "secret\n").unwrap();
    std::fs::write(home.join("inside.csv"), "secret\n").unwrap();
    std::fs::create_dir(fixture.path("folder")).unwrap();
    symlink(home.join("secret.csv"), fixture.path("link.csv")).unwrap();
    symlink(home, fixture.path("up")).unwrap();
    let outside = |name: &str| format!("file://{}", home.join(name).display());
    for (url, code, reason) in [
        (outside("secret.csv"), ErrorCode::AccessDenied, "--load-from"),
        (outside("inside.csv"), ErrorCode::AccessDenied, "--load-from"),
        (outside("absent.csv"), ErrorCode::AccessDenied, "--load-from"),
        ("file:///etc/passwd".into(), ErrorCode::AccessDenied, "--load-from"),
        ("file:///proc/self/environ".into(), ErrorCode::AccessDenied, "--load-from"),
        ("s3://bucket/x.csv".into(), ErrorCode::AccessDenied, "--load-from"),
        (fixture.url("../secret.csv"), ErrorCode::BadRequest, "`..`"),
        (fixture.url("link.csv"), ErrorCode::BadRequest, "is a link"),
        (fixture.url("up/secret.csv"), ErrorCode::BadRequest, "is a link"),
        (fixture.url("folder"), ErrorCode::BadRequest, "is a folder, not a file"),
        (fixture.url(""), ErrorCode::BadRequest, "is a folder, not a file"),
        (fixture.url("absent.csv"), ErrorCode::BadRequest, "there is no file or folder"),
        (fixture.url("folder/absent.csv"), ErrorCode::BadRequest, "there is no file or folder"),
        ("http://127.0.0.1/x.csv".into(), ErrorCode::BadRequest, "only file:// and s3://"),
        ("https://example.com/x.csv".into(), ErrorCode::BadRequest, "only file:// and s3://"),
        ("file://host/x.csv".into(), ErrorCode::BadRequest, "file:// takes an absolute path"),
        (fixture.path("x.csv").display().to_string(), ErrorCode::BadRequest, "it is no address of a file"),
        ("".into(), ErrorCode::BadRequest, "it is no address of a file"),
    ] {
        let error = fixture.refused(&url);
        let message = error.to_string();
        assert_eq!(error.code(), code, "{message}");
        assert!(message.starts_with(&format!("LOAD CSV: source {url}: ")), "{message}");
        assert!(message.contains(reason), "{message}");
        assert!(error.code().http_status() < 500);
    }
    // Without the option nothing may be read.
    let nothing = Database::open(Options::default()).unwrap();
    let text = format!("LOAD CSV FROM '{}' AS row RETURN row", fixture.file("x.csv", "a\n"));
    let none = Parameters::default();
    let error = nothing.query(&Query::new(Language::OpenCypher, &text, &none)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::AccessDenied);
}

#[test]
fn wrong_files_are_errors_with_file_and_line() {
    let fixture = Fixture::new();
    for (content, reason) in [
        (&b"a\nb,\xff\xfe\n"[..], "line 2: field 2 is not valid UTF-8"),
        (b"a\n\n\"b\" c\n", "line 3: field 1 goes on after its closing quote"),
        (b"a\n\"b\n", "line 2: the file ends inside a quoted field"),
    ] {
        let url = fixture.file("wrong.csv", content);
        let error = fixture.refused(&url);
        assert_eq!(error.code(), ErrorCode::BadRequest);
        assert!(error.to_string().starts_with(&format!("LOAD CSV: {url}, {reason}")), "{error}");
        // The rows before it are there for those who need no others.
        let first = fixture.ask(&url, "LOAD CSV FROM $url AS row RETURN row[0] LIMIT 1");
        assert_eq!(first, texts(&["a"]));
    }
    let long = fixture.file("long.csv", "x".repeat(17 << 20));
    let error = fixture.refused(&long);
    assert!(
        error.to_string().ends_with("line 1: the record has more than 16777216 bytes, the limit"),
        "{error}"
    );
}

/// Writes a file of 100 MB.
fn large(path: &Path) -> u64 {
    let mut lines = "number,text\n".to_owned();
    for number in 0..10_000 {
        writeln!(lines, "{number:07},\"{}\"", "x".repeat(90)).unwrap();
    }
    let (head, body) = lines.split_at("number,text\n".len());
    let mut content = head.to_owned();
    (0..100).for_each(|_| content += body);
    assert!(content.len() > 100_000_000);
    std::fs::write(path, content).unwrap();
    1_000_000
}

/// Sets the flag of its query when it gets rows.
struct CancelAtFirstRows(Arc<AtomicBool>);

impl RowSink for CancelAtFirstRows {
    fn take(&mut self, _: &Head, _: Vec<Vec<Value>>, _: &dyn Interrupt) -> Result<(), Stop> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_large_file_takes_little_memory_and_can_be_cancelled() {
    let options = Options { query_memory_bytes: 4 << 20, ..Options::default() };
    let fixture = Fixture::with(options);
    let records = large(&fixture.path("large.csv"));
    let url = fixture.url("large.csv");
    let sum = "LOAD CSV WITH HEADERS FROM $url AS row RETURN count(*), sum(toInteger(row.number)), max(linenumber())";
    let expected = [records as i64, 100 * (9_999 * 10_000 / 2), records as i64 + 1].map(Value::Long);
    assert_eq!(fixture.ask(&url, sum), [expected]);

    // Batches run while the file is read.
    let text = "LOAD CSV WITH HEADERS FROM $url AS row CALL (row) { WITH row WHERE row.number = '0000000' CREATE (:First) } \
                IN TRANSACTIONS";
    let answer = fixture.try_ask(&url, text).unwrap();
    assert_eq!(answer.counters.vertices_created, 100);
    let error = fixture.try_ask(&url, "LOAD CSV FROM $url AS row RETURN collect(row)").unwrap_err();
    assert_eq!(error.code(), ErrorCode::QueryLimitExceeded, "{error}");

    // The caller cancels the query, or its time ends, in the middle of the file.
    let parameters = Parameters::from_iter([("url".into(), Value::string(url))]);
    let cancel = Arc::new(AtomicBool::new(false));
    let text = "LOAD CSV FROM $url AS row RETURN row";
    let query = Query { cancel: Some(&cancel), ..Query::new(Language::OpenCypher, text, &parameters) };
    let error = fixture.database.stream(&query, &mut CancelAtFirstRows(cancel.clone())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled, "{error}");
    let text =
        "UNWIND range(1, 1000) AS i LOAD CSV FROM $url AS row WITH row WHERE row[0] = 'none' RETURN row";
    let timeout = Some(Duration::from_millis(300));
    let query = Query { timeout, ..Query::new(Language::OpenCypher, text, &parameters) };
    let error = fixture.database.query(&query).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TimeLimitExceeded, "{error}");
}

#[test]
fn reading_a_file_needs_the_role_of_readers_only() {
    let fixture = Fixture::new();
    let url = fixture.file("x.csv", "a\n");
    let parameters = Parameters::from_iter([("url".into(), Value::string(url))]);
    let reader = Principal::User("ada".into(), [Role::Read].into_iter().collect());
    let query = |text| Query {
        read_only: true,
        principal: &reader,
        ..Query::new(Language::OpenCypher, text, &parameters)
    };
    let read = fixture.database.query(&query("LOAD CSV FROM $url AS row RETURN row[0]")).unwrap();
    assert_eq!(read.rows, texts(&["a"]));
    let error = fixture.database.query(&query("LOAD CSV FROM $url AS row CREATE (:N)")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MethodNotAllowed);
}

#[test]
fn a_thread_that_serves_others_reads_no_files() {
    let fixture = Fixture::new();
    let url = fixture.file("x.csv", "a\n");
    let text = "LOAD CSV FROM $url AS row RETURN row[0]";
    fixture.ask(&url, text);
    let parameters = Parameters::from_iter([("url".into(), Value::string(url))]);
    let limits = InlineLimits { time: Duration::from_secs(60), memory_bytes: 1 << 20, rows: 100 };
    let query = Query::new(Language::OpenCypher, text, &parameters);
    assert!(fixture.database.query_inline(&query, limits).is_none());
}

#[test]
fn a_transaction_of_several_requests_reads_files() {
    let fixture = Fixture::new();
    let url = fixture.file("x.csv", "a\nb\n");
    let parameters = Parameters::from_iter([("url".into(), Value::string(url))]);
    let mut transaction = Transaction::new(None, None, false);
    for text in ["LOAD CSV FROM $url AS row CREATE (:N {k: row[0]})", "MATCH (n:N) RETURN n.k ORDER BY n.k"] {
        let query = Query::new(Language::OpenCypher, text, &parameters);
        let answer = fixture.database.query_within(&mut transaction, &query).unwrap();
        if text.starts_with("MATCH") {
            assert_eq!(answer.rows, texts(&["a", "b"]));
        }
    }
    fixture.database.commit_transaction(transaction).unwrap();
    assert_eq!(fixture.count("N"), 2);
}

#[test]
fn a_plan_shows_the_file_where_the_text_reads_it() {
    let fixture = Fixture::new();
    let url = fixture.file("x.csv", "a\n");
    let plan = |text: &str| {
        let rows = fixture.ask(&url, text);
        let lines: Vec<String> = rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
        lines.join("\n")
    };
    let text = "MATCH (n:A) LOAD CSV WITH HEADERS FROM $url AS row FIELDTERMINATOR ';' \
                MATCH (m:B {k: row.k}) RETURN n, m";
    let explained = plan(&format!("EXPLAIN {text}"));
    let last = explained.rsplit("load csv").next().unwrap();
    assert!(last.contains("of @url with headers terminator ';'  (~"), "{explained}");
    assert!(last.contains("scan vertices"), "{explained}");
    let profiled = plan("PROFILE LOAD CSV FROM $url AS row RETURN linenumber()");
    assert_eq!(profiled.matches("load csv").count(), 1, "{profiled}");
    assert!(profiled.contains("number $"), "{profiled}");
    assert!(!profiled.contains("file $"), "{profiled}");
}
