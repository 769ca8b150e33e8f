//! Measures a bare write to the Kafka of the cluster with `tidegraph-node log-latency`, because this process has no
//! client for Kafka.

use super::BYTES;
use crate::cluster::Cluster;
use anyhow::{Context, ensure};
use std::process::Command;

/// Returns the p50 in microseconds of `count` consecutive writes, while `followers` clients follow the topic.
pub fn latency(cluster: &Cluster, count: usize, followers: usize) -> anyhow::Result<f64> {
    let (program, arguments) = cluster.log_latency.split_first().context("no command for the log")?;
    let numbers = [("--writes", count), ("--bytes", BYTES), ("--followers", followers)];
    let sizes = numbers.into_iter().flat_map(|(name, number)| [name.to_owned(), number.to_string()]);
    let output = Command::new(program).args(arguments).args(sizes).output()?;
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "the log could not be measured: {error}");
    let said: serde_json::Value = serde_json::from_str(&said)?;
    said["p50_us"].as_f64().with_context(|| format!("no p50 in {said}"))
}
