//! A cluster on this machine that a run may use: `scripts/bench.mjs` starts it and writes a file that says where it is.

use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where a cluster is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// Of its worker: `http://127.0.0.1:port`.
    endpoint: String,
    /// Processes of storage nodes.
    nodes: Vec<u32>,
    /// The worker's process.
    worker: u32,
    /// Processes of brokers.
    brokers: Vec<u32>,
    /// Replicas of a partition.
    rf: u32,
    /// The worker as a Lambda function.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub function: PathBuf,
    /// Variables of a function that works for it.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub environment: BTreeMap<String, String>,
    /// What a bare write to its log takes, as `tidegraph-node log-latency` says.
    #[serde(default)]
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub log_latency: Vec<String>,
}

impl Cluster {
    /// That of this run, if there is one.
    pub fn of_run() -> anyhow::Result<Option<Self>> {
        let Some(path) = std::env::var_os("TIDEGRAPH_CLUSTER") else { return Ok(None) };
        let text = std::fs::read_to_string(&path).with_context(|| path.to_string_lossy().into_owned())?;
        Ok(Some(serde_json::from_str(&text).context("the file of the cluster")?))
    }

    /// Host and port of its worker.
    pub fn address(&self) -> anyhow::Result<String> {
        let address = self.endpoint.strip_prefix("http://");
        Ok(address.with_context(|| format!("{} is no address", self.endpoint))?.to_owned())
    }

    /// All processes that work for a request: worker, nodes and brokers.
    pub fn servers(&self) -> Vec<u32> {
        self.nodes.iter().chain(&self.brokers).copied().chain([self.worker]).collect()
    }

    /// How many storage nodes it has.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// For a report.
    pub fn about(&self) -> String {
        let (nodes, brokers) = (self.nodes.len(), self.brokers.len());
        format!("{nodes} nodes, {} replicas, {brokers} broker, 1 worker", self.rf)
    }
}
