//! Measurements of single crates, without the query service around them. They print text and write no report.

mod apply_rate;
pub mod checkpoint_rate;
mod commit_rate;
#[cfg(feature = "kafka")]
mod kafka_rate;
mod load_memory;
mod load_rate;
#[cfg(feature = "dynamodb")]
mod map_rate;
mod parse_rate;
mod point_rate;
mod remote_rate;
mod spill_rate;
mod step_rate;
mod target;
mod topology_rate;

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Measurements of single crates.
#[derive(Args, Debug)]
pub struct Micro {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand, Debug)]
enum Measurement {
    /// Storage: applying loads, by what they hold (Linux only).
    ApplyRate {
        /// Number of vertices.
        #[arg(default_value_t = 300_000)]
        vertices: usize,
    },
    /// Storage: writing and restoring checkpoints, whole and incremental.
    CheckpointRate {
        /// Number of vertices.
        #[arg(default_value_t = 1_000_000)]
        vertices: u64,
        /// Directory for the files. Without it: the system's directory for temporary files.
        directory: Option<PathBuf>,
    },
    /// Sequencer: a commit without a disk.
    CommitRate,
    /// Log: appending to Kafka and following it, with one shard and with several. Leaves its topics behind.
    #[cfg(feature = "kafka")]
    KafkaRate {
        /// Brokers, as `host:port` with commas between.
        brokers: String,
    },
    /// Storage: memory that a loaded graph takes for each edge.
    LoadMemory {
        /// Exponent of the number of vertices.
        #[arg(default_value_t = 20)]
        scale: u32,
    },
    /// Loader: a source to segments in memory, against an empty graph.
    LoadRate {
        /// URI of the source. Without it: a generated identity graph of 5,000 golden entities.
        source: Option<String>,
    },
    /// Partition map: 4,096 partitions with three replicas on 300 nodes.
    #[cfg(feature = "dynamodb")]
    MapRate {
        /// Endpoint of a DynamoDB Local that is measured too.
        endpoint: Option<String>,
    },
    /// Loader: reading files.
    ParseRate {
        /// Files. Without any: a generated identity graph of 5,000 golden entities.
        files: Vec<PathBuf>,
    },
    /// Storage: reading one vertex with its properties (Linux only).
    PointRate {
        /// Number of vertices.
        #[arg(default_value_t = 1 << 20)]
        vertices: usize,
    },
    /// APL over the network: three nodes on loopback beside one store. Takes about half a minute.
    RemoteRate,
    /// Storage: loading and reading under memory budgets, each in a process of its own.
    SpillRate {
        /// Number of vertices.
        #[arg(default_value_t = 1_000_000)]
        vertices: usize,
        /// Measure only this budget, in this process: bytes, or `none`.
        budget: Option<String>,
    },
    /// Loader: a source in steps, one task after the other, against an empty graph.
    StepRate {
        /// URI of the source. Without it: a generated identity graph of 20,000 golden entities.
        source: Option<String>,
    },
    /// Storage: scanning all edges, searches, and neighbours of random frontiers.
    TopologyRate {
        /// Exponent of the number of vertices.
        #[arg(default_value_t = 20)]
        scale: u32,
        /// Parts to run: scan, search, expand. Without any: all.
        parts: Vec<String>,
    },
}

impl Micro {
    /// Runs the measurement.
    pub fn run(self) -> anyhow::Result<()> {
        match self.measurement {
            Measurement::ApplyRate { vertices } => apply_rate::run(vertices),
            Measurement::CheckpointRate { vertices, directory } => {
                let directory = directory.unwrap_or_else(std::env::temp_dir);
                checkpoint_rate::run(vertices, &directory)?;
            }
            Measurement::CommitRate => commit_rate::run(),
            #[cfg(feature = "kafka")]
            Measurement::KafkaRate { brokers } => kafka_rate::run(&brokers),
            Measurement::LoadMemory { scale } => load_memory::run(scale),
            Measurement::LoadRate { source } => load_rate::run(source)?,
            #[cfg(feature = "dynamodb")]
            Measurement::MapRate { endpoint } => map_rate::run(endpoint),
            Measurement::ParseRate { files } => parse_rate::run(files)?,
            Measurement::PointRate { vertices } => point_rate::run(vertices),
            Measurement::RemoteRate => remote_rate::run(),
            Measurement::SpillRate { vertices, budget } => spill_rate::run(vertices, budget.as_deref())?,
            Measurement::StepRate { source } => step_rate::run(source)?,
            Measurement::TopologyRate { scale, parts } => topology_rate::run(scale, &parts),
        }
        Ok(())
    }
}
