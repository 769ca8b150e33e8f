//! `/gremlin`: runs the traversal in the parameter `gremlin` and answers with a response message of
//! Gremlin Server, in GraphSON or GraphBinary; or begins a connection of WebSocket.

use super::answers::Sending;
use super::body::Fields;
use super::explain::Form;
use super::queries::{self, Origin};
use super::{Failure, Service, bookmark, idempotency};
use crate::admission::{Output, Writer};
use crate::json::input;
use crate::{admission, websocket};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response as HttpResponse;
use std::io;
use std::sync::Arc;
use tidegraph_engine::{Explain, Language};
use tidegraph_gremlin_io::{self as gremlin_io, Format, OpenResponse, Response, Shown};
use tidegraph_types::{ErrorCode, Str, Value};

/// Gremlin Server's code of a whole answer.
const SUCCESS: u16 = 200;

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
        memory: fields.memory(),
        frees_slot: false,
        explain,
    };
    let (written, media_type) = if explain.is_some() {
        let written = service.admission.run(asked, move |_, answer, output| form.write(answer, output)).await;
        (written.map_err(|error| queries::failure(error, &id))?, form.media_type())
    } else {
        let writer = Message { id: id.clone(), format, open: None };
        // A list in GraphBinary begins with its length.
        let whole = origin.whole || format == Format::Binary;
        (queries::run(service, asked, writer, whole).await?, format.media_type())
    };
    let (repeated, version) = (written.repeated, written.version);
    let response = Sending::of(&id, &headers).response(media_type, written);
    Ok(bookmark::with_version(idempotency::with_repeated(response, repeated), version))
}

/// Writes one message with all values.
#[derive(Clone)]
struct Message {
    id: String,
    format: Format,
    open: Option<OpenResponse>,
}

impl Writer for Message {
    fn begin(&mut self, _: &Arc<[Str]>, out: &mut Output) -> io::Result<()> {
        let form = gremlin_io::Form { format: self.format, traversers: false, shown: Shown::All };
        let response = Response { id: &self.id, code: SUCCESS, message: "", attributes: &[] };
        self.open = Some(response.begin(form, 0, out)?);
        Ok(())
    }

    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()> {
        if let (Some(open), Some(value)) = (&mut self.open, row.first()) {
            open.value(value, out)?;
        }
        if self.format != Format::Binary {
            out.cut();
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Output) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.end(out)?;
        if self.format == Format::Binary {
            for correction in open.corrections(SUCCESS)? {
                out.correct(correction.at, correction.bytes());
            }
        }
        Ok(())
    }
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
