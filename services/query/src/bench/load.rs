//! The load workload: files to a graph that can be queried, embedded and through a service.

use super::Bench;
use super::driver::median;
use super::identity::{Graph, source_of, wait_for_load};
use super::peers::program::Program;
use super::peers::{Kind, missing, wanted};
use super::report::{Figure, Report};
use anyhow::Context;
use std::path::Path;
use std::time::Instant;
use tidegraph_engine::loads::{Format, LoadSpec};
use tidegraph_engine::{Database, Options};

/// Loads a folder into an embedded database and waits.
pub fn load_embedded(
    database: &Database,
    folder: &Path,
) -> anyhow::Result<tidegraph_engine::loads::LoadStatus> {
    let id = database.loads().submit(LoadSpec::new(vec![source_of(folder)], Format::GremlinCsv))?;
    let status = database.loads().wait(&id)?;
    anyhow::ensure!(
        status.state.as_str() == "LOAD_COMPLETED",
        "the load ended as {}: {:?}",
        status.state.as_str(),
        status.message
    );
    Ok(status)
}

/// Loads a folder through a service and waits.
pub fn load_service(address: &str, folder: &Path) -> anyhow::Result<f64> {
    Ok(wait_for_load(address, &source_of(folder))?.as_secs_f64())
}

/// Runs the workload.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
pub fn run(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let graph = Graph::load(bench.scale(26_000, 500), bench.seed, report)?;
    let bytes: u64 =
        std::fs::read_dir(graph.files.path())?.filter_map(|e| Some(e.ok()?.metadata().ok()?.len())).sum();
    report.parameter("file_bytes", bytes);
    let mut rates = (vec![], vec![], vec![]);
    for _ in 0..bench.rounds() {
        let directory = tempfile::tempdir()?;
        let options = Options { data_dir: Some(directory.path().join("data")), ..Options::default() };
        let database = Database::open(options)?;
        let start = Instant::now();
        let status = load_embedded(&database, graph.files.path())?;
        let seconds = start.elapsed().as_secs_f64();
        let counts = database.status();
        rates.0.push((counts.vertices + counts.edges) as f64 / seconds);
        rates.1.push(status.property_values as f64 / seconds);
        rates.2.push(bytes as f64 / seconds / 1e6);
        database.close();
    }
    for values in [&mut rates.0, &mut rates.1, &mut rates.2] {
        values.sort_by(f64::total_cmp);
    }
    let middle = |values: &[f64]| values[values.len() / 2];
    report.add(Figure::rate("CSV to queryable, durable, embedded", "property values/s", middle(&rates.1)));
    let copy = report.machine().copy_gbps * 1e3;
    report.add(
        Figure::rate("CSV to queryable, durable, embedded", "MB/s", middle(&rates.2))
            .beside("memory copy", copy),
    );
    let elements = (graph.database.status().vertices + graph.database.status().edges) as f64;
    let ours = Figure::rate("CSV to queryable, durable, embedded", "elements/s", middle(&rates.0));
    report.add(ours.clone());
    for (label, rate) in peers(bench, report, &graph, elements)? {
        report.add(ours.clone().beside(&label, rate));
    }
    let directory = tempfile::tempdir()?;
    let service = super::clients::ServiceProcess::start(directory.path())?;
    let seconds = load_service(&service.address, graph.files.path())?;
    report.add(Figure::rate("CSV to queryable, durable, /loader", "elements/s", elements / seconds));
    Ok(())
}

/// Elements a second of each peer, by the ways that it offers. A fresh peer for each round.
fn peers(
    bench: &Bench,
    report: &mut Report,
    graph: &Graph,
    elements: f64,
) -> anyhow::Result<Vec<(String, f64)>> {
    let (kinds, named) = wanted(bench, &[Kind::Gremlin, Kind::Neo4j, Kind::Kuzu])?;
    let files = graph.files.path();
    let status = graph.database.status();
    let mut figures = vec![];
    for kind in kinds {
        let ways: &[(&str, bool)] = match kind {
            Kind::Neo4j => &[("UNWIND batches", false), ("neo4j-admin import and constraints", true)],
            Kind::Kuzu => &[("COPY", false)],
            _ => &[("script batches", false)],
        };
        for (way, offline) in ways {
            match rounds(bench, kind, *offline, files, (status.vertices, status.edges)) {
                Ok((label, description, seconds)) => {
                    report.parameter(&format!("peer {}", kind.name()), description);
                    figures.push((format!("{label}, {way}"), elements / seconds));
                }
                Err(error) => missing(report, kind, &error, named)?,
            }
        }
    }
    Ok(figures)
}

/// Name, description and the median of the seconds.
fn rounds(
    bench: &Bench,
    kind: Kind,
    offline: bool,
    files: &Path,
    expected: (u64, u64),
) -> anyhow::Result<(String, String, f64)> {
    let mut all = vec![];
    let mut about = (String::new(), String::new());
    for _ in 0..bench.rounds() {
        let (program, loaded) = if offline {
            Program::import(kind, files)?
        } else {
            let mut program = Program::start(kind)?;
            let loaded = program.load(files)?;
            (program, loaded)
        };
        let found = (loaded.vertices, loaded.edges);
        anyhow::ensure!(found == expected, "it loaded {found:?} vertices and edges, not {expected:?}");
        all.push(loaded.seconds);
        about = (program.name().to_owned(), program.description());
    }
    let seconds = median(all).context("no round")?;
    Ok((about.0, about.1, seconds))
}
