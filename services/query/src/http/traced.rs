//! The span of a request, below the one that its caller names in `traceparent` or `x-amzn-trace-id`.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use tidegraph_platform::traces;
use tracing::field::Empty;
use tracing::instrument::Instrument;

/// Answers a request inside its span, if this process records traces.
///
/// The name of the span is the method and the route: a text of a query, or a value, is not in it.
pub(super) async fn follow(request: Request, next: Next) -> Response {
    if !traces::is_on() {
        return next.run(request).await;
    }
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
    let span = tracing::debug_span!(
        parent: None,
        "http",
        otel.name = format!("{} {route}", request.method()),
        otel.kind = "server",
        http.request.method = %request.method(),
        http.route = route,
        http.response.status_code = Empty,
        otel.status_code = Empty,
    );
    let headers = request.headers();
    traces::adopt(&span, |name| headers.get(name)?.to_str().ok().map(str::to_owned));
    let answer = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", i64::from(answer.status().as_u16()));
    if answer.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    answer
}
