//! The report of a run: a table for people, JSON for programs.

use super::machine::Machine;
use serde::Serialize;
use std::path::Path;

/// The direction in which a figure improves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// A figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// What was measured.
    pub metric: String,
    /// Unit of the value.
    pub unit: &'static str,
    /// Median of the rounds.
    pub value: f64,
    /// The direction in which the figure improves.
    pub better: Better,
    /// Latency in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// Latency in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Latency in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
    /// Name of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The figure of the peer, from the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_value: Option<f64>,
    /// Ratio to the figure of the peer; above 1 if Tidegraph is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether the value meets the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

impl Figure {
    /// Returns a figure of which more is better.
    pub fn rate(metric: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self::new(metric, unit, value, Better::Higher)
    }

    /// Returns a figure of which less is better.
    pub fn cost(metric: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self::new(metric, unit, value, Better::Lower)
    }

    fn new(metric: impl Into<String>, unit: &'static str, value: f64, better: Better) -> Self {
        Self {
            metric: metric.into(),
            unit,
            value,
            better,
            p50: None,
            p99: None,
            p999: None,
            peer: None,
            peer_value: None,
            ratio: None,
            target: None,
            met: None,
        }
    }

    /// Adds latencies in microseconds.
    #[must_use]
    pub fn latency(mut self, p50: f64, p99: f64, p999: f64) -> Self {
        (self.p50, self.p99, self.p999) = (Some(p50), Some(p99), Some(p999));
        self
    }

    /// Adds the target.
    #[must_use]
    pub fn target(mut self, target: f64) -> Self {
        self.target = Some(target);
        self.met = Some(match self.better {
            Better::Higher => self.value >= target,
            Better::Lower => self.value <= target,
        });
        self
    }

    /// Adds the figure of a peer.
    #[must_use]
    pub fn beside(mut self, peer: &str, value: f64) -> Self {
        self.peer = Some(peer.to_owned());
        self.peer_value = Some(value);
        self.ratio = Some(match self.better {
            Better::Higher => self.value / value,
            Better::Lower => value / self.value,
        });
        self
    }
}

/// The report of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    name: &'static str,
    commit: String,
    machine: Machine,
    parameters: serde_json::Map<String, serde_json::Value>,
    results: Vec<Figure>,
}

impl Report {
    /// Measures the machine and begins the report of a workload.
    pub fn begin(name: &'static str, quick: bool) -> Self {
        let commit = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
        let commit = commit.ok().filter(|o| o.status.success());
        let commit = commit.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
        let machine = Machine::measure(quick);
        eprintln!(
            "machine: {} ({} cores, {} GiB); {:.1} M random reads/s, copy {:.1} GB/s, fdatasync {:.0} us",
            machine.cpu,
            machine.cores,
            machine.memory,
            machine.gather_mops,
            machine.copy_gbps,
            machine.fdatasync_us
        );
        Self {
            name,
            commit: commit.unwrap_or_else(|| "unknown".to_owned()),
            machine,
            parameters: serde_json::Map::new(),
            results: vec![],
        }
    }

    /// Returns the limits of the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Adds a parameter of the run.
    pub fn parameter(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.parameters.insert(name.to_owned(), value.into());
    }

    /// Adds a figure and prints it.
    pub fn add(&mut self, figure: Figure) {
        let peer = match (&figure.peer, figure.peer_value, figure.ratio) {
            (Some(peer), Some(value), Some(ratio)) => format!("  {peer} {}  ratio {ratio:.2}", short(value)),
            _ => String::new(),
        };
        let latency = match (figure.p50, figure.p99, figure.p999) {
            (Some(p50), Some(p99), Some(p999)) => format!("  p50 {p50:.0} p99 {p99:.0} p99.9 {p999:.0} us"),
            _ => String::new(),
        };
        let target = match (figure.target, figure.met) {
            (Some(target), Some(met)) => {
                format!("  target {} {}", short(target), if met { "met" } else { "missed" })
            }
            _ => String::new(),
        };
        eprintln!("{:44} {:>12} {}{latency}{peer}{target}", figure.metric, short(figure.value), figure.unit);
        self.results.push(figure);
    }

    /// Writes the report as JSON, to a file if there is one, else to standard output.
    pub fn end(self, file: Option<&Path>) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(&self)?;
        if let Some(path) = file {
            std::fs::write(path, format!("{json}\n"))?;
        } else {
            println!("{json}");
        }
        Ok(())
    }
}

fn short(value: f64) -> String {
    if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
