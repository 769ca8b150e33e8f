//! `/propertygraph/stream`: what each transaction changed, in the shape of Neptune's streams (`PG_JSON`).
//!
//! Source: <https://docs.aws.amazon.com/neptune/latest/userguide/streams-using-api.html>

use super::body::Fields;
use super::{Failure, Service};
use crate::admission::{self, RequestMemory};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegraph_engine::Database;
use tidegraph_types::{
    Change, Changed, ChangesFrom, ChangesPage, ChangesRequest, ErrorCode, EventId, Str, Token, Value, Version,
};

/// Largest number of records of an answer: Neptune's.
const MOST_RECORDS: u64 = 100_000;
/// Number of records of an answer to a request that does not say it: Neptune's.
const RECORDS: u64 = 10;
/// An answer ends with the record that reaches this size, in about as many bytes: Neptune's.
const ANSWER_BYTES: usize = 10 << 20;
/// Label that the stream tells of a vertex without one: the one that Neptune gives it.
const NO_LABEL: &str = "vertex";

/// `GET /propertygraph/stream` with `iteratorType`, `commitNum`, `opNum` and `limit`: answers with changes.
///
/// # Errors
///
/// `InvalidParameter` for a wrong or missing parameter; `UnsupportedOperation` if streams are off;
/// `StreamRecordsNotFound` and `ExpiredStream` if there are no such changes; `MemoryLimitExceeded` if the queries leave
/// no memory for the answer; `TooManyRequests`; `TimeLimitExceeded`.
pub async fn get(State(service): State<Service>, request: Request) -> Result<Response, Failure> {
    let (fields, _) = Fields::read(&service, request).await?;
    let asked = asked(&fields)?;
    let cancel = Arc::new(AtomicBool::new(false));
    let _gone = CancelWhenGone(cancel.clone());
    let database = service.database.clone();
    let read = tokio::task::spawn_blocking(move || database.changes(&asked, Some(&cancel)));
    let page = read.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??;
    let bytes = 2 * page.commits.iter().flat_map(|part| &part.changes.list).map(bytes_of).sum::<usize>();
    let mut memory = RequestMemory::default();
    memory.grow_to(bytes, &service.admission).map_err(admission::Error::Memory)?;
    let database = service.database.clone();
    let written = tokio::task::spawn_blocking(move || write(&database, &page)).await;
    let body = written.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??;
    drop(memory);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Stops the reading of the log when the client is gone.
struct CancelWhenGone(Arc<AtomicBool>);

impl Drop for CancelWhenGone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn bytes_of(change: &Change) -> usize {
    160 + change.bytes()
}

fn asked(fields: &Fields) -> Result<ChangesRequest, Failure> {
    let wrong = |message: String| Failure::new(ErrorCode::InvalidParameter, message);
    let limit = fields.number("limit")?.unwrap_or(RECORDS);
    if !(1..=MOST_RECORDS).contains(&limit) {
        return Err(wrong(format!("parameter \"limit\" must be 1 to {MOST_RECORDS}, not {limit}")));
    }
    let kind = fields.text("iteratorType")?;
    let kind = kind.as_deref().unwrap_or("AT_SEQUENCE_NUMBER");
    let id = || match fields.number("commitNum")? {
        Some(commit) => Ok(EventId { commit: Version(commit), op: fields.number("opNum")?.unwrap_or(1) }),
        None => Err(wrong(format!("iteratorType {kind} needs the parameter \"commitNum\""))),
    };
    let from = match kind {
        "AT_SEQUENCE_NUMBER" => ChangesFrom::At(id()?),
        "AFTER_SEQUENCE_NUMBER" => ChangesFrom::After(id()?),
        "TRIM_HORIZON" => ChangesFrom::Oldest,
        "LATEST" => ChangesFrom::Newest,
        other => {
            return Err(wrong(format!(
                "parameter \"iteratorType\" must be AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER, TRIM_HORIZON or LATEST, \
                 not {other:?}"
            )));
        }
    };
    Ok(ChangesRequest { from, limit: limit as usize, bytes: ANSWER_BYTES })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    last_event_id: Event,
    last_trx_timestamp: i64,
    format: &'static str,
    records: Vec<Record<'a>>,
    total_records: usize,
}

#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    commit_num: u64,
    op_num: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    commit_timestamp: i64,
    event_id: Event,
    data: Data<'a>,
    op: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_last_op: bool,
}

