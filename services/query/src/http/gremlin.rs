//! `/gremlin`: runs the traversal in the parameter `gremlin` and answers with a response message of
//! Gremlin Server, in GraphSON or GraphBinary; or begins a connection of WebSocket.

use super::body::Fields;
use super::explain::Form;
use super::queries::{self, Origin};
use super::{Failure, Service, answer, bookmark, idempotency};
use crate::json::input;
use crate::{admission, websocket};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response as HttpResponse;
use tidegraph_engine::{Explain, Language};
use tidegraph_gremlin_io::{Format, Response, Rows, Shown};
use tidegraph_types::ErrorCode;

/// `GET /gremlin`: runs a traversal from the query string, which may only read; or begins a connection of WebSocket.
///
/// # Errors
///
/// `BadRequest` if WebSocket is asked for in a wrong way; `MethodNotAllowed` if the traversal writes; all others as
/// [`post`].
pub async fn get(state: State<Service>, request: Request) -> Result<HttpResponse, Failure> {
    if websocket::asks_for_upgrade(&request) {
        websocket::upgrade(request)
    } else {
        post(state, request).await
    }
}

/// `POST /gremlin`: runs a traversal from a form or from JSON.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameter` or `UnsupportedOperation` for a wrong request; the failure of the query or of
/// its admission.
pub async fn post(State(service): State<Service>, request: Request) -> Result<HttpResponse, Failure> {
    run(&service, request, None).await
}

/// Runs the traversal of a request, or explains it.
///
/// # Errors
///
/// As [`post`].
pub(super) async fn run(
    service: &Service,
    request: Request,
    explain: Option<Explain>,
) -> Result<HttpResponse, Failure> {
    let origin = Origin::of(&request);
    let (fields, headers) = Fields::read(service, request).await?;
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
    let form = Form::accepted(&headers);
    let format = if explain.is_some() { Format::GraphSon3 } else { accepted(&headers)? };
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
        source: origin.source,
        memory: fields.memory(),
        frees_slot: false,
        explain,
    };
    let written = service.admission.run(asked, move |asked, answer, output| {
        if explain.is_some() {
            return form.write(answer, output);
        }
        let rows = Rows { rows: &answer.rows, traversers: false, shown: Shown::All };
        let response = Response { id: &asked.id, code: 200, message: "", attributes: &[], rows: Some(rows) };
        response.write(format, output)
    });
    let written = written.await.map_err(|error| queries::failure(error, &id))?;
    let response =
        answer(StatusCode::OK, explain.map_or(format.media_type(), |_| form.media_type()), written.body);
    let response = idempotency::with_repeated(response, written.repeated);
    Ok(bookmark::with_version(response, written.version))
}

/// Returns the first format that the client accepts and the service has. GraphSON 3 with types is the default.
fn accepted(headers: &HeaderMap) -> Result<Format, Failure> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*");
    for kind in accept.split(',').map(str::trim) {
        let plain = kind.split(';').next().unwrap_or_default();
        match Format::of_media_type(kind) {
            Some(format) => return Ok(format),
            None if matches!(plain, "*/*" | "application/*" | "") => return Ok(Format::GraphSon3),
            None => {}
        }
    }
    let message =
        format!("not supported: answers of type {accept:?}; use {}", Format::GraphSon3.media_type());
    Err(Failure::new(ErrorCode::UnsupportedOperation, message))
}
