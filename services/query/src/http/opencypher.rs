//! `/openCypher`: runs the query in the parameter `query` and answers with `{"results": […]}`.

use super::body::Fields;
use super::explain::{self, Form};
use super::queries::{self, Origin};
use super::{Failure, Service, answer, bookmark, idempotency};
use crate::admission;
use crate::json::{input, plain};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tidegraph_engine::{Explain, Language};
use tidegraph_types::ErrorCode;

/// `GET /openCypher`: runs a query from the query string, which may only read.
///
/// # Errors
///
/// `MethodNotAllowed` if it writes; all others as [`post`].
pub async fn get(state: State<Service>, request: Request) -> Result<Response, Failure> {
    post(state, request).await
}

/// `POST /openCypher`: runs a query from a form or from JSON.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameter` or `UnsupportedOperation` for a wrong request; the failure of the query or of
/// its admission.
pub async fn post(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    let origin = Origin::of(&request);
    let (fields, headers) = Fields::read(&service, request).await?;
    let explain = explain::mode(&fields)?;
    run(&service, origin, &fields, &headers, explain).await
}

/// Runs the query of a request, or explains it.
///
/// # Errors
///
/// As [`post`].
pub(super) async fn run(
    service: &Service,
    origin: Origin,
    fields: &Fields,
    headers: &HeaderMap,
    explain: Option<Explain>,
) -> Result<Response, Failure> {
    let at_least = bookmark::at_least(headers)?;
    let key = idempotency::key(headers)?;
    let text = fields.required("query")?;
    let parameters = input::parameters(fields.json("parameters"))
        .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.to_string()))?;
    let asked = admission::Request {
        id: fields.text("queryId")?.unwrap_or_else(|| service.database.request_id().to_string()),
        language: Language::OpenCypher,
        text,
        parameters,
        timeout: origin.timeout(fields)?,
        at_least,
        read_only: origin.read_only,
        key,
        principal: origin.principal,
        source: origin.source,
        memory: fields.memory(),
        frees_slot: false,
        explain,
    };
    let id = asked.id.clone();
    let form = Form::accepted(headers);
    let written = service.admission.run(asked, move |_, answer, output| {
        if explain.is_some() {
            return form.write(answer, output);
        }
        let results = plain::Results { columns: &answer.columns, rows: &answer.rows };
        Ok(serde_json::to_writer(output, &results)?)
    });
    let written = written.await.map_err(|error| queries::failure(error, &id))?;
    let response =
        answer(StatusCode::OK, explain.map_or("application/json", |_| form.media_type()), written.body);
    let response = idempotency::with_repeated(response, written.repeated);
    Ok(bookmark::with_version(response, written.version))
}
