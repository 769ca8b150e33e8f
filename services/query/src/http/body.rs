//! Parameters of a request, from the query string and from the body: a form or a JSON object. The body wins.
//!
//! A body and what it is parsed into count as memory of the queries, before they take it, until the query has ended.

use super::{Failure, Service, errors};
use crate::admission::{self, RequestMemory};
use crate::server::BodyLate;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, Limited};
use serde_json::{Map, Value};
use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use tidegraph_engine::Reservation;
use tidegraph_types::ErrorCode;

/// Most bytes of a body over the limit that are read for the sake of the answer.
const MOST_DISCARDED: usize = 128 << 20;
/// Memory that a value of a JSON document takes besides its text: as JSON and as a parameter.
const VALUE_BYTES: usize = 128;

/// Named parameters of a request.
#[derive(Debug, Default)]
pub struct Fields {
    named: Map<String, Value>,
    memory: RequestMemory,
}

impl Fields {
    /// Reads the parameters and returns them with the headers.
    ///
    /// # Errors
    ///
    /// `RequestTooLarge` if the body is over the limit; `MemoryLimitExceeded` if the queries leave no memory for it;
    /// `TimeLimitExceeded` or `Unavailable` if it is late; `BadRequest` if it cannot be read, has an unknown content type
    /// or does not parse.
    pub async fn read(service: &Service, request: Request) -> Result<(Self, HeaderMap), Failure> {
        let (parts, bytes, memory) = read(service, request).await?;
        Ok((Self::parse(service, &parts, &bytes, memory)?, parts.headers))
    }

    /// Reads the parameters of a request whose body was read before. `memory` is the body's.
    ///
    /// # Errors
    ///
    /// As [`Fields::read`].
    pub(super) fn parse(
        service: &Service,
        parts: &Parts,
        bytes: &[u8],
        mut memory: RequestMemory,
    ) -> Result<Self, Failure> {
        let mut named = Map::new();
        add_form(&mut named, parts.uri.query().unwrap_or_default().as_bytes());
        if !bytes.is_empty() {
            memory.grow_to(parsed_bytes(bytes), &service.admission).map_err(admission::Error::Memory)?;
            add_body(&mut named, &parts.headers, bytes)?;
        }
        Ok(Self { named, memory })
    }

    /// Returns the memory of the body, to be held as long as the query has its parameters; `None` for a small one.
    pub fn memory(&self) -> Option<Arc<Reservation>> {
        self.memory.reserved()
    }

    /// Returns a field as text. Numbers and booleans are converted.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` for lists and objects.
    pub fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.named.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Bool(v)) => Ok(Some(v.to_string())),
            Some(Value::Number(v)) => Ok(Some(v.to_string())),
            Some(other) => Err(invalid(name, "text", other)),
        }
    }

    /// Returns a field that must not be missing or blank.
    ///
    /// # Errors
    ///
    /// `MissingParameter`, or as [`Fields::text`].
    pub fn required(&self, name: &str) -> Result<String, Failure> {
        match self.text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(Failure::new(
                ErrorCode::MissingParameter,
                format!("the request has no parameter {name:?}"),
            )),
        }
    }

    /// Returns a field as a boolean: of JSON, or the words TRUE and FALSE in any case.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` for other values.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(text) => Err(invalid(name, "TRUE or FALSE", &Value::String(text))),
        }
    }

    /// Returns whether a switch is on: by its value, or by its name alone (`?cancelQuery&queryId=…`).
    ///
    /// # Errors
    ///
    /// The same as [`Fields::flag`].
    pub fn is_set(&self, name: &str) -> Result<bool, Failure> {
        match self.json(name) {
            Value::String(text) if text.is_empty() => Ok(true),
            _ => Ok(self.flag(name)?.unwrap_or(false)),
        }
    }

    /// Returns a field as a non-negative integer.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` for other values.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(invalid(name, "a non-negative integer", &Value::String(text))),
            },
        }
    }

    /// Returns a field as JSON, or null if it is missing.
    pub fn json(&self, name: &str) -> &Value {
        self.named.get(name).unwrap_or(&Value::Null)
    }
}

/// Reads the body of a request, and returns it with the memory that it takes.
///
/// # Errors
///
/// As [`Fields::read`], but for what the bytes mean.
pub(super) async fn read(
    service: &Service,
    request: Request,
) -> Result<(Parts, Vec<u8>, RequestMemory), Failure> {
    let (parts, body) = request.into_parts();
    if let Some(encoding) = parts.headers.get(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        let message = format!("content encoding {encoding:?} is not supported: use gzip");
        return Err(Failure::new(ErrorCode::BadRequest, message));
    }
    let body = refuse_large(&parts.headers, body, service.body_bytes).await?;
    let mut memory = RequestMemory::default();
    let bytes = read_all(service, body, &mut memory).await?;
    Ok((parts, bytes, memory))
}

