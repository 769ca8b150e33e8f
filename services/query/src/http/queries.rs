//! Queries that run: a brief try where they arrive, or else a slot, a flag to cancel and a place in the list.
//!
//! Most requests are over in some microseconds, which is less than handing them to another thread costs. So each is
//! tried on the thread that read it, within [`BRIEF`]; the engine gives up a try that is not brief, a write, or a text
//! that it has not planned yet. Such a query gets a slot, stands in the list that clients can ask for, and runs on a
//! thread of the blocking pool.
//!
//! What must never happen: a try that holds up the other connections of its thread for longer than `BRIEF` allows.

use super::body::Fields;
use super::{Failure, Limits, Service};
use axum::Json;
use axum::extract::{Path, Request, State};
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegraph_engine::{Answer, Brief, Brought, Language, Parameters, Principal, Query};
use tidegraph_types::{CommitRequest, ErrorCode, Version};
use tokio::sync::Semaphore;

/// The running and waiting queries.
pub struct Running {
    slots: Arc<Semaphore>,
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
            slots: Arc::new(Semaphore::new(limits.concurrent_queries)),
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

/// Takes a query off the list. Goes with the query to its thread: what is on the list waits or runs.
struct Listed {
    running: Arc<Running>,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.running.entries().remove(&self.id);
    }
}

/// Cancels a query that still runs when its handler is dropped, for then its client is gone.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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
    /// A version that the client knows of.
    pub at_least: Option<Version>,
}

impl Asked {
    fn query<'a>(&'a self, service: &Service, cancel: Option<&'a Arc<AtomicBool>>) -> Query<'a> {
        let longest = service.limits.query_timeout;
        Query {
            language: self.language,
            text: &self.text,
            parameters: &self.parameters,
            timeout: Some(self.timeout.map_or(longest, |asked| asked.min(longest))),
            cancel,
            at_least: self.at_least,
            principal: &Principal::Anonymous,
        }
    }
}

/// How long whoever passes a request on to the router can wait for its answer: a shell notes it with the request.
#[derive(Clone, Copy, Debug)]
pub struct TimeLeft(pub Duration);

/// What is noted with a request.
pub fn left(request: &Request) -> Option<Duration> {
    request.extensions().get::<TimeLeft>().map(|left| left.0)
}

/// The shorter of two limits of which either may be missing.
pub fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// The bytes of an answer, and the version that it is of.
pub struct Written {
    /// The body.
    pub body: Vec<u8>,
    /// What was read, or made.
    pub version: Version,
}

/// What a query may use on a thread that serves others too.
pub const BRIEF: Brief = Brief { time: Duration::from_micros(500), memory_bytes: 256 << 10, rows: 1_024 };

/// Answers up to this size are written on a thread that serves sockets; writing that much takes about as long as
/// [`BRIEF`] allows.
const BRIEF_ANSWER_BYTES: usize = 512 << 10;

/// Where an answer is written to: bytes, up to a limit.
pub struct Output {
    bytes: Vec<u8>,
    most: usize,
}

impl Output {
    fn up_to(most: usize) -> Self {
        Self { bytes: Vec::with_capacity(1_024), most }
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.most - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a query and writes its answer. `write` is called again from the start where its output was too small.
pub async fn run(
    service: &Service,
    asked: Asked,
    write: impl Fn(&Asked, &Answer, &mut Output) -> serde_json::Result<()> + Send + 'static,
) -> Result<Written, Failure> {
    match try_briefly(service, &asked, &write) {
        Tried::Done(result) => result.map_err(|failure| failure.of_request(&asked.id)),
        Tried::Commits(request, body) => {
            let committed = committed(service, request).await;
            // What it lost against is to be seen by the next try.
            let lost = |failure: &Failure| failure.code() == ErrorCode::ConcurrentModification;
            if committed.as_ref().is_err_and(lost) {
                return run_in_line(service, asked, write).await;
            }
            service.running.accepted.fetch_add(1, Ordering::Relaxed);
            let version = committed.map_err(|failure| failure.of_request(&asked.id))?;
            Ok(Written { body, version })
        }
        Tried::Answered(answer) => {
            let id = asked.id.clone();
            on_a_thread_of_its_own(move || written(&asked, &answer, write))
                .await
                .map_err(|failure| failure.of_request(&id))
        }
        Tried::NotBrief => run_in_line(service, asked, write).await,
    }
}

/// What came of a brief try.
enum Tried {
    /// The end.
    Done(Result<Written, Failure>),
    /// A write, and what is answered when it is committed.
    Commits(CommitRequest, Vec<u8>),
    /// An answer that is too large to be written here.
    Answered(Answer),
    /// Nothing; it is to be run in line.
    NotBrief,
}

fn try_briefly(
    service: &Service,
    asked: &Asked,
    write: impl Fn(&Asked, &Answer, &mut Output) -> serde_json::Result<()>,
) -> Tried {
    // The id of another query that runs is refused in line.
    if service.running.entries().contains_key(&asked.id) {
        return Tried::NotBrief;
    }
    let attempt = || match service.database.query_briefly(&asked.query(service, None), BRIEF) {
        None => Tried::NotBrief,
        Some(Err(error)) => Tried::Done(Err(error.into())),
        Some(Ok(Brought { answer, commit })) => {
            let mut output = Output::up_to(BRIEF_ANSWER_BYTES);
            match (write(asked, &answer, &mut output), commit) {
                (Ok(()), None) => Tried::Done(Ok(Written { body: output.bytes, version: answer.version })),
                (Ok(()), Some(request)) => Tried::Commits(request, output.bytes),
                (Err(_), None) => Tried::Answered(answer),
                (Err(_), Some(_)) => Tried::NotBrief,
            }
        }
    };
    let tried = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Tried::Done(Err(defect(what)))
    });
    // A write is counted when it is known that it is not run again.
    if matches!(tried, Tried::Done(_) | Tried::Answered(_)) {
        service.running.accepted.fetch_add(1, Ordering::Relaxed);
    }
    tried
}

