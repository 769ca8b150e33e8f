//! Queries over HTTP: the origin of a request, and the routes of running queries.
//!
//! A *shell* runs the router: the HTTP server or the Lambda function. It adds what it knows, such as the caller, to the
//! extensions of a request.

use super::body::Fields;
use super::{Failure, Service};
use crate::admission::{self, RunningQuery, Writer, Written};
use crate::audit::Source;
use axum::Json;
use axum::extract::{Path, Request, State};
use serde_json::json;
use std::time::Duration;
use tidegraph_engine::{Language, Principal};
use tidegraph_types::ErrorCode;

/// The time that a shell can wait for the answer. The shell adds it to the extensions of the request.
#[derive(Clone, Copy, Debug)]
pub struct TimeLeft(pub Duration);

/// A mark of requests whose shell cannot send an answer in parts. It adds it to the extensions of the request.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

/// The facts about a request besides its parameters: its method, and the extensions that a shell added.
pub struct Origin {
    left: Option<Duration>,
    /// Whether the answer must be whole before it is sent.
    pub whole: bool,
    /// Whether a query of this request may only read: GET never writes.
    pub read_only: bool,
    /// Who asks. Without a [`Principal`] in the extensions: anonymous.
    pub principal: Principal,
    /// Where the request came from.
    pub source: Source,
}

impl Origin {
    /// Reads the method and the extensions.
    pub fn of(request: &Request) -> Self {
        let extensions = request.extensions();
        Self {
            left: extensions.get::<TimeLeft>().map(|left| left.0),
            whole: extensions.get::<Whole>().is_some(),
            read_only: request.method().is_safe(),
            principal: extensions.get::<Principal>().cloned().unwrap_or_default(),
            source: extensions.get::<Source>().copied().unwrap_or_default(),
        }
    }

    /// Returns how long the shell can wait for the answer; `None` if it does not say.
    pub fn time_left(&self) -> Option<Duration> {
        self.left
    }

    /// Returns the time limit of a query: the shorter of the limit in its parameters and the time that the shell can
    /// wait. `None`: neither is given.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` if the parameter is not a number.
    pub fn timeout(&self, fields: &Fields) -> Result<Option<Duration>, Failure> {
        let asked = fields.number("queryTimeoutMilliseconds")?.map(Duration::from_millis);
        Ok(asked.into_iter().chain(self.left).min())
    }
}

/// `GET /{language}/status`: lists the running queries, or with `cancelQuery` and `queryId` cancels one.
///
/// # Errors
///
/// `MissingParameter` or `InvalidParameter` for a wrong request, or if the query to cancel is not running.
pub async fn status(
    State(service): State<Service>,
    request: Request,
) -> Result<Json<serde_json::Value>, Failure> {
    let language =
        if request.uri().path().starts_with("/gremlin") { Language::Gremlin } else { Language::OpenCypher };
    let Origin { principal, .. } = Origin::of(&request);
    let (fields, _) = Fields::read(&service, request).await?;
    if fields.is_set("cancelQuery")? {
        let id = fields.required("queryId")?;
        return cancel_one(&service, &id, &principal, fields.is_set("silent")?);
    }
    let now = service.database.now();
    let running = visible(&service, &principal);
    let queries: Vec<_> =
        running.iter().filter(|query| query.language == language).map(|query| describe(query, now)).collect();
    Ok(Json(json!({
        "acceptedQueryCount": service.admission.accepted(),
        "runningQueryCount": queries.len(),
        "queries": queries,
    })))
}

/// `GET /{language}/status/{id}`: describes a running query.
///
/// # Errors
///
/// `InvalidParameter` if the query is not running.
pub async fn one(
    State(service): State<Service>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<serde_json::Value>, Failure> {
    match find(&service, &id, &Origin::of(&request).principal) {
        Some(query) => Ok(Json(describe(&query, service.database.now()))),
        None => Err(unknown(&id)),
    }
}

/// `DELETE /{language}/status/{id}`: cancels a running query.
///
/// # Errors
///
/// `InvalidParameter` if the query is not running, unless `silent` is set.
pub async fn cancel(
    State(service): State<Service>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<serde_json::Value>, Failure> {
    let Origin { principal, .. } = Origin::of(&request);
    let (fields, _) = Fields::read(&service, request).await?;
    cancel_one(&service, &id, &principal, fields.is_set("silent")?)
}

/// Returns the running queries that a principal may see: its own, or with the role admin all.
pub(super) fn visible(service: &Service, principal: &Principal) -> Vec<RunningQuery> {
    let mut running = service.admission.running();
    running.retain(|query| principal.may_see_requests_of(&query.principal));
    running
}

/// Returns a running query, if the principal may see it. To others it is as if it did not run.
pub(super) fn find(service: &Service, id: &str, principal: &Principal) -> Option<RunningQuery> {
    service.admission.find(id).filter(|query| principal.may_see_requests_of(&query.principal))
}

/// Cancels a running query, if the principal may see it. Returns whether there is one.
pub(super) fn cancel_visible(service: &Service, id: &str, principal: &Principal) -> bool {
    find(service, id, principal).is_some() && service.admission.cancel(id)
}

fn unknown(id: &str) -> Failure {
    Failure::new(ErrorCode::InvalidParameter, format!("no query with the id {id:?} is running"))
}

fn cancel_one(
    service: &Service,
    id: &str,
    principal: &Principal,
    silent: bool,
) -> Result<Json<serde_json::Value>, Failure> {
    if !cancel_visible(service, id, principal) && !silent {
        return Err(unknown(id));
    }
    Ok(Json(json!({ "status": "200 OK", "payload": true })))
}

fn describe(query: &RunningQuery, now: jiff::Timestamp) -> serde_json::Value {
    json!({
        "queryId": query.id,
        "queryString": query.text,
        "queryEvalStats": {
            "waited": 0,
            "elapsed": now.as_millisecond() - query.started.as_millisecond(),
            "cancelled": query.cancelled,
        },
    })
}

/// Runs a query, and returns its answer: `whole`, or as soon as a part of it is to be sent.
///
/// # Errors
///
/// If the query is refused or fails.
pub(super) async fn run(
    service: &Service,
    asked: admission::Request,
    writer: impl Writer,
    whole: bool,
) -> Result<Written, Failure> {
    let (admission, id) = (&service.admission, asked.id.clone());
    let written = if whole {
        admission.run(asked, move |_, answer, output| writer.whole(answer, output)).await
    } else {
        admission.stream(asked, writer).await
    };
    written.map_err(|error| failure(error, &id))
}

/// The answer to a query that was refused or failed, under the query's id. A duplicate id gets a fresh request id,
/// because the given one names the other query.
pub fn failure(error: admission::Error, id: &str) -> Failure {
    match error {
        admission::Error::Query(error) if error.code() == ErrorCode::MethodNotAllowed => {
            Failure::new(error.code(), "the query writes, and GET only reads: send it with POST")
                .of_request(id)
                .allowing("POST")
        }
        admission::Error::DuplicateId { .. } => Failure::from(error),
        _ => Failure::from(error).of_request(id),
    }
}
