//! Support that the tests share: a database in memory, queries, and answers as short text.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use std::path::Path;
use std::sync::Arc;
use tidegraph_engine::{Database, Error, Language, Options, Parameters, Query};
use tidegraph_types::Value;

/// Creates an empty graph in memory.
pub fn empty() -> Arc<Database> {
    Database::open(Options::default()).expect("an empty graph")
}

/// Opens the graph in a directory.
pub fn open(dir: &Path) -> Arc<Database> {
    let options = Options { data_dir: Some(dir.to_owned()), ..Options::default() };
    Database::open(options).expect("the directory opens")
}

/// Copies a directory as a crash would leave it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("read").map(|e| e.expect("entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Creates TinkerPop's "modern" graph with openCypher.
pub fn modern() -> Arc<Database> {
    let database = empty();
    run(
        &database,
        "CREATE (marko:person {`~id`: '1', name: 'marko', age: 29}), (vadas:person {`~id`: '2', name: 'vadas', age: 27}), \
         (lop:software {`~id`: '3', name: 'lop', lang: 'java'}), (josh:person {`~id`: '4', name: 'josh', age: 32}), \
         (ripple:software {`~id`: '5', name: 'ripple', lang: 'java'}), (peter:person {`~id`: '6', name: 'peter', age: 35}), \
         (marko)-[:knows {weight: 0.5}]->(vadas), (marko)-[:knows {weight: 1.0}]->(josh), \
         (marko)-[:created {weight: 0.4}]->(lop), (josh)-[:created {weight: 1.0}]->(ripple), \
         (josh)-[:created {weight: 0.4}]->(lop), (peter)-[:created {weight: 0.2}]->(lop)",
    );
    database
}

/// Runs a text. A text that begins with `g.` is a traversal.
pub fn ask(database: &Database, text: &str, parameters: &Parameters) -> Result<Vec<Vec<Value>>, Error> {
    let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
    Ok(database.query(&Query::new(language, text, parameters))?.rows)
}

/// Runs a text that must succeed, and returns its rows as text.
pub fn run(database: &Database, text: &str) -> Vec<String> {
    match ask(database, text, &Parameters::default()) {
        Ok(rows) => rows.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join(" | ")).collect(),
        Err(error) => panic!("{text}\n{}: {error}", error.code()),
    }
}

/// Runs a text that must be refused, and returns the error code and message.
pub fn refused(database: &Database, text: &str) -> String {
    match ask(database, text, &Parameters::default()) {
        Ok(rows) => panic!("{text}\nwas not refused: {rows:?}"),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

/// Formats a value as short text.
pub fn show(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match value {
        Value::Null => "null".into(),
        Value::Bool(v) => v.to_string(),
        Value::String(v) => v.to_string(),
        Value::List(items) => format!("[{}]", list(items)),
        Value::Set(items) => format!("{{{}}}", list(items)),
        Value::Map(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(k, v)| format!("{}: {}", show(k), show(v))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Entry(entry) => format!("{}={}", show(&entry.0), show(&entry.1)),
        Value::Symbol(symbol) => symbol.as_str().to_uppercase(),
        Value::VertexData(data) => format!("v[{}]", data.id),
        Value::EdgeData(data) => format!("e[{}-{}->{}]", data.source_id, data.label, data.target_id),
        Value::Path(path) => format!("<{}>", list(&path.objects)),
        Value::Property(p) => format!("p[{}->{}]", p.key, show(&p.value)),
        Value::DateTime(_) | Value::Temporal(_) => value.for_message(),
        other => match (other.as_i64(), other.as_f64()) {
            (Some(int), _) => int.to_string(),
            (None, Some(float)) => format!("{float:?}"),
            _ => format!("{other:?}"),
        },
    }
}
