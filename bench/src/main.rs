//! `tidegraph-bench`: the benchmarks of Tidegraph, which are not part of the product.
//!
//! Roles: each workload has a file and a subcommand. `machine` measures the machine at the start of every run, so that
//! figures can be read as ratios to what it can do. `driver` keeps a number of clients busy against a database in this
//! process or a service in its own. `peers` are other databases, and `versus` asks them and Tidegraph in turn. `report`
//! prints a table and writes JSON. `micro` holds measurements of single crates, which print text.
//!
//! A workload that needs a service starts the shipped `tidegraph` binary ([`Flags::service`]). All times are read from
//! the real clock, because benchmarks measure the real machine.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "benchmarks measure the real machine"
)]

mod bolt;
mod clients;
mod cluster;
mod commit;
mod driver;
mod drivers;
#[cfg(feature = "fleet")]
mod fleet;
mod generated;
mod gremlin;
mod http;
mod identity;
mod kronecker;
mod load;
mod lsqb;
mod machine;
mod micro;
mod peers;
mod pokec;
mod rebalance;
mod recover;
mod report;
mod scan;
mod snb;
mod versus;
mod websocket;
mod ycsb;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

// The allocator of the service.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Tidegraph against a workload.
#[derive(Parser, Debug)]
#[command(name = "tidegraph-bench", version, about, propagate_version = true)]
struct Bench {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand, Debug)]
enum Workload {
    /// Identity graph: short reads and writes.
    Identity(Flags),
    /// Social graph: point reads, two hops, shortest paths, aggregation.
    Pokec(Flags),
    /// Network of persons and messages: the nine counts of the Labelled Subgraph Query Benchmark.
    Lsqb(Flags),
    /// The same network with properties: the short and the complex reads of LDBC's SNB Interactive workload.
    Snb(Flags),
    /// Traversals of Gremlin beside the same without repeats, and searches.
    Gremlin(Flags),
    /// Loading files until the graph can be queried.
    Load(Flags),
    /// The HTTP layer alone, and Bolt beside it.
    Http(Flags),
    /// Reads through the drivers of TinkerPop and Neo4j, beside the servers that they were made for.
    Drivers(Flags),
    /// The cost of a transaction without a query language.
    Commit(Flags),
    /// Writing a checkpoint, restoring it, and starting from the log.
    Recover(Flags),
    /// Restoring replicas beside what the object store gives, and moves and upgrades of a fleet of 100 nodes.
    Rebalance(Flags),
    /// Frontiers, scans, point reads and searches without a query language.
    Scan(Flags),
    /// Records by key: read, insert, update, delete; in one process and in a cluster.
    Ycsb(Flags),
    /// A worker and its nodes: reads, commits, and the start of a function.
    #[cfg(feature = "fleet")]
    Fleet(Flags),
    /// Measurements of single crates.
    Micro(micro::Micro),
}

/// Flags of every workload.
#[derive(Args, Clone, Debug)]
struct Flags {
    /// Size of the graph: golden entities (identity, load, http, drivers, recover), records (ycsb), vertices (fleet, and of
    /// a replica: rebalance),
    /// persons (lsqb, snb), or the exponent of the number of vertices (pokec, gremlin, scan).
    #[arg(long)]
    scale: Option<u64>,
    /// Seed of the graph and of the start ids.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Also write the report to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Use a small graph and short rounds: shows that the workload runs; its figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Peers to measure beside, separated by commas. Without it: every peer that can be started.
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Option<Vec<peers::Kind>>,
    /// Number of rounds; the report shows medians.
    #[arg(long)]
    rounds: Option<usize>,
    /// Run only these parts of the workloads identity and drivers (SR1 to SR5, SW1 to SW5, mixed), lsqb (q1 to q9) and
    /// snb (IS1 to IS7, IC1 to IC14).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Length of a round in milliseconds.
    #[arg(long)]
    round_ms: Option<u64>,
    /// The `tidegraph` binary that services are started from. Without it: the one beside this program.
    #[arg(long, env = "TIDEGRAPH_BINARY")]
    service: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Bench::parse().workload.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegraph-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Workload {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Identity(flags) => flags.measure("identity", identity::run),
            Self::Pokec(flags) => flags.measure("pokec", pokec::run),
            Self::Lsqb(flags) => flags.measure("lsqb", lsqb::run),
            Self::Snb(flags) => flags.measure("snb", snb::run),
            Self::Gremlin(flags) => flags.without_peers()?.measure("gremlin", gremlin::run),
            Self::Load(flags) => flags.measure("load", load::run),
            Self::Http(flags) => flags.without_peers()?.measure("http", http::run),
            Self::Drivers(flags) => flags.measure("drivers", drivers::run),
            Self::Commit(flags) => flags.without_peers()?.measure("commit", commit::run),
            Self::Recover(flags) => flags.without_peers()?.measure("recover", recover::run),
            Self::Rebalance(flags) => flags.without_peers()?.measure("rebalance", rebalance::run),
            Self::Scan(flags) => flags.without_peers()?.measure("scan", scan::run),
            Self::Ycsb(flags) => flags.measure("ycsb", ycsb::run),
            #[cfg(feature = "fleet")]
            Self::Fleet(flags) => flags.without_peers()?.measure("fleet", fleet::run),
            Self::Micro(micro) => micro.run(),
        }
    }
}

impl Flags {
    /// Runs a workload and reports it under a name.
    fn measure(
        self,
        name: &'static str,
        run: impl FnOnce(&Self, &mut Report) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut report = Report::begin(name, self.quick);
        run(&self, &mut report)?;
        report.end(self.json.as_deref())
    }

    /// Refuses peers, for a workload that has none.
    fn without_peers(self) -> anyhow::Result<Self> {
        peers::wanted(&self, &[])?;
        Ok(self)
    }

    /// The `tidegraph` binary.
    fn service(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = &self.service {
            anyhow::ensure!(path.exists(), "there is no {}: give --service", path.display());
            return Ok(path.clone());
        }
        let own = std::env::current_exe().context("this program has no path")?;
        let path = own.with_file_name(format!("tidegraph{}", std::env::consts::EXE_SUFFIX));
        anyhow::ensure!(path.exists(), "there is no {}: build it, or give --service", path.display());
        Ok(path)
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
