//! The load workload: loads files until the graph can be queried, in this process and through a service.

use super::Flags;
use super::driver::median;
use super::identity::{Graph, source_of, wait_for_load};
use super::peers::program::Program;
use super::peers::{Kind, missing, wanted};
use super::report::{Figure, Report};
use std::path::Path;
use std::time::Instant;
use tidegraph_engine::loads::{Dialect, LoadSpec};
use tidegraph_engine::{Database, Options};

/// Loads a folder into a database in this process and waits for the end of the load.
pub fn load_embedded(
    database: &Database,
    folder: &Path,
) -> anyhow::Result<tidegraph_engine::loads::LoadStatus> {
    let id = database.loads().submit(LoadSpec::new(vec![source_of(folder)], Some(Dialect::GREMLIN)))?;
    let status = database.loads().wait(&id)?;
    anyhow::ensure!(
        status.overall.state.as_str() == "LOAD_COMPLETED",
        "the load ended as {}: {:?}",
        status.overall.state.as_str(),
        status.overall.message
    );
    Ok(status)
}

/// Loads a folder through a service and returns the seconds until the end of the load.
pub fn load_service(address: &str, folder: &Path) -> anyhow::Result<f64> {
    Ok(wait_for_load(address, &source_of(folder))?.as_secs_f64())
}

/// Runs the workload.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let graph = Graph::load(flags.scale(26_000, 500), flags.seed, report)?;
    let bytes: u64 =
        std::fs::read_dir(graph.files.path())?.filter_map(|e| Some(e.ok()?.metadata().ok()?.len())).sum();
    report.parameter("file_bytes", bytes);
    let elements = (graph.database.status().vertices + graph.database.status().edges) as f64;
    let (mut ways, named) = Way::all(flags)?;
    let mut rates = (vec![], vec![], vec![]);
    for _ in 0..flags.rounds() {
        let directory = tempfile::tempdir()?;
        let options = Options { data_dir: Some(directory.path().join("data")), ..Options::default() };
        let database = Database::open(options)?;
        let start = Instant::now();
        let status = load_embedded(&database, graph.files.path())?;
        let seconds = start.elapsed().as_secs_f64();
        rates.0.push(elements / seconds);
        rates.1.push(status.property_values as f64 / seconds);
        rates.2.push(bytes as f64 / seconds / 1e6);
        database.close();
        let mut able = vec![];
        for mut way in ways {
            match way.round(report, &graph) {
                Ok(()) => able.push(way),
                Err(error) => missing(report, way.kind, &error, named)?,
            }
        }
        ways = able;
    }
    let middle = |values: &[f64]| median(values.iter().copied()).unwrap_or(f64::NAN);
    let ours = Figure::rate("CSV to queryable, durable, embedded", "elements/s", middle(&rates.0));
    if ways.is_empty() {
        report.add(ours.clone());
    }
    for way in &ways {
        report.add(ours.clone().beside(&way.label, middle(&way.rates)));
    }
    report.add(Figure::rate("CSV to queryable, durable, embedded", "property values/s", middle(&rates.1)));
    let copy = report.machine().copy_gbps * 1e3;
    report.add(
        Figure::rate("CSV to queryable, durable, embedded", "MB/s", middle(&rates.2))
            .beside("memory copy", copy),
    );
    let directory = tempfile::tempdir()?;
    let service = super::clients::ServiceProcess::start(flags, directory.path(), graph.files.path())?;
    let seconds = load_service(&service.address, graph.files.path())?;
    report.add(Figure::rate("CSV to queryable, durable, /loader", "elements/s", elements / seconds));
    Ok(())
}

/// A way to load files into a peer, which starts empty in each round.
struct Way {
    kind: Kind,
    name: &'static str,
    /// Whether it uses the peer's offline importer.
    offline: bool,
    label: String,
    rates: Vec<f64>,
}

impl Way {
    /// Returns the ways of all peers that the run asks for, and whether they were named.
    fn all(flags: &Flags) -> anyhow::Result<(Vec<Self>, bool)> {
        let (kinds, named) = wanted(flags, &[Kind::Gremlin, Kind::Neo4j, Kind::Kuzu])?;
        let ways = kinds.into_iter().flat_map(|kind| {
            let names: &[(&'static str, bool)] = match kind {
                Kind::Neo4j => &[("UNWIND batches", false), ("neo4j-admin import and constraints", true)],
                Kind::Kuzu => &[("COPY", false)],
                _ => &[("script batches", false)],
            };
            names.iter().map(move |&(name, offline)| Self {
                kind,
                name,
                offline,
                label: String::new(),
                rates: vec![],
            })
        });
        Ok((ways.collect(), named))
    }

    fn round(&mut self, report: &mut Report, graph: &Graph) -> anyhow::Result<()> {
        let files = graph.files.path();
        let (program, loaded) = if self.offline {
            Program::import(self.kind, files)?
        } else {
            let mut program = Program::start(self.kind)?;
            let loaded = program.load(files)?;
            (program, loaded)
        };
        let status = graph.database.status();
        loaded.expect(status.vertices, status.edges)?;
        self.rates.push((loaded.vertices + loaded.edges) as f64 / loaded.seconds);
        self.label = format!("{}, {}", program.name(), self.name);
        report.parameter(&format!("peer {}", self.kind.name()), program.description());
        Ok(())
    }
}
