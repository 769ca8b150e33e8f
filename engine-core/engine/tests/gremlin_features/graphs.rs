//! The graphs that TinkerPop's scenarios name. The small ones are traversals in files; "grateful" is read from TinkerPop's file if it is available.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use tidegraph_engine::loads::Allowed;
use tidegraph_engine::{Database, GremlinVersion, Language, Parameters, Query};
use tidegraph_types::{GremlinSettings, Map, Value};

const CLASSIC: &str = include_str!("graphs/classic.gremlin");
const MODERN: &str = include_str!("graphs/modern.gremlin");
const CREW: &str = include_str!("graphs/crew.gremlin");
const SINK: &str = include_str!("graphs/sink.gremlin");

/// The files that scenarios read (`g.io("data/…")`), by the names that they have in TinkerPop's distribution, and where its kit has
/// them.
const FILES: [(&str, &str); 3] = [
    ("tinkerpop-modern.json", "graphson/tinkerpop-modern-v3.json"),
    ("tinkerpop-modern.xml", "graphml/tinkerpop-modern.xml"),
    ("tinkerpop-modern.kryo", "gryo/tinkerpop-modern-v3.kryo"),
];

/// Returns the folder with the files that scenarios read; it is empty without a kit.
pub fn data_folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let kit =
            ["GREMLIN_FEATURES", "GREMLIN_3_8_FEATURES"].into_iter().find_map(|v| std::env::var(v).ok());
        if let Some(features) = kit {
            let files = Path::new(&features).join("../../structure/io");
            for (name, from) in FILES {
                let from = files.join(from);
                let copied = std::fs::copy(&from, folder.path().join(name));
                copied.unwrap_or_else(|error| panic!("{}: {error}", from.display()));
            }
        }
        folder
    });
    made.path()
}

/// Returns what graphs of scenarios may read.
pub fn readable_files() -> Allowed {
    Allowed::parse([data_folder().display().to_string()]).expect("a folder")
}

/// The graphs that scenarios only read. Each is built once.
pub struct Graphs {
    /// The version of Gremlin that the scenarios speak; `None`: the default.
    pub version: Option<GremlinVersion>,
    /// The settings of the graphs.
    gremlin: GremlinSettings,
    made: BTreeMap<String, Arc<Database>>,
}

impl Graphs {
    /// Graphs with these settings for scenarios of a version.
    pub fn of(version: Option<GremlinVersion>, gremlin: GremlinSettings) -> Self {
        Self { version, gremlin, made: BTreeMap::new() }
    }

    /// Returns a graph by the name that scenarios use, or `None` if its data is not available.
    pub fn get(&mut self, name: &str) -> Option<Arc<Database>> {
        if name == "empty" {
            return Some(crate::empty_graph(self.gremlin));
        }
        if let Some(database) = self.made.get(name) {
            return Some(database.clone());
        }
        let database = crate::empty_graph(self.gremlin);
        match name {
            "classic" => write(&database, Language::Gremlin, CLASSIC, &Parameters::default()),
            "modern" => write(&database, Language::Gremlin, MODERN, &Parameters::default()),
            "crew" => write(&database, Language::Gremlin, CREW, &Parameters::default()),
            "sink" => write(&database, Language::Gremlin, SINK, &Parameters::default()),
            "grateful" => grateful(&database, &std::env::var("GREMLIN_GRATEFUL").ok()?),
            other => panic!("no graph is named {other}"),
        }
        self.made.insert(name.to_owned(), database.clone());
        Some(database)
    }
}

fn write(database: &Database, language: Language, text: &str, parameters: &Parameters) {
    database.query(&Query::new(language, text, parameters)).unwrap_or_else(|error| panic!("{text}\n{error}"));
}

/// Loads GraphSON 1 with one line for each vertex and its outgoing edges.
fn grateful(database: &Database, file: &str) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (mut vertices, mut edges) =
        (BTreeMap::<String, Vec<Value>>::new(), BTreeMap::<String, Vec<Value>>::new());
    for line in text.lines() {
        let vertex: serde_json::Value = serde_json::from_str(line).expect("a vertex");
        let id = vertex["id"].to_string();
        let mut row = vec![("id", Value::from(id.as_str()))];
        for key in ["name", "songType", "performances"] {
            row.push((key, scalar(&vertex["properties"][key][0]["value"])));
        }
        vertices.entry(vertex["label"].as_str().expect("a label").to_owned()).or_default().push(record(row));
        for (label, list) in vertex["outE"].as_object().into_iter().flatten() {
            for edge in list.as_array().expect("edges") {
                edges.entry(label.clone()).or_default().push(record(vec![
                    ("id", Value::from(edge["id"].to_string().as_str())),
                    ("from", Value::from(id.as_str())),
                    ("to", Value::from(edge["inV"].to_string().as_str())),
                    ("weight", scalar(&edge["properties"]["weight"])),
                ]));
            }
        }
    }
    for (label, rows) in vertices {
        let text = format!(
            "UNWIND $rows AS r CREATE (:{label} {{`~id`: r.id, name: r.name, songType: r.songType, \
             performances: r.performances}})"
        );
        write(database, Language::OpenCypher, &text, &rows_parameter(rows));
    }
    for (label, rows) in edges {
        let text = format!(
            "UNWIND $rows AS r MATCH (a), (b) WHERE id(a) = r.from AND id(b) = r.to \
             CREATE (a)-[:{label} {{`~id`: r.id, weight: r.weight}}]->(b)"
        );
        write(database, Language::OpenCypher, &text, &rows_parameter(rows));
    }
}

fn rows_parameter(rows: Vec<Value>) -> Parameters {
    Parameters::from_iter([("rows".into(), Value::list(rows))])
}

fn record(entries: Vec<(&str, Value)>) -> Value {
    Value::map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect::<Map>())
}

fn scalar(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Number(number) => {
            Value::from(i32::try_from(number.as_i64().expect("an integer")).expect("a small integer"))
        }
        _ => Value::Null,
    }
}
