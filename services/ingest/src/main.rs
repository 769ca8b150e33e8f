//! `tidegraph-ingest`: the steps of loads as a Lambda function. It is deployed as `bootstrap`, the name that Lambda
//! starts.

use serde_json::Value;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use tidegraph_engine::loads::Ingest;
use tidegraph_fleet::Worker;
use tidegraph_function::Failure;
use tidegraph_ingest::{Answer, Error, OfGraph, Request, Settings};
use tidegraph_platform::{Objects, RealClock, RealRandom};

// Rows are many small allocations of one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegraph_function::main("tidegraph-ingest", |variables| {
        let function = Function::new(Settings::read(variables)?);
        Ok(move |event| function.answer(event))
    })
}

/// The function. It connects to a graph when an event first needs it; after a failure the next event tries again.
struct Function {
    bucket: String,
    task_bytes: u64,
    graphs: Vec<Connection>,
}

/// A graph of the function.
struct Connection {
    of: OfGraph,
    connected: OnceLock<(Arc<Worker>, Ingest)>,
}

impl Function {
    fn new(settings: Settings) -> Self {
        let graphs = settings.graphs.into_iter().map(|of| Connection { of, connected: OnceLock::new() });
        Self { bucket: settings.bucket, task_bytes: settings.task_bytes, graphs: graphs.collect() }
    }

    /// Returns the steps of loads of a graph; of the first one, if none is named.
    fn ingest(&self, graph: Option<&str>) -> Result<(&Worker, &Ingest), Error> {
        let is_it = |one: &&Connection| graph.is_none_or(|graph| one.of.access.graph == graph);
        let found = self.graphs.iter().find(is_it).ok_or_else(|| {
            let all: Vec<_> = self.graphs.iter().map(|one| one.of.access.graph.as_str()).collect();
            let graph = graph.unwrap_or_default();
            Error::Invalid(format!(
                "the graph {graph:?} is not one of this function, which has {}",
                all.join(", ")
            ))
        })?;
        if let Some((worker, ingest)) = found.connected.get() {
            // The process may have been suspended since the last event, so its versions may be old.
            worker.refresh_version();
            return Ok((worker, ingest));
        }
        let (worker, ingest) = self.connect(&found.of)?;
        let (worker, ingest) = found.connected.get_or_init(|| (worker, ingest));
        Ok((worker, ingest))
    }

    fn connect(&self, of: &OfGraph) -> Result<(Arc<Worker>, Ingest), Error> {
        let away = |error: &dyn std::fmt::Display| {
            Error::Unavailable(format!("the fleet cannot be reached: {error}"))
        };
        let worker = of.access.connect().map_err(|error| away(&error))?;
        let objects = Objects::s3(&self.bucket, None, []);
        let objects = objects.and_then(|objects| match worker.graph().folder() {
            Some(folder) => objects.below(&folder),
            None => Ok(objects),
        });
        let objects = objects.map_err(|error| Error::Invalid(error.to_string()))?;
        let (clock, random) = (Arc::new(RealClock::new()), Arc::new(RealRandom));
        let ingest = Ingest::new(worker.clone(), Arc::new(objects), clock, random, self.task_bytes);
        Ok((worker, ingest.within(of.load_from.clone())))
    }

    fn answer(&self, event: Value) -> Result<Answer, Failure> {
        let answered = Request::read(event).and_then(|Request { graph, event }| {
            let (worker, ingest) = self.ingest(graph.as_deref())?;
            let answered = tidegraph_ingest::answer(ingest, event)?;
            Ok(answered.in_folder(worker.graph().folder().as_deref()))
        });
        answered.map_err(|error| Failure::new(error.name(), &error))
    }
}
