//! The audit log: who asked for what, from where, and what came of it, as lines of JSON in a file.
//!
//! Roles: [`Audit`] is the log of a service; [`Source`] says where a request came from; [`Entry`] is what a line will
//! say; [`Record`] is a request that runs, with room for its line; `file` writes the lines on its own thread.
//!
//! Flow: a request waits for room for one line → it runs → its [`Entry`] is written, also when its caller has gone. So no
//! line is lost for want of room: if the disk is slow, requests wait for it. If the file cannot be written, new requests
//! are refused until it can.
//!
//! What must never happen: a line that is dropped while the service runs; a password, a token or a signature in a line.

mod file;

use crate::admission;
use crate::json::plain::Plain;
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Language, Parameters, Principal};
use tidegraph_platform::Clock;
use tidegraph_types::{ErrorCode, Value};
use tokio::sync::mpsc;

/// Lines that wait to be written. Requests wait when there are as many.
const MOST_WAITING: usize = 1_024;
/// Longest text of a query in a line, in bytes.
const TEXT_BYTES: usize = 16 << 10;
/// Longest value of a parameter in a line, in bytes, and most parameters.
const PARAMETER_BYTES: usize = 1 << 10;
const MOST_PARAMETERS: usize = 100;

/// The protocol of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP.
    #[default]
    Http,
    /// Gremlin Server's protocol.
    WebSocket,
    /// Neo4j's protocol.
    Bolt,
}

/// Where a request came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// The address of the client, or of what stands before it. `None`: the request came through Lambda.
    pub address: Option<SocketAddr>,
    /// The protocol.
    pub protocol: Protocol,
}

impl Source {
    /// Returns the same source with another protocol.
    #[must_use]
    pub fn by(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was carried out.
    Ok,
    /// Its caller did not prove who it is, or may not do this.
    Denied,
    /// It failed.
    Error,
    /// Its caller had gone, or gave it up, before it was answered.
    Abandoned,
}

impl Verdict {
    fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::AccessDenied | ErrorCode::Unauthorized => Self::Denied,
            _ => Self::Error,
        }
    }
}

/// What a line says.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    time: String,
    /// What was done: `query`, `commit`, `authentication`, or the method and the path of another request.
    operation: String,
    /// The graph, if the service has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<String>,
    principal: String,
    address: Option<SocketAddr>,
    protocol: Protocol,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Length of the whole text, if `text` is its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<serde_json::Map<String, serde_json::Value>>,
    /// What the request is about, such as the sources of a load.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    duration_ms: u64,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrote: Option<bool>,
}

/// Why a request could not be recorded, and was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the audit log cannot be written ({reason}), so requests are refused until it can")]
pub struct Unwritable {
    reason: String,
}

/// The audit log of a service.
#[derive(Clone, Debug)]
pub struct Audit {
    lines: mpsc::Sender<file::Message>,
    state: Arc<file::State>,
    /// Whether lines have the parameters of queries.
    parameters: bool,
    /// The graph that lines name.
    graph: Option<Arc<str>>,
    clock: Arc<dyn Clock>,
}

impl Audit {
    /// Opens the file for appending, or makes it, and starts the thread that writes it.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or the thread cannot be started.
    pub fn open(path: PathBuf, parameters: bool, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let (lines, waiting) = mpsc::channel(MOST_WAITING);
        let state = file::start(path, waiting, clock.clone())?;
        Ok(Self { lines, state, parameters, graph: None, clock })
    }

    /// Returns the same log, whose lines name a graph.
    #[must_use]
    pub fn of_graph(&self, graph: &Arc<str>) -> Self {
        Self { graph: Some(graph.clone()), ..self.clone() }
    }

