//! Paths of Neptune's APIs that Tidegraph has nothing for. They are refused with the reason, so that a client sees that
//! it called the right service. And the answer to any path of a graph that is not open yet.

use super::{Failure, graphs};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tidegraph_types::ErrorCode;

/// Beginnings of paths, and why they are refused.
const ABSENT: [(&str, &str); 9] = [
    ("/sparql", "Tidegraph has no RDF"),
    ("/rdf", "Tidegraph has no RDF"),
    ("/ml", "Tidegraph has no machine learning"),
    ("/storage", "Tidegraph keeps its indexes current; SHOW INDEXES lists them"),
    ("/graphs", "graphs are made and dropped by their operator"),
    ("/snapshots", "checkpoints are made by the service itself"),
    ("/importtasks", "data are loaded with POST /loader"),
    ("/exporttasks", "data are read with queries"),
    ("/tags", "Tidegraph has no tags"),
];

/// Returns why a path of Neptune is refused; `None` for any other path.
fn reason(path: &str) -> Option<&'static str> {
    let is_below =
        |start: &str| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    ABSENT.iter().find(|(start, _)| is_below(start)).map(|(_, reason)| *reason)
}

fn refused(path: &str) -> Option<Failure> {
    let message = format!("{path} is not supported: {}", reason(path)?);
    Some(Failure::new(ErrorCode::UnsupportedOperation, message))
}

/// Returns the answer to a request before its graph is open: it is to be sent again later.
pub(super) fn not_open() -> Response {
    let message = "the graph is not there yet, or cannot be reached: try again";
    let mut answer = Failure::new(ErrorCode::Unavailable, message).into_response();
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

pub(super) async fn unknown_path(request: Request) -> Failure {
    let path = request.uri().path();
    let other = || Failure::new(ErrorCode::NotFound, format!("there is no path {path}"));
    refused(path).or_else(|| graphs::unknown(path)).unwrap_or_else(other)
}

pub(super) async fn wrong_method(request: Request) -> Failure {
    let path = request.uri().path();
    refused(path).unwrap_or_else(|| {
        let message = format!("{path} does not support the method {}", request.method());
        Failure::new(ErrorCode::MethodNotAllowed, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_parts_of_a_path_count() {
        assert_eq!(reason("/ml/endpoints/x"), Some("Tidegraph has no machine learning"));
        assert_eq!(reason("/sparql"), Some("Tidegraph has no RDF"));
        assert_eq!(reason("/mlx"), None);
        assert_eq!(reason("/"), None);
    }
}
