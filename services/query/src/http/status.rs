//! `/status`: the health and the version of the service.

use super::Service;
use super::errors::Failure;
use axum::Json;
use axum::extract::State;
use serde_json::json;
use tidegraph_types::ErrorCode;

/// `GET /status`: answers with Neptune's fields, and with Tidegraph's own under `tidegraph`.
pub async fn get(State(service): State<Service>) -> Json<serde_json::Value> {
    let (status, memory) = (service.database.status(), service.admission.memory());
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
        "queryMemory": { "usedBytes": memory.used_bytes(), "limitBytes": memory.limit_bytes() },
    }))
}

/// `GET /fleet/status`: answers with the status of all nodes of the fleet.
///
/// # Errors
///
/// `NotFound` if the service has no fleet; `Internal` if the report cannot be made or read.
pub async fn fleet(State(service): State<Service>) -> Result<Json<serde_json::Value>, Failure> {
    let database = service.database.clone();
    let report = tokio::task::spawn_blocking(move || database.fleet_report()).await;
    let report = report.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
    let Some(report) = report else {
        return Err(Failure::new(ErrorCode::NotFound, "this service is a single process without a fleet"));
    };
    let report = serde_json::from_str(&report);
    report.map(Json).map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}
