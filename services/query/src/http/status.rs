//! `/status`: whether the service is well, and what it is.

use super::Service;
use super::errors::Failure;
use axum::Json;
use axum::extract::State;
use serde_json::json;
use tidegraph_types::ErrorCode;

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
        "settings": { "clusterQueryTimeoutInMs": service.admission.limits().query_timeout.as_millis().to_string() },
        "tidegraph": status,
    }))
}

/// `/fleet/status`: what the nodes of the fleet say of themselves.
pub async fn fleet(State(service): State<Service>) -> Result<Json<serde_json::Value>, Failure> {
    let database = service.database.clone();
    let report = tokio::task::spawn_blocking(move || database.fleet_report()).await;
    let report = report.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
    let Some(report) = report else {
        return Err(Failure::new(ErrorCode::NotFound, "this service is one process: it has no fleet"));
    };
    let report = serde_json::from_str(&report);
    report.map(Json).map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}
