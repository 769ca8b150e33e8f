//! Queries that run: a slot for each, a flag to cancel it, and the list that clients can ask for.

use super::body::Fields;
use super::{Failure, Limits, Service};
use axum::Json;
use axum::extract::{Path, Request, State};
use serde_json::json;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegraph_engine::{Answer, Language, Parameters, Query};
use tidegraph_types::ErrorCode;
use tokio::sync::Semaphore;

/// The running and waiting queries.
pub struct Running {
    slots: Semaphore,
    waiting: AtomicUsize,
    most_waiting: usize,
    entries: Mutex<HashMap<String, Entry>>,
    accepted: std::sync::atomic::AtomicU64,
}

struct Entry {
    language: Language,
    text: String,
    cancel: Arc<AtomicBool>,
    started: jiff::Timestamp,
}

impl Running {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            slots: Semaphore::new(limits.concurrent_queries),
            waiting: AtomicUsize::new(0),
            most_waiting: limits.queued_queries,
            entries: Mutex::default(),
            accepted: std::sync::atomic::AtomicU64::new(0),
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a query off the list, and cancels it if it still runs: its handler was dropped, so its client is gone.
struct Listed<'a> {
    running: &'a Running,
    id: &'a str,
    cancel: Arc<AtomicBool>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.running.entries().remove(self.id);
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a handler asks for.
pub struct Asked {
    /// Names the request in answers and in the list.
    pub id: String,
    /// Which language.
    pub language: Language,
    /// The text.
    pub text: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// Shorter than the service's limit, if given.
    pub timeout: Option<Duration>,
}

/// Runs a query on a thread of its own and turns its answer into bytes there.
pub async fn run(
    service: &Service,
    asked: Asked,
    write: impl FnOnce(&Answer) -> Result<Vec<u8>, serde_json::Error> + Send + 'static,
) -> Result<Vec<u8>, Failure> {
    let running = &service.running;
    let cancel = Arc::new(AtomicBool::new(false));
    let entry = Entry {
        language: asked.language,
        text: asked.text.clone(),
        cancel: cancel.clone(),
        started: service.database.now(),
    };
    match running.entries().entry(asked.id.clone()) {
        std::collections::hash_map::Entry::Occupied(_) => {
            let message = format!("a query with id {:?} runs already", asked.id);
            return Err(Failure::new(ErrorCode::InvalidParameter, message));
        }
        std::collections::hash_map::Entry::Vacant(place) => {
            place.insert(entry);
        }
    }
    let listed = Listed { running, id: &asked.id, cancel: cancel.clone() };
    let waiting = running.waiting.fetch_add(1, Ordering::Relaxed);
    let in_line = Waiting(&running.waiting);
    if waiting >= running.most_waiting {
        let message = format!("{waiting} queries wait already");
        return Err(Failure::new(ErrorCode::TooManyRequests, message).of_request(&asked.id));
    }
    // The time in line does not count against the query's limit: it starts when the query does.
    let slot = running.slots.acquire().await;
    drop(in_line);
    running.accepted.fetch_add(1, Ordering::Relaxed);
    let database = service.database.clone();
    let timeout = asked.timeout.map_or(service.limits.query_timeout, |t| t.min(service.limits.query_timeout));
    let (language, text, parameters) = (asked.language, asked.text.clone(), asked.parameters);
    let task = tokio::task::spawn_blocking(move || {
        let query = Query {
            language,
            text: &text,
            parameters: &parameters,
            timeout: Some(timeout),
            cancel: Some(&cancel),
        };
        let answer = database.query(&query)?;
        write(&answer)
            .map_err(|e| Failure::new(ErrorCode::Internal, format!("the answer could not be written: {e}")))
    });
    let result = task.await.unwrap_or_else(|e| {
        Err(Failure::new(ErrorCode::Internal, format!("the query ended by a defect: {e}")))
    });
    drop(slot);
    drop(listed);
    result.map_err(|failure| failure.of_request(&asked.id))
}

/// `GET /{language}/status`: the list, or with `cancelQuery` and `queryId` the end of one.
pub async fn status(
    State(service): State<Service>,
    request: Request,
) -> Result<Json<serde_json::Value>, Failure> {
    let language =
        if request.uri().path().starts_with("/gremlin") { Language::Gremlin } else { Language::OpenCypher };
    let (fields, _) = Fields::read(&service, request).await?;
    if fields.is_set("cancelQuery")? {
        let id = fields.required("queryId")?;
        return cancel_one(&service, &id, fields.is_set("silent")?);
    }
    let entries = service.running.entries();
    let now = service.database.now();
    let queries: Vec<_> =
        entries.iter().filter(|(_, e)| e.language == language).map(|(id, e)| describe(id, e, now)).collect();
    Ok(Json(json!({
        "acceptedQueryCount": service.running.accepted.load(Ordering::Relaxed),
        "runningQueryCount": queries.len(),
        "queries": queries,
    })))
}

/// `GET /{language}/status/{id}`.
pub async fn one(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Json<serde_json::Value>, Failure> {
    match service.running.entries().get(&id) {
        Some(entry) => Ok(Json(describe(&id, entry, service.database.now()))),
        None => Err(unknown(&id)),
    }
}

/// `DELETE /{language}/status/{id}`.
pub async fn cancel(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Json<serde_json::Value>, Failure> {
    cancel_one(&service, &id, false)
}

fn unknown(id: &str) -> Failure {
    Failure::new(ErrorCode::InvalidParameter, format!("no query with id {id:?} runs"))
}

fn cancel_one(service: &Service, id: &str, silent: bool) -> Result<Json<serde_json::Value>, Failure> {
    match service.running.entries().get(id) {
        Some(entry) => entry.cancel.store(true, Ordering::Relaxed),
        None if silent => {}
        None => return Err(unknown(id)),
    }
    Ok(Json(json!({ "status": "200 OK", "payload": true })))
}

fn describe(id: &str, entry: &Entry, now: jiff::Timestamp) -> serde_json::Value {
    json!({
        "queryId": id,
        "queryString": entry.text,
        "queryEvalStats": {
            "waited": 0,
            "elapsed": now.as_millisecond() - entry.started.as_millisecond(),
            "cancelled": entry.cancel.load(Ordering::Relaxed),
        },
    })
}