fn invalid(name: &str, expected: &str, found: &Value) -> Failure {
    Failure::new(ErrorCode::InvalidParameter, format!("parameter {name:?} must be {expected}, not {found}"))
}

fn add_form(fields: &mut Map<String, Value>, bytes: &[u8]) {
    for (name, value) in form_urlencoded::parse(bytes) {
        fields.insert(name.into_owned(), Value::String(value.into_owned()));
    }
}

/// Refuses a body whose `Content-Length` is over the limit. `read_all` counts the bytes of all others.
async fn refuse_large(headers: &HeaderMap, body: Body, limit_bytes: usize) -> Result<Body, Failure> {
    let says = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    let too_many = says.map_or(0, |bytes| bytes.saturating_sub(limit_bytes as u64));
    if too_many == 0 {
        return Ok(body);
    }
    // A client that expects `100 Continue` has not sent the body yet, and does not send it.
    if !headers.contains_key(header::EXPECT) && too_many <= MOST_DISCARDED as u64 {
        discard(body).await;
    }
    Err(errors::too_large(limit_bytes))
}

/// Reads a body, within the limit.
///
/// # Errors
///
/// Those of [`Fields::read`] for bodies.
pub(super) async fn read_all(
    service: &Service,
    mut body: Body,
    memory: &mut RequestMemory,
) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let refused = loop {
        match Limited::new(&mut body, service.body_bytes - all.len()).frame().await {
            None => return Ok(all),
            Some(Ok(frame)) => {
                let Ok(bytes) = frame.into_data() else { continue };
                let needed = all.len() + bytes.len();
                if needed > all.capacity() {
                    let capacity = needed.max(2 * all.capacity()).min(service.body_bytes);
                    if let Err(refused) = memory.grow_to(capacity, &service.admission) {
                        break admission::Error::Memory(refused).into();
                    }
                    all.reserve_exact(capacity - all.len());
                }
                all.extend_from_slice(&bytes);
            }
            Some(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                break errors::too_large(service.body_bytes);
            }
            Some(Err(error)) => return Err(unreadable(&*error)),
        }
    };
    drop(all);
    discard(body).await;
    Err(refused)
}

/// Returns an upper bound of the memory of a body and of what it is parsed into: its text three times, and its values.
fn parsed_bytes(body: &[u8]) -> usize {
    let values = body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b'&')).count();
    3 * body.len() + VALUE_BYTES * values
}

/// Reads the rest of a body and drops it, until the body's deadline. Most clients send their whole body before they read:
/// if the connection closed earlier, they would find it broken and not see the answer.
async fn discard(mut body: Body) {
    let mut left = MOST_DISCARDED;
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, bytes::Bytes::len);
        if bytes >= left {
            return;
        }
        left -= bytes;
    }
}

fn unreadable(error: &(dyn Error + 'static)) -> Failure {
    let late = successors(Some(error), |error| (**error).source())
        .find_map(|error| error.downcast_ref::<BodyLate>());
    match late {
        Some(late @ BodyLate::Deadline(_)) => Failure::new(ErrorCode::TimeLimitExceeded, late.to_string()),
        Some(late @ BodyLate::Stopping) => Failure::new(ErrorCode::Unavailable, late.to_string()),
        None => Failure::new(ErrorCode::BadRequest, format!("the request body could not be read: {error}")),
    }
}

fn add_body(fields: &mut Map<String, Value>, headers: &HeaderMap, bytes: &[u8]) -> Result<(), Failure> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let looks_like_json = bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
    let is_form = matches!(kind.as_str(), "" | "application/x-www-form-urlencoded");
    // `curl -d` sends JSON with the content type of forms, and some clients send no content type. JSON of another type,
    // such as text/plain, is refused: a form of any web page can send it.
    if kind.ends_with("json") || (is_form && looks_like_json) {
        return match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(object)) => {
                fields.extend(object);
                Ok(())
            }
            Ok(_) => Err(Failure::new(ErrorCode::BadRequest, "the request body must be a JSON object")),
            Err(error) => Err(Failure::new(
                ErrorCode::BadRequest,
                format!("the request body is not valid JSON: {error}"),
            )),
        };
    }
    if is_form {
        add_form(fields, bytes);
        return Ok(());
    }
    let message = format!(
        "content type {content_type:?} is not supported: use application/json or application/x-www-form-urlencoded"
    );
    Err(Failure::new(ErrorCode::BadRequest, message))
}
