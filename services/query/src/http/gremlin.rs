//! `/gremlin`: runs a traversal and answers with a response message of Gremlin Server, in GraphSON or GraphBinary; or
//! begins a connection of WebSocket. The traversal is in the parameter `gremlin`, or in a request message of Gremlin
//! Server, which its drivers send over HTTP as well.

use super::answers::Sending;
use super::body::{self, Fields};
use super::explain::Form;
use super::queries::{self, Origin};
use super::{Failure, Service, bookmark, idempotency};
use crate::admission::{self, Output, RequestMemory, Writer};
use crate::json::input;
use crate::websocket::{self, asked};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response as HttpResponse;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Explain, GremlinVersion, Language, Reservation};
use tidegraph_gremlin_io::{self as gremlin_io, Budget, Format, OpenResponse, Response, Script, Shown};
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

/// `POST /gremlin`: runs a traversal from a form, from JSON or from a message of a driver.
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
    let (parts, bytes, memory) = body::read(service, request).await?;
    let headers = &parts.headers;
    let at_least = bookmark::at_least(headers)?;
    let key = idempotency::key(headers)?;
    let Traversal { id, gremlin_version, text, parameters, timeout, traversers, shown, format, memory } =
        match Message::of(headers, &bytes) {
            Message::Binary(bytes) => of_message(service, &origin, Format::Binary, bytes, memory)?,
            Message::Json(format, bytes) => of_message(service, &origin, format, bytes, memory)?,
            Message::None(bytes) => of_fields(service, &origin, &parts, bytes, memory)?,
        };
    let form = Form::accepted(headers);
    let format = if explain.is_some() { Format::GraphSon3 } else { accepted(headers, format)? };
    let asked = admission::Request {
        id: id.clone(),
        language: Language::Gremlin,
        gremlin_version: gremlin_version.or_else(|| websocket::version_of_driver(headers)),
        text,
        parameters,
        timeout,
        at_least,
        read_only: origin.read_only,
        key,
        principal: origin.principal,
        source: origin.source,
        memory,
        frees_slot: false,
        explain,
    };
    let (written, media_type) = if explain.is_some() {
        let written = service.admission.run(asked, move |_, answer, output| form.write(answer, output)).await;
        (written.map_err(|error| queries::failure(error, &id))?, form.media_type())
    } else {
        let form = gremlin_io::Form { format, traversers, shown };
        let writer = OneMessage { id: id.clone(), form, open: None };
        (queries::run(service, asked, writer, origin.whole).await?, format.media_type())
    };
    let (repeated, version) = (written.repeated, written.version);
    let response = Sending::of(&id, headers).response(media_type, written);
    Ok(bookmark::with_version(idempotency::with_repeated(response, repeated), version))
}

/// Writes one message with all values. Its parts are sent while the traversal runs, but for GraphBinary, whose list begins
/// with its length: its bytes are kept until the last value.
#[derive(Clone)]
struct OneMessage {
    id: String,
    form: gremlin_io::Form,
    open: Option<OpenResponse>,
}

impl Writer for OneMessage {
    fn begin(&mut self, _: &Arc<[Str]>, out: &mut Output) -> io::Result<()> {
        let response = Response { id: &self.id, code: SUCCESS, message: "", attributes: &[] };
        self.open = Some(response.begin(self.form, 0, out)?);
        Ok(())
    }

    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()> {
        if let (Some(open), Some(value)) = (&mut self.open, row.first()) {
            open.value(value, out)?;
        }
        if self.form.format != Format::Binary {
            out.cut();
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Output) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.end(out)?;
        if self.form.format == Format::Binary {
            for correction in open.corrections(SUCCESS)? {
                out.correct(correction.at, correction.bytes());
            }
        }
        Ok(())
    }
}

/// What a request asks for.
struct Traversal {
    id: String,
    /// The version that the request names.
    gremlin_version: Option<GremlinVersion>,
    text: String,
    parameters: IndexMap<Str, Value>,
    timeout: Option<Duration>,
    /// Whether the client sent steps, and wants traversers.
    traversers: bool,
    shown: Shown,
    /// The format of the request, and of its answer unless the client names another.
    format: Format,
    memory: Option<Arc<Reservation>>,
}

