//! The requests of one connection: they run beside each other, and each is answered under its id.

use super::asked::{Asked, asked};
use super::codes::{AUTHENTICATE, Failure, NO_CONTENT, PARTIAL, SUCCESS, written as bytes_of};
use super::connection::{Connection, Received, Waits};
use super::transaction::{Busy, Outcome, Sessions};
use super::{Caller, Client};
use crate::admission::{self, Output, Part, Parts, RequestMemory, Writer};
use crate::audit::{Protocol, Source};
use crate::authentication::Refusal;
use crate::session::Service;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::io;
use std::sync::Arc;
use tidegraph_engine::{GremlinVersion, Language, Principal};
use tidegraph_gremlin_io::{
    Argument, Budget, Form, Format, OpenResponse, Options, Request, Response, Script, Shown,
};
use tidegraph_platform::metric;
use tidegraph_types::{ErrorCode, Str, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use uuid::Uuid;

/// Most requests of a connection that run or wait. The rest is read once one of them has ended.
const MOST_REQUESTS: usize = 64;
/// How often a client may fail to prove itself.
const MOST_FAILURES: usize = 3;
/// Most bytes of requests that a client sends before it proves itself.
const WAITING_BYTES: usize = 128 << 10;
/// Rows of one message, unless the client asks for another number.
const BATCH_ROWS: usize = 256;
/// A message gets no more rows from this length on: clients refuse very long ones, and each is in memory whole.
const MESSAGE_BYTES: usize = 1 << 20;

/// The answer to a request, or a part of it.
pub(super) struct Reply {
    part: Part,
    is_text: bool,
    /// What follows while the request runs.
    more: Option<More>,
    /// Whether the connection ends after it.
    ends_connection: bool,
}

impl Reply {
    fn of(message: Vec<u8>, format: Format) -> Self {
        let ends = vec![message.len()];
        let part = Part { bytes: message.into(), ends };
        Self { part, is_text: format.is_text(), more: None, ends_connection: false }
    }

    fn messages(&self) -> impl Iterator<Item = Bytes> {
        let mut at = 0;
        self.part.ends.iter().map(move |end| {
            let range = std::mem::replace(&mut at, *end)..*end;
            self.part.bytes.slice(range)
        })
    }
}

/// The rest of an answer.
struct More {
    id: Uuid,
    format: Format,
    parts: Parts,
    /// The session whose request it answers.
    busy: Option<Box<Busy>>,
}

impl More {
    /// Waits for the next part, or for what there is to say instead.
    async fn next(mut self) -> Reply {
        let (is_text, ends_connection) = (self.format.is_text(), false);
        let next = tokio::select! {
            next = self.parts.next() => next,
            Some(failure) = rolled_back(self.busy.as_deref()) => {
                return refused(&failure, Some(self.id), self.format);
            }
        };
        match next {
            Some(Ok(part)) => Reply { part, is_text, more: Some(self), ends_connection },
            Some(Err(error)) => refused(&Failure::from(&error), Some(self.id), self.format),
            None => {
                if let Some(busy) = self.busy {
                    busy.end().await;
                }
                Reply { part: Part::default(), is_text, more: None, ends_connection }
            }
        }
    }
}

/// Waits until the transaction of a request is rolled back; `None` if the request has none.
async fn rolled_back(busy: Option<&Busy>) -> Option<Failure> {
    Some(busy?.rolled_back().await)
}

/// What all requests of a connection need.
struct Shared {
    service: Arc<Service>,
    source: Source,
    /// The version of Gremlin of requests that name none.
    gremlin_version: Option<GremlinVersion>,
    sessions: Sessions,
}

/// Who is at the other end.
enum Who {
    Known(Principal),
    /// The client has not proved itself, and failed to some times. What it sends meanwhile is answered once it has.
    Unproven {
        waiting: Vec<Received>,
        failures: usize,
    },
}

/// A request whose answer, or the next part of it, is made.
type Running = BoxFuture<'static, Reply>;

/// Answers requests until either side ends the connection.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Connection<S>,
    service: Arc<Service>,
    client: Client,
    source: Source,
) -> io::Result<()> {
    let mut who = match client.caller {
        Caller::Known(principal) => Who::Known(principal),
        Caller::Unproven => Who::Unproven { waiting: vec![], failures: 0 },
    };
    let shared = Arc::new(Shared {
        sessions: Sessions::default(),
        service,
        source: source.by(Protocol::WebSocket),
        gremlin_version: client.gremlin_version,
    });
    let mut running: FuturesUnordered<Running> = FuturesUnordered::new();
    loop {
        // Answers that are ready go with those before them. One without an end does not keep the client from being heard.
        for _ in 0..MOST_REQUESTS {
            let Some(Some(reply)) = running.next().now_or_never() else { break };
            if !send(&mut connection, reply, &mut running, &shared.service).await? {
                return Ok(());
            }
        }
        connection.flush().await?;
        let waits = match &who {
            Who::Unproven { .. } => Waits::Outside,
            Who::Known(_) if !running.is_empty() => Waits::Running,
            Who::Known(_) if shared.sessions.are_open() => Waits::Open,
            Who::Known(_) => Waits::Idle,
        };
        let received = tokio::select! {
            Some(reply) = running.next(), if !running.is_empty() => {
                if !send(&mut connection, reply, &mut running, &shared.service).await? {
                    return Ok(());
                }
                continue;
            }
            received = connection.receive(waits, &shared.service.admission), if running.len() < MOST_REQUESTS => received?,
        };
        let Some(received) = received else { return Ok(()) };
        for begun in begin(received, &mut who, &shared).await {
            match begun {
                Begun::Runs(future) => running.push(future),
                Begun::Answered(reply) => {
                    if !send(&mut connection, reply, &mut running, &shared.service).await? {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Sends an answer, and has the rest of it made; returns whether the connection goes on.
async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    reply: Reply,
    running: &mut FuturesUnordered<Running>,
    service: &Service,
) -> io::Result<bool> {
    for message in reply.messages() {
        // The protocol's library copies a message before it sends it.
        let mut copy = RequestMemory::default();
        if copy.grow_to(message.len(), &service.admission).is_err() {
            connection.end(CloseCode::Again, "all queries together leave no memory for the answer").await?;
            return Ok(false);
        }
        connection.send(message, reply.is_text).await?;
    }
    if let Some(more) = reply.more {
        running.push(more.next().boxed());
    }
    if reply.ends_connection {
        connection.end(CloseCode::Policy, "the client did not prove itself").await?;
    }
    Ok(!reply.ends_connection)
}

/// What a message began.
enum Begun {
    Runs(Running),
    Answered(Reply),
}

/// Reads a message and begins what it asks for, and what waited for it.
async fn begin(received: Received, who: &mut Who, shared: &Arc<Shared>) -> Vec<Begun> {
    match try_to_begin(received, who, shared).await {
        Ok(begun) => begun,
        Err(refused) => vec![refused.into()],
    }
}

/// Why a message began nothing.
struct Refused {
    failure: Failure,
    id: Option<Uuid>,
    format: Format,
    ends_connection: bool,
}

impl From<Refused> for Begun {
    fn from(Refused { failure, id, format, ends_connection }: Refused) -> Self {
        Self::Answered(Reply { ends_connection, ..refused(&failure, id, format) })
    }
}

/// Returns the id of a request that was read before, and its format.
fn id_of(received: &Received) -> Option<(Uuid, Format)> {
    let (format, bytes) = format_of(received).ok()?;
    let request = Request::read(format, &bytes, Budget::new(&mut |_| true)).ok()?;
    Some((request.id, format))
}

async fn try_to_begin(
    mut received: Received,
    who: &mut Who,
    shared: &Arc<Shared>,
) -> Result<Vec<Begun>, Refused> {
    let refused = |failure, id, format| Refused { failure, id, format, ends_connection: false };
    let found = format_of(&received).map_err(|failure| refused(failure, None, Format::GraphSon3));
    let (format, bytes) = found?;
    let admission = &shared.service.admission;
    let mut take = |more| received.memory.grow(more, admission).is_ok();
    let request = Request::read(format, &bytes, Budget::new(&mut take)).map_err(|error| {
        let failure = if error.is_for_memory() {
            Failure::new(ErrorCode::MemoryLimitExceeded, error.to_string())
        } else {
            Failure::malformed(error.to_string())
        };
        refused(failure, error.id, format)
    })?;
    let id = request.id;
    let unauthorized = |message| Refused {
        ends_connection: true,
        ..refused(Failure::unauthorized(message), Some(id), format)
    };
    let without_rows = |code| {
        let id = id.to_string();
        let response = Response { id: &id, code, message: "", attributes: &[] };
        vec![Begun::Answered(Reply::of(bytes_of(&response, format), format))]
    };
    let principal = match who {
        Who::Known(principal) => {
            let known = shared.service.still_known(principal);
            known.map_err(|gone| refused(Failure::new(gone.code(), gone.to_string()), Some(id), format))?
        }
        Who::Unproven { waiting, failures } if request.op == "authentication" => {
            let proven = proven(&request, shared).await;
            let principal = match proven {
                Ok(principal) => principal,
                Err(wrong) => {
                    *failures += 1;
                    metric::unauthenticated(metric::Protocol::WebSocket);
                    // Some drivers give this request an id of its own, and know only those of the requests that wait.
                    let mut refusals: Vec<_> = waiting
                        .drain(..)
                        .filter_map(|received| id_of(&received))
                        .map(|(id, format)| refused(Failure::refused(&wrong), Some(id), format))
                        .collect();
                    if refusals.is_empty() {
                        refusals.push(refused(Failure::refused(&wrong), Some(id), format));
                    }
                    if let Some(last) = refusals.last_mut() {
                        last.ends_connection = *failures == MOST_FAILURES;
                    }
                    return Ok(refusals.into_iter().map(Begun::from).collect());
                }
            };
            let waiting = std::mem::take(waiting);
            *who = Who::Known(principal);
            if waiting.is_empty() {
                return Ok(without_rows(NO_CONTENT));
            }
            let mut begun = vec![];
            for received in waiting {
                begun.extend(Box::pin(begin(received, who, shared)).await);
            }
            return Ok(begun);
        }
        Who::Unproven { waiting, .. } => {
            let bytes: usize = waiting.iter().map(|earlier| earlier.bytes.len()).sum();
            if waiting.len() >= MOST_REQUESTS || bytes + received.bytes.len() > WAITING_BYTES {
                return Err(unauthorized("the client sends many requests before it proves itself"));
            }
            waiting.push(received);
            // Only the first one is answered so: the client proves itself once.
            return Ok(if waiting.len() == 1 { without_rows(AUTHENTICATE) } else { vec![] });
        }
    };
    let asked = asked(request, format, principal, received.memory.reserved());
    let asked = asked.map_err(|failure| refused(failure, Some(id), format))?;
    Ok(vec![Begun::Runs(answer(asked, shared.clone()).boxed())])
}

/// Returns the format of a message and its bytes. A binary message begins with the length and the name of its format.
fn format_of(received: &Received) -> Result<(Format, Bytes), Failure> {
    let bytes = &received.bytes;
    if received.is_text {
        return Ok((Format::GraphSon3, bytes.clone()));
    }
    let length = bytes.first().copied().map(usize::from);
    let name = length.and_then(|length| bytes.get(1..=length)).and_then(|name| str::from_utf8(name).ok());
    let Some(name) = name else {
        return Err(Failure::malformed("a binary message begins with the length and the name of its format"));
    };
    match Format::of_media_type(name) {
        Some(format) => Ok((format, bytes.slice(1 + name.len()..))),
        None => Err(Failure::malformed(format!(
            "there is no format {name:?}: use {} or {}",
            Format::Binary.media_type(),
            Format::GraphSon3.media_type()
        ))),
    }
}

fn refused(failure: &Failure, id: Option<Uuid>, format: Format) -> Reply {
    Reply::of(failure.message(&id.unwrap_or_default().to_string(), format), format)
}

/// Returns who proves itself with SASL's mechanism PLAIN, whose text is `\0user\0password`.
async fn proven(request: &Request, shared: &Shared) -> Result<Principal, Refusal> {
    let text = request.argument("sasl").and_then(Argument::as_text).map(Str::as_str).unwrap_or_default();
    let text = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let mut parts = text.rsplit('\0');
    let password = parts.next().unwrap_or_default();
    shared.service.password(parts.next().unwrap_or_default(), password, shared.source).await
}

/// Answers a request.
async fn answer(asked: Asked, shared: Arc<Shared>) -> Reply {
    let (id, format) = (asked.id, asked.format);
    match try_to_answer(asked, &shared).await {
        Ok(reply) => reply,
        Err(failure) => refused(&failure, Some(id), format),
    }
}

async fn try_to_answer(asked: Asked, shared: &Shared) -> Result<Reply, Failure> {
    let Asked {
        id,
        format,
        what,
        gremlin_version,
        mut options,
        traversers,
        session,
        ends_session,
        commits,
        principal,
        memory,
    } = asked;
    let admission = &shared.service.admission;
    let nothing = |format| {
        let id = id.to_string();
        let done = Response { id: &id, code: NO_CONTENT, message: "", attributes: &[] };
        Reply::of(bytes_of(&done, format), format)
    };
    if ends_session {
        if let Some(session) = session {
            shared.sessions.close(&session, admission).await?;
        }
        return Ok(nothing(format));
    }
    let (text, parameters) = match what {
        Script::Traversal { text, parameters, options: own } => {
            options = Options {
                timeout: own.timeout.or(options.timeout),
                batch: own.batch.or(options.batch),
                properties: own.properties.or(options.properties),
            };
            (text, parameters)
        }
        ends => {
            let session = session.unwrap_or_default();
            let outcome = if ends == Script::Commit { Outcome::Commit } else { Outcome::Rollback };
            shared.sessions.end(&session, outcome, admission).await?;
            return Ok(nothing(format));
        }
    };
    let request = admission::Request {
        id: id.to_string(),
        language: Language::Gremlin,
        gremlin_version: gremlin_version.or(shared.gremlin_version),
        text,
        parameters,
        timeout: options.timeout,
        at_least: None,
        read_only: false,
        key: None,
        principal,
        source: shared.source,
        memory,
        frees_slot: true,
        explain: None,
    };
    let shown = if options.properties == Some(false) { Shown::Reference } else { Shown::All };
    let writer = Messages {
        id: request.id.clone(),
        form: Form { format, traversers, shown },
        batch: options.batch.unwrap_or(BATCH_ROWS),
        open: None,
    };
    let (written, busy) = match session {
        Some(session) => {
            shared.sessions.run(&session, commits, traversers, request, writer, admission).await?
        }
        None => (admission.stream(request, writer).await.map_err(|error| Failure::from(&error))?, None),
    };
    let more = written.more.map(|parts| More { id, format, parts, busy: busy.map(Box::new) });
    Ok(Reply { part: written.first, is_text: format.is_text(), more, ends_connection: false })
}

/// Writes messages with a batch of values each. Whether a message is the last one is known when the answer goes on or
/// ends.
#[derive(Clone)]
struct Messages {
    id: String,
    form: Form,
    batch: usize,
    /// The message that is being written.
    open: Option<OpenResponse>,
}

impl Messages {
    fn response(&self, code: u16) -> Response<'_> {
        Response { id: &self.id, code, message: "", attributes: &[] }
    }
}

fn end(open: OpenResponse, code: u16, out: &mut Output) -> io::Result<()> {
    open.end(out)?;
    for correction in open.corrections(code)? {
        out.correct(correction.at, correction.bytes());
    }
    out.end_message();
    Ok(())
}

impl Writer for Messages {
    fn begin(&mut self, _: &Arc<[Str]>, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Value], out: &mut Output) -> io::Result<()> {
        let Some(value) = row.first() else { return Ok(()) };
        let is_full = |open: &OpenResponse| open.count() >= self.batch || out.begun() >= MESSAGE_BYTES;
        let mut open = match self.open.take() {
            Some(open) if !is_full(&open) => open,
            full => {
                if let Some(full) = full {
                    end(full, PARTIAL, out)?;
                }
                self.response(PARTIAL).begin(self.form, 0, out)?
            }
        };
        open.value(value, out)?;
        self.open = Some(open);
        Ok(())
    }

    fn end(&mut self, out: &mut Output) -> io::Result<()> {
        if let Some(open) = self.open.take() {
            return end(open, SUCCESS, out);
        }
        self.response(NO_CONTENT).write(self.form.format, out)?;
        out.end_message();
        Ok(())
    }
}
