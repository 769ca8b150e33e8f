//! `tidegraph bench`: the workloads of the benchmarks, a file each.
//!
//! Every run first measures the machine (`machine`), so that figures can be read as ratios to what it can do. `driver`
//! keeps a number of clients busy against a `Target`, embedded or over the network; `report` prints a table and writes
//! JSON; `peers` are other databases and `versus` asks us and them in turn. Times are read from the real clock: this is the one part of the service that measures the world.

mod clients;
mod cluster;
mod commit;
mod driver;
#[cfg(feature = "lambda")]
mod fleet;
mod http;
mod identity;
mod load;
mod machine;
mod peers;
mod pokec;
mod recover;
mod report;
mod scan;
mod versus;
mod ycsb;

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Workload {
    /// Identity graph: short reads and writes.
    Identity,
    /// Social graph: point reads, two hops, shortest paths, aggregation.
    Pokec,
    /// Files to a graph that can be queried.
    Load,
    /// What the HTTP layer itself can do.
    Http,
    /// What a transaction costs, without a language in front of it.
    Commit,
    /// Checkpoint, restore, and starting from the log.
    Recover,
    /// Frontiers, scans, point reads and searches, without a language in front of them.
    Scan,
    /// Records by key: read, inserted, changed, deleted; embedded and in a cluster.
    Ycsb,
    /// What lies between a worker and the nodes: reads, commits, and the start of a function.
    #[cfg(feature = "lambda")]
    Fleet,
}

/// Flags of `bench`.
#[derive(Args, Clone, Debug)]
pub struct Bench {
    /// Which workload.
    #[arg(value_enum)]
    workload: Workload,
    /// Size of the graph: golden entities (identity, load, http), records (ycsb), vertices (fleet), or the exponent of the vertices (pokec, scan).
    #[arg(long)]
    scale: Option<u64>,
    /// Seed of graph and start ids.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Write the report here as JSON too.
    #[arg(long)]
    json: Option<PathBuf>,
    /// A small graph and short rounds: to see that it runs, not for figures.
    #[arg(long)]
    quick: bool,
    /// What to measure beside, with commas between; without it, what can be had.
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Option<Vec<peers::Kind>>,
    /// Rounds; medians are reported.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only these parts of the identity workload: SR1 to SR5, SW1 to SW5, mixed.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Length of a round, in milliseconds.
    #[arg(long)]
    round_ms: Option<u64>,
}

impl Bench {
    /// Runs the workload.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut report = report::Report::begin(&self);
        match self.workload {
            Workload::Identity => identity::run(&self, &mut report)?,
            Workload::Pokec => pokec::run(&self, &mut report)?,
            Workload::Load => load::run(&self, &mut report)?,
            Workload::Http => {
                peers::wanted(&self, &[])?;
                http::run(&self, &mut report)?;
            }
            Workload::Commit => {
                peers::wanted(&self, &[])?;
                commit::run(&self, &mut report)?;
            }
            Workload::Recover => {
                peers::wanted(&self, &[])?;
                recover::run(&self, &mut report)?;
            }
            Workload::Scan => {
                peers::wanted(&self, &[])?;
                scan::run(&self, &mut report)?;
            }
            Workload::Ycsb => ycsb::run(&self, &mut report)?,
            #[cfg(feature = "lambda")]
            Workload::Fleet => {
                peers::wanted(&self, &[])?;
                fleet::run(&self, &mut report)?;
            }
        }
        report.end(self.json.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }

    fn name(&self) -> &'static str {
        match self.workload {
            Workload::Identity => "identity",
            Workload::Pokec => "pokec",
            Workload::Load => "load",
            Workload::Http => "http",
            Workload::Commit => "commit",
            Workload::Recover => "recover",
            Workload::Scan => "scan",
            Workload::Ycsb => "ycsb",
            #[cfg(feature = "lambda")]
            Workload::Fleet => "fleet",
        }
    }

    fn scale(&self, full: u64, quick: u64) -> u64 {
        self.scale.unwrap_or(if self.quick { quick } else { full })
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 }).max(1)
    }

    fn round(&self) -> Duration {
        Duration::from_millis(self.round_ms.unwrap_or(if self.quick { 300 } else { 3_000 }))
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name.eq_ignore_ascii_case(part))
    }
}
