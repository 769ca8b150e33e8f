//! What a bare write to the cluster's Kafka takes, as its own tool says: this process has no client for it.

use super::BYTES;
use crate::bench::cluster::Cluster;
use anyhow::{Context, ensure};
use std::process::Command;

/// p50 of so many writes, one after the other, in microseconds.
pub fn latency(cluster: &Cluster, count: usize) -> anyhow::Result<f64> {
    let (program, arguments) = cluster.log_latency.split_first().context("no command for the log")?;
    let sizes = ["--writes", &count.to_string(), "--bytes", &BYTES.to_string()].map(str::to_owned);
    let output = Command::new(program).args(arguments).args(sizes).output()?;
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "the log could not be measured: {error}");
    let said: serde_json::Value = serde_json::from_str(&said)?;
    said["p50_us"].as_f64().with_context(|| format!("no p50 in {said}"))
}
