//! Flags of restores: how many replicas a daemon restores at once, and what they read at the same time.

use clap::Args;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use tidegraph_fleet::RestoreReads;
use tidegraph_platform::Clock;

/// Largest number of replicas that are restored at once.
const MOST_RESTORES: u64 = 1_024;

/// Largest number of parts that are read at once: 8 GiB of memory.
const MOST_READS: u64 = 1_024;

/// Largest bandwidth in MiB/s, above that of any machine's network.
const MOST_BANDWIDTH: u64 = 100_000;

/// Least number of replicas that are restored at once by default.
const LEAST_RESTORES: usize = 2;

/// Flags of restores.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Number of replicas of all graphs that are restored at once. A restore uses about one processor, at a lower
    /// priority than queries. Default: half of the processors, at least 2.
    #[arg(
        long,
        env = "TIDEGRAPH_RESTORES_AT_ONCE",
        value_parser = clap::value_parser!(u64).range(1..=MOST_RESTORES)
    )]
    restores_at_once: Option<u64>,
    /// Number of parts of checkpoints, of 8 MiB each, that all restores together read at once and hold in memory.
    #[arg(
        long,
        env = "TIDEGRAPH_RESTORE_READS",
        default_value_t = 16,
        value_parser = clap::value_parser!(u64).range(1..=MOST_READS)
    )]
    restore_reads: u64,
    /// Largest bandwidth of all restores together, in MiB a second. Default: no limit.
    #[arg(
        long,
        env = "TIDEGRAPH_RESTORE_BANDWIDTH",
        value_name = "MIB_PER_S",
        value_parser = clap::value_parser!(u64).range(1..=MOST_BANDWIDTH)
    )]
    restore_bandwidth: Option<u64>,
}

impl RestoreArgs {
    /// Returns how many replicas of each of `graphs` graphs are restored at once.
    pub fn at_once(&self, graphs: usize) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.restores_at_once.map_or_else(|| by_default(cores), |restores| restores as usize);
        (all / graphs.max(1)).max(1)
    }

    /// Returns what all restores of the daemon read at the same time.
    pub fn reads(&self, clock: Arc<dyn Clock>) -> RestoreReads {
        let most = NonZeroUsize::new(self.restore_reads as usize).unwrap_or(NonZeroUsize::MIN);
        let reads = RestoreReads::new(most);
        let kib = self.restore_bandwidth.and_then(|mib| NonZeroU32::new((mib * 1024) as u32));
        match kib {
            Some(kib) => reads.with_bandwidth(kib, clock),
            None => reads,
        }
    }
}

fn by_default(cores: usize) -> usize {
    (cores / 2).max(LEAST_RESTORES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Command {
        #[command(flatten)]
        restores: RestoreArgs,
    }

    fn of(flags: &[&str]) -> Result<RestoreArgs, String> {
        let flags = std::iter::once("tidegraph-node").chain(flags.iter().copied());
        Command::try_parse_from(flags).map(|command| command.restores).map_err(|error| error.to_string())
    }

    #[test]
    fn restores_follow_the_processors_and_are_divided_among_graphs() {
        assert_eq!([1, 2, 4, 16, 64].map(by_default), [2, 2, 2, 8, 32]);
        let nine = of(&["--restores-at-once", "9"]).unwrap();
        assert_eq!([1, 2, 9, 20].map(|graphs| nine.at_once(graphs)), [9, 4, 1, 1]);
    }

    #[test]
    fn bad_values_are_refused_by_their_name() {
        let cases = [
            ("--restores-at-once", "0"),
            ("--restores-at-once", "1025"),
            ("--restore-reads", "0"),
            ("--restore-reads", "1025"),
            ("--restore-reads", "many"),
            ("--restore-bandwidth", "0"),
            ("--restore-bandwidth", "100001"),
            ("--restore-bandwidth", "1.5"),
        ];
        for (flag, value) in cases {
            let error = of(&[flag, value]).unwrap_err();
            assert!(error.contains(flag) && error.contains(value), "{error}");
        }
        let most = of(&["--restore-bandwidth", "100000", "--restore-reads", "1024"]).unwrap();
        assert_eq!((most.restore_bandwidth, most.restore_reads), (Some(100_000), 1_024));
    }
}