/// The form of a body.
enum Message<'a> {
    /// A message of Gremlin Server's protocol in GraphBinary.
    Binary(&'a [u8]),
    /// A message of Gremlin Server's protocol in GraphSON.
    Json(Format, &'a [u8]),
    /// Parameters.
    None(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Tells what a body is. Drivers begin it as they begin a message over WebSocket, with the length and the name of
    /// its format.
    fn of(headers: &HeaderMap, bytes: &'a [u8]) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        // Only the header decides: a form of any web page can send these bytes as a text.
        let Some(format) = content_type.and_then(Format::of_media_type) else { return Self::None(bytes) };
        let named = bytes.split_first().and_then(|(length, rest)| {
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            let named = Format::of_media_type(str::from_utf8(name).ok()?)?;
            (named.is_text() == format.is_text()).then_some(rest)
        });
        let bytes = named.unwrap_or(bytes);
        if format == Format::Binary { Self::Binary(bytes) } else { Self::of_json(format, bytes) }
    }

    /// Tells messages from objects of parameters.
    fn of_json(format: Format, bytes: &'a [u8]) -> Self {
        #[derive(Deserialize)]
        struct Shape {
            gremlin: Option<IgnoredAny>,
            op: Option<IgnoredAny>,
            args: Option<IgnoredAny>,
        }
        match serde_json::from_slice(bytes) {
            Ok(Shape { gremlin: None, op: Some(_), args: Some(_) }) => Self::Json(format, bytes),
            _ => Self::None(bytes),
        }
    }
}

/// Reads the parameters of a request.
fn of_fields(
    service: &Service,
    origin: &Origin,
    parts: &Parts,
    bytes: &[u8],
    memory: RequestMemory,
) -> Result<Traversal, Failure> {
    let fields = Fields::parse(service, parts, bytes, memory)?;
    let text = fields.required("gremlin")?;
    let gremlin_version = match fields.text("language")? {
        Some(language) => GremlinVersion::of_language(&language)
            .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.to_string()))?,
        None => None,
    };
    let parameters = input::parameters(fields.json("bindings"))
        .map_err(|error| Failure::new(ErrorCode::InvalidParameter, error.to_string()))?;
    Ok(Traversal {
        id: fields.text("queryId")?.unwrap_or_else(|| service.database.request_id().to_string()),
        gremlin_version,
        text,
        parameters,
        timeout: origin.timeout(&fields)?,
        traversers: false,
        shown: Shown::All,
        format: Format::GraphSon3,
        memory: fields.memory(),
    })
}

/// Reads a message of Gremlin Server's protocol.
fn of_message(
    service: &Service,
    origin: &Origin,
    format: Format,
    bytes: &[u8],
    mut memory: RequestMemory,
) -> Result<Traversal, Failure> {
    let mut take = |more| memory.grow(more, &service.admission).is_ok();
    let message =
        tidegraph_gremlin_io::Request::read(format, bytes, Budget::new(&mut take)).map_err(|error| {
            let code =
                if error.is_for_memory() { ErrorCode::MemoryLimitExceeded } else { ErrorCode::BadRequest };
            let failure = Failure::new(code, error.to_string());
            match error.id {
                Some(id) => failure.of_request(&id.to_string()),
                None => failure,
            }
        })?;
    let id = message.id.to_string();
    let wrong = |code, message: &str| Failure::new(code, message).of_request(&id);
    if message.op == "authentication" || message.op == "close" {
        let text = format!("the operation {:?} needs a connection of WebSocket", message.op);
        return Err(wrong(ErrorCode::BadRequest, &text));
    }
    let asked = asked(message, format, origin.principal.clone(), memory.reserved())
        .map_err(|failure| Failure::from(failure).of_request(&id))?;
    let (Script::Traversal { text, parameters, options }, None) = (asked.what, asked.session) else {
        return Err(wrong(
            ErrorCode::UnsupportedOperation,
            "sessions and g.tx() need a connection of WebSocket",
        ));
    };
    let shows_properties = options.properties.or(asked.options.properties);
    let limits = [options.timeout.or(asked.options.timeout), origin.time_left()];
    Ok(Traversal {
        id,
        gremlin_version: asked.gremlin_version,
        text,
        parameters,
        timeout: limits.into_iter().flatten().min(),
        traversers: asked.traversers,
        shown: if shows_properties == Some(false) { Shown::Reference } else { Shown::All },
        format,
        memory: asked.memory,
    })
}

/// Returns the first format that the client accepts and the service has.
fn accepted(headers: &HeaderMap, default: Format) -> Result<Format, Failure> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*");
    for kind in accept.split(',').map(str::trim) {
        let plain = kind.split(';').next().unwrap_or_default();
        match Format::of_media_type(kind) {
            Some(format) => return Ok(format),
            None if matches!(plain, "*/*" | "application/*" | "") => return Ok(default),
            None => {}
        }
    }
    let message =
        format!("not supported: answers of type {accept:?}; use {}", Format::GraphSon3.media_type());
    Err(Failure::new(ErrorCode::UnsupportedOperation, message))
}
