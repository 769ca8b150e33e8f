//! `/gremlin`: `gremlin` in, a GraphSON response message out.

use super::body::Fields;
use super::queries::{self, Asked};
use super::{Failure, Service, json};
use crate::json::graphson::{TypedList, Untyped};
use crate::json::input;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use std::time::Duration;
use tidegraph_engine::{Answer, Language};
use tidegraph_types::{ErrorCode, Value};

const TYPED: &str = "application/vnd.gremlin-v3.0+json";
const UNTYPED: &str = "application/json";

/// A traversal in the query string.
pub async fn get(state: State<Service>, request: Request) -> Result<Response, Failure> {
    post(state, request).await
}

/// A traversal in JSON.
pub async fn post(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    let (fields, headers) = Fields::read(&service, request).await?;
    let text = fields.required("gremlin")?;
    if let Some(language) = fields.text("language")?
        && !matches!(language.as_str(), "gremlin-lang" | "gremlin-groovy")
    {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!("language {language:?} is not gremlin-lang"),
        ));
    }
    let bindings = input::parameters(fields.json("bindings"))
        .map_err(|e| Failure::new(ErrorCode::InvalidParameter, e))?;
    let id = fields.text("queryId")?.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let typed = wants_types(&headers)?;
    let asked = Asked {
        id: id.clone(),
        language: Language::Gremlin,
        text,
        parameters: bindings,
        timeout: fields.number("queryTimeoutMilliseconds")?.map(Duration::from_millis),
    };
    let body = queries::run(&service, asked, move |answer| message(&id, answer, typed)).await?;
    Ok(json(StatusCode::OK, if typed { TYPED } else { UNTYPED }, body))
}

/// Which GraphSON the client takes. Version 3 with types unless it says otherwise; other forms are refused.
fn wants_types(headers: &HeaderMap) -> Result<bool, Failure> {
    let accept =
        headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*").to_ascii_lowercase();
    for kind in accept.split(',').map(str::trim) {
        if kind.contains("types=false") || kind.starts_with("application/vnd.gremlin-v1.0+json") {
            return Ok(false);
        }
        let plain = kind.split(';').next().unwrap_or_default();
        if matches!(plain, "*/*" | "application/*" | "application/json" | TYPED) || kind.is_empty() {
            return Ok(true);
        }
    }
    let message = format!("not supported yet: answers of type {accept:?}; {TYPED} is");
    Err(Failure::new(ErrorCode::UnsupportedOperation, message))
}

fn message(id: &str, answer: &Answer, typed: bool) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Message<'a, T: Serialize> {
        request_id: &'a str,
        status: Status,
        result: Result<T>,
    }
    #[derive(Serialize)]
    struct Status {
        message: &'static str,
        code: u16,
        attributes: serde_json::Value,
    }
    #[derive(Serialize)]
    struct Result<T: Serialize> {
        data: T,
        meta: serde_json::Value,
    }
    let empty =
        || if typed { serde_json::json!({"@type": "g:Map", "@value": []}) } else { serde_json::json!({}) };
    let values: Vec<Value> = answer.rows.iter().filter_map(|row| row.first().cloned()).collect();
    let status = Status { message: "", code: 200, attributes: empty() };
    if typed {
        let result = Result { data: TypedList(&values), meta: empty() };
        serde_json::to_vec(&Message { request_id: id, status, result })
    } else {
        let data: Vec<_> = values.iter().map(Untyped).collect();
        serde_json::to_vec(&Message { request_id: id, status, result: Result { data, meta: empty() } })
    }
}
