//! The cluster on this machine that a run may use. `scripts/bench.mjs` starts it and describes it in a file.

use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The description of a cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// URL of the worker: `http://127.0.0.1:PORT`.
    endpoint: String,
    /// Process ids of the storage nodes.
    nodes: Vec<u32>,
    /// Process id of the worker.
    worker: u32,
    /// Process ids of the brokers.
    brokers: Vec<u32>,
    /// Number of replicas of a partition.
    rf: u32,
    /// Path of the worker as a Lambda function.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub function: PathBuf,
    /// Environment variables of a function of this cluster.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub environment: BTreeMap<String, String>,
    /// Command that measures a bare write to the log: `tidegraph-node log-latency` with its flags.
    #[serde(default)]
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub log_latency: Vec<String>,
}

impl Cluster {
    /// Reads the description that `TIDEGRAPH_CLUSTER` names. Returns `None` if the variable is not set.
    pub fn of_run() -> anyhow::Result<Option<Self>> {
        let Some(path) = std::env::var_os("TIDEGRAPH_CLUSTER") else { return Ok(None) };
        let text = std::fs::read_to_string(&path).with_context(|| path.to_string_lossy().into_owned())?;
        Ok(Some(
            serde_json::from_str(&text)
                .context("the file that TIDEGRAPH_CLUSTER names is not a description of a cluster")?,
        ))
    }

    /// Returns host and port of the worker.
    pub fn address(&self) -> anyhow::Result<String> {
        let address = self.endpoint.strip_prefix("http://");
        Ok(address
            .with_context(|| format!("the endpoint {:?} does not begin with http://", self.endpoint))?
            .to_owned())
    }

    /// Returns the ids of all processes that work for a request: worker, nodes and brokers.
    pub fn servers(&self) -> Vec<u32> {
        self.nodes.iter().chain(&self.brokers).copied().chain([self.worker]).collect()
    }

    /// Returns the number of storage nodes.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "the workload `fleet` reads it"))]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Describes the cluster for a report.
    pub fn about(&self) -> String {
        let (nodes, brokers) = (self.nodes.len(), self.brokers.len());
        format!("{nodes} nodes, {} replicas, {brokers} broker, 1 worker", self.rf)
    }
}
