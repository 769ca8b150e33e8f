//! `tidegraph-ingest`: the steps of loads as a Lambda function. It is deployed as `bootstrap`, the name that Lambda
//! starts.

use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use tidegraph_engine::loads::Ingest;
use tidegraph_function::Failure;
use tidegraph_ingest::{Answer, Connected, Connection, Error, OfGraph, Request, Settings};
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

/// The function. It connects to a graph when an event first needs it, or first needs the next graph of the name; after a
/// failure the next event tries again.
struct Function {
    bucket: String,
    task_bytes: u64,
    graphs: Vec<(OfGraph, Connection)>,
}

impl Function {
    fn new(settings: Settings) -> Self {
        let graphs = settings.graphs.into_iter().map(|of| (of, Connection::default()));
        Self { bucket: settings.bucket, task_bytes: settings.task_bytes, graphs: graphs.collect() }
    }

    /// Returns the steps of loads of a graph; of the first one, if none is named.
    fn connected(&self, graph: Option<&str>) -> Result<Arc<Connected>, Error> {
        let is_it = |(of, _): &&(OfGraph, Connection)| graph.is_none_or(|graph| of.access.graph == graph);
        let (of, connection) = self.graphs.iter().find(is_it).ok_or_else(|| {
            let all: Vec<_> = self.graphs.iter().map(|(of, _)| of.access.graph.as_str()).collect();
            let graph = graph.unwrap_or_default();
            Error::Invalid(format!(
                "the graph {graph:?} is not one of this function, which has {}",
                all.join(", ")
            ))
        })?;
        connection.get(|| self.connect(of))
    }

    fn connect(&self, of: &OfGraph) -> Result<Connected, Error> {
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
        Ok(Connected { worker, ingest: ingest.within(of.load_from.clone()) })
    }

    fn answer(&self, event: Value) -> Result<Answer, Failure> {
        let answered = Request::read(event).and_then(|Request { graph, event }| {
            let connected = self.connected(graph.as_deref())?;
            let answered = tidegraph_ingest::answer(&connected.ingest, event)?;
            Ok(answered.in_folder(connected.worker.graph().folder().as_deref()))
        });
        answered.map_err(|error| Failure::new(error.name(), &error))
    }
}
