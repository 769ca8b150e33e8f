//! `GET /metrics`: the metrics of the process in the text format of Prometheus.

use super::Service;
use super::errors::Failure;
use crate::metrics::prometheus;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::OnceLock;
use tidegraph_platform::{Clock, RealClock, metric};
use tidegraph_types::ErrorCode;

/// Content type of the answer.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Installs the recorder.
pub(super) fn install() {
    prometheus();
}

/// Sets the metrics of the health of a graph.
pub(super) fn note_health(service: &Service) {
    let status = service.database.status();
    let (memory, spilled) = (status.memory_bytes, status.spilled_bytes);
    metric::health(&service.graph, status.version, memory, spilled, status.writable);
}

/// `GET /metrics`: renders the metrics.
pub(super) async fn get(State(service): State<Service>) -> Response {
    let Some(recorder) = prometheus() else {
        return Failure::new(ErrorCode::NotFound, "this process collects no metrics").into_response();
    };
    service.admission.note_capacity();
    note_health(&service);
    ([(header::CONTENT_TYPE, TEXT)], recorder.render()).into_response()
}

/// Counts a request under its route. Unknown paths share one name, so that clients cannot create new series.
pub(super) async fn count(State(service): State<Service>, request: Request, next: Next) -> Response {
    static CLOCK: OnceLock<RealClock> = OnceLock::new();
    let clock = CLOCK.get_or_init(RealClock::new);
    let begun = clock.now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let answer = next.run(request).await;
    metric::http_request(&service.graph, route, answer.status().as_u16(), clock.now().saturating_sub(begun));
    answer
}
