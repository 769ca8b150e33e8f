//! What a world is made of: some of it said by the caller, the rest drawn from the seed.

use tidegraph_fleet::sequencing::Unsure;
use tidegraph_platform::{Random, SeededRandom};

/// A defect that is planted into the surroundings of the real code, to see that it would be found. There is nothing of it
/// outside of the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// The log says that it took records before it has seen that they count.
    AcknowledgeEarly,
    /// Readers of the log take what a deposed sequencer sent, if only its version follows.
    SkipEpochCheck,
    /// A node gets the contents of two records in the wrong order.
    ApplyOutOfOrder,
    /// Clients do not say which lists they read, so that no conflict is seen.
    HideReads,
    /// Each attempt of a worker's commit gets another name on its way.
    RenameCommits,
}

impl Bug {
    /// The name on the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "acknowledge-early" => Some(Self::AcknowledgeEarly),
            "skip-epoch-check" => Some(Self::SkipEpochCheck),
            "apply-out-of-order" => Some(Self::ApplyOutOfOrder),
            "hide-reads" => Some(Self::HideReads),
            "rename-commits" => Some(Self::RenameCommits),
            _ => None,
        }
    }
}

/// What the caller says of a world.
#[derive(Clone, Debug)]
pub struct Config {
    /// Everything that is drawn comes from it.
    pub seed: u64,
    /// A defect to plant.
    pub bug: Option<Bug>,
    /// Whether the lines of the trace are kept; its hash always is.
    pub keep_lines: bool,
    /// How long there are faults, in simulated milliseconds. After that all is healed and has to come to rest.
    pub faults_ms: u64,
}

impl Config {
    /// Twenty seconds of faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, bug: None, keep_lines: false, faults_ms: 20_000 }
    }
}

/// What is drawn when a world is made.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub nodes: usize,
    pub partitions: u16,
    pub replication: u16,
    pub clients: usize,
    /// Real workers, in half of the worlds.
    pub workers: usize,
    /// Whether they read a little in the past for what they write: in two worlds of five, none of which is one that found something before.
    pub at_hand: bool,
    pub keys: u64,
    /// How long a node may let commits wait for others, in microseconds.
    pub batch: u64,
    pub unsure: Unsure,
    /// Whether what the log has lies in the files of a real `FileLog` on a disk that tears writes.
    pub on_disk: bool,
    /// Clocks run at 1000 thousandths, give or take so many.
    pub skew: u64,
    /// Of a thousand messages between processes, how many are lost, come twice, or come late.
    pub lost: u64,
    pub twice: u64,
    pub late: u64,
    /// Of a thousand appends, how many go wrong.
    pub appends_wrong: u64,
    /// Of a thousand answers of the map, how many are lost.
    pub map_wrong: u64,
    /// Average time between two faults.
    pub fault_ms: u64,
    pub remembered_keys: usize,
    pub remembered_requests: usize,
    pub checkpoint_versions: u64,
}

impl Profile {
    pub fn draw(config: &Config, random: &SeededRandom) -> Self {
        let pick = |values: &[u64]| values[random.below(values.len() as u64) as usize];
        let nodes = pick(&[2, 3, 3, 3, 4]) as usize;
        Self {
            nodes,
            partitions: pick(&[1, 2, 4, 4, 8]) as u16,
            replication: pick(&[1, 2, 2, 2, 3]).min(nodes as u64) as u16,
            clients: pick(&[4, 6, 10, 16]) as usize,
            workers: workers(config),
            at_hand: matches!(config.seed % 5, 0 | 2),
            keys: pick(&[3, 6, 10]),
            batch: pick(&[1_000, 20_000, 60_000]),
            unsure: if random.one_in(2) { Unsure::Stop } else { Unsure::GoOn },
            // A file log refuses a record of a lower epoch by itself.
            on_disk: random.one_in(2) && config.bug != Some(Bug::SkipEpochCheck),
            // The lease is right while clocks differ by less than a fifth; the log is, whatever they do.
            skew: pick(&[0, 50, 80, 80, 400]),
            lost: pick(&[0, 5, 20, 60]),
            twice: pick(&[0, 5, 30]),
            late: pick(&[5, 20, 80]),
            appends_wrong: pick(&[0, 20, 60, 150]),
            map_wrong: pick(&[0, 20, 100]),
            fault_ms: pick(&[500, 1500, 3000]),
            remembered_keys: pick(&[8, 1000]) as usize,
            remembered_requests: pick(&[50, 1000]) as usize,
            checkpoint_versions: pick(&[10, 30, 100]),
        }
    }
}

/// Drawn apart from the rest, so that worlds without workers are what they were before there were any.
fn workers(config: &Config) -> usize {
    let random = SeededRandom::new(config.seed ^ APART);
    if random.one_in(2) || config.bug == Some(Bug::RenameCommits) { 1 + random.below(4) as usize } else { 0 }
}

/// Gives none to the seeds that found something before.
const APART: u64 = 0x7e11_5f6c;
