//! `/status`: whether the service is well, and what it is.

use super::Service;
use axum::Json;
use axum::extract::State;
use serde_json::json;

/// Neptune's fields, and under `tidegraph` our own.
pub async fn get(State(service): State<Service>) -> Json<serde_json::Value> {
    let status = service.database.status();
    Json(json!({
        "status": if status.writable { "healthy" } else { "recovery" },
        "startTime": service.started.to_string(),
        "dbEngineVersion": env!("CARGO_PKG_VERSION"),
        "role": "writer",
        "gremlin": { "version": "tinkerpop-3.7.3" },
        "opencypher": { "version": "Neptune-9.0.20190305-1.0" },
        "labMode": {},
        "features": {},
        "settings": { "clusterQueryTimeoutInMs": service.limits.query_timeout.as_millis().to_string() },
        "tidegraph": status,
    }))
}
