//! Answers as bodies: whole ones with their length, and those whose query goes on in chunks.
//!
//! The status of an answer in chunks is sent before its query has ended. If the query fails then, a client that asked for
//! trailers (`TE: trailers`) finds Neptune's: `X-Neptune-Status` and `X-Neptune-Detail`. For any other client the
//! connection ends in the middle of the body, which its library reports. What was sent until then is never a whole
//! document.
//!
//! Source: <https://docs.aws.amazon.com/neptune/latest/userguide/access-graph-gremlin-rest-trailing-headers.html>

use super::Failure;
use super::queries;
use crate::admission::{Parts, Written};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, StreamExt, unfold};
use http_body::Frame;
use http_body_util::StreamBody;

/// Name of the trailer with the status: the number and the name of the error, or `200 OK`.
pub(super) const STATUS: HeaderName = HeaderName::from_static("x-neptune-status");
/// Name of the trailer with the body of the error, URL-encoded; empty if there is none.
pub(super) const DETAIL: HeaderName = HeaderName::from_static("x-neptune-detail");

/// How an answer is sent.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    /// The id of the query.
    id: String,
    has_trailers: bool,
}

impl Sending {
    pub(super) fn of(id: &str, headers: &HeaderMap) -> Self {
        let words = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
        let mut words = words.flat_map(|value| value.split(','));
        let has_trailers = words.any(|word| word.trim().eq_ignore_ascii_case("trailers"));
        Self { id: id.to_owned(), has_trailers }
    }

    /// Returns the answer of a query.
    pub(super) fn response(self, content_type: &'static str, written: Written) -> Response {
        let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
        let first = written.first.bytes;
        let Some(more) = written.more else {
            return (StatusCode::OK, content_type, first).into_response();
        };
        let has_trailers = self.has_trailers;
        let body = Body::new(StreamBody::new(self.frames(first, more)));
        let mut response = (StatusCode::OK, content_type, body).into_response();
        if has_trailers {
            let names = HeaderValue::from_static("X-Neptune-Status, X-Neptune-Detail");
            response.headers_mut().insert(header::TRAILER, names);
        }
        response
    }

    fn frames(self, first: Bytes, more: Parts) -> impl Stream<Item = Result<Frame<Bytes>, Failure>> {
        let frames = unfold(State::Begun(first, more), move |state| {
            let sending = self.clone();
            async move {
                let mut more = match state {
                    State::Begun(first, more) => return Some((Ok(Frame::data(first)), State::Goes(more))),
                    State::Goes(more) => more,
                    State::Over => return None,
                };
                match more.next().await {
                    Some(Ok(part)) => Some((Ok(Frame::data(part.bytes)), State::Goes(more))),
                    Some(Err(error)) => {
                        let failure = queries::failure(error, &sending.id).of_request(&sending.id);
                        failure.log();
                        let frame = if sending.has_trailers {
                            Ok(Frame::trailers(failure.trailers()))
                        } else {
                            Err(failure)
                        };
                        Some((frame, State::Over))
                    }
                    None if sending.has_trailers => Some((Ok(Frame::trailers(success())), State::Over)),
                    None => None,
                }
            }
        });
        // A layer may ask once more after the end.
        frames.fuse()
    }
}

enum State {
    Begun(Bytes, Parts),
    Goes(Parts),
    Over,
}

fn success() -> HeaderMap {
    HeaderMap::from_iter([
        (STATUS, HeaderValue::from_static("200 OK")),
        (DETAIL, HeaderValue::from_static("")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_sent_to_clients_that_ask_for_them() {
        let of = |te: &'static str| {
            let headers = HeaderMap::from_iter([(header::TE, HeaderValue::from_static(te))]);
            Sending::of("id", &headers).has_trailers
        };
        assert!(of("trailers") && of("deflate;q=0.5, Trailers"));
        assert!(!of("deflate") && !Sending::of("id", &HeaderMap::new()).has_trailers);
    }
}
