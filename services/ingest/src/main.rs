//! `tidegraph-ingest`: the steps of loads as a Lambda function. It is deployed as `bootstrap`, the name that Lambda
//! starts.

use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use tidegraph_engine::loads::Ingest;
use tidegraph_ingest::{Answer, Error, Event, Settings};
use tidegraph_platform::{Objects, RealClock, RealRandom};

// Rows are many small allocations of one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::disallowed_methods, reason = "configuration is read here")]
fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TIDEGRAPH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // Lambda writes stderr to the log group of the function.
    tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(std::io::stderr).init();
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    match Settings::read(variables).map_err(anyhow::Error::from).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("tidegraph-ingest: {error:#}");
            ExitCode::FAILURE
        }
    }
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

    fn answer(&self, event: serde_json::Value) -> Result<Answer, Diagnostic> {
        let answered = Event::read(event).and_then(|event| tidegraph_ingest::answer(self.ingest()?, event));
        answered.map_err(|error| {
            tracing::warn!(%error, name = error.name(), "a step failed");
            Diagnostic { error_type: error.name().into(), error_message: error.to_string() }
        })
    }
}

/// Answers events until the process ends.
fn run(settings: Settings) -> anyhow::Result<()> {
    let function = Arc::new(Function { settings, connected: OnceLock::new() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended =
        runtime.block_on(lambda_runtime::run(service_fn(move |event: LambdaEvent<serde_json::Value>| {
            let function = function.clone();
            // Steps block on storage and object stores.
            async move {
                let answered = tokio::task::spawn_blocking(move || function.answer(event.payload)).await;
                answered.unwrap_or_else(|error| {
                    Err(Diagnostic { error_type: "Defect".into(), error_message: error.to_string() })
                })
            }
        })));
    ended.map_err(|error| anyhow::anyhow!("the Runtime API failed: {error}"))
}
