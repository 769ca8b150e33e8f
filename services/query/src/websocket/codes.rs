//! The numbers of outcomes that drivers know.
//!
//! Source: <https://tinkerpop.apache.org/docs/3.7.5/dev/provider/#_graph_driver_provider_requirements>. The text of a
//! failure is Neptune's: JSON with its name, because programs written for Neptune look for the name.

use crate::admission;
use crate::authentication::Refusal;
use serde::Serialize;
use tidegraph_gremlin_io::{Format, Response};
use tidegraph_types::{ErrorCode, Kind, Value};

pub(super) const SUCCESS: u16 = 200;
pub(super) const NO_CONTENT: u16 = 204;
pub(super) const PARTIAL: u16 = 206;
pub(super) const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
pub(super) const AUTHENTICATE: u16 = 407;
pub(super) const MALFORMED: u16 = 498;
pub(super) const INVALID_ARGUMENTS: u16 = 499;
const SERVER: u16 = 500;
const TEMPORARY: u16 = 596;
const EVALUATION: u16 = 597;
const TIMEOUT: u16 = 598;

/// A failure of a request.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(super) number: u16,
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Failure {
    /// A message that the protocol does not allow.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self { number: MALFORMED, code: ErrorCode::BadRequest, message: message.into() }
    }

    /// An argument of a request that does not fit.
    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self { number: INVALID_ARGUMENTS, code: ErrorCode::InvalidParameter, message: message.into() }
    }

    /// A client that did not prove itself.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self { number: UNAUTHORIZED, code: ErrorCode::AccessDenied, message: message.into() }
    }

    /// A client that did not prove who it is. Whatever the reason, the number is the one that drivers know.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        Self { number: UNAUTHORIZED, code: refusal.code(), message: refusal.to_string() }
    }

    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { number: number(code), code, message: message.into() }
    }

    /// Returns the message that says so.
    pub(super) fn message(&self, id: &str, format: Format) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            request_id: &'a str,
            code: &'a str,
            detailed_message: &'a str,
        }
        let body = Body { request_id: id, code: self.code.as_str(), detailed_message: &self.message };
        let message = serde_json::to_string(&body).unwrap_or_default();
        let names = [("exceptions", Value::list(vec![self.code.as_str().into()]))];
        let response = Response { id, code: self.number, message: &message, attributes: &names };
        written(&response, format)
    }
}

/// Returns a message without rows as bytes.
pub(super) fn written(response: &Response<'_>, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Only a text of 2 GiB does not fit into the format.
    if let Err(error) = response.write(format, &mut bytes) {
        tracing::error!(%error, "a message could not be written");
    }
    bytes
}

impl From<&admission::Error> for Failure {
    fn from(error: &admission::Error) -> Self {
        let code = error.code();
        if matches!(code.kind(), Kind::Internal | Kind::Corrupt) {
            tracing::error!(%code, %error, "request failed");
        }
        Self::new(code, error.to_string())
    }
}

fn number(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::TimeLimitExceeded => TIMEOUT,
        ErrorCode::AccessDenied => FORBIDDEN,
        ErrorCode::Unauthorized => UNAUTHORIZED,
        ErrorCode::MissingParameter | ErrorCode::InvalidParameter => INVALID_ARGUMENTS,
        ErrorCode::ConcurrentModification
        | ErrorCode::Unavailable
        | ErrorCode::TooManyRequests
        | ErrorCode::MemoryLimitExceeded => TEMPORARY,
        code if matches!(code.kind(), Kind::Internal | Kind::Corrupt | Kind::Unknown) => SERVER,
        _ => EVALUATION,
    }
}
