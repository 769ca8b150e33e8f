//! `tidegraph fleet split`: raises the number of partitions of a graph while it runs.

use super::{MoveArgs, Run, may_pass};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use tidegraph_cluster::{SplitProgress, SplitRun, SplitStage};
use tidegraph_platform::chain;
use tidegraph_types::PartitionCount;

#[derive(Args, Debug)]
pub struct Split {
    /// Number of partitions after the split: a power of two above the present number, 32,768 at most.
    #[arg(long, value_parser = partition_count, required_unless_present = "abort", conflicts_with = "abort")]
    partitions: Option<PartitionCount>,
    /// Take back a split that is unfinished. Possible until readers ask the new partitions.
    #[arg(long, conflicts_with = "dry_run")]
    abort: bool,
    /// Seconds for which nodes keep the old partitions after readers were told of the new ones: the longest time of a
    /// query, and that until a worker looks at the map.
    #[arg(long, default_value_t = 130, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    readers_s: u64,
    #[command(flatten)]
    args: MoveArgs,
}

/// Reads a number of partitions.
fn partition_count(text: &str) -> Result<PartitionCount, String> {
    let count: u64 = text.parse().map_err(|_| format!("{text:?} is not a whole number"))?;
    let count = u16::try_from(count).ok().filter(|count| *count <= MOST_PARTITIONS);
    let count = count.ok_or_else(|| format!("there can be at most {MOST_PARTITIONS} partitions"))?;
    PartitionCount::new(count)
}

/// Largest number of partitions of a graph.
const MOST_PARTITIONS: u16 = 1 << 15;

impl Split {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let Self { partitions, readers_s, args, .. } = self;
        let run = Run::new(args)?;
        match partitions {
            None => run.with_lease(|| run.abort_split()),
            Some(into) if run.args.dry_run => run.show_split(into),
            Some(into) => {
                // First, so that a split that cannot be is reported at once.
                run.rebalance.check_split(into)?;
                run.with_lease(|| run.split(into, Duration::from_secs(readers_s)))
            }
        }
    }
}

impl Run {
    fn abort_split(&self) -> anyhow::Result<ExitCode> {
        let aborted = self.rebalance.abort_split()?;
        if self.args.json {
            println!("{}", json!({ "aborted": aborted }));
        }
        self.say(if aborted { "the split was taken back" } else { "no split runs" });
        Ok(ExitCode::SUCCESS)
    }

    fn show_split(&self, into: PartitionCount) -> anyhow::Result<ExitCode> {
        let progress = self.rebalance.check_split(into)?;
        let from = self.rebalance.graph()?.partitions;
        if self.args.json {
            println!("{:#}", json!({ "from": from, "into": into, "progress": progress }));
        }
        self.say(&match progress.stage {
            SplitStage::None => format!(
                "{} partitions would become {}: nodes restore {} replicas, and need the memory of both until readers \
                 ask the new ones",
                from.get(),
                into.get(),
                progress.replicas
            ),
            _ => progress_line(into, &progress),
        });
        Ok(ExitCode::SUCCESS)
    }

    /// Carries out a split, or finishes one that was begun.
    fn split(&self, into: PartitionCount, readers: Duration) -> anyhow::Result<ExitCode> {
        let begun = self.clock.now();
        let mut line = String::new();
        let (moves, restores) = (self.args.moves, self.args.restores_per_node);
        let mut run = SplitRun::new(into, usize::from(moves), usize::from(restores), readers);
        let progress = loop {
            self.retried(|| self.renew())?;
            let progress = self.retried(|| Ok(run.step(&self.rebalance, self.clock.now())?))?;
            let now = progress_line(into, &progress);
            if now != line {
                self.say(&now);
                line = now;
            }
            match progress.stage {
                SplitStage::Done => break progress,
                SplitStage::Turned | SplitStage::Restoring => self.pause(&line)?,
                SplitStage::None => bail!("the split into {} partitions was taken back", into.get()),
            }
        };
        let seconds = (self.clock.now() - begun).as_secs_f64();
        if self.args.json {
            println!("{}", json!({ "into": into, "progress": progress, "seconds": seconds }));
        }
        self.say(&format!("the graph has {} partitions, after {seconds:.1} s", into.get()));
        Ok(ExitCode::SUCCESS)
    }

    /// Calls `step` until it succeeds, or fails with an error that does not pass by itself.
    fn retried<T>(&self, mut step: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        loop {
            match step() {
                Err(error) if may_pass(&error) => {
                    let reason = chain(error.as_ref()).to_string();
                    tracing::warn!("the step failed and is retried: {reason}");
                    self.pause(&reason).context("the partition map does not answer")?;
                }
                other => return other,
            }
        }
    }
}

/// Describes how far a split is.
fn progress_line(into: PartitionCount, progress: &SplitProgress) -> String {
    let SplitProgress { replicas, serving, short, former, .. } = progress;
    let into = into.get();
    match progress.stage {
        SplitStage::None => format!("no split into {into} partitions runs"),
        SplitStage::Restoring if *short > 0 => format!(
            "{serving} of {replicas} replicas of the {into} partitions serve; {short} have no node: start more nodes"
        ),
        SplitStage::Restoring => format!("{serving} of {replicas} replicas of the {into} partitions serve"),
        SplitStage::Turned => format!(
            "readers ask the {into} partitions; nodes keep {former} replicas of the old ones for a while"
        ),
        SplitStage::Done => format!("nodes hold only the {into} partitions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_partitions_is_a_power_of_two() {
        assert_eq!(partition_count("32").map(PartitionCount::get), Ok(32));
        assert_eq!(partition_count("32768").map(PartitionCount::get), Ok(32_768));
        for (text, reason) in [
            ("12", "partition count 12 is not a power of two"),
            ("0", "partition count 0 is not a power of two"),
            ("65536", "there can be at most 32768 partitions"),
            ("99999999999", "there can be at most 32768 partitions"),
            ("-8", "\"-8\" is not a whole number"),
            ("many", "\"many\" is not a whole number"),
        ] {
            assert_eq!(partition_count(text).unwrap_err(), reason);
        }
    }
}
