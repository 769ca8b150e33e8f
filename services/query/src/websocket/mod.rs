//! Gremlin Server's protocol over WebSocket: what TinkerPop's drivers speak.
//!
//! Roles: [`upgrade`] answers the request that begins a connection; `Connection` reads and writes messages; [`asked`]
//! reads what they ask for; `requests` answers them; `codes` gives errors the numbers that drivers know.
//!
//! Flow: `GET /gremlin` with the header `Upgrade` → [`upgrade`] leaves the client in its [`Handover`] → the server ends
//! HTTP on the connection and calls [`serve`] → messages, each in the format that it names → [`Admission`] like a query
//! of any protocol → messages with at most a batch of rows each, while the query runs. A client may send requests before earlier ones are
//! answered: they run beside each other, but for those of one session, and each answer names its request.
//!
//! What must never happen: a request without an answer, on which its driver would wait for ever; a client that does
//! not read, does not end its messages or does not prove itself holds memory, a slot or a place for longer than its
//! limit; a query goes on after its connection is gone.
//!
//! [`Admission`]: crate::admission::Admission

mod asked;
mod codes;
mod connection;
mod requests;
mod transaction;

pub(crate) use asked::asked;
pub(crate) use codes::Failure as MessageFailure;

use crate::audit::Source;
use crate::http::{Failure, NamedGraph};
use crate::server;
use crate::server::Progress;
use crate::session::Service;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::upgrade::OnUpgrade;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tidegraph_engine::{GremlinVersion, Principal};
use tidegraph_types::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// The paths at which drivers connect.
const PATHS: [&str; 2] = ["/gremlin", "/gremlin/"];
/// The version of WebSocket that all clients speak.
const VERSION: &[u8] = b"13";

/// A mark of requests that passed without a proof of who asks: they may only begin a connection, which then asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unproven;

/// What a handler leaves for the server of its connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handover(Arc<Mutex<Option<(OnUpgrade, Client)>>>);

/// The client of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Client {
    caller: Caller,
    /// The version of Gremlin that the client's driver speaks, if the driver names itself.
    gremlin_version: Option<GremlinVersion>,
    /// The graph that the client named in its path.
    graph: Option<Arc<str>>,
}

impl Client {
    /// Returns the graph that the client named; `None`: the default one.
    pub(crate) fn graph(&self) -> Option<&str> {
        self.graph.as_deref()
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Caller {
    /// It may ask.
    Known(Principal),
    /// It must prove itself first.
    Unproven,
}

impl Handover {
    pub(crate) fn take(&self) -> Option<(OnUpgrade, Client)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn leave(&self, upgrade: OnUpgrade, client: Client) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, client));
    }
}

/// Whether a request asks for WebSocket where drivers connect.
pub(crate) fn asks_for_upgrade(request: &Request) -> bool {
    request.method() == Method::GET
        && PATHS.contains(&request.uri().path())
        && names(request.headers(), &header::UPGRADE, "websocket")
        && names(request.headers(), &header::CONNECTION, "upgrade")
}

/// Whether a header lists a word.
fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|item| item.trim().eq_ignore_ascii_case(word))
}

/// Returns the version of Gremlin that the driver of a request speaks, from its user agent.
pub(crate) fn version_of_driver(headers: &HeaderMap) -> Option<GremlinVersion> {
    GremlinVersion::of_user_agent(headers.get(header::USER_AGENT)?.to_str().ok()?)
}

/// Answers a request for WebSocket.
///
/// # Errors
///
/// If it lacks a header, asks for another version, or came through a door that has no WebSocket.
pub(crate) fn upgrade(mut request: Request) -> Result<Response, Failure> {
    let wrong = |message: &str| Failure::new(ErrorCode::BadRequest, message);
    if request.headers().get(header::SEC_WEBSOCKET_VERSION).map(|v| v.as_bytes()) != Some(VERSION) {
        return Err(wrong("the service speaks version 13 of WebSocket (header Sec-WebSocket-Version)"));
    }
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY) else {
        return Err(wrong("the request for WebSocket has no header Sec-WebSocket-Key"));
    };
    let accepted = derive_accept_key(key.as_bytes());
    let caller = match (request.extensions().get::<Unproven>(), request.extensions().get::<Principal>()) {
        (Some(Unproven), _) => Caller::Unproven,
        (None, principal) => Caller::Known(principal.cloned().unwrap_or_default()),
    };
    let graph = request.extensions().get::<NamedGraph>().map(|NamedGraph(name)| name.clone());
    let client = Client { caller, gremlin_version: version_of_driver(request.headers()), graph };
    let on_upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let (Some(on_upgrade), Some(handover)) = (on_upgrade, request.extensions().get::<Handover>()) else {
        return Err(wrong("there is no WebSocket here: send the traversal with POST"));
    };
    handover.leave(on_upgrade, client);
    let headers = [
        (header::CONNECTION, "upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_ACCEPT, accepted.as_str()),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

/// Serves a connection after its upgrade, until either side ends it. `first` are bytes that the client sent ahead.
///
/// # Errors
///
/// If the connection breaks, or the client breaks the protocol.
pub(crate) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    first: Bytes,
    service: Arc<Service>,
    client: Client,
    source: Source,
    progress: Arc<Progress>,
    limits: server::Limits,
) -> io::Result<()> {
    let connection =
        connection::Connection::new(socket, first, service.message_bytes, progress, limits).await;
    requests::run(connection, service, client, source).await
}
