//! `/queries` and `/graphs/{id}`: the same queries in the shapes of Neptune Analytics (the SDKs' `neptune-graph`).

use super::body::Fields;
use super::queries::{self, Origin};
use super::{Failure, Service, explain, opencypher};
use crate::admission::RunningQuery;
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use tidegraph_types::ErrorCode;

/// Number of queries that a list has, and at most can have.
const LISTED_QUERIES: u64 = 100;

/// `POST /queries`: runs an openCypher query, as `POST /openCypher` does.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameter` or `UnsupportedOperation` for a wrong request; the failure of the query or of
/// its admission.
pub async fn run(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    let origin = Origin::of(&request);
    let (fields, headers) = Fields::read(&service, request).await?;
    let language = fields.required("language")?;
    if !language.eq_ignore_ascii_case("OPEN_CYPHER") {
        let message = format!("language {language:?} is not supported: use OPEN_CYPHER");
        return Err(Failure::new(ErrorCode::InvalidParameter, message));
    }
    // Every plan is cached, and used while it fits.
    if let Some(cache) = fields.text("planCache")?
        && !matches!(cache.to_ascii_uppercase().as_str(), "ENABLED" | "DISABLED" | "AUTO")
    {
        let message = format!("parameter \"planCache\" must be ENABLED, DISABLED or AUTO, not {cache:?}");
        return Err(Failure::new(ErrorCode::InvalidParameter, message));
    }
    let explain = explain::mode(&fields)?;
    opencypher::run(&service, origin, &fields, &headers, explain).await
}

/// `GET /queries`: lists the running queries, the oldest first.
///
/// # Errors
///
/// `InvalidParameter` for a wrong `maxResults` or `state`.
pub async fn list(State(service): State<Service>, request: Request) -> Result<Json<Value>, Failure> {
    let Origin { principal, .. } = Origin::of(&request);
    let (fields, _) = Fields::read(&service, request).await?;
    let most = fields.number("maxResults")?.unwrap_or(LISTED_QUERIES).min(LISTED_QUERIES) as usize;
    let state = fields.text("state")?.unwrap_or_else(|| "ALL".to_owned()).to_ascii_uppercase();
    if !matches!(state.as_str(), "ALL" | "RUNNING" | "WAITING" | "CANCELLING") {
        let message =
            format!("parameter \"state\" must be ALL, RUNNING, WAITING or CANCELLING, not {state:?}");
        return Err(Failure::new(ErrorCode::InvalidParameter, message));
    }
    let now = service.database.now();
    let mut running = queries::visible(&service, &principal);
    running.retain(|query| state == "ALL" || state == state_of(query));
    running.sort_by_key(|query| query.started);
    let queries: Vec<Value> = running.iter().take(most).map(|query| describe(query, now)).collect();
    Ok(Json(json!({ "queries": queries })))
}

/// `GET /queries/{id}`: describes a running query.
///
/// # Errors
///
/// `NotFound` if the query is not running.
pub async fn one(
    State(service): State<Service>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Value>, Failure> {
    let Origin { principal, .. } = Origin::of(&request);
    let query = queries::find(&service, &id, &principal).ok_or_else(|| unknown(&id))?;
    Ok(Json(describe(&query, service.database.now())))
}

/// `DELETE /queries/{id}`: cancels a running query.
///
/// # Errors
///
/// `NotFound` if the query is not running.
pub async fn cancel(
    State(service): State<Service>,
    Path(id): Path<String>,
    request: Request,
) -> Result<StatusCode, Failure> {
    let Origin { principal, .. } = Origin::of(&request);
    if queries::cancel_visible(&service, &id, &principal) { Ok(StatusCode::OK) } else { Err(unknown(&id)) }
}

/// `GET /graphs/{id}`: answers that the graph is available, whatever its id: a service has one graph.
pub async fn graph(State(service): State<Service>, Path(id): Path<String>) -> Json<Value> {
    Json(json!({
        "id": id,
        "name": id,
        "status": "AVAILABLE",
        "createTime": service.started.as_second(),
        "buildNumber": env!("CARGO_PKG_VERSION"),
        "deletionProtection": false,
        "publicConnectivity": false,
    }))
}

fn unknown(id: &str) -> Failure {
    Failure::new(ErrorCode::NotFound, format!("no query with the id {id:?} is running"))
}

fn state_of(query: &RunningQuery) -> &'static str {
    if query.cancelled { "CANCELLING" } else { "RUNNING" }
}

fn describe(query: &RunningQuery, now: jiff::Timestamp) -> Value {
    json!({
        "id": query.id,
        "queryString": query.text,
        "waited": 0,
        "elapsed": now.as_millisecond() - query.started.as_millisecond(),
        "state": state_of(query),
    })
}
