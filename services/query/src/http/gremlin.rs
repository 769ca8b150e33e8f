//! `/gremlin`: runs the traversal in the parameter `gremlin` and answers with a GraphSON response message.

use super::body::Fields;
use super::queries::{self, Origin};
use super::{Failure, Service, bookmark, idempotency, json};
use crate::admission::{self, Output};
use crate::json::graphson::{TypedColumn, UntypedColumn};
use crate::json::input;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tidegraph_engine::{Answer, Language};
use tidegraph_types::ErrorCode;

const TYPED: &str = "application/vnd.gremlin-v3.0+json";
const UNTYPED: &str = "application/json";

/// `GET /gremlin`: runs a traversal from the query string, which may only read.
///
/// # Errors
///
/// `MethodNotAllowed` if it writes; all others as [`post`].
pub async fn get(state: State<Service>, request: Request) -> Result<Response, Failure> {
    post(state, request).await
}

/// `POST /gremlin`: runs a traversal from a form or from JSON.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameter` or `UnsupportedOperation` for a wrong request; the failure of the query or of
/// its admission.
pub async fn post(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    let origin = Origin::of(&request);
    let (fields, headers) = Fields::read(&service, request).await?;
    let at_least = bookmark::at_least(&headers)?;
    let key = idempotency::key(&headers)?;
    let text = fields.required("gremlin")?;
    if let Some(language) = fields.text("language")?
        && !matches!(language.as_str(), "gremlin-lang" | "gremlin-groovy")
    {
        return Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!("language {language:?} is not supported: use gremlin-lang"),
        ));
    }
    let bindings = input::parameters(fields.json("bindings"))
        .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.to_string()))?;
    let id = fields.text("queryId")?.unwrap_or_else(|| service.database.request_id().to_string());
    let typed = wants_types(&headers)?;
    let asked = admission::Request {
        id: id.clone(),
        language: Language::Gremlin,
        text,
        parameters: bindings,
        timeout: origin.timeout(&fields)?,
        at_least,
        read_only: origin.read_only,
        key,
        principal: origin.principal,
        memory: fields.memory(),
        frees_slot: false,
    };
    let written = service
        .admission
        .run(asked, move |asked, answer, output| Ok(message(&asked.id, answer, typed, output)?));
    let written = written.await.map_err(|error| queries::failure(error, &id))?;
    let response = json(StatusCode::OK, if typed { TYPED } else { UNTYPED }, written.body);
    let response = idempotency::with_repeated(response, written.repeated);
    Ok(bookmark::with_version(response, written.version))
}

/// Returns whether the client accepts GraphSON 3 with types, which is the default. Untyped GraphSON has to be asked
/// for.
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
    let message = format!("not supported yet: answers of type {accept:?}; use {TYPED}");
    Err(Failure::new(ErrorCode::UnsupportedOperation, message))
}

fn message(id: &str, answer: &Answer, typed: bool, output: &mut Output) -> serde_json::Result<()> {
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
        attributes: Nothing,
    }
    #[derive(Serialize)]
    struct Result<T: Serialize> {
        data: T,
        meta: Nothing,
    }
    /// A map with no entries.
    #[derive(Clone, Copy)]
    struct Nothing {
        typed: bool,
    }
    impl Serialize for Nothing {
        fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            if self.typed {
                map.serialize_entry("@type", "g:Map")?;
                map.serialize_entry::<_, [(); 0]>("@value", &[])?;
            }
            map.end()
        }
    }
    let meta = Nothing { typed };
    let status = Status { message: "", code: 200, attributes: meta };
    let request_id = id;
    if typed {
        let result = Result { data: TypedColumn(&answer.rows), meta };
        serde_json::to_writer(output, &Message { request_id, status, result })
    } else {
        let result = Result { data: UntypedColumn(&answer.rows), meta };
        serde_json::to_writer(output, &Message { request_id, status, result })
    }
}