#[derive(Serialize)]
struct Data<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    key: Str,
    value: Typed,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
}

/// A value with the name of its type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    value: serde_json::Value,
    data_type: &'static str,
}

impl Typed {
    fn text(text: impl Into<String>) -> Self {
        Self { value: serde_json::Value::String(text.into()), data_type: "String" }
    }

    fn of(value: &Value) -> Self {
        let (value, data_type) = match value {
            Value::Bool(v) => ((*v).into(), "Boolean"),
            Value::Byte(v) => ((*v).into(), "Byte"),
            Value::Short(v) => ((*v).into(), "Short"),
            Value::Int(v) => ((*v).into(), "Int"),
            Value::Long(v) => ((*v).into(), "Long"),
            Value::Float(v) => (number(f64::from(*v)), "Float"),
            Value::Double(v) => (number(*v), "Double"),
            Value::DateTime(v) => (v.to_string().into(), "Date"),
            Value::Uuid(v) => (v.to_string().into(), "UUID"),
            other => return Self::text(other.as_str().unwrap_or_default()),
        };
        Self { value, data_type }
    }
}

/// Returns a number; JSON has none that are not finite, which become text.
fn number(v: f64) -> serde_json::Value {
    serde_json::Number::from_f64(v).map_or_else(|| v.to_string().into(), serde_json::Value::Number)
}

/// Writes changes as JSON.
fn write(database: &Database, page: &ChangesPage) -> Result<Vec<u8>, Failure> {
    let mut names: BTreeMap<Token, Str> = BTreeMap::new();
    let mut name = |token: Token| names.entry(token).or_insert_with(|| database.name(token)).clone();
    let mut answer = Answer {
        last_event_id: Event::default(),
        last_trx_timestamp: 0,
        format: "PG_JSON",
        records: Vec::new(),
        total_records: 0,
    };
    for part in &page.commits {
        let commit_timestamp = part.changes.taken_ms;
        let count = part.changes.list.len();
        for ((op_num, at), change) in (part.first.op..).zip(1..).zip(&part.changes.list) {
            let event_id = Event { commit_num: part.first.commit.0, op_num };
            (answer.last_event_id, answer.last_trx_timestamp) = (event_id, commit_timestamp);
            answer.records.push(Record {
                commit_timestamp,
                event_id,
                data: data_of(change, &mut name),
                op: if change.removed { "REMOVE" } else { "ADD" },
                is_last_op: part.is_end && at == count,
            });
        }
    }
    answer.total_records = answer.records.len();
    serde_json::to_vec(&answer).map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
}

fn data_of<'a>(change: &'a Change, name: &mut impl FnMut(Token) -> Str) -> Data<'a> {
    let label = || Str::new_static("label");
    let (kind, key, value) = match &change.what {
        Changed::VertexLabel(token) => {
            let text = token.map_or_else(|| NO_LABEL.to_owned(), |token| name(token).to_string());
            ("vl", label(), Typed::text(text))
        }
        Changed::VertexProperty(key, value) => ("vp", name(*key), Typed::of(value)),
        Changed::Edge { label: token, .. } => ("e", label(), Typed::text(name(*token).to_string())),
        Changed::EdgeProperty(key, value) => ("ep", name(*key), Typed::of(value)),
    };
    let ends = match &change.what {
        Changed::Edge { from, to, .. } => Some((from.as_str(), to.as_str())),
        _ => None,
    };
    Data { id: &change.id, kind, key, value, from: ends.map(|ends| ends.0), to: ends.map(|ends| ends.1) }
}
