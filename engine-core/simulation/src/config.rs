//! Settings of a world: some from the caller, the rest drawn from the seed.

use crate::split::SplitProfile;
use std::time::Duration;
use tidegraph_fleet::sequencing::Unsure;
use tidegraph_platform::{Random, SeededRandom};

/// A defect that is planted beside the real code, to show that the checks find it. It
/// exists only in the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// The log acknowledges records before it has read them back.
    AcknowledgeEarly,
    /// Readers of the log accept records of a deposed sequencer if their versions follow.
    SkipEpochCheck,
    /// A node receives the contents of two records in the wrong order.
    ApplyOutOfOrder,
    /// Clients do not declare the lists that they read, so the sequencer sees no conflict.
    HideReads,
    /// The commits of statements lose the keys that they read on the way.
    StripReads,
    /// Each attempt of a worker's commit gets another id on the way.
    RenameCommits,
    /// Loads are not told what transactions changed beside them.
    HideChanges,
    /// The commits of statements do not say that they read which constraints there are.
    StripConstraints,
    /// The command that splits the graph makes readers turn to the next partitions before these have their replicas.
    TurnEarly,
    /// While the graph is split, a follower of the log gets its first record without content.
    LoseWhileSplitting,
}

impl Bug {
    /// Whether the defect is one of a log of one shard.
    fn needs_one_shard(self) -> bool {
        matches!(
            self,
            Self::AcknowledgeEarly | Self::SkipEpochCheck | Self::ApplyOutOfOrder | Self::LoseWhileSplitting
        )
    }

    /// Returns the defect with this name on the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "acknowledge-early" => Some(Self::AcknowledgeEarly),
            "skip-epoch-check" => Some(Self::SkipEpochCheck),
            "apply-out-of-order" => Some(Self::ApplyOutOfOrder),
            "hide-reads" => Some(Self::HideReads),
            "strip-reads" => Some(Self::StripReads),
            "rename-commits" => Some(Self::RenameCommits),
            "hide-changes" => Some(Self::HideChanges),
            "strip-constraints" => Some(Self::StripConstraints),
            "turn-early" => Some(Self::TurnEarly),
            "lose-while-splitting" => Some(Self::LoseWhileSplitting),
            _ => None,
        }
    }
}

/// Settings of a world that the caller chooses.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of all random choices.
    pub seed: u64,
    /// The defect to plant.
    pub bug: Option<Bug>,
    /// Whether the lines of the trace are kept. Its hash always is.
    pub keep_lines: bool,
    /// Duration of the faults in simulated time. Afterwards all faults are healed and the fleet must come to rest.
    pub faults: Duration,
}

impl Config {
    /// Settings with 20 seconds of faults and no defect.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, bug: None, keep_lines: false, faults: Duration::from_secs(20) }
    }
}

/// Settings of a world that are drawn from its seed.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub nodes: usize,
    pub partitions: u16,
    /// Number of shards of the log. One world in four has several, none of those of seeds that found an earlier defect.
    pub shards: u16,
    pub replication: u16,
    pub clients: usize,
    /// Number of real workers; half of the worlds have none.
    pub workers: usize,
    /// Whether workers read a little in the past for transactions that write. Two worlds
    /// in five do, except those of seeds that found an earlier defect.
    pub at_hand: bool,
    /// Whether transactions reset the graph. One world in seven has resets, none of those of seeds that found an earlier
    /// defect.
    pub resets: bool,
    /// Whether workers also run statements of the query languages, which bring new names all the time and create and
    /// drop an index and a constraint. One world in four does, none of those of seeds that found an earlier defect.
    pub statements: bool,
    /// Whether workers also run bulk loads beside statements. Two of three worlds with statements have loads.
    pub loads: bool,
    /// Whether workers also scan all vertices in small pieces, while replicas are restored. One world in six does, none of
    /// those of seeds that found an earlier defect; nor has one of them the next two.
    pub scans: bool,
    /// Whether code panics: the feed of a node, the sequencer while it appends, a statement of a worker.
    pub panics: bool,
    /// Whether the threads of a node are all busy for a while, so that it answers late.
    pub saturation: bool,
    /// Whether nodes keep copies of checkpoints on their disks.
    pub copies: bool,
    /// How the graph is split; `None`: it is not.
    pub splits: Option<SplitProfile>,
    pub keys: u64,
    /// Longest wait of a commit for others of its group, in microseconds.
    pub batch: u64,
    pub unsure: Unsure,
    /// Whether the log is stored in a real `FileLog` on a disk that tears writes.
    pub on_disk: bool,
    /// Largest deviation of a clock's speed, in thousandths.
    pub skew: u64,
    /// Shares of messages between processes that are lost, arrive twice, or arrive late, in thousandths.
    pub lost: u64,
    pub twice: u64,
    pub late: u64,
    /// Share of appends that fail in some way, in thousandths.
    pub appends_wrong: u64,
    /// Share of calls of the map that are lost, in thousandths.
    pub map_wrong: u64,
    /// Mean time between two faults, in milliseconds.
    pub fault_ms: u64,
    pub remembered_keys: usize,
    pub remembered_requests: usize,
    pub checkpoint_versions: u64,
}

