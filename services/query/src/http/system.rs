//! `/system`: the fast reset, which removes all data of the graph in two steps.

use super::body::Fields;
use super::{Failure, Service};
use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Value, json};
use tidegraph_engine::Database;
use tidegraph_types::ErrorCode;

/// `POST /system` with `action`: `initiateDatabaseReset` answers with a token, and `performDatabaseReset` with the
/// token removes all vertices and edges.
///
/// # Errors
///
/// `MissingParameter` without an action or a token; `InvalidParameter` for another action, or a token of nobody;
/// `PreconditionsFailed` for a token that was used or has expired; the errors of a commit.
pub async fn post(State(service): State<Service>, request: Request) -> Result<Json<Value>, Failure> {
    let (fields, _) = Fields::read(&service, request).await?;
    match fields.required("action")?.as_str() {
        "initiateDatabaseReset" => {
            let token = on_thread(&service, Database::begin_reset).await?;
            Ok(Json(json!({ "status": "200 OK", "payload": { "token": token } })))
        }
        "performDatabaseReset" => {
            let token = fields.required("token")?;
            on_thread(&service, move |database| database.reset(&token)).await?;
            Ok(Json(json!({ "status": "200 OK" })))
        }
        other => Err(Failure::new(
            ErrorCode::InvalidParameter,
            format!(
                "parameter \"action\" must be initiateDatabaseReset or performDatabaseReset, not {other:?}"
            ),
        )),
    }
}

/// Runs what may wait for a disk or for other machines.
async fn on_thread<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Database) -> Result<T, tidegraph_engine::Error> + Send + 'static,
) -> Result<T, Failure> {
    let database = service.database.clone();
    let done = tokio::task::spawn_blocking(move || work(&database)).await;
    Ok(done.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??)
}