/// Has a transaction committed, and goes on with others meanwhile. It is committed also when nobody waits any more.
async fn committed(service: &Service, request: CommitRequest) -> Result<Version, Failure> {
    let (ended, end) = tokio::sync::oneshot::channel();
    service.database.commit_later(request, Box::new(move |committed| drop(ended.send(committed))));
    end.await.map_err(defect)?.map_err(Failure::from)
}

fn defect(what: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::Internal, format!("the query ended by a defect: {what}"))
}

fn written(
    asked: &Asked,
    answer: &Answer,
    write: impl Fn(&Asked, &Answer, &mut Output) -> serde_json::Result<()>,
) -> Result<Written, Failure> {
    let mut output = Output::up_to(usize::MAX);
    write(asked, answer, &mut output)
        .map_err(|e| Failure::new(ErrorCode::Internal, format!("the answer could not be written: {e}")))?;
    Ok(Written { body: output.bytes, version: answer.version })
}

async fn on_a_thread_of_its_own(
    work: impl FnOnce() -> Result<Written, Failure> + Send + 'static,
) -> Result<Written, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(defect(e)))
}

/// Puts a query on the list, waits for a slot, and runs it on a thread of its own.
async fn run_in_line(
    service: &Service,
    asked: Asked,
    write: impl Fn(&Asked, &Answer, &mut Output) -> serde_json::Result<()> + Send + 'static,
) -> Result<Written, Failure> {
    let running = &service.running;
    let cancel = Arc::new(AtomicBool::new(false));
    let id = asked.id.clone();
    let entry = Entry {
        language: asked.language,
        text: asked.text.clone(),
        cancel: cancel.clone(),
        started: service.database.now(),
    };
    match running.entries().entry(id.clone()) {
        std::collections::hash_map::Entry::Occupied(_) => {
            let message = format!("a query with id {id:?} runs already");
            return Err(Failure::new(ErrorCode::InvalidParameter, message));
        }
        std::collections::hash_map::Entry::Vacant(place) => {
            place.insert(entry);
        }
    }
    let listed = Listed { running: running.clone(), id: id.clone() };
    let _leaving = CancelOnDrop(cancel.clone());
    let waiting = running.waiting.fetch_add(1, Ordering::Relaxed);
    let in_line = Waiting(&running.waiting);
    if waiting >= running.most_waiting {
        let message = format!("{waiting} queries wait already");
        return Err(Failure::new(ErrorCode::TooManyRequests, message).of_request(&id));
    }
    // The time in line does not count against the query's limit: it starts when the query does.
    let slot = running.slots.clone().acquire_owned().await.map_err(defect)?;
    drop(in_line);
    running.accepted.fetch_add(1, Ordering::Relaxed);
    let whole = service.clone();
    let result = on_a_thread_of_its_own(move || {
        // Held until the thread is done, which may be after the client has gone.
        let _held = (slot, listed);
        let answer = whole.database.query(&asked.query(&whole, Some(&cancel)))?;
        written(&asked, &answer, write)
    })
    .await;
    result.map_err(|failure| failure.of_request(&id))
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
