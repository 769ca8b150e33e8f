//! The metrics of the process: for Prometheus, which asks for them, and for CloudWatch, which reads them from the log.
//!
//! Roles: [`prometheus`] is the recorder behind `GET /metrics`; a [`MetricsLog`] is a second one beside it, which keeps a
//! selection (`selection`) and writes it to standard output as events in CloudWatch's embedded metric format (`event`),
//! where it is asked for. A process has one recorder of each, which all its services share.
//!
//! What must never happen: a request waits for standard output. A thread of its own writes the events.

mod event;
mod log;
mod recorder;
mod selection;
#[cfg(test)]
mod tests;

pub use log::{MetricsLog, RunningLog};
pub use selection::{Dimension, Dimensions, WrongDimension};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use metrics_util::layers::FanoutBuilder;
use recorder::LogRecorder;
use std::sync::OnceLock;
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock, metric};

/// Time between two times at which the values of histograms are added to their buckets. Until then each value takes
/// memory, whether anybody asks for `/metrics` or not.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Returns the recorder that `GET /metrics` reads, and installs it at the first call. `None` if the process has another
/// recorder.
pub(crate) fn prometheus() -> Option<&'static PrometheusHandle> {
    install(&mut None)
}

/// Installs the recorders of the process, unless they are. Takes `log` if it is one of them.
fn install(log: &mut Option<LogRecorder>) -> Option<&'static PrometheusHandle> {
    static INSTALLED: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| match set_recorder(log.take()) {
        Ok(handle) => {
            metric::describe();
            keep_up(handle.clone());
            Some(handle)
        }
        Err(error) => {
            tracing::warn!(%error, "the recorder of metrics could not be installed: no metrics are collected");
            None
        }
    });
    installed.as_ref()
}

fn set_recorder(log: Option<LogRecorder>) -> anyhow::Result<PrometheusHandle> {
    let recorder = PrometheusBuilder::new().set_buckets(&metric::BUCKETS)?.build_recorder();
    let handle = recorder.handle();
    match log {
        None => metrics::set_global_recorder(recorder)?,
        // The error has the recorder, which not all threads may have.
        Some(log) => {
            metrics::set_global_recorder(beside(recorder, log)).map_err(|error| anyhow::anyhow!("{error}"))?
        }
    }
    Ok(handle)
}

/// Returns a recorder that gives everything to both.
fn beside(prometheus: PrometheusRecorder, log: LogRecorder) -> impl metrics::Recorder + Sync {
    FanoutBuilder::default().add_recorder(prometheus).add_recorder(log).build()
}

/// Starts the thread that adds values of histograms to their buckets as long as the process runs.
fn keep_up(handle: PrometheusHandle) {
    let started = tidegraph_platform::spawn("metrics", move || {
        let clock = RealClock::new();
        loop {
            clock.sleep(UPKEEP_EVERY);
            handle.run_upkeep();
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "no thread for metrics: the memory of histograms grows until /metrics is read");
    }
}
