//! `tidegraph-rebalance`: the steps as a Lambda function. It is deployed as `bootstrap`, the name that Lambda starts.

use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use std::process::ExitCode;
use std::sync::Arc;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_rebalance::{Answer, Error, Event, Settings, Steps};

#[expect(clippy::disallowed_methods, reason = "configuration is read here")]
fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TIDEGRAPH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // Standard error goes to the function's log group.
    tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(std::io::stderr).init();
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    match Settings::read(variables).map_err(anyhow::Error::from).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("tidegraph-rebalance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Connects to the map and answers events until Lambda ends the process.
fn run(settings: Settings) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let mut options = match &settings.endpoint {
        Some(endpoint) if settings.is_local => DynamoOptions::local(endpoint.as_str()),
        endpoint => DynamoOptions {
            endpoint: endpoint.clone(),
            region: settings.region.clone(),
            from_environment: true,
            ..DynamoOptions::default()
        },
    };
    options.table_prefix.clone_from(&settings.table_prefix);
    let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom))?;
    let steps = Arc::new(Steps::new(settings, Arc::new(map), clock));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended =
        runtime.block_on(lambda_runtime::run(service_fn(move |event: LambdaEvent<serde_json::Value>| {
            let steps = steps.clone();
            // Steps block while the map answers.
            async move {
                let answered = tokio::task::spawn_blocking(move || answer(&steps, event.payload)).await;
                answered.unwrap_or_else(|error| {
                    Err(Diagnostic { error_type: "Defect".into(), error_message: error.to_string() })
                })
            }
        })));
    ended.map_err(|error| anyhow::anyhow!("the Runtime API failed: {error}"))
}

fn answer(steps: &Steps, event: serde_json::Value) -> Result<Answer, Diagnostic> {
    let parsed = serde_json::from_value::<Event>(event).map_err(Error::Unreadable);
    parsed.and_then(|event| steps.answer(event)).map_err(|error| {
        tracing::warn!(%error, "a step failed");
        Diagnostic { error_type: error.name().into(), error_message: error.to_string() }
    })
}
