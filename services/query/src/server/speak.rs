//! Speaks the protocol that a client chose with its first bytes, with TLS around it or without.

use super::drive::is_stopped;
use super::progress::Progress;
use super::socket::{Ahead, AnswerBody, RequestBody, Socket, Spoken, Stream, Watched, spoken};
use super::{Limits, Protocols, http2, tls};
use crate::audit::Source;
use crate::http::Failure;
use crate::{bolt, websocket};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tidegraph_platform::metric::{OpenConnection, Protocol};
use tidegraph_types::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Most bytes of a request that are read and dropped, for its client to see the answer.
const MOST_DISCARDED_BYTES: usize = 64 << 10;
/// What a client with TLS reads where there is none: the fatal alert `handshake_failure`.
const NO_TLS: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 40];
/// What a client without TLS is told.
const WANTS_TLS: &str = "this port speaks TLS: use https://";

/// Serves a connection until either side ends it.
pub(super) async fn speak(
    mut socket: TcpStream,
    protocols: Protocols,
    limits: Limits,
    progress: Arc<Progress>,
    stopped: watch::Receiver<bool>,
) {
    let address = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let source = Source { address: socket.peer_addr().ok(), ..Source::default() };
    let begins_tls = async {
        let mut first = [0];
        io::Result::Ok(socket.peek(&mut first).await? > 0 && first[0] == tls::FIRST_BYTE)
    };
    let tls = protocols.tls.clone();
    let ended: Result<(), axum::BoxError> = match (begins_tls.await, tls) {
        (Err(error), _) => Err(error.into()),
        (Ok(true), None) => refuse_tls(&mut socket).await.map_err(Into::into),
        (Ok(false), Some(_)) => refuse_plain(socket, progress, stopped).await,
        (Ok(false), None) => match spoken(&mut socket).await {
            Ok(Some((spoken, ahead))) => {
                let socket = Socket::new(Stream::Plain(socket), ahead);
                speak_as(spoken, socket, protocols, limits, progress, stopped, &address, source).await
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error.into()),
        },
        (Ok(true), Some(tls)) => match inside(&tls, socket).await {
            Ok(Some((spoken, socket))) => {
                speak_as(spoken, socket, protocols, limits, progress, stopped, &address, source).await
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error.into()),
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Begins TLS. What is inside says the next protocol, unless TLS has agreed on it.
async fn inside(tls: &tls::Tls, socket: TcpStream) -> io::Result<Option<(Spoken, Socket)>> {
    let mut stream = tls.accept(socket).await?;
    let found = if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) {
        Some((Spoken::Http2, Ahead::new()))
    } else {
        spoken(&mut stream).await?
    };
    Ok(found.map(|(spoken, ahead)| (spoken, Socket::new(Stream::Tls(Box::new(stream)), ahead))))
}

async fn speak_as(
    spoken: Spoken,
    socket: Socket,
    protocols: Protocols,
    limits: Limits,
    progress: Arc<Progress>,
    stopped: watch::Receiver<bool>,
    address: &str,
    source: Source,
) -> Result<(), axum::BoxError> {
    let socket = Watched::new(socket, progress.clone());
    match spoken {
        Spoken::Bolt => {
            let Some(sessions) = protocols.sessions else { return Ok(()) };
            let Some(service) = sessions.any() else { return Ok(()) };
            let _counted = OpenConnection::new(Protocol::Bolt);
            Ok(bolt::serve(socket, sessions, service, progress, limits.sessions, address, source).await?)
        }
        Spoken::Http1 => speak_http1(socket, protocols, source, limits, progress, stopped).await,
        Spoken::Http2 => {
            let _counted = OpenConnection::new(Protocol::Http2);
            Ok(http2::serve(socket, protocols, source, progress, stopped).await?)
        }
    }
}

/// Tells a client with TLS that there is none.
async fn refuse_tls(socket: &mut TcpStream) -> io::Result<()> {
    socket.write_all(&NO_TLS).await?;
    end(socket).await
}

/// Ends a connection from this side. A client that still sends would find it broken, and not see the answer.
async fn end(socket: &mut TcpStream) -> io::Result<()> {
    socket.shutdown().await?;
    let mut rest = socket.take(MOST_DISCARDED_BYTES as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

/// Tells a client without TLS that the port wants it, as far as its protocol has words for that.
async fn refuse_plain(
    mut socket: TcpStream,
    progress: Arc<Progress>,
    stopped: watch::Receiver<bool>,
) -> Result<(), axum::BoxError> {
    let Some((spoken, ahead)) = spoken(&mut socket).await? else { return Ok(()) };
    match spoken {
        Spoken::Bolt => {}
        Spoken::Http2 => {
            let refuse = || async { Failure::new(ErrorCode::BadRequest, WANTS_TLS) };
            let socket = Watched::new(Socket::new(Stream::Plain(socket), ahead), progress.clone());
            http2::serve(socket, Router::new().fallback(refuse).into(), Source::default(), progress, stopped)
                .await?;
        }
        Spoken::Http1 => {
            let body = Failure::new(ErrorCode::BadRequest, WANTS_TLS).into_response().into_body();
            let body = axum::body::to_bytes(body, MOST_DISCARDED_BYTES).await?;
            let head = format!(
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            socket.write_all(head.as_bytes()).await?;
            socket.write_all(&body).await?;
            end(&mut socket).await?;
        }
    }
    Ok(())
}

/// Speaks HTTP/1.1, and then WebSocket if the client asks for that.
async fn speak_http1(
    socket: Watched,
    protocols: Protocols,
    source: Source,
    limits: Limits,
    progress: Arc<Progress>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), axum::BoxError> {
    let counted = OpenConnection::new(Protocol::Http1);
    let handover = websocket::Handover::default();
    let (of_connection, taken) = (progress.clone(), handover.clone());
    let Protocols { http, sessions, .. } = protocols;
    let has_sessions = sessions.is_some();
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        let http = http.clone();
        request.extensions_mut().insert(source);
        if has_sessions {
            request.extensions_mut().insert(handover.clone());
        }
        let (parts, body) = request.into_parts();
        let body = RequestBody::new(body, progress.clone());
        let whole = body.whole();
        let request = hyper::Request::from_parts(parts, Body::new(body));
        let (answer, progress) = (TowerToHyperService::new(http).call(request), progress.clone());
        async move {
            let mut answer = answer.await?;
            // The rest of the body would stand before the next request, so hyper may end the connection. A client that is
            // not told would lose that request.
            if !whole.was_read() && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, progress)))
        }
    });
    let mut driven =
        pin!(http1::Builder::new().serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        biased;
        () = is_stopped(&mut stopped) => driven.as_mut().graceful_shutdown(),
        ended = driven.as_mut() => {
            ended?;
            return match (taken.take(), sessions) {
                (Some((upgrade, client)), Some(sessions)) => {
                    let service = sessions.find(client.graph())?;
                    drop(counted);
                    let _counted = OpenConnection::new(Protocol::WebSocket);
                    let upgraded = upgrade.await?.downcast::<TokioIo<Watched>>();
                    let parts = upgraded.map_err(|_| "the connection is not the one that was upgraded")?;
                    let (socket, first) = (parts.io.into_inner(), parts.read_buf);
                    Ok(websocket::serve(socket, first, service, client, source, of_connection, limits).await?)
                }
                _ => Ok(()),
            };
        }
    }
    Ok(driven.await?)
}
