//! `/propertygraph/statistics` and the summary of the graph, in the shapes of Neptune and of Neptune Analytics.
//!
//! The statistics are those of the planner. Every write keeps them current, so there is nothing to compute: they cannot be
//! turned off or deleted, and a refresh has no effect.

use super::body::Fields;
use super::{Failure, Service};
use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tidegraph_engine::Summary;
use tidegraph_types::{ErrorCode, Str};

/// `GET /propertygraph/statistics`: answers that there are statistics, and how large they are.
///
/// # Errors
///
/// `Internal` if the statistics cannot be read.
pub async fn get(State(service): State<Service>) -> Result<Json<Value>, Failure> {
    let summary = summary(&service).await?;
    let predicates: BTreeSet<&Str> = [&summary.vertex_keys, &summary.edge_keys, &summary.edge_labels]
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect();
    Ok(Json(json!({
        "status": "200 OK",
        "payload": {
            "autoCompute": true,
            "active": true,
            "statisticsId": id(&service),
            "date": service.database.now().to_string(),
            "note": "every write keeps the statistics current",
            "signatureInfo": {
                "signatureCount": summary.vertex_structures.len(),
                "instanceCount": summary.vertices,
                "predicateCount": predicates.len(),
            },
        },
    })))
}

/// `POST /propertygraph/statistics` with `mode`: `refresh` and `enableAutoCompute` succeed.
///
/// # Errors
///
/// `MissingParameter` or `InvalidParameter` for a wrong mode; `UnsupportedOperation` for `disableAutoCompute`.
pub async fn manage(State(service): State<Service>, request: Request) -> Result<Json<Value>, Failure> {
    let (fields, _) = Fields::read(&service, request).await?;
    match fields.required("mode")?.as_str() {
        "refresh" => Ok(Json(json!({ "status": "200 OK", "payload": { "statisticsId": id(&service) } }))),
        "enableAutoCompute" => Ok(Json(json!({ "status": "200 OK" }))),
        "disableAutoCompute" => Err(always_on("turned off")),
        other => Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!(
                "parameter \"mode\" must be refresh, enableAutoCompute or disableAutoCompute, not {other:?}"
            ),
        )),
    }
}

/// `DELETE /propertygraph/statistics`: refused.
pub async fn delete() -> Failure {
    always_on("deleted")
}

/// `GET /propertygraph/statistics/summary` with `mode`: answers what the graph has, as Neptune does.
///
/// # Errors
///
/// `InvalidParameter` for a wrong mode; `Internal` if the statistics cannot be read.
pub async fn summarize(State(service): State<Service>, request: Request) -> Result<Json<Value>, Failure> {
    Ok(Json(json!({ "status": "200 OK", "payload": described(&service, request).await? })))
}

/// `GET /summary` with `mode`: answers what the graph has, as Neptune Analytics does.
///
/// # Errors
///
/// As [`summarize`].
pub async fn summarize_bare(
    State(service): State<Service>,
    request: Request,
) -> Result<Json<Value>, Failure> {
    Ok(Json(described(&service, request).await?))
}

fn always_on(what: &str) -> Failure {
    Failure::new(
        ErrorCode::UnsupportedOperation,
        format!("statistics cannot be {what}: every write keeps them current, and the planner reads them"),
    )
}

/// The id of the current statistics: the version of the graph that they describe.
fn id(service: &Service) -> String {
    service.database.status().version.to_string()
}

async fn summary(service: &Service) -> Result<Summary, Failure> {
    let database = service.database.clone();
    let summary = tokio::task::spawn_blocking(move || database.summary()).await;
    summary.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}

async fn described(service: &Service, request: Request) -> Result<Value, Failure> {
    let (fields, _) = Fields::read(service, request).await?;
    let detailed = match fields.text("mode")?.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("basic") => false,
        Some("detailed") => true,
        Some(other) => {
            let message = format!("parameter \"mode\" must be basic or detailed, not {other:?}");
            return Err(Failure::new(ErrorCode::InvalidParameter, message));
        }
    };
    Ok(json!({
        "version": "v1",
        "lastStatisticsComputationTime": service.database.now().to_string(),
        "graphSummary": in_neptunes_words(&summary(service).await?, detailed),
    }))
}

fn in_neptunes_words(summary: &Summary, detailed: bool) -> Map<String, Value> {
    let names = |counts: &[(Str, u64)]| counts.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    let each = |counts: &[(Str, u64)]| -> Vec<Value> {
        counts
            .iter()
            .map(|(name, count)| Value::Object(Map::from_iter([(name.to_string(), json!(count))])))
            .collect()
    };
    let total = |counts: &[(Str, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    let fields = json!({
        "numNodes": summary.vertices,
        "numEdges": summary.edges,
        "numNodeLabels": summary.vertex_labels.len(),
        "numEdgeLabels": summary.edge_labels.len(),
        "nodeLabels": names(&summary.vertex_labels),
        "edgeLabels": names(&summary.edge_labels),
        "numNodeProperties": summary.vertex_keys.len(),
        "numEdgeProperties": summary.edge_keys.len(),
        "nodeProperties": each(&summary.vertex_keys),
        "edgeProperties": each(&summary.edge_keys),
        "totalNodePropertyValues": total(&summary.vertex_keys),
        "totalEdgePropertyValues": total(&summary.edge_keys),
    });
    let Value::Object(mut fields) = fields else { return Map::new() };
    if detailed {
        let nodes = summary.vertex_structures.iter().map(|one| {
            json!({ "count": one.vertices, "nodeProperties": texts(&one.keys), "distinctOutgoingEdgeLabels": texts(&one.outgoing) })
        });
        fields.insert("nodeStructures".to_owned(), nodes.collect());
        let edges = summary
            .edge_structures
            .iter()
            .map(|one| json!({ "count": one.edges, "edgeProperties": texts(&one.keys) }));
        fields.insert("edgeStructures".to_owned(), edges.collect());
    }
    fields
}

fn texts(names: &[Str]) -> Vec<String> {
    names.iter().map(Str::to_string).collect()
}
