//! GraphSON as TinkerPop writes graphs: a line for each vertex, with its properties and its edges in both directions.
//!
//! The versions differ only in how values say their types: version 1 without types has none, 2 and 3 have `@type` and
//! `@value`. Values are read as those of drivers' messages. Of the two places of an edge, the one at its source is read.

use super::{Failure, Step};
use crate::decompress::Input;
use serde_json::Value as Json;
use std::io::BufRead;
use tidegraph_gremlin_io::{GraphSonError, graphson_value};
use tidegraph_types::{Elements, FileElement, FileProperty, Str, Value};

type Object = serde_json::Map<String, Json>;

/// Bytes that a value of the parsed JSON and what is made of it take at most, besides its text. A list or map that grows has
/// room for twice its items.
const VALUE_BYTES: usize = 2 * (size_of::<Json>() + size_of::<String>() + size_of::<Value>() + 16);

/// Reads the lines of a file.
pub(super) struct Lines {
    input: Input,
    elements: Elements,
    limit: usize,
    /// The bytes of the line so far.
    text: Vec<u8>,
    /// Its number, from 1.
    line: u64,
    /// Number of values that the JSON of the line has at most.
    values: usize,
    /// Whether the line is whole: the next step parses it.
    is_whole: bool,
    ended: bool,
}

impl Lines {
    pub(super) fn new(input: Input, elements: Elements, limit: usize) -> Self {
        let (text, line, values) = (vec![], 1, 0);
        Self { input, elements, limit, text, line, values, is_whole: false, ended: false }
    }

    pub(super) fn held_bytes(&self) -> usize {
        let parsed = if self.is_whole { self.text.len() + self.values * VALUE_BYTES } else { 0 };
        self.text.capacity() + parsed
    }

    pub(super) fn step(&mut self, found: &mut Vec<FileElement>) -> Result<Step, Failure> {
        if self.is_whole {
            let failure = |reason| Failure::Element(self.line, reason);
            let text = self.text.trim_ascii();
            if !text.is_empty() {
                read_line(text, self.line, self.elements, found).map_err(failure)?;
            }
            self.text.clear();
            // One long line must not hold memory to the end of the file.
            self.text.shrink_to(crate::decompress::BUFFER_BYTES);
            (self.is_whole, self.values) = (false, 0);
            self.line += 1;
            return Ok(if self.ended { Step::End } else { Step::More });
        }
        let buffer = self.input.fill_buf()?;
        if buffer.is_empty() {
            (self.ended, self.is_whole) = (true, true);
            return Ok(Step::More);
        }
        let end = memchr::memchr(b'\n', buffer);
        let taken = &buffer[..end.unwrap_or(buffer.len())];
        if self.text.len() + taken.len() > self.limit {
            let reason = format!("the line has more than {} bytes, the limit", self.limit);
            return Err(Failure::Element(self.line, reason));
        }
        self.text.extend_from_slice(taken);
        // Each value follows one of these, or is the first one.
        self.values += taken.iter().filter(|byte| matches!(byte, b'[' | b'{' | b',' | b':')).count();
        self.is_whole = end.is_some();
        let read = taken.len() + usize::from(end.is_some());
        self.input.consume(read);
        Ok(Step::More)
    }
}

