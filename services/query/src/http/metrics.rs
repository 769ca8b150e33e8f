//! `GET /metrics`: the metrics of the process in the text format of Prometheus.
//!
//! A process has one recorder, which all its services share.

use super::Service;
use super::errors::Failure;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use tidegraph_platform::{Clock, RealClock, metric};
use tidegraph_types::ErrorCode;

/// Content type of the answer.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the recorder of the process, or `None` if another recorder was installed first.
fn recorder() -> Option<&'static PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let made = RECORDER.get_or_init(|| {
        let builder = PrometheusBuilder::new().set_buckets(&metric::BUCKETS);
        let installed = builder.and_then(PrometheusBuilder::install_recorder);
        if let Err(error) = &installed {
            tracing::warn!(%error, "the recorder of metrics could not be installed: no metrics are collected");
        }
        metric::describe();
        installed.ok()
    });
    made.as_ref()
}

/// Installs the recorder.
pub(super) fn install() {
    recorder();
}

/// Sets the metrics of the health of a graph.
pub(super) fn note_health(service: &Service) {
    let status = service.database.status();
    let (memory, spilled) = (status.memory_bytes, status.spilled_bytes);
    metric::health(&service.graph, status.version, memory, spilled, status.writable);
}

/// `GET /metrics`: renders the metrics.
pub(super) async fn get(State(service): State<Service>) -> Response {
    let Some(recorder) = recorder() else {
        return Failure::new(ErrorCode::NotFound, "this process collects no metrics").into_response();
    };
    let memory = service.admission.memory();
    metric::query_memory(memory.used_bytes(), memory.limit_bytes(), memory.refusals());
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
