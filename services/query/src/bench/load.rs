//! The load workload: files to a graph that can be queried, embedded and through a service.

use super::Bench;
use super::identity::{Graph, source_of, wait_for_load};
use super::report::{Figure, Report};
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
    report.add(Figure::rate("CSV to queryable, durable, embedded", "elements/s", middle(&rates.0)));
    report.add(Figure::rate("CSV to queryable, durable, embedded", "property values/s", middle(&rates.1)));
    let copy = report.machine().copy_gbps * 1e3;
    report.add(
        Figure::rate("CSV to queryable, durable, embedded", "MB/s", middle(&rates.2))
            .beside("memory copy", copy),
    );
    let directory = tempfile::tempdir()?;
    let service = super::clients::ServiceProcess::start(directory.path())?;
    let seconds = load_service(&service.address, graph.files.path())?;
    let counts = graph.database.status();
    let elements = (counts.vertices + counts.edges) as f64;
    report.add(Figure::rate("CSV to queryable, durable, /loader", "elements/s", elements / seconds));
    Ok(())
}