/// Reads the vertex of a line, or its edges.
fn read_line(text: &[u8], line: u64, elements: Elements, found: &mut Vec<FileElement>) -> Result<(), String> {
    let json: Json = serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        format!("the line is not the JSON of a vertex: {message}, at column {}", error.column())
    })?;
    let Json::Object(mut vertex) = json else {
        return Err("the line is no vertex, which is an object of JSON".to_owned());
    };
    refuse_classes(&vertex)?;
    let Some(id) = vertex.get("id") else {
        return Err("the line is no vertex: it has no \"id\". GraphSON has a vertex on each line".to_owned());
    };
    let id = value("id", id)?;
    let of = |reason| format!("vertex {}: {reason}", shown(&id));
    match elements {
        Elements::Vertices => {
            let label = label(vertex.get("label")).map_err(of)?;
            let properties = match vertex.remove("properties") {
                None | Some(Json::Null) => vec![],
                Some(Json::Object(all)) => vertex_properties(&all).map_err(of)?,
                Some(_) => return Err(of("\"properties\" is no object".to_owned())),
            };
            found.push(FileElement { line, id: Some(id), label, ends: None, properties });
        }
        Elements::Edges => match vertex.remove("outE") {
            None | Some(Json::Null) => {}
            Some(Json::Object(all)) => {
                refuse_classes(&all)?;
                for (label, edges) in all {
                    let Json::Array(edges) = edges else {
                        return Err(of(format!("the edges {label:?} are no list")));
                    };
                    for item in edges {
                        let of = |reason| format!("vertex {}, edge {label:?}: {reason}", shown(&id));
                        let (edge_id, target, properties) = edge(&item).map_err(of)?;
                        found.push(FileElement {
                            line,
                            id: edge_id,
                            label: Some(Str::from(label.as_str())),
                            ends: Some((id.clone(), target)),
                            properties,
                        });
                    }
                }
            }
            Some(_) => return Err(of("\"outE\" is no object".to_owned())),
        },
    }
    Ok(())
}

/// Refuses the form of version 1 that names classes of Java, whose numbers in lists would otherwise be read as lists.
fn refuse_classes(object: &Object) -> Result<(), String> {
    match object.contains_key("@class") {
        true => Err("it names classes of Java (\"@class\"), as version 1 of GraphSON with types does: \
                     write the file without types, or in version 2 or 3"
            .to_owned()),
        false => Ok(()),
    }
}

fn label(json: Option<&Json>) -> Result<Option<Str>, String> {
    match json {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(label)) => Ok(Some(Str::from(label.as_str()))),
        Some(_) => Err("\"label\" is no string".to_owned()),
    }
}

fn vertex_properties(all: &Object) -> Result<Vec<FileProperty>, String> {
    refuse_classes(all)?;
    let mut properties = vec![];
    for (key, values) in all {
        let Json::Array(values) = values else { return Err(format!("the property {key:?} is no list")) };
        for held in values {
            let Some(held) = held.as_object() else {
                return Err(format!("a value of the property {key:?} is no object"));
            };
            let json = held.get("value").ok_or_else(|| format!("the property {key:?} has no \"value\""))?;
            let meta = match held.get("properties") {
                None | Some(Json::Null) => vec![],
                Some(Json::Object(meta)) => {
                    let pair = |(key, json): (&String, &Json)| Ok((key.as_str().into(), value(key, json)?));
                    meta.iter().map(pair).collect::<Result<_, String>>()?
                }
                Some(_) => return Err(format!("\"properties\" of the property {key:?} is no object")),
            };
            properties.push(FileProperty { key: key.as_str().into(), value: value(key, json)?, meta });
        }
    }
    Ok(properties)
}

/// Reads an edge: its id, its target and its properties.
fn edge(json: &Json) -> Result<(Option<Value>, Value, Vec<FileProperty>), String> {
    let Json::Object(edge) = json else { return Err("it is no object".to_owned()) };
    let id = edge.get("id").filter(|id| !id.is_null()).map(|id| value("id", id)).transpose()?;
    let target = value("inV", edge.get("inV").ok_or("it has no \"inV\"")?)?;
    let property = |(key, json): (&String, &Json)| {
        Ok(FileProperty { key: key.as_str().into(), value: value(key, json)?, meta: vec![] })
    };
    let properties = match edge.get("properties") {
        None | Some(Json::Null) => vec![],
        Some(Json::Object(all)) => all.iter().map(property).collect::<Result<_, String>>()?,
        Some(_) => return Err("\"properties\" is no object".to_owned()),
    };
    Ok((id, target, properties))
}

fn value(of: &str, json: &Json) -> Result<Value, String> {
    graphson_value(json).map_err(|error: GraphSonError| format!("{of:?}: {error}"))
}

/// Returns an id as an error shows it.
fn shown(id: &Value) -> String {
    id.for_message().to_string()
}
