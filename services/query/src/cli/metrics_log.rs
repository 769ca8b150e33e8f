//! Flags of the log of metrics.

use crate::metrics::{Dimension, Dimensions, MetricsLog};
use anyhow::Context;
use clap::Args;
use std::time::Duration;

/// Flags of the log of metrics.
#[derive(Args, Debug)]
pub struct MetricsLogArgs {
    /// Write a selection of the metrics to standard output, as events in CloudWatch's embedded metric format, with this
    /// number of seconds between two of them, 1 to 3600. Without it no events are written.
    #[arg(long, env = "TIDEGRAPH_METRICS_LOG_SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    metrics_log_seconds: Option<u64>,
    /// Dimension of these metrics, such as `Deployment=production`; may be given more than once, or with commas.
    #[arg(value_delimiter = ',', requires = "metrics_log_seconds")]
    #[arg(long, env = "TIDEGRAPH_METRICS_LOG_DIMENSIONS", value_name = "NAME=VALUE")]
    metrics_log_dimension: Vec<Dimension>,
}

impl MetricsLogArgs {
    /// Installs the recorder of the log; `None`: no log is asked for.
    ///
    /// # Errors
    ///
    /// If the dimensions do not go together, or the process has a recorder already.
    pub fn install(&self) -> anyhow::Result<Option<MetricsLog>> {
        let Some(seconds) = self.metrics_log_seconds else { return Ok(None) };
        let dimensions =
            Dimensions::new(self.metrics_log_dimension.clone()).context("--metrics-log-dimension")?;
        Ok(Some(MetricsLog::install(dimensions, Duration::from_secs(seconds))?))
    }
}
