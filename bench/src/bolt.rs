//! Point reads over Bolt beside the same ones over HTTP: one at a time, and many sent ahead.

use super::Flags;
use super::clients::{Call, ServiceProcess};
use super::driver::{self, Target};
use super::identity::Graph;
use super::report::{Figure, Report};
use anyhow::{bail, ensure};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::time::Instant;
use tidegraph_bolt::packstream::write_value;
use tidegraph_bolt::{Dialect, Message, Messages, write_chunks};
use tidegraph_types::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Queries that a client sends ahead of their answers.
const AHEAD: usize = 32;
/// Clients that send ahead.
const PIPELINES: usize = 4;

const SUCCESS: u8 = 0x70;
const FAILURE: u8 = 0x7F;

/// A connection that has agreed on Bolt 5 and is let in.
pub struct BoltConnection {
    stream: TcpStream,
    messages: Messages,
    request: Vec<u8>,
    message: Vec<u8>,
}

impl BoltConnection {
    /// Connects to a server that wants no password.
    pub async fn open(address: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(&[0x60, 0x60, 0xB0, 0x17, 0, 7, 8, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
        let mut version = [0; 4];
        stream.read_exact(&mut version).await?;
        ensure!(matches!(version, [0, 0, 1..=8, 5]), "{address} speaks none of Bolt 5.1 to 5.8");
        let mut connection = Self { stream, messages: Messages::default(), request: vec![], message: vec![] };
        let scheme = Value::map(Map::from_iter([("scheme".into(), "none".into())]));
        let agent = Value::from("tidegraph-bench/1");
        let product = Value::map(Map::from_iter([("product".into(), agent.clone())]));
        let hello = Map::from_iter([("user_agent".into(), agent), ("bolt_agent".into(), product)]);
        connection.add(0x01, &[Value::map(hello)])?;
        connection.add(0x6A, &[scheme])?;
        connection.send().await?;
        connection.receive(2).await?;
        Ok(connection)
    }

    fn add(&mut self, tag: u8, fields: &[Value]) -> anyhow::Result<()> {
        self.message.clear();
        self.message.extend([0xB0 | fields.len() as u8, tag]);
        for field in fields {
            write_value(field, Dialect { element_ids: true, utc: true }, &mut self.message);
        }
        Ok(write_chunks(&self.message, &mut self.request)?)
    }

    /// Adds a query and the request of all of its rows, as drivers send them.
    fn add_query(&mut self, call: &Call) -> anyhow::Result<()> {
        let parameters = call.parameters.iter().map(|(name, value)| (Value::from(*name), value.clone()));
        let parameters = Value::map(parameters.collect());
        self.add(0x10, &[call.text.into(), parameters, Value::map(Map::new())])?;
        self.add(0x3F, &[Value::map(Map::from_iter([("n".into(), Value::Long(-1))]))])
    }

    async fn send(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.request).await?;
        self.request.clear();
        Ok(())
    }

    /// Receives messages up to the one with which `answers` requests have succeeded.
    async fn receive(&mut self, mut answers: usize) -> anyhow::Result<()> {
        while answers > 0 {
            let Some(message) = self.messages.next(usize::MAX) else {
                if self.stream.read_buf(&mut self.messages.buffer).await? == 0 {
                    bail!("the service closed the connection");
                }
                continue;
            };
            let Message::Whole(message) = message else { bail!("a message was skipped") };
            match message.get(1) {
                Some(&SUCCESS) => answers -= 1,
                Some(&FAILURE) => bail!("the service failed: {}", String::from_utf8_lossy(&message)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Target for BoltConnection {
    async fn answer(&mut self, call: &Call) -> anyhow::Result<()> {
        self.add_query(call)?;
        self.send().await?;
        self.receive(2).await
    }
}

/// What a round did, and what processor time of the service it took.
struct Cost {
    calls: u64,
    seconds: f64,
    cpu_seconds: f64,
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
        vec![Call::cypher("MATCH (n) WHERE id(n) = $id RETURN n", vec![("id", id)])]
    };
    let next: &driver::Next = &point_read;
    for clients in [1, 16] {
        let (mut http, mut bolt) = (vec![], vec![]);
        // In turn, so that what else the machine does falls on both.
        for round in 0..flags.rounds() as u64 {
            http.push(driver::network(&service.address, clients, flags.round(), round, next)?);
            bolt.push(driver::over(clients, flags.round(), round, next, || {
                BoltConnection::open(&service.address)
            })?);
        }
        let name = |part: &str| format!("point read over {part}, {clients} clients");
        let (http, bolt) = (driver::figure(name("HTTP"), &http)?, driver::figure(name("Bolt"), &bolt)?);
        if let (Some(ours), Some(theirs)) = (bolt.p50, http.p50) {
            let figure = Figure::cost(format!("{}, p50", name("Bolt")), "us", ours).beside("HTTP", theirs);
            // At most 1.2 times the latency of HTTP.
            report.add(if clients == 1 { figure.target(1.2 * theirs) } else { figure });
        }
        let rate = http.value;
        report.add(http);
        report.add(bolt.beside("HTTP", rate));
    }
    let (mut http, mut bolt) = (vec![], vec![]);
    for round in 0..flags.rounds() as u64 {
        http.push(http_cost(flags, service, round, next)?);
        bolt.push(pipelined_cost(flags, service, round, next)?);
    }
    let median =
        |costs: &[Cost], of: fn(&Cost) -> f64| driver::median(costs.iter().map(of)).unwrap_or_default();
    // The system counts processor time in steps of 10 ms, so a short round may have taken none.
    let a_core = |cost: &Cost| cost.calls as f64 / cost.cpu_seconds.max(0.01);
    let rate = |cost: &Cost| cost.calls as f64 / cost.seconds;
    let theirs = median(&http, a_core);
    let name = format!("point reads over Bolt, {PIPELINES} clients, {AHEAD} sent ahead");
    let figure =
        Figure::rate(format!("{name}, operations a core of the service"), "op/s", median(&bolt, a_core));
    report.add(figure.beside("HTTP, 16 clients", theirs).target(2.0 * theirs));
    let figure = Figure::rate(name, "op/s", median(&bolt, rate));
    report.add(figure.beside("HTTP, 16 clients", median(&http, rate)));
    Ok(())
}

/// Measures a piece of work with the processor time that the service takes for it.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn cost(service: &ServiceProcess, work: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Cost> {
    let before = service.cpu_seconds().unwrap_or_default();
    let start = Instant::now();
    let calls = work()?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = service.cpu_seconds().unwrap_or_default() - before;
    Ok(Cost { calls, seconds, cpu_seconds })
}

fn http_cost(
    flags: &Flags,
    service: &ServiceProcess,
    round: u64,
    next: &driver::Next,
) -> anyhow::Result<Cost> {
    cost(service, || Ok(driver::network(&service.address, 16, flags.round(), round, next)?.calls))
}

/// Sends queries ahead: a client always has between half of [`AHEAD`] and all of them on their way.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn pipelined_cost(
    flags: &Flags,
    service: &ServiceProcess,
    round: u64,
    next: &driver::Next,
) -> anyhow::Result<Cost> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    cost(service, || {
        runtime.block_on(async {
            let start = Instant::now();
            let clients = (0..PIPELINES as u64).map(|client| async move {
                let mut random = ChaCha8Rng::seed_from_u64(round ^ (client << 32));
                let mut connection = BoltConnection::open(&service.address).await?;
                let mut calls = 0;
                let mut on_their_way = 0;
                while start.elapsed() < flags.round() {
                    while on_their_way < AHEAD {
                        for call in next(&mut random) {
                            connection.add_query(&call)?;
                            on_their_way += 1;
                        }
                    }
                    connection.send().await?;
                    connection.receive(2 * (AHEAD / 2)).await?;
                    on_their_way -= AHEAD / 2;
                    calls += (AHEAD / 2) as u64;
                }
                connection.receive(2 * on_their_way).await?;
                anyhow::Ok(calls + on_their_way as u64)
            });
            Ok(futures_util::future::try_join_all(clients).await?.into_iter().sum())
        })
    })
}
