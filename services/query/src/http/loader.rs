//! `/loader`: bulk loads, with the requests and answers of Neptune's loader.

use super::body::Fields;
use super::guard::Detail;
use super::{Failure, Service};
use axum::Json;
use axum::extract::{Path, Request, State};
use serde_json::{Value, json};
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadStatus, Mode, Parallelism, RunStatus};
use tidegraph_types::ErrorCode;

type Answer = Result<Json<Value>, Failure>;

/// `POST /loader`: submits a load.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameter` or `UnsupportedOperation` for a wrong request; `AccessDenied` for a source
/// that the service may not read; the failure of the engine if it refuses the load.
pub async fn submit(State(service): State<Service>, request: Request) -> Answer {
    let detail = request.extensions().get::<Detail>().cloned();
    let (fields, _) = Fields::read(&service, request).await?;
    let spec = spec(&fields)?;
    if let Some(detail) = detail {
        detail.set(spec.sources.join(" "));
    }
    let (database, allowed) = (service.database.clone(), service.load_from.clone());
    let id = blocking(move || database.loads().submit_within(spec, &allowed)).await?;
    Ok(Json(json!({ "status": "200 OK", "payload": { "loadId": id } })))
}

/// `GET /loader`: lists the loads, or with `loadId` describes one.
///
/// # Errors
///
/// `InvalidParameter` for a wrong request; `BulkLoadIdNotFound` if there is no such load.
pub async fn list_or_status(State(service): State<Service>, request: Request) -> Answer {
    let (fields, _) = Fields::read(&service, request).await?;
    if let Some(id) = fields.text("loadId")? {
        return describe(&service, id, &fields).await;
    }
    let limit = fields.number("limit")?.unwrap_or(100);
    if !(1..=100).contains(&limit) {
        let message = format!("parameter \"limit\" must be between 1 and 100, not {limit}");
        return Err(Failure::new(ErrorCode::InvalidParameter, message));
    }
    let queued = fields.flag("includeQueuedLoads")?.unwrap_or(true);
    let database = service.database.clone();
    let ids = blocking(move || Ok(database.loads().list(limit as usize, queued))).await?;
    Ok(Json(json!({ "status": "200 OK", "payload": { "loadIds": ids } })))
}

/// `GET /loader/{id}`: describes a load.
///
/// # Errors
///
/// The same as [`list_or_status`].
pub async fn status(State(service): State<Service>, Path(id): Path<String>, request: Request) -> Answer {
    let (fields, _) = Fields::read(&service, request).await?;
    describe(&service, id, &fields).await
}

/// `DELETE /loader/{id}`: cancels a load.
///
/// # Errors
///
/// The failure of the engine, such as `BulkLoadIdNotFound`.
pub async fn cancel(State(service): State<Service>, Path(id): Path<String>) -> Answer {
    let database = service.database.clone();
    blocking(move || database.loads().cancel(&id)).await?;
    Ok(Json(json!({ "status": "200 OK" })))
}

/// `DELETE /loader?loadId=`: cancels a load.
///
/// # Errors
///
/// `MissingParameter` without `loadId`, or as [`cancel`].
pub async fn cancel_by_query(State(service): State<Service>, request: Request) -> Answer {
    let (fields, _) = Fields::read(&service, request).await?;
    let id = fields.required("loadId")?;
    let database = service.database.clone();
    blocking(move || database.loads().cancel(&id)).await?;
    Ok(Json(json!({ "status": "200 OK" })))
}

/// Runs what waits for the object store or the sequencer, which another worker's load needs, on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, tidegraph_engine::Error> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|e| {
        Failure::new(ErrorCode::Internal, format!("the request ended because of a defect: {e}"))
    })??)
}

fn choice<T: Copy>(fields: &Fields, name: &str, choices: &[(&str, T)], default: T) -> Result<T, Failure> {
    let Some(text) = fields.text(name)? else { return Ok(default) };
    match choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text)) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("parameter {name:?} must be one of {}, not {text:?}", words.join(", "));
            Err(Failure::new(ErrorCode::InvalidParameter, message))
        }
    }
}

