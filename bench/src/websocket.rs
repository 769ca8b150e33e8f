//! Point reads over WebSocket beside the same ones over HTTP.

use super::Flags;
use super::clients::{Call, ServiceProcess};
use super::driver::{self, Target};
use super::identity::Graph;
use super::report::{Figure, Report};
use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_gremlin_io::Format;
use tidegraph_types::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

const SUCCESS: u32 = 200;
const NO_CONTENT: u32 = 204;
/// More messages of the answer follow.
const PARTIAL: u32 = 206;

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// A connection that asks in GraphBinary, as drivers do by default.
pub struct WebSocketConnection {
    socket: WebSocketStream<TcpStream>,
    /// Of its requests, of which one runs at a time.
    id: [u8; 16],
}

impl WebSocketConnection {
    /// Connects to a server that wants no password.
    pub async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (socket, _) = tokio_tungstenite::client_async(format!("ws://{address}/gremlin"), stream).await?;
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { socket, id: u128::from(number).to_be_bytes() })
    }
}

fn text(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend((text.len() as u32).to_be_bytes());
    bytes.extend(text.as_bytes());
}

fn typed(value: &str, bytes: &mut Vec<u8>) {
    bytes.extend([3, 0]);
    text(value, bytes);
}

/// Writes a script with its bindings, which are texts.
fn message(id: [u8; 16], call: &Call) -> anyhow::Result<Vec<u8>> {
    let format = Format::Binary.media_type();
    let mut bytes = vec![format.len() as u8];
    bytes.extend(format.as_bytes());
    bytes.push(0x81);
    bytes.extend(id);
    text("eval", &mut bytes);
    text("", &mut bytes);
    bytes.extend(2_u32.to_be_bytes());
    typed("gremlin", &mut bytes);
    typed(call.text, &mut bytes);
    typed("bindings", &mut bytes);
    bytes.extend([0x0A, 0]);
    bytes.extend((call.parameters.len() as u32).to_be_bytes());
    for (name, value) in &call.parameters {
        typed(name, &mut bytes);
        let Value::String(value) = value else { bail!("the binding {name} is not a text") };
        typed(value, &mut bytes);
    }
    Ok(bytes)
}

impl Target for WebSocketConnection {
    async fn answer(&mut self, call: &Call) -> anyhow::Result<()> {
        self.socket.send(Message::binary(message(self.id, call)?)).await?;
        loop {
            let message = self.socket.next().await.context("the service closed the connection")??;
            let Message::Binary(bytes) = message else { continue };
            // A version, a flag and an id come before the number.
            let number = bytes.get(18..22).and_then(|number| number.try_into().ok()).map(u32::from_be_bytes);
            return match number {
                Some(PARTIAL) => continue,
                Some(SUCCESS | NO_CONTENT) => Ok(()),
                _ => bail!("the service failed: {}", String::from_utf8_lossy(&bytes)),
            };
        }
    }
}

/// Runs the workload beside that of HTTP.
pub fn run(
    flags: &Flags,
    graph: &Graph,
    service: &ServiceProcess,
    report: &mut Report,
) -> anyhow::Result<()> {
    let point_read = |random: &mut ChaCha8Rng| {
        let id = graph.random_ge(random);
        vec![Call::gremlin("g.V(x)", vec![("x", id)])]
    };
    let next: &driver::Next = &point_read;
    for clients in [1, 16] {
        let (mut http, mut ours) = (vec![], vec![]);
        // In turn, so that what else the machine does falls on both.
        for round in 0..flags.rounds() as u64 {
            http.push(driver::network(&service.address, clients, flags.round(), round, next)?);
            ours.push(driver::over(clients, flags.round(), round, next, || {
                WebSocketConnection::open(&service.address)
            })?);
        }
        let name = |part: &str| format!("Gremlin point read over {part}, {clients} clients");
        let (http, ours) = (driver::figure(name("HTTP"), &http)?, driver::figure(name("WebSocket"), &ours)?);
        if let (Some(over), Some(beside)) = (ours.p50, http.p50) {
            let figure =
                Figure::cost(format!("{}, p50", name("WebSocket")), "us", over).beside("HTTP", beside);
            // At most 1.2 times the latency of HTTP.
            report.add(if clients == 1 { figure.target(1.2 * beside) } else { figure });
        }
        let rate = http.value;
        report.add(http);
        report.add(ours.beside("HTTP", rate));
    }
    Ok(())
}