    /// Takes room for a line.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    async fn place(&self) -> Result<mpsc::OwnedPermit<file::Message>, Unwritable> {
        if let Some(reason) = self.state.problem() {
            return Err(Unwritable { reason });
        }
        let place = self.lines.clone().reserve_owned().await;
        place.map_err(|_| Unwritable { reason: "the service is stopping".to_owned() })
    }

    /// Begins the record of a request.
    ///
    /// # Errors
    ///
    /// If it cannot be recorded.
    pub async fn begin(
        &self,
        operation: impl Into<String>,
        principal: &Principal,
        source: Source,
    ) -> Result<Record, Unwritable> {
        let place = self.place().await?;
        let entry = Entry {
            time: self.clock.wall().to_string(),
            operation: operation.into(),
            graph: self.graph.as_deref().map(str::to_owned),
            principal: principal.to_string(),
            address: source.address,
            protocol: source.protocol,
            request_id: None,
            language: None,
            text: None,
            text_bytes: None,
            parameters: None,
            detail: None,
            duration_ms: 0,
            verdict: Verdict::Abandoned,
            code: None,
            rows: None,
            wrote: None,
        };
        let begun = self.clock.now();
        Ok(Record { entry: Some(entry), place: Some(place), clock: self.clock.clone(), begun })
    }

    /// Begins the record of a query.
    ///
    /// # Errors
    ///
    /// If it cannot be recorded.
    pub async fn begin_query(&self, request: &admission::Request) -> Result<Record, Unwritable> {
        let mut record = self.begin("query", &request.principal, request.source).await?;
        if let Some(entry) = &mut record.entry {
            let text = beginning(&request.text, TEXT_BYTES);
            entry.request_id = Some(request.id.clone());
            entry.language = Some(match request.language {
                Language::Gremlin => "gremlin",
                Language::OpenCypher => "openCypher",
            });
            entry.text_bytes = (text.len() < request.text.len()).then_some(request.text.len());
            entry.text = Some(text.to_owned());
            entry.parameters = self.parameters.then(|| shown(&request.parameters));
        }
        Ok(record)
    }

    /// Records that a caller did not prove who it is. `name` is the name that it gave, if it gave one.
    pub async fn refused(&self, name: Option<&str>, source: Source, code: ErrorCode) {
        let begun = self.begin("authentication", &Principal::Anonymous, source).await;
        // The caller is refused anyway. That the file cannot be written is in the log of the service.
        let Ok(mut record) = begun else { return };
        if let Some(entry) = &mut record.entry {
            entry.detail = name.map(|name| format!("user {:?}", beginning(name, PARAMETER_BYTES)));
        }
        record.end(Err(code));
    }

    /// Makes the file anew under its name, after another program has renamed it.
    pub fn reopen(&self) {
        // Without room there are lines to write, and the thread looks by itself.
        let _ = self.lines.try_send(file::Message::Reopen);
    }

    /// Writes what waits, and ends. Later requests are refused.
    pub fn close(&self, patience: Duration) {
        self.state.close(&self.lines, patience);
    }
}

/// A request that is carried out, and recorded when it ends or is dropped.
#[derive(Debug)]
pub struct Record {
    entry: Option<Entry>,
    place: Option<mpsc::OwnedPermit<file::Message>>,
    clock: Arc<dyn Clock>,
    begun: Duration,
}

impl Record {
    /// Adds what the request is about.
    pub fn detail(&mut self, detail: &str) {
        if let Some(entry) = &mut self.entry {
            entry.detail = Some(beginning(detail, TEXT_BYTES).to_owned());
        }
    }

    /// Records the outcome.
    pub fn end(mut self, outcome: Result<(), ErrorCode>) {
        self.set(outcome);
    }

    /// Records the outcome of a query.
    pub fn end_query(mut self, outcome: Result<(u64, bool), ErrorCode>) {
        if let (Some(entry), Ok((rows, wrote))) = (&mut self.entry, outcome) {
            entry.rows = Some(rows);
            entry.wrote = Some(wrote);
        }
        self.set(outcome.map(|_| ()));
    }

    fn set(&mut self, outcome: Result<(), ErrorCode>) {
        let Some(entry) = &mut self.entry else { return };
        entry.verdict = outcome.map_or_else(Verdict::of, |()| Verdict::Ok);
        entry.code = outcome.err().map(ErrorCode::as_str);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let (Some(mut entry), Some(place)) = (self.entry.take(), self.place.take()) else { return };
        let took = self.clock.now().saturating_sub(self.begun);
        entry.duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match serde_json::to_vec(&entry) {
            Ok(mut line) => {
                line.push(b'\n');
                place.send(file::Message::Line(line));
            }
            Err(error) => tracing::error!(%error, "a line of the audit log could not be made"),
        }
    }
}

/// Returns the beginning of a text, up to whole characters.
fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Takes the beginning of what is written to it, and then fails.
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PARAMETER_BYTES - self.0.len();
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns parameters by name: values as JSON, or the beginning of their JSON as a text if they are long.
fn shown(parameters: &Parameters) -> serde_json::Map<String, serde_json::Value> {
    let shown = |value: &Value| {
        let mut json = Beginning(Vec::new());
        let whole = serde_json::to_writer(&mut json, &Plain(value)).is_ok();
        let parsed = whole.then(|| serde_json::from_slice(&json.0).ok()).flatten();
        parsed.unwrap_or_else(|| format!("{}…", String::from_utf8_lossy(&json.0)).into())
    };
    let name = |name: &str| beginning(name, PARAMETER_BYTES).to_owned();
    parameters.iter().take(MOST_PARAMETERS).map(|(key, value)| (name(key), shown(value))).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