fn spec(fields: &Fields) -> Result<LoadSpec, Failure> {
    let sources = match fields.json("source") {
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>().ok_or_else(
                || {
                    Failure::new(
                        ErrorCode::InvalidParameter,
                        "parameter \"source\" must be a text or a list of texts",
                    )
                },
            )?
        }
        _ => vec![fields.required("source")?],
    };
    let format = fields.required("format")?;
    let dialect = match format.to_ascii_lowercase().as_str() {
        name if Dialect::all().any(|dialect| dialect.name() == name) => Dialect::named(name),
        "ntriples" | "nquads" | "rdfxml" | "turtle" | "parquet" => {
            return Err(Failure::new(
                ErrorCode::UnsupportedOperation,
                format!("not supported yet: format {format:?}"),
            ));
        }
        _ => {
            let names: Vec<_> = Dialect::all().map(Dialect::name).collect();
            let message = format!("parameter \"format\" must be one of {}, not {format:?}", names.join(", "));
            return Err(Failure::new(ErrorCode::InvalidParameter, message));
        }
    };
    let dependencies = match fields.json("dependencies") {
        Value::Null => vec![],
        // A form can only send text.
        Value::String(text) => {
            serde_json::from_str(if text.is_empty() { "[]" } else { text }).map_err(|e| {
                Failure::new(
                    ErrorCode::InvalidParameter,
                    format!("parameter \"dependencies\" must be a list of load ids: {e}"),
                )
            })?
        }
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(|i| i.as_str().map(str::to_owned)).collect()
        }
        other => {
            let message = format!("parameter \"dependencies\" must be a list of load ids, not {other}");
            return Err(Failure::new(ErrorCode::InvalidParameter, message));
        }
    };
    let parser = match fields.json("parserConfiguration") {
        Value::String(text) => serde_json::from_str(text).map_err(|e| {
            Failure::new(
                ErrorCode::InvalidParameter,
                format!("parameter \"parserConfiguration\" is not valid JSON: {e}"),
            )
        })?,
        other => other.clone(),
    };
    let allow_empty_strings = match parser.get("allowEmptyStrings") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(v)) => *v,
        Some(Value::String(v)) if v.eq_ignore_ascii_case("true") => true,
        Some(Value::String(v)) if v.eq_ignore_ascii_case("false") => false,
        Some(other) => {
            let message = format!("parameter \"allowEmptyStrings\" must be TRUE or FALSE, not {other}");
            return Err(Failure::new(ErrorCode::InvalidParameter, message));
        }
    };
    let parallelism = [
        ("LOW", Parallelism::Low),
        ("MEDIUM", Parallelism::Medium),
        ("HIGH", Parallelism::High),
        ("OVERSUBSCRIBE", Parallelism::Oversubscribe),
    ];
    let modes = [("RESUME", Mode::Resume), ("NEW", Mode::New), ("AUTO", Mode::Auto)];
    Ok(LoadSpec {
        sources,
        dialect,
        region: fields.text("region")?,
        mode: choice(fields, "mode", &modes, Mode::Auto)?,
        fail_on_error: fields.flag("failOnError")?.unwrap_or(true),
        parallelism: choice(fields, "parallelism", &parallelism, Parallelism::High)?,
        allow_empty_strings,
        update_single_cardinality_properties: fields
            .flag("updateSingleCardinalityProperties")?
            .unwrap_or(false),
        queue_request: fields.flag("queueRequest")?.unwrap_or(false),
        dependencies,
        user_provided_edge_ids: fields.flag("userProvidedEdgeIds")?.unwrap_or(true),
        edge_only_load: fields.flag("edgeOnlyLoad")?.unwrap_or(false),
    })
}

async fn describe(service: &Service, id: String, fields: &Fields) -> Answer {
    let (database, asked) = (service.database.clone(), id.clone());
    let status = blocking(move || database.loads().status(&asked)).await?;
    let details = fields.flag("details")?.unwrap_or(false);
    let errors = fields.flag("errors")?.unwrap_or(false);
    let page = fields.number("page")?.unwrap_or(1).max(1) as usize;
    let per_page = fields.number("errorsPerPage")?.unwrap_or(10).clamp(1, 10_000) as usize;
    let mut payload = json!({
        "feedCount": status.feed_count.iter().map(|(state, n)| json!({ *state: n })).collect::<Vec<_>>(),
        "overallStatus": overall(&status),
    });
    if details {
        payload["overallStatus"]["tidegraph"]["skipped"] = json!(status.skipped);
        payload["failedFeeds"] = status.failed_feeds.iter().map(run).collect();
    }
    if errors {
        let start = (page - 1).saturating_mul(per_page).min(status.errors.len());
        let shown = &status.errors[start..(start + per_page).min(status.errors.len())];
        payload["errors"] = json!({
            "startIndex": if shown.is_empty() { 0 } else { start + 1 },
            "endIndex": start + shown.len(),
            "loadId": id,
            "errorLogs": shown,
        });
    }
    Ok(Json(json!({ "status": "200 OK", "payload": payload })))
}

fn overall(status: &LoadStatus) -> Value {
    let mut shown = run(&status.overall);
    shown["tidegraph"] = json!({
        "bytesRead": status.bytes_read,
        "bytesTotal": status.bytes_total,
        "propertyValues": status.property_values,
        "version": status.version,
        "skippedFiles": status.skipped.len(),
        "message": status.overall.message,
    });
    shown
}

/// The status of a load or of one of its files.
fn run(run: &RunStatus) -> Value {
    let RunStatus { full_uri, run_number, retry_number, state, seconds_spent, start_unix_s, counts, message } =
        run;
    json!({
        "fullUri": full_uri,
        "runNumber": run_number,
        "retryNumber": retry_number,
        "status": state.as_str(),
        "totalTimeSpent": seconds_spent,
        "startTime": start_unix_s,
        "totalRecords": counts.total_records,
        "totalDuplicates": counts.total_duplicates,
        "parsingErrors": counts.parsing_errors,
        "datatypeMismatchErrors": counts.datatype_mismatch_errors,
        "insertErrors": counts.insert_errors,
        "tidegraph": { "message": message },
    })
}