impl Profile {
    pub fn draw(config: &Config, random: &SeededRandom) -> Self {
        let pick = |values: &[u64]| values[random.below(values.len() as u64) as usize];
        let (statements, scans) = (config.seed.is_multiple_of(4), config.seed % 6 == 4);
        // With few faults, statements meet each other more often.
        let calm = matches!(config.seed % 16, 4 | 8);
        let nodes = pick(&[2, 3, 3, 3, 4]) as usize;
        let partitions = pick(&[1, 2, 4, 4, 8]) as u16;
        let several = matches!(config.seed % 8, 0 | 5) && !config.bug.is_some_and(Bug::needs_one_shard);
        let shards = if several { (2 + (config.seed / 8 % 3) as u16).min(partitions) } else { 1 };
        Self {
            nodes,
            partitions,
            shards,
            replication: pick(&[1, 2, 2, 2, 3]).min(nodes as u64) as u16,
            clients: pick(&[4, 6, 10, 16]) as usize,
            workers: workers(config, statements, scans),
            at_hand: matches!(config.seed % 5, 0 | 2),
            resets: config.seed % 7 == 5 && config.bug.is_none(),
            statements,
            loads: statements && !config.seed.is_multiple_of(3),
            scans,
            panics: matches!(config.seed % 10, 4 | 7),
            saturation: matches!(config.seed % 10, 0 | 5),
            copies: config.seed % 3 == 2,
            splits: SplitProfile::draw(config.seed, partitions),
            keys: pick(&[3, 6, 10]),
            batch: pick(&[1_000, 20_000, 60_000]),
            unsure: if random.one_in(2) { Unsure::Stop } else { Unsure::GoOn },
            // A file log refuses a record of a lower epoch by itself, so the defect would have no effect.
            // A log of several shards is in memory.
            on_disk: random.one_in(2) && config.bug != Some(Bug::SkipEpochCheck) && shards == 1,
            // Leases exclude each other while clocks differ by less than a fifth; the log needs no clock.
            skew: pick(&[0, 50, 80, 80, 400]),
            lost: pick(&[0, 5, 20, 60]),
            twice: pick(&[0, 5, 30]),
            late: pick(&[5, 20, 80]),
            appends_wrong: pick(if calm { &[0, 20] } else { &[0, 20, 60, 150] }),
            map_wrong: pick(&[0, 20, 100]),
            fault_ms: pick(if calm { &[4000] } else { &[500, 1500, 3000] }),
            // A sequencer that remembers few keys refuses all commits that are long under way.
            remembered_keys: pick(if calm { &[1000] } else { &[8, 1000] }) as usize,
            remembered_requests: pick(&[50, 1000]) as usize,
            checkpoint_versions: pick(&[10, 30, 100]),
        }
    }
}

/// Draws the number of workers from a generator of its own, so that worlds without workers do not depend on it.
fn workers(config: &Config, statements: bool, scans: bool) -> usize {
    let random = SeededRandom::new(config.seed ^ APART);
    if statements {
        2 + random.below(3) as usize
    } else if random.one_in(2) || scans || config.bug == Some(Bug::RenameCommits) {
        1 + random.below(4) as usize
    } else {
        0
    }
}

/// Chosen so that seeds that found earlier defects have no workers.
const APART: u64 = 0x7e11_5f6c;
