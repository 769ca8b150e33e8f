//! Logs and traces of a program.
//!
//! Flow: `main` calls [`start`] once. Logs go to standard error; `TIDEGRAPH_LOG` says which (`info` by default). With
//! the feature `otlp`, and where the environment names a collector, spans go there by OpenTelemetry's protocol, and
//! messages to other processes carry the span that they belong to (`tidegraph_platform::traces`).
//!
//! Must never: keep a request waiting for the collector. Spans wait in a queue of bounded length, and are dropped where it
//! is full.

#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
mod settings;

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Sends the spans that are left when it is dropped, at the end of the program.
#[must_use = "dropping it ends the traces"]
#[derive(Debug)]
pub struct Telemetry {
    #[cfg(feature = "otlp")]
    _exporter: Option<otlp::Exporter>,
}

/// Starts the logs of a program and, with the feature `otlp`, its traces as those of `service`. Call it before any
/// thread of an async runtime runs.
///
/// # Errors
///
/// If a variable of OpenTelemetry has a value that cannot be: the error names both.
pub fn start(service: &'static str) -> anyhow::Result<Telemetry> {
    let ansi = std::io::stderr().is_terminal();
    #[cfg(feature = "otlp")]
    if let Some(settings) = settings::Settings::of(&variable)? {
        let exporter = otlp::Exporter::start(&settings, service)?;
        exporter.install(ansi, logs());
        return Ok(Telemetry { _exporter: Some(exporter) });
    }
    let _ = service;
    tracing_subscriber::fmt().with_ansi(ansi).with_env_filter(logs()).with_writer(std::io::stderr).init();
    Ok(Telemetry {
        #[cfg(feature = "otlp")]
        _exporter: None,
    })
}

/// Returns which logs are written.
fn logs() -> EnvFilter {
    EnvFilter::try_from_env("TIDEGRAPH_LOG").unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Returns a variable of the environment; an empty one is none, as OpenTelemetry has it.
#[cfg(feature = "otlp")]
#[expect(clippy::disallowed_methods, reason = "configuration is read here")]
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)
        .map(|value| value.to_string_lossy().trim().to_owned())
        .filter(|value| !value.is_empty())
}
