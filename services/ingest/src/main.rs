//! `tidegraph-ingest`: the steps of loads as a Lambda function. It is deployed as `bootstrap`, the name that Lambda
//! starts.

use serde_json::Value;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use tidegraph_engine::loads::Ingest;
use tidegraph_function::Failure;
use tidegraph_ingest::{Answer, Error, Event, Settings};
use tidegraph_platform::{Objects, RealClock, RealRandom};

// Rows are many small allocations of one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegraph_function::main("tidegraph-ingest", |variables| {
        let function = Function { settings: Settings::read(variables)?, connected: OnceLock::new() };
        Ok(move |event| function.answer(event))
    })
}

/// The function. It connects to the fleet when an event first needs it; after a failure the next event tries again.
struct Function {
    settings: Settings,
    connected: OnceLock<(Arc<tidegraph_fleet::Worker>, Ingest)>,
}

impl Function {
    fn ingest(&self) -> Result<&Ingest, Error> {
        if let Some((worker, ingest)) = self.connected.get() {
            // The process may have been suspended since the last event, so its versions may be old.
            worker.refresh_version();
            return Ok(ingest);
        }
        let away = |error: &dyn std::fmt::Display| {
            Error::Unavailable(format!("the fleet cannot be reached: {error}"))
        };
        let worker = self.settings.access.connect().map_err(|error| away(&error))?;
        let objects = Objects::s3(&self.settings.bucket, None, []);
        let objects = objects.and_then(|objects| match worker.graph().folder() {
            Some(folder) => objects.below(&folder),
            None => Ok(objects),
        });
        let objects = objects.map_err(|error| Error::Invalid(error.to_string()))?;
        let ingest = Ingest::new(
            worker.clone(),
            Arc::new(objects),
            Arc::new(RealClock::new()),
            Arc::new(RealRandom),
            self.settings.task_bytes,
        )
        .within(self.settings.load_from.clone());
        Ok(&self.connected.get_or_init(|| (worker, ingest)).1)
    }

    fn answer(&self, event: Value) -> Result<Answer, Failure> {
        let answered = Event::read(event).and_then(|event| tidegraph_ingest::answer(self.ingest()?, event));
        answered.map_err(|error| Failure::new(error.name(), &error))
    }
}
