//! The http workload: the HTTP layer alone, and Bolt and WebSocket beside it. It asks for `/status`, a constant in both languages, and a point read, and
//! makes the same calls inside this process.

use super::Flags;
use super::clients::{Call, Connection, ServiceProcess};
use super::driver;
use super::identity::Graph;
use super::report::{Figure, Report};
use super::{bolt, websocket};
use std::time::Instant;

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let graph = Graph::load(flags.scale(2_000, 100), flags.seed, report)?;
    let calls: [(&str, Box<driver::Next>); 3] = [
        ("openCypher constant", Box::new(|_| vec![Call::cypher("RETURN 1 AS one", vec![])])),
        ("gremlin constant", Box::new(|_| vec![Call::gremlin("g.inject(1)", vec![])])),
        (
            "openCypher point read",
            Box::new(|random| {
                let id = graph.random_ge(random);
                vec![Call::cypher("MATCH (n) WHERE id(n) = $id RETURN n", vec![("id", id)])]
            }),
        ),
    ];
    for (name, next) in &calls {
        for clients in [1, 16] {
            let rounds = (0..flags.rounds())
                .map(|r| driver::embedded(&graph.database, clients, flags.round(), r as u64, next))
                .collect::<anyhow::Result<Vec<_>>>()?;
            report.add(driver::figure(format!("{name}, {clients} clients, embedded"), &rounds)?);
        }
    }
    let (service, _directory) = graph.serve(flags)?;
    report.add(status_rate(&service, flags)?);
    for (name, next) in &calls {
        for clients in [1, 16] {
            let rounds = (0..flags.rounds())
                .map(|r| driver::network(&service.address, clients, flags.round(), r as u64, next))
                .collect::<anyhow::Result<Vec<_>>>()?;
            report.add(driver::figure(format!("{name}, {clients} clients, network"), &rounds)?);
        }
    }
    bolt::run(flags, &graph, &service, report)?;
    websocket::run(flags, &graph, &service, report)
}

/// Measures requests without a query: the cost of HTTP alone.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
fn status_rate(service: &ServiceProcess, flags: &Flags) -> anyhow::Result<Figure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rate = runtime.block_on(async {
        let mut connections = vec![];
        for _ in 0..16 {
            connections.push(Connection::open(&service.address).await?);
        }
        let start = Instant::now();
        let length = flags.round();
        let work = connections.into_iter().map(|mut connection| async move {
            let mut calls = 0_u64;
            while start.elapsed() < length {
                connection.get("/status").await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        });
        let calls: u64 = futures_util::future::try_join_all(work).await?.into_iter().sum();
        anyhow::Ok(calls as f64 / start.elapsed().as_secs_f64())
    })?;
    Ok(Figure::rate("GET /status, 16 clients, network", "op/s", rate))
}
