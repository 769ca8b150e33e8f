//! Failures as answers, with Neptune's error body: `{"requestId", "code", "detailedMessage"}`.

use super::answers::{DETAIL, STATUS};
use super::guard::FailedWith;
use crate::admission;
use crate::websocket::MessageFailure;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::fmt;
use tidegraph_platform::{Random, RealRandom};
use tidegraph_types::{ErrorCode, Kind};

/// The answer to a request that failed or was refused.
#[derive(Debug)]
pub struct Failure {
    code: ErrorCode,
    message: String,
    /// The message with those of all causes, for the log.
    causes: Option<String>,
    request_id: Option<String>,
    /// The methods that the answer names as allowed, for [`ErrorCode::MethodNotAllowed`].
    allow: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    request_id: &'a str,
    code: &'a str,
    detailed_message: &'a str,
    /// The same text as `detailed_message`. Neptune's loader and status paths call it `message`, so clients read either
    /// name.
    message: &'a str,
}

impl Failure {
    /// Returns a failure, which gets a fresh request id unless [`Failure::of_request`] names one.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), causes: None, request_id: None, allow: None }
    }

    /// Sets the id of the request.
    #[must_use]
    pub fn of_request(mut self, id: &str) -> Self {
        self.request_id = Some(id.to_owned());
        self
    }

    /// Sets the header `Allow`.
    #[must_use]
    pub(super) fn allowing(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    /// Returns the error code of the answer.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

impl From<admission::Error> for Failure {
    fn from(error: admission::Error) -> Self {
        use admission::Error;
        let error = match error {
            Error::Query(error) => return error.into(),
            other => other,
        };
        let message = match &error {
            Error::Write(source) => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        Self::new(error.code(), message)
    }
}

impl From<tidegraph_engine::Error> for Failure {
    fn from(error: tidegraph_engine::Error) -> Self {
        let causes = is_logged(error.code()).then(|| error.chain().to_string());
        Self { causes, ..Self::new(error.code(), error.to_string()) }
    }
}

impl From<MessageFailure> for Failure {
    fn from(failure: MessageFailure) -> Self {
        Self::new(failure.code, failure.message)
    }
}

/// Whether a failure is one of the service rather than of the request.
fn is_logged(code: ErrorCode) -> bool {
    matches!(code.kind(), Kind::Internal | Kind::Corrupt)
}

/// Seconds after which a request may be sent again that was refused because of the load.
const RETRY_AFTER_S: &str = "1";

/// What a client should send that has sent no password, or a wrong one.
const CHALLENGE: &str = "Basic realm=\"tidegraph\", charset=\"UTF-8\"";

/// Whether a request was refused only because of others at the same time.
fn waits(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::MemoryLimitExceeded | ErrorCode::TooManyRequests)
}

/// Returns the failure for a body over the limit.
pub(super) fn too_large(limit_bytes: usize) -> Failure {
    Failure::new(
        ErrorCode::RequestTooLarge,
        format!("the request body is larger than the limit of {limit_bytes} bytes"),
    )
}

/// Returns an id for a request that failed before it got one.
fn random_id() -> String {
    let mut bytes = [0; 16];
    RealRandom.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

impl Failure {
    /// Writes a failure of the service to the log.
    pub(super) fn log(&self) {
        if is_logged(self.code) {
            let (id, message) = (self.request_id.as_deref(), self.causes.as_ref().unwrap_or(&self.message));
            tracing::error!(request = id, code = %self.code, %message, "request failed");
        }
    }

    /// Returns the body that tells the client.
    fn body(&self) -> Vec<u8> {
        let id = self.request_id.as_deref().unwrap_or_default();
        let body = Body {
            request_id: id,
            code: self.code.as_str(),
            detailed_message: &self.message,
            message: &self.message,
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// Returns the trailers of an answer whose query failed after its first bytes were sent.
    pub(super) fn trailers(&self) -> HeaderMap {
        let detail: String = form_urlencoded::byte_serialize(&self.body()).collect();
        let status = format!("{} {}", self.code.http_status(), self.code.as_str());
        let value = |text: &str| HeaderValue::from_str(text).ok();
        let trailers = [(STATUS, value(&status)), (DETAIL, value(&detail))];
        trailers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The failure as the error of a body that was begun.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

impl IntoResponse for Failure {
    fn into_response(mut self) -> Response {
        self.request_id.get_or_insert_with(random_id);
        self.log();
        let body = self.body();
        let status =
            StatusCode::from_u16(self.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
        let allow = self.allow.map(|methods| [(header::ALLOW, HeaderValue::from_static(methods))]);
        let retry_after =
            waits(self.code).then_some([(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S))]);
        let mut response = (status, headers, body).into_response();
        response.extensions_mut().insert(FailedWith(self.code));
        if self.code == ErrorCode::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        response.headers_mut().extend(allow.into_iter().chain(retry_after).flatten());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_name_the_error_and_have_its_body() {
        let trailers =
            Failure::new(ErrorCode::TimeLimitExceeded, "too slow: \u{e4}").of_request("q1").trailers();
        assert_eq!(trailers[STATUS], "408 TimeLimitExceededException");
        let detail: Vec<_> = form_urlencoded::parse(trailers[DETAIL].as_bytes()).collect();
        let body: serde_json::Value = serde_json::from_str(&detail[0].0).unwrap();
        assert_eq!((&body["requestId"], &body["code"]), (&"q1".into(), &"TimeLimitExceededException".into()));
        assert_eq!(body["detailedMessage"], "too slow: \u{e4}");
    }
}
