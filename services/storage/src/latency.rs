//! Measures how long brokers take to acknowledge a message: the least time that a commit can take.

use crate::connect::LogArgs;
use anyhow::ensure;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tidegraph_log::NewTopic;
use tidegraph_log::kafka::{create_topic, delete_topic, write_latency};

/// Number of first writes that are not counted, because a new client connects first.
const FIRST: usize = 50;

/// Flags of `log-latency`.
#[derive(Args, Debug)]
pub struct LogLatency {
    #[command(flatten)]
    log: LogArgs,
    /// Number of messages to write, one after the other.
    #[arg(long, default_value_t = 1_000)]
    writes: usize,
    /// Bytes of each message.
    #[arg(long, default_value_t = 200)]
    bytes: usize,
    /// Number of readers that follow the topic, as the nodes of a fleet do.
    #[arg(long, default_value_t = 0)]
    followers: usize,
    /// Number of copies of the topic.
    #[arg(long, default_value_t = 1)]
    log_replication: u16,
    /// Number of copies that must exist before a message is acknowledged.
    #[arg(long, default_value_t = 1)]
    log_in_sync: u16,
}

impl LogLatency {
    pub fn run(self) -> anyhow::Result<()> {
        ensure!(self.writes > 0, "--writes is 0: give at least 1");
        // Never a graph's topic: the messages are not records.
        let mut options = self.log.kafka("")?;
        options.topic = format!("tidegraph-latency-{}", std::process::id());
        create_topic(
            &options,
            NewTopic { shards: 1, replication: self.log_replication, in_sync: self.log_in_sync },
        )?;
        let measured = write_latency(&options, FIRST + self.writes, self.bytes, self.followers);
        delete_topic(&options)?;
        let mut times = measured?.split_off(FIRST);
        times.sort_unstable();
        let at = |share: usize| micros(times[(times.len() - 1) * share / 1_000]);
        let text = json!({
            "writes": self.writes, "bytes": self.bytes, "followers": self.followers,
            "p50_us": at(500), "p99_us": at(990), "p999_us": at(999),
        });
        #[allow(clippy::print_stdout)] // The output of the command.
        {
            println!("{text}");
        }
        Ok(())
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
