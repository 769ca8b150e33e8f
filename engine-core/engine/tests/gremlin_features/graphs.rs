//! The graphs that TinkerPop's scenarios name. The small ones are written out here as
//! traversals; "grateful" is read from TinkerPop's file if it is available.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidegraph_engine::{Database, Language, Parameters, Query};
use tidegraph_types::{Map, Value};

const CLASSIC: &str = "g.addV().property(id, 1).property('name', 'marko').property('age', 29).as('1').
  addV().property(id, 2).property('name', 'vadas').property('age', 27).as('2').
  addV().property(id, 3).property('name', 'lop').property('lang', 'java').as('3').
  addV().property(id, 4).property('name', 'josh').property('age', 32).as('4').
  addV().property(id, 5).property('name', 'ripple').property('lang', 'java').as('5').
  addV().property(id, 6).property('name', 'peter').property('age', 35).as('6').
  addE('knows').from('1').to('2').property(id, 7).property('weight', 0.5F).
  addE('knows').from('1').to('4').property(id, 8).property('weight', 1.0F).
  addE('created').from('1').to('3').property(id, 9).property('weight', 0.4F).
  addE('created').from('4').to('5').property(id, 10).property('weight', 1.0F).
  addE('created').from('4').to('3').property(id, 11).property('weight', 0.4F).
  addE('created').from('6').to('3').property(id, 12).property('weight', 0.2F)";

const MODERN: &str = "g.addV('person').property(id, 1).property('name', 'marko').property('age', 29).as('1').
  addV('person').property(id, 2).property('name', 'vadas').property('age', 27).as('2').
  addV('software').property(id, 3).property('name', 'lop').property('lang', 'java').as('3').
  addV('person').property(id, 4).property('name', 'josh').property('age', 32).as('4').
  addV('software').property(id, 5).property('name', 'ripple').property('lang', 'java').as('5').
  addV('person').property(id, 6).property('name', 'peter').property('age', 35).as('6').
  addE('knows').from('1').to('2').property(id, 7).property('weight', 0.5D).
  addE('knows').from('1').to('4').property(id, 8).property('weight', 1.0D).
  addE('created').from('1').to('3').property(id, 9).property('weight', 0.4D).
  addE('created').from('4').to('5').property(id, 10).property('weight', 1.0D).
  addE('created').from('4').to('3').property(id, 11).property('weight', 0.4D).
  addE('created').from('6').to('3').property(id, 12).property('weight', 0.2D)";

const CREW: &str = "g.addV('person').property(id, 1).property('name', 'marko').
    property(list, 'location', 'san diego', 'startTime', 1997, 'endTime', 2001).
    property(list, 'location', 'santa cruz', 'startTime', 2001, 'endTime', 2004).
    property(list, 'location', 'brussels', 'startTime', 2004, 'endTime', 2005).
    property(list, 'location', 'santa fe', 'startTime', 2005).as('1').
  addV('person').property(id, 7).property('name', 'stephen').
    property(list, 'location', 'centreville', 'startTime', 1990, 'endTime', 2000).
    property(list, 'location', 'dulles', 'startTime', 2000, 'endTime', 2006).
    property(list, 'location', 'purcellville', 'startTime', 2006).as('7').
  addV('person').property(id, 8).property('name', 'matthias').
    property(list, 'location', 'bremen', 'startTime', 2004, 'endTime', 2007).
    property(list, 'location', 'baltimore', 'startTime', 2007, 'endTime', 2011).
    property(list, 'location', 'oakland', 'startTime', 2011, 'endTime', 2014).
    property(list, 'location', 'seattle', 'startTime', 2014).as('8').
  addV('person').property(id, 9).property('name', 'daniel').
    property(list, 'location', 'spremberg', 'startTime', 1982, 'endTime', 2005).
    property(list, 'location', 'kaiserslautern', 'startTime', 2005, 'endTime', 2009).
    property(list, 'location', 'aachen', 'startTime', 2009).as('9').
  addV('software').property(id, 10).property('name', 'gremlin').as('10').
  addV('software').property(id, 11).property('name', 'tinkergraph').as('11').
  addE('develops').from('1').to('10').property(id, 13).property('since', 2009).
  addE('develops').from('1').to('11').property(id, 14).property('since', 2010).
  addE('uses').from('1').to('10').property(id, 15).property('skill', 4).
  addE('uses').from('1').to('11').property(id, 16).property('skill', 5).
  addE('develops').from('7').to('10').property(id, 17).property('since', 2010).
  addE('develops').from('7').to('11').property(id, 18).property('since', 2011).
  addE('uses').from('7').to('10').property(id, 19).property('skill', 5).
  addE('uses').from('7').to('11').property(id, 20).property('skill', 4).
  addE('develops').from('8').to('10').property(id, 21).property('since', 2012).
  addE('uses').from('8').to('10').property(id, 22).property('skill', 3).
  addE('uses').from('8').to('11').property(id, 23).property('skill', 3).
  addE('uses').from('9').to('10').property(id, 24).property('skill', 5).
  addE('uses').from('9').to('11').property(id, 25).property('skill', 3).
  addE('traverses').from('10').to('11').property(id, 26)";

const SINK: &str = "g.addV('message').property(id, 1000).property('name', 'a').as('a').
  addV('message').property(id, 1001).property('name', 'b').as('b').
  addV('loops').property(id, 2000).property('name', 'loop').as('loop').
  addE('link').from('a').to('b').property(id, 1002).
  addE('self').from('loop').to('loop').property(id, 2001)";

/// The graphs that scenarios only read. Each is built once.
#[derive(Default)]
pub struct Graphs {
    made: BTreeMap<String, Arc<Database>>,
}

impl Graphs {
    /// Returns a graph by the name that scenarios use, or `None` if its data is not available.
    pub fn get(&mut self, name: &str) -> Option<Arc<Database>> {
        if name == "empty" {
            return Some(crate::empty_graph());
        }
        if let Some(database) = self.made.get(name) {
            return Some(database.clone());
        }
        let database = crate::empty_graph();
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
