//! A graph behind `POST /openCypher`, whose answers are plain JSON.

use crate::suite::{Graph, Refusal, Rows};
use serde_json::{Map as Object, Value as Json, json};
use std::net::SocketAddr;
use std::rc::Rc;
use tidegraph_engine::Parameters;
use tidegraph_types::{
    Cardinality, Edge, EdgeData, ErrorCode, Gui, PropertyData, Sid, Str, Token, Value, VertexData,
};

pub struct Connection {
    agent: ureq::Agent,
    url: String,
}

impl Connection {
    fn new(address: SocketAddr) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        Self { agent: config.into(), url: format!("http://{address}/openCypher") }
    }
}

impl Graph for Rc<Connection> {
    fn ask(&self, text: &str, parameters: &Parameters) -> Result<Rows, Refusal> {
        let parameters: Object<String, Json> =
            parameters.iter().map(|(name, value)| (name.to_string(), parameter(value))).collect();
        let mut answer =
            self.agent.post(&self.url).send_json(json!({ "query": text, "parameters": parameters })).unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        let status = answer.status().as_u16();
        let json = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        if status == 200 { Ok(rows(&json)) } else { Err(refusal(status, &json)) }
    }

    fn is_plain(&self) -> bool {
        true
    }
}

fn refusal(status: u16, body: &Json) -> Refusal {
    let code = ErrorCode::ALL.iter().copied().find(|code| body["code"] == code.as_str());
    let code = code.unwrap_or_else(|| panic!("{body} has no known code"));
    assert_eq!(code.http_status(), status, "{body}");
    Refusal { code, message: body["detailedMessage"].as_str().unwrap().to_owned() }
}

/// Reads `{"results": [{column: value}]}`.
fn rows(body: &Json) -> Rows {
    let rows = body["results"].as_array().unwrap_or_else(|| panic!("{body} has no results"));
    let rows: Vec<_> = rows.iter().map(|row| row.as_object().unwrap()).collect();
    Rows {
        columns: rows.first().map(|row| row.keys().cloned().collect()),
        rows: rows.iter().map(|row| row.values().map(value).collect()).collect(),
    }
}

fn parameter(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => json!(truth),
        Value::Long(whole) => json!(whole),
        Value::Double(float) => json!(float),
        Value::String(text) => json!(text),
        Value::List(items) => items.iter().map(parameter).collect(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), parameter(value))).collect()
        }
        other => panic!("{other:?} is no parameter of the kit"),
    }
}

/// Reads plain JSON. Temporal values stay texts, and paths stay lists: the suite compares them as such.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Long(whole),
            None => Value::Double(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(value).collect()),
        Json::Object(members) => match members.get("~entityType").and_then(Json::as_str) {
            Some("node") => vertex(members),
            Some("relationship") => edge(members),
            _ => Value::map(members.iter().map(|(key, json)| (key.as_str().into(), value(json))).collect()),
        },
    }
}

fn text(members: &Object<String, Json>, name: &str) -> Str {
    members[name].as_str().unwrap_or_else(|| panic!("{name} of {members:?} is no text")).into()
}

fn properties(members: &Object<String, Json>) -> impl Iterator<Item = (Str, Value)> {
    members["~properties"].as_object().unwrap().iter().map(|(key, json)| (key.as_str().into(), value(json)))
}

/// Handles are not part of an answer, and the suite does not look at them.
fn vertex(members: &Object<String, Json>) -> Value {
    let labels = members["~labels"].as_array().unwrap();
    let properties = properties(members).map(|(key, value)| PropertyData {
        key,
        cardinality: Cardinality::Single,
        values: [value].into(),
        meta: vec![],
    });
    Value::VertexData(
        VertexData {
            gui: Gui(0),
            id: text(members, "~id"),
            ids: tidegraph_types::ElementIds::Strings,
            labels: labels.iter().map(|label| label.as_str().unwrap().into()).collect(),
            properties: properties.collect(),
        }
        .into(),
    )
}

fn edge(members: &Object<String, Json>) -> Value {
    Value::EdgeData(
        EdgeData {
            edge: Edge { sid: Sid(0), source: Gui(0), target: Gui(0), label: Token(0) },
            id: text(members, "~id"),
            ids: tidegraph_types::ElementIds::Strings,
            label: text(members, "~type"),
            source_id: text(members, "~start"),
            target_id: text(members, "~end"),
            source_labels: vec![],
            target_labels: vec![],
            properties: properties(members).collect(),
        }
        .into(),
    )
}

#[test]
fn tck_over_http() {
    super::check(include_str!("expected_failures_over_http.txt"), |_, address| Connection::new(address));
}
