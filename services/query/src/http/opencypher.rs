//! `/openCypher`: runs the query in the parameter `query` and answers with `{"results": […]}`.

use super::answers::Sending;
use super::body::Fields;
use super::explain::{self, Form};
use super::queries::{self, Origin};
use super::{Failure, Service, bookmark, idempotency};
use crate::admission::{self, Output, Writer};
use crate::json::{input, plain};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use std::io::{self, Write as _};
use std::sync::Arc;
use tidegraph_engine::{Explain, Language};
use tidegraph_types::{ErrorCode, Str, Value};

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
        gremlin_version: None,
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
    let (written, media_type) = if explain.is_some() {
        let written = service.admission.run(asked, move |_, answer, output| form.write(answer, output)).await;
        (written.map_err(|error| queries::failure(error, &id))?, form.media_type())
    } else {
        let writer = Json { columns: Arc::default(), is_first: true };
        (queries::run(service, asked, writer, origin.whole).await?, "application/json")
    };
    let (repeated, version) = (written.repeated, written.version);
    let response = Sending::of(&id, headers).response(media_type, written);
    Ok(bookmark::with_version(idempotency::with_repeated(response, repeated), version))
}

/// Writes `{"results": [{column: value}]}`.
#[derive(Clone)]
struct Json {
    columns: Arc<[Str]>,
    is_first: bool,
}

impl Writer for Json {
    fn begin(&mut self, columns: &Arc<[Str]>, out: &mut Output) -> io::Result<()> {
        self.columns = columns.clone();
        out.write_all(b"{\"results\":[")
    }

    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &plain::Row { columns: &self.columns, row })?;
        out.cut();
        Ok(())
    }

    fn end(&mut self, out: &mut Output) -> io::Result<()> {
        out.write_all(b"]}")
    }
}
